//! How what nodes say is sealed, and under which names it lies in the store.
//!
//! `"AFS1" | random nonce 16 | tag 16 | ciphertext`: AES-SIV-CMAC-256 (RFC 5297) under a key that HKDF-SHA256 derives
//! from one of the fleet's seal keys. The name in the store is associated data, so that one thing cannot be shown as
//! another; what is sealed for a node that has nothing yet has that node's nonce there, too. SIV keeps its promise if a
//! nonce is drawn twice.

use std::fmt;

use authentick_crypto::kdf::hkdf_sha256;
use authentick_crypto::{CachedKey, Entropy, Open, Seal, TAG_SIZE, run_batch};
use zeroize::Zeroizing;

use crate::claim::{NONCE_SIZE, Nonce};
use crate::name::Name;
use crate::text::TEXT_SIZE_MAX;

/// Octets of a seal key.
pub const SEAL_KEY_SIZE: usize = 32;

/// Octets that a sealed text has more than the text.
pub const OVERHEAD: usize = MAGIC.len() + NONCE_SIZE + TAG_SIZE;

const MAGIC: &[u8; 4] = b"AFS1";

/// Something that nodes say, which has one place in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic<'n> {
    /// The document.
    Document,
    /// The claim of a new term.
    Claim,
    /// What a node says of itself.
    Node(&'n Name),
    /// What a node answers to a claim.
    Answer(&'n Name),
    /// The document for a node that has nothing yet and drew this nonce.
    Welcome(&'n Name, Nonce),
}

/// The number of a sealed text: its nonce. `None` if the octets are none.
#[must_use]
pub fn number(sealed: &[u8]) -> Option<Nonce> {
    sealed.strip_prefix(MAGIC)?.first_chunk().copied()
}

impl Topic<'_> {
    /// Where it lies in the store, for keys of the kind `kind`: at most 250 octets without spaces.
    #[must_use]
    pub fn name(&self, fleet: &Name, kind: &str) -> String {
        match self {
            Topic::Document => format!("authentick/{fleet}/{kind}/document"),
            Topic::Claim => format!("authentick/{fleet}/{kind}/claim"),
            Topic::Node(node) => format!("authentick/{fleet}/{kind}/node/{node}"),
            Topic::Answer(node) => format!("authentick/{fleet}/{kind}/answer/{node}"),
            Topic::Welcome(node, _) => format!("authentick/{fleet}/{kind}/welcome/{node}"),
        }
    }

    /// What a sealed text is bound to.
    fn associated(&self, fleet: &Name, kind: &str) -> Vec<u8> {
        let mut octets = self.name(fleet, kind).into_bytes();
        if let Topic::Welcome(_, nonce) = self {
            octets.push(0);
            octets.extend_from_slice(nonce);
        }
        octets
    }
}

/// The seal keys of a fleet: all open, the first seals.
pub struct SealKeys {
    fleet: Name,
    /// At least one.
    keys: Vec<CachedKey>,
}

impl SealKeys {
    /// Keys from the octets of each, the first of which seals; `None` if there are none.
    #[must_use]
    pub fn new(fleet: Name, keys: &[Zeroizing<[u8; SEAL_KEY_SIZE]>]) -> Option<Self> {
        let derive = |key: &Zeroizing<[u8; SEAL_KEY_SIZE]>| {
            let octets: Zeroizing<[u8; 32]> = Zeroizing::new(hkdf_sha256(
                &**key,
                &[b"authentick fleet seal 1\0", fleet.as_str().as_bytes()],
            ));
            CachedKey::new(&octets)
        };
        let keys: Vec<CachedKey> = keys.iter().map(derive).collect();
        (!keys.is_empty()).then(|| SealKeys { fleet, keys })
    }

    /// `text` sealed as `topic` of the keys of the kind `kind`.
    ///
    /// # Panics
    /// If the text is larger than [`TEXT_SIZE_MAX`].
    #[must_use]
    pub fn seal(&self, topic: Topic<'_>, kind: &str, text: &str, entropy: &mut Entropy) -> Vec<u8> {
        assert!(text.len() <= TEXT_SIZE_MAX, "texts are bounded where they are made");
        let nonce: Nonce = entropy.array();
        let mut sealed = Vec::with_capacity(OVERHEAD + text.len());
        sealed.extend_from_slice(MAGIC);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&[0; TAG_SIZE]);
        sealed.extend_from_slice(text.as_bytes());
        let (head, body) = sealed.split_at_mut(OVERHEAD);
        let tag = head.last_chunk_mut().expect("the head ends with the tag");
        run_batch(std::iter::once(Seal {
            key: (&self.keys[0]).into(),
            nonce: &nonce,
            associated: Some(&topic.associated(&self.fleet, kind)),
            text: body.into(),
            tag,
        }));
        sealed
    }

    /// The text that was sealed as `topic`, and which of the keys opened it; `None` if none does.
    #[must_use]
    pub fn open(&self, topic: Topic<'_>, kind: &str, sealed: &[u8]) -> Option<(Zeroizing<String>, usize)> {
        if sealed.len() > OVERHEAD + TEXT_SIZE_MAX {
            return None;
        }
        let rest = sealed.strip_prefix(MAGIC)?;
        let (nonce, rest) = rest.split_first_chunk::<NONCE_SIZE>()?;
        let (tag, text) = rest.split_first_chunk::<TAG_SIZE>()?;
        let associated = topic.associated(&self.fleet, kind);
        self.keys.iter().enumerate().find_map(|(index, key)| {
            let (mut text, mut genuine) = (Zeroizing::new(text.to_vec()), false);
            run_batch(std::iter::once(Open {
                key: key.into(),
                nonce,
                associated: Some(&associated),
                text: (&mut text[..]).into(),
                tag,
                genuine: &mut genuine,
            }));
            let text = genuine.then(|| std::str::from_utf8(&text).ok().map(str::to_owned))??;
            Some((Zeroizing::new(text), index))
        })
    }
}

impl fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} seal keys of {}", self.keys.len(), self.fleet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("it is a name")
    }

    fn keys(fleet: &str, octets: &[u8]) -> SealKeys {
        let keys: Vec<_> = octets.iter().map(|octet| Zeroizing::new([*octet; SEAL_KEY_SIZE])).collect();
        SealKeys::new(name(fleet), &keys).expect("there are keys")
    }

    fn opened(keys: &SealKeys, topic: Topic<'_>, kind: &str, sealed: &[u8]) -> Option<(String, usize)> {
        keys.open(topic, kind, sealed).map(|(text, index)| (text.to_string(), index))
    }

    #[test]
    fn what_is_sealed_opens_as_the_same_topic_of_the_same_fleet_alone() {
        let (a, b, ours) = (name("a"), name("b"), keys("f", &[1]));
        let topics = [
            Topic::Document,
            Topic::Claim,
            Topic::Node(&a),
            Topic::Node(&b),
            Topic::Answer(&a),
            Topic::Welcome(&a, [1; NONCE_SIZE]),
            Topic::Welcome(&a, [2; NONCE_SIZE]),
        ];
        let mut entropy = Entropy::from_seed(1);
        for topic in topics {
            let sealed = ours.seal(topic, "cookie-keys", "text", &mut entropy);
            assert_eq!(sealed.len(), OVERHEAD + 4);
            for other in topics {
                let found = opened(&ours, other, "cookie-keys", &sealed);
                assert_eq!(found.is_some(), topic == other, "{topic:?} {other:?}");
            }
            assert_eq!(opened(&ours, topic, "state-keys", &sealed), None);
            assert_eq!(opened(&keys("g", &[1]), topic, "cookie-keys", &sealed), None);
            assert_eq!(opened(&keys("f", &[2]), topic, "cookie-keys", &sealed), None);
            assert_eq!(
                opened(&keys("f", &[2, 1]), topic, "cookie-keys", &sealed),
                Some(("text".to_owned(), 1))
            );
            for index in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[index] ^= 1;
                assert_eq!(opened(&ours, topic, "cookie-keys", &changed), None, "{index}");
                assert_eq!(opened(&ours, topic, "cookie-keys", &sealed[..index]), None, "{index}");
            }
        }
    }

    #[test]
    fn names_fit_into_memcached() {
        let long = name(&"n".repeat(64));
        for topic in [Topic::Welcome(&long, [0; NONCE_SIZE]), Topic::Answer(&long), Topic::Node(&long)] {
            let name = topic.name(&long, "cookie-keys");
            assert!(name.len() <= 250 && !name.contains(' '), "{name}");
        }
    }
}
