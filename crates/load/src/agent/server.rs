//! An agent: waits for a coordinator, carries out its orders within the bounds of its own operator, reports.
//!
//! A connection has three threads: one reads, answers pings, and stops the generator as soon as the coordinator says so
//! or is gone; one sends heartbeats; one creates the generator and runs its steps. A coordinator can end only its own
//! connection.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use authentick_generator::nanos;
use authentick_ke::tls::CertificateInfo;
use rustls::{ServerConfig, ServerConnection};

use super::bounds::{Limits, check_order, check_plan};
use super::clock::{Monotonic, micros};
use super::identity::Identity;
use super::limits::{CONNECTION_COUNT_MAX, HANDLER_COUNT_MAX, HANDOVER, LEAD_MAX, LINGER};
use super::link::{self, LinkError, Receiver, Sender};
use super::message::{About, FromAgent, ToAgent, shown};
use super::pending::PendingConnections;
use super::share::bound;
use super::words::{order_in_words, plan_in_words};
use crate::allow::Allow;
use crate::lock;
use crate::plan::{Crew, Order, Plan, Watch};

/// How often the listener looks for a connection and for the stop flag.
const TICK: Duration = Duration::from_millis(20);

/// An agent that listens.
pub struct Agent {
    listener: TcpListener,
    state: Arc<AgentState>,
}

impl Agent {
    /// Listens on `address` for coordinators whose certificates are of the identity's authority. Load goes to addresses
    /// in `allow` alone, and no further than `limits`. Coordinators are told what `about` says of the host. `make`
    /// makes the generator for a plan that is within these bounds, or says why it cannot; it is to give up once its
    /// watch is stopped.
    ///
    /// # Errors
    /// If the address cannot be had, or the identity's parts do not fit each other.
    pub fn bind(
        address: SocketAddr,
        identity: &Identity,
        allow: Allow,
        limits: Limits,
        about: About,
        make: impl Fn(Plan, &Watch) -> Result<Box<dyn Crew>, String> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let tls =
            identity.server_config().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let state = AgentState {
            tls,
            allow,
            limits,
            about,
            clock: Monotonic::start(),
            make: Box::new(make),
            coordinator: Mutex::new(None),
            open: Mutex::new(HashMap::new()),
        };
        Ok(Agent { listener, state: Arc::new(state) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the host does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves one coordinator after another until `stop` is set; a step in progress is stopped then.
    ///
    /// # Errors
    /// If the listener fails for good.
    pub fn run(self, stop: &AtomicBool) -> io::Result<()> {
        let state = self.state;
        let mut handlers: Vec<thread::JoinHandle<()>> = Vec::new();
        let mut pending = PendingConnections::default();
        let mut serial = 0u64;
        while !stop.load(Ordering::Relaxed) {
            handlers.retain(|handler| !handler.is_finished());
            // Threads of rejected connections are about to end.
            let has_room = handlers.len() < HANDLER_COUNT_MAX;
            if has_room && let Some((stream, peer)) = pending.next(Instant::now()) {
                serial += 1;
                match admit(&state, stream, peer, serial) {
                    Ok(handler) => handlers.extend(handler),
                    Err(error) => log::warn!("{peer}: cannot be served: {error}"),
                }
            }
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    if let Err(error) = pending.add(stream, peer, Instant::now()) {
                        log::warn!("{peer}: cannot be served: {error}");
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
                // No connection waits, or one was gone at once, or there is no descriptor: others come.
                Err(_) => thread::sleep(TICK),
            }
        }
        for peer in lock(&state.open).values() {
            let _ = peer.stream.shutdown(Shutdown::Both);
        }
        for handler in handlers {
            // A handler that panicked has closed its connection, and the panic was printed.
            let _ = handler.join();
        }
        Ok(())
    }
}

/// Starts the thread of a connection. If there are too many, one without a verified certificate is closed; if there is
/// none, the new one is.
fn admit(
    state: &Arc<AgentState>,
    stream: TcpStream,
    peer: SocketAddr,
    serial: u64,
) -> io::Result<Option<thread::JoinHandle<()>>> {
    let mut open = lock(&state.open);
    if open.len() >= CONNECTION_COUNT_MAX {
        let Some(stranger) = victim(&open) else { return Ok(None) };
        if let Some(peer) = open.remove(&stranger) {
            let _ = peer.stream.shutdown(Shutdown::Both);
        }
    }
    stream.set_nonblocking(false)?;
    open.insert(serial, Peer { stream: stream.try_clone()?, address: peer.ip(), is_known: false });
    drop(open);
    let state = Arc::clone(state);
    let run = move || {
        let _open = Open { state: &state, serial };
        state.serve(serial, stream, peer);
    };
    thread::Builder::new().name("coordinator".to_owned()).spawn(run).map(Some)
}

/// The connection that is closed in favour of a new one: of those still in their handshake, the oldest from the address
/// that has most of them, so that an address with many connections loses its own first. `None` if there is none.
fn victim(open: &HashMap<u64, Peer>) -> Option<u64> {
    let strangers = || open.iter().filter(|(_, peer)| !peer.is_known);
    let count = |address| strangers().filter(|(_, other)| other.address == address).count();
    let most = strangers().max_by_key(|(serial, peer)| (count(peer.address), Reverse(**serial)));
    most.map(|(serial, _)| *serial)
}

/// Makes the generator for a plan.
type Make = Box<dyn Fn(Plan, &Watch) -> Result<Box<dyn Crew>, String> + Send + Sync>;

/// What all connections share.
struct AgentState {
    tls: Arc<ServerConfig>,
    allow: Allow,
    limits: Limits,
    about: About,
    clock: Monotonic,
    make: Make,
    /// Whose orders are carried out.
    coordinator: Mutex<Option<String>>,
    open: Mutex<HashMap<u64, Peer>>,
}

/// The other end of a connection.
struct Peer {
    stream: TcpStream,
    address: IpAddr,
    /// Whether the handshake is over, and with it the check of the certificate.
    is_known: bool,
}

/// A connection, counted while it is open.
struct Open<'a> {
    state: &'a AgentState,
    serial: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        lock(&self.state.open).remove(&self.serial);
    }
}

/// The right to give orders, until it is dropped.
struct Control<'a>(&'a Mutex<Option<String>>);

impl<'a> Control<'a> {
    /// Takes it for `name`, or says who has it and keeps it for longer than [`HANDOVER`].
    fn take(coordinator: &'a Mutex<Option<String>>, name: &str) -> Result<Self, String> {
        let deadline = Instant::now() + HANDOVER;
        loop {
            let mut holder = lock(coordinator);
            match holder.as_ref() {
                Some(other) if Instant::now() >= deadline => return Err(other.clone()),
                Some(_) => {}
                None => {
                    *holder = Some(name.to_owned());
                    return Ok(Control(coordinator));
                }
            }
            drop(holder);
            thread::sleep(TICK);
        }
    }
}

impl Drop for Control<'_> {
    fn drop(&mut self) {
        *lock(self.0) = None;
    }
}

/// What the reader hands on.
enum Command {
    Prepare { plan: Box<Plan>, watch: Watch },
    Step { number: u64, order: Order, start_ns: u64, watch: Watch },
}

/// What the threads of a connection know of its steps.
#[derive(Default)]
struct StepProgress {
    step: u64,
    /// Stops what is done now: the preparation, or a step.
    watch: Watch,
    /// A command is being carried out.
    is_at_work: bool,
    /// When the preparation has taken too long; none, unless there is one now.
    prepare_by: Option<Instant>,
}

impl StepProgress {
    /// What a sign of life tells. As one leaves several times a second, a preparation that takes too long is ended
    /// here.
    fn beat(&self) -> FromAgent {
        if self.prepare_by.is_some_and(|by| Instant::now() >= by) {
            self.watch.stop();
        }
        FromAgent::Beat { step: self.step, counts: self.watch.counts() }
    }
}

impl AgentState {
    fn serve(&self, serial: u64, stream: TcpStream, peer: SocketAddr) {
        let opened = ServerConnection::new(Arc::clone(&self.tls))
            .map_err(LinkError::Tls)
            .and_then(|tls| link::open::<FromAgent, ToAgent>(stream, tls));
        let turned_away = |error: &LinkError| log::debug!("{peer}: turned away: {error}");
        let Ok((sender, receiver)) = opened.inspect_err(turned_away) else { return };
        // It has shown a certificate of the right authority: it is not closed for a new one any more.
        if let Some(peer) = lock(&self.open).get_mut(&serial) {
            peer.is_known = true;
        }
        let subject = receiver.certificate().and_then(|der| CertificateInfo::parse(&der));
        let subject = subject.map_or_else(|| "unnamed".to_owned(), |certificate| shown(&certificate.subject));
        let name = format!("{subject} ({peer})");
        match Control::take(&self.coordinator, &name) {
            Ok(_control) => {
                log::info!("{name}: gives orders");
                let end = self.obey(&name, &sender, receiver);
                log::info!("{name}: {end}");
            }
            Err(with) => {
                sender.conclude(&FromAgent::Busy { with });
                receiver.linger(LINGER);
            }
        }
    }

    /// Carries out orders until the connection ends; returns why it did.
    fn obey(&self, name: &str, sender: &Sender<FromAgent>, receiver: Receiver<ToAgent>) -> String {
        if let Err(error) = sender.send(&FromAgent::Welcome(self.about.clone())) {
            return error.to_string();
        }
        let progress = Mutex::new(StepProgress::default());
        let (commands, inbox) = mpsc::sync_channel(1);
        let (read_to_end, reader_ended) = mpsc::sync_channel(1);
        thread::scope(|scope| {
            // However this ends, even by a panic of the generator, the connection ends, and with it the reader.
            let _closing = Closing(sender);
            let (_alive, dead) = mpsc::sync_channel::<()>(0);
            let watched = &progress;
            scope.spawn(move || {
                let mut receiver = receiver;
                let end = self.read(&mut receiver, sender, watched, &commands);
                lock(watched).watch.stop();
                drop(commands);
                let why = match end {
                    ReadEnd::Gone(why) => why,
                    ReadEnd::Refused(why) => {
                        sender.conclude(&FromAgent::Refused { why: why.clone() });
                        receiver.linger(LINGER);
                        why
                    }
                };
                let _ = read_to_end.send(why);
            });
            scope.spawn(move || {
                sender.keep_alive(&dead, || lock(watched).beat());
            });
            let mut work = Work { state: self, name, sender, generator: None, step: 0 };
            for command in inbox {
                let result = work.carry_out(command, || {
                    let mut progress = lock(&progress);
                    (progress.is_at_work, progress.prepare_by) = (false, None);
                });
                if let Err(why) = result {
                    // The reader goes on reading, so that the last message is not lost in a reset.
                    sender.conclude(&FromAgent::Refused { why: why.clone() });
                    let _ = reader_ended.recv_timeout(LINGER);
                    return format!("refused: {why}");
                }
            }
            reader_ended.recv().unwrap_or_default()
        })
    }

    /// Reads until the connection ends or makes no sense.
    fn read(
        &self,
        receiver: &mut Receiver<ToAgent>,
        sender: &Sender<FromAgent>,
        progress: &Mutex<StepProgress>,
        commands: &SyncSender<Command>,
    ) -> ReadEnd {
        loop {
            let (message, at) = match receiver.receive() {
                Ok(received) => received,
                Err(LinkError::Message(error)) => return ReadEnd::Refused(format!("you sent {error}")),
                Err(error) => return ReadEnd::Gone(error.to_string()),
            };
            // The watch is made here, so that a stop that follows at once finds it.
            let watch = Watch::default();
            let command = match message {
                ToAgent::Beat => continue,
                ToAgent::Stop => {
                    lock(progress).watch.stop();
                    continue;
                }
                ToAgent::Ping { number } => {
                    let received_ns = self.clock.at(at);
                    let sent_ns = self.clock.now();
                    match sender.send(&FromAgent::Pong { number, received_ns, sent_ns }) {
                        Ok(()) => continue,
                        Err(error) => return ReadEnd::Gone(error.to_string()),
                    }
                }
                ToAgent::Prepare(plan) => Command::Prepare { plan, watch: watch.clone() },
                ToAgent::Step { number, order, start_ns } => {
                    Command::Step { number, order, start_ns, watch: watch.clone() }
                }
            };
            {
                let mut progress = lock(progress);
                if progress.is_at_work {
                    return ReadEnd::Refused("an order came while another one was carried out".to_owned());
                }
                (progress.is_at_work, progress.watch) = (true, watch);
                match &command {
                    Command::Prepare { .. } => progress.prepare_by = Some(at + self.limits.preparation_max),
                    Command::Step { number, .. } => progress.step = *number,
                }
            }
            if commands.try_send(command).is_err() {
                return ReadEnd::Gone("orders are not carried out any more".to_owned());
            }
        }
    }
}

/// Closes the connection when dropped.
struct Closing<'a>(&'a Sender<FromAgent>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Why nothing more is read.
enum ReadEnd {
    /// The connection has ended.
    Gone(String),
    /// What came makes no sense.
    Refused(String),
}

/// The thread that makes the generator and runs it.
struct Work<'a> {
    state: &'a AgentState,
    name: &'a str,
    sender: &'a Sender<FromAgent>,
    generator: Option<(Plan, Box<dyn Crew>)>,
    step: u64,
}

impl Work<'_> {
    /// Carries out one command and answers it; `idle` is called before the answer. An error is why it is refused.
    fn carry_out(&mut self, command: Command, idle: impl FnOnce()) -> Result<(), String> {
        let answer = match command {
            Command::Prepare { plan, watch } => self.prepare(*plan, &watch)?,
            Command::Step { number, order, start_ns, watch } => {
                self.step(number, &order, start_ns, &watch)?
            }
        };
        idle();
        // If it cannot be sent, the reader will notice too, and end.
        match self.sender.send(&answer) {
            Err(LinkError::Message(error)) => Err(format!("the report of the step would be {error}")),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn prepare(&mut self, plan: Plan, watch: &Watch) -> Result<FromAgent, String> {
        if self.generator.is_some() {
            return Err("a second plan came; a run has one".to_owned());
        }
        check_plan(&plan, &self.state.allow, &self.state.limits)?;
        log::info!("{}: {}", self.name, plan_in_words(&plan));
        let (began, most) = (Instant::now(), self.state.limits.preparation_max);
        let crew = (self.state.make)(plan.clone(), watch).map_err(|why| match began.elapsed() >= most {
            true => format!(
                "its clients were not ready after {} s ({why}); take fewer clients or more agents",
                most.as_secs_f64()
            ),
            false => why,
        })?;
        self.generator = Some((plan, crew));
        Ok(FromAgent::Ready)
    }

    fn step(
        &mut self,
        number: u64,
        order: &Order,
        start_ns: u64,
        watch: &Watch,
    ) -> Result<FromAgent, String> {
        let Some((plan, crew)) = &mut self.generator else {
            return Err("an order came before the plan".to_owned());
        };
        if number != self.step + 1 {
            return Err(format!("step {number} was ordered after step {}", self.step));
        }
        check_order(order, plan, &self.state.limits)?;
        let now_ns = self.state.clock.now();
        let lead = i128::from(start_ns) - i128::from(now_ns);
        let may_start = (0..=LEAD_MAX.as_nanos() as i128).contains(&lead);
        let Some(start) = self.state.clock.instant(start_ns).filter(|_| may_start) else {
            let (lead, most) = (micros(lead), LEAD_MAX.as_secs());
            return Err(format!("the start is {lead} us from now, and not within 0 to {most} s"));
        };
        self.step = number;
        log::info!("{}: orders step {number}: {}", self.name, order_in_words(order));
        let mut part = match crew.step(order, start, watch) {
            Ok(part) => part,
            Err(error) => return Ok(FromAgent::Failed { step: number, why: error.to_string() }),
        };
        bound(&mut part);
        let has_begun = Instant::now() >= start;
        let late_ns = watch.start_late().map_or(0, nanos);
        Ok(FromAgent::Done {
            step: number,
            started_ns: has_begun.then(|| start_ns.saturating_add(late_ns)),
            counts: watch.counts(),
            part: Box::new(part),
        })
    }
}
