//! Interleaved mode: telling a client when its last response really left. RFC 9769 section 2.
//!
//! A client that wants it puts our last receive timestamp into its origin field. Receive timestamps of ours are odd
//! and transmit timestamps even (chrony's rule), so an origin that is odd asks for interleaved mode and only such
//! clients take a place in the table; the many that copy our transmit timestamp, or send zero, cost nothing.
//!
//! The table is an array of notes that all workers share, found by a keyed hash of address and receive timestamp. The
//! seal of a note is such a hash too, and covers the transmit timestamp as well. So whatever other workers write
//! meanwhile, a client is told a time that was saved for its own exchange, once, or it is answered in basic mode, which
//! is always right. [`Note`] says why.

use std::net::IpAddr;
use std::num::NonZeroU64;

use authentick_crypto::{Entropy, KeyedHash};
use authentick_lockfree::Note;
use authentick_wire::time::NtpTime;

/// When a response really left, by the receive timestamp that it carried.
pub struct Interleave {
    hash: KeyedHash,
    entries: Box<[Note]>,
}

impl Interleave {
    /// A table of `entry_count` entries (16 octets each), all empty.
    ///
    /// # Panics
    /// If `entry_count` is not a power of two.
    #[must_use]
    pub fn new(entry_count: usize, entropy: &mut Entropy) -> Self {
        assert!(entry_count.is_power_of_two(), "entries are chosen by masking a hash");
        Interleave {
            hash: KeyedHash::new(entropy),
            entries: (0..entry_count).map(|_| Note::default()).collect(),
        }
    }

    /// Whether a request with this origin asks for interleaved mode.
    #[inline]
    #[must_use]
    pub const fn asks(origin: NtpTime) -> bool {
        origin.to_bits() & 1 == 1
    }

    /// A receive timestamp: odd.
    //= rfc9769#2-3
    #[inline]
    #[must_use]
    pub const fn receive_stamp(time: NtpTime) -> NtpTime {
        NtpTime::from_bits(time.to_bits() | 1)
    }

    /// A transmit timestamp: even, hence never equal to a receive timestamp.
    //= rfc9769#2-3
    #[inline]
    #[must_use]
    pub const fn transmit_stamp(time: NtpTime) -> NtpTime {
        NtpTime::from_bits(time.to_bits() & !1)
    }

    /// Remembers that the response with `receive` left for `client` at `transmit`.
    pub fn remember(&self, client: IpAddr, receive: NtpTime, transmit: NtpTime) {
        let seal = self.seal(client, receive, transmit);
        self.entry(client, receive).leave(transmit.to_bits(), seal);
    }

    /// When the response with `receive` left for `client`, once: each saved time is used up. RFC 9769 section 2.
    //= rfc9769#2-7, rfc9769#2-8
    #[must_use]
    pub fn take(&self, client: IpAddr, receive: NtpTime) -> Option<NtpTime> {
        let seal_of = |transmit| self.seal(client, receive, NtpTime::from_bits(transmit));
        self.entry(client, receive).take(seal_of).map(NtpTime::from_bits)
    }

    //= rfc9769#2-1
    fn entry(&self, client: IpAddr, receive: NtpTime) -> &Note {
        let hash = self.hash.of(&key(client, receive, NtpTime::ZERO));
        &self.entries[hash as usize & (self.entries.len() - 1)]
    }

    fn seal(&self, client: IpAddr, receive: NtpTime, transmit: NtpTime) -> NonZeroU64 {
        NonZeroU64::new(self.hash.of(&key(client, receive, transmit))).unwrap_or(NonZeroU64::MIN)
    }
}

//= rfc9769#2-2
fn key(client: IpAddr, receive: NtpTime, transmit: NtpTime) -> [u8; 32] {
    let address = match client {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    let mut key = [0; 32];
    key[..16].copy_from_slice(&address);
    key[16..24].copy_from_slice(&receive.to_be_bytes());
    key[24..].copy_from_slice(&transmit.to_be_bytes());
    key
}

impl std::fmt::Debug for Interleave {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Interleave({} entries)", self.entries.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= rfc9769#2-2, rfc9769#2-7, rfc9769#2-8
    #[test]
    fn a_saved_time_is_given_once_and_to_its_client_only() {
        let table = Interleave::new(1024, &mut Entropy::from_seed(1));
        let (client, other): (IpAddr, IpAddr) =
            ("198.18.0.1".parse().unwrap(), "198.18.0.2".parse().unwrap());
        let (receive, transmit) = (NtpTime::from_bits(0x1001), NtpTime::from_bits(0x2000));
        table.remember(client, receive, transmit);
        assert_eq!(table.take(other, receive), None);
        assert_eq!(table.take(client, NtpTime::from_bits(0x1003)), None);
        assert_eq!(table.take(client, receive), Some(transmit));
        assert_eq!(table.take(client, receive), None);
    }

    //= rfc9769#2-3
    #[test]
    fn stamps_of_the_two_kinds_never_meet() {
        let time = NtpTime::from_bits(0x1234_5678);
        assert!(Interleave::asks(Interleave::receive_stamp(time)));
        assert!(!Interleave::asks(Interleave::transmit_stamp(time)));
        assert!(!Interleave::asks(NtpTime::ZERO));
    }

    //= rfc9769#2-1
    #[test]
    fn table_lets_old_times_go_rather_than_grow() {
        let table = Interleave::new(4, &mut Entropy::from_seed(1));
        let client = "198.18.0.1".parse().unwrap();
        let receives = (0..1000).map(|number| NtpTime::from_bits(2 * number + 1));
        receives.clone().for_each(|receive| table.remember(client, receive, NtpTime::from_bits(8)));
        let found: Vec<bool> = receives.map(|receive| table.take(client, receive).is_some()).collect();
        assert!(found.last().unwrap() & (1..=4).contains(&found.iter().filter(|found| **found).count()));
    }

    #[test]
    fn concurrent_writers_never_yield_a_time_that_was_not_written() {
        let table = Interleave::new(2, &mut Entropy::from_seed(1));
        let client = "198.18.0.1".parse().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..2u64 {
                let table = &table;
                scope.spawn(move || {
                    for round in 0..20_000u64 {
                        let receive = NtpTime::from_bits((thread << 40 | round) << 1 | 1);
                        table.remember(client, receive, NtpTime::from_bits(receive.to_bits() + 1));
                        if let Some(transmit) = table.take(client, receive) {
                            assert_eq!(transmit.to_bits(), receive.to_bits() + 1);
                        }
                    }
                });
            }
        });
    }
}
