//! The rate limit: how many requests per second each address prefix may send, with bursts, in bounded memory.
//!
//! The generic cell rate algorithm in one word per prefix: the time at which its bucket will be full again. A bucket
//! of four words is found by a keyed hash, so nobody can aim at another's. When all four are in use by others, the one
//! that is nearest to full again gives way: under a flood of prefixes the limiter forgets, it never grows and never
//! blocks a stranger. Words are atomics: all workers share one limiter without a lock.
//!
//! ```text
//! 63          44 43                                0
//! | tag, 20 bits | full again at, us, modulo 2^44  |     a word of zero is free
//! ```

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use authentick_crypto::{Entropy, KeyedHash};

const WAYS: usize = 4;
const TIME_BITS: u32 = 44;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
/// How many times an update is tried while other workers change the same word. After that the request is admitted.
const ATTEMPT_COUNT: usize = 4;

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
    hash: KeyedHash,
    buckets: Box<[[AtomicU64; WAYS]]>,
}

impl Limiter {
    /// A limiter with `bucket_count` buckets of four prefixes (32 octets each).
    ///
    /// # Panics
    /// If `bucket_count` is not a power of two.
    #[must_use]
    pub fn new(rate: Rate, bucket_count: usize, entropy: &mut Entropy) -> Self {
        assert!(bucket_count.is_power_of_two(), "buckets are chosen by masking a hash");
        let buckets = (0..bucket_count).map(|_| [const { AtomicU64::new(0) }; WAYS]).collect();
        Limiter { rate, hash: KeyedHash::new(entropy), buckets }
    }

    /// Whether a request from `source` is within its prefix's rate; counts it if it is. `now_us` must not run
    /// backwards by much: it comes from a monotonic clock.
    pub fn admit(&self, source: IpAddr, now_us: u64) -> bool {
        let now = now_us & TIME_MASK;
        let (bucket, tag) = self.place_of(source);
        for _ in 0..ATTEMPT_COUNT {
            let words = bucket.each_ref().map(|word| word.load(Ordering::Relaxed));
            let way = words.iter().position(|word| word >> TIME_BITS == tag).unwrap_or_else(|| {
                let ahead = |word: u64| if word == 0 { 0 } else { 1 + self.ahead_of(word, now) };
                (0..WAYS).min_by_key(|&way| ahead(words[way])).expect("a bucket has four ways")
            });
            let known = words[way] >> TIME_BITS == tag;
            let ahead = if known { self.ahead_of(words[way], now) } else { 0 };
            if ahead > self.tolerance_us() {
                return false;
            }
            let next = tag << TIME_BITS | (now + ahead + self.interval_us()) & TIME_MASK;
            if bucket[way]
                .compare_exchange_weak(words[way], next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
            {
                return true;
            }
        }
        true
    }

    /// Whether [`Limiter::admit`] would say yes now; counts nothing. For callers that
    /// ask several limiters and take from all of them or from none.
    pub fn has_room(&self, source: IpAddr, now_us: u64) -> bool {
        let (bucket, tag) = self.place_of(source);
        let words = bucket.each_ref().map(|word| word.load(Ordering::Relaxed));
        let mut known = words.into_iter().filter(|word| word >> TIME_BITS == tag);
        known.all(|word| self.ahead_of(word, now_us & TIME_MASK) <= self.tolerance_us())
    }

    fn interval_us(&self) -> u64 {
        self.rate.interval_us.max(1)
    }

    /// How far ahead of now a bucket may be full again, so that there is still room for one.
    fn tolerance_us(&self) -> u64 {
        self.interval_us() * u64::from(self.rate.burst.max(1) - 1)
    }

    /// Microseconds until the bucket of `word` is full again; a time that is further ahead than any request could have
    /// put it lies in the past.
    fn ahead_of(&self, word: u64, now: u64) -> u64 {
        let ahead = (word & TIME_MASK).wrapping_sub(now) & TIME_MASK;
        if ahead > self.interval_us() + self.tolerance_us() { 0 } else { ahead }
    }

    /// The bucket of the prefix, and its tag in it.
    fn place_of(&self, source: IpAddr) -> (&[AtomicU64; WAYS], u64) {
        let hash = self.hash_of_prefix(source);
        (&self.buckets[hash as usize & (self.buckets.len() - 1)], (hash >> TIME_BITS).max(1))
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
        let end = 1u64 << TIME_BITS;
        assert_eq!((0..20).filter(|_| limiter.admit(client, end - 1000)).count(), 4);
        assert_eq!((0..20).filter(|_| limiter.admit(client, end + 1_000_000)).count(), 4);
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
