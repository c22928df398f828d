//! The file as it is written. What a value means, and what holds where there is none, is resolved by
//! [`super::Config`].

use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) server: Server,
    pub(super) nts: Option<Nts>,
    pub(super) symmetric: Option<Symmetric>,
    pub(super) antp: Option<Antp>,
    pub(super) fleet: Option<Fleet>,
    pub(super) metrics: Option<Metrics>,
    pub(super) health: Option<Health>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Server {
    pub(super) listen: Option<Vec<String>>,
    pub(super) bind_patience: Option<String>,
    pub(super) workers: Option<i64>,
    pub(super) batch_size: Option<i64>,
    pub(super) engine: Option<String>,
    pub(super) reference: Option<Reference>,
    pub(super) leap_seconds: Option<String>,
    pub(super) state_directory: Option<String>,
    pub(super) user: Option<String>,
    pub(super) containment: Option<String>,
    pub(super) allow: Option<Vec<String>>,
    pub(super) deny: Option<Vec<String>>,
    pub(super) refusal: Option<String>,
    pub(super) interleaved: Option<bool>,
    pub(super) rate_limit: RateLimit,
}

/// A name, or a table in which some keys exclude others.
#[derive(Debug)]
pub(super) enum Reference {
    Name(String),
    Table(ReferenceTable),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ReferenceTable {
    pub(super) stratum: Option<i64>,
    pub(super) id: Option<String>,
    pub(super) kernel: Option<bool>,
    pub(super) upstream: Option<String>,
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Reference;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a table")
            }

            fn visit_str<E>(self, name: &str) -> Result<Reference, E> {
                Ok(Reference::Name(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Reference, A::Error> {
                Ok(Reference::Table(ReferenceTable::deserialize(MapAccessDeserializer::new(map))?))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct RateLimit {
    pub(super) per_prefix_v4: Option<i64>,
    pub(super) per_prefix_v6: Option<i64>,
    pub(super) requests_per_second: Option<f64>,
    pub(super) burst: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Nts {
    pub(super) ke_listen: Option<Vec<String>>,
    pub(super) certificate_chain: Option<String>,
    pub(super) private_key: Option<String>,
    pub(super) certificate: Option<Vec<Certificate>>,
    pub(super) hand_over: Option<String>,
    pub(super) ke_workers: Option<i64>,
    pub(super) ke_priority: Option<String>,
    pub(super) ke_limits: Option<KeLimits>,
    pub(super) advertise: Option<Advertise>,
    pub(super) aeads: Option<Vec<i64>>,
    #[serde(default)]
    pub(super) cookie_keys: RotatingKeys,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Certificate {
    pub(super) certificate_chain: String,
    pub(super) private_key: String,
    pub(super) names: Option<Vec<String>>,
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

/// One table, or a list of them.
#[derive(Debug)]
pub(super) struct Advertise(pub(super) Vec<Advertised>);

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Advertised {
    pub(super) server: Option<String>,
    pub(super) port: Option<i64>,
    pub(super) weight: Option<i64>,
    pub(super) member: Option<String>,
}

impl<'de> Deserialize<'de> for Advertise {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tables;

        impl<'de> Visitor<'de> for Tables {
            type Value = Advertise;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table, or a list of tables")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Advertise, A::Error> {
                Ok(Advertise(vec![Advertised::deserialize(MapAccessDeserializer::new(map))?]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Advertise, A::Error> {
                Ok(Advertise(Vec::deserialize(SeqAccessDeserializer::new(seq))?))
            }
        }

        deserializer.deserialize_any(Tables)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct RotatingKeys {
    pub(super) store: Option<String>,
    pub(super) file: Option<String>,
    pub(super) rotate: Option<String>,
    pub(super) keep: Option<i64>,
    pub(super) next: Option<String>,
    pub(super) server: Option<String>,
    pub(super) master_key: Option<String>,
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

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct StateKeys {
    pub(super) store: Option<String>,
    pub(super) file: Option<String>,
    pub(super) rotate: Option<String>,
    pub(super) next: Option<String>,
    /// Known so that it can be refused with its reason, as the next one.
    pub(super) server: Option<String>,
    pub(super) master_key: Option<String>,
}

impl From<StateKeys> for RotatingKeys {
    fn from(StateKeys { store, file, rotate, next, server, master_key }: StateKeys) -> Self {
        // How many stay follows from what they seal.
        RotatingKeys { store, file, rotate, keep: None, next, server, master_key }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct AntpRateLimit {
    pub(super) negotiations_per_second: Option<f64>,
    pub(super) exchanges_per_second: Option<f64>,
    pub(super) times_per_second: Option<f64>,
    pub(super) network_exchanges_per_second: Option<f64>,
    pub(super) all_exchanges_per_second: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Fleet {
    pub(super) id: String,
    pub(super) node: String,
    pub(super) members: Vec<String>,
    #[serde(default)]
    pub(super) servers: Vec<String>,
    pub(super) seal_key: String,
    #[serde(default)]
    pub(super) writer: Writer,
    pub(super) patience: Option<String>,
    pub(super) start: Option<String>,
}

/// Who writes: this node or another, or the member of a name.
#[derive(Debug)]
pub(super) enum Writer {
    Here(bool),
    Named(String),
}

impl Default for Writer {
    fn default() -> Self {
        Writer::Here(false)
    }
}

impl<'de> Deserialize<'de> for Writer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl Visitor<'_> for Either {
            type Value = Writer;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or the name of a member")
            }

            fn visit_bool<E>(self, is_here: bool) -> Result<Writer, E> {
                Ok(Writer::Here(is_here))
            }

            fn visit_str<E>(self, name: &str) -> Result<Writer, E> {
                Ok(Writer::Named(name.to_owned()))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Metrics {
    pub(super) listen: String,
    #[serde(default)]
    pub(super) span_clients: Vec<String>,
    pub(super) span_every: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Health {
    pub(super) listen: String,
}
