//! The compression function of MD5. RFC 1321 section 3.4.
//!
//! It is written here because a packet's time is the time of one chain: 128 steps, each of which waits for the one
//! before. The crate `md-5` leaves it to the compiler in which order a step adds, and that adds constants last, behind
//! what the chain waits for. Here it does not know that they are constants. The crate is the peer in tests.

use std::hint::black_box;

type Words = [u32; 4];

/// The integer part of 2^32 times the magnitude of the sine of `i + 1`.
static SINES: [[u32; 8]; 8] = [
    [0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501],
    [0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821],
    [0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8],
    [0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a],
    [0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70],
    [0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665],
    [0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1],
    [0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391],
];

/// The state after these blocks.
#[inline]
pub(super) fn compress(state: &mut Words, blocks: &[[u8; 64]]) {
    for block in blocks {
        let (octets, _) = block.as_chunks();
        let words = std::array::from_fn(|index| u32::from_le_bytes(octets[index]));
        let mixed = mix(*state, &words, black_box(&SINES).as_flattened());
        state.iter_mut().zip(mixed).for_each(|(word, mixed)| *word = word.wrapping_add(mixed));
    }
}

/// Four rounds of sixteen steps.
#[inline]
fn mix(mut state: Words, words: &[u32; 16], sines: &[u32]) -> Words {
    let first = |[_, b, c, d]: Words| (d ^ (b & (c ^ d)), 0);
    // The two parts have no bit in common, so one of them need not wait for the newest word.
    let second = |[_, b, c, d]: Words| (b & d, c & !d);
    let third = |[_, b, c, d]: Words| (b ^ (c ^ d), 0);
    let fourth = |[_, b, c, d]: Words| (c ^ (b | !d), 0);
    macro_rules! steps {
        ($number:literal, $function:ident, [$($rotation:literal)*], $($word:literal)*) => {
            let sines: &[u32; 16] = sines[16 * $number..].first_chunk().expect("there are four times sixteen");
            let rotations = [$($rotation),*];
            let order = [$($word),*];
            for quad in 0..4 {
                for step in 0..4 {
                    let index = 4 * quad + step;
                    let early = state[0].wrapping_add(words[order[index]].wrapping_add(sines[index]));
                    let (late, also_early) = $function(state);
                    let sum = early.wrapping_add(also_early).wrapping_add(late);
                    let next = sum.rotate_left(rotations[step]).wrapping_add(state[1]);
                    state = [state[3], next, state[1], state[2]];
                }
            }
        };
    }
    steps!(0, first, [7 12 17 22], 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    steps!(1, second, [5 9 14 20], 1 6 11 0 5 10 15 4 9 14 3 8 13 2 7 12);
    steps!(2, third, [4 11 16 23], 5 8 11 14 1 4 7 10 13 0 3 6 9 12 15 2);
    steps!(3, fourth, [6 10 15 21], 0 7 14 5 12 3 10 1 8 15 6 13 4 11 2 9);
    state
}
