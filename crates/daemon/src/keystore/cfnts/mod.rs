//! Cookie keys in CFNTS's layout: a memcached has a value for each hour of the day's clock, under
//! `/nts/nts-keys/EPOCH`, and HMAC-SHA256 of it under a master key is the hour's cookie key. All hosts with that
//! memcached and that master key have the same keys, whoever has put the values there. Cookies themselves have another
//! form than CFNTS's, and neither opens the other's.
//!
//! - `hours`: hours, values, keys, and the text on the disk.
//! - `link`: a thread that reads memcached, and adds what is missing.
//! - `desk`: what that thread and the supervisor have in common.
//!
//! When an hour's key begins to seal is [`crate::rotation::phase`]'s affair: by the day's clock, within bounds.
//!
//! **Invariant:** the value of an hour, once it was taken, stays, here and in memcached as far as it depends on this
//! host: values are added, never replaced, and one that has changed is refused. It is on the disk before its key seals.

mod desk;
mod hours;
mod link;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_proto::keyset::KeySet;

use self::desk::{Desk, Shown};
pub(crate) use self::hours::Master;
use self::hours::{FILE_SIZE_MAX, Hour, Kept};
pub(crate) use self::link::{Counters, Link};
use super::directory::StateDirectory;
use super::error::StoreError;
use super::file::SecretFile;
use super::{Held, KeyStore, News, Rotated, Rotation, Swap, Version};
use crate::clock::HostClock;
use crate::config::Cfnts;
use crate::lock::OF_A_RUNNING_SERVER;
use crate::names::ServerAddresses;
use crate::rotation::PLAUSIBLE_FROM;

/// The name of the file that keys are kept in.
pub(super) const NAME: &str = "cfnts-cookie-keys";

/// The store of cookie keys in CFNTS's layout.
pub struct CfntsStore {
    settings: Cfnts,
    file: SecretFile,
    clock: Arc<dyn HostClock>,
    /// Read before rights are given up.
    master: OnceLock<Master>,
    desk: Arc<Desk>,
    counters: Arc<Counters>,
    /// Of a running server.
    state: Mutex<Option<State>>,
}

/// What a running server knows.
#[derive(Default)]
struct State {
    kept: Kept,
    /// The hour whose key should seal and does not yet: memcached has not shown it, or the disk refused.
    due: Option<Hour>,
    /// The hours whose values are on the disk.
    on_disk: BTreeSet<Hour>,
    /// Of the file.
    version: Option<Version>,
    /// Why the disk refused, as the log has it.
    trouble: Option<String>,
}

impl State {
    fn version_in_force(&self) -> Option<Version> {
        self.kept.seals?;
        let hours: Vec<&Hour> = self.kept.values.keys().collect();
        Some(Version::of(format!("{:?} {hours:?}", self.kept.seals).as_bytes()))
    }

    fn held(&self, master: &Master) -> Option<Held<KeySet>> {
        Some(Held { keys: self.kept.keys(master)?, version: self.version_in_force()? })
    }
}

impl fmt::Debug for CfntsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CFNTS's keys in {}", self.settings.server)
    }
}

impl CfntsStore {
    /// The store that a configuration names, with a state directory.
    #[must_use]
    pub fn new(settings: Cfnts, directory: &StateDirectory, clock: Arc<dyn HostClock>) -> Self {
        let file = SecretFile::new(directory, NAME, FILE_SIZE_MAX);
        CfntsStore {
            counters: Arc::new(Counters::new(settings.server.clone())),
            settings,
            file,
            clock,
            master: OnceLock::new(),
            desk: Arc::default(),
            state: Mutex::new(None),
        }
    }

    /// Gives it the master key, which it reads itself otherwise. The first one stays.
    pub(crate) fn know(&self, master: Master) {
        let _ = self.master.set(master);
    }

    /// What the thread does that talks to memcached at `addresses`; `entropy` gives it fresh values.
    pub(crate) fn link(&self, addresses: ServerAddresses, entropy: Entropy) -> Link {
        Link::new(Arc::clone(&self.desk), Arc::clone(&self.counters), addresses, entropy)
    }

    /// What became of that talk.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Has that thread end.
    pub(crate) fn end(&self) {
        self.desk.end();
    }

    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn master(&self) -> Result<Master, StoreError> {
        match self.master.get() {
            Some(master) => Ok(master.clone()),
            None => Master::read(&self.settings.master_key),
        }
    }

    fn read(&self) -> Result<State, StoreError> {
        let Some(octets) = self.file.read()? else { return Ok(State::default()) };
        let kept = Kept::parse(&self.place(), &octets)?;
        let on_disk = kept.values.keys().copied().collect();
        Ok(State { kept, on_disk, version: Some(Version::of(&octets)), ..State::default() })
    }

    /// Writes what is to be kept, and keeps it then. Nobody else changes the file while a server runs: what has become
    /// of it is overwritten.
    fn write(&self, state: &mut State, next: Kept) -> Result<(), StoreError> {
        let text = next.emit();
        let mut swap = self.file.compare_and_swap(state.version, &text, OF_A_RUNNING_SERVER)?;
        if swap == Swap::Lost {
            log::warn!(
                "{} was removed or replaced; what this server has is written to it again",
                self.place()
            );
            let there = self.file.read()?.map(|octets| Version::of(&octets));
            swap = self.file.compare_and_swap(there, &text, OF_A_RUNNING_SERVER)?;
        }
        let Swap::Done(version) = swap else { return Err(StoreError::Contended(self.place())) };
        state.on_disk = next.values.keys().copied().collect();
        (state.kept, state.version) = (next, Some(version));
        if state.trouble.take().is_some() {
            log::info!("{} is written again", self.place());
        }
        Ok(())
    }

    /// Takes values that memcached has shown: to the disk, or if that refuses, to open alone.
    fn hear(&self, state: &mut State) {
        for (hour, value) in self.desk.take() {
            state.kept.values.entry(hour).or_insert(value);
        }
        let wanted = [state.kept.seals, state.due.or_else(|| self.hour())];
        state.kept.values.retain(|hour, _| wanted.into_iter().flatten().any(|wanted| wanted.has(*hour)));
        if state.kept.values.keys().all(|hour| state.on_disk.contains(hour)) {
            return;
        }
        if let Err(error) = self.write(state, state.kept.clone()) {
            let text = format!(
                "{error}; {}; keys that come from memcached open until it is written, and do not seal",
                error.remedy()
            );
            if state.trouble.as_ref() != Some(&text) {
                log::error!("{text}");
                state.trouble = Some(text);
            }
        }
    }

    /// Has memcached asked for values around the hour that is to seal, if anybody knows it.
    fn show(&self, state: &State) {
        let Some(hour) = state.due.or(state.kept.seals).or_else(|| self.hour()) else { return };
        let end = state.kept.last().map_or(0, |last| last.later(1).epoch());
        self.counters.end.store(end, Ordering::Relaxed);
        self.desk.show(Shown { hour, values: state.kept.values.clone() });
    }

    /// The hour of the day's clock, if that may be right.
    fn hour(&self) -> Option<Hour> {
        let now = self.clock.unix_seconds();
        (now >= PLAUSIBLE_FROM).then(|| Hour::of(now))
    }

    /// Begins with an hour, if none seals yet.
    fn choose(&self, state: &mut State) -> Result<(), StoreError> {
        let (None, Some(now)) = (state.kept.seals, self.hour()) else { return Ok(()) };
        match state.kept.fit(now) {
            Some(hour) => self.write(state, state.kept.sealing(hour)),
            None => Ok(()),
        }
    }
}

impl KeyStore<KeySet> for CfntsStore {
    fn place(&self) -> String {
        self.file.path().display().to_string()
    }

    fn load(&self) -> Result<Option<Held<KeySet>>, StoreError> {
        let master = self.master()?;
        match &*self.state() {
            Some(state) => Ok(state.held(&master)),
            None => Ok(self.read()?.held(&master)),
        }
    }

    fn compare_and_swap(&self, _: Option<Version>, _: &KeySet, _: Duration) -> Result<Swap, StoreError> {
        Err(StoreError::OfHours(self.place()))
    }

    fn load_or_create(&self, _: u64, _: &mut Entropy) -> Result<Held<KeySet>, StoreError> {
        self.load()?.ok_or_else(|| StoreError::OfHours(self.place()))
    }

    fn is_followed(&self) -> bool {
        true
    }

    fn rotates_here(&self) -> bool {
        self.state().as_ref().is_some_and(|state| state.kept.seals.is_some())
    }

    fn begin(&self, _: u64, _: &mut Entropy) -> Result<Option<Held<KeySet>>, StoreError> {
        let master = self.master()?;
        self.know(master.clone());
        let state = self.read()?;
        let held = state.held(&master);
        self.show(&state);
        *self.state() = Some(state);
        Ok(held)
    }

    fn watch(&self, known: Option<Version>) -> Result<News<KeySet>, StoreError> {
        let mut state = self.state();
        let Some(state) = state.as_mut() else { return Ok(News::None) };
        self.hear(state);
        self.choose(state)?;
        self.show(state);
        match state.version_in_force() == known {
            true => Ok(News::None),
            false => Ok(state.held(&self.master()?).map_or(News::None, News::Changed)),
        }
    }

    fn rotate(&self, _: &KeySet, rotation: Rotation, _: &mut Entropy) -> Result<Rotated<KeySet>, StoreError> {
        let mut state = self.state();
        let in_use = state.as_ref().and_then(|state| state.kept.seals);
        let (Some(state), Some(seals)) = (state.as_mut(), in_use) else {
            return Ok(Rotated::Later("there are none".to_owned()));
        };
        let due = seals.later(rotation.count);
        state.due = Some(due);
        self.show(state);
        let Some(next) = state.kept.fit(due).filter(|hour| *hour > seals) else {
            let server = &self.settings.server;
            return Ok(Rotated::Later(format!("memcached {server} has shown no values for {due} and after")));
        };
        self.write(state, state.kept.sealing(next))?;
        state.due = Some(due).filter(|due| *due > next);
        self.show(state);
        let held = state.held(&self.master()?);
        Ok(held.map_or_else(|| Rotated::Later("they are gone".to_owned()), Rotated::Here))
    }

    fn file(&self) -> Option<&SecretFile> {
        Some(&self.file)
    }
}
