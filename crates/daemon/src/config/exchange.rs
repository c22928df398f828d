//! `[nts]`, as far as it is about exchanging keys: where, how often, with which certificate, and for which servers.

use std::path::PathBuf;
use std::time::Duration;

use authentick_crypto::Algorithm;
use authentick_ke::server::{Limits, Rates};
use authentick_proto::auth::nts::algorithm;
use authentick_proto::server::limit::Rate;
use authentick_wire::ke::AeadId;

use super::advertise::Advertised;
use super::certificates::CertificatePair;
use super::{ConfigError, ListenAddress, Resolver, raw};

const LISTEN: &str = "nts.ke-listen";

/// Priority of key exchange on processors that it shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KePriority {
    /// Yields to packet workers, and to no other program.
    #[default]
    Fair,
    /// Runs only when a processor is idle.
    Idle,
}

/// How keys are exchanged.
#[derive(Clone, Debug)]
pub struct KeyExchange {
    /// Where, at least one address.
    pub listen: Vec<ListenAddress>,
    /// Certificates and their keys, at least one. The first is for clients that name no server, or one that none has.
    pub certificates: Vec<CertificatePair>,
    /// The directory from which they are read, where `certificates hand-over` puts them; absent: from their own files.
    pub hand_over: Option<PathBuf>,
    /// Threads; 0: one per processor.
    pub workers: usize,
    /// Their priority, and that of ANTP's.
    pub priority: KePriority,
    /// Bounds, over all of its threads.
    pub limits: Limits,
    /// How often a prefix, and a network, may exchange keys.
    pub rates: Rates,
    /// The servers that clients are sent to, at least one with a weight.
    pub advertised: Vec<Advertised>,
    /// Algorithms that are served; the client's preference decides among them.
    pub algorithms: Vec<Algorithm>,
}

impl Resolver<'_> {
    /// How keys are exchanged on a host that serves time on `ntp_listen`; `None` if other hosts do that.
    pub(super) fn exchange(
        &self,
        raw: raw::Nts,
        ntp_listen: &[ListenAddress],
    ) -> Result<Option<KeyExchange>, ConfigError> {
        let listen = self.addresses(LISTEN, raw.ke_listen.clone(), ["0.0.0.0:4460", "[::]:4460"])?;
        if listen.is_empty() {
            return self.no_exchange(&raw).map(|()| None);
        }
        let priorities = [("fair", KePriority::Fair), ("idle", KePriority::Idle)];
        let priority = self.word("nts.ke-priority", raw.ke_priority.as_deref(), "priority", &priorities)?;
        let (certificates, hand_over) = self.certificates(&raw)?;
        let limits = raw.ke_limits.unwrap_or_default();
        Ok(Some(KeyExchange {
            listen,
            certificates,
            hand_over,
            workers: self.thread_count("nts.ke-workers", raw.ke_workers.unwrap_or(0))?,
            priority,
            limits: self.ke_limits(&limits)?,
            rates: self.ke_rates(&limits)?,
            advertised: self.advertised(raw.advertise, ntp_listen)?,
            algorithms: self.algorithms(&raw.aeads.unwrap_or_else(|| vec![15, 16, 17, 30]))?,
        }))
    }

    /// Refuses what says how keys are exchanged, where they are not.
    fn no_exchange(&self, raw: &raw::Nts) -> Result<(), ConfigError> {
        let given = [
            ("nts.certificate-chain", raw.certificate_chain.is_some()),
            ("nts.private-key", raw.private_key.is_some()),
            ("nts.certificate", raw.certificate.is_some()),
            ("nts.hand-over", raw.hand_over.is_some()),
            ("nts.ke-workers", raw.ke_workers.is_some()),
            ("nts.ke-priority", raw.ke_priority.is_some()),
            ("nts.ke-limits", raw.ke_limits.is_some()),
            ("nts.advertise", raw.advertise.is_some()),
            ("nts.aeads", raw.aeads.is_some()),
        ];
        let problem = format!("without effect, as no keys are exchanged here: {LISTEN} is empty");
        let remedy = format!("remove it, or name an ADDRESS:PORT in {LISTEN}");
        self.refuse_given(&given, &problem, &remedy)
    }

    /// The path of a file without which no keys are exchanged.
    pub(super) fn needed(&self, key: &str, path: Option<&str>) -> Result<PathBuf, ConfigError> {
        let Some(path) = path else {
            let remedy = "name a PEM file, or write ke-listen = [] if other hosts exchange keys for this one";
            return Err(self.wrong(key, "", "missing, and keys are exchanged here", remedy));
        };
        self.absolute(key, path)
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
