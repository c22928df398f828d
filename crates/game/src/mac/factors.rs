//! The four factors by which draft-aanchal4-ntp-mac-00 means to compare MACs, as data: the tag's length, the key's
//! length, the strength of what lies beneath, and the number and size of messages under a key.
//!
//! The draft lists them and stops ("Not finished yet"). draft-ietf-ntp-mac section 6 adds the upper bound: no MAC is
//! stronger than the shorter of key and tag.

use authentick_crypto::mac::MacAlgorithm;
use serde::Serialize;

/// What happens to an algorithm's key if a nonce repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatedNonce {
    /// Nothing: there are no nonces.
    TakesNone,
    /// It shows which messages are equal.
    ShowsEquality,
    /// Tags under that nonce can be forged.
    LosesNonce,
    /// The key of the hash is lost, and tags under each nonce that was ever seen can be forged.
    LosesHashKey,
}

/// Whether a tag is a state from which the digest goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extension {
    /// Never.
    Impossible,
    /// If all of it is there: not in NTPv4, which has room for 20 octets.
    OfWholeTags,
    /// As it is on the wire.
    Possible,
}

/// Why an algorithm is not to be recommended to a server without state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objection {
    /// Whoever has a tag can make that of a longer message.
    Extends,
    /// Only that tags are cut prevents it.
    ExtendsUnlessCut,
    /// What lies beneath is broken, if not in this use.
    BrokenPrimitive,
    /// A nonce that repeats loses it, and a server without state cannot keep one from repeating.
    RepeatedNonce,
}

impl Objection {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Objection::Extends => "tags can be extended",
            Objection::ExtendsUnlessCut => "only cut tags cannot be extended",
            Objection::BrokenPrimitive => "broken for collisions",
            Objection::RepeatedNonce => "lost if a nonce repeats",
        }
    }
}

/// The factors of one algorithm, as the drafts use it: with their key and tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SecurityFactors {
    /// The algorithm.
    #[serde(serialize_with = "name")]
    pub algorithm: MacAlgorithm,
    /// First factor: bits of the tag on the wire of NTPv4.
    pub tag_bits: u32,
    /// Second factor: bits of the key.
    pub key_bits: u32,
    /// Third factor: what lies beneath.
    pub primitive: &'static str,
    /// Bits of security that the primitive is held to give; `None` if it is broken, as MD5 and SHA-1 are for
    /// collisions.
    pub primitive_bits: Option<u32>,
    /// Fourth factor: base-2 logarithm of the messages that a key may authenticate; `None` if nobody has set a limit.
    pub messages_log2_max: Option<u32>,
    /// Whether a tag is a state from which the digest goes on.
    pub extension: Extension,
    /// What a repeated nonce does.
    pub repeated_nonce: RepeatedNonce,
}

impl SecurityFactors {
    /// Those of `algorithm`.
    #[must_use]
    pub fn of(algorithm: MacAlgorithm) -> Self {
        let factors = SecurityFactors {
            algorithm,
            tag_bits: 128,
            key_bits: 128,
            primitive: "MD5",
            primitive_bits: None,
            messages_log2_max: None,
            extension: Extension::Impossible,
            repeated_nonce: RepeatedNonce::TakesNone,
        };
        let sha2 = |primitive, bits, tag_bits| SecurityFactors {
            primitive,
            primitive_bits: Some(bits),
            tag_bits,
            ..factors
        };
        let aes = |key_bits, messages_log2_max, repeated_nonce| SecurityFactors {
            key_bits,
            primitive: if key_bits == 256 { "AES-256" } else { "AES-128" },
            primitive_bits: Some(key_bits),
            messages_log2_max,
            repeated_nonce,
            ..factors
        };
        match algorithm {
            MacAlgorithm::Md5 => SecurityFactors { extension: Extension::Possible, ..factors },
            MacAlgorithm::Sha1 => SecurityFactors {
                primitive: "SHA-1",
                tag_bits: 160,
                extension: Extension::Possible,
                ..factors
            },
            MacAlgorithm::Sha256 => {
                SecurityFactors { extension: Extension::OfWholeTags, ..sha2("SHA-256", 128, 160) }
            }
            MacAlgorithm::Sha384 => sha2("SHA-384", 192, 160),
            MacAlgorithm::Sha512 => {
                SecurityFactors { extension: Extension::OfWholeTags, ..sha2("SHA-512", 256, 160) }
            }
            MacAlgorithm::HmacMd5 => factors,
            // draft-aanchal4-ntp-mac-00 section 2: 112 bits.
            MacAlgorithm::HmacSha224 => sha2("SHA-224", 112, 128),
            // NIST SP 800-38B appendix B: 2^48 messages.
            MacAlgorithm::Cmac128 => aes(128, Some(48), RepeatedNonce::TakesNone),
            MacAlgorithm::Cmac256 => aes(256, Some(48), RepeatedNonce::TakesNone),
            // NIST SP 800-38D section 8.3: 2^32 random nonces of twelve octets.
            MacAlgorithm::Gmac128 => aes(128, Some(32), RepeatedNonce::LosesHashKey),
            MacAlgorithm::GmacSiv128 => aes(128, None, RepeatedNonce::ShowsEquality),
            MacAlgorithm::Poly1305 => SecurityFactors {
                key_bits: 256,
                primitive: "ChaCha20",
                primitive_bits: Some(256),
                // A nonce of twelve random octets repeats as GMAC's does.
                messages_log2_max: Some(32),
                repeated_nonce: RepeatedNonce::LosesNonce,
                ..factors
            },
        }
    }

    /// The upper bound on security in bits: the shorter of key and tag. draft-ietf-ntp-mac section 6.
    #[must_use]
    pub const fn bound_bits(&self) -> u32 {
        if self.key_bits < self.tag_bits { self.key_bits } else { self.tag_bits }
    }

    /// Security in bits: the bound, or what lies beneath if that is weaker; `None` if that is broken, as
    /// draft-aanchal4-ntp-mac-00 section 2 has it ("NA").
    #[must_use]
    pub fn level_bits(&self) -> Option<u32> {
        self.primitive_bits.map(|bits| bits.min(self.bound_bits()))
    }

    /// What speaks against the algorithm for a server without state; nothing, if it can be recommended.
    #[must_use]
    pub fn objections(&self) -> Vec<Objection> {
        let loses_key =
            matches!(self.repeated_nonce, RepeatedNonce::LosesNonce | RepeatedNonce::LosesHashKey);
        [
            (self.extension == Extension::Possible, Objection::Extends),
            (self.extension == Extension::OfWholeTags, Objection::ExtendsUnlessCut),
            (self.primitive_bits.is_none(), Objection::BrokenPrimitive),
            (loses_key, Objection::RepeatedNonce),
        ]
        .into_iter()
        .filter_map(|(applies, objection)| applies.then_some(objection))
        .collect()
    }
}

fn name<S: serde::Serializer>(algorithm: &MacAlgorithm, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(algorithm)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// draft-aanchal4-ntp-mac-00 section 2, column "Security Level".
    #[test]
    fn levels_are_those_of_the_draft() {
        let level = |algorithm| SecurityFactors::of(algorithm).level_bits();
        assert_eq!(level(MacAlgorithm::Md5), None);
        assert_eq!(level(MacAlgorithm::HmacMd5), None);
        assert_eq!(level(MacAlgorithm::HmacSha224), Some(112));
        assert_eq!(level(MacAlgorithm::Cmac128), Some(128));
        assert_eq!(level(MacAlgorithm::Gmac128), Some(128));
        assert_eq!(level(MacAlgorithm::Poly1305), Some(128));
    }

    #[test]
    fn only_sha384_hmac_sha224_cmac_and_gmac_siv_have_no_objection() {
        let free = MacAlgorithm::ALL.into_iter().filter(|a| SecurityFactors::of(*a).objections().is_empty());
        let expected = [
            MacAlgorithm::Sha384,
            MacAlgorithm::HmacSha224,
            MacAlgorithm::Cmac128,
            MacAlgorithm::Cmac256,
            MacAlgorithm::GmacSiv128,
        ];
        assert_eq!(free.collect::<Vec<_>>(), expected);
    }

    /// The factors agree with what the algorithms are: sizes of keys, of tags, and whether they take a nonce.
    #[test]
    fn factors_agree_with_the_algorithms() {
        for algorithm in MacAlgorithm::ALL {
            let factors = SecurityFactors::of(algorithm);
            assert!(algorithm.key_sizes().contains(&(factors.key_bits as usize / 8)), "{algorithm}");
            assert_eq!(factors.tag_bits as usize / 8, algorithm.tag_size().min(20), "{algorithm}");
            let takes_nonce = factors.repeated_nonce != RepeatedNonce::TakesNone;
            assert_eq!(takes_nonce, algorithm.nonce_size().is_some(), "{algorithm}");
            assert!(factors.bound_bits() >= 128, "{algorithm}");
        }
    }
}
