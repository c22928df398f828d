//! Stands between NTP clients and a real server, on a port of its own; damages or records what passes, and counts it.
//!
//! One thread, and a socket towards the server for each client, so the server sees as many clients as there are.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use authentick_net::udp::{anywhere, dropped_count};
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::mac::MacFields;
use authentick_wire::packet::Packet;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use crate::servers::{emit, identifier_of, kiss, make_room, nts_fields};

/// The most clients; each takes a file descriptor.
pub const CLIENT_COUNT_MAX: usize = 16_000;

/// The most datagrams that a tap keeps.
pub const RECORD_COUNT_MAX: usize = 400_000;

/// Datagrams that are read from one socket before the others have their turn.
const BATCH_COUNT: usize = 64;

/// How often the thread looks whether it is to end.
const IDLE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

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

/// Passes responses through a function, which may also make several of one, or none.
pub struct Changed<F>(pub F);

impl<F: FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send + 'static> Middle for Changed<F> {
    fn response(&mut self, response: Vec<u8>, _: SocketAddr) -> Vec<Vec<u8>> {
        (self.0)(response)
    }
}

/// What is done to an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// One bit of the response's tag is flipped: the first of the ciphertext, which with AES-SIV begins with its tag;
    /// with other algorithms it fails the same check. Under a symmetric key, the first of the digest.
    Tag,
    /// The response is replaced by a kiss with the request's unique identifier and no authenticator.
    Kiss(ReferenceId),
    /// The request never reaches the server.
    LostRequest,
    /// The response never reaches the client.
    LostResponse,
}

/// Damages every so-manieth authenticated exchange, under NTS or a symmetric key.
#[derive(Clone, Copy, Debug)]
pub struct Corrupt {
    damage: Damage,
    every: u64,
    seen: u64,
    damaged: u64,
}

impl Corrupt {
    /// Damages exactly one exchange of each `every`: the last of them.
    ///
    /// # Panics
    /// If `every` is 0.
    #[must_use]
    pub fn new(damage: Damage, every: u64) -> Self {
        assert!(every > 0, "one of none");
        Corrupt { damage, every, seen: 0, damaged: 0 }
    }

    /// Authenticated requests or responses that it has had before it, whichever it damages.
    #[must_use]
    pub const fn seen(&self) -> u64 {
        self.seen
    }

    /// How many of them it has damaged.
    #[must_use]
    pub const fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Counts one more; whether it is to be damaged.
    fn strikes(&mut self) -> bool {
        self.seen += 1;
        let strikes = self.seen.is_multiple_of(self.every);
        self.damaged += u64::from(strikes);
        strikes
    }
}

impl Middle for Corrupt {
    fn request(&mut self, request: &[u8], _: SocketAddr) -> bool {
        self.damage != Damage::LostRequest || tag_start(request).is_none() || !self.strikes()
    }

    fn response(&mut self, mut response: Vec<u8>, _: SocketAddr) -> Vec<Vec<u8>> {
        let (false, Some(tag_start)) = (self.damage == Damage::LostRequest, tag_start(&response)) else {
            return vec![response];
        };
        if !self.strikes() {
            return vec![response];
        }
        match self.damage {
            Damage::Tag => {
                response[tag_start] ^= 1;
                vec![response]
            }
            Damage::Kiss(code) => {
                let packet = Packet::parse(&response).expect("its fields were found");
                let mut header = packet.header();
                kiss(&mut header, code);
                vec![emit(&header, identifier_of(&packet))]
            }
            Damage::LostRequest | Damage::LostResponse => Vec::new(),
        }
    }
}

/// Where the tag of a packet begins, if it is authenticated.
fn tag_start(octets: &[u8]) -> Option<usize> {
    match nts_fields(octets) {
        Some(fields) => Some(fields.authenticator?.ciphertext.start()),
        None => Some(MacFields::locate(&Packet::parse(octets).ok()?)?.digest.start()),
    }
}

/// A datagram that passed.
#[derive(Clone, Debug)]
pub struct Record {
    /// When it passed.
    pub at: Instant,
    /// The client from which it came or to which it goes.
    pub client: SocketAddr,
    /// Its octets.
    pub octets: Vec<u8>,
}

impl Record {
    /// The cookie in it, if it is an NTS request.
    #[must_use]
    pub fn cookie(&self) -> Option<&[u8]> {
        Some(nts_fields(&self.octets)?.cookie?.of(&self.octets))
    }

    /// The clear placeholders in it.
    #[must_use]
    pub fn placeholder_count(&self) -> usize {
        nts_fields(&self.octets).map_or(0, |fields| fields.placeholder_count)
    }
}

/// Keeps a copy of everything that passes.
#[derive(Debug, Default)]
pub struct Tap {
    requests: Vec<Record>,
    responses: Vec<Record>,
    unrecorded: u64,
}

impl Tap {
    /// What clients sent, in the order in which it came.
    #[must_use]
    pub fn requests(&self) -> &[Record] {
        &self.requests
    }

    /// What servers sent.
    #[must_use]
    pub fn responses(&self) -> &[Record] {
        &self.responses
    }

    /// Datagrams beyond [`RECORD_COUNT_MAX`].
    #[must_use]
    pub const fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    /// How many requests carried each cookie, in the order in which the cookies first came.
    #[must_use]
    pub fn cookie_uses(&self) -> Vec<usize> {
        let (mut places, mut uses) = (HashMap::new(), Vec::new());
        for cookie in self.requests.iter().filter_map(Record::cookie) {
            let place = *places.entry(cookie).or_insert(uses.len());
            if place == uses.len() {
                uses.push(0);
            }
            uses[place] += 1;
        }
        uses
    }

    fn record(&mut self, is_request: bool, octets: &[u8], client: SocketAddr) {
        if self.requests.len() + self.responses.len() >= RECORD_COUNT_MAX {
            self.unrecorded += 1;
            return;
        }
        let record = Record { at: Instant::now(), client, octets: octets.to_vec() };
        if is_request { self.requests.push(record) } else { self.responses.push(record) }
    }
}

impl Middle for Tap {
    fn request(&mut self, request: &[u8], client: SocketAddr) -> bool {
        self.record(true, request, client);
        true
    }

    fn response(&mut self, response: Vec<u8>, client: SocketAddr) -> Vec<Vec<u8>> {
        self.record(false, &response, client);
        vec![response]
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
    /// Datagrams that the relay lost of its own: that could not be sent, or came too fast for it. A test that relies on
    /// its counts demands 0.
    pub lost: u64,
}

/// A running relay. It ends with this value.
pub struct Relay<M> {
    address: SocketAddr,
    shared: Arc<Shared<M>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<M> {
    middle: Mutex<M>,
    counts: Mutex<Counts>,
    /// The clients' socket, then one towards the server for each client.
    sockets: Mutex<Vec<Arc<UdpSocket>>>,
    stop: AtomicBool,
}

impl<M: Middle> Relay<M> {
    /// Relays between clients that ask at `front` and `server`. To be called where `front` was bound: within a host,
    /// the sockets towards the server are on that host.
    ///
    /// # Panics
    /// If the socket cannot be set up.
    #[must_use]
    pub fn start(front: UdpSocket, server: SocketAddr, middle: M) -> Self {
        let address = front.local_addr().unwrap();
        let shared = Arc::new(Shared {
            middle: Mutex::new(middle),
            counts: Mutex::default(),
            sockets: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let mut turner = Turner {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).unwrap(),
            server,
            sockets: Vec::new(),
            clients: Vec::new(),
            places: HashMap::new(),
            shared: Arc::clone(&shared),
        };
        turner.adopt(front).unwrap();
        let thread = Some(std::thread::spawn(move || turner.run()));
        Relay { address, shared, thread }
    }

    /// Relays between a port of 127.0.0.1 and `server`.
    ///
    /// # Panics
    /// If the port is taken.
    #[must_use]
    pub fn on_loopback(port: u16, server: SocketAddr, middle: M) -> Self {
        Relay::start(UdpSocket::bind(("127.0.0.1", port)).unwrap(), server, middle)
    }

    /// Where clients ask.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Looks at, or changes, who stands in the middle.
    pub fn with<T>(&self, look: impl FnOnce(&mut M) -> T) -> T {
        look(&mut self.shared.middle.lock().unwrap())
    }

    /// What the relay has done until now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let sockets = self.shared.sockets.lock().unwrap();
        let dropped: u64 = sockets.iter().map(|socket| dropped_count(socket.as_fd()).unwrap()).sum();
        let counts = *self.shared.counts.lock().unwrap();
        Counts { lost: counts.lost + dropped, ..counts }
    }
}

impl<M> Drop for Relay<M> {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The relay's thread.
struct Turner<M> {
    epoll: OwnedFd,
    server: SocketAddr,
    /// The clients' socket, then one for each of `clients`.
    sockets: Vec<Arc<UdpSocket>>,
    clients: Vec<SocketAddr>,
    /// From clients to their place in `clients`.
    places: HashMap<SocketAddr, usize>,
    shared: Arc<Shared<M>>,
}

impl<M: Middle> Turner<M> {
    fn run(mut self) {
        let mut events = Vec::with_capacity(BATCH_COUNT);
        while !self.shared.stop.load(Ordering::Relaxed) {
            events.clear();
            // Interrupted or not: what there is is looked at.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&IDLE));
            for event in &events {
                match event.data.u64() {
                    0 => self.take_requests(),
                    place => self.take_responses(place as usize - 1),
                }
            }
        }
    }

    /// Waits on one more socket.
    fn adopt(&mut self, socket: UdpSocket) -> std::io::Result<()> {
        socket.set_nonblocking(true)?;
        make_room(&socket);
        let data = epoll::EventData::new_u64(self.sockets.len() as u64);
        epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN)?;
        let socket = Arc::new(socket);
        self.shared.sockets.lock().unwrap().push(Arc::clone(&socket));
        self.sockets.push(socket);
        Ok(())
    }

    /// The socket towards the server for a client.
    fn towards_server(&mut self, client: SocketAddr) -> std::io::Result<&UdpSocket> {
        let place = match self.places.get(&client) {
            Some(place) => *place,
            None => {
                if self.clients.len() >= CLIENT_COUNT_MAX {
                    return Err(std::io::Error::other("too many clients"));
                }
                let socket = UdpSocket::bind(anywhere(self.server))?;
                socket.connect(self.server)?;
                self.adopt(socket)?;
                self.clients.push(client);
                self.places.insert(client, self.clients.len() - 1);
                self.shared.counts.lock().unwrap().clients += 1;
                self.clients.len() - 1
            }
        };
        Ok(&self.sockets[1 + place])
    }

    fn take_requests(&mut self) {
        let mut buffer = [0; DATAGRAM_SIZE_MAX];
        for _ in 0..BATCH_COUNT {
            let Ok((size, client)) = self.sockets[0].recv_from(&mut buffer) else { return };
            self.shared.counts.lock().unwrap().requests += 1;
            let passes = self.shared.middle.lock().unwrap().request(&buffer[..size], client);
            if passes {
                let sent =
                    self.towards_server(client).and_then(|socket| match socket.send(&buffer[..size]) {
                        // What the host said of an earlier datagram; this one has not been tried.
                        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                            socket.send(&buffer[..size])
                        }
                        sent => sent,
                    });
                self.count_lost(sent.is_err());
            }
        }
    }

    fn take_responses(&mut self, place: usize) {
        let mut buffer = [0; DATAGRAM_SIZE_MAX];
        let client = self.clients[place];
        for _ in 0..BATCH_COUNT {
            // An error is the end, or what the host said of an earlier request: then epoll tells of what is left.
            let Ok(size) = self.sockets[1 + place].recv(&mut buffer) else { return };
            self.shared.counts.lock().unwrap().responses += 1;
            let passed = self.shared.middle.lock().unwrap().response(buffer[..size].to_vec(), client);
            for response in passed {
                let sent = self.sockets[0].send_to(&response, client);
                self.count_lost(sent.is_err());
            }
        }
    }

    fn count_lost(&self, is_lost: bool) {
        self.shared.counts.lock().unwrap().lost += u64::from(is_lost);
    }
}
