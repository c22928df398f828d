//! Where each path begins: functions that enable its instructions, with everything they call inlined into them.
//!
//! A path has three widths: all of its lanes, half of them, and as few as it can. A rest that fills no width repeats
//! its last job in the lanes left over, and drops what these compute.

use super::block::{Blocks, Double, Quadruple, Single};
use super::group::{Lane, Shape, Verb};
use super::{Path, SivKey, floor, gcm_siv, siv};
use crate::aead::{Algorithm, Key};

/// Runs jobs.
///
/// # Panics
/// If the path is portable or not available.
///
/// # Safety
/// The lanes are of jobs of this shape, which are borrowed by the caller; a kept key is the caller's too.
pub(super) unsafe fn run(path: Path, verb: Verb, shape: &Shape, lanes: &[Lane]) {
    assert!(path == super::path() || path.is_available(), "no path is taken that the processor lacks");
    match path {
        // One packet fills one block, and narrow registers are a little faster.
        // SAFETY: the processor has what the path needs, which for VAES is more than what this needs.
        Path::Vaes512 | Path::Vaes256 if lanes.len() == 1 => unsafe { aesni::run(verb, shape, lanes) },
        // SAFETY: the processor has what the path needs; the rest is as promised to this function.
        Path::Vaes512 => unsafe { vaes512::run(verb, shape, lanes) },
        // SAFETY: as above.
        Path::Vaes256 => unsafe { vaes256::run(verb, shape, lanes) },
        // SAFETY: as above.
        Path::AesNi => unsafe { aesni::run(verb, shape, lanes) },
        Path::Portable => unreachable!("the portable path has no lanes"),
    }
}

/// Expands a key of AES-SIV-CMAC-256; `None` on a processor without lanes.
pub(super) fn expand(key: &Key) -> Option<SivKey> {
    // SAFETY: the processor has what the path needs.
    Path::AesNi.is_available().then(|| unsafe { expand_with_aesni(key) })
}

#[target_feature(enable = "aes,pclmulqdq,ssse3,sse4.1")]
fn expand_with_aesni(key: &Key) -> SivKey {
    SivKey::new::<Single>(key)
}

/// See [`super::encrypt_alone_on`].
pub(super) fn encrypt_alone(path: Path, count: usize) -> Option<usize> {
    assert!(path.is_available(), "no path is taken that the processor lacks");
    match path {
        // SAFETY: the processor has what the path needs.
        Path::Vaes512 => Some(unsafe { vaes512::encrypt_alone(count) }),
        // SAFETY: as above.
        Path::Vaes256 => Some(unsafe { vaes256::encrypt_alone(count) }),
        // SAFETY: as above.
        Path::AesNi => Some(unsafe { aesni::encrypt_alone(count) }),
        Path::Portable => None,
    }
}

macro_rules! path {
    ($name:ident, $blocks:ident, $most:literal, $half:literal, $features:literal) => {
        mod $name {
            use super::*;

            /// Lanes of all registers, of half of them, and of one.
            const MOST: usize = $most * $blocks::WIDTH;
            const HALF: usize = $half * $blocks::WIDTH;
            const LEAST: usize = $blocks::WIDTH;

            /// # Safety
            /// As [`super::run`], and the processor has the features.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn run(verb: Verb, shape: &Shape, lanes: &[Lane]) {
                let mut rest = lanes;
                while !rest.is_empty() {
                    // SAFETY: as promised to this function.
                    rest = unsafe {
                        match rest.len() {
                            1..=LEAST => take::<1, LEAST>(verb, shape, rest),
                            // Keys longer than those of AES-128 have too many round keys for all lanes.
                            length if length <= HALF || is_long(shape.algorithm) => {
                                take::<$half, HALF>(verb, shape, rest)
                            }
                            _ => take::<$most, MOST>(verb, shape, rest),
                        }
                    };
                }
            }

            /// Runs as many jobs as there are lanes, or all of `lanes`; returns the rest.
            ///
            /// # Safety
            /// As [`super::run`].
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn take<'l, const N: usize, const L: usize>(
                verb: Verb,
                shape: &Shape,
                lanes: &'l [Lane],
            ) -> &'l [Lane] {
                if let Some((lanes, rest)) = lanes.split_first_chunk::<L>() {
                    // SAFETY: as promised to this function.
                    unsafe { fill::<N, L>(verb, shape, lanes, L) };
                    return rest;
                }
                if let Some(last) = lanes.last() {
                    let mut padded = [*last; L];
                    padded[..lanes.len()].copy_from_slice(lanes);
                    // SAFETY: as promised to this function.
                    unsafe { fill::<N, L>(verb, shape, &padded, lanes.len()) };
                }
                &[]
            }

            /// Runs the first `used` of `lanes`; those beyond repeat the last of them.
            ///
            /// # Safety
            /// As [`super::run`].
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn fill<const N: usize, const L: usize>(
                verb: Verb,
                shape: &Shape,
                lanes: &[Lane; L],
                used: usize,
            ) {
                // SAFETY: a kept key lives as long as the jobs; the rest is as promised to this function.
                unsafe {
                    match (shape.kept.as_ref(), shape.algorithm, verb) {
                        (Some(key), _, Verb::Seal) => kept_seal::<N, L>(key, shape, lanes, used),
                        (Some(key), _, Verb::Open) => kept_open::<N, L>(key, shape, lanes, used),
                        (None, Algorithm::SivCmac256, _) => siv::<N, L, 4>(verb, shape, lanes, used),
                        (None, Algorithm::SivCmac384, _) => siv::<N, L, 6>(verb, shape, lanes, used),
                        (None, Algorithm::SivCmac512, _) => siv::<N, L, 8>(verb, shape, lanes, used),
                        (None, Algorithm::Aes128GcmSiv, Verb::Seal) => gcm_seal::<N, L>(shape, lanes, used),
                        (None, Algorithm::Aes128GcmSiv, Verb::Open) => gcm_open::<N, L>(shape, lanes, used),
                    }
                }
            }

            /// # Safety
            /// As [`super::run`].
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn siv<const N: usize, const L: usize, const WORDS: usize>(
                verb: Verb,
                shape: &Shape,
                lanes: &[Lane; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe {
                    match (verb, shape.text) {
                        (Verb::Seal, 0) => siv_seal::<N, L, WORDS, 1>(shape, lanes, used),
                        (Verb::Seal, _) => siv_seal::<N, L, WORDS, 2>(shape, lanes, used),
                        (Verb::Open, 0) => siv_open::<N, L, WORDS, 1>(shape, lanes, used),
                        (Verb::Open, _) => siv_open::<N, L, WORDS, 2>(shape, lanes, used),
                    }
                }
            }

            path!(verb $blocks, $features, Seal, siv_seal, kept_seal, gcm_seal);
            path!(verb $blocks, $features, Open, siv_open, kept_open, gcm_open);

            /// CMACs under the first half of each key, all lanes at once.
            #[cfg(test)]
            #[target_feature(enable = $features)]
            pub(super) fn cmac(key: &Key, message: &[u8]) -> Vec<[u8; 16]> {
                let keys = std::array::from_fn(|_| key.clone());
                siv::cmac_of::<$blocks, $most, MOST>(&keys, &[message; MOST]).to_vec()
            }

            #[target_feature(enable = $features)]
            pub(super) fn encrypt_alone(count: usize) -> usize {
                floor::encrypt::<$blocks, $most>(count)
            }
        }
    };
    (
        verb $blocks:ident, $features:literal, $verb:ident, $siv:ident, $kept:ident, $gcm_siv:ident
    ) => {
        /// # Safety
        /// As [`super::run`].
        #[inline(never)]
        #[target_feature(enable = $features)]
        unsafe fn $siv<const N: usize, const L: usize, const WORDS: usize, const S: usize>(
            shape: &Shape,
            lanes: &[Lane; L],
            used: usize,
        ) {
            // SAFETY: as promised to this function.
            unsafe { siv::run::<$blocks, N, L, WORDS, S>(Verb::$verb, shape, lanes, used) };
        }

        /// # Safety
        /// As [`super::run`].
        #[inline(never)]
        #[target_feature(enable = $features)]
        unsafe fn $kept<const N: usize, const L: usize>(
            key: &SivKey,
            shape: &Shape,
            lanes: &[Lane; L],
            used: usize,
        ) {
            // SAFETY: as promised to this function.
            unsafe { siv::run_under::<$blocks, N, L>(key, Verb::$verb, shape, lanes, used) };
        }

        /// # Safety
        /// As [`super::run`].
        #[inline(never)]
        #[target_feature(enable = $features)]
        unsafe fn $gcm_siv<const N: usize, const L: usize>(shape: &Shape, lanes: &[Lane; L], used: usize) {
            // SAFETY: as promised to this function.
            unsafe { gcm_siv::run::<$blocks, N, L>(Verb::$verb, shape, lanes, used) };
        }
    };
}

/// Whether the keys of an algorithm are longer than those of AES-128.
const fn is_long(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::SivCmac384 | Algorithm::SivCmac512)
}

path!(vaes512, Quadruple, 4, 2, "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,aes,pclmulqdq,ssse3,sse4.1");
path!(vaes256, Double, 8, 4, "vaes,vpclmulqdq,avx2,aes,pclmulqdq,ssse3,sse4.1");
path!(aesni, Single, 8, 4, "aes,pclmulqdq,ssse3,sse4.1");

#[cfg(test)]
mod tests;
