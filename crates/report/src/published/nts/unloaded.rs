//! The unloaded experiment: Figures 4 and 5 as whole percentiles of the raw results.
//!
//! The figures are in `unloaded.csv`. Percentiles are by nearest rank, as in [`crate::stats`].

use std::sync::LazyLock;

use super::Measure;
use super::table::{self, Malformed};

/// The values of one measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The measure.
    pub measure: Measure,
    /// How many values the raw results have.
    pub count: u32,
    /// Their mean, in nanoseconds.
    pub mean_ns: f64,
    /// In nanoseconds: the minimum, the 1st to the 99th percentile, and the maximum.
    pub percentiles_ns: Vec<f64>,
}

impl Distribution {
    /// A whole percentile, 0 for the minimum and 100 for the maximum, in nanoseconds; `None` above 100.
    #[must_use]
    pub fn percentile_ns(&self, percent: usize) -> Option<f64> {
        self.percentiles_ns.get(percent).copied()
    }
}

/// What was measured, in the order of the columns: how many values there are, and their mean in nanoseconds. The
/// means are of the raw results, too; percentiles do not tell them.
const MEASURED: [(Measure, u32, f64); 5] = [
    (Measure::Cke, 1_000, 2_289_022.2),
    (Measure::Cnts, 1_000, 876_405.8),
    (Measure::Sntp, 3_029, 2_420.3),
    (Measure::Ske, 3_030, 17_955.9),
    (Measure::Snts, 3_029, 85_770.9),
];

/// Reads the percentiles of a table.
///
/// # Errors If a line has other columns or what is no number of at least zero, if rows are not those of 0 to 100
/// percent, or if a percentile is below the one before it.
pub(super) fn parse(text: &str) -> Result<Vec<Distribution>, Malformed> {
    let rows = table::read(text, COLUMNS)?;
    for (expected, &(line, row)) in (0_u32..).zip(&rows) {
        if row[0] != f64::from(expected) {
            let problem = format!("{} percent stands where {expected} belongs", row[0]);
            return Err(Malformed { line, problem });
        }
    }
    for pair in rows.windows(2) {
        if let [(_, before), (line, row)] = pair
            && let Some(column) = (1..COLUMNS.len()).find(|&column| row[column] < before[column])
        {
            let problem = format!("{} is below the percentile before it", COLUMNS[column]);
            return Err(Malformed { line: *line, problem });
        }
    }
    if rows.len() != ROW_COUNT {
        let problem = format!("{} rows end here; {ROW_COUNT} belong there, of 0 to 100 percent", rows.len());
        return Err(Malformed { line: rows.last().map_or(1, |&(line, _)| line), problem });
    }
    let of = |(column, (measure, count, mean_ns))| Distribution {
        measure,
        count,
        mean_ns,
        percentiles_ns: rows.iter().map(|(_, row)| row[column]).collect(),
    };
    Ok((1..).zip(MEASURED).map(of).collect())
}

/// What was measured without load: d_CKE, d_CNTS, d_SNTP, d_SKE and d_SNTS.
#[must_use]
pub fn distributions() -> &'static [Distribution] {
    static DISTRIBUTIONS: LazyLock<Vec<Distribution>> =
        LazyLock::new(|| parse(TEXT).expect("it is part of the program, and tests read it"));
    &DISTRIBUTIONS
}

/// The values of a measure; `None` of d_CNTP, which was computed.
#[must_use]
pub fn distribution(measure: Measure) -> Option<&'static Distribution> {
    distributions().iter().find(|distribution| distribution.measure == measure)
}

/// 0 to 100 percent.
const ROW_COUNT: usize = 101;

const TEXT: &str = include_str!("unloaded.csv");

const COLUMNS: [&str; 6] = ["percent", "d_cke_ns", "d_cnts_ns", "d_sntp_ns", "d_ske_ns", "d_snts_ns"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_raw_results() {
        // Computed apart, to four digits: percent 1, 5, 10, 25, 50, 75, 90, 95 and 99, in microseconds.
        let expected = [
            (Measure::Cke, [2079.0, 2123.0, 2147.0, 2191.0, 2258.0, 2352.0, 2454.0, 2522.0, 2708.0], 0.5),
            (Measure::Cnts, [772.0, 795.0, 805.0, 833.0, 868.0, 904.0, 941.0, 972.0, 1128.0], 0.5),
            (Measure::Sntp, [1.287, 1.441, 1.519, 1.673, 2.034, 3.241, 3.519, 3.671, 4.022], 0.0005),
            (Measure::Ske, [13.602, 14.046, 14.350, 14.967, 18.131, 19.810, 22.871, 24.789, 25.805], 0.0005),
            (
                Measure::Snts,
                [72.831, 75.989, 76.825, 78.105, 80.796, 95.414, 97.291, 98.076, 100.841],
                0.0005,
            ),
        ];
        for (measure, values_us, rounding) in expected {
            let distribution = distribution(measure).unwrap();
            for (percent, value_us) in [1, 5, 10, 25, 50, 75, 90, 95, 99].into_iter().zip(values_us) {
                let found = distribution.percentile_ns(percent).unwrap() / 1e3;
                assert!((found - value_us).abs() <= rounding + 1e-9, "{measure:?} {percent}: {found}");
            }
        }
        assert_eq!(distribution(Measure::Cntp), None);
        assert_eq!(distribution(Measure::Cke).unwrap().percentile_ns(101), None);
    }

    #[test]
    fn means_lie_where_the_percentiles_allow() {
        for distribution in distributions() {
            let values = &distribution.percentiles_ns;
            // Each hundredth of the values lies between two neighbouring percentiles.
            let (low, high) = (&values[..100], &values[1..]);
            let (low, high) = (low.iter().sum::<f64>() / 100.0, high.iter().sum::<f64>() / 100.0);
            assert!((low..=high).contains(&distribution.mean_ns), "{distribution:?} {low} {high}");
        }
    }

    #[test]
    fn edited_tables_are_refused_with_line_and_problem() {
        for (from, to, line, problem) in [
            ("\n1,2079448", "\n1,2979448", 8, "d_cke_ns is below the percentile before it"),
            ("\n2,", "\n3,", 8, "3 percent stands where 2 belongs"),
        ] {
            assert!(TEXT.contains(from), "{from}");
            let error = parse(&TEXT.replacen(from, to, 1)).unwrap_err();
            assert!(error.problem.contains(problem), "{from}: {error}");
            assert_eq!(error.line, line, "{error}");
        }
        let short = &TEXT[..TEXT.find("\n100,").unwrap()];
        assert!(parse(short).unwrap_err().problem.contains("100 rows end here; 101 belong there"));
        let last = TEXT.lines().last().unwrap();
        let long = format!("{TEXT}{}\n", last.replacen("100,", "101,", 1));
        assert!(parse(&long).unwrap_err().problem.contains("102 rows end here"));
    }
}
