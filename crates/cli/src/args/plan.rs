//! What `plan` is told.

use std::time::Duration;

use authentick_load::rates;
use clap::{Args, Subcommand};

#[derive(Args, Debug)]
pub(crate) struct Plan {
    #[command(subcommand)]
    pub(crate) verb: PlanVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanVerb {
    /// ANTP, as its paper extrapolates: from rates, poll interval and re-keying period
    Antp(PlanAntp),
}

#[derive(Args, Debug)]
pub(crate) struct PlanAntp {
    /// Time requests a second that one server answers, as `load antp --search` finds
    #[arg(long, value_name = "RATE", value_parser = rates::rate)]
    pub(crate) time_rate: f64,
    /// Key exchanges a second that it answers, as `load antp-exchange --search` finds
    #[arg(long, value_name = "RATE", value_parser = rates::rate, requires = "negotiation_rate")]
    pub(crate) exchange_rate: Option<f64>,
    /// Negotiations a second that it answers, as `load antp-negotiate --search` finds
    #[arg(long, value_name = "RATE", value_parser = rates::rate, requires = "exchange_rate")]
    pub(crate) negotiation_rate: Option<f64>,
    /// From one time request of a client to the next, such as 1024 (seconds) or 30min
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub(crate) poll: Duration,
    /// From one key exchange of a client to the next, such as 30days
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub(crate) rekey: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Seconds, or a time with its unit.
fn interval(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text)
            .map_err(|error| format!("{error}; write seconds, or a time such as 30min or 30days")),
    }
}
