//! What `demo` is told.

use clap::Args;

use super::OutputPath;

#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Where report.html and run.json go
    #[arg(long, value_name = "DIR", default_value = "authentick-demo")]
    pub(crate) out: OutputPath,
    /// Exchanges with each scheme
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = clap::value_parser!(u32).range(200..=10_000))]
    pub(crate) exchanges: u32,
    /// Print the run record instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}
