//! What all schemes work on: clients, requests on their way, schedules, and counts.

use authentick_crypto::Entropy;
use authentick_proto::client::Sample;
use authentick_report::load::{Cause, Stray};
use authentick_wire::header::Header;
use authentick_wire::packet::Packet;
use authentick_wire::time::NtpTime;

use crate::core::Settings;
use crate::counts::{Answered, Counts, Times};
use crate::exchanges::{Exchange, Exchanges};
use crate::flight::{Flight, Flights, Request};
use crate::ledger::Ledger;
use crate::outbox::{Outbox, Pending, Unfinished};
use crate::plan::Joinable;
use crate::roster::Roster;
use crate::selection::Selection;
use crate::series::Series;
use crate::streams::Streams;
use crate::time_of_day::TimeOfDay;
use crate::{Buffer, Clock, Reading};

/// The state of one worker's load, apart from what only its scheme knows.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) settings: Settings,
    pub(crate) entropy: Entropy,
    pub(crate) roster: Roster,
    pub(crate) outbox: Outbox,
    pub(crate) flights: Flights,
    pub(crate) exchanges: Exchanges,
    pub(crate) streams: Streams,
    /// When operations were last looked for that are due, monotonic.
    pub(crate) turn_ns: u64,
    pub(crate) time_of_day: TimeOfDay,
    pub(crate) results: Results,
}

/// The results of the step so far.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) ledger: Ledger,
    pub(crate) lateness: Times,
    pub(crate) joinables: Selection<Joinable>,
    pub(crate) series: Series,
    /// Octets of the largest request.
    pub(crate) request_size: usize,
    /// Octets of the largest answer that came in time, all datagrams of it together.
    pub(crate) response_size: usize,
    /// When a measured operation was sent last.
    pub(crate) last_sent_ns: u64,
}

impl Results {
    /// Starts again from zero, for a step whose measured clients count from `from_ns` on, until `end_ns`.
    pub(crate) fn start(&mut self, from_ns: u64, end_ns: u64) {
        let Results { ledger, lateness, joinables, series, request_size, response_size, last_sent_ns } = self;
        ledger.start(from_ns, end_ns);
        lateness.clear();
        joinables.take();
        series.start(from_ns);
        (*request_size, *response_size, *last_sent_ns) = (0, 0, 0);
    }
}

/// What a scheme works on in one call. No call writes more than one request.
#[derive(Debug)]
pub(crate) struct Call<'a, C> {
    pub(crate) load: &'a mut Workload,
    pub(crate) clock: &'a C,
    /// The buffer of the next slot.
    pub(crate) out: &'a mut Buffer,
}

/// When a datagram came.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// By the time of day: T4.
    pub(crate) at: NtpTime,
    /// When it is looked at.
    pub(crate) now: Reading,
    /// Whether the time of day was not set since the request left.
    pub(crate) is_sound: bool,
}

impl Arrived {
    /// By the monotonic clock.
    pub(crate) fn at_ns(&self) -> u64 {
        self.now.ns_at(self.at)
    }
}

/// What an answer that passed every check made of its request, which is in flight no more.
#[derive(Debug)]
pub(crate) enum Landing {
    /// It came before the first timeout.
    InTime(Flight),
    /// It came before the second, which is counted.
    Late {
        /// Whose request it was.
        client: u32,
        /// Whether it belonged to an operation that the scheme is named for.
        principal: bool,
        /// The client has not been told yet that the first timeout has passed.
        is_news: bool,
    },
}

impl Workload {
    /// Operations are looked for that are due at `now_ns`: once or several times in a turn.
    pub(crate) fn begin_turn(&mut self, now_ns: u64, clock: &impl Clock) {
        if self.turn_ns == now_ns {
            return;
        }
        self.turn_ns = now_ns;
        self.time_of_day.refresh(now_ns, clock);
        let Results { ledger, series, .. } = &mut self.results;
        let counts = ledger.of(true, true, u64::MAX);
        series.turn(now_ns, [counts.sent, counts.answered, counts.failed], &mut counts.lately);
    }

    /// Adds a request that was written to the next slot. `continued`: its operation was counted as sent already.
    pub(crate) fn push(
        &mut self,
        request: Request,
        size: usize,
        unfinished: Option<Unfinished>,
        continued: bool,
    ) {
        self.results.request_size = self.results.request_size.max(size);
        let client = request.client;
        self.roster[client].outstanding += 1;
        self.roster[client].request_made();
        self.outbox.push(Pending { request: Some(request), continued, unfinished, client, size });
    }

    /// The counts of one kind of operations, of the group that a client belongs to, for one that was due at
    /// `intended_ns`.
    pub(crate) fn counts_of(&mut self, client: u32, principal: bool, intended_ns: u64) -> &mut Counts {
        self.results.ledger.of(self.roster[client].measured, principal, intended_ns)
    }

    /// The same, for a key exchange.
    pub(crate) fn counts_of_exchange(&mut self, exchange: &Exchange) -> &mut Counts {
        self.results.ledger.of(exchange.measured, exchange.principal, exchange.intended_ns)
    }

    /// Whether an operation of a client counts that was due at `intended_ns`.
    pub(crate) fn is_counted(&self, client: u32, intended_ns: u64) -> bool {
        self.results.ledger.is_counted(self.roster[client].measured, intended_ns)
    }

    /// A request has left.
    pub(crate) fn departed(&mut self, request: Request, continued: bool, sent_ns: u64, sent: NtpTime) {
        self.counts_of(request.client, request.principal, request.intended_ns).sent += u64::from(!continued);
        if self.roster[request.client].measured && self.is_counted(request.client, request.intended_ns) {
            if request.principal && !continued {
                self.results.last_sent_ns = sent_ns;
            }
            if !continued {
                self.results.lateness.record(sent_ns.saturating_sub(request.intended_ns) as i64);
            }
        }
        self.flights.add(Flight::new(request, sent_ns, sent));
    }

    /// Removes a request to which an answer came within two timeouts; `None` if it is in flight no more.
    ///
    /// If the client was told already that the first has passed, the answer is late whenever it came: the next
    /// operation may have begun.
    pub(crate) fn land(&mut self, transmit: u64, came: &Arrived) -> Option<Landing> {
        let flight = self.flights.remove(transmit)?;
        let Request { client: index, epoch, principal, intended_ns, .. } = flight.request;
        let client = &mut self.roster[index];
        client.request_ended(epoch);
        client.outstanding -= u32::from(!flight.overdue);
        if !flight.overdue && came.at_ns().saturating_sub(flight.sent_ns) < self.flights.timeout_ns() {
            self.results.response_size = self.results.response_size.max(flight.came_size as usize);
            return Some(Landing::InTime(flight));
        }
        self.counts_of(index, principal, intended_ns).fail(Cause::Late);
        Some(Landing::Late { client: index, principal, is_news: !flight.overdue })
    }

    /// A request for time was answered well.
    pub(crate) fn time_came(&mut self, flight: &Flight, header: &Header, came: Arrived, clock: &impl Clock) {
        let Request { client, principal, intended_ns, begun_ns, .. } = flight.request;
        let at_ns = came.at_ns() as i64;
        let mut times = Answered {
            latency_ns: at_ns - intended_ns as i64,
            from_send_ns: Some(at_ns - flight.sent_ns as i64),
            ..Answered::default()
        };
        times.set_sample(&Sample::new(header, flight.sent, came.at), came.is_sound);
        self.answered(client, principal, intended_ns, &times);
        self.note_joinable(client, flight.request.asked.transmit(), [intended_ns, begun_ns], clock);
    }

    /// An operation of a client that was due at `intended_ns` has succeeded.
    pub(crate) fn answered(&mut self, client: u32, principal: bool, intended_ns: u64, answered: &Answered) {
        let measured = self.roster[client].measured;
        self.results.ledger.answer(measured, principal, intended_ns, answered);
    }

    /// Records an answered operation, if it will be joined with the server's records.
    pub(crate) fn note_joinable(
        &mut self,
        client: u32,
        transmit: u64,
        [intended_ns, begun_ns]: [u64; 2],
        clock: &impl Clock,
    ) {
        let client = &self.roster[client];
        if self.is_joinable(client.measured, intended_ns) {
            let whole_ns = clock.monotonic_ns().saturating_sub(begun_ns);
            let joinable = Joinable { source: client.local, transmit: Some(transmit), whole_ns };
            self.results.joinables.push(joinable);
        }
    }

    /// Whether to record one more single operation, one that was due at `intended_ns`.
    pub(crate) fn is_joinable(&self, measured: bool, intended_ns: u64) -> bool {
        measured && self.settings.joinable && self.results.ledger.is_counted(measured, intended_ns)
    }

    /// An operation that a client's request belonged to has ended.
    pub(crate) fn operation_ended(&mut self, client: u32) {
        self.streams.operation_ended(self.roster[client].measured);
    }

    /// A datagram with this origin, if it is long enough for one, answers no request in flight of its client.
    pub(crate) fn stray(&mut self, client: u32, octets: &[u8], origin: Option<u64>) {
        let ended_ns = origin.and_then(|origin| self.flights.ended_ns(origin));
        // One that is in flight has waited too long, and will be ended.
        let due_ns = ended_ns.or_else(|| self.due_ns_of(client, origin?));
        let stray = match origin {
            Some(_) if due_ns.is_some() => Stray::Duplicate,
            Some(_) if Packet::parse(octets).is_ok() => Stray::BadOrigin,
            Some(_) | None => Stray::Malformed,
        };
        self.count_stray(client, stray, due_ns.unwrap_or(self.turn_ns));
    }

    fn due_ns_of(&self, client: u32, transmit: u64) -> Option<u64> {
        let request = &self.flights.get(transmit)?.request;
        (request.client == client).then_some(request.intended_ns)
    }

    /// Something came to a client that belongs to no operation; to one that was due then, if it counts like that.
    pub(crate) fn count_stray(&mut self, client: u32, stray: Stray, due_ns: u64) {
        let principal = self.settings.scheme.nature().measures_transfers;
        self.counts_of(client, principal, due_ns).stray(stray);
    }
}
