//! Sets of symmetric keys: what is found, what is refused, what is counted, what goes on the wire.

use std::collections::HashSet;

use super::*;

fn key(algorithm: MacAlgorithm, octet: u8) -> MacKey {
    let size = match algorithm {
        MacAlgorithm::Cmac256 | MacAlgorithm::Poly1305 => 32,
        _ => 16,
    };
    MacKey::new(algorithm, &vec![octet; size]).unwrap()
}

fn set(ids: impl IntoIterator<Item = u32>) -> Result<SymmetricKeys, SymmetricKeysError> {
    let keys = ids.into_iter().map(|id| (id, key(MacAlgorithm::Cmac128, id as u8)));
    SymmetricKeys::new(keys, Allowed::default(), 2)
}

#[test]
fn each_key_is_found_under_its_identifier_and_nothing_under_any_other() {
    let spread = (0..2000).map(|index: u32| index.wrapping_mul(0x0101_0107) | 1 << 31);
    let ids: Vec<u32> = (1..2000).chain(spread).chain([u32::MAX]).collect();
    let keys = set(ids.iter().copied()).unwrap();
    for &id in &ids {
        assert_eq!(keys.find(id).unwrap().id(), id);
    }
    let known: HashSet<u32> = ids.iter().copied().collect();
    for id in (0..u32::MAX).step_by(9973).filter(|id| !known.contains(id)) {
        assert!(keys.find(id).is_none(), "{id}");
    }
    assert_eq!(keys.iter().len(), ids.len());
}

#[test]
fn no_identifier_takes_long_to_find() {
    let keys = set(1..=4096).unwrap();
    let longest = (0..=u32::from(u16::MAX))
        .chain((0..u32::MAX).step_by(65521))
        .map(|id| search(&keys.table, id).wrapping_sub(home(id)) & (keys.table.len() - 1))
        .max();
    assert!(longest.unwrap() < 64, "{longest:?}");
}

#[test]
fn empty_set_finds_nothing() {
    let keys = SymmetricKeys::new(std::iter::empty::<SymmetricKey>(), Allowed::default(), 0).unwrap();
    assert!([0, 1, u32::MAX].iter().all(|&id| keys.find(id).is_none()));
}

#[test]
fn duplicate_and_zero_identifiers_and_too_many_keys_are_refused() {
    assert_eq!(set([1, 7, 7]).unwrap_err(), SymmetricKeysError::DuplicateId(7));
    assert_eq!(set([1, 0]).unwrap_err(), SymmetricKeysError::ZeroId);
    let count = SYMMETRIC_KEY_COUNT_MAX as u32 + 1;
    assert_eq!(set(1..=count).unwrap_err(), SymmetricKeysError::TooMany);
}

#[test]
fn counts_of_workers_add_up_and_survive_a_successor_that_keeps_the_key() {
    let keys = set([1, 2]).unwrap();
    keys.find(1).unwrap().count(0, Event::Answered);
    keys.find(1).unwrap().count(1, Event::Answered);
    keys.find(1).unwrap().count(1, Event::WrongTag);
    keys.find(1).unwrap().count(2, Event::Answered);
    keys.find(2).unwrap().count(0, Event::NotAllowed);
    let counts = Counts { answered: 2, wrong_tags: 1, not_allowed: 0 };
    assert_eq!(keys.find(1).unwrap().counts(), counts, "worker 2 has no counters");

    let changed = [(1, key(MacAlgorithm::Cmac128, 1)), (2, key(MacAlgorithm::Cmac128, 9))];
    let next = keys.successor(changed, Allowed::ALL).unwrap();
    next.find(1).unwrap().count(0, Event::Answered);
    assert_eq!(next.find(1).unwrap().counts(), Counts { answered: 3, ..counts });
    assert_eq!(next.find(2).unwrap().counts(), Counts::default(), "another key under an old identifier");
}

#[test]
fn counters_of_two_workers_share_no_cache_line() {
    let keys = set([1]).unwrap();
    let places: Vec<usize> =
        keys.at(0).counters.iter().map(|counters| std::ptr::from_ref(counters).addr()).collect();
    assert!(places.iter().all(|place| place % 64 == 0) && places[1] - places[0] >= 64);
}

#[test]
fn keyed_digests_and_nonces_must_be_allowed_and_macs_need_not() {
    for algorithm in MacAlgorithm::ALL {
        let objection = Allowed::default().objection(algorithm);
        let free = ["HMAC-MD5", "HMAC-SHA224", "AES128", "AES256"].contains(&algorithm.name());
        assert_eq!(objection.is_none(), free, "{algorithm}");
        assert_eq!(Allowed::ALL.objection(algorithm), None);
        let other = Allowed { keyed_digests: algorithm.nonce_size().is_some(), nonces: false };
        assert_eq!(other.objection(algorithm), objection, "{algorithm}: the other switch does not help");
    }
}

#[test]
fn nonces_come_back_out_of_their_bodies_and_salts_stay_at_home() {
    let plain = SymmetricKey::new(1, key(MacAlgorithm::Gmac128, 1));
    let salted = SymmetricKey::new(1, key(MacAlgorithm::Gmac128, 1)).with_salt(*b"salt").unwrap();
    let mut entropy = Entropy::from_seed(1);
    for key in [&plain, &salted] {
        let nonce = key.draw_nonce(&mut entropy).unwrap();
        assert_eq!(key.nonce_of(&key.body_of(&nonce)), Some(nonce));
        assert_ne!(key.draw_nonce(&mut entropy), Some(nonce));
    }
    let nonce = salted.draw_nonce(&mut entropy).unwrap();
    assert_eq!(nonce.octets()[..4], *b"salt");
    let mut body = salted.body_of(&nonce);
    assert_eq!((&body[..8], &body[8..]), (&nonce.octets()[4..], &[0; 4][..]));
    body[11] = 1;
    assert_eq!(salted.nonce_of(&body), None, "what is no nonce is zero");
    let cmac = SymmetricKey::new(1, key(MacAlgorithm::Cmac128, 1));
    assert_eq!((cmac.draw_nonce(&mut entropy), cmac.nonce_of(&body)), (None, None));
    assert_eq!(cmac.with_salt([0; 4]).unwrap_err(), NoSalt { algorithm: MacAlgorithm::Cmac128 });
}

#[test]
fn secrets_do_not_print() {
    assert_eq!(format!("{:?}", set([5]).unwrap()), "[SymmetricKey(5, AES128)]");
}
