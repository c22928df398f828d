//! Start, run, reload and stop a serving node.
//!
//! Order at startup: everything that needs privileges (ports, the certificate's key), then the privileges are dropped,
//! then everything else. So files of the state directory belong to the user that the server runs as. `preflight` finds
//! what can be known before the start.

mod ended;
mod secrets;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use authentick_crypto::Entropy;
use authentick_ke::server::{self as ke_server, Admission, Limits, Stopper};
use authentick_net::affinity;
use authentick_net::engine::{Engine, ReplySender};
use authentick_net::privilege::User;
use authentick_net::tcp::PendingListener;
use authentick_net::udp::{ReplySockets, ServerSocket, UdpEngine};
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;
use authentick_proto::limits::INTERLEAVE_ENTRY_COUNT;
use authentick_proto::server::Responder;
use authentick_proto::server::interleave::Interleave;
use thiserror::Error;
use tokio::sync::oneshot;

pub use self::ended::Ended;
use self::secrets::Secrets;
use crate::addresses::ServedAddresses;
use crate::advertised::Advertiser;
use crate::antp::{AntpState, ExchangeWorker};
use crate::background;
use crate::bind::Ports;
use crate::clock::{HostClock, SystemClock};
use crate::config::{Antp, Config, ConfigError, EngineKind, KeyExchange};
use crate::containment::{self, Containment, Process, ThreadKind};
use crate::fleet::FleetState;
use crate::health;
use crate::heartbeat::{Heartbeat, Looked};
use crate::identity;
use crate::keystore::Stores;
use crate::layout::Layout;
use crate::leap::LeapKeeper;
use crate::manager::Manager;
use crate::metrics::counters::{Counter, Totals, WorkerCounters};
use crate::metrics::spans::SpanRing;
use crate::metrics::{Endpoint, Scope};
use crate::names::{NameLookups, ServerAddresses};
use crate::policy;
pub use crate::preflight::check;
use crate::preflight::{self, state_error};
use crate::reference::Watcher;
use crate::rotator::Rotator;
use crate::send_buffer;
use crate::shared::{ExchangeState, NtsState, Shared};
use crate::supervisor::{Command, Kept, Supervisor};
use crate::symmetric::keeper::{self, Keeper};
use crate::validity;
use crate::warnings;
use crate::watch::Watch;
use crate::worker::{PATIENCE, PacketWorker};

/// How long a stopping node waits for a file operation.
const FILES_PATIENCE: Duration = Duration::from_secs(5);

/// Why a node did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The operator can fix it.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system failed: what was being done, and its error.
    #[error("cannot {0}: {1}")]
    System(&'static str, io::Error),
}

/// A node at work. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    containment: Containment,
    ntp_addresses: Vec<SocketAddr>,
    ke_addresses: Vec<SocketAddr>,
    metrics_address: Option<SocketAddr>,
    commands: Sender<Command>,
    stop: Arc<AtomicBool>,
    ke_stoppers: Vec<Stopper>,
    health_address: Option<SocketAddr>,
    endpoint_stops: Vec<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
    /// Looks at the clock until this is dropped.
    watch_stop: Option<Sender<()>>,
    /// Stops after the others, because it saves their counts.
    supervisor: Option<JoinHandle<()>>,
}

/// What a node finds on the host that it runs on.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its clocks.
    pub clock: Arc<dyn HostClock>,
    /// Where keys that outlive the node are kept.
    pub stores: Stores,
}

impl Host {
    /// This host, with the stores that a configuration names.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Host { clock: Arc::new(SystemClock), stores: Stores::of(config) }
    }
}

/// Starts a node in a process that does other things too. It serves when this returns.
///
/// # Errors
/// What keeps it from serving.
pub fn start(config: &Config) -> Result<Running, StartError> {
    start_on(&Host::of(config), config)
}

/// The same on another host.
///
/// # Errors
/// What keeps it from serving.
pub fn start_on(host: &Host, config: &Config) -> Result<Running, StartError> {
    start_in(Process::Shared, host, config, &mut Manager::none(), NameLookups::by_threads(config))
}

/// Starts a node in a process of its own, which from here on can do little else: see [`containment`]. The calling
/// thread must be the only one, but for that of the log. The service manager keeps its sockets, but is not told
/// anything else; `names` were begun before.
///
/// # Errors
/// What keeps it from serving.
pub fn start_alone(
    config: &Config,
    manager: &mut Manager,
    names: NameLookups,
) -> Result<Running, StartError> {
    start_in(Process::Own, &Host::of(config), config, manager, names)
}

fn start_in(
    process: Process,
    host: &Host,
    config: &Config,
    manager: &mut Manager,
    mut names: NameLookups,
) -> Result<Running, StartError> {
    background::raise_descriptor_limit();
    let layout = Layout::of(config)?;
    let secrets = Secrets::read(config)?;
    let upstream = names.upstream(config);
    let known = upstream.as_ref().map_or(&[][..], ServerAddresses::known);
    preflight::check_listen(config)?;
    preflight::check_reference(config, known)?;
    warnings::log(config, &warnings::of(config, known));
    let user = identity::server_user(config)?;
    let ports = Ports::open(config, layout.worker_count, layout.ke_worker_count, manager)?;
    ports.send_buffer().and_then(send_buffer::shortage).iter().for_each(|line| log::warn!("{line}"));
    give_up_rights(config, process, user.as_ref())?;
    let ke_limits = config.exchange().map(|exchange| background::bounded_by_memory(exchange.limits));
    background::check_descriptors(config)?;
    let containment = Containment::begin(config, process);

    let (commands, inbox) = mpsc::channel();
    let ntp_addresses = ports.ntp_addresses();
    let ke_addresses = ports.ke_addresses();
    let addresses = ServedAddresses::new(&ntp_addresses, &ke_addresses);
    let (supervisor, watcher) =
        take_up(host, config, secrets, &containment, layout.worker_count, addresses, upstream)?;
    // From here on a failure drops this, which stops the threads that run already.
    let mut node = Running {
        shared: Arc::clone(&supervisor.shared),
        containment,
        ntp_addresses,
        ke_addresses,
        metrics_address: ports.metrics.as_ref().and_then(PendingListener::local),
        commands,
        stop: Arc::new(AtomicBool::new(false)),
        ke_stoppers: Vec::new(),
        health_address: ports.health.as_ref().and_then(PendingListener::local),
        endpoint_stops: Vec::new(),
        threads: Vec::new(),
        watch_stop: None,
        supervisor: None,
    };
    if !config.listen.is_empty() {
        match config.engine {
            EngineKind::Udp => node.start_udp_workers(config, &layout, ports.ntp)?,
        }
    }
    identity::tell_role(config);
    if let Some((exchange, limits)) = config.exchange().zip(ke_limits) {
        node.start_key_exchange(config, (exchange, limits), &layout, ports.ke)?;
    }
    for (listener, scope) in [(ports.metrics, Scope::Metrics), (ports.health, Scope::Health)] {
        if let Some(listener) = listener {
            node.start_endpoint(listener, scope, layout.own_cpus.clone())?;
        }
    }
    node.start_links(&mut names)?;
    node.start_watch(watcher)?;
    node.start_supervisor(supervisor, inbox)?;
    Ok(node)
}

fn entropy() -> Result<Entropy, StartError> {
    Entropy::from_system().map_err(|error| StartError::System("get random octets", error))
}

/// Becomes `user`, who has a state directory then if one is needed.
fn give_up_rights(config: &Config, process: Process, user: Option<&User>) -> Result<(), StartError> {
    let wrong = |error| state_error(config, &error);
    let needs_directory = preflight::needs_directory(config);
    if needs_directory {
        config.state.tell();
        config.state.prepare_at_start(user).map_err(wrong)?;
    }
    containment::drop_bounding_set(config, process);
    if let Some(user) = user {
        user.become_user().map_err(|error| StartError::System("give up the rights of root", error))?;
    }
    if needs_directory {
        // If only the user itself may make it.
        config.state.prepare_at_start(None).map_err(wrong)?;
        config.state.check_access(false).map_err(wrong)?;
    }
    if user.is_some() {
        preflight::warn_of_rights(config);
    }
    Ok(())
}

/// Sets up what the threads share, with its keys, the supervisor that maintains it, and the watcher of the clock;
/// `upstream` has the addresses of an upstream.
fn take_up(
    host: &Host,
    config: &Config,
    secrets: Secrets,
    containment: &Containment,
    worker_count: usize,
    addresses: ServedAddresses,
    upstream: Option<ServerAddresses>,
) -> Result<(Supervisor, Watcher), StartError> {
    let Host { clock, stores } = host;
    let leaps = LeapKeeper::start(config, Instant::now())?;
    let list = leaps.as_ref().map_or_else(Default::default, LeapKeeper::in_force);
    let listen = config.listen.clone();
    let mut watcher = Watcher::new(&config.reference, upstream, listen, list, Arc::clone(clock), entropy()?);
    let mut entropy = entropy()?;
    stores.know(secrets.master);
    let (mut nts, mut cookie_keys) = (None, None);
    if let Some(settings) = &config.nts {
        let exchange = config.exchange().zip(secrets.certificates).map(|(exchange, certificates)| {
            certificates.warn();
            ExchangeState::new(certificates, Advertiser::new(exchange, &addresses.of_time()))
        });
        let rotator = Rotator::<KeySet>::of(&settings.keys, stores, config, clock, &mut entropy)?;
        nts = Some(NtsState { keys: rotator.in_force(), exchange });
        cookie_keys = Some(rotator);
    }
    let (mut antp, mut state_keys) = (None, None);
    if let (Some(settings), Some(loaded)) = (&config.antp, secrets.antp) {
        loaded.certificates.iter().for_each(|(_, info)| validity::warn(info));
        let rotator = Rotator::<StateKeys>::of(&settings.keys, stores, config, clock, &mut entropy)?;
        antp = Some(Arc::new(AntpState::new(settings, loaded, rotator.in_force(), &mut entropy)));
        state_keys = Some(rotator);
    }
    let keeper = config.symmetric.as_ref().zip(secrets.symmetric).map(|(symmetric, keys)| {
        keeper::warn(&symmetric.keys, &keys, symmetric.allowed);
        Keeper::start(symmetric, keys, worker_count, config.state.path(), Arc::clone(clock))
    });
    let symmetric = keeper.as_ref().map(Keeper::state);
    let fleet = config.fleet.as_ref().zip(secrets.seals);
    let fleet = fleet.map(|(fleet, seals)| FleetState::new(fleet, &stores.fleet, seals, symmetric.clone()));
    let spans = config.metrics.as_ref().filter(|metrics| !metrics.span_clients.is_empty());
    let shared = Arc::new(Shared {
        clock: Arc::clone(clock),
        addresses,
        policy: Arc::new(ArcSwap::from_pointee(policy::of(config, &mut entropy))),
        looked: Arc::new(ArcSwap::from_pointee(Looked::new(watcher.look(), clock.boot_ns()))),
        files: Heartbeat::new(clock.boot_ns()),
        leaps: leaps.as_ref().map(LeapKeeper::in_force),
        nts,
        symmetric,
        antp,
        fleet,
        cfnts: stores.cfnts.clone(),
        workers: (0..worker_count).map(|_| WorkerCounters::new(clock.boot_ns())).collect(),
        spans: spans.map(|metrics| Arc::new(SpanRing::new(metrics.span_clients.clone(), metrics.span_every))),
        started: Instant::now(),
        reloads: Counter::default(),
    });
    let keys = Kept { cookie_keys, state_keys, keeper };
    let supervisor = Supervisor::new(config.clone(), shared, keys, leaps, entropy, containment.clone());
    Ok((supervisor, watcher))
}

impl Running {
    /// Where time is served.
    #[must_use]
    pub fn ntp_addresses(&self) -> &[SocketAddr] {
        &self.ntp_addresses
    }

    /// Where keys are exchanged.
    #[must_use]
    pub fn ke_addresses(&self) -> &[SocketAddr] {
        &self.ke_addresses
    }

    /// Whether key exchanges can be answered: there are cookie keys.
    #[must_use]
    pub fn has_cookie_keys(&self) -> bool {
        self.shared.nts.as_ref().is_some_and(|nts| nts.keys.keys.load().is_some())
    }

    /// Where metrics are shown; `None` too while their port is taken.
    #[must_use]
    pub const fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// Where probes are answered apart from metrics.
    #[must_use]
    pub const fn health_address(&self) -> Option<SocketAddr> {
        self.health_address
    }

    /// What the node's threads that it did not start itself give up.
    #[must_use]
    pub fn containment(&self) -> Containment {
        self.containment.clone()
    }

    /// The counters of all workers.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals::of(&self.shared.workers)
    }

    /// Reads certificates, private keys, cookie keys, state keys and symmetric keys again, and calls `done` then. What
    /// cannot be read stays as it was, and is logged.
    pub fn reload(&self, done: impl FnOnce() + Send + 'static) {
        self.shared.reloads.count();
        // A supervisor that is gone has already been reported by `is_sound`.
        let _ = self.commands.send(Command::Reload(Box::new(done)));
    }

    /// What another start may mend, a line each; empty while all threads turn that answer clients.
    #[must_use]
    pub fn ailments(&self) -> Vec<String> {
        health::ailments(&self.shared)
    }

    /// How the server does, in a few words.
    #[must_use]
    pub fn status(&self) -> String {
        health::status(&self.shared)
    }

    /// Whether every thread is still at work.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        !self.threads.iter().chain(&self.supervisor).any(JoinHandle::is_finished)
    }

    /// Stops all threads and waits for them; `false` if one of them had failed, or hangs.
    pub fn stop(self) -> bool {
        self.end() == Ended::Cleanly
    }

    /// The same, and says which. If a file operation holds a thread up, this waits some seconds and then abandons the
    /// thread: the process should exit.
    pub fn end(mut self) -> Ended {
        self.stop_threads()
    }

    fn spawn(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> Result<(), StartError> {
        self.threads.push(thread(name, run)?);
        Ok(())
    }

    fn start_udp_workers(
        &mut self,
        config: &Config,
        layout: &Layout,
        sockets: Vec<Vec<ServerSocket>>,
    ) -> Result<(), StartError> {
        if let Some(antp) = &config.antp {
            let replies = sockets
                .iter()
                .map(|sockets| Ok(Box::new(ReplySockets::of(sockets)?) as Box<dyn ReplySender>))
                .collect::<io::Result<_>>()
                .map_err(|error| StartError::System("open sockets for key exchanges", error))?;
            self.start_exchange_workers(antp, layout, replies)?;
        }
        let policy = self.shared.policy.load_full();
        let interleave = match config.interleaved {
            true => Some(Arc::new(Interleave::new(INTERLEAVE_ENTRY_COUNT, &mut entropy()?))),
            false => None,
        };
        let batch_size = config.batch_size;
        for (index, sockets) in sockets.into_iter().enumerate() {
            let responder =
                Responder::new(Arc::clone(&policy), interleave.clone(), entropy()?).with_worker(index);
            let open = move || UdpEngine::new(sockets, PATIENCE, batch_size);
            self.start_packet_worker(index, layout.cpus[index % layout.cpus.len()], open, responder)?;
        }
        Ok(())
    }

    /// Starts the packet worker with this number; `open` makes its engine, on its thread.
    fn start_packet_worker<E: Engine>(
        &mut self,
        index: usize,
        cpu: usize,
        open: impl FnOnce() -> io::Result<E> + Send + 'static,
        responder: Responder,
    ) -> Result<(), StartError> {
        let (shared, stop) = (Arc::clone(&self.shared), Arc::clone(&self.stop));
        let containment = self.containment.clone();
        let work = move || {
            let mut engine = open()?;
            let worker = PacketWorker::new(&shared, index, responder);
            containment.enter(ThreadKind::Packet);
            worker.run(&mut engine, &stop)
        };
        self.spawn(format!("ntp-{index}"), move || {
            background::step_forward();
            if let Err(error) = affinity::pin(cpu) {
                log::warn!("worker {index} is not pinned to processor {cpu}: {error}");
            }
            if let Err(error) = work() {
                // Panicking marks the thread as failed; the supervisor's owner stops the process.
                panic!("worker {index} cannot receive: {error}");
            }
        })
    }

    /// Starts the public-key threads of ANTP; `replies` has what sends answers for each packet worker.
    fn start_exchange_workers(
        &mut self,
        antp: &Antp,
        layout: &Layout,
        replies: Vec<Box<dyn ReplySender>>,
    ) -> Result<(), StartError> {
        let Some(state) = self.shared.antp.clone() else { return Ok(()) };
        let replies = Arc::new(replies);
        for number in 0..antp.workers {
            let worker = ExchangeWorker {
                number,
                state: Arc::clone(&state),
                replies: Arc::clone(&replies),
                entropy: entropy()?,
                cpus: layout.own_cpus.clone(),
                priority: layout.ke_priority,
                containment: self.containment.clone(),
            };
            self.spawn(format!("antp-{number}"), move || worker.run())?;
        }
        Ok(())
    }

    fn start_key_exchange(
        &mut self,
        config: &Config,
        (exchange, limits): (&KeyExchange, Limits),
        layout: &Layout,
        listeners: Vec<Vec<TcpListener>>,
    ) -> Result<(), StartError> {
        let (allow, now) = (config.allow.clone(), Instant::now());
        let limits = background::bounded_by_descriptors(limits, layout.ke_worker_count);
        let admission = Arc::new(Admission::new(allow, limits, exchange.rates, &mut entropy()?, now));
        if let Some(exchange) = self.shared.exchange_state() {
            // Nobody has done so before: a node starts once.
            let _ = exchange.admission.set(Arc::clone(&admission));
        }
        for (index, listeners) in listeners.into_iter().enumerate() {
            let (admission, shared) = (Arc::clone(&admission), Arc::clone(&self.shared));
            let worker = ke_server::Worker::new(listeners, admission, entropy()?, shared)
                .map_err(|error| StartError::System("set up key exchange", error))?;
            self.ke_stoppers.push(worker.stopper());
            let (cpus, priority) = (layout.own_cpus.clone(), layout.ke_priority);
            let containment = self.containment.clone();
            self.spawn(format!("ke-{index}"), move || {
                background::step_back(&format!("key exchange thread {index}"), &cpus, priority);
                containment.enter(ThreadKind::KeyExchange);
                if let Err(error) = worker.run() {
                    panic!("key exchange thread {index} cannot wait for events: {error}");
                }
            })?;
        }
        Ok(())
    }

    fn start_endpoint(
        &mut self,
        listener: PendingListener,
        scope: Scope,
        cpus: Vec<usize>,
    ) -> Result<(), StartError> {
        let endpoint = Endpoint::new(listener, Arc::clone(&self.shared), scope);
        let (stop, stopped) = oneshot::channel();
        self.endpoint_stops.push(stop);
        let containment = self.containment.clone();
        self.spawn(scope.name().to_owned(), move || {
            // Probes are answered on a busy host too: they are short.
            if scope == Scope::Metrics {
                background::step_back_metrics(&cpus);
            }
            containment.enter(ThreadKind::Metrics);
            endpoint.run(stopped);
        })
    }

    /// Starts the threads that talk to memcached, each to one server.
    fn start_links(&mut self, names: &mut NameLookups) -> Result<(), StartError> {
        let shared = Arc::clone(&self.shared);
        if let Some(fleet) = &shared.fleet {
            for index in 0..fleet.links.len() {
                let addresses = names.addresses("fleet.servers", &fleet.links[index].server);
                let link = fleet.link(index, addresses, entropy()?, self.commands.clone());
                let containment = self.containment.clone();
                self.spawn(format!("fleet-{index}"), move || link.run(&containment))?;
            }
        }
        let Some(cfnts) = &shared.cfnts else { return Ok(()) };
        let addresses = names.addresses("nts.cookie-keys.server", &cfnts.counters().post.server);
        let (link, containment) = (cfnts.link(addresses, entropy()?), self.containment.clone());
        self.spawn("cfnts".to_owned(), move || link.run(&containment))
    }

    fn start_watch(&mut self, watcher: Watcher) -> Result<(), StartError> {
        let watch = Watch { shared: Arc::clone(&self.shared), watcher };
        let (stop, stopped) = mpsc::channel();
        self.watch_stop = Some(stop);
        let containment = self.containment.clone();
        self.spawn("clock".to_owned(), move || {
            containment.enter(ThreadKind::Clock);
            watch.run(&stopped);
        })
    }

    fn start_supervisor(
        &mut self,
        supervisor: Supervisor,
        inbox: Receiver<Command>,
    ) -> Result<(), StartError> {
        let containment = self.containment.clone();
        let supervise = move || {
            containment.enter(ThreadKind::Supervisor);
            supervisor.run(&inbox);
        };
        self.supervisor = Some(thread("supervisor".to_owned(), supervise)?);
        Ok(())
    }

    fn stop_threads(&mut self) -> Ended {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(antp) = &self.shared.antp {
            antp.exchanges.stop();
        }
        self.ke_stoppers.iter().for_each(Stopper::stop);
        self.shared.end_links();
        self.endpoint_stops.clear();
        drop(self.watch_stop.take());
        let failed = self.threads.drain(..).filter_map(|thread| thread.join().err()).count();
        let _ = self.commands.send(Command::Stop);
        let Some(supervisor) = self.supervisor.take() else { return Ended::of(failed == 0) };
        let deadline = Instant::now() + FILES_PATIENCE;
        while !supervisor.is_finished() {
            if Instant::now() > deadline {
                return Ended::Hanging(self.shared.files.work());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ended::of(supervisor.join().is_ok() && failed == 0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop_threads();
    }
}

fn thread(name: String, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StartError> {
    Builder::new().name(name).spawn(run).map_err(|error| StartError::System("start a thread", error))
}
