//! What the factors of a MAC mean for a server without state. The factors themselves are `report`'s, which has them
//! beside the drafts' tables.

use authentick_crypto::mac::MacAlgorithm;
use authentick_report::mac::Algorithm;
use authentick_report::mac::security::{Extension, Factors, RepeatedNonce};
use serde::Serialize;

/// The algorithm by the name that it has in reports.
#[must_use]
pub const fn named(algorithm: MacAlgorithm) -> Algorithm {
    match algorithm {
        MacAlgorithm::Md5 => Algorithm::Md5,
        MacAlgorithm::Sha1 => Algorithm::Sha1,
        MacAlgorithm::Sha256 => Algorithm::Sha256,
        MacAlgorithm::Sha384 => Algorithm::Sha384,
        MacAlgorithm::Sha512 => Algorithm::Sha512,
        MacAlgorithm::HmacMd5 => Algorithm::HmacMd5,
        MacAlgorithm::HmacSha224 => Algorithm::HmacSha224,
        MacAlgorithm::Cmac128 => Algorithm::Cmac128,
        MacAlgorithm::Cmac256 => Algorithm::Cmac256,
        MacAlgorithm::Gmac128 => Algorithm::Gmac128,
        MacAlgorithm::GmacSiv128 => Algorithm::GmacSiv128,
        MacAlgorithm::Poly1305 => Algorithm::Poly1305,
    }
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
    /// What speaks against an algorithm with these factors; nothing, if it can be recommended.
    #[must_use]
    pub fn to(factors: &Factors) -> Vec<Self> {
        let loses_key =
            matches!(factors.repeated_nonce, RepeatedNonce::LosesNonce | RepeatedNonce::LosesHashKey);
        [
            (factors.extension == Extension::Possible, Objection::Extends),
            (factors.extension == Extension::OfWholeTags, Objection::ExtendsUnlessCut),
            (factors.primitive_bits.is_none(), Objection::BrokenPrimitive),
            (loses_key, Objection::RepeatedNonce),
        ]
        .into_iter()
        .filter_map(|(applies, objection)| applies.then_some(objection))
        .collect()
    }

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

#[cfg(test)]
mod tests {
    use authentick_crypto::mac::usage;
    use authentick_report::mac::security::MESSAGE_SIZE;

    use super::*;

    #[test]
    fn only_sha384_hmac_sha224_cmac_and_gmac_siv_have_no_objection() {
        let free =
            MacAlgorithm::ALL.into_iter().filter(|&a| Objection::to(&Factors::of(named(a))).is_empty());
        let expected = [
            MacAlgorithm::Sha384,
            MacAlgorithm::HmacSha224,
            MacAlgorithm::Cmac128,
            MacAlgorithm::Cmac256,
            MacAlgorithm::GmacSiv128,
        ];
        assert_eq!(free.collect::<Vec<_>>(), expected);
    }

    /// What the game objects to is not recommended; HMAC is asked for instead of SHA-384 besides.
    #[test]
    fn objections_here_and_in_the_recommendation_agree() {
        for algorithm in MacAlgorithm::ALL {
            let factors = Factors::of(named(algorithm));
            let is_free = Objection::to(&factors).is_empty() && algorithm != MacAlgorithm::Sha384;
            assert_eq!(factors.objection(1.0, MESSAGE_SIZE).is_none(), is_free, "{algorithm}");
        }
    }

    /// What reports say of usage is what the server heeds, for packets of any size.
    #[test]
    fn limits_of_usage_are_those_of_the_server() {
        for algorithm in MacAlgorithm::ALL {
            let usage = Factors::of(named(algorithm)).usage;
            for size in 0..=2048 {
                let heeded = usage::messages_log2(algorithm, false, size);
                assert_eq!(usage.messages_log2(size), heeded, "{algorithm}, {size} octets");
            }
        }
    }

    /// The factors agree with what the algorithms are: sizes of keys, of tags, and whether they take a nonce.
    #[test]
    fn factors_agree_with_the_algorithms() {
        for algorithm in MacAlgorithm::ALL {
            let factors = Factors::of(named(algorithm));
            assert!(algorithm.key_sizes().contains(&(factors.key_bits as usize / 8)), "{algorithm}");
            assert_eq!(factors.tag_bits as usize / 8, algorithm.tag_size().min(20), "{algorithm}");
            let takes_nonce = factors.repeated_nonce != RepeatedNonce::TakesNone;
            assert_eq!(takes_nonce, algorithm.nonce_size().is_some(), "{algorithm}");
            assert!(factors.bound_bits() >= 128, "{algorithm}");
        }
    }
}
