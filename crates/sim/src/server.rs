//! A server in virtual time, for every scheme: a responder, and all that it takes as arguments.
//!
//! It reads no clock: who asks says when a datagram arrives and when its answer leaves, both by the server's clock.
//! Public-key work is done at once, after the batch that asked for it.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::sync::Arc;

use authentick_crypto::{Algorithm, Entropy, Key};
use authentick_proto::antp::nonce::Nonces;
use authentick_proto::antp::server::{ExchangeOutcome, KEY_RESPONSE_SIZE, KeyExchange, Service, overhead};
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::client::NtsSession;
use authentick_proto::cookie::{self, SessionKeys};
use authentick_proto::keyset::KeySet;
use authentick_proto::server::antp::{AntpLimits, AntpMoment, Full, KeyExchanges};
use authentick_proto::server::interleave::Interleave;
use authentick_proto::server::outcome::{Outcome, Outcomes};
use authentick_proto::server::snapshot::Snapshot;
use authentick_proto::server::{Moment, Policy, Responder};
use authentick_proto::symmetric::SymmetricKeys;
use authentick_wire::datagram::Datagram;
use authentick_wire::header::{Mode, ReferenceId};
use authentick_wire::limits::{COOKIE_COUNT, DATAGRAM_SIZE_MAX};
use authentick_wire::time::NtpTime;

use crate::Clock;

/// Exchanges that interleaved mode remembers: few, as a world is made anew for each seed.
const INTERLEAVE_ENTRY_COUNT: usize = 1024;

/// A datagram that has reached the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Who sent it, and where answers go.
    pub source: SocketAddr,
    /// When it arrived, by the server's clock.
    pub received: NtpTime,
    /// The datagram.
    pub octets: Vec<u8>,
}

/// What the server does with a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it sends back, in the order of departure; nothing is silence. Only ANTP's separate-tag mode sends two.
    pub datagrams: Vec<Vec<u8>>,
    /// How it counts the datagram.
    pub outcome: Outcome,
}

/// ANTP as a server has it.
#[derive(Debug)]
pub struct AntpServer {
    /// Private keys, certificates and settings.
    pub service: Service,
    /// The keys that seal C1 and C2.
    pub keys: StateKeys,
    /// How often each phase may be asked for.
    pub limits: AntpLimits,
    /// Key exchanges for which there is room in each batch.
    pub room: usize,
    /// Of the thread for public-key work.
    nonces: Nonces,
}

/// A server; see the module's documentation.
#[derive(Debug)]
pub struct Server {
    /// The clock by which a [`crate::World`] tells it what time it is.
    pub clock: Clock,
    /// What it says about its clock, which was set when the first datagram of a batch arrived.
    pub snapshot: Snapshot,
    /// The keys of cookies; without them NTS requests are answered with NTSN.
    pub cookie_keys: Option<KeySet>,
    /// The symmetric keys; without them no key is known.
    pub symmetric: Option<SymmetricKeys>,
    /// ANTP, where it is served.
    pub antp: Option<AntpServer>,
    responder: Responder,
    /// Of key exchanges.
    entropy: Entropy,
}

impl Server {
    /// A server of stratum 1 for everyone that has cookie keys and nothing else; all that it draws follows from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut entropy = Entropy::from_seed(seed);
        Server {
            clock: Clock::default(),
            snapshot: Snapshot::primary(-25, ReferenceId(*b"SIM\0"), NtpTime::ZERO),
            cookie_keys: Some(KeySet::generate(0, &mut entropy)),
            symmetric: None,
            antp: None,
            responder: Responder::new(Arc::new(Policy::open()), None, Entropy::from_seed(!seed)),
            entropy,
        }
    }

    /// The same with another policy, and with interleaved mode.
    #[must_use]
    pub fn interleaved(mut self, policy: Policy) -> Self {
        let table = Arc::new(Interleave::new(INTERLEAVE_ENTRY_COUNT, &mut self.entropy));
        let entropy = Entropy::from_seed(self.entropy.u64());
        Server { responder: Responder::new(Arc::new(policy), Some(table), entropy), ..self }
    }

    /// The same with ANTP.
    #[must_use]
    pub fn with_antp(mut self, service: Service) -> Self {
        let keys = StateKeys::generate(0, &mut self.entropy);
        let (limits, nonces) = (AntpLimits::default(), Nonces::new());
        Server { antp: Some(AntpServer { service, keys, limits, room: usize::MAX, nonces }), ..self }
    }

    /// What is drawn from here on follows from `seed`, as in a server that was put back to a snapshot of its memory.
    pub fn reseed(&mut self, seed: u64) {
        self.entropy = Entropy::from_seed(seed);
        self.responder.set_entropy(Entropy::from_seed(!seed));
        if let Some(antp) = &mut self.antp {
            antp.nonces = Nonces::new();
        }
    }

    /// The responder, for what it has counted.
    #[must_use]
    pub const fn responder(&self) -> &Responder {
        &self.responder
    }

    /// What became of all datagrams so far.
    #[must_use]
    pub const fn outcomes(&self) -> &Outcomes {
        self.responder.outcomes()
    }

    /// What a key exchange gives to a client of NTS: keys of its own and a full jar.
    ///
    /// # Panics
    /// If the server has no cookie keys.
    pub fn exchange_keys(&mut self, algorithm: Algorithm) -> NtsSession {
        let mut key = || {
            let octets: [u8; 64] = self.entropy.array();
            Key::new(algorithm, &octets[..algorithm.key_size()]).expect("the size is the algorithm's")
        };
        let keys = SessionKeys::new(&key(), &key()).expect("both are of one algorithm");
        let mut cookies = vec![vec![0; cookie::size(algorithm)]; COOKIE_COUNT];
        let places = cookies.iter_mut().map(|cookie| (&keys, &mut cookie[..]));
        let cookie_keys = self.cookie_keys.as_ref().expect("a server without cookie keys exchanges none");
        cookie::seal_all(cookie_keys, &mut self.entropy, places);
        let mut session = NtsSession::new(keys.clone(), None);
        cookies.iter().for_each(|cookie| assert!(session.jar.add(cookie), "the jar has room for eight"));
        session
    }

    /// Rotates the cookie keys at second `now`, keeping `keep` retired ones.
    pub fn rotate_cookie_keys(&mut self, now: u64, keep: usize) {
        self.cookie_keys = self.cookie_keys.as_ref().map(|keys| keys.rotate(now, keep, &mut self.entropy));
    }

    /// Forgets the cookie keys at second `now`, as a server does that keeps them in memory and restarts.
    pub fn lose_cookie_keys(&mut self, now: u64) {
        self.cookie_keys = Some(KeySet::generate(now, &mut self.entropy));
    }

    /// Answers one datagram, whose answer leaves at `sent`.
    ///
    /// # Panics
    /// As [`Server::answer_batch`].
    pub fn answer(&mut self, arrival: Arrival, sent: NtpTime) -> Answer {
        let before = *self.outcomes();
        let datagrams = self.answer_batch(vec![arrival], sent).remove(0);
        let after = self.outcomes();
        let ended = Outcome::ALL.iter().find(|&&outcome| after.of(outcome) > before.of(outcome));
        Answer { datagrams, outcome: *ended.expect("each datagram has an outcome") }
    }

    /// Answers what has arrived together, at most [`authentick_proto::limits::BATCH_SIZE`] datagrams; all answers leave
    /// at `sent`. Returns what goes back for each, in the order of departure.
    ///
    /// # Panics
    /// If the responder breaks what always holds: a datagram has one outcome, all that goes back for it is no larger
    /// than it is, and nothing is kept of its sender. If there are more datagrams than in a batch.
    pub fn answer_batch(&mut self, mut arrivals: Vec<Arrival>, mut sent: NtpTime) -> Vec<Vec<Vec<u8>>> {
        let Some(first) = arrivals.first() else { return Vec::new() };
        let snapshot = Snapshot { reference: first.received, taken: first.received, ..self.snapshot };
        let count_before = self.responder.outcomes().total();
        let mut buffers = vec![vec![0xEE; DATAGRAM_SIZE_MAX]; arrivals.len()];
        let mut batch: Vec<Datagram<'_>> = arrivals
            .iter_mut()
            .zip(&mut buffers)
            .map(|(arrival, response)| Datagram {
                source: arrival.source,
                received: arrival.received,
                truncated: false,
                to_many: false,
                request: &mut arrival.octets,
                response,
                response_size: 0,
            })
            .collect();
        let exchanges = Waiting::with_room(self.antp.as_ref().map_or(0, |antp| antp.room));
        let antp = self.antp.as_ref().map(|AntpServer { service, keys, limits, .. }| AntpMoment {
            service,
            keys,
            limits,
            exchanges: &exchanges,
        });
        let (keys, symmetric) = (self.cookie_keys.as_ref(), self.symmetric.as_ref());
        let moment = Moment { snapshot, keys, symmetric, antp };
        self.responder.respond(moment, &mut sent, &mut (), &mut batch);
        self.responder.sent(sent, sent);
        let mut answers: Vec<Vec<Vec<u8>>> =
            (0..batch.len()).map(|index| self.sent_at_once(&batch, index)).collect();
        for (index, exchange) in exchanges.waiting.take() {
            assert!(answers[index].is_empty(), "what waits for public-key work is not answered yet");
            answers[index].extend(self.exchange(&exchange));
        }
        assert_eq!(self.outcomes().total() - count_before, arrivals.len() as u64, "an outcome each");
        assert!(self.responder.is_blank(), "something of a client is kept");
        for (arrival, answer) in arrivals.iter().zip(&answers) {
            let overhead = overhead(&arrival.source);
            let size: usize = answer.iter().map(|datagram| datagram.len() + overhead).sum();
            assert!(size <= arrival.octets.len() + overhead, "amplified: {} to {size}", arrival.octets.len());
            let mode = arrival.octets.first().map(|first| Mode::from_bits(*first));
            let asks = matches!(mode, Some(Mode::Client | Mode::SymmetricActive | Mode::Reserved));
            assert!(asks || answer.is_empty(), "an answer to what asks nothing: {mode:?}");
        }
        answers
    }

    /// The early packet, where there is one, and the response behind it.
    fn sent_at_once(&self, batch: &[Datagram<'_>], index: usize) -> Vec<Vec<u8>> {
        let early = self.responder.early().iter().find(|early| early.index == index);
        let early_size = early.map_or(0, |early| early.size);
        let parts = [(0, early_size), (early_size, batch[index].response_size)];
        let parts = parts.into_iter().filter(|(_, size)| *size > 0);
        parts.map(|(start, size)| batch[index].response[start..][..size].to_vec()).collect()
    }

    /// Does public-key work; returns m4, if there is one.
    fn exchange(&mut self, exchange: &KeyExchange) -> Option<Vec<u8>> {
        let AntpServer { service, keys, nonces, .. } = self.antp.as_mut()?;
        let mut out = [0; KEY_RESPONSE_SIZE];
        match service.exchange(keys, (nonces, &mut self.entropy), exchange, &mut out) {
            ExchangeOutcome::Done => Some(out.to_vec()),
            ExchangeOutcome::BadCiphertext | ExchangeOutcome::NoSuite => None,
        }
    }
}

/// Public-key work that is done as soon as the packet worker is through.
struct Waiting {
    room: Cell<usize>,
    waiting: RefCell<Vec<(usize, KeyExchange)>>,
}

impl Waiting {
    fn with_room(room: usize) -> Self {
        Waiting { room: Cell::new(room), waiting: RefCell::default() }
    }
}

impl KeyExchanges for Waiting {
    fn offer(&self, index: usize, exchange: KeyExchange) -> Result<(), Full> {
        let room = self.room.get().checked_sub(1).ok_or(Full)?;
        self.room.set(room);
        self.waiting.borrow_mut().push((index, exchange));
        Ok(())
    }
}
