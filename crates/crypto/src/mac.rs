//! MACs over packets: RFC 5905's keyed digests, RFC 8573's AES-CMAC, and those that "Message Authentication Codes for
//! the Network Time Protocol" (draft-ietf-ntp-mac, 2016) compares with them.
//!
//! The unit of work is a batch, as in [`crate::aead`]: [`TagBatch`] and [`VerifyBatch`] take jobs with different keys
//! and algorithms. A key is expanded once, when it is made; all that a packet costs is the packet. CMAC, GMAC and
//! GMAC-SIV run side by side where the processor has AES instructions, HMAC-SHA-224 where it has AVX2 or the
//! instructions for SHA, the others one packet after another.
//!
//! Deliberately absent: key ids, key files, the names that other programs give to these algorithms, and the choice of
//! nonces.

mod batch;
mod cmac;
mod digest;
mod gmac_siv;
mod hmac;
mod md5;
mod poly1305;
pub mod usage;

use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;

use aes::{Aes128Enc, Aes256Enc};
use authentick_lanes::{self as lanes, HashPath, HmacKey, LANE_TEXT_SIZE_MAX, Mac, Path};
use zeroize::Zeroizing;

use crate::gcm;

pub use batch::{Tag, TagBatch, Verify, VerifyBatch};
use digest::{Md5, Sha1, Sha224, Sha256, Sha384, Sha512};

/// Most octets of a key of any size. A key file of chrony has lines of less than 2048 characters, so none is longer.
pub const MAC_KEY_SIZE_MAX: usize = 2048;

/// Fewest octets of a truncated tag. RFC 5905 and RFC 8573 know none below it.
pub const MAC_TAG_SIZE_MIN: usize = 16;

/// Most octets of a tag, those of SHA-512.
pub const MAC_TAG_SIZE_MAX: usize = 64;

/// A MAC algorithm for NTP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MacAlgorithm {
    /// MD5(key || packet). RFC 5905 section 7.3. Can be extended by who does not know the key.
    Md5,
    /// SHA-1(key || packet).
    Sha1,
    /// SHA-256(key || packet).
    Sha256,
    /// SHA-384(key || packet).
    Sha384,
    /// SHA-512(key || packet).
    Sha512,
    /// HMAC-MD5. RFC 2104.
    HmacMd5,
    /// HMAC-SHA-224 truncated to 16 octets. RFC 2104, RFC 7630 section 4.
    HmacSha224,
    /// AES-128-CMAC. RFC 4493, RFC 8573.
    Cmac128,
    /// AES-256-CMAC. NIST SP 800-38B.
    Cmac256,
    /// AES-128-GMAC with a nonce of 12 octets, which is never used twice with a key. NIST SP 800-38D.
    Gmac128,
    /// AES-128-GCM-SIV of an empty text. RFC 8452. A nonce that is used twice shows only whether packets are equal.
    GmacSiv128,
    /// Poly1305 under a one-time key that ChaCha20 makes of key and nonce. RFC 8439 section 2.6. A nonce that is used
    /// twice gives away the tags of that nonce.
    Poly1305,
}

impl MacAlgorithm {
    /// Every algorithm.
    pub const ALL: [MacAlgorithm; 12] = [
        MacAlgorithm::Md5,
        MacAlgorithm::Sha1,
        MacAlgorithm::Sha256,
        MacAlgorithm::Sha384,
        MacAlgorithm::Sha512,
        MacAlgorithm::HmacMd5,
        MacAlgorithm::HmacSha224,
        MacAlgorithm::Cmac128,
        MacAlgorithm::Cmac256,
        MacAlgorithm::Gmac128,
        MacAlgorithm::GmacSiv128,
        MacAlgorithm::Poly1305,
    ];

    /// What sets it apart from others.
    //= rfc8573#3-2, rfc8573#3-3
    #[inline(always)]
    const fn facts(self) -> Facts {
        match self {
            MacAlgorithm::Md5 => Facts::digest("MD5", 16),
            MacAlgorithm::Sha1 => Facts::digest("SHA1", 20),
            MacAlgorithm::Sha256 => Facts::digest("SHA256", 32),
            MacAlgorithm::Sha384 => Facts::digest("SHA384", 48),
            MacAlgorithm::Sha512 => Facts::digest("SHA512", 64),
            MacAlgorithm::HmacMd5 => Facts::mac("HMAC-MD5", 16, None, None),
            MacAlgorithm::HmacSha224 => Facts::mac("HMAC-SHA224", 16, None, None),
            MacAlgorithm::Cmac128 => Facts::mac("AES128", 16, None, Some(Mac::Cmac128)),
            MacAlgorithm::Cmac256 => Facts::mac("AES256", 32, None, Some(Mac::Cmac256)),
            MacAlgorithm::Gmac128 => Facts::mac("GMAC128", 16, Some(NONCE_SIZE), Some(Mac::Gmac128)),
            MacAlgorithm::GmacSiv128 => {
                Facts::mac("GMAC-SIV128", 16, Some(NONCE_SIZE), Some(Mac::GmacSiv128))
            }
            MacAlgorithm::Poly1305 => Facts::mac("POLY1305", 32, Some(NONCE_SIZE), None),
        }
    }

    /// Octets of an untruncated tag.
    #[must_use]
    pub const fn tag_size(self) -> usize {
        self.facts().tag_size
    }

    /// Octets that a key can have. Keyed digests take any number; each of the others takes one size only.
    #[must_use]
    pub const fn key_sizes(self) -> RangeInclusive<usize> {
        let [min, max] = self.facts().key_sizes;
        RangeInclusive::new(min, max)
    }

    /// Octets of a nonce; `None` for an algorithm that takes none.
    #[must_use]
    pub const fn nonce_size(self) -> Option<usize> {
        self.facts().nonce_size
    }

    /// The name of the type in a key file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Whether a nonce of this size, or none, is what the algorithm takes.
    #[inline]
    fn accepts_nonce(self, nonce: Option<&[u8]>) -> bool {
        nonce.map(<[u8]>::len) == self.nonce_size()
    }

    /// Whether a tag may have `size` octets.
    #[inline]
    fn accepts_tag(self, size: usize) -> bool {
        (MAC_TAG_SIZE_MIN..=self.tag_size()).contains(&size)
    }
}

const NONCE_SIZE: usize = 12;

/// What sets one algorithm apart from others.
struct Facts {
    name: &'static str,
    tag_size: usize,
    /// The shortest and the longest key.
    key_sizes: [usize; 2],
    nonce_size: Option<usize>,
    /// What the algorithm is in the lanes; `None` if its packets run one after another.
    lanes: Option<Mac>,
}

impl Facts {
    /// A keyed digest.
    const fn digest(name: &'static str, tag_size: usize) -> Self {
        Facts { name, tag_size, key_sizes: [1, MAC_KEY_SIZE_MAX], nonce_size: None, lanes: None }
    }

    /// An algorithm with keys of one size.
    const fn mac(name: &'static str, key_size: usize, nonce_size: Option<usize>, lanes: Option<Mac>) -> Self {
        Facts { name, tag_size: 16, key_sizes: [key_size; 2], nonce_size, lanes }
    }
}

impl fmt::Display for MacAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A key has a size that its algorithm does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongKeySize {
    /// The algorithm.
    pub algorithm: MacAlgorithm,
    /// Octets of the key.
    pub size: usize,
}

impl fmt::Display for WrongKeySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (algorithm, sizes) = (self.algorithm, self.algorithm.key_sizes());
        write!(f, "a key of {algorithm} has {}", sizes.start())?;
        if sizes.start() != sizes.end() {
            write!(f, " to {}", sizes.end())?;
        }
        write!(f, " octets, this one has {}", self.size)
    }
}

impl Error for WrongKeySize {}

/// A key, expanded once: round keys, subkeys, the state of a digest that has read the key.
///
/// Everything secret lies on the heap, so that a key that is moved leaves no copy behind, and is overwritten when it is
/// dropped.
pub struct MacKey {
    algorithm: MacAlgorithm,
    octets: Zeroizing<Box<[u8]>>,
    state: State,
    /// The same for the lanes, if there are any for the algorithm.
    kept: Option<lanes::MacKey>,
}

/// What an algorithm makes of a key. Each overwrites itself when dropped.
enum State {
    Md5(Box<digest::Key<Md5>>),
    Sha1(Box<digest::Key<Sha1>>),
    Sha256(Box<digest::Key<Sha256>>),
    Sha384(Box<digest::Key<Sha384>>),
    Sha512(Box<digest::Key<Sha512>>),
    HmacMd5(Box<hmac::Key<Md5>>),
    HmacSha224(Box<hmac::Key<Sha224>>),
    Cmac128(Box<cmac::Key<Aes128Enc>>),
    Cmac256(Box<cmac::Key<Aes256Enc>>),
    Gmac128(Box<gcm::PortableKey>),
    GmacSiv128(Box<gmac_siv::Key>),
    Poly1305(Box<poly1305::Key>),
}

impl MacKey {
    /// Expands a key.
    ///
    /// # Errors
    /// If it has a size that is not in [`MacAlgorithm::key_sizes`].
    pub fn new(algorithm: MacAlgorithm, octets: &[u8]) -> Result<Self, WrongKeySize> {
        if !algorithm.key_sizes().contains(&octets.len()) {
            return Err(WrongKeySize { algorithm, size: octets.len() });
        }
        let state = match algorithm {
            MacAlgorithm::Md5 => State::Md5(Box::new(digest::Key::new(octets))),
            MacAlgorithm::Sha1 => State::Sha1(Box::new(digest::Key::new(octets))),
            MacAlgorithm::Sha256 => State::Sha256(Box::new(digest::Key::new(octets))),
            MacAlgorithm::Sha384 => State::Sha384(Box::new(digest::Key::new(octets))),
            MacAlgorithm::Sha512 => State::Sha512(Box::new(digest::Key::new(octets))),
            MacAlgorithm::HmacMd5 => State::HmacMd5(Box::new(hmac::Key::new(octets))),
            MacAlgorithm::HmacSha224 => State::HmacSha224(Box::new(hmac::Key::new(octets))),
            MacAlgorithm::Cmac128 => State::Cmac128(Box::new(cmac::Key::new(exactly::<16>(octets).into()))),
            MacAlgorithm::Cmac256 => State::Cmac256(Box::new(cmac::Key::new(exactly::<32>(octets).into()))),
            MacAlgorithm::Gmac128 => State::Gmac128(Box::new(gcm::PortableKey::new(exactly(octets)))),
            MacAlgorithm::GmacSiv128 => State::GmacSiv128(Box::new(gmac_siv::Key::new(exactly(octets)))),
            MacAlgorithm::Poly1305 => State::Poly1305(Box::new(poly1305::Key::new(exactly(octets)))),
        };
        let kept = algorithm.facts().lanes.and_then(|mac| lanes::MacKey::expand(mac, octets));
        Ok(MacKey { algorithm, octets: Zeroizing::new(octets.into()), state, kept })
    }

    /// The algorithm.
    #[inline]
    #[must_use]
    pub const fn algorithm(&self) -> MacAlgorithm {
        self.algorithm
    }

    /// The secret octets.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.octets
    }

    /// The key for the lanes of a path; `None` if there are none.
    #[inline(always)]
    fn kept_on(&self, path: Path) -> Option<&lanes::MacKey> {
        match path {
            Path::Vaes512 | Path::Vaes256 | Path::AesNi => self.kept.as_ref(),
            Path::Portable => None,
        }
    }

    /// The key for the lanes of hashes; `None` if there are none on the path, or none for the algorithm or a message of
    /// `size` octets.
    #[inline(always)]
    fn hashed_on(&self, path: HashPath, size: usize) -> Option<HmacKey<'_>> {
        let State::HmacSha224(key) = &self.state else { return None };
        (path != HashPath::Portable && size <= LANE_TEXT_SIZE_MAX).then(|| key.for_lanes())
    }

    /// The untruncated output of the algorithm, in the first octets of what is returned.
    fn compute(&self, nonce: Option<&[u8]>, message: &[u8]) -> [u8; MAC_TAG_SIZE_MAX] {
        let mut out = [0; MAC_TAG_SIZE_MAX];
        let nonce = || exactly(nonce.unwrap_or_default());
        match &self.state {
            //= rfc5905#7.3-9, rfc5905#9.2-3
            State::Md5(key) => key.tag(message, &mut out),
            State::Sha1(key) => key.tag(message, &mut out),
            State::Sha256(key) => key.tag(message, &mut out),
            State::Sha384(key) => key.tag(message, &mut out),
            State::Sha512(key) => key.tag(message, &mut out),
            State::HmacMd5(key) => key.tag(message, &mut out),
            State::HmacSha224(key) => key.tag(message, &mut out),
            //= rfc8573#3-4, rfc8573#5-1
            State::Cmac128(key) => out[..16].copy_from_slice(&key.tag(message)),
            State::Cmac256(key) => out[..16].copy_from_slice(&key.tag(message)),
            State::Gmac128(key) => out[..16].copy_from_slice(&key.mac(nonce(), message)),
            State::GmacSiv128(key) => out[..16].copy_from_slice(&key.tag(nonce(), message)),
            State::Poly1305(key) => out[..16].copy_from_slice(&key.tag(nonce(), message)),
        }
        out
    }
}

/// Octets whose size the caller has checked.
fn exactly<const N: usize>(octets: &[u8]) -> &[u8; N] {
    octets.try_into().expect("the size was checked")
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MacKey({:?})", self.algorithm)
    }
}

#[cfg(test)]
mod tests;
