//! Stands between UDP clients and a server, on a port of its own: makes the path longer, or lets somebody in the
//! middle see and change what passes.
//!
//! It needs no rights and no support of the kernel. One thread, and a socket towards the server for each client, so
//! the server sees as many clients as there are. Each direction keeps its order. Whatever the system wakes the thread
//! too late adds to the delay: some 0.1 ms, more where no processor is free.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use authentick_net::udp::{anywhere, dropped_count};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::sockopt;

use crate::threads::{Threads, await_readable, lock};

/// The most clients; each takes a file descriptor.
pub const CLIENT_COUNT_MAX: usize = 16_000;

/// The most datagrams on their way; what comes beyond is lost.
const TRAVELLING_COUNT_MAX: usize = 100_000;

/// The largest datagram of UDP.
const DATAGRAM_SIZE_MAX: usize = 65_535;

/// Datagrams that are read from one socket before the others have their turn.
const BATCH_COUNT: usize = 64;

/// Room for datagrams that come while a thread has no processor: some 5,000 small ones. The kernel's usual 212,992
/// octets hold 256 of 48 octets.
const RECEIVE_BUFFER_SIZE: usize = 4 << 20;

/// Gives a socket a large receive buffer, as far as the process may.
pub fn make_room(socket: &UdpSocket) {
    if sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER_SIZE).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER_SIZE);
    }
}

/// Somebody in the middle.
pub trait Middle: Send + 'static {
    /// Sees a request; says whether it goes on to the server.
    fn request(&mut self, request: &[u8], client: SocketAddr) -> bool {
        let _ = (request, client);
        true
    }

    /// Sees a response; returns what the client gets in its place.
    fn response(&mut self, response: Vec<u8>, client: SocketAddr) -> Vec<Vec<u8>> {
        let _ = client;
        vec![response]
    }
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Middle for Nobody {}

/// Two of them, the first nearer to the client.
impl<A: Middle, B: Middle> Middle for (A, B) {
    fn request(&mut self, request: &[u8], client: SocketAddr) -> bool {
        self.0.request(request, client) && self.1.request(request, client)
    }

    fn response(&mut self, response: Vec<u8>, client: SocketAddr) -> Vec<Vec<u8>> {
        let passed = self.1.response(response, client);
        passed.into_iter().flat_map(|response| self.0.response(response, client)).collect()
    }
}

/// What a relay itself did, whoever stands in the middle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams read from clients.
    pub requests: u64,
    /// Datagrams read from the server.
    pub responses: u64,
    /// Clients that have a socket of their own.
    pub clients: u64,
    /// Datagrams that the relay lost of its own: that could not be sent, or came too fast for it. Who relies on its
    /// counts demands 0.
    pub lost: u64,
}

/// A running relay. It ends with this value.
pub struct Relay<M> {
    address: SocketAddr,
    shared: Arc<Shared<M>>,
    _thread: Threads,
}

struct Shared<M> {
    middle: Mutex<M>,
    counts: Mutex<Counts>,
    /// The clients' socket, then one towards the server for each client.
    sockets: Mutex<Vec<Arc<UdpSocket>>>,
}

impl<M: Middle> Relay<M> {
    /// Relays between clients that ask at `front` and `server`; each datagram takes `one_way`. To be called where
    /// `front` was bound: within a host, the sockets towards the server are on that host.
    ///
    /// # Errors
    /// The system's.
    pub fn start(front: UdpSocket, server: SocketAddr, one_way: Duration, middle: M) -> io::Result<Self> {
        let address = front.local_addr()?;
        let (middle, counts, sockets) = (Mutex::new(middle), Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { middle, counts, sockets });
        let mut forwarder = Forwarder {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            server,
            one_way,
            sockets: Vec::new(),
            clients: Vec::new(),
            places: HashMap::new(),
            travelling: VecDeque::new(),
            buffer: vec![0; DATAGRAM_SIZE_MAX],
            shared: Arc::clone(&shared),
        };
        forwarder.adopt(front)?;
        let mut thread = Threads::default();
        thread.spawn("relay", move |stop| forwarder.run(stop))?;
        Ok(Relay { address, shared, _thread: thread })
    }

    /// Relays between a port of 127.0.0.1 and `server`; 0 is any port.
    ///
    /// # Errors
    /// If the port is taken.
    pub fn on_loopback(port: u16, server: SocketAddr, one_way: Duration, middle: M) -> io::Result<Self> {
        Relay::start(UdpSocket::bind(("127.0.0.1", port))?, server, one_way, middle)
    }

    /// Where clients ask.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Looks at, or changes, who stands in the middle.
    pub fn with<T>(&self, look: impl FnOnce(&mut M) -> T) -> T {
        look(&mut lock(&self.shared.middle))
    }

    /// What the relay has done until now.
    ///
    /// # Errors
    /// If the kernel does not tell what it has dropped.
    pub fn counts(&self) -> io::Result<Counts> {
        let sockets = lock(&self.shared.sockets);
        let dropped: io::Result<u64> = sockets.iter().map(|socket| dropped_count(socket.as_fd())).sum();
        let counts = *lock(&self.shared.counts);
        Ok(Counts { lost: counts.lost + dropped?, ..counts })
    }
}

impl<M> std::fmt::Debug for Relay<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Where a datagram goes.
#[derive(Clone, Copy)]
enum Towards {
    Server,
    Client,
}

/// A datagram on its way: when it arrives, of which client it is, and where it goes.
struct Travelling {
    due: Instant,
    place: usize,
    towards: Towards,
    octets: Vec<u8>,
}

/// The relay's thread.
struct Forwarder<M> {
    epoll: OwnedFd,
    server: SocketAddr,
    one_way: Duration,
    /// The clients' socket, then one for each of `clients`.
    sockets: Vec<Arc<UdpSocket>>,
    clients: Vec<SocketAddr>,
    /// From clients to their place in `clients`.
    places: HashMap<SocketAddr, usize>,
    /// In the order in which they are due: all take the same time.
    travelling: VecDeque<Travelling>,
    buffer: Vec<u8>,
    shared: Arc<Shared<M>>,
}

impl<M: Middle> Forwarder<M> {
    fn run(mut self, stop: &AtomicBool) {
        let mut events = Vec::with_capacity(BATCH_COUNT);
        while !stop.load(Ordering::Relaxed) {
            // epoll itself counts in milliseconds.
            await_readable(&self.epoll, self.travelling.front().map(|first| first.due));
            events.clear();
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&Timespec::default()));
            for event in &events {
                match event.data.u64() {
                    0 => self.take_requests(),
                    place => self.take_responses(place as usize - 1),
                }
            }
            let now = Instant::now();
            while let Some(arrived) = self.travelling.pop_front_if(|travelling| travelling.due <= now) {
                self.deliver(arrived.towards, arrived.place, &arrived.octets);
            }
        }
    }

    /// Waits on one more socket.
    fn adopt(&mut self, socket: UdpSocket) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        make_room(&socket);
        let data = epoll::EventData::new_u64(self.sockets.len() as u64);
        epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN)?;
        let socket = Arc::new(socket);
        lock(&self.shared.sockets).push(Arc::clone(&socket));
        self.sockets.push(socket);
        Ok(())
    }

    /// The place of a client, which has a socket towards the server.
    fn place_of(&mut self, client: SocketAddr) -> io::Result<usize> {
        if let Some(place) = self.places.get(&client) {
            return Ok(*place);
        }
        if self.clients.len() >= CLIENT_COUNT_MAX {
            return Err(io::Error::other("too many clients"));
        }
        let socket = UdpSocket::bind(anywhere(self.server))?;
        socket.connect(self.server)?;
        self.adopt(socket)?;
        let place = self.clients.len();
        self.clients.push(client);
        self.places.insert(client, place);
        lock(&self.shared.counts).clients += 1;
        Ok(place)
    }

    fn take_requests(&mut self) {
        for _ in 0..BATCH_COUNT {
            let Ok((size, client)) = self.sockets[0].recv_from(&mut self.buffer) else { return };
            lock(&self.shared.counts).requests += 1;
            let request = &self.buffer[..size];
            if lock(&self.shared.middle).request(request, client) {
                let request = request.to_vec();
                match self.place_of(client) {
                    Ok(place) => self.pass(Towards::Server, place, request),
                    Err(_) => self.count_lost(),
                }
            }
        }
    }

    fn take_responses(&mut self, place: usize) {
        let client = self.clients[place];
        for _ in 0..BATCH_COUNT {
            // An error is the end, or what the host said of an earlier request: then epoll tells of what is left.
            let Ok(size) = self.sockets[1 + place].recv(&mut self.buffer) else { return };
            lock(&self.shared.counts).responses += 1;
            let passed = lock(&self.shared.middle).response(self.buffer[..size].to_vec(), client);
            for response in passed {
                self.pass(Towards::Client, place, response);
            }
        }
    }

    /// Sends a datagram on its way, which may be no way at all.
    fn pass(&mut self, towards: Towards, place: usize, octets: Vec<u8>) {
        if self.one_way.is_zero() {
            self.deliver(towards, place, &octets);
        } else if self.travelling.len() >= TRAVELLING_COUNT_MAX {
            self.count_lost();
        } else {
            let due = Instant::now() + self.one_way;
            self.travelling.push_back(Travelling { due, place, towards, octets });
        }
    }

    fn deliver(&self, towards: Towards, place: usize, octets: &[u8]) {
        let sent = match towards {
            Towards::Client => self.sockets[0].send_to(octets, self.clients[place]),
            Towards::Server => match self.sockets[1 + place].send(octets) {
                // What the host said of an earlier datagram; this one has not been tried.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    self.sockets[1 + place].send(octets)
                }
                sent => sent,
            },
        };
        if sent.is_err() {
            self.count_lost();
        }
    }

    fn count_lost(&self) {
        lock(&self.shared.counts).lost += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_to_their_own_clients_after_both_delays() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let echo = std::thread::spawn(move || {
            let mut buffer = [0; 64];
            for _ in 0..6 {
                let (size, from) = server.recv_from(&mut buffer).unwrap();
                server.send_to(&buffer[..size], from).unwrap();
            }
        });
        let one_way = Duration::from_millis(30);
        let relay = Relay::on_loopback(0, address, one_way, Nobody).unwrap();
        let clients: Vec<UdpSocket> = (0..2)
            .map(|_| {
                let client = UdpSocket::bind("127.0.0.1:0").unwrap();
                client.connect(relay.address()).unwrap();
                client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                client
            })
            .collect();
        let start = Instant::now();
        for octet in 0..3 {
            clients.iter().zip([10, 20]).for_each(|(client, base)| {
                client.send(&[base + octet]).unwrap();
            });
        }
        for (client, base) in clients.iter().zip([10, 20]) {
            for octet in 0..3 {
                let mut buffer = [0; 64];
                assert_eq!(client.recv(&mut buffer).unwrap(), 1);
                assert_eq!(buffer[0], base + octet, "in order, and nobody else's");
            }
        }
        assert!(start.elapsed() >= 2 * one_way, "{:?}", start.elapsed());
        assert_eq!(relay.counts().unwrap(), Counts { requests: 6, responses: 6, clients: 2, lost: 0 });
        echo.join().unwrap();
    }

    #[test]
    fn relay_ends_while_clients_are_silent() {
        let server = "127.0.0.1:9".parse().unwrap();
        let relay = Relay::on_loopback(0, server, Duration::from_millis(1), Nobody).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.send_to(&[0; 48], relay.address()).unwrap();
        drop(relay);
    }
}
