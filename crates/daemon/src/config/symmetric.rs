//! `[symmetric]`: keys that clients share with the server.

use std::path::PathBuf;

use authentick_proto::symmetric::Allowed;

use super::{ConfigError, Resolver, raw};
use crate::symmetric::Format;

/// Settings of symmetric keys.
#[derive(Clone, Debug)]
pub struct Symmetric {
    /// The file with the keys.
    pub keys: PathBuf,
    /// Whose format the file has.
    pub format: Format,
    /// Which algorithms are accepted in addition to the recommended ones.
    pub allowed: Allowed,
}

impl Resolver<'_> {
    pub(super) fn symmetric(&self, raw: &raw::Symmetric) -> Result<Symmetric, ConfigError> {
        let formats = [("auto", Format::Auto), ("chrony", Format::Chrony), ("ntp", Format::Ntp)];
        Ok(Symmetric {
            keys: self.absolute("symmetric.keys", &raw.keys)?,
            format: self.word("symmetric.format", raw.format.as_deref(), "format of key files", &formats)?,
            allowed: Allowed { keyed_digests: raw.allow_legacy, nonces: raw.allow_experimental },
        })
    }
}
