//! `[nts]`: Network Time Security, and the keys of its cookies. How keys are exchanged is in [`super::exchange`].

use std::time::Duration;

use authentick_proto::limits::KEY_COUNT_MAX;

use super::exchange::KeyExchange;
use super::keys::{RotatingKeys, StoreKind};
use super::{ConfigError, ListenAddress, Resolver, raw};

/// The table of cookie keys.
pub(super) const COOKIE_KEYS: &str = "nts.cookie-keys";

/// Settings of Network Time Security.
#[derive(Clone, Debug)]
pub struct Nts {
    /// How keys are exchanged; absent: by other hosts.
    pub exchange: Option<KeyExchange>,
    /// The keys of cookies.
    pub keys: RotatingKeys,
}

impl Resolver<'_> {
    /// What the table means on a host that serves time on `listen`.
    pub(super) fn nts(&self, raw: raw::Nts, listen: &[ListenAddress]) -> Result<Nts, ConfigError> {
        let rotations = Duration::from_secs(1)..=Duration::from_secs(365 * 86_400);
        let keys = self.rotating_keys(COOKIE_KEYS, &raw.cookie_keys, rotations)?;
        let keep = match &keys.store {
            StoreKind::File | StoreKind::Follow(_) | StoreKind::Fleet => {
                let keep = raw.cookie_keys.keep.unwrap_or(7);
                self.number("nts.cookie-keys.keep", keep, 1..=KEY_COUNT_MAX as i64 - 2)?
            }
            StoreKind::Cfnts(_) => keys.keep,
        };
        Ok(Nts { exchange: self.exchange(raw, listen)?, keys: RotatingKeys { keep, ..keys } })
    }
}
