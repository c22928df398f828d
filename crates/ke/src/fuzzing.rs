//! The body of the fuzz target of this crate; `fuzz/` calls it with new octets, the tests with the kept corpus.

use authentick_crypto::Entropy;
use authentick_proto::keyset::KeySet;
use authentick_wire::ke::{AeadId, Request, Response, message_size};

use crate::session::{Answer, RESPONSE_SIZE_MAX, Terms, answer};

/// Any octets as a request: the server answers with one whole message that its client understands, and gives cookies
/// only to a request that parses.
pub fn request(octets: &[u8]) {
    let mut entropy = Entropy::from_seed(1);
    let keys = KeySet::generate(0, &mut entropy);
    let export = |octets: &mut [u8], _: &[u8]| {
        octets.fill(7);
        Ok(())
    };
    let mut out = [0; RESPONSE_SIZE_MAX];
    let (said, size) = answer(octets, &keys, &Terms::default(), &mut entropy, export, |_| {}, &mut out);
    let response = &out[..size];
    assert_eq!(message_size(response), Some(size));
    let all: Vec<AeadId> = (0..=u8::MAX).map(|id| AeadId(u16::from(id))).collect();
    match (said, Response::parse(response, &all).expect("our own responses parse")) {
        (Answer::Cookies(aead), Response::Agreed(agreement)) => {
            let request = Request::parse(octets).expect("cookies are for requests that parse");
            assert!(request.aeads.contains(aead.0), "an algorithm that was not offered");
            assert_eq!((agreement.aead, agreement.cookies().count()), (aead, 8));
        }
        (Answer::NothingInCommon, Response::NoProtocol | Response::NoAead) => {
            assert!(Request::parse(octets).is_ok());
        }
        (Answer::Error(code), Response::Error(told)) => assert_eq!(code, told),
        (said, told) => panic!("said {said:?}, told {told:?}"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn kept_corpus_has_no_finding() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/ke_request");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).expect("the corpus is kept") {
            super::request(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 10, "{count}");
    }
}
