//! Vectors of the RFCs on every path. What paths are compared by is in `tests/paths`.

use hex_literal::hex;
use proptest::prelude::*;

use super::*;
use crate::{run_batch, run_batch_on};

struct Case {
    key: Key,
    nonce: Vec<u8>,
    associated: Option<Vec<u8>>,
    text: Vec<u8>,
}

fn paths() -> impl Iterator<Item = Path> {
    Path::ALL.into_iter().filter(|path| path.is_available())
}

fn seal_case(path: Path, case: &Case) -> (Vec<u8>, [u8; TAG_SIZE]) {
    let (mut text, mut tag) = (case.text.clone(), [0; TAG_SIZE]);
    let job = Seal {
        key: (&case.key).into(),
        nonce: &case.nonce,
        associated: case.associated.as_deref(),
        text: text.as_mut_slice().into(),
        tag: &mut tag,
    };
    run_batch_on(path, std::iter::once(job));
    (text, tag)
}

fn open_case(path: Path, case: &Case, (text, tag): &(Vec<u8>, [u8; TAG_SIZE])) -> Option<Vec<u8>> {
    let (mut text, mut genuine) = (text.clone(), true);
    let job = Open {
        key: (&case.key).into(),
        nonce: &case.nonce,
        associated: case.associated.as_deref(),
        text: text.as_mut_slice().into(),
        tag,
        genuine: &mut genuine,
    };
    run_batch_on(path, std::iter::once(job));
    genuine.then_some(text)
}

fn check(
    algorithm: Algorithm,
    key: &[u8],
    nonce: &[u8],
    associated: Option<&[u8]>,
    text: &[u8],
    sealed: &[u8],
) {
    let case = Case {
        key: Key::new(algorithm, key).unwrap(),
        nonce: nonce.to_vec(),
        associated: associated.map(<[u8]>::to_vec),
        text: text.to_vec(),
    };
    let mut expected = sealed.to_vec();
    let (ciphertext, tag) = algorithm.split_sealed(&mut expected).unwrap();
    for path in paths() {
        let out = seal_case(path, &case);
        assert_eq!((&*out.0, &out.1), (&*ciphertext, &*tag), "{path}");
        assert_eq!(open_case(path, &case, &out), Some(text.to_vec()), "{path}");
    }
}

const RFC_5297_A2_KEY: [u8; 32] = hex!("7f7e7d7c7b7a79787776757473727170404142434445464748494a4b4c4d4e4f");
const RFC_5297_A2_TEXT: &[u8] = b"this is some plaintext to encrypt using SIV-AES";

#[test]
fn siv_of_rfc_5297_a1_reads_its_only_component_as_nonce() {
    check(
        Algorithm::SivCmac256,
        &hex!("fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"),
        &hex!("101112131415161718191a1b1c1d1e1f2021222324252627"),
        None,
        &hex!("112233445566778899aabbccddee"),
        &hex!("85632d07c6e8f37f950acd320a2ecc9340c02b9690c4dc04daef7f6afe5c"),
    );
}

#[test]
fn siv_with_associated_data_nonce_and_text() {
    let associated = hex!("00112233445566778899aabbccddeeffdeaddadadeaddadaffeeddccbbaa99887766554433221100");
    let nonce = hex!("09f911029d74e35bd84156c5635688c0");
    check(
        Algorithm::SivCmac256,
        &RFC_5297_A2_KEY,
        &nonce,
        Some(&associated),
        RFC_5297_A2_TEXT,
        &hex!(
            "85825e22e90cf2ddda2c548dc7c1b6310dcdaca0cebf9dc6cb90583f5bf1506e
             02cd48832b00e4e598b2b22a53e6199d4df0c1666a35a0433b250dc134d776"
        ),
    );
    check(
        Algorithm::SivCmac256,
        &RFC_5297_A2_KEY,
        &nonce,
        Some(&associated),
        b"",
        &hex!("4cf1e6f9180dca7683caaa9c7bb70ec6"),
    );
}

#[test]
fn siv_512_and_256_with_empty_associated_data() {
    let nonce = hex!("101112131415161718191a1b1c1d1e1f2021222324252627");
    let text = hex!("112233445566778899aabbccddee");
    check(
        Algorithm::SivCmac512,
        &hex!(
            "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f06f6e6d6c6b6a69686766656463626160
             f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff000102030405060708090a0b0c0d0e0f"
        ),
        &nonce,
        Some(b""),
        &text,
        &hex!("e618d2d6a86b50a8d7df82ab34aa950ab319d7fc15f7cd1ea99b1a033f20"),
    );
    check(
        Algorithm::SivCmac256,
        &hex!("fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"),
        &nonce,
        Some(b""),
        &text,
        &hex!("4b3d0f15ae9ffa9e65b949421582ef70e410910d6446c7759ebff9b5385a"),
    );
}

#[test]
fn gcm_siv_of_rfc_8452_appendix_c1() {
    let key = hex!("01000000000000000000000000000000");
    let nonce = hex!("030000000000000000000000");
    let gcm_siv = |associated: &[u8], text: &[u8], sealed: &[u8]| {
        check(Algorithm::Aes128GcmSiv, &key, &nonce, Some(associated), text, sealed);
    };
    gcm_siv(b"", b"", &hex!("dc20e2d83f25705bb49e439eca56de25"));
    gcm_siv(b"", &hex!("0100000000000000"), &hex!("b5d839330ac7b786578782fff6013b815b287c22493a364c"));
    gcm_siv(&[1], &hex!("0200000000000000"), &hex!("1e6daba35669f4273b0a1a2560969cdf790d99759abd1508"));
    check(
        Algorithm::Aes128GcmSiv,
        &hex!("36864200e0eaf5284d884a0e77d31646"),
        &hex!("bae8e37fc83441b16034566b"),
        Some(&hex!("46bb91c3c5")),
        &hex!("7a806c"),
        &hex!("af60eb711bd85bc1e4d3e0a462e074eea428a8"),
    );
}

#[test]
fn key_of_another_size_is_refused() {
    for algorithm in Algorithm::ALL {
        for size in 0..=65 {
            assert_eq!(Key::new(algorithm, &vec![1; size]).is_some(), size == algorithm.key_size());
        }
    }
}

#[test]
fn secrets_print_as_their_algorithm() {
    let key = Key::new(Algorithm::SivCmac256, &[0x5A; 32]).unwrap();
    assert_eq!(format!("{key:?} {:?}", CachedKey::new(&[0x5A; 32])), "Key(SivCmac256) Key(SivCmac256)");
}

#[test]
fn nonce_of_a_size_the_algorithm_lacks_opens_nothing() {
    for (algorithm, nonce_size) in [(Algorithm::SivCmac256, 0), (Algorithm::Aes128GcmSiv, 16)] {
        let key = Key::new(algorithm, &vec![1; algorithm.key_size()]).unwrap();
        let case = Case { key, nonce: vec![0; nonce_size], associated: Some(vec![]), text: vec![] };
        for path in paths() {
            assert_eq!(open_case(path, &case, &(vec![7; 20], [0; TAG_SIZE])), None);
        }
    }
}

proptest! {
    #[test]
    fn cached_key_equals_session_key(
        octets: [u8; 32],
        nonce: [u8; 12],
        text in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let (session, cached) = (Key::new(Algorithm::SivCmac256, &octets).unwrap(), CachedKey::new(&octets));
        let mut sealed = [(text.clone(), [0; TAG_SIZE]), (text, [0; TAG_SIZE])];
        let keys = [(&session).into(), (&cached).into()];
        run_batch(sealed.iter_mut().zip(keys).map(|((text, tag), key)| {
            Seal { key, nonce: &nonce, associated: None, text: text.as_mut_slice().into(), tag }
        }));
        prop_assert_eq!(&sealed[0], &sealed[1]);
    }
}
