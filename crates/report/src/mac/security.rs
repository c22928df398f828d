//! What an algorithm withstands: the four factors that draft-aanchal4-ntp-mac-00 names and does not finish ("Output
//! length of tag. Input Key length. Strength of the underlying cryptographic hash function or cipher. Size and number
//! of messages MACd using the same key."), what a repeated nonce costs, and the later draft's bounds.

use super::Algorithm;

/// The least level that is recommended here, in bits: the lowest that the first draft lists.
pub const LEVEL_MIN_BITS: u32 = 112;

/// What is lost when one nonce comes twice under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonceRepeat {
    /// There is no nonce.
    NoNonce,
    /// Nothing but that equal packets show as equal.
    Nothing,
    /// Tags under that nonce can be forged.
    ThatNonce,
    /// The authentication key, and with it every tag (Joux; draft-ietf-ntp-mac, section 6.1).
    Key,
}

/// How a tag travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// As the MAC after the packet, RFC 5905 section 7.3.
    Trailer,
    /// With its nonce in an extension field that no standard defines.
    ExtensionField,
}

/// The factors of an algorithm with the key and the tag that the drafts give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factors {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Bits of the tag on the wire.
    pub tag_bits: u32,
    /// Bits of the key.
    pub key_bits: u32,
    /// Bits of the primitive's strength; `None` where the draft says "NA", or where what is made of it is no proven
    /// MAC.
    pub primitive_bits: Option<u32>,
    /// What stands behind it: the primitive, and why its strength is this.
    pub primitive: &'static str,
    /// How many packets a key may authenticate, as a power of two.
    pub messages_log2: u32,
    /// Who says so.
    pub limit_source: &'static str,
    /// What a repeated nonce costs.
    pub nonce_repeat: NonceRepeat,
    /// How a tag travels.
    pub carrier: Carrier,
}

impl Factors {
    /// The factors of an algorithm.
    #[must_use]
    pub const fn of(algorithm: Algorithm) -> Self {
        const BIRTHDAY: &str = "half the tag, by the birthday bound of draft-ietf-ntp-mac, section 6";
        const CMAC_LIMIT: &str = "NIST SP 800-38B, as draft-ietf-ntp-mac, section 6 cites it";
        const RANDOM_NONCES: &str = "random nonces: NIST SP 800-38D; draft-ietf-ntp-mac, section 6.1";
        const PREFIX: &str = "keyed prefix: a tag can be extended without the key";
        const CUT_PREFIX: &str = "keyed prefix: truncation hides the state, and nobody proves more";
        let plain = Factors {
            algorithm,
            tag_bits: 128,
            key_bits: 128,
            primitive_bits: None,
            primitive: PREFIX,
            messages_log2: 64,
            limit_source: BIRTHDAY,
            nonce_repeat: NonceRepeat::NoNonce,
            carrier: Carrier::Trailer,
        };
        match algorithm {
            Algorithm::Md5 => plain,
            Algorithm::Sha1 => Factors { tag_bits: 160, messages_log2: 80, ..plain },
            Algorithm::Sha256 | Algorithm::Sha384 | Algorithm::Sha512 => {
                Factors { tag_bits: 160, messages_log2: 80, primitive: CUT_PREFIX, ..plain }
            }
            Algorithm::HmacMd5 => {
                Factors { primitive: "MD5: no level in the draft; not for new uses, RFC 6151", ..plain }
            }
            Algorithm::HmacSha224 => Factors {
                primitive_bits: Some(112),
                primitive: "SHA-224, by draft-aanchal4-ntp-mac-00, section 2",
                ..plain
            },
            Algorithm::Cmac128 => Factors {
                primitive_bits: Some(128),
                primitive: "AES-128",
                messages_log2: 48,
                limit_source: CMAC_LIMIT,
                ..plain
            },
            Algorithm::Cmac256 => Factors {
                key_bits: 256,
                primitive_bits: Some(256),
                primitive: "AES-256",
                messages_log2: 48,
                limit_source: CMAC_LIMIT,
                ..plain
            },
            Algorithm::Gmac128 => Factors {
                primitive_bits: Some(128),
                primitive: "AES-128",
                messages_log2: 32,
                limit_source: RANDOM_NONCES,
                nonce_repeat: NonceRepeat::Key,
                carrier: Carrier::ExtensionField,
                ..plain
            },
            Algorithm::GmacSiv128 => Factors {
                primitive_bits: Some(128),
                primitive: "AES-128",
                messages_log2: 48,
                limit_source: "as CMAC's; a repeated nonce adds nothing",
                nonce_repeat: NonceRepeat::Nothing,
                carrier: Carrier::ExtensionField,
                ..plain
            },
            Algorithm::Poly1305 => Factors {
                key_bits: 256,
                primitive_bits: Some(256),
                primitive: "ChaCha20",
                messages_log2: 32,
                limit_source: RANDOM_NONCES,
                nonce_repeat: NonceRepeat::ThatNonce,
                carrier: Carrier::ExtensionField,
                ..plain
            },
        }
    }

    /// "The upper bound on the security level provided by any MAC against brute-force attacks is min (key-length,
    /// tag-length)" (draft-ietf-ntp-mac, section 6), in bits.
    #[must_use]
    pub const fn bound_bits(&self) -> u32 {
        if self.key_bits < self.tag_bits { self.key_bits } else { self.tag_bits }
    }

    /// The level: the bound, or the primitive's strength if that is less. `None` if the primitive has none.
    #[must_use]
    pub fn level_bits(&self) -> Option<u32> {
        self.primitive_bits.map(|bits| bits.min(self.bound_bits()))
    }

    /// Log2 of a forger's advantage after 2^`q_log2` messages, by draft-ietf-ntp-mac, section 6, and never below a
    /// guess at the bound; at most 0, which is certainty. `None` for algorithms that are not in its table.
    #[must_use]
    pub fn advantage_log2(&self, q_log2: f64) -> Option<f64> {
        let formula = match self.algorithm {
            Algorithm::HmacMd5 | Algorithm::Cmac128 | Algorithm::Gmac128 => 2.0 * q_log2 - 128.0,
            Algorithm::HmacSha224 => 2.0 * q_log2 - 224.0,
            // e^(q^2 / 2^129) / 2^103
            Algorithm::Poly1305 => (2.0 * q_log2 - 129.0).exp2() * std::f64::consts::LOG2_E - 103.0,
            Algorithm::Md5
            | Algorithm::Sha1
            | Algorithm::Sha256
            | Algorithm::Sha384
            | Algorithm::Sha512
            | Algorithm::Cmac256
            | Algorithm::GmacSiv128 => return None,
        };
        Some(formula.max(-f64::from(self.bound_bits())).min(0.0))
    }

    /// Why the algorithm is not recommended to who authenticates 2^`messages_log2` packets under a key; `None` if it
    /// may be.
    #[must_use]
    pub fn objection(&self, messages_log2: f64) -> Option<String> {
        match (self.level_bits(), self.nonce_repeat) {
            (None, _) => Some(self.primitive.to_owned()),
            (Some(level), _) if level < LEVEL_MIN_BITS => {
                Some(format!("{level} bits are less than {LEVEL_MIN_BITS}"))
            }
            (Some(_), NonceRepeat::Key) => Some("one repeated nonce gives the key away".to_owned()),
            (Some(_), NonceRepeat::ThatNonce) => {
                Some("a repeated nonce lets packets under it be forged".to_owned())
            }
            (Some(_), NonceRepeat::NoNonce | NonceRepeat::Nothing) => (messages_log2
                > f64::from(self.messages_log2))
            .then(|| {
                format!("a key is good for 2^{} packets, not for 2^{messages_log2:.1}", self.messages_log2)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::mac::Content;
    use crate::published::{mac_draft_00, mac_draft_ietf};

    #[test]
    fn lengths_and_levels_are_those_of_the_drafts() {
        for table in mac_draft_00::TABLES.iter().chain(&mac_draft_ietf::TABLES) {
            let Content::Lengths(rows, has_level) = table.content else { continue };
            for row in rows {
                let factors = Factors::of(row.algorithm);
                assert_eq!(factors.key_bits, row.key_size * 8, "{row:?}");
                if has_level {
                    assert_eq!(factors.level_bits(), row.security_bits, "{row:?}");
                } else {
                    // The first draft has the 28 octets of an HMAC-SHA-224 that is not truncated yet.
                    assert_eq!(factors.tag_bits, row.tag_size * 8, "{row:?}");
                }
            }
        }
    }

    #[test]
    fn advantages_follow_the_formulas() {
        let at = |algorithm, q_log2| Factors::of(algorithm).advantage_log2(q_log2).unwrap();
        assert_eq!(at(Algorithm::Cmac128, 48.0), -32.0);
        assert_eq!(at(Algorithm::HmacSha224, 32.0), -128.0, "no better than the bound of the truncated tag");
        assert_eq!(at(Algorithm::HmacSha224, 100.0), -24.0);
        assert_eq!(at(Algorithm::HmacMd5, 64.0), 0.0);
        // "Poly1305 can easily handle up to q=2^{64} but security degrades pretty rapidly after that."
        assert!((at(Algorithm::Poly1305, 64.0) + 102.28).abs() < 0.01, "{}", at(Algorithm::Poly1305, 64.0));
        assert!(at(Algorithm::Poly1305, 68.0) == 0.0 && at(Algorithm::Poly1305, 20.0) == -103.0);
        assert_eq!(Factors::of(Algorithm::Md5).advantage_log2(1.0), None);
    }

    #[test]
    fn what_is_objected_to_has_a_reason() {
        let objection = |algorithm, messages| Factors::of(algorithm).objection(messages);
        for algorithm in
            [Algorithm::Cmac128, Algorithm::Cmac256, Algorithm::HmacSha224, Algorithm::GmacSiv128]
        {
            assert_eq!(objection(algorithm, 39.7), None, "{algorithm}");
        }
        assert!(
            objection(Algorithm::Cmac128, 48.5).unwrap().contains("good for 2^48 packets, not for 2^48.5")
        );
        for (algorithm, reason) in [
            (Algorithm::Md5, "extended without the key"),
            (Algorithm::Sha1, "extended without the key"),
            (Algorithm::Sha512, "keyed prefix"),
            (Algorithm::HmacMd5, "RFC 6151"),
            (Algorithm::Gmac128, "gives the key away"),
            (Algorithm::Poly1305, "under it be forged"),
        ] {
            assert!(objection(algorithm, 1.0).is_some_and(|found| found.contains(reason)), "{algorithm}");
        }
    }
}
