//! Cookie keys in CFNTS's layout.

use super::*;

const SERVER: &str = "server = \"192.0.2.9:11211\"";
const MASTER_KEY: &str = "master-key = \"/etc/authentick/cookie.key\"";

fn keys(more: &str) -> String {
    format!("[nts]\nke-listen = []\ncookie-keys = {{ store = \"cfnts\", {more} }}")
}

#[test]
fn hours_have_keys_in_one_memcached_under_a_master_key() {
    let config = parse(&keys(&format!("{SERVER}, {MASTER_KEY}"))).unwrap();
    let cfnts = config.cfnts().unwrap();
    assert_eq!(cfnts.server, "192.0.2.9:11211".parse().unwrap());
    assert_eq!(cfnts.master_key, Path::new("/etc/authentick/cookie.key"));
    assert_eq!(config.memcached_servers().collect::<Vec<_>>(), [&cfnts.server]);
    let keys = config.cookie_keys().unwrap();
    assert!(keys.are_awaited() && !keys.are_shared() && keys.followed().is_none() && config.fleet.is_none());
    assert!(config.files().is_empty(), "the key of an hour never changes, so nothing is read again");
    assert_eq!((keys.rotate, keys.keep, keys.next), (Duration::from_secs(3600), 24, NextKey::Hourly));
}

#[test]
fn mistakes_in_this_layout_are_named() {
    for (more, parts) in [
        (MASTER_KEY, &["nts.cookie-keys.server: missing", "server = \"192.0.2.9:11211\""][..]),
        (SERVER, &["nts.cookie-keys.master-key: missing", "cookie_key_file", "16 random octets"]),
        ("server = \"192.0.2.9\"", &["nts.cookie-keys.server = \"192.0.2.9\"", "ADDRESS:PORT"]),
        ("server = \"[::]:11211\"", &["nts.cookie-keys.server", "expected ADDRESS:PORT or NAME:PORT"]),
        (
            &format!("{SERVER}, master-key = \"cookie.key\""),
            &["nts.cookie-keys.master-key = \"cookie.key\"", "slash"],
        ),
        (
            "rotate = \"1h\"",
            &["nts.cookie-keys.rotate: without effect", "a key for each hour", "leave it out"],
        ),
        ("keep = 24", &["nts.cookie-keys.keep: without effect"]),
        ("next = \"random\"", &["nts.cookie-keys.next: without effect"]),
        ("file = \"/keys\"", &["nts.cookie-keys.file: without effect"]),
    ] {
        assert_names(&keys(more), parts);
    }
    for (store, line) in [("file", SERVER), ("memcached", MASTER_KEY), ("follow", SERVER)] {
        let text = format!("[nts]\nke-listen = []\ncookie-keys = {{ store = \"{store}\", {line} }}");
        let key = line.split(' ').next().unwrap();
        assert_names(&text, &[&format!("nts.cookie-keys.{key}: without effect"), "not \"cfnts\"", "[fleet]"]);
    }
    let text = format!(
        "{}\n{}",
        keys(&format!("{SERVER}, {MASTER_KEY}")),
        &fleet("")[fleet("").find("[fleet]").unwrap()..]
    );
    assert_names(&text, &["fleet: without effect", "no keys are shared"]);
}

#[test]
fn layout_is_not_for_state_keys() {
    let store = "store = \"cfnts\"";
    for keys in [store.to_owned(), format!("{store}, {SERVER}, {MASTER_KEY}")] {
        let parts = ["antp.state-keys.store = \"cfnts\"", "cookie keys alone", "\"memcached\""];
        assert_names(&antp(&format!("state-keys = {{ {keys} }}")), &parts);
    }
    for line in [SERVER, MASTER_KEY] {
        let key = format!("antp.state-keys.{}: without effect", line.split(' ').next().unwrap());
        assert_names(&antp(&format!("state-keys = {{ {line} }}")), &[&key, "cookie keys alone", "[fleet]"]);
    }
}
