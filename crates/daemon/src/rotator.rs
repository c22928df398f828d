//! Rotates the keys of one kind, logs and counts that, and adopts rotations of others. [`crate::rotation`] decides when
//! a rotation is due.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use authentick_crypto::Entropy;
use authentick_proto::generations::Succession;

use crate::clock::HostClock;
use crate::keystore::{Held, KeyKind, KeyStore, News, Rotated, Rotation, StoreError, Version};
use crate::metrics::counters::Counter;
use crate::retired::Retired;
use crate::rotation::{Ageing, Now, Schedule, VouchedBy};

/// How long after a failed rotation the next one is tried.
const ROTATION_RETRY: Duration = Duration::from_secs(30);
/// How often in a period the age of a key is saved, within the two bounds below.
const AGE_WRITES: u32 = 24;
const AGE_INTERVAL_MIN: Duration = Duration::from_secs(60);
const AGE_INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// The keys of one kind in use, for all threads, and counts of their rotations.
#[derive(Debug)]
pub(crate) struct InForce<K> {
    pub(crate) keys: Arc<ArcSwap<K>>,
    pub(crate) rotations: Counter,
    pub(crate) rotation_failures: Counter,
}

/// Keeps the keys of one kind.
pub(crate) struct Rotator<K> {
    store: Arc<dyn KeyStore<K>>,
    /// What they are called in the log.
    name: &'static str,
    schedule: Schedule,
    clock: Arc<dyn HostClock>,
    in_force: Arc<InForce<K>>,
    retired: Retired<K>,
    /// Of the keys in force.
    version: Version,
    ageing: Ageing,
    /// The key whose age that is.
    id: u32,
    not_before: Duration,
    /// When the age was last written, or the last attempt to write it was made.
    written: Duration,
    is_written: bool,
    /// Whether the last look at the store failed; only the first failure is logged.
    is_unreadable: bool,
    /// What is there and was refused last.
    refused: Option<Version>,
}

impl<K: KeyKind> Rotator<K> {
    /// Starts to use the keys of a store, which are created if there are none.
    ///
    /// # Errors
    /// If they can be neither read nor created.
    pub(crate) fn start(
        store: Arc<dyn KeyStore<K>>,
        name: &'static str,
        schedule: Schedule,
        clock: &Arc<dyn HostClock>,
        entropy: &mut Entropy,
    ) -> Result<Self, StoreError> {
        let Held { keys, version } = store.load_or_create(clock.unix_seconds(), entropy)?;
        let (id, boot) = (keys.current_id(), clock.boot());
        let carried = store.age(id).unwrap_or_else(|error| {
            log::warn!("{name}: {error}; the current key counts as new");
            Duration::ZERO
        });
        let ageing = Ageing::resume(keys.rotated(), carried, boot);
        let in_force = InForce {
            keys: Arc::new(ArcSwap::from_pointee(keys)),
            rotations: Counter::default(),
            rotation_failures: Counter::default(),
        };
        Ok(Rotator {
            store,
            name,
            schedule,
            clock: Arc::clone(clock),
            in_force: Arc::new(in_force),
            retired: Retired::default(),
            version,
            ageing,
            id,
            not_before: boot,
            written: boot,
            is_written: true,
            is_unreadable: false,
            refused: None,
        })
    }

    /// The keys in force.
    pub(crate) fn in_force(&self) -> Arc<InForce<K>> {
        Arc::clone(&self.in_force)
    }

    /// Takes over what others have done to a store that is followed, and rotates if that is due; `vouched_by` says who
    /// vouches for the time of day.
    pub(crate) fn tick(&mut self, vouched_by: VouchedBy, entropy: &mut Entropy) {
        self.retired.free();
        if self.store.is_followed() {
            self.follow();
        }
        if !self.store.is_made_here() {
            return;
        }
        let keys = self.in_force.keys.load_full();
        let now = Now { wall: self.clock.unix_seconds(), boot: self.clock.boot(), vouched_by };
        if keys.current_id() != self.id {
            // They were read again, and somebody else had rotated.
            self.begin_anew(keys.current_id(), now.boot);
        }
        let count = self.ageing.due(now, self.schedule);
        if count == 0 || now.boot < self.not_before {
            self.keep_age(now.boot);
            return;
        }
        let rotation = Rotation { count, now: now.wall, keep: self.schedule.keep };
        let name = self.name;
        match self.store.rotate(&keys, rotation, entropy) {
            Ok(Rotated::Here(held)) => {
                self.begin_anew(held.keys.current_id(), now.boot);
                log::info!("{name} rotated; key {:08x} seals now", self.id);
                self.put_in_force(held);
                self.in_force.rotations.count();
            }
            Ok(Rotated::ByOthers(held)) => {
                self.begin_anew(held.keys.current_id(), now.boot);
                log::info!("{name} had been rotated by somebody else; key {:08x} seals now", self.id);
                self.put_in_force(held);
            }
            Err(error) => {
                self.not_before = now.boot + ROTATION_RETRY;
                self.in_force.rotation_failures.count();
                log::error!(
                    "{name} not rotated: {error}; {}; key {:08x} stays in use; the next attempt is in {} s",
                    error.remedy(),
                    self.id,
                    ROTATION_RETRY.as_secs()
                );
            }
        }
    }

    /// Reads the keys again; what cannot be read stays as it was.
    pub(crate) fn reload(&mut self) {
        let name = self.name;
        match self.store.load() {
            Ok(Some(held)) if !self.is_refused(&held) => {
                log::info!("{name} read again; key {:08x} seals", held.keys.current_id());
                self.put_in_force(held);
            }
            Ok(Some(_)) => {}
            // They are written again, and that is said; the keys in force are not changed.
            Ok(None) => self.restore(),
            Err(error) => log::error!("{name} not changed: {error}; {}", error.remedy()),
        }
    }

    /// Writes the age down before the process ends.
    pub(crate) fn close(mut self) {
        self.write_age(self.clock.boot());
    }

    fn follow(&mut self) {
        let (name, news) = (self.name, self.store.watch(self.version));
        if let (Err(error), false) = (&news, self.is_unreadable) {
            log::error!("{name} not changed: {error}; {}", error.remedy());
        }
        self.is_unreadable = news.is_err();
        match news {
            Ok(News::None) | Err(_) => {}
            Ok(News::Changed(held)) if Some(held.version) == self.refused => {}
            Ok(News::Changed(held)) if !self.is_refused(&held) => {
                log::info!("{name} changed by somebody else; key {:08x} seals", held.keys.current_id());
                self.put_in_force(held);
            }
            Ok(News::Changed(held)) => self.refused = Some(held.version),
            Ok(News::Gone) => self.restore(),
        }
    }

    /// Whether keys that something else makes are not what becomes of those in force, which then stay; says why.
    fn is_refused(&self, held: &Held<K>) -> bool {
        if self.store.is_made_here() {
            return false;
        }
        let why = match self.in_force.keys.load().succession(&held.keys) {
            Succession::Follows => return false,
            Succession::Older => {
                "they are older than those in force, or bring back a key that was dropped".to_owned()
            }
            Succession::Unrelated => "they have no key in common with those in force".to_owned(),
            Succession::Clashes(id) => format!("key {id:08x} is another one than that in force"),
        };
        self.in_force.rotation_failures.count();
        log::error!(
            "{} not changed: {}: {why}, whose cookies would be refused; put the right file there, or restart the \
             server if this is meant",
            self.name,
            self.store.place()
        );
        true
    }

    fn put_in_force(&mut self, held: Held<K>) {
        (self.version, self.refused) = (held.version, None);
        self.retired.replace(&self.in_force.keys, Arc::new(held.keys));
    }

    fn restore(&mut self) {
        match self.store.restore_if_gone(&self.in_force.keys.load_full()) {
            Ok(version) => self.version = version.unwrap_or(self.version),
            Err(error) => log::error!("{} not written again: {error}; {}", self.name, error.remedy()),
        }
    }

    fn begin_anew(&mut self, id: u32, boot: Duration) {
        self.ageing = Ageing::anew(boot);
        self.id = id;
        self.written = boot;
    }

    fn keep_age(&mut self, boot: Duration) {
        let interval = (self.schedule.period / AGE_WRITES).clamp(AGE_INTERVAL_MIN, AGE_INTERVAL_MAX);
        if boot.saturating_sub(self.written) >= interval {
            self.write_age(boot);
        }
    }

    fn write_age(&mut self, boot: Duration) {
        self.written = boot;
        let written = self.store.set_age(self.id, self.ageing.age(boot));
        if let (Err(error), true) = (&written, self.is_written) {
            log::error!(
                "the age of {} is not kept over a restart: {error}; see that the state directory can be written",
                self.name
            );
        }
        self.is_written = written.is_ok();
    }
}

#[cfg(test)]
mod tests;
