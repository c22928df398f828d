//! What `keys` and `keys symmetric` are told.

use std::path::PathBuf;
use std::time::Duration;

use authentick_crypto::mac::MacAlgorithm;
use authentick_daemon::symmetric::types::{self, Type};
use clap::{Args, Subcommand};

use super::KeysFormat;

#[derive(Args, Debug)]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) verb: KeysVerb,
    /// The server's configuration, which names the state directory
    #[arg(long, global = true, value_name = "FILE", default_value = authentick_daemon::config::DEFAULT_PATH)]
    pub(crate) config: PathBuf,
    /// The state directory, instead of the one in the configuration
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_directory: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysVerb {
    /// Make a first set of keys, if there is none
    Generate,
    /// List identifiers, roles and ages, never secrets
    List,
    /// Let the future key seal, retire the current one, and make a new future one
    Rotate {
        /// Retired keys to keep [default: as configured, else 7]
        #[arg(long, value_name = "N")]
        keep: Option<usize>,
    },
    /// Forget a retired key: cookies under it no longer open
    Retire {
        /// Its identifier, as `keys list` shows it
        #[arg(value_name = "ID", value_parser = key_id)]
        id: u32,
    },
    /// The same for symmetric keys, in a file that chrony and ntpd can read too
    Symmetric(SymmetricKeys),
}

#[derive(Args, Debug)]
pub(crate) struct SymmetricKeys {
    #[command(subcommand)]
    pub(crate) verb: SymmetricVerb,
    /// The key file, instead of the one in the configuration
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// Whose key file it is, where it could be either's, and how a new one is written [auto: as chrony's]
    #[arg(long, global = true, value_enum, default_value_t)]
    pub(crate) keys_format: KeysFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SymmetricVerb {
    /// Make a key, and the file if there is none
    Generate {
        /// Its type
        #[arg(long = "type", value_name = "TYPE", default_value = "AES128", value_parser = mac_algorithm)]
        algorithm: MacAlgorithm,
        /// Its id [default: the lowest that is free]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        id: Option<u32>,
        /// With GMAC128: four octets of nonces are kept with the key, and eight random ones are on the wire
        #[arg(long)]
        salt: bool,
    },
    /// List ids, types, states, ages and uses, never secrets
    List,
    /// Make a key that takes the place of another; both are accepted for some time
    Rotate {
        /// The old one's id
        #[arg(value_name = "ID", value_parser = clap::value_parser!(u32).range(1..))]
        id: u32,
        /// The new one's id [default: the next that is free]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        new_id: Option<u32>,
        /// How long the old one is still accepted
        #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = overlap)]
        overlap: Duration,
    },
    /// Remove a key: requests under it are not given time any more
    Retire {
        /// Its id
        #[arg(value_name = "ID", value_parser = clap::value_parser!(u32).range(1..))]
        id: u32,
    },
}

fn key_id(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 16).map_err(|_| "no key identifier: eight hexadecimal digits".to_owned())
}

fn mac_algorithm(text: &str) -> Result<MacAlgorithm, String> {
    match Type::find(text.as_bytes()) {
        Some(Type::Known(algorithm, _)) => Ok(algorithm),
        Some(Type::Foreign(name)) => Err(format!("keys of type {name} are not implemented here")),
        None => Err(format!("no type of keys; {}", types::REMEDY)),
    }
}

fn overlap(text: &str) -> Result<Duration, String> {
    const MOST: Duration = Duration::from_secs(3650 * 86_400);
    match humantime::parse_duration(text) {
        Ok(duration) if duration <= MOST => Ok(duration),
        Ok(_) => Err("more than 3650 days; retire the key by hand instead".to_owned()),
        Err(error) => Err(format!("{error}; durations look like 30d or 12h")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifier_of_a_key_is_hexadecimal() {
        assert_eq!(key_id("5f3a0c11"), Ok(0x5f3a_0c11));
    }
}
