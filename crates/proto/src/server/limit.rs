//! Rate limits: how many requests per second each address prefix and each client with a key may send, with bursts, in
//! bounded memory.
//!
//! Anyone can send requests from a client's address, so what an address is charged with says nothing of its client.
//! A request with a right tag is therefore charged to its key, and once only: the same request again is worth what one
//! without a tag is. What is reflected to an address is bounded for both kinds, apart from each other.
//!
//! The generic cell rate algorithm in one word per prefix: the time at which its bucket will be full again. A bucket
//! of four words is found by a keyed hash, so nobody can aim at another's. When all four are in use by others, the one
//! that is nearest to full again gives way: under a flood of prefixes the limiter forgets, it never grows and never
//! blocks a stranger. Words are atomics: all workers share one limiter without a lock. What this guarantees, and how
//! far races between workers can exceed the burst, is with [`Ways`].

use std::net::IpAddr;

use authentick_crypto::{Entropy, KeyedHash};
use authentick_lockfree::{Allowance, Ways};

/// How many times the rate of requests without a proof an address may have of authenticated ones.
const AUTHENTICATED_SHARE: u32 = 32;
/// How long the same authenticated request is known for a repeated one, as long as the table has room.
const PROOF_INTERVAL_US: u64 = 3_600_000_000;

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

impl Rate {
    /// The prefix of an address that is charged, as octets.
    fn prefix(&self, source: IpAddr) -> Prefix {
        match source.to_canonical() {
            IpAddr::V4(v4) => {
                let kept = 32 - u32::from(self.prefix_v4.min(32));
                let mut octets = [0; 16];
                octets[..4].copy_from_slice(&v4.to_bits().checked_shr(kept).unwrap_or(0).to_be_bytes());
                Prefix { octets, size: 4 }
            }
            IpAddr::V6(v6) => {
                let kept = 128 - u32::from(self.prefix_v6.min(128));
                Prefix { octets: v6.to_bits().checked_shr(kept).unwrap_or(0).to_be_bytes(), size: 16 }
            }
        }
    }
}

/// An address prefix, of which those of the two families have different sizes.
struct Prefix {
    octets: [u8; 16],
    size: usize,
}

impl Prefix {
    fn octets(&self) -> &[u8] {
        &self.octets[..self.size]
    }
}

/// One rate for many, of whom few are remembered, found by a keyed hash.
struct RateTable {
    allowance: Allowance,
    hash: KeyedHash,
    buckets: Box<[Ways]>,
}

impl RateTable {
    /// # Panics
    /// If `bucket_count` is not a power of two.
    fn new(allowance: Allowance, bucket_count: usize, entropy: &mut Entropy) -> Self {
        assert!(bucket_count.is_power_of_two(), "buckets are chosen by masking a hash");
        let buckets = (0..bucket_count).map(|_| Ways::default()).collect();
        RateTable { allowance, hash: KeyedHash::new(entropy), buckets }
    }

    /// Whether a request of who has this name is within the rate; counts it if it is.
    fn admit(&self, name: &[u8], now_us: u64) -> bool {
        let hash = self.hash.of(name);
        self.bucket_of(hash).admit(hash, &self.allowance, now_us)
    }

    fn has_room(&self, name: &[u8], now_us: u64) -> bool {
        let hash = self.hash.of(name);
        self.bucket_of(hash).has_room(hash, &self.allowance, now_us)
    }

    /// The lower bits of the hash choose the bucket; the upper ones are told apart in it.
    fn bucket_of(&self, hash: u64) -> &Ways {
        &self.buckets[hash as usize & (self.buckets.len() - 1)]
    }
}

/// Remembers the prefixes that asked recently.
pub struct Limiter {
    rate: Rate,
    prefixes: RateTable,
}

impl Limiter {
    /// A limiter with `bucket_count` buckets of four prefixes (32 octets each).
    ///
    /// # Panics
    /// If `bucket_count` is not a power of two.
    #[must_use]
    pub fn new(rate: Rate, bucket_count: usize, entropy: &mut Entropy) -> Self {
        let allowance = Allowance::new(rate.interval_us, rate.burst);
        Limiter { rate, prefixes: RateTable::new(allowance, bucket_count, entropy) }
    }

    /// What it limits to.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Whether a request from `source` is within its prefix's rate; counts it if it is. `now_us` comes from a monotonic
    /// clock; it may lie some seconds behind another worker's that was used before.
    pub fn admit(&self, source: IpAddr, now_us: u64) -> bool {
        self.prefixes.admit(self.rate.prefix(source).octets(), now_us)
    }

    /// Whether [`Limiter::admit`] would say yes now; counts nothing. For callers that
    /// ask several limiters and take from all of them or from none.
    pub fn has_room(&self, source: IpAddr, now_us: u64) -> bool {
        self.prefixes.has_room(self.rate.prefix(source).octets(), now_us)
    }
}

/// Whose key a request was authenticated with, and by what it differs from all others.
#[derive(Clone, Copy, Debug)]
pub(super) enum Client<'a> {
    /// Under NTS: the key of requests, the same in all cookies of an association, and the tag.
    Nts { key: &'a [u8], tag: &'a [u8] },
    /// With a MAC: the identifier of the key, which clients of several prefixes may share, and the digest.
    Mac { key_id: u32, tag: &'a [u8] },
}

/// Limits of all that ask for time, with a key or without.
pub struct ClientLimits {
    /// What is reflected to a prefix without a proof.
    prefixes: Limiter,
    /// What is reflected to a prefix with one: of several clients behind one address, and of one that others imitate
    /// with keys of their own.
    authenticated: Limiter,
    keys: RateTable,
    /// Requests that were charged to their key.
    proofs: RateTable,
}

impl ClientLimits {
    /// Limits of `rate` for each prefix, and for each key; four tables of `bucket_count` buckets with four entries.
    ///
    /// # Panics
    /// If `bucket_count` is not a power of two.
    #[must_use]
    pub fn new(rate: Rate, bucket_count: usize, entropy: &mut Entropy) -> Self {
        let share = AUTHENTICATED_SHARE;
        let authenticated = Rate {
            interval_us: (rate.interval_us / u64::from(share)).max(1),
            burst: rate.burst.saturating_mul(share),
            ..rate
        };
        let (of_key, of_proof) =
            (Allowance::new(rate.interval_us, rate.burst), Allowance::new(PROOF_INTERVAL_US, 1));
        ClientLimits {
            prefixes: Limiter::new(rate, bucket_count, entropy),
            authenticated: Limiter::new(authenticated, bucket_count, entropy),
            keys: RateTable::new(of_key, bucket_count, entropy),
            proofs: RateTable::new(of_proof, bucket_count, entropy),
        }
    }

    /// The rate of a prefix, and of a key.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.prefixes.rate()
    }

    /// Whether a request from `source` that proves nothing is within its rate; counts it if it is.
    pub(super) fn admit(&self, source: IpAddr, now_us: u64) -> bool {
        self.prefixes.admit(source, now_us)
    }

    /// The same of a request whose tag is right.
    pub(super) fn admit_client(&self, client: Client<'_>, source: IpAddr, now_us: u64) -> bool {
        let (Client::Nts { tag, .. } | Client::Mac { tag, .. }) = client;
        if !self.proofs.admit(tag, now_us) {
            return self.admit(source, now_us);
        }
        let is_within = match client {
            Client::Nts { key, .. } => self.keys.admit(key, now_us),
            Client::Mac { key_id, .. } => {
                let prefix = self.rate().prefix(source);
                let mut name = [0; 20];
                name[..4].copy_from_slice(&key_id.to_be_bytes());
                name[4..].copy_from_slice(&prefix.octets);
                self.keys.admit(&name[..4 + prefix.size], now_us)
            }
        };
        is_within && self.authenticated.admit(source, now_us)
    }
}

impl std::fmt::Debug for ClientLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientLimits").field("prefixes", &self.prefixes).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Limiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limiter")
            .field("rate", &self.rate)
            .field("buckets", &self.prefixes.buckets.len())
            .finish()
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
