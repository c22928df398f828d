//! What `doctor` is told.

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// Examine this host
    #[arg(long, required = true)]
    pub(crate) host: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
