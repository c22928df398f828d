//! Start, run, reload and stop a serving node.
//!
//! Order at the start: everything that needs rights (ports, the certificate's key), then the rights are given away,
//! then everything else. So files of the state directory belong to the user that the server runs as. What can be known
//! before the start is `preflight`'s to find.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use arc_swap::cache::Cache;
use authentick_crypto::{Algorithm, Entropy};
use authentick_ke::server::{self as ke_server, Admission, Stopper};
use authentick_ke::session::Terms;
use authentick_ke::tls::{Identity, IdentityError};
use authentick_net::engine::{self, Engine, Handler, ReplyPath};
use authentick_net::udp::{self, ReplySockets, ServerSocket, UdpEngine};
use authentick_net::{affinity, privilege};
use authentick_proto::keyset::KeySet;
use authentick_proto::limits::{BATCH_SIZE, INTERLEAVE_ENTRY_COUNT, LIMITER_BUCKET_COUNT};
use authentick_proto::server::interleave::Interleave;
use authentick_proto::server::limit::Limiter;
use authentick_proto::server::{Moment, Policy, Responder};
use authentick_proto::symmetric::SymmetricKeys;
use authentick_wire::datagram::{Datagram, Early};
use authentick_wire::time::NtpTime;
use tokio::sync::oneshot;

use crate::antp::{self, AntpState, ExchangeWorker};
use crate::background;
use crate::clock::{HostClock, ResponderClock, SystemClock};
use crate::config::{Config, ConfigError, Nts, Symmetric};
use crate::containment::{self, Containment, Kind, Process, Refusals};
use crate::families;
use crate::guarded::Secrecy;
use crate::keystore::{KeyFile, KeyFileError, StateKeyFile};
use crate::metrics::counters::Totals;
use crate::metrics::spans::{Recorder, SpanRing};
use crate::metrics::{self, Exporter};
use crate::preflight;
pub use crate::preflight::check;
use crate::reference::Watcher;
use crate::shared::{NtsState, Shared};
use crate::state_directory;
use crate::supervisor::{Command, Supervisor};
use crate::symmetric::Keys;
use crate::symmetric::keeper::{self, Keeper};
use crate::turns::Turns;
use crate::validity;
use crate::watch::{Heartbeat, Looked, Watch};

/// How long a worker waits for datagrams before it looks whether it should stop.
const PATIENCE: Duration = Duration::from_millis(200);
/// A node that stops waits so long for a file operation.
const FILES_PATIENCE: Duration = Duration::from_secs(5);
/// A busy worker asks the kernel for its drop counter once in so many turns.
const DROPS_EVERY: u64 = 1024;

const _: () = assert!(engine::BATCH_SIZE <= BATCH_SIZE, "the responder takes every batch of the engine");

/// Why a node did not start.
#[derive(Debug)]
pub enum StartError {
    /// The operator can mend it.
    Config(ConfigError),
    /// The system failed: what was being done, and its error.
    System(&'static str, io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Config(error) => error.fmt(f),
            StartError::System(what, error) => write!(f, "cannot {what}: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<ConfigError> for StartError {
    fn from(error: ConfigError) -> Self {
        StartError::Config(error)
    }
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
    metrics_stop: Option<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
    /// Looks at the clock until this is dropped.
    watch_stop: Option<Sender<()>>,
    /// Stops after the others, because it writes down what they have counted.
    supervisor: Option<JoinHandle<()>>,
}

/// Starts a node in a process that does other things too. It serves when this returns.
///
/// # Errors
/// What keeps it from serving.
pub fn start(config: &Config) -> Result<Running, StartError> {
    start_by(config, &(Arc::new(SystemClock) as Arc<dyn HostClock>))
}

/// The same on a host with these clocks.
///
/// # Errors
/// What keeps it from serving.
pub fn start_by(config: &Config, clock: &Arc<dyn HostClock>) -> Result<Running, StartError> {
    start_in(Process::Shared, config, clock)
}

/// Starts a node in a process of its own, which from here on can do little else: see [`containment`]. The calling
/// thread must be the only one.
///
/// # Errors
/// What keeps it from serving.
pub fn start_alone(config: &Config) -> Result<Running, StartError> {
    start_in(Process::Own, config, &(Arc::new(SystemClock) as Arc<dyn HostClock>))
}

fn start_in(process: Process, config: &Config, clock: &Arc<dyn HostClock>) -> Result<Running, StartError> {
    background::raise_descriptor_limit();
    let cpus =
        affinity::allowed().map_err(|error| StartError::System("find this process's processors", error))?;
    let worker_count = if config.workers == 0 { cpus.len() } else { config.workers };
    let entropy = || Entropy::from_system().map_err(|error| StartError::System("get random octets", error));

    let identity = config.nts.as_ref().map(|nts| load_identity(config, nts)).transpose()?;
    let symmetric = match &config.symmetric {
        Some(symmetric) => Some((symmetric, load_symmetric(config, symmetric)?)),
        None => None,
    };
    let antp = match &config.antp {
        Some(settings) => Some((settings, antp::load(config, settings)?)),
        None => None,
    };
    preflight::check_reference(config)?;
    let user = server_user(config)?;
    let sockets = bind_ntp(config, worker_count)?;
    let ntp_addresses: Vec<SocketAddr> = sockets[0].iter().map(ServerSocket::local).collect();
    let ke_worker_count = match &config.nts {
        Some(nts) if nts.ke_workers > 0 => nts.ke_workers,
        _ => background::thread_count(&cpus, worker_count),
    };
    let ke_listeners = bind_ke(config, ke_worker_count)?;
    let metrics_listener = bind_metrics(config)?;
    let key_file = KeyFile::new(&config.state_directory);
    let state_key_file = StateKeyFile::new(&config.state_directory);
    let needs_directory = preflight::needs_directory(config);
    if needs_directory {
        key_file.prepare_directory(user.as_ref()).map_err(|error| state_error(config, &error))?;
    }
    containment::drop_bounding_set(config, process);
    if let Some(user) = &user {
        user.become_user().map_err(|error| StartError::System("give up the rights of root", error))?;
    }
    if needs_directory {
        // If only the user itself may make it.
        key_file
            .prepare_directory(None)
            .and_then(|()| state_directory::check_access(&config.state_directory, false))
            .map_err(|error| state_error(config, &error))?;
    }
    if user.is_some() {
        preflight::warn_of_rights(config);
    }

    let containment = Containment::begin(config, process);

    let mut watcher = Watcher::new(&config.reference, Arc::clone(clock), entropy()?);
    let nts = match identity {
        Some(identity) => {
            validity::warn(&identity.certificate);
            warn_of_terms(config);
            let keys = key_file
                .load_or_create(clock.unix_seconds(), &mut entropy()?)
                .map_err(|error| state_error(config, &error))?;
            Some(NtsState::new(keys, &identity))
        }
        None => None,
    };
    let antp = match antp {
        Some((settings, loaded)) => {
            loaded.certificates.iter().for_each(|(_, info)| validity::warn(info));
            let mut entropy = entropy()?;
            let keys = state_key_file
                .load_or_create(clock.unix_seconds(), &mut entropy)
                .map_err(|error| state_error(config, &error))?;
            Some(Arc::new(AntpState::new(settings, loaded, keys, &mut entropy)))
        }
        None => None,
    };
    let keeper = symmetric.map(|(symmetric, keys)| {
        keeper::warn(&symmetric.keys, &keys, symmetric.allowed);
        Keeper::start(symmetric, keys, worker_count, &config.state_directory, Arc::clone(clock))
    });
    let spans = config.metrics.as_ref().filter(|metrics| !metrics.span_clients.is_empty());
    let shared = Arc::new(Shared {
        clock: Arc::clone(clock),
        looked: Arc::new(ArcSwap::from_pointee(Looked::new(watcher.look(), clock.boot_ns()))),
        files: Heartbeat::new(clock.boot_ns()),
        nts,
        symmetric: keeper.as_ref().map(Keeper::state),
        antp,
        batch_size: config.batch_size,
        workers: (0..worker_count).map(|_| Default::default()).collect(),
        spans: spans.map(|metrics| Arc::new(SpanRing::new(metrics.span_clients.clone()))),
        started: Instant::now(),
    });

    let (commands, inbox) = mpsc::channel();
    // From here on a failure drops this, which stops the threads that run already.
    let mut node = Running {
        shared,
        containment,
        ntp_addresses,
        ke_addresses: Vec::new(),
        metrics_address: metrics_listener.as_ref().and_then(|listener| listener.local_addr().ok()),
        commands,
        stop: Arc::new(AtomicBool::new(false)),
        ke_stoppers: Vec::new(),
        metrics_stop: None,
        threads: Vec::new(),
        watch_stop: None,
        supervisor: None,
    };
    let policy = Arc::new(Policy {
        allow: config.allow.clone(),
        limiter: match config.rate {
            Some(rate) => Some(Arc::new(Limiter::new(rate, LIMITER_BUCKET_COUNT, &mut entropy()?))),
            None => None,
        },
        kiss: config.kiss,
    });
    let interleave = match config.interleaved {
        true => Some(Arc::new(Interleave::new(INTERLEAVE_ENTRY_COUNT, &mut entropy()?))),
        false => None,
    };
    if let Some(settings) = &config.antp {
        let replies: io::Result<Vec<ReplySockets>> =
            sockets.iter().map(|sockets| ReplySockets::of(sockets)).collect();
        let replies = replies.map_err(|error| StartError::System("open sockets for key exchanges", error))?;
        let free = background::own_cpus(&cpus, worker_count);
        node.start_exchange_workers(settings.workers, &Arc::new(replies), free, entropy)?;
    }
    for (index, sockets) in sockets.into_iter().enumerate() {
        let responder =
            Responder::new(Arc::clone(&policy), interleave.clone(), entropy()?).with_worker(index);
        node.start_ntp_worker(index, cpus[index % cpus.len()], sockets, responder)?;
    }
    if let Some(nts) = &config.nts {
        node.ke_addresses =
            ke_listeners[0].iter().filter_map(|listener| listener.local_addr().ok()).collect();
        let (allow, now) = (config.allow.clone(), Instant::now());
        let limits = background::bounded(nts.ke_limits, ke_worker_count);
        let own_cpus = background::own_cpus(&cpus, worker_count);
        let admission = Arc::new(Admission::new(allow, limits, nts.ke_rates, &mut entropy()?, now));
        let terms = terms(nts, &node.ntp_addresses);
        for (index, listeners) in ke_listeners.into_iter().enumerate() {
            node.start_ke_worker(index, own_cpus, listeners, &admission, terms.clone(), entropy()?)?;
        }
    }
    if let Some(listener) = metrics_listener {
        node.start_exporter(listener)?;
    }
    let supervisor = Supervisor {
        config: config.clone(),
        shared: Arc::clone(&node.shared),
        cookie_keys: node
            .shared
            .nts
            .as_ref()
            .map(|nts| nts.keys.load_full())
            .map(|keys| Turns::new(key_file, "cookie keys", &keys, clock)),
        state_keys: node
            .shared
            .antp
            .as_ref()
            .map(|antp| antp.keys.load_full())
            .map(|keys| Turns::new(state_key_file, "ANTP's state keys", &keys, clock)),
        keeper,
        entropy: entropy()?,
        refusals: Refusals::default(),
    };
    let (watch, containment) =
        (Watch { shared: Arc::clone(&node.shared), watcher }, node.containment.clone());
    let (watch_stop, stopped) = mpsc::channel();
    node.watch_stop = Some(watch_stop);
    node.spawn("clock".to_owned(), move || {
        containment.enter(Kind::Clock);
        watch.run(&stopped);
    })?;
    let containment = node.containment.clone();
    let supervise = move || {
        containment.enter(Kind::Supervisor);
        supervisor.run(&inbox);
    };
    node.supervisor = Some(thread("supervisor".to_owned(), supervise)?);
    Ok(node)
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

    /// Where metrics are shown.
    #[must_use]
    pub const fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// What threads give up that belong to the node and were not started by it.
    #[must_use]
    pub fn containment(&self) -> Containment {
        self.containment.clone()
    }

    /// The counters of all workers.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals::of(&self.shared.workers)
    }

    /// Reads certificates, private keys, cookie keys, state keys and symmetric keys again. What cannot be read stays as
    /// it was, and is logged.
    pub fn reload(&self) {
        // A supervisor that is gone has already been reported by `is_sound`.
        let _ = self.commands.send(Command::Reload);
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

    /// The same, and says which. A thread that a file operation holds is waited for some seconds and then left behind:
    /// the process should exit.
    pub fn end(mut self) -> Ended {
        self.stop_threads()
    }

    fn spawn(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> Result<(), StartError> {
        self.threads.push(thread(name, run)?);
        Ok(())
    }

    fn start_ntp_worker(
        &mut self,
        index: usize,
        cpu: usize,
        sockets: Vec<ServerSocket>,
        responder: Responder,
    ) -> Result<(), StartError> {
        let (shared, stop) = (Arc::clone(&self.shared), Arc::clone(&self.stop));
        let containment = self.containment.clone();
        self.spawn(format!("ntp-{index}"), move || {
            if let Err(error) = affinity::pin(cpu) {
                log::warn!("worker {index} is not pinned to processor {cpu}: {error}");
            }
            if let Err(error) = work(&shared, &containment, index, sockets, responder, &stop) {
                // Panicking marks the thread as failed; the supervisor's owner stops the process.
                panic!("worker {index} cannot receive: {error}");
            }
        })
    }

    fn start_exchange_workers(
        &mut self,
        count: usize,
        sockets: &Arc<Vec<ReplySockets>>,
        cpus: &[usize],
        entropy: impl Fn() -> Result<Entropy, StartError>,
    ) -> Result<(), StartError> {
        let Some(state) = self.shared.antp.clone() else { return Ok(()) };
        for number in 0..count {
            let (state, sockets, entropy) = (Arc::clone(&state), Arc::clone(sockets), entropy()?);
            let containment = self.containment.clone();
            let worker = ExchangeWorker { number, state, sockets, entropy, cpus: cpus.to_vec(), containment };
            let stop = Arc::clone(&self.stop);
            self.spawn(format!("antp-{number}"), move || worker.run(&stop))?;
        }
        Ok(())
    }

    fn start_ke_worker(
        &mut self,
        index: usize,
        cpus: &[usize],
        listeners: Vec<std::net::TcpListener>,
        admission: &Arc<Admission>,
        terms: Terms,
        entropy: Entropy,
    ) -> Result<(), StartError> {
        let (admission, shared) = (Arc::clone(admission), Arc::clone(&self.shared));
        let worker = ke_server::Worker::new(listeners, admission, terms, entropy, shared)
            .map_err(|error| StartError::System("set up key exchange", error))?;
        self.ke_stoppers.push(worker.stopper());
        let (cpus, containment) = (cpus.to_vec(), self.containment.clone());
        self.spawn(format!("ke-{index}"), move || {
            background::step_back(index, &cpus);
            containment.enter(Kind::KeyExchange);
            if let Err(error) = worker.run() {
                panic!("key exchange thread {index} cannot wait for events: {error}");
            }
        })
    }

    fn start_exporter(&mut self, listener: std::net::TcpListener) -> Result<(), StartError> {
        let exporter = Exporter::new(listener, Arc::clone(&self.shared))
            .map_err(|error| StartError::System("set up the metrics endpoint", error))?;
        let (stop, stopped) = oneshot::channel();
        self.metrics_stop = Some(stop);
        let containment = self.containment.clone();
        self.spawn("metrics".to_owned(), move || {
            containment.enter(Kind::Metrics);
            if let Err(error) = exporter.run(stopped) {
                panic!("the metrics endpoint failed: {error}");
            }
        })
    }

    fn stop_threads(&mut self) -> Ended {
        self.stop.store(true, Ordering::Relaxed);
        self.ke_stoppers.iter().for_each(Stopper::stop);
        drop(self.metrics_stop.take());
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

/// How a node ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every thread had worked until it was told to stop.
    Cleanly,
    /// A thread had failed before.
    Failed,
    /// A file operation does not return; what it is for.
    Hanging(String),
}

impl Ended {
    const fn of(is_clean: bool) -> Self {
        if is_clean { Ended::Cleanly } else { Ended::Failed }
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

/// One worker until it is told to stop.
fn work(
    shared: &Arc<Shared>,
    containment: &Containment,
    index: usize,
    sockets: Vec<ServerSocket>,
    responder: Responder,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut engine = UdpEngine::new(sockets, PATIENCE, shared.batch_size)?;
    let mut worker = Worker {
        responder,
        clock: Arc::clone(&shared.clock),
        looked: Cache::new(Arc::clone(&shared.looked)),
        keys: shared.nts.as_ref().map(|nts| Cache::new(Arc::clone(&nts.keys))),
        symmetric: shared.symmetric.as_ref().map(|symmetric| Cache::new(Arc::clone(&symmetric.keys))),
        antp: shared.antp.as_ref().map(|state| antp::View::new(state, index)),
        recorder: shared.spans.as_ref().map(|spans| Recorder::new(Arc::clone(spans))),
    };
    let counters = &shared.workers[index];
    let mut turn_count: u64 = 0;
    containment.enter(Kind::Packet);
    while !stop.load(Ordering::Relaxed) {
        let turn = engine.turn(&mut worker)?;
        counters.publish(&turn, worker.responder.outcomes());
        turn_count += 1;
        if turn.received == 0 || turn_count.is_multiple_of(DROPS_EVERY) {
            counters.publish_dropped(engine.dropped_count());
        }
    }
    Ok(())
}

/// What stands between an engine and the responder: the clock, and the state of the moment.
struct Worker {
    responder: Responder,
    clock: Arc<dyn HostClock>,
    looked: Cache<Arc<ArcSwap<Looked>>, Arc<Looked>>,
    keys: Option<Cache<Arc<ArcSwap<KeySet>>, Arc<KeySet>>>,
    symmetric: Option<Cache<Arc<ArcSwap<SymmetricKeys>>, Arc<SymmetricKeys>>>,
    antp: Option<antp::View>,
    recorder: Option<Recorder>,
}

impl Handler for Worker {
    fn now(&mut self) -> NtpTime {
        self.clock.now()
    }

    fn respond(&mut self, batch: &mut [Datagram<'_>], paths: &[ReplyPath]) {
        let antp = self.antp.as_mut().map(antp::View::look);
        let inbox = antp.as_ref().map(|antp| antp.inbox(paths));
        let moment = Moment {
            snapshot: self.looked.load().at(self.clock.boot_ns()),
            keys: self.keys.as_mut().map(|keys| &**keys.load()),
            symmetric: self.symmetric.as_mut().map(|keys| &**keys.load()),
            antp: antp.as_ref().zip(inbox.as_ref()).map(|(antp, inbox)| antp.moment(inbox)),
        };
        let clock = &mut ResponderClock(&*self.clock);
        match &mut self.recorder {
            None => self.responder.begin(moment, clock, &mut (), batch),
            Some(recorder) => self.responder.begin(moment, clock, recorder, batch),
        }
    }

    fn early(&self) -> &[Early] {
        self.responder.early()
    }

    fn finish(&mut self, batch: &mut [Datagram<'_>]) {
        self.responder.finish(batch);
    }

    fn sent(&mut self, from: NtpTime, to: NtpTime) {
        self.responder.sent(from, to);
    }
}

/// The user to become: none unless started as root.
pub(crate) fn server_user(config: &Config) -> Result<Option<privilege::User>, ConfigError> {
    if !privilege::is_root() || config.user == "root" {
        return Ok(None);
    }
    let wrong = |problem: &dyn fmt::Display| {
        let remedy =
            "make it (useradd --system NAME), name another one, or write \"root\" to keep root's rights";
        ConfigError::new(&config.file, "server.user", &config.user, problem, remedy)
    };
    match privilege::find_user(&config.user) {
        Ok(Some(user)) => Ok(Some(user)),
        Ok(None) => Err(wrong(&"there is no such user")),
        Err(error) => Err(wrong(&error)),
    }
}

pub(crate) fn load_identity(config: &Config, nts: &Nts) -> Result<Identity, ConfigError> {
    let (chain_key, private_key) = ("nts.certificate-chain", "nts.private-key");
    let chain = preflight::read_file(config, chain_key, &nts.certificate_chain, Secrecy::Public)?;
    let key = preflight::read_file(config, private_key, &nts.private_key, Secrecy::GroupReads)?;
    Identity::from_pem(&chain, &key).map_err(|error| {
        let (key, path, remedy) = match &error {
            IdentityError::Chain(_) => {
                (chain_key, &nts.certificate_chain, "name a PEM file with the server's certificate first")
            }
            IdentityError::Key(_) => (private_key, &nts.private_key, "name a PEM file with the private key"),
            IdentityError::Mismatch => {
                (private_key, &nts.private_key, "name the key that the certificate was made for")
            }
        };
        ConfigError::new(&config.file, key, path.display(), error, remedy)
    })
}

pub(crate) fn load_symmetric(config: &Config, symmetric: &Symmetric) -> Result<Keys, ConfigError> {
    keeper::load(symmetric).map_err(|error| ConfigError {
        is_permission: error.is_permission(),
        ..ConfigError::new(&config.file, "symmetric.keys", symmetric.keys.display(), &error, error.remedy())
    })
}

fn warn_of_terms(config: &Config) {
    let served = config.nts.as_ref().map_or(&[][..], |nts| &nts.terms.algorithms);
    if !served.contains(&Algorithm::SivCmac256) {
        log::warn!(
            "nts.aeads lacks 15, which RFC 8915 section 5.1 demands of every server: some clients have no other"
        );
    }
}

pub(crate) fn state_error(config: &Config, error: &KeyFileError) -> ConfigError {
    ConfigError {
        is_permission: error.is_permission(),
        ..ConfigError::new(
            &config.file,
            "server.state-directory",
            config.state_directory.display(),
            error,
            error.remedy(),
        )
    }
}

fn bind_error(config: &Config, key: &str, address: SocketAddr, error: &io::Error) -> ConfigError {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("stop what uses port {} (ss -lnp shows it), or choose another port", address.port())
        }
        io::ErrorKind::PermissionDenied => {
            "start as root, or give the program CAP_NET_BIND_SERVICE, or choose a port above 1023".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "name an address of this host, or a wildcard address".to_owned(),
        _ => "choose another address".to_owned(),
    };
    ConfigError::new(&config.file, key, address, error, remedy).caused_by(error)
}

/// The sockets of each worker: one for every address.
fn bind_ntp(config: &Config, worker_count: usize) -> Result<Vec<Vec<ServerSocket>>, ConfigError> {
    per_worker(&families::usable("server.listen", &config.listen), worker_count, |address| {
        udp::bind_group(address, worker_count)
            .map_err(|error| bind_error(config, "server.listen", address, &error))
    })
}

fn bind_ke(config: &Config, worker_count: usize) -> Result<Vec<Vec<std::net::TcpListener>>, ConfigError> {
    let addresses = config.nts.as_ref().map_or(&[][..], |nts| &nts.ke_listen);
    per_worker(&families::usable("nts.ke-listen", addresses), worker_count, |address| {
        ke_server::bind_group(address, worker_count)
            .map_err(|error| bind_error(config, "nts.ke-listen", address, &error))
    })
}

fn bind_metrics(config: &Config) -> Result<Option<std::net::TcpListener>, ConfigError> {
    let Some(metrics) = &config.metrics else { return Ok(None) };
    metrics::bind(metrics.listen)
        .map(Some)
        .map_err(|error| bind_error(config, "metrics.listen", metrics.listen, &error))
}

fn per_worker<T>(
    addresses: &[SocketAddr],
    worker_count: usize,
    bind: impl Fn(SocketAddr) -> Result<Vec<T>, ConfigError>,
) -> Result<Vec<Vec<T>>, ConfigError> {
    let mut workers: Vec<Vec<T>> = (0..worker_count).map(|_| Vec::new()).collect();
    for &address in addresses {
        for (worker, socket) in workers.iter_mut().zip(bind(address)?) {
            worker.push(socket);
        }
    }
    Ok(workers)
}

/// Key exchange names the port unless it is the one that clients expect.
fn terms(nts: &Nts, ntp_addresses: &[SocketAddr]) -> Terms {
    const NTP_PORT: u16 = 123;
    let port = nts.terms.ntp_port.or_else(|| ntp_addresses.first().map(SocketAddr::port));
    Terms { ntp_port: port.filter(|&port| port != NTP_PORT), ..nts.terms.clone() }
}
