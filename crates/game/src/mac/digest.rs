//! Digests that can be taken up again where a tag left them: MD5, SHA-1, SHA-256 and SHA-512.
//!
//! All are chains of a compression function, and the untruncated output is the chain's whole state. RFC 1321,
//! FIPS 180-4. SHA-224 and SHA-384 are absent: they keep a part of their state to themselves.

use authentick_crypto::mac::MacAlgorithm;
use serde::Serialize;

/// A digest whose output is its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Digest {
    /// MD5, of which RFC 5905 makes its MAC.
    #[serde(rename = "MD5")]
    Md5,
    /// SHA-1.
    #[serde(rename = "SHA1")]
    Sha1,
    /// SHA-256.
    #[serde(rename = "SHA256")]
    Sha256,
    /// SHA-512.
    #[serde(rename = "SHA512")]
    Sha512,
}

impl Digest {
    /// Every digest.
    pub const ALL: [Digest; 4] = [Digest::Md5, Digest::Sha1, Digest::Sha256, Digest::Sha512];

    /// The keyed digest of RFC 5905 that is made of it.
    #[must_use]
    pub const fn keyed(self) -> MacAlgorithm {
        match self {
            Digest::Md5 => MacAlgorithm::Md5,
            Digest::Sha1 => MacAlgorithm::Sha1,
            Digest::Sha256 => MacAlgorithm::Sha256,
            Digest::Sha512 => MacAlgorithm::Sha512,
        }
    }

    /// Octets of a block.
    const fn block_size(self) -> usize {
        match self {
            Digest::Md5 | Digest::Sha1 | Digest::Sha256 => 64,
            Digest::Sha512 => 128,
        }
    }

    /// Octets of the length at the end of the padding.
    const fn length_size(self) -> usize {
        self.block_size() / 8
    }

    /// The padding of a text of `size` octets: 0x80, zeros up to the length, and the length in bits.
    #[must_use]
    pub fn padding(self, size: usize) -> Vec<u8> {
        let whole = (size + 1 + self.length_size()).next_multiple_of(self.block_size());
        let mut padding = vec![0; whole - size];
        padding[0] = 0x80;
        let bits = 8 * size as u128;
        let at = padding.len() - self.length_size();
        match self {
            Digest::Md5 => padding[at..].copy_from_slice(&bits.to_le_bytes()[..8]),
            Digest::Sha1 | Digest::Sha256 | Digest::Sha512 => {
                padding[at..].copy_from_slice(&bits.to_be_bytes()[16 - self.length_size()..]);
            }
        }
        padding
    }

    /// The digest of text, padding and `suffix`, where `digest` is that of the text and `before` the octets of text and
    /// padding. A `digest` that is too short is filled up with zeros, one that is too long is cut off.
    ///
    /// # Panics
    /// If `before` is not a whole number of blocks.
    #[must_use]
    pub fn resume(self, digest: &[u8], before: usize, suffix: &[u8]) -> Vec<u8> {
        assert!(before.is_multiple_of(self.block_size()), "padding ends with a block");
        let rest = [suffix, &self.padding(before + suffix.len())].concat();
        let mut octets = [0; 64];
        let known = digest.len().min(octets.len());
        octets[..known].copy_from_slice(&digest[..known]);
        match self {
            Digest::Md5 => {
                go_on(&octets, &rest, u32::from_le_bytes, md5::block_api::compress, u32::to_le_bytes)
            }
            Digest::Sha1 => {
                go_on(&octets, &rest, u32::from_be_bytes, sha1::block_api::compress, u32::to_be_bytes)
            }
            Digest::Sha256 => {
                go_on(&octets, &rest, u32::from_be_bytes, sha2::block_api::compress256, u32::to_be_bytes)
            }
            Digest::Sha512 => {
                go_on(&octets, &rest, u64::from_be_bytes, sha2::block_api::compress512, u64::to_be_bytes)
            }
        }
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.keyed().name())
    }
}

/// Takes the first `N` words of `octets` for a state, goes on from it with the blocks of `rest`, and writes it down.
fn go_on<W: Copy + Default, const S: usize, const N: usize, const B: usize>(
    octets: &[u8; 64],
    rest: &[u8],
    read: fn([u8; S]) -> W,
    compress: fn(&mut [W; N], &[[u8; B]]),
    write: fn(W) -> [u8; S],
) -> Vec<u8> {
    let mut state = [W::default(); N];
    for (word, octets) in state.iter_mut().zip(octets.as_chunks().0) {
        *word = read(*octets);
    }
    compress(&mut state, rest.as_chunks().0);
    state.map(write).concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::Digest as _;

    fn whole(digest: Digest, text: &[u8]) -> Vec<u8> {
        match digest {
            Digest::Md5 => md5::Md5::digest(text).to_vec(),
            Digest::Sha1 => sha1::Sha1::digest(text).to_vec(),
            Digest::Sha256 => sha2::Sha256::digest(text).to_vec(),
            Digest::Sha512 => sha2::Sha512::digest(text).to_vec(),
        }
    }

    /// Compared with the library's digest of the whole text, for every place of the padding in its block.
    #[test]
    fn digest_goes_on_where_it_stopped() {
        for digest in Digest::ALL {
            for size in 0..=260 {
                let mut text = vec![7; size];
                let stopped = whole(digest, &text);
                text.extend(digest.padding(size));
                let resumed = digest.resume(&stopped, text.len(), b"and more");
                text.extend(b"and more");
                assert_eq!(resumed, whole(digest, &text), "{digest} {size}");
            }
        }
    }

    #[test]
    fn padding_ends_a_block_and_says_how_long_the_text_is() {
        for size in 0..300 {
            let padding = Digest::Md5.padding(size);
            assert!((size + padding.len()).is_multiple_of(64) && padding.len() <= 72);
            assert_eq!(padding[padding.len() - 8..], (8 * size as u64).to_le_bytes());
            assert_eq!(Digest::Sha512.padding(size).last(), Some(&(8 * size).to_le_bytes()[0]));
        }
    }
}
