//! A client's socket: connected, with kernel receive stamps.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use authentick_wire::time::NtpTime;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::control;
use super::icmp::{Hint, Report, hint, keep_reports, next_report, send_past_hints};
use super::socket::{dropped_count, enlarge_receive_buffer, set_receive_stamps};
use crate::clock;

/// A connected socket on a random port (RFC 9109 section 4); datagrams from elsewhere do not reach it.
#[derive(Debug)]
pub struct ClientSocket {
    socket: UdpSocket,
}

/// What a wait for a datagram brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A datagram of `size` octets that arrived at `at`.
    Datagram {
        /// Octets in the buffer.
        size: usize,
        /// The kernel's receive stamp.
        at: NtpTime,
    },
    /// The network says that datagrams do not get there. Anyone can send that, so it is no reason to stop waiting.
    Hint(Hint),
    /// Nothing before the deadline.
    Silence,
}

impl ClientSocket {
    /// Opens a socket of its own for exchanges with `server`.
    ///
    /// # Errors
    /// If there is no route, or no socket to be had.
    pub fn connect(server: SocketAddr) -> io::Result<Self> {
        Self::connect_from(server, None)
    }

    /// The same from `source`, or from wherever the host chooses.
    ///
    /// # Errors
    /// If the address is none of this host or of another family than the server's, there is no route, or no socket or
    /// port to be had.
    pub fn connect_from(server: SocketAddr, source: Option<IpAddr>) -> io::Result<Self> {
        let local = match source {
            Some(source) => SocketAddr::new(source, 0),
            None => anywhere(server),
        };
        let socket = UdpSocket::bind(local)?;
        set_receive_stamps(socket.as_fd())?;
        enlarge_receive_buffer(socket.as_fd());
        socket.connect(server)?;
        Ok(ClientSocket { socket })
    }

    /// Has the kernel keep what the network says of each datagram, for [`ClientSocket::next_report`]; and has it say in
    /// the call that sends a datagram if a queue of this host drops it (ENOBUFS), which is silent otherwise.
    ///
    /// # Errors
    /// If the kernel cannot.
    pub fn keep_reports(&self) -> io::Result<()> {
        keep_reports(self.as_fd(), self.local()?.is_ipv4())
    }

    /// The oldest report that was kept, with the beginning of the datagram that it is about in `quote`; `None` if there
    /// is none. Each takes away the error that it was to other calls.
    ///
    /// # Errors
    /// If the kernel fails to tell.
    pub fn next_report(&self, quote: &mut [u8]) -> io::Result<Option<Report>> {
        next_report(self.as_fd(), quote)
    }

    /// Datagrams that the kernel dropped because nobody had read the ones before.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn dropped_count(&self) -> io::Result<u64> {
        dropped_count(self.as_fd())
    }

    /// The address of this end.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends a datagram; returns the time just before.
    ///
    /// # Errors
    /// If the kernel refuses; what the network says of datagrams before is passed over.
    pub fn send(&self, datagram: &[u8]) -> io::Result<NtpTime> {
        let send = || {
            let at = clock::now();
            self.socket.send(datagram).map(|_| at)
        };
        send_past_hints(send, |_| {})
    }

    /// Waits for a datagram until `deadline`.
    ///
    /// # Errors
    /// If the kernel fails to wait or receive.
    pub fn receive(&self, buffer: &mut [u8], deadline: Instant) -> io::Result<Received> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.wait(left)? {
                return Ok(Received::Silence);
            }
            match self.read(buffer) {
                Ok((size, at)) => return Ok(Received::Datagram { size, at: at.unwrap_or_else(clock::now) }),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => match hint(&error) {
                    Some(hint) => return Ok(Received::Hint(hint)),
                    None => return Err(error),
                },
            }
        }
    }

    fn wait(&self, left: Duration) -> io::Result<bool> {
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout)) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(!left.is_zero()),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<(usize, Option<NtpTime>)> {
        let (size, ancillary) = control::receive(self.as_fd(), buffer, libc::MSG_DONTWAIT)?;
        Ok((size, ancillary.received))
    }
}

/// Where to bind a socket that is to reach `server` from whichever address and port the host chooses: the unspecified
/// address of the server's family, port 0.
#[must_use]
pub fn anywhere(server: SocketAddr) -> SocketAddr {
    match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

impl AsFd for ClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(300)
    }

    #[test]
    fn datagram_arrives_with_a_stamp_between_sending_and_reading() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = ClientSocket::connect(server.local_addr().unwrap()).unwrap();
        client.send(b"ping").unwrap();
        let (_, from) = server.recv_from(&mut [0; 16]).unwrap();
        assert_eq!(from.port(), client.local().unwrap().port());
        let before = clock::now();
        server.send_to(b"pong", from).unwrap();
        let mut buffer = [0; 16];
        let Received::Datagram { size, at } = client.receive(&mut buffer, soon()).unwrap() else { panic!() };
        assert_eq!(&buffer[..size], b"pong");
        assert!(at.since(before).as_nanos() >= 0 && clock::now().since(at).as_nanos() >= 0);
    }

    //= rfc5905#7.3-7
    #[test]
    fn datagram_is_stamped_when_it_arrives_and_not_when_it_is_read() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = ClientSocket::connect(server.local_addr().unwrap()).unwrap();
        server.send_to(b"pong", client.local().unwrap()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let read = clock::now();
        let Received::Datagram { at, .. } = client.receive(&mut [0; 16], soon()).unwrap() else { panic!() };
        assert!(read.since(at).as_nanos() > 40_000_000);
    }

    #[test]
    fn socket_has_the_servers_family_and_the_source_that_was_asked_for() {
        for server in ["127.0.0.1:9", "[::1]:9"] {
            let server: SocketAddr = server.parse().unwrap();
            let any = anywhere(server);
            assert!(any.ip().is_unspecified() && any.port() == 0 && any.is_ipv4() == server.is_ipv4());
        }
        let server: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let local = |source: Option<&str>| {
            let source = source.map(|source| source.parse().unwrap());
            ClientSocket::connect_from(server, source).and_then(|client| client.local())
        };
        assert_eq!(local(None).unwrap().ip().to_string(), "127.0.0.1");
        let from = local(Some("127.0.0.9")).unwrap();
        assert!(from.ip().to_string() == "127.0.0.9" && from.port() > 0, "{from}");
        assert_eq!(local(Some("240.0.0.1")).unwrap_err().kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[test]
    fn closed_port_is_a_hint_and_strangers_are_not_heard() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = ClientSocket::connect(server.local_addr().unwrap()).unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.send_to(b"hello", ("127.0.0.1", client.local().unwrap().port())).unwrap();
        assert_eq!(client.receive(&mut [0; 16], soon()).unwrap(), Received::Silence);
        drop(server);
        client.send(b"ping").unwrap();
        assert_eq!(client.receive(&mut [0; 16], soon()).unwrap(), Received::Hint(Hint::Refused));
        assert!(client.send(b"ping").is_ok(), "a refusal does not stop the next request");
    }

    #[test]
    fn report_quotes_the_datagram_that_it_is_about() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let server = UdpSocket::bind(address).unwrap();
            let client = ClientSocket::connect(server.local_addr().unwrap()).unwrap();
            client.keep_reports().unwrap();
            let mut quote = [0; 48];
            assert_eq!(client.next_report(&mut quote).unwrap(), None);
            drop(server);
            // Loopback delivers before the call returns; what was said of one datagram does not keep the next one back.
            (0..3).for_each(|number| _ = client.send(&[number; 60]).unwrap());
            for number in 0..3 {
                let report = client.next_report(&mut quote).unwrap();
                assert_eq!((report, quote), (Some(Report { hint: Hint::Refused, size: 48 }), [number; 48]));
            }
            assert_eq!(client.next_report(&mut quote).unwrap(), None);
            let received = client.receive(&mut [0; 16], Instant::now()).unwrap();
            assert_eq!(received, Received::Silence, "the reports were all that was said");
        }
    }
}
