//! aws-lc's AES-128-GCM-SIV of an empty text: GMAC-SIV, which OpenSSL 3.0 lacks.

use std::hint::black_box;

use authentick_crypto::mac::MacAlgorithm;
use authentick_report::mac::{Algorithm, Implementation, KeyUse};
use aws_lc_rs::aead::{AES_128_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};

use super::subject::{KEY, NONCE_SIZE, Subject, nonce, packet_work};

/// The only algorithm that is measured here.
pub(super) const ALGORITHM: MacAlgorithm = MacAlgorithm::GmacSiv128;

fn key() -> LessSafeKey {
    let key =
        UnboundKey::new(&AES_128_GCM_SIV, black_box(&KEY[..16])).expect("a key of AES-128 has 16 octets");
    LessSafeKey::new(key)
}

fn tag(key: &LessSafeKey, nonce: [u8; NONCE_SIZE], message: &[u8]) -> impl AsRef<[u8]> {
    let nonce = Nonce::assume_unique_for_key(nonce);
    let sealed = key.seal_in_place_separate_tag(nonce, Aad::from(message), &mut []);
    sealed.expect("an empty text is never too long")
}

/// A tag for comparison.
pub(super) fn single(nonce: &[u8; NONCE_SIZE], message: &[u8]) -> Vec<u8> {
    tag(&key(), *nonce, message).as_ref().to_vec()
}

/// With a kept key, and with one that is set up for each packet.
pub(super) fn subjects() -> Vec<Subject> {
    let kept_key = key();
    let kept = packet_work(move |number, packet| {
        black_box(tag(&kept_key, nonce(number), packet));
    });
    let set_up = packet_work(|number, packet| {
        black_box(tag(&key(), nonce(number), packet));
    });
    let subject = |(key, work)| Subject::single(Algorithm::GmacSiv128, Implementation::AwsLc, key, work);
    [(KeyUse::Kept, kept), (KeyUse::SetUp, set_up)].map(subject).into()
}
