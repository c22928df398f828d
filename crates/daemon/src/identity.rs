//! Who a server is: the user that it becomes, and certificate and key with which it exchanges keys.

use std::fmt;
use std::path::Path;

use authentick_ke::tls::{Identity, IdentityError};
use authentick_net::privilege;
use zeroize::Zeroizing;

use crate::config::{Config, ConfigError, Nts};
use crate::guarded::{self, PEM_SIZE_MAX, Secrecy, Unreadable};

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

/// Reads certificate and key of NTS.
///
/// # Errors
/// If they cannot be read, or do not fit together.
pub(crate) fn load(config: &Config, nts: &Nts) -> Result<Identity, ConfigError> {
    let (chain_key, private_key) = ("nts.certificate-chain", "nts.private-key");
    let chain = read_file(config, chain_key, &nts.certificate_chain, Secrecy::Public)?;
    let key = read_file(config, private_key, &nts.private_key, Secrecy::GroupReads)?;
    Identity::from_pem(&chain, &key).map_err(|error| {
        let (key, path, remedy) = match &error {
            IdentityError::Chain(_) => {
                (chain_key, &nts.certificate_chain, "name a PEM file with the server's certificate first")
            }
            IdentityError::Key(_) => (private_key, &nts.private_key, "name a PEM file with the private key"),
            IdentityError::Mismatch => {
                (private_key, &nts.private_key, "name the key that the certificate was made for")
            }
        };
        ConfigError::new(&config.file, key, path.display(), error, remedy)
    })
}

/// How a file becomes readable for a user.
pub(crate) fn let_read(user: &str, path: &dyn fmt::Display) -> String {
    format!("let {user} read it (chgrp {user} {path}; chmod 640 {path}) and enter its directories")
}

/// The octets of a file that `key` of the configuration names.
///
/// # Errors
/// If it cannot be read, or is open to others than `secrecy` allows.
pub(crate) fn read_file(
    config: &Config,
    key: &str,
    path: &Path,
    secrecy: Secrecy,
) -> Result<Zeroizing<Vec<u8>>, ConfigError> {
    guarded::read(path, secrecy, PEM_SIZE_MAX).map_err(|error| {
        let shown = path.display();
        let (problem, remedy) = match &error {
            Unreadable::Mode(_) => {
                let remedy =
                    format!("run: chmod 640 {shown}, or 600; if others may have read it, make another key");
                (error.to_string(), remedy)
            }
            Unreadable::NotAFile | Unreadable::Size(_) => {
                (format!("cannot read: {error}"), "name a PEM file".to_owned())
            }
            Unreadable::Io(io) if io.kind() == std::io::ErrorKind::NotFound => {
                (format!("cannot read: {error}"), "name a file that exists".to_owned())
            }
            Unreadable::Io(_) => {
                (format!("cannot read: {error}"), let_read(&privilege::acting_user(), &shown))
            }
        };
        ConfigError {
            is_permission: error.is_permission(),
            ..ConfigError::new(&config.file, key, shown, problem, remedy)
        }
    })
}
