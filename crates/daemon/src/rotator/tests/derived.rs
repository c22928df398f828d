//! Servers that share no store: each derives its keys from a copy of one file.

use std::path::{Path, PathBuf};

use authentick_proto::keyset::CookieKey;
use proptest::prelude::*;

use super::*;
use crate::Config;
use crate::config::RotatingKeys;
use crate::keystore::{KeyStore, Stores, by_hand};

const HOUR: u64 = 3600;
/// When the first file was made: a time that a clock can show.
const BEGIN: u64 = 1_800_000_000;
const DERIVED: Schedule = Schedule { next: NextKey::Derived, ..SCHEDULE };

/// A place where a server may run, with its keys.
struct Site {
    store: Arc<dyn KeyStore<KeySet>>,
    /// If they are in a file.
    folder: Option<tempfile::TempDir>,
    server: Option<Server>,
    seed: u64,
}

impl Site {
    /// One with a directory.
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Stores::in_directory(&folder.path().join("state")).cookie_keys;
        store.prepare(None).unwrap();
        Site { store, folder: Some(folder), server: None, seed }
    }

    /// One whose disk is fast.
    fn in_memory(seed: u64) -> Self {
        Site { store: Arc::new(MemoryStore::default()), folder: None, server: None, seed }
    }

    /// The same with a copy of the keys of another.
    fn with_copy_of(self, other: &Site) -> Self {
        self.bring(other);
        self
    }

    /// The first site, whose operator has made the keys.
    fn with_keys(self) -> Self {
        self.store.load_or_create(BEGIN, &mut Entropy::from_seed(1)).unwrap();
        self
    }

    fn path(&self) -> PathBuf {
        self.store.path().map(Path::to_owned).expect("it is a file")
    }

    /// What is in the file.
    fn text(&self) -> String {
        match &self.folder {
            Some(_) => std::fs::read_to_string(self.path()).unwrap(),
            None => self.store.load().unwrap().unwrap().keys.emit().to_string(),
        }
    }

    fn bring(&self, other: &Site) {
        let version = self.store.load().unwrap().map(|held| held.version);
        let keys = other.store.load().unwrap().unwrap().keys;
        assert!(matches!(self.store.compare_and_swap(version, &keys, Duration::ZERO), Ok(Swap::Done(_))));
    }

    fn start(&mut self, time: u64) -> Result<(), StoreError> {
        self.seed += 100;
        let (host, mut entropy) =
            (Arc::new(Host { started: time, running: AtomicU64::new(0) }), Entropy::from_seed(self.seed));
        let clock: Arc<dyn HostClock> = host.clone();
        let rotator = Rotator::start(Arc::clone(&self.store), "cookie keys", DERIVED, &clock, &mut entropy)?;
        self.server = Some(Server { host, rotator, entropy });
        Ok(())
    }

    fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.rotator.close();
        }
    }

    /// Has the server look, if it runs, when it is `time`; `vouched_by` says who vouches for that.
    fn look(&mut self, time: u64, vouched_by: VouchedBy) {
        if let Some(server) = &mut self.server {
            server.host.running.store(time - server.host.started, Ordering::Relaxed);
            server.rotator.tick(vouched_by, &mut server.entropy);
        }
    }

    fn keys(&self) -> Option<Arc<KeySet>> {
        self.server.as_ref()?.rotator.in_force.keys.load_full()
    }

    fn failures(&self) -> u64 {
        self.server.as_ref().unwrap().rotator.in_force.rotation_failures.get()
    }
}

fn first() -> Site {
    Site::new(1).with_keys()
}

fn hex(key: &CookieKey) -> String {
    key.key().expose().iter().map(|octet| format!("{octet:02x}")).collect()
}

/// What a configuration says.
fn nts(cookie_keys: &str) -> RotatingKeys {
    let text =
        format!("[nts]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\ncookie-keys = {{ {cookie_keys} }}");
    Config::parse(Path::new("test.toml"), &text).unwrap().nts.unwrap().keys
}

#[test]
fn host_without_the_file_does_not_make_keys_of_its_own() {
    let mut site = Site::new(1);
    let error = site.start(BEGIN).unwrap_err();
    assert!(matches!(error, StoreError::NothingToDerive(_)), "{error}");
    assert!(error.remedy().contains("from another host") && !site.path().exists(), "{}", error.remedy());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Each of three runs and does not run as it likes, with a clock that somebody vouches for: at any time those that
    /// run have the same keys, and the same files, as if they had run all the time. What is older than the keys of a
    /// file does not open with it, and is not in it.
    #[test]
    fn hosts_with_one_file_have_the_same_keys_whenever_they_run(
        switches in proptest::collection::vec((0..3_usize, 1..60_u64), 1..40),
    ) {
        let one = Site::in_memory(1).with_keys();
        let copy = |seed| Site::in_memory(seed).with_copy_of(&one);
        let (other, third, mut always) = (copy(2), copy(3), copy(4));
        let mut sites = [one, other, third];
        let (mut time, mut seen) = (BEGIN, Vec::new());
        always.start(time).unwrap();
        for (index, hours) in switches {
            match sites[index].server {
                Some(_) => sites[index].stop(),
                None => sites[index].start(time).unwrap(),
            }
            for _ in 0..hours {
                sites.iter_mut().chain([&mut always]).for_each(|site| site.look(time, VouchedBy::Witness));
                let keys = always.keys().unwrap();
                prop_assert_eq!(keys.rotated(), BEGIN + (time - BEGIN) / DAY * DAY, "the phase is that of the file");
                for site in sites.iter().filter(|site| site.server.is_some()) {
                    prop_assert_eq!(site.text(), always.text());
                    prop_assert_eq!(site.keys().unwrap().emit(), keys.emit());
                }
                let sealing = (keys.current().id(), hex(keys.current()));
                if seen.last() != Some(&sealing) {
                    seen.push(sealing);
                }
                time += HOUR;
            }
        }
        let (text, held) = (always.text(), always.store.load().unwrap().unwrap().keys);
        for (age, (id, octets)) in seen.iter().rev().enumerate() {
            prop_assert_eq!(held.find(*id).is_some(), age <= SCHEDULE.keep);
            prop_assert_eq!(text.contains(octets.as_str()), age <= SCHEDULE.keep);
        }
    }
}

#[test]
fn clock_that_ran_ahead_loses_no_client_and_keys_wait_until_it_is_time() {
    let one = first();
    let mut other = Site::new(2).with_copy_of(&one);
    let mut one = one;
    one.start(BEGIN).unwrap();
    one.look(BEGIN + HOUR, VouchedBy::Witness);
    // A day ahead, and the operator's word is all that there is for it.
    other.start(BEGIN + DAY + HOUR).unwrap();
    other.look(BEGIN + DAY + HOUR, VouchedBy::Operator);
    let (here, there) = (one.keys().unwrap(), other.keys().unwrap());
    let (ours, theirs) = (here.current().id(), there.current().id());
    assert_eq!(theirs, ours.wrapping_add(1), "it has rotated ahead");
    assert!(here.find(theirs).is_some() && there.find(ours).is_some(), "each opens what the other seals");
    // The clock is set right. By the next rotation of the others they have the same keys, and stay together.
    other.stop();
    for (time, is_same) in
        [(2 * HOUR, false), (DAY - HOUR, false), (DAY, true), (DAY + 5, true), (9 * DAY, true)]
    {
        if other.server.is_none() {
            other.start(BEGIN + time).unwrap();
        }
        one.look(BEGIN + time, VouchedBy::Witness);
        other.look(BEGIN + time, VouchedBy::Operator);
        assert_eq!(
            one.keys().unwrap().current().id() == other.keys().unwrap().current().id(),
            is_same,
            "{time}"
        );
    }
}

#[test]
fn leap_that_would_lose_every_key_is_refused_and_counted_until_a_file_is_brought() {
    let mut one = first();
    let mut other = Site::new(2).with_copy_of(&one);
    let before = other.text();
    let time = BEGIN + 9 * DAY;
    one.start(BEGIN).unwrap();
    other.start(time).unwrap();
    one.look(time, VouchedBy::Witness);
    for second in 0..3 {
        other.look(time + second, VouchedBy::Operator);
    }
    assert_eq!((other.text(), other.failures()), (before, 1), "counted once");
    other.bring(&one);
    other.server.as_mut().unwrap().rotator.reload();
    for (later, second) in [(0, 3), (DAY, 4)] {
        one.look(time + later + second, VouchedBy::Witness);
        other.look(time + later + second, VouchedBy::Operator);
        assert_eq!((other.text(), other.failures()), (one.text(), 1));
    }
    assert_eq!(one.keys().unwrap().rotated(), BEGIN + 10 * DAY);
    // The kernel's word is enough at a start.
    let mut third = Site::new(3).with_copy_of(&first());
    third.start(time + DAY).unwrap();
    third.look(time + DAY, VouchedBy::Witness);
    assert_eq!((third.text(), third.failures()), (one.text(), 0));
}

#[test]
fn years_of_seconds_are_made_up_for_and_the_server_starts() {
    // As many rotations as one look makes, and one more.
    let site = first();
    let keys = site.store.load().unwrap().unwrap().keys;
    let rotation = |count| Rotation { count, now: 0, keep: 3, derived: Some(1) };
    let most = crate::rotation::phase::ROTATIONS_AT_ONCE;
    let Rotated::Here(held) = site.store.rotate(&keys, rotation(most), &mut Entropy::from_seed(1)).unwrap()
    else {
        panic!("it has rotated")
    };
    let id = keys.current().id().wrapping_add(most as u32);
    assert_eq!((held.keys.rotated(), held.keys.current().id()), (BEGIN + most, id));
    assert_eq!(held.keys.keys().count(), 5);
}

#[test]
fn refresh_shuts_out_whoever_has_an_old_file_and_nobody_else() {
    let derived = nts("rotate = \"1d\", keep = 3, next = \"derived\"");
    let mut one = first();
    let mut other = Site::new(2).with_copy_of(&one);
    one.start(BEGIN).unwrap();
    other.start(BEGIN).unwrap();
    let stolen = one.store.load().unwrap().unwrap().keys;
    let refresh = |site: &Site, nts: &RotatingKeys, time| {
        by_hand::refresh(&*site.store, Some(nts), time, &mut Entropy::from_seed(5))
    };
    let (keys, then) = refresh(&one, &derived, BEGIN + HOUR).unwrap();
    let path = one.path().display().to_string();
    for part in [path.as_str(), "SIGHUP", "at 2027-01-16T08:00:00Z"] {
        assert!(then.contains(part), "{part} is not in {then}");
    }
    assert_eq!(keys.current().id(), stolen.current().id(), "nothing is sealed with it before the rotation");
    // One server is told of it, and the other finds it when it rotates.
    one.server.as_mut().unwrap().rotator.reload();
    other.bring(&one);
    let mut thief = vec![stolen];
    for day in 1..9 {
        thief.push(thief.last().unwrap().derive(0, 3));
        one.look(BEGIN + day * DAY, VouchedBy::Witness);
        other.look(BEGIN + day * DAY, VouchedBy::Witness);
        assert_eq!(one.text(), other.text(), "{day}");
        let sealing = one.keys().unwrap();
        let known = thief.iter().flat_map(KeySet::keys);
        assert!(
            known.into_iter().all(|(_, key)| key.key().expose() != sealing.current().key().expose()),
            "{day}"
        );
    }
    // What others have gone on from must not be given out.
    let error = refresh(&one, &derived, BEGIN + 9 * DAY).unwrap_err();
    assert!(matches!(error, StoreError::Overdue(_)), "{error}");
    assert!(refresh(&one, &derived, BEGIN + 9 * DAY - 1).is_ok());
}

#[test]
fn by_hand_derived_keys_are_not_rotated_and_drawn_ones_not_refreshed() {
    let (site, mut entropy) = (first(), Entropy::from_seed(5));
    let (derived, drawn) = (nts("next = \"derived\", keep = 2"), nts("keep = 2"));
    let before = site.text();
    let error = by_hand::rotate(&*site.store, Some(&derived), None, BEGIN, &mut entropy).unwrap_err();
    assert!(matches!(error, StoreError::WouldPart(_)) && error.remedy().contains("keys refresh"), "{error}");
    let error = by_hand::refresh(&*site.store, Some(&drawn), BEGIN, &mut entropy).unwrap_err();
    assert!(matches!(error, StoreError::NotDerived(_)) && error.remedy().contains("keys rotate"), "{error}");
    assert_eq!(site.text(), before);
    // What is not known is the operator's to know.
    let (keys, then) = by_hand::refresh(&*site.store, None, BEGIN, &mut entropy).unwrap();
    assert!(then.contains("before the next rotation: "), "{then}");
    let mut count = keys.keys().count();
    for (nts, keep, most) in [(None, None, 9), (Some(&drawn), None, 4), (Some(&drawn), Some(5), 7)] {
        for _ in 0..9 {
            count = by_hand::rotate(&*site.store, nts, keep, BEGIN, &mut entropy).unwrap().keys().count();
        }
        assert_eq!(count, most);
    }
}
