//! AES-128 with the processor's AES instructions: key expansion, and one block under each of `N` keys.

use std::arch::x86_64::{
    __m128i, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_aeskeygenassist_si128, _mm_loadu_si128,
    _mm_setzero_si128, _mm_shuffle_epi32, _mm_slli_si128, _mm_storeu_si128, _mm_xor_si128,
};

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Octets of an AES block.
pub(super) const BLOCK_SIZE: usize = 16;

/// Round keys of one AES-128 key.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(super) struct Schedule([__m128i; 11]);

impl Schedule {
    /// FIPS 197 section 5.2.
    #[target_feature(enable = "aes,sse4.1")]
    pub(super) fn expand(key: &[u8; 16]) -> Self {
        let mut rounds = [_mm_setzero_si128(); 11];
        rounds[0] = load(key);
        macro_rules! round {
            ($index:literal, $constant:literal) => {
                rounds[$index] = next_round(
                    rounds[$index - 1],
                    _mm_aeskeygenassist_si128::<$constant>(rounds[$index - 1]),
                );
            };
        }
        round!(1, 0x01);
        round!(2, 0x02);
        round!(3, 0x04);
        round!(4, 0x08);
        round!(5, 0x10);
        round!(6, 0x20);
        round!(7, 0x40);
        round!(8, 0x80);
        round!(9, 0x1b);
        round!(10, 0x36);
        Schedule(rounds)
    }
}

#[inline]
#[target_feature(enable = "aes,sse4.1")]
fn next_round(previous: __m128i, assist: __m128i) -> __m128i {
    let mut key = previous;
    key = _mm_xor_si128(key, _mm_slli_si128::<4>(key));
    key = _mm_xor_si128(key, _mm_slli_si128::<8>(key));
    _mm_xor_si128(key, _mm_shuffle_epi32::<0xff>(assist))
}

/// Encrypts `blocks[i]` under `keys[i]`, all lanes in step.
#[inline]
#[target_feature(enable = "aes,sse4.1")]
pub(super) fn encrypt<const N: usize>(keys: &[&Schedule; N], blocks: &mut [__m128i; N]) {
    for (block, key) in blocks.iter_mut().zip(keys) {
        *block = _mm_xor_si128(*block, key.0[0]);
    }
    for round in 1..10 {
        for (block, key) in blocks.iter_mut().zip(keys) {
            *block = _mm_aesenc_si128(*block, key.0[round]);
        }
    }
    for (block, key) in blocks.iter_mut().zip(keys) {
        *block = _mm_aesenclast_si128(*block, key.0[10]);
    }
}

#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn load(octets: &[u8; BLOCK_SIZE]) -> __m128i {
    // SAFETY: `octets` is readable for the 16 octets that the instruction reads; it needs no alignment.
    unsafe { _mm_loadu_si128(octets.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn store(block: __m128i) -> [u8; BLOCK_SIZE] {
    let mut octets = [0; BLOCK_SIZE];
    // SAFETY: `octets` is writable for the 16 octets that the instruction writes; it needs no alignment.
    unsafe { _mm_storeu_si128(octets.as_mut_ptr().cast(), block) };
    octets
}
