//! Something that is timed: an algorithm by somebody's code, and the packets that it is given.

use authentick_crypto::mac::MacAlgorithm;
use authentick_report::mac::{Algorithm, Implementation, KeyUse, Timing};

use super::SIZE;

/// Computes so many batches of tags, of packets and nonces that differ.
pub(super) type Work = Box<dyn FnMut(u64)>;

/// A line of the tables.
pub(super) struct Subject {
    /// What it is, and what was measured of it.
    pub(super) timing: Timing,
    pub(super) work: Work,
}

impl Subject {
    /// Somebody's tags, one at a time.
    pub(super) fn single(
        algorithm: Algorithm,
        implementation: Implementation,
        key: KeyUse,
        work: Work,
    ) -> Self {
        Subject { timing: Timing { algorithm, implementation, key, batch: 1, ns: Vec::new() }, work }
    }
}

pub(super) const NONCE_SIZE: usize = 12;

/// The key, of which algorithms take 16 or 32 octets.
pub(super) const KEY: [u8; 32] = [
    0x7e, 0xa6, 0x2a, 0xe6, 0x4d, 0x19, 0x01, 0x14, 0xd4, 0x6d, 0x5a, 0x08, 0x2f, 0x94, 0x8e, 0xc1, 0x4d,
    0x19, 0x01, 0x14, 0xd4, 0x6d, 0x5a, 0x08, 0x2f, 0x94, 0x8e, 0xc1, 0x7e, 0xa6, 0x2a, 0xe6,
];

/// The part of the key that an algorithm takes: as the drafts have it, 16 octets, or 32 where there is no such key.
pub(super) fn key_of(algorithm: MacAlgorithm) -> &'static [u8] {
    const USUAL: usize = 16;
    let size = USUAL.max(*algorithm.key_sizes().start());
    &KEY[..size]
}

/// Octets of an algorithm's tag on the wire: no more than NTPv4 carries.
pub(super) fn tag_size(algorithm: MacAlgorithm) -> usize {
    const MOST: usize = 20;
    algorithm.tag_size().min(MOST)
}

/// An NTP header whose transmit timestamp is `number`.
pub(super) fn packet() -> [u8; SIZE] {
    let mut packet = [0; SIZE];
    // Version 4, mode 4, stratum 1, poll 6, precision -23.
    packet[..4].copy_from_slice(&[0x24, 1, 6, 0xe9]);
    packet
}

/// Stamps a packet with a number, so that no two are alike.
#[inline]
pub(super) fn stamp(packet: &mut [u8; SIZE], number: u64) {
    packet[SIZE - 8..].copy_from_slice(&number.to_be_bytes());
}

/// A nonce from a number: the drafts' salt, and what is new for each packet.
#[inline]
pub(super) fn nonce(number: u64) -> [u8; NONCE_SIZE] {
    let mut nonce = [0x5a; NONCE_SIZE];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    nonce
}

/// Work that does `once` for each batch, with a number that is new each time.
pub(super) fn work(mut once: impl FnMut(u64) + 'static) -> Work {
    let mut number = 0_u64;
    Box::new(move |count| {
        for _ in 0..count {
            number += 1;
            once(number);
        }
    })
}

/// The same with a packet that was stamped with the number.
pub(super) fn packet_work(mut once: impl FnMut(u64, &[u8; SIZE]) + 'static) -> Work {
    let mut packet = packet();
    work(move |number| {
        stamp(&mut packet, number);
        once(number, &packet);
    })
}

#[cfg(test)]
mod tests {
    use authentick_game::mac::factors::named;
    use authentick_report::mac::security::Factors;

    use super::*;

    #[test]
    fn keys_and_tags_are_those_of_the_drafts() {
        for algorithm in MacAlgorithm::ALL {
            let factors = Factors::of(named(algorithm));
            assert_eq!(key_of(algorithm).len() * 8, factors.key_bits as usize, "{algorithm}");
            assert_eq!(tag_size(algorithm) * 8, factors.tag_bits as usize, "{algorithm}");
        }
    }
}
