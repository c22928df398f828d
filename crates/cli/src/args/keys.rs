//! What `keys`, `keys symmetric` and `keys seal` are told.

use std::path::PathBuf;
use std::time::Duration;

use authentick_crypto::mac::MacAlgorithm;
use authentick_daemon::symmetric::types::{self, Type};
use clap::{Args, Subcommand};

use super::trust::NtsClient;
use super::values::timeout;
use super::{KeysFormat, Permit};

#[derive(Args, Debug)]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) verb: KeysVerb,
    /// The server's configuration, which names the state directory and the files of keys
    #[arg(long, global = true, value_name = "FILE", default_value = authentick_daemon::config::DEFAULT_PATH)]
    pub(crate) config: PathBuf,
    /// The state directory, instead of the one in the configuration
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_directory: Option<PathBuf>,
    /// Of ANTP's state keys, instead of cookie keys
    #[arg(long, global = true)]
    pub(crate) antp: bool,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysVerb {
    #[command(flatten)]
    Own(OwnVerb),
    #[command(flatten)]
    Fleet(FleetVerb),
    /// In a fleet: show servers, members, and who would refuse whom; exit code 1 if anybody would, or says nothing
    Status {
        /// Ask hosts that share cookie keys in another way: their pages of metrics, each like
        /// http://127.0.0.1:9975/metrics
        #[arg(long, value_name = "URL", num_args = 1.., conflicts_with_all = ["antp", "config", "state_directory"])]
        metrics: Vec<String>,
    },
    /// Try cookies of each key exchange at each server while keys rotate; exit code 1 if any is refused
    Drill(Drill),
    /// The same for symmetric keys, in a file that chrony and ntpd can read too
    Symmetric(SymmetricKeys),
    /// The key under which the nodes of a fleet seal what they say to each other
    Seal(SealKeys),
}

#[derive(Debug, Subcommand)]
pub(crate) enum OwnVerb {
    /// Make a first set of keys, if there is none
    Generate,
    /// List identifiers, roles and ages, never secrets
    List,
    /// Let the future key seal, retire the current one, and make a new future one
    Rotate {
        /// Retired keys to keep [default: as configured, else 7]
        #[arg(long, value_name = "N")]
        keep: Option<usize>,
        /// In a fleet, where keys rotate when they are due: do so at once, when all members have the present ones
        #[arg(long, conflicts_with = "keep")]
        now: bool,
        /// With --now: keep no more keys than are configured, though they sealed not long ago
        #[arg(long, requires = "now")]
        drop: bool,
        /// With --now: how long to wait for what members have to say first
        #[arg(long, value_name = "DURATION", requires = "now", default_value = "1m")]
        #[arg(value_parser = humantime::parse_duration)]
        wait: Duration,
    },
    /// Draw the next key of those that hosts derive alike, for all of them: who has copied older ones is shut out
    Refresh,
    /// Forget a retired key: cookies under it no longer open
    Retire {
        /// Its identifier, as `keys list` shows it
        #[arg(value_name = "ID", value_parser = key_id)]
        id: u32,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetVerb {
    /// In a fleet: have no member open anything under a key, of whatever role
    Revoke {
        /// Its identifier, as `keys list` shows it
        #[arg(value_name = "ID", value_parser = key_id)]
        id: u32,
        #[command(flatten)]
        wait: Wait,
    },
    /// In a fleet: make this node the one that writes, when all members have answered
    TakeOver {
        /// A member that is gone for good, and is not waited for
        #[arg(long, value_name = "NAME")]
        without: Vec<String>,
        #[command(flatten)]
        wait: Wait,
    },
}

/// An option of other kinds of keys, which is refused and not shown.
#[derive(Args, Clone, Debug)]
pub(crate) struct NoAntp {
    #[arg(id = "antp", long = "antp", global = true, hide = true)]
    _antp: bool,
}

/// The same for a state directory.
#[derive(Args, Clone, Debug)]
pub(crate) struct NoStateDirectory {
    #[arg(id = "state_directory", long = "state-directory", global = true, hide = true)]
    _state_directory: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Drill {
    #[command(flatten)]
    _antp: NoAntp,
    #[command(flatten)]
    _state_directory: NoStateDirectory,
    /// Who exchanges keys; may be repeated, PORT is that of the key exchange [default: 4460]
    #[arg(long = "key-exchange", value_name = "HOST[:PORT]", required = true)]
    #[arg(conflicts_with_all = ["config", "state_directory"])]
    pub(crate) key_exchanges: Vec<String>,
    /// Who is asked for time with all of their cookies; may be repeated [default port: 123]
    #[arg(long = "server", value_name = "HOST[:PORT]", required = true)]
    pub(crate) servers: Vec<String>,
    #[command(flatten)]
    pub(crate) client: NtsClient,
    /// Requests a second, to all servers together
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: u32,
    /// How many rotations are to be seen
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub(crate) rotations: usize,
    /// Rotations for which cookies of a key are used: no more than `keep` of the servers
    #[arg(long, value_name = "N", default_value = "7", value_parser = keep)]
    pub(crate) keep: usize,
    /// How long to wait for the rotations
    #[arg(long = "for", value_name = "DURATION", default_value = "10m", value_parser = humantime::parse_duration)]
    pub(crate) patience: Duration,
    /// How long a key exchange, and each request, waits for its answer
    #[arg(long, value_name = "S", default_value = "5", value_parser = timeout)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) permission: Permit,
}

/// How long a command to a fleet waits.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// In a fleet: how long to wait for what members have to say first
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = humantime::parse_duration)]
    pub(crate) wait: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct SealKeys {
    #[command(flatten)]
    _antp: NoAntp,
    #[command(flatten)]
    _state_directory: NoStateDirectory,
    #[command(subcommand)]
    pub(crate) verb: SealVerb,
    /// The file of seal keys, instead of the one in the configuration
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "config")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum SealVerb {
    /// Make the file with a first key, if there is none
    Generate,
    /// List fingerprints and ages, and which key seals, never secrets
    List,
    /// Take the next of three steps towards another key, and say what to do then
    Rotate,
}

#[derive(Args, Debug)]
pub(crate) struct SymmetricKeys {
    #[command(flatten)]
    _antp: NoAntp,
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

fn keep(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(keep @ 1..=64) => Ok(keep),
        Ok(_) | Err(_) => Err("no number from 1 to 64".to_owned()),
    }
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
