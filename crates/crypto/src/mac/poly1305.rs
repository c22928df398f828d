//! Poly1305 under one-time keys from ChaCha20. RFC 8439 sections 2.5 and 2.6.

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use poly1305::Poly1305;
use poly1305::universal_hash::KeyInit;
use zeroize::Zeroizing;

use super::NONCE_SIZE;

/// The key of ChaCha20, which needs no expansion.
pub(super) struct Key(Zeroizing<[u8; 32]>);

impl Key {
    pub(super) fn new(octets: &[u8; 32]) -> Self {
        Key(Zeroizing::new(*octets))
    }

    /// The one-time key of a nonce: the first half of ChaCha20's block number zero. Section 2.6.
    #[inline]
    pub(super) fn one_time(&self, nonce: &[u8; NONCE_SIZE]) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        ChaCha20::new((&*self.0).into(), nonce.into()).apply_keystream(&mut *key);
        key
    }

    /// The tag of a message. Section 2.5.
    #[inline]
    pub(super) fn tag(&self, nonce: &[u8; NONCE_SIZE], message: &[u8]) -> [u8; 16] {
        authenticate(&self.one_time(nonce), message)
    }
}

/// Poly1305 under a key that is used once. Section 2.5.
#[inline]
pub(super) fn authenticate(one_time: &[u8; 32], message: &[u8]) -> [u8; 16] {
    Poly1305::new(one_time.into()).compute_unpadded(message).into()
}
