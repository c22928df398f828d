//! Symmetric-key message authentication codes: the trailer of RFC 5905 section 7.3, and an experimental extension field
//! for the nonce that some algorithms take.
//!
//! ```text
//! packet with a MAC:
//!  0  header
//! 48  extension fields (version 4 only)
//!     nonce field, the last one, if the algorithm of the key takes a nonce
//!     key identifier u32, not zero
//!     digest: version 4: 16 octets, or 20 (longer ones are cut off there)
//!             versions 1 to 3: the whole digest, 16 to 64 octets; or cut off at 20
//!
//! nonce field, our own (RFC 9748 section 4.3 leaves 0xF000 to 0xFFFF to experiments):
//!  0  type 0xFB01 | length 16
//!  4  nonce, 12 octets
//!     or, where the key has a salt of 4 octets: nonce, 8 octets | zero, 4 octets
//! ```
//!
//! The digest covers everything before the key identifier: the header and all fields, that of the nonce included. Which
//! algorithm a key has, and so whether a nonce must be there, both sides know from the key. To a key whose algorithm
//! takes none the field is one of those that nobody knows: covered, and ignored. A receiver that does not know the
//! field at all does not know the key either.
//!
//! What is not here: MS-SNTP, whose requests ask a Windows domain controller to sign with a machine's account. They
//! look like a MAC of version 3 whose digest is zero ([`MacFields::is_ms_sntp`]); those with 72 octets behind the
//! header are no NTP packets to [`Packet::parse`].

use crate::extension::{self, FieldType};
use crate::limits::{FIELD_HEADER_SIZE, FIELD_SIZE_MIN, MAC_SIZE_MAX};
use crate::nts::Span;
use crate::packet::{Packet, Trailer};
use crate::{NoRoom, Writer};

/// Octets of a key identifier.
pub const KEY_ID_SIZE: usize = 4;

/// Octets of a nonce field's body: a nonce, or the part of it that is not salt, and zeros.
pub const NONCE_BODY_SIZE: usize = 12;

/// Octets of a whole nonce field.
pub const NONCE_FIELD_SIZE: usize = FIELD_HEADER_SIZE + NONCE_BODY_SIZE;

/// Octets at which NTPv4 cuts a digest off. RFC 7822 section 3 leaves room for no more.
pub const DIGEST_SIZE_MAX: usize = MAC_SIZE_MAX - KEY_ID_SIZE;

/// Octets of a crypto-NAK behind the header: a key identifier of zero, and no digest. RFC 5905 section 9.2.
pub const CRYPTO_NAK_SIZE: usize = KEY_ID_SIZE;

const _: () = assert!(NONCE_FIELD_SIZE == FIELD_SIZE_MIN, "the nonce fills the shortest field");

impl FieldType {
    /// The nonce of a MAC. Experimental, see [`crate::mac`].
    pub const MAC_NONCE: FieldType = FieldType(0xFB01);
}

/// Octets of a digest in a packet of version 4, for an algorithm whose tags have `tag_size`.
//= rfc7822#3-5
#[must_use]
pub const fn digest_size(tag_size: usize) -> usize {
    if tag_size > DIGEST_SIZE_MAX { DIGEST_SIZE_MAX } else { tag_size }
}

/// Whether a digest of `size` octets may stand in a packet of `version` for an algorithm whose tags have `tag_size`.
///
/// Version 4 cuts off what is above 20 octets. In older ones chrony sends the whole digest, others cut it off too.
#[must_use]
pub const fn accepts_digest(version: u8, tag_size: usize, size: usize) -> bool {
    size == digest_size(tag_size) || version < 4 && size == tag_size
}

/// Where the parts of a packet with a MAC lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacFields {
    /// Names the key.
    pub key_id: u32,
    /// The digest.
    pub digest: Span,
    /// The body of the nonce field, if the last field is one.
    pub nonce: Option<Span>,
}

impl MacFields {
    /// Finds the MAC of `packet`, if it has one.
    //= rfc5905#7.3-8
    #[must_use]
    pub fn locate(packet: &Packet<'_>) -> Option<Self> {
        let Trailer::Mac { key_id, digest } = packet.trailer() else { return None };
        let digest = Span::new(packet.octets().len() - digest.len(), digest.len());
        let last = if packet.has_fields() { packet.fields().last() } else { None };
        let nonce = last
            .filter(|field| field.kind == FieldType::MAC_NONCE && field.body.len() == NONCE_BODY_SIZE)
            .map(|field| Span::new(field.offset + FIELD_HEADER_SIZE, NONCE_BODY_SIZE));
        Some(MacFields { key_id, digest, nonce })
    }

    /// Octets before the key identifier, which the digest covers.
    #[must_use]
    pub const fn covered_size(&self) -> usize {
        covered_size(self.digest)
    }

    /// The octets of the nonce field's body in `packet`, the packet in which these fields were found.
    ///
    /// # Panics
    /// If `packet` is shorter than that.
    #[must_use]
    pub fn nonce_of<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8; NONCE_BODY_SIZE]> {
        self.nonce.and_then(|nonce| nonce.of(packet).try_into().ok())
    }

    /// Whether this is no MAC but a request for an MS-SNTP signature: version 3, 16 zero octets for a digest.
    #[must_use]
    pub fn is_ms_sntp(&self, packet: &Packet<'_>) -> bool {
        packet.header().version == 3
            && self.digest.size() == 16
            && self.digest.of(packet.octets()).iter().all(|&octet| octet == 0)
    }
}

/// Octets before the key identifier of a packet whose digest stands at `digest`.
//= rfc8573#3-1
#[must_use]
pub const fn covered_size(digest: Span) -> usize {
    digest.start() - KEY_ID_SIZE
}

/// Writes a nonce field.
pub fn emit_nonce(out: &mut Writer<'_>, body: &[u8; NONCE_BODY_SIZE]) -> Result<(), NoRoom> {
    extension::emit(out, FieldType::MAC_NONCE, body)
}

/// Writes a key identifier, and room for `digest_size` octets that the caller fills; returns where they are.
pub fn emit_trailer(out: &mut Writer<'_>, key_id: u32, digest_size: usize) -> Result<Span, NoRoom> {
    out.put(&key_id.to_be_bytes())?;
    let digest = Span::new(out.offset(), digest_size);
    out.reserve(digest_size)?;
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Header;
    use crate::limits::HEADER_SIZE;
    use crate::time::NtpTime;
    use std::vec;
    use std::vec::Vec;

    fn packet(version: u8, build: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut octets = vec![0; 256];
        let mut header = [0; HEADER_SIZE];
        Header { version, ..Header::minimal_request(NtpTime::from_bits(1)) }.emit(&mut header);
        let mut out = Writer::new(&mut octets);
        out.put(&header).unwrap();
        build(&mut out);
        let size = out.offset();
        octets.truncate(size);
        octets
    }

    fn locate(octets: &[u8]) -> Option<MacFields> {
        MacFields::locate(&Packet::parse(octets).unwrap())
    }

    //= rfc5905#7.3-8
    #[test]
    fn mac_is_taken_apart_with_its_nonce_or_without() {
        let plain = packet(4, |out| {
            emit_trailer(out, 7, 16).unwrap();
        });
        let fields = locate(&plain).unwrap();
        assert_eq!((fields.key_id, fields.covered_size(), fields.nonce), (7, 48, None));
        assert_eq!((fields.digest.start(), fields.digest.size()), (52, 16));
        let nonced = packet(4, |out| {
            emit_nonce(out, &[9; 12]).unwrap();
            emit_trailer(out, 7, 16).unwrap();
        });
        assert_eq!(nonced.len(), 84);
        let fields = locate(&nonced).unwrap();
        assert_eq!((fields.covered_size(), fields.nonce_of(&nonced)), (64, Some(&[9; 12])));
    }

    #[test]
    fn nonce_must_be_the_last_field_and_of_its_size() {
        let other = FieldType(0xF001);
        let has_nonce = |fields: &[(FieldType, usize)]| {
            let octets = packet(4, |out| {
                fields.iter().for_each(|&(kind, size)| extension::emit(out, kind, &vec![1; size]).unwrap());
                emit_trailer(out, 7, 16).unwrap();
            });
            locate(&octets).unwrap().nonce.is_some()
        };
        assert!(has_nonce(&[(other, 12), (FieldType::MAC_NONCE, 12)]));
        assert!(has_nonce(&[(FieldType::MAC_NONCE, 12), (FieldType::MAC_NONCE, 12)]));
        assert!(!has_nonce(&[(FieldType::MAC_NONCE, 12), (other, 12)]));
        assert!(!has_nonce(&[(FieldType::MAC_NONCE, 16)]));
        assert!(!has_nonce(&[]));
    }

    //= rfc7822#3-5
    #[test]
    fn digests_are_cut_off_at_20_octets_in_version_4_and_may_be_whole_before() {
        for version in 1..=4 {
            for tag_size in [16, 20, 32, 48, 64] {
                let accepted: Vec<usize> =
                    (0..=80).filter(|&size| accepts_digest(version, tag_size, size)).collect();
                let expected = match (version, tag_size) {
                    (_, 16 | 20) => vec![tag_size],
                    (4, _) => vec![20],
                    _ => vec![20, tag_size],
                };
                assert_eq!(accepted, expected, "version {version}, {tag_size} octets");
            }
        }
    }

    #[test]
    fn packets_without_a_mac_have_none() {
        assert_eq!(locate(&packet(4, |_| {})), None);
        assert_eq!(locate(&packet(4, |out| out.zeros(CRYPTO_NAK_SIZE).unwrap())), None);
        assert_eq!(
            locate(&packet(4, |out| extension::emit(out, FieldType(0xF001), &[1; 24]).unwrap())),
            None
        );
    }

    #[test]
    fn zero_digest_of_version_3_asks_for_an_ms_sntp_signature() {
        for (version, octet, expected) in [(3, 0, true), (3, 1, false), (4, 0, false), (2, 0, false)] {
            let octets = packet(version, |out| {
                let digest = emit_trailer(out, 0x0100_0000, 16).unwrap();
                assert_eq!(digest.start(), 52);
            });
            let octets = [&octets[..52], &[octet; 16]].concat();
            let packet = Packet::parse(&octets).unwrap();
            assert_eq!(
                MacFields::locate(&packet).unwrap().is_ms_sntp(&packet),
                expected,
                "{version} {octet}"
            );
        }
        let extended = [&packet(3, |_| {})[..], &[1; 4], &[0; 68]].concat();
        assert!(Packet::parse(&extended).is_err(), "the extended form");
    }
}
