//! What the file means, and that every mistake is named.

use std::time::Duration;

use authentick_ke::server::{Limits, Rates};
use authentick_proto::antp::server::Settings;
use authentick_proto::antp::source::PrefixSizes;
use authentick_proto::symmetric::Allowed;
use authentick_wire::antp::Suite;
use authentick_wire::header::ReferenceId;

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
    let config = parse(include_str!("../../../../docs/manual/authentick.toml")).unwrap();
    let nts = config.nts.unwrap();
    assert_eq!(nts.rotate, Duration::from_secs(86_400));
    assert_eq!((nts.keep, nts.ke_limits, nts.ke_rates), (7, Limits::default(), Rates::default()));
    let symmetric = config.symmetric.unwrap();
    assert_eq!((symmetric.format, symmetric.allowed), (None, Allowed::default()));
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
        (&format!("{nts}cookie-keys = {{ store = \"tape\" }}"), &["store", "tape", "\"file\" or \"follow\""]),
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
        (&format!("{nts}ke-limits = {{ per-network = 64 }}"), &["line 4", "unknown field", "per-network"]),
        ("[symmetric]\nformat = \"auto\"", &["missing field", "keys"]),
        ("[symmetric]\nkeys = \"keys\"", &["symmetric.keys", "\"keys\"", "slash"]),
        ("[symmetric]\nkeys = \"/k\"\nformat = \"ntpd\"", &["symmetric.format", "ntpd", "\"ntp\""]),
        ("[symmetric]\nkeys = \"/k\"\nallow-md5 = true", &["line 3", "unknown field", "allow-md5"]),
        ("[antp]\nenable = true", &["antp.enable", "no suite", "[antp.ecdh]"]),
        ("[antp]\nenabled = true", &["line 2", "unknown field", "enabled"]),
        ("[antp]\npayload-size = 1500", &["antp.payload-size", "\"1500\"", "176 to 1232"]),
        ("[antp]\nlifetime = \"32d\"", &["antp.lifetime", "32d", "out of range"]),
        ("[antp]\nstate-keys = { rotate = \"1h\" }", &["antp.state-keys.rotate", "1h", "2h 37m 30s or more"]),
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
        assert_names(text, parts);
    }
}

/// What is said of a configuration names all of these.
#[track_caller]
fn assert_names(text: &str, parts: &[&str]) {
    let message = message(text);
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

#[test]
fn followed_keys_have_a_file_and_rotate_elsewhere() {
    let nts = "[nts]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\n";
    for (text, parts) in [
        (
            &format!("{nts}cookie-keys = {{ store = \"follow\" }}"),
            &["cookie-keys.file", "missing", "file = "][..],
        ),
        (
            &format!("{nts}cookie-keys = {{ store = \"follow\", file = \"keys\" }}"),
            &["cookie-keys.file", "\"keys\"", "slash"],
        ),
        (&format!("{nts}cookie-keys = {{ file = \"/keys\" }}"), &["cookie-keys.file", "store = \"follow\""]),
        (
            &format!("{nts}cookie-keys = {{ store = \"follow\", file = \"/keys\", rotate = \"1d\" }}"),
            &["cookie-keys.rotate", "\"1d\"", "where they are made"],
        ),
        (
            &format!("{nts}cookie-keys = {{ store = \"follow\", file = \"/keys\", keep = 7 }}"),
            &["cookie-keys.keep", "\"7\"", "where they are made"],
        ),
    ] {
        assert_names(text, parts);
    }
    let config = parse(&format!("{nts}cookie-keys = {{ store = \"follow\", file = \"/keys\" }}")).unwrap();
    assert_eq!(config.followed_keys(), Some(Path::new("/keys")));
    let files = config.files();
    assert!(
        files.iter().any(|(key, path)| key == "nts.cookie-keys.file" && *path == Path::new("/keys")),
        "read again"
    );
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
    let text = "[server]\nrate-limit = { per-prefix-v4 = 24 }\n[antp]\nenable = true\n".to_owned() + suite;
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
