//! What the server seals for itself and gives to the client: C1 between negotiation and key exchange, C2 with the
//! session key.
//!
//! ```text
//!  0  key identifier u32
//!  4  nonce                                   12
//! 16  ciphertext                              40 in C1, 28 in C2
//!     tag                                     16
//!
//! text of C1: 01 | version 01 | suite u16 | issued u32 | h1                                32
//! text of C2: 02 | version 01 | suite u16 | issued u32 | expires u32 | session key         16
//! ```
//!
//! AES-128-GCM with a label and the identifier as associated data: a C1 never opens as a C2, whatever is in it.

use arrayvec::ArrayVec;
use authentick_crypto::gcm::{GCM_NONCE_SIZE, GCM_TAG_SIZE, GcmJob, gcm_open_batch, gcm_seal_batch};
use authentick_crypto::kem::{SESSION_KEY_SIZE, SessionKey};
use authentick_crypto::{Entropy, wipe};
use authentick_wire::antp::{C1_SIZE, C2_SIZE, HASH_SIZE, Suite, VERSION};

use super::state_key::{StateKey, StateKeys};
use crate::limits::GROUP_SIZE;

const ID_SIZE: usize = 4;
const TEXT_START: usize = ID_SIZE + GCM_NONCE_SIZE;
const ASSOCIATED_SIZE: usize = LABEL_SIZE + ID_SIZE;
const LABEL_SIZE: usize = 9;
const C1_TEXT_SIZE: usize = C1_SIZE - TEXT_START - GCM_TAG_SIZE;
const C2_TEXT_SIZE: usize = C2_SIZE - TEXT_START - GCM_TAG_SIZE;

const _: () = assert!(C1_TEXT_SIZE == 8 + HASH_SIZE, "C1 holds a hash");
const _: () = assert!(C2_TEXT_SIZE == 12 + SESSION_KEY_SIZE, "C2 holds a key");

/// Seconds for which C1 opens, and by which another server's clock may be ahead.
pub const PENDING_SECONDS: u32 = 60;

/// What the server knows of a client between m2 and m3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The suite of its choice.
    pub suite: Suite,
    /// When it chose, in NTP seconds.
    pub issued: u32,
    /// h1.
    pub transcript: [u8; HASH_SIZE],
}

/// What the server knows of a client after m4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Established {
    /// The suite under which the key was made.
    pub suite: Suite,
    /// When the key was made, in NTP seconds.
    pub issued: u32,
    /// From when on the key is not used any more, in NTP seconds.
    pub expires: u32,
    /// The session key.
    pub key: SessionKey,
}

impl Pending {
    const KIND: u8 = 1;
    const LABEL: [u8; LABEL_SIZE] = *b"ANTP1 C1\0";

    /// C1 under the current key with a random nonce.
    #[must_use]
    pub fn seal(&self, keys: &StateKeys, entropy: &mut Entropy) -> [u8; C1_SIZE] {
        self.seal_with(keys.current(), &entropy.array())
    }

    /// C1 with a given nonce, which is used once with the key.
    #[must_use]
    pub fn seal_with(&self, key: &StateKey, nonce: &[u8; GCM_NONCE_SIZE]) -> [u8; C1_SIZE] {
        let mut out = [0; C1_SIZE];
        let text = &mut out[TEXT_START..C1_SIZE - GCM_TAG_SIZE];
        text[..2].copy_from_slice(&[Self::KIND, VERSION]);
        text[2..4].copy_from_slice(&self.suite.0.to_be_bytes());
        text[4..8].copy_from_slice(&self.issued.to_be_bytes());
        text[8..].copy_from_slice(&self.transcript);
        seal(key, nonce, &Self::LABEL, &mut out);
        out
    }

    /// Opens C1; `None` if no key of `keys` sealed it, or if it was sealed more than a minute before or after `now`, in
    /// NTP seconds.
    #[must_use]
    pub fn open(keys: &StateKeys, sealed: &[u8; C1_SIZE], now: u32) -> Option<Self> {
        let mut place = Opening::new(keys, sealed, &Self::LABEL)?;
        open_all::<C1_TEXT_SIZE>(std::slice::from_mut(&mut place));
        let text = place.text()?;
        let issued = word(text, 4);
        // Seconds wrap with the era, and so does their difference.
        let age = now.wrapping_sub(issued).cast_signed();
        let is_good = text[..2] == [Self::KIND, VERSION] && age.unsigned_abs() <= PENDING_SECONDS;
        is_good.then(|| Pending {
            suite: Suite(u16::from_be_bytes([text[2], text[3]])),
            issued,
            transcript: *text.last_chunk().expect("the text ends with the hash"),
        })
    }
}

impl Established {
    const KIND: u8 = 2;
    const LABEL: [u8; LABEL_SIZE] = *b"ANTP1 C2\0";

    /// C2 under the current key with a random nonce.
    #[must_use]
    pub fn seal(&self, keys: &StateKeys, entropy: &mut Entropy) -> [u8; C2_SIZE] {
        self.seal_with(keys.current(), &entropy.array())
    }

    /// C2 with a given nonce, which is used once with the key.
    #[must_use]
    pub fn seal_with(&self, key: &StateKey, nonce: &[u8; GCM_NONCE_SIZE]) -> [u8; C2_SIZE] {
        let mut out = [0; C2_SIZE];
        let text = &mut out[TEXT_START..C2_SIZE - GCM_TAG_SIZE];
        text[..2].copy_from_slice(&[Self::KIND, VERSION]);
        text[2..4].copy_from_slice(&self.suite.0.to_be_bytes());
        text[4..8].copy_from_slice(&self.issued.to_be_bytes());
        text[8..12].copy_from_slice(&self.expires.to_be_bytes());
        text[12..].copy_from_slice(self.key.expose());
        seal(key, nonce, &Self::LABEL, &mut out);
        out
    }

    /// Opens many C2 together, one out for each in: `None` for one that no key of `keys` sealed, or that has expired at
    /// `now`, in NTP seconds.
    ///
    /// # Panics
    /// If there are more than [`GROUP_SIZE`].
    pub fn open_group<'a>(
        keys: &StateKeys,
        sealed: impl Iterator<Item = (&'a [u8; C2_SIZE], u32)>,
    ) -> ArrayVec<Option<Self>, GROUP_SIZE> {
        let mut places = ArrayVec::<Opening<'_, C2_TEXT_SIZE>, GROUP_SIZE>::new();
        let mut found = ArrayVec::<(Option<usize>, u32), GROUP_SIZE>::new();
        for (sealed, now) in sealed {
            let place = Opening::new(keys, sealed, &Self::LABEL);
            found.push((place.is_some().then_some(places.len()), now));
            places.extend(place);
        }
        open_all(&mut places);
        found.into_iter().map(|(index, now)| Self::of(places[index?].text()?, now)).collect()
    }

    fn of(text: &[u8; C2_TEXT_SIZE], now: u32) -> Option<Self> {
        let (issued, expires) = (word(text, 4), word(text, 8));
        // Seconds wrap with the era, and so does their difference.
        let left = expires.wrapping_sub(now).cast_signed();
        let is_good = text[..2] == [Self::KIND, VERSION] && left > 0;
        is_good.then(|| Established {
            suite: Suite(u16::from_be_bytes([text[2], text[3]])),
            issued,
            expires,
            key: SessionKey::new(*text.last_chunk().expect("the text ends with the key")),
        })
    }
}

/// The identifier of the state key that sealed `sealed`, which stands in the clear.
#[must_use]
pub fn key_id(sealed: &[u8; C2_SIZE]) -> u32 {
    word(sealed, 0)
}

fn word(octets: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

fn associated(label: &[u8; LABEL_SIZE], id: u32) -> [u8; ASSOCIATED_SIZE] {
    let mut out = [0; ASSOCIATED_SIZE];
    out[..LABEL_SIZE].copy_from_slice(label);
    out[LABEL_SIZE..].copy_from_slice(&id.to_be_bytes());
    out
}

/// Seals the text that lies in `out` at its place.
fn seal(key: &StateKey, nonce: &[u8; GCM_NONCE_SIZE], label: &[u8; LABEL_SIZE], out: &mut [u8]) {
    out[..ID_SIZE].copy_from_slice(&key.id().to_be_bytes());
    out[ID_SIZE..TEXT_START].copy_from_slice(nonce);
    let (text, tag) = out[TEXT_START..].split_last_chunk_mut().expect("there is room for a tag");
    let associated = &associated(label, key.id());
    gcm_seal_batch(&mut [GcmJob { key: key.key(), nonce, associated, text, tag, genuine: false }]);
}

/// Sealed state that is to be opened. Overwritten when it is dropped.
struct Opening<'a, const N: usize> {
    key: &'a StateKey,
    nonce: [u8; GCM_NONCE_SIZE],
    associated: [u8; ASSOCIATED_SIZE],
    text: [u8; N],
    tag: [u8; GCM_TAG_SIZE],
    genuine: bool,
}

impl<'a, const N: usize> Opening<'a, N> {
    /// `None` if there is no key with the identifier in `sealed`, which has `N` octets of text.
    fn new(keys: &'a StateKeys, sealed: &[u8], label: &[u8; LABEL_SIZE]) -> Option<Self> {
        let id = word(sealed, 0);
        let (text, tag) = sealed[TEXT_START..].split_last_chunk()?;
        Some(Opening {
            key: keys.find(id)?,
            nonce: *sealed[ID_SIZE..].first_chunk()?,
            associated: associated(label, id),
            text: text.try_into().ok()?,
            tag: *tag,
            genuine: false,
        })
    }

    fn text(&self) -> Option<&[u8; N]> {
        self.genuine.then_some(&self.text)
    }
}

impl<const N: usize> Drop for Opening<'_, N> {
    fn drop(&mut self) {
        wipe(&mut self.text);
    }
}

fn open_all<const N: usize>(places: &mut [Opening<'_, N>]) {
    let mut jobs: ArrayVec<GcmJob<'_>, GROUP_SIZE> = places
        .iter_mut()
        .map(|place| GcmJob {
            key: place.key.key(),
            nonce: &place.nonce,
            associated: &place.associated,
            text: &mut place.text,
            tag: &mut place.tag,
            genuine: false,
        })
        .collect();
    gcm_open_batch(&mut jobs);
    let genuine: ArrayVec<bool, GROUP_SIZE> = jobs.iter().map(|job| job.genuine).collect();
    drop(jobs);
    places.iter_mut().zip(genuine).for_each(|(place, genuine)| place.genuine = genuine);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> StateKeys {
        StateKeys::generate(0, &mut Entropy::from_seed(1))
    }

    fn pending() -> Pending {
        Pending { suite: Suite::P256, issued: 1000, transcript: [7; 32] }
    }

    fn established() -> Established {
        Established { suite: Suite::P256, issued: 1000, expires: 2000, key: SessionKey::new([8; 16]) }
    }

    fn open_one(keys: &StateKeys, sealed: &[u8; C2_SIZE], now: u32) -> Option<Established> {
        Established::open_group(keys, std::iter::once((sealed, now))).remove(0)
    }

    #[test]
    fn state_opens_within_its_time_and_also_across_an_era() {
        let (keys, mut entropy) = (keys(), Entropy::from_seed(2));
        for start in [1000, u32::MAX - 20] {
            let sealed = Pending { issued: start, ..pending() }.seal(&keys, &mut entropy);
            for (after, opens) in
                [(0, true), (60, true), (61, false), (-60, true), (-61, false), (i32::MAX, false)]
            {
                let now = start.wrapping_add_signed(after);
                assert_eq!(Pending::open(&keys, &sealed, now).is_some(), opens, "{start} {after}");
            }
            let expires = start.wrapping_add(100);
            let sealed = Established { issued: start, expires, ..established() }.seal(&keys, &mut entropy);
            for (after, opens) in [(0, true), (99, true), (100, false), (101, false), (1 << 30, false)] {
                let now = start.wrapping_add(after);
                assert_eq!(open_one(&keys, &sealed, now).is_some(), opens, "{start} {after}");
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_state_is_seen() {
        let (keys, mut entropy) = (keys(), Entropy::from_seed(2));
        let c1 = pending().seal(&keys, &mut entropy);
        let c2 = established().seal(&keys, &mut entropy);
        assert_eq!(Pending::open(&keys, &c1, 1000), Some(pending()));
        assert_eq!(open_one(&keys, &c2, 1000), Some(established()));
        for bit in 0..C1_SIZE * 8 {
            let mut bad = c1;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Pending::open(&keys, &bad, 1000), None, "{bit}");
        }
        for bit in 0..C2_SIZE * 8 {
            let mut bad = c2;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open_one(&keys, &bad, 1000), None, "{bit}");
        }
    }

    #[test]
    fn label_keeps_each_kind_of_state_from_opening_as_the_other() {
        // The same octets of text under both labels, and sizes that would let either pass.
        let keys = keys();
        let mut text = [0; C2_SIZE];
        text[TEXT_START..TEXT_START + 12].copy_from_slice(&[2, 1, 0, 2, 0, 0, 3, 232, 0, 0, 7, 208]);
        let mut right = text;
        seal(keys.current(), &[1; 12], &Established::LABEL, &mut right);
        assert!(open_one(&keys, &right, 1000).is_some());
        let mut wrong = text;
        seal(keys.current(), &[1; 12], &Pending::LABEL, &mut wrong);
        assert_eq!(open_one(&keys, &wrong, 1000), None);
    }

    #[test]
    fn state_of_a_retired_key_opens_and_that_of_a_forgotten_or_foreign_one_does_not() {
        let mut entropy = Entropy::from_seed(2);
        let mut keys = keys();
        let sealed = established().seal(&keys, &mut entropy);
        for rotation in 1..=3 {
            keys = keys.rotate(rotation, 2, None);
            assert_eq!(open_one(&keys, &sealed, 1000).is_some(), rotation <= 2, "{rotation}");
        }
        let other = StateKeys::generate(0, &mut Entropy::from_seed(9));
        assert_eq!(open_one(&other, &sealed, 1000), None);
    }

    #[test]
    fn group_keeps_its_order_whatever_opens() {
        let (keys, mut entropy) = (keys(), Entropy::from_seed(2));
        let next = keys.rotate(1, 2, None);
        let sealed: Vec<[u8; C2_SIZE]> = (0..GROUP_SIZE)
            .map(|index| {
                let key = SessionKey::new([index as u8; 16]);
                let keys = if index % 3 == 0 { &keys } else { &next };
                let mut sealed = Established { key, ..established() }.seal(keys, &mut entropy);
                match index % 5 {
                    1 => sealed[0] ^= 0x80,
                    2 => sealed[40] ^= 1,
                    _ => {}
                }
                sealed
            })
            .collect();
        let opened = Established::open_group(&next, sealed.iter().map(|sealed| (sealed, 1000)));
        for (index, opened) in opened.iter().enumerate() {
            let expected = !matches!(index % 5, 1 | 2);
            let key = opened.as_ref().map(|state| *state.key.expose());
            assert_eq!(key, expected.then_some([index as u8; 16]), "{index}");
        }
        assert_eq!(opened.len(), GROUP_SIZE);
    }
}
