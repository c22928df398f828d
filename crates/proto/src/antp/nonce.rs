//! Nonces for what state keys seal, of which none comes twice under one key.
//!
//! ```text
//!  0  prefix, random                           9
//!  9  how many came before under it, u24       3
//! ```
//!
//! A nonce that repeats under AES-GCM gives the key of its tags away. Anybody can have texts sealed by sending m1, on
//! every host that has the key, so nonces that are drawn one by one would meet the bound of NIST SP 800-38D (2^32
//! texts, section 8.3) within hours. Here only the prefix is drawn: one for each thread that seals, at its start, and
//! another after 2^24 texts. Within a prefix the count makes nonces differ. Two of `n` prefixes are the same with a
//! probability below n^2 / 2^73, so 2^43 texts under a key, and half a million starts of threads on all hosts, stay
//! below the 2^-32 that the same section asks for.
//!
//! Absent: whatever is written to a disk, or said to other hosts. A count that is stored would be the same on two hosts
//! that have copies of one file, which is what hosts of one name have.

use authentick_crypto::Entropy;
use authentick_crypto::gcm::GCM_NONCE_SIZE;

use crate::mutant::{Place, is_out};

const COUNT_SIZE: usize = 3;
const PREFIX_SIZE: usize = GCM_NONCE_SIZE - COUNT_SIZE;
/// Texts under one prefix.
const COUNT_MAX: u32 = 1 << (8 * COUNT_SIZE);

/// The nonces of one thread. Never copied: a copy would give the same ones.
#[derive(Debug)]
pub struct Nonces {
    prefix: [u8; PREFIX_SIZE],
    /// Nonces that were given under the prefix.
    count: u32,
    /// Nonces that a prefix is good for.
    count_max: u32,
}

impl Nonces {
    /// Nonces under a prefix that is drawn with the first of them.
    #[must_use]
    pub const fn new() -> Self {
        Nonces::with_count_max(COUNT_MAX)
    }

    const fn with_count_max(count_max: u32) -> Self {
        Nonces { prefix: [0; PREFIX_SIZE], count: count_max, count_max }
    }

    /// A nonce that was not given before. Prefixes come from `entropy`.
    //= antp#computations-5
    #[inline]
    pub fn next(&mut self, entropy: &mut Entropy) -> [u8; GCM_NONCE_SIZE] {
        if self.count == self.count_max {
            (self.prefix, self.count) = (entropy.array(), 0);
        }
        let mut nonce = [0; GCM_NONCE_SIZE];
        let (prefix, count) = nonce.split_at_mut(PREFIX_SIZE);
        prefix.copy_from_slice(&self.prefix);
        count.copy_from_slice(&self.count.to_be_bytes()[size_of::<u32>() - COUNT_SIZE..]);
        self.count += 1;
        if is_out(Place::StateNonce) { [0; _] } else { nonce }
    }
}

impl Default for Nonces {
    fn default() -> Self {
        Nonces::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The distinct prefixes among `nonces`, after it was checked that no nonce is there twice.
    fn prefixes(nonces: &[[u8; GCM_NONCE_SIZE]]) -> HashSet<&[u8]> {
        assert_eq!(nonces.iter().collect::<HashSet<_>>().len(), nonces.len(), "a nonce came twice");
        nonces.iter().map(|nonce| &nonce[..PREFIX_SIZE]).collect()
    }

    //= antp#computations-5
    #[test]
    fn nonces_count_up_under_one_prefix_and_at_its_limit_another_is_drawn() {
        let mut entropy = Entropy::from_seed(1);
        let mut nonces = Nonces::with_count_max(300);
        let given: Vec<_> = (0..1000).map(|_| nonces.next(&mut entropy)).collect();
        assert_eq!(prefixes(&given).len(), 4);
        for (index, nonce) in given.iter().enumerate() {
            let count = u32::from_be_bytes([0, nonce[9], nonce[10], nonce[11]]);
            assert_eq!(count as usize, index % 300);
            assert_eq!(nonce[..PREFIX_SIZE], given[index / 300 * 300][..PREFIX_SIZE]);
        }
    }

    #[test]
    fn last_nonce_of_a_prefix_has_the_greatest_count_that_fits() {
        let mut entropy = Entropy::from_seed(1);
        let mut nonces = Nonces::new();
        let first = nonces.next(&mut entropy);
        nonces.count = COUNT_MAX - 1;
        let last = nonces.next(&mut entropy);
        assert_eq!((&first[..9], &first[9..]), (&last[..9], &[0; 3][..]));
        assert_eq!(last[9..], [0xFF; 3]);
        let next = nonces.next(&mut entropy);
        assert_eq!(next[9..], [0; 3]);
        assert_ne!(next[..9], last[..9]);
    }

    #[test]
    fn threads_starts_and_hosts_that_share_a_key_have_prefixes_of_their_own() {
        let given: Vec<_> = (0..100)
            .flat_map(|_| {
                let (mut nonces, mut entropy) = (Nonces::new(), Entropy::from_system().unwrap());
                (0..10).map(|_| nonces.next(&mut entropy)).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(prefixes(&given).len(), 100);
    }
}
