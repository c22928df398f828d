//! A node whose clock looks at the thread that reads it, and what is configured for it.

use std::cell::Cell;
use std::fmt::Write as _;
use std::hint::black_box;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use authentick_crypto::mac::MacAlgorithm;
use authentick_daemon::clock::HostClock;
use authentick_daemon::metrics::counters::Totals;
use authentick_daemon::{Config, keystore::Stores, node};
use authentick_net::allocations::{self, Tally};
use authentick_net::clock::{self, KernelClock};
use authentick_wire::time::{NtpSpan, NtpTime};

use super::eventually;
use super::requests::{ALGORITHMS, Client, key_id, key_octets};

/// How requests are refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Kiss,
    Silence,
}

/// What clients may ask only a few times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limits {
    None,
    /// Negotiations and key exchanges.
    OfAntp,
    OfAllRequests,
}

const DAY_NS: u64 = 86_400_000_000_000;

thread_local! {
    /// Whether this is a packet worker's thread, once that is known.
    static IS_WORKER: Cell<Option<bool>> = const { Cell::new(None) };
}

/// The clocks of this host some days later, and what the packet worker has done with memory when it last read them.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    day_count: AtomicU64,
    taken: AtomicU64,
    freed: AtomicU64,
    /// Blocks that the worker is to take, and give back, when it reads the clock next.
    on_purpose: AtomicU64,
    /// How often the kernel was asked, or anybody but the worker has read the time.
    look_count: AtomicU64,
    meets_lock: AtomicBool,
    lock: Mutex<()>,
}

impl Clocks {
    fn days_ns(&self) -> u64 {
        self.day_count.load(Ordering::Relaxed) * DAY_NS
    }

    pub(crate) fn pass_days(&self, count: u64) {
        self.day_count.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn take_memory(&self, count: u64) {
        self.on_purpose.store(count, Ordering::SeqCst);
    }

    pub(crate) fn look_count(&self) -> u64 {
        self.look_count.load(Ordering::Relaxed)
    }

    /// Does `work` while this lock is held, which the worker needs then to read the time.
    pub(crate) fn meet_lock(&self, work: impl FnOnce()) {
        let held = self.lock.lock().unwrap();
        self.meets_lock.store(true, Ordering::SeqCst);
        work();
        self.meets_lock.store(false, Ordering::SeqCst);
        drop(held);
    }

    fn look(&self) {
        let is_worker = IS_WORKER.get().unwrap_or_else(|| {
            let is_worker = thread::current().name().is_some_and(|name| name.starts_with("ntp-"));
            IS_WORKER.set(Some(is_worker));
            is_worker
        });
        if !is_worker {
            self.look_count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        for number in 0..self.on_purpose.swap(0, Ordering::SeqCst) {
            drop(black_box(Box::new(number)));
        }
        if self.meets_lock.load(Ordering::SeqCst) {
            drop(self.lock.lock().unwrap());
        }
        let Tally { taken, freed } = allocations::of_this_thread();
        self.taken.store(taken, Ordering::SeqCst);
        self.freed.store(freed, Ordering::SeqCst);
    }
}

impl HostClock for Clocks {
    fn now(&self) -> NtpTime {
        self.look();
        clock::now() + NtpSpan::from_nanos(i64::try_from(self.days_ns()).unwrap())
    }

    fn unix_seconds(&self) -> u64 {
        clock::unix_seconds() + self.days_ns() / 1_000_000_000
    }

    fn boot_ns(&self) -> u64 {
        clock::boot_ns() + self.days_ns()
    }

    fn kernel(&self) -> KernelClock {
        KernelClock::Synchronised { leap: None, error_max_us: 500 }
    }
}

/// A node with one worker, in this process.
pub(crate) struct Node {
    running: node::Running,
    pub(crate) clocks: Arc<Clocks>,
    folder: tempfile::TempDir,
}

/// A certificate of its own making; returns the two lines that name it.
fn identity(folder: &Path, name: &str) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let (chain, key_file) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    std::fs::write(&chain, certificate.pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key_file, PermissionsExt::from_mode(0o600)).unwrap();
    format!("certificate-chain = {chain:?}\nprivate-key = {key_file:?}\n")
}

/// Writes a file with a key of each of these.
fn write_keys(folder: &Path, algorithms: &[MacAlgorithm]) {
    let mut text = String::new();
    for &algorithm in algorithms {
        write!(text, "{} {algorithm} HEX:", key_id(algorithm)).unwrap();
        key_octets(algorithm).iter().for_each(|octet| write!(text, "{octet:02x}").unwrap());
        text.push('\n');
    }
    let (file, new) = (folder.join("keys"), folder.join("keys.new"));
    std::fs::write(&new, text).unwrap();
    std::fs::set_permissions(&new, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::rename(new, file).unwrap();
}

impl Node {
    pub(crate) fn start(refusal: Refusal, limits: Limits, has_spans: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        write_keys(path, ALGORITHMS);
        let refusal = if refusal == Refusal::Kiss { "kiss" } else { "silence" };
        let most = if limits == Limits::OfAllRequests { 0.001 } else { 0.0 };
        let of_antp = if limits == Limits::OfAntp { 0.001 } else { 0.0 };
        let spans = if has_spans { "\"127.0.0.0/8\"" } else { "" };
        let text = format!(
            "[server]\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\nuser = \"root\"\nrefusal = \"{refusal}\"\n\
             reference = {{ stratum = 1, id = \"TEST\" }}\nstate-directory = {:?}\nallow = [\"127.0.0.0/9\"]\n\
             rate-limit = {{ requests-per-second = {most:?}, burst = 8 }}\n\
             [nts]\nke-listen = [\"127.0.0.1:0\"]\nke-workers = 1\n\
             cookie-keys = {{ rotate = \"1d\", keep = 1 }}\n{}\
             [symmetric]\nkeys = {:?}\nallow-legacy = true\nallow-experimental = true\n\
             [antp]\nenable = true\nqueue = 2\n\
             rate-limit = {{ negotiations-per-second = {of_antp:?}, exchanges-per-second = {of_antp:?}, \
             times-per-second = 0, all-exchanges-per-second = 0 }}\n\
             [antp.ecdh]\n{}[metrics]\nlisten = \"127.0.0.1:0\"\nspan-clients = [{spans}]\n",
            path.join("state"),
            identity(path, "nts"),
            path.join("keys"),
            identity(path, "antp"),
        );
        let config = Config::parse(&path.join("test.toml"), &text).unwrap();
        let clocks = Arc::new(Clocks::default());
        let host =
            node::Host { clock: clocks.clone(), stores: Stores::in_directory(&config.state_directory) };
        Node { running: node::start_on(&host, &config).unwrap(), clocks, folder }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.ntp_addresses()[0]
    }

    pub(crate) fn ke_addresses(&self) -> &[SocketAddr] {
        self.running.ke_addresses()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn totals(&self) -> Totals {
        self.running.totals()
    }

    /// What the worker had done when it last sent a batch, or, if it has done nothing since, up to now.
    pub(crate) fn tally(&self) -> Tally {
        let clocks = &self.clocks;
        Tally { taken: clocks.taken.load(Ordering::SeqCst), freed: clocks.freed.load(Ordering::SeqCst) }
    }

    /// Sends requests, and waits until the worker has seen to them.
    pub(crate) fn send_all<'a>(&self, requests: impl IntoIterator<Item = (&'a Client, &'a [u8])>) {
        let mut expected = self.totals().received;
        for (client, request) in requests {
            client.send(self, request);
            expected += 1;
        }
        eventually("a worker answers", || self.totals().received >= expected);
    }

    pub(crate) fn write_keys(&self, algorithms: &[MacAlgorithm]) {
        write_keys(self.folder(), algorithms);
    }

    pub(crate) fn reload(&self) {
        self.running.reload(|| ());
    }

    pub(crate) fn stop(self) {
        assert!(self.running.stop(), "no thread had failed");
    }
}
