//! Rotates the keys of one kind, logs and counts that, and adopts rotations of others. [`crate::rotation`] decides when
//! a rotation is due.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use authentick_crypto::Entropy;
use authentick_proto::generations::Succession;

use crate::clock::HostClock;
use crate::config::{Config, ConfigError, NextKey, RotatingKeys};
use crate::keystore::{Held, KeyKind, KeyStore, News, Rotated, Rotation, StoreError, Stores, Swap, Version};
use crate::lock;
use crate::metrics::counters::Counter;
use crate::preflight::keys_error;
use crate::retired::Retired;
use crate::rotation::phase::Doubt;
use crate::rotation::{Now, Schedule, Timing, VouchedBy};

/// How long after a failed rotation the next one is tried.
const ROTATION_RETRY: Duration = Duration::from_secs(30);
/// How long after first keys could not be written that is tried again.
const SAVE_RETRY: Duration = Duration::from_secs(5);
/// How often in a period the age of a key is saved, within the two bounds below.
const AGE_WRITES: u32 = 24;
const AGE_INTERVAL_MIN: Duration = Duration::from_secs(60);
const AGE_INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// The keys of one kind in use, for all threads, and counts of their rotations.
#[derive(Debug)]
pub(crate) struct InForce<K> {
    /// `None` until the first ones come, where others make them.
    pub(crate) keys: Arc<ArcSwapOption<K>>,
    pub(crate) rotations: Counter,
    pub(crate) rotation_failures: Counter,
    pub(crate) trouble: Trouble,
}

/// Why keys cannot be read, rotated or written now; nothing if they can, as far as anybody has tried.
#[derive(Debug, Default)]
pub(crate) struct Trouble(ArcSwapOption<String>);

impl Trouble {
    pub(crate) fn get(&self) -> Option<Arc<String>> {
        self.0.load_full()
    }

    fn set(&self, why: Option<&String>) {
        if self.0.load().as_deref() != why {
            self.0.store(why.cloned().map(Arc::new));
        }
    }
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
    version: Option<Version>,
    timing: Timing,
    /// The key that seals, whose age is kept.
    id: Option<u32>,
    not_before: Duration,
    /// When the age was last written, or the last attempt to write it was made.
    written: Duration,
    /// Why the last rotation failed, the last write of the age, and the last look at the store; of the last two only
    /// the first failure is logged.
    unrotated: Option<String>,
    unwritten: Option<String>,
    unread: Option<String>,
    /// What is there and was refused last.
    refused: Option<Version>,
    /// Why a rotation that is due has not taken place, as was said last.
    later: Option<String>,
    /// What was doubtful at the last look; only the beginning is logged.
    doubt: Option<Doubt>,
}

impl<K: KeyKind> Rotator<K> {
    /// Starts with the keys of one kind where a configuration has them.
    ///
    /// # Errors
    /// As [`Rotator::start`].
    pub(crate) fn of(
        settings: &RotatingKeys,
        stores: &Stores,
        config: &Config,
        clock: &Arc<dyn HostClock>,
        entropy: &mut Entropy,
    ) -> Result<Self, ConfigError> {
        let schedule = Schedule { period: settings.rotate, keep: settings.keep, next: settings.next };
        Rotator::start(K::store(stores), K::WORDS, schedule, clock, entropy)
            .map_err(|error| keys_error(config, settings, &error))
    }

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
        let now = clock.unix_seconds();
        let begun = match schedule.next {
            NextKey::Random | NextKey::Hourly => store.begin(now, entropy).map(|held| held.map(with_version)),
            NextKey::Derived => first_of_derived(&*store).map(|held| Some(with_version(held))),
        };
        let mut unwritten = None;
        let held = begun.or_else(|error| {
            if !is_for_later(&*store, schedule, &error) {
                return Err(error);
            }
            let why = format!("not written: {error}; {}", error.remedy());
            log::error!("{name} {why}; until then they are lost with this process");
            unwritten = Some(why);
            Ok(Some((K::generate(now, entropy), None)))
        })?;
        let boot = clock.boot();
        let timing = match &held {
            None => {
                log::warn!(
                    "{name}: none yet in {}; key exchanges are refused until there are some",
                    store.place()
                );
                Timing::anew(schedule.next, boot)
            }
            Some((keys, _)) => {
                let carried = store.age(keys.current_id()).unwrap_or_else(|error| {
                    log::warn!("{name}: {error}; the current key counts as new");
                    Duration::ZERO
                });
                Timing::resume(schedule.next, keys.rotated(), carried, boot)
            }
        };
        let version = held.as_ref().and_then(|(_, version)| *version);
        let keys = held.map(|(keys, _)| Arc::new(keys));
        let id = keys.as_ref().map(|keys| keys.current_id());
        let in_force = InForce {
            keys: Arc::new(ArcSwapOption::from(keys)),
            rotations: Counter::default(),
            rotation_failures: Counter::default(),
            trouble: Trouble::default(),
        };
        store.adopted();
        Ok(Rotator {
            store,
            name,
            schedule,
            clock: Arc::clone(clock),
            in_force: Arc::new(in_force),
            retired: Retired::default(),
            version,
            timing,
            id,
            not_before: boot,
            written: boot,
            unrotated: None,
            unwritten,
            unread: None,
            refused: None,
            later: None,
            doubt: None,
        })
    }

    /// The keys in force.
    pub(crate) fn in_force(&self) -> Arc<InForce<K>> {
        Arc::clone(&self.in_force)
    }

    /// Takes over what others have done to a store that is followed, and rotates if that is due; `vouched_by` says who
    /// vouches for the time of day.
    pub(crate) fn tick(&mut self, vouched_by: VouchedBy, entropy: &mut Entropy) {
        self.turn(vouched_by, entropy);
        let troubles = [&self.unrotated, &self.unread, &self.unwritten];
        self.in_force.trouble.set(troubles.into_iter().flatten().next());
    }

    fn turn(&mut self, vouched_by: VouchedBy, entropy: &mut Entropy) {
        self.retired.free();
        if self.store.is_followed() {
            self.follow();
        }
        let Some(keys) = self.in_force.keys.load_full().filter(|_| self.store.rotates_here()) else { return };
        let now = Now { wall: self.clock.unix_seconds(), boot: self.clock.boot(), vouched_by };
        if Some(keys.current_id()) != self.id {
            // They were read again, and somebody else had rotated.
            self.begin_anew(keys.current_id(), Some(keys.rotated()), now.boot);
        }
        if self.version.is_none() && !self.save() {
            return;
        }
        let (count, doubt) = self.timing.due(keys.rotated(), now, self.schedule);
        self.tell(doubt);
        if count == 0 || now.boot < self.not_before {
            self.keep_age(now.boot);
            return;
        }
        let Schedule { period, keep, next } = self.schedule;
        let derived = (next == NextKey::Derived).then_some(period.as_secs());
        let rotation = Rotation { count, now: now.wall, keep, derived };
        let name = self.name;
        match self.store.rotate(&keys, rotation, entropy) {
            Ok(Rotated::Here(held)) => {
                let id = held.keys.current_id();
                self.begin_anew(id, None, now.boot);
                log::info!("{name} rotated; key {id:08x} is now current");
                self.put_in_force(held);
                self.in_force.rotations.count();
            }
            Ok(Rotated::ByOthers(held)) => {
                let id = held.keys.current_id();
                self.begin_anew(id, Some(held.keys.rotated()), now.boot);
                log::info!(
                    "{name} had been rotated already, {}; key {id:08x} is now current",
                    self.store.origin()
                );
                self.put_in_force(held);
            }
            Ok(Rotated::Later(why)) => {
                if self.later.as_ref() != Some(&why) {
                    log::warn!(
                        "{name} are due to rotate, and wait: {why}; key {:08x} stays in use",
                        keys.current_id()
                    );
                    self.later = Some(why);
                }
                self.keep_age(now.boot);
            }
            Err(error) => {
                self.not_before = now.boot + ROTATION_RETRY;
                self.in_force.rotation_failures.count();
                self.unrotated = Some(format!("not rotated: {error}; {}", error.remedy()));
                log::error!(
                    "{name} not rotated: {error}; {}; key {:08x} stays in use; the next attempt is in {} s",
                    error.remedy(),
                    keys.current_id(),
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
                log::info!("{name} read again; key {:08x} is current", held.keys.current_id());
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
        if let (Err(error), None) = (&news, &self.unread) {
            self.in_force.rotation_failures.count();
            log::error!("{name} not changed: {error}; {}", error.remedy());
        }
        self.unread = news.as_ref().err().map(|error| format!("not read: {error}; {}", error.remedy()));
        match news {
            Ok(News::None) | Err(_) => {}
            Ok(News::Changed(held)) if Some(held.version) == self.refused => {}
            Ok(News::Changed(held)) if !self.is_refused(&held) => {
                let (origin, id) = (self.store.origin(), held.keys.current_id());
                log::info!("{name} received {origin}; key {id:08x} is now current");
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
        let Some(keys) = self.in_force.keys.load_full() else { return false };
        let why = match keys.succession(&held.keys) {
            Succession::Follows => return false,
            Succession::Older => {
                "they are older than those in force, or bring back a key that was dropped".to_owned()
            }
            Succession::Unrelated => "they have no key in common with those in force".to_owned(),
            Succession::Clashes(id) => format!("key {id:08x} is another one than that in force"),
        };
        self.in_force.rotation_failures.count();
        log::error!(
            "{} not changed: {}: {why}, whose clients would be refused; put the right file there, or restart the \
             server if this is meant",
            self.name,
            self.store.place()
        );
        true
    }

    /// Writes the first keys, which could not be written at the start; whether they are in the store now.
    fn save(&mut self) -> bool {
        let (boot, name, place) = (self.clock.boot(), self.name, self.store.place());
        let Some(keys) = self.in_force.keys.load_full().filter(|_| boot >= self.not_before) else {
            return false;
        };
        match self.store.compare_and_swap(None, &keys, lock::OF_A_RUNNING_SERVER) {
            Ok(Swap::Done(version)) => {
                log::info!("{name} are written to {place} now");
                (self.version, self.unwritten) = (Some(version), None);
            }
            // Others are there by now.
            Ok(Swap::Lost) => {
                self.unwritten = None;
                self.reload();
            }
            Err(error) => {
                self.not_before = boot + SAVE_RETRY;
                self.unwritten = Some(format!("not written: {error}; {}", error.remedy()));
            }
        }
        self.version.is_some()
    }

    fn put_in_force(&mut self, held: Held<K>) {
        (self.version, self.refused, self.unrotated) = (Some(held.version), None, None);
        self.retired.put_away(self.in_force.keys.swap(Some(Arc::new(held.keys))));
        self.store.adopted();
    }

    fn restore(&mut self) {
        let Some(keys) = self.in_force.keys.load_full() else { return };
        match self.store.restore_if_gone(&keys) {
            Ok(Some(version)) => (self.version, self.unwritten) = (Some(version), None),
            Ok(None) => {}
            Err(error) => {
                let why = format!("not written again: {error}; {}", error.remedy());
                log::error!("{} {why}", self.name);
                self.unwritten = Some(why);
            }
        }
    }

    /// Says that the clock and derived keys do not go together, once while that lasts.
    fn tell(&mut self, doubt: Option<Doubt>) {
        let kind = |doubt: Option<Doubt>| doubt.as_ref().map(std::mem::discriminant);
        let is_new = kind(doubt) != kind(std::mem::replace(&mut self.doubt, doubt));
        let (name, place) = (self.name, self.store.place());
        let remedy = |whose: &str| match self.schedule.next {
            NextKey::Random | NextKey::Derived => {
                format!("copy {place} from a host {whose}, and send SIGHUP")
            }
            NextKey::Hourly => {
                format!("remove {place}, and restart the server: it begins with the clock's hour")
            }
        };
        match doubt.filter(|_| is_new) {
            Some(Doubt::Leap(count)) => {
                self.in_force.rotation_failures.count();
                log::error!(
                    "{name} not rotated as the clock says: if it is wrong, {count} rotations at once would lose the \
                     keys of all clients. If it is right, {}; a server whose server.reference is \"kernel\" or an \
                     upstream believes it at a restart",
                    remedy("that has gone on")
                );
            }
            Some(Doubt::Ahead(seconds)) => {
                self.in_force.rotation_failures.count();
                log::error!(
                    "{name} are ahead of the clock by {}, and wait for it. If the clock is right, {}",
                    humantime::format_duration(Duration::from_secs(seconds)),
                    remedy("whose clock was right all the time")
                );
            }
            None => {}
        }
    }

    /// After a rotation, or as keys of `brought` were taken over that others had rotated then.
    fn begin_anew(&mut self, id: u32, brought: Option<u64>, boot: Duration) {
        self.timing.begin_anew(brought, boot);
        (self.id, self.later) = (Some(id), None);
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
        let Some(id) = self.id.filter(|_| self.store.rotates_here()) else { return };
        let rotated = self.in_force.keys.load().as_ref().map_or(0, |keys| keys.rotated());
        let written = self.store.set_age(id, self.timing.age(rotated, boot));
        let why = written.err().map(|error| {
            format!(
                "their age is not kept over a restart: {error}; see that the state directory can be written"
            )
        });
        if let (Some(why), None) = (&why, &self.unwritten) {
            log::error!("{}: {why}", self.name);
        }
        self.unwritten = why;
    }
}

fn with_version<K>(held: Held<K>) -> (K, Option<Version>) {
    (held.keys, Some(held.version))
}

/// Whether a server may start with first keys of its own that are written later: there are none, and it is the disk
/// that does not take them. Where others share the keys, they would not open what this server seals.
fn is_for_later<K: KeyKind>(store: &dyn KeyStore<K>, schedule: Schedule, error: &StoreError) -> bool {
    let is_alone = schedule.next == NextKey::Random && store.is_made_here() && !store.is_followed();
    is_alone && error.may_pass() && matches!(store.load(), Ok(None))
}

/// The keys to start with, if the next ones are derived: a host that made some of its own would part from the others.
///
/// # Errors
/// As [`KeyStore::load`], and if there are none.
pub(crate) fn first_of_derived<K: KeyKind>(store: &dyn KeyStore<K>) -> Result<Held<K>, StoreError> {
    store.load()?.ok_or_else(|| StoreError::NothingToDerive(store.place()))
}

#[cfg(test)]
mod tests;
