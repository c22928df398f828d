//! The symmetric key that a client uses: found in a key file by its identifier, with what speaks against it said.

use std::path::Path;

use authentick_daemon::symmetric::{KeyFile, Keys, Standing};
use authentick_net::addresses::Addresses;
use authentick_net::clock::unix_seconds;
use authentick_proto::symmetric::{Allowed, Caution, SymmetricKey};

use crate::args::{KeysFormat, SharedKeyArguments};
use crate::exit::{Exit, Failure};
use crate::output;

/// What the command line calls a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyName<'a> {
    pub(crate) file: &'a Path,
    pub(crate) id: u32,
    pub(crate) format: KeysFormat,
    /// Which types of keys may be used beside those that nothing speaks against.
    pub(crate) allowed: Allowed,
}

impl<'a> From<&'a SharedKeyArguments> for KeyName<'a> {
    fn from(arguments: &'a SharedKeyArguments) -> Self {
        KeyName {
            file: &arguments.keys,
            id: arguments.key_id,
            format: arguments.keys_format,
            allowed: arguments.allowed.into(),
        }
    }
}

impl KeyName<'_> {
    /// The key, and those of a server's `addresses` for which it is trusted. What is unwise about it goes to standard
    /// error.
    pub(crate) fn find(self, addresses: &Addresses) -> Result<(SymmetricKey, Addresses), Failure> {
        let id = self.id;
        let mut keys = self.load()?;
        if let Some(foreign) = keys.find_foreign(id) {
            let (line, name) = (foreign.line, foreign.name);
            return Err(self.problem(&format!(
                "line {line}: key {id} is of type {name}, which is not implemented here; name another one"
            )));
        }
        let Some(key) = keys.take(id) else {
            let known: Vec<String> = keys.keys.iter().map(|key| key.id().to_string()).collect();
            let remedy = match known.is_empty() {
                true => "it holds none".to_owned(),
                false => format!("name another one with --key-id: {}", shortened(&known)),
            };
            return Err(self.problem(&format!("there is no key {id}; {remedy}")));
        };
        if key.standing(unix_seconds()) == Standing::Expired {
            let remedy = match key.note.replaced_by {
                Some(next) => format!("use --key-id {next}, which replaces it"),
                None => "name another one".to_owned(),
            };
            return Err(self.problem(&format!("line {}: key {id} is retired; {remedy}", key.line)));
        }
        let Some(trusted) = addresses.clone().only(|address| key.trusts(address.ip())) else {
            let servers: Vec<String> = addresses.all().map(|address| address.ip().to_string()).collect();
            let servers = servers.join(", ");
            let remedy = format!("add {servers} to the servers at the end of the line");
            return Err(
                self.problem(&format!("line {}: key {id} is not trusted for {servers}; {remedy}", key.line))
            );
        };
        if let Some(caution) = self.allowed.objection(key.algorithm()) {
            let switch = match caution {
                Caution::KeyedDigest => "--allow-legacy",
                Caution::Nonce => "--allow-experimental",
            };
            return Err(self.problem(&format!(
                "line {}: key {id} is for {}, which needs {switch}: {caution}",
                key.line,
                key.algorithm()
            )));
        }
        for warning in keys.warnings.iter().filter(|warning| warning.id == id) {
            output::error(&format!("warning: --keys {}: {warning}", self.file.display()));
        }
        if let Some(caution) = Caution::of(key.algorithm()) {
            output::error(&format!("warning: key {id} is for {}: {caution}", key.algorithm()));
        }
        Ok((key.key, trusted))
    }

    fn load(self) -> Result<Keys, Failure> {
        KeyFile::new(self.file, self.format.into()).load().map_err(|error| {
            let Failure { exit, message } = error.into();
            exit.because(format!("--keys {message}"))
        })
    }

    fn problem(self, text: &str) -> Failure {
        Exit::Configuration.because(format!("--keys {}: {text}", self.file.display()))
    }
}

/// The first of many.
fn shortened(words: &[String]) -> String {
    const SHOWN: usize = 10;
    let rest = words.len().saturating_sub(SHOWN);
    let shown = words[..words.len().min(SHOWN)].join(", ");
    if rest == 0 { shown } else { format!("{shown} and {rest} more") }
}
