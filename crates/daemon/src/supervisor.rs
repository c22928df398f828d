//! The thread that works on files: rotating keys, reloading, saving counts. It may hang for as long as a disk does, and
//! nothing that answers clients waits for it; the clock has a separate thread ([`crate::watch`]).

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;
use authentick_proto::server::Policy;
use authentick_proto::server::antp::AntpLimits;
use authentick_wire::header::Leap;

use crate::advertised;
use crate::antp;
use crate::config::{Antp, Changes, Config, KeyExchange, Reference};
use crate::containment::Refusals;
use crate::heartbeat::{STALE_AFTER, TICK};
use crate::identity;
use crate::leap::LeapKeeper;
use crate::policy;
use crate::preflight;
use crate::renewal::{Digest, Renewal};
use crate::retired::Retired;
use crate::rotation::VouchedBy;
use crate::rotator::Rotator;
use crate::shared::{ExchangeState, Shared};
use crate::symmetric::keeper::Keeper;
use crate::validity::{self, Reminder};

/// Messages to the supervisor.
pub(crate) enum Command {
    /// Others of the fleet have said something.
    News,
    /// To read files again, and to call this then.
    Reload(Box<dyn FnOnce() + Send>),
    Stop,
}

/// What the thread works with.
pub(crate) struct Supervisor {
    config: Config,
    pub(crate) shared: Arc<Shared>,
    cookie_keys: Option<Rotator<KeySet>>,
    state_keys: Option<Rotator<StateKeys>>,
    keeper: Option<Keeper>,
    /// Keys and certificates of ANTP.
    retired_identities: Retired<antp::Loaded>,
    retired_policies: Retired<Policy>,
    retired_limits: Retired<AntpLimits>,
    renewals: Renewals,
    leaps: Option<LeapKeeper>,
    entropy: Entropy,
    refusals: Refusals,
}

/// What is known of the files of certificates; of none, until the thread runs.
#[derive(Debug, Default)]
struct Renewals {
    exchange: Renewal,
    antp: Renewal,
    reminder: Reminder,
    /// When it next reminds.
    next: Option<Instant>,
}

/// The files of the key exchange as they are now; `None` where no keys are exchanged.
fn exchange_digest(config: &Config) -> Option<Digest> {
    config.exchange().map(|exchange| identity::digest_of(config, exchange))
}

fn antp_digest(config: &Config) -> Option<Digest> {
    config.antp.as_ref().map(|antp| antp::digest(config, antp))
}

/// How often it is looked when certificates end.
const REMINDER_INTERVAL: Duration = Duration::from_secs(3600);

impl Supervisor {
    pub(crate) fn new(
        config: Config,
        shared: Arc<Shared>,
        cookie_keys: Option<Rotator<KeySet>>,
        state_keys: Option<Rotator<StateKeys>>,
        keeper: Option<Keeper>,
        leaps: Option<LeapKeeper>,
        entropy: Entropy,
    ) -> Self {
        Supervisor {
            config,
            shared,
            cookie_keys,
            state_keys,
            keeper,
            retired_identities: Retired::default(),
            retired_policies: Retired::default(),
            retired_limits: Retired::default(),
            renewals: Renewals::default(),
            leaps,
            entropy,
            refusals: Refusals::default(),
        }
    }

    /// Works until it is told to stop.
    pub(crate) fn run(mut self, inbox: &Receiver<Command>) {
        self.note_files(Instant::now());
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
                Ok(Command::Reload(done)) => {
                    self.reload();
                    done();
                }
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
        self.retired_policies.free();
        self.retired_limits.free();
        self.rotate();
        self.renew(Instant::now());
        if self.leaps.as_ref().is_some_and(|leaps| leaps.is_due(Instant::now())) {
            self.read_leap_seconds();
        }
        if let Some(fleet) = &self.shared.fleet {
            fleet.note_uses(Instant::now(), &self.shared.workers);
        }
        if let Some(keeper) = &mut self.keeper {
            self.shared.files.begin("writing down the uses of symmetric keys");
            keeper.tick();
        }
    }

    fn read_leap_seconds(&mut self) {
        if let Some(leaps) = &mut self.leaps {
            self.shared.files.begin("reading the list of leap seconds");
            leaps.look(Instant::now());
        }
    }

    fn rotate(&mut self) {
        let vouched_by = match (&self.config.reference, self.shared.snapshot().leap) {
            (_, Leap::Unsynchronised) => VouchedBy::Nobody,
            (Reference::Asserted { .. }, _) => VouchedBy::Operator,
            (Reference::Kernel { .. } | Reference::Upstream(_), _) => VouchedBy::Witness,
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
        self.shared.files.begin("reading the configuration, keys and certificates again");
        self.reconfigure();
        self.read_leap_seconds();
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
        self.note_files(Instant::now());
        self.reload_identity();
        if let Some(keys) = &mut self.cookie_keys {
            keys.reload();
        }
        self.reload_antp();
        if let Some(keys) = &mut self.state_keys {
            keys.reload();
        }
    }

    /// Puts in force what the configuration has changed, as far as that needs no restart.
    fn reconfigure(&mut self) {
        let newer = match Config::load(&self.config.file) {
            Ok(newer) => newer,
            Err(error) => return log::error!("configuration not changed: {error}"),
        };
        let (now, Changes { at_once, after_restart }) = self.config.followed_by(&newer);
        if !after_restart.is_empty() {
            log::warn!("configuration: a restart is needed for changes of {}", after_restart.join(", "));
        }
        if at_once.is_empty() {
            return;
        }
        let before = std::mem::replace(&mut self.config, now);
        let Supervisor { config, shared, entropy, .. } = self;
        let policy = policy::after(&shared.policy.load(), config, entropy);
        self.retired_policies.replace(&shared.policy, Arc::new(policy));
        let exchange = shared.nts.as_ref().and_then(|nts| nts.exchange.as_ref());
        if let (Some(state), Some(exchange)) = (exchange, config.exchange()) {
            if let Some(admission) = state.admission.get() {
                admission.change(config.allow.clone(), exchange.rates, entropy);
            }
            let offered = |exchange: &KeyExchange| (exchange.advertised.clone(), exchange.algorithms.clone());
            if before.exchange().map(offered) != Some(offered(exchange)) {
                let advertiser = state.advertiser.load().followed_by(exchange);
                state.advertiser.store(Arc::new(advertiser));
                advertised::warn(exchange);
            }
        }
        if let (Some(state), Some(antp)) = (&shared.antp, &config.antp)
            && before.antp.as_ref().map(Antp::rates) != Some(antp.rates())
        {
            state.limit(antp, &mut self.retired_limits, entropy);
        }
        shared.choose_servers();
        log::info!("configuration: in force now: {}", at_once.join(", "));
    }

    /// Certificates are those that their files hold now, or are about to be.
    fn note_files(&mut self, now: Instant) {
        self.renewals.exchange = Renewal::new(exchange_digest(&self.config), now);
        self.renewals.antp = Renewal::new(antp_digest(&self.config), now);
    }

    /// Puts certificates in force that have been renewed, and reminds of those that are to be.
    fn renew(&mut self, now: Instant) {
        let Supervisor { config, shared, renewals, .. } = &mut *self;
        let look = |digest: fn(&Config) -> Option<Digest>| {
            shared.files.begin("looking for renewed certificates");
            digest(config)
        };
        let exchange = renewals.exchange.is_due(now, || look(exchange_digest));
        let antp = renewals.antp.is_due(now, || look(antp_digest));
        if exchange {
            self.reload_identity();
        }
        if antp {
            self.reload_antp();
        }
        self.remind(now);
    }

    fn remind(&mut self, now: Instant) {
        let Supervisor { shared, renewals, .. } = self;
        if renewals.next.is_some_and(|next| now < next) {
            return;
        }
        renewals.next = Some(now + REMINDER_INTERVAL);
        let exchange = shared.nts.as_ref().and_then(|nts| nts.exchange.as_ref());
        let exchange = exchange.map(ExchangeState::certificate);
        let antp = shared.antp.as_ref().map(|antp| antp.loaded.load());
        let of_antp = antp.iter().flat_map(|loaded| loaded.certificates.iter().map(|(_, info)| info));
        renewals.reminder.look(exchange.as_deref().into_iter().chain(of_antp));
    }

    /// Reads keys and certificates of ANTP again.
    fn reload_antp(&mut self) {
        let (Some(antp), Some(state)) = (&self.config.antp, &self.shared.antp) else { return };
        let problem = match antp::load(&self.config, antp) {
            Ok(loaded) => match loaded.objection(&state.loaded.load()) {
                None => {
                    loaded.certificates.iter().for_each(|(_, info)| validity::warn(info));
                    log::info!("ANTP's certificates read again, of {} suites", loaded.certificates.len());
                    self.retired_identities.replace(&state.loaded, Arc::new(loaded));
                    None
                }
                Some(problem) => Some(format!("{problem}; renew it")),
            },
            Err(error) => Some(error.to_string()),
        };
        state.reloads.count(problem.is_none());
        if let Some(problem) = problem {
            log::error!("ANTP's certificates not changed: {problem}");
        }
    }

    /// Reads certificate and key of the key exchange again.
    fn reload_identity(&self) {
        let state = self.shared.nts.as_ref().and_then(|nts| nts.exchange.as_ref());
        let (Some(exchange), Some(state)) = (self.config.exchange(), state) else { return };
        let problem = match identity::load(&self.config, exchange) {
            Ok(identity) => match validity::objection(&state.certificate(), &identity.certificate) {
                None => {
                    validity::warn(&identity.certificate);
                    state.set_identity(&identity);
                    log::info!("certificate read again: {}", identity.certificate.subject);
                    None
                }
                Some(problem) => {
                    Some(format!("{}: {problem}; renew it", exchange.certificate_chain.display()))
                }
            },
            Err(error) => Some(error.to_string()),
        };
        state.reloads.count(problem.is_none());
        if let Some(problem) = problem {
            log::error!("certificate not changed: {problem}");
        }
    }
}
