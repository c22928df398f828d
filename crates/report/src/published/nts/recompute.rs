//! The paper's numbers, computed again from its own figures and from its authors' data.
//!
//! What the paper takes for a formula is not always told; here each is named. A [`Recomputation`] holds a number that
//! was stated, how it was rounded, and the function that yields it; each stands with its
//! [`super::statement::Statement`].

use super::curves::{Drawn, Step, step, steps};
use super::unloaded::distribution;
use super::{CAPACITY_RPS, Measure, Unit, table_2};
use crate::stats::knee::{self, Knee, knee_where};

/// Who stated a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stated {
    /// The paper printed it.
    Printed,
    /// It is in the authors' data, or follows from them, and is not in the paper.
    Data,
}

/// How a number that was stated relates to the one that is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Agreement {
    /// It was rounded to a multiple of this.
    Rounded(f64),
    /// What is below this was cut off.
    Truncated(f64),
    /// The two may differ by so much: curves are known to four digits.
    Within(f64),
    /// Both are the same count.
    Exact,
}

impl Agreement {
    /// Whether the stated number may stand for the computed one.
    #[must_use]
    pub fn holds(self, stated: f64, computed: f64) -> bool {
        // A decimal fraction is not always what it is written as.
        const SLACK: f64 = 1e-9;
        let difference = computed - stated;
        match self {
            Agreement::Rounded(unit) => difference.abs() <= unit / 2.0 + SLACK,
            Agreement::Truncated(unit) => (-SLACK..unit).contains(&difference),
            Agreement::Within(limit) => difference.abs() <= limit,
            Agreement::Exact => difference == 0.0,
        }
    }
}

/// A number that was stated, and how it comes about.
#[derive(Clone, Copy, Debug)]
pub struct Recomputation {
    /// What the number is, and by which formula.
    pub what: &'static str,
    /// Its unit; empty of a ratio or a count.
    pub unit: &'static str,
    /// The number as it was stated.
    pub stated: f64,
    /// Who stated it.
    pub by: Stated,
    /// How precisely.
    pub agreement: Agreement,
    /// Computes it.
    pub compute: fn() -> f64,
}

impl Recomputation {
    /// Whether the stated number is what the data yield.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.agreement.holds(self.stated, (self.compute)())
    }
}

/// The mean of d_CKE in an earlier unloaded run of the authors', in milliseconds: results/single-client/client_nts_ke
/// at commit 0eab14e. The increases of Figure 7 are over this one, not over Table II's.
pub const EARLIER_CKE_MEAN_MS: f64 = 3.3905;

/// The median of d_SNTS in an earlier unloaded run, before its span had the read of a file in it, in microseconds:
/// results/single-client/server_nts_auth at commit 2b3e63f.
pub const EARLIER_SNTS_US: f64 = 20.13;

/// The median of d_SKE in the same run, in microseconds.
pub const EARLIER_SKE_US: f64 = 24.85;

/// A figure of Table II in milliseconds. It has all but d_CNTP, for which this is no number.
#[must_use]
pub fn average_ms(measure: Measure) -> f64 {
    table_2(measure).map_or(f64::NAN, |value| value * measure.unit().ns() / Unit::Milliseconds.ns())
}

/// A whole percentile of the unloaded experiment, in the measure's unit; no number of d_CNTP.
#[must_use]
pub fn unloaded(measure: Measure, percent: usize) -> f64 {
    let ns = distribution(measure).and_then(|distribution| distribution.percentile_ns(percent));
    ns.map_or(f64::NAN, |ns| ns / measure.unit().ns())
}

/// How much longer `with` takes than `without`, in percent of `without`: an increase.
#[must_use]
pub fn increase_percent(without: f64, with: f64) -> f64 {
    (with - without) / without * 100.0
}

/// How far two values are apart, in percent of the mean of both: a symmetric difference, which is no increase.
#[must_use]
pub fn symmetric_difference_percent(a: f64, b: f64) -> f64 {
    (b - a).abs() / ((a + b) / 2.0) * 100.0
}

/// d_CNTP by equation (6), in milliseconds: d_CNTS less d_SNTS.
#[must_use]
pub fn d_cntp_ms() -> f64 {
    average_ms(Measure::Cnts) - average_ms(Measure::Snts)
}

/// What "with the key exchange" can mean. The base is d_CNTP in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumCount, strum::VariantArray)]
pub enum WithExchange {
    /// The increase from a plain transfer to a key exchange and a plain transfer.
    IncreasePlain,
    /// The increase from a plain transfer to a key exchange and an authenticated transfer: what an individual
    /// authenticated transfer takes longer.
    IncreaseAuthenticated,
    /// The symmetric difference of a plain transfer, and a key exchange and a plain transfer: what was printed.
    DifferencePlain,
    /// The symmetric difference of a plain transfer, and a key exchange and an authenticated transfer.
    DifferenceAuthenticated,
    /// The increase if three authenticated transfers share a key exchange, as under load.
    IncreaseOneInThree,
}

impl WithExchange {
    /// All of them.
    pub const ALL: [WithExchange; <WithExchange as strum::EnumCount>::COUNT] =
        *<WithExchange as strum::VariantArray>::VARIANTS.first_chunk().expect("as many as there are");

    /// The figure, in percent.
    #[must_use]
    pub fn percent(self) -> f64 {
        let (exchange, plain) = (average_ms(Measure::Cke), d_cntp_ms());
        let authenticated = average_ms(Measure::Cnts);
        match self {
            WithExchange::IncreasePlain => increase_percent(plain, exchange + plain),
            WithExchange::IncreaseAuthenticated => increase_percent(plain, exchange + authenticated),
            WithExchange::DifferencePlain => symmetric_difference_percent(plain, exchange + plain),
            WithExchange::DifferenceAuthenticated => {
                symmetric_difference_percent(plain, exchange + authenticated)
            }
            WithExchange::IncreaseOneInThree => increase_percent(plain, exchange / 3.0 + authenticated),
        }
    }
}

/// The steps past the capacity that the paper names: 2,100 to 8,000.
pub fn past_capacity() -> impl Iterator<Item = &'static Step> {
    steps().iter().filter(|step| step.offered_rps > CAPACITY_RPS)
}

/// The mean of a figure over steps, each counting once; no number if there are none.
pub fn mean(steps: impl Iterator<Item = &'static Step>, figure: impl Fn(&Step) -> f64) -> f64 {
    let values: Vec<f64> = steps.map(figure).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// What a curve of Figure 7 has past the capacity beyond [`EARLIER_CKE_MEAN_MS`], on average, in milliseconds.
pub fn figure_7_increase_ms(curve: impl Fn(&Drawn) -> f64) -> f64 {
    mean(past_capacity(), |step| curve(&step.figure_7_ms)) - EARLIER_CKE_MEAN_MS
}

/// The mean over all steps of the curve called "Median" of a figure.
pub fn mean_of_drawn(figure: impl Fn(&Step) -> Drawn) -> f64 {
    mean(steps().iter(), |step| figure(step).fastest_50)
}

/// A figure of a step; no number if there is no such step.
pub fn at(offered_rps: u32, figure: impl Fn(&Step) -> f64) -> f64 {
    step(offered_rps).map_or(f64::NAN, figure)
}

/// The first step in which a key exchange failed, in key exchanges a second; no number if none did.
#[must_use]
pub fn first_failure_rps() -> f64 {
    let failed = steps().iter().find(|step| step.failed() > 0);
    failed.map_or(f64::NAN, |step| f64::from(step.offered_rps))
}

/// The knee of their data: by medians of d_CKE, over the unloaded experiment's.
#[must_use]
pub fn published_knee() -> Option<Knee> {
    knee_of(knee::LATER_TENTHS_MIN)
}

/// The same if every later step had to exceed the limit.
#[must_use]
pub fn strict_knee() -> Option<Knee> {
    knee_of(10)
}

fn knee_of(later_tenths_min: usize) -> Option<Knee> {
    let steps: Vec<knee::Step> = steps()
        .iter()
        .map(|step| knee::Step { offered_rps: step.offered_rps, median: step.d_cke_ms.p50 })
        .collect();
    knee_where(unloaded(Measure::Cke, 50), &steps, later_tenths_min)
}

/// The rate that a client of theirs asks for if it is told this one: its pauses are whole milliseconds. Sleeping takes
/// longer than asked for, so what it sends is at most that.
#[must_use]
pub fn asked_rps(told_rps: f64) -> f64 {
    1e3 / (1e3 / told_rps).round()
}

/// What reading a file takes of d_SNTS, in microseconds, if the rest of it were to d_SKE as it was in the earlier
/// run: an inference.
#[must_use]
pub fn file_read_us() -> f64 {
    unloaded(Measure::Snts, 50) - unloaded(Measure::Ske, 50) * EARLIER_SNTS_US / EARLIER_SKE_US
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::nts::{
        ABSTRACT_INCREASE_PERCENT, EXCHANGE_INCREASE_PERCENT, FIGURE_7_INCREASE_MS, TRANSFER_INCREASE_PERCENT,
    };

    #[test]
    fn agreement_is_as_strict_as_the_last_digit() {
        for (agreement, stated, computed, holds) in [
            (Agreement::Rounded(0.01), 0.79, 0.7892, true),
            (Agreement::Rounded(0.01), 0.79, 0.7951, false),
            (Agreement::Rounded(0.01), 0.79, 0.7949, true),
            (Agreement::Truncated(0.01), 9.73, 9.7396, true),
            (Agreement::Truncated(0.01), 9.73, 9.7401, false),
            (Agreement::Truncated(0.01), 9.73, 9.7299, false),
            (Agreement::Within(0.05), 744.64, 744.656, true),
            (Agreement::Within(0.05), 744.64, 744.70, false),
            (Agreement::Exact, 6.0, 6.0, true),
            (Agreement::Exact, 6.0, 7.0, false),
        ] {
            assert_eq!(agreement.holds(stated, computed), holds, "{agreement:?} {stated} {computed}");
            assert!(!agreement.holds(stated, f64::NAN));
        }
    }

    #[test]
    fn transfer_increase_was_a_symmetric_difference_and_cut_off() {
        let (plain, authenticated) = (d_cntp_ms(), average_ms(Measure::Cnts));
        let difference = symmetric_difference_percent(plain, authenticated);
        assert!((difference - 9.7396).abs() < 0.0001, "{difference}");
        assert!(Agreement::Truncated(0.01).holds(TRANSFER_INCREASE_PERCENT, difference));
        assert!(!Agreement::Rounded(0.01).holds(TRANSFER_INCREASE_PERCENT, difference));
        let increase = increase_percent(plain, authenticated);
        assert!((increase - 10.238).abs() < 0.001, "{increase}");
    }

    #[test]
    fn one_formula_yields_117_percent_and_none_yields_116() {
        for variant in WithExchange::ALL {
            let percent = variant.percent();
            let printed = Agreement::Truncated(1.0).holds(EXCHANGE_INCREASE_PERCENT, percent);
            assert_eq!(printed, variant == WithExchange::DifferencePlain, "{variant:?} {percent}");
            for agreement in [Agreement::Truncated(1.0), Agreement::Rounded(1.0)] {
                assert!(!agreement.holds(ABSTRACT_INCREASE_PERCENT, percent), "{variant:?} {percent}");
            }
        }
    }

    #[test]
    fn figure_7_is_told_by_means_of_the_fastest_and_not_by_percentiles() {
        let increases =
            [figure_7_increase_ms(|curve| curve.fastest_50), figure_7_increase_ms(|curve| curve.fastest_95)];
        for (increase, printed) in increases.into_iter().zip(FIGURE_7_INCREASE_MS) {
            assert!((increase - printed).abs() < 0.05, "{increase} {printed}");
        }
        assert_eq!(past_capacity().count(), 60);
        // Percentiles are twice and eight times as high.
        let medians = mean(past_capacity(), |step| step.d_cke_ms.p50);
        let p95s = mean(past_capacity(), |step| step.d_cke_ms.p95);
        assert!((medians - 101.06).abs() < 0.05, "{medians}");
        assert!((p95s / 1e3 - 6.209).abs() < 0.001, "{p95s}");
    }

    #[test]
    fn knee_of_their_data_is_at_2100_and_by_a_stricter_rule_at_2400() {
        let found = published_knee().unwrap();
        assert_eq!(found, Knee { offered_rps: 2_100, later_count: 59, exceeding_count: 58 });
        // At 2,300 half of the key exchanges that ended well took 2.9 ms, as without load.
        assert!(at(2_300, |step| step.d_cke_ms.p50) < 2.0 * unloaded(Measure::Cke, 50));
        assert_eq!(strict_knee().unwrap().offered_rps, 2_400);
    }

    #[test]
    fn medians_that_were_drawn_are_below_those_of_table_2() {
        for (measure, drawn) in [
            (Measure::Cnts, mean_of_drawn(|step| step.figure_9_ms)),
            (Measure::Ske, mean_of_drawn(|step| step.figure_10_us)),
            (Measure::Sntp, mean_of_drawn(|step| step.figure_11_us)),
            (Measure::Snts, mean_of_drawn(|step| step.figure_12_us)),
        ] {
            assert!(drawn < table_2(measure).unwrap(), "{measure:?} {drawn}");
        }
    }
}
