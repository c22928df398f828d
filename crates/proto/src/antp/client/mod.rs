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

use authentick_crypto::Entropy;
use authentick_wire::antp::{Antp, ErrorCode, Suite, emit_padding};
use authentick_wire::header::{Header, Mode, ReferenceId};
use authentick_wire::packet::Packet;
use authentick_wire::time::{NtpSpan, NtpTime};
use authentick_wire::{Malformed, Writer};
use thiserror::Error;

use crate::client::{Unsound, meaning};
use crate::mutant::{Place, drawn, holds, is_out};

/// The check that a datagram failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Check {
    /// It is no NTP packet, or its ANTP fields break the syntax.
    #[error("syntax: {0}")]
    Syntax(Malformed),
    /// It is not a server's response in the version of the request.
    #[error("mode: not a server's response in the version that was asked")]
    Mode,
    /// Its origin is not the token of the request: it answers another request, or none.
    #[error("origin: answers another request than ours")]
    Origin,
    /// The request has its response already.
    #[error("duplicate: the request was answered already")]
    Duplicate,
    /// It is a plain response to an ANTP request: the server does not serve ANTP, or somebody on the path removed it.
    #[error("untagged: a plain NTP response to an ANTP request, which is never used")]
    Untagged,
    /// It is a kiss-o'-death with this code, and nothing vouches for it.
    #[error("kiss code {0:?}: {meaning}", meaning = meaning(*.0))]
    Kiss(ReferenceId),
    /// The server sent an error, and nothing vouches for it.
    #[error("error from the server, not authenticated: {0}")]
    Server(ErrorCode),
    /// It is a message of another phase.
    #[error("phase: a message of another phase")]
    Phase,
    /// The suite is not the one that was agreed on, or was not offered.
    #[error("suite: {0} was not agreed on")]
    Suite(Suite),
    /// The server has a suite that the client prefers to the one it chose.
    #[error("choice: {0}, though the server has a better one of ours")]
    Choice(Suite),
    /// A part of the certificate chain that was not asked for, or none at all.
    #[error("chunk: not the part of the certificate chain that was asked for")]
    Chunk,
    /// The certificate chain does not have the hash that was announced, or is none.
    #[error("chain: does not have the announced hash, or is no chain of certificates")]
    Chain,
    /// The tag is wrong: what the server saw, or who it is, is not what this client took it for.
    #[error("tag: wrong authentication tag")]
    Tag,
    /// The server's clock ran backwards between arrival and departure.
    #[error("order: the server sent before it received, by its own clock")]
    Order,
    /// The round trip is negative, or longer than the bound E: time could be wrong by half of this.
    #[error("round trip: {0} is negative or above the bound")]
    RoundTrip(NtpSpan),
    /// The response took longer than is allowed, the server's own time included.
    #[error("residence: {0} from request to response is above the bound")]
    Residence(NtpSpan),
    /// Receive or transmit timestamp is zero.
    #[error("timestamps: receive or transmit time is zero")]
    Timestamps,
    /// By its own account the server's clock is not to be followed.
    #[error(transparent)]
    Clock(#[from] Unsound),
}

/// Random and never zero, which would mean "unknown": only who saw the request can answer it.
fn token(entropy: &mut Entropy) -> NtpTime {
    if is_out(Place::Token) {
        return NtpTime::from_bits(1);
    }
    NtpTime::from_bits(drawn(entropy.u64()).max(1))
}

/// The header of a request: it says nothing of the client.
fn put_header(out: &mut Writer<'_>, token: NtpTime) {
    Header::minimal_request(token).put(out).expect("the buffer holds a request");
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
    if !holds(Place::AntpMode, header.mode == Mode::Server && header.version == 4) {
        return Err(Check::Mode);
    }
    if !holds(Place::AntpOrigin, header.origin == token) {
        return Err(Check::Origin);
    }
    if !holds(Place::AntpDuplicate, !answered) {
        return Err(Check::Duplicate);
    }
    match Antp::locate(&packet).map_err(Check::Syntax)? {
        Some(found) => Ok((header, found)),
        None if header.stratum == 0 => Err(Check::Kiss(header.reference_id)),
        None => Err(Check::Untagged),
    }
}
