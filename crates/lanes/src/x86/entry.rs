//! Where each path begins: functions that enable its instructions, with everything they call inlined into them.
//!
//! A path has three widths: all of its lanes, half of them, and as few as it can. A rest that fills no width repeats
//! its last job in the lanes left over, and drops what these compute.

use super::aead::{AeadJob, AeadShape, AeadVerb};
use super::block::{Blocks, Double, Quadruple, Single};
use super::{SivKey, floor, gcm_siv, siv};
use crate::{Algorithm, Key, Path};

/// Runs jobs.
///
/// # Panics
/// If the path is portable or not available.
///
/// # Safety
/// The jobs are of this shape, and what they point to is borrowed by the caller; a kept key is the caller's too.
pub(super) unsafe fn run(path: Path, verb: AeadVerb, shape: &AeadShape, jobs: &[AeadJob]) {
    let run = choose(path, jobs.len(), [vaes512::run, vaes256::run, aesni::run]);
    // SAFETY: the processor has what the path needs; the rest is as promised to this function.
    unsafe { run(verb, shape, jobs) };
}

/// Which of the functions of the three paths with lanes runs `count` jobs on this one.
///
/// # Panics
/// If the path is portable or not available.
#[inline(always)]
fn choose<F: Copy>(path: Path, count: usize, [vaes512, vaes256, aesni]: [F; 3]) -> F {
    assert!(path == crate::path() || path.is_available(), "no path is taken that the processor lacks");
    match path {
        // One packet fills one block, and narrow registers are a little faster. What has VAES has what this needs.
        Path::Vaes512 | Path::Vaes256 if count == 1 => aesni,
        Path::Vaes512 => vaes512,
        Path::Vaes256 => vaes256,
        Path::AesNi => aesni,
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

/// Runs as many jobs as there are lanes, or all of `jobs`; returns the rest.
#[inline(always)]
fn take<T: Copy, const L: usize>(jobs: &[T], run: impl FnOnce(&[T; L], usize)) -> &[T] {
    if let Some((lanes, rest)) = jobs.split_first_chunk() {
        run(lanes, L);
        return rest;
    }
    if let Some(last) = jobs.last() {
        let mut padded = [*last; L];
        padded[..jobs.len()].copy_from_slice(jobs);
        run(&padded, jobs.len());
    }
    &[]
}

/// Defines the widths of a path, and the function that runs jobs in them. The caller defines `fill`, which runs jobs in
/// few or half of the lanes, `fill_most`, which runs them in all, and `fits_half_only`, for whose shapes it does not.
macro_rules! widths {
    ($verb:ty, $shape:ty, $job:ty, $blocks:ident, $most:literal, $half:literal, $features:literal) => {
        /// Lanes of all registers, of half of them, and of one.
        const MOST: usize = $most * $blocks::WIDTH;
        const HALF: usize = $half * $blocks::WIDTH;
        const LEAST: usize = $blocks::WIDTH;

        /// # Safety
        /// As [`super::run`], and the processor has the features.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn run(verb: $verb, shape: &$shape, jobs: &[$job]) {
            let mut rest = jobs;
            while !rest.is_empty() {
                // SAFETY: as promised to this function.
                rest = unsafe {
                    match rest.len() {
                        1..=LEAST => take(rest, |jobs, used| fill::<1, LEAST>(verb, shape, jobs, used)),
                        length if length <= HALF || fits_half_only(shape) => {
                            take(rest, |jobs, used| fill::<$half, HALF>(verb, shape, jobs, used))
                        }
                        _ => take(rest, |jobs, used| fill_most::<$most, MOST>(verb, shape, jobs, used)),
                    }
                };
            }
        }
    };
}

macro_rules! path {
    ($name:ident, $blocks:ident, $most:literal, $half:literal, $features:literal) => {
        mod $name {
            use super::*;

            widths!(AeadVerb, AeadShape, AeadJob, $blocks, $most, $half, $features);

            /// Runs the first `used` of `jobs`; those beyond repeat the last of them.
            ///
            /// # Safety
            /// As [`super::run`].
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn fill<const N: usize, const L: usize>(
                verb: AeadVerb,
                shape: &AeadShape,
                jobs: &[AeadJob; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe {
                    match shape.algorithm {
                        Algorithm::SivCmac384 => siv::<N, L, 6>(verb, shape, jobs, used),
                        Algorithm::SivCmac512 => siv::<N, L, 8>(verb, shape, jobs, used),
                        Algorithm::SivCmac256 | Algorithm::Aes128GcmSiv => {
                            fill_most::<N, L>(verb, shape, jobs, used);
                        }
                    }
                }
            }

            /// The same for keys of AES-128.
            ///
            /// # Safety
            /// As [`super::run`].
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn fill_most<const N: usize, const L: usize>(
                verb: AeadVerb,
                shape: &AeadShape,
                jobs: &[AeadJob; L],
                used: usize,
            ) {
                // SAFETY: a kept key lives as long as the jobs; the rest is as promised to this function.
                unsafe {
                    match (shape.kept.as_ref(), shape.algorithm) {
                        (Some(key), _) => kept::<N, L>(key, verb, shape, jobs, used),
                        (None, Algorithm::SivCmac256) => siv::<N, L, 4>(verb, shape, jobs, used),
                        (None, Algorithm::Aes128GcmSiv) => gcm_siv::<N, L>(verb, shape, jobs, used),
                        (None, Algorithm::SivCmac384 | Algorithm::SivCmac512) => {
                            unreachable!("longer keys fit half of the lanes only")
                        }
                    }
                }
            }

            /// # Safety
            /// As [`super::run`].
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn siv<const N: usize, const L: usize, const WORDS: usize>(
                verb: AeadVerb,
                shape: &AeadShape,
                jobs: &[AeadJob; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe { siv::run::<$blocks, N, L, WORDS>(verb, shape, jobs, used) };
            }

            /// # Safety
            /// As [`super::run`].
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn kept<const N: usize, const L: usize>(
                key: &SivKey,
                verb: AeadVerb,
                shape: &AeadShape,
                jobs: &[AeadJob; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe { siv::run_under::<$blocks, N, L>(key, verb, shape, jobs, used) };
            }

            /// # Safety
            /// As [`super::run`].
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn gcm_siv<const N: usize, const L: usize>(
                verb: AeadVerb,
                shape: &AeadShape,
                jobs: &[AeadJob; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe { gcm_siv::run::<$blocks, N, L>(verb, shape, jobs, used) };
            }

            #[target_feature(enable = $features)]
            pub(super) fn encrypt_alone(count: usize) -> usize {
                floor::encrypt::<$blocks, $most>(count)
            }
        }
    };
}

/// Keys longer than those of AES-128 have too many round keys for all lanes.
const fn fits_half_only(shape: &AeadShape) -> bool {
    matches!(shape.algorithm, Algorithm::SivCmac384 | Algorithm::SivCmac512)
}

/// Calls a macro for each path, with its registers: which they are, how many in all of its lanes and in half of them,
/// and the features that they take.
macro_rules! each_path {
    ($make:ident) => {
        $make!(
            vaes512,
            Quadruple,
            4,
            2,
            "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,aes,pclmulqdq,ssse3,sse4.1"
        );
        $make!(vaes256, Double, 8, 4, "vaes,vpclmulqdq,avx2,aes,pclmulqdq,ssse3,sse4.1");
        $make!(aesni, Single, 8, 4, "aes,pclmulqdq,ssse3,sse4.1");
    };
}

each_path!(path);

pub(super) mod gcm;
pub(super) mod hmac;
pub(super) mod mac;
