//! A load run in virtual time: the generator's core, the server, and a network that knows what it does to each request.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

use authentick_crypto::{Algorithm, Entropy};
use authentick_generator::limits::{BACKGROUND_LEAD, BATCH_SIZE};
use authentick_generator::schedule::{Schedule, Share};
use authentick_generator::{
    Arrivals, Arrived, Buffer, Clock, Core, Counts, Desk, Order, Reading, Run, Scheme, Unsent,
};
use authentick_report::load::{Cause, Stray};
use authentick_sim::{Clock as SkewedClock, TrueTime};
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;

use super::deed::{Deed, End};
use super::network::{Event, Network, Part, Sent, TRANSMIT, address, field};
use super::scenario::{KE_TIMEOUT_NS, Scenario, TIMEOUT_NS};

/// More turns than this no run takes; one that does hangs.
const TURN_COUNT_MAX: usize = 100_000;
/// The groups of operations, each by whether the scheme is named for them.
const GROUPS: [(Group, bool); 6] = [
    (Group::Measured, true),
    (Group::Measured, false),
    (Group::WarmUp, true),
    (Group::WarmUp, false),
    (Group::Background, true),
    (Group::Background, false),
];

/// Whose operations they are.
#[derive(Clone, Copy, Debug)]
enum Group {
    Measured,
    /// Those of measured clients that were due before the measured time.
    WarmUp,
    Background,
}

impl Group {
    fn counts(self, core: &Core, principal: bool) -> &Counts {
        match self {
            Group::Measured => core.counts(true, principal),
            Group::WarmUp => core.warm_up_counts(principal),
            Group::Background => core.counts(false, principal),
        }
    }
}

/// Every kind of stray.
const STRAYS: [Stray; 4] = [Stray::Duplicate, Stray::BadOrigin, Stray::Malformed, Stray::Obstacle];

/// A datagram: when it came, to whom, what it holds, and what it is.
type Datagram = (u64, u32, Vec<u8>, Part);

/// Where the generator said something else than what the world did, and how often.
pub(crate) type Differences = BTreeMap<(Deed, End), u64>;

/// The generator's clocks. A reading takes some time.
#[derive(Debug, Default)]
struct VirtualClock(Cell<u64>);

impl Clock for VirtualClock {
    fn monotonic_ns(&self) -> u64 {
        self.0.set(self.0.get() + 40);
        self.0.get()
    }

    fn time_of_day(&self) -> NtpTime {
        SkewedClock::default().at(TrueTime(self.0.get()))
    }
}

/// What a change of the counts is about.
#[derive(Clone, Copy, Debug)]
enum Subject {
    Request(u64),
    Exchange(End),
    Nothing,
}

/// How many operations of a constant rate are due in the warm-up, and after it, in a run of this seed.
fn due_counts(order: &Order, seed: u64) -> [u64; 2] {
    let share = Share { index: 0, count: 1 };
    let rate_rps = order.rate_rps.unwrap_or(0.0);
    let count = |duration| {
        let mut schedule = Schedule::new(Arrivals::Constant, rate_rps, duration, share, order.seed(seed));
        std::iter::from_fn(|| schedule.next_ns().inspect(|_| schedule.advance())).count() as u64
    };
    let warm_up = count(order.warm_up);
    [warm_up, count(order.warm_up + order.duration) - warm_up]
}

/// A run.
pub(crate) struct World {
    seed: u64,
    core: Core,
    clock: VirtualClock,
    network: Network,
    buffers: Vec<Buffer>,
    /// What has reached the generator, which has not looked yet.
    inbox: VecDeque<(u64, Event)>,
    /// Transmit timestamps in the order of sending.
    order: VecDeque<u64>,
    /// What the counts were: answers, and failures by their causes.
    counted: [[u64; Cause::ALL.len() + 1]; GROUPS.len()],
    /// What came since the beginning of the step that belongs to no request.
    strays: BTreeMap<Stray, u64>,
    connection_count: usize,
    pub(crate) differences: Differences,
    pub(crate) request_count: u64,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut entropy = Entropy::from_seed(seed);
        let scenario = Scenario::new(&mut entropy);
        let core = Core::new(scenario.settings(seed), Entropy::from_seed(entropy.u64()));
        let client_count = match scenario.scheme == Scheme::Ke {
            true => 0,
            false => scenario.measured_count + scenario.background_count,
        };
        let mut core = core.expect("the settings are complete");
        (0..client_count).for_each(|number| core.add_client(address(number as u32)));
        World {
            seed,
            core,
            clock: VirtualClock(Cell::new(1_000_000_000)),
            network: Network::new(scenario, entropy),
            buffers: vec![[0; DATAGRAM_SIZE_MAX]; BATCH_SIZE],
            inbox: VecDeque::new(),
            order: VecDeque::new(),
            counted: [[0; _]; _],
            strays: BTreeMap::new(),
            connection_count: 0,
            differences: Differences::new(),
            request_count: 0,
        }
    }

    /// The whole run; all that always holds is asserted.
    pub(crate) fn carry_out(&mut self) {
        if !self.prepare() {
            return self.check_sums();
        }
        self.network.is_kind = false;
        for order in self.network.scenario.orders.clone() {
            self.step(&order);
        }
    }

    /// Clients get what they need; `false` if they do not.
    fn prepare(&mut self) -> bool {
        if self.core.begin_preparation(self.clock.monotonic_ns()).is_none() {
            return true;
        }
        for _ in 0..TURN_COUNT_MAX {
            let now_ns = self.clock.monotonic_ns();
            while self.tell(Subject::Nothing, |core, count, desk| core.prepare(now_ns, count, desk)) {
                self.begin_exchanges();
            }
            self.turn(now_ns);
            match self.core.readiness(now_ns, false) {
                Ok(readiness) if readiness.is_complete => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
        panic!("the preparation hangs");
    }

    fn step(&mut self, order: &Order) {
        let start_ns = self.clock.monotonic_ns() + BACKGROUND_LEAD.as_nanos() as u64 + 1_000_000;
        self.network.start_ns = Some(start_ns);
        self.core.start(order, start_ns);
        self.counted = [[0; _]; _];
        self.strays.clear();
        let mut turn_count = 0;
        let mut now_ns = self.clock.monotonic_ns();
        let stop_ns = start_ns + self.network.below(8) * 30_000_000;
        let mut is_stopped = false;
        while !self.core.is_over(now_ns) {
            // Some steps are stopped, before anything began or while it goes on.
            if stop_ns < start_ns + 90_000_000 && now_ns >= stop_ns {
                self.core.stop(now_ns);
                is_stopped = true;
            }
            self.core.open_turn();
            while self.tell(Subject::Nothing, |core, _, desk| core.begin(now_ns, desk)) {
                self.begin_exchanges();
            }
            self.begin_exchanges();
            self.turn(now_ns);
            now_ns = self.clock.monotonic_ns();
            turn_count += 1;
            assert!(turn_count < TURN_COUNT_MAX, "the step hangs: {:?}", self.core);
        }
        self.check_sums();
        let part = self.core.finish(0);
        let tallies = [Some(&part.tally), part.accompanying.as_ref(), part.background.as_ref()];
        for tally in tallies.into_iter().flatten() {
            assert!(tally.adds_up(), "{tally:?}");
        }
        assert!(self.order.iter().all(|transmit| !self.core.is_waiting(*transmit)));
        if !is_stopped && self.network.scenario.arrivals == Arrivals::Constant {
            let [warm_up, measured] = due_counts(order, self.seed);
            assert_eq!(part.tally.scheduled, measured, "those of the measured time alone count");
            assert_eq!(self.core.warm_up_counts(true).scheduled, warm_up);
        }
    }

    /// scheduled = sent + skipped, and sent = answered + lost + invalid, in each group.
    fn check_sums(&self) {
        if self.core.is_busy() {
            // Clients did not get ready, and some still try.
            return;
        }
        for (group, principal) in GROUPS {
            let tally = group.counts(&self.core, principal).tally();
            assert!(tally.adds_up(), "{group:?}, principal {principal}: {tally:?}");
        }
    }

    /// As the loop around the core does: sends, waits, receives, and ends what has waited too long.
    fn turn(&mut self, now_ns: u64) {
        self.flush();
        if self.core.slot() == 0 {
            self.wait(now_ns);
        }
        // All that has come by now is read before anything expires that had waited too long by then.
        while let Some(event) = self.network.next(self.clock.0.get()) {
            self.inbox.push_back(event);
        }
        self.receive();
        self.check_strays();
        self.begin_exchanges();
        loop {
            let subject = self.expiring(now_ns);
            if !self.tell(subject, |core, _, desk| core.expire(now_ns, desk)) {
                break;
            }
        }
    }

    /// Tells the core something, and looks at what the counts say then.
    fn tell<T>(
        &mut self,
        subject: Subject,
        tell: impl FnOnce(&mut Core, usize, &mut Desk<'_, VirtualClock>) -> T,
    ) -> T {
        if self.core.is_full() {
            self.flush();
        }
        let out = &mut self.buffers[self.core.slot()];
        let told = tell(&mut self.core, self.connection_count, &mut Desk { clock: &self.clock, out });
        self.judge(subject);
        told
    }

    /// Compares what the counts say of an operation that has ended with what the world did.
    fn judge(&mut self, subject: Subject) {
        for (counted, (group, principal)) in self.counted.iter_mut().zip(GROUPS) {
            let counts = group.counts(&self.core, principal);
            let failed = Cause::ALL.map(|cause| counts.count_of(cause));
            let now = std::iter::once(counts.answered).chain(failed);
            for (index, (counted, now)) in counted.iter_mut().zip(now).enumerate() {
                if *counted == now {
                    continue;
                }
                let end = match index {
                    0 => End::Answered,
                    index => End::Failed(Cause::ALL[index - 1]),
                };
                if matches!(end, End::Failed(cause) if cause.is_skip()) {
                    *counted = now;
                    continue;
                }
                assert_eq!(now, *counted + 1, "one operation ends at a time: {end:?}");
                *counted = now;
                match subject {
                    Subject::Nothing => panic!("nothing happened, and an operation ended: {end:?}"),
                    Subject::Exchange(truth) => assert_eq!(end, truth),
                    Subject::Request(transmit) => {
                        let request = self.network.requests.get_mut(&transmit).expect("it was sent");
                        assert!(!request.has_ended, "a request ended twice: {request:?}");
                        request.has_ended = true;
                        if request.deed.truth(self.network.scenario.scheme) != end {
                            *self.differences.entry((request.deed, end)).or_default() += 1;
                        }
                    }
                }
            }
        }
    }

    /// The request that ends next for want of an answer, if one does by `now_ns`.
    fn expiring(&mut self, now_ns: u64) -> Subject {
        while let Some(transmit) = self.order.front() {
            let sent = &self.network.requests[transmit];
            if self.core.is_waiting(*transmit) {
                return match sent.sent_ns + 2 * TIMEOUT_NS <= now_ns {
                    true => Subject::Request(*transmit),
                    false => Subject::Nothing,
                };
            }
            self.order.pop_front();
        }
        Subject::Nothing
    }

    fn flush(&mut self) {
        if !self.core.close_batch(self.buffers.iter_mut()) {
            return;
        }
        while let Some(Run { client, slots }) = self.core.next_run() {
            let from = self.clock.reading();
            if self.happens(self.network.scenario.local_ppm) {
                self.refuse(client, slots.start);
                continue;
            }
            let count = 1 + self.network.below(slots.len() as u64) as usize;
            for slot in slots.take(count) {
                let octets = self.buffers[slot][..self.core.size_of(slot)].to_vec();
                let transmit = self.network.depart(client, octets, from.ns);
                self.order.push_back(transmit);
                self.request_count += 1;
            }
            let lasted_ns = 1_000 * count as u64;
            self.clock.0.set(from.ns + lasted_ns);
            self.core.departed(count, &from, lasted_ns);
        }
    }

    /// The host does not send a request.
    fn refuse(&mut self, client: u32, slot: usize) {
        let octets = self.buffers[slot][..self.core.size_of(slot)].to_vec();
        let (why, deed) = match self.network.below(4) {
            0 => (Unsent::Obstacle(Cause::Refused), Deed::Refused),
            1 => (Unsent::Obstacle(Cause::Unreachable), Deed::Unreachable),
            2 => (Unsent::NoRoom, Deed::NoRoom),
            _ => (Unsent::Local, Deed::NoRoom),
        };
        let transmit = field(&octets, TRANSMIT);
        let sent_ns = self.clock.monotonic_ns();
        let sent = Sent { client, deed, sent_ns, is_answered: false, has_ended: false };
        self.network.requests.insert(transmit, sent);
        // Its room is free, but not that of what is yet to be sent.
        let out = &mut self.buffers[self.core.slot()];
        self.core.not_sent(why, sent_ns, &mut Desk { clock: &self.clock, out });
        self.judge(Subject::Request(transmit));
    }

    /// Begins the key exchanges that the core wants.
    fn begin_exchanges(&mut self) {
        while let Some(exchange) = self.core.next_exchange() {
            let begun_ns = self.clock.monotonic_ns();
            if self.happens(self.network.scenario.local_ppm) {
                self.core.exchange_skipped(&exchange, Cause::LocalPort, begun_ns);
                self.judge(Subject::Nothing);
                continue;
            }
            self.core.exchange_begun(&exchange, begun_ns);
            let fails = !self.network.is_kind
                && self.network.below(1_000_000) < self.network.scenario.failed_exchange_ppm;
            let after_ns = 2_000_000 + self.network.below(10_000_000);
            let (end, after_ns) = match fails {
                false if self.network.is_away(begun_ns) => (Err(Cause::Refused), after_ns),
                false => (Ok(Box::new(self.network.server.exchange_keys(Algorithm::SivCmac256))), after_ns),
                true => match self.network.below(8) {
                    0 => (Err(Cause::Unreachable), 0),
                    1 => (Err(Cause::Refused), 0),
                    2 => (Err(Cause::Reset), after_ns),
                    3 => (Err(Cause::TlsAlert), after_ns),
                    4 => (Err(Cause::Tls), after_ns),
                    5 => (Err(Cause::KeRefused), after_ns),
                    6 => (Err(Cause::ConnectionTimedOut), KE_TIMEOUT_NS),
                    _ => (Err(Cause::ResourceTemporarilyUnavailable), KE_TIMEOUT_NS),
                },
            };
            match end {
                Err(cause) if after_ns == 0 => {
                    self.core.exchange_failed(&exchange, cause, begun_ns);
                    self.judge(Subject::Exchange(End::Failed(cause)));
                }
                end => {
                    self.connection_count += 1;
                    self.network.send(begun_ns + after_ns, Event::Ended { exchange, begun_ns, end });
                }
            }
        }
    }

    /// Nothing has to be done: time goes on to what comes next, or somewhat further.
    fn wait(&mut self, now_ns: u64) {
        let due_ns = self.core.next_due_ns(now_ns).into_iter().chain(self.network.next_ns()).min();
        let late_ns = match self.happens(self.network.scenario.stall_ppm) {
            true => self.network.below(150_000_000),
            false => self.network.below(20_000),
        };
        // What waits for nothing wakes some time, as a pause between key exchanges is no instant of its own.
        let wake_ns = due_ns.unwrap_or(now_ns + 20_000_000).min(now_ns + 20_000_000) + late_ns;
        self.clock.0.set(self.clock.0.get().max(wake_ns));
    }

    /// Whether something happens this time that happens to so many in a million, of what the generator's own host does:
    /// nothing before the first step.
    fn happens(&mut self, share_ppm: u64) -> bool {
        self.network.start_ns.is_some() && self.network.below(1_000_000) < share_ppm
    }

    /// The generator looks at what has reached it.
    fn receive(&mut self) {
        let mut datagrams = Vec::new();
        for (at_ns, event) in std::mem::take(&mut self.inbox) {
            match event {
                Event::Datagram { client, octets, part } => datagrams.push((at_ns, client, octets, part)),
                Event::Obstacle { client, transmit, quoted, cause } => {
                    let waits = |transmit| !self.network.requests[&transmit].is_answered;
                    if !transmit.is_some_and(waits) {
                        *self.strays.entry(Stray::Obstacle).or_default() += 1;
                    }
                    self.core.obstructed(client, &quoted, cause);
                }
                Event::Ended { exchange, begun_ns, end } => {
                    self.connection_count -= 1;
                    let now_ns = self.clock.monotonic_ns();
                    let local = Some(address(0));
                    let truth = end.as_ref().map_or_else(|cause| End::Failed(*cause), |_| End::Answered);
                    self.tell(Subject::Exchange(truth), |core, _, desk| match end {
                        Ok(session) => core.established(&exchange, *session, (begun_ns, local), now_ns, desk),
                        Err(cause) => core.exchange_failed(&exchange, cause, now_ns),
                    });
                }
                Event::Request { .. } => unreachable!("requests go to the server"),
            }
        }
        for batch in datagrams.chunks_mut(BATCH_SIZE) {
            self.receive_batch(batch);
        }
    }

    fn receive_batch(&mut self, batch: &mut [Datagram]) {
        let now: Reading = self.clock.reading();
        // What has no stamp is taken for as old as the look at it. A host that is held up needs stamps.
        let is_stamped = |at_ns: u64| self.network.scenario.stall_ppm > 0 || at_ns.is_multiple_of(2);
        let stamps = batch
            .iter()
            .map(|&(at_ns, ..)| is_stamped(at_ns).then(|| SkewedClock::default().at(TrueTime(at_ns))));
        let came: Vec<Arrived> = stamps.map(|stamp| now.arrival(stamp)).collect();
        let subjects: Vec<Subject> =
            batch.iter().map(|&(at_ns, .., part)| self.subject(at_ns, part)).collect();
        for (number, (_, client, octets, _)) in batch.iter().enumerate() {
            self.tell(subjects[number], |core, _, desk| core.inspect(*client, octets, came[number], desk));
        }
        self.core.verify(batch.iter_mut().map(|(_, _, octets, _)| &mut octets[..]), &self.clock);
        for (number, (_, _, octets, _)) in batch.iter_mut().enumerate() {
            if self.core.is_candidate(number) {
                self.tell(subjects[number], |core, _, desk| {
                    core.conclude(number, octets, came[number], desk);
                });
            }
        }
        self.core.concluded();
    }

    /// The request to which a datagram belongs that comes at `at_ns`. Notes what it is, to that request or to none.
    fn subject(&mut self, at_ns: u64, part: Part) -> Subject {
        let (transmit, is_end) = match part {
            Part::End(transmit) => (transmit, true),
            Part::Other(transmit) => (transmit, false),
            Part::Nothing(stray) => {
                *self.strays.entry(stray).or_default() += 1;
                return Subject::Nothing;
            }
        };
        let request = self.network.requests.get_mut(&transmit).expect("it was sent");
        if request.is_answered || at_ns - request.sent_ns >= 2 * TIMEOUT_NS {
            *self.strays.entry(Stray::Duplicate).or_default() += 1;
            return Subject::Nothing;
        }
        request.is_answered = is_end;
        Subject::Request(transmit)
    }

    /// Each kind of stray was counted as often as it came.
    fn check_strays(&self) {
        for stray in STRAYS {
            let counts = GROUPS.map(|(group, own)| group.counts(&self.core, own).stray_count(stray));
            let came = self.strays.get(&stray).copied().unwrap_or(0);
            assert_eq!(counts.iter().sum::<u64>(), came, "{stray}");
        }
    }
}
