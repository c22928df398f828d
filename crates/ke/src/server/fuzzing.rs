//! Whatever clients, network and time do to the connections of a worker, over memory and a clock that is set.
//!
//! The input is a list of steps, each an octet for what happens and to whom, and what it needs: connections open and
//! close, octets arrive in any cut, among them those of clients that do everything right. TLS is real on both sides.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_proto::keyset::KeySet;
use authentick_proto::prefix::{Prefix, PrefixSet};
use authentick_wire::ke::{Response, message_size};
use rustls::{ClientConnection, ServerConfig};

use super::connection::Stream;
use super::connections::{Connections, Network};
use super::{Admission, Environment, Instants, Limits, Outcome, Rates};
use crate::client::Dialogue;
use crate::fuzzing::tls::{ASK, SERVER};
use crate::session::{RESPONSE_SIZE_MAX, Terms};

const LIMITS: Limits =
    Limits { connection_count: 3, per_prefix_count: 2, timeout: Duration::from_millis(5000) };

/// Clients of one input, and steps.
const CLIENT_COUNT_MAX: usize = 16;
const STEP_COUNT_MAX: usize = 300;
/// Octets that a client has ready to be sent, at most.
const OUTBOX_SIZE_MAX: usize = 256 * 1024;
/// What a server takes of one connection, at most: 48 KiB for the request and 16 KiB after it, each with the read that
/// goes beyond; and what it sends, in as many TLS records as there can be.
const TAKEN_SIZE_MAX: usize = (48 + 18 + 16 + 1) * 1024;
const SENT_SIZE_MAX: usize = 4 * RESPONSE_SIZE_MAX;

/// Where clients connect from: two of one prefix, another one, and one that may not.
const SOURCES: [[u8; 4]; 4] = [[198, 18, 0, 1], [198, 18, 0, 1], [198, 18, 0, 2], [198, 19, 0, 1]];

static KEYS: LazyLock<Arc<KeySet>> =
    LazyLock::new(|| Arc::new(KeySet::generate(0, &mut Entropy::from_seed(1))));

/// Steps that do anything to connections. Each connection ends once, by what its own client does, by its deadline, or
/// as one of too many; what is taken and sent for it is bounded; and clients that do everything right get
/// cookies. Returns how many had a response that they could read.
pub fn ke_connections(octets: &[u8]) -> usize {
    let mut world = World::new();
    let mut input = octets;
    for _ in 0..STEP_COUNT_MAX {
        if world.step(&mut input).is_none() {
            break;
        }
        world.check();
    }
    world.finish()
}

/// Both directions of one connection.
#[derive(Default)]
pub(super) struct Pipe {
    /// The connection, by its key at the server.
    pub(super) key: Option<usize>,
    pub(super) to_server: VecDeque<u8>,
    pub(super) to_client: VecDeque<u8>,
    /// Octets that may be on the way to the client.
    room: usize,
    pub(super) client_ended: bool,
    server_ended: bool,
    is_reset: bool,
    /// The server has dropped its end.
    is_closed: bool,
    pub(super) taken_size: usize,
    sent_size: usize,
}

/// The server's end.
pub(super) struct End(Rc<RefCell<Pipe>>);

impl End {
    /// Of the pipe that a client has.
    pub(super) fn of(client: &Client) -> Self {
        End(Rc::clone(&client.pipe))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.0.borrow_mut().is_closed = true;
    }
}

impl Read for End {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut pipe = self.0.borrow_mut();
        if pipe.is_reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if pipe.to_server.is_empty() && !pipe.client_ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let size = pipe.to_server.read(out)?;
        pipe.taken_size += size;
        Ok(size)
    }
}

impl Write for End {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let mut pipe = self.0.borrow_mut();
        assert!(!pipe.server_ended, "something is written after the end");
        if pipe.is_reset {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let size = octets.len().min(pipe.room.saturating_sub(pipe.to_client.len()));
        if size == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        pipe.to_client.extend(&octets[..size]);
        pipe.sent_size += size;
        Ok(size)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for End {
    fn send_at_once(&self) -> io::Result<()> {
        match self.0.borrow().is_reset {
            true => Err(io::ErrorKind::InvalidInput.into()),
            false => Ok(()),
        }
    }

    fn acknowledge(&self) {}

    fn end_ours(&self) -> io::Result<()> {
        let mut pipe = self.0.borrow_mut();
        assert!(!pipe.server_ended, "a half ends twice");
        pipe.server_ended = true;
        if pipe.is_reset { Err(io::ErrorKind::NotConnected.into()) } else { Ok(()) }
    }

    fn reset(&self) {
        self.0.borrow_mut().is_reset = true;
    }
}

/// Memory, of which the server is told by steps.
pub(super) struct Memory;

impl Network for Memory {
    type Stream = End;

    fn register(&self, stream: &mut End, key: usize) -> io::Result<()> {
        stream.0.borrow_mut().key = Some(key);
        Ok(())
    }

    fn deregister(&self, stream: &mut End) {
        stream.0.borrow_mut().key = None;
    }
}

/// What the server counts.
#[derive(Default)]
pub(super) struct Counts {
    accepted: AtomicUsize,
    ended: AtomicUsize,
}

impl Environment for Counts {
    fn keys(&self) -> Option<Arc<KeySet>> {
        Some(Arc::clone(&KEYS))
    }

    fn tls(&self) -> Arc<ServerConfig> {
        Arc::clone(&SERVER)
    }

    fn terms(&self) -> Arc<Terms> {
        Arc::default()
    }

    fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    fn accept_failed(&self) {}

    fn ended(&self, _: Outcome) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    fn is_watched(&self, _: IpAddr) -> bool {
        false
    }

    fn timed(&self, _: Instants) {}
}

/// Who speaks at the other end.
pub(super) enum Speaker {
    /// A client that does everything right.
    Right(Dialogue),
    /// One that says anything, behind a handshake that is right.
    Any(ClientConnection),
    /// One without TLS.
    Raw,
}

pub(super) struct Client {
    pub(super) pipe: Rc<RefCell<Pipe>>,
    speaker: Speaker,
    accepted: Instant,
    /// What it has to say and has not sent.
    outbox: Vec<u8>,
    /// What it was told, if it says anything.
    answer: Vec<u8>,
    /// It gives up, or what it said was changed on the way.
    is_spoilt: bool,
    /// It had its response.
    pub(super) is_done: bool,
}

impl Client {
    pub(super) fn new(speaker: Speaker, now: Instant) -> Self {
        Client {
            pipe: Rc::new(RefCell::new(Pipe { room: 1 << 16, ..Pipe::default() })),
            speaker,
            accepted: now,
            outbox: Vec::new(),
            answer: Vec::new(),
            is_spoilt: false,
            is_done: false,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.pipe.borrow().is_closed
    }

    /// Puts what TLS has to say into the outbox.
    fn speak(&mut self) {
        match &mut self.speaker {
            Speaker::Right(dialogue) => {
                while dialogue.wants_write() {
                    dialogue.write(&mut self.outbox).expect("a vector takes everything");
                }
            }
            Speaker::Any(tls) => {
                while tls.wants_write() {
                    tls.write_tls(&mut self.outbox).expect("a vector takes everything");
                }
            }
            Speaker::Raw => {}
        }
    }

    /// Sends so many octets; whether there were any.
    pub(super) fn send(&mut self, size: usize) -> bool {
        self.speak();
        let size = size.min(self.outbox.len());
        self.pipe.borrow_mut().to_server.extend(self.outbox.drain(..size));
        size > 0
    }

    /// Takes so many octets; whether there were any.
    pub(super) fn take(&mut self, size: usize) -> bool {
        let octets: Vec<u8> = {
            let mut pipe = self.pipe.borrow_mut();
            let size = size.min(pipe.to_client.len());
            pipe.to_client.drain(..size).collect()
        };
        let mut input = &octets[..];
        while !input.is_empty() && !self.is_done {
            match &mut self.speaker {
                Speaker::Right(dialogue) => match dialogue.read(&mut input) {
                    Ok(None) => {}
                    Ok(Some(established)) => {
                        assert_eq!(established.session.jar.count(), 8, "cookies");
                        self.is_done = true;
                    }
                    Err(error) => {
                        let is_over = self.pipe.borrow().is_closed;
                        assert!(is_over || self.is_spoilt, "one that does everything right is told {error}");
                        self.is_done = true;
                    }
                },
                Speaker::Any(tls) => {
                    if !tls.read_tls(&mut input).is_ok_and(|size| size > 0)
                        || tls.process_new_packets().is_err()
                    {
                        assert!(self.is_spoilt, "TLS that is right fails");
                        self.is_done = true;
                        break;
                    }
                    // At the end, or if there is nothing yet, this is an error.
                    let _ = tls.reader().read_to_end(&mut self.answer);
                }
                Speaker::Raw => break,
            }
        }
        self.speak();
        !octets.is_empty()
    }
}

struct World {
    now: Instant,
    connections: Connections<Memory, Counts>,
    admission: Arc<Admission>,
    counts: Arc<Counts>,
    clients: Vec<Client>,
}

impl World {
    fn new() -> Self {
        let (now, mut entropy) = (Instant::now(), Entropy::from_seed(2));
        let network = |address: [u8; 4]| Prefix::new(Ipv4Addr::from(address).into(), 16);
        let allow = PrefixSet::new(network(SOURCES[0]).into_iter().collect());
        let admission = Arc::new(Admission::new(allow, LIMITS, Rates::NONE, &mut entropy, now));
        let counts = Arc::<Counts>::default();
        let connections = Connections::new(Memory, Arc::clone(&admission), entropy, Arc::clone(&counts));
        World { now, connections, admission, counts, clients: Vec::new() }
    }

    /// One step; `None` if the input has none.
    fn step(&mut self, input: &mut &[u8]) -> Option<()> {
        let octet = next(input)?;
        let (what, who) = (octet & 15, usize::from(octet >> 4));
        if what == 0 {
            let how = next(input)?;
            self.open(how);
            return Some(());
        }
        let before: Vec<bool> = self.clients.iter().map(Client::is_open).collect();
        match what {
            1 => {
                self.now += Duration::from_millis(40 * u64::from(next(input)?));
                self.connections.end_overdue(self.now);
                return Some(());
            }
            2 => self.connections.advance_unread(self.now),
            3 => {
                let silent = self.silent();
                self.connections.evict(self.now);
                self.one_of(&before, &silent);
            }
            _ if self.clients.is_empty() => {}
            _ => {
                let who = who % self.clients.len();
                self.act(what, who, input)?;
                self.only(&before, Some(who));
            }
        }
        Some(())
    }

    /// What one client does.
    fn act(&mut self, what: u8, who: usize, input: &mut &[u8]) -> Option<()> {
        let client = &mut self.clients[who];
        match what {
            4 | 5 => {
                client.send(size(next(input)?));
                self.tell(who);
            }
            6 => {
                client.take(size(next(input)?));
                self.tell(who);
            }
            7 => self.shuttle(who),
            8 => {
                let said = said(input)?;
                if client.outbox.len() + said.len() <= OUTBOX_SIZE_MAX {
                    match &mut client.speaker {
                        Speaker::Any(tls) => {
                            // What finds no room is not said.
                            let _ = tls.writer().write(&said);
                        }
                        Speaker::Raw => client.outbox.extend(said),
                        Speaker::Right(_) => {}
                    }
                }
            }
            // Without TLS in between.
            9 => {
                let said = said(input)?;
                client.is_spoilt = true;
                if client.outbox.len() + said.len() <= OUTBOX_SIZE_MAX {
                    client.outbox.extend(said);
                }
            }
            10 => {
                let (place, bit) = (usize::from(next(input)?), next(input)?);
                client.speak();
                if let Some(octet) = client.outbox.get_mut(place) {
                    client.is_spoilt = true;
                    *octet ^= 1 << (bit & 7);
                }
            }
            11 => client.pipe.borrow_mut().room = 16 * usize::from(next(input)?),
            12 => {
                if let Speaker::Any(tls) = &mut client.speaker
                    && !tls.is_handshaking()
                {
                    tls.send_close_notify();
                }
            }
            13 => {
                client.is_spoilt = true;
                client.pipe.borrow_mut().client_ended = true;
                self.tell(who);
            }
            14 => {
                client.is_spoilt = true;
                client.pipe.borrow_mut().is_reset = true;
                self.tell(who);
            }
            _ => self.tell(who),
        }
        Some(())
    }

    fn open(&mut self, how: u8) {
        if self.clients.len() >= CLIENT_COUNT_MAX {
            return;
        }
        let tls = || ClientConnection::new(Arc::clone(&ASK.tls), ASK.server_name.clone());
        let speaker = match how & 3 {
            0 => Speaker::Raw,
            1 => Speaker::Any(tls().expect("TLS can start")),
            _ => Speaker::Right(Dialogue::new(&ASK).expect("TLS can start")),
        };
        let mut client = Client::new(speaker, self.now);
        client.is_spoilt = how & 0xF0 == 0xF0;
        client.pipe.borrow_mut().is_reset = client.is_spoilt;
        let end = End::of(&client);
        if how & 0x10 != 0 {
            client.send(usize::MAX);
        }
        let before: Vec<bool> = self.clients.iter().map(Client::is_open).collect();
        let open_count = before.iter().filter(|is_open| **is_open).count();
        let silent = self.silent();
        self.clients.push(client);
        let source = SOURCES[usize::from(how >> 2 & 3)];
        self.connections.admit(end, SocketAddr::from((source, 9)), self.now);
        match open_count >= LIMITS.connection_count {
            true => self.one_of(&before, &silent),
            false => self.only(&before, None),
        }
    }

    /// The kernel tells the server that something happened to a connection.
    fn tell(&mut self, who: usize) {
        let key = self.clients[who].pipe.borrow().key;
        if let Some(key) = key {
            self.connections.advance(key, self.now);
        }
        // It is told no second time of what it left.
        let pipe = self.clients[who].pipe.borrow();
        let is_left = !pipe.is_closed && !pipe.to_server.is_empty();
        let is_full = pipe.to_client.len() >= pipe.room;
        assert!(!is_left || is_full || self.connections.has_unread(), "octets are forgotten");
    }

    /// Carries everything both ways, until there is nothing more.
    fn shuttle(&mut self, who: usize) {
        loop {
            let is_sent = self.clients[who].send(usize::MAX);
            self.tell(who);
            while self.connections.has_unread() && !self.clients[who].pipe.borrow().to_server.is_empty() {
                let taken_size = self.clients[who].pipe.borrow().taken_size;
                self.tell(who);
                if self.clients[who].pipe.borrow().taken_size == taken_size {
                    break;
                }
            }
            if !self.clients[who].take(usize::MAX) && !is_sent {
                return;
            }
            self.tell(who);
        }
    }

    /// Of those that were open `before`, only `this` one may have ended.
    fn only(&self, before: &[bool], this: Option<usize>) {
        for (who, client) in self.clients.iter().enumerate().take(before.len()) {
            assert!(!before[who] || client.is_open() || this == Some(who), "{who} ended, and not {this:?}");
        }
    }

    /// Open connections that have sent nothing that the server took.
    fn silent(&self) -> Vec<usize> {
        let is_silent = |client: &Client| client.is_open() && client.pipe.borrow().taken_size == 0;
        (0..self.clients.len()).filter(|&who| is_silent(&self.clients[who])).collect()
    }

    /// Of those that were open `before`, at most one has ended, and a `silent` one if there were any.
    fn one_of(&self, before: &[bool], silent: &[usize]) {
        let ended: Vec<usize> =
            (0..before.len()).filter(|&who| before[who] && !self.clients[who].is_open()).collect();
        assert!(ended.len() <= 1, "{ended:?} ended for one newcomer");
        let is_right = silent.is_empty() || ended.iter().all(|who| silent.contains(who));
        assert!(is_right, "{ended:?} gave way before {silent:?}");
    }

    /// What always holds.
    fn check(&mut self) {
        let (accepted, ended) =
            (self.counts.accepted.load(Ordering::Relaxed), self.counts.ended.load(Ordering::Relaxed));
        let open: Vec<&Client> = self.clients.iter().filter(|client| client.is_open()).collect();
        assert_eq!(accepted, self.clients.len());
        assert_eq!(accepted, ended + open.len(), "each connection ends once");
        assert!(open.len() <= LIMITS.connection_count, "{} connections", open.len());
        assert!(!self.admission.is_crowded());
        assert!(open.iter().all(|client| self.now < client.accepted + LIMITS.timeout), "a deadline passed");
        let first = open.iter().map(|client| client.accepted + LIMITS.timeout).min();
        for client in &self.clients {
            let pipe = client.pipe.borrow();
            assert!(pipe.taken_size <= TAKEN_SIZE_MAX, "{} octets are taken", pipe.taken_size);
            assert!(pipe.sent_size <= SENT_SIZE_MAX, "{} octets are sent", pipe.sent_size);
            assert_eq!(pipe.key.is_some(), !pipe.is_closed, "registered as long as it is open");
        }
        let next = self.connections.next_deadline();
        assert!(next.is_some() == first.is_some() && next <= first, "the next deadline");
        assert!(next.is_none_or(|deadline| self.now < deadline), "a deadline passed");
    }

    /// Those that do everything right come to their end, and then everybody does; how many could read a response.
    fn finish(mut self) -> usize {
        for who in 0..self.clients.len() {
            let client = &mut self.clients[who];
            if client.is_open() && !client.is_spoilt {
                client.pipe.borrow_mut().room = 1 << 16;
                self.shuttle(who);
                let client = &self.clients[who];
                assert!(
                    client.is_done || !matches!(client.speaker, Speaker::Right(_)),
                    "{who} has no cookies"
                );
            }
        }
        self.check();
        self.now += LIMITS.timeout;
        self.connections.end_overdue(self.now);
        self.check();
        assert!(!self.clients.iter().any(Client::is_open), "a connection without end");
        self.clients.iter().filter(|client| client.could_read()).count()
    }
}

impl Client {
    /// Whether it had a response; what is behind right TLS is a whole message that clients understand.
    fn could_read(&self) -> bool {
        match self.speaker {
            Speaker::Raw => false,
            Speaker::Right(_) => self.is_done,
            Speaker::Any(_) if self.answer.is_empty() => false,
            Speaker::Any(_) => {
                if let Some(size) = message_size(&self.answer) {
                    assert_eq!(size, self.answer.len(), "more than a message");
                    let offered: Vec<_> =
                        (0..=u8::MAX).map(|id| authentick_wire::ke::AeadId(id.into())).collect();
                    Response::parse(&self.answer, &offered).expect("our own responses parse");
                }
                true
            }
        }
    }
}

fn next(input: &mut &[u8]) -> Option<u8> {
    let (&octet, rest) = input.split_first()?;
    *input = rest;
    Some(octet)
}

/// One octet as a size: single octets, or up to eight thousand.
fn size(octet: u8) -> usize {
    match octet {
        0..128 => usize::from(octet),
        128.. => 64 * usize::from(octet - 127),
    }
}

/// What is said: octets of the input, or one of them many times.
fn said(input: &mut &[u8]) -> Option<Vec<u8>> {
    let size = usize::from(next(input)?);
    if size >= 192 {
        return Some(vec![next(input)?; 512 * (size - 191)]);
    }
    let (said, rest) = input.split_at(size.min(input.len()));
    *input = rest;
    Some(said.to_vec())
}
