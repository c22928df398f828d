//! Hashes of what was said, and the tags over them. Each begins with a label of its own, so that none can stand for
//! another.

use arrayvec::ArrayVec;
use authentick_crypto::kdf::{
    HmacTag, HmacTagBatch, HmacVerify, HmacVerifyBatch, hmac_sha256, sha256, verify_hmac_sha256,
};
use authentick_crypto::kem::SessionKey;
use authentick_wire::antp::{HASH_SIZE, TAG_SIZE};

use crate::limits::GROUP_SIZE;

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

/// What tau2 is over: the whole datagram of m5 and that of m6 before the tag.
#[derive(Clone, Copy, Debug)]
pub struct TimeText<'a> {
    request: &'a [u8],
    response_head: &'a [u8],
    sizes: [[u8; 2]; 2],
}

impl<'a> TimeText<'a> {
    /// The text of a request and its response before the tag.
    ///
    /// # Panics
    /// If one of them has 2^16 octets or more, which no datagram has.
    #[must_use]
    pub fn new(request: &'a [u8], response_head: &'a [u8]) -> Self {
        TimeText { request, response_head, sizes: [size(request), size(response_head)] }
    }

    fn parts(&self) -> [&[u8]; 5] {
        [TIME, &self.sizes[0], self.request, &self.sizes[1], self.response_head]
    }
}

/// tau2: proof of the key over the whole datagram of m5 and that of m6 before the tag.
#[must_use]
pub fn time(key: &SessionKey, request: &[u8], response_head: &[u8]) -> [u8; TAG_SIZE] {
    hmac_sha256(key.expose(), &TimeText::new(request, response_head).parts())
}

/// Whether `tag` is tau2, in constant time.
#[must_use]
pub fn is_time(key: &SessionKey, request: &[u8], response_head: &[u8], tag: &[u8; TAG_SIZE]) -> bool {
    verify_hmac_sha256(key.expose(), &TimeText::new(request, response_head).parts(), tag)
}

/// Writes the tau2 of up to [`GROUP_SIZE`] texts, side by side.
pub fn time_group(jobs: ArrayVec<(&SessionKey, TimeText<'_>, &mut [u8; TAG_SIZE]), GROUP_SIZE>) {
    let texts: ArrayVec<TimeText<'_>, GROUP_SIZE> = jobs.iter().map(|(_, text, _)| *text).collect();
    let parts: ArrayVec<[&[u8]; 5], GROUP_SIZE> = texts.iter().map(TimeText::parts).collect();
    let mut batch = HmacTagBatch::new();
    for ((key, _, tag), parts) in jobs.into_iter().zip(&parts) {
        batch.push(HmacTag { key: key.expose(), parts, tag });
    }
    batch.run();
}

/// Sets for each of up to [`GROUP_SIZE`] claims whether its tag is tau2, side by side and in constant time.
pub fn is_time_group(claims: ArrayVec<(&SessionKey, TimeText<'_>, &[u8; TAG_SIZE], &mut bool), GROUP_SIZE>) {
    let texts: ArrayVec<TimeText<'_>, GROUP_SIZE> = claims.iter().map(|(_, text, _, _)| *text).collect();
    let parts: ArrayVec<[&[u8]; 5], GROUP_SIZE> = texts.iter().map(TimeText::parts).collect();
    let mut batch = HmacVerifyBatch::new();
    for ((key, _, tag, genuine), parts) in claims.into_iter().zip(&parts) {
        batch.push(HmacVerify { key: key.expose(), parts, tag, genuine });
    }
    batch.run();
}

/// What keeps one part from running into the next.
fn size(octets: &[u8]) -> [u8; 2] {
    u16::try_from(octets.len()).expect("a datagram is shorter than 2^16 octets").to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_gives_the_tags_of_its_texts_and_finds_the_one_that_is_wrong() {
        for count in 0..=GROUP_SIZE {
            let keys: Vec<SessionKey> = (0..count).map(|index| SessionKey::new([index as u8; 16])).collect();
            let octets: Vec<Vec<u8>> =
                (0..2 * count).map(|index| vec![index as u8; 40 + index * 7]).collect();
            let texts = || octets.chunks(2).map(|pair| TimeText::new(&pair[0], &pair[1]));
            let mut tags = vec![[0; TAG_SIZE]; count];
            let jobs = keys.iter().zip(texts()).zip(&mut tags);
            time_group(jobs.map(|((key, text), tag)| (key, text, tag)).collect());
            for ((key, pair), tag) in keys.iter().zip(octets.chunks(2)).zip(&tags) {
                assert_eq!(*tag, time(key, &pair[0], &pair[1]));
                assert!(is_time(key, &pair[0], &pair[1], tag));
            }
            for wrong in 0..count {
                let mut claimed = tags.clone();
                claimed[wrong][31 - wrong] ^= 0x80;
                let mut genuine = vec![false; count];
                let claims = keys.iter().zip(texts()).zip(&claimed).zip(&mut genuine);
                is_time_group(
                    claims.map(|(((key, text), tag), genuine)| (key, text, tag, genuine)).collect(),
                );
                let expected: Vec<bool> = (0..count).map(|index| index != wrong).collect();
                assert_eq!(genuine, expected, "{wrong} of {count}");
            }
        }
    }
}
