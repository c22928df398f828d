//! The thread that looks after what changes slowly: the clock's state, the age of keys, files that were changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use authentick_crypto::Entropy;
use authentick_net::clock;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;
use authentick_wire::header::Leap;

use crate::antp;
use crate::config::Config;
use crate::keystore::{SetFile, Stored};
use crate::reference::Watcher;
use crate::serve::load_identity;
use crate::shared::Shared;
use crate::symmetric::keeper::Keeper;
use crate::validity;

/// How often the clock's state and the keys' age are looked at.
const TICK: Duration = Duration::from_secs(1);
/// After a rotation failed, so long is waited before the next attempt.
const ROTATION_RETRY: Duration = Duration::from_secs(30);

/// What the supervisor is told.
pub(crate) enum Command {
    Reload,
    Stop,
}

/// Looks after what changes slowly.
pub(crate) struct Supervisor {
    pub(crate) config: Config,
    pub(crate) shared: Arc<Shared>,
    pub(crate) cookie_keys: Turns<KeySet>,
    pub(crate) state_keys: Turns<StateKeys>,
    pub(crate) keeper: Option<Keeper>,
    pub(crate) watcher: Watcher,
    pub(crate) entropy: Entropy,
}

impl Supervisor {
    /// Works until it is told to stop.
    pub(crate) fn run(mut self, inbox: &Receiver<Command>) {
        loop {
            match inbox.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) => self.tick(),
                Ok(Command::Reload) => self.reload(),
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if let Some(keeper) = self.keeper {
            keeper.close();
        }
    }

    fn tick(&mut self) {
        let snapshot = self.watcher.look();
        let is_vouched = snapshot.leap != Leap::Unsynchronised;
        self.shared.snapshot.store(Arc::new(snapshot));
        if let (Some(nts), Some(state)) = (&self.config.nts, &self.shared.nts) {
            let counters = (&state.rotations, &state.rotation_failures);
            let plan = Plan { period: nts.rotate, keep: nts.keep, is_vouched };
            self.cookie_keys.rotate(plan, &state.keys, counters, &mut self.entropy);
        }
        if let (Some(antp), Some(state)) = (&self.config.antp, &self.shared.antp) {
            let counters = (&state.rotations, &state.rotation_failures);
            let plan = Plan { period: antp.rotate, keep: antp.keep(), is_vouched };
            self.state_keys.rotate(plan, &state.keys, counters, &mut self.entropy);
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.tick();
        }
    }

    fn reload(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            keeper.reload();
        }
        if let (Some(nts), Some(state)) = (&self.config.nts, &self.shared.nts) {
            match load_identity(&self.config, nts) {
                Ok(identity) => match validity::objection(&state.certificate(), &identity.certificate) {
                    None => {
                        validity::warn(&identity.certificate);
                        state.set_identity(&identity);
                        log::info!("certificate read again: {}", identity.certificate.subject);
                    }
                    Some(problem) => {
                        let file = nts.certificate_chain.display();
                        log::error!("certificate not changed: {file}: {problem}; renew it and send SIGHUP");
                    }
                },
                Err(error) => log::error!("certificate not changed: {error}"),
            }
            self.cookie_keys.reload(&state.keys);
        }
        if let (Some(antp), Some(state)) = (&self.config.antp, &self.shared.antp) {
            match antp::load(&self.config, antp) {
                Ok(loaded) => match loaded.objection(&state.loaded.load()) {
                    None => {
                        loaded.certificates.iter().for_each(|(_, info)| validity::warn(info));
                        log::info!("ANTP's certificates read again, of {} suites", loaded.certificates.len());
                        state.loaded.store(Arc::new(loaded));
                    }
                    Some(problem) => {
                        log::error!("ANTP's certificates not changed: {problem}; renew it and send SIGHUP");
                    }
                },
                Err(error) => log::error!("ANTP's certificates not changed: {error}"),
            }
            self.state_keys.reload(&state.keys);
        }
    }
}

/// When keys take turns.
#[derive(Clone, Copy)]
struct Plan {
    /// One rotation each.
    period: Duration,
    /// How many retired keys still open.
    keep: usize,
    /// Whether something vouches for the time of day.
    is_vouched: bool,
}

/// Keys of one kind that take turns.
pub(crate) struct Turns<S> {
    file: SetFile<S>,
    /// What they are called in the log.
    name: &'static str,
    not_before: Instant,
    /// The last rotation, or the start, by a clock that is never set.
    since: Instant,
}

impl<S: Stored> Turns<S> {
    pub(crate) fn new(file: SetFile<S>, name: &'static str) -> Self {
        Turns { file, name, not_before: Instant::now(), since: Instant::now() }
    }

    /// Rotates as often as is due by `plan`, and puts the result in force. `counters` are those of rotations and of
    /// failures.
    ///
    /// A host without a clock of its own starts in 1970 and is set some seconds later. By such a time no key ages: one
    /// rotation would be due at once, as the last one lies in the future, and all that are kept as soon as the clock is
    /// set, so that no state and no cookie outlived the host's start. Until something vouches for the time, a key's age
    /// counts from the start of this process.
    fn rotate(
        &mut self,
        plan: Plan,
        keys: &ArcSwap<S>,
        (rotations, failures): (&AtomicU64, &AtomicU64),
        entropy: &mut Entropy,
    ) {
        let Plan { period, keep, is_vouched } = plan;
        if !is_vouched && self.since.elapsed() < period {
            return;
        }
        let (now, period) = (clock::unix_seconds(), period.as_secs().max(1));
        if Instant::now() < self.not_before || keys.load().rotations_due(now, period) == 0 {
            return;
        }
        let name = self.name;
        match self.file.rotate_if_due(&keys.load_full(), now, period, keep, entropy) {
            Ok(Some(rotated)) => {
                self.since = Instant::now();
                log::info!("{name} rotated; key {:08x} seals now", rotated.current_id());
                keys.store(Arc::new(rotated));
                rotations.fetch_add(1, Ordering::Relaxed);
            }
            // Somebody else has rotated.
            Ok(None) => self.reload(keys),
            Err(error) => {
                self.not_before = Instant::now() + ROTATION_RETRY;
                failures.fetch_add(1, Ordering::Relaxed);
                log::error!(
                    "{name} not rotated: {error}; {}; key {:08x} seals on, the next attempt is in {} s",
                    error.remedy(),
                    keys.load().current_id(),
                    ROTATION_RETRY.as_secs()
                );
            }
        }
    }

    /// Reads the file again; what cannot be read stays as it was.
    fn reload(&self, keys: &ArcSwap<S>) {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keystore::StateKeyFile;

    const DAY: u64 = 86_400;

    /// Turns of state keys whose last rotation is so many seconds away from now, either way.
    fn turns(seconds_ago: i64) -> (tempfile::TempDir, Turns<StateKeys>, ArcSwap<StateKeys>) {
        let folder = tempfile::tempdir().unwrap();
        let file = StateKeyFile::new(&folder.path().join("state"));
        file.prepare_directory(None).unwrap();
        let rotated = clock::unix_seconds().checked_add_signed(-seconds_ago).unwrap();
        let keys = file.load_or_create(rotated, &mut Entropy::from_seed(1)).unwrap();
        (folder, Turns::new(file, "state keys"), ArcSwap::from_pointee(keys))
    }

    /// How many rotations a look at the keys brings about.
    fn rotations(
        turns: &mut Turns<StateKeys>,
        keys: &ArcSwap<StateKeys>,
        period: u64,
        is_vouched: bool,
    ) -> u32 {
        let (counter, failures) = (AtomicU64::new(0), AtomicU64::new(0));
        let before = keys.load().current().id();
        let plan = Plan { period: Duration::from_secs(period), keep: 7, is_vouched };
        turns.rotate(plan, keys, (&counter, &failures), &mut Entropy::from_seed(2));
        assert_eq!(failures.into_inner(), 0);
        keys.load().current().id().wrapping_sub(before)
    }

    #[test]
    fn keys_do_not_age_by_a_clock_that_nobody_vouches_for() {
        let day = DAY as i64;
        // By 56 years a host without a clock of its own is behind when it starts.
        for (seconds_ago, when_vouched) in [(0, 0), (3 * day, 3), (60 * day, 9), (-56 * 365 * day, 1)] {
            let (_folder, mut turns, keys) = turns(seconds_ago);
            assert_eq!(rotations(&mut turns, &keys, DAY, false), 0, "{seconds_ago}");
            assert_eq!(rotations(&mut turns, &keys, DAY, true), when_vouched, "{seconds_ago}");
        }
    }

    #[test]
    fn keys_rotate_once_a_period_even_if_the_time_is_never_vouched_for() {
        let (_folder, mut turns, keys) = turns(3600);
        assert_eq!(rotations(&mut turns, &keys, 3600, false), 0);
        turns.since = Instant::now().checked_sub(Duration::from_secs(2)).unwrap();
        assert_eq!(rotations(&mut turns, &keys, 2, false), 9, "by then it ages by the clock that there is");
        assert_eq!(rotations(&mut turns, &keys, 2, false), 0);
    }
}
