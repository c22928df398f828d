//! What holds for every store, tried with each of them.

use std::sync::Arc;

use authentick_proto::keyset::Role;

use super::*;

pub(super) fn ids(keys: &KeySet) -> Vec<(Role, u32)> {
    keys.keys().map(|(role, key)| (role, key.id())).collect()
}

pub(super) const fn rotation(count: u64, now: u64) -> Rotation {
    Rotation { count, now, keep: 3, derived: None }
}

pub(super) fn here(rotated: Result<Rotated<KeySet>, StoreError>) -> KeySet {
    match rotated.unwrap() {
        Rotated::Here(held) => held.keys,
        Rotated::ByOthers(_) | Rotated::Later(_) => panic!("it has rotated"),
    }
}

/// Tries `each` with a file and with memory.
fn with_each(each: impl Fn(Arc<dyn KeyStore<KeySet>>)) {
    let directory = tempfile::tempdir().unwrap();
    let file = Stores::in_directory(&directory.path().join("state")).cookie_keys;
    file.prepare(None).unwrap();
    each(file);
    each(Arc::new(MemoryStore::default()));
}

#[test]
fn swap_that_names_another_version_is_lost_and_changes_nothing() {
    with_each(|store| {
        let mut entropy = Entropy::from_seed(1);
        let first = KeySet::generate(1000, &mut entropy);
        let swap = |expected, keys| store.compare_and_swap(expected, keys, Duration::ZERO).unwrap();
        let Swap::Done(version) = swap(None, &first) else { panic!("there are no keys yet") };
        let second = first.rotate(2000, 3, &mut entropy);
        assert_eq!(swap(None, &second), Swap::Lost);
        assert!(matches!(store.watch(Some(version)), Ok(News::None)));
        let Swap::Done(next) = swap(Some(version), &second) else { panic!("nobody else has changed them") };
        assert_ne!(next, version);
        // Whoever has seen the first set alone comes too late.
        assert_eq!(swap(Some(version), &first.rotate(2001, 3, &mut entropy)), Swap::Lost);
        let Ok(News::Changed(held)) = store.watch(Some(version)) else { panic!("they have changed") };
        assert_eq!((held.version, ids(&held.keys)), (next, ids(&second)));
        for (_, key) in second.keys() {
            assert_eq!(held.keys.find(key.id()).unwrap().key().expose(), key.key().expose());
        }
    });
}

#[test]
fn of_those_who_make_keys_at_once_one_makes_them_and_all_have_the_same() {
    with_each(|store| {
        let made = |seed| {
            let held = store.load_or_create(1000, &mut Entropy::from_seed(seed)).unwrap();
            held.keys.keys().map(|(_, key)| key.key().expose().to_vec()).collect::<Vec<_>>()
        };
        let all = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|seed| scope.spawn(move || made(seed))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(all.iter().all(|keys| *keys == all[0]));
    });
}

#[test]
fn of_those_who_rotate_at_once_one_does_and_the_others_take_that_over() {
    with_each(|store| {
        let first = store.load_or_create(1000, &mut Entropy::from_seed(1)).unwrap().keys;
        let rotate = |seed| store.rotate(&first, rotation(1, 2000), &mut Entropy::from_seed(seed)).unwrap();
        let rotated = std::thread::scope(|scope| {
            let rotate = &rotate;
            let threads: Vec<_> = (2..6).map(|seed| scope.spawn(move || rotate(seed))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let count = rotated.iter().filter(|rotated| matches!(rotated, Rotated::Here(_))).count();
        assert_eq!(count, 1);
        let stored = store.load().unwrap().unwrap();
        for rotated in &rotated {
            let (Rotated::Here(held) | Rotated::ByOthers(held)) = rotated else { panic!("{rotated:?}") };
            assert_eq!((held.version, ids(&held.keys)), (stored.version, ids(&stored.keys)));
        }
    });
}

#[test]
fn age_is_that_of_its_key_alone_in_every_store() {
    with_each(|store| {
        assert_eq!(store.age(7).unwrap(), Duration::ZERO);
        store.set_age(7, Duration::from_secs(81_200)).unwrap();
        assert_eq!(store.age(7).unwrap(), Duration::from_secs(81_200));
        assert_eq!(store.age(8).unwrap(), Duration::ZERO);
    });
}

#[test]
fn keys_that_a_store_has_lost_come_back_from_whoever_has_them_in_force() {
    let store = MemoryStore::<KeySet>::default();
    let held = store.load_or_create(1000, &mut Entropy::from_seed(1)).unwrap();
    assert_eq!(store.restore_if_gone(&held.keys).unwrap(), None);
    store.forget();
    assert!(matches!(store.watch(Some(held.version)), Ok(News::Gone)));
    let version = store.restore_if_gone(&held.keys).unwrap().unwrap();
    let restored = store.load().unwrap().unwrap();
    assert_eq!((restored.version, ids(&restored.keys)), (version, ids(&held.keys)));
}

#[test]
fn file_of_another_version_is_good_and_not_to_be_removed() {
    let of_version = |version: u32| format!("authentick-cookie-keys {version}\n");
    for (text, is_of_another) in [
        (of_version(2), true),
        (of_version(17), true),
        (of_version(1), false),
        ("keys 2\n".to_owned(), false),
    ] {
        let error = lines::parse::<KeySet>("/state/cookie-keys", text.as_bytes()).unwrap_err();
        assert_eq!(matches!(error, StoreError::Version(_)), is_of_another, "{text}: {error}");
        assert_eq!(error.remedy().contains("remove it"), !is_of_another, "{text}: {}", error.remedy());
    }
}
