//! A whole NTP packet: header, extension fields, trailer; and where fields end and a MAC begins.

use crate::extension::{Field, Fields};
use crate::header::{Header, Mode};
use crate::limits::{DATAGRAM_SIZE_MAX, FIELD_SIZE_MIN, HEADER_SIZE, MAC_SIZE_MAX};
use crate::{Malformed, Reason};

/// The shortest MAC beside the crypto-NAK: key identifier and a 16-octet digest.
const MAC_SIZE_MIN: usize = 20;
/// The longest MAC of NTPv3: key identifier and a 64-octet digest, as chrony sends for SHA-512.
const MAC_SIZE_MAX_V3: usize = 68;

/// A well-formed NTP packet of version 1 to 4, borrowed from the datagram that carried it.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    octets: &'a [u8],
    header: &'a [u8; HEADER_SIZE],
    fields_end: usize,
}

/// What follows the last extension field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trailer<'a> {
    /// Nothing.
    None,
    /// Four zero octets: the sender refused our MAC. RFC 5905 section 9.2.
    CryptoNak,
    /// A symmetric-key message authentication code over everything before it.
    Mac {
        /// Names the key.
        key_id: u32,
        /// The code itself, 16 to 64 octets.
        digest: &'a [u8],
    },
}

impl<'a> Packet<'a> {
    /// Checks the syntax of a whole datagram. RFC 7822 section 3, with chrony's reading of where a MAC begins: a rest
    /// of 20 or 24 octets is a MAC, a longer one must start with an extension field.
    //= rfc5905#9.2-1
    #[inline(always)]
    pub fn parse(octets: &'a [u8]) -> Result<Self, Malformed> {
        let header: &[u8; HEADER_SIZE] =
            octets.first_chunk().ok_or(Malformed::new(Reason::Truncated, octets.len()))?;
        if octets.len() > DATAGRAM_SIZE_MAX {
            return Err(Malformed::new(Reason::TooLong, DATAGRAM_SIZE_MAX));
        }
        if !octets.len().is_multiple_of(4) {
            return Err(Malformed::new(Reason::Unaligned, octets.len()));
        }
        let fields_end = match octets[0] >> 3 & 7 {
            1..=3 => match octets.len() - HEADER_SIZE {
                0 | 4 | MAC_SIZE_MIN..=MAC_SIZE_MAX_V3 => HEADER_SIZE,
                _ => return Err(Malformed::new(Reason::Trailer, HEADER_SIZE)),
            },
            4 => end_of_fields(octets)?,
            _ => return Err(Malformed::new(Reason::Version, 0)),
        };
        let packet = Packet { octets, header, fields_end };
        let tail = &octets[fields_end..];
        if tail.len() == 4 && tail != [0; 4] {
            return Err(Malformed::new(Reason::Trailer, fields_end));
        }
        Ok(packet)
    }

    /// A version 4 request that [`Packet::parse`] refuses, as one with a MAC that is longer than version 4 has them:
    /// ntpdig sends SHA-256 and longer whole, where RFC 7822 leaves room for 20 octets. `None` for anything else.
    ///
    /// Such a tail could be meant as an extension field. It is taken for a MAC only if it cannot be one that is in use:
    /// it begins with two zero octets, which are the upper half of a key identifier that ntpd's files can hold, and
    /// a type that RFC 9748 gives to no field. No such MAC is ever right; who sends it can be told so.
    #[must_use]
    pub fn with_overlong_mac(octets: &'a [u8]) -> Option<Self> {
        const SIZES: core::ops::RangeInclusive<usize> = MAC_SIZE_MAX + 4..=MAC_SIZE_MAX_V3;
        let (header, tail) = octets.split_first_chunk::<HEADER_SIZE>()?;
        let is_version_4 = header[0] >> 3 & 7 == 4;
        let is_mac = SIZES.contains(&tail.len()) && tail.starts_with(&[0; 2]) && !tail.starts_with(&[0; 4]);
        let is_whole = tail.len().is_multiple_of(4);
        (is_version_4 && is_mac && is_whole).then_some(Packet { octets, header, fields_end: HEADER_SIZE })
    }

    /// The fixed header.
    #[must_use]
    #[inline]
    pub fn header(&self) -> Header {
        Header::parse(self.header)
    }

    /// The association mode, without reading the rest of the header.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        Mode::from_bits(self.header[0])
    }

    /// The whole datagram.
    #[must_use]
    pub const fn octets(&self) -> &'a [u8] {
        self.octets
    }

    /// Whether there is anything between header and trailer.
    #[must_use]
    pub const fn has_fields(&self) -> bool {
        self.fields_end > HEADER_SIZE
    }

    /// The extension fields in the order of the wire.
    #[inline]
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        // `parse` walked the same octets with the same rules, so no item is an error.
        Fields::new(&self.octets[..self.fields_end], HEADER_SIZE, FIELD_SIZE_MIN).map_while(Result::ok)
    }

    /// What follows the fields.
    #[must_use]
    #[inline]
    pub fn trailer(&self) -> Trailer<'a> {
        match self.octets[self.fields_end..].split_first_chunk::<4>() {
            None => Trailer::None,
            Some((_, [])) => Trailer::CryptoNak,
            Some((key_id, digest)) => Trailer::Mac { key_id: u32::from_be_bytes(*key_id), digest },
        }
    }
}

//= rfc7822#3-5, rfc7822#3-6
#[inline(always)]
fn end_of_fields(octets: &[u8]) -> Result<usize, Malformed> {
    let mut at = HEADER_SIZE;
    loop {
        match octets.len() - at {
            0 | MAC_SIZE_MIN..=MAC_SIZE_MAX => return Ok(at),
            4 if at == HEADER_SIZE => return Ok(at),
            1..MAC_SIZE_MIN => return Err(Malformed::new(Reason::Trailer, at)),
            _ => {}
        }
        match Fields::new(octets, at, FIELD_SIZE_MIN).next() {
            Some(field) => at = field?.end(),
            None => return Ok(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    fn request(version: u8, tail: &[u8]) -> Vec<u8> {
        let mut octets = vec![0; HEADER_SIZE];
        octets[0] = version << 3 | 3;
        octets.extend_from_slice(tail);
        octets
    }

    fn field(kind: u16, size: u16) -> Vec<u8> {
        let mut octets = vec![0; usize::from(size)];
        octets[..2].copy_from_slice(&kind.to_be_bytes());
        octets[2..4].copy_from_slice(&size.to_be_bytes());
        octets
    }

    fn refused(octets: &[u8]) -> Reason {
        Packet::parse(octets).expect_err("must not parse").reason
    }

    //= rfc5905#9.2-1
    #[test]
    fn only_versions_1_to_4_parse() {
        for version in 0..8 {
            assert_eq!(
                Packet::parse(&request(version, &[])).is_ok(),
                (1..=4).contains(&version),
                "{version}"
            );
        }
    }

    #[test]
    fn tail_of_4_zero_octets_is_a_crypto_nak_and_any_other_is_refused() {
        assert_eq!(Packet::parse(&request(4, &[0; 4])).unwrap().trailer(), Trailer::CryptoNak);
        assert_eq!(refused(&request(4, &[0, 0, 0, 1])), Reason::Trailer);
    }

    //= rfc7822#3-5
    #[test]
    fn tail_of_20_or_24_octets_is_a_mac() {
        for size in [20, 24] {
            let octets = request(4, &vec![1; size]);
            let Trailer::Mac { key_id, digest } = Packet::parse(&octets).unwrap().trailer() else {
                panic!("no MAC")
            };
            assert_eq!((key_id, digest.len()), (0x0101_0101, size - 4));
        }
    }

    //= rfc7822#3-6
    #[test]
    fn last_field_without_mac_must_have_28_octets() {
        assert_eq!(refused(&request(4, &field(0xF001, 16))), Reason::Trailer);
        let octets = request(4, &field(0xF001, 28));
        let packet = Packet::parse(&octets).unwrap();
        assert_eq!((packet.fields().count(), packet.trailer()), (1, Trailer::None));
        let octets = request(4, &[field(0xF001, 16), field(0xF002, 28)].concat());
        assert_eq!(Packet::parse(&octets).unwrap().fields().count(), 2);
    }

    #[test]
    fn field_before_a_mac_may_have_16_octets() {
        let octets = request(4, &[field(0xF001, 16), vec![1; 20]].concat());
        let packet = Packet::parse(&octets).unwrap();
        assert_eq!(packet.fields().count(), 1);
        assert!(matches!(packet.trailer(), Trailer::Mac { .. }));
    }

    #[test]
    fn zero_length_and_overlong_fields_are_refused() {
        let mut zero = field(0xF001, 32);
        zero[2..4].fill(0);
        assert_eq!(refused(&request(4, &zero)), Reason::FieldLength);
        let mut over = field(0xF001, 32);
        over[2..4].copy_from_slice(&36u16.to_be_bytes());
        assert_eq!(refused(&request(4, &over)), Reason::FieldLength);
    }

    #[test]
    fn ntpv3_has_macs_of_up_to_68_octets_and_no_fields() {
        for size in [20, 36, 52, 68] {
            let octets = request(3, &vec![1; size]);
            assert!(matches!(Packet::parse(&octets).unwrap().trailer(), Trailer::Mac { .. }));
        }
        assert_eq!(refused(&request(3, &field(0xF001, 72))), Reason::Trailer);
    }

    #[test]
    fn overlong_mac_of_version_4_is_told_from_a_field() {
        let found = |version, tail: &[u8]| {
            let octets = request(version, tail);
            Packet::with_overlong_mac(&octets).map(|packet| {
                let Trailer::Mac { key_id, digest } = packet.trailer() else { panic!("no MAC") };
                assert_eq!(packet.fields().count(), 0);
                (key_id, digest.len())
            })
        };
        for size in 0..=80 {
            let mut tail = vec![0xA5; size];
            tail.iter_mut().zip([0, 0, 0, 5]).for_each(|(octet, id)| *octet = id);
            let expected = (28..=68).contains(&size) && size % 4 == 0;
            assert_eq!(found(4, &tail), expected.then(|| (5, size - 4)), "{size}");
            assert_eq!((found(3, &tail), found(5, &tail)), (None, None), "{size}");
        }
        for start in [[0, 0, 0, 0], [1, 4, 0, 64], [0xFB, 1, 0, 16], [0, 1, 0, 5]] {
            assert_eq!(found(4, &[&start[..], &[0xA5; 32]].concat()), None, "{start:?}");
        }
        assert!(Packet::with_overlong_mac(&[0x23; 47]).is_none());
    }

    //= rfc5905#9.2-1
    #[test]
    fn every_prefix_of_a_packet_parses_or_says_why() {
        let whole = request(4, &[field(0x0104, 36), field(0x0204, 104), field(0x0404, 40)].concat());
        for size in 0..whole.len() {
            match Packet::parse(&whole[..size]) {
                Ok(packet) => assert_eq!(packet.octets().len(), size),
                Err(malformed) => assert!(malformed.offset <= size),
            }
        }
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_datagram(octets in proptest::collection::vec(any::<u8>(), 0..400), version in 1u8..5) {
            let mut octets = octets;
            if let Some(first) = octets.first_mut() { *first = *first & 0xC7 | version << 3; }
            if let Ok(packet) = Packet::parse(&octets) {
                let fields: usize = packet.fields().map(|f| f.end() - f.offset).sum();
                let trailer = match packet.trailer() {
                    Trailer::None => 0,
                    Trailer::CryptoNak => 4,
                    Trailer::Mac { digest, .. } => 4 + digest.len(),
                };
                prop_assert_eq!(HEADER_SIZE + fields + trailer, octets.len());
            }
        }
    }
}
