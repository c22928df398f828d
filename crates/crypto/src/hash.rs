//! A keyed hash for tables whose keys an attacker chooses.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::Entropy;

/// SipHash-1-3 under a random key: without the key nobody can aim two inputs at one place of a table.
#[derive(Clone, Copy)]
pub struct KeyedHash(SipHasher13);

impl KeyedHash {
    /// A hash under a key of its own.
    #[must_use]
    pub fn new(entropy: &mut Entropy) -> Self {
        KeyedHash(SipHasher13::new_with_key(&entropy.array()))
    }

    /// The hash of `octets`.
    #[inline]
    #[must_use]
    pub fn of(&self, octets: &[u8]) -> u64 {
        let mut hasher = self.0;
        hasher.write(octets);
        hasher.finish()
    }
}

impl fmt::Debug for KeyedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyedHash(SipHash-1-3)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_keys_hash_apart_and_one_repeats_itself() {
        let mut entropy = Entropy::from_seed(3);
        let (a, b) = (KeyedHash::new(&mut entropy), KeyedHash::new(&mut entropy));
        assert_eq!(a.of(b"198.18.0.1"), a.of(b"198.18.0.1"));
        assert_ne!(a.of(b"198.18.0.1"), b.of(b"198.18.0.1"));
        assert_ne!(a.of(b"198.18.0.1"), a.of(b"198.18.0.2"));
    }
}
