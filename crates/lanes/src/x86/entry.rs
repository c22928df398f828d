//! Where each path begins: functions that enable its instructions, with everything they call inlined into them.
//!
//! A path has three widths: all of its lanes, half of them, and as few as it can. A rest that fills no width repeats
//! its last job in the lanes left over, and drops what these compute.

use super::block::{Blocks, Double, Quadruple, Single};
use super::group::Work;
use super::kept::KeptKey;
use super::{SivKey, floor};
use crate::{Key, Mac, Path};

/// What runs one job per lane, with registers of any width.
pub(super) trait Kernel {
    type Work: Work;

    /// Whether the keys have too many round keys for all lanes: so it is of those that are longer than AES-128's.
    const FITS_HALF_ONLY: bool = false;

    /// Runs the first `used` of `jobs`; those beyond repeat the last of them.
    ///
    /// # Safety
    /// The jobs are of this shape, and what they point to is borrowed by the caller; kept keys are the caller's too.
    unsafe fn run<V: Blocks, const N: usize, const L: usize>(
        verb: <Self::Work as Work>::Verb,
        shape: &<Self::Work as Work>::Shape,
        jobs: &[<Self::Work as Work>::Job; L],
        used: usize,
    );
}

/// Runs any number of jobs. Its safety is that of [`Kernel::run`], and the processor has what the path needs.
pub(super) type Run<W> = unsafe fn(<W as Work>::Verb, &<W as Work>::Shape, &[<W as Work>::Job]);

/// What runs `count` jobs of a kernel on a path, which the processor has.
///
/// # Panics
/// If the path is portable or not available.
#[inline(always)]
pub(super) fn choose<K: Kernel>(path: Path, count: usize) -> Run<K::Work> {
    assert!(path == crate::path() || path.is_available(), "no path is taken that the processor lacks");
    match path {
        // One packet fills one block, and narrow registers are a little faster. What has VAES has what this needs.
        Path::Vaes512 | Path::Vaes256 if count == 1 => aesni::run::<K>,
        Path::Vaes512 => vaes512::run::<K>,
        Path::Vaes256 => vaes256::run::<K>,
        Path::AesNi => aesni::run::<K>,
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

/// Expands a key of a MAC to keep; `None` on a processor without lanes.
///
/// # Panics
/// If the key has not the size of its algorithm's keys.
pub(super) fn expand_mac(mac: Mac, octets: &[u8]) -> Option<KeptKey> {
    // SAFETY: the processor has what the path needs.
    Path::AesNi.is_available().then(|| unsafe { expand_mac_with_aesni(mac, octets) })
}

#[target_feature(enable = "aes,pclmulqdq,ssse3,sse4.1")]
fn expand_mac_with_aesni(mac: Mac, octets: &[u8]) -> KeptKey {
    match mac {
        Mac::Cmac128 | Mac::Gmac128 | Mac::GmacSiv128 => KeptKey::new::<Single, 4>(mac, octets),
        Mac::Cmac256 => KeptKey::new::<Single, 8>(mac, octets),
    }
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

/// Defines a path: its registers, how many of them in all of its lanes and in half of them, and the features.
macro_rules! path {
    ($name:ident, $blocks:ident, $most:literal, $half:literal, $features:literal) => {
        mod $name {
            use super::*;

            /// Lanes of all registers, of half of them, and of one.
            const MOST: usize = $most * $blocks::WIDTH;
            const HALF: usize = $half * $blocks::WIDTH;
            const LEAST: usize = $blocks::WIDTH;

            /// # Safety
            /// As [`Run`].
            #[target_feature(enable = $features)]
            pub(super) unsafe fn run<K: Kernel>(
                verb: <K::Work as Work>::Verb,
                shape: &<K::Work as Work>::Shape,
                jobs: &[<K::Work as Work>::Job],
            ) {
                let mut rest = jobs;
                while !rest.is_empty() {
                    // SAFETY: as promised to this function.
                    rest = unsafe {
                        match rest.len() {
                            1..=LEAST => {
                                take(rest, |jobs, used| fill::<K, 1, LEAST>(verb, shape, jobs, used))
                            }
                            length if length <= HALF || K::FITS_HALF_ONLY => {
                                take(rest, |jobs, used| fill::<K, $half, HALF>(verb, shape, jobs, used))
                            }
                            _ => take(rest, |jobs, used| fill::<K, $most, MOST>(verb, shape, jobs, used)),
                        }
                    };
                }
            }

            /// # Safety
            /// As [`Kernel::run`], and the processor has the features.
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn fill<K: Kernel, const N: usize, const L: usize>(
                verb: <K::Work as Work>::Verb,
                shape: &<K::Work as Work>::Shape,
                jobs: &[<K::Work as Work>::Job; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe { K::run::<$blocks, N, L>(verb, shape, jobs, used) };
            }

            #[target_feature(enable = $features)]
            pub(super) fn encrypt_alone(count: usize) -> usize {
                floor::encrypt::<$blocks, $most>(count)
            }
        }
    };
}

path!(vaes512, Quadruple, 4, 2, "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,aes,pclmulqdq,ssse3,sse4.1");
path!(vaes256, Double, 8, 4, "vaes,vpclmulqdq,avx2,aes,pclmulqdq,ssse3,sse4.1");
path!(aesni, Single, 8, 4, "aes,pclmulqdq,ssse3,sse4.1");

pub(super) mod hmac;
