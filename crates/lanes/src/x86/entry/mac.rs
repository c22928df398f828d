//! Where each path begins for MACs, with the widths of AEADs.

use super::{choose, take};
use crate::x86::block::{Blocks, Double, Quadruple, Single};
use crate::x86::kept::KeptKey;
use crate::x86::mac::{MacJob, MacShape, MacVerb};
use crate::x86::tag;
use crate::{Mac, Path};

/// Runs jobs.
///
/// # Panics
/// If the path is portable or not available.
///
/// # Safety
/// The jobs are of this shape, and what they point to is borrowed by the caller.
pub(in crate::x86) unsafe fn run(path: Path, verb: MacVerb, shape: &MacShape, jobs: &[MacJob]) {
    let run = choose(path, jobs.len(), [vaes512::run, vaes256::run, aesni::run]);
    // SAFETY: the processor has what the path needs; the rest is as promised to this function.
    unsafe { run(verb, shape, jobs) };
}

/// Expands a key to keep; `None` on a processor without lanes.
///
/// # Panics
/// If the key has not the size of its algorithm's keys.
pub(in crate::x86) fn expand(mac: Mac, octets: &[u8]) -> Option<KeptKey> {
    // SAFETY: the processor has what the path needs.
    Path::AesNi.is_available().then(|| unsafe { expand_with_aesni(mac, octets) })
}

#[target_feature(enable = "aes,pclmulqdq,ssse3,sse4.1")]
fn expand_with_aesni(mac: Mac, octets: &[u8]) -> KeptKey {
    match mac {
        Mac::Cmac128 | Mac::Gmac128 | Mac::GmacSiv128 => KeptKey::new::<Single, 4>(mac, octets),
        Mac::Cmac256 => KeptKey::new::<Single, 8>(mac, octets),
    }
}

/// The keys of MACs are kept, and read where they lie.
const fn fits_half_only(_: &MacShape) -> bool {
    false
}

macro_rules! mac_path {
    ($name:ident, $blocks:ident, $most:literal, $half:literal, $features:literal) => {
        mod $name {
            use super::*;

            use fill as fill_most;

            widths!(MacVerb, MacShape, MacJob, $blocks, $most, $half, $features);

            /// Runs the first `used` of `jobs`; those beyond repeat the last of them.
            ///
            /// # Safety
            /// As [`super::run`].
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn fill<const N: usize, const L: usize>(
                verb: MacVerb,
                shape: &MacShape,
                jobs: &[MacJob; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe {
                    match shape.mac {
                        Mac::Cmac128 => cmac::<N, L, 4>(verb, shape, jobs, used),
                        Mac::Cmac256 => cmac::<N, L, 8>(verb, shape, jobs, used),
                        Mac::Gmac128 => gmac::<N, L>(verb, shape, jobs, used),
                        Mac::GmacSiv128 => gmac_siv::<N, L>(verb, shape, jobs, used),
                    }
                }
            }

            /// # Safety
            /// As [`super::run`].
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn cmac<const N: usize, const L: usize, const WORDS: usize>(
                verb: MacVerb,
                shape: &MacShape,
                jobs: &[MacJob; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe { tag::cmac::<$blocks, N, L, WORDS>(verb, shape, jobs, used) };
            }

            /// # Safety
            /// As [`super::run`].
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn gmac<const N: usize, const L: usize>(
                verb: MacVerb,
                shape: &MacShape,
                jobs: &[MacJob; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe { tag::gmac::<$blocks, N, L>(verb, shape, jobs, used) };
            }

            /// # Safety
            /// As [`super::run`].
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn gmac_siv<const N: usize, const L: usize>(
                verb: MacVerb,
                shape: &MacShape,
                jobs: &[MacJob; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe { tag::gmac_siv::<$blocks, N, L>(verb, shape, jobs, used) };
            }
        }
    };
}

each_path!(mac_path);
