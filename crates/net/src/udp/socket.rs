//! Opening server sockets.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// What a socket asks for to hold a burst; the kernel may give less.
const RECEIVE_BUFFER_SIZE: usize = 4 << 20;

/// A bound socket of a server.
#[derive(Debug)]
pub struct ServerSocket {
    socket: UdpSocket,
    local: SocketAddr,
}

impl ServerSocket {
    /// Binds to `address`. Kernel receive stamps are switched on, and on a wildcard address packet information too, so
    /// that responses can leave from the address that was asked. With `share`, several sockets may be bound to the
    /// same address and the kernel spreads clients over them.
    ///
    /// # Errors
    /// Whatever the kernel says: the port is taken or privileged, the address is not of this host.
    pub fn bind(address: SocketAddr, share: bool) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket: OwnedFd = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        if share {
            sockopt::set_socket_reuseport(&socket, true)?;
        }
        prepare(socket.as_fd(), address)?;
        bind(&socket, &address)?;
        let socket = UdpSocket::from(socket);
        let local = socket.local_addr()?;
        Ok(ServerSocket { socket, local })
    }

    /// A socket of datagrams that somebody else has bound, with what waits in it.
    ///
    /// # Errors
    /// If it is none, or the kernel does not let it have what [`ServerSocket::bind`] switches on.
    pub fn adopt(socket: OwnedFd) -> io::Result<Self> {
        let socket = UdpSocket::from(socket);
        let local = socket.local_addr()?;
        prepare(socket.as_fd(), local)?;
        Ok(ServerSocket { socket, local })
    }

    /// The address that the socket is bound to, with its true port.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Datagrams that the kernel dropped because nobody read them in time.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn dropped_count(&self) -> io::Result<u64> {
        dropped_count(self.as_fd())
    }
}

/// Switches on what a server needs of a socket at `address`.
fn prepare(socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    set_receive_stamps(socket)?;
    if address.ip().is_unspecified() {
        let (level, option) = match address {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_PKTINFO),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
        };
        set_flag(socket, level, option)?;
    }
    enlarge_receive_buffer(socket);
    Ok(())
}

impl AsFd for ServerSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Datagrams for `socket` that the kernel dropped because nobody read them in time.
///
/// # Errors
/// If the kernel does not tell.
pub fn dropped_count(socket: BorrowedFd<'_>) -> io::Result<u64> {
    // linux/sock_diag.h: SK_MEMINFO_DROPS is the ninth of these.
    const DROPS: usize = 8;
    let mut info = [0u32; 9];
    let (at, mut size) = (info.as_mut_ptr().cast(), size_of_val(&info) as libc::socklen_t);
    // SAFETY: getsockopt(2) writes at most `size` octets to `info`, and to `size`; both outlive the call.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, at, &raw mut size)
    };
    if result == 0 { Ok(u64::from(info[DROPS])) } else { Err(io::Error::last_os_error()) }
}

/// Whether this kernel has IPv6 at all. One that was started with `ipv6.disable=1`, or built without, refuses the
/// socket itself (EAFNOSUPPORT); where only addresses are missing, as with `disable_ipv6`, a wildcard can be bound.
#[must_use]
pub fn has_ipv6() -> bool {
    let socket = socket_with(AddressFamily::INET6, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    !matches!(socket, Err(rustix::io::Errno::AFNOSUPPORT))
}

/// Binds `count` sockets to `address`, one for each worker. The port is tried alone first: sockets that share would
/// not notice that another process of this user has it.
///
/// # Errors
/// As [`ServerSocket::bind`].
pub fn bind_group(address: SocketAddr, count: usize) -> io::Result<Vec<ServerSocket>> {
    let alone = ServerSocket::bind(address, false)?;
    if count <= 1 {
        return Ok(vec![alone]);
    }
    let address = alone.local();
    drop(alone);
    join_group(address, count)
}

/// Binds `count` sockets to `address`, which share it with those that are there, and with those that may come.
///
/// # Errors
/// As [`ServerSocket::bind`].
pub fn join_group(address: SocketAddr, count: usize) -> io::Result<Vec<ServerSocket>> {
    (0..count).map(|_| ServerSocket::bind(address, true)).collect()
}

/// Has the kernel stamp each datagram when it arrives.
pub(super) fn set_receive_stamps(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_flag(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS)
}

/// Asks for a larger receive buffer, beyond the system's limit if the process may.
pub(super) fn enlarge_receive_buffer(socket: BorrowedFd<'_>) {
    // A larger buffer helps, but is not required.
    if sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER_SIZE).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER_SIZE);
    }
}

/// Switches a socket option on.
pub(crate) fn set_flag(socket: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    let (at, size) = ((&raw const on).cast(), size_of_val(&on) as libc::socklen_t);
    // SAFETY: setsockopt(2) reads `size_of(on)` octets from `on`, which outlives the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, at, size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The address that a wildcard socket of this family can be reached at on this host.
#[cfg(test)]
pub(super) fn loopback(wildcard: SocketAddr) -> SocketAddr {
    let ip = if wildcard.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
    SocketAddr::new(ip, wildcard.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_port_is_noticed_even_by_sockets_that_share() {
        let group = bind_group("127.0.0.1:0".parse().unwrap(), 2).unwrap();
        assert_eq!(group[0].local(), group[1].local());
        let error = bind_group(group[0].local(), 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn both_families_bind_to_one_port_and_drops_are_told() {
        let v4 = ServerSocket::bind("0.0.0.0:0".parse().unwrap(), false).unwrap();
        let v6 =
            ServerSocket::bind(SocketAddr::new("::".parse().unwrap(), v4.local().port()), false).unwrap();
        assert!(v4.local().ip().is_unspecified() && v6.local().ip().is_unspecified());
        assert_eq!(v4.dropped_count().unwrap(), 0);
    }
}
