//! Each algorithm on each path gives what another way to compute it gives, over random keys and sizes.

use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{AeadInOut, KeyInit};
use authentick_crypto::mac::MacAlgorithm;
use authentick_crypto::{Algorithm, Entropy, Key, Path, Seal, run_batch_on};
use cmac::{Cmac, Mac};
use md5::{Digest, Md5};
use poly1305::Poly1305;
use proptest::prelude::*;
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

use super::super::paths;
use super::{Case, SIDE_BY_SIDE, Shape, case, cases, shapes, tags, verify};

/// The untruncated tag, in another way.
fn expected(case: &Case) -> Vec<u8> {
    let (key, message) = (case.key.expose(), &case.message[..]);
    let whole = || [key, message].concat();
    let nonce = || case.nonce.unwrap();
    match case.key.algorithm() {
        MacAlgorithm::Md5 => Md5::digest(whole()).to_vec(),
        MacAlgorithm::Sha1 => Sha1::digest(whole()).to_vec(),
        MacAlgorithm::Sha256 => Sha256::digest(whole()).to_vec(),
        MacAlgorithm::Sha384 => Sha384::digest(whole()).to_vec(),
        MacAlgorithm::Sha512 => Sha512::digest(whole()).to_vec(),
        MacAlgorithm::HmacMd5 => hmac::<Md5>(key, message),
        MacAlgorithm::HmacSha224 => hmac::<Sha224>(key, message)[..16].to_vec(),
        MacAlgorithm::Cmac128 => cmac::<Cmac<aes::Aes128>>(key, message),
        MacAlgorithm::Cmac256 => cmac::<Cmac<aes::Aes256>>(key, message),
        MacAlgorithm::Gmac128 => {
            let gcm = Aes128Gcm::new_from_slice(key).unwrap();
            let nonce = nonce();
            gcm.encrypt_inout_detached((&nonce).into(), message, (&mut [][..]).into()).unwrap().to_vec()
        }
        MacAlgorithm::GmacSiv128 => {
            let (key, mut tag) = (Key::new(Algorithm::Aes128GcmSiv, key).unwrap(), [0; 16]);
            let (key, nonce) = ((&key).into(), &nonce()[..]);
            let job =
                Seal { key, nonce, associated: Some(message), text: (&mut [][..]).into(), tag: &mut tag };
            run_batch_on(Path::Portable, std::iter::once(job));
            tag.to_vec()
        }
        MacAlgorithm::Poly1305 => {
            let poly1305 = Poly1305::new(&one_time(key, &nonce()).into());
            poly1305.compute_unpadded(message).to_vec()
        }
    }
}

/// RFC 2104 section 2, word by word, for keys that are not longer than a block of 64 octets.
fn hmac<D: Digest>(key: &[u8], message: &[u8]) -> Vec<u8> {
    let pad = |octet: u8| -> Vec<u8> {
        (0..64).map(|index| octet ^ key.get(index).copied().unwrap_or_default()).collect()
    };
    let inner = D::digest([&pad(0x36), message].concat());
    D::digest([&pad(0x5c), &inner[..]].concat()).to_vec()
}

fn cmac<M: Mac + KeyInit>(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

/// The first half of ChaCha20's block number zero. RFC 8439 section 2.3, word by word.
fn one_time(key: &[u8], nonce: &[u8; 12]) -> [u8; 32] {
    let octets = [b"expand 32-byte k", key, &[0; 4], nonce].concat();
    let words = octets.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let start: [u32; 16] = words.collect::<Vec<u32>>().try_into().unwrap();
    let mut state = start;
    for _ in 0..10 {
        for [a, b, c, d] in [
            [0, 4, 8, 12],
            [1, 5, 9, 13],
            [2, 6, 10, 14],
            [3, 7, 11, 15],
            [0, 5, 10, 15],
            [1, 6, 11, 12],
            [2, 7, 8, 13],
            [3, 4, 9, 14],
        ] {
            for (x, y, z, turn) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
                state[x] = state[x].wrapping_add(state[y]);
                state[z] = (state[z] ^ state[x]).rotate_left(turn);
            }
        }
    }
    let mut out = [0; 32];
    for (index, place) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *place = state[index].wrapping_add(start[index]).to_le_bytes();
    }
    out
}

fn agrees(cases: &[Case], hint: &str) {
    let expected: Vec<Vec<u8>> = cases.iter().map(|case| expected(case)[..case.tag_size].to_vec()).collect();
    for path in paths() {
        let tags = tags(path, cases);
        for ((tag, expected), case) in tags.iter().zip(&expected).zip(cases) {
            assert_eq!(tag, expected, "{path}, {}, {hint}", case.key.algorithm());
        }
        assert!(verify(path, cases, &tags).iter().all(|genuine| *genuine), "{path}, {hint}");
    }
}

#[test]
fn every_size_of_every_algorithm_agrees() {
    for algorithm in MacAlgorithm::ALL {
        let mut entropy = Entropy::from_seed(algorithm as u64);
        let cases: Vec<Case> = (0..=300).map(|size| case(&mut entropy, algorithm, size)).collect();
        agrees(&cases, "one of each size");
    }
}

#[test]
fn key_that_is_used_again_gives_the_same_tags() {
    for algorithm in MacAlgorithm::ALL {
        let cases = [case(&mut Entropy::from_seed(5), algorithm, 48)];
        for path in paths() {
            assert_eq!(tags(path, &cases), tags(path, &cases), "{path}, {algorithm}");
        }
        agrees(&cases, "after other uses");
    }
}

fn batch_agrees(seed: u64, count: usize, shape: Shape) {
    let cases = cases(&mut Entropy::from_seed(seed), count, shape);
    agrees(&cases, &format!("seed {seed}, {count} cases {shape:?}"));
}

proptest! {
    #[test]
    fn even_batches_agree(seed: u64, count in 1..=64_usize, algorithm in 0..MacAlgorithm::ALL.len()) {
        batch_agrees(seed, count, Shape::Even(MacAlgorithm::ALL[algorithm]));
    }

    #[test]
    fn batches_under_one_key_agree(seed: u64, count in 1..=64_usize, algorithm in 0..MacAlgorithm::ALL.len()) {
        batch_agrees(seed, count, Shape::OneKey(MacAlgorithm::ALL[algorithm]));
    }

    #[test]
    fn batches_of_few_shapes_agree(seed: u64, count in 1..=64_usize) {
        batch_agrees(seed, count, Shape::Few);
    }

    #[test]
    fn mixed_batches_agree(seed: u64, count in 0..=70_usize) {
        batch_agrees(seed, count, Shape::Mixed);
    }
}

/// All shapes, each batch size.
#[test]
fn batches_of_each_size_agree() {
    for count in (1..=64).chain([65, 127, 128, 129]) {
        shapes().for_each(|shape| batch_agrees(count as u64, count, shape));
    }
}

/// All lanes are full, in each width of a path.
#[test]
fn every_size_agrees_in_full_lanes() {
    for algorithm in SIDE_BY_SIDE {
        for (size, count) in (0..=300).flat_map(|size| [(size, 16), (size, 6)]) {
            let mut entropy = Entropy::from_seed(size as u64);
            let cases: Vec<Case> = (0..count).map(|_| case(&mut entropy, algorithm, size)).collect();
            agrees(&cases, &format!("{count} of {size} octets"));
        }
    }
}

#[test]
fn paths_are_those_of_this_processor() {
    assert!(paths().iter().all(|path: &Path| path.is_available()));
}
