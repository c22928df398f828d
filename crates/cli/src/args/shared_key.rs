//! The symmetric key that a client or a generator shares with the server.

use std::path::PathBuf;

use authentick_daemon::symmetric::Dialect;
use authentick_proto::symmetric::Allowed;
use clap::{Args, ValueEnum};

/// Programs with key files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeysFormat {
    /// As it looks
    #[default]
    Auto,
    /// chrony's
    Chrony,
    /// ntpd's
    Ntp,
}

impl From<KeysFormat> for Option<Dialect> {
    fn from(format: KeysFormat) -> Self {
        match format {
            KeysFormat::Auto => None,
            KeysFormat::Chrony => Some(Dialect::Chrony),
            KeysFormat::Ntp => Some(Dialect::Ntp),
        }
    }
}

/// The key that clients share with the server.
#[derive(Args, Debug)]
pub(crate) struct SharedKeyArguments {
    /// Key file of chrony or ntpd
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: PathBuf,
    /// Id of the key in that file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) key_id: u32,
    /// Whose format the key file has, if it could be either
    #[arg(long, value_enum, default_value_t)]
    pub(crate) keys_format: KeysFormat,
    #[command(flatten)]
    pub(crate) allowed: AllowedTypes,
}

/// Types of keys that are worse than AES-CMAC, as `symmetric` has them in the server's configuration.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct AllowedTypes {
    /// Use a key of MD5, SHA1, SHA256, SHA384 or SHA512, which are digests of key and packet and no MACs
    #[arg(long)]
    pub(crate) allow_legacy: bool,
    /// Use a key of GMAC128, GMAC-SIV128 or POLY1305, whose nonces no other program knows
    #[arg(long)]
    pub(crate) allow_experimental: bool,
}

impl From<AllowedTypes> for Allowed {
    fn from(types: AllowedTypes) -> Self {
        Allowed { keyed_digests: types.allow_legacy, nonces: types.allow_experimental }
    }
}
