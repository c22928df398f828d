//! m1 and m2: what a client offers, what a server chooses, and the parts of its certificate chain.

use super::{C1_SIZE, HASH_SIZE, NEG_REQ, NEG_RSP, NONCE_SIZE, PREFIX_SIZE, Prefix, Suite, Suites};
use crate::extension;
use crate::limits::{
    ANTP_CHAIN_SIZE_MAX, ANTP_PAYLOAD_SIZE_MAX, ANTP_SUITE_COUNT_MAX, FIELD_HEADER_SIZE, HEADER_SIZE,
};
use crate::{Malformed, NoRoom, Reader, Reason, Writer};

/// Suites in the order of the client's preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuiteList {
    count: u8,
    suites: [Suite; ANTP_SUITE_COUNT_MAX],
}

impl SuiteList {
    /// A list of one to eight suites, else `None`.
    #[must_use]
    pub fn new(list: &[Suite]) -> Option<Self> {
        let mut suites = [Suite(0); ANTP_SUITE_COUNT_MAX];
        suites.get_mut(..list.len())?.copy_from_slice(list);
        (!list.is_empty()).then_some(SuiteList { count: list.len() as u8, suites })
    }

    /// The suites, the best first.
    #[must_use]
    pub fn as_slice(&self) -> &[Suite] {
        &self.suites[..usize::from(self.count)]
    }

    /// Octets on the wire: slots come in pairs.
    fn size(&self) -> usize {
        list_size(usize::from(self.count))
    }
}

const fn list_size(count: usize) -> usize {
    count.next_multiple_of(2) * 2
}

/// m1. An offer, and the part of the certificate chain that the client lacks.
///
/// ```text
///  0  prefix; in the place of the suite: suites offered
///  8  suites u16 each, the best first; slots in pairs, an unused one is zero
/// 12  nonce n1                                                              32
/// 44  SHA-256 of the certificate chain that the client holds, or zero       32
/// 76  wanted chain offset u16 | largest UDP payload that is accepted u16
/// ```
///
/// Offsets are those of one or two suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiationRequest<'a> {
    /// What the client can use.
    pub suites: SuiteList,
    /// n1, random.
    pub nonce: &'a [u8; NONCE_SIZE],
    /// SHA-256 of the chain that the client holds; zero for none.
    pub held: &'a [u8; HASH_SIZE],
    /// Octets of the chain that the client has from earlier rounds.
    pub chain_offset: u16,
    /// The largest response that the client accepts, in octets of UDP payload.
    pub payload_size_max: u16,
}

impl<'a> NegotiationRequest<'a> {
    /// Octets of the field for `suite_count` suites.
    #[must_use]
    pub const fn field_size(suite_count: usize) -> usize {
        FIELD_HEADER_SIZE + PREFIX_SIZE + list_size(suite_count) + NONCE_SIZE + HASH_SIZE + 4
    }

    pub(super) fn parse(prefix: Prefix, reader: &mut Reader<'a>, offset: usize) -> Result<Self, Malformed> {
        let count = usize::from(prefix.suite.0);
        if !(1..=ANTP_SUITE_COUNT_MAX).contains(&count) {
            return Err(Malformed::new(Reason::Value, offset));
        }
        let mut suites = [Suite(0); ANTP_SUITE_COUNT_MAX];
        let slots = reader.take(list_size(count))?;
        for (suite, slot) in suites[..count].iter_mut().zip(slots.chunks_exact(2)) {
            *suite = Suite(u16::from_be_bytes([slot[0], slot[1]]));
        }
        Ok(NegotiationRequest {
            suites: SuiteList { count: count as u8, suites },
            nonce: reader.array()?,
            held: reader.array()?,
            chain_offset: reader.u16()?,
            payload_size_max: reader.u16()?,
        })
    }

    /// Writes the field.
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        let list = self.suites.as_slice();
        extension::emit_header(out, NEG_REQ, Self::field_size(list.len()) - FIELD_HEADER_SIZE)?;
        Prefix::of(Suite(u16::from(self.suites.count))).emit(out)?;
        list.iter().try_for_each(|suite| out.u16(suite.0))?;
        out.zeros(self.suites.size() - list.len() * 2)?;
        out.put(self.nonce)?;
        out.put(self.held)?;
        out.u16(self.chain_offset)?;
        out.u16(self.payload_size_max)
    }
}

/// m2. The server's choice, and C1, which holds the hash of what was said so far.
///
/// ```text
///  0  prefix with the chosen suite
///  8  all suites of the server, a bit each, u32
/// 12  chain size u16 | chunk offset u16
/// 16  SHA-256 of the chain        32
/// 48  72 u16 | zero u16
/// 52  C1                          72
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiationResponse<'a> {
    /// The server's choice.
    pub suite: Suite,
    /// All that the server has, so that the client can judge the choice.
    pub suites: Suites,
    /// Octets of the certificate chain for this suite, at most [`ANTP_CHAIN_SIZE_MAX`].
    pub chain_size: u16,
    /// Where the chunk in this packet begins; at most `chain_size`.
    pub chunk_offset: u16,
    /// SHA-256 of the whole chain.
    pub chain_hash: &'a [u8; HASH_SIZE],
    /// C1.
    pub state: &'a [u8; C1_SIZE],
}

impl<'a> NegotiationResponse<'a> {
    /// Octets of the value before C1 and its size: what the transcript hash takes from m2.
    pub const HEAD_SIZE: usize = PREFIX_SIZE + 8 + HASH_SIZE;
    /// Octets of the field.
    pub const FIELD_SIZE: usize = FIELD_HEADER_SIZE + Self::HEAD_SIZE + 4 + C1_SIZE;

    pub(super) fn parse(prefix: Prefix, reader: &mut Reader<'a>, offset: usize) -> Result<Self, Malformed> {
        let response = NegotiationResponse {
            suite: prefix.suite,
            suites: Suites(reader.u32()?),
            chain_size: reader.u16()?,
            chunk_offset: reader.u16()?,
            chain_hash: reader.array()?,
            state: super::session::sized(reader, offset)?,
        };
        if usize::from(response.chain_size) > ANTP_CHAIN_SIZE_MAX
            || response.chunk_offset > response.chain_size
        {
            return Err(Malformed::new(Reason::Value, offset));
        }
        Ok(response)
    }

    /// Writes the field.
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        extension::emit_header(out, NEG_RSP, Self::FIELD_SIZE - FIELD_HEADER_SIZE)?;
        Prefix::of(self.suite).emit(out)?;
        out.u32(self.suites.0)?;
        out.u16(self.chain_size)?;
        out.u16(self.chunk_offset)?;
        out.put(self.chain_hash)?;
        super::session::emit_sized(out, self.state)
    }
}

/// A part of a certificate chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Octets of the chain before it.
    pub offset: u16,
    /// Its octets, without the padding of the field.
    pub octets: &'a [u8],
}

/// Octets of a whole m2, header included; `chunk_size` is `None` for one without a certificate field.
#[must_use]
pub const fn negotiation_response_size(chunk_size: Option<usize>) -> usize {
    let chunk = match chunk_size {
        Some(size) => FIELD_HEADER_SIZE + PREFIX_SIZE + size.next_multiple_of(4),
        None => 0,
    };
    HEADER_SIZE + chunk + NegotiationResponse::FIELD_SIZE
}

/// The longest chunk in an m2 of at most `room` octets, a multiple of four; `None` if there is no room for any.
#[must_use]
pub const fn chunk_size_max(room: usize) -> Option<usize> {
    let room = if room > ANTP_PAYLOAD_SIZE_MAX { ANTP_PAYLOAD_SIZE_MAX } else { room };
    match room.checked_sub(negotiation_response_size(Some(0))) {
        Some(left) if left >= 4 => Some(left / 4 * 4),
        _ => None,
    }
}
