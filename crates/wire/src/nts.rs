//! The NTS fields of an NTP packet: where they lie, and how they are written. RFC 8915 section 5.
//!
//! ```text
//! authenticator body:
//!  0  nonce length u16 | ciphertext length u16      (both without padding)
//!  4  nonce, zero-padded to four
//!     ciphertext with its tag, zero-padded to four
//!     additional padding
//! ```

use crate::antp;
use crate::extension::{self, FieldType, Fields};
use crate::limits::{FIELD_HEADER_SIZE, IDENTIFIER_SIZE_MIN, PLACEHOLDER_COUNT_MAX};
use crate::packet::Packet;
use crate::{Malformed, NoRoom, Reason, Writer};

/// The block of field types of which ANTP uses some.
const ANTP_TYPES: core::ops::RangeInclusive<u16> = antp::NEG_REQ.0..=antp::PAD.0;

/// Octets of the two lengths that open an authenticator's body.
const LENGTHS_SIZE: usize = 4;

/// A part of a packet, by position; it outlives the borrow of the octets, so a batch can hold many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u16,
    size: u16,
}

impl Span {
    pub(crate) fn new(start: usize, size: usize) -> Self {
        // A packet has at most DATAGRAM_SIZE_MAX octets, far below 2^16.
        Span { start: start as u16, size: size as u16 }
    }

    /// Octets from the start of the packet.
    #[must_use]
    pub const fn start(self) -> usize {
        self.start as usize
    }

    /// Octets from the start of the packet to the octet after the part.
    #[must_use]
    pub const fn end(self) -> usize {
        self.start as usize + self.size as usize
    }

    /// Size in octets.
    #[must_use]
    pub const fn size(self) -> usize {
        self.size as usize
    }

    /// The octets of this part of `packet`, the packet that the span was found in.
    ///
    /// # Panics
    /// If `packet` is shorter than the one in which the span was found.
    #[must_use]
    #[inline]
    pub fn of(self, packet: &[u8]) -> &[u8] {
        &packet[self.start()..self.end()]
    }
}

/// The parts of an authenticator field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Authenticator {
    /// Octets before the field: the associated data. RFC 8915 section 5.6.
    pub associated_size: usize,
    /// The nonce, without padding.
    pub nonce: Span,
    /// Ciphertext and tag, without padding.
    pub ciphertext: Span,
    /// Octets of the body after nonce and ciphertext with their padding.
    pub padding_size: usize,
}

/// Where the NTS fields of a packet lie. Fields after the authenticator are not authenticated and are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NtsFields {
    /// The body of the unique identifier, at least 32 octets.
    pub identifier: Option<Span>,
    /// The body of the cookie field.
    pub cookie: Option<Span>,
    /// Clear placeholders of the cookie's size, at most seven of them: more are not counted.
    pub placeholder_count: usize,
    /// The authenticator.
    pub authenticator: Option<Authenticator>,
    /// Whether a field before the authenticator has a type that ANTP uses: the packet may be one of ANTP.
    pub has_antp: bool,
}

impl NtsFields {
    /// Finds the NTS fields of `packet`. Fails on a field that appears twice before the authenticator (placeholders
    /// may), a short identifier, or an authenticator whose inner lengths contradict the field's.
    // Inlined, as most of what it finds goes to memory of the caller's: returned as a whole, it would be copied
    // before it has arrived there.
    #[inline(always)]
    pub fn locate(packet: &Packet<'_>) -> Result<Self, Malformed> {
        let mut found = NtsFields::default();
        let mut placeholder_seen = false;
        for field in packet.fields() {
            let body = Span::new(field.offset + FIELD_HEADER_SIZE, field.body.len());
            match field.kind {
                FieldType::UNIQUE_IDENTIFIER => {
                    //= rfc8915#5.3-2
                    if body.size() < IDENTIFIER_SIZE_MIN {
                        return Err(Malformed::new(Reason::ShortIdentifier, field.offset));
                    }
                    set_once(&mut found.identifier, body, field.offset)?;
                }
                FieldType::NTS_COOKIE => set_once(&mut found.cookie, body, field.offset)?,
                FieldType::NTS_COOKIE_PLACEHOLDER => placeholder_seen = true,
                FieldType::NTS_AUTHENTICATOR => {
                    //= rfc8915#5.7-11, rfc8915#5.7-17
                    found.authenticator = Some(locate_authenticator(field.offset, field.body)?);
                    break;
                }
                //= rfc7822#3-1
                FieldType(kind) => found.has_antp |= ANTP_TYPES.contains(&kind),
            }
        }
        if let (true, Some(cookie)) = (placeholder_seen, found.cookie) {
            found.placeholder_count = packet
                .fields()
                .take_while(|field| field.kind != FieldType::NTS_AUTHENTICATOR)
                //= rfc8915#5.5-3, rfc8915#5.5-5
                .filter(|f| f.kind == FieldType::NTS_COOKIE_PLACEHOLDER && f.body.len() == cookie.size())
                //= rfc8915#5.7-9
                .take(PLACEHOLDER_COUNT_MAX)
                .count();
        }
        Ok(found)
    }

    /// Whether any of the fields marks the packet as an NTS packet; a unique identifier alone does not.
    #[must_use]
    pub const fn is_nts(&self) -> bool {
        self.cookie.is_some() || self.authenticator.is_some()
    }
}

//= rfc8915#5.7-1
#[inline(always)]
fn set_once(slot: &mut Option<Span>, value: Span, offset: usize) -> Result<(), Malformed> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Malformed::new(Reason::Duplicate, offset)),
    }
}

//= rfc8915#5.6-1
#[inline(always)]
fn locate_authenticator(offset: usize, body: &[u8]) -> Result<Authenticator, Malformed> {
    let contradiction = Malformed::new(Reason::InnerLength, offset);
    let lengths: &[u8; LENGTHS_SIZE] = body.first_chunk().ok_or(contradiction)?;
    let nonce_size = usize::from(u16::from_be_bytes([lengths[0], lengths[1]]));
    let ciphertext_size = usize::from(u16::from_be_bytes([lengths[2], lengths[3]]));
    let nonce_start = LENGTHS_SIZE;
    let ciphertext_start = nonce_start + nonce_size.next_multiple_of(4);
    let end = ciphertext_start + ciphertext_size.next_multiple_of(4);
    let (Some(nonce), Some(ciphertext)) =
        (body.get(nonce_start..ciphertext_start), body.get(ciphertext_start..end))
    else {
        return Err(contradiction);
    };
    // RFC 8915 section 5.6: nonce and ciphertext are padded with zeros. Nothing else covers these octets.
    if !is_zero(&nonce[nonce_size..]) || !is_zero(&ciphertext[ciphertext_size..]) {
        return Err(contradiction);
    }
    let body_start = offset + FIELD_HEADER_SIZE;
    Ok(Authenticator {
        associated_size: offset,
        nonce: Span::new(body_start + nonce_start, nonce_size),
        ciphertext: Span::new(body_start + ciphertext_start, ciphertext_size),
        padding_size: body.len() - end,
    })
}

#[inline]
fn is_zero(octets: &[u8]) -> bool {
    octets.iter().all(|&octet| octet == 0)
}

/// Placeholders of `cookie_size` octets among the fields of a decrypted text, at most seven. RFC 8915 section 5.5
/// lets a client encrypt them.
//= rfc8915#5.6-5
#[inline]
pub fn count_encrypted_placeholders(plaintext: &[u8], cookie_size: usize) -> Result<usize, Malformed> {
    let mut count = 0;
    for field in Fields::new(plaintext, 0, FIELD_HEADER_SIZE) {
        let field = field?;
        if field.kind == FieldType::NTS_COOKIE_PLACEHOLDER && field.body.len() == cookie_size {
            count += 1;
        }
    }
    Ok(count.min(PLACEHOLDER_COUNT_MAX))
}

/// Octets of a whole authenticator field with these sizes and no additional padding.
#[must_use]
pub const fn authenticator_size(nonce_size: usize, ciphertext_size: usize) -> usize {
    FIELD_HEADER_SIZE + LENGTHS_SIZE + nonce_size.next_multiple_of(4) + ciphertext_size.next_multiple_of(4)
}

/// Octets of a whole cookie field.
#[must_use]
pub const fn cookie_field_size(cookie_size: usize) -> usize {
    FIELD_HEADER_SIZE + cookie_size.next_multiple_of(4)
}

/// Writes an authenticator around `nonce`, with room for `ciphertext_size` octets that the caller fills, and
/// `padding_size` zero octets at its end; returns where the nonce stands and where the ciphertext goes.
//= rfc8915#5.6-1
#[inline(always)]
pub fn emit_authenticator(
    out: &mut Writer<'_>,
    nonce: &[u8],
    ciphertext_size: usize,
    padding_size: usize,
) -> Result<(Span, Span), NoRoom> {
    let body_size = authenticator_size(nonce.len(), ciphertext_size) - FIELD_HEADER_SIZE + padding_size;
    extension::emit_header(out, FieldType::NTS_AUTHENTICATOR, body_size)?;
    out.u16(u16::try_from(nonce.len()).map_err(|_| NoRoom)?)?;
    out.u16(u16::try_from(ciphertext_size).map_err(|_| NoRoom)?)?;
    let nonce_span = Span::new(out.offset(), nonce.len());
    out.put(nonce)?;
    out.zeros(nonce.len().next_multiple_of(4) - nonce.len())?;
    let ciphertext_span = Span::new(out.offset(), ciphertext_size);
    out.reserve(ciphertext_size)?;
    out.zeros(ciphertext_size.next_multiple_of(4) - ciphertext_size + padding_size.next_multiple_of(4))?;
    Ok((nonce_span, ciphertext_span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Header;
    use crate::limits::HEADER_SIZE;
    use crate::time::NtpTime;
    use std::vec;
    use std::vec::Vec;

    fn packet(build: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut octets = vec![0; 2048];
        let mut header = [0; HEADER_SIZE];
        Header::minimal_request(NtpTime::from_bits(1)).emit(&mut header);
        let mut out = Writer::new(&mut octets);
        out.put(&header).unwrap();
        build(&mut out);
        let size = out.offset();
        octets.truncate(size);
        octets
    }

    fn locate(octets: &[u8]) -> Result<NtsFields, Malformed> {
        NtsFields::locate(&Packet::parse(octets)?)
    }

    //= rfc8915#5.5-3, rfc8915#5.6-1, rfc8915#5.6-4
    #[test]
    fn request_with_placeholders_is_taken_apart() {
        let octets = packet(|out| {
            extension::emit(out, FieldType::UNIQUE_IDENTIFIER, &[7; 32]).unwrap();
            extension::emit(out, FieldType::NTS_COOKIE, &[8; 100]).unwrap();
            extension::emit(out, FieldType::NTS_COOKIE_PLACEHOLDER, &[0; 100]).unwrap();
            extension::emit(out, FieldType::NTS_COOKIE_PLACEHOLDER, &[0; 96]).unwrap();
            emit_authenticator(out, &[9; 16], 16, 0).unwrap();
        });
        let fields = locate(&octets).unwrap();
        assert_eq!(fields.identifier.unwrap().of(&octets), [7; 32]);
        assert_eq!(fields.cookie.unwrap().of(&octets), [8; 100]);
        assert_eq!(fields.placeholder_count, 1, "a placeholder of another size earns no cookie");
        let authenticator = fields.authenticator.unwrap();
        assert_eq!(authenticator.nonce.of(&octets), [9; 16]);
        assert_eq!(authenticator.ciphertext.size(), 16);
        assert_eq!(authenticator.associated_size, octets.len() - authenticator_size(16, 16));
    }

    //= rfc8915#5.7-9
    #[test]
    fn thousand_placeholders_count_as_seven() {
        let octets = packet(|out| {
            extension::emit(out, FieldType::NTS_COOKIE, &[8; 12]).unwrap();
            for _ in 0..100 {
                extension::emit(out, FieldType::NTS_COOKIE_PLACEHOLDER, &[0; 12]).unwrap();
            }
            emit_authenticator(out, &[9; 16], 16, 0).unwrap();
        });
        assert_eq!(locate(&octets).unwrap().placeholder_count, PLACEHOLDER_COUNT_MAX);
        let mut inner = vec![0; 4000 * 4];
        for field in inner.chunks_exact_mut(4) {
            field.copy_from_slice(&[3, 4, 0, 4]);
        }
        assert_eq!(count_encrypted_placeholders(&inner, 0), Ok(PLACEHOLDER_COUNT_MAX));
    }

    //= rfc8915#5.7-1
    #[test]
    fn second_cookie_or_identifier_is_refused() {
        for kind in [FieldType::NTS_COOKIE, FieldType::UNIQUE_IDENTIFIER] {
            let octets = packet(|out| {
                extension::emit(out, kind, &[8; 100]).unwrap();
                extension::emit(out, kind, &[8; 100]).unwrap();
            });
            assert_eq!(locate(&octets).unwrap_err().reason, Reason::Duplicate);
        }
    }

    //= rfc8915#5.7-11, rfc8915#5.7-17
    #[test]
    fn fields_after_the_authenticator_are_ignored() {
        let octets = packet(|out| {
            emit_authenticator(out, &[9; 16], 16, 0).unwrap();
            extension::emit(out, FieldType::NTS_COOKIE, &[8; 100]).unwrap();
        });
        let fields = locate(&octets).unwrap();
        assert_eq!((fields.cookie, fields.authenticator.is_some()), (None, true));
    }

    //= rfc8915#5.3-2
    #[test]
    fn short_identifier_is_refused() {
        let octets = packet(|out| extension::emit(out, FieldType::UNIQUE_IDENTIFIER, &[7; 28]).unwrap());
        assert_eq!(locate(&octets).unwrap_err().reason, Reason::ShortIdentifier);
    }

    //= rfc8915#5.6-1
    #[test]
    fn every_pair_of_inner_lengths_is_judged_without_panic() {
        let body_at = HEADER_SIZE + FIELD_HEADER_SIZE;
        let octets = packet(|out| {
            emit_authenticator(out, &[0; 16], 16, 0).unwrap();
        });
        for nonce_size in (0u16..80).chain([u16::MAX - 3, u16::MAX]) {
            for ciphertext_size in (0u16..80).chain([u16::MAX - 3, u16::MAX]) {
                let mut octets = octets.clone();
                octets[body_at..body_at + 2].copy_from_slice(&nonce_size.to_be_bytes());
                octets[body_at + 2..body_at + 4].copy_from_slice(&ciphertext_size.to_be_bytes());
                let fits = usize::from(nonce_size).next_multiple_of(4)
                    + usize::from(ciphertext_size).next_multiple_of(4)
                    <= 32;
                assert_eq!(locate(&octets).is_ok(), fits, "{nonce_size} {ciphertext_size}");
            }
        }
    }

    /// SIV takes any nonce from one octet up (RFC 5297 section 6); what bounds it is the datagram.
    #[test]
    fn nonce_is_as_long_as_there_is_room() {
        for nonce_size in [1, 16, 64, 65, 100, 1500] {
            let octets = packet(|out| {
                emit_authenticator(out, &vec![9; nonce_size], 16, 0).unwrap();
            });
            let authenticator = locate(&octets).unwrap().authenticator.unwrap();
            assert_eq!(authenticator.nonce.of(&octets), vec![9; nonce_size]);
        }
    }

    #[test]
    fn nonzero_padding_is_refused() {
        let mut octets = packet(|out| {
            emit_authenticator(out, &[9; 13], 17, 0).unwrap();
        });
        assert!(locate(&octets).is_ok());
        *octets.last_mut().unwrap() = 1;
        assert_eq!(locate(&octets).unwrap_err().reason, Reason::InnerLength);
    }
}
