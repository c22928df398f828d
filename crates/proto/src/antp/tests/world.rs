//! A server without clock or socket, and what a client needs to talk to it.

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_wire::antp::{Suite, SuiteList};
use authentick_wire::datagram::Datagram;
use authentick_wire::header::{Leap, ReferenceId};
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::packet::Packet;
use authentick_wire::time::{NtpShort, NtpSpan, NtpTime};

use crate::antp::client::{Check, Negotiated, Negotiation, Offer, Progress, Session};
use crate::antp::kem;
use crate::antp::server::{
    Identity, Instant, Outcome, Reply, Request, Service, Settings, TimeGroup, Unfit, classify, overhead,
};
use crate::antp::state_key::StateKeys;
use crate::server::snapshot::Snapshot;

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
    Snapshot {
        leap: Leap::None,
        stratum: 1,
        precision: -25,
        root_delay: NtpShort::ZERO,
        root_dispersion: NtpShort::ZERO,
        reference_id: ReferenceId(*b"SIM\0"),
        reference: now,
        taken: now,
    }
}

pub(super) struct World {
    pub(super) service: Service,
    pub(super) keys: StateKeys,
    pub(super) entropy: Entropy,
    /// Over which the client sends.
    pub(super) source: std::net::SocketAddr,
}

/// What the server sends for a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) datagrams: Vec<Vec<u8>>,
    pub(super) outcome: Option<Outcome>,
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
            entropy,
            source: ([198, 18, 0, 2], 123).into(),
        }
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
        self.answer_at(request, BEGIN, BEGIN)
    }

    fn answer_any(&mut self, octets: &[u8], received: NtpTime, now: NtpTime) -> Answer {
        let silence = |outcome| Answer { datagrams: vec![], outcome };
        let Ok(packet) = Packet::parse(octets) else { return silence(None) };
        let snapshot = snapshot(now);
        let at = Instant { received, now, snapshot: &snapshot };
        let mut out = [0xEE; DATAGRAM_SIZE_MAX];
        let (keys, entropy) = (&self.keys, &mut self.entropy);
        let reply = match classify(&packet) {
            Ok(Request::Negotiation(request, field)) => {
                self.service.negotiate(keys, &at, entropy, &packet, (&request, field), &mut out)
            }
            Ok(Request::KeyExchange(request, field)) => {
                self.service.exchange(keys, &at, entropy, &packet, (&request, field), &mut out)
            }
            Ok(Request::Time(_)) => return self.time(octets, received, now),
            Err(Unfit::Refused(code, outcome)) => self.service.refuse(&at, &packet, code, outcome, &mut out),
            Err(Unfit::Silent(outcome)) => return silence(Some(outcome)),
            Err(Unfit::NotAntp) => return silence(None),
        };
        let Reply { size, outcome } = reply;
        Answer {
            datagrams: (size > 0).then(|| out[..size].to_vec()).into_iter().collect(),
            outcome: Some(outcome),
        }
    }

    fn time(&mut self, octets: &[u8], received: NtpTime, now: NtpTime) -> Answer {
        let (mut request, mut response) = (octets.to_vec(), vec![0xEE; DATAGRAM_SIZE_MAX]);
        let mut batch = [Datagram {
            source: self.source,
            received,
            truncated: false,
            request: &mut request,
            response: &mut response,
            response_size: 0,
        }];
        let mut group = TimeGroup::open(&self.keys, &snapshot(now), &mut self.entropy, &mut batch);
        group.stamp(now, &snapshot(now), &mut batch);
        let mut datagrams: Vec<Vec<u8>> = group.early(&batch).map(|(_, early)| early.to_vec()).collect();
        let slots = group.finish(&mut batch);
        let (early_size, Reply { size, outcome }) = (slots[0].early_size(), slots[0].reply);
        if size > 0 {
            datagrams.push(batch[0].response[early_size..][..size].to_vec());
        }
        Answer { datagrams, outcome: Some(outcome) }
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
