//! What a reader wants to know of a run: a few figures per scheme, and what authentication added.

use crate::run::{Exchange, RunRecord, SchemeRun};
use crate::stats::{Percentile, Sample};

/// The scheme that the others are compared with.
const PLAIN: &str = "plain";

/// The figures of one scheme.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemeSummary<'a> {
    /// The scheme's name.
    pub scheme: &'a str,
    /// What authenticates.
    pub authentication: &'a str,
    /// Exchanges that passed every check; the figures are theirs.
    pub exchange_count: usize,
    /// Exchanges that did not.
    pub failure_count: u64,
    /// Exchanges with a negative delay, which no median of offset or delay includes.
    pub negative_delay_count: usize,
    /// Absent if no exchange passed.
    pub times: Option<Times>,
    /// The extra time over plain NTP. Absent for plain NTP itself, and if either has no exchanges.
    pub added: Option<Added>,
}

/// Times of a scheme's exchanges, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Median offset of exchanges without a negative delay; absent if there are none.
    pub offset_median_ns: Option<i64>,
    /// Their median delay.
    pub delay_median_ns: Option<i64>,
    /// Median whole exchange.
    pub whole_median_ns: u64,
    /// Whole exchange that one in ten exceeds.
    pub whole_p90_ns: u64,
    /// Whole exchange that one in twenty exceeds.
    pub whole_p95_ns: u64,
    /// Whole exchange that one in a hundred exceeds.
    pub whole_p99_ns: u64,
    /// Whole exchange that one in ten thousand exceeds.
    pub whole_p9999_ns: u64,
    /// Longest whole exchange.
    pub whole_max_ns: u64,
    /// Mean whole exchange.
    pub whole_mean_ns: f64,
    /// Standard deviation of whole exchanges; absent for a single one.
    pub whole_deviation_ns: Option<f64>,
}

/// What a scheme's median whole exchange takes beyond that of plain NTP. Negative if it takes less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Added {
    /// The difference of the medians, in nanoseconds.
    pub ns: i64,
    /// The difference as a share of plain NTP's median: 0.31 is 31 percent. Absent if that median is zero.
    pub ratio: Option<f64>,
}

/// The figures of each scheme, in the order of the record. The first that is called `plain` is what the others are
/// compared with.
#[must_use]
pub fn summarise(record: &RunRecord) -> Vec<SchemeSummary<'_>> {
    let mut summaries: Vec<SchemeSummary<'_>> = record.schemes.iter().map(SchemeSummary::new).collect();
    let plain = summaries.iter().position(|summary| summary.scheme == PLAIN);
    let plain_times = plain.and_then(|index| summaries[index].times);
    for (index, summary) in summaries.iter_mut().enumerate() {
        if Some(index) != plain {
            summary.added = summary.times.zip(plain_times).map(|(times, plain)| Added::new(&times, &plain));
        }
    }
    summaries
}

impl<'a> SchemeSummary<'a> {
    fn new(run: &'a SchemeRun) -> Self {
        SchemeSummary {
            scheme: &run.scheme,
            authentication: &run.authentication,
            exchange_count: run.exchanges.len(),
            failure_count: run.failure_count(),
            negative_delay_count: run.exchanges.iter().filter(|exchange| exchange.delay_ns < 0).count(),
            times: Times::new(run),
            added: None,
        }
    }
}

impl Times {
    fn new(run: &SchemeRun) -> Option<Self> {
        let sample = |field: fn(&Exchange) -> i64| {
            let possible = run.exchanges.iter().filter(|exchange| exchange.delay_ns >= 0);
            possible.map(field).collect::<Sample<i64>>()
        };
        let whole = run.whole();
        Some(Times {
            offset_median_ns: sample(|exchange| exchange.offset_ns).median(),
            delay_median_ns: sample(|exchange| exchange.delay_ns).median(),
            whole_median_ns: whole.median()?,
            whole_p90_ns: whole.percentile(Percentile::P90)?,
            whole_p95_ns: whole.percentile(Percentile::P95)?,
            whole_p99_ns: whole.percentile(Percentile::P99)?,
            whole_p9999_ns: whole.percentile(Percentile::P9999)?,
            whole_max_ns: whole.percentile(Percentile::MAX)?,
            whole_mean_ns: whole.mean()?,
            whole_deviation_ns: whole.standard_deviation(),
        })
    }
}

impl Added {
    fn new(times: &Times, plain: &Times) -> Self {
        let difference = i128::from(times.whole_median_ns) - i128::from(plain.whole_median_ns);
        // No exchange takes the 292 years that do not fit, but a file may say so.
        let limit = if difference < 0 { i64::MIN } else { i64::MAX };
        Added {
            ns: i64::try_from(difference).unwrap_or(limit),
            ratio: (plain.whole_median_ns > 0).then(|| difference as f64 / plain.whole_median_ns as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Failure;
    use crate::run::tests::{record, scheme};

    fn added(schemes: Vec<SchemeRun>) -> Vec<Option<Added>> {
        summarise(&record(schemes)).iter().map(|summary| summary.added).collect()
    }

    #[test]
    fn figures_agree_with_hand_computed_ones() {
        let mut plain = scheme("plain", "none", &[30, 10, 50, 20, 40]);
        for (exchange, (offset, delay)) in
            plain.exchanges.iter_mut().zip([(-5, 9), (3, 8), (-1, 7), (0, 6), (2, 5)])
        {
            (exchange.offset_ns, exchange.delay_ns) = (offset, delay);
        }
        plain.failures.push(Failure { cause: "no answer".to_owned(), count: 2 });
        let nts = scheme("nts", "AES-SIV-CMAC-256", &[36, 39, 33, 99]);
        let record = record(vec![plain, nts]);
        let [plain, nts] = &summarise(&record)[..] else { panic!() };
        assert_eq!((plain.scheme, plain.authentication), ("plain", "none"));
        assert_eq!((plain.exchange_count, plain.failure_count, plain.added), (5, 2, None));
        let times = plain.times.unwrap();
        assert_eq!((times.offset_median_ns, times.delay_median_ns), (Some(0), Some(7)));
        assert_eq!((times.whole_median_ns, times.whole_p90_ns), (30, 50));
        assert_eq!((times.whole_p99_ns, times.whole_max_ns), (50, 50));
        assert_eq!((times.whole_mean_ns, times.whole_deviation_ns), (30.0, Some(250.0_f64.sqrt())));
        assert_eq!(nts.times.unwrap().whole_median_ns, 36);
        assert_eq!(nts.added, Some(Added { ns: 6, ratio: Some(0.2) }));
    }

    #[test]
    fn negative_delays_are_counted_and_in_no_median() {
        let mut run = scheme("plain", "none", &[30, 10, 50]);
        for (exchange, (offset, delay)) in run.exchanges.iter_mut().zip([(-900, -1), (1, 0), (3, 8)]) {
            (exchange.offset_ns, exchange.delay_ns) = (offset, delay);
        }
        let mut hopeless = run.clone();
        hopeless.exchanges.truncate(1);
        let record = record(vec![run, hopeless]);
        let [some, all] = &summarise(&record)[..] else { panic!() };
        let medians =
            |of: &SchemeSummary<'_>| of.times.map(|times| (times.offset_median_ns, times.delay_median_ns));
        assert_eq!((some.negative_delay_count, medians(some)), (1, Some((Some(1), Some(0)))));
        assert_eq!((all.negative_delay_count, medians(all)), (1, Some((None, None))));
        let text = crate::run::report(&record).text();
        assert!(text.contains("1 of 3 exchanges had a negative delay"), "{text}");
    }

    #[test]
    fn nothing_is_added_to_the_first_plain_run_and_something_to_the_second() {
        let runs =
            vec![scheme("nts", "a", &[15]), scheme("plain", "none", &[10]), scheme("plain", "none", &[9])];
        assert_eq!(
            added(runs),
            [Some(Added { ns: 5, ratio: Some(0.5) }), None, Some(Added { ns: -1, ratio: Some(-0.1) })]
        );
    }

    #[test]
    fn nothing_is_compared_without_plain_exchanges() {
        assert_eq!(added(vec![scheme("nts", "a", &[15])]), [None]);
        assert_eq!(added(vec![scheme("plain", "none", &[]), scheme("nts", "a", &[15])]), [None, None]);
        assert_eq!(added(vec![scheme("plain", "none", &[10]), scheme("nts", "a", &[])]), [None, None]);
        assert_eq!(added(Vec::new()), []);
    }

    #[test]
    fn share_of_a_plain_median_of_zero_is_absent() {
        let runs = vec![scheme("plain", "none", &[0]), scheme("nts", "a", &[15])];
        assert_eq!(added(runs)[1], Some(Added { ns: 15, ratio: None }));
    }

    #[test]
    fn differences_that_do_not_fit_are_capped() {
        let extreme =
            |plain, nts| added(vec![scheme("plain", "none", &[plain]), scheme("nts", "a", &[nts])])[1];
        assert_eq!(extreme(0, u64::MAX).unwrap().ns, i64::MAX);
        assert_eq!(extreme(u64::MAX, 0).unwrap().ns, i64::MIN);
    }
}
