//! What `serve` is told.

use std::path::PathBuf;

use clap::Args;

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
}
