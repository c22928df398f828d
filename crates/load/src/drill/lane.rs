//! The thread of a drill that asks one NTP server.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use authentick_crypto::{Entropy, run_batch};
use authentick_net::udp::ClientSocket;
use authentick_proto::client::{Check, Exchange};
use authentick_proto::limits::REQUEST_SIZE_MAX;
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;

use super::book::{Book, Entry, key_of};
use super::{Counts, Fates};

/// Requests under way, at most: more would only fill buffers.
const FLIGHT_COUNT_MAX: usize = 4096;
/// Requests that are sent before answers are looked for.
const BURST: u64 = 32;
/// How long the thread rests when there is nothing to do.
const REST: Duration = Duration::from_micros(200);
/// How often the book is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How far the thread makes up for what it could not send in time: beyond that it would be another load.
const LATE: Duration = Duration::from_millis(100);
/// Where an answer has the transmit timestamp of its request.
const ORIGIN: std::ops::Range<usize> = 24..32;

/// A request under way.
struct Flight {
    exchange: Exchange,
    /// Its place among the entries.
    entry: usize,
    sent: Instant,
}

/// What a thread works with.
pub(super) struct Lane<'a> {
    socket: UdpSocket,
    interval: Duration,
    timeout: Duration,
    book: &'a Book,
    looked: Instant,
    /// How often the book had changed then.
    changes: u64,
    /// All that were ever used.
    entries: Vec<Entry>,
    /// Places of those that are to be used now, and which of these is next.
    present: Vec<usize>,
    next: usize,
    flights: HashMap<u64, Flight>,
    /// Transmit timestamps in the order in which the requests left, with those that were answered.
    order: VecDeque<u64>,
    /// Of each entry.
    fates: Vec<Fates>,
    entropy: Entropy,
}

impl<'a> Lane<'a> {
    pub(super) fn new(
        server: SocketAddr,
        rate_rps: f64,
        timeout: Duration,
        book: &'a Book,
        entropy: Entropy,
    ) -> io::Result<Self> {
        // One with room for the answers of a thread that is off its processor for a while.
        let socket = UdpSocket::from(ClientSocket::connect(server)?.as_fd().try_clone_to_owned()?);
        socket.set_nonblocking(true)?;
        let mut lane = Lane {
            socket,
            interval: Duration::from_secs_f64(1.0 / rate_rps),
            timeout,
            book,
            looked: Instant::now(),
            changes: 0,
            entries: Vec::new(),
            present: Vec::new(),
            next: 0,
            flights: HashMap::new(),
            order: VecDeque::new(),
            fates: Vec::new(),
            entropy,
        };
        lane.look();
        Ok(lane)
    }

    /// Asks until it `is_over`, and then waits for what is under way.
    pub(super) fn run(mut self, is_over: &AtomicBool) -> Counts {
        let mut due = Instant::now();
        while !is_over.load(Ordering::Relaxed) {
            let now = Instant::now();
            due = due.max(now.checked_sub(LATE).unwrap_or(now));
            let mut burst = 0;
            while due <= now && burst < BURST && self.flights.len() < FLIGHT_COUNT_MAX && self.send(now) {
                due += self.interval;
                burst += 1;
            }
            if self.receive() == 0 && burst == 0 {
                thread::sleep(REST.min(due.saturating_duration_since(Instant::now())));
            }
            self.give_up(now);
            if now.duration_since(self.looked) >= LOOK {
                self.looked = now;
                self.look();
            }
        }
        while !self.flights.is_empty() {
            if self.receive() == 0 {
                thread::sleep(REST);
            }
            self.give_up(Instant::now());
        }
        let named = self.entries.iter().zip(self.fates);
        named.map(|(entry, fates)| ((entry.exchange, entry.key), fates)).collect()
    }

    /// Takes up what the book has.
    fn look(&mut self) {
        let Some(found) = self.book.entries(&mut self.changes) else { return };
        let is = |entry: &Entry, other: &Entry| (entry.exchange, entry.key) == (other.exchange, other.key);
        self.present.clear();
        for entry in found {
            let place = self.entries.iter().position(|known| is(known, &entry));
            self.present.push(place.unwrap_or_else(|| {
                self.entries.push(entry);
                self.fates.push(Fates::default());
                self.entries.len() - 1
            }));
        }
    }

    /// Sends one request; whether the kernel took it.
    fn send(&mut self, now: Instant) -> bool {
        self.next = (self.next + 1) % self.present.len();
        let place = self.present[self.next];
        let session = &self.entries[place].session;
        let mut out = [0; REQUEST_SIZE_MAX];
        let (exchange, unsealed) =
            Exchange::nts_replayed(session, &mut self.entropy, &mut out).expect("an entry has its cookie");
        let size = unsealed.size();
        run_batch([unsealed.job(session, &mut out)].into_iter());
        if self.socket.send(&out[..size]).is_err() {
            return false;
        }
        let transmit = exchange.transmit().to_bits();
        self.fates[place].sent += 1;
        self.flights.insert(transmit, Flight { exchange, entry: place, sent: now });
        self.order.push_back(transmit);
        true
    }

    /// Takes what has come; returns how many answers.
    fn receive(&mut self) -> usize {
        let mut buffer = [0; DATAGRAM_SIZE_MAX];
        let mut count = 0;
        // An error of the socket is an answer to an earlier datagram that nobody took: that one is lost in time.
        while count < BURST {
            let size = match self.socket.recv(&mut buffer) {
                Ok(size) => size,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => 0,
            };
            count += 1;
            self.take(&mut buffer[..size]);
        }
        count as usize
    }

    /// Takes what is an answer to a request under way.
    fn take(&mut self, datagram: &mut [u8]) {
        let Some(origin) = datagram.get(ORIGIN).and_then(<[u8]>::first_chunk) else { return };
        let transmit = u64::from_be_bytes(*origin);
        let Some(Flight { exchange, entry, .. }) = self.flights.get_mut(&transmit) else { return };
        let Entry { exchange: from, session, .. } = &mut self.entries[*entry];
        let (from, mut fresh) = (*from, None);
        let fates = &mut self.fates[*entry];
        match exchange.receive(datagram, Some(session)) {
            Ok(_) => {
                fates.answered += 1;
                // The first cookie stays, and those that came tell which key seals.
                let mut jar = std::mem::take(&mut session.jar);
                if let Some(own) = jar.take() {
                    session.jar.add(&own);
                }
                fresh = jar.take();
            }
            Err(Check::Kiss(ReferenceId::NTSN)) => fates.ntsn += 1,
            Err(_) => fates.invalid += 1,
        }
        let Some(Flight { entry, .. }) = self.flights.remove(&transmit) else { return };
        let is_known = |fresh: &[u8]| {
            self.entries.iter().any(|known| (known.exchange, known.key) == (from, key_of(fresh)))
        };
        if let Some(fresh) = fresh.filter(|fresh| !is_known(fresh)) {
            self.book.learn(from, &self.entries[entry].session, &fresh);
        }
    }

    /// Counts those as lost that have waited for too long.
    fn give_up(&mut self, now: Instant) {
        while let Some(transmit) = self.order.front() {
            match self.flights.get(transmit) {
                Some(flight) if now.saturating_duration_since(flight.sent) < self.timeout => return,
                Some(flight) => self.fates[flight.entry].lost += 1,
                None => {}
            }
            self.flights.remove(transmit);
            self.order.pop_front();
        }
    }
}
