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

use crate::antp;
use crate::config::Config;
use crate::keystore::{SetFile, Stored};
use crate::reference::Watcher;
use crate::serve::{load_identity, warn_of_expiry};
use crate::shared::Shared;
use crate::symmetric::keeper::Keeper;

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
        self.shared.snapshot.store(Arc::new(self.watcher.look()));
        if let (Some(nts), Some(state)) = (&self.config.nts, &self.shared.nts) {
            let counters = (&state.rotations, &state.rotation_failures);
            self.cookie_keys.rotate(nts.rotate, nts.keep, &state.keys, counters, &mut self.entropy);
        }
        if let (Some(antp), Some(state)) = (&self.config.antp, &self.shared.antp) {
            let counters = (&state.rotations, &state.rotation_failures);
            self.state_keys.rotate(antp.rotate, antp.keep(), &state.keys, counters, &mut self.entropy);
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
                Ok(identity) => {
                    warn_of_expiry(&identity.certificate);
                    state.set_identity(&identity);
                    log::info!("certificate read again: {}", identity.certificate.subject);
                }
                Err(error) => log::error!("certificate not changed: {error}"),
            }
            self.cookie_keys.reload(&state.keys);
        }
        if let (Some(antp), Some(state)) = (&self.config.antp, &self.shared.antp) {
            match antp::load(&self.config, antp) {
                Ok(loaded) => {
                    loaded.certificates.iter().for_each(|(_, info)| warn_of_expiry(info));
                    log::info!("ANTP's certificates read again, of {} suites", loaded.certificates.len());
                    state.loaded.store(Arc::new(loaded));
                }
                Err(error) => log::error!("ANTP's certificates not changed: {error}"),
            }
            self.state_keys.reload(&state.keys);
        }
    }
}

/// Keys of one kind that take turns.
pub(crate) struct Turns<S> {
    file: SetFile<S>,
    /// What they are called in the log.
    name: &'static str,
    not_before: Instant,
}

impl<S: Stored> Turns<S> {
    pub(crate) fn new(file: SetFile<S>, name: &'static str) -> Self {
        Turns { file, name, not_before: Instant::now() }
    }

    /// Rotates as often as is due for one rotation each `period`, and puts the result in force. `counters` are those of
    /// rotations and of failures.
    fn rotate(
        &mut self,
        period: Duration,
        keep: usize,
        keys: &ArcSwap<S>,
        (rotations, failures): (&AtomicU64, &AtomicU64),
        entropy: &mut Entropy,
    ) {
        let (now, period) = (clock::unix_seconds(), period.as_secs().max(1));
        if Instant::now() < self.not_before || keys.load().rotations_due(now, period) == 0 {
            return;
        }
        let name = self.name;
        match self.file.rotate_if_due(now, period, keep, entropy) {
            Ok(Some(rotated)) => {
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
            Ok(None) => log::error!("{name} not changed: {} is gone", self.file.path().display()),
            Err(error) => log::error!("{name} not changed: {error}; {}", error.remedy()),
        }
    }
}
