//! One sending thread: the sockets of its clients, and the loop that sends, receives and gives up.
//!
//! The loop never waits while something is due: it sends, handles what has arrived, ends requests that have waited too
//! long, and spins when the next request is near, since a sleeping thread wakes up too late.

use std::io;
use std::iter::{Cycle, Skip, StepBy};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_generator::schedule::Share;
use authentick_generator::{Clock, Core, Desk, Guide, Run, Settings, Unready, Unsent};
use authentick_ke::client::Ask;
use authentick_net::clock;
use authentick_net::poller::{Interest, Poller};
use authentick_net::udp::{ClientSocket, Hint, ReceiveBatch, SendBatch, hint, send_past_hints};
use authentick_report::load::Cause;
use authentick_wire::time::NtpTime;
use rustix::io::Errno;

use super::exchanges::Exchanges;
use crate::limits::{BATCH_SIZE, CONNECTIONS_FROM, PATIENCE_MAX, RECEIVE_COUNT_MAX, SPIN_NS};
use crate::plan::{Order, Part, Plan, Scheme, Watch};
use crate::shared_key::SharedKey;

/// What a sending thread needs to exist.
pub(crate) struct Setup {
    pub(crate) plan: Arc<Plan>,
    pub(crate) ask: Option<Ask>,
    pub(crate) guide: Option<Arc<Guide>>,
    pub(crate) share: Share,
    pub(crate) entropy: Entropy,
}

/// What it reports of a step.
pub(crate) struct Report {
    pub(crate) part: Part,
    /// Answers that the kernel dropped because this thread had not read earlier ones.
    pub(crate) dropped: u64,
}

/// The clocks of this host.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostClock;

impl Clock for HostClock {
    #[inline]
    fn monotonic_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    #[inline]
    fn time_of_day(&self) -> NtpTime {
        clock::now()
    }
}

/// Source addresses, of which each socket gets the next one; those of other threads are passed over.
type Sources = StepBy<Skip<Cycle<std::vec::IntoIter<IpAddr>>>>;

/// A sending thread's sockets, and the core that says what goes through them.
pub(crate) struct Sockets {
    pub(super) core: Core,
    pub(super) clock: HostClock,
    pub(super) poller: Poller,
    /// Those of the clients, by their numbers.
    clients: Vec<ClientSocket>,
    pub(super) sources: Sources,
    out: SendBatch,
    /// Whether each request takes a way of its own through the kernel, so that each is reported of.
    apart: bool,
    back: ReceiveBatch,
    /// Whose socket each datagram of `back` came from.
    owners: Vec<u32>,
    /// Numbers of descriptors that are ready.
    ready: Vec<u64>,
    pub(super) exchanges: Exchanges,
    /// Measured operations that were sent, answered and failed when the watch was told of them.
    told: [u64; 3],
}

impl Sockets {
    /// Opens the sockets of this thread's clients.
    ///
    /// # Errors
    /// A sentence on what the host refused, and the remedy.
    pub(crate) fn new(setup: Setup) -> Result<Self, String> {
        let Setup { plan, ask, guide, share, entropy } = setup;
        let own = |count: u32| ((count + share.count - 1 - share.index) / share.count) as usize;
        let (measured_count, background_count) = match plan.scheme == Scheme::Ke {
            true => (0, 0),
            false => (own(plan.clients), own(plan.background_clients)),
        };
        let settings = Settings {
            scheme: plan.scheme,
            arrivals: plan.arrivals,
            seed: plan.seed,
            share,
            measured_count,
            timeout: plan.timeout,
            ke_timeout: plan.ke_timeout,
            key: plan.shared_key.as_ref().map(SharedKey::expand).transpose()?,
            guide,
            alternative_keys: plan.alternative_keys,
            replay_cookie: plan.replay_cookie,
            joinable: plan.joinable,
        };
        let sources = plan.sources.clone().into_iter().cycle();
        let mut sockets = Sockets {
            core: Core::new(settings, entropy).map_err(|missing| missing.to_string())?,
            clock: HostClock,
            poller: Poller::new().map_err(|error| format!("cannot wait for sockets: {error}"))?,
            clients: Vec::with_capacity(measured_count + background_count),
            sources: sources.skip(share.index as usize).step_by(share.count as usize),
            out: SendBatch::default(),
            apart: false,
            back: ReceiveBatch::default(),
            owners: Vec::with_capacity(BATCH_SIZE),
            ready: Vec::with_capacity(BATCH_SIZE),
            exchanges: Exchanges::new(plan.ke, plan.ke_timeout, ask),
            told: [0; 3],
        };
        for index in 0..measured_count + background_count {
            let source = sockets.sources.next();
            sockets.open_client(&plan, index, source).map_err(|error| {
                let from = source.map_or(String::new(), |source| format!(" from {source}"));
                let count = measured_count + background_count;
                format!("client {} of {count}{from}: {error}{}", index + 1, remedy(&error))
            })?;
        }
        Ok(sockets)
    }

    fn open_client(&mut self, plan: &Plan, index: usize, source: Option<IpAddr>) -> io::Result<()> {
        let socket = ClientSocket::connect_from(plan.ntp, source)?;
        self.core.add_client(socket.local()?);
        self.poller.add(&socket, index as u64, Interest::Read)?;
        self.clients.push(socket);
        Ok(())
    }

    /// Gets for every client what it needs before any load: first keys, or sealed state of ANTP.
    ///
    /// # Errors
    /// Why a client has none.
    pub(crate) fn prepare(&mut self, watch: &Watch) -> Result<(), Unready> {
        if self.core.begin_preparation(self.clock.monotonic_ns()).is_none() {
            return Ok(());
        }
        loop {
            let now_ns = self.clock.monotonic_ns();
            let mut connection_count = self.exchanges.connection_count();
            while self.tell(|core, desk| core.prepare(now_ns, connection_count, desk)) {
                self.begin_exchanges();
                connection_count = self.exchanges.connection_count();
            }
            self.turn(now_ns, PATIENCE_MAX);
            let readiness = self.core.readiness(now_ns, watch.is_stopped())?;
            watch.add_ready(readiness.new_count);
            if readiness.is_complete {
                return Ok(());
            }
        }
    }

    /// Sends for one step, and waits until everything has ended.
    pub(crate) fn step(&mut self, order: &Order, start_ns: u64, watch: &Watch) -> Report {
        self.told = [0; 3];
        self.apart = false;
        self.core.start(order, start_ns);
        let dropped_before = self.dropped_count();
        let end_ns = order.end_ns(start_ns);
        let (mut idle_ns, mut started) = (0, false);
        let mut now_ns = self.clock.monotonic_ns();
        loop {
            if watch.is_stopped() {
                self.core.stop(now_ns);
            }
            let begun = self.begin_due(now_ns);
            if begun && !started {
                started = true;
                watch.note_start(Duration::from_nanos(now_ns.saturating_sub(start_ns)));
            }
            let happened = self.turn(now_ns, self.patience(now_ns));
            watch.tell(&mut self.told, self.core.progress());
            let then_ns = self.clock.monotonic_ns();
            if !begun && !happened && then_ns < end_ns && now_ns >= start_ns {
                idle_ns += then_ns - now_ns;
            }
            now_ns = then_ns;
            if self.core.is_over(now_ns) {
                break;
            }
        }
        watch.tell(&mut self.told, self.core.progress());
        if self.out.joins() {
            watch.note_joins();
        }
        let part = self.core.finish(idle_ns);
        Report { part, dropped: self.dropped_count().saturating_sub(dropped_before) }
    }

    fn dropped_count(&self) -> u64 {
        self.clients.iter().filter_map(|client| client.dropped_count().ok()).sum()
    }

    /// Begins what is due at `now_ns`; `true` if there was anything.
    fn begin_due(&mut self, now_ns: u64) -> bool {
        self.core.open_turn();
        loop {
            let more = self.tell(|core, desk| core.begin(now_ns, desk));
            self.begin_exchanges();
            if !more {
                return self.core.has_begun();
            }
        }
    }

    /// How long the thread may sleep.
    fn patience(&self, now_ns: u64) -> Duration {
        let due_ns = self.core.next_due_ns(now_ns).into_iter().chain(self.exchanges.next_due_ns()).min();
        let left_ns = due_ns.map_or(u64::MAX, |due_ns| due_ns.saturating_sub(now_ns));
        Duration::from_nanos(left_ns.saturating_sub(SPIN_NS)).min(PATIENCE_MAX)
    }

    /// Sends what is written, receives, and ends what has waited too long; `true` if anything was done.
    fn turn(&mut self, now_ns: u64, patience: Duration) -> bool {
        self.flush();
        // What follows a request that could not be sent does not wait.
        let patience = if self.core.slot() == 0 { patience } else { Duration::ZERO };
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        // The kernel fails to wait only if it is handed nonsense.
        let _ = self.poller.wait(patience, |number| ready.push(number));
        for &number in &ready {
            match number.checked_sub(CONNECTIONS_FROM) {
                None => self.receive(number as u32),
                Some(key) => self.go_on(key as usize),
            }
        }
        self.take_all();
        let happened = !ready.is_empty();
        self.ready = ready;
        while self.tell(|core, desk| core.expire(now_ns, desk)) {}
        self.give_connections_up(now_ns);
        happened
    }

    /// Sends what is written if there is room for nothing more.
    fn make_room(&mut self) {
        if self.core.is_full() {
            self.flush();
        }
    }

    /// Sends all requests that are written, those of one client in one system call, and as one message unless the
    /// network has said something in this step: what it says then is about each of them.
    fn flush(&mut self) {
        if !self.core.close_batch(self.out.buffers()) {
            return;
        }
        while let Some(Run { client, slots }) = self.core.next_run() {
            for slot in slots.clone() {
                self.out.set_size(slot, self.core.size_of(slot));
            }
            let from = self.clock.reading_before_sending();
            let (socket, mut told) = (self.clients[client as usize].as_fd(), None);
            // ICMP errors of earlier requests are recorded, and sending is tried again.
            let joined = !self.apart;
            let send = || self.out.send(socket, slots.clone(), joined);
            let sent = send_past_hints(send, |hint| told = Some(cause_of(hint)));
            let now_ns = self.clock.monotonic_ns();
            if let Some(cause) = told {
                self.apart = true;
                self.core.obstructed(client, cause, now_ns);
            }
            match sent {
                Ok(count) => self.core.departed(count, &from, now_ns - from.ns),
                Err(error) => {
                    let mut desk = Desk { clock: &self.clock, out: self.out.buffer(self.core.slot()) };
                    self.core.not_sent(unsent(&error), now_ns, &mut desk);
                }
            }
        }
    }

    /// Reads what waits on a client's socket. It is looked at together with what waits on others.
    fn receive(&mut self, index: u32) {
        if self.back.room() < RECEIVE_COUNT_MAX {
            self.take_all();
        }
        let Some(client) = self.clients.get(index as usize) else { return };
        match self.back.receive(client.as_fd(), RECEIVE_COUNT_MAX) {
            Ok(count) => self.owners.extend(std::iter::repeat_n(index, count)),
            Err(error) => {
                if let Some(cause) = hint(&error).map(cause_of) {
                    // A receiver on this host refuses what left as one message with one word.
                    self.apart = true;
                    self.core.obstructed(index, cause, self.clock.monotonic_ns());
                }
            }
        }
    }

    /// Looks at all datagrams that were read: those that may be answers are opened side by side.
    fn take_all(&mut self) {
        if self.owners.is_empty() {
            return;
        }
        // Receive stamps are by the time of day and the schedule is not: both clocks are read together, now.
        let now = self.clock.reading();
        for number in 0..self.owners.len() {
            self.make_room();
            let arrival = self.back.arrival(number);
            let mut desk = Desk { clock: &self.clock, out: self.out.buffer(self.core.slot()) };
            self.core.inspect(self.owners[number], arrival.octets, now.arrival(arrival.at), &mut desk);
        }
        self.core.verify(self.back.datagrams(), &self.clock);
        for number in 0..self.owners.len() {
            if self.core.is_candidate(number) {
                self.make_room();
                let arrival = self.back.arrival(number);
                let mut desk = Desk { clock: &self.clock, out: self.out.buffer(self.core.slot()) };
                self.core.conclude(number, arrival.octets, now.arrival(arrival.at), &mut desk);
            }
        }
        self.core.concluded();
        self.back.clear();
        self.owners.clear();
        self.begin_exchanges();
    }

    /// Tells the core something, with room for the request that may follow.
    pub(super) fn tell<T>(&mut self, tell: impl FnOnce(&mut Core, &mut Desk<'_, HostClock>) -> T) -> T {
        self.make_room();
        let mut desk = Desk { clock: &self.clock, out: self.out.buffer(self.core.slot()) };
        tell(&mut self.core, &mut desk)
    }
}

/// What to do about a client without a socket.
fn remedy(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => "; raise the limit of open files (ulimit -n), or lower --clients",
        Some(Errno::ADDRNOTAVAIL) => "; give --sources only addresses that this host has",
        Some(Errno::ADDRINUSE) => "; no port is left: spread the clients with --sources, or lower --clients",
        _ => "",
    }
}

/// Why a request could not be sent.
fn unsent(error: &io::Error) -> Unsent {
    match hint(error) {
        Some(hint) => Unsent::Obstacle(cause_of(hint)),
        // In the socket's buffer, and in the interface's.
        None if matches!(Errno::from_io_error(error), Some(Errno::AGAIN | Errno::NOBUFS)) => Unsent::NoRoom,
        None => Unsent::Local,
    }
}

/// What the network says about requests, as opposed to what this host does.
const fn cause_of(hint: Hint) -> Cause {
    match hint {
        Hint::Refused => Cause::Refused,
        Hint::Unreachable => Cause::Unreachable,
    }
}
