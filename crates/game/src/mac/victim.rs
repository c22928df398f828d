//! Who holds the key: a client and a server of NTP, seen from the net.
//!
//! A victim tags what it says and judges what it hears with the code that serves in earnest. It keeps no state, as NTP
//! servers keep none: neither nonces that it has seen nor messages that it has answered. It never shows its key.

use authentick_crypto::mac::{MacAlgorithm, MacKey, Tag, Verify};
use authentick_crypto::{Entropy, run_batch};
use authentick_wire::header::{Header, Leap, Mode, ReferenceId};
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::{NtpShort, NtpTime};

use super::tagged::{NONCE_SIZE, Tagged};
use crate::verdict::Attempt;

/// Octets of a tag behind an NTPv4 packet, at most. RFC 7822 section 3.
pub(super) const TAG_SIZE_MAX_V4: usize = 20;

/// The identifier of every key here: a victim has one.
pub const KEY_ID: u32 = 1;

/// The start of 2026 in NTP's seconds.
const YEAR_2026: u64 = 3_976_214_400;

/// A party with a key.
#[derive(Debug)]
pub struct Victim {
    key: MacKey,
}

impl Victim {
    /// A party with a random key of `key_size` octets.
    ///
    /// # Panics
    /// If the algorithm takes no key of that size.
    #[must_use]
    pub fn new(algorithm: MacAlgorithm, key_size: usize, entropy: &mut Entropy) -> Self {
        let mut octets = vec![0; key_size];
        entropy.fill(&mut octets);
        Self::with_key(algorithm, &octets)
    }

    /// A party with a random key of the least size, which is the drafts'.
    #[must_use]
    pub fn random(algorithm: MacAlgorithm, entropy: &mut Entropy) -> Self {
        Self::new(algorithm, key_size(algorithm), entropy)
    }

    /// A party with this key.
    ///
    /// # Panics
    /// If the algorithm takes no key of that size.
    #[must_use]
    pub fn with_key(algorithm: MacAlgorithm, octets: &[u8]) -> Self {
        Victim { key: MacKey::new(algorithm, octets).expect("the game makes keys of a size that is taken") }
    }

    /// What the party authenticates with.
    #[must_use]
    pub fn algorithm(&self) -> MacAlgorithm {
        self.key.algorithm()
    }

    /// Says something, with the whole tag.
    ///
    /// # Panics
    /// If there is a nonce and the algorithm takes none, or the other way round.
    #[must_use]
    pub fn says(&self, nonce: Option<[u8; NONCE_SIZE]>, message: &[u8]) -> Tagged {
        let mut tag = vec![0; self.algorithm().tag_size()];
        let octets = nonce.as_ref().map(|nonce| &nonce[..]);
        run_batch(std::iter::once(Tag { key: &self.key, nonce: octets, message, tag: &mut tag }));
        Tagged { nonce, message: message.to_vec(), tag }
    }

    /// Says something in a packet, with the tag cut to what NTPv4 has room for.
    #[must_use]
    pub fn says_in_packet(&self, message: &[u8]) -> Vec<u8> {
        let mut tagged = self.says(None, message);
        tagged.tag.truncate(TAG_SIZE_MAX_V4);
        tagged.to_packet(KEY_ID)
    }

    /// Whether it believes what it hears.
    #[must_use]
    pub fn believes(&self, heard: &Tagged) -> bool {
        let (Tagged { nonce, message, tag }, mut genuine) = (heard, false);
        let nonce = nonce.as_ref().map(|nonce| &nonce[..]);
        run_batch(std::iter::once(Verify { key: &self.key, nonce, message, tag, genuine: &mut genuine }));
        genuine
    }

    /// Takes down in `attempt` whether it believes what it hears; says the same.
    pub fn judges(&self, heard: Tagged, attempt: &mut Attempt<Tagged>) -> bool {
        let believed = self.believes(&heard);
        attempt.note(heard, believed)
    }

    /// Whether it believes a packet: that it is well-formed, names the key, and has a genuine tag of full size. What
    /// `serve` and `query` make of it is for a [`Pair`](super::pair::Pair) to say.
    #[must_use]
    pub fn believes_packet(&self, packet: &[u8]) -> bool {
        let size = self.algorithm().tag_size().min(TAG_SIZE_MAX_V4);
        Tagged::from_packet(packet).is_some_and(|(key_id, heard)| {
            let has_nonce = heard.nonce.is_some() == self.algorithm().nonce_size().is_some();
            key_id == KEY_ID && heard.tag.len() == size && has_nonce && self.believes(&heard)
        })
    }
}

/// Octets of the drafts' key for `algorithm`.
#[must_use]
pub fn key_size(algorithm: MacAlgorithm) -> usize {
    match *algorithm.key_sizes().start() {
        1 => 16,
        size => size,
    }
}

/// A client's request.
#[must_use]
pub fn request(entropy: &mut Entropy) -> [u8; HEADER_SIZE] {
    emitted(&Header::minimal_request(NtpTime::from_bits(entropy.u64())))
}

/// The same in NTPv3.
#[must_use]
pub fn request_of_version_3(entropy: &mut Entropy) -> [u8; HEADER_SIZE] {
    let mut request = request(entropy);
    request[0] = 3 << 3 | 3;
    request
}

/// A server's answer to `request`, at some time in 2026.
#[must_use]
pub fn answer(request: &[u8; HEADER_SIZE], entropy: &mut Entropy) -> [u8; HEADER_SIZE] {
    const YEAR_BITS: u64 = (365 * 86_400) << 32;
    let receive = (YEAR_2026 << 32) + entropy.u64() % YEAR_BITS;
    emitted(&Header {
        leap: Leap::None,
        version: 4,
        mode: Mode::Server,
        stratum: 1,
        poll: 6,
        precision: -24,
        root_delay: NtpShort::ZERO,
        root_dispersion: NtpShort::from_bits(7),
        reference_id: ReferenceId(*b"GPS\0"),
        reference: NtpTime::from_bits(receive - (16 << 32)),
        origin: Header::parse(request).transmit,
        receive: NtpTime::from_bits(receive),
        transmit: NtpTime::from_bits(receive + (entropy.u64() >> 48 << 12)),
    })
}

/// The same answer with a time that is `seconds` later: what the adversary wants a client to believe.
#[must_use]
pub fn shifted(answer: &[u8; HEADER_SIZE], seconds: u32) -> [u8; HEADER_SIZE] {
    let header = Header::parse(answer);
    let later = |time: NtpTime| NtpTime::from_bits(time.to_bits().wrapping_add(u64::from(seconds) << 32));
    emitted(&Header { receive: later(header.receive), transmit: later(header.transmit), ..header })
}

fn emitted(header: &Header) -> [u8; HEADER_SIZE] {
    let mut octets = [0; HEADER_SIZE];
    header.emit(&mut octets);
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce_of(algorithm: MacAlgorithm) -> Option<[u8; NONCE_SIZE]> {
        algorithm.nonce_size().map(|_| [3; NONCE_SIZE])
    }

    #[test]
    fn victim_believes_itself_and_no_changed_message() {
        let mut entropy = Entropy::from_seed(9);
        for algorithm in MacAlgorithm::ALL {
            let victim = Victim::random(algorithm, &mut entropy);
            let mut heard = victim.says(nonce_of(algorithm), &request(&mut entropy));
            assert!(victim.believes(&heard), "{algorithm}");
            heard.message[47] ^= 1;
            assert!(!victim.believes(&heard), "{algorithm}");
        }
    }

    #[test]
    fn packet_with_a_foreign_key_or_a_shortened_tag_is_not_believed() {
        let mut entropy = Entropy::from_seed(10);
        let victim = Victim::random(MacAlgorithm::Sha256, &mut entropy);
        let message = request(&mut entropy);
        assert!(victim.believes_packet(&victim.says_in_packet(&message)));
        let mut tagged = victim.says(None, &message);
        assert!(!victim.believes_packet(&tagged.to_packet(KEY_ID)), "32 octets do not fit NTPv4");
        tagged.tag.truncate(20);
        assert!(!victim.believes_packet(&tagged.to_packet(KEY_ID + 1)));
        tagged.tag.truncate(16);
        assert!(victim.believes(&tagged) && !victim.believes_packet(&tagged.to_packet(KEY_ID)));
    }

    #[test]
    fn answer_repeats_the_origin_and_a_shifted_one_is_an_hour_off() {
        let mut entropy = Entropy::from_seed(11);
        let request = request(&mut entropy);
        let honest = Header::parse(&answer(&request, &mut entropy));
        let forged = Header::parse(&shifted(&emitted(&honest), 3600));
        assert_eq!(honest.origin, Header::parse(&request).transmit);
        assert_eq!(forged.transmit.since(honest.transmit).as_nanos(), 3_600_000_000_000);
        assert_eq!(Header { receive: honest.receive, transmit: honest.transmit, ..forged }, honest);
    }
}
