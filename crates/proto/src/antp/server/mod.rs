//! The server's half: m1, m3 and m5 in, m2, m4 and m6 out. It keeps nothing of any client.
//!
//! Time requests go through their stages in groups: all C2 are opened together, fresh ones sealed, then the clock is
//! read once and every header built, and only the tags stand between that and the way out. In separate-tag mode even
//! they do not: [`TimeGroup::early`] can leave before [`TimeGroup::finish`] computes them. Key exchanges are
//! public-key work, which [`Service::exchange`] does wherever the caller has time for it.
//!
//! Every answer is at most as large as its request, headers of IP included. What nobody can answer gets silence. What
//! is absent: limits on rates, and which of these a server wants to answer at all.

mod time;

pub use time::{TimeGroup, TimeSlot};

use std::fmt;
use std::net::SocketAddr;

use authentick_crypto::Entropy;
use authentick_crypto::kdf::sha256;
use authentick_crypto::kem::{BadKey, PrivateKey};
use authentick_wire::antp::{
    self, Antp, ErrorCode, ErrorMessage, HASH_SIZE, KeyRequest, KeyResponse, Message, NegotiationRequest,
    NegotiationResponse, PREFIX_SIZE, Suite, Suites, TAG_SIZE, TimeRequest, chain_size, chunk_size_max,
    emit_chunk, negotiation_response_size,
};
use authentick_wire::header::{Header, Mode};
use authentick_wire::limits::{
    ANTP_CERTIFICATE_COUNT_MAX, ANTP_CHAIN_SIZE_MAX, ANTP_PAYLOAD_SIZE_DEFAULT, ANTP_PAYLOAD_SIZE_MAX,
    FIELD_HEADER_SIZE, HEADER_SIZE,
};
use authentick_wire::packet::Packet;
use authentick_wire::time::NtpTime;
use authentick_wire::{NoRoom, Reason, Writer};

use super::state::{Established, Pending};
use super::state_key::StateKeys;
use super::{kem, seconds, transcript};
use crate::outcomes;
use crate::server::snapshot::Snapshot;

/// Default lifetime of a session key, in seconds: seven days.
pub const LIFETIME_SECONDS: u32 = 7 * 86_400;
/// The longest lifetime of a session key, in seconds: 31 days.
pub const LIFETIME_SECONDS_MAX: u32 = 31 * 86_400;

outcomes! {
    /// What became of an ANTP request.
    pub enum Outcome {
        /// m2 was sent.
        Negotiated = "negotiated",
        /// m4 was sent. Whether the client has the key only the client knows.
        Exchanged = "exchanged",
        /// m6 was sent.
        Served = "served",
        /// An early packet was sent, and m6 after it.
        ServedEarly = "served_early",
        /// An error was sent: the version is not 1.
        Version = "version",
        /// An error was sent: there is no common suite.
        NoSuite = "no_suite",
        /// An error was sent: C1 or C2 does not open, or has expired.
        Expired = "expired",
        /// Silence: an ANTP field breaks the syntax.
        Malformed = "malformed",
        /// Silence: a message that only servers send, or not a client's request.
        NotARequest = "not_a_request",
        /// Silence: the answer is larger than the request.
        NoRoom = "no_room",
        /// Silence: the ciphertext is none.
        BadCiphertext = "bad_ciphertext",
    }
}

/// What to send, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Octets of the response; zero for silence.
    pub size: usize,
    /// What became of the request.
    pub outcome: Outcome,
}

impl Reply {
    const fn silence(outcome: Outcome) -> Self {
        Reply { size: 0, outcome }
    }
}

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
                true => Unfit::Refused(ErrorCode::VERSION, Outcome::Version),
                false => Unfit::Silent(Outcome::Malformed),
            });
        }
        Ok(Some(_)) => return Err(Unfit::Silent(Outcome::NotARequest)),
        Err(_) => return Err(Unfit::Silent(Outcome::Malformed)),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadIdentity {
    /// There is no KEM for the suite.
    Suite(Suite),
    /// The private key is not one of the suite.
    Key(BadKey),
    /// There is no certificate, or more than [`ANTP_CERTIFICATE_COUNT_MAX`], or one is empty.
    Count(usize),
    /// The certificates take more than [`ANTP_CHAIN_SIZE_MAX`] octets.
    Size(usize),
    /// Two identities are for one suite.
    Twice(Suite),
}

impl fmt::Display for BadIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadIdentity::Suite(suite) => write!(f, "{suite} is not implemented"),
            BadIdentity::Key(bad) => write!(f, "{bad}"),
            BadIdentity::Count(count) => write!(
                f,
                "a chain has 1 to {ANTP_CERTIFICATE_COUNT_MAX} certificates without the root, this one has {count}"
            ),
            BadIdentity::Size(size) => {
                write!(
                    f,
                    "a chain has at most {ANTP_CHAIN_SIZE_MAX} octets, this one has {size}: leave the root out"
                )
            }
            BadIdentity::Twice(suite) => write!(f, "there are two keys for {suite}; keep one"),
        }
    }
}

impl std::error::Error for BadIdentity {}

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
}

impl Default for Settings {
    fn default() -> Self {
        Settings { payload_size_max: ANTP_PAYLOAD_SIZE_DEFAULT, lifetime_seconds: LIFETIME_SECONDS }
    }
}

/// When a request came and is answered, by the server's clock, and what is to be said of that clock.
#[derive(Clone, Copy, Debug)]
pub struct Instant<'a> {
    /// When the request arrived.
    pub received: NtpTime,
    /// Now.
    pub now: NtpTime,
    /// The state of the clock.
    pub snapshot: &'a Snapshot,
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

    /// Answers m1 in `request` with m2, or with an error. `field` is what [`classify`] found.
    pub fn negotiate(
        &self,
        keys: &StateKeys,
        at: &Instant<'_>,
        entropy: &mut Entropy,
        request: &Packet<'_>,
        (asked, field): (&NegotiationRequest<'_>, &[u8]),
        out: &mut [u8],
    ) -> Reply {
        let Some(identity) = asked.suites.as_slice().iter().find_map(|&suite| self.identity(suite)) else {
            return refuse(at, request, ErrorCode::NO_SUITE, Outcome::NoSuite, out);
        };
        let room = request
            .octets()
            .len()
            .min(usize::from(asked.payload_size_max))
            .min(self.settings.payload_size_max)
            .min(ANTP_PAYLOAD_SIZE_MAX);
        // A client that began with the chain of a key that is gone begins anew.
        let wanted = usize::from(asked.chain_offset);
        let offset = if wanted <= identity.chain.len() { wanted } else { 0 };
        let rest = match *asked.held == identity.chain_hash {
            true => &[][..],
            false => &identity.chain[offset..],
        };
        let chunk = chunk_size_max(room).map_or(&[][..], |size| &rest[..rest.len().min(size)]);
        if room < negotiation_response_size(None) {
            return Reply::silence(Outcome::NoRoom);
        }
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
            issued: seconds(at.now),
            transcript: transcript::negotiation(field, &head.0),
        };
        let state = pending.seal(keys, entropy);
        response.state = &state;
        reply(Outcome::Negotiated, at, request, room, out, |out| {
            if !chunk.is_empty() {
                emit_chunk(out, identity.suite, chunk)?;
            }
            response.emit(out)
        })
    }

    /// Answers m3 in `request` with m4, or with an error. `field` is what [`classify`] found.
    pub fn exchange(
        &self,
        keys: &StateKeys,
        at: &Instant<'_>,
        entropy: &mut Entropy,
        request: &Packet<'_>,
        (asked, field): (&KeyRequest<'_>, &[u8]),
        out: &mut [u8],
    ) -> Reply {
        let pending = Pending::open(keys, asked.state, seconds(at.now));
        let identity = self.identity(asked.suite);
        // The cheap check comes first: without a C1 there is no public-key work.
        let (Some(pending), Some(identity)) = (pending, identity) else {
            return refuse(at, request, ErrorCode::EXPIRED, Outcome::Expired, out);
        };
        if pending.suite != asked.suite {
            return refuse(at, request, ErrorCode::EXPIRED, Outcome::Expired, out);
        }
        let Some(key) = identity.key.decapsulate(asked.ciphertext) else {
            return Reply::silence(Outcome::BadCiphertext);
        };
        let issued = seconds(at.now);
        let lifetime = self.settings.lifetime_seconds.min(LIFETIME_SECONDS_MAX);
        let established =
            Established { suite: asked.suite, issued, expires: issued.wrapping_add(lifetime), key };
        let state = established.seal(keys, entropy);
        let room = request.octets().len();
        let done = reply(Outcome::Exchanged, at, request, room, out, |out| {
            KeyResponse { suite: asked.suite, state: &state, tag: &[0; TAG_SIZE] }.emit(out)
        });
        if let Some(response) = out.get_mut(..done.size)
            && let Some((before, tag)) = response.split_last_chunk_mut::<TAG_SIZE>()
        {
            let head = &before[HEADER_SIZE + FIELD_HEADER_SIZE..];
            let h2 = transcript::key_exchange(&pending.transcript, field, head);
            *tag = transcript::confirmation(&established.key, &h2);
        }
        done
    }

    /// Answers with an error, if there is room for it.
    pub fn refuse(
        &self,
        at: &Instant<'_>,
        request: &Packet<'_>,
        code: ErrorCode,
        outcome: Outcome,
        out: &mut [u8],
    ) -> Reply {
        refuse(at, request, code, outcome, out)
    }
}

fn refuse(
    at: &Instant<'_>,
    request: &Packet<'_>,
    code: ErrorCode,
    outcome: Outcome,
    out: &mut [u8],
) -> Reply {
    reply(outcome, at, request, request.octets().len(), out, |out| ErrorMessage { code }.emit(out))
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

/// Writes a header and what `build` writes behind it; silence if that is more than `room` octets.
fn reply(
    outcome: Outcome,
    at: &Instant<'_>,
    request: &Packet<'_>,
    room: usize,
    out: &mut [u8],
    build: impl FnOnce(&mut Writer<'_>) -> Result<(), NoRoom>,
) -> Reply {
    let room = room.min(out.len());
    let mut writer = Writer::new(&mut out[..room]);
    let built = writer.reserve(HEADER_SIZE).map(|_| ()).and_then(|()| build(&mut writer));
    let size = writer.offset();
    match (built, out.first_chunk_mut()) {
        (Ok(()), Some(header)) => {
            emit_header(&request.header(), at.received, at.now, at.snapshot, header);
            Reply { size, outcome }
        }
        _ => Reply::silence(Outcome::NoRoom),
    }
}

/// The header of a plain server's response. In m2, m4 and errors nothing vouches for it.
fn emit_header(
    request: &Header,
    received: NtpTime,
    now: NtpTime,
    snapshot: &Snapshot,
    out: &mut [u8; HEADER_SIZE],
) {
    Header {
        leap: snapshot.leap,
        version: request.version,
        mode: Mode::Server,
        stratum: snapshot.stratum,
        poll: request.poll,
        precision: snapshot.precision,
        root_delay: snapshot.root_delay,
        root_dispersion: snapshot.root_dispersion_at(now),
        reference_id: snapshot.reference_id,
        reference: snapshot.reference,
        origin: request.transmit,
        receive: received,
        transmit: now,
    }
    .emit(out);
}

/// Octets of IP and UDP headers around each datagram to or from `source`.
#[must_use]
pub fn overhead(source: &SocketAddr) -> usize {
    if source.ip().to_canonical().is_ipv4() { 20 + 8 } else { 40 + 8 }
}
