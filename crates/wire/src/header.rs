//! The 48-octet NTP header and its code points. RFC 5905 section 7.3.
//!
//! ```text
//!  0  LI(2) VN(3) Mode(3) | stratum | poll | precision
//!  4  root delay          (16.16 s)
//!  8  root dispersion     (16.16 s)
//! 12  reference identifier or kiss code
//! 16  reference timestamp (32.32 s)
//! 24  origin timestamp    T1: the server copies the client's transmit timestamp
//! 32  receive timestamp   T2
//! 40  transmit timestamp  T3
//! ```

use core::fmt;

use crate::limits::HEADER_SIZE;
use crate::time::{NtpShort, NtpTime};
use crate::{NoRoom, Writer};

/// Leap indicator. RFC 5905 figure 9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leap {
    /// No warning.
    #[default]
    None,
    /// The last minute of the day has 61 seconds.
    Insert,
    /// The last minute of the day has 59 seconds.
    Delete,
    /// The clock is not synchronised.
    Unsynchronised,
}

impl Leap {
    /// The indicator in the lower two bits of `bits`.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Leap::None,
            1 => Leap::Insert,
            2 => Leap::Delete,
            _ => Leap::Unsynchronised,
        }
    }

    /// The two bits of the wire.
    #[must_use]
    pub const fn to_bits(self) -> u8 {
        self as u8
    }

    /// A word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Leap::None => "none",
            Leap::Insert => "insert",
            Leap::Delete => "delete",
            Leap::Unsynchronised => "unsynchronised",
        }
    }
}

/// Association mode. RFC 5905 figure 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reserved; NTPv1 clients.
    Reserved,
    /// A symmetric peer that asks.
    SymmetricActive,
    /// A symmetric peer that answers.
    SymmetricPassive,
    /// A client's request.
    Client,
    /// A server's response.
    Server,
    /// A broadcast.
    Broadcast,
    /// An NTP control message (`ntpq`).
    Control,
    /// Private use (`ntpdc`).
    Private,
}

impl Mode {
    /// The mode in the lower three bits of `bits`.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 7 {
            0 => Mode::Reserved,
            1 => Mode::SymmetricActive,
            2 => Mode::SymmetricPassive,
            3 => Mode::Client,
            4 => Mode::Server,
            5 => Mode::Broadcast,
            6 => Mode::Control,
            _ => Mode::Private,
        }
    }

    /// The three bits of the wire.
    #[must_use]
    pub const fn to_bits(self) -> u8 {
        self as u8
    }
}

/// Reference identifier: a source name at stratum 1, an address hash above, a kiss code at stratum 0.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ReferenceId(pub [u8; 4]);

impl ReferenceId {
    /// Kiss code: access denied. RFC 5905 section 7.4.
    pub const DENY: ReferenceId = ReferenceId(*b"DENY");
    /// Kiss code: access denied by policy.
    pub const RSTR: ReferenceId = ReferenceId(*b"RSTR");
    /// Kiss code: poll less often.
    pub const RATE: ReferenceId = ReferenceId(*b"RATE");
    /// Kiss code: authentication or identification failed.
    pub const CRYP: ReferenceId = ReferenceId(*b"CRYP");
    /// Kiss code: no key found: it was never installed, or is not trusted.
    pub const NKEY: ReferenceId = ReferenceId(*b"NKEY");
    /// Kiss code: NTS negative acknowledgement. RFC 8915 section 5.7.
    pub const NTSN: ReferenceId = ReferenceId(*b"NTSN");

    /// The identifier as text, if it is one: printable ASCII, padded with zero octets.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        let length = self.0.iter().position(|&octet| octet == 0).unwrap_or(4);
        let (text, padding) = self.0.split_at(length);
        let printable =
            length > 0 && text.iter().all(u8::is_ascii_graphic) && padding.iter().all(|&o| o == 0);
        if printable { core::str::from_utf8(text).ok() } else { None }
    }
}

impl fmt::Debug for ReferenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_text() {
            Some(text) => f.write_str(text),
            None => write!(f, "{:02x}{:02x}{:02x}{:02x}", self.0[0], self.0[1], self.0[2], self.0[3]),
        }
    }
}

/// The meaning of the 48 octets. Every combination of values has a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Leap warning.
    pub leap: Leap,
    /// Version, 0 to 7; only the lower three bits are emitted.
    pub version: u8,
    /// Association mode.
    pub mode: Mode,
    /// 0 kiss, 1 primary, 2 to 15 secondary, 16 unsynchronised, above reserved.
    pub stratum: u8,
    /// Poll interval, log2 seconds.
    pub poll: i8,
    /// Precision of the clock, log2 seconds.
    pub precision: i8,
    /// Round-trip delay to the reference clock.
    pub root_delay: NtpShort,
    /// Dispersion to the reference clock.
    pub root_dispersion: NtpShort,
    /// Reference identifier or kiss code.
    pub reference_id: ReferenceId,
    /// When the clock was last set.
    pub reference: NtpTime,
    /// T1.
    pub origin: NtpTime,
    /// T2.
    pub receive: NtpTime,
    /// T3.
    pub transmit: NtpTime,
}

impl Header {
    /// A client's request that tells nothing about the client: all fields zero but version, mode, precision (32, as
    /// chrony and NTPsec send) and `transmit`, which should be random. draft-ietf-ntp-data-minimization-04.
    //= rfc8915#9.1-1, rfc5905#7.3-1, antp#carrier-2
    #[must_use]
    pub const fn minimal_request(transmit: NtpTime) -> Self {
        Header {
            leap: Leap::None,
            version: 4,
            mode: Mode::Client,
            stratum: 0,
            poll: 0,
            precision: 32,
            root_delay: NtpShort::ZERO,
            root_dispersion: NtpShort::ZERO,
            reference_id: ReferenceId([0; 4]),
            reference: NtpTime::ZERO,
            origin: NtpTime::ZERO,
            receive: NtpTime::ZERO,
            transmit,
        }
    }

    /// Reads the 48 octets. RFC 5905 section 7.3.
    //= rfc5905#7.3-1
    #[must_use]
    pub fn parse(octets: &[u8; HEADER_SIZE]) -> Self {
        let word = |at: usize| [octets[at], octets[at + 1], octets[at + 2], octets[at + 3]];
        Header {
            leap: Leap::from_bits(octets[0] >> 6),
            version: octets[0] >> 3 & 7,
            mode: Mode::from_bits(octets[0]),
            stratum: octets[1],
            poll: octets[2] as i8,
            precision: octets[3] as i8,
            root_delay: NtpShort::from_bits(u32::from_be_bytes(word(4))),
            root_dispersion: NtpShort::from_bits(u32::from_be_bytes(word(8))),
            reference_id: ReferenceId(word(12)),
            reference: timestamp(octets, 16),
            origin: timestamp(octets, 24),
            receive: timestamp(octets, 32),
            transmit: timestamp(octets, 40),
        }
    }

    /// Writes the 48 octets behind what `out` holds.
    #[inline]
    pub fn put(&self, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        self.emit(out.reserve(HEADER_SIZE)?.first_chunk_mut().ok_or(NoRoom)?);
        Ok(())
    }

    /// Writes the 48 octets.
    //= rfc5905#7.3-1
    pub fn emit(&self, octets: &mut [u8; HEADER_SIZE]) {
        octets[0] = self.leap.to_bits() << 6 | (self.version & 7) << 3 | self.mode.to_bits();
        octets[1] = self.stratum;
        octets[2] = self.poll as u8;
        octets[3] = self.precision as u8;
        octets[4..8].copy_from_slice(&self.root_delay.to_bits().to_be_bytes());
        octets[8..12].copy_from_slice(&self.root_dispersion.to_bits().to_be_bytes());
        octets[12..16].copy_from_slice(&self.reference_id.0);
        octets[16..24].copy_from_slice(&self.reference.to_be_bytes());
        octets[24..32].copy_from_slice(&self.origin.to_be_bytes());
        octets[32..40].copy_from_slice(&self.receive.to_be_bytes());
        octets[40..48].copy_from_slice(&self.transmit.to_be_bytes());
    }
}

fn timestamp(octets: &[u8; HEADER_SIZE], at: usize) -> NtpTime {
    let mut eight = [0; 8];
    eight.copy_from_slice(&octets[at..at + 8]);
    NtpTime::from_be_bytes(eight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // A request and its response captured between two ntpd hosts.
    const REQUEST: &str =
        "230206e8000003ff0000037d5ec69f0fe5f662987b61b9afe5f663667b64995de5f6636681405590e5f663a8761dde48";
    const RESPONSE: &str =
        "240206e900000236000003b7c035676ce5f661fd6f165f03e5f663a87619ef40e5f663a8798c6581e5f663a8798eae2b";

    fn octets(hex: &str) -> [u8; HEADER_SIZE] {
        let mut octets = [0; HEADER_SIZE];
        for (octet, digits) in octets.iter_mut().zip(hex.as_bytes().chunks(2)) {
            *octet = u8::from_str_radix(core::str::from_utf8(digits).unwrap(), 16).unwrap();
        }
        octets
    }

    //= rfc5905#7.3-1
    #[test]
    fn captured_response_answers_captured_request() {
        let request = Header::parse(&octets(REQUEST));
        let response = Header::parse(&octets(RESPONSE));
        assert_eq!((request.version, request.mode), (4, Mode::Client));
        assert_eq!((response.version, response.mode), (4, Mode::Server));
        assert_eq!((response.stratum, response.precision), (2, -23));
        // Relayed by another host in between, hence not the request's own transmit time.
        assert!(response.transmit.since(response.receive).as_nanos() > 0);
    }

    //= rfc5905#7.3-1
    #[test]
    fn first_octets_of_client_server_and_kiss() {
        let mut octets = [0; HEADER_SIZE];
        let mut header = Header::minimal_request(NtpTime::from_bits(7));
        header.emit(&mut octets);
        assert_eq!((octets[0], octets[3]), (0x23, 0x20));
        header.mode = Mode::Server;
        header.emit(&mut octets);
        assert_eq!(octets[0], 0x24);
        header.leap = Leap::Unsynchronised;
        header.emit(&mut octets);
        assert_eq!(octets[0], 0xE4);
    }

    //= rfc8915#9.1-1, antp#carrier-2
    #[test]
    fn request_says_nothing_but_its_number() {
        let mut octets = [0xFF; HEADER_SIZE];
        Header::minimal_request(NtpTime::from_bits(0x0102_0304_0506_0708)).emit(&mut octets);
        assert_eq!((&octets[..4], &octets[4..40]), (&[0x23, 0, 0, 0x20][..], &[0; 36][..]));
        assert_eq!(octets[40..], [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn every_first_octet_survives_a_round_trip() {
        for first in 0..=255 {
            let mut octets = [0; HEADER_SIZE];
            octets[0] = first;
            let mut again = [0; HEADER_SIZE];
            Header::parse(&octets).emit(&mut again);
            assert_eq!(octets, again);
        }
    }

    #[test]
    fn reference_ids_print_as_text_where_they_are_text() {
        use std::format;
        assert_eq!(format!("{:?}", ReferenceId::NTSN), "NTSN");
        assert_eq!(format!("{:?}", ReferenceId(*b"GPS\0")), "GPS");
        assert_eq!(format!("{:?}", ReferenceId([192, 53, 103, 108])), "c035676c");
        assert_eq!(ReferenceId([0; 4]).as_text(), None);
    }

    proptest! {
        #[test]
        fn all_octets_survive_a_round_trip(octets: [u8; 32], rest: [u8; 16]) {
            let mut all = [0; HEADER_SIZE];
            all[..32].copy_from_slice(&octets);
            all[32..].copy_from_slice(&rest);
            let mut again = [0; HEADER_SIZE];
            Header::parse(&all).emit(&mut again);
            prop_assert_eq!(all, again);
        }
    }
}
