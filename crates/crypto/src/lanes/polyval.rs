//! POLYVAL (RFC 8452 section 3): sums of products in GF(2^128), each lane with its own key.

use super::block::{Block, Blocks};
use super::message::{Messages, choose};

/// The upper half of x^127 + x^126 + x^121 + 1 over x^64, in both halves: what a product is reduced by.
const POLYNOMIAL: Block = [0, 0, 0, 0, 0, 0, 0, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0xc2];

/// The product of a and b over x^128. RFC 8452 section 3 ("dot").
#[inline(always)]
pub(super) fn dot<V: Blocks>(a: V, b: V) -> V {
    let (low, high) = (a.multiply::<0x00>(b), a.multiply::<0x11>(b));
    let middle = a.multiply::<0x01>(b).xor(a.multiply::<0x10>(b));
    reduce(low, middle, high)
}

/// Two Montgomery steps of 64 bits each: the lower half of what is left is multiplied with the polynomial and thereby
/// cancelled, and the rest moves down.
#[inline(always)]
fn reduce<V: Blocks>(low: V, middle: V, high: V) -> V {
    let polynomial = V::broadcast(POLYNOMIAL);
    let zero = V::zero();
    let low = low.xor(zero.low_halves(middle));
    let high = high.xor(middle.high_halves(zero));
    let low = low.swap_halves().xor(low.multiply::<0x00>(polynomial));
    let low = low.swap_halves().xor(low.multiply::<0x00>(polynomial));
    high.xor(low)
}

/// Adds the messages, each filled up with zeros to whole blocks, to the sums. An empty message adds nothing.
#[inline(always)]
pub(super) fn absorb<V: Blocks, const N: usize>(keys: &[V; N], sums: &mut [V; N], messages: &Messages<'_>) {
    let count = messages.step_count();
    for step in 0..=count {
        let blocks = if step == count { messages.last.registers() } else { messages.blocks(step) };
        let next = absorb_blocks(keys, sums, &blocks);
        if messages.some_wait(step) || messages.some_are_empty() {
            // A lane whose message begins with this block takes part in this step, one with none in no step.
            let begun: [V; N] = messages.mask(|lane| messages.is_in(lane, step));
            for index in 0..N {
                sums[index] = choose(begun[index], next[index], sums[index]);
            }
        } else {
            *sums = next;
        }
    }
}

/// Adds one block per lane.
#[inline(always)]
pub(super) fn absorb_blocks<V: Blocks, const N: usize>(
    keys: &[V; N],
    sums: &[V; N],
    blocks: &[V; N],
) -> [V; N] {
    let mut out = *sums;
    for index in 0..N {
        out[index] = dot(sums[index].xor(blocks[index]), keys[index]);
    }
    out
}
