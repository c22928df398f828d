//! CMAC (RFC 4493) of one message per lane.

use super::block::{BLOCK_SIZE, Block, Blocks};
use super::message::{Messages, Padding};
use super::schedule::RoundKeys;

/// Reverses the octets of a block: CMAC's numbers are big-endian, the processor's little-endian.
pub(super) const REVERSE: Block = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0];

/// Multiplication by x in GF(2^128). RFC 5297 section 2.3.
#[inline(always)]
pub(super) fn double<V: Blocks, const N: usize>(mut blocks: [V; N]) -> [V; N] {
    let reverse = V::broadcast(REVERSE);
    for block in &mut blocks {
        *block = block.reorder(reverse).double().reorder(reverse);
    }
    blocks
}

/// Exclusive or, lane by lane.
#[inline(always)]
pub(super) fn add<V: Blocks, const N: usize>(mut to: [V; N], other: &[V; N]) -> [V; N] {
    for (to, other) in to.iter_mut().zip(other) {
        *to = to.xor(*other);
    }
    to
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
    messages: &Messages<impl Fn(usize) -> *const u8>,
) -> [V; N] {
    // Section 2.4: a whole last block is masked with K1, another with K2.
    let is_whole = messages.last_size() == BLOCK_SIZE;
    let last = add(messages.last::<V, N, L>(Padding::OneBit), &subkeys[usize::from(!is_whole)]);
    chain::<V, N, WORDS>(keys, messages, None, &last)
}

/// Chains all blocks of the messages but their last ones, which are given. `before_last` is added to the blocks before
/// these.
#[inline(always)]
pub(super) fn chain<V: Blocks, const N: usize, const WORDS: usize>(
    keys: &impl RoundKeys<V, N>,
    messages: &Messages<impl Fn(usize) -> *const u8>,
    before_last: Option<&[V; N]>,
    last: &[V; N],
) -> [V; N] {
    let mut state = [V::zero(); N];
    let count = messages.count_before_last();
    for step in 0..count {
        state = add(state, &messages.blocks(step));
        if let (Some(mask), true) = (before_last, step + 1 == count) {
            state = add(state, mask);
        }
        keys.encrypt::<WORDS>(0, &mut state);
    }
    state = add(state, last);
    keys.encrypt::<WORDS>(0, &mut state);
    state
}
