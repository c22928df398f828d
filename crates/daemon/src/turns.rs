//! Keys of one kind that take turns: when, says [`crate::rotation`]; here it is done, logged and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use authentick_crypto::Entropy;

use crate::clock::HostClock;
use crate::keystore::age::AgeFile;
use crate::keystore::{SetFile, Stored, Turned};
use crate::rotation::{Ageing, Moment, Terms, Word};

/// After a rotation failed, so long is waited before the next attempt.
const ROTATION_RETRY: Duration = Duration::from_secs(30);
/// The age of a key is written down so often in a period, but neither more often than the first nor less often than the
/// second.
const AGE_WRITES: u32 = 24;
const AGE_INTERVAL_MIN: Duration = Duration::from_secs(60);
const AGE_INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// Keys of one kind that take turns.
pub(crate) struct Turns<S> {
    file: SetFile<S>,
    age_file: AgeFile,
    /// What they are called in the log.
    name: &'static str,
    clock: Arc<dyn HostClock>,
    ageing: Ageing,
    /// The key whose age that is.
    id: u32,
    not_before: Duration,
    /// When the age was last written, or tried to be.
    written: Duration,
    is_written: bool,
}

impl<S: Stored> Turns<S> {
    /// Keys that were read at the start of this process.
    pub(crate) fn new(
        file: SetFile<S>,
        name: &'static str,
        in_force: &S,
        clock: &Arc<dyn HostClock>,
    ) -> Self {
        let (age_file, id, boot) = (AgeFile::of(&file.path()), in_force.current_id(), clock.boot());
        let carried = age_file.read(id).unwrap_or_else(|(path, error)| {
            log::warn!("{name}: {}: {error}; the current key counts as new", path.display());
            Duration::ZERO
        });
        Turns {
            file,
            age_file,
            name,
            clock: Arc::clone(clock),
            ageing: Ageing::resume(in_force.rotated(), carried, boot),
            id,
            not_before: boot,
            written: boot,
            is_written: true,
        }
    }

    /// Rotates if that is due; `word` says who vouches for the time of day. Puts the result in force. `counters` are
    /// those of rotations and of failures.
    pub(crate) fn look(
        &mut self,
        word: Word,
        terms: Terms,
        keys: &ArcSwap<S>,
        (rotations, failures): (&AtomicU64, &AtomicU64),
        entropy: &mut Entropy,
    ) {
        let in_force = keys.load_full();
        let now = Moment { wall: self.clock.unix_seconds(), boot: self.clock.boot(), word };
        if in_force.current_id() != self.id {
            // They were read again, and somebody else had rotated.
            self.begin_anew(in_force.current_id(), now.boot);
        }
        let count = self.ageing.due(now, terms);
        if count == 0 || now.boot < self.not_before {
            self.keep_age(now.boot, terms.period);
            return;
        }
        let name = self.name;
        match self.file.rotate(&in_force, count, now.wall, terms.keep, entropy) {
            Ok(Turned::Here(rotated)) => {
                self.begin_anew(rotated.current_id(), now.boot);
                log::info!("{name} rotated; key {:08x} seals now", self.id);
                keys.store(Arc::new(rotated));
                rotations.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Turned::ByOthers(found)) => {
                self.begin_anew(found.current_id(), now.boot);
                log::info!("{name} had been rotated by somebody else; key {:08x} seals now", self.id);
                keys.store(Arc::new(found));
            }
            Err(error) => {
                self.not_before = now.boot + ROTATION_RETRY;
                failures.fetch_add(1, Ordering::Relaxed);
                log::error!(
                    "{name} not rotated: {error}; {}; key {:08x} seals on, the next attempt is in {} s",
                    error.remedy(),
                    self.id,
                    ROTATION_RETRY.as_secs()
                );
            }
        }
    }

    /// Reads the file again; what cannot be read stays as it was.
    pub(crate) fn reload(&self, keys: &ArcSwap<S>) {
        let name = self.name;
        match self.file.load() {
            Ok(Some(read)) => {
                log::info!("{name} read again; key {:08x} seals", read.current_id());
                keys.store(Arc::new(read));
            }
            // It is written again, and said so; the keys in force are not changed.
            Ok(None) => {
                if let Err(error) = self.file.restore_if_gone(&keys.load_full()) {
                    log::error!("{name} not written again: {error}; {}", error.remedy());
                }
            }
            Err(error) => log::error!("{name} not changed: {error}; {}", error.remedy()),
        }
    }

    /// Writes the age down before the process ends.
    pub(crate) fn close(mut self) {
        self.write_age(self.clock.boot());
    }

    fn begin_anew(&mut self, id: u32, boot: Duration) {
        self.ageing = Ageing::anew(boot);
        self.id = id;
        self.written = boot;
    }

    fn keep_age(&mut self, boot: Duration, period: Duration) {
        let interval = (period / AGE_WRITES).clamp(AGE_INTERVAL_MIN, AGE_INTERVAL_MAX);
        if boot.saturating_sub(self.written) >= interval {
            self.write_age(boot);
        }
    }

    fn write_age(&mut self, boot: Duration) {
        self.written = boot;
        let written = self.age_file.write(self.id, self.ageing.age(boot));
        if let (Err((path, error)), true) = (&written, self.is_written) {
            log::error!(
                "the age of {} is not kept over a restart: {}: {error}; see that the state directory can be written",
                self.name,
                path.display()
            );
        }
        self.is_written = written.is_ok();
    }
}
