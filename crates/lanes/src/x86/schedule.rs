//! Round keys of many AES keys at once (FIPS 197 section 5.2), and one block under each of them.
//!
//! The instruction that is made for key expansion, `aeskeygenassist`, is slow and serves one key. This module turns
//! four registers of keys by a quarter instead, so that one register holds the same word of four keys in each of its
//! lanes. The last round of AES is an S-box behind a permutation of octets; with the opposite permutation before it, it
//! is the S-box alone, for sixteen octets at once: the one word of each of four keys that an expansion step needs it
//! for.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{Ordering, compiler_fence};

use super::block::{Block, Blocks};

/// Round keys of the longest expansion, that of AES-256.
pub(super) const ROUND_KEYS_MAX: usize = 15;

/// Where the round keys of a step come from.
pub(super) trait RoundKeys<V: Blocks, const N: usize> {
    /// Those of register `index` for one round, of the lanes' keys number `which`.
    fn round_key(&self, which: usize, round: usize, index: usize) -> V;

    /// Encrypts each lane of `blocks` under its key number `which`, all lanes in step.
    #[inline(always)]
    fn encrypt<const WORDS: usize>(&self, which: usize, blocks: &mut [V; N]) {
        for (index, block) in blocks.iter_mut().enumerate() {
            *block = block.xor(self.round_key(which, 0, index));
        }
        for round in 1..rounds(WORDS) {
            for (index, block) in blocks.iter_mut().enumerate() {
                *block = block.round(self.round_key(which, round, index));
            }
        }
        for (index, block) in blocks.iter_mut().enumerate() {
            *block = block.last_round(self.round_key(which, rounds(WORDS), index));
        }
    }
}

/// Round keys of `S` AES keys per lane, in `N` registers.
#[repr(C, align(64))]
pub(super) struct Schedules<V, const S: usize, const N: usize>([[[MaybeUninit<V>; N]; ROUND_KEYS_MAX]; S]);

/// Rounds of a cipher whose key has `words` 32-bit words.
pub(super) const fn rounds(words: usize) -> usize {
    words + 6
}

impl<V: Blocks, const S: usize, const N: usize> RoundKeys<V, N> for Schedules<V, S, N> {
    #[inline(always)]
    fn round_key(&self, which: usize, round: usize, index: usize) -> V {
        // SAFETY: the caller of `new` has promised that the round keys are there.
        unsafe { self.0[which][round][index].assume_init() }
    }
}

impl<V: Blocks, const S: usize, const N: usize> Schedules<V, S, N> {
    /// Room for round keys; to fill it with zeros would cost as much as some packets.
    ///
    /// # Safety
    /// Round keys are put in before any is asked for: with `expand` those of as many words as are asked for, or singly.
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        Schedules([[[const { MaybeUninit::uninit() }; N]; ROUND_KEYS_MAX]; S])
    }

    /// Puts in the round keys of one register.
    #[inline(always)]
    pub(super) fn put(&mut self, which: usize, round: usize, index: usize, key: V) {
        self.0[which][round][index].write(key);
    }

    /// Expands the first `COUNT` keys of each lane, of `WORDS` words: `keys[0]` are their first 16 octets, and
    /// `keys[1]` their last, which are the same if they have no more, and overlap if they have 24.
    #[inline(always)]
    pub(super) fn expand<const WORDS: usize, const COUNT: usize>(&mut self, keys: &[[[V; N]; COUNT]; 2]) {
        let mut start = 0;
        while start < COUNT * N {
            let quad = Quad::<N> { start, last: COUNT * N - 1 };
            let mut words = [V::zero(); WORDS];
            let first = turn(quad.of(&keys[0]));
            words[..4].copy_from_slice(&first);
            if WORDS > 4 {
                let rest = turn(quad.of(&keys[1]));
                words[4..].copy_from_slice(&rest[8 - WORDS..]);
            }
            self.fill(&quad, words);
            start += 4;
        }
    }

    /// Computes and keeps all round keys that follow from `words`.
    #[inline(always)]
    fn fill<const WORDS: usize>(&mut self, quad: &Quad<N>, mut words: [V; WORDS]) {
        self.put_quad(quad, 0, four(&words, 0));
        let mut round = 1;
        match WORDS {
            4 => {
                for constant in CONSTANTS {
                    advance(&mut words, constant);
                    self.put_quad(quad, round, four(&words, 0));
                    round += 1;
                }
            }
            // Two steps give three round keys; the last two words of a step are in the first round key of the next.
            6 => {
                for constants in CONSTANTS[..8].as_chunks::<2>().0 {
                    let [a, b] = [words[4], words[5]];
                    advance(&mut words, constants[0]);
                    self.put_quad(quad, round, [a, b, words[0], words[1]]);
                    self.put_quad(quad, round + 1, four(&words, 2));
                    advance(&mut words, constants[1]);
                    self.put_quad(quad, round + 2, four(&words, 0));
                    round += 3;
                }
            }
            8 => {
                self.put_quad(quad, round, four(&words, 4));
                for constant in &CONSTANTS[..7] {
                    advance(&mut words, *constant);
                    self.put_quad(quad, round + 1, four(&words, 0));
                    if round + 2 < ROUND_KEYS_MAX {
                        self.put_quad(quad, round + 2, four(&words, 4));
                    }
                    round += 2;
                }
            }
            _ => unreachable!("AES keys have four, six or eight words"),
        }
    }

    #[inline(always)]
    fn put_quad(&mut self, quad: &Quad<N>, round: usize, words: [V; 4]) {
        for (offset, key) in turn(words).into_iter().enumerate() {
            let at = quad.start + offset;
            if at <= quad.last {
                self.put(at / N, round, at % N, key);
            }
        }
    }

    /// Overwrites the round keys of the first `count` keys.
    #[inline(always)]
    pub(super) fn wipe<const WORDS: usize>(&mut self, count: usize) {
        for rounds in &mut self.0[..count] {
            for register in rounds[..=self::rounds(WORDS)].as_flattened_mut() {
                // SAFETY: a reference is valid for writes.
                unsafe { ptr::write_volatile(register, MaybeUninit::new(V::zero())) };
            }
        }
        compiler_fence(Ordering::SeqCst);
    }
}

/// Overwrites registers in memory in a way that is not optimised out.
#[inline(always)]
pub(super) fn wipe<V: Blocks, const N: usize, const S: usize>(registers: &mut [[V; N]; S]) {
    for register in registers.as_flattened_mut() {
        // SAFETY: a reference is valid for writes.
        unsafe { ptr::write_volatile(register, V::zero()) };
    }
    compiler_fence(Ordering::SeqCst);
}

/// Four registers that are expanded together, counted over all `S * N`; the last stands in for those beyond.
struct Quad<const N: usize> {
    start: usize,
    last: usize,
}

impl<const N: usize> Quad<N> {
    #[inline(always)]
    fn of<V: Blocks, const S: usize>(&self, registers: &[[V; N]; S]) -> [V; 4] {
        let mut out = [V::zero(); 4];
        for (index, out) in out.iter_mut().enumerate() {
            let at = (self.start + index).min(self.last);
            *out = registers[at / N][at % N];
        }
        out
    }
}

/// From four registers of blocks to the registers of their first, second, third and fourth words, and back.
#[inline(always)]
pub(super) fn turn<V: Blocks>([a, b, c, d]: [V; 4]) -> [V; 4] {
    let (low_a, low_c) = (a.low_words(b), c.low_words(d));
    let (high_a, high_c) = (a.high_words(b), c.high_words(d));
    [low_a.low_halves(low_c), low_a.high_halves(low_c), high_a.low_halves(high_c), high_a.high_halves(high_c)]
}

#[inline(always)]
fn four<V: Blocks, const WORDS: usize>(words: &[V; WORDS], at: usize) -> [V; 4] {
    [words[at], words[at + 1], words[at + 2], words[at + 3]]
}

/// The next `WORDS` words of each key.
#[inline(always)]
fn advance<V: Blocks, const WORDS: usize>(words: &mut [V; WORDS], constant: u8) {
    let mut constants = [0; 16];
    constants.chunks_exact_mut(4).for_each(|word| word[0] = constant);
    let constant = V::broadcast(constants);
    let rotated = words[WORDS - 1].reorder(V::broadcast(ROTATE)).last_round(constant);
    words[0] = words[0].xor(rotated);
    for index in 1..WORDS {
        let previous = match WORDS == 8 && index == 4 {
            true => words[3].reorder(V::broadcast(STAY)).last_round(V::zero()),
            false => words[index - 1],
        };
        words[index] = words[index].xor(previous);
    }
}

const CONSTANTS: [u8; 10] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];

/// Undoes the permutation of the last round.
const STAY: Block = before_last_round(0);

/// The same, and rotates each word by an octet.
const ROTATE: Block = before_last_round(1);

/// The order of octets after which ShiftRows leaves each word rotated by `rotation` octets.
const fn before_last_round(rotation: usize) -> Block {
    let mut order = [0; 16];
    let mut at = 0;
    while at < 16 {
        let (row, column) = (at % 4, at / 4);
        // ShiftRows takes the octet at (row, column) from (row, column + row). FIPS 197 section 5.1.2.
        order[row + 4 * ((column + row) % 4)] = (4 * column + (row + rotation) % 4) as u8;
        at += 1;
    }
    order
}
