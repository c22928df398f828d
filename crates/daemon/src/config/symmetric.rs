//! `[symmetric]`: keys that clients share with the server.

use std::path::PathBuf;

use authentick_proto::symmetric::Allowed;

use super::{ConfigError, Resolver, raw};
use crate::symmetric::Dialect;

/// Settings of symmetric keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symmetric {
    /// The file with the keys.
    pub keys: PathBuf,
    /// Whose key file it is; absent: the file shows it, or it makes no difference.
    pub format: Option<Dialect>,
    /// Which algorithms are accepted beside those that nothing speaks against.
    pub allowed: Allowed,
}

impl Resolver<'_> {
    pub(super) fn symmetric(&self, raw: &raw::Symmetric) -> Result<Symmetric, ConfigError> {
        let formats = [("auto", None), ("chrony", Some(Dialect::Chrony)), ("ntp", Some(Dialect::Ntp))];
        Ok(Symmetric {
            keys: self.absolute("symmetric.keys", &raw.keys)?,
            format: self.word("symmetric.format", raw.format.as_deref(), "format of key files", &formats)?,
            allowed: Allowed { keyed_digests: raw.allow_legacy, nonces: raw.allow_experimental },
        })
    }
}
