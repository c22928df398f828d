//! The bodies of the fuzz targets of this crate; `fuzz/` calls them with new octets, the tests with the kept corpus.

use std::sync::LazyLock;

use authentick_crypto::Entropy;
use authentick_proto::keyset::KeySet;
use authentick_wire::ke::{AeadId, Request, Response, message_size};
use der::asn1::{BitStringRef, OctetStringRef};
use der::{Decode, Encode};
use rustls::SignatureScheme;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::SigningKey;
use x509_ocsp::ResponseData;

pub use crate::client::fuzzing::ke_dialogue;
use crate::ocsp::{Good, NONCE_SIZE, Question};
pub use crate::server::fuzzing::ke_connections;
use crate::session::{Answer, RESPONSE_SIZE_MAX, Terms, answer};
use crate::tls::{Issuer, provider};

pub(crate) mod tls;

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

/// The name of the authority that [`ocsp_response`] believes: CN=CA.
const AUTHORITY_NAME: [u8; 15] = *b"\x30\x0d\x31\x0b\x30\x09\x06\x03\x55\x04\x03\x0c\x02CA";

const NONCE: [u8; NONCE_SIZE] = [0x4e; NONCE_SIZE];

/// The authority's key, of Ed25519: everybody knows it.
static AUTHORITY: LazyLock<std::sync::Arc<dyn SigningKey>> = LazyLock::new(|| {
    let mut pkcs8 = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".to_vec();
    pkcs8.extend_from_slice(&[0x41; 32]);
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(pkcs8));
    provider().key_provider.load_private_key(key).expect("any 32 octets are a key")
});

static QUESTION: LazyLock<Question> = LazyLock::new(|| {
    let key_info = AUTHORITY.public_key().expect("the library tells it").to_vec();
    Question::fixed(Issuer { name: AUTHORITY_NAME.to_vec(), key_info }, NONCE)
});

/// Any octets as the answer of an OCSP responder, and as what the authority itself has signed: what is believed repeats
/// the nonce, and its times are in order.
pub fn ocsp_response(octets: &[u8]) {
    let check = |good: Good, signed: &[u8]| {
        assert!(signed.windows(NONCE_SIZE).any(|window| window == NONCE), "without the nonce");
        assert!(good.this_update <= good.produced_at, "{good:?}");
        assert!(good.next_update.is_none_or(|next| good.produced_at <= next), "{good:?}");
    };
    if let Ok(good) = QUESTION.judge(octets) {
        check(good, octets);
    }
    if ResponseData::from_der(octets).is_ok()
        && let Ok(good) = QUESTION.judge(&signed(octets))
    {
        check(good, octets);
    }
}

/// A response with this data, signed by the authority.
fn signed(data: &[u8]) -> Vec<u8> {
    let signer = AUTHORITY.choose_scheme(&[SignatureScheme::ED25519]).expect("it is a key of Ed25519");
    let signature = signer.sign(data).expect("Ed25519 signs anything");
    let signature = BitStringRef::from_bytes(&signature).and_then(|bits| bits.to_der());
    let ed25519 = b"\x30\x05\x06\x03\x2b\x65\x70";
    let basic = sequence(&[data, ed25519, &signature.expect("it is short")]);
    let basic = OctetStringRef::new(&basic).and_then(|octets| octets.to_der()).expect("inputs are short");
    let kind = b"\x06\x09\x2b\x06\x01\x05\x05\x07\x30\x01\x01";
    let bytes = tagged(0xa0, &sequence(&[kind, &basic]));
    sequence(&[b"\x0a\x01\x00", &bytes])
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tagged(0x30, &parts.concat())
}

/// DER of a content under a tag; its length is written in as few octets as will do.
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = der::Length::try_from(content.len()).and_then(|length| length.to_der());
    [&[tag], &length.expect("inputs are short")[..], content].concat()
}

#[cfg(test)]
mod tests {
    fn replay(target: &str, body: fn(&[u8])) {
        let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let mut count = 0;
        for entry in std::fs::read_dir(folder).expect("the corpus is kept") {
            body(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 10, "{target}: {count}");
    }

    #[test]
    fn kept_corpora_have_no_finding() {
        replay("ke_request", super::request);
        replay("ocsp_response", super::ocsp_response);
    }

    /// How many inputs of a corpus a body says to be understood; a corpus of others reaches nothing.
    fn replay_understood(target: &str, body: fn(&[u8]) -> bool) {
        let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let (mut count, mut read_count) = (0, 0);
        for entry in std::fs::read_dir(folder).expect("the corpus is kept") {
            let octets = std::fs::read(entry.unwrap().path()).unwrap();
            (count, read_count) = (count + 1, read_count + usize::from(body(&octets)));
        }
        assert!(read_count >= 10, "{target}: {read_count} of {count}");
    }

    #[test]
    fn kept_corpora_behind_tls_have_no_finding() {
        replay_understood("ke_connections", |octets| super::ke_connections(octets) > 0);
        replay_understood("ke_dialogue", super::ke_dialogue);
    }

    #[test]
    #[ignore = "writes the first inputs of the corpora"]
    fn write_seeds() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");
        let write = |target: &str, name: &str, octets: &[u8]| {
            std::fs::create_dir_all(format!("{corpus}/{target}")).unwrap();
            std::fs::write(format!("{corpus}/{target}/{name}"), octets).unwrap();
        };
        for entry in std::fs::read_dir(format!("{corpus}/ke_response")).unwrap().step_by(2) {
            let entry = entry.unwrap();
            let response = std::fs::read(entry.path()).unwrap();
            let name = entry.file_name().into_string().unwrap();
            let shape = name.as_bytes()[0] & 4 | 0x40;
            write("ke_dialogue", &name, &[&[shape, name.as_bytes()[1]], &response[..]].concat());
        }
        write("ke_dialogue", "raw", b"\x01\x10\x16\x03\x03\0\x04\x02\0\0\0");
        // A cookie of 1,996 octets, forty times.
        write("ke_dialogue", "too-long", &[b"\x02\xff\0\x05\x07\xcc", &[0; 1996][..]].concat());
        let request: &[u8] = b"\x80\x01\0\x02\0\0\x80\x04\0\x02\0\x0f\x80\0\0\0";
        let said = |who: u8| [&[who << 4 | 8, request.len() as u8], request].concat();
        let steps: [(&str, Vec<u8>); 12] = [
            ("right", vec![0, 2, 7]),
            (
                "right-in-pieces",
                [&[0, 2][..], &[4, 1].repeat(40), &[6, 1].repeat(40), &[4, 200, 6, 100, 7]].concat(),
            ),
            ("right-and-late", vec![0, 2, 7, 1, 126, 0, 2, 4, 90, 1, 250]),
            ("any", [&[0, 1, 7][..], &said(0), &[7]].concat()),
            ("any-twice", [&[0, 1, 0, 9][..], &[7, 0x17], &said(1), &said(0), &[7, 0x17]].concat()),
            ("any-unfinished", [&[0, 1, 7][..], &said(0)[..9], &[7, 12, 7, 1, 255]].concat()),
            (
                "flood",
                vec![0, 0, 8, 255, 22, 4, 255, 2, 4, 255, 2, 4, 255, 2, 0, 1, 7, 8, 255, 0, 4, 255, 2, 7],
            ),
            ("crowd", vec![0, 2, 0, 10, 0, 6, 0, 8, 0, 9, 7, 0x17, 0x27, 0x37, 3, 3]),
            ("denied", vec![0, 14, 7, 0, 2, 0, 2, 0, 6, 7]),
            ("no-room", vec![0, 2, 11, 0, 7, 11, 3, 7, 1, 60, 11, 200, 7]),
            ("reset", vec![0, 2, 7, 14, 0, 2, 0x17, 0x1D, 0, 0xF2]),
            ("changed", vec![0, 2, 10, 60, 3, 7, 0, 2, 0x19, 5, 1, 2, 3, 4, 5, 0x17, 0, 6, 0x27]),
        ];
        steps.iter().for_each(|(name, octets)| write("ke_connections", name, octets));
    }

    /// Else the target would not reach behind the signature.
    #[test]
    fn kept_corpus_has_an_answer_that_is_believed_once_it_is_signed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/ocsp_response");
        let octets = std::fs::read(format!("{folder}/good-data")).unwrap();
        assert!(super::QUESTION.judge(&super::signed(&octets)).is_ok());
        let whole = std::fs::read(format!("{folder}/good-response")).unwrap();
        assert_eq!(whole, super::signed(&octets));
    }
}
