//! What `report` is told.

use std::path::PathBuf;

use clap::Args;

/// Runs that `report` takes: with an older one, as many as a page has letters for.
const RUN_COUNT_MAX: usize = 25;

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// Records of load runs, or of the demo; further load runs are compared with the first
    #[arg(value_name = "RUN.json", required = true, num_args = 1..=RUN_COUNT_MAX)]
    pub(crate) runs: Vec<PathBuf>,
    /// Write a page that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Compare the load runs with this older one instead
    #[arg(long, value_name = "OLD.json")]
    pub(crate) against: Option<PathBuf>,
    /// End with exit code 1 if a run carries less than this share of the older one, such as 0.95
    #[arg(long, value_name = "RATIO", requires = "against", value_parser = least_ratio)]
    pub(crate) fail_below: Option<f64>,
}

fn least_ratio(text: &str) -> Result<f64, String> {
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
        assert_eq!(least_ratio("0.95"), Ok(0.95));
        assert!(["0", "-1", "nan", "inf", "x"].iter().all(|text| least_ratio(text).is_err()));
    }
}
