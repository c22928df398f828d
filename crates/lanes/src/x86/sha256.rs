//! The compression function of SHA-256 (FIPS 180-4 section 6.2.2), one message in each 32-bit word of a register, or
//! one or two messages with the instructions that are made for it.
//!
//! SHA-224 has the same function and another start.

use std::arch::x86_64::*;

use super::word::Words;

/// The octets that one compression reads.
pub(super) const BLOCK_SIZE: usize = 64;

/// What is chained, of one message.
pub(super) type Sha256State = [u32; 8];

/// The state before the first block: FIPS 180-4 section 5.3.3.
pub(super) const START_256: Sha256State =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The state of every message after its next block, of which `words` are the words.
#[inline(always)]
pub(super) fn compress<V: Words>(state: &[V; 8], mut words: [V; 16]) -> [V; 8] {
    let mut mixed = *state;
    // Loops over the rounds would be left as loops, with the state turned in each.
    macro_rules! rounds {
        ($constants:ident, $($index:literal)*) => {
            $(mixed = round(mixed, words[$index].add_words(V::splat($constants[$index])));)*
        };
        ($constants:ident, later, $($index:literal)*) => {
            $(
                mixed = round(mixed, words[$index].add_words(V::splat($constants[$index])));
                words[$index] = later(&words, $index);
            )*
        };
    }
    let (constants, _) = CONSTANTS.as_flattened().as_chunks::<16>();
    let [before @ .., last] = constants else { unreachable!("there are four times sixteen constants") };
    for constants in before {
        rounds!(constants, later, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    }
    rounds!(last, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    for (mixed, before) in mixed.iter_mut().zip(state) {
        *mixed = mixed.add_words(*before);
    }
    mixed
}

/// The word that comes sixteen after word `index`. Section 6.2.2, step 1.
#[inline(always)]
fn later<V: Words>(words: &[V; 16], index: usize) -> V {
    let nearby = |distance: usize| words[(index + distance) % 16];
    let (early, late) = (nearby(1), nearby(14));
    let early = early.rotate::<7, 25>().xor3(early.rotate::<18, 14>(), early.shift::<3, 3>());
    let late = late.rotate::<17, 15>().xor3(late.rotate::<19, 13>(), late.shift::<10, 10>());
    nearby(0).add_words(early).add_words(nearby(9)).add_words(late)
}

#[inline(always)]
fn round<V: Words>([a, b, c, d, e, f, g, h]: [V; 8], word: V) -> [V; 8] {
    let sum = e.rotate::<6, 26>().xor3(e.rotate::<11, 21>(), e.rotate::<25, 7>());
    let first = h.add_words(word).add_words(e.choose(f, g)).add_words(sum);
    let second = a.rotate::<2, 30>().xor3(a.rotate::<13, 19>(), a.rotate::<22, 10>());
    let top = first.add_words(a.majority(b, c)).add_words(second);
    [top, a, b, c, d.add_words(first), e, f, g]
}

/// The same for one message, or for two, whose instructions fill each other's wait: that takes one and a half times as
/// long as one.
#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
pub(super) fn compress_few<const S: usize>(states: &mut [Sha256State; S], blocks: [&[u8; BLOCK_SIZE]; S]) {
    let swap = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    // Loops, as what `map` of an array calls lacks these instructions.
    let mut words = [[_mm_setzero_si128(); 4]; S];
    for (words, block) in words.iter_mut().zip(blocks) {
        for (words, quarter) in words.iter_mut().zip(block.as_chunks::<16>().0) {
            // SAFETY: a quarter has the 16 octets that are read; no alignment is needed.
            *words = _mm_shuffle_epi8(unsafe { _mm_loadu_si128(quarter.as_ptr().cast()) }, swap);
        }
    }
    let mut before = [[_mm_setzero_si128(); 2]; S];
    for (before, state) in before.iter_mut().zip(&*states) {
        *before = halves(state);
    }
    let mut mixed = before;
    // A loop would be left as one, with the words turned in each step.
    macro_rules! steps {
        ($($step:literal)*) => {
            $(
                let constants = &raw const CONSTANTS[$step / 2][$step % 2 * 4..][..4][0];
                // SAFETY: the slice above has the 16 octets that are read; no alignment is needed.
                let constants = unsafe { _mm_loadu_si128(constants.cast()) };
                for (words, [abef, cdgh]) in words.iter_mut().zip(&mut mixed) {
                    let sum = _mm_add_epi32(words[$step % 4], constants);
                    *cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, sum);
                    *abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32::<0x0e>(sum));
                    if $step < 12 {
                        let (first, second) = (words[$step % 4], words[($step + 1) % 4]);
                        let (third, fourth) = (words[($step + 2) % 4], words[($step + 3) % 4]);
                        let early = _mm_sha256msg1_epu32(first, second);
                        let early = _mm_add_epi32(early, _mm_alignr_epi8::<4>(fourth, third));
                        words[$step % 4] = _mm_sha256msg2_epu32(early, fourth);
                    }
                }
            )*
        };
    }
    steps!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    for ((state, mixed), before) in states.iter_mut().zip(mixed).zip(before) {
        *state = whole([_mm_add_epi32(mixed[0], before[0]), _mm_add_epi32(mixed[1], before[1])]);
    }
}

/// A state as the instructions have it: words f e b a, and h g d c, from the lowest.
#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn halves(state: &Sha256State) -> [__m128i; 2] {
    let place = state.as_ptr().cast::<__m128i>();
    // SAFETY: a state has two times 16 octets; no alignment is needed.
    let abcd = _mm_shuffle_epi32::<0xb1>(unsafe { _mm_loadu_si128(place) });
    // SAFETY: as above.
    let efgh = _mm_shuffle_epi32::<0x1b>(unsafe { _mm_loadu_si128(place.wrapping_add(1)) });
    [_mm_alignr_epi8::<8>(abcd, efgh), _mm_blend_epi16::<0xf0>(efgh, abcd)]
}

/// The opposite of `halves`.
#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn whole([abef, cdgh]: [__m128i; 2]) -> Sha256State {
    let feba = _mm_shuffle_epi32::<0x1b>(abef);
    let dchg = _mm_shuffle_epi32::<0xb1>(cdgh);
    let (abcd, efgh) = (_mm_blend_epi16::<0xf0>(feba, dchg), _mm_alignr_epi8::<8>(dchg, feba));
    let mut state = [0; 8];
    let place = state.as_mut_ptr().cast::<__m128i>();
    // SAFETY: a state has two times 16 octets; no alignment is needed.
    unsafe { _mm_storeu_si128(place, abcd) };
    // SAFETY: as above.
    unsafe { _mm_storeu_si128(place.wrapping_add(1), efgh) };
    state
}

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes. FIPS 180-4 section 4.2.2.
static CONSTANTS: [[u32; 8]; 8] = [
    [0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5],
    [0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174],
    [0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da],
    [0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967],
    [0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85],
    [0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070],
    [0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3],
    [0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2],
];
