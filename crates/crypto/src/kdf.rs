//! SHA-256 and what ANTP builds on it: transcript hashes, HMAC tags, and HKDF.
//!
//! Everything takes its input in parts, so that a transcript need not be copied together. HMAC comes in batches too,
//! whose texts run side by side; hashes and HKDF are one call each.

mod batch;

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::verdict;
pub use batch::{HmacTag, HmacTagBatch, HmacVerify, HmacVerifyBatch};

/// Octets of a hash and of a tag.
pub const HASH_SIZE: usize = 32;

/// SHA-256 of `parts`, one behind the other. FIPS 180-4.
#[must_use]
pub fn sha256(parts: &[&[u8]]) -> [u8; HASH_SIZE] {
    let mut digest = Sha256::new();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().into()
}

/// SHA-1 of `parts`, one behind the other. It finds what was damaged, not what was forged: for formats that have it.
#[must_use]
pub fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut digest = Sha1::new();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().into()
}

/// HMAC-SHA256 of `parts`, one behind the other, untruncated. RFC 2104.
#[must_use]
pub fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; HASH_SIZE] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any size");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// Whether `tag` is the HMAC-SHA256 of `parts`; takes the same time whichever octet is wrong.
#[must_use]
pub fn verify_hmac_sha256(key: &[u8], parts: &[&[u8]], tag: &[u8; HASH_SIZE]) -> bool {
    verdict::of(hmac_sha256(key, parts).ct_eq(tag))
}

/// HKDF-SHA256 with `secret` as input, no salt, and `info` in parts. RFC 5869.
///
/// # Panics
/// If `N` is more than 8160, the most that HKDF-SHA256 gives.
#[must_use]
pub fn hkdf_sha256<const N: usize>(secret: &[u8], info: &[&[u8]]) -> [u8; N] {
    salted(None, secret, info)
}

/// The same with a salt, into which fresh randomness goes.
///
/// # Panics
/// As [`hkdf_sha256`].
#[must_use]
pub fn hkdf_sha256_salted<const N: usize>(salt: &[u8], secret: &[u8], info: &[&[u8]]) -> [u8; N] {
    salted(Some(salt), secret, info)
}

fn salted<const N: usize>(salt: Option<&[u8]>, secret: &[u8], info: &[&[u8]]) -> [u8; N] {
    let mut out = [0; N];
    Hkdf::<Sha256>::new(salt, secret).expand_multi_info(info, &mut out).expect("N is at most 8160");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use hex_literal::hex;

    #[test]
    fn vectors_of_rfc_5869_and_rfc_4231() {
        let (salt, info) = (hex!("000102030405060708090a0b0c"), hex!("f0f1f2f3f4f5f6f7f8f9"));
        assert_eq!(
            hkdf_sha256_salted::<42>(&salt, &[0x0b; 22], &[&info[..3], &info[3..]]),
            hex!("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"),
            "RFC 5869, appendix A.1"
        );
        assert_eq!(
            hkdf_sha256::<42>(&[0x0b; 22], &[]),
            hex!("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"),
            "RFC 5869, appendix A.3"
        );
        let tag = hex!("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        assert_eq!(
            hmac_sha256(b"Jefe", &[b"what do ya want ", b"for nothing?"]),
            tag,
            "RFC 4231, section 4.3"
        );
        assert!(verify_hmac_sha256(b"Jefe", &[b"what do ya want for nothing?"], &tag));
    }

    #[test]
    fn digests_that_have_read_a_key_are_overwritten_when_they_are_dropped() {
        // It compiles only if they are. HMAC, and so HKDF, keep their key in digests.
        fn is_overwritten(_: impl zeroize::ZeroizeOnDrop) {}
        is_overwritten(Sha256::new());
    }

    #[test]
    fn every_flipped_bit_of_a_tag_is_seen() {
        let tag = hmac_sha256(b"key", &[b"text"]);
        for bit in 0..256 {
            let mut wrong = tag;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!verify_hmac_sha256(b"key", &[b"text"], &wrong), "{bit}");
        }
    }

    #[test]
    fn parts_are_one_text() {
        assert_eq!(sha256(&[b"a", b"", b"bc"]), sha256(&[b"abc"]));
        assert_eq!(
            sha256(&[b"abc"]),
            hex!("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            "FIPS 180-4"
        );
    }
}
