//! The source of random octets: ChaCha12, seeded by the operating system or, for replays, by a number.
//!
//! Twelve rounds, as in the crate `rand`: the best attack known reaches seven, and the nonces of a response take a
//! third less time than with twenty.

use std::fmt;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A cryptographic random source. Not shared: each thread owns one.
pub struct Entropy(ChaCha12Rng);

impl Entropy {
    /// A source seeded with 256 bits from the operating system.
    ///
    /// # Errors
    /// If the operating system has no randomness to give, for example in a sandbox that forbids `getrandom`.
    pub fn from_system() -> std::io::Result<Self> {
        let mut seed = zeroize::Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Entropy(ChaCha12Rng::from_seed(*seed)))
    }

    /// A source that repeats itself for the same `seed`: for simulation, tests and benchmarks only.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Entropy(ChaCha12Rng::seed_from_u64(seed))
    }

    /// Fills `octets`.
    #[inline]
    pub fn fill(&mut self, octets: &mut [u8]) {
        self.0.fill_bytes(octets);
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
        self.0.next_u64()
    }
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
}
