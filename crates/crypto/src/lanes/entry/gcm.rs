//! Where each path begins for AES-128-GCM, with the widths of the other AEADs.

use super::super::gcm::{self, Shape};
use super::super::group::{Lane, Verb};
use super::{Path, choose, take};
use crate::lanes::block::{Blocks, Double, Quadruple, Single};

/// Runs jobs.
///
/// # Panics
/// If the path is portable or not available.
///
/// # Safety
/// The lanes are of jobs of this shape, which are borrowed by the caller; the key is the caller's too.
pub(in crate::lanes) unsafe fn run(path: Path, verb: Verb, shape: &Shape, lanes: &[Lane]) {
    let run = choose(path, lanes.len(), [vaes512::run, vaes256::run, aesni::run]);
    // SAFETY: the processor has what the path needs; the rest is as promised to this function.
    unsafe { run(verb, shape, lanes) };
}

/// The one key of all lanes is read where it lies.
const fn fits_half_only(_: &Shape) -> bool {
    false
}

macro_rules! gcm_path {
    ($name:ident, $blocks:ident, $most:literal, $half:literal, $features:literal) => {
        mod $name {
            use super::*;

            widths!($blocks, $most, $half, $features);

            /// Runs the first `used` of `lanes`; those beyond repeat the last of them.
            ///
            /// # Safety
            /// As [`super::run`].
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn fill<const N: usize, const L: usize>(
                verb: Verb,
                shape: &Shape,
                lanes: &[Lane; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe { gcm::run::<$blocks, N, L>(verb, shape, lanes, used) };
            }
        }
    };
}

each_path!(gcm_path);
