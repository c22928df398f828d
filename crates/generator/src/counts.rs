//! Counting during a step: plain numbers and HDR histograms, which become a tally at its end.
//!
//! Memory is bounded: a histogram of times takes 229,376 octets for each sign that occurs, at most 450,560 if there are
//! offsets of decades, however many are counted. A sending thread has at most four kinds of operations with three of
//! them each, and its lateness; ANTP adds five. That is below 7 MiB.

use std::collections::BTreeMap;

use authentick_proto::client::Sample;
use authentick_report::load::{Backlog, Cause, Histogram, Operation, Stray, Tally};
use hdrhistogram::Histogram as Hdr;

use crate::series::Lately;

/// Room for times up to this is made with the first one: 100 s. A longer one, as the offset from a clock that was never
/// set, makes more.
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
            let mut empty = Hdr::new_with_bounds(1, TIME_MAX_NS, SIGNIFICANT_DIGITS)
                .expect("the bounds are a valid range");
            empty.auto(true);
            empty
        };
        let times = if ns < 0 { &mut self.negative } else { &mut self.positive };
        times.get_or_insert_with(empty).record(ns.unsigned_abs()).expect("any time has its place");
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
#[derive(Clone, Debug)]
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
    /// Operations that were on their way at three instants, and were answered.
    pub(crate) backlog: Backlog,
    /// What came and belongs to no operation.
    strays: BTreeMap<Stray, u64>,
    causes: [u64; Cause::ALL.len()],
    latency: Times,
    from_send: Times,
    offset: Times,
    negative_delays: u64,
    /// Latencies of this second.
    pub(crate) lately: Lately,
    /// Whether latencies and offsets are recorded.
    is_timed: bool,
}

/// The times of an operation that was answered, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answered {
    /// From the instant at which it was due. Receive stamps and the schedule use different clocks: a nanosecond below
    /// zero counts as zero.
    pub(crate) latency_ns: i64,
    /// From the instant at which it really left; absent for operations of several datagrams.
    pub(crate) from_send_ns: Option<i64>,
    /// The server's clock minus the client's.
    pub(crate) offset_ns: Option<i64>,
    /// Whether the delay is negative, which leaves the offset out.
    pub(crate) has_negative_delay: bool,
}

impl Answered {
    /// Takes over what a response says of the server's clock, if the stamp of its arrival is sound.
    pub(crate) fn set_sample(&mut self, sample: &Sample, is_sound: bool) {
        self.has_negative_delay = is_sound && sample.has_negative_delay();
        self.offset_ns = (is_sound && !self.has_negative_delay).then_some(sample.offset.as_nanos());
    }
}

impl Counts {
    pub(crate) fn new(operation: Operation) -> Self {
        Counts {
            operation,
            scheduled: 0,
            sent: 0,
            answered: 0,
            failed: 0,
            backlog: Backlog::default(),
            strays: BTreeMap::new(),
            causes: [0; Cause::ALL.len()],
            latency: Times::default(),
            from_send: Times::default(),
            offset: Times::default(),
            negative_delays: 0,
            lately: Lately::default(),
            is_timed: true,
        }
    }

    /// The same without times.
    pub(crate) fn untimed(operation: Operation) -> Self {
        Counts { is_timed: false, ..Counts::new(operation) }
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
    pub(crate) fn answer(&mut self, times: &Answered) {
        self.answered += 1;
        if !self.is_timed {
            return;
        }
        self.latency.record(times.latency_ns.max(0));
        self.lately.record(times.latency_ns.max(0).unsigned_abs());
        if let Some(from_send_ns) = times.from_send_ns {
            self.from_send.record(from_send_ns.max(0));
        }
        self.negative_delays += u64::from(times.has_negative_delay);
        if let Some(offset_ns) = times.offset_ns {
            self.offset.record(offset_ns);
        }
    }

    /// Something came that belongs to no operation.
    pub(crate) fn stray(&mut self, stray: Stray) {
        *self.strays.entry(stray).or_default() += 1;
    }

    /// How much of this kind came that belongs to no operation.
    #[must_use]
    pub fn stray_count(&self, stray: Stray) -> u64 {
        self.strays.get(&stray).copied().unwrap_or(0)
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
            surplus: self.strays.iter().filter(|(stray, _)| **stray != Stray::Obstacle).map(|(_, n)| n).sum(),
            negative_delays: self.negative_delays,
            backlog: self.backlog,
            strays: self.strays.clone(),
            ..Tally::default()
        };
        tally.histograms.latency_ns = self.latency.stored();
        tally.histograms.from_send_ns = self.from_send.stored();
        tally.histograms.offset_ns = self.offset.stored();
        tally.summarise();
        tally
    }

    /// Starts again from zero.
    pub(crate) fn clear(&mut self) {
        for times in [&mut self.latency, &mut self.from_send, &mut self.offset] {
            times.clear();
        }
        self.lately.clear();
        self.strays.clear();
        (self.scheduled, self.sent, self.answered, self.failed) = (0, 0, 0, 0);
        self.negative_delays = 0;
        (self.backlog, self.causes) = (Backlog::default(), [0; Cause::ALL.len()]);
    }
}

#[cfg(test)]
mod tests {
    use authentick_report::load::Histograms;
    use authentick_wire::time::NtpSpan;

    use super::*;

    #[test]
    fn causes_have_the_places_of_their_numbers() {
        for (index, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, index);
        }
    }

    #[test]
    fn no_time_is_clipped() {
        let mut times = Times::default();
        let offsets = [0, 1, -3_000_000_000, 200_000_000_000, -3_600_000_000_000, i64::MAX, i64::MIN];
        offsets.iter().for_each(|&ns| times.record(ns));
        let percentiles = times.stored().percentiles(1.0).unwrap();
        for (found, ns) in [(percentiles.min, i64::MIN), (percentiles.max, i64::MAX)] {
            assert!((found / ns as f64 - 1.0).abs() < 0.001, "{found} {ns}");
        }
        let an_hour = |(ns, _): &(i64, u64)| (*ns + 3_600_000_000_000).abs() < 3_600_000_000;
        assert_eq!(times.stored().pairs().iter().filter(|pair| an_hour(pair)).count(), 1);
    }

    #[test]
    fn strays_are_counted_by_kind_and_reports_are_no_datagrams() {
        let mut counts = Counts::new(Operation::Transfer);
        for stray in [Stray::Duplicate, Stray::BadOrigin, Stray::Obstacle, Stray::Duplicate] {
            counts.stray(stray);
        }
        let tally = counts.tally();
        assert_eq!(tally.strays, [(Stray::Duplicate, 2), (Stray::BadOrigin, 1), (Stray::Obstacle, 1)].into());
        assert_eq!((tally.surplus, counts.stray_count(Stray::Malformed)), (3, 0));
        counts.clear();
        assert_eq!(counts.tally(), Tally::default());
    }

    #[test]
    fn negative_delay_is_counted_and_its_offset_left_out() {
        let span = |ns: i64| NtpSpan::from_nanos(ns);
        let sample = |delay_ns| Sample {
            offset: span(7_000),
            delay: span(delay_ns),
            round_trip: span(9_000),
            root_distance: span(0),
        };
        let mut counts = Counts::new(Operation::Transfer);
        for (delay_ns, is_sound) in [(5_000, true), (0, true), (-5_000, true), (-5_000, false)] {
            let mut answered = Answered { latency_ns: 9_000, ..Answered::default() };
            answered.set_sample(&sample(delay_ns), is_sound);
            counts.answer(&answered);
        }
        let tally = counts.tally();
        assert_eq!((tally.answered, tally.negative_delays), (4, 1));
        assert_eq!((tally.histograms.latency_ns.count(), tally.histograms.offset_ns.count()), (4, 2));
    }

    #[test]
    fn tally_adds_up_and_keeps_signs() {
        let mut counts = Counts::new(Operation::Transfer);
        counts.scheduled = 6;
        counts.skip(Cause::FellBehind);
        counts.sent = 5;
        let answered = |latency_ns, offset_ns| Answered {
            latency_ns,
            offset_ns: Some(offset_ns),
            ..Answered::default()
        };
        counts.answer(&answered(1_000_000, -2_000));
        counts.answer(&answered(3_000_000, 2_000));
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
        assert_eq!(tally.from_send_us, None);
        counts.clear();
        assert_eq!(counts.tally(), Tally::default());
    }

    #[test]
    fn latency_from_the_send_is_kept_beside_the_other_and_is_never_negative() {
        let mut counts = Counts::new(Operation::Transfer);
        for from_send_ns in [-5, 100_000] {
            let times =
                Answered { latency_ns: 300_000, from_send_ns: Some(from_send_ns), ..Answered::default() };
            counts.answer(&times);
        }
        let tally = counts.tally();
        assert_eq!(tally.histograms.from_send_ns.count(), 2);
        let from_send = tally.from_send_us.unwrap();
        assert!(from_send.min < 0.01 && (from_send.max / 100.0 - 1.0).abs() < 0.001, "{from_send:?}");
    }

    #[test]
    fn histograms_have_the_stated_sizes() {
        let mut times = Times::default();
        let size = |times: &Times| {
            let recorded = times.positive.iter().chain(&times.negative);
            recorded.map(|times| times.distinct_values() * size_of::<u64>()).sum::<usize>()
        };
        (0..1000).for_each(|ms| times.record(ms * 1_000_000));
        assert_eq!(size(&times), 229_376);
        [i64::MIN, i64::MAX].into_iter().for_each(|ns| times.record(ns));
        assert!(size(&times) <= 2 * 450_560, "{}", size(&times));
        // Three of four kinds, of which offsets have both signs and any size, lateness, and the five of ANTP.
        assert!(4 * (2 * 229_376 + size(&times)) + 6 * 229_376 < 7 << 20);
    }

    #[test]
    fn untimed_counts_have_no_histograms() {
        let mut counts = Counts::untimed(Operation::Transfer);
        (counts.scheduled, counts.sent) = (1, 1);
        counts.answer(&Answered {
            latency_ns: 5,
            from_send_ns: Some(5),
            offset_ns: Some(5),
            has_negative_delay: true,
        });
        let tally = counts.tally();
        assert!(tally.adds_up() && tally.answered == 1);
        assert_eq!(tally.histograms, Histograms::default());
    }
}
