//! What AES alone costs, without anything around it: the floor that a benchmark compares the lanes with.

use std::hint::black_box;

use super::block::Blocks;
use super::schedule::Schedules;

/// Encrypts `count` blocks per lane under one AES-128 key each, from registers to registers;
/// returns how many these are over all lanes.
#[inline(always)]
pub(super) fn encrypt<V: Blocks, const N: usize>(count: usize) -> usize {
    let keys = black_box(Schedules::<V, 1, N>::new());
    let mut blocks = [V::broadcast([1; 16]); N];
    for _ in 0..count {
        keys.encrypt::<4>(0, &mut blocks);
    }
    black_box(blocks);
    count * N * V::WIDTH
}
