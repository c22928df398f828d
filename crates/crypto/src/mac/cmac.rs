//! AES-CMAC (RFC 4493) with a kept key.
//!
//! The crate `cmac` derives a subkey anew for each message, which is one block more than the three of an NTP packet;
//! this module keeps it, and is compared with that crate in tests.

use aes::Block;
use aes::cipher::array::typenum::U16;
use aes::cipher::{BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, KeyInit};
use zeroize::Zeroize;

/// An expanded key and the masks of last blocks.
pub(super) struct Key<C> {
    cipher: C,
    /// K1, for a last block that is whole.
    whole: Block,
    /// K2, for one that is padded.
    padded: Block,
}

impl<C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16> + KeyInit> Key<C> {
    /// Expands a key. Section 2.3.
    pub(super) fn new(octets: &aes::cipher::Key<C>) -> Self {
        let cipher = C::new(octets);
        let mut zero = Block::default();
        cipher.encrypt_block(&mut zero);
        let whole = double(zero.into());
        let key = Key { cipher, whole: whole.into(), padded: double(whole).into() };
        zero.zeroize();
        key
    }

    /// The CMAC of a message. Section 2.4.
    #[inline]
    pub(super) fn tag(&self, message: &[u8]) -> [u8; 16] {
        let (blocks, last) = split(message);
        let mut masked = if last.len() == 16 { self.whole } else { self.padded };
        masked.iter_mut().zip(last).for_each(|(octet, message)| *octet ^= message);
        if let Some(octet) = masked.get_mut(last.len()) {
            *octet ^= 0x80;
        }
        let mut state = Block::default();
        self.cipher.encrypt_with_backend(Chain { blocks, last: masked, state: &mut state });
        state.into()
    }
}

impl<C> Drop for Key<C> {
    fn drop(&mut self) {
        self.whole.zeroize();
        self.padded.zeroize();
    }
}

/// All blocks but the last one, and that, which may be empty or less than a block.
#[inline]
fn split(message: &[u8]) -> (&[[u8; 16]], &[u8]) {
    match message.as_chunks() {
        ([blocks @ .., last], []) => (blocks, last),
        (blocks, last) => (blocks, last),
    }
}

/// Multiplication by x in GF(2^128). Section 2.3.
fn double(block: [u8; 16]) -> [u8; 16] {
    let number = u128::from_be_bytes(block);
    let carry = 0u128.wrapping_sub(number >> 127);
    (number << 1 ^ carry & 0x87).to_be_bytes()
}

/// The chain of a message, inside the functions that have the instructions.
struct Chain<'a> {
    blocks: &'a [[u8; 16]],
    /// The last block, padded and masked.
    last: Block,
    /// Zero, then the tag.
    state: &'a mut Block,
}

impl BlockSizeUser for Chain<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Chain<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        for block in self.blocks.iter().chain([self.last.as_ref()]) {
            let sum = u128::from_ne_bytes(*block) ^ u128::from_ne_bytes((*self.state).into());
            *self.state = sum.to_ne_bytes().into();
            backend.encrypt_block(self.state.into());
        }
    }
}
