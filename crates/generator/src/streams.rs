//! When operations begin: the schedules of a step, and its closed loop.

use crate::limits::{BEGIN_COUNT_MAX, LATENESS_MAX_NS};
use crate::plan::{Arrivals, Order};
use crate::schedule::{Schedule, Share};

/// A group of clients with a schedule of its own.
#[derive(Debug)]
struct Stream {
    schedule: Schedule,
    /// The instant of the schedule's zero, monotonic.
    start_ns: u64,
    /// Whether its figures count.
    measured: bool,
    /// In a closed loop: how many operations may be in flight.
    window: Option<u32>,
    /// Operations of it in flight.
    in_flight: u32,
    /// Operations of it that became due in this turn.
    begun_count: usize,
    /// Nothing more can begin in this turn.
    is_held: bool,
}

impl Stream {
    /// When the next operation of its schedule is due.
    fn next_ns(&self) -> Option<u64> {
        self.schedule.next_ns().map(|at_ns| self.start_ns + at_ns)
    }

    /// Whether the next operation is later than a sending thread that does not stand still ever sends one.
    fn is_late(&self, now_ns: u64) -> bool {
        self.next_ns().is_some_and(|due_ns| now_ns.saturating_sub(due_ns) > LATENESS_MAX_NS)
    }

    /// Leaves out all arrivals before `now_ns`; how many of them lie at or after `from_ns`.
    fn skip_until(&mut self, now_ns: u64, from_ns: u64) -> u64 {
        let mut count = 0;
        while let Some(due_ns) = self.next_ns().filter(|&due_ns| due_ns < now_ns) {
            count += u64::from(due_ns >= from_ns);
            self.schedule.advance();
        }
        count
    }
}

/// The groups of clients in one step.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    streams: Vec<Stream>,
    /// When the first operation is planned; absent if none is.
    first_ns: Option<u64>,
    /// From when on operations count.
    from_ns: u64,
    /// When nothing more begins.
    end_ns: u64,
    /// The planned end, by the order or because the step was stopped.
    ended_ns: u64,
    /// Whether it was stopped.
    pub(crate) is_stopped: bool,
    /// Which one has its turn.
    current: usize,
    /// Whether arrivals are left out that fell due while the thread stood still.
    cuts_stalls: bool,
    /// Measured arrivals that were left out, without those of the warm-up.
    pub(crate) cut_count: u64,
}

/// What is due of the group that has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing more in this turn; how many there were.
    Nothing { measured: bool, begun_count: usize },
    /// An operation that was due at that instant.
    Scheduled { measured: bool, intended_ns: u64 },
    /// The closed loop has room for an operation.
    Room { measured: bool },
}

impl Streams {
    /// Those of a step that begins at `start_ns`.
    pub(crate) fn new(arrivals: Arrivals, order: &Order, share: Share, seed: u64, start_ns: u64) -> Self {
        let seed = order.seed(seed);
        let arrivals = order.arrivals(arrivals);
        let stream = |schedule, start_ns, measured, window| Stream {
            schedule,
            start_ns,
            measured,
            window,
            in_flight: 0,
            begun_count: 0,
            is_held: false,
        };
        let (rate_rps, window) = match arrivals {
            Arrivals::Closed { window } => (0.0, Some(window)),
            Arrivals::Constant | Arrivals::Exponential => (order.rate_rps.unwrap_or(0.0), None),
        };
        let whole = order.warm_up.saturating_add(order.duration);
        let schedule = Schedule::new(arrivals, rate_rps, whole, share, seed);
        let mut streams = vec![stream(schedule, start_ns, true, window)];
        if order.background_rps > 0.0 {
            let background = match arrivals {
                Arrivals::Closed { .. } => Arrivals::Constant,
                open @ (Arrivals::Constant | Arrivals::Exponential) => open,
            };
            let lead = order.lead();
            let whole = whole.saturating_add(lead);
            let schedule = Schedule::new(background, order.background_rps, whole, share, !seed);
            streams.push(stream(schedule, start_ns.saturating_sub(lead.as_nanos() as u64), false, None));
        }
        let first = streams.iter().filter_map(|stream| match stream.window {
            Some(_) => Some(stream.start_ns),
            None => stream.next_ns(),
        });
        let (first_ns, from_ns, end_ns) = (first.min(), order.from_ns(start_ns), order.end_ns(start_ns));
        Streams {
            streams,
            first_ns,
            from_ns,
            end_ns,
            ended_ns: end_ns,
            is_stopped: false,
            current: 0,
            cuts_stalls: order.cuts_stalls,
            cut_count: 0,
        }
    }

    /// When the first operation is planned, of this worker's share in the schedule.
    pub(crate) const fn first_ns(&self) -> Option<u64> {
        self.first_ns
    }

    /// Nothing more begins.
    pub(crate) fn stop(&mut self, now_ns: u64) {
        if !self.is_stopped {
            self.is_stopped = true;
            self.ended_ns = self.ended_ns.min(now_ns);
        }
    }

    /// Each group has its turn once more.
    pub(crate) fn open_turn(&mut self) {
        self.current = 0;
        for stream in &mut self.streams {
            (stream.begun_count, stream.is_held) = (0, false);
        }
    }

    /// Whether anything became due in this turn.
    pub(crate) fn has_begun(&self) -> bool {
        !self.is_stopped && self.streams.iter().any(|stream| stream.begun_count > 0)
    }

    /// What is due at `now_ns` of the group that has its turn; `None` if each had it.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<Due> {
        let end_ns = self.end_ns;
        let stream = self.streams.get_mut(self.current)?;
        let (measured, begun_count) = (stream.measured, stream.begun_count);
        if let Some(window) = stream.window {
            // An operation that fails at once makes room for another one, but only after answers were handled.
            let open = !stream.is_held
                && begun_count < BEGIN_COUNT_MAX.min(window as usize)
                && (stream.start_ns..end_ns).contains(&now_ns)
                && stream.in_flight < window;
            return Some(if open { Due::Room { measured } } else { Due::Nothing { measured, begun_count } });
        }
        if self.cuts_stalls && stream.is_late(now_ns) {
            let cut_count = stream.skip_until(now_ns, self.from_ns);
            self.cut_count += if measured { cut_count } else { 0 };
        }
        let intended_ns = stream.next_ns();
        match intended_ns.filter(|&intended_ns| intended_ns <= now_ns && begun_count < BEGIN_COUNT_MAX) {
            Some(intended_ns) => {
                stream.schedule.advance();
                Some(Due::Scheduled { measured, intended_ns })
            }
            None => Some(Due::Nothing { measured, begun_count }),
        }
    }

    /// The turn of a group is over.
    pub(crate) fn next_group(&mut self) {
        self.current += 1;
    }

    /// An operation of the group that has its turn became due; `goes_on` if it is in flight.
    pub(crate) fn begun(&mut self, goes_on: bool) {
        if let Some(stream) = self.streams.get_mut(self.current) {
            stream.begun_count += 1;
            stream.in_flight += u32::from(goes_on);
        }
    }

    /// Nothing more of a closed loop can begin in this turn.
    pub(crate) fn hold(&mut self, measured: bool) {
        for stream in self.streams.iter_mut().filter(|stream| stream.measured == measured) {
            stream.is_held = true;
        }
    }

    /// An operation of a group has ended, so that a closed loop may begin another one.
    pub(crate) fn operation_ended(&mut self, measured: bool) {
        for stream in self.streams.iter_mut().filter(|stream| stream.measured == measured) {
            stream.in_flight = stream.in_flight.saturating_sub(1);
        }
    }

    /// Whether an operation has begun and not ended.
    pub(crate) fn is_busy(&self) -> bool {
        self.streams.iter().any(|stream| stream.in_flight > 0)
    }

    /// Whether measured clients are in a closed loop.
    pub(crate) fn is_closed(&self) -> bool {
        self.streams.iter().any(|stream| stream.window.is_some())
    }

    /// Whether nothing more begins from `now_ns` on.
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        let none_left = || self.streams.iter().all(|stream| stream.schedule.next_ns().is_none());
        self.is_stopped || (now_ns >= self.end_ns && (self.is_closed() || none_left()))
    }

    /// Whether the step was stopped, or ended `grace_ns` ago or more.
    pub(crate) fn has_ended_for(&self, now_ns: u64, grace_ns: u64) -> bool {
        self.is_stopped || now_ns >= self.end_ns.saturating_add(grace_ns)
    }

    /// The next instant at which something is due, or the step ends.
    pub(crate) fn next_ns(&self, now_ns: u64) -> Option<u64> {
        let due = self.streams.iter().filter(|_| !self.is_stopped).filter_map(|stream| match stream.window {
            Some(_) => Some(stream.start_ns).filter(|&start_ns| now_ns < start_ns),
            None => stream.next_ns(),
        });
        due.chain((now_ns < self.end_ns).then_some(self.end_ns)).min()
    }

    /// For how long operations began that count, if the last one was sent at `last_sent_ns`: a late generator sends
    /// beyond the end, and must not look faster for it.
    pub(crate) fn lasted_ns(&self, last_sent_ns: u64) -> u64 {
        self.ended_ns.max(last_sent_ns).saturating_sub(self.from_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MS: u64 = 1_000_000;
    const ALONE: Share = Share { index: 0, count: 1 };

    /// What is due at these instants, in turns of any length; and how many arrivals were left out.
    fn due(order: &Order, at_ms: &[u64]) -> (Vec<usize>, u64) {
        let mut streams = Streams::new(Arrivals::Constant, order, ALONE, 1, 0);
        let counts = at_ms.iter().map(|&at_ms| {
            let mut count = 0;
            loop {
                streams.open_turn();
                let before = count;
                while let Some(due) = streams.due(at_ms * MS) {
                    match due {
                        Due::Scheduled { .. } => {
                            streams.begun(true);
                            count += 1;
                        }
                        Due::Nothing { .. } | Due::Room { .. } => streams.next_group(),
                    }
                }
                if count == before {
                    return count;
                }
            }
        });
        let counts = counts.collect();
        (counts, streams.cut_count)
    }

    #[test]
    fn arrivals_of_a_stall_are_left_out_if_the_order_has_it_so() {
        // Ten a millisecond; the thread stands still from 2 ms to 50 ms.
        let order = Order { rate_rps: Some(10_000.0), duration: Duration::from_secs(1), ..Order::default() };
        let (counts, cut) = due(&order, &[1, 2, 50, 51]);
        assert_eq!((counts.iter().sum::<usize>(), cut), (510, 0));
        assert_eq!(counts[2], 480, "they are made up for");
        let (counts, cut) = due(&Order { cuts_stalls: true, ..order }, &[1, 2, 50, 51]);
        assert_eq!((counts, cut), (vec![10, 10, 0, 10], 480));
        let warm_up = Order { cuts_stalls: true, warm_up: Duration::from_millis(40), ..order };
        assert_eq!(due(&warm_up, &[1, 50]).1, 100, "those of the warm-up are not counted");
    }

    #[test]
    fn window_of_an_order_is_a_closed_loop_whatever_was_planned() {
        let order = Order { window: Some(3), duration: Duration::from_secs(1), ..Order::default() };
        let mut streams = Streams::new(Arrivals::Constant, &order, ALONE, 1, 0);
        streams.open_turn();
        let mut begun = 0;
        while let Some(Due::Room { .. }) = streams.due(MS) {
            streams.begun(true);
            begun += 1;
        }
        assert_eq!((begun, streams.is_closed()), (3, true));
    }
}
