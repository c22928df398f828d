//! What `study` is told.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::Coordination;
use super::values::step_seconds;

#[derive(Args, Debug)]
pub(crate) struct Study {
    #[command(subcommand)]
    pub(crate) verb: StudyVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StudyVerb {
    /// Measure what a paper measured, and render it
    Run(Box<StudyRun>),
    /// Render what is in a study's folder, and nothing else
    Render {
        /// The folder of the study
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Papers whose experiments are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaperArgument {
    /// Spectracom, "NTP Server Capacity Testing": the request threshold, from one host and from several
    Threshold,
    /// draft-aanchal4-ntp-mac-00 and draft-ietf-ntp-mac: MACs for NTP, on this host
    Mac,
    /// "Authenticated Network Time Synchronization": the phases of ANTP under load, over a short and a long path
    Antp,
}

#[derive(Args, Debug)]
pub(crate) struct StudyRun {
    /// The paper
    #[arg(value_name = "PAPER", value_enum)]
    pub(crate) paper: PaperArgument,
    /// Where plan, records and report go; the same command again goes on there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Take a minute or less instead of a quarter of an hour (threshold) or two minutes (mac); some minutes instead of
    /// hours (antp)
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seconds of each row or trial, instead of the paper's
    #[arg(long, value_name = "S", value_parser = step_seconds)]
    pub(crate) step_seconds: Option<Duration>,
    /// Multiply the paper's rates [default: 1 with --target, else so that this machine's limit lies among them]
    #[arg(long, value_name = "FACTOR", value_parser = scale)]
    pub(crate) scale: Option<f64>,
    /// Measure this server instead of one of our own on loopback [default port: 123]
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) target: Option<String>,
    /// Load this host although its address is public; must repeat --target's host
    #[arg(long, value_name = "HOST", requires = "target")]
    pub(crate) permit: Option<String>,
    #[command(flatten)]
    pub(crate) coordination: Coordination,
    /// A record of the server in its earlier configuration, for the paper's third result
    #[arg(long, value_name = "RUN.json", requires = "new")]
    pub(crate) old: Option<PathBuf>,
    /// A record of the server in its updated configuration
    #[arg(long, value_name = "RUN.json", requires = "old")]
    pub(crate) new: Option<PathBuf>,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (0.001..=10_000.0).contains(&factor) => Ok(factor),
        _ => Err("no factor from 0.001 to 10000".to_owned()),
    }
}
