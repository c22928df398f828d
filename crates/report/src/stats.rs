//! Figures of a sample: percentiles, mean, standard deviation. Exact, from raw values; there are no histograms here.
//! [`knee`] has a figure of many samples: where a ladder of loads bends; [`bootstrap`] an interval around a median.
//!
//! Percentiles are by *nearest rank*: of `n` values in ascending order, the p-th percentile is number ⌈p · n / 100⌉,
//! counted from one, and number one for p = 0. It is the smallest value that at least p percent of the values do not
//! exceed. So a percentile is always a value that was measured, never one in between: the median of an even number of
//! values is the lower of the two in the middle.

pub mod bootstrap;
pub mod knee;

/// How far up a sample to look, in thousandths of a percent, so that 99.9 is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percentile(u32);

impl Percentile {
    /// The smallest value.
    pub const MIN: Percentile = Percentile(0);
    /// The median.
    pub const P50: Percentile = Percentile(50_000);
    /// Exceeded by at most one value in ten.
    pub const P90: Percentile = Percentile(90_000);
    /// Exceeded by at most one value in twenty.
    pub const P95: Percentile = Percentile(95_000);
    /// Exceeded by at most one value in ten thousand.
    pub const P9999: Percentile = Percentile(99_990);
    /// Exceeded by at most one value in a hundred.
    pub const P99: Percentile = Percentile(99_000);
    /// The largest value.
    pub const MAX: Percentile = Percentile(100_000);

    /// This many thousandths of a percent; `None` above 100 percent.
    #[must_use]
    pub const fn from_thousandths(thousandths: u32) -> Option<Self> {
        if thousandths <= Self::MAX.0 { Some(Percentile(thousandths)) } else { None }
    }

    /// Where the value stands among `count` of them in ascending order.
    fn index(self, count: usize) -> usize {
        // 128 bits hold the product of any count, and the rank is at most the count.
        let rank = (u128::from(self.0) * count as u128).div_ceil(u128::from(Self::MAX.0)) as usize;
        rank.saturating_sub(1)
    }
}

/// Values in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample<T>(Vec<T>);

impl<T: Copy + Ord> FromIterator<T> for Sample<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut values: Vec<T> = values.into_iter().collect();
        values.sort_unstable();
        Sample(values)
    }
}

impl<T: Copy + Ord> From<&[T]> for Sample<T> {
    fn from(values: &[T]) -> Self {
        values.iter().copied().collect()
    }
}

impl<T: Copy + Ord> Sample<T> {
    /// The values, in ascending order.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.0
    }

    /// The value at `percentile`, by nearest rank; `None` if there are no values.
    #[must_use]
    pub fn percentile(&self, percentile: Percentile) -> Option<T> {
        self.0.get(percentile.index(self.0.len())).copied()
    }

    /// The 50th percentile, by nearest rank; `None` if there are no values.
    #[must_use]
    pub fn median(&self) -> Option<T> {
        self.percentile(Percentile::P50)
    }
}

impl<T: Copy + Into<i128>> Sample<T> {
    /// The arithmetic mean; `None` if there are no values. The sum is exact.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let (centre, excess) = self.centre()?;
        Some(centre as f64 + excess)
    }

    /// The standard deviation of the population that this is a sample of: the root of the sum of squared differences
    /// from the mean over n - 1; `None` if there are fewer than two values.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<f64> {
        let (centre, excess) = self.centre()?;
        let squares: f64 =
            self.0.iter().map(|&value| ((value.into() - centre) as f64 - excess).powi(2)).sum();
        (self.0.len() > 1).then(|| (squares / (self.0.len() - 1) as f64).sqrt())
    }

    /// The mean as an integer and what is left of it, below one: so that differences from it stay exact even where
    /// the values are Unix nanoseconds, which a float does not hold.
    fn centre(&self) -> Option<(i128, f64)> {
        let count = self.0.len() as i128;
        let sum: i128 = self.0.iter().map(|&value| value.into()).sum();
        let centre = sum.checked_div_euclid(count)?;
        Some((centre, (sum - centre * count) as f64 / count as f64))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(values: &[i64], percent: u32) -> Option<i64> {
        Sample::from(values).percentile(Percentile::from_thousandths(percent * 1000).unwrap())
    }

    #[test]
    fn percentiles_agree_with_hand_computed_ranks() {
        // Five values: rank ceil(5p / 100).
        let values = [40, 15, 50, 20, 35];
        for (percent, expected) in
            [(0, 15), (5, 15), (20, 15), (21, 20), (30, 20), (40, 20), (50, 35), (99, 50), (100, 50)]
        {
            assert_eq!(at(&values, percent), Some(expected), "{percent}");
        }
        // Four values: the median is the lower of the two in the middle.
        assert_eq!(at(&[4, 1, 3, 2], 50), Some(2));
        assert_eq!(at(&[-7], 0), Some(-7));
        assert_eq!(at(&[-7], 100), Some(-7));
    }

    #[test]
    fn hundred_values_have_their_percentiles_as_numbers() {
        let values: Vec<i64> = (1..=100).rev().collect();
        for percent in 1..=100 {
            assert_eq!(at(&values, percent), Some(i64::from(percent)));
        }
    }

    #[test]
    fn thousandths_are_exact() {
        // 99.9 / 100 * 1000 is above 999 in binary floating point, and would pick the last value.
        let sample: Sample<u64> = (1..=1000).collect();
        assert_eq!(sample.percentile(Percentile::from_thousandths(99_900).unwrap()), Some(999));
        assert_eq!(Percentile::from_thousandths(100_001), None);
    }

    #[test]
    fn nothing_has_no_figures() {
        let empty = Sample::<u64>::default();
        assert_eq!(empty.median(), None);
        assert_eq!(empty.percentile(Percentile::MAX), None);
        assert_eq!(empty.mean(), None);
        assert_eq!(empty.standard_deviation(), None);
    }

    #[test]
    fn mean_and_deviation_agree_with_hand_computed_ones() {
        // Differences from the mean 5: -3, -1, -1, -1, 0, 0, 2, 4; squares sum to 32; 32 / 7.
        let sample = Sample::from([2_u64, 4, 4, 4, 5, 5, 7, 9].as_slice());
        assert_eq!(sample.mean(), Some(5.0));
        assert_eq!(sample.standard_deviation(), Some((32.0_f64 / 7.0).sqrt()));
        let sample = Sample::from([-1_i64, 2].as_slice());
        assert_eq!(sample.mean(), Some(0.5));
        assert_eq!(sample.standard_deviation(), Some(4.5_f64.sqrt()));
        let single = Sample::from([3_u64].as_slice());
        assert_eq!((single.mean(), single.standard_deviation()), (Some(3.0), None));
    }

    #[test]
    fn deviation_is_exact_at_unix_nanoseconds() {
        let now = 1_783_080_000_123_456_789_i64;
        let sample = Sample::from([now, now + 1, now + 2].as_slice());
        assert_eq!(sample.standard_deviation(), Some(1.0));
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let sample = Sample::from([u64::MAX, u64::MAX].as_slice());
        assert_eq!(sample.mean(), Some(u64::MAX as f64));
        assert_eq!(sample.standard_deviation(), Some(0.0));
        assert!(Sample::from([i64::MIN, i64::MAX].as_slice()).standard_deviation().unwrap().is_finite());
    }

    proptest! {
        #[test]
        fn percentile_is_an_element_and_bounds_its_share(
            values in prop::collection::vec(any::<i64>(), 1..200),
            thousandths in 0_u32..=100_000,
        ) {
            let sample = Sample::from(values.as_slice());
            let value = sample.percentile(Percentile(thousandths)).unwrap();
            prop_assert!(values.contains(&value));
            let not_above = values.iter().filter(|&&other| other <= value).count() as u64;
            let below = values.iter().filter(|&&other| other < value).count() as u64;
            let share = u64::from(thousandths) * values.len() as u64;
            prop_assert!(not_above * 100_000 >= share);
            prop_assert!(below == 0 || below * 100_000 < share);
        }

        #[test]
        fn percentile_is_monotone(
            values in prop::collection::vec(any::<u64>(), 1..200),
            thousandths in prop::array::uniform2(0_u32..=100_000),
        ) {
            let sample = Sample::from(values.as_slice());
            let low = Percentile(thousandths[0].min(thousandths[1]));
            let high = Percentile(thousandths[0].max(thousandths[1]));
            prop_assert!(sample.percentile(low) <= sample.percentile(high));
        }
    }
}
