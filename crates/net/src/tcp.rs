//! Opening TCP connections and listeners without waiting for them.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, listen, socket_with, sockopt,
};

use crate::udp::set_flag;

/// Connections that the kernel keeps for a listener until they are accepted.
const BACKLOG: i32 = 128;

/// Begins a connection to `server`, from `source` if it is given; the stream does not block, and becomes writable when
/// the connection stands or has failed. Small messages leave at once (`TCP_NODELAY`).
///
/// # Errors
/// The kernel's, if it refuses at once: no descriptor, no port, no route.
pub fn begin(server: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    if let Some(source) = source {
        // The port is chosen when the connection is: the same one can serve connections to other servers. ip(7).
        set_flag(socket.as_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT)?;
        bind(&socket, &SocketAddr::new(source, 0))?;
    }
    match connect(&socket, &server) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

/// A listener whose address may be taken still. The socket is there from the beginning, for threads that can open none
/// later.
#[derive(Debug)]
pub struct PendingListener {
    socket: OwnedFd,
    address: SocketAddr,
    is_bound: bool,
    is_listening: bool,
}

impl PendingListener {
    /// A socket for `address`, which no interface need have yet (`IP_FREEBIND`, ip(7)).
    ///
    /// # Errors
    /// If there is no descriptor left, or the kernel does not know the family.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        // Linux before 4.15 has none for IPv6; an address that is there needs none.
        let _ = match address {
            SocketAddr::V4(_) => sockopt::set_ip_freebind(&socket, true),
            SocketAddr::V6(_) => sockopt::set_ipv6_freebind(&socket, true),
        };
        Ok(PendingListener { socket, address, is_bound: false, is_listening: false })
    }

    /// Takes connections from now on. Nothing changes if it does so already.
    ///
    /// # Errors
    /// The kernel's; it can be tried again.
    pub fn listen(&mut self) -> io::Result<()> {
        if !self.is_bound {
            bind(&self.socket, &self.address)?;
            self.is_bound = true;
        }
        if !self.is_listening {
            listen(&self.socket, BACKLOG)?;
            self.is_listening = true;
        }
        Ok(())
    }

    /// Where it listens; `None` if it does not yet.
    #[must_use]
    pub fn local(&self) -> Option<SocketAddr> {
        let local = || getsockname(&self.socket).ok().and_then(|local| SocketAddr::try_from(local).ok());
        self.is_listening.then(local).flatten()
    }

    /// A second handle of the socket.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub fn listener(&self) -> io::Result<TcpListener> {
        Ok(TcpListener::from(self.socket.try_clone()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn connection_stands_without_waiting_and_comes_from_its_source() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = begin(server.local_addr().unwrap(), Some("127.0.0.9".parse().unwrap())).unwrap();
        let (mut stream, from) = server.accept().unwrap();
        assert_eq!(from.ip().to_string(), "127.0.0.9");
        assert_eq!(client.read(&mut [0; 1]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        client.write_all(b"hello").unwrap();
        let mut text = [0; 5];
        stream.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"hello");
    }

    #[test]
    fn address_that_is_not_ours_is_refused() {
        let error = begin("127.0.0.1:1".parse().unwrap(), Some("240.0.0.1".parse().unwrap())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[test]
    fn listener_of_a_taken_port_listens_once_that_is_free() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let mut pending = PendingListener::new(address).unwrap();
        assert_eq!(pending.listen().unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(pending.local(), None);
        drop(taken);
        pending.listen().unwrap();
        pending.listen().unwrap();
        assert_eq!(pending.local(), Some(address));
        let _client = TcpStream::connect(address).unwrap();
        assert!(pending.listener().unwrap().accept().is_ok());
    }
}
