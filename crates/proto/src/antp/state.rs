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
//! AES-128-GCM with a label and the identifier as associated data: a C1 never opens as a C2, whatever is in it. That of
//! C1 has 16 octets more, the prefix that it is for ([`super::source`]).

use authentick_crypto::gcm::{GCM_NONCE_SIZE, GCM_TAG_SIZE, GcmOpen, GcmSeal, gcm_seal};
use authentick_crypto::kem::{SESSION_KEY_SIZE, SessionKey};
use authentick_crypto::{Entropy, Text, run_batch, wipe};
use authentick_wire::antp::{C1_SIZE, C2_SIZE, HASH_SIZE, Suite, VERSION};

use super::nonce::Nonces;
use super::source::SourcePrefix;
use super::state_key::{ASSOCIATED_SIZE, Kind, StateKey, StateKeys};
use crate::mutant::{Place, holds};

const ID_SIZE: usize = 4;
const TEXT_START: usize = ID_SIZE + GCM_NONCE_SIZE;
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
    /// C1 for `source` under the current key, with the next of `nonces`.
    #[must_use]
    pub fn seal(
        &self,
        keys: &StateKeys,
        source: &SourcePrefix,
        nonces: &mut Nonces,
        entropy: &mut Entropy,
    ) -> [u8; C1_SIZE] {
        self.seal_with(keys.current(), source, &nonces.next(entropy))
    }

    /// C1 with a given nonce, which is used once with the key.
    #[must_use]
    pub fn seal_with(
        &self,
        key: &StateKey,
        source: &SourcePrefix,
        nonce: &[u8; GCM_NONCE_SIZE],
    ) -> [u8; C1_SIZE] {
        let mut out = [0; C1_SIZE];
        let text = &mut out[TEXT_START..C1_SIZE - GCM_TAG_SIZE];
        text[..2].copy_from_slice(&[Kind::C1.octet(), VERSION]);
        text[2..4].copy_from_slice(&self.suite.0.to_be_bytes());
        text[4..8].copy_from_slice(&self.issued.to_be_bytes());
        text[8..].copy_from_slice(&self.transcript);
        seal(key, &associated(key, source), nonce, &mut out);
        out
    }

    /// Opens C1; `None` if no key of `keys` sealed it for `source`, or if it was sealed more than a minute before or
    /// after `now`, in NTP seconds.
    //= antp#servers-4
    #[must_use]
    pub fn open(keys: &StateKeys, sealed: &[u8; C1_SIZE], source: &SourcePrefix, now: u32) -> Option<Self> {
        let key = keys.find(word(sealed, 0))?;
        let (mut place, associated) = (Opening::<C1_TEXT_SIZE>::default(), associated(key, source));
        run_batch(place.job(key, &associated, sealed).into_iter());
        let text = place.text(Kind::C1)?;
        let issued = word(text, 4);
        // Seconds wrap with the era, and so does their difference.
        let age = now.wrapping_sub(issued).cast_signed();
        holds(Place::PendingAge, age.unsigned_abs() <= PENDING_SECONDS).then(|| Pending {
            suite: Suite(u16::from_be_bytes([text[2], text[3]])),
            issued,
            transcript: *text.last_chunk().expect("the text ends with the hash"),
        })
    }
}

impl Established {
    /// C2 under the current key, with the next of `nonces`.
    #[must_use]
    pub fn seal(&self, keys: &StateKeys, nonces: &mut Nonces, entropy: &mut Entropy) -> [u8; C2_SIZE] {
        self.seal_with(keys.current(), &nonces.next(entropy))
    }

    /// C2 with a given nonce, which is used once with the key.
    #[must_use]
    pub fn seal_with(&self, key: &StateKey, nonce: &[u8; GCM_NONCE_SIZE]) -> [u8; C2_SIZE] {
        let mut out = [0; C2_SIZE];
        let text = &mut out[TEXT_START..C2_SIZE - GCM_TAG_SIZE];
        text[..2].copy_from_slice(&[Kind::C2.octet(), VERSION]);
        text[2..4].copy_from_slice(&self.suite.0.to_be_bytes());
        text[4..8].copy_from_slice(&self.issued.to_be_bytes());
        text[8..12].copy_from_slice(&self.expires.to_be_bytes());
        text[12..].copy_from_slice(self.key.expose());
        seal(key, key.associated(Kind::C2), nonce, &mut out);
        out
    }

    /// Opens C2; `None` if no key of `keys` sealed it, or if it has expired at `now`, in NTP seconds.
    #[must_use]
    pub fn open(keys: &StateKeys, sealed: &[u8; C2_SIZE], now: u32) -> Option<Self> {
        let mut place = EstablishedText::default();
        run_batch(place.job(keys, sealed).into_iter());
        place.take(now)
    }
}

/// Where a C2 is opened, together with others.
#[derive(Default)]
pub(crate) struct EstablishedText(Opening<C2_TEXT_SIZE>);

impl EstablishedText {
    /// What opens `sealed` into this; `None` if there is no key with the identifier in it.
    pub(crate) fn job<'a>(
        &'a mut self,
        keys: &'a StateKeys,
        sealed: &'a [u8; C2_SIZE],
    ) -> Option<GcmOpen<'a>> {
        let key = keys.find(word(sealed, 0))?;
        self.0.job(key, key.associated(Kind::C2), sealed)
    }

    /// What was opened here last, if it was genuine and has not expired at `now`, in NTP seconds. Nothing stays.
    //= antp#servers-5
    pub(crate) fn take(&mut self, now: u32) -> Option<Established> {
        let taken = self.0.text(Kind::C2).and_then(|text| {
            let (issued, expires) = (word(text, 4), word(text, 8));
            // Seconds wrap with the era, and so does their difference.
            holds(Place::Expiry, expires.wrapping_sub(now).cast_signed() > 0).then(|| Established {
                suite: Suite(u16::from_be_bytes([text[2], text[3]])),
                issued,
                expires,
                key: SessionKey::new(*text.last_chunk().expect("the text ends with the key")),
            })
        });
        self.0.wipe();
        taken
    }
}

impl std::fmt::Debug for EstablishedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EstablishedText")
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

/// What is authenticated with a C1 for `source`.
//= antp#computations-3
fn associated(key: &StateKey, source: &SourcePrefix) -> [u8; ASSOCIATED_SIZE + SourcePrefix::SIZE] {
    let mut out = [0; _];
    let (label, prefix) = out.split_at_mut(ASSOCIATED_SIZE);
    label.copy_from_slice(key.associated(Kind::C1));
    prefix.copy_from_slice(source.octets());
    out
}

/// Seals the text that lies in `out` at its place.
fn seal(key: &StateKey, associated: &[u8], nonce: &[u8; GCM_NONCE_SIZE], out: &mut [u8]) {
    out[..ID_SIZE].copy_from_slice(&key.id().to_be_bytes());
    out[ID_SIZE..TEXT_START].copy_from_slice(nonce);
    let (text, tag) = out[TEXT_START..].split_last_chunk_mut().expect("there is room for a tag");
    gcm_seal(GcmSeal { key: key.key(), nonce, associated, text, tag });
}

/// Where sealed state of `N` octets of text is opened. Overwritten when it is dropped.
struct Opening<const N: usize> {
    text: [u8; N],
    genuine: bool,
}

impl<const N: usize> Default for Opening<N> {
    fn default() -> Self {
        Opening { text: [0; N], genuine: false }
    }
}

impl<const N: usize> Opening<N> {
    /// What opens `sealed` under `key`; `None` if it is too short.
    fn job<'a>(
        &'a mut self,
        key: &'a StateKey,
        associated: &'a [u8],
        sealed: &'a [u8],
    ) -> Option<GcmOpen<'a>> {
        self.genuine = false;
        let (text, tag) = sealed[TEXT_START..].split_last_chunk()?;
        Some(GcmOpen {
            key: key.key(),
            nonce: sealed[ID_SIZE..].first_chunk()?,
            associated,
            text: Text::new(text, &mut self.text).ok()?,
            tag,
            genuine: &mut self.genuine,
        })
    }

    /// What was opened, if it was genuine and is of this kind.
    fn text(&self, kind: Kind) -> Option<&[u8; N]> {
        //= antp#computations-3
        let is_ours = self.genuine && self.text[..2] == [kind.octet(), VERSION];
        holds(Place::StateTag, is_ours).then_some(&self.text)
    }

    fn wipe(&mut self) {
        wipe(&mut self.text);
        self.genuine = false;
    }
}

impl<const N: usize> Drop for Opening<N> {
    fn drop(&mut self) {
        self.wipe();
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::PrefixSizes;
    use super::*;

    fn keys() -> StateKeys {
        StateKeys::generate(0, &mut Entropy::from_seed(1))
    }

    fn pending() -> Pending {
        Pending { suite: Suite::P256, issued: 1000, transcript: [7; 32] }
    }

    fn source() -> SourcePrefix {
        SourcePrefix::of([198, 18, 0, 2].into(), PrefixSizes::default())
    }

    //= antp#servers-4
    #[test]
    fn c1_opens_for_the_source_that_it_was_sealed_for_alone() {
        let (keys, mut nonces, mut entropy) = (keys(), Nonces::new(), Entropy::from_seed(2));
        let other = SourcePrefix::of([198, 18, 0, 3].into(), PrefixSizes::default());
        for (sealed_for, asks, opens) in [
            (source(), source(), true),
            (source(), other, false),
            (source(), SourcePrefix::ANY, false),
            (SourcePrefix::ANY, source(), false),
            (SourcePrefix::ANY, SourcePrefix::ANY, true),
        ] {
            let sealed = pending().seal(&keys, &sealed_for, &mut nonces, &mut entropy);
            assert_eq!(
                Pending::open(&keys, &sealed, &asks, 1000).is_some(),
                opens,
                "{sealed_for:?} {asks:?}"
            );
        }
    }

    fn established() -> Established {
        Established { suite: Suite::P256, issued: 1000, expires: 2000, key: SessionKey::new([8; 16]) }
    }

    //= antp#servers-4, antp#servers-5
    #[test]
    fn state_opens_within_its_time_and_also_across_an_era() {
        let (keys, mut nonces, mut entropy) = (keys(), Nonces::new(), Entropy::from_seed(2));
        for start in [1000, u32::MAX - 20] {
            let sealed =
                Pending { issued: start, ..pending() }.seal(&keys, &source(), &mut nonces, &mut entropy);
            for (after, opens) in
                [(0, true), (60, true), (61, false), (-60, true), (-61, false), (i32::MAX, false)]
            {
                let now = start.wrapping_add_signed(after);
                assert_eq!(Pending::open(&keys, &sealed, &source(), now).is_some(), opens, "{start} {after}");
            }
            let expires = start.wrapping_add(100);
            let sealed = Established { issued: start, expires, ..established() }.seal(
                &keys,
                &mut nonces,
                &mut entropy,
            );
            for (after, opens) in [(0, true), (99, true), (100, false), (101, false), (1 << 30, false)] {
                let now = start.wrapping_add(after);
                assert_eq!(Established::open(&keys, &sealed, now).is_some(), opens, "{start} {after}");
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_state_is_seen() {
        let (keys, mut nonces, mut entropy) = (keys(), Nonces::new(), Entropy::from_seed(2));
        let c1 = pending().seal(&keys, &source(), &mut nonces, &mut entropy);
        let c2 = established().seal(&keys, &mut nonces, &mut entropy);
        assert_eq!(Pending::open(&keys, &c1, &source(), 1000), Some(pending()));
        assert_eq!(Established::open(&keys, &c2, 1000), Some(established()));
        for bit in 0..C1_SIZE * 8 {
            let mut bad = c1;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Pending::open(&keys, &bad, &source(), 1000), None, "{bit}");
        }
        for bit in 0..C2_SIZE * 8 {
            let mut bad = c2;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Established::open(&keys, &bad, 1000), None, "{bit}");
        }
    }

    //= antp#computations-3
    #[test]
    fn label_keeps_each_kind_of_state_from_opening_as_the_other() {
        // The same octets of text under both labels, and sizes that would let either pass.
        let keys = keys();
        let mut text = [0; C2_SIZE];
        text[TEXT_START..TEXT_START + 12].copy_from_slice(&[2, 1, 0, 2, 0, 0, 3, 232, 0, 0, 7, 208]);
        let mut right = text;
        let key = keys.current();
        seal(key, key.associated(Kind::C2), &[1; 12], &mut right);
        assert!(Established::open(&keys, &right, 1000).is_some());
        let mut wrong = text;
        seal(key, key.associated(Kind::C1), &[1; 12], &mut wrong);
        assert_eq!(Established::open(&keys, &wrong, 1000), None);
    }

    #[test]
    fn state_of_a_retired_key_opens_and_that_of_a_forgotten_or_foreign_one_does_not() {
        let (mut nonces, mut entropy) = (Nonces::new(), Entropy::from_seed(2));
        let mut keys = keys();
        let sealed = established().seal(&keys, &mut nonces, &mut entropy);
        for rotation in 1..=3 {
            keys = keys.rotate(rotation, 2, None);
            assert_eq!(Established::open(&keys, &sealed, 1000).is_some(), rotation <= 2, "{rotation}");
        }
        let other = StateKeys::generate(0, &mut Entropy::from_seed(9));
        assert_eq!(Established::open(&other, &sealed, 1000), None);
    }

    #[test]
    fn texts_that_are_opened_together_keep_apart_whatever_opens() {
        let (keys, mut nonces, mut entropy) = (keys(), Nonces::new(), Entropy::from_seed(2));
        let next = keys.rotate(1, 2, None);
        let sealed: Vec<[u8; C2_SIZE]> = (0..40)
            .map(|index| {
                let key = SessionKey::new([index as u8; 16]);
                let keys = if index % 3 == 0 { &keys } else { &next };
                let mut sealed = Established { key, ..established() }.seal(keys, &mut nonces, &mut entropy);
                match index % 5 {
                    1 => sealed[0] ^= 0x80,
                    2 => sealed[40] ^= 1,
                    _ => {}
                }
                sealed
            })
            .collect();
        let mut places: Vec<EstablishedText> = sealed.iter().map(|_| EstablishedText::default()).collect();
        run_batch(places.iter_mut().zip(&sealed).filter_map(|(place, sealed)| place.job(&next, sealed)));
        for (index, place) in places.iter_mut().enumerate() {
            let expected = !matches!(index % 5, 1 | 2);
            let key = place.take(1000).map(|state| *state.key.expose());
            assert_eq!(key, expected.then_some([index as u8; 16]), "{index}");
            assert_eq!(place.take(1000), None);
        }
    }
}
