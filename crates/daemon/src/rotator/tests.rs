//! Two servers that share one store.

mod derived;
mod unwritten;

use std::sync::atomic::{AtomicU64, Ordering};

use authentick_net::clock::KernelClock;
use authentick_proto::keyset::KeySet;
use authentick_wire::time::NtpTime;

use super::*;
use crate::keystore::{FollowedFile, MemoryStore, Swap};
use crate::replace::replace;

const DAY: u64 = 86_400;
const SCHEDULE: Schedule = Schedule { period: Duration::from_secs(DAY), keep: 3, next: NextKey::Random };

/// A host that was started at a time by its wall clock, and has been running for some seconds.
#[derive(Debug, Default)]
struct Host {
    started: u64,
    running: AtomicU64,
}

impl HostClock for Host {
    fn now(&self) -> NtpTime {
        NtpTime::from_unix(self.unix_seconds() as i64, 0)
    }

    fn unix_seconds(&self) -> u64 {
        self.started + self.running.load(Ordering::Relaxed)
    }

    fn boot_ns(&self) -> u64 {
        self.running.load(Ordering::Relaxed) * 1_000_000_000
    }

    fn kernel(&self) -> KernelClock {
        KernelClock::Unknown
    }
}

/// One of the servers, with its own clock.
struct Server {
    host: Arc<Host>,
    rotator: Rotator<KeySet>,
    entropy: Entropy,
}

impl Server {
    fn start(store: &Arc<MemoryStore<KeySet>>, seed: u64) -> Self {
        let (host, mut entropy) = (Arc::new(Host::default()), Entropy::from_seed(seed));
        let clock: Arc<dyn HostClock> = host.clone();
        let (store, name) = (Arc::clone(store) as Arc<dyn KeyStore<KeySet>>, "cookie keys");
        let rotator = Rotator::start(store, name, SCHEDULE, &clock, &mut entropy).unwrap();
        Server { host, rotator, entropy }
    }

    fn tick(&mut self, later: u64) {
        self.host.running.fetch_add(later, Ordering::Relaxed);
        self.rotator.tick(VouchedBy::Nobody, &mut self.entropy);
    }

    fn keys(&self) -> Vec<(u32, Vec<u8>)> {
        let keys = self.rotator.in_force.keys.load_full().expect("it has keys");
        keys.keys().map(|(_, key)| (key.id(), key.key().expose().to_vec())).collect()
    }

    fn rotations(&self) -> u64 {
        self.rotator.in_force.rotations.get()
    }
}

#[test]
fn what_one_server_rotates_the_other_takes_over_and_does_not_rotate_again() {
    let store = Arc::new(MemoryStore::default());
    let (mut one, mut other) = (Server::start(&store, 1), Server::start(&store, 2));
    let first = one.keys();
    assert_eq!(other.keys(), first);
    one.tick(DAY);
    assert_eq!((one.rotations(), one.keys()[0].clone()), (1, first[1].clone()), "the future key seals");
    assert_eq!(other.keys(), first, "nobody has looked yet");
    // Its own key is as old, and is another one by the time that it would rotate.
    other.tick(DAY);
    assert_eq!((other.rotations(), other.keys()), (0, one.keys()));
    other.tick(DAY - 1);
    assert_eq!(other.rotations(), 0, "the key that seals now is not a day old");
    other.tick(1);
    one.tick(10);
    assert_eq!((one.rotations(), other.rotations(), one.keys()), (1, 1, other.keys()));
}

#[test]
fn server_whose_rotation_is_lost_takes_over_what_won() {
    let store = Arc::new(MemoryStore::default());
    let (mut one, mut other) = (Server::start(&store, 1), Server::start(&store, 2));
    other.tick(DAY);
    // As if it had looked a moment before: it rotates what is not in the store any more.
    let in_force = one.rotator.in_force.keys.load_full().expect("it has keys");
    let rotation = Rotation { count: 1, now: 0, keep: 3, derived: None };
    let rotated = one.rotator.store.rotate(&in_force, rotation, &mut Entropy::from_seed(3)).unwrap();
    assert!(matches!(rotated, Rotated::ByOthers(_)));
    let old = one.rotator.version;
    assert_eq!(store.compare_and_swap(old, &in_force, Duration::ZERO).unwrap(), Swap::Lost);
    one.tick(1);
    assert_eq!((one.rotations(), one.keys()), (0, other.keys()));
}

#[test]
fn store_that_has_lost_its_keys_has_them_back_at_the_next_look() {
    let store = Arc::new(MemoryStore::default());
    let mut one = Server::start(&store, 1);
    store.forget();
    one.tick(1);
    assert_eq!(Server::start(&store, 2).keys(), one.keys());
    one.tick(1);
    assert_eq!(one.rotations(), 0);
}

#[test]
fn age_outlives_the_server_in_the_store() {
    let store = Arc::new(MemoryStore::default());
    let mut one = Server::start(&store, 1);
    one.tick(DAY - 10);
    let first = one.keys();
    one.rotator.close();
    let mut next = Server::start(&store, 2);
    next.tick(9);
    assert_eq!((next.rotations(), next.keys()), (0, first));
    next.tick(1);
    assert_eq!(next.rotations(), 1);
}

#[test]
fn keys_that_are_made_elsewhere_are_taken_if_they_follow_and_never_rotated() {
    let (host, mut entropy) = (Arc::new(Host::default()), Entropy::from_seed(1));
    let clock: Arc<dyn HostClock> = host.clone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let put = |keys: &KeySet| replace(&path, keys.emit().as_bytes(), None).unwrap();
    let start = |entropy: &mut Entropy| {
        let store = Arc::new(FollowedFile::<KeySet>::new(&path));
        Rotator::start(store, "cookie keys", SCHEDULE, &clock, entropy)
    };
    assert!(matches!(start(&mut entropy), Err(StoreError::NotThere(_))), "nothing is there yet");
    let first = KeySet::generate(100, &mut entropy);
    let second = first.rotate(200, 1, &mut entropy);
    put(&first);
    let rotator = start(&mut entropy).unwrap();
    let mut server = Server { host, rotator, entropy };
    let seals =
        |server: &Server| server.rotator.in_force.keys.load_full().expect("it has keys").current().id();
    server.tick(100 * DAY);
    assert_eq!((seals(&server), server.rotations()), (first.current().id(), 0));
    put(&second);
    server.tick(1);
    assert_eq!(seals(&server), second.current().id());
    let failures = |server: &Server| server.rotator.in_force.rotation_failures.get();
    let trouble = |server: &Server| server.rotator.in_force.trouble.get();
    let stranger = KeySet::generate(900, &mut Entropy::from_seed(9));
    for (refused, count) in [(&first, 1), (&stranger, 2)] {
        put(refused);
        for _ in 0..3 {
            server.tick(1);
        }
        assert_eq!((seals(&server), failures(&server)), (second.current().id(), count), "once each");
    }
    server.rotator.reload();
    assert_eq!((seals(&server), failures(&server)), (second.current().id(), 3), "SIGHUP takes it no more");
    assert_eq!(trouble(&server), None, "the keys in force are good");
    std::fs::write(&path, "these are no keys").unwrap();
    server.tick(1);
    assert!(trouble(&server).is_some_and(|why| why.contains("not read: ")), "{:?}", trouble(&server));
    std::fs::remove_file(&path).unwrap();
    server.tick(1);
    server.rotator.reload();
    assert!(!path.exists(), "nothing is written where it was");
    assert_eq!(seals(&server), second.current().id());
    put(&second.rotate(300, 1, &mut server.entropy));
    server.tick(1);
    assert_eq!(seals(&server), second.keys().nth(1).unwrap().1.id(), "the future key");
    assert_eq!(trouble(&server), None);
}
