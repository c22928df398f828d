//! Where each path begins: functions that enable its instructions, with everything they call inlined into them.
//!
//! A path has three widths: all of its lanes, half of them, and as few as it can. A rest that fills no width repeats
//! its last job in the lanes left over, and drops what these compute.

use super::block::{Blocks, Double, Quadruple, Single};
use super::{Path, SivKey, floor, gcm_siv, siv};
use crate::aead::{Algorithm, Key, Open, Seal};

/// What the jobs of a call have in common.
#[derive(Clone, Copy)]
pub(super) enum Keys<'a> {
    /// The algorithm; each job brings a key of its own, to be expanded.
    Fresh(Algorithm),
    /// A key of AES-SIV-CMAC-256.
    Kept(&'a SivKey),
}

/// Runs jobs; does nothing without jobs.
///
/// # Panics
/// If the path is portable or not available.
pub(super) fn seal(path: Path, keys: Keys<'_>, jobs: &mut [Seal<'_>]) {
    assert!(path == super::path() || path.is_available(), "no path is taken that the processor lacks");
    match path {
        // One packet fills one block, and narrow registers are a little faster.
        // SAFETY: the processor has what the path needs, which for VAES is more than what this needs.
        Path::Vaes512 | Path::Vaes256 if jobs.len() == 1 => unsafe { aesni::seal(keys, jobs) },
        // SAFETY: the processor has what the path needs.
        Path::Vaes512 => unsafe { vaes512::seal(keys, jobs) },
        // SAFETY: as above.
        Path::Vaes256 => unsafe { vaes256::seal(keys, jobs) },
        // SAFETY: as above.
        Path::AesNi => unsafe { aesni::seal(keys, jobs) },
        Path::Portable => unreachable!("the portable path has no lanes"),
    }
}

/// As `seal`.
///
/// # Panics
/// If the path is portable or not available.
pub(super) fn open(path: Path, keys: Keys<'_>, jobs: &mut [Open<'_>]) {
    assert!(path == super::path() || path.is_available(), "no path is taken that the processor lacks");
    match path {
        // One packet fills one block, and narrow registers are a little faster.
        // SAFETY: the processor has what the path needs, which for VAES is more than what this needs.
        Path::Vaes512 | Path::Vaes256 if jobs.len() == 1 => unsafe { aesni::open(keys, jobs) },
        // SAFETY: the processor has what the path needs.
        Path::Vaes512 => unsafe { vaes512::open(keys, jobs) },
        // SAFETY: as above.
        Path::Vaes256 => unsafe { vaes256::open(keys, jobs) },
        // SAFETY: as above.
        Path::AesNi => unsafe { aesni::open(keys, jobs) },
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

            path!(
                verb $blocks, $most, $half, $features, seal, Seal, siv_seal, siv_seal_under, gcm_siv_seal, seal_under
            );
            path!(
                verb $blocks, $most, $half, $features, open, Open, siv_open, siv_open_under, gcm_siv_open, open_under
            );

            /// CMACs under the first half of each key, all lanes at once.
            #[cfg(test)]
            #[target_feature(enable = $features)]
            pub(super) fn cmac(keys: &[Key], messages: &[&[u8]]) -> Vec<[u8; 16]> {
                siv::cmac_of::<$blocks, $most, MOST>(keys, messages)
            }

            #[target_feature(enable = $features)]
            pub(super) fn encrypt_alone(count: usize) -> usize {
                floor::encrypt::<$blocks, $most>(count)
            }
        }
    };
    (
        verb $blocks:ident, $most:literal, $half:literal, $features:literal, $verb:ident, $job:ident,
        $siv:ident, $siv_under:ident, $gcm_siv:ident, $under:ident
    ) => {
        #[target_feature(enable = $features)]
        pub(super) fn $verb(keys: Keys<'_>, jobs: &mut [$job<'_>]) {
            // Whole rounds of all lanes; what is left takes all lanes again if half of them do not suffice.
            let rest = jobs.len() % MOST;
            let full = if rest > HALF { jobs.len() } else { jobs.len() - rest };
            let (full, rest) = jobs.split_at_mut(full);
            if !full.is_empty() {
                match keys {
                    Keys::Kept(key) => $siv_under::<$most, MOST>(key, full),
                    Keys::Fresh(Algorithm::SivCmac256) => $siv::<$most, MOST, 4>(full),
                    Keys::Fresh(Algorithm::SivCmac384) => $siv::<$half, HALF, 6>(full),
                    Keys::Fresh(Algorithm::SivCmac512) => $siv::<$half, HALF, 8>(full),
                    Keys::Fresh(Algorithm::Aes128GcmSiv) => $gcm_siv::<$most, MOST>(full),
                }
            }
            if rest.is_empty() {
                return;
            }
            let is_small = rest.len() <= LEAST;
            match keys {
                Keys::Kept(key) if is_small => $siv_under::<1, LEAST>(key, rest),
                Keys::Kept(key) => $siv_under::<$half, HALF>(key, rest),
                Keys::Fresh(Algorithm::SivCmac256) if is_small => $siv::<1, LEAST, 4>(rest),
                Keys::Fresh(Algorithm::SivCmac256) => $siv::<$half, HALF, 4>(rest),
                Keys::Fresh(Algorithm::SivCmac384) => $siv::<$half, HALF, 6>(rest),
                Keys::Fresh(Algorithm::SivCmac512) => $siv::<$half, HALF, 8>(rest),
                Keys::Fresh(Algorithm::Aes128GcmSiv) if is_small => $gcm_siv::<1, LEAST>(rest),
                Keys::Fresh(Algorithm::Aes128GcmSiv) => $gcm_siv::<$half, HALF>(rest),
            }
        }

        #[inline(never)]
        #[target_feature(enable = $features)]
        fn $siv<const N: usize, const L: usize, const WORDS: usize>(jobs: &mut [$job<'_>]) {
            siv::$verb::<$blocks, N, L, WORDS>(jobs);
        }

        #[inline(never)]
        #[target_feature(enable = $features)]
        fn $siv_under<const N: usize, const L: usize>(key: &SivKey, jobs: &mut [$job<'_>]) {
            siv::$under::<$blocks, N, L>(key, jobs);
        }

        #[inline(never)]
        #[target_feature(enable = $features)]
        fn $gcm_siv<const N: usize, const L: usize>(jobs: &mut [$job<'_>]) {
            gcm_siv::$verb::<$blocks, N, L>(jobs);
        }
    };
}

path!(vaes512, Quadruple, 4, 2, "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,aes,pclmulqdq,ssse3,sse4.1");
path!(vaes256, Double, 8, 4, "vaes,vpclmulqdq,avx2,aes,pclmulqdq,ssse3,sse4.1");
path!(aesni, Single, 8, 4, "aes,pclmulqdq,ssse3,sse4.1");

#[cfg(test)]
mod tests;
