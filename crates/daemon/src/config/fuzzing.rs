//! Any text as a configuration, and configurations made of the manual's keys with values that the input chooses.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use authentick_net::engine::BATCH_SIZE;
use authentick_net::udp::SOCKET_COUNT_MAX;
use authentick_proto::limits::KEY_COUNT_MAX;
use authentick_proto::server::limit::Rate;
use toml::{Table, Value};

use super::{
    ADVERTISED_COUNT_MAX, ANTP_WORKER_COUNT_MAX, Advertised, CERTIFICATE_COUNT_MAX, Config, ConfigError,
    Fleet, KeyExchange, MEMBER_COUNT_MAX, NextKey, RotatingKeys, SERVER_COUNT_MAX, StoreKind, is_handed_over,
    raw,
};

const FILE: &str = "fuzz.toml";

/// Every key of the manual with its value there, and some that it only tells of: what these need has their value.
static KEYS: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    let more = "[nts]\nadvertise = { server = \"time.example.net\", port = 4123, weight = 2 }\n\
        [antp.rsa]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\n";
    let fleet = "[nts]\ncookie-keys = { store = \"memcached\" }\nadvertise = { member = \"a\" }\n\
        [fleet]\nid = \"time.example.net\"\nnode = \"a\"\nmembers = [\"a\", \"b\"]\n\
        servers = [\"192.0.2.9:11211\"]\nseal-key = \"/s\"\nwriter = true\npatience = \"36h\"\nstart = \"stored\"\n";
    let next = "[nts]\ncookie-keys = { next = \"random\" }\n";
    let cfnts = "[nts]\ncookie-keys = { server = \"192.0.2.9:11211\", master-key = \"/m\" }\n";
    let certificates = "[nts]\nhand-over = \"/run/h\"\n\
        [[nts.certificate]]\ncertificate-chain = \"/a/c\"\nprivate-key = \"/a/k\"\n\
        names = [\"a.example\", \"*.a.example\"]\n\
        [[nts.certificate]]\ncertificate-chain = \"/b/c\"\nprivate-key = \"/b/k\"\n";
    let state = "[antp]\nstate-keys = { store = \"memcached\", next = \"random\" }\n";
    let files = "[server]\nreference = { stratum = 1, id = \"GPS\" }\nleap-seconds = \"/l\"\n\
        [nts]\ncookie-keys = { file = \"/f\" }\n\
        [antp]\nstate-keys = { file = \"/f\" }\n";
    let manual = whole_manual();
    let tables = [&manual, more, fleet, next, cfnts, state, certificates, files]
        .map(|text| toml::from_str::<Table>(text).expect("the manual's file is TOML"));
    let mut keys = Vec::new();
    tables.iter().for_each(|table| flatten("", table, &mut keys));
    keys
});

/// The manual's file with the tables that are off in it switched on.
pub(super) fn whole_manual() -> String {
    let manual = include_str!("../../../../docs/manual/authentick.toml");
    let is_off = |line: &str| line.starts_with('#') && !line.starts_with("# ");
    let lines = manual.lines().map(|line| if is_off(line) { &line[1..] } else { line });
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// What only CFNTS's layout has.
const OF_CFNTS: [&str; 2] = ["nts.cookie-keys.server", "nts.cookie-keys.master-key"];

/// Certificates in tables, and the pair that is in their place otherwise.
const CERTIFICATES: &str = "nts.certificate";
const PAIR: [&str; 2] = ["nts.certificate-chain", "nts.private-key"];

/// What may be written in place of a key's own value.
const VALUES: [&str; 32] = [
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "65535",
    "65536",
    "0.0",
    "-0.0",
    "0.0001",
    "0.00001",
    "1e6",
    "1e308",
    "inf",
    "nan",
    "true",
    "false",
    "\"\"",
    "\"/\"",
    "\"here\"",
    "\"kernel\"",
    "\"off\"",
    "\"kiss\"",
    "\"ntp\"",
    "\"0s\"",
    "\"365d\"",
    "\"100000000y\"",
    "\"[::]:0\"",
    "\"0.0.0.0/0\"",
    "[]",
    "[\"198.18.0.0/15\", \"::/0\"]",
    "[\"[::1]:9\"]",
    "{ upstream = \"127.0.0.1:9\" }",
];

/// Any octets as a configuration: as text, and as a choice of keys with values. A mistake is named with its place and a
/// remedy; what is understood has values within their bounds, and means the same when it is written in another way.
/// Returns whether it was more than a text with a mistake in its syntax, its keys or their types.
pub fn config(octets: &[u8]) -> bool {
    let Some(&shape) = octets.first() else { return false };
    let text = if shape == b'#' { String::from_utf8_lossy(octets).into_owned() } else { chosen(octets) };
    let config = match Config::parse(Path::new(FILE), &text) {
        Ok(config) => config,
        Err(mistake) => return judge(&text, &mistake),
    };
    check(&config);
    let table: Table = toml::from_str(&text).expect("it was read");
    let mut again = String::new();
    for (key, value) in &table {
        writeln!(again, "{} = {}", quoted(key), written(value)).expect("writing to a string cannot fail");
    }
    let again = Config::parse(Path::new(FILE), &again).expect("what is written in another way is read");
    assert_eq!(format!("{again:?}"), format!("{config:?}"));
    true
}

/// Words of the program, which no message has.
const WORDS_OF_THE_PROGRAM: [&str; 16] = [
    "untagged",
    "enum ",
    "struct ",
    "i64",
    "u16",
    "usize",
    "f64",
    "invalid type",
    "unknown field",
    "missing field",
    "sequence",
    "variant",
    "serde",
    "Option",
    "unexpected form",
    "basic string",
];

/// Judges a message: it is one line, in words for operators. What the file itself says is not looked at.
fn judge_words(text: &str, message: &str) {
    assert!(message.starts_with(FILE) && !message.contains(char::is_control), "{message}");
    for word in WORDS_OF_THE_PROGRAM {
        assert!(!message.contains(word) || text.contains(word.trim()), "{word:?} in {message}");
    }
}

/// Whether a mistake is one of meaning, not of syntax.
fn judge(text: &str, mistake: &ConfigError) -> bool {
    let message = mistake.to_string();
    judge_words(text, &message);
    assert!(!mistake.problem.is_empty() && !mistake.remedy.is_empty(), "{message}");
    let is_toml = toml::from_str::<Table>(text).is_ok();
    assert_eq!(is_toml, !mistake.key.is_empty(), "a mistake without its key: {message}");
    let is_read = toml::from_str::<raw::File>(text).is_ok();
    if is_read {
        let known = KEYS.iter().any(|(key, _)| {
            key.starts_with(&mistake.key) || mistake.key.starts_with(key) || mistake.key.starts_with("antp.")
        });
        assert!(known, "no key of the manual: {message}");
    } else {
        let line = mistake.line.unwrap_or_else(|| panic!("no line is named: {message}"));
        assert!((1..=text.matches('\n').count() + 1).contains(&line), "no such line: {message}");
    }
    is_read
}

/// What holds of every configuration.
fn check(config: &Config) {
    let exchanged = config.exchange().map_or(&[][..], |exchange| &exchange.listen);
    assert!(config.listen.len() <= SOCKET_COUNT_MAX && exchanged.len() <= SOCKET_COUNT_MAX, "{config:?}");
    assert!(!config.listen.is_empty() || !exchanged.is_empty(), "a server of nothing");
    assert!((1..=BATCH_SIZE).contains(&config.batch_size) && config.workers <= 1024);
    assert!(config.state_directory.is_absolute());
    let rates = |rates: &[Option<Rate>]| {
        for rate in rates.iter().flatten() {
            assert!(rate.interval_us > 0 && rate.burst > 0, "{rate:?}");
            assert!((1..=32).contains(&rate.prefix_v4) && (1..=128).contains(&rate.prefix_v6), "{rate:?}");
        }
    };
    rates(&[config.rate]);
    for keys in config.cookie_keys().into_iter().chain(config.state_keys()) {
        assert!((1..=KEY_COUNT_MAX - 2).contains(&keys.keep) && keys.rotate >= Duration::from_secs(1));
        let is_right = match (&keys.store, keys.next) {
            (StoreKind::File | StoreKind::Follow(_) | StoreKind::Fleet, NextKey::Random) => true,
            (StoreKind::File, NextKey::Derived) => keys.rotate.subsec_nanos() == 0,
            (StoreKind::Cfnts(cfnts), NextKey::Hourly) => cfnts.server.port() != 0 && keys.keep == 24,
            (StoreKind::Follow(_) | StoreKind::Fleet | StoreKind::Cfnts(_), NextKey::Derived)
            | (StoreKind::File | StoreKind::Follow(_) | StoreKind::Fleet, NextKey::Hourly)
            | (StoreKind::Cfnts(_), NextKey::Random) => false,
        };
        assert!(is_right, "{keys:?}");
    }
    if let Some(keys) = config.state_keys() {
        assert!(keys.next != NextKey::Hourly, "{keys:?}");
    }
    if let Some(exchange) = config.exchange() {
        assert!(exchange.limits.connection_count > 0 && exchange.limits.per_prefix_count > 0);
        assert!(!exchange.limits.timeout.is_zero() && !exchange.algorithms.is_empty());
        let advertised = &exchange.advertised;
        assert!((1..=ADVERTISED_COUNT_MAX).contains(&advertised.len()), "{advertised:?}");
        assert!(advertised.iter().any(|entry| entry.weight > 0), "{advertised:?}");
        for Advertised { server, port, weight, member } in advertised {
            assert!(server.as_ref().is_none_or(|name| (1..=255).contains(&name.len())), "{server:?}");
            let members = config.fleet.as_ref().map(|fleet| &fleet.members);
            assert!(member.as_ref().is_none_or(|member| members.is_some_and(|all| all.contains(member))));
            let is_known = config.cookie_keys().is_some_and(RotatingKeys::are_shared);
            assert!(member.is_none() || is_known, "{member:?}");
            assert!(*port != Some(0) && *weight <= 1000, "{port:?} {weight}");
            assert!(!config.listen.is_empty() || server.is_some(), "clients are sent nowhere");
        }
        rates(&[exchange.rates.per_prefix, exchange.rates.per_network]);
        assert!(!exchange.listen.is_empty());
        check_certificates(exchange);
    }
    let mut keys = config.cookie_keys().into_iter().chain(config.state_keys());
    assert_eq!(config.fleet.is_some(), keys.any(RotatingKeys::are_shared));
    if let Some(Fleet { node, members, servers, patience, .. }) = &config.fleet {
        assert!((1..=MEMBER_COUNT_MAX).contains(&members.len()) && members.contains(node), "{members:?}");
        assert_eq!(members.iter().collect::<BTreeSet<_>>().len(), members.len(), "{members:?}");
        assert!((1..=SERVER_COUNT_MAX).contains(&servers.len()), "{servers:?}");
        assert_eq!(servers.iter().collect::<BTreeSet<_>>().len(), servers.len(), "{servers:?}");
        assert!(patience.is_none_or(|patience| patience >= Duration::from_secs(1)), "{patience:?}");
    }
    if let Some(antp) = &config.antp {
        assert!((1..=ANTP_WORKER_COUNT_MAX).contains(&antp.workers) && antp.queue > 0);
        assert!(!antp.suites.is_empty());
        rates(&[antp.negotiation_rate, antp.exchange_rate, antp.all_exchange_rate, antp.time_rate]);
    }
    assert!(config.files().iter().all(|(key, file)| !key.is_empty() && file.is_absolute()));
}

/// What holds of certificates.
fn check_certificates(exchange: &KeyExchange) {
    let all = &exchange.certificates;
    assert!((1..=CERTIFICATE_COUNT_MAX).contains(&all.len()), "{all:?}");
    for (index, pair) in all.iter().enumerate() {
        assert!(!all[..index].iter().any(|other| other.is_same(pair)), "{all:?}");
        let file = pair.handed_over.as_deref();
        assert_eq!(file.and_then(Path::parent), exchange.hand_over.as_deref().map(Path::new), "{pair:?}");
        let name = file.and_then(Path::file_name).and_then(|name| name.to_str());
        assert!(name.is_none_or(is_handed_over), "{name:?}");
    }
    let names: Vec<&String> = all.iter().flat_map(|pair| pair.names.iter().flatten()).collect();
    assert!(names.iter().all(|name| (1..=253).contains(&name.len()) && **name == name.to_ascii_lowercase()));
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
}

/// A configuration of keys, each named once, with their own values or others. The first octet says whether what every
/// table needs is there whatever else is chosen.
fn chosen(octets: &[u8]) -> String {
    let (&shape, mut rest) = octets.split_first().expect("there is an octet");
    let mut lines = vec![None; KEYS.len()];
    for (line, (key, value)) in lines.iter_mut().zip(KEYS.iter()) {
        let is_needed =
            ["certificate-chain", "private-key", "symmetric.keys", "metrics.listen", "health.listen"]
                .iter()
                .any(|needed| key.ends_with(needed));
        let table =
            ["nts.", "symmetric.", "antp.", "metrics."].iter().position(|table| key.starts_with(table));
        let has_tables = shape & 0x20 != 0;
        let is_replaced = has_tables && PAIR.contains(&key.as_str());
        if is_needed && !is_replaced && table.is_some_and(|table| shape >> table & 1 != 0) {
            *line = Some(written(value));
        }
        if has_tables && key == CERTIFICATES {
            *line = Some(written(value));
        }
        if key == "antp.enable" && shape & 0x10 != 0 {
            *line = Some("true".to_owned());
        }
        let is_store = ["nts.cookie-keys.store", "antp.state-keys.store"].contains(&key.as_str());
        if (is_store || key.starts_with("fleet.")) && shape & 0x40 != 0 {
            *line = Some(written(value));
        }
        if shape & 0x80 != 0 && OF_CFNTS.contains(&key.as_str()) {
            *line = Some(written(value));
        }
        if shape & 0x80 != 0 && key == "nts.cookie-keys.store" {
            *line = Some("\"cfnts\"".to_owned());
        }
    }
    while let Some((&[key, value], after)) = rest.split_first_chunk::<2>() {
        rest = after;
        let index = usize::from(key) % KEYS.len();
        lines[index] = Some(match value {
            0..0x40 => written(&KEYS[index].1),
            0x40..0xC0 => VALUES[usize::from(value) % VALUES.len()].to_owned(),
            0xC0..0xE0 => varied(&KEYS[index].1, value & 0x1F, &mut rest),
            0xE0.. => {
                let (text, after) = rest.split_at(usize::from(value & 0x1F).min(rest.len()));
                rest = after;
                quoted(&String::from_utf8_lossy(text))
            }
        });
    }
    let lines = KEYS.iter().zip(lines).filter_map(|((key, _), line)| Some(format!("{key} = {}\n", line?)));
    lines.collect()
}

/// A value of the same type that differs by what the input says.
fn varied(value: &Value, how: u8, rest: &mut &[u8]) -> String {
    let mut next = || {
        let (&octet, after) = rest.split_first()?;
        *rest = after;
        Some(octet)
    };
    let octet = next().unwrap_or(0);
    match value {
        Value::Integer(number) => number.wrapping_add((i64::from(octet) - 128) << (how & 15)).to_string(),
        Value::Float(number) => format!("{:?}", number * f64::from(octet) / 16.0),
        Value::Boolean(yes) => (!yes).to_string(),
        Value::String(text) => {
            let mut octets = text.clone().into_bytes();
            let place = usize::from(how) % (octets.len() + 1);
            match octets.get_mut(place) {
                Some(there) => *there = octet,
                None => octets.push(octet),
            }
            quoted(&String::from_utf8_lossy(&octets))
        }
        Value::Array(values) => {
            let one = |value: &Value| {
                if how & 1 != 0 { varied(value, how >> 1, &mut &[octet][..]) } else { written(value) }
            };
            let values: Vec<String> = values.iter().map(one).collect();
            format!("[{}]", vec![values.join(", "); usize::from(octet & 7)].join(", "))
        }
        Value::Datetime(_) | Value::Table(_) => written(value),
    }
}

fn flatten(at: &str, table: &Table, keys: &mut Vec<(String, Value)>) {
    for (name, value) in table {
        let key = format!("{at}{}{name}", if at.is_empty() { "" } else { "." });
        match value {
            // What vouches for the time may be one of several tables, and has no parts that stand alone.
            Value::Table(inner) if name != "reference" => flatten(&key, inner, keys),
            _ => match keys.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => *known = value.clone(),
                None => keys.push((key, value.clone())),
            },
        }
    }
}

/// A value in TOML.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) if number.is_nan() => "nan".to_owned(),
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(yes) => yes.to_string(),
        Value::Datetime(instant) => instant.to_string(),
        Value::Array(values) => format!("[{}]", values.iter().map(written).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let inner = table.iter().map(|(key, value)| format!("{} = {}", quoted(key), written(value)));
            format!("{{ {} }}", inner.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A string or a key in TOML.
fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            ' '..='~' => out.push(char),
            _ => write!(out, "\\U{:08X}", u32::from(char)).expect("writing to a string cannot fail"),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/config");

    #[test]
    fn kept_corpus_has_no_finding_and_is_understood() {
        let (mut count, mut read_count) = (0, 0);
        for entry in std::fs::read_dir(FOLDER).expect("the corpus is kept") {
            let octets = std::fs::read(entry.unwrap().path()).unwrap();
            (count, read_count) = (count + 1, read_count + usize::from(config(&octets)));
        }
        // A corpus that is not read any more reaches nothing. Most of what fuzzing keeps is refused, as it should.
        assert!(read_count >= 10, "{read_count} of {count}");
    }

    #[test]
    fn every_key_can_be_chosen_and_all_together_are_understood() {
        let text = chosen(&[&[0x1F], &all()[..]].concat());
        let config = Config::parse(Path::new(FILE), &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert!(
            config.fleet.is_some()
                && config.nts.is_some()
                && config.symmetric.is_some()
                && config.metrics.is_some()
        );
        assert!(KEYS.len() > 40, "{}", KEYS.len());
        let fleet =
            Config::parse(Path::new(FILE), &chosen(&[0x41])).unwrap_or_else(|error| panic!("{error}"));
        assert!(fleet.fleet.is_some() && fleet.symmetric.is_none());
        let cfnts =
            Config::parse(Path::new(FILE), &chosen(&[0x81])).unwrap_or_else(|error| panic!("{error}"));
        assert!(cfnts.cfnts().is_some());
        let tables =
            Config::parse(Path::new(FILE), &chosen(&[0x21])).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(tables.exchange().unwrap().certificates.len(), 2);
    }

    /// Every key with its own value, but those that another store is without, and certificates in tables.
    fn all() -> Vec<u8> {
        let is_chosen = |key: &u8| {
            let key = KEYS[usize::from(*key)].0.as_str();
            !OF_CFNTS.contains(&key) && key != CERTIFICATES && !key.ends_with("-keys.file")
        };
        (0..KEYS.len() as u8).filter(is_chosen).flat_map(|key| [key, 0]).collect()
    }

    /// Each key with each of the values that another one may have, and each key misspelt in each place.
    #[test]
    fn every_key_with_every_value_is_understood_or_refused_in_words() {
        let mut count = 0;
        for (index, (key, _)) in KEYS.iter().enumerate() {
            for value in VALUES.iter().copied().chain(
                KEYS.iter().map(|(_, value)| written(value)).collect::<Vec<_>>().iter().map(String::as_str),
            ) {
                for shape in [0x00, 0x1F, 0x21, 0x41, 0x81] {
                    let base = chosen(&[shape]);
                    let prefix = format!("{key} = ");
                    let mut lines: Vec<&str> =
                        base.lines().filter(|line| !line.starts_with(&prefix)).collect();
                    let line = format!("{key} = {value}");
                    lines.insert(index.min(lines.len()), &line);
                    let text = lines.join("\n");
                    match Config::parse(Path::new(FILE), &text) {
                        Ok(config) => check(&config),
                        Err(mistake) => drop(judge(&text, &mistake)),
                    }
                    count += 1;
                }
            }
            for at in 0..=key.len() {
                for text in [format!("{}x{} = 1", &key[..at], &key[at..]), format!("{} = 1", &key[..at])] {
                    if let Err(mistake) = Config::parse(Path::new(FILE), &text) {
                        judge(&text, &mistake);
                    }
                    count += 1;
                }
            }
        }
        assert!(count > 20_000, "{count}");
    }

    /// Every line of the manual's file with each of its characters replaced or removed.
    #[test]
    fn every_mutation_of_the_manual_is_understood_or_refused_in_words() {
        let manual = include_str!("../../../../docs/manual/authentick.toml");
        let lines: Vec<&str> = manual.lines().map(|line| line.trim_start_matches(['#', ' '])).collect();
        for line in lines {
            let line: String = line.split(" # ").next().unwrap_or_default().trim_end().to_owned();
            for (at, char) in line.char_indices() {
                let (before, after) = (&line[..at], &line[at + char.len_utf8()..]);
                for text in ["", "x", "\"", "[", "=", "0", ".", "#"]
                    .map(|new| format!("[server]\n{before}{new}{after}"))
                {
                    if let Err(mistake) = Config::parse(Path::new(FILE), &text) {
                        judge(&text, &mistake);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_quoted_is_read_as_it_was() {
        for text in ["", "a", "\"\\\u{7f}\u{1b}\n\u{10ffff}"] {
            let table: Table = toml::from_str(&format!("{} = {}", quoted(text), quoted(text))).unwrap();
            assert_eq!(table.get(text), Some(&Value::String(text.to_owned())));
        }
    }

    #[test]
    #[ignore = "writes the first inputs of the corpus"]
    fn write_seeds() {
        let manual = &whole_manual();
        std::fs::create_dir_all(FOLDER).unwrap();
        let text = |name: &str, text: &str| {
            std::fs::write(format!("{FOLDER}/{name}"), format!("#\n{text}")).unwrap();
        };
        text("manual", manual);
        text("enabled", &manual.replace("enable = false", "enable = true"));
        for (index, section) in manual.split("\n\n").enumerate() {
            text(&format!("section-{index}"), section);
        }
        std::fs::write(format!("{FOLDER}/all"), [&[0x1F], &all()[..]].concat()).unwrap();
        std::fs::write(format!("{FOLDER}/fleet"), [0x41]).unwrap();
        std::fs::write(format!("{FOLDER}/cfnts"), [0x81]).unwrap();
        std::fs::write(format!("{FOLDER}/certificates"), [0x21]).unwrap();
        for (name, value) in [("values", 0x40), ("varied", 0xC1), ("texts", 0xE3)] {
            let some: Vec<u8> =
                (0..KEYS.len() as u8).step_by(7).flat_map(|key| [key, value + key % 31, 9, 1]).collect();
            std::fs::write(format!("{FOLDER}/{name}"), [&[0x1F], &some[..]].concat()).unwrap();
        }
    }
}
