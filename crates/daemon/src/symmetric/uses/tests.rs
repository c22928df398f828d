//! Counts of a real responder, over restarts, crashes and changes of keys.

use authentick_crypto::Entropy;
use authentick_net::clock;
use authentick_proto::client::Exchange;
use authentick_proto::prefix::PrefixSet;
use authentick_proto::server::snapshot::Snapshot;
use authentick_proto::server::{Clock, Moment, Policy, Responder};
use authentick_proto::symmetric::Allowed;
use authentick_wire::datagram::Datagram;
use authentick_wire::time::NtpTime;

use super::*;

struct Still;

impl Clock for Still {
    fn now(&mut self) -> NtpTime {
        clock::now()
    }

    fn monotonic_us(&mut self) -> u64 {
        0
    }
}

fn key(id: u32, octet: u8) -> SymmetricKey {
    SymmetricKey::new(id, MacKey::new(MacAlgorithm::Cmac128, &[octet; 16]).unwrap())
}

fn gmac(id: u32) -> SymmetricKey {
    let key = MacKey::new(MacAlgorithm::Gmac128, &[7; 16]).unwrap();
    SymmetricKey::new(id, key).with_salt([1; 4]).unwrap()
}

fn set(keys: Vec<SymmetricKey>) -> Arc<SymmetricKeys> {
    Arc::new(SymmetricKeys::new(keys, Allowed::ALL, 1).unwrap())
}

/// Answers `count` requests under the key with this id: two uses each.
fn answer(keys: &SymmetricKeys, id: u32, count: usize) {
    let allow = PrefixSet::new(vec!["0.0.0.0/0".parse().unwrap()]);
    let policy = Arc::new(Policy { allow, ..Policy::open() });
    let mut responder = Responder::new(policy, None, Entropy::from_seed(1)).with_worker(0);
    let mut entropy = Entropy::from_seed(2);
    let before = keys.find(id).unwrap().counts().answered;
    for _ in 0..count {
        let mut request = vec![0; 2048];
        let (_, size) = Exchange::mac(keys.find(id).unwrap(), &mut entropy, &mut request);
        let mut response = vec![0; 2048];
        let datagram = Datagram {
            request: &mut request[..size],
            response: &mut response,
            response_size: 0,
            source: "192.0.2.1:123".parse().unwrap(),
            received: clock::now(),
            truncated: false,
            to_many: false,
        };
        let moment =
            Moment { snapshot: Snapshot::unsynchronised(-20), keys: None, symmetric: Some(keys), antp: None };
        responder.respond(moment, &mut Still, &mut (), &mut [datagram]);
    }
    assert_eq!(keys.find(id).unwrap().counts().answered - before, count as u64);
}

fn begin(directory: &Path, keys: &SymmetricKeys) -> Ledger {
    let mut ledger = Ledger::new(directory, Stored::load(directory).unwrap());
    ledger.replace(None, keys).unwrap();
    ledger
}

fn stored(directory: &Path, key: &SymmetricKey) -> (u64, bool) {
    let uses = Stored::load(directory).unwrap().of(key);
    (uses.count, uses.is_exact)
}

#[test]
fn orderly_stop_keeps_the_exact_count() {
    let directory = tempfile::tempdir().unwrap();
    for run in 1..=3 {
        let keys = set(vec![key(1, 1), key(2, 2)]);
        let mut ledger = begin(directory.path(), &keys);
        answer(&keys, 1, 5);
        ledger.look(&keys).1.unwrap();
        answer(&keys, 1, 5);
        ledger.close(&keys).unwrap();
        assert_eq!(stored(directory.path(), &key(1, 1)), (20 * run, true));
        assert_eq!(stored(directory.path(), &key(2, 2)), (0, true));
    }
}

#[test]
fn after_a_crash_the_number_is_never_less_than_what_happened() {
    let directory = tempfile::tempdir().unwrap();
    let mut happened = 0;
    for _ in 0..3 {
        let keys = set(vec![key(1, 1), gmac(2)]);
        let mut ledger = begin(directory.path(), &keys);
        for _ in 0..4 {
            answer(&keys, 1, 50);
            happened += 100;
            ledger.look(&keys).1.unwrap();
            answer(&keys, 1, 20);
            happened += 40;
            let (count, is_exact) = stored(directory.path(), &key(1, 1));
            assert!(count >= happened && !is_exact, "{count} < {happened}");
        }
        // The ledger is dropped without being closed, as by a crash.
    }
    let (count, _) = stored(directory.path(), &key(1, 1));
    assert!(count <= happened + 3 * (1 << 17), "{count}: a crash costs about a margin");
    assert_eq!(stored(directory.path(), &gmac(2)), (0, true), "three crashes wear no key that was not used");
    // Once it is not exact it stays so, and an orderly stop adds nothing.
    let keys = set(vec![key(1, 1)]);
    let before = stored(directory.path(), &key(1, 1)).0;
    begin(directory.path(), &keys).close(&keys).unwrap();
    assert_eq!(stored(directory.path(), &key(1, 1)), (before, false));
}

#[test]
fn key_is_reserved_for_at_its_first_use() {
    let directory = tempfile::tempdir().unwrap();
    for crash in 0..3 {
        let keys = set(vec![key(1, 1), gmac(2)]);
        let mut ledger = begin(directory.path(), &keys);
        ledger.look(&keys).1.unwrap();
        assert_eq!(stored(directory.path(), &gmac(2)), (0, true), "not used since {crash} crashes");
        if crash == 2 {
            answer(&keys, 2, 1);
            ledger.look(&keys).1.unwrap();
            assert_eq!(
                stored(directory.path(), &gmac(2)),
                (2 + (1 << 12), false),
                "a share of a small limit"
            );
        }
        assert_eq!(stored(directory.path(), &key(1, 1)), (0, true), "the other one is left alone");
    }
    // From then on what stands there holds, and a start adds nothing to it.
    let keys = set(vec![key(1, 1), gmac(2)]);
    drop(begin(directory.path(), &keys));
    assert_eq!(stored(directory.path(), &gmac(2)), (2 + (1 << 12), false));
}

#[test]
fn key_that_departs_is_written_down_as_it_was_used() {
    let directory = tempfile::tempdir().unwrap();
    let first = set(vec![key(1, 1), key(2, 2)]);
    let mut ledger = begin(directory.path(), &first);
    let second = Arc::new(first.successor(vec![key(2, 2)], Allowed::ALL).unwrap());
    ledger.replace(Some(&first), &second).unwrap();
    // A worker that has not heard of the change yet.
    answer(&first, 1, 3);
    ledger.look(&second).1.unwrap();
    assert_eq!(stored(directory.path(), &key(1, 1)), (6, true));
    assert_eq!(stored(directory.path(), &key(2, 2)), (0, true));
}

#[test]
fn disk_that_could_not_be_written_is_tried_again_though_no_key_was_used() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let keys = set(vec![key(1, 1)]);
    let mut ledger = Ledger::new(&state, Stored::default());
    assert!(ledger.replace(None, &keys).is_err() && ledger.look(&keys).1.is_err());
    fs::create_dir(&state).unwrap();
    ledger.look(&keys).1.unwrap();
    assert!(path(&state).exists());
}

#[test]
fn disk_is_written_when_the_count_comes_up_to_it_and_not_each_second() {
    let directory = tempfile::tempdir().unwrap();
    let keys = set(vec![gmac(2)]);
    let mut ledger = begin(directory.path(), &keys);
    let file = path(directory.path());
    answer(&keys, 2, 1);
    ledger.look(&keys).1.unwrap();
    fs::remove_file(&file).unwrap();
    answer(&keys, 2, 10);
    ledger.look(&keys).1.unwrap();
    assert!(!file.exists(), "4096 uses are covered");
    answer(&keys, 2, 1500);
    ledger.look(&keys).1.unwrap();
    assert!(file.exists(), "less than half of the margin was left");
    let ahead = stored(directory.path(), &gmac(2)).0 - 3022;
    assert_eq!(ahead, 3000 * 64, "what the rate of the last second makes in 64 of them");
}

#[test]
fn other_key_under_an_old_id_starts_at_zero_and_the_old_one_is_remembered() {
    let directory = tempfile::tempdir().unwrap();
    let first = set(vec![key(1, 1), key(2, 2)]);
    let mut ledger = begin(directory.path(), &first);
    answer(&first, 1, 5);
    answer(&first, 2, 1);
    let second = Arc::new(first.successor(vec![key(1, 9), key(2, 2)], Allowed::ALL).unwrap());
    ledger.replace(Some(&first), &second).unwrap();
    // A worker that has not heard of the change yet.
    answer(&first, 1, 1);
    answer(&second, 1, 2);
    answer(&second, 2, 3);
    ledger.look(&second).1.unwrap();
    let third = Arc::new(second.successor(vec![key(1, 1), key(2, 2)], Allowed::ALL).unwrap());
    ledger.replace(Some(&second), &third).unwrap();
    answer(&third, 1, 1);
    assert_eq!(ledger.before()[0], Uses { count: 12, is_exact: true });
    ledger.look(&third).1.unwrap();
    ledger.close(&third).unwrap();
    assert_eq!(stored(directory.path(), &key(1, 1)), (14, true), "the key that came back goes on");
    assert_eq!(stored(directory.path(), &key(1, 9)), (4, true));
    assert_eq!(stored(directory.path(), &key(2, 2)), (8, true));
    assert_eq!(stored(directory.path(), &key(3, 1)), (0, true), "the same octets under another id");
}

#[test]
fn half_of_a_limit_and_all_of_it_are_warned_of_once_each() {
    let directory = tempfile::tempdir().unwrap();
    let keys = set(vec![key(1, 1), gmac(2)]);
    let mut ledger = begin(directory.path(), &keys);
    let mut worn = |count| {
        answer(&keys, 2, count);
        let (worn, written) = ledger.look(&keys);
        written.unwrap();
        worn.iter().map(|key| (key.id, key.uses.count)).collect::<Vec<_>>()
    };
    assert_eq!(worn((1 << 14) - 1), []);
    assert_eq!(worn(1), [(2, 1 << 15)]);
    assert_eq!(worn(1), []);
    assert_eq!(worn(1 << 14), [(2, (1 << 16) + 2)]);
    assert_eq!(worn(1), []);
    // Said again after a restart.
    ledger.close(&keys).unwrap();
    let keys = set(vec![key(1, 1), gmac(2)]);
    assert_eq!(begin(directory.path(), &keys).look(&keys).0.len(), 1);
}

#[test]
fn file_that_is_none_is_named_by_line() {
    let directory = tempfile::tempdir().unwrap();
    let good = "1 AES128 00112233445566778899aabbccddeeff 7 exact";
    for (text, line) in [
        (String::new(), 1),
        (format!("hello\n{good}\n"), 1),
        (format!("{MAGIC}\n{good}\n{good} more\n"), 3),
        (format!("{MAGIC}\n{}\n", good.replace("exact", "about")), 2),
        (format!("{MAGIC}\n{}\n", good.replace("AES128", "AES129")), 2),
        (format!("{MAGIC}\n{}\n", good.replace(" 7 ", " -7 ")), 2),
    ] {
        fs::write(path(directory.path()), &text).unwrap();
        let error = Stored::load(directory.path()).unwrap_err();
        assert!(matches!(error, UsesError::Line(_, found) if found == line), "{text:?}: {error}");
    }
    fs::write(path(directory.path()), format!("{MAGIC}\n{good}\n")).unwrap();
    assert_eq!(Stored::load(directory.path()).unwrap().0.len(), 1);
}

#[test]
fn check_value_is_no_tag_of_the_key() {
    let key = key(1, 1);
    let name = Name::of(&key);
    let mut tag = [0; 16];
    let message = b"authentick: which key this is".as_slice();
    run_batch(std::iter::once(Tag { key: key.key(), nonce: None, message, tag: &mut tag }));
    let tag: String = tag.iter().map(|octet| format!("{octet:02x}")).collect();
    assert_ne!(name.check, tag);
    assert_eq!(name.check.len(), 32);
}

#[test]
fn limits_are_powers_of_two_that_a_warning_can_name() {
    for (algorithm, salted, expected) in [
        (MacAlgorithm::Cmac128, false, Some(1 << 46)),
        (MacAlgorithm::HmacMd5, false, Some(1 << 48)),
        (MacAlgorithm::Gmac128, false, Some(1 << 32)),
        (MacAlgorithm::Gmac128, true, Some(1 << 16)),
        (MacAlgorithm::Md5, false, None),
    ] {
        assert_eq!(limit(algorithm, salted), expected, "{algorithm} {salted}");
    }
}

#[test]
fn damaged_file_is_set_aside_and_never_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let keys = set(vec![key(1, 1)]);
    for (number, damage) in
        [&b"authentick-symmetric-uses 1\n1 AES128"[..], &[0xff; 40]].into_iter().enumerate()
    {
        fs::write(path(directory.path()), damage).unwrap();
        let stored = Stored::load_or_set_aside(directory.path());
        assert_eq!(stored.of(keys.find(1).unwrap()).count, 0);
        let mut ledger = Ledger::new(directory.path(), stored);
        ledger.replace(None, &keys).unwrap();
        assert!(Stored::load(directory.path()).is_ok());
        let kept = directory.path().join(format!("symmetric-uses.damaged-{}", number + 1));
        assert_eq!(fs::read(kept).unwrap(), damage);
    }
}
