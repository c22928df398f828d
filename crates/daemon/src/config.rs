//! The configuration file: TOML, read into resolved values, with every mistake named by file, key, value and remedy.
//!
//! Two steps: `raw` mirrors the file, all strings; [`Config`] holds meanings. Nothing here opens a socket or changes a
//! file.

#[cfg(test)]
mod manual;
mod raw;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authentick_crypto::Algorithm;
use authentick_ke::server::{Limits, Rates};
use authentick_ke::session::Terms;
use authentick_net::udp::BATCH_SIZE;
use authentick_proto::antp::server::{LIFETIME_SECONDS_MAX, Settings};
use authentick_proto::antp::source::PrefixSizes;
use authentick_proto::auth::nts::algorithm;
use authentick_proto::limits::KEY_COUNT_MAX;
use authentick_proto::prefix::{Prefix, PrefixSet};
use authentick_proto::server::limit::Rate;
use authentick_proto::symmetric::Allowed;
use authentick_wire::antp::{Suite, negotiation_response_size};
use authentick_wire::header::ReferenceId;
use authentick_wire::ke::AeadId;
use authentick_wire::limits::ANTP_PAYLOAD_SIZE_MAX;

use crate::symmetric::Format;

/// Where the configuration is if nobody says otherwise.
pub const DEFAULT_PATH: &str = "/etc/authentick/authentick.toml";

/// Threads for ANTP's public-key work, at most: each has a bit in a word.
pub const ANTP_WORKER_COUNT_MAX: usize = 64;
/// The smallest limit on ANTP's responses: that of one without a part of a chain.
const PAYLOAD_SIZE_MIN: usize = negotiation_response_size(None);

/// What vouches for the time that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The operator: the clock is good, as `local stratum` of chrony says.
    Asserted {
        /// 1 to 15.
        stratum: u8,
        /// The source's name, or an address.
        id: ReferenceId,
    },
    /// The kernel's clock state.
    Kernel,
    /// A local daemon that keeps the clock, asked by NTP.
    Upstream(SocketAddr),
}

/// Everything that a server needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where requests for time are taken.
    pub listen: Vec<SocketAddr>,
    /// Threads that answer them; 0: one per processor.
    pub workers: usize,
    /// Datagrams that are received, answered and sent together, at most.
    pub batch_size: usize,
    /// What vouches for the time.
    pub reference: Reference,
    /// Where cookie keys are kept.
    pub state_directory: PathBuf,
    /// Who the server becomes if it is started as root.
    pub user: String,
    /// Whether the server gives up what it does not need.
    pub contain: bool,
    /// Who may ask.
    pub allow: PrefixSet,
    /// Whether refused clients get a kiss.
    pub kiss: bool,
    /// Whether interleaved mode is offered.
    pub interleaved: bool,
    /// How often a prefix may ask.
    pub rate: Option<Rate>,
    /// Network Time Security; absent: not served.
    pub nts: Option<Nts>,
    /// Keys that clients share with the server; absent: none.
    pub symmetric: Option<Symmetric>,
    /// ANTP; absent: not served.
    pub antp: Option<Antp>,
    /// Where metrics are shown; absent: nowhere.
    pub metrics: Option<Metrics>,
    /// The file that all this came from, for messages.
    pub file: PathBuf,
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
    /// How long a cookie key seals.
    pub rotate: Duration,
    /// How many retired cookie keys still open.
    pub keep: usize,
}

/// Settings of symmetric keys.
#[derive(Clone, Debug)]
pub struct Symmetric {
    /// The file with the keys.
    pub keys: PathBuf,
    /// Whose key file it is.
    pub format: Format,
    /// Which algorithms are accepted beside those that nothing speaks against.
    pub allowed: Allowed,
}

/// Settings of ANTP.
#[derive(Clone, Debug)]
pub struct Antp {
    /// What the protocol lets a server choose.
    pub settings: Settings,
    /// How long a state key seals.
    pub rotate: Duration,
    /// Threads for public-key work.
    pub workers: usize,
    /// Key exchanges that wait for them, at most.
    pub queue: usize,
    /// How often a prefix may negotiate.
    pub negotiation_rate: Option<Rate>,
    /// How often a prefix may exchange keys.
    pub exchange_rate: Option<Rate>,
    /// How often all prefixes together may.
    pub all_exchange_rate: Option<Rate>,
    /// How often a prefix may ask for time.
    pub time_rate: Option<Rate>,
    /// Keys and certificates, at least one, each of another suite.
    pub suites: Vec<AntpSuite>,
}

/// Where the identity of one suite of ANTP is.
#[derive(Clone, Debug)]
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

impl Antp {
    /// How many retired state keys still open, so that a C2 opens as long as it lives.
    #[must_use]
    pub fn keep(&self) -> usize {
        retired_count(u64::from(self.settings.lifetime_seconds), self.rotate.as_secs())
    }
}

fn retired_count(lifetime_seconds: u64, period_seconds: u64) -> usize {
    lifetime_seconds.div_ceil(period_seconds.max(1)) as usize
}

/// Settings of the metrics endpoint.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whose requests are timed stage by stage.
    pub span_clients: PrefixSet,
}

/// A mistake in the configuration, or in a file that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file in which the mistake is.
    pub file: PathBuf,
    /// The key, with its table, such as `server.listen`; empty if the file as a whole is meant.
    pub key: String,
    /// The value that is wrong; empty if there is none.
    pub value: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do.
    pub remedy: String,
    /// Whether rights are what is missing.
    pub is_permission: bool,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        match (self.key.is_empty(), self.value.is_empty()) {
            (true, _) => {}
            (false, true) => write!(f, "{}: ", self.key)?,
            (false, false) => write!(f, "{} = {:?}: ", self.key, self.value)?,
        }
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

impl std::error::Error for ConfigError {}

impl ConfigError {
    /// A mistake at `key` of `file`.
    pub fn new(
        file: &Path,
        key: &str,
        value: impl fmt::Display,
        problem: impl fmt::Display,
        remedy: impl fmt::Display,
    ) -> Self {
        ConfigError {
            file: file.to_owned(),
            key: key.to_owned(),
            value: value.to_string(),
            problem: problem.to_string(),
            remedy: remedy.to_string(),
            is_permission: false,
        }
    }

    /// Marks the mistake as one of missing rights if `error` is.
    #[must_use]
    pub fn caused_by(self, error: &std::io::Error) -> Self {
        ConfigError { is_permission: error.kind() == std::io::ErrorKind::PermissionDenied, ..self }
    }
}

impl Config {
    /// Reads and resolves the file.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            let remedy = match error.kind() {
                std::io::ErrorKind::NotFound => "name a file that exists with --config",
                std::io::ErrorKind::PermissionDenied => {
                    "make it readable for the user that starts the server"
                }
                _ => "name a readable text file with --config",
            };
            ConfigError::new(file, "", "", format!("cannot read: {error}"), remedy).caused_by(&error)
        })?;
        Config::parse(file, &text)
    }

    /// Resolves `text`; `file` is where it came from, for messages.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let raw: raw::File = toml::from_str(text).map_err(|error| {
            let place = error.span().map_or(String::new(), |span| {
                let before = &text[..span.start.min(text.len())];
                format!("line {}: ", before.matches('\n').count() + 1)
            });
            let message = error.message().trim().replace('\n', " ");
            let remedy = "see the manual's configuration page for all keys and their types";
            ConfigError::new(file, "", "", format!("{place}{message}"), remedy)
        })?;
        Resolver { file }.resolve(raw)
    }
}

/// Turns raw values into meanings; knows the file for messages.
struct Resolver<'a> {
    file: &'a Path,
}

impl Resolver<'_> {
    fn resolve(&self, raw: raw::File) -> Result<Config, ConfigError> {
        let server = raw.server;
        match server.engine.as_str() {
            "auto" | "udp" => {}
            other => {
                return Err(self.wrong(
                    "server.engine",
                    other,
                    "no such engine in this version",
                    "write \"auto\" or \"udp\"",
                ));
            }
        }
        let kiss = match server.refusal.as_str() {
            "silence" => false,
            "kiss" => true,
            other => {
                return Err(self.wrong(
                    "server.refusal",
                    other,
                    "no such refusal",
                    "write \"silence\" or \"kiss\"",
                ));
            }
        };
        let contain = match server.containment.as_str() {
            "auto" => true,
            "off" => false,
            other => {
                return Err(self.wrong(
                    "server.containment",
                    other,
                    "no such containment",
                    "write \"auto\" or \"off\"",
                ));
            }
        };
        let rate_limit = &server.rate_limit;
        Ok(Config {
            listen: self.addresses("server.listen", &server.listen)?,
            workers: self.thread_count("server.workers", server.workers)?,
            batch_size: self.batch_size(server.batch_size)?,
            reference: self.reference(&server.reference)?,
            state_directory: self.absolute("server.state-directory", &server.state_directory)?,
            user: server.user,
            contain,
            allow: self.prefixes("server.allow", &server.allow)?,
            kiss,
            interleaved: server.interleaved,
            rate: self.rate(
                rate_limit,
                "server.rate-limit.requests-per-second",
                rate_limit.requests_per_second,
            )?,
            nts: raw.nts.map(|nts| self.nts(&nts)).transpose()?,
            symmetric: raw.symmetric.map(|symmetric| self.symmetric(&symmetric)).transpose()?,
            antp: raw.antp.map(|antp| self.antp(&antp, rate_limit)).transpose()?.flatten(),
            metrics: raw.metrics.map(|metrics| self.metrics(&metrics)).transpose()?,
            file: self.file.to_owned(),
        })
    }

    fn wrong(
        &self,
        key: &str,
        value: impl fmt::Display,
        problem: impl fmt::Display,
        remedy: &str,
    ) -> ConfigError {
        ConfigError::new(self.file, key, value, problem, remedy)
    }

    fn address(&self, key: &str, text: &str) -> Result<SocketAddr, ConfigError> {
        text.parse().map_err(|_| {
            let remedy = "write ADDRESS:PORT, as in \"0.0.0.0:123\" or \"[::]:123\"";
            self.wrong(key, text, "no IP address and port", remedy)
        })
    }

    fn addresses(&self, key: &str, texts: &[String]) -> Result<Vec<SocketAddr>, ConfigError> {
        if texts.is_empty() {
            return Err(self.wrong(key, "[]", "nothing to listen on", "name at least one ADDRESS:PORT"));
        }
        let addresses: Vec<SocketAddr> =
            texts.iter().map(|text| self.address(key, text)).collect::<Result<_, _>>()?;
        let twice = addresses
            .iter()
            .enumerate()
            .find(|(index, address)| address.port() != 0 && addresses[..*index].contains(address));
        if let Some((_, address)) = twice {
            return Err(self.wrong(key, address, "listed twice", "remove one of them"));
        }
        if addresses.len() > authentick_net::udp::SOCKET_COUNT_MAX {
            let most = authentick_net::udp::SOCKET_COUNT_MAX;
            let problem = format!("more than {most} addresses");
            return Err(self.wrong(key, addresses.len(), problem, "listen on a wildcard address instead"));
        }
        Ok(addresses)
    }

    fn thread_count(&self, key: &str, count: usize) -> Result<usize, ConfigError> {
        const THREAD_COUNT_MAX: usize = 1024;
        match count {
            0..=THREAD_COUNT_MAX => Ok(count),
            _ => Err(self.wrong(key, count, "too many threads", "write 0 for one per processor")),
        }
    }

    fn batch_size(&self, size: usize) -> Result<usize, ConfigError> {
        match size {
            1..=BATCH_SIZE => Ok(size),
            _ => {
                let remedy = format!("write 1 to {BATCH_SIZE}, or leave it out");
                Err(self.wrong("server.batch-size", size, "no such batch", &remedy))
            }
        }
    }

    fn absolute(&self, key: &str, text: &str) -> Result<PathBuf, ConfigError> {
        let path = PathBuf::from(text);
        match path.is_absolute() {
            true => Ok(path),
            false => Err(self.wrong(key, text, "relative path", "write a path that starts with a slash")),
        }
    }

    fn prefixes(&self, key: &str, texts: &[String]) -> Result<PrefixSet, ConfigError> {
        let prefixes: Result<Vec<Prefix>, _> = texts
            .iter()
            .map(|text| {
                text.parse().map_err(|error| {
                    self.wrong(key, text, error, "prefixes look like \"192.0.2.0/24\" or \"2001:db8::/32\"")
                })
            })
            .collect();
        Ok(PrefixSet::new(prefixes?))
    }

    fn number(
        &self,
        key: &str,
        value: i64,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<usize, ConfigError> {
        if range.contains(&value) {
            return Ok(usize::try_from(value).unwrap_or(usize::MAX));
        }
        let remedy = format!("write a number from {} to {}", range.start(), range.end());
        Err(self.wrong(key, value, "out of range", &remedy))
    }

    fn duration(
        &self,
        key: &str,
        text: &str,
        range: std::ops::RangeInclusive<Duration>,
    ) -> Result<Duration, ConfigError> {
        let duration = humantime::parse_duration(text).map_err(|error| {
            self.wrong(key, text, error, "durations look like \"1d\", \"12h\" or \"90s\"")
        })?;
        if range.contains(&duration) {
            return Ok(duration);
        }
        let (least, most) =
            (humantime::format_duration(*range.start()), humantime::format_duration(*range.end()));
        Err(self.wrong(key, text, "out of range", &format!("write a duration from {least} to {most}")))
    }

    fn reference(&self, raw: &raw::Reference) -> Result<Reference, ConfigError> {
        match raw {
            raw::Reference::Name(name) if name == "kernel" => Ok(Reference::Kernel),
            raw::Reference::Name(name) => {
                let remedy =
                    "write \"kernel\", { stratum = 1, id = \"GPS\" } or { upstream = \"ADDRESS:PORT\" }";
                Err(self.wrong("server.reference", name, "no such reference", remedy))
            }
            raw::Reference::Asserted(asserted) => Ok(Reference::Asserted {
                stratum: self.number("server.reference.stratum", asserted.stratum, 1..=15)? as u8,
                id: self.reference_id(&asserted.id)?,
            }),
            raw::Reference::Upstream(upstream) => {
                Ok(Reference::Upstream(self.address("server.reference.upstream", &upstream.upstream)?))
            }
        }
    }

    fn reference_id(&self, text: &str) -> Result<ReferenceId, ConfigError> {
        if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
            return Ok(ReferenceId(address.octets()));
        }
        let printable = text.bytes().all(|octet| octet.is_ascii_graphic());
        if text.is_empty() || text.len() > 4 || !printable {
            let remedy = "write one to four ASCII characters, as in \"GPS\", or an IPv4 address";
            return Err(self.wrong("server.reference.id", text, "no reference identifier", remedy));
        }
        let mut id = [0; 4];
        id[..text.len()].copy_from_slice(text.as_bytes());
        Ok(ReferenceId(id))
    }

    /// The rate of `key`, over the prefixes and with the burst of `raw`.
    fn rate(&self, raw: &raw::RateLimit, key: &str, per_second: f64) -> Result<Option<Rate>, ConfigError> {
        let prefix_v4 = self.number("server.rate-limit.per-prefix-v4", raw.per_prefix_v4, 1..=32)? as u8;
        let prefix_v6 = self.number("server.rate-limit.per-prefix-v6", raw.per_prefix_v6, 1..=128)? as u8;
        let burst = self.number("server.rate-limit.burst", raw.burst, 1..=1_000_000)? as u32;
        let interval_us = self.interval_us(key, per_second)?;
        Ok(interval_us.map(|interval_us| Rate { interval_us, burst, prefix_v4, prefix_v6 }))
    }

    /// Microseconds between two at this rate; `None` for no limit.
    fn interval_us(&self, key: &str, per_second: f64) -> Result<Option<u64>, ConfigError> {
        if per_second == 0.0 {
            return Ok(None);
        }
        if !(0.000_1..=1_000_000.0).contains(&per_second) {
            let remedy = "write 0 for no limit, or a number from 0.0001 to 1000000";
            return Err(self.wrong(key, per_second, "out of range", remedy));
        }
        Ok(Some((1e6 / per_second) as u64))
    }

    fn ke_rates(&self, raw: &raw::KeLimits) -> Result<Rates, ConfigError> {
        let burst = |key: &str, value| Ok(self.number(key, value, 1..=1_000_000)? as u32);
        let prefix_burst = burst("nts.ke-limits.per-prefix-burst", raw.per_prefix_burst)?;
        let network_burst = burst("nts.ke-limits.per-network-burst", raw.per_network_burst)?;
        let prefix = self.interval_us("nts.ke-limits.per-prefix-rate", raw.per_prefix_rate)?;
        let network = self.interval_us("nts.ke-limits.per-network-rate", raw.per_network_rate)?;
        Ok(Rates {
            per_prefix: prefix.map(|interval_us| Rates::of_prefix(interval_us, prefix_burst)),
            per_network: network.map(|interval_us| Rates::of_network(interval_us, network_burst)),
        })
    }

    fn nts(&self, raw: &raw::Nts) -> Result<Nts, ConfigError> {
        match raw.cookie_keys.store.as_str() {
            "file" => {}
            other => {
                let problem = "no such key store in this version";
                return Err(self.wrong("nts.cookie-keys.store", other, problem, "write \"file\""));
            }
        }
        let day = Duration::from_secs(86_400);
        let port =
            raw.advertise.port.map(|port| self.number("nts.advertise.port", port, 1..=65535)).transpose()?;
        Ok(Nts {
            ke_listen: self.addresses("nts.ke-listen", &raw.ke_listen)?,
            certificate_chain: self.absolute("nts.certificate-chain", &raw.certificate_chain)?,
            private_key: self.absolute("nts.private-key", &raw.private_key)?,
            ke_workers: self.thread_count("nts.ke-workers", raw.ke_workers)?,
            ke_limits: Limits {
                connection_count: self.number(
                    "nts.ke-limits.connections",
                    raw.ke_limits.connections,
                    1..=65536,
                )?,
                per_prefix_count: self.number(
                    "nts.ke-limits.per-prefix",
                    raw.ke_limits.per_prefix,
                    1..=65536,
                )?,
                timeout: self.duration(
                    "nts.ke-limits.timeout",
                    &raw.ke_limits.timeout,
                    Duration::from_millis(100)..=Duration::from_secs(300),
                )?,
            },
            ke_rates: self.ke_rates(&raw.ke_limits)?,
            terms: Terms {
                ntp_server: raw.advertise.server.as_deref().map(|name| self.server_name(name)).transpose()?,
                ntp_port: port.map(|port| port as u16),
                algorithms: self.algorithms(&raw.aeads)?,
            },
            rotate: self.duration(
                "nts.cookie-keys.rotate",
                &raw.cookie_keys.rotate,
                Duration::from_secs(1)..=365 * day,
            )?,
            keep: self.number("nts.cookie-keys.keep", raw.cookie_keys.keep, 1..=KEY_COUNT_MAX as i64 - 2)?,
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

    fn server_name(&self, name: &str) -> Result<String, ConfigError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        match !name.is_empty() && name.len() <= 255 && name.chars().all(plain) {
            true => Ok(name.to_owned()),
            false => {
                let remedy = "write a host name in ASCII, or an IP address without brackets";
                Err(self.wrong("nts.advertise.server", name, "no host name or address", remedy))
            }
        }
    }

    fn symmetric(&self, raw: &raw::Symmetric) -> Result<Symmetric, ConfigError> {
        let format = match raw.format.as_str() {
            "auto" => Format::Auto,
            "chrony" => Format::Chrony,
            "ntp" => Format::Ntp,
            other => {
                let remedy = "write \"auto\", \"chrony\" or \"ntp\"";
                return Err(self.wrong("symmetric.format", other, "no such format of key files", remedy));
            }
        };
        Ok(Symmetric {
            keys: self.absolute("symmetric.keys", &raw.keys)?,
            format,
            allowed: Allowed { keyed_digests: raw.allow_legacy, nonces: raw.allow_experimental },
        })
    }

    fn antp(&self, raw: &raw::Antp, shared: &raw::RateLimit) -> Result<Option<Antp>, ConfigError> {
        const RETIRED_COUNT_MAX: usize = KEY_COUNT_MAX - 2;
        let day = Duration::from_secs(86_400);
        let payload = PAYLOAD_SIZE_MIN as i64..=ANTP_PAYLOAD_SIZE_MAX as i64;
        let lifetime_max = Duration::from_secs(u64::from(LIFETIME_SECONDS_MAX));
        let lifetime =
            self.duration("antp.lifetime", &raw.lifetime, Duration::from_secs(60)..=lifetime_max)?;
        let rotate_text = &raw.state_keys.rotate;
        let rotate =
            self.duration("antp.state-keys.rotate", rotate_text, Duration::from_secs(1)..=31 * day)?;
        if retired_count(lifetime.as_secs(), rotate.as_secs()) > RETIRED_COUNT_MAX {
            let least = Duration::from_secs(lifetime.as_secs().div_ceil(RETIRED_COUNT_MAX as u64));
            let remedy =
                format!("write {} or more, or a shorter antp.lifetime", humantime::format_duration(least));
            let problem = "too many keys would have to be kept for antp.lifetime";
            return Err(self.wrong("antp.state-keys.rotate", rotate_text, problem, &remedy));
        }
        let prefixes = PrefixSizes {
            v4: self.number("server.rate-limit.per-prefix-v4", shared.per_prefix_v4, 1..=32)? as u8,
            v6: self.number("server.rate-limit.per-prefix-v6", shared.per_prefix_v6, 1..=128)? as u8,
        };
        let queue = self.number("antp.queue", raw.queue, 1..=65_536)?;
        let rate = |name: &str, per_second| self.rate(shared, &format!("antp.rate-limit.{name}"), per_second);
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
                payload_size_max: self.number("antp.payload-size", raw.payload_size, payload)?,
                lifetime_seconds: lifetime.as_secs() as u32,
                source_prefix: raw.check_source.then_some(prefixes),
            },
            rotate,
            workers: self.number("antp.workers", raw.workers, 1..=ANTP_WORKER_COUNT_MAX as i64)?,
            queue,
            negotiation_rate: rate("negotiations-per-second", raw.rate_limit.negotiations_per_second)?,
            exchange_rate: rate("exchanges-per-second", raw.rate_limit.exchanges_per_second)?,
            // As many at once as wait for a thread.
            all_exchange_rate: rate("all-exchanges-per-second", raw.rate_limit.all_exchanges_per_second)?
                .map(|rate| Rate { burst: queue as u32, ..rate }),
            time_rate: rate("times-per-second", raw.rate_limit.times_per_second)?,
            suites: suites.collect::<Result<_, _>>()?,
        };
        if raw.enable && antp.suites.is_empty() {
            let remedy = "add a table [antp.ecdh] with certificate-chain and private-key";
            return Err(self.wrong("antp.enable", true, "there is no suite to serve", remedy));
        }
        Ok(raw.enable.then_some(antp))
    }

    fn metrics(&self, raw: &raw::Metrics) -> Result<Metrics, ConfigError> {
        Ok(Metrics {
            listen: self.address("metrics.listen", &raw.listen)?,
            span_clients: self.prefixes("metrics.span-clients", &raw.span_clients)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(Path::new("test.toml"), text)
    }

    fn message(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn empty_file_means_the_defaults() {
        let config = parse("").unwrap();
        assert_eq!(config.listen.len(), 2);
        assert_eq!(config.reference, Reference::Kernel);
        assert_eq!(config.state_directory, Path::new("/var/lib/authentick"));
        assert!(
            config.nts.is_none()
                && config.symmetric.is_none()
                && config.metrics.is_none()
                && config.rate.is_none()
        );
    }

    #[test]
    fn every_key_of_the_manual_is_understood() {
        let config = parse(include_str!("../../../docs/manual/authentick.toml")).unwrap();
        let nts = config.nts.unwrap();
        assert_eq!(nts.rotate, Duration::from_secs(86_400));
        assert_eq!((nts.keep, nts.ke_limits, nts.ke_rates), (7, Limits::default(), Rates::default()));
        let symmetric = config.symmetric.unwrap();
        assert_eq!((symmetric.format, symmetric.allowed), (Format::Auto, Allowed::default()));
        assert_eq!(config.reference, Reference::Asserted { stratum: 1, id: ReferenceId(*b"GPS\0") });
    }

    #[test]
    fn mistakes_name_file_key_value_and_remedy() {
        let nts = "[nts]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\n";
        for (text, parts) in [
            (
                "[server]\nlisten = [\"0.0.0.0\"]",
                &["test.toml", "server.listen", "\"0.0.0.0\"", "ADDRESS:PORT"][..],
            ),
            ("[server]\nlisten = []", &["server.listen", "nothing to listen on"]),
            ("[server]\nlisten = [\"[::]:123\", \"[::]:123\"]", &["listed twice"]),
            ("[server]\nlistne = []", &["line 2", "unknown field", "listne"]),
            ("[server]\nworkers = -1", &["line 2", "invalid value", "-1"]),
            ("[server]\nbatch-size = 0", &["server.batch-size", "\"0\"", "1 to 64"]),
            ("[server]\nbatch-size = 65", &["server.batch-size", "\"65\"", "1 to 64"]),
            ("[server]\nengine = \"xdp\"", &["server.engine", "\"xdp\"", "\"udp\""]),
            ("[server]\nrefusal = \"loud\"", &["server.refusal", "\"kiss\""]),
            ("[server]\ncontainment = \"on\"", &["server.containment", "\"auto\" or \"off\""]),
            ("[server]\nreference = \"gps\"", &["server.reference", "kernel"]),
            ("[server]\nreference = { stratum = 16, id = \"GPS\" }", &["stratum", "\"16\"", "1 to 15"]),
            ("[server]\nreference = { stratum = 1, id = \"TOOLONG\" }", &["id", "TOOLONG", "four"]),
            ("[server]\nreference = { upstream = \"localhost\" }", &["upstream", "localhost"]),
            ("[server]\nstate-directory = \"here\"", &["state-directory", "here", "slash"]),
            ("[server]\nallow = [\"10.0.0.1/8\"]", &["server.allow", "10.0.0.1/8", "write 10.0.0.0/8"]),
            ("[server]\nrate-limit = { requests-per-second = -1 }", &["requests-per-second", "-1"]),
            ("[server]\nrate-limit = { per-prefix-v4 = 33 }", &["per-prefix-v4", "33", "1 to 32"]),
            ("[nts]\nprivate-key = \"/k\"", &["certificate-chain"]),
            (&format!("{nts}cookie-keys = {{ rotate = \"daily\" }}"), &["rotate", "daily", "\"1d\""]),
            (&format!("{nts}cookie-keys = {{ keep = 0 }}"), &["keep", "1 to 64"]),
            (&format!("{nts}cookie-keys = {{ store = \"tape\" }}"), &["store", "tape", "\"file\""]),
            (&format!("{nts}aeads = [15, 31]"), &["nts.aeads", "\"31\"", "15, 16, 17 and 30"]),
            (&format!("{nts}aeads = []"), &["nts.aeads", "no algorithm"]),
            (&format!("{nts}advertise = {{ port = 0 }}"), &["advertise.port", "1 to 65535"]),
            (&format!("{nts}advertise = {{ server = \"a b\" }}"), &["advertise.server", "a b"]),
            (&format!("{nts}ke-limits = {{ timeout = \"1h\" }}"), &["timeout", "1h", "5m"]),
            (
                &format!("{nts}ke-limits = {{ per-prefix-rate = -1 }}"),
                &["test.toml", "nts.ke-limits.per-prefix-rate", "\"-1\"", "write 0 for no limit"],
            ),
            (
                &format!("{nts}ke-limits = {{ per-network-burst = 0 }}"),
                &["nts.ke-limits.per-network-burst", "\"0\"", "1 to 1000000"],
            ),
            (
                &format!("{nts}ke-limits = {{ per-network = 64 }}"),
                &["line 4", "unknown field", "per-network"],
            ),
            ("[symmetric]\nformat = \"auto\"", &["missing field", "keys"]),
            ("[symmetric]\nkeys = \"keys\"", &["symmetric.keys", "\"keys\"", "slash"]),
            ("[symmetric]\nkeys = \"/k\"\nformat = \"ntpd\"", &["symmetric.format", "ntpd", "\"ntp\""]),
            ("[symmetric]\nkeys = \"/k\"\nallow-md5 = true", &["line 3", "unknown field", "allow-md5"]),
            ("[antp]\nenable = true", &["antp.enable", "no suite", "[antp.ecdh]"]),
            ("[antp]\nenabled = true", &["line 2", "unknown field", "enabled"]),
            ("[antp]\npayload-size = 1500", &["antp.payload-size", "\"1500\"", "176 to 1232"]),
            ("[antp]\nlifetime = \"32d\"", &["antp.lifetime", "32d", "out of range"]),
            (
                "[antp]\nstate-keys = { rotate = \"1h\" }",
                &["antp.state-keys.rotate", "1h", "2h 37m 30s or more"],
            ),
            ("[antp]\nworkers = 0", &["antp.workers", "\"0\"", "1 to 64"]),
            ("[antp]\nqueue = 0", &["antp.queue", "\"0\"", "1 to 65536"]),
            (
                "[antp]\nrate-limit = { exchanges-per-second = -1 }",
                &["antp.rate-limit.exchanges-per-second", "-1"],
            ),
            ("[antp.ecdh]\nprivate-key = \"/k\"", &["missing field", "certificate-chain"]),
            (
                "[antp.rsa]\ncertificate-chain = \"c\"\nprivate-key = \"/k\"",
                &["antp.rsa.certificate-chain", "slash"],
            ),
            ("[metrics]\nlisten = \"9975\"", &["metrics.listen", "9975"]),
            ("[server\n", &["line 1"]),
        ] {
            let message = message(text);
            for part in parts {
                assert!(message.contains(part), "{part:?} is not in {message:?}");
            }
        }
    }

    #[test]
    fn antp_is_off_until_it_is_switched_on() {
        let suite = "[antp.ecdh]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\n";
        assert!(parse(suite).unwrap().antp.is_none());
        let antp = parse(&format!("[antp]\nenable = true\n{suite}")).unwrap().antp.unwrap();
        assert_eq!((antp.settings, antp.keep(), antp.workers), (Settings::default(), 7, 1));
        assert_eq!((antp.suites.len(), antp.suites[0].suite), (1, Suite::P256));
        let rates = [antp.negotiation_rate, antp.exchange_rate, antp.time_rate, antp.all_exchange_rate];
        let rates = rates.map(|rate| rate.map(|rate| (rate.interval_us, rate.burst)));
        assert_eq!(rates, [(10_000, 16), (50_000, 16), (1000, 16), (1000, 256)].map(Some));
        let text = format!(
            "[antp]\nenable = true\nlifetime = \"90m\"\nstate-keys = {{ rotate = \"1h\" }}\n\
             rate-limit = {{ exchanges-per-second = 4 }}\n{suite}"
        );
        let antp = parse(&text).unwrap().antp.unwrap();
        assert_eq!((antp.keep(), antp.exchange_rate.unwrap().interval_us), (2, 250_000));
        let text =
            "[server]\nrate-limit = { per-prefix-v4 = 24 }\n[antp]\nenable = true\n".to_owned() + suite;
        let prefix = |text: &str| parse(text).unwrap().antp.unwrap().settings.source_prefix;
        assert_eq!(prefix(&text), Some(PrefixSizes { v4: 24, v6: 64 }));
        assert_eq!(prefix(&text.replace("true", "true\ncheck-source = false")), None);
        let none = "times-per-second = 0, all-exchanges-per-second = 0";
        let text = text.replace("true", &format!("true\nrate-limit = {{ {none} }}"));
        let antp = parse(&text).unwrap().antp.unwrap();
        assert!(antp.time_rate.is_none() && antp.all_exchange_rate.is_none());
        assert!(antp.negotiation_rate.is_some(), "the others keep their defaults");
    }

    #[test]
    fn key_exchange_is_limited_unless_the_limit_is_switched_off() {
        let nts = "[nts]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\n";
        assert_eq!(parse(nts).unwrap().nts.unwrap().ke_rates, Rates::default());
        let text = format!("{nts}ke-limits = {{ per-prefix-rate = 0, per-network-rate = 0.5 }}");
        let rates = parse(&text).unwrap().nts.unwrap().ke_rates;
        assert_eq!(rates.per_prefix, None);
        assert_eq!(rates.per_network, Some(Rates::of_network(2_000_000, 4_000)));
    }

    #[test]
    fn rate_of_less_than_one_a_second_is_kept() {
        let config = parse("[server]\nrate-limit = { requests-per-second = 0.25, burst = 8 }").unwrap();
        let rate = config.rate.unwrap();
        assert_eq!((rate.interval_us, rate.burst), (4_000_000, 8));
    }
}
