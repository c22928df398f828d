//! What NTS means by its numbers, for server and client alike. RFC 8915 section 5.

use authentick_crypto::Algorithm;
use authentick_wire::ke::AeadId;
use authentick_wire::nts::Authenticator;

/// The algorithm behind an AEAD number, if it is one of ours.
//= rfc8915#4.1.5-4
#[must_use]
pub const fn algorithm(id: AeadId) -> Option<Algorithm> {
    match id {
        AeadId::SIV_CMAC_256 => Some(Algorithm::SivCmac256),
        AeadId::SIV_CMAC_384 => Some(Algorithm::SivCmac384),
        AeadId::SIV_CMAC_512 => Some(Algorithm::SivCmac512),
        AeadId::AES_128_GCM_SIV => Some(Algorithm::Aes128GcmSiv),
        AeadId(_) => None,
    }
}

/// The AEAD number of an algorithm.
#[must_use]
pub const fn aead_id(algorithm: Algorithm) -> AeadId {
    match algorithm {
        Algorithm::SivCmac256 => AeadId::SIV_CMAC_256,
        Algorithm::SivCmac384 => AeadId::SIV_CMAC_384,
        Algorithm::SivCmac512 => AeadId::SIV_CMAC_512,
        Algorithm::Aes128GcmSiv => AeadId::AES_128_GCM_SIV,
    }
}

/// Whether the nonce, with the padding that makes up for a short one, leaves room for the nonce of the response. A
/// response's nonce takes the smaller of 16 octets and what the algorithm allows, in whole words.
//= rfc8915#5.6-7, rfc8915#5.6-8
#[must_use]
pub const fn nonce_is_long_enough(algorithm: Algorithm, authenticator: &Authenticator) -> bool {
    let required = algorithm.nonce_size().next_multiple_of(4);
    authenticator.nonce.size().next_multiple_of(4) + authenticator.padding_size >= required
}

#[cfg(test)]
mod tests {
    use super::*;

    //= rfc8915#4.1.5-4
    #[test]
    fn numbers_and_algorithms_map_both_ways() {
        for algorithm in Algorithm::ALL {
            assert_eq!(super::algorithm(aead_id(algorithm)), Some(algorithm));
        }
        let known = (0..=u16::MAX).filter(|&id| algorithm(AeadId(id)).is_some());
        assert_eq!(known.collect::<Vec<_>>(), [15, 16, 17, 30]);
    }
}
