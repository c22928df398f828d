//! The distribution of a time under load, as it is stored: its figures, and the histogram that all of them follow from.
//!
//! A ladder has a hundred steps, and each of them thousands of exchanges: values are stored as the middle of buckets,
//! 64 for each power of two, which is off by at most 0.8 percent. Figures are those of the stored values,
//! to the last digit, so that whoever has the file can compute them again.

use serde::{Deserialize, Serialize};

use crate::load::Histogram;

/// Buckets for each power of two.
const PER_OCTAVE: u64 = 64;

/// A time, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How many values there are; at least one.
    pub count: u64,
    /// The smallest value.
    pub min_ns: u64,
    /// The first quartile. Percentiles are by nearest rank.
    pub p25_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// The arithmetic mean, as all means to tenths.
    pub mean_ns: f64,
    /// The third quartile.
    pub p75_ns: u64,
    /// The 95th percentile.
    pub p95_ns: u64,
    /// The largest value.
    pub max_ns: u64,
    /// The mean of the fastest quarter. The fastest so many percent are the values up to that percentile's rank.
    pub fastest_25_ns: f64,
    /// The mean of the fastest half, which the paper draws as the median.
    pub fastest_50_ns: f64,
    /// The mean of the fastest three quarters.
    pub fastest_75_ns: f64,
    /// The mean of the fastest 95 percent, which the paper draws as the 95th percentile.
    pub fastest_95_ns: f64,
    /// Values with their counts, in ascending order.
    pub histogram_ns: Histogram,
}

/// No time is longer: more than a day in nanoseconds.
const NS_MAX: i64 = 100_000_000_000_000;

impl Times {
    /// Of values, or of a finer histogram; `None` if it has none. Values below zero count as zero.
    #[must_use]
    pub fn of(values: &Histogram) -> Option<Self> {
        let stored = |&(value, count): &(i64, u64)| (stored(value), count);
        let pairs: Vec<(i64, u64)> = values.pairs().iter().map(stored).collect();
        Times::of_stored(Histogram::from(pairs))
    }

    fn of_stored(histogram_ns: Histogram) -> Option<Self> {
        let at = |share: f64| histogram_ns.quantile(share).map(|ns| ns.max(0) as u64);
        let fastest = |share: f64| fastest(&histogram_ns, share);
        Some(Times {
            count: histogram_ns.count(),
            min_ns: at(0.0)?,
            p25_ns: at(0.25)?,
            p50_ns: at(0.5)?,
            mean_ns: fastest(1.0)?,
            p75_ns: at(0.75)?,
            p95_ns: at(0.95)?,
            max_ns: at(1.0)?,
            fastest_25_ns: fastest(0.25)?,
            fastest_50_ns: fastest(0.5)?,
            fastest_75_ns: fastest(0.75)?,
            fastest_95_ns: fastest(0.95)?,
            histogram_ns,
        })
    }

    /// The interval in which the median lies with 95 %, in nanoseconds, between two of the values: by the binomial of
    /// how many are below it. `None` of a single value.
    #[must_use]
    pub fn median_interval_ns(&self) -> Option<[f64; 2]> {
        let reach = super::figures::DEVIATIONS / 2.0 / (self.count as f64).sqrt();
        let at = |share: f64| self.histogram_ns.quantile(share.clamp(0.0, 1.0)).map(|ns| ns.max(0) as f64);
        Some([at(0.5 - reach)?, at(0.5 + reach)?]).filter(|_| self.count > 1)
    }

    /// Whether its figures are those of its histogram.
    ///
    /// # Errors
    /// A sentence without its end.
    pub(super) fn check(&self) -> Result<(), String> {
        let pairs = self.histogram_ns.pairs();
        if let Some((value, _)) = pairs.iter().find(|(value, _)| !(0..NS_MAX).contains(value)) {
            return Err(format!("histogram_ns: {value} ns cannot be"));
        }
        let found = Times::of_stored(self.histogram_ns.clone());
        match found.is_some_and(|found| found.agrees(self)) {
            true => Ok(()),
            false => Err("its figures are not those of its histogram".to_owned()),
        }
    }

    fn agrees(&self, other: &Times) -> bool {
        let exact = |times: &Times| {
            [times.count, times.min_ns, times.p25_ns, times.p50_ns, times.p75_ns, times.p95_ns, times.max_ns]
        };
        let means = |times: &Times| {
            let Times { mean_ns, fastest_25_ns, fastest_50_ns, fastest_75_ns, fastest_95_ns, .. } = *times;
            [mean_ns, fastest_25_ns, fastest_50_ns, fastest_75_ns, fastest_95_ns]
        };
        // Other code may sum up in another order.
        let is_close = |(left, right): (f64, f64)| (left - right).abs() <= 0.1 + left.abs() * 1e-9;
        exact(self) == exact(other) && means(self).into_iter().zip(means(other)).all(is_close)
    }
}

/// What is stored of a value: the middle of its bucket. A stored value is its own.
fn stored(value: i64) -> i64 {
    let value = value.clamp(0, NS_MAX - 1) as u64;
    let octave = value.checked_ilog2().unwrap_or(0);
    let width = (1_u64 << octave) / PER_OCTAVE;
    match width {
        // Buckets are not finer than a nanosecond.
        0 | 1 => value as i64,
        width => (value / width * width + width / 2) as i64,
    }
}

/// The mean of the fastest `share` of the values; `None` if there are none.
fn fastest(histogram: &Histogram, share: f64) -> Option<f64> {
    let rank = (share * histogram.count() as f64).ceil().max(1.0) as u64;
    let (mut left, mut sum) = (rank, 0.0);
    for &(value, count) in histogram.pairs() {
        let taken = count.min(left);
        sum += value as f64 * taken as f64;
        left -= taken;
    }
    // To tenths of a nanosecond: what is stored is read as the same number.
    (histogram.count() > 0).then(|| (sum / rank as f64 * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(values: &[i64]) -> Times {
        Times::of(&Histogram::from(values.iter().map(|value| (*value, 1)).collect::<Vec<_>>())).unwrap()
    }

    #[test]
    fn figures_agree_with_hand_computed_ones() {
        let values: Vec<i64> = (1..=100).collect();
        let times = times(&values);
        assert_eq!((times.count, times.min_ns, times.max_ns), (100, 1, 100));
        assert_eq!((times.p25_ns, times.p50_ns, times.p75_ns, times.p95_ns), (25, 50, 75, 95));
        assert_eq!((times.fastest_25_ns, times.fastest_50_ns), (13.0, 25.5));
        assert_eq!((times.fastest_75_ns, times.fastest_95_ns, times.mean_ns), (38.0, 48.0, 50.5));
        assert_eq!(Times::of(&Histogram::default()), None);
    }

    #[test]
    fn edited_figures_counts_and_values_are_seen() {
        let whole = times(&[1_000_000, 2_000_000, 3_000_000]);
        whole.check().unwrap();
        type Change = fn(&mut Times);
        let changes: [Change; 5] = [
            |times| times.p50_ns += 1,
            |times| times.count += 1,
            |times| times.fastest_95_ns *= 1.001,
            |times| times.histogram_ns.merge(&Histogram::from(vec![(5, 1)])),
            |times| times.histogram_ns = Histogram::default(),
        ];
        for change in changes {
            let mut edited = whole.clone();
            change(&mut edited);
            assert!(edited.check().unwrap_err().contains("figures"), "{edited:?}");
        }
        let far = times(&[3]).histogram_ns;
        let below = Times { histogram_ns: Histogram::from(vec![(-3, 1)]), ..times(&[3]) };
        assert!(below.check().unwrap_err().contains("-3 ns"), "{far:?}");
    }

    proptest! {
        #[test]
        fn stored_values_are_close_and_stay_what_they_are(value in 0_i64..NS_MAX) {
            let near = stored(value);
            prop_assert!((near - value).abs() as f64 <= value as f64 * 0.008, "{value} {near}");
            prop_assert_eq!(stored(near), near);
        }

        #[test]
        fn what_was_stored_is_read_again(values in prop::collection::vec(0_i64..20_000_000_000, 1..200)) {
            let times = times(&values);
            prop_assert!(times.check().is_ok());
            let text = serde_json::to_string(&times).unwrap();
            prop_assert!(serde_json::from_str::<Times>(&text).unwrap().check().is_ok());
        }
    }
}
