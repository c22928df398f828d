//! One server, its clients, and the datagrams on their way.

use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use authentick_crypto::{Algorithm, Entropy, Key};
use authentick_proto::client::{Check, Exchange, NoCookie, NtsSession, Sample};
use authentick_proto::cookie::{self, SessionKeys};
use authentick_proto::keyset::KeySet;
use authentick_proto::limits::BATCH_SIZE;
use authentick_proto::server::interleave::Interleave;
use authentick_proto::server::outcome::Outcomes;
use authentick_proto::server::snapshot::Snapshot;
use authentick_proto::server::{Moment, Policy, Responder};
use authentick_wire::datagram::Datagram;
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::{COOKIE_COUNT, DATAGRAM_SIZE_MAX};
use authentick_wire::time::NtpTime;

use crate::{Clock, Link, TrueTime};

/// How long a request waits at the server before it is answered, in nanoseconds.
const SERVICE_NS: u64 = 2_000;

/// What became of a datagram that reached a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// It passed every check.
    Accepted {
        /// The client's number.
        client: usize,
        /// What the client concludes.
        sample: Sample,
        /// How far the server really was ahead, in nanoseconds.
        truth_ns: i64,
    },
    /// It failed a check.
    Rejected {
        /// The client's number.
        client: usize,
        /// Which one.
        check: Check,
    },
}

/// Whether a request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Yes.
    Sent,
    /// No: a new key exchange is needed.
    NoCookie,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests that clients sent.
    pub sent: u64,
    /// Copies of them that reached the server.
    pub reached_server: u64,
    /// Datagrams that reached clients.
    pub reached_clients: u64,
    /// Of these, the ones that passed every check.
    pub accepted: u64,
    /// Key exchanges.
    pub key_exchanges: u64,
}

/// A world; see the crate's documentation.
pub struct World {
    /// The link between every client and the server.
    pub link: Link,
    /// The server's clock.
    pub server_clock: Clock,
    now: TrueTime,
    entropy: Entropy,
    keys: KeySet,
    responder: Responder,
    clients: Vec<Client>,
    /// Ordered by time of arrival, then by number.
    on_the_way: BinaryHeap<Travelling>,
    next_number: u64,
    totals: Totals,
}

struct Client {
    address: SocketAddr,
    clock: Clock,
    session: Option<NtsSession>,
    exchange: Option<(Exchange, NtpTime)>,
    spent: std::collections::HashSet<Vec<u8>>,
}

#[derive(PartialEq, Eq)]
struct Travelling {
    arrives: TrueTime,
    number: u64,
    client: usize,
    to_server: bool,
    octets: Vec<u8>,
}

impl Ord for Travelling {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // The heap yields its greatest: the one that arrives first.
        (other.arrives, other.number).cmp(&(self.arrives, self.number))
    }
}

impl PartialOrd for Travelling {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl World {
    /// A world in which everything follows from `seed`.
    #[must_use]
    pub fn new(seed: u64, link: Link) -> Self {
        let mut entropy = Entropy::from_seed(seed);
        let interleave = Arc::new(Interleave::new(1024, &mut entropy));
        World {
            link,
            server_clock: Clock::default(),
            now: TrueTime(0),
            keys: KeySet::generate(0, &mut entropy),
            responder: Responder::new(Arc::new(Policy::open()), Some(interleave), Entropy::from_seed(!seed)),
            entropy,
            clients: Vec::new(),
            on_the_way: BinaryHeap::new(),
            next_number: 0,
            totals: Totals::default(),
        }
    }

    /// Adds a client; under NTS with keys of its own and a full jar. Returns its number.
    pub fn add_client(&mut self, clock: Clock, algorithm: Option<Algorithm>) -> usize {
        let number = self.clients.len();
        let address = SocketAddr::from((Ipv4Addr::from(0xC612_0000 | number as u32), 40_000));
        let client =
            Client { address, clock, session: None, exchange: None, spent: std::collections::HashSet::new() };
        self.clients.push(client);
        if let Some(algorithm) = algorithm {
            self.exchange_keys(number, algorithm);
        }
        number
    }

    /// Gives a client new keys and eight cookies, as a key exchange would.
    pub fn exchange_keys(&mut self, client: usize, algorithm: Algorithm) {
        let mut key = || {
            let octets: [u8; 64] = self.entropy.array();
            Key::new(algorithm, &octets[..algorithm.key_size()]).expect("the size is the algorithm's")
        };
        let keys = SessionKeys::new(&key(), &key()).expect("both are of one algorithm");
        let mut cookies = vec![vec![0; cookie::size(algorithm)]; COOKIE_COUNT];
        let places = cookies.iter_mut().map(|cookie| (&keys, &mut cookie[..]));
        cookie::seal_all(&self.keys, &mut self.entropy, places);
        let mut session = NtsSession::new(keys.clone(), None);
        cookies.iter().for_each(|cookie| assert!(session.jar.add(cookie), "the jar has room for eight"));
        self.clients[client].session = Some(session);
        self.totals.key_exchanges += 1;
    }

    /// Sends a client's request.
    pub fn ask(&mut self, client: usize) -> Asked {
        let asker = &mut self.clients[client];
        let mut buffer = [0; DATAGRAM_SIZE_MAX];
        let (exchange, size) = match &mut asker.session {
            None => Exchange::plain(&mut self.entropy, &mut buffer),
            Some(session) => match Exchange::nts(session, &mut self.entropy, &mut buffer) {
                Ok(made) => made,
                Err(NoCookie) => return Asked::NoCookie,
            },
        };
        if asker.session.is_some() {
            // Header 48, identifier 36, field header 4: then comes the cookie.
            let cookie_end = 48 + 36 + usize::from(u16::from_be_bytes([buffer[86], buffer[87]]));
            assert!(asker.spent.insert(buffer[88..cookie_end].to_vec()), "a cookie was used twice");
        }
        asker.exchange = Some((exchange, asker.clock.at(self.now)));
        self.totals.sent += 1;
        self.send(client, true, &buffer[..size]);
        Asked::Sent
    }

    fn send(&mut self, client: usize, to_server: bool, octets: &[u8]) {
        let shortest = if to_server { self.link.there_ns } else { self.link.back_ns };
        for (delay, octets) in self.link.carry(octets, shortest, &mut self.entropy) {
            self.next_number += 1;
            let (arrives, number) = (self.now.after(delay), self.next_number);
            self.on_the_way.push(Travelling { arrives, number, client, to_server, octets });
        }
    }

    /// Lets `nanos` of true time pass; returns what reached clients.
    pub fn pass(&mut self, nanos: u64) -> Vec<Event> {
        let end = self.now.after(nanos);
        let mut events = Vec::new();
        while let Some(first) = self.on_the_way.peek().filter(|first| first.arrives <= end) {
            self.now = first.arrives;
            if first.to_server {
                self.serve();
            } else if let Some(datagram) = self.on_the_way.pop() {
                self.totals.reached_clients += 1;
                events.push(self.receive(datagram));
            }
        }
        self.now = end;
        events
    }

    /// Answers what has reached the server by now, and within a service time from now, as one batch.
    fn serve(&mut self) {
        let cut = self.now.after(SERVICE_NS);
        let mut arrived = Vec::new();
        while arrived.len() < BATCH_SIZE
            && self.on_the_way.peek().is_some_and(|next| next.to_server && next.arrives <= cut)
        {
            arrived.extend(self.on_the_way.pop());
        }
        self.totals.reached_server += arrived.len() as u64;
        let mut buffers = vec![vec![0; DATAGRAM_SIZE_MAX]; arrived.len()];
        let clock = self.server_clock;
        let mut batch: Vec<Datagram<'_>> = arrived
            .iter_mut()
            .zip(&mut buffers)
            .map(|(travelling, response)| Datagram {
                source: self.clients[travelling.client].address,
                received: clock.at(travelling.arrives),
                truncated: false,
                request: &mut travelling.octets,
                response,
                response_size: 0,
            })
            .collect();
        let moment = Moment {
            snapshot: snapshot(clock.at(self.now)),
            keys: Some(&self.keys),
            symmetric: None,
            antp: None,
        };
        let mut leaves = clock.at(cut);
        self.responder.respond(moment, &mut leaves, &mut (), &mut batch);
        self.responder.sent(leaves, leaves);
        let responses: Vec<Vec<u8>> = batch
            .iter()
            .map(|datagram| {
                assert!(datagram.response_size <= datagram.request.len(), "amplified");
                datagram.response[..datagram.response_size].to_vec()
            })
            .collect();
        self.now = cut;
        for (travelling, response) in arrived.iter().zip(&responses) {
            if !response.is_empty() {
                self.send(travelling.client, false, response);
            }
        }
    }

    fn receive(&mut self, datagram: Travelling) -> Event {
        let Travelling { client, mut octets, arrives, .. } = datagram;
        let receiver = &mut self.clients[client];
        let Some((exchange, sent)) = &mut receiver.exchange else {
            return Event::Rejected { client, check: Check::Origin };
        };
        match exchange.receive(&mut octets, receiver.session.as_mut()) {
            Err(check) => Event::Rejected { client, check },
            Ok(response) => {
                self.totals.accepted += 1;
                let sample = Sample::new(&response.header, *sent, receiver.clock.at(arrives));
                Event::Accepted {
                    client,
                    sample,
                    truth_ns: self.server_clock.ahead_of(&receiver.clock, arrives),
                }
            }
        }
    }

    /// Rotates the server's cookie keys, keeping `keep` retired ones.
    pub fn rotate_keys(&mut self, keep: usize) {
        self.keys = self.keys.rotate(self.now.0 / 1_000_000_000, keep, &mut self.entropy);
    }

    /// The server loses its keys, as one does that keeps them in memory and restarts.
    pub fn lose_keys(&mut self) {
        self.keys = KeySet::generate(self.now.0 / 1_000_000_000, &mut self.entropy);
    }

    /// Cookies in a client's jar.
    #[must_use]
    pub fn cookie_count(&self, client: usize) -> usize {
        self.clients[client].session.as_ref().map_or(0, |session| session.jar.count())
    }

    /// What became of the datagrams that reached the server.
    #[must_use]
    pub const fn outcomes(&self) -> &Outcomes {
        self.responder.outcomes()
    }

    /// What happened so far.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("now", &self.now).field("totals", &self.totals).finish_non_exhaustive()
    }
}

fn snapshot(taken: NtpTime) -> Snapshot {
    Snapshot::primary(-25, ReferenceId(*b"SIM\0"), taken)
}
