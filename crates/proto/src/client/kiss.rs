//! What a kiss code says, in words for whoever reads why there was no time. RFC 5905 section 7.4, RFC 8915 section 5.7.

use authentick_wire::header::ReferenceId;

/// The meaning of a kiss code, as the second half of a sentence about the server.
//= rfc5905#7.4-4
pub(crate) fn meaning(code: ReferenceId) -> &'static str {
    match &code.0 {
        b"INIT" => "the server's clock is not synchronised, or not yet",
        b"STEP" => "the server's clock was just set, and is not synchronised yet",
        b"DENY" | b"RSTR" => "the server's access list does not let this client in",
        b"RATE" => "the server wants fewer requests from this client's network",
        b"NTSN" => "the server cannot open the cookie or verify the request: a new key exchange is needed",
        b"NKEY" => "the server has no such key, or does not allow its type",
        b"CRYP" => "the server has another key under this number, or the request was changed on the way",
        // Stratum 0 without a code is how chrony says it.
        [0, 0, 0, 0] => "the server's clock is not synchronised",
        _ => "the server turned the request down, and this program does not know the code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= rfc5905#7.4-4
    #[test]
    fn each_code_has_a_sentence_of_its_own_and_an_unsynchronised_clock_is_no_refusal() {
        let codes = [b"INIT", b"STEP", b"DENY", b"RATE", b"NTSN", b"NKEY", b"CRYP", b"XYZZ"];
        let sentences: std::collections::BTreeSet<&str> =
            codes.iter().map(|&&code| meaning(ReferenceId(code))).collect();
        assert_eq!(sentences.len(), codes.len());
        for code in [*b"INIT", *b"STEP", [0; 4]] {
            let sentence = meaning(ReferenceId(code));
            assert!(sentence.contains("not synchronised") && !sentence.contains("turned"), "{sentence}");
        }
        assert_eq!(meaning(ReferenceId::DENY), meaning(ReferenceId::RSTR));
    }
}
