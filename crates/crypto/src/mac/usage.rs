//! After how many messages a key should be another one: the one table of it. What reports say must agree with it.
//!
//! - **CMAC.** NIST SP 800-38B, appendix B: 2^48 messages, or, where more is wanted, 2^48 blocks of 16 octets. The
//!   stricter of the two is taken here, so the size of messages counts; draft-ietf-ntp-mac, section 6, reads it so too.
//! - **HMAC-MD5, GMAC-SIV.** Nobody has set a limit that is within reach. They have CMAC's bound for messages,
//!   q^2 / 2^128, HMAC-MD5 by section 6 of "Message Authentication Codes for the Network Time Protocol"
//!   (draft-ietf-ntp-mac, 2016), so 2^48 messages leave 2^-32 here as there. Nonces of GMAC-SIV may repeat.
//! - **GMAC and Poly1305 with twelve random octets.** NIST SP 800-38D, section 8: a nonce repeats with probability
//!   2^-32 at most; section 8.3: 2^32 invocations under a key, if nonces are random. By then one of 96 bits has
//!   repeated with probability 2^-33. The 2^48 that draft-ietf-ntp-mac, section 6, has for nonces of twelve octets is
//!   their birthday: a nonce has then repeated with probability 0.39.
//! - **GMAC with a salt**, of whose nonce eight octets are random: 2^16 for the same probability of 2^-33. NIST SP
//!   800-38D, section 8.2.2, has no random nonces of fewer than 96 bits at all; draft-ietf-ntp-mac, section 6.1, has
//!   2^32 messages, which is again their birthday.
//! - **Digests** have no such number: what is wrong with them is so from the first packet. **HMAC-SHA-224** has none
//!   that can be reached: q^2 / 2^224.

use super::MacAlgorithm;

/// Octets of a block of AES.
const BLOCK_SIZE: usize = 16;

/// Base-2 logarithm of the messages of `message_size` octets, rounded down, after which a key should be another one;
/// `None` if no number that can be reached weakens it. `has_salt`: whether four octets of a nonce are not random.
#[must_use]
pub const fn messages_log2(algorithm: MacAlgorithm, has_salt: bool, message_size: usize) -> Option<u32> {
    match algorithm {
        MacAlgorithm::Cmac128 | MacAlgorithm::Cmac256 => {
            let blocks = message_size.div_ceil(BLOCK_SIZE);
            // An empty message is a block too.
            let blocks_log2 = if blocks < 2 { 0 } else { (blocks - 1).ilog2() + 1 };
            Some(48u32.saturating_sub(blocks_log2))
        }
        MacAlgorithm::HmacMd5 | MacAlgorithm::GmacSiv128 => Some(48),
        MacAlgorithm::Gmac128 if has_salt => Some(16),
        MacAlgorithm::Gmac128 | MacAlgorithm::Poly1305 => Some(32),
        MacAlgorithm::Md5
        | MacAlgorithm::Sha1
        | MacAlgorithm::Sha256
        | MacAlgorithm::Sha384
        | MacAlgorithm::Sha512
        | MacAlgorithm::HmacSha224 => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_cmac_stay_within_two_to_the_48() {
        let log2 = |size| messages_log2(MacAlgorithm::Cmac128, false, size).unwrap();
        assert_eq!([0, 16, 17, 32, 33, 48, 64, 65, 2048].map(log2), [48, 48, 47, 47, 46, 46, 46, 45, 41]);
        for size in 1..4096_usize {
            let blocks = 2f64.powi(log2(size) as i32) * size.div_ceil(16) as f64;
            assert!(blocks <= 2f64.powi(48) && blocks > 2f64.powi(47), "{size}");
        }
    }

    /// So many random nonces of 64 or 96 bits have repeated with probability q^2 / 2^(bits + 1).
    #[test]
    fn nonces_repeat_with_less_than_two_to_the_minus_32() {
        let repeats = |algorithm, has_salt: bool| {
            let bits = if has_salt { 64 } else { 96 };
            2 * messages_log2(algorithm, has_salt, 48).unwrap() as i32 - bits - 1
        };
        for (algorithm, has_salt) in
            [(MacAlgorithm::Gmac128, false), (MacAlgorithm::Gmac128, true), (MacAlgorithm::Poly1305, false)]
        {
            assert_eq!(repeats(algorithm, has_salt), -33, "{algorithm} {has_salt}");
        }
    }

    #[test]
    fn what_has_a_bound_has_a_limit() {
        for algorithm in MacAlgorithm::ALL {
            let is_bounded =
                !algorithm.name().starts_with("SHA") && !matches!(algorithm.name(), "MD5" | "HMAC-SHA224");
            assert_eq!(messages_log2(algorithm, false, 48).is_some(), is_bounded, "{algorithm}");
        }
    }
}
