//! A store that takes no keys for a while, as on a full disk.

use std::io;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::keystore::Version;

/// A store that its server alone uses.
#[derive(Debug, Default)]
struct Disk {
    keys: MemoryStore<KeySet>,
    is_full: AtomicBool,
}

impl KeyStore<KeySet> for Disk {
    fn place(&self) -> String {
        "a disk".to_owned()
    }

    fn load(&self) -> Result<Option<Held<KeySet>>, StoreError> {
        self.keys.load()
    }

    fn compare_and_swap(
        &self,
        expected: Option<Version>,
        keys: &KeySet,
        patience: Duration,
    ) -> Result<Swap, StoreError> {
        match self.is_full.load(Ordering::Relaxed) {
            true => Err(StoreError::Io("disk".into(), io::ErrorKind::StorageFull.into())),
            false => self.keys.compare_and_swap(expected, keys, patience),
        }
    }

    fn is_followed(&self) -> bool {
        false
    }
}

fn begin(disk: &Arc<Disk>, schedule: Schedule) -> Result<Server, StoreError> {
    let (host, mut entropy) = (Arc::new(Host::default()), Entropy::from_seed(1));
    let clock: Arc<dyn HostClock> = host.clone();
    let store = Arc::clone(disk) as Arc<dyn KeyStore<KeySet>>;
    let rotator = Rotator::start(store, "cookie keys", schedule, &clock, &mut entropy)?;
    Ok(Server { host, rotator, entropy })
}

#[test]
fn first_keys_are_written_once_the_disk_takes_them() {
    let disk = Arc::new(Disk { is_full: AtomicBool::new(true), ..Disk::default() });
    let mut server = begin(&disk, SCHEDULE).unwrap();
    let first = server.keys();
    server.tick(1);
    let trouble = server.rotator.in_force.trouble.get().unwrap();
    assert!(trouble.contains("not written") && trouble.contains("make room"), "{trouble}");
    disk.is_full.store(false, Ordering::Relaxed);
    server.tick(1);
    assert!(disk.load().unwrap().is_none(), "it is tried again after some seconds");
    server.tick(SAVE_RETRY.as_secs());
    assert_eq!(server.rotator.in_force.trouble.get(), None);
    assert_eq!(begin(&disk, SCHEDULE).unwrap().keys(), first);
    server.tick(DAY);
    assert_eq!(server.rotations(), 1);
}

#[test]
fn keys_that_others_wrote_meanwhile_are_taken_over() {
    let disk = Arc::new(Disk { is_full: AtomicBool::new(true), ..Disk::default() });
    let mut server = begin(&disk, SCHEDULE).unwrap();
    disk.is_full.store(false, Ordering::Relaxed);
    let other = KeySet::generate(0, &mut Entropy::from_seed(2));
    disk.compare_and_swap(None, &other, Duration::ZERO).unwrap();
    server.tick(SAVE_RETRY.as_secs());
    assert_eq!(server.keys()[0].0, other.current().id());
}

#[test]
fn full_disk_makes_no_keys_of_its_own_where_others_share_them() {
    let disk = Arc::new(Disk { is_full: AtomicBool::new(true), ..Disk::default() });
    assert!(begin(&disk, Schedule { next: NextKey::Derived, ..SCHEDULE }).is_err());
    assert!(begin(&disk, Schedule { next: NextKey::Hourly, ..SCHEDULE }).is_err());
}
