//! A server without clock or socket, and what a client needs to talk to it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_wire::antp::{Suite, SuiteList};
use authentick_wire::datagram::Datagram;
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::{NtpSpan, NtpTime};

use crate::antp::client::{Check, Negotiated, Negotiation, Offer, Progress, Session};
use crate::antp::kem;
use crate::antp::nonce::Nonces;
use crate::antp::server::{
    ExchangeOutcome, Identity, KEY_RESPONSE_SIZE, KeyExchange, Service, Settings, overhead,
};
use crate::antp::state_key::StateKeys;
use crate::server::antp::{AntpLimits, AntpMoment, Full, KeyExchanges};
use crate::server::outcome::Outcome;
use crate::server::snapshot::Snapshot;
use crate::server::{Moment, Policy, Responder};

/// A value of the published vectors.
pub(super) fn vector(name: &str) -> Vec<u8> {
    let file = include_str!("../../../../../docs/antp-vectors.txt");
    let value =
        file.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = ")).expect("there is such");
    value.as_bytes().chunks(2).map(|d| u8::from_str_radix(str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

/// The certificates of a chain of the vectors.
pub(super) fn certificates(name: &str) -> Vec<Vec<u8>> {
    let chain = vector(&format!("{name}.chain"));
    let chain = authentick_wire::antp::Chain::parse(&chain).unwrap();
    chain.certificates().map(<[u8]>::to_vec).collect()
}

pub(super) fn name(suite: Suite) -> &'static str {
    match suite {
        Suite::P256 => "p256",
        Suite::X25519 => "x25519",
        _ => "rsa",
    }
}

pub(super) fn public_key(suite: Suite) -> PublicKey {
    PublicKey::from_spki(kem(suite).unwrap(), &vector(&format!("{}.public", name(suite)))).unwrap()
}

/// The instant at which every world begins.
pub(super) const BEGIN: NtpTime = NtpTime::from_unix(1_700_000_000, 0);

/// A clock that was looked at just now.
fn snapshot(now: NtpTime) -> Snapshot {
    Snapshot::primary(-25, ReferenceId(*b"SIM\0"), now)
}

pub(super) struct World {
    pub(super) responder: Responder,
    pub(super) service: Service,
    pub(super) keys: StateKeys,
    pub(super) entropy: Entropy,
    /// Of the thread for public-key work.
    nonces: Nonces,
    /// What the server's clock shows where nothing else is said.
    pub(super) now: NtpTime,
    /// Over which the client sends.
    pub(super) source: std::net::SocketAddr,
    pub(super) limits: AntpLimits,
    /// Key exchanges for which there is room.
    pub(super) room: usize,
}

/// What the server sends for a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) datagrams: Vec<Vec<u8>>,
    pub(super) outcome: Outcome,
}

/// Public-key work that is done as soon as the packet worker is through.
struct Inline {
    room: Cell<usize>,
    waiting: RefCell<Vec<KeyExchange>>,
}

impl KeyExchanges for Inline {
    fn offer(&self, index: usize, exchange: KeyExchange) -> Result<(), Full> {
        assert_eq!(index, 0, "the batch has one datagram");
        let room = self.room.get().checked_sub(1).ok_or(Full)?;
        self.room.set(room);
        self.waiting.borrow_mut().push(exchange);
        Ok(())
    }
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        World::with(seed, &Suite::ALL, Settings::default())
    }

    pub(super) fn with(seed: u64, suites: &[Suite], settings: Settings) -> Self {
        let identities = suites.iter().map(|&suite| {
            // The vectors have no certificate for X25519; which one a chain holds is nothing to the server.
            let chain = certificates(if suite == Suite::P256 { "p256" } else { "rsa" });
            Identity::new(suite, &vector(&format!("{}.private", name(suite))), &chain).unwrap()
        });
        let mut entropy = Entropy::from_seed(seed);
        World {
            service: Service::new(identities.collect(), settings).unwrap(),
            keys: StateKeys::generate(0, &mut entropy),
            responder: Responder::new(Arc::new(Policy::open()), None, Entropy::from_seed(!seed)),
            entropy,
            nonces: Nonces::new(),
            now: BEGIN,
            source: ([198, 18, 0, 2], 123).into(),
            limits: AntpLimits::default(),
            room: usize::MAX,
        }
    }

    /// Makes the server draw what follows from `seed`.
    pub(super) fn reseed(&mut self, seed: u64) {
        (self.entropy, self.nonces) = (Entropy::from_seed(seed), Nonces::new());
        self.responder.set_entropy(Entropy::from_seed(!seed));
    }

    /// The answer to a datagram that arrives when the server's clock shows `received` and leaves at `sent`. No answer
    /// is ever larger than its request.
    pub(super) fn answer_at(&mut self, request: &[u8], received: NtpTime, sent: NtpTime) -> Answer {
        let answer = self.answer_any(request, received, sent);
        let overhead = overhead(&self.source);
        let size: usize = answer.datagrams.iter().map(|datagram| datagram.len() + overhead).sum();
        assert!(size <= request.len() + overhead, "amplified: {} to {size}", request.len());
        answer
    }

    pub(super) fn answer(&mut self, request: &[u8]) -> Answer {
        self.answer_at(request, self.now, self.now)
    }

    fn answer_any(&mut self, octets: &[u8], received: NtpTime, mut now: NtpTime) -> Answer {
        let before = *self.responder.outcomes();
        let (mut request, mut response) = (octets.to_vec(), vec![0xEE; DATAGRAM_SIZE_MAX]);
        let mut batch = [Datagram {
            source: self.source,
            received,
            truncated: false,
            request: &mut request,
            response: &mut response,
            response_size: 0,
        }];
        let inline = Inline { room: Cell::new(self.room), waiting: RefCell::default() };
        let (service, keys, limits) = (&self.service, &self.keys, &self.limits);
        let antp = Some(AntpMoment { service, keys, limits, exchanges: &inline });
        let moment = Moment { snapshot: snapshot(now), keys: None, symmetric: None, antp };
        self.responder.respond(moment, &mut now, &mut (), &mut batch);
        let [datagram] = batch;
        let early_size = self.responder.early().first().map_or(0, |early| early.size);
        let parts = [(0, early_size), (early_size, datagram.response_size)];
        let mut datagrams: Vec<Vec<u8>> = parts
            .into_iter()
            .filter(|(_, size)| *size > 0)
            .map(|(start, size)| datagram.response[start..][..size].to_vec())
            .collect();
        for exchange in inline.waiting.take() {
            assert!(datagrams.is_empty(), "what is queued is not answered yet");
            let mut out = [0; KEY_RESPONSE_SIZE];
            if service.exchange(keys, (&mut self.nonces, &mut self.entropy), &exchange, &mut out)
                == ExchangeOutcome::Done
            {
                datagrams.push(out.to_vec());
            }
        }
        let after = self.responder.outcomes();
        assert!(self.responder.is_blank(), "something of a client is kept");
        let mut ended = Outcome::ALL.iter().filter(|&&outcome| after.of(outcome) > before.of(outcome));
        let (outcome, None) = (*ended.next().unwrap(), ended.next()) else { panic!("one outcome each") };
        Answer { datagrams, outcome }
    }

    /// A negotiation up to its end, and the sizes of requests and responses.
    pub(super) fn negotiate(&mut self, offer: Offer) -> (Negotiated, Vec<(usize, usize)>) {
        let mut negotiation = Negotiation::new(offer);
        let mut sizes = vec![];
        loop {
            let mut out = [0; DATAGRAM_SIZE_MAX];
            let size = negotiation.request(&mut self.entropy, &mut out);
            let answer = self.answer(&out[..size]);
            sizes.push((size, answer.datagrams[0].len()));
            if let Progress::Done(done) = negotiation.receive(&answer.datagrams[0]).unwrap() {
                return (done, sizes);
            }
        }
    }

    /// m3 and the client's half of it.
    pub(super) fn exchange(&mut self, done: &Negotiated) -> Result<Session, Check> {
        let mut out = [0; DATAGRAM_SIZE_MAX];
        let public = public_key(done.suite());
        let (mut exchange, size) = done.exchange(&public, &mut self.entropy, &mut out).unwrap();
        let answer = self.answer(&out[..size]);
        exchange.receive(&answer.datagrams[0])
    }

    pub(super) fn session(&mut self, suite: Suite) -> Session {
        let (done, _) = self.negotiate(offer(&[suite]));
        self.exchange(&done).unwrap()
    }
}

pub(super) fn offer(suites: &[Suite]) -> Offer {
    Offer { suites: SuiteList::new(suites).unwrap(), ..Offer::p256() }
}

pub(super) fn after(nanos: i64) -> NtpTime {
    BEGIN + NtpSpan::from_nanos(nanos)
}

pub(super) fn flipped(octets: &[u8], bit: usize) -> Vec<u8> {
    let mut changed = octets.to_vec();
    changed[bit / 8] ^= 1 << (bit % 8);
    changed
}
