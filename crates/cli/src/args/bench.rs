//! What `bench` is told.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::values::{OutputPath, number};

#[derive(Args, Debug)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) verb: BenchVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchVerb {
    /// MACs of NTP packets: the tables of the drafts on MACs for NTP, and which algorithm suits this host
    Mac(BenchMac),
}

#[derive(Args, Debug)]
pub(crate) struct BenchMac {
    /// Take some seconds instead of two minutes
    #[arg(long)]
    pub(crate) quick: bool,
    /// Rounds, in which all that is compared takes its turn [default: 31, with --quick 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Milliseconds of a turn [default: 20, with --quick 3]
    #[arg(long, value_name = "MS", value_parser = turn_ms)]
    pub(crate) turn_ms: Option<Duration>,
    /// Single MACs of each kind that are timed in a round [default: 4000, with --quick 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub(crate) singles: Option<u32>,
    /// Print the record instead of the tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<OutputPath>,
    /// Be the process from which the instructions are hidden, under the orders of another
    #[arg(long, hide = true, conflicts_with_all = ["json", "html"])]
    pub(crate) without_instructions: bool,
}

fn turn_ms(text: &str) -> Result<Duration, String> {
    let ms = number(text, 0.01..=10_000.0, "no number of milliseconds from 0.01 to 10000")?;
    Ok(Duration::from_secs_f64(ms / 1e3))
}
