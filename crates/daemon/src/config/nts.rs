//! `[nts]`: Network Time Security, its key exchange, and the keys of its cookies.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use authentick_crypto::Algorithm;
use authentick_ke::server::{Limits, Rates};
use authentick_ke::session::Terms;
use authentick_proto::auth::nts::algorithm;
use authentick_proto::limits::KEY_COUNT_MAX;
use authentick_proto::server::limit::Rate;
use authentick_wire::ke::AeadId;

use super::{ConfigError, Resolver, raw};

/// Where cookie keys are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// In a file of the state directory.
    File,
    /// In this file, which something else replaces.
    Follow(PathBuf),
}

/// Settings of Network Time Security.
#[derive(Clone, Debug)]
pub struct Nts {
    /// Where key exchanges are taken.
    pub ke_listen: Vec<SocketAddr>,
    /// PEM file with the certificate chain.
    pub certificate_chain: PathBuf,
    /// PEM file with the private key.
    pub private_key: PathBuf,
    /// Threads for key exchange; 0: one per processor.
    pub ke_workers: usize,
    /// Bounds of key exchange, over all of its threads.
    pub ke_limits: Limits,
    /// How often a prefix, and a network, may exchange keys.
    pub ke_rates: Rates,
    /// What key exchange offers. A port of none means: the first one of `listen`.
    pub terms: Terms,
    /// Where cookie keys are kept.
    pub store: StoreKind,
    /// How long a cookie key seals.
    pub rotate: Duration,
    /// How many retired cookie keys still open.
    pub keep: usize,
}

impl Resolver<'_> {
    pub(super) fn nts(&self, raw: raw::Nts) -> Result<Nts, ConfigError> {
        let store = self.store(&raw.cookie_keys)?;
        let raw::CookieKeys { rotate, keep, .. } = raw.cookie_keys;
        let (rotate, keep) = (rotate.as_deref().unwrap_or("1d"), keep.unwrap_or(7));
        let rotations = Duration::from_secs(1)..=Duration::from_secs(365 * 86_400);
        let raw::Advertise { server, port } = raw.advertise;
        let port = port.map(|port| self.number("nts.advertise.port", port, 1..=65535)).transpose()?;
        Ok(Nts {
            ke_listen: self.addresses("nts.ke-listen", raw.ke_listen, ["0.0.0.0:4460", "[::]:4460"])?,
            certificate_chain: self.absolute("nts.certificate-chain", &raw.certificate_chain)?,
            private_key: self.absolute("nts.private-key", &raw.private_key)?,
            ke_workers: self.thread_count("nts.ke-workers", raw.ke_workers)?,
            ke_limits: self.ke_limits(&raw.ke_limits)?,
            ke_rates: self.ke_rates(&raw.ke_limits)?,
            terms: Terms {
                ntp_server: server.map(|name| self.server_name(name)).transpose()?,
                ntp_port: port,
                algorithms: self.algorithms(&raw.aeads.unwrap_or_else(|| vec![15, 16, 17, 30]))?,
            },
            store,
            rotate: self.duration("nts.cookie-keys.rotate", rotate, rotations)?,
            keep: self.number("nts.cookie-keys.keep", keep, 1..=KEY_COUNT_MAX as i64 - 2)?,
        })
    }

    /// Where cookie keys are. Keys that something else makes rotate there, too.
    fn store(&self, raw: &raw::CookieKeys) -> Result<StoreKind, ConfigError> {
        const FILE: &str = "nts.cookie-keys.file";
        let (words, what) = ([("file", false), ("follow", true)], "key store in this version");
        let is_followed = self.word("nts.cookie-keys.store", raw.store.as_deref(), what, &words)?;
        match (is_followed, &raw.file) {
            (false, None) => Ok(StoreKind::File),
            (false, Some(file)) => {
                let remedy =
                    "write store = \"follow\" too, or leave this out: the file is in the state directory";
                Err(self.wrong(FILE, file, "only read if something else makes the keys", remedy))
            }
            (true, None) => {
                let remedy = "name the file that something else replaces: file = \"/run/keys/cookie-keys\"";
                Err(self.wrong(FILE, "", "missing, and the keys are to be read there", remedy))
            }
            (true, Some(file)) => {
                let keep = raw.keep.map(|keep| ("nts.cookie-keys.keep", keep.to_string()));
                let rotate = raw.rotate.clone().map(|rotate| ("nts.cookie-keys.rotate", rotate));
                if let Some((key, value)) = rotate.or(keep) {
                    let remedy = "leave it out: keys rotate where they are made";
                    return Err(self.wrong(
                        key,
                        value,
                        "without effect on keys that something else makes",
                        remedy,
                    ));
                }
                Ok(StoreKind::Follow(self.absolute(FILE, file)?))
            }
        }
    }

    fn ke_limits(&self, raw: &raw::KeLimits) -> Result<Limits, ConfigError> {
        let default = Limits::default();
        let count = |key: &str, count: Option<i64>, default| match count {
            Some(count) => self.number(key, count, 1..=65536),
            None => Ok(default),
        };
        let timeouts = Duration::from_millis(100)..=Duration::from_secs(300);
        Ok(Limits {
            connection_count: count("nts.ke-limits.connections", raw.connections, default.connection_count)?,
            per_prefix_count: count("nts.ke-limits.per-prefix", raw.per_prefix, default.per_prefix_count)?,
            timeout: match &raw.timeout {
                Some(text) => self.duration("nts.ke-limits.timeout", text, timeouts)?,
                None => default.timeout,
            },
        })
    }

    fn algorithms(&self, ids: &[i64]) -> Result<Vec<Algorithm>, ConfigError> {
        const KEY: &str = "nts.aeads";
        let remedy = "list some of 15, 16, 17 and 30";
        if ids.is_empty() {
            return Err(self.wrong(KEY, "[]", "no algorithm", remedy));
        }
        ids.iter()
            .map(|&id| {
                let known = u16::try_from(id).ok().and_then(|id| algorithm(AeadId(id)));
                known.ok_or_else(|| self.wrong(KEY, id, "no AEAD algorithm of ours", remedy))
            })
            .collect()
    }

    fn server_name(&self, name: String) -> Result<String, ConfigError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        match !name.is_empty() && name.len() <= 255 && name.chars().all(plain) {
            true => Ok(name),
            false => {
                let remedy = "write a host name in ASCII, or an IP address without brackets";
                Err(self.wrong("nts.advertise.server", name, "no host name or address", remedy))
            }
        }
    }

    fn ke_rates(&self, raw: &raw::KeLimits) -> Result<Rates, ConfigError> {
        let Rates { per_prefix, per_network } = Rates::default();
        let burst = |key: &str, burst: Option<i64>, default: Option<Rate>| match burst {
            Some(burst) => self.number(key, burst, 1..=1_000_000),
            None => Ok(default.map_or(1, |rate| rate.burst)),
        };
        let interval_us = |key: &str, rate: Option<f64>, default: Option<Rate>| match rate {
            Some(per_second) => self.interval_us(key, per_second),
            None => Ok(default.map(|rate| rate.interval_us)),
        };
        let prefix_burst = burst("nts.ke-limits.per-prefix-burst", raw.per_prefix_burst, per_prefix)?;
        let network_burst = burst("nts.ke-limits.per-network-burst", raw.per_network_burst, per_network)?;
        let prefix = interval_us("nts.ke-limits.per-prefix-rate", raw.per_prefix_rate, per_prefix)?;
        let network = interval_us("nts.ke-limits.per-network-rate", raw.per_network_rate, per_network)?;
        Ok(Rates {
            per_prefix: prefix.map(|interval_us| Rates::of_prefix(interval_us, prefix_burst)),
            per_network: network.map(|interval_us| Rates::of_network(interval_us, network_burst)),
        })
    }
}
