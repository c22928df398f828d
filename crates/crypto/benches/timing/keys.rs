//! Key pairs for the benches of key encapsulation, as files hold them.

use authentick_crypto::kem::Kem;
use aws_lc_rs::agreement::{self, ECDH_P256, X25519};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeySize, PrivateDecryptingKey};

/// PKCS#8 of P-256 up to the scalar, without the public key. RFC 5208, RFC 5915.
const P256_PKCS8: [u8; 35] = [
    0x30, 0x41, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06,
    0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x27, 0x30, 0x25, 0x02, 0x01, 0x01, 0x04,
    0x20,
];
/// RFC 5480 section 2, up to the point.
const P256_SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// RFC 8410 section 7, up to the key.
const X25519_PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x04, 0x22, 0x04, 0x20];
/// RFC 8410 section 4, up to the key.
const X25519_SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x03, 0x21, 0x00];

/// Both keys of a pair.
pub(crate) struct Pair {
    pub(crate) pkcs8: Vec<u8>,
    /// SubjectPublicKeyInfo.
    pub(crate) spki: Vec<u8>,
}

/// A fresh pair of RSA, of 2048 bits.
pub(crate) fn rsa() -> Pair {
    let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).expect("the system gives randomness");
    let pkcs8: Pkcs8V1Der<'_> = key.as_der().expect("a key can be written");
    let spki: PublicKeyX509Der<'_> = key.public_key().as_der().expect("a key can be written");
    Pair { pkcs8: pkcs8.as_ref().to_vec(), spki: spki.as_ref().to_vec() }
}

/// The pair of a scalar, whose first octet becomes zero, so that it is below the order of P-256.
pub(crate) fn ecdh(kem: Kem, mut scalar: [u8; 32]) -> (Pair, agreement::PrivateKey) {
    scalar[0] = 0;
    let (algorithm, pkcs8, spki): (_, &[u8], &[u8]) = match kem {
        Kem::P256 => (&ECDH_P256, &P256_PKCS8, &P256_SPKI),
        Kem::X25519 => (&X25519, &X25519_PKCS8, &X25519_SPKI),
        Kem::RsaPkcs1 | Kem::RsaOaep => unreachable!("RSA has no scalars"),
    };
    let own =
        agreement::PrivateKey::from_private_key(algorithm, &scalar).expect("the scalar is below the order");
    let public = own.compute_public_key().expect("a private key has a public one");
    let pair = Pair { pkcs8: [pkcs8, &scalar].concat(), spki: [spki, public.as_ref()].concat() };
    (pair, own)
}
