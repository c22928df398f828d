//! Length extension: from the digest of key and packet to that of key, packet, padding and more, without the key.
//!
//! RFC 5905 section 7.3 makes its MAC of a digest whose output is the state after the last block, so that whoever has a
//! tag can go on. What stands between packet and suffix is the padding, or *glue*: 0x80, zeros, and the length of key
//! and packet in bits.
//!
//! **What NTP's framing makes of it.** Behind the header the glue has to read as an extension field (RFC 7822): its
//! first two octets are the type, the next two the length of the field, which must be a multiple of four, at least 16,
//! and within the datagram. What follows the glue changes none of these four octets. MD5 writes the length in bits with
//! the lowest octet first, so with L octets of key and packet they are
//!
//! ```text
//! L mod 64 = 53    80 00 00 a8    a field of 168 octets
//!            54    80 00 b0 01    a length that is odd, or beyond the datagram
//!            55    80 b8 01 00    a field of 256, 768, 1280 or 1792 octets, for L of 55, 119, 183 or 247
//!     any other    80 00 00 00    a field of no length
//! ```
//!
//! A packet has a multiple of four octets, so the key must have an odd number of them: 5, 7, 69 or 71 behind a bare
//! header. Keys of 16 or 20 octets never work, whatever fields a packet has. SHA-1 and SHA-2 write the highest octet of
//! the length first, which is zero: no key works. In NTPv3, where no fields are, the glue would be read as a MAC.
//!
//! A tag that was cut (SHA-256 and longer in NTPv4, SHA-384 anywhere) does not tell the whole state; those of HMAC and
//! CMAC are no state of a digest at all.

use std::fmt;

use authentick_crypto::Entropy;
use authentick_crypto::mac::MacAlgorithm;
use authentick_wire::limits::HEADER_SIZE;
use serde::Serialize;

use super::digest::Digest;
use super::forged_packets;
use super::pair::OnTheWire;
use super::tagged::{Tagged, hex};
use super::victim::{KEY_ID, TAG_SIZE_MAX_V4, Victim, answer, request, request_of_version_3};
use crate::verdict::{Attempt, COLUMNS, Verdict};

/// The longest key that the adversary guesses at, and that the search of framings tries, in octets.
pub const KEY_SIZE_MAX: usize = 128;

/// Sizes of packets without their MAC in the search: a header alone, then with one field, until all remainders modulo
/// the block of a digest have been seen.
const PACKET_SIZES_WITH_FIELD: std::ops::RangeInclusive<usize> = 64..=188;

/// The field that the adversary adds: chrony's experimental one (type 0xF323), by which a server says that its clock
/// has an epoch of its own.
pub const ADDED_FIELD: [u8; 28] = [
    0xf3, 0x23, 0x00, 0x1c, 0xf5, 0xbe, 0xdd, 0x9a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0,
];

/// A longer message with its tag, if the key has `key_size` octets.
///
/// The message is that of `captured`, the glue, and `suffix`.
#[must_use]
pub fn extend(digest: Digest, captured: &Tagged, key_size: usize, suffix: &[u8]) -> Tagged {
    let size = key_size + captured.message.len();
    let glue = digest.padding(size);
    let tag = digest.resume(&captured.tag, size + glue.len(), suffix);
    Tagged { nonce: None, message: [&captured.message[..], &glue, suffix].concat(), tag }
}

/// A longer packet with a MAC, if the key has `key_size` octets; `None` if `packet` has no MAC.
///
/// The glue becomes the start of an extension field, if it can be read as one, and `field` follows as another. If it
/// cannot, the packet is made all the same: whoever reads it decides. The tag is as long as that of `packet`.
#[must_use]
pub fn extend_packet(digest: Digest, packet: &[u8], key_size: usize, field: &[u8]) -> Option<Vec<u8>> {
    let (key_id, captured) = Tagged::from_packet(packet)?;
    let glue = digest.padding(key_size + captured.message.len());
    let size = usize::from(u16::from_be_bytes([glue[2], glue[3]]));
    let rest = size.checked_sub(glue.len()).unwrap_or(glue.len().next_multiple_of(4) - glue.len());
    let suffix = [&vec![0; rest], field].concat();
    let mut forged = extend(digest, &captured, key_size, &suffix);
    forged.tag.truncate(captured.tag.len());
    Some(forged.to_packet(key_id))
}

/// Which sizes of keys let an extended packet pass as a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Framing {
    /// The digest.
    pub digest: Digest,
    /// The longest key that was tried, in octets.
    pub key_size_max: usize,
    /// Sizes of keys, in octets, with which a packet without fields can be extended.
    pub behind_a_header: Vec<usize>,
    /// Sizes of keys with which some packet with one field can be extended.
    pub behind_fields: Vec<usize>,
}

impl Framing {
    /// Extends packets of every remainder under keys of every size, and asks the victim. The size of the key is known
    /// here, so that nothing but framing decides.
    fn search(digest: Digest, entropy: &mut Entropy) -> Self {
        let (mut behind_a_header, mut behind_fields) = (Vec::new(), Vec::new());
        for key_size in 1..=KEY_SIZE_MAX {
            let victim = Victim::new(digest.keyed(), key_size, entropy);
            let mut passes = |size: usize| {
                let packet = victim.says_in_packet(&with_field(&request(entropy), size - HEADER_SIZE));
                extend_packet(digest, &packet, key_size, &ADDED_FIELD)
                    .is_some_and(|forged| victim.believes_packet(&forged))
            };
            if passes(HEADER_SIZE) {
                behind_a_header.push(key_size);
            }
            if PACKET_SIZES_WITH_FIELD.step_by(4).any(passes) {
                behind_fields.push(key_size);
            }
        }
        Framing { digest, key_size_max: KEY_SIZE_MAX, behind_a_header, behind_fields }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all_odd = (1..=self.key_size_max).step_by(2);
        let behind_fields = match self.behind_fields.iter().copied().eq(all_odd) {
            true => format!("each odd number to {}", self.behind_fields.len() * 2 - 1),
            false => listed(&self.behind_fields),
        };
        let behind_a_header = listed(&self.behind_a_header);
        write!(f, "{:8}  behind a header {behind_a_header:16}  behind fields {behind_fields}", self.digest)
    }
}

fn listed(sizes: &[usize]) -> String {
    match sizes {
        [] => "none".to_owned(),
        sizes => sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// The packet with an unknown field of `size` octets behind it, if that is not nothing.
fn with_field(header: &[u8; HEADER_SIZE], size: usize) -> Vec<u8> {
    let mut packet = header.to_vec();
    if let Ok(length) = u16::try_from(size)
        && size > 0
    {
        packet.extend([0xf0, 0x01]);
        packet.extend(length.to_be_bytes());
        packet.resize(HEADER_SIZE + size, 0);
    }
    packet
}

/// What came of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LengthExtension {
    /// What decided the keys.
    pub seed: u64,
    /// Messages and their tags: what the MAC alone lets through.
    pub messages: Vec<Attempt<Tagged>>,
    /// Whole packets: what NTP's framing lets through as well. Octets of forged packets in hexadecimal.
    pub packets: Vec<Attempt<String>>,
    /// Which sizes of keys let an extended packet through, by digest.
    pub framing: Vec<Framing>,
    /// Packets that our own client and server have sent, extended.
    pub on_the_wire: OnTheWire,
}

impl LengthExtension {
    /// Runs the program: the adversary sees one message or packet of each victim, and does not know the key's size.
    #[must_use]
    pub fn run(seed: u64) -> Self {
        let mut entropy = Entropy::from_seed(seed);
        let messages = extended_messages(&mut entropy);
        let packets = extended_packets(&mut entropy);
        let framing = Digest::ALL.into_iter().map(|digest| Framing::search(digest, &mut entropy)).collect();
        let on_the_wire = forged_packets::extended(&mut entropy);
        LengthExtension { seed, messages, packets, framing, on_the_wire }
    }

    /// Whether everything went as the theory says.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        let odd: Vec<usize> = (1..=KEY_SIZE_MAX).step_by(2).collect();
        let framing = self.framing.iter().all(|framing| match framing.digest {
            Digest::Md5 => framing.behind_a_header == [5, 7, 69, 71] && framing.behind_fields == odd,
            Digest::Sha1 | Digest::Sha256 | Digest::Sha512 => {
                framing.behind_a_header.is_empty() && framing.behind_fields.is_empty()
            }
        });
        framing
            && self.messages.iter().all(Attempt::is_as_expected)
            && self.packets.iter().all(Attempt::is_as_expected)
            && self.on_the_wire.is_as_expected()
    }
}

impl fmt::Display for LengthExtension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = self.seed;
        writeln!(
            f,
            "Length extension: from one tag to that of a longer message, without the key (seed {seed})"
        )?;
        writeln!(f, "\nmessages: what the MAC lets through\n  {COLUMNS}")?;
        self.messages.iter().try_for_each(|attempt| writeln!(f, "  {attempt}"))?;
        writeln!(f, "\npackets: what NTP's framing lets through as well\n  {COLUMNS}")?;
        self.packets.iter().try_for_each(|attempt| writeln!(f, "  {attempt}"))?;
        writeln!(f, "\nkeys, by their octets, under which the padding reads as an extension field")?;
        self.framing.iter().try_for_each(|framing| writeln!(f, "  {framing}"))?;
        write!(f, "\npackets of our own client and server\n{}", self.on_the_wire)
    }
}

/// Sizes of keys under which messages are extended: the usual ones, the only one of a hash that framing lets through in
/// practice, and odd ones.
const KEY_SIZES: [usize; 6] = [1, 7, 16, 20, 33, 64];

fn extended_messages(entropy: &mut Entropy) -> Vec<Attempt<Tagged>> {
    let mut attempts = Vec::new();
    for digest in Digest::ALL {
        let mut attempt = Attempt::new(
            digest.keyed(),
            format!("whole tag, keys of {} octets, size guessed", listed(&KEY_SIZES)),
            Verdict::WinAuthentication,
        );
        for size in KEY_SIZES {
            guess(digest, &Victim::new(digest.keyed(), size, entropy), usize::MAX, &mut attempt, entropy);
        }
        attempts.push(attempt);
    }
    let losing = [
        (MacAlgorithm::Sha256, Digest::Sha256, TAG_SIZE_MAX_V4),
        (MacAlgorithm::Sha512, Digest::Sha512, TAG_SIZE_MAX_V4),
        (MacAlgorithm::Sha384, Digest::Sha512, usize::MAX),
        (MacAlgorithm::HmacMd5, Digest::Md5, usize::MAX),
        (MacAlgorithm::HmacSha224, Digest::Sha256, usize::MAX),
        (MacAlgorithm::Cmac128, Digest::Md5, usize::MAX),
        (MacAlgorithm::Cmac256, Digest::Md5, usize::MAX),
    ];
    for (algorithm, digest, tag_size) in losing {
        let tried = match tag_size {
            usize::MAX => format!("tag taken for a state of {digest}"),
            size => format!("tag cut to {size} octets, as in NTPv4"),
        };
        let mut attempt = Attempt::new(algorithm, tried, Verdict::Reject);
        guess(digest, &Victim::random(algorithm, entropy), tag_size, &mut attempt, entropy);
        attempts.push(attempt);
    }
    attempts
}

/// Extends one message of `victim`, whose tag is cut to `tag_size`, by each size of key until it is believed.
fn guess(
    digest: Digest,
    victim: &Victim,
    tag_size: usize,
    attempt: &mut Attempt<Tagged>,
    entropy: &mut Entropy,
) {
    let mut captured = victim.says(None, &answer(&request(entropy), entropy));
    captured.tag.truncate(tag_size);
    let size = captured.tag.len();
    for key_size in 1..=KEY_SIZE_MAX {
        let mut forged = extend(digest, &captured, key_size, b"APPENDED");
        forged.tag.truncate(size);
        if victim.judges(forged, attempt) {
            return;
        }
    }
}

fn extended_packets(entropy: &mut Entropy) -> Vec<Attempt<String>> {
    let answer: Message = |entropy| answer(&request(entropy), entropy);
    let cases: [(_, _, _, Message, _); 9] = [
        (Digest::Md5, 7, "request", request, Verdict::WinAuthentication),
        (Digest::Md5, 7, "answer", answer, Verdict::WinAuthentication),
        (Digest::Md5, 5, "request", request, Verdict::WinAuthentication),
        (Digest::Md5, 7, "request of NTPv3", request_of_version_3, Verdict::Reject),
        (Digest::Md5, 16, "request", request, Verdict::Reject),
        (Digest::Md5, 16, "answer", answer, Verdict::Reject),
        (Digest::Md5, 20, "request", request, Verdict::Reject),
        (Digest::Sha1, 7, "request", request, Verdict::Reject),
        (Digest::Sha256, 7, "request", request, Verdict::Reject),
    ];
    let attempt = |(digest, key_size, what, message, expected): (Digest, usize, &str, Message, Verdict)| {
        let tried = format!("{what}, key of {key_size} octets, size guessed");
        let mut attempt = Attempt::new(digest.keyed(), tried, expected);
        let victim = Victim::new(digest.keyed(), key_size, entropy);
        guess_packet(digest, &victim, &message(entropy), &mut attempt);
        attempt
    };
    cases.into_iter().map(attempt).collect()
}

/// What makes a message to be extended.
type Message = fn(&mut Entropy) -> [u8; HEADER_SIZE];

/// Extends one packet by each size of key, until one is believed.
fn guess_packet(digest: Digest, victim: &Victim, message: &[u8], attempt: &mut Attempt<String>) {
    let packet = victim.says_in_packet(message);
    for guessed in 1..=KEY_SIZE_MAX {
        let Some(forged) = extend_packet(digest, &packet, guessed, &ADDED_FIELD) else { break };
        let believed = victim.believes_packet(&forged);
        if attempt.note(hex(&forged), believed) {
            break;
        }
    }
}

const _: () = assert!(KEY_ID != 0x8000_0000, "the glue, read as a MAC, must not name the victim's key");

#[cfg(test)]
mod tests {
    use super::*;
    use authentick_wire::packet::Packet;
    use hex_literal::hex as octets;

    /// An answer of a real server.
    const ANSWER: [u8; 48] = octets!(
        "240206e900000236000003b7c035676ce5f661fd6f165f03e5f663a87619ef40e5f663a8798c6581e5f663a8798eae2b"
    );

    #[test]
    fn vector_of_a_message_under_a_key_of_16_octets() {
        let victim = Victim::with_key(MacAlgorithm::Md5, b"0123456789abcdef");
        let captured = victim.says(None, &ANSWER);
        assert_eq!(captured.tag, octets!("52065a2271fdb9bd17ac76f4adf665ff"));
        let forged = extend(Digest::Md5, &captured, 16, b"APPENDED");
        assert_eq!(forged.tag, octets!("70a5de326aefd90a325ab5100909e9c6"));
        let glue = &forged.message[48..forged.message.len() - 8];
        assert_eq!((glue.len(), &glue[56..]), (64, &octets!("0002000000000000")[..]));
        assert!(victim.believes(&forged));
    }

    #[test]
    fn vector_of_a_packet_under_a_key_of_7_octets() {
        let victim = Victim::with_key(MacAlgorithm::Md5, b"hyacint");
        let packet = victim.says_in_packet(&ANSWER);
        assert_eq!(packet[52..], octets!("0d93791e154c50a650ad5dbf06b5da24"));
        let forged = extend_packet(Digest::Md5, &packet, 7, &ADDED_FIELD).unwrap();
        assert_eq!(forged.len(), 352);
        assert_eq!(forged[48..57], octets!("80b801000000000000"));
        assert_eq!(forged[336..], octets!("bac73f74a5ead8ad4b86b2e6eb42851a"));
        assert!(victim.believes_packet(&forged));
        let fields: Vec<_> =
            Packet::parse(&forged).unwrap().fields().map(|f| (f.kind.0, f.body.len())).collect();
        assert_eq!(fields, [(0x80b8, 252), (0xf323, 24)]);
    }

    #[test]
    fn everything_goes_as_the_theory_says_for_any_seed() {
        for seed in 1..=2 {
            let played = LengthExtension::run(seed);
            assert!(played.is_as_expected(), "{played}");
        }
    }

    #[test]
    fn key_of_16_octets_is_saved_by_framing_alone() {
        let victim = Victim::with_key(MacAlgorithm::Md5, b"0123456789abcdef");
        let forged = extend_packet(Digest::Md5, &victim.says_in_packet(&ANSWER), 16, &ADDED_FIELD).unwrap();
        assert!(Packet::parse(&forged).is_err());
        let (message, mac) = forged.split_at(forged.len() - 20);
        let heard = Tagged { nonce: None, message: message.to_vec(), tag: mac[4..].to_vec() };
        assert!(victim.believes(&heard), "the MAC itself is forged");
    }

    /// The table at the head of this file: the first four octets of the glue, for every length up to a datagram's.
    #[test]
    fn glue_reads_as_a_field_for_two_remainders_only() {
        for size in 1..=2048_usize {
            let glue = Digest::Md5.padding(size);
            let length = usize::from(u16::from_be_bytes([glue[2], glue[3]]));
            match size % 64 {
                53 => assert_eq!(glue[..4], [0x80, 0, 0, 0xa8]),
                54 => assert!(length % 4 != 0 || length > 2048, "{size}: {length}"),
                55 => assert_eq!((glue[1], length), (0xb8, (8 * size / 256 % 256) * 256 + size / 8192)),
                _ => assert_eq!(glue[..4], [0x80, 0, 0, 0]),
            }
            for digest in [Digest::Sha1, Digest::Sha256, Digest::Sha512] {
                assert_eq!(digest.padding(size)[2..4], [0, 0], "{digest} {size}");
            }
        }
    }

    #[test]
    fn packet_without_a_mac_cannot_be_extended() {
        assert_eq!(extend_packet(Digest::Md5, &ANSWER, 7, &ADDED_FIELD), None);
    }
}
