//! RFC 7822 extension fields: iterating over them and writing them.
//!
//! ```text
//!  0  type u16 | length u16, header and padding included, a multiple of four
//!  4  body, zero-padded
//! ```

use core::fmt;

use crate::limits::FIELD_HEADER_SIZE;
use crate::{Malformed, NoRoom, Reason, Writer};

/// Extension field type; unknown values survive a round trip. Registry: RFC 9748 section 4.3.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldType(pub u16);

impl FieldType {
    /// Unique identifier. RFC 8915 section 5.3.
    pub const UNIQUE_IDENTIFIER: FieldType = FieldType(0x0104);
    /// NTS cookie. RFC 8915 section 5.4.
    pub const NTS_COOKIE: FieldType = FieldType(0x0204);
    /// NTS cookie placeholder. RFC 8915 section 5.5.
    pub const NTS_COOKIE_PLACEHOLDER: FieldType = FieldType(0x0304);
    /// NTS authenticator and encrypted fields. RFC 8915 section 5.6.
    pub const NTS_AUTHENTICATOR: FieldType = FieldType(0x0404);
}

impl fmt::Debug for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04X}", self.0)
    }
}

/// One extension field of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// What it is.
    pub kind: FieldType,
    /// Octets from the start of the packet to the field's header.
    pub offset: usize,
    /// The body with its padding.
    pub body: &'a [u8],
}

impl Field<'_> {
    /// Octets from the start of the packet to the octet after the field.
    #[must_use]
    pub const fn end(&self) -> usize {
        self.offset + FIELD_HEADER_SIZE + self.body.len()
    }
}

/// Iterates over consecutive fields; ends after the first error.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    packet: &'a [u8],
    at: usize,
    field_size_min: usize,
}

impl<'a> Fields<'a> {
    /// The fields from octet `start` of `packet` to its end, each at least `field_size_min` octets long: 16 in a
    /// packet (RFC 7822 section 3), 4 inside an NTS ciphertext (RFC 8915 section 5.6).
    #[must_use]
    pub const fn new(packet: &'a [u8], start: usize, field_size_min: usize) -> Self {
        Fields { packet, at: start, field_size_min }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    //= rfc7822#3-2
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.at;
        let rest = self.packet.get(offset..)?;
        if rest.is_empty() {
            return None;
        }
        self.at = usize::MAX;
        let Some((head, after)) = rest.split_first_chunk::<FIELD_HEADER_SIZE>() else {
            return Some(Err(Malformed::new(Reason::Truncated, offset)));
        };
        let kind = FieldType(u16::from_be_bytes([head[0], head[1]]));
        let size = usize::from(u16::from_be_bytes([head[2], head[3]]));
        if !size.is_multiple_of(4) {
            return Some(Err(Malformed::new(Reason::Unaligned, offset)));
        }
        if size < self.field_size_min || size > rest.len() {
            return Some(Err(Malformed::new(Reason::FieldLength, offset)));
        }
        self.at = offset + size;
        Some(Ok(Field { kind, offset, body: &after[..size - FIELD_HEADER_SIZE] }))
    }
}

/// Writes a field's header for a body of `body_size` octets; the caller writes the body and pads it to four octets.
#[inline(always)]
pub fn emit_header(out: &mut Writer<'_>, kind: FieldType, body_size: usize) -> Result<(), NoRoom> {
    let size = FIELD_HEADER_SIZE + body_size.next_multiple_of(4);
    out.u16(kind.0)?;
    out.u16(u16::try_from(size).map_err(|_| NoRoom)?)
}

/// Writes a whole field, zero-padded to a multiple of four octets.
#[inline(always)]
pub fn emit(out: &mut Writer<'_>, kind: FieldType, body: &[u8]) -> Result<(), NoRoom> {
    emit_header(out, kind, body.len())?;
    out.put(body)?;
    out.zeros(body.len().next_multiple_of(4) - body.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn field_is_padded_and_read_back() {
        let mut octets = [0xAA; 20];
        let mut out = Writer::new(&mut octets);
        emit(&mut out, FieldType(0xF001), &[1; 13]).unwrap();
        assert_eq!(out.offset(), 20);
        let field = Fields::new(&octets, 0, 16).next().unwrap().unwrap();
        assert_eq!((field.kind, field.body.len(), field.end()), (FieldType(0xF001), 16, 20));
        assert_eq!(&field.body[13..], &[0, 0, 0]);
    }

    //= rfc7822#3-2
    #[test]
    fn every_length_is_accepted_or_refused_by_rule() {
        for declared in 0..=u16::MAX {
            let mut octets = [0; 64];
            octets[2..4].copy_from_slice(&declared.to_be_bytes());
            let first = Fields::new(&octets, 0, 16).next().unwrap();
            let good = declared % 4 == 0 && (16..=64).contains(&declared);
            assert_eq!(first.is_ok(), good, "{declared}");
        }
    }

    #[test]
    fn iteration_ends_after_an_error() {
        let octets = [0, 1, 0, 3, 0, 0, 0, 0];
        assert_eq!(Fields::new(&octets, 0, 4).collect::<Vec<_>>().len(), 1);
    }
}
