//! Cookies: the session keys of a client, sealed so that the server need not remember them. RFC 8915 section 6.
//!
//! ```text
//!  0  key identifier u32, in the clear
//!  4  nonce, 12 random octets
//! 16  tag
//! 32  ciphertext of: AEAD number u16 | zero u16 | C2S key | S2C key
//! ```
//!
//! Sealed with AES-SIV-CMAC-256 without associated data; the identifier needs no cover, as another key would not
//! open. SIV keeps its promise when a nonce repeats: two cookies of the same contents would look the same, no more.
//! A cookie has 100 octets for AEAD 15, 132 for 16, 164 for 17 and 68 for 30, always a multiple of four.

use authentick_crypto::{Algorithm, Entropy, Key, KeyRef, Open, Seal, TAG_SIZE, seal_batch};
use authentick_wire::ke::AeadId;

use crate::auth::nts::{aead_id, algorithm};
use crate::delays::{Step, pause};
use crate::keyset::{CookieKey, KeySet};

const ID_SIZE: usize = 4;
const NONCE_SIZE: usize = 12;
const HEAD_SIZE: usize = ID_SIZE + NONCE_SIZE + TAG_SIZE;
const NUMBER_SIZE: usize = 4;

/// Octets of the longest text inside a cookie.
pub const TEXT_SIZE_MAX: usize = NUMBER_SIZE + 2 * 64;

/// Octets of a cookie for a session with `algorithm`.
#[must_use]
pub const fn size(algorithm: Algorithm) -> usize {
    HEAD_SIZE + NUMBER_SIZE + 2 * algorithm.key_size()
}

/// The keys of one client, both under the same algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionKeys {
    /// Authenticates requests.
    pub c2s: Key,
    /// Authenticates responses.
    pub s2c: Key,
}

impl SessionKeys {
    /// The algorithm of both keys.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.s2c.algorithm()
    }

    /// Reads the text of an opened cookie; `None` if it is not one of ours.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (number, keys) = text.split_first_chunk::<NUMBER_SIZE>()?;
        let algorithm = algorithm(AeadId(u16::from_be_bytes([number[0], number[1]])))?;
        let (c2s, s2c) = keys.split_at_checked(algorithm.key_size())?;
        Some(SessionKeys { c2s: Key::new(algorithm, c2s)?, s2c: Key::new(algorithm, s2c)? })
    }

    fn emit(&self, text: &mut [u8]) {
        let (number, keys) = text.split_at_mut(NUMBER_SIZE);
        let AeadId(id) = aead_id(self.algorithm());
        let [high, low] = id.to_be_bytes();
        number.copy_from_slice(&[high, low, 0, 0]);
        let (c2s, s2c) = keys.split_at_mut(self.algorithm().key_size());
        c2s.copy_from_slice(self.c2s.expose());
        s2c.copy_from_slice(self.s2c.expose());
    }
}

/// The identifier of the key that sealed `cookie`; `None` if it is too short to be one.
#[must_use]
pub fn key_id(cookie: &[u8]) -> Option<u32> {
    if cookie.len() < HEAD_SIZE + NUMBER_SIZE || cookie.len() > HEAD_SIZE + TEXT_SIZE_MAX {
        return None;
    }
    cookie.first_chunk().map(|id| u32::from_be_bytes(*id))
}

/// The job that opens `cookie` into `text`, whose first [`text_size`] octets it uses; `None` if no key of `keys`
/// sealed it.
pub fn open_job<'a>(
    keys: &'a KeySet,
    cookie: &'a [u8],
    text: &'a mut [u8; TEXT_SIZE_MAX],
    genuine: &'a mut bool,
) -> Option<Open<'a>> {
    let key = keys.find(key_id(cookie)?)?;
    let (nonce, rest) = cookie[ID_SIZE..].split_at(NONCE_SIZE);
    let (tag, ciphertext) = rest.split_first_chunk()?;
    let text = &mut text[..ciphertext.len()];
    text.copy_from_slice(ciphertext);
    Some(Open { key: KeyRef::Cached(key.key()), nonce, associated: None, text, tag, genuine })
}

/// Octets of text inside a cookie of `cookie_size` octets.
#[must_use]
pub const fn text_size(cookie_size: usize) -> usize {
    cookie_size.saturating_sub(HEAD_SIZE)
}

/// Seals a fresh cookie into each of `places`, each of [`size`] octets for its session, with the current key.
pub fn seal_all<'a>(
    keys: &'a KeySet,
    entropy: &mut Entropy,
    places: impl Iterator<Item = (&'a SessionKeys, &'a mut [u8])>,
) {
    pause(Step::SealCookies);
    seal_batch(places.map(|(session, out)| seal_job(keys.current(), session, entropy, out)));
}

fn seal_job<'a>(
    key: &'a CookieKey,
    session: &SessionKeys,
    entropy: &mut Entropy,
    out: &'a mut [u8],
) -> Seal<'a> {
    let (head, text) = out.split_at_mut(HEAD_SIZE);
    let (id, rest) = head.split_at_mut(ID_SIZE);
    let (nonce, tag) = rest.split_at_mut(NONCE_SIZE);
    id.copy_from_slice(&key.id().to_be_bytes());
    entropy.fill(nonce);
    session.emit(text);
    let tag = tag.as_mut_array().expect("the head ends with a tag");
    Seal { key: KeyRef::Cached(key.key()), nonce, associated: None, text, tag }
}

#[cfg(test)]
mod tests {
    use super::*;
    use authentick_crypto::open_batch;

    fn session(algorithm: Algorithm) -> SessionKeys {
        let key = |octet| Key::new(algorithm, &vec![octet; algorithm.key_size()]).unwrap();
        SessionKeys { c2s: key(1), s2c: key(2) }
    }

    fn sealed(keys: &KeySet, session: &SessionKeys) -> Vec<u8> {
        let mut cookie = vec![0; size(session.algorithm())];
        seal_all(keys, &mut Entropy::from_seed(5), std::iter::once((session, &mut cookie[..])));
        cookie
    }

    fn open(keys: &KeySet, cookie: &[u8]) -> Option<SessionKeys> {
        let (mut text, mut genuine) = ([0; TEXT_SIZE_MAX], false);
        open_batch(std::iter::once(open_job(keys, cookie, &mut text, &mut genuine)?));
        genuine.then(|| SessionKeys::parse(&text[..text_size(cookie.len())]))?
    }

    #[test]
    fn cookie_of_each_algorithm_opens_and_has_its_size() {
        let keys = KeySet::generate(0, &mut Entropy::from_seed(1));
        for (algorithm, octets) in Algorithm::ALL.into_iter().zip([100, 132, 164, 68]) {
            let cookie = sealed(&keys, &session(algorithm));
            assert_eq!(cookie.len(), octets);
            assert_eq!(open(&keys, &cookie), Some(session(algorithm)));
        }
    }

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
