//! What `stress` is told: the arguments of NtpStress.

use std::time::Duration;

use authentick_load::rates;
use clap::Args;

use super::Permit;
use super::values::{OutputPath, step_seconds};

#[derive(Args, Debug)]
pub(crate) struct Stress {
    /// The server [default port: 123]
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// Requests a second
    #[arg(value_name = "RATE", value_parser = rates::rate)]
    pub(crate) rate: f64,
    /// How long, in seconds
    #[arg(value_name = "SECONDS", value_parser = step_seconds)]
    pub(crate) seconds: Duration,
    /// Where the report goes
    #[arg(value_name = "REPORT", default_value = "ntpdata.txt")]
    pub(crate) report: OutputPath,
    /// Load the server even if the first request for time has no good answer
    #[arg(long, alias = "force")]
    pub(crate) force_first: bool,
    /// Print the result as JSON instead of the lines
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) permission: Permit,
}
