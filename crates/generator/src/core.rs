//! One worker's load: what it is told, and what it asks its driver to do.
//!
//! - here: settings, steps, the start of operations, the departure of requests, key exchanges, and the passing of time.
//! - `arrivals`: answers; `prepare`: what clients need before the load.
//! - `scheme`: what differs from scheme to scheme; `workload`: what does not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_proto::client::NtsSession;
use authentick_proto::symmetric::SymmetricKey;
use authentick_report::load::{Cause, Evidence, Stray};
use authentick_wire::time::NtpSpan;

use crate::arrivals::Inspected;
use crate::counts::{Answered, Counts, Times};
use crate::exchanges::{Exchange, Exchanges};
use crate::flight::{Due as FlightDue, Flights, Request};
use crate::ledger::Ledger;
use crate::limits::{BATCH_SIZE, GIVE_UP_NS, JOINABLE_COUNT_MAX};
use crate::outbox::{Outbox, Run, Unsent};
use crate::plan::{Arrivals, Joinable, Order, Part};
use crate::prepare::Preparation;
use crate::roster::Roster;
use crate::schedule::Share;
use crate::scheme::{Guide, Protocol, Scheme, Speaker, dispatch, schemes};
use crate::selection::Selection;
use crate::series::Series;
use crate::streams::{Due, Streams};
use crate::time_of_day::TimeOfDay;
use crate::validity::lateness_max_ns;
use crate::workload::{Results, Workload};
use crate::{Buffer, Clock, Desk, Reading, nanos};

/// Place of the transmit timestamp in a packet. RFC 5905 section 7.3.
const TRANSMIT: std::ops::Range<usize> = 40..48;

/// All requests have a multiple of so many octets. RFC 5905 section 7.5.
const REQUEST_ALIGNMENT: usize = 4;

/// What a worker does in every step.
#[derive(Debug)]
pub struct Settings {
    /// What is offered.
    pub scheme: Scheme,
    /// When operations begin.
    pub arrivals: Arrivals,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Which of the workers this is.
    pub share: Share,
    /// Number of measured clients of this worker.
    pub measured_count: usize,
    /// How long a request waits for its answer.
    pub timeout: Duration,
    /// How long a key exchange may take.
    pub ke_timeout: Duration,
    /// The key of [`Scheme::Mac`].
    pub key: Option<SymmetricKey>,
    /// How ANTP is spoken, for its schemes.
    pub guide: Option<Arc<Guide>>,
    /// Use the keys that are exported the other way.
    pub alternative_keys: bool,
    /// Send one cookie of each client again and again.
    pub replay_cookie: bool,
    /// Report the instants of single operations.
    pub joinable: bool,
}

/// What the settings lack for their scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// The symmetric key.
    #[error("there is no key for requests with a MAC")]
    Key,
    /// How ANTP is spoken.
    #[error("the plan does not say how ANTP is spoken")]
    Guide,
}

/// The core of one sending thread; see the crate's documentation.
///
/// No call writes more than one request; if the batch [is full](Core::is_full), the driver sends it
/// ([`Core::close_batch`]) before the next call.
#[derive(Debug)]
pub struct Core {
    pub(crate) speaker: Speaker,
    pub(crate) load: Workload,
    /// Results for the datagrams that are being checked.
    pub(crate) inspected: Vec<Option<Inspected>>,
    /// How long the verification of each of them took.
    pub(crate) crypto_ns: u64,
    pub(crate) preparation: Preparation,
}

impl Core {
    /// A worker without clients.
    ///
    /// # Errors
    /// What the settings lack.
    pub fn new(mut settings: Settings, entropy: Entropy) -> Result<Self, Missing> {
        let speaker = Speaker::new(&mut settings)?;
        let flight_count_max = settings.scheme.nature().flight_count_max;
        let load = Workload {
            entropy,
            roster: Roster::new(settings.measured_count),
            outbox: Outbox::new(),
            flights: Flights::new(nanos(settings.timeout), flight_count_max),
            exchanges: Exchanges::default(),
            streams: Streams::default(),
            turn_ns: 0,
            time_of_day: TimeOfDay::default(),
            results: Results {
                ledger: Ledger::new(settings.scheme.nature()),
                lateness: Times::default(),
                joinables: Selection::new(JOINABLE_COUNT_MAX),
                series: Series::default(),
                request_size: 0,
                response_size: 0,
                last_sent_ns: 0,
            },
            settings,
        };
        Ok(Core {
            speaker,
            load,
            inspected: Vec::with_capacity(BATCH_SIZE),
            crypto_ns: 0,
            preparation: Preparation::default(),
        })
    }

    /// Adds a client at this address: measured ones first.
    pub fn add_client(&mut self, local: SocketAddr) {
        self.load.roster.add(local);
    }

    /// A step begins, whose first operations begin at `start_ns`, or a [lead](Order::lead) earlier.
    pub fn start(&mut self, order: &Order, start_ns: u64) {
        let load = &mut self.load;
        // What came after the end of the last step belongs to no step.
        let from_ns = order.from_ns(start_ns);
        load.results.start(from_ns, order.end_ns(start_ns));
        let rate_rps = order.rate_rps.unwrap_or(0.0) + order.background_rps;
        load.flights.start(from_ns, rate_rps / f64::from(load.settings.share.count));
        load.time_of_day.start(from_ns);
        schemes!(dispatch, &mut self.speaker, scheme => scheme.start());
        let Settings { arrivals, share, seed, .. } = load.settings;
        load.streams = Streams::new(arrivals, order, share, seed, start_ns);
    }

    /// When the first operation of this worker is planned: not before the start of the step, but perhaps much later,
    /// as workers take turns, and arrivals may be drawn. `None` if there is none.
    #[must_use]
    pub fn first_due_ns(&self) -> Option<u64> {
        self.load.streams.first_ns()
    }

    /// Nothing more begins.
    pub fn stop(&mut self, now_ns: u64) {
        self.load.streams.stop(now_ns);
        self.load.results.ledger.stop(now_ns);
    }

    /// Starts a turn, in which the operations that became due since the last one begin: call [`Core::begin`] until
    /// there are no more.
    pub fn open_turn(&mut self) {
        self.load.streams.open_turn();
    }

    /// Whether an operation became due in this turn.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.load.streams.has_begun()
    }

    /// Begins one operation, or something else that a client needs; `false` if nothing is due at `now_ns`.
    pub fn begin(&mut self, now_ns: u64, desk: &mut Desk<'_, impl Clock>) -> bool {
        let Core { speaker, load, .. } = self;
        load.begin_turn(now_ns, desk.clock);
        if load.streams.is_stopped {
            return false;
        }
        // What a client needed in the last call comes before the next operation.
        if schemes!(dispatch, speaker, scheme => scheme.catch_up(&mut desk.call(load))) {
            return true;
        }
        while let Some(due) = load.streams.due(now_ns) {
            let (measured, intended_ns, is_scheduled) = match due {
                Due::Nothing { measured, begun_count } => {
                    // How many requests a client sends together: as many as share one system call, if there are few
                    // clients.
                    load.roster.note_together(measured, begun_count);
                    load.streams.next_group();
                    continue;
                }
                Due::Scheduled { measured, intended_ns } => (measured, intended_ns, true),
                Due::Room { measured } => (measured, now_ns, false),
            };
            if now_ns - intended_ns > GIVE_UP_NS {
                load.results.ledger.of(measured, true, intended_ns).miss(Cause::FellBehind);
                continue;
            }
            let begun = match load.flights.is_full(load.outbox.count()) {
                true => Err(Cause::LocalMemory),
                false => {
                    let call = &mut desk.call(load);
                    schemes!(dispatch, speaker, scheme => scheme.begin(call, measured, intended_ns))
                }
            };
            let counts = load.results.ledger.of(measured, true, intended_ns);
            match begun {
                Ok(()) => {
                    counts.scheduled += 1;
                    load.streams.begun(true);
                    return true;
                }
                Err(cause) if is_scheduled => {
                    counts.miss(cause);
                    load.streams.begun(false);
                    return true;
                }
                // Nothing was due, so nothing is skipped: it is tried again when a client is free.
                Err(Cause::NoCookie) => load.streams.hold(measured),
                Err(cause) => {
                    counts.miss(cause);
                    load.streams.hold(measured);
                }
            }
        }
        schemes!(dispatch, speaker, scheme => scheme.catch_up(&mut desk.call(load)))
    }

    /// The slot of the buffer to which the next request is written.
    #[must_use]
    pub fn slot(&self) -> usize {
        self.load.outbox.count()
    }

    /// Whether what is written must be sent before the next call.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.slot() == BATCH_SIZE
    }

    /// Seals or tags all written requests, side by side; they must be sent now, run by run. `buffers` are those of all
    /// slots. `false` if there is no request.
    pub fn close_batch<'a>(&mut self, buffers: impl Iterator<Item = &'a mut Buffer>) -> bool {
        if self.slot() == 0 {
            return false;
        }
        let Core { speaker, load, .. } = self;
        schemes!(dispatch, speaker, scheme => scheme.finish(load, buffers));
        load.outbox.close();
        true
    }

    /// Requests of one client, to be sent in one system call; `None` if all have left. Report the result with
    /// [`Core::departed`] or [`Core::not_sent`].
    #[must_use]
    pub fn next_run(&self) -> Option<Run> {
        self.load.outbox.next_run()
    }

    /// Octets of a request that is being sent.
    #[must_use]
    pub fn size_of(&self, slot: usize) -> usize {
        self.load.outbox.size_of(slot)
    }

    /// The first `count` requests of the run have left in a system call that began at `from` and took `lasted_ns`.
    pub fn departed(&mut self, count: usize, from: &Reading, lasted_ns: u64) {
        for turn in 0..count {
            let Some((request, continued)) = self.load.outbox.next_left() else { return };
            // The kernel sends one after the other: the last left when the call ended.
            let after_ns = lasted_ns * turn as u64 / count as u64;
            let sent = from.time_of_day + NtpSpan::from_nanos(after_ns as i64);
            self.load.departed(request, continued, from.ns + after_ns, sent);
        }
    }

    /// The first request of the run could not be sent.
    pub fn not_sent(&mut self, why: Unsent, now_ns: u64, desk: &mut Desk<'_, impl Clock>) {
        let Some((request, continued)) = self.load.outbox.next_left() else { return };
        let client = &mut self.load.roster[request.client];
        client.outstanding -= 1;
        client.request_ended(request.epoch);
        let is_stalled = continued && !matches!(why, Unsent::Obstacle(_));
        let is_counted = self.load.is_counted(request.client, request.intended_ns);
        self.load.results.ledger.stalled += u64::from(is_stalled && is_counted);
        let counts = self.load.counts_of(request.client, request.principal, request.intended_ns);
        match why {
            Unsent::Obstacle(cause) => {
                // The host knows that it would not arrive: that counts as sent.
                counts.sent += u64::from(!continued);
                counts.fail(cause);
            }
            Unsent::NoRoom | Unsent::Local if continued => counts.fail(Cause::Timeout),
            Unsent::NoRoom => counts.skip(Cause::LocalBuffer),
            Unsent::Local => counts.skip(Cause::Local),
        }
        self.datagram_ended(request.client, request.principal, now_ns, desk);
    }

    /// The network says that requests of a client do not arrive: those that are `quoted`, side by side as they left,
    /// the last of them perhaps cut. Nothing vouches for that, so they go on waiting; it is the cause if no answer
    /// comes.
    pub fn obstructed(&mut self, client: u32, quoted: &[u8], cause: Cause) {
        let mut is_known = false;
        // Most often it is one. Where another begins is not said: there the first octet, mode and version, is the same.
        for rest in (0..quoted.len()).step_by(REQUEST_ALIGNMENT).map(|start| &quoted[start..]) {
            let transmit =
                rest.get(TRANSMIT).and_then(|octets| octets.try_into().map(u64::from_be_bytes).ok());
            let Some(transmit) = transmit.filter(|_| rest[0] == quoted[0]) else { continue };
            let flight = self.load.flights.find(transmit);
            if let Some(flight) = flight.filter(|flight| flight.request.client == client) {
                flight.obstacle.get_or_insert(cause);
                is_known = true;
            }
        }
        if !is_known {
            self.load.count_stray(client, Stray::Obstacle, self.load.turn_ns);
        }
    }

    /// The next key exchange to begin; `None` if there is none. Report how it ended with [`Core::established`],
    /// [`Core::exchange_failed`] or [`Core::exchange_skipped`].
    pub fn next_exchange(&mut self) -> Option<Exchange> {
        self.load.exchanges.next()
    }

    /// A key exchange began; it counts as sent.
    pub fn exchange_begun(&mut self, exchange: &Exchange, begun_ns: u64) {
        let Exchange { measured, principal, intended_ns, .. } = *exchange;
        let results = &mut self.load.results;
        if measured && principal && results.ledger.is_counted(measured, intended_ns) {
            results.last_sent_ns = begun_ns;
            results.lateness.record(begun_ns.saturating_sub(intended_ns) as i64);
        }
        results.ledger.of(measured, principal, intended_ns).sent += 1;
    }

    /// A key exchange could not begin, by the generator's own fault.
    pub fn exchange_skipped(&mut self, exchange: &Exchange, cause: Cause, now_ns: u64) {
        self.load.counts_of_exchange(exchange).skip(cause);
        if exchange.principal {
            self.load.streams.hold(exchange.measured);
        }
        self.exchange_ended(exchange, now_ns);
    }

    /// A key exchange that began has failed.
    pub fn exchange_failed(&mut self, exchange: &Exchange, cause: Cause, now_ns: u64) {
        self.load.counts_of_exchange(exchange).fail(cause);
        self.exchange_ended(exchange, now_ns);
    }

    fn exchange_ended(&mut self, exchange: &Exchange, now_ns: u64) {
        self.load.exchanges.ended();
        if let Some(client) = exchange.client {
            self.load.roster[client].not_established(now_ns);
        }
        if exchange.principal {
            self.load.streams.operation_ended(exchange.measured);
        }
    }

    /// A key exchange that began at `begun_ns`, from the address `local`, has brought keys and cookies.
    pub fn established(
        &mut self,
        exchange: &Exchange,
        mut session: NtsSession,
        (begun_ns, local): (u64, Option<SocketAddr>),
        now_ns: u64,
        desk: &mut Desk<'_, impl Clock>,
    ) {
        let Core { speaker, load, .. } = self;
        load.exchanges.ended();
        let latency_ns = now_ns as i64 - exchange.intended_ns as i64;
        let answered = Answered { latency_ns, ..Answered::default() };
        let Exchange { measured, principal, intended_ns, .. } = *exchange;
        load.results.ledger.answer(measured, principal, intended_ns, &answered);
        if load.is_joinable(exchange.measured, exchange.intended_ns) {
            let whole_ns = now_ns.saturating_sub(begun_ns);
            let joinable = local.map(|source| Joinable { source, transmit: None, whole_ns });
            joinable.into_iter().for_each(|joinable| load.results.joinables.push(joinable));
        }
        if load.settings.alternative_keys {
            session.switch_keys();
        }
        if let Some(client) = exchange.client {
            load.roster[client].established(session);
        }
        let call = &mut desk.call(load);
        schemes!(dispatch, speaker, scheme => scheme.established(call, exchange));
    }

    /// Ends one request that has waited too long; `false` if there is none at `now_ns`.
    ///
    /// Whatever had reached this host by `now_ns` must have been told of before ([`Core::inspect`] to
    /// [`Core::conclude`], [`Core::obstructed`]): a driver that was held up reads first, and then ends what had waited
    /// too long when it began to read. So no request is taken for unanswered whose answer only waited to be read.
    pub fn expire(&mut self, now_ns: u64, desk: &mut Desk<'_, impl Clock>) -> bool {
        match self.load.flights.due(now_ns) {
            None => return false,
            Some(FlightDue::Overdue { client, principal }) => {
                self.load.roster[client].outstanding -= 1;
                self.datagram_ended(client, principal, now_ns, desk);
            }
            Some(FlightDue::Over(flight)) => {
                let Request { client, epoch, principal, intended_ns, .. } = flight.request;
                self.load.roster[client].request_ended(epoch);
                // What an answer to it showed says more than what anyone says on the way.
                let why = flight.noted.or(flight.obstacle).unwrap_or(Cause::Timeout);
                self.load.counts_of(client, principal, intended_ns).fail(why);
            }
        }
        true
    }

    /// A request has ended for its client, answered or not.
    pub(crate) fn datagram_ended(
        &mut self,
        client: u32,
        principal: bool,
        now_ns: u64,
        desk: &mut Desk<'_, impl Clock>,
    ) {
        let Core { speaker, load, .. } = self;
        let call = &mut desk.call(load);
        schemes!(dispatch, speaker, scheme => scheme.datagram_ended(call, client, principal, now_ns));
    }

    /// When something is due next: an operation, the end of a wait, the end of the step. May be too early, but never
    /// too late.
    #[must_use]
    pub fn next_due_ns(&self, now_ns: u64) -> Option<u64> {
        self.load.streams.next_ns(now_ns).into_iter().chain(self.load.flights.next_due_ns()).min()
    }

    /// Whether the step is over: nothing more begins, and everything that began has ended.
    #[must_use]
    pub fn is_over(&self, now_ns: u64) -> bool {
        let load = &self.load;
        load.streams.is_over(now_ns) && !self.is_busy()
    }

    /// Whether an operation has not ended.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let Workload { flights, outbox, exchanges, streams, .. } = &self.load;
        flights.count() > 0 || outbox.count() > 0 || exchanges.open_count > 0 || streams.is_busy()
    }

    /// Whether a client waits for a key exchange, or for sealed state.
    #[must_use]
    pub fn is_exchanging(&self) -> bool {
        self.load.roster.clients.iter().any(|client| client.exchanging)
    }

    /// Measured operations of this step that were sent, answered, and that failed.
    #[must_use]
    pub fn progress(&self) -> [u64; 3] {
        let Counts { sent, answered, failed, .. } = *self.load.results.ledger.get(true, true);
        [sent, answered, failed]
    }

    /// Counts of this step so far: of `measured` operations or of the background, and of the scheme's own operations or
    /// of accompanying ones.
    #[must_use]
    pub fn counts(&self, measured: bool, principal: bool) -> &Counts {
        self.load.results.ledger.get(measured, principal)
    }

    /// Counts of measured operations that were due in the warm-up: of the scheme's own, or of accompanying ones.
    #[must_use]
    pub fn warm_up_counts(&self, principal: bool) -> &Counts {
        self.load.results.ledger.warm_up(principal)
    }

    /// Whether a request with this transmit timestamp waits for its answer, or has waited for one timeout.
    #[must_use]
    pub fn is_waiting(&self, transmit: u64) -> bool {
        self.load.flights.get(transmit).is_some()
    }

    /// How many requests are in flight.
    #[must_use]
    pub fn waiting_count(&self) -> usize {
        self.load.flights.count()
    }

    /// The result of the step, during whose measured time the worker had nothing to do for `idle_ns`.
    pub fn finish(&mut self, idle_ns: u64) -> Part {
        let progress = self.progress();
        let Workload { results, streams, settings, time_of_day, .. } = &mut self.load;
        let lasted_ns = streams.lasted_ns(results.last_sent_ns);
        let seconds = lasted_ns as f64 / 1e9;
        let idle_share = (lasted_ns > 0).then(|| (idle_ns as f64 / lasted_ns as f64).min(1.0));
        let late_max_ns = match streams.is_closed() {
            // Nothing is due, so nothing is late.
            true => u64::MAX,
            false => lateness_max_ns(settings.scheme.nature().principal),
        };
        let cut = streams.cut_count;
        let lately = &mut results.ledger.of(true, true, u64::MAX).lately;
        let (series, series_ns) = results.series.finish(lasted_ns, progress, lately);
        let ledger = &results.ledger;
        let some = |counts: &Counts| (counts.scheduled > 0).then(|| counts.tally());
        let (joinables, joinables_left_out) = results.joinables.take();
        Part {
            tally: ledger.get(true, true).tally(),
            accompanying: some(ledger.get(true, false)),
            background: some(ledger.get(false, true)).map(|tally| tally.without_histograms()),
            background_accompanying: some(ledger.get(false, false)).map(|tally| tally.without_histograms()),
            seconds,
            why_late: ledger.why_late(late_max_ns, &results.lateness),
            why_invalid: ledger.why_invalid().or_else(|| time_of_day.why_invalid()),
            lateness_ns: results.lateness.stored(),
            busy_share: idle_share.map(|idle_share| 1.0 - idle_share),
            evidence: Evidence {
                idle_share,
                clock_jumps: time_of_day.jump_count,
                cut,
                ..Evidence::default()
            },
            series,
            series_ns,
            request_size: results.request_size as u32,
            response_size: results.response_size as u32,
            joined: 0,
            joinables,
            joinables_left_out,
            antp: schemes!(dispatch, &self.speaker, scheme => scheme.figures(seconds)),
        }
    }
}

#[cfg(test)]
mod tests;
