//! A register as 32-bit words, four of each block: what SHA-256 needs besides [`super::block`].
//!
//! Every operation does the same to each word. AVX-512 rotates words in one instruction and computes any function of
//! three bits in another; AVX2 needs two to four instead. Registers of one block are absent: what lacks AVX2 hashes one
//! message after another.

use std::arch::x86_64::*;

use super::block::{Blocks, Double, Quadruple};

/// A register of words.
pub(super) trait Words: Blocks {
    /// The same word everywhere.
    fn splat(word: u32) -> Self;

    /// Each word rotated to the right by `RIGHT` bits; `LEFT` is 32 less these.
    fn rotate<const RIGHT: i32, const LEFT: i32>(self) -> Self;

    /// Each word shifted to the right by `BITS`.
    fn shift<const BITS: u32, const SIGNED_BITS: i32>(self) -> Self;

    /// Exclusive or of three.
    fn xor3(self, b: Self, c: Self) -> Self;

    /// Each bit that of `b` where the one of `self` is set, else that of `c`. FIPS 180-4 section 4.1.2, Ch.
    fn choose(self, b: Self, c: Self) -> Self;

    /// Each bit as at least two of the three have it. FIPS 180-4 section 4.1.2, Maj.
    fn majority(self, b: Self, c: Self) -> Self;
}

impl Words for Double {
    #[inline(always)]
    fn splat(word: u32) -> Self {
        // SAFETY: `entry` names this type only where the instruction is enabled.
        Double(unsafe { _mm256_set1_epi32(word.cast_signed()) })
    }

    #[inline(always)]
    fn rotate<const RIGHT: i32, const LEFT: i32>(self) -> Self {
        const { assert!(RIGHT + LEFT == 32, "a rotation moves all bits") };
        // SAFETY: a value of this type exists only where the instruction is enabled.
        let low = Double(unsafe { _mm256_srli_epi32::<RIGHT>(self.0) });
        // SAFETY: as above.
        low.xor(Double(unsafe { _mm256_slli_epi32::<LEFT>(self.0) }))
    }

    #[inline(always)]
    fn shift<const BITS: u32, const SIGNED_BITS: i32>(self) -> Self {
        // SAFETY: a value of this type exists only where the instruction is enabled.
        Double(unsafe { _mm256_srli_epi32::<SIGNED_BITS>(self.0) })
    }

    #[inline(always)]
    fn xor3(self, b: Self, c: Self) -> Self {
        self.xor(b).xor(c)
    }

    #[inline(always)]
    fn choose(self, b: Self, c: Self) -> Self {
        b.xor(c).and(self).xor(c)
    }

    #[inline(always)]
    fn majority(self, b: Self, c: Self) -> Self {
        // Where the first two are equal they decide. The next round has the second sum again, as its first.
        self.xor(b).and(b.xor(c)).xor(b)
    }
}

impl Words for Quadruple {
    #[inline(always)]
    fn splat(word: u32) -> Self {
        // SAFETY: `entry` names this type only where the instruction is enabled.
        Quadruple(unsafe { _mm512_set1_epi32(word.cast_signed()) })
    }

    #[inline(always)]
    fn rotate<const RIGHT: i32, const LEFT: i32>(self) -> Self {
        const { assert!(RIGHT + LEFT == 32, "a rotation moves all bits") };
        // SAFETY: a value of this type exists only where the instruction is enabled.
        Quadruple(unsafe { _mm512_ror_epi32::<RIGHT>(self.0) })
    }

    #[inline(always)]
    fn shift<const BITS: u32, const SIGNED_BITS: i32>(self) -> Self {
        // SAFETY: a value of this type exists only where the instruction is enabled.
        Quadruple(unsafe { _mm512_srli_epi32::<BITS>(self.0) })
    }

    #[inline(always)]
    fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: a value of this type exists only where the instruction is enabled.
        Quadruple(unsafe { _mm512_ternarylogic_epi32::<0x96>(self.0, b.0, c.0) })
    }

    #[inline(always)]
    fn choose(self, b: Self, c: Self) -> Self {
        // SAFETY: a value of this type exists only where the instruction is enabled.
        Quadruple(unsafe { _mm512_ternarylogic_epi32::<0xca>(self.0, b.0, c.0) })
    }

    #[inline(always)]
    fn majority(self, b: Self, c: Self) -> Self {
        // SAFETY: a value of this type exists only where the instruction is enabled.
        Quadruple(unsafe { _mm512_ternarylogic_epi32::<0xe8>(self.0, b.0, c.0) })
    }
}
