//! One sending thread: its clients, its share of the schedule, and the loop that sends, receives and gives up.
//!
//! - `send`: beginning operations, and batches of requests.
//! - `receive`: answers, and everything else that arrives.
//! - `keys`: key exchanges, and what follows them; `antp`: operations of ANTP, and the sealed state that they need.
//! - `ledger`: counts, and whether the generator did its part.
//!
//! The loop never waits while something is due: it sends, looks at what has arrived, ends what has waited too long, and
//! spins when the next request is near, since a sleeping thread wakes too late.

mod antp;
mod keys;
mod ledger;
mod receive;
mod send;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_ke::client::Ask;
use authentick_net::clock::monotonic_ns;
use authentick_net::poller::{Interest, Poller};
use authentick_net::udp::{ReceiveBatch, SendBatch};
use authentick_proto::symmetric::SymmetricKey;
use slab::Slab;

use self::ledger::Ledger;
use self::receive::Inspected;
use self::send::Pending;
use crate::antp::{Figures, Guide, Operation, Trusted};
use crate::client::Client;
use crate::connection::Connection;
use crate::counts::{Counts, Times};
use crate::flight::{Due, Flights};
use crate::limits;
use crate::plan::{Arrivals, Joinable, Order, Part, Plan, Scheme, Watch};
use crate::schedule::{Schedule, Share};
use crate::shared_key::SharedKey;

/// What a worker needs to exist.
pub(crate) struct Setup {
    pub(crate) plan: Arc<Plan>,
    pub(crate) ask: Option<Ask>,
    pub(crate) guide: Option<Arc<Guide>>,
    pub(crate) share: Share,
    pub(crate) entropy: Entropy,
}

/// A group of clients with a schedule of its own.
struct Stream {
    schedule: Schedule,
    /// The instant of the schedule's zero, monotonic.
    start_ns: u64,
    measured: bool,
    /// Operations of it in flight.
    in_flight: u32,
}

/// A thread's state.
pub(crate) struct Worker {
    plan: Arc<Plan>,
    ask: Option<Ask>,
    /// The key that all clients share with the server.
    key: Option<SymmetricKey>,
    /// How ANTP is spoken, and what was learned of the server.
    guide: Option<Arc<Guide>>,
    trusted: Option<Trusted>,
    /// Time requests of ANTP that have ended, for the room that they take.
    #[expect(clippy::vec_box, reason = "flights hold boxes")]
    spares: Vec<Box<Operation>>,
    figures: Option<Box<Figures>>,
    share: Share,
    entropy: Entropy,
    poller: Poller,
    out: SendBatch,
    pending: Vec<Pending>,
    back: ReceiveBatch,
    /// Whose socket each datagram of `back` came from.
    owners: Vec<u32>,
    /// What became of them, while they are looked at.
    inspected: Vec<Option<Inspected>>,
    ready: Vec<u64>,
    flights: Flights,
    connections: Slab<Connection>,
    /// No connection's time is up before this.
    connections_due_ns: u64,
    clients: Vec<Client>,
    /// Clients whose figures count come first.
    measured_count: usize,
    /// Where the search for a client goes on, in each group.
    cursors: [usize; 2],
    /// How many operations of each group began together last.
    together: [usize; 2],
    sources: Vec<IpAddr>,
    source_index: usize,
    ledger: Ledger,
    lateness: Times,
    joinables: Vec<Joinable>,
    request_size: usize,
    streams: Vec<Stream>,
    stopped: bool,
    /// When a measured operation was sent last.
    last_sent_ns: u64,
    /// Measured operations that were sent, answered and failed when the watch was told last.
    told: [u64; 3],
}

/// What a worker reports of a step.
pub(crate) struct Report {
    pub(crate) part: Part,
    /// Answers that the kernel dropped since this thread had not read the ones before.
    pub(crate) dropped: u64,
}

impl Worker {
    /// Opens the sockets of this worker's clients.
    ///
    /// # Errors
    /// A sentence on what the host refused, and the remedy.
    pub(crate) fn new(setup: Setup) -> Result<Self, String> {
        let Setup { plan, ask, guide, share, entropy } = setup;
        let timeout_ns = u64::try_from(plan.timeout.as_nanos()).unwrap_or(u64::MAX / 4);
        let mut worker = Worker {
            ask,
            key: plan.shared_key.as_ref().map(SharedKey::expand).transpose()?,
            figures: guide.as_ref().map(|_| Box::default()),
            guide,
            trusted: None,
            spares: Vec::new(),
            share,
            entropy,
            poller: Poller::new().map_err(|error| format!("cannot wait for sockets: {error}"))?,
            out: SendBatch::default(),
            pending: Vec::with_capacity(limits::BATCH_SIZE),
            back: ReceiveBatch::default(),
            owners: Vec::with_capacity(limits::BATCH_SIZE),
            inspected: Vec::with_capacity(limits::BATCH_SIZE),
            ready: Vec::with_capacity(limits::BATCH_SIZE),
            flights: Flights::new(timeout_ns),
            connections: Slab::new(),
            connections_due_ns: u64::MAX,
            clients: Vec::new(),
            measured_count: 0,
            cursors: [0; 2],
            together: [1; 2],
            sources: plan.sources.clone(),
            source_index: share.index as usize,
            ledger: Ledger::new(plan.scheme),
            lateness: Times::default(),
            joinables: Vec::new(),
            request_size: 0,
            streams: Vec::new(),
            stopped: false,
            last_sent_ns: 0,
            told: [0; 3],
            plan,
        };
        worker.open_clients()?;
        Ok(worker)
    }

    fn open_clients(&mut self) -> Result<(), String> {
        if self.plan.scheme == Scheme::Ke {
            return Ok(());
        }
        let own = |count: u32| (count + self.share.count - 1 - self.share.index) / self.share.count;
        let (measured, background) = (own(self.plan.clients), own(self.plan.background_clients));
        self.measured_count = measured as usize;
        for index in 0..measured + background {
            let source = self.next_source();
            let client = Client::connect(self.plan.ntp, source, index < measured).map_err(|error| {
                let from = source.map_or(String::new(), |source| format!(" from {source}"));
                let remedy = match error.raw_os_error() {
                    Some(24) => "; raise the limit of open files (ulimit -n), or lower --clients",
                    Some(99) => "; give --sources only addresses that this host has",
                    Some(98) => "; no port is left: spread the clients with --sources, or lower --clients",
                    _ => "",
                };
                format!("client {} of {}{from}: {error}{remedy}", index + 1, measured + background)
            })?;
            self.poller
                .add(&client.socket, u64::from(index), Interest::Read)
                .map_err(|error| format!("client {}: {error}", index + 1))?;
            self.clients.push(client);
        }
        Ok(())
    }

    fn next_source(&mut self) -> Option<IpAddr> {
        let source = *self.sources.get(self.source_index % self.sources.len().max(1))?;
        self.source_index += self.share.count as usize;
        Some(source)
    }

    /// Sends for one step, and waits until everything has ended.
    pub(crate) fn step(&mut self, order: &Order, start_ns: u64, watch: &Watch) -> Report {
        self.clear();
        self.stopped = false;
        self.last_sent_ns = 0;
        let dropped_before = self.dropped_count();
        let (arrivals, seed) = (self.plan.arrivals, self.plan.seed);
        let lead = if order.background_rps > 0.0 { limits::BACKGROUND_LEAD } else { Duration::ZERO };
        let lead_ns = lead.as_nanos() as u64;
        let duration_ns = u64::try_from(order.duration.as_nanos()).unwrap_or(u64::MAX / 2);
        self.streams = vec![Stream {
            schedule: Schedule::new(
                arrivals,
                order.rate_rps.unwrap_or(0.0),
                order.duration,
                self.share,
                seed,
            ),
            start_ns,
            measured: true,
            in_flight: 0,
        }];
        if order.background_rps > 0.0 {
            let background = match arrivals {
                Arrivals::Closed { .. } => Arrivals::Constant,
                open => open,
            };
            let duration = order.duration + lead;
            self.streams.push(Stream {
                schedule: Schedule::new(background, order.background_rps, duration, self.share, !seed),
                start_ns: start_ns.saturating_sub(lead_ns),
                measured: false,
                in_flight: 0,
            });
        }
        let end_ns = start_ns.saturating_add(duration_ns);
        let (mut idle_ns, mut ended_ns, mut started) = (0, end_ns, false);
        let mut now_ns = monotonic_ns();
        loop {
            if watch.is_stopped() && !self.stopped {
                self.stopped = true;
                ended_ns = ended_ns.min(now_ns);
            }
            let begun = self.begin_due(now_ns, end_ns);
            if begun && !started {
                started = true;
                watch.note_start(Duration::from_nanos(now_ns.saturating_sub(start_ns)));
            }
            let happened = self.turn(now_ns, self.patience(now_ns, end_ns));
            self.tell(watch);
            let then_ns = monotonic_ns();
            if !begun && !happened && then_ns < end_ns && now_ns >= start_ns {
                idle_ns += then_ns - now_ns;
            }
            now_ns = then_ns;
            if (self.stopped || now_ns >= end_ns) && !self.is_busy() && self.nothing_due(end_ns) {
                break;
            }
        }
        self.tell(watch);
        // Who is late sends beyond the end, and must not look faster for it.
        let lasted_ns = ended_ns.max(self.last_sent_ns).saturating_sub(start_ns);
        let part = self.part(lasted_ns, idle_ns);
        Report { part, dropped: self.dropped_count().saturating_sub(dropped_before) }
    }

    fn clear(&mut self) {
        self.ledger.clear();
        self.lateness.clear();
        self.joinables.clear();
        if let Some(figures) = &mut self.figures {
            figures.clear();
        }
        self.request_size = 0;
        self.told = [0; 3];
        // What came after the end of the last step belongs to none.
        for client in &mut self.clients {
            client.take_strangers();
        }
    }

    fn dropped_count(&self) -> u64 {
        self.clients.iter().filter_map(|client| client.socket.dropped_count().ok()).sum()
    }

    /// Whether every instant of the schedules has passed or is given up.
    fn nothing_due(&self, end_ns: u64) -> bool {
        let closed = matches!(self.plan.arrivals, Arrivals::Closed { .. });
        self.stopped
            || (closed && monotonic_ns() >= end_ns)
            || self.streams.iter().all(|stream| stream.schedule.next_ns().is_none())
    }

    /// Whether an operation has not ended.
    fn is_busy(&self) -> bool {
        self.flights.count() > 0
            || !self.pending.is_empty()
            || self.connections.iter().any(|(_, connection)| !connection.is_lingering())
            || self.streams.iter().any(|stream| stream.in_flight > 0)
    }

    /// How long nothing has to be done.
    fn patience(&self, now_ns: u64, end_ns: u64) -> Duration {
        let due = self
            .streams
            .iter()
            .filter(|_| !self.stopped)
            .filter_map(|stream| Some(stream.start_ns + stream.schedule.next_ns()?));
        let connections = (!self.connections.is_empty()).then_some(self.connections_due_ns);
        let closing = (now_ns < end_ns).then_some(end_ns);
        let next_ns = due.chain(self.flights.next_due_ns()).chain(connections).chain(closing).min();
        let left_ns = next_ns.map_or(u64::MAX, |next_ns| next_ns.saturating_sub(now_ns));
        Duration::from_nanos(left_ns.saturating_sub(limits::SPIN_NS)).min(limits::PATIENCE_MAX)
    }

    /// Sends what is pending, receives, and ends what has waited too long; `true` if anything was done.
    fn turn(&mut self, now_ns: u64, patience: Duration) -> bool {
        self.flush();
        // What follows a request that could not be sent does not wait.
        let patience = if self.pending.is_empty() { patience } else { Duration::ZERO };
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        // The kernel fails to wait only if it is handed nonsense.
        let _ = self.poller.wait(patience, |number| ready.push(number));
        for &number in &ready {
            match number.checked_sub(limits::CONNECTIONS_FROM) {
                None => self.receive(number as usize),
                Some(key) => self.go_on(key as usize),
            }
        }
        self.take_all();
        let happened = !ready.is_empty();
        self.ready = ready;
        self.give_up(now_ns);
        happened
    }

    /// Ends what has waited too long.
    fn give_up(&mut self, now_ns: u64) {
        while let Some(due) = self.flights.due(now_ns) {
            match due {
                Due::Overdue { client, principal } => {
                    self.clients[client as usize].outstanding -= 1;
                    self.datagram_ended(client, principal);
                }
                Due::Over(flight) => {
                    let client = &mut self.clients[flight.client as usize];
                    let why = client.why_unanswered(flight.sent_ns);
                    let measured = client.measured;
                    self.ledger.of(measured, flight.principal).fail(flight.noted.unwrap_or(why));
                }
            }
        }
        if now_ns >= self.connections_due_ns {
            self.give_connections_up(now_ns);
        }
    }

    /// How late one request in a hundred may be; in a closed loop nothing is due, so nothing is late.
    fn lateness_max_ns(&self) -> u64 {
        match (self.plan.arrivals, self.plan.scheme) {
            (Arrivals::Closed { .. }, _) => u64::MAX,
            (_, Scheme::Plain | Scheme::Mac | Scheme::Nts) => limits::LATENESS_MAX_NS,
            (_, Scheme::AntpNegotiate | Scheme::Antp) => limits::LATENESS_MAX_NS,
            (_, Scheme::Ke | Scheme::Mix { .. }) => limits::KE_LATENESS_MAX_NS,
            // Each costs a thread public-key work of its own.
            (_, Scheme::AntpExchange | Scheme::AntpFull) => limits::KE_LATENESS_MAX_NS,
        }
    }

    fn transfers_are_principal(&self) -> bool {
        self.plan.scheme.measures_transfers()
    }

    /// An operation of a stream has ended, so that a closed loop may begin another one.
    fn operation_ended(&mut self, measured: bool) {
        for stream in &mut self.streams {
            if stream.measured == measured {
                stream.in_flight = stream.in_flight.saturating_sub(1);
            }
        }
    }

    /// A transfer is over for its client: the next one of a key exchange follows, or the operation has ended.
    fn transfer_ended(&mut self, index: u32) {
        match self.plan.scheme {
            Scheme::Plain
            | Scheme::Mac
            | Scheme::Nts
            | Scheme::AntpNegotiate
            | Scheme::AntpExchange
            | Scheme::Antp
            | Scheme::AntpFull => {
                self.operation_ended(self.clients[index as usize].measured);
            }
            Scheme::Mix { .. } => self.follow(index),
            Scheme::Ke => {}
        }
    }

    /// A datagram is over for its client, with an answer or without.
    fn datagram_ended(&mut self, index: u32, principal: bool) {
        match self.plan.scheme.is_antp() && !principal {
            true => self.clients[index as usize].not_established(monotonic_ns()),
            false => self.transfer_ended(index),
        }
    }

    fn tell(&mut self, watch: &Watch) {
        let counts = &self.ledger.principal;
        let now = [counts.sent, counts.answered, counts.failed];
        if now != self.told {
            let [sent, answered, failed] = std::array::from_fn(|index| now[index] - self.told[index]);
            watch.add(sent, answered, failed);
            self.told = now;
        }
    }

    fn part(&mut self, lasted_ns: u64, idle_ns: u64) -> Part {
        for client in &mut self.clients {
            let count = client.take_strangers();
            let principal = self.plan.scheme.measures_transfers();
            self.ledger.of(client.measured, principal).surplus += count;
        }
        let some = |counts: &Counts| (counts.scheduled > 0).then(|| counts.tally());
        let seconds = lasted_ns as f64 / 1e9;
        let background = some(&self.ledger.background).map(|tally| tally.without_histograms());
        Part {
            tally: self.ledger.principal.tally(),
            accompanying: some(&self.ledger.accompanying),
            background,
            seconds,
            why_invalid: self.ledger.why_invalid(self.lateness_max_ns(), &self.lateness),
            lateness_ns: self.lateness.stored(),
            busy_share: (lasted_ns > 0).then(|| (1.0 - idle_ns as f64 / lasted_ns as f64).clamp(0.0, 1.0)),
            request_size: self.request_size as u32,
            joinables: std::mem::take(&mut self.joinables),
            antp: self.figures.as_ref().map(|figures| figures.stored(seconds)),
        }
    }
}
