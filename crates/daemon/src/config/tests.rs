//! What the file means, and that every mistake is named.

mod advertise;
mod certificates;
mod cfnts;
mod roles;

use std::time::Duration;

use authentick_fleet::Start;
use authentick_ke::server::{Limits, Rates};
use authentick_proto::antp::server::Settings;
use authentick_proto::antp::source::PrefixSizes;
use authentick_proto::symmetric::Allowed;
use authentick_wire::antp::Suite;

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
    assert_eq!(config.reference, Reference::KERNEL);
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
    let config = parse(&fuzzing::whole_manual()).unwrap();
    let nts = config.nts.unwrap();
    assert_eq!(nts.keys.rotate, Duration::from_secs(86_400));
    let exchange = nts.exchange.unwrap();
    assert_eq!((nts.keys.keep, exchange.limits, exchange.rates), (7, Limits::default(), Rates::default()));
    let symmetric = config.symmetric.unwrap();
    assert_eq!((symmetric.format, symmetric.allowed), (None, Allowed::default()));
    assert_eq!(config.reference, Reference::KERNEL);
}

#[test]
fn mistakes_about_what_vouches_for_the_time_are_named() {
    for (text, parts) in [
        (
            "[server]\nreference = { upstream = \"localhost:0\" }",
            &["upstream", "localhost:0", "NAME:PORT"][..],
        ),
        ("[server]\nreference = { upstream = \"a..b:123\" }", &["upstream", "a..b:123"]),
        ("[server]\nreference = { kernel = false }", &["server.reference.kernel", "no source of time"]),
        ("[server]\nreference = { kernel = true, stratum = 0 }", &["stratum", "\"0\"", "1 to 15"]),
        (
            "[server]\nreference = \"kernel\"\nleap-seconds = \"/l\"",
            &["server.leap-seconds", "without effect"],
        ),
        (
            "[server]\nreference = { stratum = 1, id = \"GPS\" }\nleap-seconds = \"l\"",
            &["server.leap-seconds", "relative path"],
        ),
    ] {
        let message = message(text);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}

#[test]
fn mistakes_name_file_key_value_and_remedy() {
    let nts = "[nts]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\n";
    for (text, parts) in [
        (
            "[server]\nlisten = [\"0.0.0.0\"]",
            &["test.toml", "server.listen", "\"0.0.0.0\"", "the port is missing; write \"0.0.0.0:123\""][..],
        ),
        ("[server]\nlisten = []", &["server.listen", "nothing to listen on"]),
        ("[server]\nlisten = [\"[::]:123\", \"[::]:123\"]", &["listed twice"]),
        ("[server]\nlistne = []", &["line 2", "unknown key", "listne"]),
        ("[server]\nworkers = -1", &["line 2", "server.workers", "\"-1\"", "out of range"]),
        ("[server]\nbatch-size = 0", &["server.batch-size", "\"0\"", "1 to 64"]),
        ("[server]\nbatch-size = 65", &["server.batch-size", "\"65\"", "1 to 64"]),
        ("[server]\nengine = \"xdp\"", &["server.engine", "\"xdp\"", "\"udp\""]),
        ("[server]\nrefusal = \"loud\"", &["server.refusal", "\"kiss\""]),
        ("[nts]\nke-priority = \"nice\"", &["nts.ke-priority", "\"fair\" or \"idle\""]),
        ("[server]\ncontainment = \"on\"", &["server.containment", "\"auto\" or \"off\""]),
        ("[server]\nreference = \"gps\"", &["server.reference", "kernel"]),
        ("[server]\nreference = { stratum = 16, id = \"GPS\" }", &["stratum", "\"16\"", "1 to 15"]),
        ("[server]\nreference = { stratum = 1, id = \"TOOLONG\" }", &["id", "TOOLONG", "four"]),
        ("[server]\nreference = { upstream = \"localhost\" }", &["upstream", "localhost"]),
        ("[server]\nstate-directory = \"here\"", &["state-directory", "here", "slash"]),
        ("[server]\nallow = [\"10.0.0.1/8\"]", &["server.allow", "10.0.0.1/8", "write \"10.0.0.0/8\""]),
        ("[server]\nrate-limit = { requests-per-second = -1 }", &["requests-per-second", "-1"]),
        ("[server]\nrate-limit = { per-prefix-v4 = 33 }", &["per-prefix-v4", "33", "1 to 32"]),
        ("[nts]\nprivate-key = \"/k\"", &["certificate-chain"]),
        (&format!("{nts}cookie-keys = {{ rotate = \"daily\" }}"), &["rotate", "daily", "\"1d\""]),
        (&format!("{nts}cookie-keys = {{ keep = 0 }}"), &["keep", "1 to 64"]),
        (
            &format!("{nts}cookie-keys = {{ store = \"tape\" }}"),
            &["store", "tape", "\"file\", \"follow\", \"memcached\" or \"cfnts\""],
        ),
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
        (&format!("{nts}ke-limits = {{ per-network = 64 }}"), &["line 4", "unknown key", "per-network"]),
        ("[symmetric]\nformat = \"auto\"", &["symmetric.keys: missing"]),
        ("[symmetric]\nkeys = \"keys\"", &["symmetric.keys", "\"keys\"", "slash"]),
        ("[symmetric]\nkeys = \"/k\"\nformat = \"ntpd\"", &["symmetric.format", "ntpd", "\"ntp\""]),
        ("[symmetric]\nkeys = \"/k\"\nallow-md5 = true", &["line 3", "unknown key", "allow-md5"]),
        ("[antp]\nenable = true", &["antp.enable", "no suite", "[antp.ecdh]"]),
        ("[antp]\nenabled = true", &["line 2", "unknown key", "enabled"]),
        ("[antp]\npayload-size = 1500", &["antp.payload-size", "\"1500\"", "176 to 1232"]),
        ("[antp]\nlifetime = \"32d\"", &["antp.lifetime", "32d", "out of range"]),
        ("[antp]\nstate-keys = { rotate = \"1h\" }", &["antp.state-keys.rotate", "1h", "2h 37m 30s or more"]),
        ("[antp]\nworkers = 0", &["antp.workers", "\"0\"", "1 to 64"]),
        ("[antp]\nqueue = 0", &["antp.queue", "\"0\"", "1 to 65536"]),
        (
            "[antp]\nrate-limit = { exchanges-per-second = -1 }",
            &["antp.rate-limit.exchanges-per-second", "-1"],
        ),
        ("[antp.ecdh]\nprivate-key = \"/k\"", &["antp.ecdh.certificate-chain: missing"]),
        (
            "[antp.rsa]\ncertificate-chain = \"c\"\nprivate-key = \"/k\"",
            &["antp.rsa.certificate-chain", "slash"],
        ),
        ("[metrics]\nlisten = \"9975\"", &["metrics.listen", "9975"]),
        (
            "[metrics]\nlisten = \"[::1]:9975\"\nspan-every = 0",
            &["metrics.span-every = \"0\"", "out of range", "write a number from 1 to 1000000"],
        ),
        ("[metrics]\nlisten = \"[::1]:9975\"\nspan-every = 1000001", &["metrics.span-every", "out of range"]),
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
    assert_eq!(config.cookie_keys().unwrap().followed(), Some(Path::new("/keys")));
    let files = config.files();
    assert!(
        files.iter().any(|(key, path)| key == "nts.cookie-keys.file" && *path == Path::new("/keys")),
        "read again"
    );
}

#[test]
fn keys_are_derived_only_in_a_file_of_the_hosts_own() {
    let keys = |keys: &str| {
        format!("[nts]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\ncookie-keys = {{ {keys} }}")
    };
    for (text, parts) in [
        ("next = \"hashed\"", &["cookie-keys.next", "\"hashed\"", "\"random\" or \"derived\""][..]),
        (
            "store = \"memcached\", next = \"derived\"",
            &["cookie-keys.next", "\"derived\"", "store = \"file\""],
        ),
        (
            "store = \"follow\", file = \"/keys\", next = \"derived\"",
            &["cookie-keys.next", "\"derived\"", "where they are made"],
        ),
        (
            "store = \"follow\", file = \"/keys\", next = \"random\"",
            &["cookie-keys.next", "\"random\"", "where they are made"],
        ),
        ("next = \"derived\", rotate = \"1500ms\"", &["cookie-keys.rotate", "1s 500ms", "whole seconds"]),
    ] {
        assert_names(&keys(text), parts);
    }
    for (text, next, awaits_keys) in [
        ("", NextKey::Random, false),
        ("next = \"random\", rotate = \"1500ms\"", NextKey::Random, false),
        ("store = \"file\", next = \"derived\"", NextKey::Derived, true),
        ("store = \"follow\", file = \"/keys\"", NextKey::Random, true),
    ] {
        let config = parse(&keys(text)).unwrap();
        let keys = config.cookie_keys().unwrap();
        assert_eq!((keys.are_awaited(), keys.next), (awaits_keys, next), "{text}");
    }
    assert!(parse(&fleet("")).unwrap().cookie_keys().unwrap().are_awaited());
}

/// A configuration whose cookie keys are shared, with these lines in `[fleet]` in place of those of the same key.
fn fleet(lines: &str) -> String {
    let needed = [
        "id = \"time.example.net\"",
        "node = \"ntp-1\"",
        "members = [\"ntp-1\", \"ntp-2\", \"ke-1\"]",
        "servers = [\"192.0.2.9:11211\"]",
        "seal-key = \"/etc/authentick/seal\"",
    ];
    let is_replaced =
        |line: &&&str| lines.lines().all(|other| other.split(' ').next() != line.split(' ').next());
    let needed: Vec<&str> = needed.iter().filter(is_replaced).copied().collect();
    format!(
        "[nts]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\ncookie-keys = {{ store = \"memcached\" }}\n\
         [fleet]\n{}\n{lines}",
        needed.join("\n")
    )
}

#[test]
fn fleet_shares_cookie_keys() {
    let config = parse(&fleet("")).unwrap();
    assert!(config.files().contains(&("fleet.seal-key".to_owned(), Path::new("/etc/authentick/seal"))));
    let keys = config.nts.unwrap().keys;
    assert_eq!(keys.followed(), None);
    assert_eq!((keys.store, keys.rotate, keys.keep), (StoreKind::Fleet, Duration::from_secs(86_400), 7));
    let found = config.fleet.unwrap();
    assert_eq!(
        (found.id.as_str(), found.node.as_str(), found.members.len()),
        ("time.example.net", "ntp-1", 3)
    );
    assert_eq!(found.servers, ["192.0.2.9:11211".parse().unwrap()]);
    assert_eq!((found.is_writer, found.patience, found.start), (false, None, Start::Welcomed));
    let text = fleet("writer = true\npatience = \"36h\"\nstart = \"stored\"\nmembers = [\"ntp-1\"]");
    let found = parse(&text).unwrap().fleet.unwrap();
    assert!(found.is_writer && found.members == [found.node]);
    assert_eq!((found.patience, found.start), (Some(Duration::from_secs(36 * 3600)), Start::Stored));
    for (node, writer, is_writer) in
        [("ntp-1", "\"ntp-1\"", true), ("ke-1", "\"ntp-1\"", false), ("ke-1", "true", true)]
    {
        let text = fleet(&format!("node = \"{node}\"\nwriter = {writer}"));
        assert_eq!(parse(&text).unwrap().fleet.unwrap().is_writer, is_writer, "{node} {writer}");
    }
    let text = fleet("").replace("\"memcached\"", "\"memcached\", rotate = \"1h\", keep = 3");
    let keys = parse(&text).unwrap().nts.unwrap().keys;
    assert_eq!((keys.rotate, keys.keep), (Duration::from_secs(3600), 3));
}

/// ANTP with these lines of its own.
fn antp(lines: &str) -> String {
    format!("[antp]\nenable = true\n{lines}\n[antp.ecdh]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\n")
}

#[test]
fn state_keys_are_kept_where_cookie_keys_can_be() {
    let keys = |keys: &str| parse(&antp(&format!("state-keys = {{ {keys} }}"))).unwrap();
    for (text, next, are_awaited) in [
        ("", NextKey::Random, false),
        ("store = \"file\", next = \"derived\"", NextKey::Derived, true),
        ("store = \"follow\", file = \"/keys\"", NextKey::Random, true),
    ] {
        let config = keys(text);
        let found = config.state_keys().unwrap();
        assert_eq!((found.are_awaited(), found.next), (are_awaited, next), "{text}");
        assert!(config.cookie_keys().is_none() && config.fleet.is_none());
    }
    let config = keys("store = \"follow\", file = \"/keys\"");
    assert!(config.files().contains(&("antp.state-keys.file".to_owned(), Path::new("/keys"))), "read again");
    // Keys that are made elsewhere are kept there: their number says nothing here.
    let text = antp("lifetime = \"31d\"\nstate-keys = { store = \"follow\", file = \"/keys\" }");
    assert!(parse(&text).is_ok());
    for (text, parts) in [
        ("store = \"follow\"", &["antp.state-keys.file", "missing", "/run/keys/state-keys"][..]),
        ("file = \"/keys\"", &["antp.state-keys.file", "store = \"follow\""]),
        ("store = \"follow\", file = \"/keys\", rotate = \"1d\"", &["antp.state-keys.rotate", "are made"]),
        ("store = \"memcached\", next = \"derived\"", &["antp.state-keys.next", "store = \"file\""]),
        ("next = \"derived\", rotate = \"86400500ms\"", &["antp.state-keys.rotate", "whole seconds"]),
        ("keep = 7", &["unknown key", "keep"]),
    ] {
        assert_names(&antp(&format!("state-keys = {{ {text} }}")), parts);
    }
}

#[test]
fn fleet_shares_state_keys_alone_or_beside_cookie_keys() {
    let table = fleet("").split_off(fleet("").find("[fleet]").unwrap());
    let shared = antp("state-keys = { store = \"memcached\", rotate = \"2d\" }");
    let config = parse(&format!("{shared}{table}")).unwrap();
    let keys = config.state_keys().unwrap();
    assert_eq!((&keys.store, keys.keep), (&StoreKind::Fleet, 4), "as many as live for seven days");
    assert!(config.fleet.is_some() && config.cookie_keys().is_none());
    let both = parse(&format!("{shared}{}", fleet(""))).unwrap();
    assert!(both.cookie_keys().unwrap().are_shared() && both.state_keys().unwrap().are_shared());
    assert_names(&shared, &["antp.state-keys.store = \"memcached\"", "no fleet", "add a table [fleet]"]);
    let off = format!("{}{table}", shared.replace("enable = true", "enable = false"));
    assert_names(&off, &["fleet: without effect", "no keys are shared", "state-keys"]);
    // What members say of state keys says nothing of cookies.
    let nts = "[nts]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\nadvertise = { member = \"ntp-1\" }\n";
    let text = format!("{nts}{shared}{table}");
    assert_names(&text, &["nts.advertise.member", "ntp-1", "does not share cookie keys", "memcached"]);
}

#[test]
fn mistakes_of_a_fleet_are_named() {
    let many = |count: usize, what: fn(usize) -> String| {
        let names: Vec<String> = (0..count).map(|index| format!("{:?}", what(index))).collect();
        format!("[{}]", names.join(", "))
    };
    let members = format!("node = \"n1\"\nmembers = {}", many(65, |index| format!("n{index}")));
    let servers = format!("servers = {}", many(9, |index| format!("192.0.2.{}:11211", index + 1)));
    for (lines, parts) in [
        ("id = \"time/1\"", &["test.toml", "fleet.id = \"time/1\"", "no name", "1 to 64 ASCII letters"][..]),
        ("id = \"\"", &["fleet.id", "no name"]),
        ("node = \"ntp 1\"", &["fleet.node = \"ntp 1\"", "no name"]),
        ("node = \"ntp-3\"", &["fleet.node = \"ntp-3\"", "not among fleet.members", "add it there"]),
        ("members = []", &["fleet.node = \"ntp-1\"", "not among fleet.members"]),
        ("members = [\"ntp-1\", \"\"]", &["fleet.members", "no name"]),
        ("members = [\"ntp-1\", \"a\", \"a\"]", &["fleet.members = \"a\"", "listed twice", "each node once"]),
        (&members, &["fleet.members = \"65\"", "too many nodes", "at most 64"]),
        ("servers = []", &["fleet.servers = \"[]\"", "no server", "\"192.0.2.9:11211\"]"]),
        ("servers = [\"memcached\"]", &["fleet.servers = \"memcached\"", "the port is missing"]),
        ("servers = [\"192.0.2.9\"]", &["fleet.servers", "\"192.0.2.9\"", "the port is missing"]),
        ("servers = [\"192.0.2.9:0\"]", &["fleet.servers", "\"192.0.2.9:0\"", "port 0 is out of range"]),
        ("servers = [\"a b:1\"]", &["fleet.servers = \"a b:1\"", "expected ADDRESS:PORT or NAME:PORT"]),
        ("servers = [\"[::]:11211\"]", &["fleet.servers", "\"[::]:11211\"", "expected ADDRESS:PORT"]),
        (
            "servers = [\"[::1]:1\", \"[::1]:2\", \"[::1]:1\"]",
            &["fleet.servers = \"[::1]:1\"", "listed twice"],
        ),
        (&servers, &["fleet.servers = \"9\"", "too many servers", "at most 8"]),
        ("seal-key = \"seal\"", &["fleet.seal-key = \"seal\"", "relative path", "slash"]),
        ("patience = \"0s\"", &["fleet.patience = \"0s\"", "out of range", "write a duration from 1s to"]),
        ("patience = \"366d\"", &["fleet.patience = \"366d\"", "out of range"]),
        ("patience = \"long\"", &["fleet.patience = \"long\"", "expected a number and a unit"]),
        (
            "start = \"cold\"",
            &["fleet.start = \"cold\"", "unknown way to start", "\"welcomed\" or \"stored\""],
        ),
        ("writer = 1", &["fleet.writer: invalid value 1", "true or false"]),
        ("writer = \"ntp-9\"", &["fleet.writer = \"ntp-9\"", "not among fleet.members", "write the name"]),
        (
            "writer = \"true\"",
            &["fleet.writer = \"true\"", "not among fleet.members", "or true on that node"],
        ),
        ("seal = \"/s\"", &["unknown key", "fleet.seal", "did you mean fleet.seal-key?"]),
    ] {
        assert_names(&fleet(lines), parts);
    }
    let text = fleet("");
    assert_names(
        &text.replace("servers = [\"192.0.2.9:11211\"]\n", ""),
        &["fleet.servers", "no server", "memcached"],
    );
    let (nts, table) = text.split_at(text.find("[fleet]").unwrap());
    assert_names(nts, &["nts.cookie-keys.store = \"memcached\"", "no fleet", "add a table [fleet] with id"]);
    let unused =
        &["fleet: without effect", "no keys are shared", "store = \"memcached\"", "or remove [fleet]"];
    assert_names(table, unused);
    assert_names(&text.replace("\"memcached\"", "\"file\""), unused);
    let file = text.replace("\"memcached\"", "\"memcached\", file = \"/keys\"");
    assert_names(&file, &["cookie-keys.file", "\"/keys\"", "store = \"follow\"", "leave this out"]);
}

#[test]
fn antp_is_off_until_it_is_switched_on() {
    let suite = "[antp.ecdh]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\n";
    assert!(parse(suite).unwrap().antp.is_none());
    let antp = parse(&format!("[antp]\nenable = true\n{suite}")).unwrap().antp.unwrap();
    assert_eq!((antp.settings, antp.keys.keep, antp.workers), (Settings::default(), 7, 1));
    assert_eq!((antp.suites.len(), antp.suites[0].suite), (1, Suite::P256));
    let rates = antp.rates().map(|rate| rate.map(|rate| (rate.interval_us, rate.burst)));
    assert_eq!(rates, [(10_000, 16), (50_000, 16), (25_000, 32), (1000, 256), (1000, 16)].map(Some));
    let network = antp.network_exchange_rate.unwrap();
    assert_eq!((network.prefix_v4, network.prefix_v6), (24, 48));
    let text = format!(
        "[antp]\nenable = true\nlifetime = \"90m\"\nstate-keys = {{ rotate = \"1h\" }}\n\
         rate-limit = {{ exchanges-per-second = 4 }}\n{suite}"
    );
    let antp = parse(&text).unwrap().antp.unwrap();
    assert_eq!((antp.keys.keep, antp.exchange_rate.unwrap().interval_us), (2, 250_000));
    assert_eq!(antp.network_exchange_rate.unwrap().interval_us, 125_000);
    let unlimited = parse(&text.replace("second = 4", "second = 0")).unwrap().antp.unwrap();
    assert_eq!((unlimited.exchange_rate, unlimited.network_exchange_rate), (None, None));
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
    assert_eq!(parse(nts).unwrap().exchange().unwrap().rates, Rates::default());
    let text = format!("{nts}ke-limits = {{ per-prefix-rate = 0, per-network-rate = 0.5 }}");
    let rates = parse(&text).unwrap().exchange().unwrap().rates;
    assert_eq!(rates.per_prefix, None);
    assert_eq!(rates.per_network, Some(Rates::of_network(2_000_000, 4_000)));
}

#[test]
fn rate_of_less_than_one_a_second_is_kept() {
    let config = parse("[server]\nrate-limit = { requests-per-second = 0.25, burst = 8 }").unwrap();
    let rate = config.rate.unwrap();
    assert_eq!((rate.interval_us, rate.burst), (4_000_000, 8));
}
