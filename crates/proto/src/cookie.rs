//! Cookies: the session keys of a client, sealed so that the server need not remember them. RFC 8915 section 6.
//!
//! ```text
//!  0  key identifier u32 \
//!  4  AEAD number u16     | in the clear; together the nonce
//!  6  ten random octets  /
//! 16  tag
//! 32  ciphertext of: C2S key | S2C key
//! ```
//!
//! Sealed with AES-SIV-CMAC-256 without associated data. The first sixteen octets are its nonce as they stand, so all
//! of them are authenticated, and a cookie is whole blocks. SIV keeps its promise when a nonce repeats: two cookies of
//! the same contents would look the same, no more. A cookie has 96 octets for AEAD 15, 128 for 16, 160 for 17 and 64
//! for 30: number and length show an observer which AEAD a client uses.

use std::fmt;

use authentick_crypto::{Algorithm, Entropy, Key, KeyRef, Open, Seal, TAG_SIZE, Text, run_batch, wipe};
use authentick_wire::ke::AeadId;

use crate::auth::nts::{aead_id, algorithm};
use crate::delays::{Step, pause};
use crate::keyset::{CookieKey, KeySet};

const ID_SIZE: usize = 4;
const NUMBER_SIZE: usize = 2;
const NONCE_SIZE: usize = 16;
const HEAD_SIZE: usize = NONCE_SIZE + TAG_SIZE;

/// Octets of the longest text inside a cookie.
const TEXT_SIZE_MAX: usize = text_size(Algorithm::SivCmac512);

const fn text_size(algorithm: Algorithm) -> usize {
    2 * algorithm.key_size()
}

/// Octets of a cookie for a session with `algorithm`.
#[must_use]
pub const fn size(algorithm: Algorithm) -> usize {
    HEAD_SIZE + text_size(algorithm)
}

/// The keys of one client, both under the same algorithm: as octets, in the order in which a cookie holds them.
#[derive(Clone)]
pub struct SessionKeys {
    algorithm: Algorithm,
    octets: [u8; TEXT_SIZE_MAX],
}

impl SessionKeys {
    /// The key that authenticates requests and the one that authenticates responses; `None` if their algorithms differ.
    #[must_use]
    pub fn new(c2s: &Key, s2c: &Key) -> Option<Self> {
        let (algorithm, size) = (c2s.algorithm(), c2s.expose().len());
        let mut keys = SessionKeys { algorithm, octets: [0; TEXT_SIZE_MAX] };
        keys.octets[..size].copy_from_slice(c2s.expose());
        keys.octets[size..2 * size].copy_from_slice((s2c.algorithm() == algorithm).then(|| s2c.expose())?);
        Some(keys)
    }

    /// Keys that nobody should use: a place for those of a cookie.
    #[cfg(any(feature = "server", test))]
    pub(crate) const fn unset() -> Self {
        SessionKeys { algorithm: Algorithm::SivCmac256, octets: [0; TEXT_SIZE_MAX] }
    }

    /// The algorithm of both keys.
    #[inline]
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Authenticates requests.
    #[inline]
    #[must_use]
    pub fn c2s(&self) -> KeyRef<'_> {
        self.key(0)
    }

    /// Authenticates responses.
    #[inline]
    #[must_use]
    pub fn s2c(&self) -> KeyRef<'_> {
        self.key(1)
    }

    #[inline]
    fn key(&self, index: usize) -> KeyRef<'_> {
        let size = self.algorithm.key_size();
        KeyRef::new(self.algorithm, &self.octets[index * size..][..size])
            .expect("the size is the algorithm's")
    }

    /// Both keys: the text inside a cookie. Secret.
    #[inline]
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.octets[..text_size(self.algorithm)]
    }

    /// Overwrites both keys.
    #[cfg(feature = "server")]
    #[inline]
    pub(crate) fn wipe(&mut self) {
        let size = text_size(self.algorithm);
        wipe(&mut self.octets[..size]);
    }
}

impl Drop for SessionKeys {
    fn drop(&mut self) {
        wipe(&mut self.octets);
    }
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionKeys({:?})", self.algorithm)
    }
}

/// The job that opens `cookie` into `session`, which holds zeros if it fails; `None` if no key of `keys` sealed it.
//= rfc8915#6-5, rfc8915#6-6, rfc8915#6-7
#[inline]
pub fn open_job<'a>(
    keys: &'a KeySet,
    cookie: &'a [u8],
    session: &'a mut SessionKeys,
    genuine: &'a mut bool,
) -> Option<Open<'a>> {
    let (nonce, rest) = cookie.split_first_chunk::<NONCE_SIZE>()?;
    let (tag, ciphertext) = rest.split_first_chunk()?;
    let [a, b, c, d, high, low, ..] = *nonce;
    let algorithm = algorithm(AeadId(u16::from_be_bytes([high, low])))?;
    let key = keys.find(u32::from_be_bytes([a, b, c, d]))?;
    session.algorithm = algorithm;
    let text = Text::new(ciphertext, &mut session.octets[..text_size(algorithm)]).ok()?;
    Some(Open { key: key.key().into(), nonce, associated: None, text, tag, genuine })
}

/// Whether `cookie` names one of the keys that come after `keys`: see [`KeySet::is_ahead`].
#[cfg(feature = "server")]
#[cold]
pub(crate) fn is_ahead(keys: &KeySet, cookie: &[u8]) -> bool {
    let id = cookie.first_chunk().map(|id| u32::from_be_bytes(*id));
    id.is_some_and(|id| keys.is_ahead(id))
}

/// Seals a fresh cookie into each of `places`, each of [`size`] octets for its session, with the current key.
pub fn seal_all<'a>(
    keys: &'a KeySet,
    entropy: &mut Entropy,
    places: impl Iterator<Item = (&'a SessionKeys, &'a mut [u8])>,
) {
    pause(Step::SealCookies);
    run_batch(places.map(|(session, out)| seal_job(keys.current(), session, entropy, out)));
}

/// The job that seals a fresh cookie into `out`, which has [`size`] octets for the session.
//= rfc8915#6-1, rfc8915#6-6, rfc8915#5.7-16
#[inline]
pub(crate) fn seal_job<'a>(
    key: &'a CookieKey,
    session: &'a SessionKeys,
    entropy: &mut Entropy,
    out: &'a mut [u8],
) -> Seal<'a> {
    let (head, text) = out.split_first_chunk_mut::<HEAD_SIZE>().expect("a place has the size of a cookie");
    let (nonce, tag) = head.split_at_mut(NONCE_SIZE);
    let AeadId(number) = aead_id(session.algorithm);
    entropy.fill(&mut nonce[ID_SIZE + NUMBER_SIZE..]);
    nonce[..ID_SIZE].copy_from_slice(&key.id().to_be_bytes());
    nonce[ID_SIZE..][..NUMBER_SIZE].copy_from_slice(&number.to_be_bytes());
    let text = Text::new(session.expose(), text).expect("a place has the size of a cookie");
    let tag = tag.as_mut_array().expect("the head ends with a tag");
    Seal { key: key.key().into(), nonce, associated: None, text, tag }
}

#[cfg(test)]
mod tests {
    use super::*;
    use authentick_crypto::run_batch;

    fn session(algorithm: Algorithm) -> SessionKeys {
        let key = |octet| Key::new(algorithm, &vec![octet; algorithm.key_size()]).unwrap();
        SessionKeys::new(&key(1), &key(2)).unwrap()
    }

    fn sealed(keys: &KeySet, session: &SessionKeys) -> Vec<u8> {
        let mut cookie = vec![0; size(session.algorithm())];
        seal_all(keys, &mut Entropy::from_seed(5), std::iter::once((session, &mut cookie[..])));
        cookie
    }

    /// Algorithm and keys.
    fn open(keys: &KeySet, cookie: &[u8]) -> Option<(Algorithm, Vec<u8>)> {
        let (mut session, mut genuine) = (SessionKeys::unset(), false);
        run_batch(std::iter::once(open_job(keys, cookie, &mut session, &mut genuine)?));
        genuine.then(|| (session.algorithm(), session.expose().to_vec()))
    }

    //= rfc8915#6-1, rfc8915#6-6
    #[test]
    fn cookie_of_each_algorithm_opens_and_has_its_size() {
        let keys = KeySet::generate(0, &mut Entropy::from_seed(1));
        for (algorithm, octets) in Algorithm::ALL.into_iter().zip([96, 128, 160, 64]) {
            let cookie = sealed(&keys, &session(algorithm));
            assert_eq!(cookie.len(), octets);
            let expected = session(algorithm).expose().to_vec();
            assert_eq!(open(&keys, &cookie), Some((algorithm, expected)));
        }
    }

    //= rfc8915#6-1
    #[test]
    fn every_flipped_bit_keeps_a_cookie_shut() {
        let keys = KeySet::generate(0, &mut Entropy::from_seed(1));
        let cookie = sealed(&keys, &session(Algorithm::SivCmac256));
        for bit in 0..cookie.len() * 8 {
            let mut cookie = cookie.clone();
            cookie[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&keys, &cookie), None, "bit {bit}");
        }
    }

    //= rfc8915#6-4, rfc8915#6-5
    #[test]
    fn cookie_of_a_retired_key_opens_until_the_key_is_gone() {
        let mut entropy = Entropy::from_seed(1);
        let keys = KeySet::generate(0, &mut entropy);
        let cookie = sealed(&keys, &session(Algorithm::SivCmac256));
        let once = keys.rotate(1, 1, &mut entropy);
        assert!(open(&once, &cookie).is_some());
        assert_eq!(open(&once.rotate(2, 1, &mut entropy), &cookie), None);
    }

    #[test]
    fn every_length_of_cookie_is_handled() {
        let keys = KeySet::generate(0, &mut Entropy::from_seed(1));
        let id = keys.current().id().to_be_bytes();
        for size in 0..300 {
            let mut cookie = vec![7; size];
            let count = size.min(4);
            cookie[..count].copy_from_slice(&id[..count]);
            assert_eq!(open(&keys, &cookie), None);
        }
    }
}
