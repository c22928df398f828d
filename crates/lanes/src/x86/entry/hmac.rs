//! Where each path begins for HMAC over SHA-256 and SHA-224.

use std::hint::black_box;

use crate::HashPath;
use crate::x86::block::{Blocks, Double, Quadruple};
use crate::x86::hmac::{self, HmacJob, HmacShape};
use crate::x86::mac::MacVerb;
use crate::x86::sha256::{self, BLOCK_SIZE, START_256, Sha256State};
use crate::x86::word::Words;

/// From so many jobs on, registers of sixteen messages are faster than pairs under the instructions for SHA.
const WIDE_MIN: usize = 9;

/// Runs jobs.
///
/// # Panics
/// If the path is portable or not available.
///
/// # Safety
/// The jobs are of this shape, and what they point to is borrowed by the caller.
pub(in crate::x86) unsafe fn run(path: HashPath, verb: MacVerb, shape: &HmacShape, jobs: &[HmacJob]) {
    assert!(path == crate::hash_path() || path.is_available(), "no path is taken that the processor lacks");
    let run = match path {
        HashPath::Avx512 if jobs.len() < WIDE_MIN && HashPath::ShaNi.is_available() => run_few,
        HashPath::Avx512 => avx512::run,
        HashPath::ShaNi => run_few,
        HashPath::Avx2 => avx2::run,
        HashPath::Portable => unreachable!("the portable path has no lanes"),
    };
    // SAFETY: the processor has what the path needs; the rest is as promised to this function.
    unsafe { run(verb, shape, jobs) };
}

/// See [`crate::hash_alone_on`].
pub(in crate::x86) fn hash_alone(path: HashPath, count: usize) -> Option<usize> {
    assert!(path.is_available(), "no path is taken that the processor lacks");
    match path {
        // SAFETY: the processor has what the path needs.
        HashPath::Avx512 => Some(unsafe { avx512::hash_alone(count) }),
        // SAFETY: as above.
        HashPath::ShaNi => Some(unsafe { hash_pairs_alone(count) }),
        // SAFETY: as above.
        HashPath::Avx2 => Some(unsafe { avx2::hash_alone(count) }),
        HashPath::Portable => None,
    }
}

/// See [`crate::digest_on`].
pub(in crate::x86) fn digest(path: HashPath, blocks: &[[u8; BLOCK_SIZE]]) -> Option<Vec<Sha256State>> {
    assert!(path.is_available(), "no path is taken that the processor lacks");
    match path {
        // SAFETY: the processor has what the path needs.
        HashPath::Avx512 => Some(unsafe { avx512::digest(blocks) }),
        // SAFETY: as above.
        HashPath::ShaNi => Some(unsafe { digest_of_pair(blocks) }),
        // SAFETY: as above.
        HashPath::Avx2 => Some(unsafe { avx2::digest(blocks) }),
        HashPath::Portable => None,
    }
}

#[target_feature(enable = "sha,sse4.1,ssse3")]
fn digest_of_pair(blocks: &[[u8; BLOCK_SIZE]]) -> Vec<Sha256State> {
    let mut states = [START_256; 2];
    blocks.iter().for_each(|block| compress_pair(&mut states, [block, block]));
    states.to_vec()
}

#[target_feature(enable = "sha,sse4.1,ssse3")]
fn hash_pairs_alone(count: usize) -> usize {
    let (mut states, blocks) = black_box(([START_256; 2], [[1; 64]; 2]));
    (0..count).for_each(|_| compress_pair(&mut states, [&blocks[0], &blocks[1]]));
    black_box(states);
    2 * count
}

/// # Safety
/// As [`run`], and the processor has the features.
#[target_feature(enable = "sha,sse4.1,ssse3")]
unsafe fn run_few(verb: MacVerb, shape: &HmacShape, jobs: &[HmacJob]) {
    let pair = |states: &mut [Sha256State; 2], blocks: [&_; 2]| compress_pair(states, blocks);
    let single = |states: &mut [Sha256State; 1], blocks: [&_; 1]| sha256::compress_few(states, blocks);
    let (pairs, rest) = jobs.as_chunks::<2>();
    for jobs in pairs {
        // SAFETY: as promised to this function.
        unsafe { hmac::run_few(verb, shape, jobs, pair, pair) };
    }
    if let Some(job) = rest.first_chunk::<1>() {
        // SAFETY: as promised to this function.
        unsafe { hmac::run_few(verb, shape, job, pair, single) };
    }
}

/// Not inlined, as there are three places for it.
#[inline(never)]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn compress_pair(states: &mut [Sha256State; 2], blocks: [&[u8; BLOCK_SIZE]; 2]) {
    sha256::compress_few(states, blocks);
}

macro_rules! path {
    ($name:ident, $blocks:ident, $features:literal) => {
        mod $name {
            use super::*;

            const LANES: usize = 4 * $blocks::WIDTH;

            /// # Safety
            /// As [`super::run`], and the processor has the features.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn run(verb: MacVerb, shape: &HmacShape, jobs: &[HmacJob]) {
                let compress = |state: &mut [_; 8], words: &[_; 16]| compress(state, words);
                for jobs in jobs.chunks(LANES) {
                    // SAFETY: as promised to this function.
                    unsafe { hmac::run::<$blocks, LANES>(verb, shape, jobs, compress) };
                }
            }

            #[target_feature(enable = $features)]
            pub(super) fn hash_alone(count: usize) -> usize {
                let mut state = black_box(START_256.map(<$blocks as Words>::splat));
                let words = black_box([<$blocks as Words>::splat(1); 16]);
                (0..count).for_each(|_| compress(&mut state, &words));
                black_box(state);
                count * LANES
            }

            /// The state of each lane, which all read the same blocks.
            #[target_feature(enable = $features)]
            pub(super) fn digest(blocks: &[[u8; 64]]) -> Vec<Sha256State> {
                let mut state = START_256.map(<$blocks as Words>::splat);
                let mut words = [<$blocks as Words>::splat(0); 16];
                for block in blocks {
                    // SAFETY: a block has 64 octets.
                    unsafe { hmac::read_words(&mut words, |_| block.as_ptr()) };
                    compress(&mut state, &words);
                }
                let words = |lane: usize| {
                    state.map(|word| {
                        let mut blocks = [[0; 16]; $blocks::WIDTH];
                        word.store(&mut blocks, 0);
                        u32::from_le_bytes(blocks.as_flattened().as_chunks().0[lane])
                    })
                };
                (0..LANES).map(words).collect()
            }

            /// Not inlined, as its code is longer than all around it.
            #[inline(never)]
            #[target_feature(enable = $features)]
            fn compress(state: &mut [$blocks; 8], words: &[$blocks; 16]) {
                *state = sha256::compress(state, *words);
            }
        }
    };
}

path!(avx512, Quadruple, "avx512f,avx512bw");
path!(avx2, Double, "avx2");
