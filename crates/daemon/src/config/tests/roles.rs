//! Hosts that serve time, exchange keys, or both.

use super::*;

const TIME_ONLY: &str = "[nts]\nke-listen = []\n";
const KEYS_ONLY: &str = "[server]\nlisten = []\n[nts]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\n";

#[test]
fn host_may_leave_key_exchange_or_time_to_others() {
    let config = parse(TIME_ONLY).unwrap();
    assert!(config.exchange().is_none() && config.listen.len() == 2);
    assert_eq!(config.nts.as_ref().unwrap().keys.store, StoreKind::File);
    assert!(config.files().is_empty(), "there is no certificate to read");
    let config = parse(&format!("{KEYS_ONLY}advertise = {{ server = \"ntp-1.example.net\" }}")).unwrap();
    assert!(config.listen.is_empty() && config.exchange().is_some());
    assert_eq!(config.reference, Reference::KERNEL);
    assert_eq!(config.files().len(), 2);
}

#[test]
fn host_without_key_exchange_has_nothing_that_says_how_keys_are_exchanged() {
    for (line, key) in [
        ("certificate-chain = \"/c\"", "nts.certificate-chain"),
        ("private-key = \"/k\"", "nts.private-key"),
        ("ke-workers = 0", "nts.ke-workers"),
        ("ke-priority = \"fair\"", "nts.ke-priority"),
        ("ke-limits = {}", "nts.ke-limits"),
        ("advertise = {}", "nts.advertise"),
        ("aeads = [15]", "nts.aeads"),
    ] {
        let parts = [
            "test.toml",
            &format!("{key}: without effect"),
            "nts.ke-listen is empty",
            "remove it, or name an ADDRESS:PORT in nts.ke-listen",
        ];
        assert_names(&format!("{TIME_ONLY}{line}"), &parts);
    }
}

#[test]
fn host_without_time_has_nothing_that_says_how_time_is_served() {
    let advertise = "advertise = { server = \"ntp-1.example.net\" }\n";
    for (line, key) in [
        ("workers = 1", "server.workers"),
        ("batch-size = 1", "server.batch-size"),
        ("engine = \"udp\"", "server.engine"),
        ("refusal = \"kiss\"", "server.refusal"),
        ("interleaved = false", "server.interleaved"),
        ("rate-limit = { burst = 8 }", "server.rate-limit"),
    ] {
        let text = KEYS_ONLY.replace("[nts]", &format!("{line}\n[nts]"));
        let parts = [&format!("{key}: without effect"), "server.listen is empty", "remove it, or name"];
        assert_names(&format!("{text}{advertise}"), &parts);
    }
    for (table, key) in
        [("[symmetric]\nkeys = \"/k\"", "symmetric"), ("[antp]\nenable = true", "antp.enable")]
    {
        let parts = [&format!("{key}: without effect"), "no time is served here", "server.listen"];
        assert_names(&format!("{KEYS_ONLY}{advertise}{table}"), &parts);
    }
    assert!(parse(&format!("{KEYS_ONLY}{advertise}[antp]\nenable = false")).is_ok());
}

#[test]
fn clients_are_sent_to_a_port_that_somebody_answers_on() {
    for advertise in ["", "advertise = {}", "advertise = { port = 123 }"] {
        let parts =
            ["nts.advertise.server: missing", "no time is served here", "advertise = { server = \"ntp-1"];
        assert_names(&format!("{KEYS_ONLY}{advertise}"), &parts);
    }
}

#[test]
fn host_that_does_neither_is_a_mistake() {
    let parts = ["server.listen = \"[]\"", "nothing to listen on", "name at least one ADDRESS:PORT"];
    for text in ["[server]\nlisten = []", "[server]\nlisten = []\n[nts]\nke-listen = []"] {
        assert_names(text, &parts);
    }
}

#[test]
fn certificate_and_key_are_needed_to_exchange_keys() {
    for (line, key) in [("", "nts.certificate-chain"), ("certificate-chain = \"/c\"", "nts.private-key")] {
        assert_names(&format!("[nts]\n{line}"), &[&format!("{key}: missing"), "ke-listen = []"]);
    }
}
