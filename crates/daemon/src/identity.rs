//! Who a server is: the user that it becomes, certificate and key with which it exchanges keys, and what it leaves to
//! others.

use std::fmt;
use std::iter;
use std::path::Path;

use authentick_crypto::kdf::sha256;
use authentick_ke::tls::{Identity, IdentityError, PemContents, private_key};
use authentick_net::privilege;
use zeroize::Zeroizing;

use crate::config::{CertificatePair, Config, ConfigError};
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
        config.wrong("server.user", &config.user, problem, remedy)
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

/// What the files of a pair hold at one moment; of one that cannot be read, why.
pub(crate) struct Contents {
    chain: Result<Zeroizing<Vec<u8>>, ConfigError>,
    /// Absent where one file holds both.
    key: Option<Result<Zeroizing<Vec<u8>>, ConfigError>>,
}

impl Contents {
    /// Reads the files that the server reads.
    pub(crate) fn read(config: &Config, pair: &CertificatePair) -> Self {
        if let Some(file) = handed_over(config, pair) {
            return Contents { chain: file.read(Secrecy::GroupReads), key: None };
        }
        Contents::read_sources(config, pair)
    }

    /// Reads the files that the configuration names.
    pub(crate) fn read_sources(config: &Config, pair: &CertificatePair) -> Self {
        Contents::read_sources_of(config, pair, [None; 2])
    }

    /// The same, and where a user is named for one of them, only if it belongs to this user.
    pub(crate) fn read_sources_of(config: &Config, pair: &CertificatePair, owners: [Option<u32>; 2]) -> Self {
        let [chain, key] = sources(config, pair);
        let [of_chain, of_key] = owners;
        let key = key.read_of(Secrecy::GroupReads, of_key);
        Contents { chain: chain.read_of(Secrecy::Public, of_chain), key: Some(key) }
    }

    /// A digest of it.
    pub(crate) fn digest(&self) -> Digest {
        digest_of(iter::once(&self.chain).chain(&self.key))
    }

    /// Chain and key; one text twice where one file holds both.
    ///
    /// # Errors
    /// Why one of them could not be read.
    pub(crate) fn texts(&self) -> Result<[&[u8]; 2], ConfigError> {
        let [chain, key] = [&self.chain, self.key.as_ref().unwrap_or(&self.chain)].map(Result::as_ref);
        Ok([chain.map_err(Clone::clone)?, key.map_err(Clone::clone)?])
    }

    /// Certificate and key.
    ///
    /// # Errors
    /// If one could not be read, or they do not fit together.
    pub(crate) fn identity(&self, config: &Config, pair: &CertificatePair) -> Result<Identity, ConfigError> {
        let [chain, key] = self.texts()?;
        let wrong = |error: IdentityError| match (handed_over(config, pair), &error) {
            (Some(file), _) => file.wrong(&error, HAND_OVER_AGAIN),
            (None, error) => wrong(config, pair, error),
        };
        Identity::from_pem(chain, key).map_err(wrong)
    }
}

/// What to do about a file that was handed over.
const HAND_OVER_AGAIN: &str = "run as root: authentick certificates hand-over";

/// A mistake in the files that the configuration names.
pub(crate) fn wrong(config: &Config, pair: &CertificatePair, error: &IdentityError) -> ConfigError {
    let [chain, key] = sources(config, pair);
    match error {
        IdentityError::Chain(_) => chain.wrong(error, error.remedy()),
        IdentityError::Key(_) | IdentityError::Mismatch => key.wrong(error, error.remedy()),
    }
}

/// The files that the configuration names: the certificate chain, and the private key.
pub(crate) fn sources<'a>(config: &'a Config, pair: &'a CertificatePair) -> [PemFile<'a>; 2] {
    PemFile::pair(config, pair.table, &pair.certificate_chain, &pair.private_key)
}

/// The file with both, if they are handed over.
fn handed_over<'a>(config: &'a Config, pair: &'a CertificatePair) -> Option<PemFile<'a>> {
    let path = pair.handed_over.as_deref()?;
    Some(PemFile { config, key: "nts.hand-over".to_owned(), path, holds: Holds::Both })
}

/// The file with the certificate that the server reads.
pub(crate) fn chain_file<'a>(config: &'a Config, pair: &'a CertificatePair) -> PemFile<'a> {
    handed_over(config, pair).unwrap_or_else(|| {
        let [chain, _] = sources(config, pair);
        chain
    })
}

/// The digest of pairs of files as they are now; of one that cannot be read, why.
pub(crate) fn digest<'a>(pairs: impl IntoIterator<Item = [PemFile<'a>; 2]>) -> Digest {
    let files = pairs
        .into_iter()
        .flat_map(|[chain, key]| [chain.read(Secrecy::Public), key.read(Secrecy::GroupReads)]);
    digest_of(&files.collect::<Vec<_>>())
}

fn digest_of<'a>(files: impl IntoIterator<Item = &'a Result<Zeroizing<Vec<u8>>, ConfigError>>) -> Digest {
    let digests = files.into_iter().map(|file| match file {
        Ok(octets) => sha256(&[&[1], octets]),
        Err(error) => sha256(&[&[0], error.to_string().as_bytes()]),
    });
    sha256(&[digests.collect::<Vec<Digest>>().as_flattened()])
}

/// How a file becomes readable for a user.
pub(crate) fn let_read(user: &str, path: &dyn fmt::Display) -> String {
    format!(
        "let {user} read it (chgrp \"$(id -gn {user})\" {path}; chmod 640 {path}) and enter its directories"
    )
}

/// What a file is named for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Chain,
    PrivateKey,
    /// It is handed over.
    Both,
}

/// A file with certificates or a key that the configuration names.
pub(crate) struct PemFile<'a> {
    config: &'a Config,
    /// The key that names it, with its table.
    pub(crate) key: String,
    pub(crate) path: &'a Path,
    holds: Holds,
}

impl<'a> PemFile<'a> {
    /// The files of a table: the certificate chain, and the private key.
    pub(crate) fn pair(config: &'a Config, table: &str, chain: &'a Path, key: &'a Path) -> [Self; 2] {
        [("certificate-chain", chain, Holds::Chain), ("private-key", key, Holds::PrivateKey)]
            .map(|(name, path, holds)| PemFile { config, key: format!("{table}.{name}"), path, holds })
    }

    /// A mistake in the file, or in what it is named for.
    pub(crate) fn wrong(&self, problem: impl fmt::Display, remedy: impl fmt::Display) -> ConfigError {
        self.config.wrong(&self.key, self.path.display(), problem, remedy)
    }

    /// The mistake of a file that has the other half of a pair, or that is named for a key and certainly has none.
    fn misplaced(&self, pem: &[u8]) -> Option<ConfigError> {
        let PemContents { has_certificate, has_private_key } = PemContents::of(pem)?;
        let remedy = |wanted: &str| {
            format!("name the file with the {wanted}: the two files are swapped, or one is named twice")
        };
        match (self.holds, has_certificate, has_private_key) {
            (Holds::PrivateKey, true, false) => {
                Some(self.wrong("it has a certificate and no private key", remedy("private key")))
            }
            (Holds::Chain, false, true) => {
                Some(self.wrong("it has a private key and no certificate", remedy("certificates")))
            }
            (Holds::PrivateKey, false, false) => {
                private_key(pem).err().map(|defect| self.wrong(&defect, &defect.remedy))
            }
            _ => None,
        }
    }

    /// The octets.
    ///
    /// # Errors
    /// If the file has the other half of a pair, if it cannot be read, or is open to others than `secrecy` allows.
    pub(crate) fn read(&self, secrecy: Secrecy) -> Result<Zeroizing<Vec<u8>>, ConfigError> {
        self.read_of(secrecy, None)
    }

    /// The same, and if a user is named, only of a file that belongs to this user.
    ///
    /// # Errors
    /// As [`Self::read`], and if it belongs to another user.
    fn read_of(&self, secrecy: Secrecy, owner: Option<u32>) -> Result<Zeroizing<Vec<u8>>, ConfigError> {
        let octets = match owner {
            Some(owner) => guarded::read_of(self.path, secrecy, PEM_SIZE_MAX, owner),
            None => guarded::read(self.path, secrecy, PEM_SIZE_MAX).map(Some),
        };
        let is_handed_over = self.holds == Holds::Both;
        let octets = octets.map_err(|error| {
            // The mode of what is not a key is not the mistake.
            if let Unreadable::Mode(_) = &error
                && let Ok(pem) = guarded::read(self.path, Secrecy::Public, PEM_SIZE_MAX)
                && let Some(wrong) = self.misplaced(&pem)
            {
                return wrong;
            }
            let (path, problem) = (self.path.display(), format!("cannot read: {error}"));
            let wrong = match &error {
                _ if error.is_missing() && is_handed_over => {
                    self.wrong("there is no such file: the hand-over has not run yet", HAND_OVER_AGAIN)
                }
                Unreadable::Mode(_) => {
                    let others = "if others may have read it, make another key";
                    let remedy = guarded::close(self.path, &format!("chmod 640 {path}"));
                    self.wrong(&error, format!("{remedy}; {others}"))
                }
                Unreadable::Io(_) if is_handed_over && error.is_permission() => {
                    let user = privilege::acting_user();
                    let group = "the directory's group is that of the hand-over's files";
                    self.wrong(problem, format!("{HAND_OVER_AGAIN}, with server.user = \"{user}\"; {group}"))
                }
                Unreadable::NotAFile | Unreadable::Size(_) => self.wrong(problem, "name a PEM file"),
                Unreadable::Foreign(_) => self.wrong(problem, guarded::FOREIGN_REMEDY),
                Unreadable::Io(_) if error.is_missing() => self.wrong(problem, "name a file that exists"),
                Unreadable::Io(_) => self.wrong(problem, let_read(&privilege::acting_user(), &path)),
            };
            wrong.of_rights(error.is_permission()).of_passing(error.may_pass())
        })?;
        let octets = octets.ok_or_else(|| {
            let problem = "it belongs to another user than the directory or link that leads to it";
            self.wrong(problem, "keep it in a directory of root's, or of its owner's alone")
        })?;
        self.misplaced(&octets).map_or(Ok(octets), Err)
    }
}
