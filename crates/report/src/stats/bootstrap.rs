//! The median of a few values with an interval, by the bootstrap: what medians do samples have that are drawn, with
//! repetition, from the values that were measured?
//!
//! Nothing is drawn here, as the answer is known exactly. The median of n values by nearest rank is the m-th of them in
//! order, m = ⌈n / 2⌉. That of a resample is at most the k-th measured value if at least m of its n draws are among the
//! first k, each with the probability k / n: a binomial tail. The interval goes from the first measured value at which
//! this reaches 2.5 % to the first at which it reaches 97.5 %. So the same values have the same interval on any host,
//! and its ends are values that were measured. B. Efron, "Bootstrap Methods: Another Look at the Jackknife", 1979,
//! section 3, has this for the median.

/// What is left out at each end of the interval.
const TAIL: f64 = 0.025;
/// Room for the errors of sums of floating point numbers.
const SLACK: f64 = 1e-9;

/// A median, and the interval in which medians of resamples lie with 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// By nearest rank: a value that was measured.
    pub median: f64,
    /// Its lower and upper end; `None` of a single value, which says nothing about its spread.
    pub interval: Option<[f64; 2]>,
}

impl Estimate {
    /// Of these values; `None` if there are none, or one of them is no finite number.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let count = values.len();
        let reaching = |share: f64| {
            let index = (1..=count).find(|&first| at_most(count, first) >= share - SLACK);
            values[index.unwrap_or(count) - 1]
        };
        let interval = (count > 1).then(|| [reaching(TAIL), reaching(1.0 - TAIL)]);
        Some(Estimate { median: values[count.div_ceil(2) - 1], interval })
    }
}

/// The probability that the median of a resample of `count` values is at most the one that is number `first` of them:
/// that at least half of its draws are among those.
fn at_most(count: usize, first: usize) -> f64 {
    let share = first as f64 / count as f64;
    if first >= count {
        return 1.0;
    }
    // Logarithms, as factorials of some hundred are beyond a float.
    let logs: Vec<f64> = (0..=count)
        .scan(0.0, |sum, number| {
            *sum += if number == 0 { 0.0 } else { (number as f64).ln() };
            Some(*sum)
        })
        .collect();
    let term = |hits: usize| {
        let ways = logs[count] - logs[hits] - logs[count - hits];
        (ways + hits as f64 * share.ln() + (count - hits) as f64 * (1.0 - share).ln()).exp()
    };
    (count.div_ceil(2)..=count).map(term).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[f64]) -> Estimate {
        Estimate::of(values.iter().copied()).unwrap()
    }

    /// The share of all resamples, each of which is as likely, whose median is at most the value of that number.
    fn counted(count: usize, first: usize) -> f64 {
        let all = count.pow(count as u32);
        let is_below = |resample: usize| {
            let draws = (0..count).map(|place| resample / count.pow(place as u32) % count);
            draws.filter(|&draw| draw < first).count() >= count.div_ceil(2)
        };
        (0..all).filter(|&resample| is_below(resample)).count() as f64 / all as f64
    }

    #[test]
    fn probabilities_are_those_of_all_resamples_counted() {
        for count in 1..=6 {
            for first in 1..=count {
                let (computed, counted) = (at_most(count, first), counted(count, first));
                assert!((computed - counted).abs() < 1e-9, "{first} of {count}: {computed} {counted}");
            }
        }
    }

    #[test]
    fn few_values_have_their_extremes_and_many_do_not() {
        assert_eq!(Estimate::of([]), None);
        assert_eq!(Estimate::of([1.0, f64::NAN]), None);
        assert_eq!(of(&[7.0]), Estimate { median: 7.0, interval: None });
        assert_eq!(of(&[3.0, 1.0, 2.0]), Estimate { median: 2.0, interval: Some([1.0, 3.0]) });
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        // By a table of the binomial distribution: P(B(10, 0.2) >= 5) = 0.0328, P(B(10, 0.7) >= 5) = 0.9527 and
        // P(B(10, 0.8) >= 5) = 0.9936.
        assert_eq!(of(&ten), Estimate { median: 5.0, interval: Some([2.0, 8.0]) });
    }

    proptest! {
        #[test]
        fn ends_are_measured_values_around_the_median(values in prop::collection::vec(-1e9_f64..1e9, 2..300)) {
            let Estimate { median, interval } = of(&values);
            let [low, high] = interval.unwrap();
            prop_assert!(low <= median && median <= high);
            prop_assert!([low, median, high].iter().all(|end| values.contains(end)));
        }
    }
}
