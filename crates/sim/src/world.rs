//! One server, its clients, and the datagrams on their way.

use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};

use authentick_crypto::{Algorithm, Entropy};
use authentick_proto::antp::client as antp;
use authentick_proto::client::{Check, NoCookie, Sample};
use authentick_proto::limits::BATCH_SIZE;
use authentick_proto::server::Policy;
use authentick_proto::server::outcome::Outcomes;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;

use crate::client::{Client, Credentials, Scheme, Verdict};
use crate::server::{Answer, Arrival, Server};
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
    /// The same at a client of ANTP.
    RejectedAntp {
        /// The client's number.
        client: usize,
        /// Which one.
        check: antp::Check,
    },
    /// It passed every check, and brings a client of ANTP nearer to time.
    Part {
        /// The client's number.
        client: usize,
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
    /// Key exchanges of NTS.
    pub key_exchanges: u64,
}

/// A world; see the crate's documentation.
pub struct World {
    /// The link between every client and the server.
    pub link: Link,
    /// The server.
    pub server: Server,
    /// Decides what is drawn by clients and links.
    pub entropy: Entropy,
    /// Where datagrams come from that [`World::answer`] brings to the server.
    pub source: SocketAddr,
    now: TrueTime,
    clients: Vec<Client>,
    /// Ordered by time of arrival, then by number.
    on_the_way: BinaryHeap<Travelling>,
    next_number: u64,
    totals: Totals,
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
    /// A world in which everything follows from `seed`. Its server is for everyone, in interleaved mode too.
    #[must_use]
    pub fn new(seed: u64, link: Link) -> Self {
        World::with_server(seed, link, Server::new(!seed).interleaved(Policy::open()))
    }

    /// The same around another server.
    #[must_use]
    pub fn with_server(seed: u64, link: Link, server: Server) -> Self {
        World {
            link,
            server,
            entropy: Entropy::from_seed(seed),
            source: ([198, 18, 0, 2], 123).into(),
            now: TrueTime(0),
            clients: Vec::new(),
            on_the_way: BinaryHeap::new(),
            next_number: 0,
            totals: Totals::default(),
        }
    }

    /// Adds a client, which knows what its scheme takes; under NTS it has keys of its own and a full jar. Returns its
    /// number.
    ///
    /// # Panics
    /// If the server has no cookie keys, and the scheme is NTS; if the suite has no KEM, and the scheme is ANTP.
    pub fn add_client(&mut self, clock: Clock, scheme: Scheme) -> usize {
        let number = self.clients.len();
        let address = SocketAddr::from((Ipv4Addr::from(0xC612_0000 | number as u32), 40_000));
        self.totals.key_exchanges += u64::from(matches!(scheme, Scheme::Nts(_)));
        let credentials = Credentials::new(scheme, &mut self.server);
        self.clients.push(Client::new(address, clock, credentials));
        number
    }

    /// Gives a client of NTS new keys and eight cookies, as a key exchange would.
    ///
    /// # Panics
    /// If it is another client, or the server has no cookie keys.
    pub fn exchange_keys(&mut self, client: usize, algorithm: Algorithm) {
        self.clients[client].use_session(self.server.exchange_keys(algorithm));
        self.totals.key_exchanges += 1;
    }

    /// Sends the request that a client makes next: under ANTP one for the keys, as long as it has none.
    pub fn ask(&mut self, client: usize) -> Asked {
        let mut buffer = [0; DATAGRAM_SIZE_MAX];
        match self.clients[client].ask(self.now, &mut self.entropy, &mut buffer) {
            Err(NoCookie) => Asked::NoCookie,
            Ok(size) => {
                self.totals.sent += 1;
                self.send(client, true, &buffer[..size]);
                Asked::Sent
            }
        }
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
        let (mut clients, mut arrivals) = (Vec::new(), Vec::new());
        while arrivals.len() < BATCH_SIZE
            && self.on_the_way.peek().is_some_and(|next| next.to_server && next.arrives <= cut)
        {
            let Some(Travelling { arrives, client, octets, .. }) = self.on_the_way.pop() else { break };
            let (source, received) = (self.clients[client].address, self.server.clock.at(arrives));
            clients.push(client);
            arrivals.push(Arrival { source, received, octets });
        }
        self.totals.reached_server += arrivals.len() as u64;
        let answers = self.server.answer_batch(arrivals, self.server.clock.at(cut));
        self.now = cut;
        for (client, answer) in clients.into_iter().zip(answers) {
            answer.iter().for_each(|datagram| self.send(client, false, datagram));
        }
    }

    fn receive(&mut self, datagram: Travelling) -> Event {
        let Travelling { client, mut octets, arrives, .. } = datagram;
        match self.clients[client].receive(&mut octets, arrives) {
            Verdict::Rejected(check) => Event::Rejected { client, check },
            Verdict::RejectedAntp(check) => Event::RejectedAntp { client, check },
            Verdict::Part { asks } => {
                if asks {
                    self.ask(client);
                }
                Event::Part { client }
            }
            Verdict::Accepted(sample) => {
                self.totals.accepted += 1;
                let truth_ns = self.server.clock.ahead_of(&self.clients[client].clock, arrives);
                Event::Accepted { client, sample, truth_ns }
            }
        }
    }

    /// What the server says to a datagram that arrives from [`World::source`] when its clock shows `received`, and
    /// whose answer leaves at `sent`, whatever the link and the time of this world are.
    pub fn answer_at(&mut self, octets: &[u8], received: NtpTime, sent: NtpTime) -> Answer {
        self.server.answer(Arrival { source: self.source, received, octets: octets.to_vec() }, sent)
    }

    /// The same now, and without a moment's delay.
    pub fn answer(&mut self, octets: &[u8]) -> Answer {
        let now = self.server_time();
        self.answer_at(octets, now, now)
    }

    /// What the server's clock shows.
    #[must_use]
    pub fn server_time(&self) -> NtpTime {
        self.server.clock.at(self.now)
    }

    /// Rotates the server's cookie keys, keeping `keep` retired ones.
    pub fn rotate_keys(&mut self, keep: usize) {
        self.server.rotate_cookie_keys(self.now.seconds(), keep);
    }

    /// The server loses its keys, as one does that keeps them in memory and restarts.
    pub fn lose_keys(&mut self) {
        self.server.lose_cookie_keys(self.now.seconds());
    }

    /// Cookies in a client's jar.
    #[must_use]
    pub fn cookie_count(&self, client: usize) -> usize {
        self.clients[client].cookie_count()
    }

    /// What became of the datagrams that reached the server.
    #[must_use]
    pub const fn outcomes(&self) -> &Outcomes {
        self.server.outcomes()
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
