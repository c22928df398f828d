//! Who a server is: the user that it becomes, certificate and key with which it exchanges keys, and what it leaves to
//! others.

use std::fmt;
use std::path::Path;

use authentick_crypto::kdf::sha256;
use authentick_ke::tls::{Identity, IdentityError};
use authentick_net::privilege;
use zeroize::Zeroizing;

use crate::config::{Config, ConfigError, KeyExchange};
use crate::guarded::{self, PEM_SIZE_MAX, Secrecy, Unreadable};
use crate::renewal::Digest;

/// The user to become: none unless started as root.
pub(crate) fn server_user(config: &Config) -> Result<Option<privilege::User>, ConfigError> {
    if !privilege::is_root() || config.user == "root" {
        return Ok(None);
    }
    let wrong = |problem: &dyn fmt::Display| {
        let remedy =
            "make it (useradd --system NAME), name another one, or write \"root\" to keep root's rights";
        ConfigError::new(&config.file, "server.user", &config.user, problem, remedy)
    };
    match privilege::find_user(&config.user) {
        Ok(Some(user)) => Ok(Some(user)),
        Ok(None) => Err(wrong(&"there is no such user")),
        Err(error) => Err(wrong(&error)),
    }
}

/// Says what this host leaves to others.
pub(crate) fn tell_role(config: &Config) {
    if config.listen.is_empty() {
        log::info!("no time is served here, as server.listen is empty: clients are sent to nts.advertise");
    }
    if config.nts.is_some() && config.exchange().is_none() {
        log::info!("no keys are exchanged here, as nts.ke-listen is empty");
    }
}

/// Reads certificate and key of the key exchange.
///
/// # Errors
/// If they cannot be read, or do not fit together.
pub(crate) fn load(config: &Config, exchange: &KeyExchange) -> Result<Identity, ConfigError> {
    let [chain, key] = PemFile::pair(config, "nts", &exchange.certificate_chain, &exchange.private_key);
    Identity::from_pem(&chain.read(Secrecy::Public)?, &key.read(Secrecy::GroupReads)?).map_err(|error| {
        match &error {
            IdentityError::Chain(_) => {
                chain.wrong(&error, "name a PEM file with the server's certificate first")
            }
            IdentityError::Key(_) => key.wrong(&error, "name a PEM file with the private key"),
            IdentityError::Mismatch => key.wrong(&error, "name the key that the certificate was made for"),
        }
    })
}

/// The digest of pairs of files as they are now; of one that cannot be read, why.
pub(crate) fn digest<'a>(pairs: impl IntoIterator<Item = [PemFile<'a>; 2]>) -> Digest {
    let mut parts: Vec<Zeroizing<Vec<u8>>> = Vec::new();
    for (file, secrecy) in
        pairs.into_iter().flat_map(|[chain, key]| [(chain, Secrecy::Public), (key, Secrecy::GroupReads)])
    {
        let octets =
            file.read(secrecy).unwrap_or_else(|error| Zeroizing::new(error.to_string().into_bytes()));
        parts.push(Zeroizing::new(octets.len().to_be_bytes().to_vec()));
        parts.push(octets);
    }
    sha256(&parts.iter().map(|part| part.as_slice()).collect::<Vec<_>>())
}

/// The digest of the files of the key exchange.
pub(crate) fn digest_of(config: &Config, exchange: &KeyExchange) -> Digest {
    digest([PemFile::pair(config, "nts", &exchange.certificate_chain, &exchange.private_key)])
}

/// How a file becomes readable for a user.
pub(crate) fn let_read(user: &str, path: &dyn fmt::Display) -> String {
    format!("let {user} read it (chgrp {user} {path}; chmod 640 {path}) and enter its directories")
}

/// A file with certificates or a key that the configuration names.
pub(crate) struct PemFile<'a> {
    config: &'a Config,
    /// The key that names it, with its table.
    pub(crate) key: String,
    path: &'a Path,
}

impl<'a> PemFile<'a> {
    /// The files of a table: the certificate chain, and the private key.
    pub(crate) fn pair(config: &'a Config, table: &str, chain: &'a Path, key: &'a Path) -> [Self; 2] {
        [("certificate-chain", chain), ("private-key", key)].map(|(name, path)| PemFile {
            config,
            key: format!("{table}.{name}"),
            path,
        })
    }

    /// A mistake in the file, or in what it is named for.
    pub(crate) fn wrong(&self, problem: impl fmt::Display, remedy: impl fmt::Display) -> ConfigError {
        ConfigError::new(&self.config.file, &self.key, self.path.display(), problem, remedy)
    }

    /// The octets.
    ///
    /// # Errors
    /// If the file cannot be read, or is open to others than `secrecy` allows.
    pub(crate) fn read(&self, secrecy: Secrecy) -> Result<Zeroizing<Vec<u8>>, ConfigError> {
        guarded::read(self.path, secrecy, PEM_SIZE_MAX).map_err(|error| {
            let (path, problem) = (self.path.display(), format!("cannot read: {error}"));
            let wrong = match &error {
                Unreadable::Mode(_) => {
                    let others = "if others may have read it, make another key";
                    self.wrong(&error, format!("run: chmod 640 {path}, or 600; {others}"))
                }
                Unreadable::NotAFile | Unreadable::Size(_) => self.wrong(problem, "name a PEM file"),
                Unreadable::Io(_) if error.is_missing() => self.wrong(problem, "name a file that exists"),
                Unreadable::Io(_) => self.wrong(problem, let_read(&privilege::acting_user(), &path)),
            };
            wrong.of_rights(error.is_permission())
        })
    }
}
