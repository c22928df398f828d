//! The file as it is written, with its defaults. Values that mean something are resolved by [`super::Config`].

use authentick_ke::server::{Limits, Rates};
use authentick_proto::server::limit::Rate;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) server: Server,
    pub(super) nts: Option<Nts>,
    pub(super) symmetric: Option<Symmetric>,
    pub(super) antp: Option<Antp>,
    pub(super) metrics: Option<Metrics>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Server {
    pub(super) listen: Vec<String>,
    pub(super) workers: usize,
    pub(super) batch_size: usize,
    pub(super) engine: String,
    pub(super) reference: Reference,
    pub(super) state_directory: String,
    pub(super) user: String,
    pub(super) containment: String,
    pub(super) allow: Vec<String>,
    pub(super) refusal: String,
    pub(super) interleaved: bool,
    pub(super) rate_limit: RateLimit,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Reference {
    Name(String),
    Asserted(Asserted),
    Upstream(Upstream),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asserted {
    pub(super) stratum: i64,
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Upstream {
    pub(super) upstream: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct RateLimit {
    pub(super) per_prefix_v4: i64,
    pub(super) per_prefix_v6: i64,
    pub(super) requests_per_second: f64,
    pub(super) burst: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Nts {
    #[serde(default = "ke_listen")]
    pub(super) ke_listen: Vec<String>,
    pub(super) certificate_chain: String,
    pub(super) private_key: String,
    #[serde(default)]
    pub(super) ke_workers: usize,
    #[serde(default)]
    pub(super) ke_limits: KeLimits,
    #[serde(default)]
    pub(super) advertise: Advertise,
    #[serde(default = "aeads")]
    pub(super) aeads: Vec<i64>,
    #[serde(default)]
    pub(super) cookie_keys: CookieKeys,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct KeLimits {
    pub(super) connections: i64,
    pub(super) per_prefix: i64,
    pub(super) timeout: String,
    pub(super) per_prefix_rate: f64,
    pub(super) per_prefix_burst: i64,
    pub(super) per_network_rate: f64,
    pub(super) per_network_burst: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Advertise {
    pub(super) server: Option<String>,
    pub(super) port: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct CookieKeys {
    pub(super) store: String,
    pub(super) rotate: String,
    pub(super) keep: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Symmetric {
    pub(super) keys: String,
    #[serde(default = "auto")]
    pub(super) format: String,
    #[serde(default)]
    pub(super) allow_legacy: bool,
    #[serde(default)]
    pub(super) allow_experimental: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Antp {
    pub(super) enable: bool,
    pub(super) payload_size: i64,
    pub(super) lifetime: String,
    pub(super) state_keys: StateKeys,
    pub(super) workers: i64,
    pub(super) queue: i64,
    pub(super) check_source: bool,
    pub(super) rate_limit: AntpRateLimit,
    pub(super) ecdh: Option<AntpSuite>,
    pub(super) rsa: Option<AntpSuite>,
    pub(super) rsa_oaep: Option<AntpSuite>,
    pub(super) x25519: Option<AntpSuite>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct AntpSuite {
    pub(super) certificate_chain: String,
    pub(super) private_key: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct StateKeys {
    pub(super) rotate: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct AntpRateLimit {
    pub(super) negotiations_per_second: f64,
    pub(super) exchanges_per_second: f64,
    pub(super) times_per_second: f64,
    pub(super) all_exchanges_per_second: f64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Metrics {
    pub(super) listen: String,
    #[serde(default)]
    pub(super) span_clients: Vec<String>,
}

fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}

fn ke_listen() -> Vec<String> {
    strings(&["0.0.0.0:4460", "[::]:4460"])
}

fn auto() -> String {
    "auto".to_owned()
}

fn aeads() -> Vec<i64> {
    vec![15, 16, 17, 30]
}

impl Default for Server {
    fn default() -> Self {
        Server {
            listen: strings(&["0.0.0.0:123", "[::]:123"]),
            workers: 0,
            batch_size: authentick_net::engine::BATCH_SIZE,
            engine: "auto".to_owned(),
            reference: Reference::Name("kernel".to_owned()),
            state_directory: "/var/lib/authentick".to_owned(),
            user: "authentick".to_owned(),
            containment: "auto".to_owned(),
            allow: strings(&["0.0.0.0/0", "::/0"]),
            refusal: "silence".to_owned(),
            interleaved: true,
            rate_limit: RateLimit::default(),
        }
    }
}

impl Default for RateLimit {
    fn default() -> Self {
        RateLimit { per_prefix_v4: 32, per_prefix_v6: 64, requests_per_second: 0.0, burst: 16 }
    }
}

impl Default for KeLimits {
    fn default() -> Self {
        let (limits, rates) = (Limits::default(), Rates::default());
        let per_second = |rate: Option<Rate>| rate.map_or(0.0, |rate| 1e6 / rate.interval_us as f64);
        let burst = |rate: Option<Rate>| rate.map_or(1, |rate| i64::from(rate.burst));
        KeLimits {
            connections: limits.connection_count as i64,
            per_prefix: limits.per_prefix_count as i64,
            timeout: format!("{}s", limits.timeout.as_secs()),
            per_prefix_rate: per_second(rates.per_prefix),
            per_prefix_burst: burst(rates.per_prefix),
            per_network_rate: per_second(rates.per_network),
            per_network_burst: burst(rates.per_network),
        }
    }
}

impl Default for Antp {
    fn default() -> Self {
        Antp {
            enable: false,
            payload_size: 1072,
            lifetime: "7d".to_owned(),
            state_keys: StateKeys::default(),
            workers: 1,
            queue: 256,
            check_source: true,
            rate_limit: AntpRateLimit::default(),
            ecdh: None,
            rsa: None,
            rsa_oaep: None,
            x25519: None,
        }
    }
}

impl Default for AntpRateLimit {
    fn default() -> Self {
        // 5,000 clients behind one address that come back at once have keys after five minutes: two m1 and one m3 each.
        // 20 m3 with RSA, the most expensive, take less than a hundredth of a core. m5: 64,000 clients that ask once
        // a minute.
        AntpRateLimit {
            negotiations_per_second: 100.0,
            exchanges_per_second: 20.0,
            times_per_second: 1000.0,
            // A third of a core with RSA. Clients that replace a key after five days and a half: 480 million.
            all_exchanges_per_second: 1000.0,
        }
    }
}

impl Default for StateKeys {
    fn default() -> Self {
        StateKeys { rotate: "1d".to_owned() }
    }
}

impl Default for CookieKeys {
    fn default() -> Self {
        CookieKeys { store: "file".to_owned(), rotate: "1d".to_owned(), keep: 7 }
    }
}
