//! Time under symmetric keys: between chrony and us in both directions, as users see it, and as the load tester counts
//! it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use authentick_lab::corrupt::{Corrupt, Damage};
use authentick_lab::peers::Chrony;
use authentick_report::load::{Cause, LoadRecord};

use crate::lab::{Changed, Lab, Relay, Server, authentick, free_port, start, text, wait_for};

/// A key of each type that chrony knows too, and then those that it does not; one of GMAC has a salt.
const KEYS: [(u32, &str, &str); 13] = [
    (1, "MD5", "HEX:000102030405060708090A0B0C0D0E0F"),
    (2, "SHA1", "HEX:000102030405060708090A0B0C0D0E0F10111213"),
    (3, "AES128", "HEX:000102030405060708090A0B0C0D0E0F"),
    (4, "AES256", "HEX:000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"),
    (5, "SHA256", "HEX:000102030405060708090A0B0C0D0E0F"),
    (6, "SHA384", "HEX:000102030405060708090A0B0C0D0E0F"),
    (7, "SHA512", "HEX:000102030405060708090A0B0C0D0E0F"),
    (8, "HMAC-MD5", "HEX:000102030405060708090A0B0C0D0E0F"),
    (9, "HMAC-SHA224", "HEX:000102030405060708090A0B0C0D0E0F"),
    (10, "GMAC128", "HEX:000102030405060708090A0B0C0D0E0F"),
    (11, "GMAC128", "HEX:000102030405060708090A0B0C0D0E0F:01020304"),
    (12, "GMAC-SIV128", "HEX:000102030405060708090A0B0C0D0E0F"),
    (13, "POLY1305", "HEX:000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"),
];

const EVERYTHING: &str = "allow-legacy = true\nallow-experimental = true";

/// The same for clients.
const EVERY_TYPE: [&str; 2] = ["--allow-legacy", "--allow-experimental"];

/// Writes a key file of those of `keys`, each with its octets passed through `change`.
fn key_file(lab: &Lab, name: &str, keys: &[(u32, &str, &str)], change: impl Fn(&str) -> String) -> PathBuf {
    let lines: String =
        keys.iter().map(|(id, kind, octets)| format!("{id} {kind} {}\n", change(octets))).collect();
    let file = lab.path().join(name);
    std::fs::write(&file, lines).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    file
}

fn all_keys(lab: &Lab) -> PathBuf {
    key_file(lab, "keys", &KEYS, str::to_owned)
}

/// Keys under the same identifiers, and other octets.
fn wrong(octets: &str) -> String {
    octets.replace("HEX:00", "HEX:FF")
}

/// Those that chrony can read.
fn chronys(lab: &Lab, change: impl Fn(&str) -> String) -> PathBuf {
    key_file(lab, "chrony.keys", &KEYS[..7], change)
}

fn serve_with(lab: &Lab, keys: &Path, switches: &str) -> Server {
    start(&lab.config("", &format!("[symmetric]\nkeys = {keys:?}\n{switches}")))
}

fn query(server: &str, keys: &Path, id: u32, more: &[&str]) -> Output {
    let id = id.to_string();
    let arguments = ["query", server, "--auth", "mac", "--keys", keys.to_str().unwrap(), "--key-id", &id];
    authentick([&arguments[..], &EVERY_TYPE, more].concat())
}

fn load(server: &str, keys: &Path, id: u32, more: &[&str]) -> (Output, Option<LoadRecord>) {
    let id = id.to_string();
    let arguments = ["load", "mac", server, "--keys", keys.to_str().unwrap(), "--key-id", &id, "--json"];
    let output = authentick([&arguments[..], &EVERY_TYPE, &["--unpinned"], more].concat());
    let printed = String::from_utf8_lossy(&output.stdout);
    let line = printed.lines().find(|line| line.starts_with('{'));
    let record = line.map(|line| LoadRecord::from_json(line).unwrap());
    (output, record)
}

/// A counter of a key.
fn uses(server: &Server, id: u32, name: &str) -> f64 {
    let kind = KEYS.iter().find(|key| key.0 == id).unwrap().1;
    server.metric(&format!("ntp_symmetric_key_{name}_total{{key=\"{id}\",type=\"{kind}\"}}"))
}

#[test]
fn chrony_takes_time_from_us_under_every_key_that_it_knows() {
    let Some(chrony) = Chrony::find() else { return };
    let lab = Lab::new();
    let server = serve_with(&lab, &all_keys(&lab), EVERYTHING);
    let keys = chronys(&lab, str::to_owned);
    for (index, (id, kind, _)) in KEYS[..7].iter().enumerate() {
        // From SHA-256 on chrony asks in version 3, with the whole digest, unless it is told otherwise.
        for (turn, version) in ["", "version 4"].iter().enumerate() {
            let source =
                format!("server 127.0.0.1 port {} iburst maxsamples 1 key {id} {version}", server.ntp.port());
            let output = chrony.ask_once(&lab, &format!("keyfile {}\n{source}", keys.display()));
            assert!(output.status.success(), "{kind} {version}: {}", text(&output));
            assert!(text(&output).contains("System clock wrong by"), "{}", text(&output));
            let expected = (2 * index + turn) as f64;
            assert!(server.outcome("mac") > expected, "{kind} {version}");
        }
        assert!(uses(&server, *id, "answers") >= 2.0);
    }
    for outcome in ["plain", "mac_nak_tag", "mac_nak_unknown_key", "mac_nak_not_allowed"] {
        assert_eq!(server.outcome(outcome), 0.0, "{outcome}");
    }
}

#[test]
fn chrony_with_a_wrong_key_gets_no_time_from_us() {
    let Some(chrony) = Chrony::find() else { return };
    let lab = Lab::new();
    let server = serve_with(&lab, &all_keys(&lab), EVERYTHING);
    let keys = chronys(&lab, wrong);
    let source = format!("server 127.0.0.1 port {} iburst maxsamples 1 key 3", server.ntp.port());
    let output = chrony.ask_once(&lab, &format!("keyfile {}\n{source}", keys.display()));
    assert!(!output.status.success(), "{}", text(&output));
    assert!(uses(&server, 3, "wrong_tags") >= 1.0 && uses(&server, 3, "answers") == 0.0);
    assert_eq!((server.outcome("mac"), server.outcome("plain")), (0.0, 0.0));
    assert!(server.outcome("mac_nak_tag") >= 1.0);
}

#[test]
fn we_take_time_from_chrony_under_every_key_that_it_knows_and_none_under_a_wrong_one() {
    let Some(chrony) = Chrony::find() else { return };
    let lab = Lab::new();
    let (port, keys) = (free_port(), chronys(&lab, str::to_owned));
    let lines = format!("local stratum 1\nallow\nport {port}\nkeyfile {}", keys.display());
    let mut daemon = chrony.daemon(&lab, &lines);
    daemon.process.wait_for_line("chronyd version");
    let server = format!("127.0.0.1:{port}");
    for (id, kind, _) in &KEYS[..7] {
        let output = wait_for("an authenticated answer", || {
            Some(query(&server, &keys, *id, &["--timeout", "1"])).filter(|output| output.status.success())
        });
        assert!(text(&output).contains(&format!("MAC, {kind}, key {id}")), "{}", text(&output));
    }
    // chrony is silent where RFC 5905 asks for a crypto-NAK.
    let wrong_keys = key_file(&lab, "wrong", &KEYS, wrong);
    for (id, ..) in &KEYS[..7] {
        assert_eq!(query(&server, &wrong_keys, *id, &["--timeout", "0.3"]).status.code(), Some(1));
    }
    let (output, record) = load(&server, &keys, 3, &["--closed", "4", "--step-seconds", "0.5"]);
    let tally = &record.unwrap_or_else(|| panic!("{}", text(&output))).steps[0].tally;
    assert!(tally.sent > 20 && tally.answered == tally.sent, "{:?}", tally.causes);
}

#[test]
fn every_algorithm_is_served_asked_and_named() {
    let lab = Lab::new();
    let keys = all_keys(&lab);
    let server = serve_with(&lab, &keys, EVERYTHING);
    let address = server.ntp.to_string();
    for (id, kind, _) in KEYS {
        let output = query(&address, &keys, id, &[]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert!(
            text(&output).contains(&format!("authenticated  MAC, {kind}, key {id}\n")),
            "{}",
            text(&output)
        );
        let warned = String::from_utf8_lossy(&output.stderr).contains("warning: key");
        let free = ["AES128", "AES256", "HMAC-MD5", "HMAC-SHA224"].contains(&kind);
        assert_eq!(warned, !free, "{}", text(&output));
        let output = query(&address, &keys, id, &["--json", "--count", "2", "--interval", "0"]);
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&result["scheme"], &result["exit"]), (&"mac".into(), &0.into()));
        let authentication = serde_json::json!({ "algorithm": kind, "key_id": id });
        assert_eq!(result["authentication"], authentication);
        assert_eq!(uses(&server, id, "answers"), 3.0);
    }
    assert_eq!(server.outcome("mac"), 3.0 * KEYS.len() as f64);
}

#[test]
fn wrong_unknown_and_refused_keys_are_told_apart_and_end_with_2() {
    let lab = Lab::new();
    let keys = all_keys(&lab);
    let server = serve_with(&lab, &keys, "");
    let address = server.ntp.to_string();
    let wrong_keys = key_file(&lab, "wrong", &KEYS, wrong);
    let unknown = key_file(&lab, "unknown", &[(99, "AES128", KEYS[2].2)], str::to_owned);
    for (file, id, code, outcome) in [
        (&wrong_keys, 3, "CRYP", "mac_nak_tag"),
        (&unknown, 99, "NKEY", "mac_nak_unknown_key"),
        (&keys, 1, "NKEY", "mac_nak_not_allowed"),
        (&keys, 10, "NKEY", "mac_nak_not_allowed"),
    ] {
        let before = server.outcome(outcome);
        let output = query(&address, file, id, &["--timeout", "0.3"]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        let said = format!("crypto-NAK, kiss code {code}");
        assert!(text(&output).contains(&said), "{}", text(&output));
        assert_eq!(server.outcome(outcome), before + 1.0);
    }
    assert_eq!((uses(&server, 3, "wrong_tags"), uses(&server, 1, "not_allowed")), (1.0, 1.0));
    assert_eq!(server.outcome("mac"), 0.0);
    // The log says at the start what is not served, and why.
    assert!(server.process.log().contains("RFC 8573 replaces it with AES-CMAC"), "{}", server.process.log());
}

#[test]
fn answer_whose_tag_was_changed_ends_with_2_and_names_the_check() {
    let lab = Lab::new();
    let keys = all_keys(&lab);
    let server = serve_with(&lab, &keys, "");
    for (change, check) in [
        (changed(|response| *response.last_mut().unwrap() ^= 1), "tag: wrong authentication tag"),
        (changed(|response| response[1] = 2), "tag: wrong authentication tag"),
        (changed(|response| response.truncate(48)), "authenticator: missing"),
        (changed(|response| response[51] ^= 4), "key id: tagged with key 7"),
    ] {
        let relay = Relay::on_loopback(0, server.ntp, Changed(change));
        let output = query(&relay.address().to_string(), &keys, 3, &["--timeout", "0.3"]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(check), "{}", text(&output));
    }
}

type Change = Box<dyn FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send>;

fn changed(change: fn(&mut Vec<u8>)) -> Change {
    Box::new(move |mut response| {
        change(&mut response);
        vec![response]
    })
}

#[test]
fn one_corrupted_tag_in_a_thousand_is_found_under_a_symmetric_key() {
    let lab = Lab::new();
    let keys = all_keys(&lab);
    let server = serve_with(&lab, &keys, "");
    let relay = Relay::on_loopback(0, server.ntp, Corrupt::new(Damage::Tag, 1000));
    // A closed loop: on a machine that does other things besides, nothing falls behind in it.
    let arguments = ["--closed", "64", "--step-seconds", "3", "--timeout", "0.5"];
    let (output, record) = load(&relay.address().to_string(), &keys, 3, &arguments);
    let record = record.unwrap_or_else(|| panic!("{}", text(&output)));
    assert_eq!((record.scheme.as_str(), record.authentication.as_str()), ("mac", "AES128"));
    let tally = &record.steps[0].tally;
    assert_eq!(relay.counts().lost, 0);
    let (seen, damaged) = relay.with(|corrupt| (corrupt.seen(), corrupt.damaged()));
    assert_eq!(tally.sent + 1, seen);
    assert!(damaged >= 2 && damaged == seen / 1000, "{damaged} of {seen}");
    assert_eq!((tally.invalid, tally.count_of(Cause::BadTag)), (damaged, damaged));
    assert_eq!((tally.answered, tally.lost), (tally.sent - damaged, 0));
}

#[test]
fn load_under_every_algorithm_is_answered_and_crypto_naks_are_counted_apart() {
    let lab = Lab::new();
    let keys = all_keys(&lab);
    let server = serve_with(&lab, &keys, EVERYTHING);
    let address = server.ntp.to_string();
    for (id, kind, _) in KEYS {
        let (output, record) = load(&address, &keys, id, &["--closed", "4", "--step-seconds", "0.3"]);
        let record = record.unwrap_or_else(|| panic!("{}", text(&output)));
        let step = &record.steps[0];
        assert_eq!(record.authentication, kind);
        let (sent, answered) = (step.tally.sent, step.tally.answered);
        assert!(sent > 20 && answered == sent, "{kind}: {sent} {:?}", step.tally.causes);
        let digest_size = if kind.starts_with("SHA") { 20 } else { 16 };
        let nonce_size = if id >= 10 { 16 } else { 0 };
        assert_eq!(step.request_size, 48 + nonce_size + 4 + digest_size, "{kind}");
        assert_eq!(uses(&server, id, "answers"), (sent + 1) as f64);
    }
    // The first request is good, so that the load begins; then the key is another one.
    let mut count = 0;
    let nak = move |mut response: Vec<u8>| {
        count += 1;
        if count > 1 {
            response.truncate(48);
            response.extend([0; 4]);
        }
        vec![response]
    };
    let relay = Relay::on_loopback(0, server.ntp, Changed(nak));
    let arguments = ["--closed", "4", "--step-seconds", "0.5", "--timeout", "0.2"];
    let (output, record) = load(&relay.address().to_string(), &keys, 3, &arguments);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let record = record.unwrap();
    let tally = &record.steps[0].tally;
    assert!(tally.sent >= 4 && tally.answered == 0, "{tally:?}");
    assert_eq!(tally.causes, [(Cause::CryptoNak, tally.sent)].into());
}

#[test]
fn key_arguments_that_make_no_sense_name_what_to_do() {
    let lab = Lab::new();
    let keys = all_keys(&lab);
    let file = keys.to_str().unwrap();
    let loose = key_file(&lab, "loose", &KEYS[2..3], str::to_owned);
    std::fs::set_permissions(&loose, PermissionsExt::from_mode(0o644)).unwrap();
    let expired = lab.path().join("expired");
    let note = "# authentick: key 3 made 2020-01-01T00:00:00Z replaced-by 4 retires 2020-02-01T00:00:00Z\n";
    std::fs::write(&expired, format!("{note}3 AES128 {}\n4 AES128 {}\n", KEYS[2].2, wrong(KEYS[2].2)))
        .unwrap();
    std::fs::set_permissions(&expired, PermissionsExt::from_mode(0o600)).unwrap();
    let cases: [(&[&str], i32, &str); 7] = [
        (&["--auth", "mac"], 64, "--keys"),
        (&["--auth", "mac", "--keys", file], 64, "--key-id"),
        (&["--auth", "plain", "--keys", file, "--key-id", "3"], 64, "--auth mac"),
        (&["--auth", "mac", "--keys", file, "--key-id", "0"], 64, "0 is not in"),
        (&["--auth", "mac", "--keys", file, "--key-id", "99"], 78, "name another one with --key-id: 1, 2, 3"),
        (&["--auth", "mac", "--keys", loose.to_str().unwrap(), "--key-id", "3"], 78, "chmod 600"),
        (&["--auth", "mac", "--keys", expired.to_str().unwrap(), "--key-id", "3"], 78, "use --key-id 4"),
    ];
    for (arguments, code, part) in cases {
        let output = authentick([&["query", "127.0.0.1:9"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains(part), "{part} is not in {}", text(&output));
    }
    let output = authentick(["load", "mac", "127.0.0.1:9", "--keys", file, "--key-id", "99"]);
    assert_eq!(output.status.code(), Some(78), "{}", text(&output));
    let output = authentick(["query", "127.0.0.1:9", "--auth", "plain", "--allow-legacy"]);
    assert_eq!(output.status.code(), Some(64), "{}", text(&output));
    assert!(text(&output).contains("--auth mac"), "{}", text(&output));
}

/// As `serve` does: the types that are worse than AES-CMAC are used by who asks for them.
#[test]
fn key_of_a_legacy_or_experimental_type_needs_a_switch_that_the_message_names() {
    let lab = Lab::new();
    let keys = all_keys(&lab);
    let server = serve_with(&lab, &keys, EVERYTHING);
    let (address, file) = (server.ntp.to_string(), keys.to_str().unwrap());
    for (id, kind, _) in KEYS {
        let switch = match kind {
            "AES128" | "AES256" | "HMAC-MD5" | "HMAC-SHA224" => None,
            _ if kind.contains("MD5") || kind.starts_with("SHA") => Some(("--allow-legacy", "RFC 8573")),
            _ => Some(("--allow-experimental", "nonce")),
        };
        let id = id.to_string();
        let key = ["--keys", file, "--key-id", &id];
        let query = [&["query", &address, "--auth", "mac"], &key[..]].concat();
        let load =
            [&["load", "mac", &address, "--unpinned", "--closed", "1", "--step-seconds", "0.1"], &key[..]]
                .concat();
        let Some((switch, why)) = switch else {
            assert_eq!(authentick(query).status.code(), Some(0), "{kind}");
            continue;
        };
        for command in [query, load] {
            let output = authentick(command.clone());
            assert_eq!(output.status.code(), Some(78), "{kind}: {}", text(&output));
            for part in [&format!("line {id}: key {id} is for {kind}, which needs {switch}"), why] {
                assert!(text(&output).contains(part), "{part} is not in {}", text(&output));
            }
            let other = EVERY_TYPE.into_iter().find(|other| *other != switch).unwrap();
            let output = authentick([&command[..], &[other]].concat());
            assert_eq!(output.status.code(), Some(78), "{kind} {other}: {}", text(&output));
        }
    }
    // Nothing was sent under any of them.
    assert_eq!(server.outcome("mac"), 4.0);
}
