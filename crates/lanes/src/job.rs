//! What is run in the lanes: texts of AEADs, and what HMAC takes.

use inout::InOutBuf;

use crate::{HmacDigest, KeyRef, MAC_NONCE_SIZE, MacKey, TAG_SIZE};

#[cfg(doc)]
use crate::Algorithm;

/// Octets of a block of SHA-256, and of the longest key that HMAC takes as it is.
pub(crate) const HASH_BLOCK_SIZE: usize = 64;

/// Octets of the longest text whose HMAC is computed in the lanes: with its padding it is eight blocks.
pub const LANE_TEXT_SIZE_MAX: usize = 8 * HASH_BLOCK_SIZE - 9;

/// A text in memory: where it is read, and where it is written, in the same place or apart. Any `&mut [u8]` is one.
pub type Text<'a> = InOutBuf<'a, 'a, u8>;

/// One text to encrypt.
pub struct Seal<'a> {
    /// The key.
    pub key: KeyRef<'a>,
    /// The nonce, of a size that [`Algorithm::accepts_nonce`]; never used twice with a key under GCM-SIV, if possible.
    pub nonce: &'a [u8],
    /// Associated data. For SIV, absent and empty differ: an absent one is no component of S2V. RFC 5297 section 2.4.
    pub associated: Option<&'a [u8]>,
    /// Plaintext in, ciphertext out.
    pub text: Text<'a>,
    /// The tag, out.
    pub tag: &'a mut [u8; TAG_SIZE],
}

/// One text to verify and decrypt.
pub struct Open<'a> {
    /// The key.
    pub key: KeyRef<'a>,
    /// The nonce; one of a size that the algorithm does not accept makes the job fail.
    pub nonce: &'a [u8],
    /// Associated data, as in [`Seal::associated`].
    pub associated: Option<&'a [u8]>,
    /// Ciphertext in; plaintext out, or zeros if the job failed.
    pub text: Text<'a>,
    /// The tag that came with the text.
    pub tag: &'a [u8; TAG_SIZE],
    /// Out: whether text, associated data, nonce and key belong together.
    pub genuine: &'a mut bool,
}

/// One text to verify and decrypt under AES-128-GCM.
pub struct GcmOpen<'a> {
    /// The key, which is one of GMAC.
    pub key: &'a MacKey,
    /// The nonce.
    pub nonce: &'a [u8; MAC_NONCE_SIZE],
    /// Associated data.
    pub associated: &'a [u8],
    /// Ciphertext in; plaintext out, or zeros if the job failed.
    pub text: Text<'a>,
    /// The tag that came with the text.
    pub tag: &'a [u8; TAG_SIZE],
    /// Out: whether text, associated data, nonce and key belong together.
    pub genuine: &'a mut bool,
}

/// One tag of a MAC to compute.
pub struct MacTag<'a> {
    /// The key.
    pub key: &'a MacKey,
    /// As many octets as the algorithm's nonces have: empty if it takes none.
    pub nonce: &'a [u8],
    /// What is authenticated.
    pub message: &'a [u8],
    /// The tag, out.
    pub tag: &'a mut [u8; TAG_SIZE],
}

/// One tag of a MAC to verify.
pub struct MacVerify<'a> {
    /// The key.
    pub key: &'a MacKey,
    /// As [`MacTag::nonce`].
    pub nonce: &'a [u8],
    /// What was authenticated.
    pub message: &'a [u8],
    /// The tag that came with it.
    pub tag: &'a [u8; TAG_SIZE],
    /// Out: whether tag, message, nonce and key belong together.
    pub genuine: &'a mut bool,
}

/// One tag of HMAC to compute.
pub struct HmacTag<'a> {
    /// The key.
    pub key: HmacKey<'a>,
    /// What is authenticated.
    pub text: HmacText<'a>,
    /// The tag, out, of the size of its digest's tags.
    pub tag: &'a mut [u8],
}

/// One tag of HMAC to verify.
pub struct HmacVerify<'a> {
    /// The key.
    pub key: HmacKey<'a>,
    /// What was authenticated.
    pub text: HmacText<'a>,
    /// The tag that came with it, of the size of its digest's tags.
    pub tag: &'a [u8],
    /// Out: whether tag, text and key belong together.
    pub genuine: &'a mut bool,
}

/// A key for the lanes.
#[derive(Clone, Copy)]
pub enum HmacKey<'a> {
    /// Of HMAC-SHA-256: at most a block.
    Octets(&'a [u8]),
    /// The states of the inner and the outer digest behind their blocks of the key.
    Kept(HmacDigest, [&'a [u32; 8]; 2]),
}

/// A text for the lanes, of at most [`LANE_TEXT_SIZE_MAX`] octets.
#[derive(Clone, Copy)]
pub enum HmacText<'a> {
    /// In one piece.
    Whole(&'a [u8]),
    /// One behind the other.
    Parts(&'a [&'a [u8]]),
}

impl HmacText<'_> {
    /// Octets of the text.
    #[inline(always)]
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            HmacText::Whole(octets) => octets.len(),
            HmacText::Parts(parts) => parts.iter().map(|part| part.len()).sum(),
        }
    }
}
