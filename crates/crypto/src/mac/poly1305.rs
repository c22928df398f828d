//! Poly1305 under one-time keys from ChaCha20. RFC 8439 sections 2.5 and 2.6.
//!
//! The arithmetic is written here, in words of 64 bits: the crate `poly1305` is made for long texts, and prepares four
//! powers of a key that serves for the three blocks of one packet. That crate is the peer in tests.

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use zeroize::{Zeroize, Zeroizing};

use super::NONCE_SIZE;

/// The key of ChaCha20, which needs no expansion.
pub(super) struct Key(Zeroizing<[u8; 32]>);

impl Key {
    pub(super) fn new(octets: &[u8; 32]) -> Self {
        Key(Zeroizing::new(*octets))
    }

    /// The one-time key of a nonce: the first half of ChaCha20's block number zero. Section 2.6.
    #[inline]
    pub(super) fn one_time(&self, nonce: &[u8; NONCE_SIZE]) -> OneTime {
        let mut halves = [[0; 16]; 2];
        ChaCha20::new((&*self.0).into(), nonce.into()).apply_keystream(halves.as_flattened_mut());
        let key = OneTime { factor: u128::from_le_bytes(halves[0]), summand: u128::from_le_bytes(halves[1]) };
        halves = [[0; 16]; 2];
        zeroize::optimization_barrier(&halves);
        key
    }

    /// The tag of a message. Section 2.5.
    #[inline]
    pub(super) fn tag(&self, nonce: &[u8; NONCE_SIZE], message: &[u8]) -> [u8; 16] {
        self.one_time(nonce).tag(message)
    }
}

/// A key that is used once: r before it is clamped, and s.
#[derive(Zeroize)]
#[zeroize(drop)]
pub(super) struct OneTime {
    pub(super) factor: u128,
    pub(super) summand: u128,
}

/// What section 2.5 leaves of r.
const CLAMP: u128 = 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff;

impl OneTime {
    /// The tag of a message. Section 2.5.
    #[inline]
    pub(super) fn tag(&self, message: &[u8]) -> [u8; 16] {
        let factor = Factor::new(self.factor & CLAMP);
        let mut sum = Sum { low: 0, high: 0 };
        let (blocks, rest) = message.as_chunks();
        for block in blocks {
            sum.absorb(&factor, u128::from_le_bytes(*block), 1);
        }
        if !rest.is_empty() {
            let mut block = [0; 16];
            block[..rest.len()].copy_from_slice(rest);
            block[rest.len()] = 1;
            sum.absorb(&factor, u128::from_le_bytes(block), 0);
        }
        sum.reduced().wrapping_add(self.summand).to_le_bytes()
    }
}

/// r in two words, below 2^60 each, of which the upper one is a multiple of four.
struct Factor {
    low: u64,
    high: u64,
    /// Five quarters of the upper word: what it stands for after 2^130 has become 5.
    folded: u64,
}

impl Factor {
    #[inline]
    fn new(clamped: u128) -> Self {
        let (low, high) = halves(clamped);
        Factor { low, high, folded: high.wrapping_add(high >> 2) }
    }
}

/// A sum below 2^130 + 2^64: 128 bits, and what is above.
struct Sum {
    low: u128,
    high: u64,
}

impl Sum {
    /// Adds a block of which `bit` stands above it, and multiplies with r.
    #[inline]
    fn absorb(&mut self, factor: &Factor, block: u128, bit: u64) {
        let (low, carry) = self.low.overflowing_add(block);
        let (a, b) = halves(low);
        let sum = |x: u128, y: u128| x.wrapping_add(y);
        let wide = |x: u64, y: u64| u128::from(x).wrapping_mul(u128::from(y));
        let c = self.high.wrapping_add(bit).wrapping_add(u64::from(carry));
        // c is at most 6, and the words of r are below 2^60: none of these sums comes to 2^127, nor the last to 2^64.
        // They wrap for another reason: a check would be a branch on a secret.
        let first = sum(wide(a, factor.low), wide(b, factor.folded));
        let second = sum(wide(a, factor.high), wide(b, factor.low));
        let second = sum(sum(second, c.wrapping_mul(factor.folded).into()), first >> 64);
        let third = c.wrapping_mul(factor.low).wrapping_add((second >> 64) as u64);
        // What stands from bit 130 on counts five times from bit 0 on.
        let over = (third >> 2).wrapping_add(third & !3);
        let (low, carry) = (second << 64 | u128::from(first as u64)).overflowing_add(over.into());
        *self = Sum { low, high: (third & 3).wrapping_add(u64::from(carry)) };
    }

    /// The lower 128 bits of the sum modulo 2^130 - 5.
    #[inline]
    fn reduced(&self) -> u128 {
        let (over, carry) = self.low.overflowing_add(5);
        // One if the sum is at least 2^130 - 5.
        let is_over = u128::from(self.high.wrapping_add(u64::from(carry)) >> 2);
        let mask = 0_u128.wrapping_sub(is_over);
        over & mask | self.low & !mask
    }
}

/// The lower and the upper half.
#[inline]
const fn halves(value: u128) -> (u64, u64) {
    (value as u64, (value >> 64) as u64)
}
