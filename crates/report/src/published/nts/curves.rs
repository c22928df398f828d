//! The scalability experiment, step by step: Figures 7 to 12, and the raw results behind them.
//!
//! The figures are in `curves.csv`, which says where each column comes from. The raw results of d_CNTS, d_SNTP and
//! d_SNTS under load were not at hand: their Figures 9, 11 and 12 were read from the vector drawings.

use std::sync::LazyLock;

use super::table::{self, Malformed};
use super::{LOAD_STEP_RPS, MEASURED_RPS_MAX, STEP_SECONDS};

/// A drawn figure, as it stands for a step: the smallest value, and the means of the fastest so many percent. The
/// paper's legend calls these means percentiles, and the one of the fastest half the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// The smallest value.
    pub min: f64,
    /// The mean of the fastest quarter, drawn as "25th Percentile".
    pub fastest_25: f64,
    /// The mean of the fastest half, drawn as "Median".
    pub fastest_50: f64,
    /// The mean of the fastest three quarters, drawn as "75th Percentile".
    pub fastest_75: f64,
    /// The mean of the fastest 95 percent, drawn as "95th Percentile".
    pub fastest_95: f64,
}

impl Drawn {
    fn is_ascending(&self) -> bool {
        [self.min, self.fastest_25, self.fastest_50, self.fastest_75, self.fastest_95].is_sorted()
    }
}

/// d_CKE of a step by the raw results, of key exchanges that ended well, in milliseconds. Percentiles are by nearest
/// rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchanges {
    /// The smallest value.
    pub min: f64,
    /// The first quartile.
    pub p25: f64,
    /// The median.
    pub p50: f64,
    /// The mean.
    pub mean: f64,
    /// The third quartile.
    pub p75: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The largest value.
    pub max: f64,
}

/// A step of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// L: key exchanges a second that all clients together were to ask for.
    pub offered_rps: u32,
    /// Key exchanges of the measured client that ended with cookies.
    pub answered: u32,
    /// Those that ended with "connection timed out".
    pub timed_out: u32,
    /// Those that ended with error 11 of the operating system, "resource temporarily unavailable".
    pub unavailable: u32,
    /// d_CKE by the raw results.
    pub d_cke_ms: Exchanges,
    /// Figure 7, d_CKE as it was drawn.
    pub figure_7_ms: Drawn,
    /// Figure 8 as it was drawn: percent of timeouts and of error 11, both over `answered`.
    pub figure_8_percent: [f64; 2],
    /// Figure 9, d_CNTS as it was drawn.
    pub figure_9_ms: Drawn,
    /// The median of d_SKE, by the raw results.
    pub d_ske_p50_us: f64,
    /// The 95th percentile of d_SKE, by the raw results.
    pub d_ske_p95_us: f64,
    /// Figure 10, d_SKE as it was drawn.
    pub figure_10_us: Drawn,
    /// Figure 11, d_SNTP as it was drawn.
    pub figure_11_us: Drawn,
    /// Figure 12, d_SNTS as it was drawn.
    pub figure_12_us: Drawn,
}

impl Step {
    /// Key exchanges a second of the measured client alone: 100 to 500. The rest of the load is of auxiliary clients.
    #[must_use]
    pub const fn measured_rps(&self) -> u32 {
        self.offered_rps.saturating_sub(LOAD_STEP_RPS) % MEASURED_RPS_MAX + LOAD_STEP_RPS
    }

    /// Key exchanges that failed.
    #[must_use]
    pub const fn failed(&self) -> u32 {
        self.timed_out + self.unavailable
    }

    /// Key exchanges of the measured client that the results have, in any class.
    #[must_use]
    pub const fn requests(&self) -> u32 {
        self.answered + self.failed()
    }

    /// Key exchanges that the measured client was to make.
    #[must_use]
    pub const fn asked(&self) -> u32 {
        self.measured_rps() * STEP_SECONDS
    }

    /// Key exchanges that are in no class, and not in the authors' third, "other errors", either: 96 at 3,200, none
    /// elsewhere.
    #[must_use]
    pub const fn unaccounted(&self) -> u32 {
        if self.offered_rps == UNACCOUNTED.0 { UNACCOUNTED.1 } else { 0 }
    }

    /// Percent of the requests that failed, of those that the results have.
    #[must_use]
    pub fn failed_percent(&self) -> f64 {
        f64::from(self.failed()) / f64::from(self.requests()) * 100.0
    }

    /// Failures in percent of the successes: what Figure 8 draws.
    #[must_use]
    pub fn failed_over_answered_percent(&self) -> f64 {
        f64::from(self.failed()) / f64::from(self.answered) * 100.0
    }

    fn new(row: [f64; 39]) -> Result<Self, String> {
        let mut row = row.into_iter();
        let mut next = || row.next().expect("39 fields are taken of 39");
        let counts = [next(), next(), next(), next()];
        let [offered_rps, answered, timed_out, unavailable] = counts.map(count);
        let d_cke_ms = Exchanges {
            min: next(),
            p25: next(),
            p50: next(),
            mean: next(),
            p75: next(),
            p95: next(),
            max: next(),
        };
        let step = Step {
            offered_rps: offered_rps?,
            answered: answered?,
            timed_out: timed_out?,
            unavailable: unavailable?,
            d_cke_ms,
            // Its curve of the minimum is that of the raw results, and has no column.
            figure_7_ms: drawn(d_cke_ms.min, [next(), next(), next(), next()]),
            figure_8_percent: [next(), next()],
            figure_9_ms: drawn(next(), [next(), next(), next(), next()]),
            d_ske_p50_us: next(),
            d_ske_p95_us: next(),
            figure_10_us: drawn(next(), [next(), next(), next(), next()]),
            figure_11_us: drawn(next(), [next(), next(), next(), next()]),
            figure_12_us: drawn(next(), [next(), next(), next(), next()]),
        };
        step.check().map(|()| step)
    }

    /// What every row has to meet: a digit that was lost or swapped mostly breaks one of these.
    fn check(&self) -> Result<(), String> {
        let d_cke = &self.d_cke_ms;
        let (found, expected) = (self.requests(), self.asked() - self.unaccounted());
        if found != expected {
            return Err(format!("{found} requests stand where {expected} belong"));
        }
        let percentiles = [d_cke.min, d_cke.p25, d_cke.p50, d_cke.p75, d_cke.p95, d_cke.max];
        if !percentiles.is_sorted() || !(d_cke.min..=d_cke.max).contains(&d_cke.mean) {
            return Err("percentiles of d_CKE do not ascend, or its mean is outside of them".to_owned());
        }
        if self.d_ske_p50_us > self.d_ske_p95_us {
            return Err("percentiles of d_SKE do not ascend".to_owned());
        }
        let drawn =
            [self.figure_7_ms, self.figure_9_ms, self.figure_10_us, self.figure_11_us, self.figure_12_us];
        if !drawn.iter().all(Drawn::is_ascending) {
            return Err("means of the fastest do not ascend".to_owned());
        }
        let shares = [self.timed_out, self.unavailable]
            .map(|failed| f64::from(failed) / f64::from(self.answered) * 100.0);
        // Four digits were kept.
        let agrees = |(share, drawn): (f64, f64)| (share - drawn).abs() <= share * 1e-3;
        if !shares.into_iter().zip(self.figure_8_percent).all(agrees) {
            return Err("the percentages of Figure 8 are not those of the counts".to_owned());
        }
        Ok(())
    }
}

fn drawn(min: f64, [fastest_25, fastest_50, fastest_75, fastest_95]: [f64; 4]) -> Drawn {
    Drawn { min, fastest_25, fastest_50, fastest_75, fastest_95 }
}

fn count(value: f64) -> Result<u32, String> {
    let is_count = value.fract() == 0.0 && value <= f64::from(u32::MAX);
    if is_count { Ok(value as u32) } else { Err(format!("{value} is no count")) }
}

/// Reads the steps of a table.
///
/// # Errors If a line has other columns, what is no number of at least zero, or figures that contradict each other,
/// or if the load does not rise by 100 from 100 on.
pub(super) fn parse(text: &str) -> Result<Vec<Step>, Malformed> {
    let loads = (1..).map(|number| number * LOAD_STEP_RPS);
    let rows = table::read(text, COLUMNS)?.into_iter().zip(loads);
    rows.map(|((line, row), load)| match Step::new(row) {
        Ok(step) if step.offered_rps == load => Ok(step),
        Ok(step) => {
            let problem = format!("a load of {} stands where {load} belongs", step.offered_rps);
            Err(Malformed { line, problem })
        }
        Err(problem) => Err(Malformed { line, problem }),
    })
    .collect()
}

/// The steps, in the order of their load: 100, 200 and so on to 8,000.
#[must_use]
pub fn steps() -> &'static [Step] {
    static STEPS: LazyLock<Vec<Step>> =
        LazyLock::new(|| parse(TEXT).expect("it is part of the program, and tests read it"));
    &STEPS
}

/// The step with this load; `None` if there is none.
#[must_use]
pub fn step(offered_rps: u32) -> Option<&'static Step> {
    steps().iter().find(|step| step.offered_rps == offered_rps)
}

/// The load of the one step whose classes do not add up to what was asked for, and what is missing there.
const UNACCOUNTED: (u32, u32) = (3_200, 96);

const TEXT: &str = include_str!("curves.csv");

const COLUMNS: [&str; 39] = [
    "offered_rps",
    "answered",
    "timed_out",
    "os_error_11",
    "d_cke_min_ms",
    "d_cke_p25_ms",
    "d_cke_p50_ms",
    "d_cke_mean_ms",
    "d_cke_p75_ms",
    "d_cke_p95_ms",
    "d_cke_max_ms",
    "fig7_fastest25_ms",
    "fig7_fastest50_ms",
    "fig7_fastest75_ms",
    "fig7_fastest95_ms",
    "fig8_timed_out_percent",
    "fig8_os_error_11_percent",
    "fig9_min_ms",
    "fig9_fastest25_ms",
    "fig9_fastest50_ms",
    "fig9_fastest75_ms",
    "fig9_fastest95_ms",
    "d_ske_p50_us",
    "d_ske_p95_us",
    "fig10_min_us",
    "fig10_fastest25_us",
    "fig10_fastest50_us",
    "fig10_fastest75_us",
    "fig10_fastest95_us",
    "fig11_min_us",
    "fig11_fastest25_us",
    "fig11_fastest50_us",
    "fig11_fastest75_us",
    "fig11_fastest95_us",
    "fig12_min_us",
    "fig12_fastest25_us",
    "fig12_fastest50_us",
    "fig12_fastest75_us",
    "fig12_fastest95_us",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::nts::{AUX_COUNT, AUX_RPS};

    /// The table with one text in place of another, which has to stand there.
    fn edited(from: &str, to: &str) -> Result<Vec<Step>, Malformed> {
        assert!(TEXT.contains(from), "{from}");
        parse(&TEXT.replacen(from, to, 1))
    }

    #[test]
    fn table_has_a_step_for_each_load_of_the_paper() {
        let loads: Vec<u32> = steps().iter().map(|step| step.offered_rps).collect();
        let expected: Vec<u32> = (100..=8_000).step_by(100).collect();
        assert_eq!(loads, expected);
        assert_eq!(step(8_000).unwrap().offered_rps, AUX_COUNT * AUX_RPS + MEASURED_RPS_MAX);
        assert_eq!(step(8_100), None);
        let asked: u32 = steps().iter().map(Step::asked).sum();
        let found: u32 = steps().iter().map(Step::requests).sum();
        assert_eq!((asked, asked - found), (480_000, 96));
    }

    #[test]
    fn columns_land_in_their_fields() {
        let step = step(2_300).unwrap();
        assert_eq!((step.answered, step.timed_out, step.unavailable), (5_450, 14, 536));
        assert_eq!((step.measured_rps(), step.requests()), (300, 6_000));
        let d_cke = step.d_cke_ms;
        assert_eq!((d_cke.min, d_cke.p25, d_cke.p50, d_cke.mean), (1.327, 2.187, 2.874, 312.6));
        assert_eq!((d_cke.p75, d_cke.p95, d_cke.max), (51.64, 1062.0, 25_370.0));
        assert_eq!(step.figure_7_ms, drawn(1.327, [1.916, 2.186, 11.43, 41.35]));
        assert_eq!(step.figure_8_percent, [0.2569, 9.835]);
        assert_eq!(step.figure_9_ms, drawn(0.3128, [0.6022, 0.6628, 0.7119, 0.7799]));
    }

    #[test]
    fn edited_tables_are_refused_with_line_and_problem() {
        for (from, to, problem) in [
            // A swapped digit, a step that is gone, a percentile out of order, a curve, a share.
            ("2300,5450,", "2300,5540,", "6090 requests stand where 6000 belong"),
            ("\n200,", "\n700,", "a load of 700 stands where 200 belongs"),
            ("100,2000,0,0,1.651,1.965", "100,2000,0,0,1.965,1.651", "percentiles of d_CKE"),
            ("2.961,11.27,1.89,1.957", "2.961,11.27,1.957,1.89", "means of the fastest"),
            ("0.2569,9.835", "0.2569,9.385", "percentages of Figure 8"),
            ("0.8272,12.97,13.8,", "0.8272,13.8,12.97,", "percentiles of d_SKE"),
            ("\n100,2000,0,0,", "\n100,1999.5,0.5,0,", "1999.5 is no count"),
            ("fig7_fastest50_ms,", "fig7_median_ms,", "the columns have to be"),
        ] {
            let error = edited(from, to).unwrap_err();
            assert!(error.problem.contains(problem), "{from}: {error}");
            assert!(error.line > 10, "{error}");
        }
    }
}
