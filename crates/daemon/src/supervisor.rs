//! The thread that works on files: rotating keys, reloading, saving counts. It may hang for as long as a disk does, and
//! nothing that answers clients waits for it; the clock has a separate thread ([`crate::watch`]).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_ke::tls::CertificateInfo;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;
use authentick_proto::server::Policy;
use authentick_proto::server::antp::AntpLimits;
use authentick_wire::header::Leap;

use crate::antp;
use crate::certificates::{Certificates, Line};
use crate::config::{Antp, Changes, Config, KeyExchange, Reference};
use crate::containment::{Containment, Refusals, UNREACHABLE};
use crate::heartbeat::{STALE_AFTER, TICK};
use crate::leap::LeapKeeper;
use crate::metrics::counters::Totals;
use crate::policy;
use crate::preflight;
use crate::renewal::{Digest, Renewal};
use crate::retired::Retired;
use crate::rotation::VouchedBy;
use crate::rotator::Rotator;
use crate::send_buffer::SendBufferWatch;
use crate::shared::{ExchangeState, Shared};
use crate::symmetric::keeper::Keeper;
use crate::validity::{self, Reminder};
use crate::warnings;

/// Messages to the supervisor.
pub(crate) enum Command {
    /// Others of the fleet have said something.
    News,
    /// To read files again, and to call this then.
    Reload(Box<dyn FnOnce() + Send>),
    Stop,
}

/// Keys that the thread keeps: all are absent where nobody uses them.
pub(crate) struct Kept {
    pub(crate) cookie_keys: Option<Rotator<KeySet>>,
    pub(crate) state_keys: Option<Rotator<StateKeys>>,
    /// Of symmetric keys.
    pub(crate) keeper: Option<Keeper>,
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
    send_buffers: SendBufferWatch,
    containment: Containment,
}

/// What is known of the files of certificates; of none, until the thread runs.
#[derive(Debug, Default)]
struct Renewals {
    exchange: Option<Certificates>,
    antp: Renewal,
    reminder: Reminder,
    /// When it next reminds.
    next: Option<Instant>,
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
        keys: Kept,
        leaps: Option<LeapKeeper>,
        entropy: Entropy,
        containment: Containment,
    ) -> Self {
        let Kept { cookie_keys, state_keys, keeper } = keys;
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
            send_buffers: SendBufferWatch::default(),
            containment,
        }
    }

    /// Works until it is told to stop.
    pub(crate) fn run(mut self, inbox: &Receiver<Command>) {
        self.begin_renewals(Instant::now());
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
        self.send_buffers.tick(&Totals::of(&self.shared.workers), Instant::now());
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
        let before = self.certificates();
        let changes = self.reconfigure();
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
        self.renewals.antp = Renewal::new(antp_digest(&self.config), Instant::now());
        self.reload_certificates(Instant::now());
        if let Some(keys) = &mut self.cookie_keys {
            keys.reload();
        }
        self.reload_antp();
        if let Some(keys) = &mut self.state_keys {
            keys.reload();
        }
        if let Some(changes) = changes {
            self.log_reload(changes, &before);
        }
    }

    /// The certificates of the key exchange that are in force.
    fn certificates(&self) -> Vec<CertificateInfo> {
        let in_force = self.shared.exchange_state().map(ExchangeState::certificates);
        in_force.iter().flat_map(|in_force| in_force.certificates()).cloned().collect()
    }

    /// Logs what a reload has changed, and what is in force after it, in one line.
    fn log_reload(&self, changes: Changes, before: &[CertificateInfo]) {
        let Changes { mut at_once, after_restart } = changes;
        let certificates = self.certificates();
        let are_named = at_once.iter().any(|key| key.starts_with("nts.certificate"));
        if certificates != before && !are_named {
            at_once.push("files of certificates".to_owned());
        }
        let what = match (at_once.is_empty(), after_restart.is_empty()) {
            (true, true) => "no changes".to_owned(),
            (true, false) => "no changes in force before a restart".to_owned(),
            (false, _) => format!("in force now: {}", at_once.join(", ")),
        };
        let config = &self.config;
        let (files, allowed, denied) = (config.own_files().len(), config.allowed.len(), config.denied.len());
        let until = |info: &CertificateInfo| {
            let names = if info.names.is_empty() { info.title().to_owned() } else { info.names.join(" ") };
            format!(" ({names}, until {})", validity::date(info.not_after))
        };
        let expiry: String = certificates.iter().map(until).collect();
        log::info!(
            "configuration: {what}; files={files} allow={allowed} deny={denied} certificates={}{expiry}",
            certificates.len()
        );
    }

    /// Puts in force what the configuration has changed, as far as that needs no restart. `None` if it has a mistake.
    fn reconfigure(&mut self) -> Option<Changes> {
        let newer = match Config::load(&self.config.file) {
            Ok(newer) => newer,
            Err(error) => {
                log::error!("configuration not changed: {error}");
                return None;
            }
        };
        let (now, mut changes) = self.config.followed_by(&newer);
        let is_changed = !changes.at_once.is_empty();
        self.tell_unreachable(&now, &mut changes);
        if !changes.after_restart.is_empty() {
            let keys = changes.after_restart.join(", ");
            log::warn!("configuration: a restart is needed for changes of {keys}");
        }
        // What the upstream's addresses are was warned of at the start.
        let settled = warnings::of(&self.config, &[]);
        let mut fresh = warnings::of(&now, &[]);
        fresh.retain(|warning| !settled.contains(warning));
        warnings::log(&now, &fresh);
        if !is_changed {
            self.config = now;
            return Some(changes);
        }
        let before = std::mem::replace(&mut self.config, now);
        let Supervisor { config, shared, entropy, .. } = self;
        let policy = policy::after(&shared.policy.load(), config, entropy);
        self.retired_policies.replace(&shared.policy, Arc::new(policy));
        if let (Some(state), Some(exchange)) = (shared.exchange_state(), config.exchange()) {
            if let Some(admission) = state.admission.get() {
                admission.change(config.allow.clone(), exchange.rates, entropy);
            }
            let offered = |exchange: &KeyExchange| (exchange.advertised.clone(), exchange.algorithms.clone());
            if before.exchange().map(offered) != Some(offered(exchange)) {
                let advertiser = state.advertiser.load().followed_by(exchange);
                state.advertiser.store(Arc::new(advertiser));
            }
        }
        if let (Some(state), Some(antp)) = (&shared.antp, &config.antp)
            && before.antp.as_ref().map(Antp::rates) != Some(antp.rates())
        {
            state.limit(antp, &mut self.retired_limits, entropy);
        }
        shared.choose_servers();
        Some(changes)
    }

    /// Names the files of new tables that containment keeps this process from reading.
    fn tell_unreachable(&self, now: &Config, changes: &mut Changes) {
        let pairs = |config: &Config| {
            config.exchange().map(|exchange| exchange.certificates.clone()).unwrap_or_default()
        };
        let (before, mut fresh) = (pairs(&self.config), pairs(now));
        fresh.retain(|pair| !before.iter().any(|other| other.is_same(pair)));
        let is_unreachable = |(_, path): &(String, &Path)| !self.containment.may_read(path);
        let (mut unreachable, mut is_any_reachable) = (Vec::new(), false);
        for pair in &fresh {
            let files = pair.files().into_iter().filter(is_unreachable);
            let files: Vec<String> = files.map(|(key, path)| format!("{key} = {path:?}")).collect();
            is_any_reachable |= files.is_empty();
            unreachable.extend(files);
        }
        if unreachable.is_empty() {
            return;
        }
        log::warn!("configuration: {}: {UNREACHABLE}", unreachable.join(", "));
        if !is_any_reachable {
            let is_certificate = |key: &String| {
                ["nts.certificate", "nts.certificate-chain", "nts.private-key", "nts.hand-over"]
                    .contains(&key.as_str())
            };
            let (waiting, at_once) = changes.at_once.drain(..).partition(is_certificate);
            changes.at_once = at_once;
            changes.after_restart.extend::<Vec<String>>(waiting);
        }
    }

    /// Certificates are those that are in force.
    fn begin_renewals(&mut self, now: Instant) {
        let state = self.shared.exchange_state();
        let in_force = state.map(ExchangeState::certificates);
        self.renewals.exchange = in_force.map(|in_force| Certificates::new(&in_force, &self.config, now));
        self.renewals.antp = Renewal::new(antp_digest(&self.config), now);
    }

    /// Puts certificates in force that have been renewed, and reminds of those that are to be.
    fn renew(&mut self, now: Instant) {
        let Supervisor { config, shared, renewals, containment, .. } = &mut *self;
        const WORK: &str = "looking for renewed certificates";
        let state = shared.exchange_state();
        let exchange = renewals.exchange.as_mut().filter(|certificates| certificates.is_due(now));
        if let (Some(certificates), Some(state)) = (exchange, state) {
            shared.files.begin(WORK);
            tell(certificates.look(config, containment, state, now));
        }
        let digest = || {
            shared.files.begin(WORK);
            antp_digest(config)
        };
        if renewals.antp.is_due(now, digest) {
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
        let in_force = shared.exchange_state().map(ExchangeState::certificates);
        let antp = shared.antp.as_ref().map(|antp| antp.loaded.load());
        let exchange = in_force.iter().flat_map(|in_force| in_force.certificates());
        let of_antp = antp.iter().flat_map(|loaded| loaded.certificates.iter().map(|(_, info)| info));
        renewals.reminder.look(exchange.chain(of_antp));
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
            Err(error) => {
                let files =
                    antp.suites.iter().flat_map(|suite| [&suite.certificate_chain, &suite.private_key]);
                Some(self.containment.explain(error, files.map(PathBuf::as_path)).to_string())
            }
        };
        state.reloads.count(problem.is_none());
        if let Some(problem) = problem {
            log::error!("ANTP's certificates not changed: {problem}");
        }
    }

    /// Reads certificates and keys of the key exchange again.
    fn reload_certificates(&mut self, now: Instant) {
        let Supervisor { config, shared, renewals, containment, .. } = self;
        let state = shared.exchange_state();
        if let (Some(certificates), Some(exchange), Some(state)) =
            (&mut renewals.exchange, config.exchange(), state)
        {
            tell(certificates.reload(config, exchange, containment, state, now));
            state.certificates().remarks().iter().for_each(|remark| log::warn!("{remark}"));
        }
    }
}

fn tell(lines: Vec<Line>) {
    for line in lines {
        match line {
            Ok(done) => log::info!("{done}"),
            Err(problem) => log::error!("{problem}"),
        }
    }
}
