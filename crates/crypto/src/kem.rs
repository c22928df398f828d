//! Key encapsulation for ANTP: RSA-2048 key transport and static-ephemeral ECDH. The ANTP paper, section 4.1.
//!
//! A client encapsulates: it draws a secret, and gets a ciphertext for the server and a session key. The server
//! decapsulates the ciphertext to the same key. Private keys serve ANTP alone and are shared with no other protocol.
//!
//! RSA padding is judged in constant time, and a wrong one gives a key that only this server knows (implicit
//! rejection): who sends bad ciphertexts gets answers of one size and one time, whose tags never verify. Points off the
//! curve are refused, which tells nothing as their sender knows what he sent.

#[expect(unsafe_code, reason = "RSA without padding is in no safe interface")]
mod rsa;

use std::error::Error;
use std::fmt;

use arrayvec::ArrayVec;
use aws_lc_rs::agreement::{self, ECDH_P256, UnparsedPublicKey, X25519};
use aws_lc_rs::rsa::{OAEP_SHA256_MGF1SHA256, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::{Zeroize, Zeroizing};

use crate::Entropy;
use crate::kdf::{HASH_SIZE, hkdf_sha256, hmac_sha256, sha256};
use rsa::{MODULUS_SIZE, RsaKey};

/// Octets of a session key.
pub const SESSION_KEY_SIZE: usize = 16;
/// Most octets of a ciphertext.
pub const CIPHERTEXT_SIZE_MAX: usize = MODULUS_SIZE;

/// Octets of the secret that RSA transports.
const PMS_SIZE: usize = 16;
/// What keeps keys of ANTP apart from others.
const CONTEXT: &[u8] = b"ANTP";
/// Octets before an uncompressed P-256 point in a SubjectPublicKeyInfo. RFC 5480 section 2.
const P256_SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Octets before an X25519 key in a SubjectPublicKeyInfo. RFC 8410 section 4.
const X25519_SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x03, 0x21, 0x00];
/// Octets before an X25519 key in PKCS#8. RFC 8410 section 7.
const X25519_PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x04, 0x22, 0x04, 0x20];
/// The first octet of an uncompressed point. SEC 1 section 2.3.3.
const UNCOMPRESSED: u8 = 0x04;

/// A key encapsulation mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kem {
    /// RSA-2048 with PKCS#1 v1.5. The ANTP paper's first.
    RsaPkcs1,
    /// ECIES-KEM on P-256. The ANTP paper's second.
    P256,
    /// RSA-2048 with OAEP, SHA-256 in both places. RFC 8017 section 7.1.
    RsaOaep,
    /// X25519 in place of P-256. RFC 7748.
    X25519,
}

impl Kem {
    /// Every mechanism.
    pub const ALL: [Kem; 4] = [Kem::RsaPkcs1, Kem::P256, Kem::RsaOaep, Kem::X25519];

    /// Octets of a ciphertext.
    #[must_use]
    pub const fn ciphertext_size(self) -> usize {
        match self {
            Kem::RsaPkcs1 | Kem::RsaOaep => MODULUS_SIZE,
            Kem::P256 => 65,
            Kem::X25519 => 32,
        }
    }
}

impl fmt::Display for Kem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kem::RsaPkcs1 => "RSA-2048 PKCS#1 v1.5",
            Kem::P256 => "P-256 ECIES-KEM",
            Kem::RsaOaep => "RSA-2048 OAEP-SHA256",
            Kem::X25519 => "X25519",
        })
    }
}

/// A key that its mechanism cannot use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadKey {
    /// The mechanism.
    pub kem: Kem,
    /// Whether it was to be a private key.
    pub is_private: bool,
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = match self.kem {
            Kem::RsaPkcs1 | Kem::RsaOaep => "an RSA key of 2048 bits",
            Kem::P256 => "a key on the curve P-256",
            Kem::X25519 => "an X25519 key",
        };
        let form = if self.is_private { "PKCS#8" } else { "SubjectPublicKeyInfo" };
        write!(f, "{} needs {wanted} in {form} (DER)", self.kem)
    }
}

impl Error for BadKey {}

/// What both ends derive. Overwritten when dropped.
#[derive(Clone)]
pub struct SessionKey([u8; SESSION_KEY_SIZE]);

impl SessionKey {
    /// A key with known octets: out of sealed state, or a vector.
    #[must_use]
    pub const fn new(octets: [u8; SESSION_KEY_SIZE]) -> Self {
        SessionKey(octets)
    }

    /// The secret octets.
    #[must_use]
    pub const fn expose(&self) -> &[u8; SESSION_KEY_SIZE] {
        &self.0
    }

    /// The paper's KDF(secret, none, context, 128 bits): HKDF-SHA256 without salt. The reading is ours.
    fn derive(secret: &[u8], context: &[&[u8]]) -> Self {
        SessionKey(hkdf_sha256(secret, context))
    }
}

impl Drop for SessionKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl PartialEq for SessionKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SessionKey {}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey")
    }
}

/// What a client sends; [`Kem::ciphertext_size`] octets.
pub type Ciphertext = ArrayVec<u8, CIPHERTEXT_SIZE_MAX>;

/// A server's public key.
pub struct PublicKey(Public);

enum Public {
    RsaPkcs1(RsaKey),
    RsaOaep(RsaKey),
    P256([u8; 65]),
    X25519([u8; 32]),
}

impl PublicKey {
    /// Reads a SubjectPublicKeyInfo, as a certificate holds it.
    ///
    /// # Errors
    /// If it is not of the mechanism's kind and size, or its point is not on the curve.
    pub fn from_spki(kem: Kem, der: &[u8]) -> Result<Self, BadKey> {
        let public = match kem {
            Kem::RsaPkcs1 => RsaKey::from_spki(der).map(Public::RsaPkcs1),
            Kem::RsaOaep => RsaKey::from_spki(der).map(Public::RsaOaep),
            Kem::P256 => {
                der.strip_prefix(&P256_SPKI).and_then(|point| point.try_into().ok()).map(Public::P256)
            }
            Kem::X25519 => {
                der.strip_prefix(&X25519_SPKI).and_then(|key| key.try_into().ok()).map(Public::X25519)
            }
        };
        let key = PublicKey(public.ok_or(BadKey { kem, is_private: false })?);
        // A point off the curve fails here and not when a client is about to use it.
        match key.try_encapsulate(&mut Entropy::from_seed(0)) {
            Some(_) => Ok(key),
            None => Err(BadKey { kem, is_private: false }),
        }
    }

    /// The mechanism.
    #[must_use]
    pub const fn kem(&self) -> Kem {
        match self.0 {
            Public::RsaPkcs1(_) => Kem::RsaPkcs1,
            Public::RsaOaep(_) => Kem::RsaOaep,
            Public::P256(_) => Kem::P256,
            Public::X25519(_) => Kem::X25519,
        }
    }

    /// A fresh session key, and the ciphertext of it for the holder of the private key.
    pub fn encapsulate(&self, entropy: &mut Entropy) -> (Ciphertext, SessionKey) {
        self.try_encapsulate(entropy).expect("the key was used when it was read")
    }

    fn try_encapsulate(&self, entropy: &mut Entropy) -> Option<(Ciphertext, SessionKey)> {
        match &self.0 {
            Public::RsaPkcs1(key) => {
                let mut pms = Zeroizing::new(entropy.array::<PMS_SIZE>());
                let sealed = key.encrypt_raw(&pad_pkcs1(&pms, entropy))?;
                let session = SessionKey::derive(&pms[..], &[CONTEXT]);
                pms.zeroize();
                Some((sealed.into_iter().collect(), session))
            }
            Public::RsaOaep(key) => {
                let pms = Zeroizing::new(entropy.array::<PMS_SIZE>());
                let sealed = key.encrypt_raw(&pad_oaep(&pms, &entropy.array()))?;
                Some((sealed.into_iter().collect(), SessionKey::derive(&pms[..], &[CONTEXT])))
            }
            Public::P256(point) => ephemeral(&ECDH_P256, point, entropy),
            Public::X25519(point) => ephemeral(&X25519, point, entropy),
        }
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.kem())
    }
}

/// Draws r, and agrees with `peer` under it; `None` if that is no point of the curve.
fn ephemeral(
    algorithm: &'static agreement::Algorithm,
    peer: &[u8],
    entropy: &mut Entropy,
) -> Option<(Ciphertext, SessionKey)> {
    let own = loop {
        // Zero and what is not below the order of P-256 are drawn anew; that is one of 2^32 draws.
        let scalar = Zeroizing::new(entropy.array::<32>());
        if let Ok(own) = agreement::PrivateKey::from_private_key(algorithm, &scalar[..]) {
            break own;
        }
    };
    let sent: Ciphertext = own.compute_public_key().ok()?.as_ref().iter().copied().collect();
    let key = agree(&own, peer, &sent)?;
    Some((sent, key))
}

/// The session key of `own` and `peer`, bound to the ciphertext.
fn agree(own: &agreement::PrivateKey, peer: &[u8], ciphertext: &[u8]) -> Option<SessionKey> {
    let peer = UnparsedPublicKey::new(own.algorithm(), peer);
    agreement::agree(own, peer, (), |x| Ok(SessionKey::derive(x, &[CONTEXT, ciphertext]))).ok()
}

/// 00 02, octets that are not zero, 00, and the secret. RFC 8017 section 7.2.1.
fn pad_pkcs1(pms: &[u8; PMS_SIZE], entropy: &mut Entropy) -> Zeroizing<[u8; MODULUS_SIZE]> {
    let mut block = Zeroizing::new([0; MODULUS_SIZE]);
    block[1] = 2;
    for octet in &mut block[2..MODULUS_SIZE - PMS_SIZE - 1] {
        while *octet == 0 {
            *octet = entropy.array::<1>()[0];
        }
    }
    block[MODULUS_SIZE - PMS_SIZE..].copy_from_slice(pms);
    block
}

/// The secret of a padded block, and whether the padding is that of a secret of this size, in constant time.
fn unpad_pkcs1(block: &[u8; MODULUS_SIZE]) -> (&[u8; PMS_SIZE], Choice) {
    let (padding, pms) = block.split_last_chunk::<PMS_SIZE>().expect("a block is longer than a secret");
    let [zero, two, filler @ .., end] = padding else { unreachable!("a padding has hundreds of octets") };
    let no_zero = filler.iter().fold(Choice::from(1), |good, octet| good & !octet.ct_eq(&0));
    (pms, zero.ct_eq(&0) & two.ct_eq(&2) & no_zero & end.ct_eq(&0))
}

/// EME-OAEP without label. RFC 8017 section 7.1.1.
fn pad_oaep(pms: &[u8; PMS_SIZE], seed: &[u8; HASH_SIZE]) -> Zeroizing<[u8; MODULUS_SIZE]> {
    let mut block = Zeroizing::new([0; MODULUS_SIZE]);
    let (masked_seed, data) = block[1..].split_at_mut(HASH_SIZE);
    data[..HASH_SIZE].copy_from_slice(&sha256(&[]));
    let at = data.len() - PMS_SIZE;
    data[at - 1] = 1;
    data[at..].copy_from_slice(pms);
    mask(data, seed);
    masked_seed.copy_from_slice(seed);
    mask(masked_seed, data);
    block
}

/// Adds MGF1 of `seed`. RFC 8017 appendix B.2.1.
fn mask(octets: &mut [u8], seed: &[u8]) {
    for (number, chunk) in octets.chunks_mut(HASH_SIZE).enumerate() {
        let stream = sha256(&[seed, &(number as u32).to_be_bytes()]);
        chunk.iter_mut().zip(stream).for_each(|(octet, key)| *octet ^= key);
    }
}

/// A server's private key.
pub struct PrivateKey(Private);

enum Private {
    RsaPkcs1 { key: RsaKey, rejection: Zeroizing<[u8; HASH_SIZE]> },
    RsaOaep { key: OaepPrivateDecryptingKey, rejection: Zeroizing<[u8; HASH_SIZE]> },
    Ecdh { kem: Kem, key: agreement::PrivateKey },
}

impl PrivateKey {
    /// Reads a private key in PKCS#8.
    ///
    /// # Errors
    /// If it is not of the mechanism's kind and size.
    pub fn from_pkcs8(kem: Kem, der: &[u8]) -> Result<Self, BadKey> {
        // What a rejected ciphertext turns into follows from the private key, so that it needs no place of its own and
        // is the same after a restart.
        let rejection = || Zeroizing::new(hkdf_sha256(der, &[b"ANTP1 rejection\0"]));
        let private = match kem {
            Kem::RsaPkcs1 => {
                RsaKey::from_pkcs8(der).map(|key| Private::RsaPkcs1 { key, rejection: rejection() })
            }
            Kem::RsaOaep => PrivateDecryptingKey::from_pkcs8(der)
                .ok()
                .filter(|key| key.key_size_bytes() == MODULUS_SIZE)
                .and_then(|key| OaepPrivateDecryptingKey::new(key).ok())
                .map(|key| Private::RsaOaep { key, rejection: rejection() }),
            Kem::P256 => agreement::PrivateKey::from_private_key_der(&ECDH_P256, der)
                .ok()
                .map(|key| Private::Ecdh { kem, key }),
            Kem::X25519 => der
                .strip_prefix(&X25519_PKCS8)
                .and_then(|key| agreement::PrivateKey::from_private_key(&X25519, key).ok())
                .map(|key| Private::Ecdh { kem, key }),
        };
        private.map(PrivateKey).ok_or(BadKey { kem, is_private: true })
    }

    /// The mechanism.
    #[must_use]
    pub const fn kem(&self) -> Kem {
        match &self.0 {
            Private::RsaPkcs1 { .. } => Kem::RsaPkcs1,
            Private::RsaOaep { .. } => Kem::RsaOaep,
            Private::Ecdh { kem, .. } => *kem,
        }
    }

    /// The session key of a ciphertext.
    ///
    /// `None` for what everybody can see to be no ciphertext: a wrong size, a point that is not on the curve. A wrong
    /// padding gives a key that follows from private key and ciphertext, as a right one does.
    #[must_use]
    pub fn decapsulate(&self, ciphertext: &[u8]) -> Option<SessionKey> {
        match &self.0 {
            Private::RsaPkcs1 { key, rejection } => {
                let ciphertext = ciphertext.try_into().ok()?;
                let fallback = fallback(rejection, ciphertext);
                // What is not below the modulus decrypts to nothing; zeros are no padding.
                let block = key.decrypt_raw(ciphertext).unwrap_or_else(|| Zeroizing::new([0; MODULUS_SIZE]));
                let (pms, good) = unpad_pkcs1(&block);
                Some(choose(pms, &fallback, good))
            }
            Private::RsaOaep { key, rejection } => {
                let ciphertext: &[u8; MODULUS_SIZE] = ciphertext.try_into().ok()?;
                let fallback = fallback(rejection, ciphertext);
                let mut out = Zeroizing::new([0; MODULUS_SIZE]);
                let text = key.decrypt(&OAEP_SHA256_MGF1SHA256, ciphertext, &mut out[..], None);
                let pms: Option<&[u8; PMS_SIZE]> = text.ok().and_then(|text| (&*text).try_into().ok());
                let good = Choice::from(u8::from(pms.is_some()));
                Some(choose(pms.unwrap_or(&[0; PMS_SIZE]), &fallback, good))
            }
            //= antp#computations-2, antp#servers-9
            Private::Ecdh { kem, key } => {
                let is_form = match kem {
                    Kem::X25519 => true,
                    Kem::P256 | Kem::RsaPkcs1 | Kem::RsaOaep => ciphertext.first() == Some(&UNCOMPRESSED),
                };
                let is_sized = ciphertext.len() == kem.ciphertext_size();
                (is_form && is_sized).then(|| agree(key, ciphertext, ciphertext)).flatten()
            }
        }
    }

    /// Whether `public` belongs to this key: what is encapsulated for it opens here.
    #[must_use]
    pub fn pairs_with(&self, public: &PublicKey, entropy: &mut Entropy) -> bool {
        let (ciphertext, key) = public.encapsulate(entropy);
        public.kem() == self.kem() && self.decapsulate(&ciphertext) == Some(key)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({})", self.kem())
    }
}

/// What stands in for the secret of a ciphertext whose padding is wrong.
//= antp#servers-1
fn fallback(rejection: &[u8; HASH_SIZE], ciphertext: &[u8; MODULUS_SIZE]) -> Zeroizing<[u8; PMS_SIZE]> {
    let whole = Zeroizing::new(hmac_sha256(rejection, &[ciphertext]));
    Zeroizing::new(*whole.first_chunk().expect("a hash is longer than a secret"))
}

//= antp#servers-1
fn choose(pms: &[u8; PMS_SIZE], fallback: &[u8; PMS_SIZE], good: Choice) -> SessionKey {
    let mut secret = Zeroizing::new(*pms);
    for (octet, other) in secret.iter_mut().zip(fallback) {
        octet.conditional_assign(other, !good);
    }
    SessionKey::derive(&secret[..], &[CONTEXT])
}

#[cfg(test)]
mod tests;
