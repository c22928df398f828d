//! Opening TCP connections without waiting for them.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};

use crate::udp::set_flag;

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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

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
}
