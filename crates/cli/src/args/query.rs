//! What `query` is told; for ANTP see `antp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::trust::NtsClient;
use super::values::{seconds, timeout};
use super::{AllowedTypes, AntpQuery, KeysFormat, Permit};

/// How a server is to prove who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Authentication {
    /// Network Time Security (RFC 8915)
    Nts,
    /// With a key that both sides know (RFC 8573): --keys and --key-id
    Mac,
    /// ANTP, our profile of it: public keys, and no TLS
    Antp,
    /// Not at all
    Plain,
}

#[derive(Args, Debug)]
pub(crate) struct Query {
    /// The server; PORT is that of NTP, used when the key exchange names none [default: 123]
    #[arg(value_name = "HOST[:PORT]")]
    pub(crate) server: String,
    /// How the server is to prove who it is; there is no falling back
    #[arg(long, value_enum, default_value_t = Authentication::Nts)]
    pub(crate) auth: Authentication,
    /// Port of the key exchange
    #[arg(long, value_name = "N", default_value_t = authentick_ke::PORT)]
    pub(crate) ke_port: u16,
    #[command(flatten)]
    pub(crate) client: NtsClient,
    /// The file with the key, as chrony and ntpd have them
    #[arg(long, value_name = "FILE", required_if_eq("auth", "mac"))]
    pub(crate) keys: Option<PathBuf>,
    /// Which of its keys
    #[arg(long, value_name = "N", required_if_eq("auth", "mac"), value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) key_id: Option<u32>,
    /// Whose key file it is, where it could be either's
    #[arg(long, value_enum, default_value_t)]
    pub(crate) keys_format: KeysFormat,
    #[command(flatten)]
    pub(crate) allowed: AllowedTypes,
    #[command(flatten)]
    pub(crate) antp: AntpQuery,
    /// Exchanges
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,
    /// Seconds from one exchange to the next; at least 1 for a public address without --permit
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    pub(crate) interval: Duration,
    /// Seconds to wait for the key exchange, and for each answer
    #[arg(long, value_name = "S", default_value = "5", value_parser = timeout)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) permission: Permit,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
