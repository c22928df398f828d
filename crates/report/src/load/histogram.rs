//! Distributions as they are stored: values in ascending order, each with its count.
//!
//! The generator counts into HDR histograms of three significant digits; what is stored is one representative value
//! for each bucket that holds anything. So a stored value is off by at most 0.1 percent, and any tool reads it.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The significant bits of a coarse value: half of the last one is 1/128 of the smallest value that has so many.
const COARSE_BITS: u32 = 7;

/// Values and their counts, in ascending order of the values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(i64, u64)>", into = "Vec<(i64, u64)>")]
pub struct Histogram(Vec<(i64, u64)>);

/// The points of a distribution that are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The smallest value.
    pub min: f64,
    /// The median.
    pub p50: f64,
    /// Exceeded by at most one value in ten.
    pub p90: f64,
    /// Exceeded by at most one value in twenty; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
    /// Exceeded by at most one value in a hundred.
    pub p99: f64,
    /// Exceeded by at most one value in a thousand.
    pub p999: f64,
    /// Exceeded by at most one value in ten thousand; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p9999: Option<f64>,
    /// The largest value.
    pub max: f64,
}

/// One of these points, by the name that it has in text and tables: `p99`, `p99.9`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::Display)]
pub enum Point {
    /// The smallest value.
    #[strum(serialize = "min")]
    Min,
    /// The median.
    #[strum(serialize = "p50")]
    P50,
    /// The 90th percentile.
    #[strum(serialize = "p90")]
    P90,
    /// The 95th percentile.
    #[strum(serialize = "p95")]
    P95,
    /// The 99th percentile.
    #[default]
    #[strum(serialize = "p99")]
    P99,
    /// The 99.9th percentile.
    #[strum(serialize = "p99.9")]
    P999,
    /// The 99.99th percentile.
    #[strum(serialize = "p99.99")]
    P9999,
    /// The largest value.
    #[strum(serialize = "max")]
    Max,
}

impl FromStr for Point {
    type Err = String;

    /// Accepts the names of records and CSV, such as `p999` for `p99.9`, too.
    fn from_str(text: &str) -> Result<Self, String> {
        let named = |point: &Point| [point.to_string(), point.field()].iter().any(|name| name == text);
        let found = Point::ALL.into_iter().find(named);
        found.ok_or_else(|| format!("invalid percentile {text:?}: expected {}", Point::NAMES))
    }
}

impl Point {
    /// Every point, in ascending order.
    pub const ALL: [Point; 8] =
        [Point::Min, Point::P50, Point::P90, Point::P95, Point::P99, Point::P999, Point::P9999, Point::Max];

    /// The names of all points, as a message lists them.
    pub const NAMES: &str = "min, p50, p90, p95, p99, p99.9, p99.99 or max";

    /// The name in records and CSV: that of text without a decimal point.
    #[must_use]
    pub fn field(self) -> String {
        self.to_string().replace('.', "")
    }
}

impl Percentiles {
    /// The value at a point; `None` if an older record lacks it.
    #[must_use]
    pub const fn at(&self, point: Point) -> Option<f64> {
        match point {
            Point::Min => Some(self.min),
            Point::P50 => Some(self.p50),
            Point::P90 => Some(self.p90),
            Point::P95 => self.p95,
            Point::P99 => Some(self.p99),
            Point::P999 => Some(self.p999),
            Point::P9999 => self.p9999,
            Point::Max => Some(self.max),
        }
    }
}

impl From<Vec<(i64, u64)>> for Histogram {
    /// Sorts, merges duplicates, and omits values with a count of zero.
    fn from(mut pairs: Vec<(i64, u64)>) -> Self {
        pairs.retain(|&(_, count)| count > 0);
        pairs.sort_unstable_by_key(|&(value, _)| value);
        pairs.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = earlier.1.saturating_add(later.1);
            }
            same
        });
        Histogram(pairs)
    }
}

impl From<Histogram> for Vec<(i64, u64)> {
    fn from(histogram: Histogram) -> Self {
        histogram.0
    }
}

impl Histogram {
    /// Values with their counts, in ascending order.
    #[must_use]
    pub fn pairs(&self) -> &[(i64, u64)] {
        &self.0
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, &(_, count)| sum.saturating_add(count))
    }

    /// Adds the values of another one.
    pub fn merge(&mut self, other: &Histogram) {
        let mut pairs = std::mem::take(&mut self.0);
        pairs.extend_from_slice(&other.0);
        *self = Histogram::from(pairs);
    }

    /// The same with values that are off by at most 0.8 percent, of which there are at most 64 for each power of two.
    #[must_use]
    pub fn coarse(&self) -> Histogram {
        let value = |value: i64| {
            let magnitude = value.unsigned_abs();
            let shift = (u64::BITS - magnitude.leading_zeros()).saturating_sub(COARSE_BITS);
            // The middle of all values that differ only below the bits that are kept.
            let middle = (magnitude >> shift << shift) | (1 << shift >> 1);
            i64::try_from(middle).unwrap_or(i64::MAX) * value.signum()
        };
        self.0.iter().map(|&(exact, count)| (value(exact), count)).collect::<Vec<_>>().into()
    }

    /// The smallest value that at least `share` of the values, between 0 and 1, do not exceed (nearest rank); `None`
    /// if there are no values.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<i64> {
        let rank = (share.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let mut below = 0u64;
        let found = self.0.iter().find(|&&(_, count)| {
            below = below.saturating_add(count);
            below >= rank
        });
        found.or(self.0.last()).map(|&(value, _)| value)
    }

    /// The arithmetic mean; `None` if there are no values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        // Stored values and counts may be the largest that there are, and many of them are more than any integer holds.
        let sum: f64 = self.0.iter().map(|&(value, count)| value as f64 * count as f64).sum();
        let count = self.count();
        (count > 0).then(|| sum / count as f64)
    }

    /// The usual points, divided by `unit`: 1000 converts nanoseconds to microseconds; `None` if there are no values.
    #[must_use]
    pub fn percentiles(&self, unit: f64) -> Option<Percentiles> {
        let at = |share| self.quantile(share).map(|value| value as f64 / unit);
        Some(Percentiles {
            min: self.0.first()?.0 as f64 / unit,
            p50: at(0.5)?,
            p90: at(0.9)?,
            p95: at(0.95),
            p99: at(0.99)?,
            p999: at(0.999)?,
            p9999: at(0.9999),
            max: self.0.last()?.0 as f64 / unit,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let histogram = Histogram::from(vec![(30, 1), (10, 5), (20, 4)]);
        for (share, expected) in [(0.0, 10), (0.5, 10), (0.51, 20), (0.9, 20), (0.91, 30), (1.0, 30)] {
            assert_eq!(histogram.quantile(share), Some(expected), "{share}");
        }
        assert_eq!(histogram.mean(), Some(16.0));
        assert_eq!(Histogram::default().quantile(0.5), None);
        assert_eq!(Histogram::default().percentiles(1.0), None);
    }

    #[test]
    fn points_have_their_names_and_ranks() {
        let names: Vec<String> = Point::ALL.iter().map(Point::to_string).collect();
        assert_eq!(names.join(", ").replace(", max", " or max"), Point::NAMES);
        let ranks = Histogram::from((1..=10_000).map(|rank| (rank, 1)).collect::<Vec<_>>());
        let percentiles = ranks.percentiles(1.0).unwrap();
        let values = Point::ALL.map(|point| percentiles.at(point).unwrap());
        assert_eq!(values, [1.0, 5_000.0, 9_000.0, 9_500.0, 9_900.0, 9_990.0, 9_999.0, 10_000.0]);
        let stored = serde_json::to_value(percentiles).unwrap();
        for point in Point::ALL {
            assert_eq!(point.to_string().parse(), Ok(point));
            assert_eq!(point.field().parse(), Ok(point));
            assert_eq!(stored[point.field()].as_f64(), percentiles.at(point));
        }
        assert!("p98".parse::<Point>().unwrap_err().contains("p99.99 or max"));
    }

    #[test]
    fn older_percentiles_lack_two_points() {
        let old = r#"{"min":1.0,"p50":2.0,"p90":3.0,"p99":4.0,"p999":5.0,"max":6.0}"#;
        let read: Percentiles = serde_json::from_str(old).unwrap();
        assert_eq!(
            (read.at(Point::P95), read.at(Point::P9999), read.at(Point::Max)),
            (None, None, Some(6.0))
        );
        assert_eq!(serde_json::to_string(&read).unwrap(), old);
    }

    #[test]
    fn largest_values_and_counts_have_a_mean() {
        let histogram = Histogram::from(vec![(i64::MAX, u64::MAX), (i64::MAX - 1, u64::MAX)]);
        assert_eq!(histogram.mean(), Some(2.0 * i64::MAX as f64));
    }

    #[test]
    fn stored_form_is_pairs() {
        let histogram = Histogram::from(vec![(2, 1), (-1, 3), (2, 2), (9, 0)]);
        let text = serde_json::to_string(&histogram).unwrap();
        assert_eq!(text, "[[-1,3],[2,3]]");
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
    }

    #[test]
    fn coarse_values_are_few() {
        let fine = Histogram::from((1..1_000_000).map(|value| (value * 100, 1)).collect::<Vec<_>>());
        let coarse = fine.coarse();
        assert!((64 * 13..64 * 20).contains(&coarse.pairs().len()), "{}", coarse.pairs().len());
        let largest =
            Histogram::from(vec![(i64::MIN, 1), (0, 1), (127, 2), (128, 1), (129, 1), (i64::MAX, 1)]);
        let kept: Vec<u64> = largest.coarse().pairs().iter().map(|&(_, count)| count).collect();
        assert_eq!(kept, [1, 1, 2, 2, 1]);
    }

    proptest! {
        #[test]
        fn coarse_values_are_near(value in any::<i64>(), count in 1u64..9) {
            let coarse = Histogram::from(vec![(value, count)]).coarse();
            let &[(near, kept)] = coarse.pairs() else { panic!("{coarse:?}") };
            prop_assert_eq!(kept, count);
            prop_assert!((near as f64 - value as f64).abs() <= value.abs_diff(0) as f64 / 128.0, "{} {}", near, value);
        }

        #[test]
        fn merging_is_counting_together(
            a in prop::collection::vec((-50i64..50, 1u64..9), 0..40),
            b in prop::collection::vec((-50i64..50, 1u64..9), 0..40),
        ) {
            let mut merged = Histogram::from(a.clone());
            merged.merge(&Histogram::from(b.clone()));
            prop_assert_eq!(merged, Histogram::from([a, b].concat()));
        }
    }
}
