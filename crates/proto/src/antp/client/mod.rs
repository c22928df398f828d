//! The client's half: negotiation, key exchange and time, and an association that says when each is due.
//!
//! ```text
//! Negotiation --m1, m2, as often as the chain takes--> Negotiated
//! Negotiated  --the caller checks the certificates--> KeyExchange --m3, m4--> Session
//! Session     --m5, m6, as long as the key is used--> TimeExchange --> Accepted
//! ```
//!
//! A datagram that fails a check changes nothing, and there is no way from here to an answer without a tag.

mod association;
mod negotiation;
mod session;
mod time;

pub use association::{Association, COMPLAINT_SECONDS, Phase, REKEY_SECONDS_MAX};
pub use negotiation::{HeldChain, Negotiated, Negotiation, Offer, Progress};
pub use session::{KeyExchange, Session, WrongKem};
pub use time::{Accepted, Bounds, Candidate, Event, Inspected, SeparateTag, TimeExchange, Wanted};

use std::fmt;

use authentick_crypto::Entropy;
use authentick_wire::antp::{Antp, ErrorCode, Suite, emit_padding};
use authentick_wire::header::{Header, Mode, ReferenceId};
use authentick_wire::packet::Packet;
use authentick_wire::time::{NtpSpan, NtpTime};
use authentick_wire::{Malformed, Writer};

use crate::client::{Unsound, meaning};

/// The check that a datagram failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Check {
    /// It is no NTP packet, or its ANTP fields break the syntax.
    Syntax(Malformed),
    /// It is not a server's response in the version of the request.
    Mode,
    /// Its origin is not the token of the request: it answers another request, or none.
    Origin,
    /// The request has its response already.
    Duplicate,
    /// It is a plain response to an ANTP request: the server does not serve ANTP, or somebody on the path removed it.
    Untagged,
    /// It is a kiss-o'-death with this code, and nothing vouches for it.
    Kiss(ReferenceId),
    /// The server sent an error, and nothing vouches for it.
    Server(ErrorCode),
    /// It is a message of another phase.
    Phase,
    /// The suite is not the one that was agreed on, or was not offered.
    Suite(Suite),
    /// The server has a suite that the client prefers to the one it chose.
    Choice(Suite),
    /// A part of the certificate chain that was not asked for, or none at all.
    Chunk,
    /// The certificate chain does not have the hash that was announced, or is none.
    Chain,
    /// The tag is wrong: what the server saw, or who it is, is not what this client took it for.
    Tag,
    /// The server's clock ran backwards between arrival and departure.
    Order,
    /// The round trip is negative, or longer than the bound E: time could be wrong by half of this.
    RoundTrip(NtpSpan),
    /// The response took longer than is allowed, the server's own time included.
    Residence(NtpSpan),
    /// Receive or transmit timestamp is zero.
    Timestamps,
    /// The server says that its clock is not synchronised.
    Leap,
    /// The stratum is not between 1 and 15.
    Stratum(u8),
    /// The server may be 16 s or more from true time, by its own account.
    RootDistance,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Syntax(malformed) => write!(f, "syntax: {malformed}"),
            Check::Mode => f.write_str("mode: not a server's response in the version that was asked"),
            Check::Origin => f.write_str("origin: answers another request than ours"),
            Check::Duplicate => f.write_str("duplicate: the request was answered already"),
            Check::Untagged => {
                f.write_str("untagged: a plain NTP response to an ANTP request, which is never used")
            }
            Check::Kiss(code) => write!(f, "kiss code {code:?}: {}", meaning(*code)),
            Check::Server(code) => write!(f, "error from the server, not authenticated: {code}"),
            Check::Phase => f.write_str("phase: a message of another phase"),
            Check::Suite(suite) => write!(f, "suite: {suite} was not agreed on"),
            Check::Choice(suite) => write!(f, "choice: {suite}, though the server has a better one of ours"),
            Check::Chunk => f.write_str("chunk: not the part of the certificate chain that was asked for"),
            Check::Chain => {
                f.write_str("chain: does not have the announced hash, or is no chain of certificates")
            }
            Check::Tag => f.write_str("tag: wrong authentication tag"),
            Check::Order => f.write_str("order: the server sent before it received, by its own clock"),
            Check::RoundTrip(span) => write!(f, "round trip: {span} is negative or above the bound"),
            Check::Residence(span) => {
                write!(f, "residence: {span} from request to response is above the bound")
            }
            Check::Timestamps => f.write_str("timestamps: receive or transmit time is zero"),
            Check::Leap => Unsound::Leap.fmt(f),
            Check::Stratum(stratum) => Unsound::Stratum(*stratum).fmt(f),
            Check::RootDistance => Unsound::RootDistance.fmt(f),
        }
    }
}

impl std::error::Error for Check {}

impl From<Unsound> for Check {
    fn from(unsound: Unsound) -> Self {
        match unsound {
            Unsound::Leap => Check::Leap,
            Unsound::Stratum(stratum) => Check::Stratum(stratum),
            Unsound::RootDistance => Check::RootDistance,
        }
    }
}

/// Random and never zero, which would mean "unknown": only who saw the request can answer it.
fn token(entropy: &mut Entropy) -> NtpTime {
    NtpTime::from_bits(entropy.u64().max(1))
}

/// The header of a request: it says nothing of the client.
fn put_header(out: &mut Writer<'_>, token: NtpTime) {
    let mut header = [0; authentick_wire::limits::HEADER_SIZE];
    Header::minimal_request(token).emit(&mut header);
    out.put(&header).expect("the buffer holds a request");
}

/// Writes a request with `padding_size` octets of padding and the message in `field`; returns its size.
fn put_again(token: NtpTime, padding_size: usize, field: &[u8], out: &mut [u8]) -> usize {
    const ROOM: &str = "the buffer holds a request that it has held before";
    let mut writer = Writer::new(out);
    put_header(&mut writer, token);
    emit_padding(&mut writer, padding_size).expect(ROOM);
    writer.put(field).expect(ROOM);
    writer.offset()
}

/// The checks that every response passes first, in an order in which nothing that a forger controls has an effect
/// before the check that stops him.
//= antp#carrier-1, antp#paper-1
fn inspect<'a>(datagram: &'a [u8], token: NtpTime, answered: bool) -> Result<(Header, Antp<'a>), Check> {
    let packet = Packet::parse(datagram).map_err(Check::Syntax)?;
    let header = packet.header();
    if header.mode != Mode::Server || header.version != 4 {
        return Err(Check::Mode);
    }
    if header.origin != token {
        return Err(Check::Origin);
    }
    if answered {
        return Err(Check::Duplicate);
    }
    match Antp::locate(&packet).map_err(Check::Syntax)? {
        Some(found) => Ok((header, found)),
        None if header.stratum == 0 => Err(Check::Kiss(header.reference_id)),
        None => Err(Check::Untagged),
    }
}
