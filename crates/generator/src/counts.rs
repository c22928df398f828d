//! Counting during a step: plain numbers and HDR histograms, which become a tally at its end.

use authentick_report::load::{Cause, Histogram, Operation, Tally};
use hdrhistogram::Histogram as Hdr;

/// The longest time that is distinguished from longer ones: 100 s.
const TIME_MAX_NS: u64 = 100_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram of times, which may be negative. It allocates with the first one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    positive: Option<Hdr<u64>>,
    negative: Option<Hdr<u64>>,
}

impl Times {
    /// Counts a time, in nanoseconds.
    pub(crate) fn record(&mut self, ns: i64) {
        let empty = || {
            Hdr::new_with_bounds(1, TIME_MAX_NS, SIGNIFICANT_DIGITS).expect("the bounds are a valid range")
        };
        let times = if ns < 0 { &mut self.negative } else { &mut self.positive };
        times.get_or_insert_with(empty).saturating_record(ns.unsigned_abs());
    }

    /// The time that `share` of all times do not exceed; 0 if there are none.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        self.positive.as_ref().map_or(0, |times| times.value_at_quantile(share))
    }

    pub(crate) fn stored(&self) -> Histogram {
        let pairs = |times: &Option<Hdr<u64>>, sign: i64| -> Vec<(i64, u64)> {
            let of = |value: u64| sign * i64::try_from(value).unwrap_or(i64::MAX);
            let Some(times) = times else { return Vec::new() };
            times
                .iter_recorded()
                .map(|step| (of(times.median_equivalent(step.value_iterated_to())), step.count_at_value()))
                .collect()
        };
        Histogram::from([pairs(&self.negative, -1), pairs(&self.positive, 1)].concat())
    }

    pub(crate) fn clear(&mut self) {
        self.positive.iter_mut().chain(&mut self.negative).for_each(Hdr::reset);
    }
}

/// Operations of one kind and group in one step.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    operation: Operation,
    /// Operations that were due.
    pub scheduled: u64,
    /// Operations that began.
    pub sent: u64,
    /// Operations whose answer passed every check in time.
    pub answered: u64,
    /// Operations that began and failed.
    pub failed: u64,
    /// Surplus datagrams.
    pub surplus: u64,
    causes: [u64; Cause::ALL.len()],
    latency: Times,
    offset: Times,
}

impl Counts {
    pub(crate) fn new(operation: Operation) -> Self {
        Counts { operation, ..Counts::default() }
    }

    /// An operation that is counted as due did not begin.
    pub(crate) fn skip(&mut self, cause: Cause) {
        debug_assert!(cause.is_skip());
        self.causes[cause as usize] += 1;
    }

    /// An operation became due, and did not begin.
    pub(crate) fn miss(&mut self, cause: Cause) {
        self.scheduled += 1;
        self.skip(cause);
    }

    /// An operation that was sent has failed.
    pub(crate) fn fail(&mut self, cause: Cause) {
        debug_assert!(!cause.is_skip());
        self.failed += 1;
        self.causes[cause as usize] += 1;
    }

    /// An operation has succeeded.
    pub(crate) fn answer(&mut self, latency_ns: i64, offset_ns: Option<i64>) {
        self.answered += 1;
        // Kernel stamps and the schedule use different clocks: a nanosecond below zero counts as zero.
        self.latency.record(latency_ns.max(0));
        if let Some(offset_ns) = offset_ns {
            self.offset.record(offset_ns);
        }
    }

    /// How often this was the cause.
    #[must_use]
    pub fn count_of(&self, cause: Cause) -> u64 {
        self.causes[cause as usize]
    }

    /// The tally, once all operations have ended.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let sum = |test: fn(Cause) -> bool| -> u64 {
            Cause::ALL.iter().filter(|&&cause| test(cause)).map(|&cause| self.count_of(cause)).sum()
        };
        let (skipped, invalid) = (sum(Cause::is_skip), sum(Cause::is_invalid));
        let mut tally = Tally {
            operation: self.operation,
            scheduled: self.scheduled,
            skipped,
            sent: self.sent,
            answered: self.answered,
            lost: self.failed - invalid,
            invalid,
            causes: Cause::ALL
                .iter()
                .map(|&cause| (cause, self.count_of(cause)))
                .filter(|&(_, count)| count > 0)
                .collect(),
            surplus: self.surplus,
            ..Tally::default()
        };
        tally.histograms.latency_ns = self.latency.stored();
        tally.histograms.offset_ns = self.offset.stored();
        tally.summarise();
        tally
    }

    /// Starts again from zero.
    pub(crate) fn clear(&mut self) {
        self.latency.clear();
        self.offset.clear();
        (self.scheduled, self.sent, self.answered, self.failed, self.surplus) = (0, 0, 0, 0, 0);
        self.causes = [0; Cause::ALL.len()];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_have_the_places_of_their_numbers() {
        for (index, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, index);
        }
    }

    #[test]
    fn tally_adds_up_and_keeps_signs() {
        let mut counts = Counts::new(Operation::Transfer);
        counts.scheduled = 6;
        counts.skip(Cause::FellBehind);
        counts.sent = 5;
        counts.answer(1_000_000, Some(-2_000));
        counts.answer(3_000_000, Some(2_000));
        counts.fail(Cause::Timeout);
        counts.fail(Cause::Late);
        counts.fail(Cause::BadTag);
        let tally = counts.tally();
        assert!(tally.adds_up());
        assert_eq!((tally.lost, tally.invalid, tally.skipped), (2, 1, 1));
        let offset = tally.offset_us.unwrap();
        assert!((offset.min + 2.0).abs() < 0.002 && (offset.max - 2.0).abs() < 0.002, "{offset:?}");
        let latency = tally.latency_us.unwrap();
        assert!((latency.p50 / 1000.0 - 1.0).abs() < 0.001 && (latency.max / 3000.0 - 1.0).abs() < 0.001);
        counts.clear();
        assert_eq!(counts.tally(), Tally::default());
    }
}
