//! Opening the ports for key exchange.

use std::io;
use std::net::SocketAddr;

/// Connections that the kernel keeps for a listener until they are accepted.
const BACKLOG: i32 = 1024;

/// Binds `count` listeners to `address`, one for each worker. The port is tried alone first: listeners that share
/// would not notice that another process of this user has it.
///
/// # Errors
/// Whatever the kernel says: the port is taken or privileged, the interface of a zone is missing.
pub fn bind_group(address: SocketAddr, count: usize) -> io::Result<Vec<std::net::TcpListener>> {
    let alone = bind(address, false)?;
    if count <= 1 {
        return Ok(vec![alone]);
    }
    let address = alone.local_addr()?;
    drop(alone);
    join_group(address, count)
}

/// Binds `count` listeners to `address`, which share it with those that are there, and with those that may come.
///
/// # Errors
/// As [`bind_group`].
pub fn join_group(address: SocketAddr, count: usize) -> io::Result<Vec<std::net::TcpListener>> {
    (0..count).map(|_| bind(address, true)).collect()
}

/// Binds to `address`, which no interface need have yet (`IP_FREEBIND`, ip(7)).
fn bind(address: SocketAddr, share: bool) -> io::Result<std::net::TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(share)?;
    socket.set_nonblocking(true)?;
    // Linux before 4.15 has none for IPv6; an address that is there needs none.
    let _ = match address {
        SocketAddr::V4(_) => socket.set_freebind_v4(true),
        SocketAddr::V6(_) => socket.set_freebind_v6(true),
    };
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
