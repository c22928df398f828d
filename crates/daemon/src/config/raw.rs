//! The file as it is written. What a value means, and what holds where there is none, is resolved by
//! [`super::Config`].

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

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Server {
    pub(super) listen: Option<Vec<String>>,
    pub(super) workers: usize,
    pub(super) batch_size: Option<usize>,
    pub(super) engine: Option<String>,
    pub(super) reference: Option<Reference>,
    pub(super) state_directory: Option<String>,
    pub(super) user: Option<String>,
    pub(super) containment: Option<String>,
    pub(super) allow: Option<Vec<String>>,
    pub(super) refusal: Option<String>,
    pub(super) interleaved: Option<bool>,
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

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct RateLimit {
    pub(super) per_prefix_v4: Option<i64>,
    pub(super) per_prefix_v6: Option<i64>,
    pub(super) requests_per_second: f64,
    pub(super) burst: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Nts {
    pub(super) ke_listen: Option<Vec<String>>,
    pub(super) certificate_chain: String,
    pub(super) private_key: String,
    #[serde(default)]
    pub(super) ke_workers: usize,
    #[serde(default)]
    pub(super) ke_limits: KeLimits,
    #[serde(default)]
    pub(super) advertise: Advertise,
    pub(super) aeads: Option<Vec<i64>>,
    #[serde(default)]
    pub(super) cookie_keys: CookieKeys,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct KeLimits {
    pub(super) connections: Option<i64>,
    pub(super) per_prefix: Option<i64>,
    pub(super) timeout: Option<String>,
    pub(super) per_prefix_rate: Option<f64>,
    pub(super) per_prefix_burst: Option<i64>,
    pub(super) per_network_rate: Option<f64>,
    pub(super) per_network_burst: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Advertise {
    pub(super) server: Option<String>,
    pub(super) port: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct CookieKeys {
    pub(super) store: Option<String>,
    pub(super) file: Option<String>,
    pub(super) rotate: Option<String>,
    pub(super) keep: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Symmetric {
    pub(super) keys: String,
    pub(super) format: Option<String>,
    #[serde(default)]
    pub(super) allow_legacy: bool,
    #[serde(default)]
    pub(super) allow_experimental: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Antp {
    pub(super) enable: bool,
    pub(super) payload_size: Option<i64>,
    pub(super) lifetime: Option<String>,
    pub(super) state_keys: StateKeys,
    pub(super) workers: Option<i64>,
    pub(super) queue: Option<i64>,
    pub(super) check_source: Option<bool>,
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

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct StateKeys {
    pub(super) rotate: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct AntpRateLimit {
    pub(super) negotiations_per_second: Option<f64>,
    pub(super) exchanges_per_second: Option<f64>,
    pub(super) times_per_second: Option<f64>,
    pub(super) all_exchanges_per_second: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Metrics {
    pub(super) listen: String,
    #[serde(default)]
    pub(super) span_clients: Vec<String>,
}
