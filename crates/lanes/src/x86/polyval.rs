//! POLYVAL (RFC 8452 section 3): sums of products in GF(2^128), each lane with its own key.

use super::block::{Block, Blocks};
use super::message::{Messages, Padding};
use super::schedule::wipe;

/// The upper half of x^127 + x^126 + x^121 + 1 over x^64, in both halves: what a product is reduced by.
const POLYNOMIAL: Block = [0, 0, 0, 0, 0, 0, 0, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0xc2];

/// The keys of all lanes: H over x^64, and H.
pub(super) struct Keys<V, const N: usize>([[V; N]; 2]);

impl<V: Blocks, const N: usize> Keys<V, N> {
    /// What is multiplied with the lower half of a sum must be as small as what is multiplied with the upper one, so
    /// that a product has 192 bits only and one reduction suffices.
    #[inline(always)]
    pub(super) fn new(keys: [V; N]) -> Self {
        let mut low = keys;
        for key in &mut low {
            *key = over_x64(*key);
        }
        Keys([low, keys])
    }

    /// The keys, equal in all lanes, under which POLYVAL of blocks whose octets are reversed is GHASH under `subkey`,
    /// reversed. RFC 8452 appendix A.
    #[inline(always)]
    pub(super) fn of_ghash(subkey: Block) -> Self {
        let number = u128::from_be_bytes(subkey);
        let carry = 0_u128.wrapping_sub(number >> 127);
        let times_x = number << 1 ^ carry & (0xc2 << 120 | 1);
        Keys::new([V::broadcast(times_x.to_le_bytes()); N])
    }

    /// What `from_parts` makes keys of.
    #[inline(always)]
    pub(super) fn parts(self) -> [[V; N]; 2] {
        self.0
    }

    /// Keys that were taken apart.
    #[inline(always)]
    pub(super) fn from_parts(parts: [[V; N]; 2]) -> Self {
        Keys(parts)
    }

    #[inline(always)]
    pub(super) fn wipe(&mut self) {
        wipe(&mut self.0);
    }

    /// Adds one block per lane: each sum becomes (sum + block) H over x^128. RFC 8452 section 3 ("dot").
    #[inline(always)]
    pub(super) fn absorb_blocks(&self, sums: &[V; N], blocks: &[V; N]) -> [V; N] {
        let mut out = *sums;
        for index in 0..N {
            let sum = sums[index].xor(blocks[index]);
            let [low, high] = [self.0[0][index], self.0[1][index]];
            let lower = sum.multiply::<0x00>(low).xor(sum.multiply::<0x01>(high));
            let upper = sum.multiply::<0x10>(low).xor(sum.multiply::<0x11>(high));
            out[index] = upper.xor(over_x64(lower));
        }
        out
    }

    /// Adds the messages, each filled up with zeros to whole blocks, to the sums. An empty message adds nothing.
    #[inline(always)]
    pub(super) fn absorb<const L: usize>(
        &self,
        sums: &mut [V; N],
        messages: &Messages<impl Fn(usize) -> *const u8>,
    ) {
        if messages.size() == 0 {
            return;
        }
        for step in 0..messages.count_before_last() {
            *sums = self.absorb_blocks(sums, &messages.blocks(step));
        }
        *sums = self.absorb_blocks(sums, &messages.last::<V, N, L>(Padding::Zeros));
    }
}

/// A Montgomery step: the lower half is multiplied with the polynomial and thereby cancelled, the upper one moves down.
#[inline(always)]
fn over_x64<V: Blocks>(value: V) -> V {
    value.swap_halves().xor(value.multiply::<0x00>(V::broadcast(POLYNOMIAL)))
}
