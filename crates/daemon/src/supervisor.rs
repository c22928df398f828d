//! The thread that works on files: rotating keys, reloading, saving counts. It may hang for as long as a disk does, and
//! nothing that answers clients waits for it; the clock has a separate thread ([`crate::watch`]).

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use authentick_crypto::Entropy;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;
use authentick_wire::header::Leap;

use crate::antp;
use crate::config::{Config, Reference};
use crate::containment::Refusals;
use crate::heartbeat::{STALE_AFTER, TICK};
use crate::identity;
use crate::preflight;
use crate::retired::Retired;
use crate::rotation::VouchedBy;
use crate::rotator::Rotator;
use crate::shared::Shared;
use crate::symmetric::keeper::Keeper;
use crate::validity;

/// Messages to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Others of the fleet have said something.
    News,
    Reload,
    Stop,
}

/// What the thread works with.
pub(crate) struct Supervisor {
    pub(crate) config: Config,
    pub(crate) shared: Arc<Shared>,
    pub(crate) cookie_keys: Option<Rotator<KeySet>>,
    pub(crate) state_keys: Option<Rotator<StateKeys>>,
    pub(crate) keeper: Option<Keeper>,
    /// Keys and certificates of ANTP.
    pub(crate) retired_identities: Retired<antp::Loaded>,
    pub(crate) entropy: Entropy,
    pub(crate) refusals: Refusals,
}

impl Supervisor {
    /// Works until it is told to stop.
    pub(crate) fn run(mut self, inbox: &Receiver<Command>) {
        // What downtime has made due is made up for at once.
        self.tick();
        let (mut was_stale, mut next) = (false, Instant::now() + TICK);
        loop {
            match inbox.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Err(RecvTimeoutError::Timeout) => {
                    self.tick();
                    next = Instant::now() + TICK;
                }
                Ok(Command::News) => self.rotate(),
                Ok(Command::Reload) => self.reload(),
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
            let boot_ns = self.shared.clock.boot_ns();
            self.shared.files.beat(boot_ns);
            let is_stale = self.shared.looked.load().age(boot_ns) > STALE_AFTER;
            if is_stale && !was_stale {
                log::error!(
                    "nobody has looked at the clock for {} s: clients are told not to trust it until somebody does",
                    STALE_AFTER.as_secs()
                );
            }
            was_stale = is_stale;
        }
        self.refusals.tell();
        self.close();
    }

    fn close(self) {
        let files = &self.shared.files;
        if let Some(keeper) = self.keeper {
            files.begin("writing down the uses of symmetric keys");
            keeper.close();
        }
        if let Some(keys) = self.cookie_keys {
            files.begin("writing down the age of cookie keys");
            keys.close();
        }
        if let Some(keys) = self.state_keys {
            files.begin("writing down the age of ANTP's state keys");
            keys.close();
        }
    }

    fn tick(&mut self) {
        self.refusals.tell();
        self.retired_identities.free();
        self.rotate();
        if let Some(fleet) = &self.shared.fleet {
            fleet.note_uses(Instant::now(), &self.shared.workers);
        }
        if let Some(keeper) = &mut self.keeper {
            self.shared.files.begin("writing down the uses of symmetric keys");
            keeper.tick();
        }
    }

    fn rotate(&mut self) {
        let vouched_by = match (&self.config.reference, self.shared.snapshot().leap) {
            (_, Leap::Unsynchronised) => VouchedBy::Nobody,
            (Reference::Asserted { .. }, _) => VouchedBy::Operator,
            (Reference::Kernel | Reference::Upstream(_), _) => VouchedBy::Witness,
        };
        if let Some(keys) = &mut self.cookie_keys {
            self.shared.files.begin("writing cookie keys or their age");
            keys.tick(vouched_by, &mut self.entropy);
        }
        if let Some(keys) = &mut self.state_keys {
            self.shared.files.begin("writing ANTP's state keys or their age");
            keys.tick(vouched_by, &mut self.entropy);
        }
    }

    fn reload(&mut self) {
        self.shared.files.begin("reading keys and certificates again");
        if let Some(keeper) = &mut self.keeper {
            keeper.reload();
        }
        if let Some(fleet) = &self.shared.fleet {
            match preflight::load_seal(&self.config) {
                Ok(seals) => {
                    seals.into_iter().for_each(|seals| fleet.seals.store(Arc::new(seals)));
                    log::info!("seal keys read again");
                }
                Err(error) => {
                    fleet.seal_failures.count();
                    log::error!("seal keys not changed: {error}");
                }
            }
        }
        self.reload_identity();
        if let Some(keys) = &mut self.cookie_keys {
            keys.reload();
        }
        if let (Some(antp), Some(state)) = (&self.config.antp, &self.shared.antp) {
            match antp::load(&self.config, antp) {
                Ok(loaded) => match loaded.objection(&state.loaded.load()) {
                    None => {
                        loaded.certificates.iter().for_each(|(_, info)| validity::warn(info));
                        log::info!("ANTP's certificates read again, of {} suites", loaded.certificates.len());
                        self.retired_identities.replace(&state.loaded, Arc::new(loaded));
                    }
                    Some(problem) => {
                        log::error!("ANTP's certificates not changed: {problem}; renew it and send SIGHUP");
                    }
                },
                Err(error) => log::error!("ANTP's certificates not changed: {error}"),
            }
            if let Some(keys) = &mut self.state_keys {
                keys.reload();
            }
        }
    }

    /// Reads certificate and key of the key exchange again.
    fn reload_identity(&self) {
        let state = self.shared.nts.as_ref().and_then(|nts| nts.exchange.as_ref());
        let (Some(exchange), Some(state)) = (self.config.exchange(), state) else { return };
        match identity::load(&self.config, exchange) {
            Ok(identity) => match validity::objection(&state.certificate(), &identity.certificate) {
                None => {
                    validity::warn(&identity.certificate);
                    state.set_identity(&identity);
                    log::info!("certificate read again: {}", identity.certificate.subject);
                }
                Some(problem) => {
                    let file = exchange.certificate_chain.display();
                    log::error!("certificate not changed: {file}: {problem}; renew it and send SIGHUP");
                }
            },
            Err(error) => log::error!("certificate not changed: {error}"),
        }
    }
}
