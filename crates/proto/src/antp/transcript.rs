//! Hashes of what was said, and the tags over them. Each begins with a label of its own, so that none can stand for
//! another.

use authentick_crypto::kdf::{hmac_sha256, sha256, verify_hmac_sha256};
use authentick_crypto::kem::SessionKey;
use authentick_wire::antp::{HASH_SIZE, TAG_SIZE};

const NEGOTIATION: &[u8] = b"ANTP1 neg\0";
const KEY_EXCHANGE: &[u8] = b"ANTP1 h2\0";
const CONFIRMATION: &[u8] = b"ANTP1 kex\0";
const TIME: &[u8] = b"ANTP1 ts\0";

/// h1: the field of m1 as it was sent, and the value of m2 before C1 and its size.
#[must_use]
pub fn negotiation(request_field: &[u8], response_head: &[u8]) -> [u8; HASH_SIZE] {
    sha256(&[NEGOTIATION, request_field, response_head])
}

/// h2: h1, the field of m3 as it was sent, and the value of m4 before tau1.
#[must_use]
pub fn key_exchange(h1: &[u8; HASH_SIZE], request_field: &[u8], response_head: &[u8]) -> [u8; HASH_SIZE] {
    sha256(&[KEY_EXCHANGE, h1, request_field, response_head])
}

/// tau1: proof of the key over h2.
#[must_use]
pub fn confirmation(key: &SessionKey, h2: &[u8; HASH_SIZE]) -> [u8; TAG_SIZE] {
    hmac_sha256(key.expose(), &[CONFIRMATION, h2])
}

/// Whether `tag` is tau1, in constant time.
#[must_use]
pub fn is_confirmed(key: &SessionKey, h2: &[u8; HASH_SIZE], tag: &[u8; TAG_SIZE]) -> bool {
    verify_hmac_sha256(key.expose(), &[CONFIRMATION, h2], tag)
}

/// tau2: proof of the key over the whole datagram of m5 and that of m6 before the tag.
#[must_use]
pub fn time(key: &SessionKey, request: &[u8], response_head: &[u8]) -> [u8; TAG_SIZE] {
    let sizes = [size(request), size(response_head)];
    hmac_sha256(key.expose(), &[TIME, &sizes[0], request, &sizes[1], response_head])
}

/// Whether `tag` is tau2, in constant time.
#[must_use]
pub fn is_time(key: &SessionKey, request: &[u8], response_head: &[u8], tag: &[u8; TAG_SIZE]) -> bool {
    let sizes = [size(request), size(response_head)];
    verify_hmac_sha256(key.expose(), &[TIME, &sizes[0], request, &sizes[1], response_head], tag)
}

/// What keeps one part from running into the next.
fn size(octets: &[u8]) -> [u8; 2] {
    u16::try_from(octets.len()).expect("a datagram is shorter than 2^16 octets").to_be_bytes()
}
