//! Each warning, and settings that have none.

use std::path::Path;

use super::*;

/// The warnings of these lines in `[server]` and `[nts]`, one text each.
fn warnings(server: &str, nts: Option<&str>) -> Vec<String> {
    let pair = "certificate-chain = \"/c\"\nprivate-key = \"/k\"\n";
    let nts = nts.map_or_else(String::new, |nts| format!("[nts]\n{pair}{nts}\n"));
    let config = Config::parse(Path::new("test.toml"), &format!("[server]\n{server}\n{nts}")).unwrap();
    of(&config, &[]).iter().map(|warning| warning.describe(&config)).collect()
}

/// Exactly one warning, with these parts.
#[track_caller]
fn assert_one(warnings: &[String], parts: &[&str]) {
    let [warning] = warnings else { panic!("{warnings:#?}") };
    for part in parts {
        assert!(warning.contains(part), "{part:?} is not in {warning:?}");
    }
}

#[test]
fn settings_without_a_fault_have_no_warning() {
    for (server, nts) in [
        ("", None),
        ("", Some("")),
        ("listen = [\"0.0.0.0:123\"]", Some("ke-listen = [\"0.0.0.0:4460\"]")),
        ("listen = [\"0.0.0.0:123\"]", Some("ke-listen = [\"192.0.2.1:4460\"]")),
        ("listen = [\"127.0.0.1:0\"]", Some("ke-listen = [\"127.0.0.1:0\"]")),
        ("listen = [\"0.0.0.0:123\", \"[::]:123\"]", Some("advertise = { server = \"a.example\" }")),
        ("listen = []", Some("ke-listen = [\"0.0.0.0:4460\"]\nadvertise = { server = \"192.0.2.1\" }")),
        ("allow = [\"192.0.2.0/24\"]\ndeny = [\"192.0.2.7\"]", None),
        ("rate-limit = { requests-per-second = 0, burst = 16 }", None),
        ("rate-limit = { requests-per-second = 1, burst = 3 }", None),
        ("reference = { stratum = 1, id = \"GPS\" }", None),
        ("reference = { kernel = true, stratum = 3, id = \"76.65.66.0\" }", None),
    ] {
        assert_eq!(warnings(server, nts), Vec::<String>::new(), "{server} {nts:?}");
    }
}

#[test]
fn file_that_is_skipped_gets_a_free_name_that_is_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kept.toml"), "").unwrap();
    for (name, proposed) in [
        ("b.tml", "b.toml"),
        ("b.conf", "b.toml"),
        ("10-b.local.txt", "10-b.local.toml"),
        ("b.TOML", "b.toml"),
        ("b.toml.bak", "b.toml"),
        ("kept.toml.bak", "kept.toml.bak.toml"),
        ("kept.tml", "kept.tml.toml"),
        ("README", "README.toml"),
        ("b.", "b.toml"),
        ("limits-1.5", "limits-1.5.toml"),
        ("b.disabled", "b.disabled.toml"),
    ] {
        assert_eq!(renamed(&folder.path().join(name)), proposed, "{name}");
    }
}

#[test]
fn access_list_that_matches_no_client_is_warned_of() {
    for (server, parts) in [
        ("allow = []", &["server.allow = \"[]\"", "all requests are refused", "list prefixes"][..]),
        ("deny = [\"0.0.0.0/0\", \"::/0\"]", &["server.deny", "all requests are refused"]),
        ("allow = [\"192.0.2.0/24\"]\ndeny = [\"192.0.0.0/16\"]", &["server.deny", "all requests"]),
        (
            "allow = [\"192.0.2.0/24\"]\ndeny = [\"198.51.100.0/24\"]",
            &["line 3: server.deny = \"198.51.100.0/24\"", "without effect", "remove it"],
        ),
        (
            "allow = [\"192.0.2.0/24\", \"198.51.100.0/24\"]\ndeny = [\"192.0.2.0/24\"]",
            &["server.allow = \"192.0.2.0/24\"", "server.deny covers it"],
        ),
        (
            "listen = [\"0.0.0.0:123\"]\nallow = [\"2001:db8::/32\"]",
            &["server.allow", "all requests are refused", "family"],
        ),
        ("deny = [\"ff00::/8\"]", &["server.deny = \"ff00::/8\"", "without effect"]),
        ("deny = [\"224.0.0.0/4\"]", &["server.deny = \"224.0.0.0/4\"", "without effect"]),
        ("rate-limit = { burst = 16 }", &["server.rate-limit.burst = \"16\"", "sets no limit"]),
        (
            "rate-limit = { requests-per-second = 0, burst = 3 }",
            &["server.rate-limit.burst = \"3\"", "without effect"],
        ),
        (
            "reference = { stratum = 8, id = \"LAB\" }",
            &["server.reference.id = \"LAB\"", "76.65.66.0", "letters are for stratum 1"],
        ),
        ("reference = { kernel = true, stratum = 2, id = \"GPS\" }", &["server.reference.id", "stratum 2"]),
        ("refusal = \"kiss\"", &["server.refusal = \"kiss\"", "pool"]),
    ] {
        assert_one(&warnings(server, None), parts);
    }
}

#[test]
fn key_exchange_wider_than_time_is_warned_of() {
    for (listen, nts, parts) in [
        (
            "[\"0.0.0.0:123\"]",
            "ke-listen = [\"0.0.0.0:4460\", \"[::]:4460\"]",
            &["nts.ke-listen = \"[::]:4460\"", "clients over IPv6", "no IPv6 address"][..],
        ),
        (
            "[\"[2001:db8::1]:123\"]",
            "ke-listen = [\"0.0.0.0:4460\"]",
            &["nts.ke-listen = \"0.0.0.0:4460\"", "no IPv4 address"],
        ),
        (
            "[\"192.0.2.5:123\"]",
            "ke-listen = [\"0.0.0.0:4460\"]",
            &["nts.ke-listen", "another address of this host", "192.0.2.5:123"],
        ),
        (
            "[\"0.0.0.0:123\", \"[::]:1123\"]",
            "",
            &["nts.ke-listen = \"[::]:4460\"", "clients over IPv6 are sent to port 123"],
        ),
        (
            "[\"0.0.0.0:123\"]",
            "ke-listen = [\"0.0.0.0:4460\"]\nadvertise = { port = 4123 }",
            &["nts.ke-listen", "sent to port 4123"],
        ),
        (
            "[\"0.0.0.0:123\", \"[::]:123\"]",
            "advertise = { server = \"192.0.2.1\" }",
            &["nts.advertise.server = \"192.0.2.1\"", "clients over IPv6", "IPv4 address"],
        ),
        (
            "[\"0.0.0.0:123\", \"[::]:123\"]",
            "advertise = { server = \"2001:db8::1\" }",
            &["nts.advertise.server", "clients over IPv4", "IPv6 address"],
        ),
        (
            "[\"192.0.2.1:123\"]",
            "ke-listen = [\"192.0.2.1:4460\"]\nadvertise = { server = \"192.0.2.1\", port = 9 }",
            &["nts.advertise.server", "does not have this address with port 9"],
        ),
        (
            "[\"0.0.0.0:123\"]",
            "ke-listen = [\"0.0.0.0:4460\"]\nadvertise = { server = \"0.0.0.0\" }",
            &["nts.advertise.server", "cannot send requests"],
        ),
        (
            "[\"0.0.0.0:123\"]",
            "ke-listen = [\"0.0.0.0:4460\"]\nadvertise = { server = \"127.0.0.1\" }",
            &["nts.advertise.server", "sent to themselves"],
        ),
        (
            "[\"0.0.0.0:123\", \"[::]:123\"]",
            "ke-limits = { per-network-rate = 0, per-network-burst = 7 }",
            &["nts.ke-limits.per-network-burst = \"7\"", "nts.ke-limits.per-network-rate sets no limit"],
        ),
        ("[\"0.0.0.0:123\", \"[::]:123\"]", "aeads = [30]", &["nts.aeads", "lacks 15", "add 15"]),
    ] {
        assert_one(&warnings(&format!("listen = {listen}"), Some(nts)), parts);
    }
}

#[test]
fn wildcard_of_ipv6_alone_is_warned_of() {
    let [time, exchange] = &warnings("listen = [\"[::]:123\"]", Some(""))[..] else { panic!() };
    assert_one(
        std::slice::from_ref(time),
        &["line 2: server.listen = \"[::]:123\"", "IPv4 is not served", "add \"0.0.0.0:123\""],
    );
    assert_one(
        std::slice::from_ref(exchange),
        &["nts.ke-listen = \"0.0.0.0:4460\" (the default)", "no IPv4 address"],
    );
}

#[test]
fn metrics_for_every_host_are_warned_of() {
    for (listen, is_open) in
        [("0.0.0.0:9975", true), ("[::]:9975", true), ("127.0.0.1:9975", false), ("192.0.2.1:9", false)]
    {
        let text = format!("[metrics]\nlisten = \"{listen}\"");
        let config = Config::parse(Path::new("test.toml"), &text).unwrap();
        assert_eq!(of(&config, &[]).len(), usize::from(is_open), "{listen}");
    }
}

#[test]
fn upstream_on_another_host_is_warned_of() {
    let text = "[server]\nreference = { upstream = \"192.0.2.1:123\" }";
    let config = Config::parse(Path::new("test.toml"), text).unwrap();
    for (address, is_warned) in
        [("192.0.2.1:123", true), ("127.0.0.1:123", false), ("[::ffff:127.0.0.1]:123", false)]
    {
        assert_eq!(of(&config, &[address.parse().unwrap()]).len(), usize::from(is_warned), "{address}");
    }
}
