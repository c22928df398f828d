//! One worker's share of a server: its sockets, and the loop body that serves them.

use std::array;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

use super::mmsg::Batch;
use super::socket::{ServerSocket, SocketMemory};
use crate::engine::{BATCH_SIZE, Engine, Handler, Turn};

/// The most sockets that one engine serves.
pub const SOCKET_COUNT_MAX: usize = 16;

/// Serves sockets in batches. Lives in the thread that made it.
pub struct UdpEngine {
    sockets: Vec<ServerSocket>,
    patience: Timespec,
    batch: Batch,
    /// Datagrams that are received and sent together, at most.
    batch_size: usize,
    /// Whether a socket's last batch was full, so that there is probably more: then it is read without asking first.
    full: [bool; SOCKET_COUNT_MAX],
}

impl UdpEngine {
    /// An engine for 1 to [`SOCKET_COUNT_MAX`] sockets; a turn waits for at most `patience` when nothing comes, and
    /// takes at most `batch_size` datagrams of each socket, 1 to [`BATCH_SIZE`].
    ///
    /// # Errors
    /// If there are too many sockets or none, or the kernel refuses to set the timeout.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn new(sockets: Vec<ServerSocket>, patience: Duration, batch_size: usize) -> io::Result<Self> {
        assert!((1..=BATCH_SIZE).contains(&batch_size), "a batch has 1 to {BATCH_SIZE} datagrams");
        if sockets.is_empty() || sockets.len() > SOCKET_COUNT_MAX {
            let text = format!("an engine serves 1 to {SOCKET_COUNT_MAX} sockets, not {}", sockets.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        for socket in &sockets {
            sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, Some(patience))?;
        }
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        Ok(UdpEngine { sockets, patience, batch: Batch::new(), batch_size, full: [false; SOCKET_COUNT_MAX] })
    }

    /// Whether any socket has something to read before the engine's patience ends.
    fn wait(&self) -> io::Result<bool> {
        let sockets = &self.sockets;
        let mut waiting: [PollFd<'_>; SOCKET_COUNT_MAX] =
            array::from_fn(|index| PollFd::new(&sockets[index.min(sockets.len() - 1)], PollFlags::IN));
        match poll(&mut waiting[..sockets.len()], Some(&self.patience)) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Engine for UdpEngine {
    /// After an error that may pass, other sockets are served; a turn without any datagram then takes a millisecond, so
    /// that nobody spins.
    fn turn(&mut self, handler: &mut impl Handler) -> io::Result<Turn> {
        let mut turn = Turn::default();
        // A single socket blocks in the receiving call itself: one system call less for a lone request.
        let alone = self.sockets.len() == 1;
        if !alone && !self.full.contains(&true) {
            match self.wait() {
                Ok(true) => {}
                Ok(false) => return Ok(turn),
                Err(error) if may_pass(&error) => {
                    turn.receive_failures += 1;
                    pause();
                    return Ok(turn);
                }
                Err(error) => return Err(error),
            }
        }
        for (number, (socket, full)) in self.sockets.iter().zip(&mut self.full).enumerate() {
            let socket = socket.as_fd();
            let count = match self.batch.receive(socket, alone, self.batch_size) {
                Ok(count) => count,
                Err(error) if may_pass(&error) => {
                    turn.receive_failures += 1;
                    0
                }
                Err(error) => return Err(error),
            };
            *full = count == self.batch_size;
            if count == 0 {
                continue;
            }
            let early = self.batch.respond(count, number, socket, handler);
            let from = handler.now();
            let flushed = self.batch.flush(socket);
            let to = handler.now();
            handler.sent(from, to);
            turn.received += count;
            turn.sent += early.sent + flushed.sent;
            turn.send_failures += early.failed + flushed.failed;
            turn.send_buffer_full += early.blocked + flushed.blocked;
        }
        if turn.receive_failures > 0 && turn.received == 0 {
            pause();
        }
        Ok(turn)
    }

    /// The buffers are those of the socket that has most of its send buffer in use; drops are of all sockets.
    fn memory(&self) -> SocketMemory {
        let mut fullest = SocketMemory::default();
        let mut dropped_count = 0;
        for memory in self.sockets.iter().filter_map(|socket| socket.memory().ok()) {
            dropped_count += memory.dropped_count;
            if memory.unsent >= fullest.unsent {
                fullest = memory;
            }
        }
        SocketMemory { dropped_count, ..fullest }
    }
}

/// Whether a call that ended with this error may succeed when it is made again. recvmmsg(2) and poll(2): these say that
/// the descriptor or the arguments are wrong, or the call is not there or not permitted. Anything else is the network's
/// (ENETDOWN, ECONNREFUSED), or that of a kernel short of memory (ENOBUFS, ENOMEM).
fn may_pass(error: &io::Error) -> bool {
    const LASTING: [i32; 9] = [
        libc::EBADF,
        libc::EINVAL,
        libc::ENOTSOCK,
        libc::EFAULT,
        libc::ENOSYS,
        libc::EOPNOTSUPP,
        libc::ENOTCONN,
        libc::EPERM,
        libc::EACCES,
    ];
    error.raw_os_error().is_some_and(|code| !LASTING.contains(&code))
}

/// Waits for a moment, with the call that the engine waits with anyway.
fn pause() {
    // If even that fails, there is no wait.
    let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 }));
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};

    use authentick_wire::datagram::Datagram;
    use authentick_wire::time::NtpTime;

    use super::super::socket::loopback;
    use super::*;
    use crate::clock;
    use crate::engine::ReplyPath;
    use crate::engine::tests::handlers::Halves;

    const PATIENCE: Duration = Duration::from_millis(200);

    /// Echoes what it sees, and remembers it.
    #[derive(Default)]
    struct Echo {
        seen: Vec<(usize, bool)>,
    }

    impl Handler for Echo {
        fn now(&mut self) -> NtpTime {
            clock::now()
        }

        fn respond(&mut self, batch: &mut [Datagram<'_>], paths: &[ReplyPath]) {
            assert_eq!(paths.len(), batch.len());
            for datagram in batch {
                let size = datagram.request.len();
                datagram.response[..size].copy_from_slice(datagram.request);
                datagram.response_size = size;
                assert!(clock::now().since(datagram.received).as_nanos().abs() < 5_000_000_000);
                self.seen.push((size, datagram.truncated));
            }
        }

        fn sent(&mut self, from: NtpTime, to: NtpTime) {
            assert!(to.since(from).as_nanos() >= 0);
        }
    }

    fn echo(engine: &mut UdpEngine) -> Turn {
        engine.turn(&mut Echo::default()).unwrap()
    }

    fn engine(addresses: &[&str]) -> (UdpEngine, Vec<SocketAddr>) {
        let sockets: Vec<_> = addresses
            .iter()
            .map(|address| ServerSocket::bind(address.parse().unwrap(), false).unwrap())
            .collect();
        let addresses = sockets.iter().map(|socket| loopback(socket.local())).collect();
        (UdpEngine::new(sockets, PATIENCE, BATCH_SIZE).unwrap(), addresses)
    }

    /// Sockets of a service manager may be of both families.
    #[test]
    fn broadcasts_are_known_on_bound_and_adopted_sockets() {
        struct ToMany(Vec<bool>);
        impl Handler for ToMany {
            fn now(&mut self) -> NtpTime {
                clock::now()
            }
            fn respond(&mut self, batch: &mut [Datagram<'_>], _: &[ReplyPath]) {
                for datagram in batch {
                    self.0.push(datagram.to_many);
                    datagram.response_size = 1;
                }
            }
            fn sent(&mut self, _: NtpTime, _: NtpTime) {}
        }
        let bound = ServerSocket::bind("0.0.0.0:0".parse().unwrap(), false).unwrap();
        let adopted = ServerSocket::adopt(UdpSocket::bind("[::]:0").unwrap().into()).unwrap();
        for socket in [bound, adopted] {
            let port = socket.local().port();
            let mut engine = UdpEngine::new(vec![socket], PATIENCE, BATCH_SIZE).unwrap();
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.set_read_timeout(Some(PATIENCE)).unwrap();
            client.set_broadcast(true).unwrap();
            for (address, is_broadcast) in [("127.255.255.255", true), ("127.0.0.77", false)] {
                client.send_to(b"?", (address, port)).unwrap();
                let mut seen = ToMany(Vec::new());
                let turn = engine.turn(&mut seen).unwrap();
                assert_eq!((seen.0, turn.sent), (vec![is_broadcast], 1), "{address}");
                let (_, from) = client.recv_from(&mut [0; 8]).unwrap();
                assert!(is_broadcast || from.ip().to_string() == address, "{from}");
            }
        }
    }

    #[test]
    fn batch_of_many_comes_back_whole_from_every_kind_of_socket() {
        for addresses in
            [&["127.0.0.1:0"][..], &["0.0.0.0:0"], &["0.0.0.0:0", "[::]:0"], &["127.0.0.1:0", "[::1]:0"]]
        {
            let (mut engine, addresses) = engine(addresses);
            for &address in &addresses {
                let client = UdpSocket::bind(SocketAddr::new(address.ip(), 0)).unwrap();
                client.connect(address).unwrap();
                client.set_read_timeout(Some(PATIENCE)).unwrap();
                for index in 0..100u8 {
                    client.send(&vec![index; 40 + usize::from(index)]).unwrap();
                }
                let (first, second) = (echo(&mut engine), echo(&mut engine));
                assert_eq!((first.received, second.received), (BATCH_SIZE, 100 - BATCH_SIZE));
                assert_eq!((first.sent + second.sent, first.send_failures), (100, 0));
                let mut buffer = [0; 2048];
                for index in 0..100u8 {
                    let size = client.recv(&mut buffer).unwrap();
                    assert_eq!(buffer[..size], vec![index; 40 + usize::from(index)]);
                }
            }
        }
    }

    #[test]
    fn smaller_batches_bring_everything_too() {
        let socket = ServerSocket::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(socket.local()).unwrap();
        let mut engine = UdpEngine::new(vec![socket], PATIENCE, 3).unwrap();
        (0..7).for_each(|_| assert_eq!(client.send(&[1; 48]).unwrap(), 48));
        let received = [echo(&mut engine), echo(&mut engine), echo(&mut engine)].map(|turn| turn.received);
        assert_eq!(received, [3, 3, 1]);
    }

    #[test]
    fn response_leaves_from_the_address_that_was_asked() {
        let (mut engine, addresses) = engine(&["0.0.0.0:0"]);
        let asked: SocketAddr = format!("127.0.0.77:{}", addresses[0].port()).parse().unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.send_to(b"where are you?", asked).unwrap();
        echo(&mut engine);
        let (_, from) = client.recv_from(&mut [0; 64]).unwrap();
        assert_eq!(from, asked);
    }

    #[test]
    fn early_packet_leaves_before_its_response_and_from_the_address_that_was_asked() {
        let (mut engine, addresses) = engine(&["0.0.0.0:0"]);
        let asked: SocketAddr = format!("127.0.0.78:{}", addresses[0].port()).parse().unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let requests = [[1, 2, 3, 4], [2, 4, 6, 8], [3, 6, 9, 12]];
        requests.iter().for_each(|request| assert_eq!(client.send_to(request, asked).unwrap(), 4));
        let turn = engine.turn(&mut Halves::default()).unwrap();
        assert_eq!((turn.received, turn.sent, turn.send_failures), (3, 5, 0));
        let received: Vec<Vec<u8>> = (0..5)
            .map(|_| {
                let mut buffer = [0; 64];
                let (size, from) = client.recv_from(&mut buffer).unwrap();
                assert_eq!(from, asked);
                buffer[..size].to_vec()
            })
            .collect();
        assert_eq!(received, [vec![1, 2], vec![3, 6], vec![4, 3], vec![2, 4, 6, 8], vec![12, 9]]);
    }

    /// A socket whose next receiving call ends with ECONNREFUSED, and the address that it is connected to.
    fn refused_once() -> (ServerSocket, SocketAddr) {
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let socket = ServerSocket::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        rustix::net::connect(&socket, &nobody).unwrap();
        rustix::net::send(&socket, b"is anybody there?", rustix::net::SendFlags::empty()).unwrap();
        (socket, nobody)
    }

    #[test]
    fn error_that_passes_is_counted_and_the_engine_goes_on() {
        let (socket, peer) = refused_once();
        let local = socket.local();
        let mut alone = UdpEngine::new(vec![socket], PATIENCE, BATCH_SIZE).unwrap();
        assert_eq!(echo(&mut alone), Turn { receive_failures: 1, ..Turn::default() });
        let client = UdpSocket::bind(peer).unwrap();
        client.send_to(b"here I am", local).unwrap();
        assert_eq!(echo(&mut alone), Turn { received: 1, sent: 1, ..Turn::default() });
        // An error of one socket keeps nobody from the next.
        let (socket, _) = refused_once();
        let other = ServerSocket::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        client.send_to(b"and here", other.local()).unwrap();
        let mut both = UdpEngine::new(vec![socket, other], PATIENCE, BATCH_SIZE).unwrap();
        let expected = Turn { received: 1, sent: 1, receive_failures: 1, ..Turn::default() };
        assert_eq!(echo(&mut both), expected);
    }

    #[test]
    fn error_that_lasts_ends_the_engine() {
        let socket = ServerSocket::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&socket.as_fd());
        let mut engine = UdpEngine::new(vec![socket], PATIENCE, BATCH_SIZE).unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: dup2(2) puts a file in the place of the socket, which the engine still owns and closes as such.
        assert_eq!(unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&file), number) }, number);
        let error = engine.turn(&mut Echo::default()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTSOCK));
        for code in [libc::ENOBUFS, libc::ENOMEM, libc::ENETDOWN, libc::EHOSTUNREACH, libc::EINTR] {
            assert!(may_pass(&io::Error::from_raw_os_error(code)), "{code}");
        }
        for code in [libc::EBADF, libc::EINVAL, libc::ENOSYS, libc::EPERM] {
            assert!(!may_pass(&io::Error::from_raw_os_error(code)), "{code}");
        }
        assert!(!may_pass(&io::Error::other("no error of the kernel")));
    }

    #[test]
    fn silence_ends_a_turn_after_its_patience() {
        for addresses in [&["127.0.0.1:0"][..], &["127.0.0.1:0", "[::1]:0"]] {
            let (mut engine, _) = engine(addresses);
            let start = std::time::Instant::now();
            assert_eq!(echo(&mut engine), Turn::default());
            assert!(start.elapsed() >= PATIENCE - Duration::from_millis(20));
        }
    }

    #[test]
    fn oversized_datagram_is_marked_and_empty_one_is_lent() {
        let (mut engine, addresses) = engine(&["127.0.0.1:0"]);
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.send_to(&[1; 3000], addresses[0]).unwrap();
        client.send_to(&[], addresses[0]).unwrap();
        let mut echo = Echo::default();
        while echo.seen.len() < 2 {
            engine.turn(&mut echo).unwrap();
        }
        assert_eq!(echo.seen, [(2048, true), (0, false)]);
    }

    #[test]
    fn engine_without_sockets_or_with_too_many_is_refused() {
        assert!(UdpEngine::new(Vec::new(), PATIENCE, BATCH_SIZE).is_err());
        let socket = || ServerSocket::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let many = (0..=SOCKET_COUNT_MAX).map(|_| socket()).collect();
        assert!(UdpEngine::new(many, PATIENCE, BATCH_SIZE).is_err());
    }
}
