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
use authentick_net::poller::{EVENT_COUNT_MAX, Interest, Poller};
use authentick_net::udp::{ClientSocket, Hint, ReceiveBatch, SendBatch, hint, send_past_hints};
use authentick_report::load::Cause;
use rustix::io::Errno;

use super::exchanges::Exchanges;
use super::host_clock::HostClock;
use crate::limits::{
    BATCH_SIZE, CONNECTIONS_FROM, PATIENCE_MAX, QUOTE_SIZE_MAX, RECEIVE_COUNT_MAX, SOCKET_TURN_COUNT_MAX,
    SPIN_NS,
};
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

/// Source addresses, of which each socket gets the next one; those of other threads are passed over.
type Addresses = StepBy<Skip<Cycle<std::vec::IntoIter<IpAddr>>>>;

/// Where sockets stand: those of the background at addresses of their own, if there are any.
pub(super) struct Sources {
    all: Addresses,
    background: Option<Addresses>,
}

impl Sources {
    fn new(plan: &Plan, share: Share) -> Self {
        let of_thread = |addresses: &Vec<IpAddr>| {
            addresses.clone().into_iter().cycle().skip(share.index as usize).step_by(share.count as usize)
        };
        let background = &plan.background_sources;
        Sources {
            all: of_thread(&plan.sources),
            background: (!background.is_empty()).then(|| of_thread(background)),
        }
    }

    /// The address of the next socket, of a measured client or of the background; `None`: the host's choice.
    pub(super) fn next(&mut self, measured: bool) -> Option<IpAddr> {
        match &mut self.background {
            Some(background) if !measured => background.next(),
            Some(_) | None => self.all.next(),
        }
    }
}

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
    /// Numbers of descriptors that are ready, and whether an error waits there.
    ready: Vec<(u64, bool)>,
    /// How far all that has come was read.
    horizon: Horizon,
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
        let mut sockets = Sockets {
            core: Core::new(settings, entropy).map_err(|missing| missing.to_string())?,
            clock: HostClock::default(),
            poller: Poller::new().map_err(|error| format!("cannot wait for sockets: {error}"))?,
            clients: Vec::with_capacity(measured_count + background_count),
            sources: Sources::new(&plan, share),
            out: SendBatch::default(),
            apart: false,
            back: ReceiveBatch::default(),
            owners: Vec::with_capacity(BATCH_SIZE),
            ready: Vec::with_capacity(BATCH_SIZE),
            horizon: Horizon::default(),
            exchanges: Exchanges::new(plan.ke, plan.ke_timeout, ask),
            told: [0; 3],
        };
        for index in 0..measured_count + background_count {
            let source = sockets.sources.next(index < measured_count);
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
        socket.keep_reports()?;
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
    pub(crate) fn step(&mut self, order: &Order, start_ns: u64, watch: &Watch) -> Part {
        self.told = [0; 3];
        self.apart = false;
        self.core.start(order, start_ns);
        let dropped_before = self.dropped_count();
        let mut joined_before = self.out.joined_count();
        let from_ns = order.from_ns(start_ns);
        self.clock.start(from_ns, order.end_ns(start_ns));
        let mut planned_ns = self.core.first_due_ns();
        let mut now_ns = self.clock.monotonic_ns();
        loop {
            if watch.is_stopped() {
                self.core.stop(now_ns);
                self.clock.stop(now_ns);
            }
            if !order.warm_up.is_zero() && now_ns < from_ns {
                joined_before = self.out.joined_count();
            }
            let before = self.clock.account();
            let begun = self.begin_due(now_ns);
            // A thread whose turn comes later than the others' is not late for it.
            if let Some(planned_ns) = planned_ns.take_if(|_| begun) {
                watch.note_start(Duration::from_nanos(now_ns.saturating_sub(planned_ns)));
            }
            let happened = self.turn(now_ns, self.patience(now_ns));
            watch.tell(&mut self.told, self.core.progress());
            let then_ns = self.clock.monotonic_ns();
            if !begun && !happened {
                self.clock.idled(&before, now_ns, then_ns);
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
        let account = self.clock.account();
        let mut part = self.core.finish(account.idle_ns);
        part.joined = self.out.joined_count() - joined_before;
        part.evidence.stalls = account.stalls();
        // Those of the warm-up count too: looking at thousands of sockets in the middle would make the thread late.
        part.evidence.drops.unread = self.dropped_count().saturating_sub(dropped_before);
        part
    }

    /// Answers that the kernel dropped so far because this thread had not read earlier ones.
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
    ///
    /// A thread that was held up finds answers that came in time and requests whose time is up: it ends only what had
    /// waited too long at an instant up to which it has read all that came ([`Horizon`]).
    fn turn(&mut self, now_ns: u64, patience: Duration) -> bool {
        self.flush();
        // What follows a request that could not be sent does not wait.
        let patience = if self.core.slot() == 0 { patience } else { Duration::ZERO };
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        // The kernel fails to wait only if it is handed nonsense. If nothing is ready there is nothing to do.
        let _ = self.poller.wait(Duration::ZERO, |number, has_error| ready.push((number, has_error)));
        if ready.is_empty() && !patience.is_zero() {
            let from_ns = self.clock.monotonic_ns();
            let _ = self.poller.wait(patience, |number, has_error| ready.push((number, has_error)));
            self.clock.woke(from_ns, patience);
        }
        let mut is_complete = ready.len() < EVENT_COUNT_MAX;
        for &(number, has_error) in &ready {
            match number.checked_sub(CONNECTIONS_FROM) {
                None => is_complete &= self.receive(number as u32, has_error),
                Some(key) => self.go_on(key as usize),
            }
        }
        self.take_all();
        let happened = !ready.is_empty();
        self.ready = ready;
        let read_ns = self.horizon.read(now_ns, is_complete, self.clients.len());
        while self.tell(|core, desk| core.expire(read_ns, desk)) {}
        self.give_connections_up(read_ns);
        happened
    }

    /// Sends what is written if there is room for nothing more.
    fn make_room(&mut self) {
        if self.core.is_full() {
            self.flush();
        }
    }

    /// Sends all requests that are written, those of one client in one system call, and as one message unless the
    /// network or a queue of this host has said something in this step: what they say then is about each of them.
    fn flush(&mut self) {
        if !self.core.close_batch(self.out.buffers()) {
            return;
        }
        while let Some(Run { client, slots }) = self.core.next_run() {
            for slot in slots.clone() {
                self.out.set_size(slot, self.core.size_of(slot));
            }
            let from = self.clock.reading_before_sending();
            let (socket, joined) = (self.clients[client as usize].as_fd(), !self.apart);
            // What the network said of earlier requests waits among the reports; sending is tried again.
            let send = || self.out.send(socket, slots.clone(), joined);
            let sent = send_past_hints(send, |_| self.apart = true);
            let now_ns = self.clock.monotonic_ns();
            match sent {
                Ok(count) => self.core.departed(count, &from, now_ns - from.ns),
                Err(error) => {
                    let why = unsent(&error);
                    // Of one message some might be dropped in silence.
                    self.apart |= why == Unsent::NoRoom;
                    let mut desk = Desk { clock: &self.clock, out: self.out.buffer(self.core.slot()) };
                    self.core.not_sent(why, now_ns, &mut desk);
                }
            }
        }
    }

    /// Reads what waits on a client's socket, of which it looks at datagrams together with what waits on others;
    /// `false` if there may be more.
    fn receive(&mut self, index: u32, has_error: bool) -> bool {
        if self.back.room() < RECEIVE_COUNT_MAX {
            self.take_all();
        }
        let mut is_complete = !has_error || self.read_reports(index) < RECEIVE_COUNT_MAX;
        let Some(client) = self.clients.get(index as usize) else { return true };
        match self.back.receive(client.as_fd(), RECEIVE_COUNT_MAX) {
            Ok(count) => {
                self.owners.extend(std::iter::repeat_n(index, count));
                is_complete &= count < RECEIVE_COUNT_MAX;
            }
            Err(error) => {
                let hint = hint(&error);
                let is_reported = self.read_reports(index) > 0;
                if let Some(cause) = hint.filter(|_| !is_reported).map(cause_of) {
                    // The kernel had no room for what was quoted.
                    self.apart = true;
                    self.core.obstructed(index, &[], cause);
                }
                // Datagrams may wait behind the error.
                is_complete = false;
            }
        }
        is_complete
    }

    /// Tells the core what the network has said of a client's requests; returns how many messages there were, at most
    /// [`RECEIVE_COUNT_MAX`].
    fn read_reports(&mut self, index: u32) -> usize {
        let Some(client) = self.clients.get(index as usize) else { return 0 };
        let mut quote = [0; QUOTE_SIZE_MAX];
        for count in 0..RECEIVE_COUNT_MAX {
            let Ok(Some(report)) = client.next_report(&mut quote) else { return count };
            // A receiver on this host refuses what left as one message with one word, which quotes its beginning.
            self.apart = true;
            self.core.obstructed(index, &quote[..report.size], cause_of(report.hint));
        }
        RECEIVE_COUNT_MAX
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

/// The instant up to which all that has come was read.
///
/// A turn reads no more than [`RECEIVE_COUNT_MAX`] datagrams of a socket, and of [`EVENT_COUNT_MAX`] sockets, as
/// requests are to leave in time. If it leaves something, the instant stays until a turn leaves nothing. Where as much
/// comes as is read, that may never be: then it moves after so many turns that what was there at the first of them has
/// been read, as sockets have their turns one after the other, and each holds a bounded number of datagrams and gives
/// the oldest first.
#[derive(Clone, Copy, Debug, Default)]
struct Horizon {
    read_ns: u64,
    /// When the first of a row of turns that left something began, and how many there are.
    unread: Option<(u64, usize)>,
}

impl Horizon {
    /// A turn that began at `now_ns` has read from `client_count` sockets at most, everything if it `is_complete`;
    /// returns the instant.
    fn read(&mut self, now_ns: u64, is_complete: bool, client_count: usize) -> u64 {
        if is_complete {
            *self = Horizon { read_ns: now_ns, unread: None };
            return now_ns;
        }
        let (began_ns, turn_count) =
            self.unread.map_or((now_ns, 1), |(began_ns, count)| (began_ns, count + 1));
        let turn_count_max = SOCKET_TURN_COUNT_MAX * (client_count / EVENT_COUNT_MAX + 1);
        self.unread = Some((began_ns, turn_count)).filter(|_| turn_count < turn_count_max);
        if self.unread.is_none() {
            self.read_ns = began_ns;
        }
        self.read_ns
    }
}

/// What to do about a client without a socket.
fn remedy(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => "; raise the limit of open files (ulimit -n), or lower --clients",
        Some(Errno::ADDRNOTAVAIL) => {
            "; give --sources and --background-sources only addresses that this host has"
        }
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

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::agent::tests::plan;
    use crate::plan::Arrivals;

    /// A sending thread with one client of a server that this test plays.
    fn sockets(server: &UdpSocket, arrivals: Arrivals, share: Share) -> Sockets {
        let ntp = server.local_addr().unwrap();
        let plan = Plan { scheme: Scheme::Plain, ntp, clients: share.count, arrivals, ..plan() };
        let entropy = Entropy::from_system().unwrap();
        Sockets::new(Setup { plan: Arc::new(plan), ask: None, guide: None, share, entropy }).unwrap()
    }

    const ALONE: Share = Share { index: 0, count: 1 };

    #[test]
    fn turn_that_finds_something_is_work_and_waiting_is_none() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sockets = sockets(&server, Arrivals::Closed { window: 1 }, ALONE);
        let now_ns = sockets.clock.monotonic_ns();
        sockets.clock.start(0, u64::MAX);
        sockets.core.start(&Order { duration: Duration::from_secs(9), ..Order::default() }, now_ns);
        assert!(sockets.begin_due(now_ns));
        sockets.flush();
        let (_, client) = server.recv_from(&mut [0; 48]).unwrap();
        server.send_to(b"no answer", client).unwrap();
        assert!(sockets.turn(now_ns, PATIENCE_MAX));
        assert_eq!(sockets.clock.account().idle_ns, 0);
        assert!(!sockets.turn(now_ns, Duration::from_millis(5)));
        assert!(sockets.clock.account().idle_ns >= 5_000_000);
    }

    #[test]
    fn closed_loop_that_waits_for_its_server_is_idle() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sockets = sockets(&server, Arrivals::Closed { window: 1 }, ALONE);
        let order = Order { duration: Duration::from_millis(300), ..Order::default() };
        let part = sockets.step(&order, sockets.clock.monotonic_ns(), &Watch::default());
        let idle_share = part.evidence.idle_share.unwrap();
        assert!(idle_share > 0.5 && part.tally.lost > 0, "{idle_share} {:?}", part.evidence);
        assert_eq!(part.busy_share, Some(1.0 - idle_share));
    }

    #[test]
    fn thread_whose_turn_comes_later_is_not_late_for_it() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        // Two operations a second, of which this thread has the second.
        let mut sockets = sockets(&server, Arrivals::Constant, Share { index: 1, count: 4 });
        let order = Order { rate_rps: Some(2.0), duration: Duration::from_secs(1), ..Order::default() };
        let watch = Watch::default();
        sockets.step(&order, sockets.clock.monotonic_ns(), &watch);
        assert!(watch.start_late().is_some_and(|late| late < Duration::from_millis(450)), "{watch:?}");
    }

    #[test]
    fn nothing_expires_before_all_that_came_was_read() {
        let mut horizon = Horizon::default();
        assert_eq!(horizon.read(100, true, 1), 100);
        assert_eq!([200, 300].map(|now_ns| horizon.read(now_ns, false, 1)), [100, 100]);
        assert_eq!(horizon.read(400, true, 1), 400);
    }

    #[test]
    fn thread_that_never_reads_all_lets_expire_what_is_old() {
        for client_count in [1, 1000] {
            let mut horizon = Horizon::default();
            let turn_count = SOCKET_TURN_COUNT_MAX * (client_count / EVENT_COUNT_MAX + 1);
            let turns = 0..2 * turn_count as u64;
            let read: Vec<u64> = turns.map(|turn| horizon.read(1000 + turn, false, client_count)).collect();
            let (first, second) = read.split_at(turn_count);
            assert!(first[..turn_count - 1].iter().all(|&read_ns| read_ns == 0));
            assert_eq!(first.last(), Some(&1000));
            assert_eq!(second.last(), Some(&(1000 + turn_count as u64)));
        }
    }
}
