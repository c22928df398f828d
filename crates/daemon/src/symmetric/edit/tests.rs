//! What changes, what stays, and what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::*;
use crate::symmetric::text;

const DAY: u64 = 86_400;

fn file(text: &str) -> (tempfile::TempDir, KeyFile) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys");
    if !text.is_empty() {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    (directory, KeyFile::new(&path, None))
}

fn text_of(file: &KeyFile) -> String {
    String::from_utf8(fs::read(file.path()).unwrap()).unwrap()
}

fn order(algorithm: MacAlgorithm) -> Order {
    Order { id: None, algorithm, salt: false }
}

#[test]
fn first_key_makes_the_file_with_mode_0600() {
    let (_directory, file) = file("");
    let mut entropy = Entropy::from_seed(1);
    let (keys, id) = generate(&file, order(MacAlgorithm::Cmac128), Dialect::Chrony, 0, &mut entropy).unwrap();
    assert_eq!((id, keys.keys.len()), (1, 1));
    assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o7777, 0o600);
    let text = text_of(&file);
    assert!(text.starts_with("# authentick: key 1 made 1970-01-01T00:00:00Z\n1 AES128 HEX:"), "{text}");
    assert!(text.ends_with('\n') && text.lines().count() == 2, "{text}");
}

#[test]
fn keys_of_every_type_are_made_and_read_again_in_both_dialects() {
    for dialect in [Dialect::Chrony, Dialect::Ntp] {
        let (_directory, file) = file("");
        let mut entropy = Entropy::from_seed(1);
        for algorithm in MacAlgorithm::ALL {
            generate(&file, order(algorithm), dialect, 0, &mut entropy).unwrap();
        }
        let salted = Order { salt: true, ..order(MacAlgorithm::Gmac128) };
        generate(&file, salted, dialect, 0, &mut entropy).unwrap();
        let keys = file.load().unwrap();
        let found: Vec<_> = keys.keys.iter().map(Key::algorithm).collect();
        assert_eq!(found[..12], MacAlgorithm::ALL);
        assert!(keys.find(13).unwrap().key.salt().is_some());
        assert_eq!((keys.dialect, keys.warnings.len()), (Some(dialect), 0), "{:?}", keys.warnings);
        let secrets: HashSet<_> = keys.keys.iter().map(|key| key.key.key().expose()).collect();
        assert_eq!(secrets.len(), 13, "no key is made twice");
    }
}

#[test]
fn new_key_is_written_as_the_file_is() {
    let (_directory, file) = file("7 M tulips-tulips # MD5 key");
    let (_, id) =
        generate(&file, order(MacAlgorithm::Cmac128), Dialect::Chrony, 0, &mut Entropy::from_seed(1))
            .unwrap();
    let text = text_of(&file);
    assert_eq!(id, 1);
    assert!(text.starts_with("7 M tulips-tulips # MD5 key\n# authentick: key 1 made"), "{text}");
    assert!(text.contains("\n1 AES128CMAC ") && !text.contains("HEX:"), "{text}");
}

#[test]
fn rotation_overlaps_and_other_lines_stay_as_they_are() {
    let before = "! of chrony\n\n  3\tMD5  tulips-tulips\n\
                  # authentick: key 5 made 1970-01-01T00:00:00Z\n5 AES128 ASCII:0123456789abcdef\n";
    let (_directory, file) = file(before);
    let mut entropy = Entropy::from_seed(1);
    let (keys, next) = rotate(&file, 5, None, 30 * DAY, DAY, &mut entropy).unwrap();
    assert_eq!(next, 6);
    assert_eq!(keys.find(6).unwrap().algorithm(), MacAlgorithm::Cmac128);
    assert_ne!(keys.find(6).unwrap().key.key().expose(), keys.find(5).unwrap().key.key().expose());
    assert_eq!(keys.accepted(31 * DAY - 1).map(Key::id).collect::<Vec<_>>(), [3, 5, 6]);
    assert_eq!(keys.accepted(31 * DAY).map(Key::id).collect::<Vec<_>>(), [3, 6]);
    let text = text_of(&file);
    assert!(text.starts_with(&before[..before.find("# authentick").unwrap()]), "{text}");
    let note = "# authentick: key 5 made 1970-01-01T00:00:00Z replaced-by 6 retires 1970-02-01T00:00:00Z\n\
                5 AES128 ASCII:";
    assert!(text.contains(note), "{text}");
    // A key without a note gets one, before its line.
    rotate(&file, 3, Some(9), DAY, DAY, &mut entropy).unwrap();
    let text = text_of(&file);
    assert!(
        text.contains(
            "# authentick: key 3 replaced-by 9 retires 1970-01-03T00:00:00Z\n  3\tMD5  tulips-tulips\n"
        ),
        "{text}"
    );
    let error = rotate(&file, 5, None, DAY, DAY, &mut entropy).unwrap_err();
    assert!(
        error.to_string().contains("replaced by key 6") && error.remedy().contains("rotate key 6"),
        "{error}"
    );
}

#[test]
fn retired_key_leaves_its_id_and_no_secret() {
    let (_directory, file) = file("1 MD5 tulips-tulips\n2 MD5 crocus-crocus\n");
    let keys = retire(&file, 1, DAY).unwrap();
    assert_eq!(keys.keys.iter().map(Key::id).collect::<Vec<_>>(), [2]);
    assert_eq!(text_of(&file), "# authentick: key 1 retired 1970-01-02T00:00:00Z\n2 MD5 crocus-crocus\n");
    let mut entropy = Entropy::from_seed(1);
    let mut make = |id| {
        let order = Order { id, ..order(MacAlgorithm::Cmac128) };
        generate(&file, order, Dialect::Chrony, DAY, &mut entropy).map(|(_, id)| id)
    };
    assert!(matches!(make(Some(1)), Err(EditError::Retired(1))));
    assert!(matches!(make(Some(2)), Err(EditError::Taken(2))));
    assert!(matches!(make(Some(0)), Err(EditError::Id(0, u32::MAX))));
    assert_eq!(make(None).unwrap(), 3, "ids of retired keys are not given again");
    assert!(matches!(retire(&file, 1, DAY), Err(EditError::NoKey(1))));
    for id in [2, 3] {
        retire(&file, id, DAY).unwrap();
    }
    assert!(file.load().unwrap().keys.is_empty(), "the last key can go too");
}

#[test]
fn ids_go_as_high_as_the_readers_of_the_file_take() {
    for (line, most) in
        [("4294967295 AES128 ASCII:0123456789abcdef\n", u32::MAX), ("65535 M tulips-tulips\n", 65_535)]
    {
        let (_directory, file) = file(line);
        let (_, next) = rotate(&file, most, None, DAY, 0, &mut Entropy::from_seed(1)).unwrap();
        assert_eq!(next, 1, "after the highest the search begins anew");
        if let Some(above) = most.checked_add(1) {
            let order = Order { id: Some(above), ..order(MacAlgorithm::Cmac128) };
            let error = generate(&file, order, Dialect::Chrony, 0, &mut Entropy::from_seed(1)).unwrap_err();
            assert!(matches!(error, EditError::Id(id, 65_535) if id == above), "{error}");
        }
    }
}

#[test]
fn salts_are_for_gmac_and_a_broken_file_is_left_alone() {
    let (_directory, file) = file("1 MD5 tulips-tulips\n1 MD5 twice-the-same\n");
    let salted = Order { salt: true, ..order(MacAlgorithm::Cmac128) };
    let mut entropy = Entropy::from_seed(1);
    let error = generate(&file, salted, Dialect::Chrony, 0, &mut entropy).unwrap_err();
    assert!(matches!(error, EditError::File(KeyFileError::Text(..))), "{error}");
    assert_eq!(text_of(&file), "1 MD5 tulips-tulips\n1 MD5 twice-the-same\n");
    fs::write(file.path(), "1 MD5 tulips-tulips\n").unwrap();
    let error = generate(&file, salted, Dialect::Chrony, 0, &mut entropy).unwrap_err();
    assert!(error.remedy().contains("GMAC128"), "{error}");
    assert_eq!(text_of(&file), "1 MD5 tulips-tulips\n");
}

fn keys() -> impl Strategy<Value = (u32, MacAlgorithm, Vec<u8>, Option<[u8; SALT_SIZE]>)> {
    let algorithm = prop::sample::select(MacAlgorithm::ALL.to_vec());
    (1..=u32::MAX, algorithm, any::<[u8; SALT_SIZE]>(), any::<bool>()).prop_flat_map(
        |(id, algorithm, salt, salted)| {
            let sizes = algorithm.key_sizes();
            let sizes = *sizes.start()..=*sizes.end().min(&500);
            let salt = (salted && algorithm == MacAlgorithm::Gmac128).then_some(salt);
            prop::collection::vec(any::<u8>(), sizes).prop_map(move |octets| (id, algorithm, octets, salt))
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read((id, algorithm, octets, salt) in keys()) {
        for (dialect, format) in [
            (Dialect::Chrony, Some(Dialect::Chrony)),
            (Dialect::Ntp, Some(Dialect::Ntp)),
            (Dialect::Chrony, None),
            (Dialect::Ntp, None),
        ] {
            let Some(line) = line(id, algorithm, &octets, salt, dialect) else {
                prop_assert!(dialect == Dialect::Ntp && !(11..=32).contains(&octets.len()));
                continue;
            };
            let keys = text::parse(&line, format).unwrap();
            let key = &keys.keys[0];
            prop_assert_eq!((key.id(), key.algorithm(), key.key.salt()), (id, algorithm, salt));
            prop_assert_eq!(key.key.key().expose(), &octets[..]);
        }
    }

    #[test]
    fn any_octets_are_read_or_refused(octets in prop::collection::vec(any::<u8>(), 0..300)) {
        crate::fuzzing::key_file(&octets);
    }

    #[test]
    fn any_words_are_read_or_refused(
        words in prop::collection::vec(prop::sample::select(vec![
            "1", "2", "0", "4294967296", "MD5", "M", "AES128", "aes", "GMAC128", "SHA1", "TIGER", "HEX:", "HEX:00",
            "ASCII:x",
            "HEX:000102030405060708090a0b0c0d0e0f", "000102030405060708090a0b0c0d0e0f", "0123456789abcdef", ":01020304",
            "#", "# authentick: key 1 made", "1970-01-01T00:00:00Z", "192.0.2.1", " ", "\t", "\n", "\n", "\r\n", "!",
            "retires",
        ]), 0..40),
        glue in any::<bool>(),
    ) {
        crate::fuzzing::key_file(words.join(if glue { "" } else { " " }).as_bytes());
    }
}
