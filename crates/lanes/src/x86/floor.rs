//! What AES alone costs, without anything around it: the floor that a benchmark compares the lanes with.

use std::hint::black_box;

use super::block::Blocks;
use super::schedule::{RoundKeys, Schedules, rounds};

/// Encrypts `count` blocks per lane under one AES-128 key each, from registers to registers;
/// returns how many these are over all lanes.
#[inline(always)]
pub(super) fn encrypt<V: Blocks, const N: usize>(count: usize) -> usize {
    // SAFETY: all round keys are put in next.
    let mut keys: Schedules<V, 1, N> = unsafe { Schedules::new() };
    for (round, index) in (0..=rounds(4)).flat_map(|round| (0..N).map(move |index| (round, index))) {
        keys.put(0, round, index, V::broadcast([round as u8; 16]));
    }
    let keys = black_box(keys);
    let mut blocks = [V::broadcast([1; 16]); N];
    for _ in 0..count {
        keys.encrypt::<4>(0, &mut blocks);
    }
    black_box(blocks);
    count * N * V::WIDTH
}
