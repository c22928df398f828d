//! Whom clients of a server believe who it is.

use std::path::PathBuf;

use authentick_wire::ke::AeadId;
use clap::Args;

use super::values::aead;

/// Whose certificates are trusted, and for which name.
#[derive(Args, Debug)]
pub(crate) struct Trust {
    /// Trust the authorities in this PEM file, instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// The name that the server's certificate must have [default: the host that is named]
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
}

/// How keys are exchanged.
#[derive(Args, Debug)]
pub(crate) struct NtsClient {
    #[command(flatten)]
    pub(crate) trust: Trust,
    /// Offer this AEAD algorithm alone: 15, 16, 17 or 30; may be repeated, the best first
    #[arg(long, value_name = "ID", value_parser = aead, default_values = ["30", "15"])]
    pub(crate) aead: Vec<AeadId>,
}

impl Trust {
    /// The name that the certificate of `host` must have.
    pub(crate) fn name<'a>(&'a self, host: &'a str) -> &'a str {
        self.server_name.as_deref().unwrap_or(host)
    }
}
