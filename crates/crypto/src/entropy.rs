//! The source of random octets: ChaCha12, seeded by the operating system or, for replays, by a number.
//!
//! Twelve rounds, as in the crate `rand`: the best attack known reaches seven, and the nonces of a response take a
//! third less time than with twenty.

use std::fmt;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Octets after which a source of the system's is seeded anew, as many as the crate `rand` allows.
const RESEED_SIZE: usize = 1 << 16;

/// A cryptographic random source. Not shared: each thread owns one.
///
/// One that the operating system seeded asks it again after every 64 KiB, so that who reads this process's memory
/// learns little of what was drawn before. A virtual machine that is restored from a snapshot, or copied, draws the
/// same octets again until then: its service is to be started after that, not before.
pub struct Entropy {
    generator: ChaCha12Rng,
    /// Octets until the next seed; `None` if there is never one.
    left: Option<usize>,
}

impl Entropy {
    /// A source seeded with 256 bits from the operating system.
    ///
    /// # Errors
    /// If the operating system has no randomness to give, for example in a sandbox that forbids `getrandom`.
    pub fn from_system() -> std::io::Result<Self> {
        Ok(Entropy { generator: system_seeded()?, left: Some(RESEED_SIZE) })
    }

    /// A source that repeats itself for the same `seed`: for simulation, tests and benchmarks only.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Entropy { generator: ChaCha12Rng::seed_from_u64(seed), left: None }
    }

    /// Fills `octets`.
    #[inline]
    pub fn fill(&mut self, octets: &mut [u8]) {
        self.spend(octets.len());
        self.generator.fill_bytes(octets);
    }

    #[inline]
    fn spend(&mut self, size: usize) {
        if let Some(left) = &mut self.left {
            match left.checked_sub(size) {
                Some(rest) => *left = rest,
                None => self.reseed(),
            }
        }
    }

    #[cold]
    fn reseed(&mut self) {
        // The system had randomness at the start. If it has none now, the old seed is as good as it was.
        if let Ok(generator) = system_seeded() {
            self.generator = generator;
        }
        self.left = Some(RESEED_SIZE);
    }

    /// `N` random octets.
    #[inline]
    #[must_use]
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut octets = [0; N];
        self.fill(&mut octets);
        octets
    }

    /// A random 64-bit number.
    #[inline]
    #[must_use]
    pub fn u64(&mut self) -> u64 {
        self.spend(size_of::<u64>());
        self.generator.next_u64()
    }
}

fn system_seeded() -> std::io::Result<ChaCha12Rng> {
    let mut seed = zeroize::Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(ChaCha12Rng::from_seed(*seed))
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy(ChaCha12)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_octets_and_system_seeds_differ() {
        assert_eq!(Entropy::from_seed(1).array::<32>(), Entropy::from_seed(1).array::<32>());
        assert_ne!(Entropy::from_seed(1).array::<32>(), Entropy::from_seed(2).array::<32>());
        let mut system = Entropy::from_system().unwrap();
        assert_ne!(system.array::<32>(), Entropy::from_system().unwrap().array::<32>());
        assert_ne!(system.u64(), system.u64());
    }

    #[test]
    fn source_of_the_system_is_seeded_anew_after_64_kib_and_one_with_a_seed_never() {
        let mut system = Entropy::from_system().unwrap();
        let mut old = Entropy { generator: system.generator.clone(), left: None };
        let mut draw = |count| (0..count).all(|_| system.array::<32>() == old.array::<32>());
        assert!(draw(RESEED_SIZE / 32), "the first seed lasts so long");
        assert!(!draw(1), "then there is another");
        let mut seeded = Entropy::from_seed(1);
        let mut bare = ChaCha12Rng::seed_from_u64(1);
        for _ in 0..3 * RESEED_SIZE / 8 {
            assert_eq!(seeded.u64(), bare.next_u64());
        }
    }
}
