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

/// What signals mean to a server, and how it ends. Each line is in the manual too (serving.md).
pub(crate) const SIGNALS_HELP: &str = "\
Signals:
  SIGHUP                     reads the configuration, certificates and keys again
  SIGTERM, SIGINT, SIGQUIT   stops, with exit code 0
  SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGXFSZ, real-time signals
                             ignored, and logged
  SIGPIPE                    ignored

Exit codes:
  0   stopped as asked
  70  something failed here
  75  a state of the host that may pass: a port is taken, a disk is full; start it again
  77  a permission is missing
  78  the configuration, or a file that it names, is wrong";

#[derive(Args, Debug)]
#[command(after_long_help = format!("{SIGNALS_HELP}\n\nMan pages: authentick-serve(1), authentick.toml(5)"))]
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
