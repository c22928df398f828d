//! Which instructions SHA-256 runs on when there are many messages, chosen once from what the processor has.

use std::fmt;
use std::sync::OnceLock;

use crate::{Path, PathKind};

/// A way to compute HMAC-SHA-256 and HMAC-SHA-224 over batches. All give the same results.
///
/// It is chosen apart from [`Path`]: there are processors with AVX-512 and without VAES, and with VAES and without
/// AVX-512.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashPath {
    /// AVX-512: sixteen messages side by side; few of them as on [`HashPath::ShaNi`], where the processor has that too.
    Avx512,
    /// The instructions for SHA: two messages side by side.
    ShaNi,
    /// AVX2: eight messages side by side.
    Avx2,
    /// The crate `sha2`, one message after another, on any processor.
    Portable,
}

impl HashPath {
    /// Every path, the fastest first.
    pub const ALL: [HashPath; 4] = [HashPath::Avx512, HashPath::ShaNi, HashPath::Avx2, HashPath::Portable];

    /// Whether this processor can take it.
    #[must_use]
    pub fn is_available(self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(authentick_lanes = "none")))]
        {
            use std::arch::is_x86_feature_detected as has;
            match self {
                HashPath::Avx512 => has!("avx512f") && has!("avx512bw"),
                HashPath::ShaNi => has!("sha") && has!("sse4.1") && has!("ssse3"),
                HashPath::Avx2 => has!("avx2"),
                HashPath::Portable => true,
            }
        }
        #[cfg(any(not(target_arch = "x86_64"), authentick_lanes = "none"))]
        {
            self == HashPath::Portable
        }
    }

    /// The path of hashes beside one of AEADs and MACs: none but the portable one beside the portable one.
    #[must_use]
    pub fn beside(path: Path) -> Self {
        match path {
            Path::Portable => HashPath::Portable,
            Path::Vaes512 | Path::Vaes256 | Path::AesNi => hash_path(),
        }
    }
}

impl fmt::Display for HashPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            HashPath::Avx512 => "AVX-512",
            HashPath::ShaNi => "SHA-NI",
            HashPath::Avx2 => "AVX2",
            HashPath::Portable => "portable",
        })
    }
}

impl PathKind for HashPath {
    #[inline(always)]
    fn chosen() -> Self {
        hash_path()
    }
}

/// The path of hashes that this process takes: the fastest that the processor has.
#[must_use]
pub fn hash_path() -> HashPath {
    static PATH: OnceLock<HashPath> = OnceLock::new();
    *PATH.get_or_init(|| {
        HashPath::ALL.into_iter().find(|path| path.is_available()).expect("the portable path is available")
    })
}
