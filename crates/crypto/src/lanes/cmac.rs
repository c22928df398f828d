//! CMAC (RFC 4493) of one message per lane.

use super::block::{Block, Blocks};
use super::message::{Messages, choose};
use super::schedule::RoundKeys;

/// Reverses the octets of a block: CMAC's numbers are big-endian, the processor's little-endian.
const REVERSE: Block = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0];

/// Multiplication by x in GF(2^128). RFC 5297 section 2.3.
#[inline(always)]
pub(super) fn double<V: Blocks, const N: usize>(mut blocks: [V; N]) -> [V; N] {
    let reverse = V::broadcast(REVERSE);
    for block in &mut blocks {
        *block = block.reorder(reverse).double().reorder(reverse);
    }
    blocks
}

/// K1 and K2 of each lane's key number `which`. RFC 4493 section 2.3.
#[inline(always)]
pub(super) fn subkeys<V: Blocks, const N: usize, const WORDS: usize>(
    keys: &impl RoundKeys<V, N>,
    which: usize,
) -> [[V; N]; 2] {
    let mut blocks = [V::zero(); N];
    keys.encrypt::<WORDS>(which, &mut blocks);
    let first = double(blocks);
    [first, double(first)]
}

/// The CMAC of each lane's message, under its key number zero.
#[inline(always)]
pub(super) fn cmac<V: Blocks, const N: usize, const L: usize, const WORDS: usize>(
    keys: &impl RoundKeys<V, N>,
    subkeys: &[[V; N]; 2],
    messages: &Messages<'_, L>,
) -> [V; N] {
    // Section 2.4: a whole last block is masked with K1, another with K2.
    let whole: [V; N] = messages.mask(|lane| messages.last_size(lane) == 16);
    let mut last: [V; N] = messages.last();
    for index in 0..N {
        last[index] = last[index].xor(choose(whole[index], subkeys[0][index], subkeys[1][index]));
    }
    chain::<V, N, L, WORDS>(keys, messages, None, &last)
}

/// Chains all blocks of the messages but their last ones, which are given. `before_last` is added to the blocks before
/// these.
#[inline(always)]
pub(super) fn chain<V: Blocks, const N: usize, const L: usize, const WORDS: usize>(
    keys: &impl RoundKeys<V, N>,
    messages: &Messages<'_, L>,
    before_last: Option<&[V; N]>,
    last: &[V; N],
) -> [V; N] {
    let mut state = [V::zero(); N];
    let count = messages.step_count();
    for step in 0..=count {
        if messages.some_wait(step) {
            let begun: [V; N] = messages.begun(step);
            for index in 0..N {
                state[index] = state[index].and(begun[index]);
            }
        }
        let blocks = if step == count { *last } else { messages.blocks(step) };
        for index in 0..N {
            state[index] = state[index].xor(blocks[index]);
        }
        if let (Some(mask), true) = (before_last, step + 1 == count) {
            for index in 0..N {
                state[index] = state[index].xor(mask[index]);
            }
        }
        keys.encrypt::<WORDS>(0, &mut state);
    }
    state
}
