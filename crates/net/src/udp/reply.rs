//! Answers that leave later than the batch in which they were asked for, from another thread.

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use rustix::net::addr::SocketAddrArg;

use super::control::{self, Control};
use super::socket::ServerSocket;
use crate::engine::{ReplyPath, ReplySender};

/// Second handles of the sockets that one engine serves, in their order. They only send.
#[derive(Debug)]
pub struct ReplySockets(Vec<UdpSocket>);

impl ReplySockets {
    /// Handles of `sockets`.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub fn of(sockets: &[ServerSocket]) -> io::Result<Self> {
        let handle = |socket: &ServerSocket| Ok(UdpSocket::from(socket.as_fd().try_clone_to_owned()?));
        sockets.iter().map(handle).collect::<io::Result<_>>().map(ReplySockets)
    }
}

impl ReplySender for ReplySockets {
    fn send(&self, octets: &[u8], destination: SocketAddr, path: &ReplyPath) -> io::Result<()> {
        let socket = &self.0[path.socket];
        let mut control = Control([0; control::CONTROL_SIZE]);
        let mut part = libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() };
        // SAFETY: a msghdr is integers and pointers, for which all zeros is a value.
        let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        if let Some(asked) = path.asked {
            header.msg_control = (&raw mut control).cast();
            // SAFETY: the buffer is ours, and nothing else uses it.
            header.msg_controllen = unsafe { control::write(&raw mut control, asked) };
        }
        let send = |name: *const rustix::net::addr::SocketAddrOpaque, size| {
            header.msg_name = name.cast_mut().cast();
            header.msg_namelen = size;
            // SAFETY: sendmsg(2) reads what the header points to: the address, the octets and the control part, all of
            // which outlive the call and have the sizes that the header gives. It writes to none of them.
            unsafe { libc::sendmsg(socket.as_raw_fd(), ptr::from_ref(&header), libc::MSG_DONTWAIT) }
        };
        // SAFETY: the callee uses the address during the call alone.
        let sent = unsafe { destination.with_sockaddr(send) };
        if sent >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::UdpEngine;
    use super::*;
    use crate::engine::tests::handlers::Later;
    use crate::engine::{BATCH_SIZE, Engine};

    const PATIENCE: Duration = Duration::from_millis(200);

    #[test]
    fn late_answer_leaves_from_the_address_that_was_asked() {
        for (wildcard, asked, from) in [
            ("0.0.0.0:0", "127.0.0.77", "127.0.0.1:0"),
            ("[::]:0", "::1", "[::1]:0"),
            ("127.0.0.1:0", "127.0.0.1", "127.0.0.1:0"),
        ] {
            let sockets: Vec<ServerSocket> = ["127.0.0.1:0", wildcard]
                .map(|address| ServerSocket::bind(address.parse().unwrap(), false).unwrap())
                .into();
            let replies = ReplySockets::of(&sockets).unwrap();
            let asked = SocketAddr::new(asked.parse().unwrap(), sockets[1].local().port());
            let mut engine = UdpEngine::new(sockets, PATIENCE, BATCH_SIZE).unwrap();
            let client = UdpSocket::bind(from).unwrap();
            client.set_read_timeout(Some(10 * PATIENCE)).unwrap();
            client.send_to(b"later, please", asked).unwrap();
            let mut later = Later::default();
            engine.turn(&mut later).unwrap();
            let [(source, path)] = later.0[..] else { panic!("one datagram") };
            assert_eq!((source, path.socket), (client.local_addr().unwrap(), 1));
            replies.send(b"here", source, &path).unwrap();
            let mut buffer = [0; 64];
            let (size, answered) = client.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..size], answered), (&b"here"[..], asked));
        }
    }
}
