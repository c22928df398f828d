//! m3 to m6 and errors: the key exchange, and time under its key.

use super::{
    C1_SIZE, C2_SIZE, EARLY_SIZE, ERR, ErrorCode, KEX_REQ, KEX_RSP, MAGIC, NONCE_SIZE, PREFIX_SIZE, Prefix,
    Suite, TAG_SIZE, TS_EARLY, TS_REQ, TS_RSP,
};
use crate::extension;
use crate::limits::{FIELD_HEADER_SIZE, HEADER_SIZE};
use crate::{Malformed, NoRoom, Reader, Reason, Writer};

/// A u16 that says `N`, a zero u16, and `N` octets. The zero is checked as m2's is the one that no transcript covers.
pub(super) fn sized<'a, const N: usize>(
    reader: &mut Reader<'a>,
    offset: usize,
) -> Result<&'a [u8; N], Malformed> {
    let (size, zero) = (usize::from(reader.u16()?), reader.u16()?);
    //= antp#messages-1
    match (size == N, zero) {
        (true, 0) => reader.array(),
        (true, _) => Err(Malformed::new(Reason::Value, offset)),
        (false, _) => Err(Malformed::new(Reason::InnerLength, offset)),
    }
}

/// Writes the size of `octets`, a zero u16, and the octets, zero-padded to a multiple of four.
pub(super) fn emit_sized(out: &mut Writer<'_>, octets: &[u8]) -> Result<(), NoRoom> {
    out.u16(u16::try_from(octets.len()).map_err(|_| NoRoom)?)?;
    out.u16(0)?;
    out.put(octets)?;
    out.zeros(octets.len().next_multiple_of(4) - octets.len())
}

/// m3. C1 comes back, with a secret for the server.
///
/// ```text
///  0  prefix
///  8  C1                              72
/// 80  ciphertext size u16 | zero u16
/// 84  KEM ciphertext, zero-padded to four: 65 octets in 68, 256, or 32
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRequest<'a> {
    /// The suite that the server chose.
    pub suite: Suite,
    /// C1.
    pub state: &'a [u8; C1_SIZE],
    /// The KEM's ciphertext, of the suite's size.
    pub ciphertext: &'a [u8],
}

impl<'a> KeyRequest<'a> {
    /// Octets of the field before C1.
    pub const STATE_START: usize = FIELD_HEADER_SIZE + PREFIX_SIZE;

    /// Octets of the field around a ciphertext.
    #[must_use]
    pub const fn field_size(ciphertext_size: usize) -> usize {
        FIELD_HEADER_SIZE + PREFIX_SIZE + C1_SIZE + 4 + ciphertext_size.next_multiple_of(4)
    }

    pub(super) fn parse(prefix: Prefix, reader: &mut Reader<'a>, offset: usize) -> Result<Self, Malformed> {
        let state = reader.array()?;
        let size = usize::from(reader.u16()?);
        reader.take(2)?;
        let padded = reader.left();
        let expected = prefix.suite.ciphertext_size().unwrap_or(size);
        if size == 0 || size != expected || size.next_multiple_of(4) != padded {
            return Err(Malformed::new(Reason::InnerLength, offset));
        }
        let ciphertext = &reader.take(padded)?[..size];
        Ok(KeyRequest { suite: prefix.suite, state, ciphertext })
    }

    /// Writes the field.
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        let size = Self::field_size(self.ciphertext.len());
        extension::emit_header(out, KEX_REQ, size - FIELD_HEADER_SIZE)?;
        Prefix::of(self.suite).emit(out)?;
        out.put(self.state)?;
        emit_sized(out, self.ciphertext)
    }
}

/// m4. The session key, sealed for the server, and proof that both ends saw the same messages.
///
/// ```text
///  0  prefix
///  8  60 u16 | zero u16
/// 12  C2                  60
/// 72  lifetime u32         4
/// 76  tau1                32
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyResponse<'a> {
    /// The suite.
    pub suite: Suite,
    /// C2.
    pub state: &'a [u8; C2_SIZE],
    /// Seconds from the arrival of m3 for which C2 opens.
    pub lifetime_seconds: u32,
    /// tau1.
    pub tag: &'a [u8; TAG_SIZE],
}

impl<'a> KeyResponse<'a> {
    /// Octets of the value before tau1: what the second transcript hash takes from m4.
    pub const HEAD_SIZE: usize = PREFIX_SIZE + 4 + C2_SIZE + size_of::<u32>();
    /// Octets of the field.
    pub const FIELD_SIZE: usize = FIELD_HEADER_SIZE + Self::HEAD_SIZE + TAG_SIZE;

    pub(super) fn parse(prefix: Prefix, reader: &mut Reader<'a>, offset: usize) -> Result<Self, Malformed> {
        Ok(KeyResponse {
            suite: prefix.suite,
            state: sized(reader, offset)?,
            lifetime_seconds: reader.u32()?,
            tag: reader.array()?,
        })
    }

    /// Writes the field.
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        extension::emit_header(out, KEX_RSP, Self::FIELD_SIZE - FIELD_HEADER_SIZE)?;
        Prefix::of(self.suite).emit(out)?;
        emit_sized(out, self.state)?;
        out.u32(self.lifetime_seconds)?;
        out.put(self.tag)
    }
}

/// m5. A request for time under the key in C2.
///
/// ```text
///  0  prefix; flag 1: wants a fresh C2, flag 2: separate-tag mode
///  8  nonce n3            32
/// 40  C2                  60
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRequest<'a> {
    /// The suite.
    pub suite: Suite,
    /// The client would like its C2 sealed anew, under the server's current state key.
    pub wants_fresh: bool,
    /// The client would like the time first and the tag in a packet of its own.
    pub wants_early: bool,
    /// n3, random.
    pub nonce: &'a [u8; NONCE_SIZE],
    /// C2.
    pub state: &'a [u8; C2_SIZE],
}

impl<'a> TimeRequest<'a> {
    /// Octets of the field.
    pub const FIELD_SIZE: usize = FIELD_HEADER_SIZE + PREFIX_SIZE + NONCE_SIZE + C2_SIZE;
    const FRESH: u8 = 0x01;
    const EARLY: u8 = 0x02;

    /// Octets of a packet with this field alone.
    pub const PACKET_SIZE: usize = HEADER_SIZE + Self::FIELD_SIZE;

    /// The request in a packet with this field alone, as nearly all are: what [`super::Antp::locate`] finds there, in
    /// a fraction of the time. `None` if the packet is of another kind, or has more fields, or is broken.
    #[must_use]
    #[inline]
    pub fn alone(packet: &'a [u8]) -> Option<Self> {
        let (header, field) = packet.split_first_chunk::<HEADER_SIZE>()?;
        let (opening, value) = field.split_first_chunk::<FIELD_HEADER_SIZE>()?;
        let [kind, size] = [TS_REQ.0, Self::FIELD_SIZE as u16].map(u16::to_be_bytes);
        let is_alone = packet.len() == Self::PACKET_SIZE && *opening == [kind[0], kind[1], size[0], size[1]];
        if !is_alone || header[0] >> 3 & 7 != 4 || !value.starts_with(&MAGIC) {
            return None;
        }
        let mut reader = Reader::new(value);
        let prefix = Prefix::parse(&mut reader, HEADER_SIZE).ok()?;
        Self::parse(prefix, &mut reader).ok()
    }

    pub(super) fn parse(prefix: Prefix, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(TimeRequest {
            suite: prefix.suite,
            wants_fresh: prefix.flags & Self::FRESH != 0,
            wants_early: prefix.flags & Self::EARLY != 0,
            nonce: reader.array()?,
            state: reader.array()?,
        })
    }

    /// Writes the field.
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        extension::emit_header(out, TS_REQ, Self::FIELD_SIZE - FIELD_HEADER_SIZE)?;
        let [fresh, early] = [self.wants_fresh, self.wants_early].map(u8::from);
        let flags = (fresh * Self::FRESH) | (early * Self::EARLY);
        Prefix { flags, suite: self.suite }.emit(out)?;
        out.put(self.nonce)?;
        out.put(self.state)
    }
}

/// m6. The tag over request and response, and a fresh C2 if one was asked for and is due.
///
/// ```text
///  0  prefix; flag 1: with a fresh C2
///  8  C2                  60, with flag 1 only
///     tau2                32
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeResponse<'a> {
    /// The suite.
    pub suite: Suite,
    /// A fresh C2.
    pub fresh: Option<&'a [u8; C2_SIZE]>,
    /// tau2.
    pub tag: &'a [u8; TAG_SIZE],
}

impl<'a> TimeResponse<'a> {
    const FRESH: u8 = 0x01;

    /// Octets of the field, with or without a fresh C2.
    #[must_use]
    pub const fn field_size(is_fresh: bool) -> usize {
        FIELD_HEADER_SIZE + PREFIX_SIZE + if is_fresh { C2_SIZE } else { 0 } + TAG_SIZE
    }

    pub(super) fn parse(prefix: Prefix, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let fresh = match prefix.flags & Self::FRESH {
            0 => None,
            _ => Some(reader.array()?),
        };
        Ok(TimeResponse { suite: prefix.suite, fresh, tag: reader.array()? })
    }

    /// Writes the field.
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        let size = Self::field_size(self.fresh.is_some());
        extension::emit_header(out, TS_RSP, size - FIELD_HEADER_SIZE)?;
        let flags = if self.fresh.is_some() { Self::FRESH } else { 0 };
        Prefix { flags, suite: self.suite }.emit(out)?;
        self.fresh.iter().try_for_each(|fresh| out.put(*fresh))?;
        out.put(self.tag)
    }
}

/// The packet before m6 in separate-tag mode: nobody can make one up before it is sent.
///
/// ```text
///  0  prefix
///  8  r6                  16
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Early<'a> {
    /// The suite.
    pub suite: Suite,
    /// r6, random.
    pub random: &'a [u8; EARLY_SIZE],
}

impl<'a> Early<'a> {
    /// Octets of the field.
    pub const FIELD_SIZE: usize = FIELD_HEADER_SIZE + PREFIX_SIZE + EARLY_SIZE;

    pub(super) fn parse(prefix: Prefix, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Early { suite: prefix.suite, random: reader.array()? })
    }

    /// Writes the field.
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        extension::emit_header(out, TS_EARLY, Self::FIELD_SIZE - FIELD_HEADER_SIZE)?;
        Prefix::of(self.suite).emit(out)?;
        out.put(self.random)
    }
}

/// The server gives up. Nothing vouches for it.
///
/// ```text
///  0  prefix
///  8  code u16 | zero u16
/// 12  zeros               24
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorMessage {
    /// Why.
    pub code: ErrorCode,
}

impl ErrorMessage {
    const RESERVED_SIZE: usize = 2 + 24;
    /// Octets of the field.
    pub const FIELD_SIZE: usize = FIELD_HEADER_SIZE + PREFIX_SIZE + 2 + Self::RESERVED_SIZE;

    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let code = ErrorCode(reader.u16()?);
        reader.take(Self::RESERVED_SIZE)?;
        Ok(ErrorMessage { code })
    }

    /// Writes the field.
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        extension::emit_header(out, ERR, Self::FIELD_SIZE - FIELD_HEADER_SIZE)?;
        Prefix::default().emit(out)?;
        out.u16(self.code.0)?;
        out.zeros(Self::RESERVED_SIZE)
    }
}
