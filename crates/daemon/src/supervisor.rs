//! The thread that looks after what changes slowly: the clock's state, the age of keys, files that were changed.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;
use authentick_wire::header::Leap;

use crate::antp;
use crate::config::{Config, Reference};
use crate::reference::Watcher;
use crate::rotation::{Terms, Word};
use crate::serve::load_identity;
use crate::shared::Shared;
use crate::symmetric::keeper::Keeper;
use crate::turns::Turns;
use crate::validity;

/// How often the clock's state and the keys' age are looked at.
const TICK: Duration = Duration::from_secs(1);

/// What the supervisor is told.
pub(crate) enum Command {
    Reload,
    Stop,
}

/// Looks after what changes slowly.
pub(crate) struct Supervisor {
    pub(crate) config: Config,
    pub(crate) shared: Arc<Shared>,
    pub(crate) cookie_keys: Option<Turns<KeySet>>,
    pub(crate) state_keys: Option<Turns<StateKeys>>,
    pub(crate) keeper: Option<Keeper>,
    pub(crate) watcher: Watcher,
    pub(crate) entropy: Entropy,
}

impl Supervisor {
    /// Works until it is told to stop.
    pub(crate) fn run(mut self, inbox: &Receiver<Command>) {
        // What downtime has made due is made up for at once.
        self.rotate();
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
        if let Some(turns) = self.cookie_keys {
            turns.close();
        }
        if let Some(turns) = self.state_keys {
            turns.close();
        }
    }

    fn tick(&mut self) {
        let snapshot = self.watcher.look();
        self.shared.snapshot.store(Arc::new(snapshot));
        self.rotate();
        if let Some(keeper) = &mut self.keeper {
            keeper.tick();
        }
    }

    fn rotate(&mut self) {
        let word = match (&self.config.reference, self.shared.snapshot.load().leap) {
            (_, Leap::Unsynchronised) => Word::Nobody,
            (Reference::Asserted { .. }, _) => Word::Operator,
            (Reference::Kernel | Reference::Upstream(_), _) => Word::Witness,
        };
        if let (Some(nts), Some(state), Some(turns)) =
            (&self.config.nts, &self.shared.nts, &mut self.cookie_keys)
        {
            let terms = Terms { period: nts.rotate, keep: nts.keep };
            let counters = (&state.rotations, &state.rotation_failures);
            turns.look(word, terms, &state.keys, counters, &mut self.entropy);
        }
        if let (Some(antp), Some(state), Some(turns)) =
            (&self.config.antp, &self.shared.antp, &mut self.state_keys)
        {
            let terms = Terms { period: antp.rotate, keep: antp.keep() };
            let counters = (&state.rotations, &state.rotation_failures);
            turns.look(word, terms, &state.keys, counters, &mut self.entropy);
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
            if let Some(turns) = &self.cookie_keys {
                turns.reload(&state.keys);
            }
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
            if let Some(turns) = &self.state_keys {
                turns.reload(&state.keys);
            }
        }
    }
}
