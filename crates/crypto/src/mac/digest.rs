//! Digests that have read a key, and the keyed digests of RFC 5905 section 7.3: the digest of key and packet, one
//! behind the other.
//!
//! The crates of the digests give the compression functions. What is around them (RFC 1321 section 3, FIPS 180-4
//! section 5) is written here, as a packet is two blocks: buffers that any text could be fed to in pieces, and that
//! overwrite themselves octet by octet, are a tenth of its time.
//!
//! A keyed digest is no MAC by today's measure: who knows a tag of MD5, SHA-1, SHA-256 or SHA-512 can go on where the
//! digest stopped. Truncation, as to 20 octets in NTPv4, prevents it.

use std::slice::from_ref;

use zeroize::{Zeroize, optimization_barrier};

use super::MAC_TAG_SIZE_MAX;

/// A digest that chains a compression function over blocks.
pub(super) trait Digest {
    /// What is chained.
    type State: Copy + Zeroize;
    /// Octets that are compressed together.
    type Block: Copy + AsRef<[u8]> + AsMut<[u8]>;
    /// The state before the first block.
    const START: Self::State;
    /// A block of zeros.
    const EMPTY: Self::Block;
    /// Octets of the digest.
    const SIZE: usize;

    fn compress(state: &mut Self::State, blocks: &[Self::Block]);

    /// Whole blocks, and what follows them.
    fn split(octets: &[u8]) -> (&[Self::Block], &[u8]);

    /// Writes the number of octets that were read to the end of the last block.
    fn put_count(block: &mut Self::Block, count: u64);

    /// Writes the digest to the first octets of `out`.
    fn emit(state: &Self::State, out: &mut [u8; MAC_TAG_SIZE_MAX]);
}

macro_rules! digest {
    ($name:ident, $block:literal, $words:ty, $size:literal, $compress:path, $octets:ident, $start:expr) => {
        pub(super) struct $name;

        impl Digest for $name {
            type State = $words;
            type Block = [u8; $block];
            const START: Self::State = $start;
            const EMPTY: Self::Block = [0; $block];
            const SIZE: usize = $size;

            #[inline]
            fn compress(state: &mut Self::State, blocks: &[Self::Block]) {
                $compress(state, blocks);
            }

            #[inline]
            fn split(octets: &[u8]) -> (&[Self::Block], &[u8]) {
                octets.as_chunks()
            }

            #[inline]
            fn put_count(block: &mut Self::Block, count: u64) {
                // The count of SHA-384 and SHA-512 has 128 bits; the upper half of a packet's is zero.
                *block.last_chunk_mut().expect("a block is longer than a count") = (8 * count).$octets();
            }

            #[inline]
            fn emit(state: &Self::State, out: &mut [u8; MAC_TAG_SIZE_MAX]) {
                let places = out[..$size].chunks_exact_mut(size_of_val(&state[0]));
                places.zip(state).for_each(|(place, word)| place.copy_from_slice(&word.$octets()));
            }
        }
    };
}

digest!(
    Md5,
    64,
    [u32; 4],
    16,
    super::md5::compress,
    to_le_bytes,
    [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476]
);
digest!(
    Sha1,
    64,
    [u32; 5],
    20,
    sha1::block_api::compress,
    to_be_bytes,
    [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0]
);
digest!(
    Sha224,
    64,
    [u32; 8],
    28,
    sha2::block_api::compress256,
    to_be_bytes,
    [0xc105_9ed8, 0x367c_d507, 0x3070_dd17, 0xf70e_5939, 0xffc0_0b31, 0x6858_1511, 0x64f9_8fa7, 0xbefa_4fa4]
);
digest!(
    Sha256,
    64,
    [u32; 8],
    32,
    sha2::block_api::compress256,
    to_be_bytes,
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19]
);
digest!(
    Sha384,
    128,
    [u64; 8],
    48,
    authentick_lanes::compress_sha512,
    to_be_bytes,
    [
        0xcbbb_9d5d_c105_9ed8,
        0x629a_292a_367c_d507,
        0x9159_015a_3070_dd17,
        0x152f_ecd8_f70e_5939,
        0x6733_2667_ffc0_0b31,
        0x8eb4_4a87_6858_1511,
        0xdb0c_2e0d_64f9_8fa7,
        0x47b5_481d_befa_4fa4
    ]
);
digest!(
    Sha512,
    128,
    [u64; 8],
    64,
    authentick_lanes::compress_sha512,
    to_be_bytes,
    [
        0x6a09_e667_f3bc_c908,
        0xbb67_ae85_84ca_a73b,
        0x3c6e_f372_fe94_f82b,
        0xa54f_f53a_5f1d_36f1,
        0x510e_527f_ade6_82d1,
        0x9b05_688c_2b3e_6c1f,
        0x1f83_d9ab_fb41_bd6b,
        0x5be0_cd19_137e_2179
    ]
);

/// A digest that has read something secret, from which any number of texts go on.
pub(super) struct Key<D: Digest> {
    /// After all whole blocks.
    state: D::State,
    /// What is read and not compressed, with zeros behind.
    rest: D::Block,
    rest_size: usize,
    /// Octets that were read.
    count: u64,
}

impl<D: Digest> Key<D> {
    /// A digest that has read `octets`.
    pub(super) fn new(octets: &[u8]) -> Self {
        let (mut state, mut rest) = (D::START, D::EMPTY);
        let (blocks, remainder) = D::split(octets);
        D::compress(&mut state, blocks);
        rest.as_mut()[..remainder.len()].copy_from_slice(remainder);
        Key { state, rest, rest_size: remainder.len(), count: octets.len() as u64 }
    }

    /// The state, after whole blocks and nothing behind them.
    pub(super) fn state(&self) -> &D::State {
        debug_assert_eq!(self.rest_size, 0, "only whole blocks were read");
        &self.state
    }

    /// Writes the digest of what was read and `message` to the first octets of `out`.
    #[inline]
    pub(super) fn tag(&self, message: &[u8], out: &mut [u8; MAC_TAG_SIZE_MAX]) {
        let (mut state, mut block) = (self.state, self.rest);
        let (mut at, mut message) = (self.rest_size, message);
        let count = self.count + message.len() as u64;
        if let Some((head, tail)) = message.split_at_checked(block.as_ref().len() - at) {
            block.as_mut()[at..].copy_from_slice(head);
            D::compress(&mut state, from_ref(&block));
            let (blocks, remainder) = D::split(tail);
            if !blocks.is_empty() {
                D::compress(&mut state, blocks);
            }
            (block, at, message) = (D::EMPTY, 0, remainder);
        }
        block.as_mut()[at..at + message.len()].copy_from_slice(message);
        at += message.len();
        block.as_mut()[at] = 0x80;
        // Behind the bit that ends the text there is room for a count of an eighth of a block, or there is not.
        if at >= block.as_ref().len() / 8 * 7 {
            D::compress(&mut state, from_ref(&block));
            block = D::EMPTY;
        }
        D::put_count(&mut block, count);
        D::compress(&mut state, from_ref(&block));
        D::emit(&state, out);
        // A block may have held the key.
        block = D::EMPTY;
        optimization_barrier(&block);
    }
}

impl<D: Digest> Drop for Key<D> {
    fn drop(&mut self) {
        self.state.zeroize();
        self.rest.as_mut().zeroize();
    }
}
