//! `[antp]`: ANTP, its identities, and the limits of its public-key work.

use std::path::PathBuf;
use std::time::Duration;

use authentick_proto::antp::server::{LIFETIME_SECONDS_MAX, Settings};
use authentick_proto::limits::KEY_COUNT_MAX;
use authentick_proto::server::limit::Rate;
use authentick_wire::antp::{Suite, negotiation_response_size};
use authentick_wire::limits::ANTP_PAYLOAD_SIZE_MAX;

use super::keys::{RotatingKeys, StoreKind};
use super::values::describe_duration;
use super::{ConfigError, Resolver, raw};

/// Threads for ANTP's public-key work, at most: each has a bit in a word.
pub const ANTP_WORKER_COUNT_MAX: usize = 64;
/// The smallest limit on ANTP's responses: that of one without a part of a chain.
const PAYLOAD_SIZE_MIN: usize = negotiation_response_size(None);

/// Settings of ANTP.
#[derive(Clone, Debug)]
pub struct Antp {
    /// What the protocol lets a server choose.
    pub settings: Settings,
    /// The keys that seal its state. Retired ones stay so that a C2 opens as long as it lives.
    pub keys: RotatingKeys,
    /// Threads for public-key work.
    pub workers: usize,
    /// Key exchanges that wait for them, at most.
    pub queue: usize,
    /// How often a prefix may negotiate.
    pub negotiation_rate: Option<Rate>,
    /// How often a prefix may exchange keys.
    pub exchange_rate: Option<Rate>,
    /// How often a network may, an IPv4 /24 or an IPv6 /48.
    pub network_exchange_rate: Option<Rate>,
    /// How often all prefixes together may.
    pub all_exchange_rate: Option<Rate>,
    /// How often a prefix may ask for time.
    pub time_rate: Option<Rate>,
    /// Keys and certificates, at least one, each of another suite.
    pub suites: Vec<AntpSuite>,
}

/// Where the identity of one suite of ANTP is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AntpSuite {
    /// The suite.
    pub suite: Suite,
    /// Its table in the configuration, for messages.
    pub table: &'static str,
    /// PEM file with the certificate chain.
    pub certificate_chain: PathBuf,
    /// PEM file with the private key.
    pub private_key: PathBuf,
}

fn retired_count(lifetime_seconds: u64, period_seconds: u64) -> usize {
    lifetime_seconds.div_ceil(period_seconds.max(1)) as usize
}

impl Resolver<'_> {
    pub(super) fn antp(&self, raw: &raw::Antp, shared: &raw::RateLimit) -> Result<Option<Antp>, ConfigError> {
        let payload_sizes = PAYLOAD_SIZE_MIN as i64..=ANTP_PAYLOAD_SIZE_MAX as i64;
        let (payload_size, workers) = (raw.payload_size.unwrap_or(1072), raw.workers.unwrap_or(1));
        let lifetime_max = Duration::from_secs(u64::from(LIFETIME_SECONDS_MAX));
        let lifetime = raw.lifetime.as_deref().unwrap_or("7d");
        let lifetime = self.duration("antp.lifetime", lifetime, Duration::from_secs(60)..=lifetime_max)?;
        let prefixes = self.prefix_sizes(shared)?;
        let queue: usize = self.number("antp.queue", raw.queue.unwrap_or(256), 1..=65_536)?;
        let limit = &raw.rate_limit;
        let rate = |name: &str, per_second: Option<f64>, default| {
            self.rate(shared, &format!("antp.rate-limit.{name}"), per_second.unwrap_or(default))
        };
        let exchanges_per_second = limit.exchanges_per_second.unwrap_or(20.0);
        let network = |rate: Rate| Rate {
            burst: rate.burst.saturating_mul(2),
            prefix_v4: rate.prefix_v4.min(24),
            prefix_v6: rate.prefix_v6.min(48),
            ..rate
        };
        let suites = [
            (Suite::P256, "antp.ecdh", &raw.ecdh),
            (Suite::RSA_PKCS1, "antp.rsa", &raw.rsa),
            (Suite::RSA_OAEP, "antp.rsa-oaep", &raw.rsa_oaep),
            (Suite::X25519, "antp.x25519", &raw.x25519),
        ];
        let suites = suites.into_iter().filter_map(|(suite, table, raw)| {
            let raw = raw.as_ref()?;
            let path = |name: &str, text: &str| self.absolute(&format!("{table}.{name}"), text);
            let chain = path("certificate-chain", &raw.certificate_chain);
            Some(chain.and_then(|certificate_chain| {
                let private_key = path("private-key", &raw.private_key)?;
                Ok(AntpSuite { suite, table, certificate_chain, private_key })
            }))
        });
        let antp = Antp {
            settings: Settings {
                payload_size_max: self.number("antp.payload-size", payload_size, payload_sizes)?,
                lifetime_seconds: lifetime.as_secs() as u32,
                source_prefix: raw.check_source.unwrap_or(true).then_some(prefixes),
            },
            keys: self.state_keys(raw, lifetime)?,
            workers: self.number("antp.workers", workers, 1..=ANTP_WORKER_COUNT_MAX as i64)?,
            queue,
            // 5,000 clients behind one address that come back at once have keys after five minutes: two m1 and one m3
            // each. 20 m3 with RSA, the most expensive, take less than a hundredth of a core. m5: 64,000 clients that
            // ask once a minute.
            negotiation_rate: rate("negotiations-per-second", limit.negotiations_per_second, 100.0)?,
            exchange_rate: rate("exchanges-per-second", Some(exchanges_per_second), 0.0)?,
            // Twice as much, so that one hostile address leaves its neighbours half.
            network_exchange_rate: rate(
                "network-exchanges-per-second",
                limit.network_exchanges_per_second,
                2.0 * exchanges_per_second,
            )?
            .map(network),
            // A third of a core with RSA. Clients that replace a key after five days and a half: 480 million. As many
            // at once as wait for a thread.
            all_exchange_rate: rate("all-exchanges-per-second", limit.all_exchanges_per_second, 1000.0)?
                .map(|rate| Rate { burst: queue as u32, ..rate }),
            time_rate: rate("times-per-second", limit.times_per_second, 1000.0)?,
            suites: suites.collect::<Result<_, _>>()?,
        };
        if raw.enable && antp.suites.is_empty() {
            let remedy = "add a table [antp.ecdh] with certificate-chain and private-key";
            return Err(self.wrong("antp.enable", true, "there is no suite to serve", remedy));
        }
        Ok(raw.enable.then_some(antp))
    }

    /// The keys of state that lives for `lifetime`.
    fn state_keys(&self, raw: &raw::Antp, lifetime: Duration) -> Result<RotatingKeys, ConfigError> {
        const RETIRED_COUNT_MAX: usize = KEY_COUNT_MAX - 2;
        let rotations = Duration::from_secs(1)..=Duration::from_secs(31 * 86_400);
        let keys = self.rotating_keys("antp.state-keys", &raw.state_keys.clone().into(), rotations)?;
        let keep = retired_count(lifetime.as_secs(), keys.rotate.as_secs());
        // What something else makes is kept where it is made.
        let is_made_here = !matches!(keys.store, StoreKind::Follow(_));
        if is_made_here && keep > RETIRED_COUNT_MAX {
            let least = Duration::from_secs(lifetime.as_secs().div_ceil(RETIRED_COUNT_MAX as u64));
            let remedy = format!("write {} or more, or a shorter antp.lifetime", describe_duration(least));
            let problem = "too many keys would have to be kept for antp.lifetime";
            let value = raw.state_keys.rotate.as_deref().unwrap_or("1d");
            return Err(self.wrong("antp.state-keys.rotate", value, problem, &remedy));
        }
        Ok(RotatingKeys { keep: keep.min(RETIRED_COUNT_MAX), ..keys })
    }
}
