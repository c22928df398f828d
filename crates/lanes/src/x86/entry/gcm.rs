//! Where each path begins for AES-128-GCM, with the widths of the other AEADs.

use super::{choose, take};
use crate::Path;
use crate::x86::aead::{AeadJob, AeadVerb};
use crate::x86::block::{Blocks, Double, Quadruple, Single};
use crate::x86::gcm::{self, GcmShape};

/// Runs jobs.
///
/// # Panics
/// If the path is portable or not available.
///
/// # Safety
/// The jobs are of this shape, and what they point to is borrowed by the caller; the key is the caller's too.
pub(in crate::x86) unsafe fn run(path: Path, verb: AeadVerb, shape: &GcmShape, jobs: &[AeadJob]) {
    let run = choose(path, jobs.len(), [vaes512::run, vaes256::run, aesni::run]);
    // SAFETY: the processor has what the path needs; the rest is as promised to this function.
    unsafe { run(verb, shape, jobs) };
}

/// The one key of all lanes is read where it lies.
const fn fits_half_only(_: &GcmShape) -> bool {
    false
}

macro_rules! gcm_path {
    ($name:ident, $blocks:ident, $most:literal, $half:literal, $features:literal) => {
        mod $name {
            use super::*;

            use fill as fill_most;

            widths!(AeadVerb, GcmShape, AeadJob, $blocks, $most, $half, $features);

            /// Runs the first `used` of `jobs`; those beyond repeat the last of them.
            ///
            /// # Safety
            /// As [`super::run`].
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn fill<const N: usize, const L: usize>(
                verb: AeadVerb,
                shape: &GcmShape,
                jobs: &[AeadJob; L],
                used: usize,
            ) {
                // SAFETY: as promised to this function.
                unsafe { gcm::run::<$blocks, N, L>(verb, shape, jobs, used) };
            }
        }
    };
}

each_path!(gcm_path);
