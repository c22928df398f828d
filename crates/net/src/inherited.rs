//! Sockets that this process was started with: a service manager has opened them, or kept them from an earlier run.
//! sd_listen_fds(3) has the protocol.

use std::env;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::net::{SocketType, getsockname, sockopt};

/// The number of the first one. sd-daemon.h, SD_LISTEN_FDS_START.
const FIRST: RawFd = 3;
/// More than a service manager keeps for anybody.
const COUNT_MAX: usize = 65_536;

/// A socket with an Internet address, which somebody else has bound.
#[derive(Debug)]
pub struct Inherited {
    /// The name that the service manager has for it; it may have several of one name.
    pub name: String,
    /// Where it is bound.
    pub local: SocketAddr,
    /// Whether it listens for connections; else it takes datagrams.
    pub is_listener: bool,
    /// Whether others may be bound to the same address (`SO_REUSEPORT`).
    pub shares: bool,
    /// The socket.
    pub socket: OwnedFd,
}

/// Takes what the environment says was passed to this process; what is not a socket of that kind is closed. There is
/// nothing to take the second time.
#[must_use]
pub fn take() -> Vec<Inherited> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    let text = |name| env::var(name).unwrap_or_default();
    let count = passed_count(&text("LISTEN_PID"), &text("LISTEN_FDS"), std::process::id());
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return Vec::new();
    }
    let names = text("LISTEN_FDNAMES");
    let mut names = names.split(':');
    let numbers = (FIRST..).take(count);
    numbers.filter_map(|number| inherited(adopt(number)?, names.next().unwrap_or_default())).collect()
}

/// How many were passed to the process with this number.
fn passed_count(pid: &str, count: &str, own: u32) -> usize {
    match pid.parse() == Ok(own) {
        true => count.parse().unwrap_or(0).min(COUNT_MAX),
        false => 0,
    }
}

/// Owns a descriptor that was open when the program began; `None` if there is none with this number. Programs that this
/// one starts do not get it.
fn adopt(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: it is asked for its flags alone, and an unused number is an error of that call.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    // What was opened since closes at an exec, as Rust opens nothing otherwise, and has another owner.
    if fcntl_getfd(descriptor).ok()?.contains(FdFlags::CLOEXEC) {
        return None;
    }
    fcntl_setfd(descriptor, FdFlags::CLOEXEC).ok()?;
    // SAFETY: it is open, it was passed to this process and to nobody in it, and from now on the flag keeps it from
    // being adopted again.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

fn inherited(socket: OwnedFd, name: &str) -> Option<Inherited> {
    let local = SocketAddr::try_from(getsockname(&socket).ok()?).ok()?;
    let is_listener = match sockopt::socket_type(&socket).ok()? {
        SocketType::DGRAM => false,
        SocketType::STREAM if sockopt::socket_acceptconn(&socket).ok()? => true,
        _ => return None,
    };
    let shares = sockopt::socket_reuseport(&socket).ok()?;
    Some(Inherited { name: name.to_owned(), local, is_listener, shares, socket })
}

impl AsFd for Inherited {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn what_was_passed_to_another_process_is_not_ours() {
        assert_eq!(passed_count("7", "2", 7), 2);
        assert_eq!(passed_count("7", "2", 8), 0);
        assert_eq!(passed_count("", "2", 8), 0);
        assert_eq!(passed_count("7", "two", 7), 0);
        assert_eq!(passed_count("7", "18446744073709551615", 7), COUNT_MAX);
    }

    #[test]
    fn descriptor_of_somebody_else_is_left_alone() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&socket);
        assert!(adopt(number).is_none(), "it was opened by this process");
        assert!(adopt(1 << 20).is_none(), "there is none");
    }

    #[test]
    fn sockets_are_told_by_kind_and_address_and_other_files_are_closed() {
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        let listener = TcpListener::bind("[::1]:0").or_else(|_| TcpListener::bind("127.0.0.1:0")).unwrap();
        let (of_datagrams, of_listener) = (datagrams.local_addr().unwrap(), listener.local_addr().unwrap());
        let stream = std::net::TcpStream::connect(of_listener).unwrap();
        let found = inherited(datagrams.into(), "a").unwrap();
        assert_eq!((found.name.as_str(), found.local, found.is_listener), ("a", of_datagrams, false));
        assert!(!found.shares);
        let found = inherited(listener.into(), "b").unwrap();
        assert_eq!((found.local, found.is_listener), (of_listener, true));
        assert!(inherited(stream.into(), "").is_none());
        assert!(inherited(std::fs::File::open("/dev/null").unwrap().into(), "").is_none());
    }
}
