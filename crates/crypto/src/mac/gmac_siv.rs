//! GMAC-SIV: AES-128-GCM-SIV (RFC 8452) of an empty text, with a kept key.
//!
//! What authenticates and encrypts is derived from key and nonce, so only the key that derives can be kept.

use aes::Aes128Enc;
use aes_gcm_siv::AesGcmSiv;
use aes_gcm_siv::aead::{AeadInOut, KeyInit};

use super::NONCE_SIZE;

/// Round keys of the key-generating key.
pub(super) struct Key(AesGcmSiv<Aes128Enc>);

impl Key {
    pub(super) fn new(octets: &[u8; 16]) -> Self {
        Key(AesGcmSiv::new(octets.into()))
    }

    /// The tag of a message. RFC 8452 section 4.
    #[inline]
    pub(super) fn tag(&self, nonce: &[u8; NONCE_SIZE], message: &[u8]) -> [u8; 16] {
        let sealed = self.0.encrypt_inout_detached(nonce.into(), message, (&mut [][..]).into());
        sealed.expect("a packet is shorter than 2^36 octets").into()
    }
}
