//! The server's half: what goes into m2, m4 and m6. It keeps nothing of any client.
//!
//! Nothing here writes an NTP header, and nothing decides who is answered: both are the responder's
//! ([`crate::server::antp`]), which takes batches through these functions. Key exchanges are public-key work: a
//! [`KeyExchange`] holds one, without references, until [`Service::exchange`] is called wherever there is time for it.
//!
//! Every answer is at most as large as its request, headers of IP included. What nobody can answer gets silence.

mod exchange;
mod time;

pub use exchange::{ExchangeOutcome, KEY_RESPONSE_SIZE, KeyExchange};
pub(crate) use time::{EARLY_PACKET_SIZE, Extras, lay_out};

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use authentick_crypto::Entropy;
use authentick_crypto::kdf::sha256;
use authentick_crypto::kem::{BadKey, PrivateKey};
use authentick_wire::antp::{
    self, Antp, ErrorCode, ErrorMessage, HASH_SIZE, KeyRequest, Message, NegotiationRequest,
    NegotiationResponse, PREFIX_SIZE, Suite, SuiteList, Suites, TimeRequest, chain_size, chunk_size_max,
    emit_chunk,
};
use authentick_wire::header::Mode;
use authentick_wire::limits::{
    ANTP_CERTIFICATE_COUNT_MAX, ANTP_CHAIN_SIZE_MAX, ANTP_PAYLOAD_SIZE_DEFAULT, ANTP_PAYLOAD_SIZE_MAX,
    FIELD_HEADER_SIZE, HEADER_SIZE,
};
use authentick_wire::packet::Packet;
use authentick_wire::{NoRoom, Reason, Writer};
use thiserror::Error;

use super::nonce::Nonces;
use super::source::{PrefixSizes, SourcePrefix};
use super::state::Pending;
use super::state_key::StateKeys;
use super::{kem, transcript};
use crate::server::outcome::Outcome;

/// Default lifetime of a session key, in seconds: seven days.
pub const LIFETIME_SECONDS: u32 = 7 * 86_400;
/// The longest lifetime of a session key, in seconds: 31 days.
pub const LIFETIME_SECONDS_MAX: u32 = 31 * 86_400;

/// What a datagram asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// m1, with its whole field.
    Negotiation(NegotiationRequest<'a>, &'a [u8]),
    /// m3, with its whole field: public-key work.
    KeyExchange(KeyRequest<'a>, &'a [u8]),
    /// m5.
    Time(TimeRequest<'a>),
}

/// What a server needs of an m1: unlike that, it outlives the borrow of the octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// What the client can use.
    pub suites: SuiteList,
    /// SHA-256 of the chain that the client holds; zero for none.
    pub held: [u8; HASH_SIZE],
    /// Octets of the chain that the client has from earlier rounds.
    pub chain_offset: u16,
    /// The largest response that the client accepts, in octets of UDP payload.
    pub payload_size_max: u16,
}

impl From<&NegotiationRequest<'_>> for Offered {
    fn from(asked: &NegotiationRequest<'_>) -> Self {
        let NegotiationRequest { suites, nonce: _, held, chain_offset, payload_size_max } = *asked;
        Offered { suites, held: *held, chain_offset, payload_size_max }
    }
}

/// Why a datagram is not a request that can be answered as it wishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// There is nothing of ANTP in it: it is served as whatever else it is.
    NotAntp,
    /// It is to be answered with an error.
    Refused(ErrorCode, Outcome),
    /// It is not answered.
    Silent(Outcome),
}

/// Takes a datagram apart.
//= antp#carrier-8, antp#servers-7
pub fn classify<'a>(packet: &Packet<'a>) -> Result<Request<'a>, Unfit> {
    let is_request = packet.mode() == Mode::Client;
    let found = match Antp::locate(packet) {
        Ok(None) => return Err(Unfit::NotAntp),
        Ok(Some(found)) if is_request => found,
        Err(malformed) if is_request && malformed.reason == Reason::AntpVersion => {
            let kind =
                packet.octets()[malformed.offset..].first_chunk().map(|kind| u16::from_be_bytes(*kind));
            let asks = [antp::NEG_REQ, antp::KEX_REQ, antp::TS_REQ].map(|kind| Some(kind.0)).contains(&kind);
            return Err(match asks {
                true => Unfit::Refused(ErrorCode::VERSION, Outcome::AntpVersion),
                false => Unfit::Silent(Outcome::AntpMalformed),
            });
        }
        Ok(Some(_)) => return Err(Unfit::Silent(Outcome::NotARequest)),
        Err(_) => return Err(Unfit::Silent(Outcome::AntpMalformed)),
    };
    let field = found.field(packet.octets());
    match found.message {
        Message::NegotiationRequest(request) => Ok(Request::Negotiation(request, field)),
        Message::KeyRequest(request) => Ok(Request::KeyExchange(request, field)),
        Message::TimeRequest(request) => Ok(Request::Time(request)),
        Message::NegotiationResponse(..)
        | Message::KeyResponse(_)
        | Message::TimeResponse { .. }
        | Message::Early(_)
        | Message::Error(_) => Err(Unfit::Silent(Outcome::NotARequest)),
    }
}

/// The key of one suite, and the certificates that vouch for it.
pub struct Identity {
    suite: Suite,
    key: PrivateKey,
    chain: Vec<u8>,
    chain_hash: [u8; HASH_SIZE],
}

/// What makes no identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadIdentity {
    /// There is no KEM for the suite.
    #[error("{0} is not implemented")]
    Suite(Suite),
    /// The private key is not one of the suite.
    #[error("{0}")]
    Key(BadKey),
    /// There is no certificate, or more than [`ANTP_CERTIFICATE_COUNT_MAX`], or one is empty.
    #[error("a chain has 1 to {ANTP_CERTIFICATE_COUNT_MAX} certificates without the root, this one has {0}")]
    Count(usize),
    /// The certificates take more than [`ANTP_CHAIN_SIZE_MAX`] octets.
    #[error("a chain has at most {ANTP_CHAIN_SIZE_MAX} octets, this one has {0}: leave the root out")]
    Size(usize),
    /// Two identities are for one suite.
    #[error("there are two keys for {0}; keep one")]
    Twice(Suite),
}

impl Identity {
    /// An identity of a private key in PKCS#8 and its certificates in DER, the leaf first and the root left out. That
    /// they belong together is for the caller to check, who can read certificates.
    ///
    /// # Errors
    /// If the key is not of the suite, or the chain is empty or too long.
    pub fn new(suite: Suite, pkcs8: &[u8], certificates: &[Vec<u8>]) -> Result<Self, BadIdentity> {
        let kem = kem(suite).ok_or(BadIdentity::Suite(suite))?;
        let key = PrivateKey::from_pkcs8(kem, pkcs8).map_err(BadIdentity::Key)?;
        let count = certificates.len();
        //= antp#messages-3
        if !(1..=ANTP_CERTIFICATE_COUNT_MAX).contains(&count) || certificates.iter().any(Vec::is_empty) {
            return Err(BadIdentity::Count(count));
        }
        let size = chain_size(certificates);
        if size > ANTP_CHAIN_SIZE_MAX {
            return Err(BadIdentity::Size(size));
        }
        let mut chain = vec![0; size];
        antp::emit_chain(&mut Writer::new(&mut chain), certificates).expect("there is room for the chain");
        Ok(Identity { suite, key, chain_hash: sha256(&[&chain]), chain })
    }

    /// The suite.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// The private key.
    #[must_use]
    pub const fn key(&self) -> &PrivateKey {
        &self.key
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({}, chain of {} octets)", self.suite, self.chain.len())
    }
}

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The largest response, in octets of UDP payload; at most [`ANTP_PAYLOAD_SIZE_MAX`] counts.
    pub payload_size_max: usize,
    /// Seconds for which a session key is used; at most [`LIFETIME_SECONDS_MAX`] counts.
    pub lifetime_seconds: u32,
    /// An m3 must come from the prefix of these sizes that its C1 went to; `None`: from anywhere.
    pub source_prefix: Option<PrefixSizes>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            payload_size_max: ANTP_PAYLOAD_SIZE_DEFAULT,
            lifetime_seconds: LIFETIME_SECONDS,
            source_prefix: Some(PrefixSizes::default()),
        }
    }
}

/// An ANTP server: its identities. Immutable, and shared by all workers.
#[derive(Debug)]
pub struct Service {
    identities: Vec<Identity>,
    suites: Suites,
    settings: Settings,
}

impl Service {
    /// A service with one identity for each suite.
    ///
    /// # Errors
    /// If two are for one suite.
    pub fn new(identities: Vec<Identity>, settings: Settings) -> Result<Self, BadIdentity> {
        let mut suites = Suites::default();
        for identity in &identities {
            if suites.contains(identity.suite) {
                return Err(BadIdentity::Twice(identity.suite));
            }
            suites = suites.with(identity.suite);
        }
        Ok(Service { identities, suites, settings })
    }

    /// The suites that are served.
    #[must_use]
    pub const fn suites(&self) -> Suites {
        self.suites
    }

    fn identity(&self, suite: Suite) -> Option<&Identity> {
        self.identities.iter().find(|identity| identity.suite == suite)
    }

    /// Whether there is an identity for `suite`.
    #[must_use]
    pub fn serves(&self, suite: Suite) -> bool {
        self.suites.contains(suite)
    }

    /// Whom a C1 is for that goes to `source`, and who may come with one.
    #[must_use]
    pub fn source_prefix(&self, source: IpAddr) -> SourcePrefix {
        self.settings.source_prefix.map_or(SourcePrefix::ANY, |sizes| SourcePrefix::of(source, sizes))
    }

    /// Writes m2 for `offered`, but for its header, which is left free, to `out`, whose size is that of the request;
    /// returns the size of the whole, or the error that is to be sent instead. `field` is what [`classify`] found,
    /// `now` in NTP seconds; m2 goes to `source`.
    ///
    /// # Errors
    /// If there is no common suite, or m2 is larger than the request or what the client accepts.
    pub fn negotiate(
        &self,
        keys: &StateKeys,
        (now, source): (u32, IpAddr),
        (nonces, entropy): (&mut Nonces, &mut Entropy),
        (offered, field): (&Offered, &[u8]),
        out: &mut [u8],
    ) -> Result<usize, Unfit> {
        //= antp#servers-2
        let chosen = offered.suites.as_slice().iter().find_map(|&suite| self.identity(suite));
        let identity = chosen.ok_or(Unfit::Refused(ErrorCode::NO_SUITE, Outcome::AntpNoSuite))?;
        let room = out
            .len()
            .min(usize::from(offered.payload_size_max))
            .min(self.settings.payload_size_max)
            .min(ANTP_PAYLOAD_SIZE_MAX);
        // A client that began with the chain of a key that is gone begins anew.
        let wanted = usize::from(offered.chain_offset);
        let offset = if wanted <= identity.chain.len() { wanted } else { 0 };
        //= antp#servers-3
        let rest = match offered.held == identity.chain_hash {
            true => &[][..],
            false => &identity.chain[offset..],
        };
        let chunk = chunk_size_max(room).map_or(&[][..], |size| &rest[..rest.len().min(size)]);
        let mut response = NegotiationResponse {
            suite: identity.suite,
            suites: self.suites,
            chain_size: u16::try_from(identity.chain.len()).expect("a chain is at most ANTP_CHAIN_SIZE_MAX"),
            chunk_offset: u16::try_from(offset).expect("an offset lies within the chain"),
            chain_hash: &identity.chain_hash,
            state: &[0; antp::C1_SIZE],
        };
        let head = NegotiationHead::of(&response);
        let pending = Pending {
            suite: identity.suite,
            issued: now,
            transcript: transcript::negotiation(field, &head.0),
        };
        let state = pending.seal(keys, &self.source_prefix(source), nonces, entropy);
        response.state = &state;
        let mut out = Writer::new(&mut out[..room]);
        let written = out.reserve(HEADER_SIZE).map(|_| ()).and_then(|()| {
            if !chunk.is_empty() {
                emit_chunk(&mut out, identity.suite, chunk)?;
            }
            response.emit(&mut out)
        });
        written.map_err(|NoRoom| Unfit::Silent(Outcome::NoRoom))?;
        Ok(out.offset())
    }
}

/// Writes an error, but for its header, to `out`, whose size is that of the request; returns the size of the whole.
///
/// # Errors
/// If the request is smaller than an error.
pub fn refuse(code: ErrorCode, out: &mut [u8]) -> Result<usize, NoRoom> {
    let mut out = Writer::new(out);
    out.reserve(HEADER_SIZE)?;
    ErrorMessage { code }.emit(&mut out)?;
    Ok(out.offset())
}

/// The value of m2 before C1 and its size.
struct NegotiationHead([u8; NegotiationResponse::HEAD_SIZE]);

impl NegotiationHead {
    fn of(response: &NegotiationResponse<'_>) -> Self {
        let mut field = [0; NegotiationResponse::FIELD_SIZE];
        response.emit(&mut Writer::new(&mut field)).expect("there is room for the field");
        NegotiationHead(*field[FIELD_HEADER_SIZE..].first_chunk().expect("a value is longer than its head"))
    }
}

const _: () = assert!(NegotiationResponse::HEAD_SIZE > PREFIX_SIZE, "the head begins with the prefix");

/// Octets of IP and UDP headers around each datagram to or from `source`.
#[must_use]
pub fn overhead(source: &SocketAddr) -> usize {
    if source.ip().to_canonical().is_ipv4() { 20 + 8 } else { 40 + 8 }
}
