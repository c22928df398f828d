//! The keys of each table.

use super::Form::{
    Flag, Integer, Integers, Number, Table, TableOrTables, Tables, Text, TextOrFlag, TextOrTable, Texts,
};
use super::{Form, Key, Keys};

const fn key(name: &'static str, form: Form, example: &'static str) -> Key {
    Key { name, form, example, is_needed: false }
}

const fn needed(name: &'static str, form: Form, example: &'static str) -> Key {
    Key { name, form, example, is_needed: true }
}

const fn table(name: &'static str, keys: Keys) -> Key {
    key(name, Table(keys), "")
}

/// The tables of a configuration.
pub(in crate::config) const TOP: Keys = &[
    table("server", SERVER),
    table("nts", NTS),
    table("symmetric", SYMMETRIC),
    table("antp", ANTP),
    table("fleet", FLEET),
    table("metrics", METRICS),
    table("health", HEALTH),
];

const SERVER: Keys = &[
    key("listen", Texts, r#"["0.0.0.0:123", "[::]:123"]"#),
    key("bind-patience", Text, r#""30s""#),
    key("workers", Integer, "0"),
    key("batch-size", Integer, "64"),
    key("engine", Text, r#""auto""#),
    key("reference", TextOrTable(REFERENCE), r#""kernel""#),
    key("leap-seconds", Text, r#""/usr/share/zoneinfo/leap-seconds.list""#),
    key("state-directory", Text, r#""/var/lib/authentick""#),
    key("user", Text, r#""authentick""#),
    key("containment", Text, r#""auto""#),
    key("allow", Texts, r#"["192.0.2.0/24", "2001:db8::/32"]"#),
    key("deny", Texts, r#"["192.0.2.7"]"#),
    key("refusal", Text, r#""silence""#),
    key("interleaved", Flag, "true"),
    table("rate-limit", RATE_LIMIT),
];

const REFERENCE: Keys = &[
    key("stratum", Integer, "1"),
    key("id", Text, r#""GPS""#),
    key("kernel", Flag, "true"),
    key("upstream", Text, r#""127.0.0.1:11123""#),
];

const RATE_LIMIT: Keys = &[
    key("per-prefix-v4", Integer, "32"),
    key("per-prefix-v6", Integer, "64"),
    key("requests-per-second", Number, "10"),
    key("burst", Integer, "16"),
];

const NTS: Keys = &[
    key("ke-listen", Texts, r#"["0.0.0.0:4460", "[::]:4460"]"#),
    key("certificate-chain", Text, r#""/etc/authentick/chain.pem""#),
    key("private-key", Text, r#""/etc/authentick/key.pem""#),
    key("certificate", Tables(CERTIFICATE), ""),
    key("hand-over", Text, r#""/run/authentick""#),
    key("ke-workers", Integer, "0"),
    key("ke-priority", Text, r#""fair""#),
    table("ke-limits", KE_LIMITS),
    key("advertise", TableOrTables(ADVERTISE), r#"{ server = "time.example.net" }"#),
    key("aeads", Integers, "[15, 16, 17, 30]"),
    table("cookie-keys", COOKIE_KEYS),
];

const CERTIFICATE: Keys = &[
    needed("certificate-chain", Text, r#""/etc/authentick/chain.pem""#),
    needed("private-key", Text, r#""/etc/authentick/key.pem""#),
    key("names", Texts, r#"["time.example.net"]"#),
];

const KE_LIMITS: Keys = &[
    key("connections", Integer, "4096"),
    key("per-prefix", Integer, "64"),
    key("timeout", Text, r#""5s""#),
    key("per-prefix-rate", Number, "20"),
    key("per-prefix-burst", Integer, "2000"),
    key("per-network-rate", Number, "40"),
    key("per-network-burst", Integer, "4000"),
];

const ADVERTISE: Keys = &[
    key("server", Text, r#""time.example.net""#),
    key("port", Integer, "123"),
    key("weight", Integer, "1"),
    key("member", Text, r#""ntp-1""#),
];

const COOKIE_KEYS: Keys = &[
    key("store", Text, r#""file""#),
    key("file", Text, r#""/run/keys/cookie-keys""#),
    key("rotate", Text, r#""1d""#),
    key("keep", Integer, "7"),
    key("next", Text, r#""random""#),
    key("server", Text, r#""192.0.2.9:11211""#),
    key("master-key", Text, r#""/etc/authentick/cookie.key""#),
];

const STATE_KEYS: Keys = &[
    key("store", Text, r#""file""#),
    key("file", Text, r#""/run/keys/state-keys""#),
    key("rotate", Text, r#""1d""#),
    key("next", Text, r#""random""#),
    // Known so that they can be refused with their reason.
    key("server", Text, r#""192.0.2.9:11211""#),
    key("master-key", Text, r#""/etc/authentick/cookie.key""#),
];

const SYMMETRIC: Keys = &[
    needed("keys", Text, r#""/etc/authentick/keys""#),
    key("format", Text, r#""auto""#),
    key("allow-legacy", Flag, "false"),
    key("allow-experimental", Flag, "false"),
];

const ANTP: Keys = &[
    key("enable", Flag, "false"),
    key("payload-size", Integer, "1072"),
    key("lifetime", Text, r#""7d""#),
    table("state-keys", STATE_KEYS),
    key("workers", Integer, "1"),
    key("queue", Integer, "256"),
    key("check-source", Flag, "true"),
    table("rate-limit", ANTP_RATE_LIMIT),
    table("ecdh", SUITE),
    table("rsa", SUITE),
    table("rsa-oaep", SUITE),
    table("x25519", SUITE),
];

const ANTP_RATE_LIMIT: Keys = &[
    key("negotiations-per-second", Number, "100"),
    key("exchanges-per-second", Number, "20"),
    key("network-exchanges-per-second", Number, "40"),
    key("times-per-second", Number, "1000"),
    key("all-exchanges-per-second", Number, "1000"),
];

const SUITE: Keys = &[
    needed("certificate-chain", Text, r#""/etc/authentick/antp-chain.pem""#),
    needed("private-key", Text, r#""/etc/authentick/antp-key.pem""#),
];

const FLEET: Keys = &[
    needed("id", Text, r#""time.example.net""#),
    needed("node", Text, r#""ntp-1""#),
    needed("members", Texts, r#"["ntp-1", "ntp-2"]"#),
    key("servers", Texts, r#"["192.0.2.9:11211"]"#),
    needed("seal-key", Text, r#""/etc/authentick/seal""#),
    key("writer", TextOrFlag, r#""ntp-1""#),
    key("patience", Text, r#""36h""#),
    key("start", Text, r#""welcomed""#),
];

const METRICS: Keys = &[
    needed("listen", Text, r#""127.0.0.1:9975""#),
    key("span-clients", Texts, r#"["192.0.2.0/24"]"#),
    key("span-every", Integer, "1"),
];

const HEALTH: Keys = &[needed("listen", Text, r#""127.0.0.1:9976""#)];
