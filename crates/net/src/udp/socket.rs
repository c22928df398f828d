//! Opening server sockets.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// What a socket asks for to hold a burst; the kernel may give less.
const RECEIVE_BUFFER_SIZE: usize = 4 << 20;
/// What a server's socket asks for to hold responses whose destinations the kernel has not resolved yet. With Linux's
/// default a few hundred requests a second from addresses that do not exist fill the buffer, and no response leaves.
const SEND_BUFFER_SIZE: usize = 4 << 20;
/// Octets of a send buffer that a response without fields takes: its buffer with the kernel's own data.
const RESPONSE_MEMORY: usize = 768;
/// How long Linux keeps what is sent to a neighbour that does not answer: three solicitations, a second each.
/// Documentation/networking/ip-sysctl.rst: mcast_solicit, retrans_time_ms.
const RESOLUTION_SECONDS: usize = 3;

/// A bound socket of a server.
#[derive(Debug)]
pub struct ServerSocket {
    socket: UdpSocket,
    local: SocketAddr,
}

impl ServerSocket {
    /// Binds to `address`, which no interface need have yet: it is served once one has it (`IP_FREEBIND`, ip(7)). An
    /// address that DHCP, a failover daemon or duplicate address detection brings later is as good as one that is
    /// there; [`is_local`] tells them apart.
    ///
    /// Kernel receive stamps are switched on, and on a wildcard address packet information too, so that responses can
    /// leave from the address that was asked. With `share`, several sockets may be bound to the same address and the
    /// kernel spreads clients over them.
    ///
    /// # Errors
    /// Whatever the kernel says: the port is taken or privileged, the interface of a zone is missing.
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
        // Linux before 4.15 has none for IPv6; an address that is there needs none.
        let _ = match address {
            SocketAddr::V4(_) => sockopt::set_ip_freebind(&socket, true),
            SocketAddr::V6(_) => sockopt::set_ipv6_freebind(&socket, true),
        };
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

    /// The state of its buffers.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn memory(&self) -> io::Result<SocketMemory> {
        SocketMemory::of(self.as_fd())
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
        if address.is_ipv6() {
            // A socket of a service manager may take IPv4 too, of which this says what is asked. It alone knows a
            // broadcast. On others it changes nothing.
            let _ = set_flag(socket, libc::IPPROTO_IP, libc::IP_PKTINFO);
        }
    }
    refuse_groups(socket, address)?;
    ignore_path_mtu(socket, address)?;
    enlarge_receive_buffer(socket);
    enlarge_send_buffer(socket);
    Ok(())
}

/// Takes no datagram for a multicast group that another socket of this host has joined. A kernel before 4.20 cannot
/// for IPv6; the packet information of each datagram says the same.
fn refuse_groups(socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    /// linux/in6.h; the libc crate does not have it.
    const IPV6_MULTICAST_ALL: libc::c_int = 29;
    if address.is_ipv6() {
        let set = set_option(socket, libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
        set.or_else(
            |error| if error.raw_os_error() == Some(libc::ENOPROTOOPT) { Ok(()) } else { Err(error) },
        )?;
    }
    // An IPv6 socket of a service manager may take IPv4 too.
    let set = set_option(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0);
    if address.is_ipv4() { set } else { Ok(()) }
}

/// Sends by the size of the interface alone, whatever ICMP says of the path: a request as large as its response came
/// the same way, and a forged message would otherwise have large responses cut into fragments for ten minutes.
fn ignore_path_mtu(socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    if address.is_ipv6() {
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_OMIT)?;
    }
    let set = set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_OMIT);
    if address.is_ipv4() { set } else { Ok(()) }
}

/// Memory that a socket's buffers may take and do take, in octets as the kernel counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketMemory {
    /// Datagrams that the kernel dropped because nobody read them in time.
    pub dropped_count: u64,
    /// What was sent and has not left.
    pub unsent: usize,
    /// The most that `unsent` may be.
    pub send_buffer: usize,
}

impl SocketMemory {
    /// That of `socket`.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        // linux/sock_diag.h: the third, fourth and ninth of these.
        const WMEM_ALLOC: usize = 2;
        const SNDBUF: usize = 3;
        const DROPS: usize = 8;
        let mut info = [0u32; 9];
        let (at, mut size) = (info.as_mut_ptr().cast(), size_of_val(&info) as libc::socklen_t);
        // SAFETY: getsockopt(2) writes at most `size` octets to `info`, and to `size`; both outlive the call.
        let result = unsafe {
            libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, at, &raw mut size)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(SocketMemory {
            dropped_count: info[DROPS].into(),
            unsent: info[WMEM_ALLOC] as usize,
            send_buffer: info[SNDBUF] as usize,
        })
    }
}

/// Size of the send buffers that servers get on this host, found with a socket of their kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendBuffer {
    /// Octets as the kernel counts them.
    pub size: usize,
}

impl SendBuffer {
    /// What a server's socket gets that this process opens now.
    ///
    /// # Errors
    /// If the kernel has no UDP, or does not tell.
    pub fn probe() -> io::Result<Self> {
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        enlarge_send_buffer(socket.as_fd());
        Ok(SendBuffer { size: SocketMemory::of(socket.as_fd())?.send_buffer })
    }

    /// Whether it is as large as a server asks for.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        // The kernel doubles what it is asked for. socket(7).
        self.size >= 2 * SEND_BUFFER_SIZE
    }

    /// Requests a second from on-link addresses that do not exist, up to which responses to others leave.
    #[must_use]
    pub const fn unresolved_rate(self) -> usize {
        self.size / RESPONSE_MEMORY / RESOLUTION_SECONDS
    }

    /// Value of `net.core.wmem_max` that gives servers what they ask for.
    #[must_use]
    pub const fn wanted() -> usize {
        SEND_BUFFER_SIZE
    }
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
    SocketMemory::of(socket).map(|memory| memory.dropped_count)
}

/// Whether `address` is the broadcast address of a subnet that this host is in.
#[must_use]
pub fn is_broadcast(address: Ipv4Addr) -> bool {
    // ip(7): EACCES where the destination is a broadcast address and SO_BROADCAST is not set, or a route prohibits.
    let connects = |is_broadcast| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_broadcast(is_broadcast)?;
        socket.connect((address, 9))
    };
    connects(false).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        && connects(true).is_ok()
}

/// Whether this kernel has IPv6 at all. One that was started with `ipv6.disable=1`, or built without, refuses the
/// socket itself (EAFNOSUPPORT); where only addresses are missing, as with `disable_ipv6`, a wildcard can be bound.
#[must_use]
pub fn has_ipv6() -> bool {
    let socket = socket_with(AddressFamily::INET6, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    !matches!(socket, Err(rustix::io::Errno::AFNOSUPPORT))
}

/// Whether an interface of this host has `address`, with duplicate address detection done. `true` where that cannot be
/// found out: without descriptors, or with `net.ipv4.ip_nonlocal_bind`.
#[must_use]
pub fn is_local(address: SocketAddr) -> bool {
    let mut any_port = address;
    any_port.set_port(0);
    let Err(error) = UdpSocket::bind(any_port) else { return true };
    !matches!(
        rustix::io::Errno::from_io_error(&error),
        Some(rustix::io::Errno::ADDRNOTAVAIL | rustix::io::Errno::NODEV)
    )
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

/// Asks for a larger send buffer likewise.
fn enlarge_send_buffer(socket: BorrowedFd<'_>) {
    // A service manager may have given more than this process could.
    if SocketMemory::of(socket).is_ok_and(|memory| memory.send_buffer >= 2 * SEND_BUFFER_SIZE) {
        return;
    }
    // Where the kernel gives less, `SendBuffer` says what that is worth.
    if set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BUFFER_SIZE as libc::c_int).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(socket, SEND_BUFFER_SIZE);
    }
}

/// Switches a socket option on.
pub(crate) fn set_flag(socket: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int) -> io::Result<()> {
    set_option(socket, level, option, 1)
}

/// Sets a socket option that is a number.
fn set_option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let (at, size) = ((&raw const value).cast(), size_of_val(&value) as libc::socklen_t);
    // SAFETY: setsockopt(2) reads `size_of(value)` octets from `value`, which outlives the call.
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
    fn address_of_no_interface_is_bound_and_told_apart() {
        for (address, is_here) in [
            ("127.0.0.1:0", true),
            ("[::1]:0", true),
            ("198.18.255.254:0", false),
            ("[fd00:4:2::1]:0", false),
        ] {
            let address = address.parse().unwrap();
            if !has_ipv6() && matches!(address, SocketAddr::V6(_)) {
                continue;
            }
            let socket = ServerSocket::bind(address, false).unwrap();
            assert_eq!((socket.local().ip(), is_local(address)), (address.ip(), is_here), "{address}");
        }
    }

    #[test]
    fn both_families_bind_to_one_port_and_drops_are_told() {
        let v4 = ServerSocket::bind("0.0.0.0:0".parse().unwrap(), false).unwrap();
        let v6 =
            ServerSocket::bind(SocketAddr::new("::".parse().unwrap(), v4.local().port()), false).unwrap();
        assert!(v4.local().ip().is_unspecified() && v6.local().ip().is_unspecified());
        assert_eq!(v4.dropped_count().unwrap(), 0);
    }

    #[test]
    fn sockets_bound_or_adopted_are_set_up_for_both_families() {
        for address in ["0.0.0.0:0", "127.0.0.1:0", "[::]:0", "[::1]:0"] {
            let bound = ServerSocket::bind(address.parse().unwrap(), false).unwrap();
            let adopted = UdpSocket::bind(address).unwrap();
            let adopted = ServerSocket::adopt(adopted.into()).unwrap();
            for socket in [bound, adopted] {
                let memory = socket.memory().unwrap();
                assert_eq!(memory.send_buffer, SendBuffer::probe().unwrap().size, "{address}");
                assert_eq!((memory.unsent, memory.dropped_count), (0, 0), "{address}");
                assert!(memory.send_buffer > 212_992, "more than Linux's default");
            }
        }
    }

    #[test]
    fn send_buffer_of_the_default_survives_few_neighbours() {
        let default = SendBuffer { size: 2 * 212_992 };
        assert_eq!((default.is_whole(), default.unresolved_rate()), (false, 184));
        let whole = SendBuffer { size: 2 * SendBuffer::wanted() };
        assert_eq!((whole.is_whole(), whole.unresolved_rate()), (true, 3640));
    }

    #[test]
    fn broadcast_addresses_of_subnets_are_known() {
        let of = ["127.255.255.255", "255.255.255.255", "127.0.0.1", "0.0.0.0", "198.18.255.254"];
        let found = of.map(|address| is_broadcast(address.parse().unwrap()));
        assert_eq!(found, [true, true, false, false, false]);
    }
}
