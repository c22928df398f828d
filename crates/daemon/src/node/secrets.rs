//! Files that a node reads before it gives up root's rights.

use authentick_fleet::seal::SealKeys;

use crate::certificates::{self, InForce};
use crate::config::{Config, ConfigError};
use crate::keystore::Master;
use crate::symmetric::Keys;
use crate::{antp, preflight};

/// Keys and certificates that only root may be able to read; read before root's rights are given up.
pub(super) struct Secrets {
    pub(super) certificates: Option<InForce>,
    pub(super) symmetric: Option<Keys>,
    pub(super) antp: Option<antp::Loaded>,
    pub(super) seals: Option<SealKeys>,
    pub(super) master: Option<Master>,
}

impl Secrets {
    /// Reads what a configuration names.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub(super) fn read(config: &Config) -> Result<Self, ConfigError> {
        let symmetric = config.symmetric.as_ref();
        Ok(Secrets {
            seals: preflight::load_seal(config)?,
            master: preflight::load_master(config)?,
            certificates: config
                .exchange()
                .map(|exchange| certificates::load(config, exchange))
                .transpose()?,
            symmetric: symmetric.map(|symmetric| preflight::load_symmetric(config, symmetric)).transpose()?,
            antp: config.antp.as_ref().map(|antp| antp::load(config, antp)).transpose()?,
        })
    }
}
