//! The rate limit: how many requests per second each address prefix may send, with bursts, in bounded memory.
//!
//! The generic cell rate algorithm in one word per prefix: the time at which its bucket will be full again. A bucket
//! of four words is found by a keyed hash, so nobody can aim at another's. When all four are in use by others, the one
//! that is nearest to full again gives way: under a flood of prefixes the limiter forgets, it never grows and never
//! blocks a stranger. Words are atomics: all workers share one limiter without a lock. What this guarantees, and how
//! far races between workers can exceed the burst, is with [`Ways`].

use std::net::IpAddr;

use authentick_crypto::{Entropy, KeyedHash};
use authentick_lockfree::{Allowance, Ways};

/// How much a prefix may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Microseconds between requests in the long run, at least 1.
    pub interval_us: u64,
    /// Requests that may come at once, at least 1.
    pub burst: u32,
    /// Leading bits of an IPv4 address that make a prefix.
    pub prefix_v4: u8,
    /// Leading bits of an IPv6 address that make a prefix.
    pub prefix_v6: u8,
}

/// Remembers the prefixes that asked recently.
pub struct Limiter {
    rate: Rate,
    allowance: Allowance,
    hash: KeyedHash,
    buckets: Box<[Ways]>,
}

impl Limiter {
    /// A limiter with `bucket_count` buckets of four prefixes (32 octets each).
    ///
    /// # Panics
    /// If `bucket_count` is not a power of two.
    #[must_use]
    pub fn new(rate: Rate, bucket_count: usize, entropy: &mut Entropy) -> Self {
        assert!(bucket_count.is_power_of_two(), "buckets are chosen by masking a hash");
        Limiter {
            rate,
            allowance: Allowance::new(rate.interval_us, rate.burst),
            hash: KeyedHash::new(entropy),
            buckets: (0..bucket_count).map(|_| Ways::default()).collect(),
        }
    }

    /// What it limits to.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Whether a request from `source` is within its prefix's rate; counts it if it is. `now_us` comes from a monotonic
    /// clock; it may lie some seconds behind another worker's that was used before.
    pub fn admit(&self, source: IpAddr, now_us: u64) -> bool {
        let hash = self.hash_of_prefix(source);
        self.bucket_of(hash).admit(hash, &self.allowance, now_us)
    }

    /// Whether [`Limiter::admit`] would say yes now; counts nothing. For callers that
    /// ask several limiters and take from all of them or from none.
    pub fn has_room(&self, source: IpAddr, now_us: u64) -> bool {
        let hash = self.hash_of_prefix(source);
        self.bucket_of(hash).has_room(hash, &self.allowance, now_us)
    }

    /// The lower bits of the hash choose the bucket; the upper ones are told apart in it.
    fn bucket_of(&self, hash: u64) -> &Ways {
        &self.buckets[hash as usize & (self.buckets.len() - 1)]
    }

    fn hash_of_prefix(&self, source: IpAddr) -> u64 {
        match source.to_canonical() {
            IpAddr::V4(v4) => {
                let kept = 32 - u32::from(self.rate.prefix_v4.min(32));
                self.hash.of(&(v4.to_bits().checked_shr(kept).unwrap_or(0)).to_be_bytes())
            }
            IpAddr::V6(v6) => {
                let kept = 128 - u32::from(self.rate.prefix_v6.min(128));
                self.hash.of(&(v6.to_bits().checked_shr(kept).unwrap_or(0)).to_be_bytes())
            }
        }
    }
}

impl std::fmt::Debug for Limiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limiter").field("rate", &self.rate).field("buckets", &self.buckets.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { interval_us: 100_000, burst: 4, prefix_v4: 32, prefix_v6: 64 };

    fn limiter() -> Limiter {
        Limiter::new(RATE, 64, &mut Entropy::from_seed(1))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn burst_then_rate() {
        let limiter = limiter();
        let client = address("198.18.0.1");
        let start = 5_000_000;
        let at_once = (0..20).filter(|_| limiter.admit(client, start)).count();
        assert_eq!(at_once, 4);
        let in_ten_seconds = (1..=1000).filter(|tick| limiter.admit(client, start + tick * 10_000)).count();
        assert!((99..=101).contains(&in_ten_seconds), "{in_ten_seconds}");
        assert_eq!(
            (0..20).filter(|_| limiter.admit(client, start + 60_000_000)).count(),
            4,
            "the burst comes back"
        );
    }

    #[test]
    fn asking_for_room_takes_none() {
        let limiter = limiter();
        let client = address("198.18.0.1");
        for admitted in 0..4 {
            assert!((0..20).all(|_| limiter.has_room(client, 7)), "after {admitted}");
            assert!(limiter.admit(client, 7));
        }
        assert!(!limiter.has_room(client, 7) && !limiter.admit(client, 7));
        assert!(limiter.has_room(address("198.18.0.2"), 7), "a stranger");
        assert!(limiter.has_room(client, 7 + RATE.interval_us));
    }

    #[test]
    fn addresses_of_one_prefix_share_and_others_do_not() {
        let limiter = limiter();
        let burst = |client: &str| (0..20).filter(|_| limiter.admit(address(client), 7)).count();
        assert_eq!(burst("2001:db8:0:1::1"), 4);
        assert_eq!(burst("2001:db8:0:1:ffff::9"), 0, "the same /64");
        assert_eq!(burst("2001:db8:0:2::1"), 4);
        assert_eq!(burst("198.18.0.1"), 4);
        assert_eq!(burst("::ffff:198.18.0.1"), 0, "the same address, mapped");
        assert_eq!(burst("198.18.0.2"), 4);
    }

    #[test]
    fn million_prefixes_neither_grow_it_nor_shut_out_a_stranger() {
        let limiter = limiter();
        for client in 0..1_000_000u32 {
            limiter.admit(IpAddr::V4(client.into()), u64::from(client));
        }
        assert!(limiter.admit(address("203.0.113.7"), 1_000_001));
    }

    #[test]
    fn clock_of_44_bits_wraps_without_blocking() {
        let limiter = limiter();
        let client = address("198.18.0.1");
        let end = 1u64 << 44;
        assert_eq!((0..20).filter(|_| limiter.admit(client, end - 1000)).count(), 4);
        assert_eq!((0..20).filter(|_| limiter.admit(client, end + 1_000_000)).count(), 4);
    }

    #[test]
    fn late_reading_of_the_clock_gives_no_burst_back() {
        let limiter = limiter();
        let client = address("198.18.0.1");
        let start = 5_000_000;
        assert_eq!((0..20).filter(|_| limiter.admit(client, start)).count(), 4);
        for behind_us in [1, 20, 1000, 4_000_000] {
            assert!(!limiter.has_room(client, start - behind_us), "{behind_us} us");
            assert!(!limiter.admit(client, start - behind_us), "{behind_us} us");
        }
    }

    #[test]
    fn a_client_that_was_quiet_for_days_is_not_blocked() {
        let limiter = limiter();
        let client = address("198.18.0.1");
        for day in 0..400 {
            assert!(limiter.admit(client, day * 86_400_000_000), "day {day}");
        }
    }
}
