//! Where each path begins for HMAC over SHA-256 and SHA-224.

use std::hint::black_box;

use super::super::hmac::{self, Lane, Shape, Verb};
use super::super::sha256::{BLOCK_SIZE, START_256, State};
use super::super::word::Words;
use super::super::{HashPath, sha256};
use crate::lanes::block::{Blocks, Double, Quadruple};

/// From so many jobs on, registers of sixteen messages are faster than pairs under the instructions for SHA.
const WIDE_MIN: usize = 9;

/// Runs jobs.
///
/// # Panics
/// If the path is portable or not available.
///
/// # Safety
/// The lanes are of jobs of this shape, which are borrowed by the caller.
pub(in crate::lanes) unsafe fn run(path: HashPath, verb: Verb, shape: &Shape, lanes: &[Lane]) {
    assert!(
        path == super::super::hash_path() || path.is_available(),
        "no path is taken that the processor lacks"
    );
    let run = match path {
        HashPath::Avx512 if lanes.len() < WIDE_MIN && HashPath::ShaNi.is_available() => run_few,
        HashPath::Avx512 => avx512::run,
        HashPath::ShaNi => run_few,
        HashPath::Avx2 => avx2::run,
        HashPath::Portable => unreachable!("the portable path has no lanes"),
    };
    // SAFETY: the processor has what the path needs; the rest is as promised to this function.
    unsafe { run(verb, shape, lanes) };
}

/// See [`super::super::hash_alone_on`].
pub(in crate::lanes) fn hash_alone(path: HashPath, count: usize) -> Option<usize> {
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
unsafe fn run_few(verb: Verb, shape: &Shape, lanes: &[Lane]) {
    let pair = |states: &mut [State; 2], blocks: [&_; 2]| compress_pair(states, blocks);
    let single = |states: &mut [State; 1], blocks: [&_; 1]| sha256::compress_few(states, blocks);
    let (pairs, rest) = lanes.as_chunks::<2>();
    for lanes in pairs {
        // SAFETY: as promised to this function.
        unsafe { hmac::run_few(verb, shape, lanes, pair, pair) };
    }
    if let Some(lane) = rest.first_chunk::<1>() {
        // SAFETY: as promised to this function.
        unsafe { hmac::run_few(verb, shape, lane, pair, single) };
    }
}

/// Not inlined, as there are three places for it.
#[inline(never)]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn compress_pair(states: &mut [State; 2], blocks: [&[u8; BLOCK_SIZE]; 2]) {
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
            pub(super) unsafe fn run(verb: Verb, shape: &Shape, lanes: &[Lane]) {
                let compress = |state: &mut [_; 8], words: &[_; 16]| compress(state, words);
                for lanes in lanes.chunks(LANES) {
                    // SAFETY: as promised to this function.
                    unsafe { hmac::run::<$blocks, LANES>(verb, shape, lanes, compress) };
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
            #[cfg(test)]
            #[target_feature(enable = $features)]
            pub(super) fn digest(blocks: &[[u8; 64]]) -> Vec<State> {
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

#[cfg(test)]
mod tests {
    use hex_literal::hex;

    use super::*;

    #[target_feature(enable = "sha,sse4.1,ssse3")]
    fn digest_of_pair(blocks: &[[u8; 64]]) -> Vec<State> {
        let mut states = [START_256; 2];
        blocks.iter().for_each(|block| compress_pair(&mut states, [block, block]));
        states.to_vec()
    }

    /// The texts of RFC 6234 section 8.5 that are not bits, and their hashes, on each path and in each lane.
    #[test]
    fn hashes_of_rfc_6234() {
        let million = [b'a'; 1_000_000];
        let vectors: [(&[u8], [u8; 32]); 4] = [
            (b"abc", hex!("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")),
            (
                b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                hex!("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
            ),
            (&million, hex!("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")),
            (
                &b"01234567".repeat(80),
                hex!("594847328451bdfa85056225462cc1d867d877fb388df0ce35f25ab5562bfbb5"),
            ),
        ];
        for (text, hash) in vectors {
            let mut padded = text.to_vec();
            padded.push(0x80);
            padded.resize((text.len() + 9).next_multiple_of(64), 0);
            let (_, end) = padded.split_last_chunk_mut().expect("there are at least 64 octets");
            *end = (8 * text.len() as u64).to_be_bytes();
            let (blocks, _) = padded.as_chunks();
            for path in HashPath::ALL.into_iter().filter(|path| path.is_available()) {
                let states = match path {
                    // SAFETY: the processor has what the path needs.
                    HashPath::Avx512 => unsafe { avx512::digest(blocks) },
                    // SAFETY: as above.
                    HashPath::ShaNi => unsafe { digest_of_pair(blocks) },
                    // SAFETY: as above.
                    HashPath::Avx2 => unsafe { avx2::digest(blocks) },
                    HashPath::Portable => continue,
                };
                for state in states {
                    let octets: Vec<u8> = state.iter().flat_map(|word| word.to_be_bytes()).collect();
                    assert_eq!(octets, hash, "{path}, {} octets", text.len());
                }
            }
        }
    }
}
