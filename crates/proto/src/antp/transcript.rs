//! Hashes of what was said, and the tags over them. Each begins with a label of its own, so that none can stand for
//! another.

use arrayvec::ArrayVec;
use authentick_crypto::kdf::{
    HmacTag, HmacTagBatch, HmacVerify, HmacVerifyBatch, hmac_sha256, sha256, verify_hmac_sha256,
};
use authentick_crypto::kem::SessionKey;
use authentick_wire::antp::{HASH_SIZE, TAG_SIZE};

use crate::limits::GROUP_SIZE;
use crate::mutant::{Place, is_out};

const NEGOTIATION: &[u8] = b"ANTP1 neg\0";
const KEY_EXCHANGE: &[u8] = b"ANTP1 h2\0";
const CONFIRMATION: &[u8] = b"ANTP1 kex\0";
const TIME: &[u8; 9] = b"ANTP1 ts\0";

/// The label of a tag.
fn label(label: &[u8]) -> &[u8] {
    if is_out(Place::Label) { &[] } else { label }
}

/// h1: the field of m1 as it was sent, and the value of m2 before C1 and its size.
//= antp#computations-1
#[must_use]
pub fn negotiation(request_field: &[u8], response_head: &[u8]) -> [u8; HASH_SIZE] {
    sha256(&[NEGOTIATION, request_field, response_head])
}

/// h2: h1, the field of m3 as it was sent, and the value of m4 before tau1.
//= antp#computations-1
#[must_use]
pub fn key_exchange(h1: &[u8; HASH_SIZE], request_field: &[u8], response_head: &[u8]) -> [u8; HASH_SIZE] {
    let h1: &[u8] = if is_out(Place::TranscriptOfNegotiation) { &[] } else { h1 };
    sha256(&[KEY_EXCHANGE, h1, request_field, response_head])
}

/// tau1: proof of the key over h2.
//= antp#computations-1
#[must_use]
pub fn confirmation(key: &SessionKey, h2: &[u8; HASH_SIZE]) -> [u8; TAG_SIZE] {
    hmac_sha256(key.expose(), &[label(CONFIRMATION), h2])
}

/// Whether `tag` is tau1, in constant time.
#[must_use]
pub fn is_confirmed(key: &SessionKey, h2: &[u8; HASH_SIZE], tag: &[u8; TAG_SIZE]) -> bool {
    verify_hmac_sha256(key.expose(), &[label(CONFIRMATION), h2], tag)
}

/// What tau2 is over: the whole datagram of m5 and that of m6 before the tag.
#[derive(Clone, Copy)]
struct TimeText<'a> {
    /// The label, and the size of the request.
    opening: [u8; TIME.len() + 2],
    request: &'a [u8],
    response_size: [u8; 2],
    response_head: &'a [u8],
}

impl<'a> TimeText<'a> {
    fn new(request: &'a [u8], response_head: &'a [u8]) -> Self {
        let request = if is_out(Place::RequestUnderTag) { &[] } else { request };
        let mut opening = [0; _];
        let (label, request_size) = opening.split_at_mut(TIME.len());
        if !is_out(Place::Label) {
            label.copy_from_slice(TIME);
        }
        request_size.copy_from_slice(&size(request));
        TimeText { opening, request, response_size: size(response_head), response_head }
    }

    //= antp#computations-1
    fn parts(&self) -> [&[u8]; 4] {
        [&self.opening, self.request, &self.response_size, self.response_head]
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

/// One tau2 to compute.
#[derive(Debug)]
pub struct TimeTag<'a> {
    /// The session key.
    pub key: &'a SessionKey,
    /// The whole datagram of m5.
    pub request: &'a [u8],
    /// The whole datagram of m6, whose last octets become the tag.
    pub response: &'a mut [u8],
}

/// Computes up to [`GROUP_SIZE`] tau2 side by side. What is shorter than a tag stays as it is.
///
/// # Panics
/// If there are more.
pub fn tag_times<'a>(jobs: impl Iterator<Item = TimeTag<'a>>) {
    // Filled where they stay: what a function returns is copied once more.
    let (mut texts, mut tags) = (ArrayVec::<_, GROUP_SIZE>::new(), ArrayVec::<_, GROUP_SIZE>::new());
    for TimeTag { key, request, response } in jobs {
        if let Some((head, tag)) = response.split_last_chunk_mut::<TAG_SIZE>() {
            texts.push((key, TimeText::new(request, head)));
            tags.push(tag);
        }
    }
    let mut parts = ArrayVec::<_, GROUP_SIZE>::new();
    texts.iter().for_each(|(_, text)| parts.push(text.parts()));
    let mut batch = HmacTagBatch::new();
    for (((key, _), parts), tag) in texts.iter().zip(&parts).zip(&mut tags) {
        batch.push(HmacTag { key: key.expose(), parts, tag });
    }
    batch.run();
}

/// A tau2 that came, and what it is to be over.
#[derive(Debug)]
pub struct TimeClaim<'a> {
    /// The session key.
    pub key: &'a SessionKey,
    /// The whole datagram of m5.
    pub request: &'a [u8],
    /// The datagram of m6 before the tag.
    pub response_head: &'a [u8],
    /// The tag of m6.
    pub tag: &'a [u8; TAG_SIZE],
    /// Out: whether it is tau2.
    pub genuine: &'a mut bool,
}

/// Verifies any number of tau2, side by side where there are many, and sets the `genuine` of each; in constant time.
pub fn verify_times(claims: &mut [TimeClaim<'_>]) {
    for claims in claims.chunks_mut(GROUP_SIZE) {
        let texts: ArrayVec<TimeText<'_>, GROUP_SIZE> =
            claims.iter().map(|claim| TimeText::new(claim.request, claim.response_head)).collect();
        let parts: ArrayVec<[&[u8]; 4], GROUP_SIZE> = texts.iter().map(TimeText::parts).collect();
        let mut batch = HmacVerifyBatch::new();
        for (TimeClaim { key, tag, genuine, .. }, parts) in claims.iter_mut().zip(&parts) {
            batch.push(HmacVerify { key: key.expose(), parts, tag, genuine });
        }
        batch.run();
    }
}

/// What keeps one part from running into the next.
fn size(octets: &[u8]) -> [u8; 2] {
    u16::try_from(octets.len()).expect("a datagram is shorter than 2^16 octets").to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_a_group_are_those_of_each_alone() {
        for count in 0..=GROUP_SIZE {
            let keys: Vec<SessionKey> = (0..count).map(|index| SessionKey::new([index as u8; 16])).collect();
            let requests: Vec<Vec<u8>> = (0..count).map(|index| vec![index as u8; 40 + index * 7]).collect();
            let mut responses: Vec<Vec<u8>> =
                (0..count).map(|index| vec![!index as u8; 44 + index * 9]).collect();
            let jobs = keys.iter().zip(&requests).zip(&mut responses);
            tag_times(jobs.map(|((key, request), response)| TimeTag { key, request, response }));
            for ((key, request), response) in keys.iter().zip(&requests).zip(&responses) {
                let (head, tag) = response.split_last_chunk().unwrap();
                assert_eq!(*tag, time(key, request, head));
                assert!(is_time(key, request, head, tag));
            }
        }
        let mut short = [7; TAG_SIZE - 1];
        let key = SessionKey::new([1; 16]);
        tag_times(std::iter::once(TimeTag { key: &key, request: &[], response: &mut short }));
        assert_eq!(short, [7; TAG_SIZE - 1]);
    }

    #[test]
    fn many_tags_verify_together_and_a_wrong_one_fails_alone() {
        for count in [0, 1, 2, 9, 16, 17, 40] {
            let keys: Vec<SessionKey> = (0..count).map(|index| SessionKey::new([index as u8; 16])).collect();
            let texts: Vec<[Vec<u8>; 2]> =
                (0..count).map(|index| [vec![index as u8; 152 + index % 3 * 40], vec![1; 60]]).collect();
            let right: Vec<[u8; TAG_SIZE]> =
                keys.iter().zip(&texts).map(|(key, text)| time(key, &text[0], &text[1])).collect();
            for wrong in (0..count).map(Some).chain([None]) {
                let mut tags = right.clone();
                if let Some(wrong) = wrong {
                    tags[wrong][wrong % TAG_SIZE] ^= 0x80;
                }
                let mut genuine: Vec<bool> = (0..count).map(|index| Some(index) == wrong).collect();
                let claims = keys.iter().zip(&texts).zip(&tags).zip(&mut genuine);
                let mut claims: Vec<TimeClaim<'_>> = claims
                    .map(|(((key, [request, response_head]), tag), genuine)| TimeClaim {
                        key,
                        request,
                        response_head,
                        tag,
                        genuine,
                    })
                    .collect();
                verify_times(&mut claims);
                drop(claims);
                let expected: Vec<bool> = (0..count).map(|index| Some(index) != wrong).collect();
                assert_eq!(genuine, expected, "{wrong:?} of {count}");
            }
        }
    }
}
