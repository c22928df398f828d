//! Arguments of `certificates`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputPath;

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
    /// Make a certificate for a server of a lab, and an authority of the lab's own unless there is one
    Lab(LabCertificate),
}

/// Arguments of `certificates lab`.
#[derive(Debug, Args)]
pub(crate) struct LabCertificate {
    /// DNS names and addresses by which clients call the server; files are named after the first
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// The directory for ca.pem, ca-key.pem and the server's files; made if it is missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) out: OutputPath,
    /// Days until the server's certificate expires
    #[arg(long, value_name = "N", default_value_t = 397, value_parser = clap::value_parser!(u16).range(1..=3650))]
    pub(crate) days: u16,
}
