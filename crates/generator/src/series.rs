//! Counts and latencies of each second of a step.
//!
//! What ended between two turns of the driver belongs to the second in which the first of them began: a turn lasts some
//! microseconds, or as long as the thread sleeps. Losses show when their time is up, so the series may be longer than
//! the step.
//!
//! Memory is bounded: the latencies of a second take at most 384 pairs of 16 octets, and those of the first
//! [`TIMED_SECOND_COUNT_MAX`] are kept, so a thread needs less than 7 MiB for them. Later seconds have counts alone, in
//! 56 octets each.

use authentick_report::load::{Histogram, Second};
use hdrhistogram::Histogram as Hdr;

use crate::limits::TIMED_SECOND_COUNT_MAX;

const SECOND_NS: u64 = 1_000_000_000;

/// Latencies below are not told apart.
const LATENCY_MIN_NS: u64 = 1_024;
const LATENCY_MAX_NS: u64 = 100_000_000_000;
/// Sixteen buckets to each doubling: a value is off by at most 3 percent.
const SIGNIFICANT_DIGITS: u8 = 1;

/// Values that are told apart.
const PAIR_COUNT_MAX: usize = 384;
const _: () = assert!(
    TIMED_SECOND_COUNT_MAX * (PAIR_COUNT_MAX * size_of::<(i64, u64)>() + 128) < 7 << 20,
    "the memory that is stated"
);

/// Latencies since they were taken last. It allocates with the first one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lately(Option<Hdr<u32>>);

impl Lately {
    /// Counts a latency.
    pub(crate) fn record(&mut self, ns: u64) {
        let empty = || {
            Hdr::new_with_bounds(LATENCY_MIN_NS, LATENCY_MAX_NS, SIGNIFICANT_DIGITS)
                .expect("the bounds are a valid range")
        };
        self.0.get_or_insert_with(empty).saturating_record(ns);
    }

    /// All since the last time.
    fn take(&mut self) -> Histogram {
        let Some(times) = self.0.as_mut().filter(|times| !times.is_empty()) else {
            return Histogram::default();
        };
        let pairs = times.iter_recorded().map(|step| {
            let middle = times.median_equivalent(step.value_iterated_to());
            (i64::try_from(middle).unwrap_or(i64::MAX), u64::from(step.count_at_value()))
        });
        let taken = Histogram::from(pairs.collect::<Vec<_>>());
        times.reset();
        taken
    }

    pub(crate) fn clear(&mut self) {
        self.0.iter_mut().for_each(Hdr::reset);
    }
}

/// The seconds of a step so far.
#[derive(Debug, Default)]
pub(crate) struct Series {
    from_ns: u64,
    /// Sent, answered and failed when the last turn began.
    told: [u64; 3],
    /// The second of the last turn.
    index: usize,
    seconds: Vec<Second>,
    latencies: Vec<Histogram>,
}

impl Series {
    /// A step begins that counts from `from_ns` on.
    pub(crate) fn start(&mut self, from_ns: u64) {
        (self.from_ns, self.told, self.index) = (from_ns, [0; 3], 0);
        self.seconds.clear();
        self.latencies.clear();
    }

    /// A turn begins at `now_ns`, before which so many were sent, answered and failed.
    pub(crate) fn turn(&mut self, now_ns: u64, counts: [u64; 3], lately: &mut Lately) {
        let index = (now_ns.saturating_sub(self.from_ns) / SECOND_NS) as usize;
        if index > self.index {
            self.close(counts, lately);
            self.index = index;
        }
    }

    /// The second of the last turn is over, or the step.
    fn close(&mut self, counts: [u64; 3], lately: &mut Lately) {
        let latencies = lately.take();
        let [sent, answered, failed] = std::array::from_fn(|which| counts[which] - self.told[which]);
        self.told = counts;
        if [sent, answered, failed] == [0; 3] {
            return;
        }
        let second = Second { sent, answered, failed, ..Second::default() };
        self.seconds.resize(self.index, Second::default());
        if self.index >= TIMED_SECOND_COUNT_MAX {
            return self.seconds.push(second);
        }
        self.latencies.resize(self.index, Histogram::default());
        self.seconds.push(summarised(second, &latencies));
        self.latencies.push(latencies);
    }

    /// The series of a step that lasted so long, with the latencies behind its percentiles.
    pub(crate) fn finish(
        &mut self,
        lasted_ns: u64,
        counts: [u64; 3],
        lately: &mut Lately,
    ) -> (Vec<Second>, Vec<Histogram>) {
        self.close(counts, lately);
        let count = (lasted_ns.div_ceil(SECOND_NS) as usize).max(self.seconds.len());
        let (mut seconds, mut latencies) =
            (std::mem::take(&mut self.seconds), std::mem::take(&mut self.latencies));
        seconds.resize(count, Second::default());
        latencies.resize(count.min(TIMED_SECOND_COUNT_MAX), Histogram::default());
        (seconds, latencies)
    }
}

/// A second with the percentiles of its latencies.
fn summarised(second: Second, latencies: &Histogram) -> Second {
    let at = |share| latencies.quantile(share).map(|ns| ns as f64 / 1e3);
    Second { p50_us: at(0.5), p99_us: at(0.99), ..second }
}

/// Adds the seconds of another thread or host.
pub(crate) fn merge(
    (mine, my_latencies): (&mut Vec<Second>, &mut Vec<Histogram>),
    (others, other_latencies): (Vec<Second>, Vec<Histogram>),
) {
    mine.resize(mine.len().max(others.len()), Second::default());
    for (second, other) in mine.iter_mut().zip(others) {
        second.sent = second.sent.saturating_add(other.sent);
        second.answered = second.answered.saturating_add(other.answered);
        second.failed = second.failed.saturating_add(other.failed);
    }
    my_latencies.resize(my_latencies.len().max(other_latencies.len()), Histogram::default());
    for (latencies, others) in my_latencies.iter_mut().zip(&other_latencies) {
        latencies.merge(others);
    }
    for (second, latencies) in mine.iter_mut().zip(my_latencies) {
        *second = summarised(*second, latencies);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn counts(second: &Second) -> [u64; 3] {
        [second.sent, second.answered, second.failed]
    }

    #[test]
    fn what_happens_is_in_the_second_of_its_turn() {
        let (mut series, mut lately) = (Series::default(), Lately::default());
        series.start(500 * MS);
        series.turn(100 * MS, [0; 3], &mut lately);
        series.turn(500 * MS, [0; 3], &mut lately);
        lately.record(MS);
        lately.record(2 * MS);
        series.turn(1_499 * MS, [3, 2, 0], &mut lately);
        series.turn(1_500 * MS, [4, 2, 0], &mut lately);
        lately.record(4 * MS);
        // Nothing happens in the third second, and losses are known in the fourth.
        series.turn(2_600 * MS, [6, 3, 0], &mut lately);
        series.turn(3_700 * MS, [6, 3, 0], &mut lately);
        let (seconds, latencies) = series.finish(2_000 * MS, [6, 3, 3], &mut lately);
        assert_eq!(
            seconds.iter().map(counts).collect::<Vec<_>>(),
            [[4, 2, 0], [2, 1, 0], [0, 0, 0], [0, 0, 3]]
        );
        assert_eq!(latencies.iter().map(Histogram::count).collect::<Vec<_>>(), [2, 1, 0, 0]);
        let near = |found: Option<f64>, us: f64| found.is_some_and(|found| (found / us - 1.0).abs() < 0.032);
        assert!(near(seconds[0].p50_us, 1_000.0) && near(seconds[0].p99_us, 2_000.0), "{seconds:?}");
        assert!(near(seconds[1].p50_us, 4_000.0) && seconds[2].p50_us.is_none());
    }

    #[test]
    fn step_has_all_its_seconds_and_latencies_of_the_first_ones() {
        let (mut series, mut lately) = (Series::default(), Lately::default());
        series.start(0);
        assert_eq!(series.finish(2_500 * MS, [0; 3], &mut lately).0.len(), 3);
        series.start(0);
        for second in 0..TIMED_SECOND_COUNT_MAX as u64 + 9 {
            lately.record(MS);
            series.turn((second + 1) * SECOND_NS, [second + 1; 3], &mut lately);
        }
        let counted = [TIMED_SECOND_COUNT_MAX as u64 + 9; 3];
        let (seconds, latencies) = series.finish(0, counted, &mut lately);
        assert_eq!((seconds.len(), latencies.len()), (TIMED_SECOND_COUNT_MAX + 9, TIMED_SECOND_COUNT_MAX));
        assert!(seconds.iter().all(|second| counts(second) == [1; 3]));
        let is_timed = |second: &Second| second.p50_us.is_some();
        assert!(seconds[..TIMED_SECOND_COUNT_MAX].iter().all(is_timed));
        assert!(!seconds[TIMED_SECOND_COUNT_MAX..].iter().any(is_timed));
    }

    #[test]
    fn latencies_of_a_second_take_the_memory_that_is_stated() {
        let mut lately = Lately::default();
        (0..200_000).for_each(|step| lately.record(step * step * 3));
        lately.record(u64::MAX);
        let pair_count = lately.take().pairs().len();
        assert!((300..=PAIR_COUNT_MAX).contains(&pair_count), "{pair_count}");
        assert_eq!(lately.take(), Histogram::default());
    }

    #[test]
    fn seconds_of_several_threads_have_the_percentiles_of_all_answers() {
        let second = |sent, ms: u64, count: u64| {
            let latencies = Histogram::from(vec![((ms * MS) as i64, count)]);
            let second = Second { sent, answered: count, ..Second::default() };
            (summarised(second, &latencies), latencies)
        };
        let ((one, one_ns), (other, other_ns)) = (second(90, 1, 90), second(20, 5, 10));
        let (mut seconds, mut latencies) = (vec![one], vec![one_ns]);
        merge((&mut seconds, &mut latencies), (vec![other, other], vec![other_ns.clone(), other_ns]));
        assert_eq!(seconds.iter().map(counts).collect::<Vec<_>>(), [[110, 100, 0], [20, 10, 0]]);
        assert_eq!((seconds[0].p50_us, seconds[0].p99_us), (Some(1_000.0), Some(5_000.0)));
        assert_eq!(seconds[1], other);
    }
}
