//! What `report` is told.

use std::path::PathBuf;

use authentick_report::load::Point;
use authentick_report::load::compare::Gate;
use clap::Args;

use super::OutputPath;

/// Runs that `report` takes: with an older one, as many as a page has letters for.
const RUN_COUNT_MAX: usize = 25;

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// Records of load runs, or of the demo; further load runs are compared with the first
    #[arg(value_name = "RUN.json", required = true, num_args = 1..=RUN_COUNT_MAX)]
    pub(crate) runs: Vec<PathBuf>,
    /// Write the report to this file, as one HTML page that needs no other file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<OutputPath>,
    /// Compare the load runs with this older one, not with the first
    #[arg(long, value_name = "OLD.json")]
    pub(crate) against: Option<PathBuf>,
    /// End with exit code 1 if a run's capacity is less than this share of the older one, such as 0.95
    #[arg(long, value_name = "RATIO", requires = "against", value_parser = positive_ratio)]
    pub(crate) fail_below: Option<f64>,
    /// End with exit code 1 if its latency at an equal rate is more than this many times the older one, such as 1.5
    #[arg(long, value_name = "RATIO", requires = "against", value_parser = positive_ratio)]
    pub(crate) fail_above: Option<f64>,
    /// The latency that --fail-above compares: min, p50, p90, p95, p99, p99.9, p99.99 or max
    #[arg(long, value_name = "POINT", requires = "fail_above", default_value_t)]
    pub(crate) percentile: Point,
    /// Compare runs even if they differ in more than the server
    #[arg(long, requires = "against")]
    pub(crate) allow_unlike: bool,
}

impl Report {
    /// What is required of the runs; `None`: nothing.
    pub(crate) fn gate(&self) -> Option<Gate> {
        let Report { fail_below: least, fail_above: most, percentile: point, allow_unlike, .. } = *self;
        (least.is_some() || most.is_some()).then_some(Gate { least, most, point, allow_unlike })
    }
}

fn positive_ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if ratio > 0.0 && ratio.is_finite() => Ok(ratio),
        _ => Err("no ratio above 0, such as 0.95".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_is_above_zero() {
        assert_eq!(positive_ratio("0.95"), Ok(0.95));
        assert!(["0", "-1", "nan", "inf", "x"].iter().all(|text| positive_ratio(text).is_err()));
    }
}
