//! Which instructions the lanes use, chosen once from what the processor has.

use std::fmt;
use std::sync::OnceLock;

/// A way to compute AEADs and MACs. All give the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// VAES and AVX-512: four blocks an instruction, sixteen packets side by side.
    Vaes512,
    /// VAES and AVX2: two blocks an instruction, sixteen packets side by side.
    Vaes256,
    /// AES-NI and SSE: eight packets side by side.
    AesNi,
    /// The RustCrypto crates, one packet after another, on any processor.
    Portable,
}

impl Path {
    /// Every path, the widest first.
    pub const ALL: [Path; 4] = [Path::Vaes512, Path::Vaes256, Path::AesNi, Path::Portable];

    /// Whether this processor can take it.
    #[must_use]
    pub fn is_available(self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(authentick_lanes = "none")))]
        {
            use std::arch::is_x86_feature_detected as has;
            let aesni = has!("aes") && has!("pclmulqdq") && has!("ssse3") && has!("sse4.1");
            let vaes = has!("vaes") && has!("vpclmulqdq") && has!("avx2");
            let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512vl");
            match self {
                Path::Vaes512 => aesni && vaes && avx512,
                Path::Vaes256 => aesni && vaes,
                Path::AesNi => aesni,
                Path::Portable => true,
            }
        }
        #[cfg(any(not(target_arch = "x86_64"), authentick_lanes = "none"))]
        {
            self == Path::Portable
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Path::Vaes512 => "VAES-512",
            Path::Vaes256 => "VAES-256",
            Path::AesNi => "AES-NI",
            Path::Portable => "portable",
        })
    }
}

/// Ways to compute, of which a process takes one.
pub trait PathKind: Copy {
    /// The one that this process takes.
    fn chosen() -> Self;
}

impl PathKind for Path {
    #[inline(always)]
    fn chosen() -> Self {
        path()
    }
}

/// The path that this process takes: the widest that the processor has.
#[must_use]
pub fn path() -> Path {
    static PATH: OnceLock<Path> = OnceLock::new();
    *PATH.get_or_init(|| {
        Path::ALL.into_iter().find(|path| path.is_available()).expect("the portable path is available")
    })
}
