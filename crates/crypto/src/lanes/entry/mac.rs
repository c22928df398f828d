//! Where each path begins for MACs, with the widths of AEADs.

use super::super::kept::KeptKey;
use super::super::mac::{Lane, Mac, Shape, Verb};
use super::super::{Path, tag};
use super::{choose, take};
use crate::lanes::block::{Blocks, Double, Quadruple, Single};

/// Runs jobs.
///
/// # Panics
/// If the path is portable or not available.
///
/// # Safety
/// The lanes are of jobs of this shape, which are borrowed by the caller.
pub(in crate::lanes) unsafe fn run(path: Path, verb: Verb, shape: &Shape, lanes: &[Lane]) {
    let run = choose(path, lanes.len(), [vaes512::run, vaes256::run, aesni::run]);
    // SAFETY: the processor has what the path needs; the rest is as promised to this function.
    unsafe { run(verb, shape, lanes) };
}

/// Expands a key to keep; `None` on a processor without lanes.
///
/// # Panics
/// If the key has not the size of its algorithm's keys.
pub(in crate::lanes) fn expand(mac: Mac, octets: &[u8]) -> Option<KeptKey> {
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
const fn fits_half_only(_: &Shape) -> bool {
    false
}

macro_rules! mac_path {
    ($name:ident, $blocks:ident, $most:literal, $half:literal, $features:literal) => {
        mod $name {
            use super::*;

            widths!($blocks, $most, $half, $features);

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
                // SAFETY: as promised to this function.
                unsafe {
                    match shape.mac {
                        Mac::Cmac128 => cmac::<N, L, 4>(verb, shape, lanes, used),
                        Mac::Cmac256 => cmac::<N, L, 8>(verb, shape, lanes, used),
                        Mac::Gmac128 => gmac::<N, L>(verb, shape, lanes, used),
                        Mac::GmacSiv128 => gmac_siv::<N, L>(verb, shape, lanes, used),
                    }
                }
            }

            /// # Safety
            /// As [`super::run`].
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn cmac<const N: usize, const L: usize, const WORDS: usize>(
                verb: Verb,
                shape: &Shape,
                lanes: &[Lane; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe { tag::cmac::<$blocks, N, L, WORDS>(verb, shape, lanes, used) };
            }

            /// # Safety
            /// As [`super::run`].
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn gmac<const N: usize, const L: usize>(
                verb: Verb,
                shape: &Shape,
                lanes: &[Lane; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe { tag::gmac::<$blocks, N, L>(verb, shape, lanes, used) };
            }

            /// # Safety
            /// As [`super::run`].
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn gmac_siv<const N: usize, const L: usize>(
                verb: Verb,
                shape: &Shape,
                lanes: &[Lane; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe { tag::gmac_siv::<$blocks, N, L>(verb, shape, lanes, used) };
            }
        }
    };
}

each_path!(mac_path);
