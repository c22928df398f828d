//! The symmetric keys of a running server: read, put in force, retired when their time comes, counted.
//!
//! A file that cannot be read or has a mistake changes nothing: the previous keys stay in use. Workers take a new set
//! between two batches, so no request is lost, and a request that came before the change is answered under the old
//! keys.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use authentick_crypto::mac::MacKey;
use authentick_fleet::SymmetricUses;
use authentick_proto::symmetric::{Allowed, Caution, Counts, SymmetricKey, SymmetricKeys};

use super::file::{KeyFile, KeyFileError, Stamp};
use super::keys::Keys;
use super::notes;
use super::uses::{Ledger, Stored, Uses, limit_of};
use crate::clock::HostClock;
use crate::config::Symmetric;
use crate::metrics::counters::Counter;
use crate::replace::Refused;
use crate::retired::Retired;

/// How many keys a warning names.
const NAMED: usize = 10;

/// What workers and metrics see.
#[derive(Debug)]
pub(crate) struct SymmetricState {
    pub(crate) keys: Arc<ArcSwap<SymmetricKeys>>,
    /// The same set with additional data; changes slightly later.
    details: ArcSwap<Details>,
    pub(crate) reload_failures: Counter,
}

#[derive(Debug)]
struct Details {
    keys: Arc<SymmetricKeys>,
    before: Vec<Uses>,
    retires: HashMap<u32, u64>,
}

/// A key in the metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) id: u32,
    pub(crate) name: &'static str,
    pub(crate) counts: Counts,
    pub(crate) uses: u64,
    pub(crate) limit: Option<u64>,
    pub(crate) retires: Option<u64>,
}

impl SymmetricState {
    /// Every key of the set.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        let details = self.details.load();
        let keys = details.keys.iter().zip(&details.before);
        let shown = keys.map(|(key, before)| {
            let counts = key.counts();
            Shown {
                id: key.id(),
                name: key.algorithm().name(),
                counts,
                uses: before.count.saturating_add(counts.answered.saturating_mul(2)),
                limit: limit_of(key),
                retires: details.retires.get(&key.id()).copied(),
            }
        });
        shown.collect()
    }
}

impl SymmetricState {
    /// How often keys were used, of at most so many: those that were used most.
    pub(crate) fn uses(&self, most: usize) -> Vec<SymmetricUses> {
        let mut shown = self.shown();
        shown.sort_by_key(|key| (Reverse(key.uses), key.id));
        shown.truncate(most);
        let of = |Shown { id, name, uses, limit, .. }: Shown| {
            let algorithm = name.to_owned();
            SymmetricUses { id, algorithm, uses, limit }
        };
        shown.into_iter().map(of).collect()
    }
}

/// Reads the keys that a configuration names.
pub(crate) fn load(symmetric: &Symmetric) -> Result<Keys, KeyFileError> {
    KeyFile::new(&symmetric.keys, symmetric.format).load()
}

/// Logs what is unwise in a key file, and which keys a server with these switches does not accept.
pub(crate) fn warn(path: &Path, keys: &Keys, allowed: Allowed) {
    let path = path.display();
    if keys.keys.is_empty() {
        log::warn!("{path}: no keys, so no request with a MAC is given time");
    }
    for warning in &keys.warnings {
        log::warn!("{path}: {warning}");
    }
    for (caution, switch) in
        [(Caution::KeyedDigest, "symmetric.allow-legacy"), (Caution::Nonce, "symmetric.allow-experimental")]
    {
        let of_these = || keys.keys.iter().filter(move |key| Caution::of(key.algorithm()) == Some(caution));
        let Some(first) = of_these().next() else { continue };
        let names: Vec<String> =
            of_these().take(NAMED).map(|key| format!("{} ({})", key.id(), key.algorithm())).collect();
        let rest = of_these().skip(NAMED).count();
        let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
        let what = match allowed.objection(first.algorithm()) {
            Some(_) => format!("not accepted, as {switch} is off"),
            None => format!("accepted, as {switch} is on"),
        };
        log::warn!("{path}: {what}: key {}{rest}: {caution}", names.join(", "));
    }
}

/// Looks after the keys, on the supervisor's thread.
#[derive(Debug)]
pub(crate) struct Keeper {
    file: KeyFile,
    allowed: Allowed,
    clock: Arc<dyn HostClock>,
    ledger: Ledger,
    state: Arc<SymmetricState>,
    retired: Retired<SymmetricKeys>,
    /// Whether the uses could be written when it was last tried.
    is_kept: bool,
    /// The file as it was read last, and at the last look.
    read: Option<Stamp>,
    seen: Option<Stamp>,
}

impl Keeper {
    /// Puts keys in force, for so many workers. `directory` is where uses are kept; it exists.
    pub(crate) fn start(
        symmetric: &Symmetric,
        keys: Keys,
        worker_count: usize,
        directory: &Path,
        clock: Arc<dyn HostClock>,
    ) -> Self {
        let mut ledger = Ledger::new(directory, Stored::load_or_set_aside(directory));
        let retires = retirements(&keys);
        let set =
            SymmetricKeys::new(keys.into_accepted(clock.unix_seconds()), symmetric.allowed, worker_count);
        let set = Arc::new(set.expect("a file has no id twice, none of zero, and not too many"));
        let written = ledger.replace(None, &set);
        let state = SymmetricState {
            keys: Arc::new(ArcSwap::new(Arc::clone(&set))),
            details: ArcSwap::from_pointee(Details { keys: set, before: ledger.before(), retires }),
            reload_failures: Counter::default(),
        };
        let file = KeyFile::new(&symmetric.keys, symmetric.format);
        let read = file.stamp();
        let mut keeper = Keeper {
            file,
            allowed: symmetric.allowed,
            clock,
            ledger,
            state: Arc::new(state),
            retired: Retired::default(),
            is_kept: true,
            read,
            seen: read,
        };
        keeper.note_written(&written);
        keeper
    }

    /// What workers and metrics see.
    pub(crate) fn state(&self) -> Arc<SymmetricState> {
        Arc::clone(&self.state)
    }

    /// Reads the file again if it has changed, and not since the last look: somebody may be writing it.
    fn follow(&mut self) {
        let stamp = self.file.stamp();
        let is_at_rest = stamp == std::mem::replace(&mut self.seen, stamp);
        if is_at_rest && stamp != self.read {
            self.reload();
        }
    }

    /// Reads the file again. What cannot be read changes nothing, and is logged.
    pub(crate) fn reload(&mut self) {
        // What changes from here on is read with another look.
        self.read = self.file.stamp();
        match self.file.load() {
            Ok(keys) => {
                warn(self.file.path(), &keys, self.allowed);
                let now = self.clock.unix_seconds();
                let (count, retires) = (keys.accepted(now).count(), retirements(&keys));
                self.replace(keys.into_accepted(now), retires);
                log::info!("symmetric keys read again: {count}");
            }
            Err(error) => {
                self.state.reload_failures.count();
                log::error!("symmetric keys not changed: {error}; {}", error.remedy());
            }
        }
    }

    /// What is due each second: the file is looked at, keys retire, uses are written down and compared with their
    /// limits.
    pub(crate) fn tick(&mut self) {
        self.retired.free();
        self.follow();
        self.retire(self.clock.unix_seconds());
        let keys = self.state.keys.load_full();
        let (worn, written) = self.ledger.look(&keys);
        for key in worn {
            let most = if key.uses.is_exact { "" } else { "at most " };
            let share = if key.uses.count >= key.limit { "all" } else { "half" };
            log::warn!(
                "symmetric key {} ({}) has been used {most}{} times, {share} of the 2^{} after which it should be \
                 another: authentick keys symmetric rotate {}",
                key.id,
                key.algorithm,
                key.uses.count,
                key.limit.ilog2(),
                key.id
            );
        }
        self.note_written(&written);
    }

    /// Writes the uses down when no worker counts any more.
    pub(crate) fn close(self) {
        if let Err((path, error)) = self.ledger.close(&self.state.keys.load()) {
            log::error!("uses of symmetric keys not written: {}: {error}", path.display());
        }
    }

    fn retire(&mut self, now: u64) {
        let details = self.state.details.load_full();
        let is_over = |id: u32| details.retires.get(&id).is_some_and(|&end| end <= now);
        let over: Vec<u32> = details.keys.iter().map(SymmetricKey::id).filter(|&id| is_over(id)).collect();
        if over.is_empty() {
            return;
        }
        let kept = details.keys.iter().filter(|key| !is_over(key.id())).map(copy);
        self.replace(kept.collect::<Vec<_>>(), details.retires.clone());
        for id in &over {
            let end = details.retires.get(id).copied().unwrap_or(now);
            log::info!("symmetric key {id} is not accepted any more, as its note says: {}", notes::time(end));
        }
    }

    fn replace(&mut self, keys: impl IntoIterator<Item = SymmetricKey>, retires: HashMap<u32, u64>) {
        let old = self.state.keys.load_full();
        let set = old.successor(keys, self.allowed);
        let set = Arc::new(set.expect("a file has no id twice, none of zero, and not too many"));
        let written = self.ledger.replace(Some(&old), &set);
        self.retired.replace(&self.state.keys, Arc::clone(&set));
        let details = Details { keys: set, before: self.ledger.before(), retires };
        self.state.details.store(Arc::new(details));
        self.note_written(&written);
    }

    /// Logs a change between being able to write uses and not.
    fn note_written(&mut self, written: &Result<(), Refused>) {
        match (written, self.is_kept) {
            (Err((path, error)), true) => log::error!(
                "uses of symmetric keys are not kept over a restart: {}: {error}; see that the state directory can be \
                 written",
                path.display()
            ),
            (Ok(()), false) => log::info!("uses of symmetric keys are kept again"),
            (Ok(()), true) | (Err(_), false) => {}
        }
        self.is_kept = written.is_ok();
    }
}

/// The keys that have an end, and when.
fn retirements(keys: &Keys) -> HashMap<u32, u64> {
    keys.keys.iter().filter_map(|key| Some((key.id(), key.note.retires?))).collect()
}

fn copy(key: &SymmetricKey) -> SymmetricKey {
    let octets = MacKey::new(key.algorithm(), key.key().expose()).expect("it is a key already");
    let copy = SymmetricKey::new(key.id(), octets);
    match key.salt() {
        Some(salt) => copy.with_salt(salt).expect("the key had it"),
        None => copy,
    }
}
