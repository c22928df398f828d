//! AES-128-GMAC (NIST SP 800-38D): GCM of an empty text, with a kept key.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use zeroize::Zeroize;

use super::NONCE_SIZE;

/// Round keys, and powers of the hash subkey.
pub(super) struct Key {
    cipher: Aes128Enc,
    hash: GHash,
}

impl Key {
    pub(super) fn new(octets: &[u8; 16]) -> Self {
        let cipher = Aes128Enc::new(octets.into());
        let mut subkey = Block::default();
        cipher.encrypt_block(&mut subkey);
        let key = Key { cipher, hash: GHash::new(&subkey) };
        subkey.zeroize();
        key
    }

    /// The tag of a message. SP 800-38D section 7.1.
    #[inline]
    pub(super) fn tag(&self, nonce: &[u8; NONCE_SIZE], message: &[u8]) -> [u8; 16] {
        let mut mask = [0; 16];
        mask[..NONCE_SIZE].copy_from_slice(nonce);
        mask[15] = 1;
        let mut mask = Block::from(mask);
        self.cipher.encrypt_block(&mut mask);
        let mut hash = self.hash.clone();
        hash.update_padded(message);
        let bits = u128::from(8 * message.len() as u64) << 64;
        hash.update(&[bits.to_be_bytes().into()]);
        let sum = u128::from_ne_bytes(hash.finalize().into()) ^ u128::from_ne_bytes(mask.into());
        sum.to_ne_bytes()
    }
}
