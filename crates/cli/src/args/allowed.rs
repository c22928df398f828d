//! Which types of symmetric keys a client uses beside those that nothing speaks against.

use authentick_proto::symmetric::Allowed;
use clap::Args;

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
