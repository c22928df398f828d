//! `docs/manual/authentick.toml` has every key, and only defaults are active in it.

use std::path::Path;

use super::Config;
use super::fuzzing::whole_manual;

const MANUAL: &str = include_str!("../../../../docs/manual/authentick.toml");

/// What the manual's file shows as an example, since there is no default: paths, and what is switched on by naming it.
const NEEDED: &str = r#"
[nts]
certificate-chain = "/etc/authentick/chain.pem"
private-key = "/etc/authentick/key.pem"
[symmetric]
keys = "/etc/authentick/keys"
[antp.ecdh]
certificate-chain = "/etc/authentick/antp-chain.pem"
private-key = "/etc/authentick/antp-key.pem"
[metrics]
listen = "127.0.0.1:9975"
[health]
listen = "127.0.0.1:9976"
"#;

#[test]
fn file_of_the_manual_changes_nothing() {
    let parse = |text: &str| format!("{:#?}", Config::parse(Path::new("test.toml"), text).unwrap());
    assert_eq!(parse(MANUAL), parse(""));
}

#[test]
fn packaged_file_serves_this_host_alone_and_has_defaults() {
    let packaged = include_str!("../../../../packaging/authentick.toml");
    let parse = |text: &str| Config::parse(Path::new("test.toml"), text).unwrap();
    let (packaged, default) = (parse(packaged), parse(""));
    for (address, is_allowed) in [("127.0.0.1", true), ("::1", true), ("192.0.2.1", false)] {
        assert_eq!(packaged.allow.contains(address.parse().unwrap()), is_allowed, "{address}");
    }
    let opened = Config { allow: default.allow.clone(), allowed: default.allowed.clone(), ..packaged };
    assert_eq!(format!("{opened:#?}"), format!("{default:#?}"));
}

/// Examples beside the defaults: each line with a value can take the place of the one above it.
#[test]
fn every_other_value_of_the_manual_is_understood() {
    let mut count = 0;
    for line in MANUAL.lines().filter_map(|line| line.strip_prefix("# ")) {
        if line.split_once(" = ").is_some_and(|(key, _)| key.starts_with("reference")) {
            let parsed = Config::parse(Path::new("test.toml"), &format!("[server]\n{line}"));
            parsed.unwrap_or_else(|error| panic!("{error}"));
            count += 1;
        }
    }
    assert_eq!(count, 3);
}

#[test]
fn values_of_the_manual_are_the_defaults() {
    // ANTP is resolved only where it is enabled.
    let on = |text: &str| text.replace("[antp]\nenable = false", "[antp]\nenable = true");
    let needed = NEEDED.replace("[antp.ecdh]", "[antp]\nenable = true\n[antp.ecdh]");
    let parse = |text: &str| format!("{:#?}", Config::parse(Path::new("test.toml"), text).unwrap());
    assert_eq!(parse(&on(&whole_manual())), parse(&needed));
    assert!(parse(&needed).contains("queue: 256"));
}

#[test]
fn fleet_of_the_manual_is_understood_and_shows_the_defaults() {
    let uncommented = |from: &str| {
        let lines = MANUAL[MANUAL.find(from).unwrap()..].lines().map_while(|line| line.strip_prefix("# "));
        lines.fold(String::new(), |text, line| text + line + "\n")
    };
    let store = uncommented("# cookie-keys = { store = \"memcached\"");
    let nts = NEEDED.replace("[symmetric]", &format!("{store}[symmetric]"));
    let fleet = uncommented("# [fleet]");
    let parse = |text: &str| Config::parse(Path::new("test.toml"), text).unwrap();
    let shown = parse(&format!("{nts}{fleet}"));
    let is_needed = |line: &&str| !["writer", "start", "patience"].iter().any(|key| line.starts_with(key));
    let needed: String = fleet.lines().filter(is_needed).map(|line| format!("{line}\n")).collect();
    let mut default = parse(&format!("{nts}{needed}"));
    // Without it, there is no end to patience.
    default.fleet.as_mut().unwrap().patience = shown.fleet.as_ref().unwrap().patience;
    assert_eq!(format!("{shown:#?}"), format!("{default:#?}"));
    assert!(shown.fleet.unwrap().patience.is_some());
}

#[test]
fn every_key_is_in_the_manual() {
    let fields = include_str!("raw.rs").lines().filter_map(|line| line.trim().strip_prefix("pub(super) "));
    let keys: Vec<String> =
        fields.filter_map(|field| Some(field.split_once(':')?.0.replace('_', "-"))).collect();
    let words: Vec<&str> = MANUAL
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|word| !word.is_empty())
        .collect();
    for key in &keys {
        assert!(words.contains(&key.as_str()), "{key} is not in docs/manual/authentick.toml");
    }
    assert!(keys.len() > 40, "{keys:?}");
}
