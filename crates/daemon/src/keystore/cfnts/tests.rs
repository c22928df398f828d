//! Hosts with clocks of the test's, and a memcached that does what the test says.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use authentick_lab::caches::{Behaviour, CacheServer};
use authentick_lab::disk::Closed;
use authentick_lab::process::wait_for;
use authentick_net::clock::KernelClock;
use authentick_wire::time::NtpTime;
use tempfile::TempDir;

use super::super::by_hand;
use super::hours::VALUE_SIZE;
use super::*;
use crate::config::{Endpoint, NextKey};
use crate::rotation::{Schedule, VouchedBy};
use crate::rotator::Rotator;

const HOUR: u64 = 3600;
/// The beginning of an hour that a clock can show.
const BEGIN: u64 = 1_800_000_000;
const SCHEDULE: Schedule = Schedule { period: Duration::from_secs(HOUR), keep: 24, next: NextKey::Hourly };

#[derive(Debug)]
struct Clock {
    wall: AtomicU64,
    boot: AtomicU64,
}

impl HostClock for Clock {
    fn now(&self) -> NtpTime {
        NtpTime::from_unix(self.unix_seconds() as i64, 0)
    }

    fn unix_seconds(&self) -> u64 {
        self.wall.load(Ordering::Relaxed)
    }

    fn boot_ns(&self) -> u64 {
        self.boot.load(Ordering::Relaxed) * 1_000_000_000
    }

    fn kernel(&self) -> KernelClock {
        KernelClock::Unknown
    }
}

/// A host, whose server runs.
struct Site {
    folder: TempDir,
    server: SocketAddr,
    clock: Arc<Clock>,
    store: Arc<CfntsStore>,
    link: Link,
    rotator: Rotator<KeySet>,
    entropy: Entropy,
    /// What the thread takes for the present.
    now: Instant,
}

impl Site {
    fn new(cache: &CacheServer, time: u64, seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let master = folder.path().join("master");
        std::fs::write(&master, [7; 16]).unwrap();
        std::fs::set_permissions(&master, PermissionsExt::from_mode(0o600)).unwrap();
        Site::start(folder, cache.address(), time, seed)
    }

    fn start(folder: TempDir, server: SocketAddr, time: u64, seed: u64) -> Self {
        let clock = Arc::new(Clock { wall: AtomicU64::new(time), boot: AtomicU64::new(0) });
        let settings = Cfnts { server: server.into(), master_key: folder.path().join("master") };
        let store =
            CfntsStore::new(settings, &StateDirectory::of(&folder.path().join("state")), clock.clone());
        store.prepare(None).unwrap();
        let (store, mut entropy) = (Arc::new(store), Entropy::from_seed(seed));
        let link = store.link(Endpoint::from(server).into(), Entropy::from_seed(seed + 1000));
        let host: Arc<dyn HostClock> = clock.clone();
        let rotator =
            Rotator::start(Arc::clone(&store) as Arc<_>, "cookie keys", SCHEDULE, &host, &mut entropy)
                .unwrap();
        Site { folder, server, clock, store, link, rotator, entropy, now: Instant::now() }
    }

    /// The same after the server was stopped and started at another time.
    fn restart(self, time: u64) -> Self {
        Site::start(self.folder, self.server, time, 99)
    }

    /// Some looks of both threads, six seconds apart: the first fills, the next reads, and then it is taken.
    fn look(&mut self, vouched_by: VouchedBy) {
        for _ in 0..4 {
            self.link.round(self.now);
            self.rotator.tick(vouched_by, &mut self.entropy);
            self.now += Duration::from_secs(6);
        }
    }

    fn run(&mut self) {
        self.look(VouchedBy::Witness);
    }

    fn pass(&self, seconds: u64) {
        self.clock.wall.fetch_add(seconds, Ordering::Relaxed);
        self.clock.boot.fetch_add(seconds, Ordering::Relaxed);
    }

    fn keys(&self) -> Option<Arc<KeySet>> {
        self.rotator.in_force().keys.load_full()
    }

    /// The hour whose key seals, counted from the first.
    fn seals(&self) -> Option<i64> {
        self.keys().map(|keys| (keys.rotated() as i64 - BEGIN as i64) / HOUR as i64)
    }

    /// The key of an hour, if it opens.
    fn opens(&self, hour: i64) -> Option<[u8; 32]> {
        let id = (BEGIN / HOUR) as i64 + hour;
        self.keys().and_then(|keys| keys.find(id as u32).map(|key| *key.key().expose()))
    }

    /// How often something was refused.
    fn refused(&self) -> u64 {
        self.store.counters().post.strange.get()
    }

    /// Has its disk refuse to be written to, for as long as the result lives.
    fn block(&self) -> Closed {
        Closed::close(&self.folder.path().join("state")).expect("e2fsprogs is there")
    }
}

fn name(hour: i64) -> String {
    format!("/nts/nts-keys/{}", BEGIN as i64 + hour * HOUR as i64)
}

/// Both hosts have the same key for all of these hours.
#[track_caller]
fn are_equal(one: &Site, other: &Site, hours: std::ops::RangeInclusive<i64>) {
    for hour in hours {
        assert!(one.opens(hour).is_some() && one.opens(hour) == other.opens(hour), "{hour}");
    }
}

#[test]
fn empty_memcached_is_filled_once_and_hosts_share_its_keys_over_hours() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let (mut ke, mut ntp) = (Site::new(&cache, BEGIN + 10, 1), Site::new(&cache, BEGIN + 3000, 2));
    assert!(ke.keys().is_none());
    ke.link.round(ke.now);
    ke.rotator.tick(VouchedBy::Witness, &mut ke.entropy);
    assert!(cache.names().is_empty() && ke.keys().is_none(), "others may have values to put there first");
    for _ in 0..2 {
        ke.run();
        ntp.run();
    }
    let mut values = std::collections::BTreeMap::new();
    for hour in 0..5 {
        assert_eq!((ke.seals(), ntp.seals()), (Some(hour), Some(hour)));
        are_equal(&ke, &ntp, hour - 24..=hour + 2);
        for hour in hour - 24..=hour + 2 {
            let value = cache.value(&name(hour)).unwrap();
            assert_eq!(value.len(), VALUE_SIZE);
            assert_eq!(values.entry(hour).or_insert_with(|| value.clone()), &value, "it never changes");
        }
        // One clock is ahead of the other, by most of an hour.
        ke.pass(600);
        ntp.pass(600);
        ntp.run();
        assert_eq!((ke.seals(), ntp.seals()), (Some(hour), Some(hour + 1)));
        are_equal(&ke, &ntp, hour - 23..=hour + 2);
        ke.pass(3000);
        ntp.pass(3000);
        ke.run();
        ntp.run();
    }
    assert_eq!(cache.names().len(), 27 + 5);
    let distinct: BTreeSet<Vec<u8>> = values.into_values().collect();
    assert_eq!(distinct.len(), 27 + 4);
    assert_eq!((ke.refused(), ntp.refused()), (0, 0));
    assert!(ke.opens(-20).is_none() && ke.opens(-19).is_some(), "five hours later");
}

#[test]
fn values_that_are_there_are_taken_as_they_are() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    // As CFNTS's script fills it, from fifty hours ago on.
    for hour in -50..=3 {
        cache.put(&name(hour), &[hour as u8; 16]);
    }
    cache.put(&name(-1), &[1; 15]);
    cache.put(&name(-2), &[2; 257]);
    cache.put(&name(-3), &[3; 256]);
    let mut site = Site::new(&cache, BEGIN, 1);
    site.run();
    assert_eq!((site.seals(), site.refused(), cache.counts().writes), (Some(0), 2, 0));
    let key = |value: &[u8]| authentick_crypto::kdf::hmac_sha256(&[7; 16], &[value]);
    assert_eq!(site.opens(0), Some(key(&[0; 16])));
    assert_eq!(site.opens(-3), Some(key(&[3; 256])));
    assert_eq!((site.opens(-1), site.opens(-2), site.opens(-25)), (None, None, None));
    assert!(site.opens(-24).is_some() && site.opens(2).is_some() && site.opens(3).is_none());
}

#[test]
fn value_that_changes_is_refused_and_counted_once() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let mut site = Site::new(&cache, BEGIN, 1);
    site.run();
    for hour in [-24, 0, 2] {
        let (before, good) = (site.refused(), site.opens(hour).unwrap());
        let value = cache.value(&name(hour)).unwrap();
        for change in 1..=2 {
            cache.put(&name(hour), &[change; 16]);
            site.run();
            cache.put(&name(hour), &value);
            site.run();
            assert_eq!((site.refused(), site.opens(hour)), (before + u64::from(change), Some(good)));
        }
    }
    // What was taken once is known after a restart, too, while another host believes what it finds.
    cache.put(&name(1), &[9; 16]);
    let good = site.opens(1);
    let (mut site, mut other) = (site.restart(BEGIN), Site::new(&cache, BEGIN, 2));
    site.run();
    other.run();
    assert_eq!((site.refused(), site.opens(1), other.refused()), (1, good, 0));
    assert_ne!(other.opens(1), good);
}

#[test]
fn memcached_may_be_away_for_hours_and_come_back_empty() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let mut site = Site::new(&cache, BEGIN, 1);
    site.run();
    let (address, all) = (cache.address(), (-24..=2).map(|hour| site.opens(hour)).collect::<Vec<_>>());
    let value = cache.value(&name(2)).unwrap();
    drop(cache);
    site.run();
    assert!(
        !site.store.counters().post.is_up.load(Ordering::Relaxed)
            && site.store.counters().post.failures.get() > 0
    );
    assert_eq!(site.store.counters().end.load(Ordering::Relaxed), BEGIN + 3 * HOUR);
    let mut site = site.restart(BEGIN);
    for (hour, seals) in [(0, 0), (1, 1), (2, 1), (3, 1), (30, 1)] {
        site.pass(BEGIN + hour * HOUR - site.clock.unix_seconds());
        site.run();
        assert_eq!(site.seals(), Some(seals), "{hour}: what seals has one after it that opens already");
        // A day after the one that seals.
        let open: Vec<_> = (-23..=2).map(|hour| site.opens(hour)).collect();
        assert_eq!(open, all[1..], "{hour}");
    }
    let cache = CacheServer::start(TcpListener::bind(address).unwrap(), Behaviour::Honest);
    wait_for("memcached to be asked again", || {
        site.run();
        (site.seals() == Some(30)).then_some(())
    });
    assert!(site.opens(6).is_some() && site.opens(5).is_none(), "a day before");
    assert!(cache.value(&name(6)).is_some() && cache.value(&name(2)) != Some(value));
}

#[test]
fn memcached_that_was_emptied_has_its_values_back_before_a_new_host_adds_others() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let mut site = Site::new(&cache, BEGIN, 1);
    site.run();
    cache.forget();
    let mut other = Site::new(&cache, BEGIN, 2);
    other.link.round(other.now);
    site.link.round(site.now);
    other.run();
    site.run();
    are_equal(&site, &other, -24..=2);
    assert_eq!((site.refused(), other.refused()), (0, 0));
}

#[test]
fn memcached_that_takes_nothing_is_not_asked_all_the_time() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let mut site = Site::new(&cache, BEGIN, 1);
    cache.behave(Behaviour::Full);
    for _ in 0..20 {
        site.link.round(site.now);
        site.now += Duration::from_secs(1);
    }
    let counts = cache.counts();
    assert!((27..=62).contains(&counts.writes) && counts.fetches == 20, "{counts:?}");
    assert_eq!(site.store.counters().post.refused.get(), counts.writes);
    site.run();
    assert!(site.keys().is_none());
}

#[test]
fn clock_of_1970_brings_no_keys_and_one_that_leaps_none_that_others_do_not_have() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let mut site = Site::new(&cache, 100, 1);
    site.look(VouchedBy::Nobody);
    assert!(site.keys().is_none() && cache.counts().names == 0, "nobody knows the hour");
    site.clock.wall.store(BEGIN, Ordering::Relaxed);
    site.look(VouchedBy::Operator);
    assert_eq!(site.seals(), Some(0));
    for leap in [25, 10_000] {
        site.clock.wall.store(BEGIN + leap * HOUR, Ordering::Relaxed);
        site.look(VouchedBy::Operator);
        assert_eq!((site.seals(), cache.names().len()), (Some(0), 27), "{leap}");
    }
    // The first word of the kernel or an upstream counts, whatever it is: the host may have been off.
    site.clock.wall.store(BEGIN + 72 * HOUR, Ordering::Relaxed);
    site.run();
    assert_eq!((site.seals(), cache.names().len()), (Some(72), 54));
    assert!(site.opens(48).is_some() && site.opens(47).is_none());
    // Back: it waits.
    site.clock.wall.store(BEGIN + 70 * HOUR, Ordering::Relaxed);
    site.run();
    assert_eq!(site.seals(), Some(72));
}

#[test]
fn keys_that_the_disk_refuses_open_and_do_not_seal() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let mut site = Site::new(&cache, BEGIN, 1);
    site.run();
    let blocked = site.block();
    site.pass(HOUR);
    site.run();
    assert_eq!(site.seals(), Some(0), "that another hour seals is to be on the disk, too");
    site.pass(HOUR);
    drop(blocked);
    site.run();
    assert_eq!(site.seals(), Some(2));
    let _blocked = site.block();
    let mut other = Site::new(&cache, BEGIN + 3 * HOUR, 2);
    let blocked = other.block();
    other.run();
    assert!(other.keys().is_none(), "nothing was ever written");
    drop(blocked);
    other.run();
    assert_eq!(other.seals(), Some(3));
    std::fs::remove_file(other.store.path().unwrap()).unwrap();
    other.pass(HOUR);
    other.run();
    assert!(other.seals() == Some(4) && other.store.path().unwrap().exists());
    site.pass(2 * HOUR);
    site.run();
    are_equal(&site, &other, 3..=6);
    assert_eq!(site.seals(), Some(2), "the others are opened from memory");
}

#[test]
fn commands_show_the_keys_and_change_none() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let mut site = Site::new(&cache, BEGIN, 1);
    let mut entropy = Entropy::from_seed(5);
    let error = site.store.load_or_create(0, &mut entropy).unwrap_err();
    assert!(error.to_string().contains("not changed by hand"), "{error}");
    site.run();
    let settings = Cfnts { server: site.server.into(), master_key: site.folder.path().join("master") };
    let store =
        CfntsStore::new(settings, &StateDirectory::of(&site.folder.path().join("state")), site.clock.clone());
    assert_eq!(by_hand::load(&store).unwrap().keys.keys().count(), 26);
    let error = by_hand::rotate(&store, None, None, 0, &mut entropy).unwrap_err();
    assert!(error.remedy().contains("master-key"), "{}", error.remedy());
    std::fs::write(site.folder.path().join("master"), [7; 15]).unwrap();
    assert!(by_hand::load(&store).unwrap_err().to_string().contains("15 octets are too few"));
    std::fs::remove_file(site.folder.path().join("master")).unwrap();
    assert!(by_hand::load(&store).unwrap_err().remedy().contains("copy it from another host"));
}
