//! Protocols under test: each gives the model its servers and clients, which are the code that serves and asks in
//! earnest, and the adversary what it can do with secrets that it has learnt.
//!
//! A protocol is one type that is a [`Protocol`]. Those of this crate are [`all`]; others can be played in the same
//! way, as a test of this crate shows (`tests/own_protocol.rs`).
//!
//! Not here: the Precision Time Protocol. In the paper's framework a session of PTP has no message of the client before
//! Sync, so nothing bounds the age of what a slave believes, and no delta can be stated without clocks that are already
//! right; and there is no PTP in this project to play.

mod antp;
mod mac;
mod nts;
mod plain;

use std::fmt;

use authentick_crypto::Entropy;
use authentick_proto::client::Sample;
use authentick_sim::Server;
use authentick_wire::extension::Fields;
use authentick_wire::header::{Header, Leap, Mode, ReferenceId};
use authentick_wire::limits::{FIELD_HEADER_SIZE, HEADER_SIZE};
use authentick_wire::packet::Packet;
use authentick_wire::time::{NtpShort, NtpSpan, NtpTime};

pub use self::antp::Antp;
pub use self::mac::{Keys, Mac};
pub use self::nts::Nts;
pub use self::plain::Plain;
use crate::model::Party;

/// E: the longest round trip that a client believes, where it has a bound.
pub const E: NtpSpan = NtpSpan::SECOND;

/// A way to ask for time and to answer.
pub trait Protocol: fmt::Debug + Send + Sync {
    /// What it is called on a command line.
    fn name(&self) -> &'static str;

    /// A line on what it is.
    fn says(&self) -> &'static str;

    /// What it has in common with others, by which strategies know what is to come of them.
    fn family(&self) -> Family;

    /// The longest round trip that its clients believe; `None` if they believe any.
    fn bound(&self) -> Option<NtpSpan>;

    /// Whether clients look at the dates of a server's certificate, by their own clock, before they ask for time.
    fn looks_at_dates(&self) -> bool {
        false
    }

    /// A server with all that it serves with. Its secrets follow from `seed`, and are not those of another party.
    fn server(&self, party: Party, seed: u64) -> Server;

    /// A client of `server` with all that it needs for its first request.
    fn client(&self, party: Party, server: &mut Server, seed: u64) -> Box<dyn Client>;

    /// What of a message is vouched for: two messages with the same are the same to who receives them.
    fn covered<'m>(&self, message: &'m [u8]) -> &'m [u8] {
        message
    }

    /// The parts of a message, for an adversary that changes one.
    fn parts(&self, message: &[u8]) -> Vec<Part> {
        parts(message)
    }

    /// What a message is, in a word or two.
    fn kind(&self, message: &[u8]) -> &'static str {
        match message.first().map(|first| Mode::from_bits(first & 7)) {
            Some(Mode::Client) => "request",
            Some(Mode::Server) => "response",
            _ => "message",
        }
    }

    /// Whether a message of a client asks for time, and not for what comes before it.
    fn asks_for_time(&self, _message: &[u8]) -> bool {
        true
    }

    /// The answer to `request` that says what `header` says, as good as one with the `secret` can make it; `None` if
    /// the protocol gives no way, as when the request is for keys.
    fn forge(&self, secret: Option<&Secret>, request: &[u8], header: &Header) -> Option<Vec<u8>>;

    /// What the long-term secret of `server` says of the session key under which `seen` was sent.
    fn corrupt(&self, server: &Server, seen: &[Vec<u8>]) -> Option<Secret>;

    /// The keys of `server` that open what it has sealed for its clients to keep.
    fn state_key_ids(&self, _server: &Server) -> Vec<u32> {
        vec![]
    }

    /// The key that sealed what is in `request`.
    fn state_key_of(&self, _request: &[u8]) -> Option<u32> {
        None
    }

    /// What is in `request`, sealed by a key of `server`.
    fn open_state(&self, _server: &Server, _request: &[u8]) -> Option<Secret> {
        None
    }

    /// The server replaces the keys that seal, in second `now`, with fresh randomness.
    fn rotate(&self, _server: &mut Server, _now: u64) {}

    /// The server loses the keys that seal, in second `now`.
    fn lose_state(&self, _server: &mut Server, _now: u64) {}
}

/// Protocols of which the same is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// NTP without authentication.
    Plain,
    /// A symmetric key for each pair of client and server.
    PairKey,
    /// A symmetric key that a server's clients share.
    GroupKey,
    /// Network Time Security.
    Nts,
    /// ANTP, with the tag in the packet that has the time.
    Antp,
    /// ANTP, with the tag in a packet of its own.
    AntpSeparate,
    /// One of which nothing is expected.
    Other,
}

/// A client's half of a session.
pub trait Client: fmt::Debug {
    /// Its next request, made when its clock shows `now`, in second `second` of one that is never set; `None` if it has
    /// nothing to ask with.
    fn ask(&mut self, now: NtpTime, second: u64, entropy: &mut Entropy) -> Option<Vec<u8>>;

    /// Takes a message that arrives when its clock shows `now`.
    fn receive(&mut self, message: &[u8], now: NtpTime, second: u64) -> Heard;

    /// The session key, if there is one.
    fn secret(&mut self) -> Option<Secret>;

    /// A copy that goes its own way.
    fn fork(&self) -> Box<dyn Client>;
}

/// What a message is to a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// It failed a check, which is named, and has changed nothing.
    Rejected(String),
    /// It failed a check, which is named, and the client is not as before: the request is used up, or something was
    /// counted or kept.
    Spent(String),
    /// It may mean something later.
    Part,
    /// It comes before time, and the client asks on.
    Asks,
    /// It brings a session key.
    Keys,
    /// It brings time.
    Time(Sample),
}

/// What an adversary may learn of a session.
#[derive(Clone, Debug)]
pub enum Secret {
    /// A symmetric key.
    Mac {
        /// Its identifier.
        id: u32,
        /// Its octets.
        octets: Vec<u8>,
    },
    /// The keys of a session of NTS.
    Nts(authentick_proto::cookie::SessionKeys),
    /// The session key of ANTP.
    Antp(authentick_crypto::kem::SessionKey),
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is called.
    pub name: String,
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Whether a message without it may still be one.
    pub is_field: bool,
}

/// The parts of a header that a client looks at, and where they stand.
const HEADER_PARTS: [(&str, usize, usize); 7] = [
    ("mode", 0, 1),
    ("stratum", 1, 2),
    ("root-delay", 4, 8),
    ("reference-id", 12, 16),
    ("origin", 24, 32),
    ("receive", 32, 40),
    ("transmit", 40, 48),
];

/// The parts of a header, every extension field, and what follows these.
#[must_use]
pub fn parts(message: &[u8]) -> Vec<Part> {
    let part = |name: &str, start, end| Part { name: name.to_owned(), start, end, is_field: false };
    let mut parts: Vec<Part> =
        HEADER_PARTS.iter().map(|(name, start, end)| part(name, *start, *end)).collect();
    let fields = Packet::parse(message).map_or(vec![], |packet| packet.fields().collect());
    let mut end = HEADER_SIZE;
    for field in fields {
        let name = format!("field-{:04x}", field.kind.0);
        parts.push(Part { name, start: field.offset, end: field.end(), is_field: true });
        end = field.end();
    }
    if message.len() > end {
        parts.push(Part { is_field: true, ..part("mac", end, message.len()) });
    }
    parts.retain(|part| part.end <= message.len());
    parts
}

/// Where `inner`, which was found in `message`, stands there.
fn part_of(message: &[u8], name: &str, inner: &[u8]) -> Option<Part> {
    let start = message.windows(inner.len().max(1)).position(|octets| octets == inner)?;
    Some(Part { name: name.to_owned(), start, end: start + inner.len(), is_field: false })
}

/// The end of the extension field of `kind`, or of the whole message if there is none.
fn end_of(message: &[u8], is_last: impl Fn(&authentick_wire::extension::Field<'_>) -> bool) -> usize {
    let fields = Fields::new(message, HEADER_SIZE.min(message.len()), FIELD_HEADER_SIZE);
    fields.map_while(Result::ok).find(is_last).map_or(message.len(), |field| field.end())
}

/// A header of a server that answers `request` and says these times.
///
/// # Panics
/// If the request has no header.
#[must_use]
pub fn header_of(request: &[u8], receive: NtpTime, transmit: NtpTime) -> Header {
    let asked = Header::parse(request.first_chunk().expect("a request has a header"));
    Header {
        leap: Leap::None,
        version: 4,
        mode: Mode::Server,
        stratum: 1,
        poll: asked.poll,
        precision: -25,
        root_delay: NtpShort::from_bits(0),
        root_dispersion: NtpShort::from_bits(0),
        reference_id: ReferenceId(*b"SIM\0"),
        reference: receive,
        origin: asked.transmit,
        receive,
        transmit,
    }
}

/// The octets of a header.
fn octets_of(header: &Header) -> Vec<u8> {
    let mut octets = [0; HEADER_SIZE];
    header.emit(&mut octets);
    octets.to_vec()
}

/// What a client with a bound thinks of a sample, as one of chrony does with `maxdelay`. Our own clients have a bound
/// under ANTP alone, where it is part of the protocol.
fn within(bound: Option<NtpSpan>, sample: Sample) -> Heard {
    match bound {
        Some(bound) if sample.delay > bound || sample.delay < NtpSpan::ZERO => {
            Heard::Spent(format!("round trip: {} is negative or above the bound", sample.delay))
        }
        _ => Heard::Time(sample),
    }
}

/// A number that follows from the seed and is another for each `occasion`.
fn drawn(seed: u64, occasion: &str) -> Entropy {
    let hash = authentick_crypto::kdf::sha256(&[&seed.to_be_bytes(), occasion.as_bytes()]);
    Entropy::from_seed(u64::from_be_bytes(*hash.first_chunk().expect("a hash has 32 octets")))
}

/// All protocols of this crate, in the order of tables.
#[must_use]
pub fn all() -> Vec<Box<dyn Protocol>> {
    vec![
        Box::new(Plain { bound: None }),
        Box::new(Plain { bound: Some(E) }),
        Box::new(Mac { keys: Keys::Pair, bound: None }),
        Box::new(Mac { keys: Keys::Pair, bound: Some(E) }),
        Box::new(Mac { keys: Keys::Group, bound: None }),
        Box::new(Mac { keys: Keys::Group, bound: Some(E) }),
        Box::new(Nts { bound: None }),
        Box::new(Nts { bound: Some(E) }),
        Box::new(Antp { is_separate: false }),
        Box::new(Antp { is_separate: true }),
    ]
}

/// The protocol of that name.
#[must_use]
pub fn named(name: &str) -> Option<Box<dyn Protocol>> {
    all().into_iter().find(|protocol| protocol.name() == name)
}

/// The protocols of those names; all, if there is none.
#[must_use]
pub fn among(names: &[String]) -> Vec<Box<dyn Protocol>> {
    all()
        .into_iter()
        .filter(|protocol| names.is_empty() || names.iter().any(|name| name == protocol.name()))
        .collect()
}
