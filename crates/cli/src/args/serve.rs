//! What `serve` is told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// How lines of the log are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people, and for the journal, which is told their priorities
    Text,
    /// An object of JSON in each line
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = authentick_daemon::config::DEFAULT_PATH)]
    pub(crate) config: PathBuf,
    /// Check the configuration and the files that it names, and stop
    #[arg(long)]
    pub(crate) check: bool,
    /// Stop when standard input ends too, as it does with whoever holds its other end
    #[arg(long, conflicts_with = "check")]
    pub(crate) until_eof: bool,
    /// How the log is written to standard error
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}
