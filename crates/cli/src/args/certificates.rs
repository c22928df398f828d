//! What `certificates` is told.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Certificates {
    /// As root: check certificates and keys that root alone can read, and copy them to where the server reads them;
    /// exit code 78, or 77, if one was left out
    HandOver {
        /// The server's configuration, which names the files, and the directory in `nts.hand-over`
        #[arg(long, value_name = "FILE", default_value = authentick_daemon::config::DEFAULT_PATH)]
        config: PathBuf,
        /// The group of the server's user, which alone may read the copies
        #[arg(long, value_name = "GROUP", default_value = "authentick")]
        group: String,
    },
}
