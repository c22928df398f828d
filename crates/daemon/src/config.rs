//! The configuration file: TOML, read into resolved values, with every mistake named by file, key, value and remedy.
//!
//! Two steps: `raw` mirrors the file, all strings; [`Config`] holds meanings, with a module for each section. Nothing
//! here opens a socket or changes a file.

mod advertise;
mod antp;
mod certificates;
mod cfnts;
mod changes;
mod endpoint;
mod environment;
mod exchange;
mod fleet;
mod fragments;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod keys;
pub(crate) mod listen;
#[cfg(test)]
mod manual;
mod metrics;
mod nts;
pub(crate) mod prefixes;
mod raw;
mod schema;
mod server;
mod symmetric;
mod syntax;
#[cfg(test)]
mod tests;
mod values;

use std::env::VarError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use authentick_proto::prefix::{Prefix, PrefixSet};
use authentick_proto::server::limit::Rate;
use thiserror::Error;

pub use self::advertise::{ADVERTISED_COUNT_MAX, Advertised};
pub(crate) use self::advertise::{NTP_PORT, port_of_none};
pub use self::antp::{ANTP_WORKER_COUNT_MAX, Antp, AntpSuite};
pub(crate) use self::certificates::is_handed_over;
pub use self::certificates::{CERTIFICATE_COUNT_MAX, CertificatePair, NAME_COUNT_MAX};
pub use self::cfnts::Cfnts;
pub(crate) use self::changes::Changes;
pub use self::endpoint::{Endpoint, InvalidEndpoint};
pub use self::exchange::{KePriority, KeyExchange};
pub use self::fleet::{Fleet, MEMBER_COUNT_MAX, SERVER_COUNT_MAX};
use self::fragments::{Origins, Sources};
pub use self::keys::{NextKey, RotatingKeys, StoreKind};
pub use self::listen::ListenAddress;
pub use self::metrics::Metrics;
pub use self::nts::Nts;
pub use self::server::{EngineKind, LeapFile, Reference};
pub use self::symmetric::Symmetric;
use crate::keystore::StateDirectory;

/// Where the configuration is by default.
pub const DEFAULT_PATH: &str = "/etc/authentick/authentick.toml";

/// Everything that a server needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where requests for time are taken; none: only keys are exchanged.
    pub listen: Vec<ListenAddress>,
    /// How long a start tries again to have its ports and interfaces.
    pub bind_patience: Duration,
    /// Threads that answer them; 0: one per processor.
    pub workers: usize,
    /// Datagrams that are received, answered and sent together, at most.
    pub batch_size: usize,
    /// What moves the datagrams.
    pub engine: EngineKind,
    /// What vouches for the time.
    pub reference: Reference,
    /// The name that its identifier is, where that is not an address.
    pub reference_name: Option<String>,
    /// Where leap seconds are listed; absent where something else says when they come.
    pub leap_seconds: Option<LeapFile>,
    /// The directory that was named for cookie keys and other state.
    pub state_directory: PathBuf,
    /// Where these are kept: in it, or in a folder of it. It is looked for when the configuration is read.
    pub state: StateDirectory,
    /// The user that the server becomes if it is started as root.
    pub user: String,
    /// Whether the server gives up what it does not need.
    pub contain: bool,
    /// Which clients may ask: those of `server.allow` that are not of `server.deny`.
    pub allow: PrefixSet,
    /// The prefixes of `server.allow`.
    pub allowed: Vec<Prefix>,
    /// The prefixes of `server.deny`.
    pub denied: Vec<Prefix>,
    /// Keys of bursts, with their values, where no rate limits what they would allow at once.
    pub idle_bursts: Vec<(&'static str, i64)>,
    /// Whether refused clients get a kiss.
    pub kiss: bool,
    /// Whether interleaved mode is offered.
    pub interleaved: bool,
    /// How often a prefix may ask.
    pub rate: Option<Rate>,
    /// Network Time Security; absent: not served.
    pub nts: Option<Nts>,
    /// Keys that clients share with the server; absent: none.
    pub symmetric: Option<Symmetric>,
    /// ANTP; absent: not served.
    pub antp: Option<Antp>,
    /// The servers that share keys with this one; absent: none.
    pub fleet: Option<Fleet>,
    /// Where metrics are shown; absent: nowhere.
    pub metrics: Option<Metrics>,
    /// Where probes are answered apart from metrics; absent: nowhere.
    pub health: Option<ListenAddress>,
    /// Files of `conf.d` whose names do not end in `.toml`, which are not read.
    pub skipped: Vec<PathBuf>,
    /// The file that all this came from, for messages.
    pub file: PathBuf,
    /// Which file each key came from.
    origins: Arc<Origins>,
}

/// A mistake in the configuration, or in a file that it names.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}: {}{problem}; {remedy}", self.place())]
pub struct ConfigError {
    /// The file in which the mistake is.
    pub file: PathBuf,
    /// The line in it, if one is known.
    pub line: Option<usize>,
    /// The key, with its table, such as `server.listen`; empty if the file as a whole is meant.
    pub key: String,
    /// The value that is wrong; empty if there is none.
    pub value: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do.
    pub remedy: String,
    /// Whether the value is in no file.
    pub is_default: bool,
    /// Whether a permission is missing.
    pub is_permission: bool,
    /// Whether it is no mistake, but a state of the host that may pass.
    pub is_passing: bool,
}

impl ConfigError {
    /// A mistake at `key` of `file`.
    pub fn new(
        file: &Path,
        key: &str,
        value: impl fmt::Display,
        problem: impl fmt::Display,
        remedy: impl fmt::Display,
    ) -> Self {
        ConfigError {
            file: file.to_owned(),
            line: None,
            key: key.to_owned(),
            value: value.to_string(),
            problem: problem.to_string(),
            remedy: remedy.to_string(),
            is_default: false,
            is_permission: false,
            is_passing: false,
        }
    }

    /// Line, key and value as a message begins with them, as far as they are known.
    fn place(&self) -> String {
        let line = self.line.map_or_else(String::new, |line| format!("line {line}: "));
        let default = if self.is_default { " (the default)" } else { "" };
        match (self.key.is_empty(), self.value.is_empty()) {
            (true, _) => line,
            (false, true) => format!("{line}{}: ", self.key),
            (false, false) => format!("{line}{} = {:?}{default}: ", self.key, self.value),
        }
    }

    /// Marks the mistake as one of missing rights, if it is.
    pub(crate) fn of_rights(self, is_permission: bool) -> Self {
        ConfigError { is_permission, ..self }
    }

    /// Marks it as a state of the host that may pass, if it is.
    pub(crate) fn of_passing(self, is_passing: bool) -> Self {
        ConfigError { is_passing, ..self }
    }
}

impl Config {
    /// Reads and resolves the file, and those of the folder `conf.d` beside it. Variables are those of this process.
    ///
    /// # Errors
    /// The first mistake in them.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        let config = Config::resolve(file, &Sources::read(file)?, &|name| std::env::var(name))?;
        Ok(Config { skipped: fragments::skipped(file), ..config })
    }

    /// Resolves `text`; `file` is where it came from, for messages. Variables are those of this process.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        Config::parse_in(file, text, &|name| std::env::var(name))
    }

    /// The same in another environment, of which `variable` knows the variables.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse_in(
        file: &Path,
        text: &str,
        variable: &dyn Fn(&str) -> Result<String, VarError>,
    ) -> Result<Self, ConfigError> {
        Config::resolve(file, &Sources::of(file, text), variable)
    }

    fn resolve(
        file: &Path,
        sources: &Sources,
        variable: &dyn Fn(&str) -> Result<String, VarError>,
    ) -> Result<Self, ConfigError> {
        let (raw, origins) = sources.parse(|table| environment::fill_in(file, table, variable))?;
        match (Resolver { file }).resolve(raw) {
            Ok(config) => Ok(Config { origins: Arc::new(origins), ..config }),
            Err(error) => Err(origins.place(error)),
        }
    }

    /// A mistake at `key`, in the file that has it.
    pub(crate) fn wrong(
        &self,
        key: &str,
        value: impl fmt::Display,
        problem: impl fmt::Display,
        remedy: impl fmt::Display,
    ) -> ConfigError {
        self.origins.place(ConfigError::new(&self.file, key, value, problem, remedy))
    }

    /// How keys are exchanged, if they are here.
    pub(crate) fn exchange(&self) -> Option<&KeyExchange> {
        self.nts.as_ref()?.exchange.as_ref()
    }

    /// The keys of cookies.
    pub(crate) fn cookie_keys(&self) -> Option<&RotatingKeys> {
        self.nts.as_ref().map(|nts| &nts.keys)
    }

    /// The keys of ANTP's state.
    pub(crate) fn state_keys(&self) -> Option<&RotatingKeys> {
        self.antp.as_ref().map(|antp| &antp.keys)
    }

    /// Where the keys of CFNTS's layout are, if cookie keys have it.
    pub(crate) fn cfnts(&self) -> Option<&Cfnts> {
        self.cookie_keys()?.cfnts()
    }

    /// The memcached servers that keys are shared through.
    pub(crate) fn memcached_servers(&self) -> impl Iterator<Item = &Endpoint> {
        let of_fleet = self.fleet.iter().flat_map(|fleet| &fleet.servers);
        of_fleet.chain(self.cfnts().map(|cfnts| &cfnts.server))
    }

    /// The files that this came from. Where they cannot be listed, the first one.
    pub(crate) fn own_files(&self) -> Vec<PathBuf> {
        let beside = fragments::beside(&self.file).unwrap_or_default();
        std::iter::once(self.file.clone()).chain(beside).collect()
    }

    /// Where files may come that say more than [`Config::file`].
    pub(crate) fn folder(&self) -> PathBuf {
        self.file.with_file_name(fragments::FOLDER)
    }

    /// The files that are read again on SIGHUP, each with the key that names it.
    pub(crate) fn files(&self) -> Vec<(String, &Path)> {
        let mut files: Vec<(String, &Path)> = Vec::new();
        let pairs = self.exchange().into_iter().flat_map(|exchange| &exchange.certificates);
        files.extend(pairs.flat_map(CertificatePair::files));
        for keys in self.cookie_keys().into_iter().chain(self.state_keys()) {
            files.extend(keys.followed().map(|path| (keys.key("file"), path)));
        }
        for suite in self.antp.iter().flat_map(|antp| &antp.suites) {
            files.push((format!("{}.certificate-chain", suite.table), &suite.certificate_chain));
            files.push((format!("{}.private-key", suite.table), &suite.private_key));
        }
        if let Some(leap_seconds) = self.leap_seconds.as_ref().filter(|file| file.is_named) {
            files.push(("server.leap-seconds".to_owned(), &leap_seconds.path));
        }
        if let Some(symmetric) = &self.symmetric {
            files.push(("symmetric.keys".to_owned(), &symmetric.keys));
        }
        if let Some(fleet) = &self.fleet {
            files.push(("fleet.seal-key".to_owned(), &fleet.seal_keys));
        }
        files
    }
}

/// Turns raw values into meanings; knows the file for messages.
struct Resolver<'a> {
    file: &'a Path,
}
