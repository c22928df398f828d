//! ANTP's keys and clients of this world: identities that everybody knows, and the three phases from the client's side.

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_proto::antp::client::{
    Accepted, Association, Bounds, Check, Event, KeyExchange, Negotiated, Negotiation, Offer, Phase,
    Progress, Session, TimeExchange, Wanted,
};
use authentick_proto::antp::kem;
use authentick_proto::antp::server::{Identity, Service, Settings};
use authentick_wire::antp::{Chain, Suite, SuiteList};
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;

use crate::World;

/// A value of the vectors that are published with the specification, `docs/antp-vectors.txt`.
///
/// # Panics
/// If there is no such value.
#[must_use]
pub fn vector(name: &str) -> Vec<u8> {
    let file = include_str!("../../../docs/antp-vectors.txt");
    let value = file.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
    let digits = value.expect("there is a vector of that name").as_bytes().chunks(2);
    digits
        .map(|octet| {
            let octet = str::from_utf8(octet).expect("the file is ASCII");
            u8::from_str_radix(octet, 16).expect("a value is made of hexadecimal digits")
        })
        .collect()
}

/// What the vectors call a suite. Both ways to pad have one RSA key.
#[must_use]
pub const fn vector_name(suite: Suite) -> &'static str {
    match suite {
        Suite::P256 => "p256",
        Suite::X25519 => "x25519",
        _ => "rsa",
    }
}

/// The published identity of a suite. X25519 has no certificate of its own: what a chain holds is nothing to a server.
///
/// # Panics
/// If the suite has no KEM.
#[must_use]
pub fn published_identity(suite: Suite) -> Identity {
    let chain = vector(if suite == Suite::P256 { "p256.chain" } else { "rsa.chain" });
    let chain = Chain::parse(&chain).expect("the vectors hold chains");
    let certificates: Vec<_> = chain.certificates().map(<[u8]>::to_vec).collect();
    let private = vector(&format!("{}.private", vector_name(suite)));
    Identity::new(suite, &private, &certificates).expect("the vectors hold identities")
}

/// The public key that belongs to [`published_identity`].
///
/// # Panics
/// If the suite has no KEM.
#[must_use]
pub fn published_key(suite: Suite) -> PublicKey {
    let kem = kem(suite).expect("the suite has a KEM");
    let public = vector(&format!("{}.public", vector_name(suite)));
    PublicKey::from_spki(kem, &public).expect("the vectors hold public keys")
}

/// A server's identities of `suites`, all of them published.
///
/// # Panics
/// If a suite has no KEM, or is named twice.
#[must_use]
pub fn published_service(suites: &[Suite], settings: Settings) -> Service {
    let identities = suites.iter().map(|&suite| published_identity(suite)).collect();
    Service::new(identities, settings).expect("each suite is named once")
}

/// An offer of `suites`, the best first.
///
/// # Panics
/// If there is none, or more than a request can name.
#[must_use]
pub fn offer(suites: &[Suite]) -> Offer {
    Offer { suites: SuiteList::new(suites).expect("a request can name them"), ..Offer::p256() }
}

/// Clients that stand beside the server: no link, and every answer at once.
impl World {
    /// A negotiation up to its end, and the sizes of its requests and responses.
    ///
    /// # Panics
    /// If the server does not answer as it should.
    pub fn negotiate(&mut self, offer: Offer) -> (Negotiated, Vec<(usize, usize)>) {
        let mut negotiation = Negotiation::new(offer);
        let mut sizes = vec![];
        loop {
            let mut out = [0; DATAGRAM_SIZE_MAX];
            let size = negotiation.request(&mut self.entropy, &mut out);
            let answer = self.answer(&out[..size]);
            sizes.push((size, answer.datagrams[0].len()));
            match negotiation.receive(&answer.datagrams[0]).expect("m2 passes every check") {
                Progress::More => {}
                Progress::Done(done) => return (done, sizes),
            }
        }
    }

    /// m3, m4, and what the client makes of it.
    ///
    /// # Errors
    /// If m4 fails a check.
    ///
    /// # Panics
    /// If there is none.
    pub fn exchange(&mut self, done: &Negotiated) -> Result<Session, Check> {
        let mut out = [0; DATAGRAM_SIZE_MAX];
        let public = published_key(done.suite());
        let exchange = done.exchange(&public, &mut self.entropy, &mut out);
        let (mut exchange, size) = exchange.expect("the key is one of the suite");
        let answer = self.answer(&out[..size]);
        exchange.receive(&answer.datagrams[0])
    }

    /// A session of a client that offers `suite` alone.
    ///
    /// # Panics
    /// If the server does not answer as it should.
    pub fn session(&mut self, suite: Suite) -> Session {
        let (done, _) = self.negotiate(offer(&[suite]));
        self.exchange(&done).expect("m4 passes every check")
    }
}

/// A client of ANTP that trusts the published keys of the suites that it offers.
#[derive(Clone, Debug)]
pub struct AntpClient {
    suites: Vec<Suite>,
    wanted: Wanted,
    bounds: Bounds,
    association: Association,
    waiting: Waiting,
}

/// For what a client waits.
#[derive(Clone, Debug)]
enum Waiting {
    Nothing,
    /// m2.
    Negotiation(Negotiation),
    /// To be asked to go on.
    Negotiated(Negotiated),
    /// m4.
    KeyExchange(KeyExchange),
    /// m6.
    Time(TimeExchange),
}

/// What a datagram brought to an [`AntpClient`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Heard {
    /// Time.
    Time(Accepted),
    /// An early packet, which means nothing until its tag comes.
    Early,
    /// A session key.
    Keys,
    /// A part of the negotiation, after which the client asks again at once.
    Asking,
}

impl AntpClient {
    /// A client that offers `suites`, the best first, and asks within `bounds` for what is `wanted`.
    #[must_use]
    pub fn new(suites: &[Suite], wanted: Wanted, bounds: Bounds) -> Self {
        let (association, waiting) = (Association::new(), Waiting::Nothing);
        AntpClient { suites: suites.to_vec(), wanted, bounds, association, waiting }
    }

    /// What a key exchange left, if there was one.
    #[must_use]
    pub fn session(&mut self) -> Option<&Session> {
        self.association.session().map(|session| &*session)
    }

    /// Writes the request that is due at `now`, by the client's clock, and in second `second` of one that is never
    /// set; returns its size. A key exchange that was lost begins anew.
    ///
    /// # Panics
    /// If `out` is shorter than a request, at most 392 octets.
    pub fn ask(&mut self, second: u64, now: NtpTime, entropy: &mut Entropy, out: &mut [u8]) -> usize {
        let size;
        let waiting = std::mem::replace(&mut self.waiting, Waiting::Nothing);
        self.waiting = match (self.association.phase(second), self.association.session(), waiting) {
            (Phase::Time, Some(session), _) => {
                let (exchange, written) = session.ask(self.wanted, self.bounds, now, entropy, out);
                size = written;
                Waiting::Time(exchange)
            }
            (_, _, Waiting::Negotiated(done)) => {
                let exchange = done.exchange(&published_key(done.suite()), entropy, out);
                let (exchange, written) = exchange.expect("the key is one of the suite");
                size = written;
                Waiting::KeyExchange(exchange)
            }
            (_, _, waiting) => {
                let mut negotiation = match waiting {
                    Waiting::Negotiation(negotiation) => negotiation,
                    _ => Negotiation::new(offer(&self.suites)),
                };
                size = negotiation.request(entropy, out);
                Waiting::Negotiation(negotiation)
            }
        };
        size
    }

    /// Takes a datagram that arrives at `now`, in second `second`.
    ///
    /// # Errors
    /// On a check that fails: the client goes on waiting.
    pub fn receive(&mut self, datagram: &[u8], second: u64, now: NtpTime) -> Result<Heard, Check> {
        let heard = self.heard(datagram, second, now);
        if let Err(check) = &heard {
            self.association.failed(check, second);
        }
        heard
    }

    fn heard(&mut self, datagram: &[u8], second: u64, now: NtpTime) -> Result<Heard, Check> {
        match &mut self.waiting {
            Waiting::Nothing | Waiting::Negotiated(_) => Err(Check::Origin),
            Waiting::Negotiation(negotiation) => {
                if let Progress::Done(done) = negotiation.receive(datagram)? {
                    self.waiting = Waiting::Negotiated(done);
                }
                Ok(Heard::Asking)
            }
            Waiting::KeyExchange(exchange) => {
                self.association.establish(exchange.receive(datagram)?, second);
                self.waiting = Waiting::Nothing;
                Ok(Heard::Keys)
            }
            Waiting::Time(exchange) => {
                let session = self.association.session().expect("a time request needs a session");
                match exchange.receive(datagram, now, session)? {
                    Event::Early => Ok(Heard::Early),
                    Event::Accepted(accepted) => {
                        self.association.accepted();
                        Ok(Heard::Time(accepted))
                    }
                }
            }
        }
    }
}
