//! No bit of a packet, its nonce, its tag or its key can change unnoticed, and a wrong job fails alone.

use authentick_crypto::Entropy;
use authentick_crypto::mac::{MacAlgorithm, MacKey};

use super::super::paths;
use super::{Case, case, cases, tags, verify};

/// As many copies as there are bits, each with another bit of one part flipped.
fn flipped(original: &Case, bit_count: usize, flip: impl Fn(&mut Parts, usize)) -> Vec<Case> {
    let copy = |bit: usize| {
        let mut parts = Parts {
            key: original.key.expose().to_vec(),
            nonce: original.nonce,
            message: original.message.clone(),
        };
        flip(&mut parts, bit);
        let key = MacKey::new(original.key.algorithm(), &parts.key).unwrap();
        Case { key, nonce: parts.nonce, message: parts.message, tag_size: original.tag_size }
    };
    (0..bit_count).map(copy).collect()
}

struct Parts {
    key: Vec<u8>,
    nonce: Option<[u8; 12]>,
    message: Vec<u8>,
}

fn flip(octets: &mut [u8], bit: usize) {
    octets[bit / 8] ^= 1 << (bit % 8);
}

#[test]
fn each_bit_of_packet_nonce_key_and_tag_counts() {
    for algorithm in MacAlgorithm::ALL {
        let original = case(&mut Entropy::from_seed(11), algorithm, 48);
        let nonce_bits = original.nonce.map_or(0, |nonce| 8 * nonce.len());
        let key_bits = 8 * original.key.expose().len();
        let same = flipped(&original, 8 * original.tag_size, |_, _| ());
        let mut wrong = flipped(&original, 8 * 48, |parts, bit| flip(&mut parts.message, bit));
        wrong.extend(flipped(&original, nonce_bits, |parts, bit| flip(parts.nonce.as_mut().unwrap(), bit)));
        wrong.extend(flipped(&original, key_bits, |parts, bit| flip(&mut parts.key, bit)));
        // The sizes count too.
        wrong.extend(flipped(&original, 1, |parts, _| parts.message.truncate(47)));
        wrong.extend(flipped(&original, 1, |parts, _| parts.message.push(0)));
        for path in paths() {
            let tag = tags(path, std::slice::from_ref(&original)).remove(0);
            assert_eq!(verify(path, &same, &vec![tag.clone(); same.len()]), vec![true; same.len()]);
            let results = verify(path, &wrong, &vec![tag.clone(); wrong.len()]);
            let accepted: Vec<usize> = (0..wrong.len()).filter(|index| results[*index]).collect();
            assert_eq!(accepted, [0_usize; 0], "{path}, {algorithm}");
            let wrong_tags: Vec<Vec<u8>> = (0..same.len())
                .map(|bit| {
                    let mut tag = tag.clone();
                    flip(&mut tag, bit);
                    tag
                })
                .collect();
            assert_eq!(verify(path, &same, &wrong_tags), vec![false; same.len()], "{path}, {algorithm}");
        }
    }
}

#[test]
fn wrong_tag_in_any_place_of_a_batch_fails_alone() {
    for path in paths() {
        for (seed, count) in [1, 2, 4, 5, 8, 9, 16, 17, 64].into_iter().enumerate() {
            let cases = cases(&mut Entropy::from_seed(seed as u64), count);
            let tags = tags(path, &cases);
            for victim in 0..count {
                let mut tags = tags.clone();
                flip(&mut tags[victim], (victim * 37 + seed) % 128);
                let expected: Vec<bool> = (0..count).map(|index| index != victim).collect();
                assert_eq!(verify(path, &cases, &tags), expected, "{path}, {victim} of {count}");
            }
        }
    }
}

#[test]
fn tag_of_another_algorithm_under_the_same_key_is_refused() {
    let key = [3; 32];
    for path in paths() {
        let cases: Vec<Case> = MacAlgorithm::ALL
            .into_iter()
            .map(|algorithm| {
                let size = if algorithm.key_sizes().contains(&16) { 16 } else { 32 };
                let key = MacKey::new(algorithm, &key[..size]).unwrap();
                let nonce = algorithm.nonce_size().map(|_| [1; 12]);
                Case { key, nonce, message: vec![0x23; 48], tag_size: 16 }
            })
            .collect();
        let tags = tags(path, &cases);
        for (index, case) in cases.iter().enumerate() {
            for (other, tag) in tags.iter().enumerate() {
                let genuine = verify(path, std::slice::from_ref(case), std::slice::from_ref(tag));
                assert_eq!(genuine, [index == other], "{path}, {} {other}", case.key.algorithm());
            }
        }
    }
}
