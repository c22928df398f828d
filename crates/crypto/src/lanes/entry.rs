//! Where each path begins: functions that enable its instructions, with everything they call inlined into them.
//!
//! A path has three widths: all of its lanes, half of them, and as few as it can. A rest that fills no width repeats its
//! last job in the lanes left over, and drops what these compute.

use super::block::{Blocks, Double, Quadruple, Single};
use super::{Path, SivKey, floor, gcm_siv, siv};
use crate::aead::{Algorithm, Key, Open, Seal};

/// Runs jobs of one algorithm; does nothing without jobs.
///
/// # Panics
/// If the path is portable or not available.
pub(super) fn seal(path: Path, algorithm: Algorithm, jobs: &mut [Seal<'_>]) {
    assert!(path.is_available(), "no path is taken that the processor lacks");
    match path {
        // SAFETY: the processor has what the path needs.
        Path::Vaes512 => unsafe { vaes512::seal(algorithm, jobs) },
        // SAFETY: as above.
        Path::Vaes256 => unsafe { vaes256::seal(algorithm, jobs) },
        // SAFETY: as above.
        Path::AesNi => unsafe { aesni::seal(algorithm, jobs) },
        Path::Portable => unreachable!("the portable path has no lanes"),
    }
}

/// As `seal`.
///
/// # Panics
/// If the path is portable or not available.
pub(super) fn open(path: Path, algorithm: Algorithm, jobs: &mut [Open<'_>]) {
    assert!(path.is_available(), "no path is taken that the processor lacks");
    match path {
        // SAFETY: the processor has what the path needs.
        Path::Vaes512 => unsafe { vaes512::open(algorithm, jobs) },
        // SAFETY: as above.
        Path::Vaes256 => unsafe { vaes256::open(algorithm, jobs) },
        // SAFETY: as above.
        Path::AesNi => unsafe { aesni::open(algorithm, jobs) },
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
        pub(super) mod $name {
            use super::*;

            /// The widest lanes that are filled, and how many of the jobs fill them.
            const MOST: usize = $most * $blocks::WIDTH;
            const HALF: usize = $half * $blocks::WIDTH;

            path!(run $blocks, $features, $most, $half, seal, Seal, [siv_seal siv::seal], [gcm_siv_seal gcm_siv::seal]);
            path!(run $blocks, $features, $most, $half, open, Open, [siv_open siv::open], [gcm_siv_open gcm_siv::open]);

            #[target_feature(enable = $features)]
            pub(in super::super) fn encrypt_alone(count: usize) -> usize {
                floor::encrypt::<$blocks, $most>(count)
            }
        }
    };
    (
        run $blocks:ident, $features:literal, $most:literal, $half:literal, $verb:ident, $job:ident,
        [$siv:ident $siv_module:ident::$siv_verb:ident], [$gcm:ident $gcm_module:ident::$gcm_verb:ident]
    ) => {
        #[target_feature(enable = $features)]
        pub(in super::super) fn $verb(algorithm: Algorithm, jobs: &mut [$job<'_>]) {
            // Whole rounds of all lanes; what is left takes all lanes again if half of them do not suffice.
            let rest = jobs.len() % MOST;
            let full = if rest > HALF { jobs.len() } else { jobs.len() - rest };
            let (full, rest) = jobs.split_at_mut(full);
            if !full.is_empty() {
                match algorithm {
                    Algorithm::SivCmac256 => $siv::<$most, 4>(full),
                    Algorithm::SivCmac384 => $siv::<$most, 6>(full),
                    Algorithm::SivCmac512 => $siv::<$most, 8>(full),
                    Algorithm::Aes128GcmSiv => $gcm::<$most>(full),
                }
            }
            if rest.len() > $blocks::WIDTH {
                match algorithm {
                    Algorithm::SivCmac256 => $siv::<$half, 4>(rest),
                    Algorithm::SivCmac384 => $siv::<$half, 6>(rest),
                    Algorithm::SivCmac512 => $siv::<$half, 8>(rest),
                    Algorithm::Aes128GcmSiv => $gcm::<$half>(rest),
                }
            } else if !rest.is_empty() {
                match algorithm {
                    Algorithm::SivCmac256 => $siv::<1, 4>(rest),
                    Algorithm::SivCmac384 => $siv::<1, 6>(rest),
                    Algorithm::SivCmac512 => $siv::<1, 8>(rest),
                    Algorithm::Aes128GcmSiv => $gcm::<1>(rest),
                }
            }
        }

        #[target_feature(enable = $features)]
        fn $siv<const N: usize, const WORDS: usize>(jobs: &mut [$job<'_>]) {
            $siv_module::$siv_verb::<$blocks, N, WORDS>(jobs);
        }

        #[target_feature(enable = $features)]
        fn $gcm<const N: usize>(jobs: &mut [$job<'_>]) {
            $gcm_module::$gcm_verb::<$blocks, N>(jobs);
        }
    };
}

path!(vaes512, Quadruple, 4, 2, "vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,aes,pclmulqdq,ssse3,sse4.1");
path!(vaes256, Double, 8, 4, "vaes,vpclmulqdq,avx2,aes,pclmulqdq,ssse3,sse4.1");
path!(aesni, Single, 8, 4, "aes,pclmulqdq,ssse3,sse4.1");
