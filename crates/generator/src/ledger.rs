//! Counts of a worker's step, and whether the generator did its part.
//!
//! Every operation belongs to the instant at which it was due. Those of measured clients that were due in the warm-up
//! are counted apart, so that sums hold there too, and say nothing else.

use authentick_report::load::Cause;
use authentick_report::units::{count, plural};

use crate::counts::{Answered, Counts, Times};
use crate::scheme::Nature;
use crate::validity::{Fate, OFFER_LESS, SPREAD, Subject, shortages, want_of_cookies};

/// Counts of the four kinds of operations.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// By background or measured clients, and by accompanying or own operations of the scheme.
    counts: [[Counts; 2]; 2],
    /// Counts of measured clients in the warm-up, by accompanying or own operations of the scheme.
    warm_up: [Counts; 2],
    /// From when on measured clients count, monotonic.
    from_ns: u64,
    /// The middle and the end of the time from then on: as at `from_ns`, what is on its way then is counted.
    looks_ns: [u64; 2],
    /// Datagrams within an operation for which the generator's sockets had no room, so that the operation was lost.
    pub(crate) stalled: u64,
}

impl Ledger {
    /// Nothing counted yet.
    pub(crate) fn new(nature: &Nature) -> Self {
        let operations = [nature.accompanying, nature.principal];
        let counts = [operations.map(Counts::new), operations.map(Counts::new)];
        Ledger { counts, warm_up: operations.map(Counts::untimed), from_ns: 0, looks_ns: [0; 2], stalled: 0 }
    }

    /// The counts of one kind, for an operation that was due at `intended_ns`.
    pub(crate) fn of(&mut self, measured: bool, principal: bool, intended_ns: u64) -> &mut Counts {
        match self.is_counted(measured, intended_ns) {
            true => &mut self.counts[usize::from(measured)][usize::from(principal)],
            false => &mut self.warm_up[usize::from(principal)],
        }
    }

    /// Counts an operation that was due at `intended_ns` and has succeeded.
    pub(crate) fn answer(&mut self, measured: bool, principal: bool, intended_ns: u64, answered: &Answered) {
        self.of(measured, principal, intended_ns).answer(answered);
        let came_ns = intended_ns.saturating_add_signed(answered.latency_ns);
        let begun_ns = answered.from_send_ns.map_or(intended_ns, |ns| came_ns.saturating_add_signed(-ns));
        let is_on_its_way = |look_ns| begun_ns <= look_ns && look_ns < came_ns;
        let [middle, end] = self.looks_ns.map(is_on_its_way).map(u64::from);
        let backlog = &mut self.of(measured, principal, intended_ns).backlog;
        (backlog.middle, backlog.end) = (backlog.middle + middle, backlog.end + end);
        if !self.is_counted(measured, intended_ns) && is_on_its_way(self.from_ns) {
            self.counts[usize::from(measured)][usize::from(principal)].backlog.start += 1;
        }
    }

    /// Whether an operation that was due at `intended_ns` counts: the warm-up of measured clients does not.
    pub(crate) const fn is_counted(&self, measured: bool, intended_ns: u64) -> bool {
        !measured || intended_ns >= self.from_ns
    }

    /// The same, read-only.
    pub(crate) fn get(&self, measured: bool, principal: bool) -> &Counts {
        &self.counts[usize::from(measured)][usize::from(principal)]
    }

    /// The counts of measured clients in the warm-up.
    pub(crate) const fn warm_up(&self, principal: bool) -> &Counts {
        &self.warm_up[principal as usize]
    }

    /// Starts again from zero, for a step whose measured clients count from `from_ns` on, until `end_ns`.
    pub(crate) fn start(&mut self, from_ns: u64, end_ns: u64) {
        (self.stalled, self.from_ns) = (0, from_ns);
        self.looks_ns = [from_ns + end_ns.saturating_sub(from_ns) / 2, end_ns];
        self.counts.iter_mut().flatten().chain(&mut self.warm_up).for_each(Counts::clear);
    }

    /// The step ends at `now_ns`, before its time; if that is before its middle, nothing says whether the backlog grew.
    pub(crate) fn stop(&mut self, now_ns: u64) {
        self.looks_ns = self.looks_ns.map(|look_ns| look_ns.min(now_ns));
    }

    fn local(&self, cause: Cause) -> u64 {
        self.counts.iter().flatten().map(|counts| counts.count_of(cause)).sum()
    }

    /// Why latencies say nothing about the server, given how late requests left and how late one in a hundred may be;
    /// `None` if they left in time.
    pub(crate) fn why_late(&self, late_max_ns: u64, lateness: &Times) -> Option<String> {
        let late_ns = lateness.quantile(0.99);
        let given_up = match self.local(Cause::FellBehind) {
            0 if late_ns <= late_max_ns => return None,
            0 => String::new(),
            given_up => format!(", {} were given up", count(given_up)),
        };
        Some(format!(
            "generator fell behind: 1 % of requests left {:.1} ms late or more{given_up}; {OFFER_LESS}",
            late_ns as f64 / 1e6
        ))
    }

    /// Why the figures say nothing about the server, for another reason than lateness; `None` if they do.
    pub(crate) fn why_invalid(&self) -> Option<String> {
        let local = |cause| self.local(cause);
        if let Some(why) = shortages(Subject::Generator, local).next() {
            return Some(why);
        }
        if self.stalled > 0 {
            let datagrams = plural(self.stalled, "datagram");
            return Some(format!(
                "the generator's sockets had no room for {datagrams} within operations; {SPREAD}"
            ));
        }
        let fate = |counts: &Counts| Fate { sent: counts.sent, failed: counts.failed };
        let (own, keys) = (self.get(true, true), self.get(true, false));
        want_of_cookies(own.count_of(Cause::NoCookie), own.scheduled, fate(own), fate(keys))
    }
}

#[cfg(test)]
mod tests {
    use authentick_report::load::Backlog;

    use super::*;
    use crate::Scheme;
    use crate::limits;

    fn late(ns: i64) -> Times {
        let mut times = Times::default();
        for _ in 0..98 {
            times.record(1000);
        }
        times.record(ns);
        times.record(ns);
        times
    }

    #[test]
    fn generator_is_behind_if_one_request_in_a_hundred_is_late() {
        let ledger = Ledger::new(Scheme::Plain.nature());
        assert_eq!(ledger.why_late(limits::LATENESS_MAX_NS, &late(900_000)), None);
        let why = ledger.why_late(limits::LATENESS_MAX_NS, &late(2_000_000)).unwrap();
        assert!(why.starts_with("generator fell behind: 1 % of requests left 2.0 ms late"), "{why}");
        assert_eq!(ledger.why_late(limits::KE_LATENESS_MAX_NS, &late(2_000_000)), None);
        assert_eq!(ledger.why_late(u64::MAX, &late(6_000_000)), None);
    }

    #[test]
    fn each_local_cause_invalidates_a_step_of_any_group() {
        for cause in Cause::ALL.into_iter().filter(|cause| cause.is_local()) {
            for (measured, principal) in [(true, true), (true, false), (false, true), (false, false)] {
                let mut ledger = Ledger::new(Scheme::Nts.nature());
                ledger.of(measured, principal, 0).skip(cause);
                let late = ledger.why_late(u64::MAX, &Times::default());
                assert_eq!(late.is_some(), cause == Cause::FellBehind, "{cause}");
                assert_eq!(ledger.why_invalid().is_some(), cause != Cause::FellBehind, "{cause}");
            }
        }
    }

    #[test]
    fn backlog_is_what_was_on_its_way_at_each_look() {
        let mut ledger = Ledger::new(Scheme::Plain.nature());
        ledger.start(100, 300);
        let mut answer = |intended_ns, latency_ns, from_send_ns| {
            let answered = Answered { latency_ns, from_send_ns, ..Answered::default() };
            ledger.answer(true, true, intended_ns, &answered);
        };
        // Due at 150, answered before the middle at 200, between both, at the end itself, and after it.
        for latency_ns in [49, 51, 150, 151] {
            answer(150, latency_ns, None);
        }
        // It left when the middle had passed, and the next one after the end.
        answer(150, 60, Some(5));
        answer(290, 30, Some(5));
        // Due in the warm-up.
        answer(99, 500, None);
        answer(99, 1, None);
        assert_eq!(ledger.get(true, true).backlog, Backlog { start: 1, middle: 3, end: 1 });
        assert_eq!(ledger.warm_up(true).backlog, Backlog { start: 0, middle: 1, end: 1 });
        ledger.start(100, 300);
        assert!(ledger.get(true, true).tally().backlog.is_empty());
    }

    #[test]
    fn backlog_of_a_step_that_is_stopped_is_that_of_the_stop() {
        for (stop_ns, backlog) in [(150, [1, 1]), (250, [0, 1])] {
            let mut ledger = Ledger::new(Scheme::Plain.nature());
            ledger.start(100, 300);
            ledger.stop(stop_ns);
            ledger.stop(stop_ns + 10);
            let answered = Answered { latency_ns: 20, ..Answered::default() };
            ledger.answer(true, true, stop_ns - 10, &answered);
            let [middle, end] = backlog;
            assert_eq!(ledger.get(true, true).backlog, Backlog { start: 0, middle, end }, "{stop_ns}");
        }
    }

    #[test]
    fn warm_up_says_nothing_of_the_step() {
        let mut ledger = Ledger::new(Scheme::Nts.nature());
        ledger.start(100, 300);
        for principal in [true, false] {
            ledger.of(true, principal, 99).miss(Cause::FellBehind);
        }
        let late = |ledger: &Ledger| ledger.why_late(u64::MAX, &Times::default());
        assert_eq!((ledger.why_invalid(), late(&ledger)), (None, None));
        assert_eq!((ledger.get(true, true).scheduled, ledger.warm_up(true).scheduled), (0, 1));
        ledger.of(false, true, 99).miss(Cause::FellBehind);
        assert!(late(&ledger).is_some(), "the background has no warm-up");
        ledger.of(true, true, 100).miss(Cause::FellBehind);
        assert_eq!(ledger.get(true, true).scheduled, 1);
        ledger.start(100, 300);
        assert_eq!((ledger.get(true, true).scheduled, ledger.warm_up(true).scheduled), (0, 0));
    }

    #[test]
    fn want_of_cookies_is_the_servers_fault_if_it_loses_requests() {
        let ledger = |dry: u64, failed: u64| {
            let mut ledger = Ledger::new(Scheme::Nts.nature());
            let principal = ledger.of(true, true, 0);
            (principal.scheduled, principal.sent) = (1000, 1000 - dry);
            (0..dry).for_each(|_| principal.skip(Cause::NoCookie));
            (0..failed).for_each(|_| principal.fail(Cause::Timeout));
            ledger.why_invalid()
        };
        assert_eq!(ledger(10, 0), None);
        assert!(ledger(20, 0).is_some_and(|why| why.contains("20 requests")));
        assert_eq!(ledger(20, 500), None);
    }
}
