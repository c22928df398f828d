//! What an algorithm withstands: the four factors that draft-aanchal4-ntp-mac-00 names and does not finish ("Output
//! length of tag. Input Key length. Strength of the underlying cryptographic hash function or cipher. Size and number
//! of messages MACd using the same key."), what a repeated nonce costs, and the later draft's bounds.

use serde::Serialize;

use super::Algorithm;

/// Octets of the packets of the drafts and of all that is measured here: a header.
pub const MESSAGE_SIZE: usize = 48;

/// The least level that is recommended here, in bits: the lowest that the first draft lists.
pub const LEVEL_MIN_BITS: u32 = 112;

/// What a repeated nonce does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatedNonce {
    /// Nothing: there are no nonces.
    TakesNone,
    /// It shows which packets are equal.
    ShowsEquality,
    /// Tags under that nonce can be forged.
    LosesNonce,
    /// The key of the hash is lost, and with it every tag (Joux; draft-ietf-ntp-mac, section 6.1).
    LosesHashKey,
}

/// Whether a tag is a state from which the digest can be continued.
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

/// How often a key may be used, as a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// There is no published limit, or none that can be reached.
    Unlimited,
    /// So many packets.
    Messages(u32),
    /// So many blocks of 16 octets in all of them.
    Blocks(u32),
}

impl Usage {
    /// How many packets of `message_size` octets a key may authenticate, as a power of two, rounded down.
    #[must_use]
    pub const fn messages_log2(self, message_size: usize) -> Option<u32> {
        match self {
            Usage::Unlimited => None,
            Usage::Messages(log2) => Some(log2),
            Usage::Blocks(log2) => match message_size.div_ceil(16) {
                0 | 1 => Some(log2),
                blocks => Some(log2.saturating_sub((blocks - 1).ilog2() + 1)),
            },
        }
    }
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
    /// The underlying primitive.
    pub primitive: &'static str,
    /// Bits of its strength; `None` where the first draft says "NA", as MD5 and SHA-1 are broken for collisions.
    pub primitive_bits: Option<u32>,
    /// How often a key may be used.
    pub usage: Usage,
    /// Whether a tag is a state from which the digest can be continued.
    pub extension: Extension,
    /// What a repeated nonce does.
    pub repeated_nonce: RepeatedNonce,
    /// How a tag travels.
    pub carrier: Carrier,
}

impl Factors {
    /// The factors of an algorithm.
    #[must_use]
    pub fn of(algorithm: Algorithm) -> Self {
        let plain = Factors {
            algorithm,
            tag_bits: 128,
            key_bits: 128,
            primitive: "MD5",
            primitive_bits: None,
            usage: Usage::Unlimited,
            extension: Extension::Impossible,
            repeated_nonce: RepeatedNonce::TakesNone,
            carrier: Carrier::Trailer,
        };
        let sha2 =
            |primitive, bits, tag_bits| Factors { primitive, primitive_bits: Some(bits), tag_bits, ..plain };
        let aes = |key_bits, usage, repeated_nonce| Factors {
            key_bits,
            primitive: if key_bits == 256 { "AES-256" } else { "AES-128" },
            primitive_bits: Some(key_bits),
            usage,
            repeated_nonce,
            carrier: match repeated_nonce {
                RepeatedNonce::TakesNone => Carrier::Trailer,
                _ => Carrier::ExtensionField,
            },
            ..plain
        };
        match algorithm {
            Algorithm::Md5 => Factors { extension: Extension::Possible, ..plain },
            Algorithm::Sha1 => {
                Factors { primitive: "SHA-1", tag_bits: 160, extension: Extension::Possible, ..plain }
            }
            Algorithm::Sha256 => Factors { extension: Extension::OfWholeTags, ..sha2("SHA-256", 128, 160) },
            Algorithm::Sha384 => sha2("SHA-384", 192, 160),
            Algorithm::Sha512 => Factors { extension: Extension::OfWholeTags, ..sha2("SHA-512", 256, 160) },
            // CMAC's bound for messages, draft-ietf-ntp-mac, section 6.
            Algorithm::HmacMd5 => Factors { usage: Usage::Messages(48), ..plain },
            // draft-aanchal4-ntp-mac-00, section 2: 112 bits.
            Algorithm::HmacSha224 => sha2("SHA-224", 112, 128),
            // NIST SP 800-38B, appendix B, the stricter of its limits, as draft-ietf-ntp-mac, section 6 cites it.
            Algorithm::Cmac128 => aes(128, Usage::Blocks(48), RepeatedNonce::TakesNone),
            Algorithm::Cmac256 => aes(256, Usage::Blocks(48), RepeatedNonce::TakesNone),
            // NIST SP 800-38D, sections 8 and 8.3: random nonces. draft-ietf-ntp-mac, section 6, has their birthday,
            // 2^48, after which one has repeated with probability 0.39; section 6.1 that of eight octets, 2^32.
            Algorithm::Gmac128 => aes(128, Usage::Messages(32), RepeatedNonce::LosesHashKey),
            Algorithm::GmacSiv128 => aes(128, Usage::Messages(48), RepeatedNonce::ShowsEquality),
            Algorithm::Poly1305 => Factors {
                key_bits: 256,
                primitive: "ChaCha20",
                primitive_bits: Some(256),
                // A nonce of twelve random octets repeats as GMAC's does.
                usage: Usage::Messages(32),
                repeated_nonce: RepeatedNonce::LosesNonce,
                carrier: Carrier::ExtensionField,
                ..plain
            },
        }
    }

    /// Whether it is a digest of key and packet, as RFC 5905 has it: what HMAC was made to replace (RFC 2104).
    #[must_use]
    pub const fn is_keyed_digest(&self) -> bool {
        matches!(
            self.algorithm,
            Algorithm::Md5 | Algorithm::Sha1 | Algorithm::Sha256 | Algorithm::Sha384 | Algorithm::Sha512
        )
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

    /// Why the algorithm is not recommended for 2^`messages_log2` packets of `message_size` octets under a key; `None`
    /// if there is no objection.
    #[must_use]
    pub fn objection(&self, messages_log2: f64, message_size: usize) -> Option<String> {
        let said = match (self.extension, self.repeated_nonce) {
            (Extension::Possible, _) => Some("tags can be extended without the key"),
            (Extension::OfWholeTags, _) => Some("only cut tags cannot be extended"),
            (_, RepeatedNonce::LosesHashKey) => Some("one repeated nonce gives the key away"),
            (_, RepeatedNonce::LosesNonce) => Some("a repeated nonce lets packets under it be forged"),
            (_, _) if self.is_keyed_digest() => Some("a digest of key and packet, for which HMAC was made"),
            (_, _) => None,
        };
        if let Some(said) = said {
            return Some(said.to_owned());
        }
        match (self.level_bits(), self.usage.messages_log2(message_size)) {
            (None, _) => Some(format!("{} is broken for collisions", self.primitive)),
            (Some(level), _) if level < LEVEL_MIN_BITS => {
                Some(format!("{level} bits are less than {LEVEL_MIN_BITS}"))
            }
            (Some(_), Some(limit)) if messages_log2 > f64::from(limit) => Some(format!(
                "a key is good for 2^{limit} packets of {message_size} octets, not for 2^{messages_log2:.1}"
            )),
            (Some(_), Some(_) | None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::ntp_mac::{Content, tables};

    #[test]
    fn lengths_and_levels_are_those_of_the_drafts() {
        for (_, table) in tables() {
            let Content::Lengths(rows) = &table.content else { continue };
            let has_level = rows.iter().any(|row| row.security_bits.is_some());
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
        for algorithm in [Algorithm::HmacMd5, Algorithm::Cmac128, Algorithm::Gmac128] {
            assert_eq!(
                [32.0, 48.0, 64.0, 70.0].map(|q_log2| at(algorithm, q_log2)),
                [-64.0, -32.0, 0.0, 0.0]
            );
        }
        assert_eq!(at(Algorithm::HmacSha224, 32.0), -128.0, "no better than the bound of the truncated tag");
        assert_eq!([64.0, 100.0].map(|q_log2| at(Algorithm::HmacSha224, q_log2)), [-96.0, -24.0]);
        // "Poly1305 can easily handle up to q=2^{64} but security degrades pretty rapidly after that."
        assert!((at(Algorithm::Poly1305, 64.0) + 102.279).abs() < 0.001);
        assert!(at(Algorithm::Poly1305, 68.0) == 0.0 && at(Algorithm::Poly1305, 20.0) == -103.0);
        assert_eq!(Factors::of(Algorithm::Md5).advantage_log2(1.0), None);
    }

    #[test]
    fn what_is_objected_to_has_a_reason() {
        let objection = |algorithm, messages| Factors::of(algorithm).objection(messages, MESSAGE_SIZE);
        for algorithm in
            [Algorithm::Cmac128, Algorithm::Cmac256, Algorithm::HmacSha224, Algorithm::GmacSiv128]
        {
            assert_eq!(objection(algorithm, 39.7), None, "{algorithm}");
        }
        let of_size = |size| Factors::of(Algorithm::Cmac128).objection(45.5, size);
        assert_eq!((of_size(16), of_size(MESSAGE_SIZE)), (None, None));
        let said = of_size(1500).unwrap();
        assert!(said.contains("good for 2^41 packets of 1500 octets, not for 2^45.5"), "{said}");
        assert!(
            objection(Algorithm::Cmac128, 46.5).is_some() && objection(Algorithm::GmacSiv128, 46.5).is_none()
        );
        for (algorithm, reason) in [
            (Algorithm::Md5, "extended without the key"),
            (Algorithm::Sha1, "extended without the key"),
            (Algorithm::Sha256, "only cut tags"),
            (Algorithm::Sha384, "for which HMAC was made"),
            (Algorithm::Sha512, "only cut tags"),
            (Algorithm::HmacMd5, "MD5 is broken for collisions"),
            (Algorithm::Gmac128, "gives the key away"),
            (Algorithm::Poly1305, "under it be forged"),
        ] {
            assert!(objection(algorithm, 1.0).is_some_and(|found| found.contains(reason)), "{algorithm}");
        }
    }
}
