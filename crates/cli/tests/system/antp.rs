//! `authentick query --auth antp` against `authentick serve`, and against whoever stands between them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, SystemTime};

use authentick_lab::antp::SUITES;
use authentick_lab::corrupt::{Middle, Tap};
use rcgen::{CertificateParams, KeyUsagePurpose};
use serde_json::Value;

use crate::lab::{Changed, Lab, Relay, Server, authentick, free_port, serve, start, text};

/// A server of ANTP, and a client's state directory.
pub(crate) struct Bench {
    pub(crate) lab: Lab,
    server: Server,
}

impl Bench {
    fn new(suites: &[&str]) -> Self {
        Bench::with(suites, |_| {})
    }

    /// With certificates that are changed before they are signed.
    fn with(suites: &[&str], change: impl Fn(&mut CertificateParams)) -> Self {
        Bench::of(Lab::new(), suites, change)
    }

    /// The same, of a lab that is there already.
    pub(crate) fn of(lab: Lab, suites: &[&str], change: impl Fn(&mut CertificateParams)) -> Self {
        suites.iter().for_each(|suite| lab.antp_identity(suite, &change));
        let server = start(&lab.antp_config(suites, "", ""));
        Bench { lab, server }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.lab.path().join("client")
    }

    /// Runs `query` with these arguments and the bench's state directory.
    pub(crate) fn run(&self, address: SocketAddr, arguments: &[&str]) -> Output {
        let (address, state) = (address.to_string(), self.state());
        let state = state.to_str().unwrap();
        authentick([&["query", &address, "--state-directory", state], arguments].concat())
    }

    /// Asks the server at `address` with ANTP, trusting the lab's authority.
    fn ask_at(&self, address: SocketAddr, arguments: &[&str]) -> Output {
        let ca = self.lab.ca();
        self.run(address, &[&["--auth", "antp", "--ca", ca.to_str().unwrap()], arguments].concat())
    }

    pub(crate) fn ask(&self, arguments: &[&str]) -> Output {
        self.ask_at(self.server.ntp, arguments)
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.ask(&[arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Somebody between clients and the server.
    fn relay<M: Middle>(&self, middle: M) -> Relay<M> {
        Relay::on_loopback(free_port(), self.server.ntp, middle)
    }

    fn relay_changed<F>(&self, change: F) -> Relay<Changed<F>>
    where
        F: FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send + 'static,
    {
        self.relay(Changed(change))
    }
}

/// The command ended with exit 2, says why, and tells no time.
#[track_caller]
pub(crate) fn assert_rejected(output: &Output, part: &str) {
    assert_eq!(output.status.code(), Some(2), "{part}: {}", text(output));
    assert!(text(output).contains(part), "{part} is not in {}", text(output));
    assert!(!text(output).contains("offset"), "time without authentication: {}", text(output));
}

/// The type of the last extension field of a message, which says what it is: 2 is m2, 4 is m4, 6 is m6.
pub(crate) fn kind(datagram: &[u8]) -> u8 {
    let mut at = 48;
    let mut kind = 0;
    while at + 4 <= datagram.len() {
        kind = datagram[at + 1];
        at += usize::from(u16::from_be_bytes([datagram[at + 2], datagram[at + 3]])).max(4);
    }
    kind
}

#[test]
fn every_suite_tells_time_in_both_modes_and_who_vouched() {
    let bench = Bench::new(&SUITES);
    for (kem, suite) in SUITES.iter().zip(["P-256 ECIES-KEM", "PKCS#1 v1.5", "OAEP-SHA256", "X25519"]) {
        for (option, mode) in [(&[][..], "inline tag"), (&["--separate-tag"], "separate tag")] {
            let output = bench.ask(&[&["--kem", kem], option].concat());
            assert_eq!(output.status.code(), Some(0), "{kem}: {}", text(&output));
            let phases = ["negotiation", "certificate check", "encapsulation", "key exchange", "time sync"];
            let parts = ["CN=ntp.test", "authentick test authority", "error at most", "E is 1", "(TEST)"];
            for part in [suite, mode].iter().chain(&phases).chain(&parts) {
                assert!(text(&output).contains(part), "{kem}: {part} is not in {}", text(&output));
            }
        }
    }
}

#[test]
fn early_packets_come_over_both_families_whose_headers_differ_in_size() {
    let lab = Lab::new();
    lab.antp_identity("ecdh", |_| {});
    let server = start(&lab.antp_config(&["ecdh"], "listen = [\"127.0.0.1:0\", \"[::1]:0\"]", ""));
    let log = server.process.log();
    let addresses: Vec<SocketAddr> =
        log.lines().filter_map(|line| line.split_once("serving time on ")?.1.parse().ok()).collect();
    assert!(addresses.len() == 2 && addresses.iter().any(SocketAddr::is_ipv6), "{log}");
    let bench = Bench { lab, server };
    for address in addresses {
        let output = bench.ask_at(address, &["--separate-tag", "--count", "2", "--interval", "0", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{address}: {}", text(&output));
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        for exchange in result["exchanges"].as_array().unwrap() {
            assert_eq!(exchange["early"], true, "{address}: {exchange}");
        }
    }
}

#[test]
fn json_has_every_phase_and_an_error_bound_of_half_the_delay() {
    let bench = Bench::new(&["ecdh"]);
    for (option, mode, is_early) in [(&[][..], "inline", false), (&["--separate-tag"], "separate", true)] {
        let result = bench.json(&[option, &["--count", "3", "--interval", "0.01"]].concat());
        assert_eq!((&result["scheme"], &result["exit"]), (&"antp".into(), &0.into()));
        let authentication = &result["authentication"];
        assert_eq!((&authentication["suite"], &authentication["tag"]), (&2.into(), &mode.into()));
        assert!(authentication["chain_size"].as_u64().unwrap() > 300);
        let timing = ["negotiation_ns", "certificate_check_ns", "encapsulation_ns", "key_exchange_ns"];
        for phase in timing {
            assert!(result["timing"][phase].as_u64().unwrap() > 0, "{phase}");
        }
        let exchanges = result["exchanges"].as_array().unwrap();
        assert_eq!(exchanges.len(), 3);
        for exchange in exchanges {
            let ns = |name: &str| exchange[name].as_i64().unwrap();
            // A little more than half the delay: what the clock may have been set by unnoticed.
            let unnoticed = ns("error_max_ns") - ns("delay_ns") / 2;
            assert!(ns("delay_ns") > 0 && (0..5_000_000).contains(&unnoticed), "{exchange}");
            assert!(
                ns("offset_ns").abs() <= ns("error_max_ns"),
                "one clock cannot differ from itself by more"
            );
            assert_eq!((ns("round_trip_max_ns"), &exchange["early"]), (1_000_000_000, &is_early.into()));
        }
    }
}

#[test]
fn chain_is_sent_once_and_then_held_in_one_round_of_176_octets() {
    let bench = Bench::new(&["ecdh", "rsa"]);
    let relay = bench.relay(Tap::default());
    let mut seen = 0;
    let mut sizes = |kem: &str| {
        let output = bench.ask_at(relay.address(), &["--kem", kem, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let responses = relay.with(|tap| tap.responses().to_vec());
        let negotiation = responses[seen..].iter().filter(|record| kind(&record.octets) == 2);
        let sizes: Vec<usize> = negotiation.map(|record| record.octets.len()).collect();
        seen = responses.len();
        assert_eq!(result["authentication"]["negotiation_round_count"], sizes.len());
        (sizes, result["authentication"]["chain_held"].as_bool().unwrap())
    };
    let (first, is_held) = sizes("ecdh");
    assert!(!is_held && first.iter().all(|&size| size > 176), "{first:?}");
    assert_eq!(sizes("ecdh"), (vec![176], true));
    // Another chain than the one that is held: a wasted round, and then all of it.
    let (other, is_held) = sizes("rsa");
    assert!(!is_held && other.len() >= 2 && other[1..].iter().all(|&size| size > 176), "{other:?}");
    assert_eq!(sizes("rsa"), (vec![176], true));
}

#[test]
fn wrong_certificates_are_exit_2_and_name_the_check() {
    let good = Bench::new(&["ecdh"]);
    assert_rejected(&good.ask(&["--server-name", "other.test"]), "certificate check: certificate name");
    let stranger = Lab::new();
    let ca = stranger.ca();
    let output = good.run(good.server.ntp, &["--auth", "antp", "--ca", ca.to_str().unwrap()]);
    assert_rejected(&output, "certificate check: certificate");
    let rejected = |change: fn(&mut CertificateParams), part: &str| {
        assert_rejected(&Bench::with(&["ecdh"], change).ask(&[]), part);
    };
    rejected(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1), "certificate validity: expired");
    rejected(|params| params.not_before = rcgen::date_time_ymd(2090, 1, 1), "validity: not yet valid");
    rejected(|params| params.key_usages = vec![KeyUsagePurpose::DigitalSignature], "certificate usage");
}

#[test]
fn certificate_that_ended_yesterday_is_within_the_slack_which_is_said() {
    let yesterday = SystemTime::now() - Duration::from_secs(86_400);
    let date = humantime::format_rfc3339_seconds(yesterday).to_string();
    let part = |range: std::ops::Range<usize>| date[range].parse::<u16>().unwrap();
    let (year, month, day) = (i32::from(part(0..4)), part(5..7) as u8, part(8..10) as u8);
    let bench = Bench::with(&["ecdh"], |params| params.not_after = rcgen::date_time_ymd(year, month, day));
    let output = bench.ask(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("trust: a certificate has expired"));
}

#[test]
fn time_set_by_hand_replaces_the_clock_for_certificates_alone() {
    let bench = Bench::with(&["ecdh"], |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let output = bench.ask(&["--validate-at", "2019-06-01T00:00:00Z"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("trust: certificate dates are judged at 2019-06-01")
    );
    assert_rejected(&bench.ask(&["--validate-at", "2020-01-02T00:00:00Z"]), "validity: expired");
}

#[test]
fn certificate_is_not_judged_by_an_earlier_time_than_a_server_has_vouched_for() {
    let bench = Bench::with(&["ecdh"], |params| params.not_after = rcgen::date_time_ymd(2080, 1, 1));
    let result = bench.json(&[]);
    assert_eq!(result["exit"], 0);
    let file = bench.state().join("antp-time");
    let saved = std::fs::read_to_string(&file).unwrap();
    let saved = humantime::parse_rfc3339(saved.trim()).unwrap();
    assert!(SystemTime::now().duration_since(saved).unwrap() < Duration::from_secs(60), "{saved:?}");
    std::fs::write(&file, "2090-01-01T00:00:00Z\n").unwrap();
    let output = bench.ask(&[]);
    assert_rejected(&output, "certificate validity: expired");
    std::fs::write(&file, "long ago").unwrap();
    let output = bench.ask(&[]);
    assert_eq!(output.status.code(), Some(78), "{}", text(&output));
    assert!(text(&output).contains("antp-time") && text(&output).contains("remove it"), "{}", text(&output));
}

#[test]
fn several_servers_vouch_for_the_time_at_which_dates_are_judged() {
    let date = |year| rcgen::date_time_ymd(year, 1, 1);
    let [first, second, third] = [(); 3].map(|()| Bench::new(&["ecdh"]));
    let long_over = Bench::with(&["ecdh"], |params| {
        (params.not_before, params.not_after) = (date(2019), date(2020));
    });
    let ca = first.lab.path().join("all.pem");
    let authorities =
        [&first, &second, &third, &long_over].map(|bench| std::fs::read_to_string(bench.lab.ca()).unwrap());
    std::fs::write(&ca, authorities.concat()).unwrap();
    let ask = |asked: &Bench, others: [&Bench; 2], ca: PathBuf| {
        let [one, two] = others.map(|other| other.server.ntp.to_string());
        let ca = ca.to_str().unwrap().to_owned();
        first
            .run(asked.server.ntp, &["--auth", "antp", "--ca", &ca, "--tentative", &one, "--tentative", &two])
    };
    let output = ask(&first, [&second, &third], ca.clone());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("trust: tentative: "), "{}", text(&output));
    // Its dates are passed over until there is a time, and then they count.
    assert_rejected(&ask(&long_over, [&second, &third], ca.clone()), "tentative trust: 127.0.0.1");
    let output = ask(&second, [&third, &long_over], ca.clone());
    assert_rejected(&output, "certificate validity: expired");
    assert!(text(&output).contains(&format!("{} at 20", long_over.server.ntp)), "{}", text(&output));
    assert_rejected(&ask(&first, [&second, &second], ca), "have one key, and so one say");
    assert_rejected(&ask(&first, [&second, &third], first.lab.ca()), "certificate check: ");
}

#[test]
fn pinned_certificate_or_key_counts_and_nothing_else_does() {
    // Neither authority, name nor dates would do.
    let bench = Bench::with(&["ecdh"], |params| {
        *params = CertificateParams::new(vec!["other.test".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    });
    let (chain, key) = (bench.lab.antp_chain("ecdh"), bench.lab.path().join("public.pem"));
    let pair =
        rcgen::KeyPair::from_pem(&std::fs::read_to_string(bench.lab.antp_key("ecdh")).unwrap()).unwrap();
    std::fs::write(&key, pair.public_key_pem()).unwrap();
    for (pin, what) in [(&chain, "pinned certificate"), (&key, "pinned key")] {
        let output = bench.run(bench.server.ntp, &["--auth", "antp", "--pin", pin.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains(what), "{}", text(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains("are not checked"), "{}", text(&output));
    }
    let (ca, wrong) = (bench.lab.ca(), bench.lab.path().join("wrong.pem"));
    std::fs::write(&wrong, rcgen::KeyPair::generate().unwrap().public_key_pem()).unwrap();
    for (pin, what) in [(&ca, "pinned certificate: "), (&wrong, "pinned key: ")] {
        let output = bench.run(bench.server.ntp, &["--auth", "antp", "--pin", pin.to_str().unwrap()]);
        assert_rejected(&output, what);
    }
    let private = bench.lab.antp_key("ecdh");
    let output = bench.run(bench.server.ntp, &["--auth", "antp", "--pin", private.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(78), "{}", text(&output));
}

/// One process per place; every bit of every message is tried below the binary, in the protocol's tests.
#[test]
fn flipped_bit_in_any_phase_is_exit_2_and_names_phase_and_check() {
    let bench = Bench::new(&["ecdh"]);
    // The message whose octet is changed, counted from its start or its end; the phase that finds it out.
    let places = [
        (2, 0, "negotiation", "mode"),
        (2, 24, "negotiation", "origin"),
        (2, 72, "negotiation", "chain"),
        (2, -1, "key exchange", "state expired"),
        (4, 24, "key exchange", "origin"),
        (4, 70, "key exchange", "tag"),
        (4, -1, "key exchange", "tag"),
        (6, 1, "time sync", "tag"),
        (6, 32, "time sync", "tag"),
        (6, 47, "time sync", "tag"),
        (6, -1, "time sync", "tag"),
    ];
    for (message, octet, phase, check) in places {
        let relay = bench.relay_changed(move |mut response| {
            if kind(&response) == message {
                let at = if octet < 0 { response.len() - 1 } else { octet as usize };
                response[at] ^= 1;
            }
            vec![response]
        });
        let output = bench.ask_at(relay.address(), &["--timeout", "0.3"]);
        assert_rejected(&output, &format!("{phase}: "));
        assert!(text(&output).contains(check), "m{message} {octet}: {check} is not in {}", text(&output));
    }
}

#[test]
fn stripped_extension_in_any_phase_is_exit_2_and_no_time() {
    let bench = Bench::new(&["ecdh"]);
    for (message, phase) in [(2, "negotiation"), (4, "key exchange"), (6, "time sync")] {
        let relay = bench.relay_changed(move |mut response| {
            if kind(&response) == message {
                response.truncate(48);
            }
            vec![response]
        });
        let output = bench.ask_at(relay.address(), &["--timeout", "0.3"]);
        assert_rejected(&output, &format!("{phase}: no answer passed every check; untagged: "));
    }
}

//= antp#paper-2
#[test]
fn server_without_antp_is_never_fallen_back_to() {
    let (lab, other) = (Lab::new(), Bench::new(&["ecdh"]));
    let plain = serve(&lab);
    assert_rejected(&other.ask_at(plain.ntp, &["--timeout", "0.3"]), "untagged");
    let output = other.run(plain.ntp, &["--auth", "plain"]);
    assert_eq!(output.status.code(), Some(0), "it never spoke ANTP: {}", text(&output));
}

#[test]
fn server_that_has_spoken_antp_is_not_asked_without_until_it_is_forgotten() {
    let bench = Bench::new(&["ecdh"]);
    let plain = |option: &[&str]| bench.run(bench.server.ntp, &[&["--auth", "plain"], option].concat());
    assert_eq!(plain(&[]).status.code(), Some(0));
    bench.json(&[]);
    assert_rejected(&plain(&[]), "--forget-antp");
    assert_rejected(&plain(&["--json"]), "was asked with ANTP before");
    let nts = bench.server.query(&bench.lab, &["--state-directory", bench.state().to_str().unwrap()]);
    assert_eq!(nts.status.code(), Some(0), "NTS is no less: {}", text(&nts));
    let output = plain(&["--forget-antp"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("forgotten"), "{}", text(&output));
    assert_eq!(plain(&[]).status.code(), Some(0));
    bench.json(&[]);
    std::fs::write(bench.state().join("antp-servers"), "not a name\n").unwrap();
    let output = plain(&[]);
    assert_eq!(output.status.code(), Some(78), "{}", text(&output));
    assert!(text(&output).contains("antp-servers") && text(&output).contains("line 1"), "{}", text(&output));
}

/// Loses the first response of each kind.
struct FirstLost(Vec<u8>);

impl Middle for FirstLost {
    fn response(&mut self, response: Vec<u8>, _: SocketAddr) -> Vec<Vec<u8>> {
        let kind = kind(&response);
        if self.0.contains(&kind) {
            return vec![response];
        }
        self.0.push(kind);
        vec![]
    }
}

#[test]
fn what_is_lost_in_any_phase_is_asked_for_again() {
    let bench = Bench::new(&["ecdh"]);
    let relay = bench.relay((Tap::default(), FirstLost(vec![])));
    let output = bench.ask_at(relay.address(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let lost = relay.with(|(_, lost)| lost.0.clone());
    assert_eq!(lost, [2, 4, 6]);
    let requests = relay.with(|(tap, _)| tap.requests().to_vec());
    for kind_of_request in [1, 3, 5] {
        let same: Vec<_> = requests.iter().filter(|record| kind(&record.octets) == kind_of_request).collect();
        assert!(same.len() >= 2 && same[0].octets[40..48] != same[1].octets[40..48], "a new token each time");
    }
}

#[test]
fn answer_that_takes_longer_than_the_bound_is_exit_2() {
    let bench = Bench::new(&["ecdh"]);
    let relay = bench.relay_changed(|response| {
        if kind(&response) == 6 {
            std::thread::sleep(Duration::from_millis(60));
        }
        vec![response]
    });
    let output = bench.ask_at(relay.address(), &["--round-trip-max", "0.05", "--timeout", "0.5"]);
    assert_rejected(&output, "time sync: no answer passed every check; round trip: ");
    assert_eq!(bench.ask_at(relay.address(), &["--round-trip-max", "0.5"]).status.code(), Some(0));
}

#[test]
fn silence_is_exit_1_and_wrong_use_exit_64() {
    let bench = Bench::new(&["ecdh"]);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let output = bench.ask_at(silent.local_addr().unwrap(), &["--timeout", "0.2"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("negotiation: no answer"), "{}", text(&output));
    for arguments in [
        &["--kem", "ecdh"][..],
        &["--auth", "plain", "--separate-tag"],
        &["--auth", "mac", "--keys", "/k", "--key-id", "1", "--pin", "/p"],
        &["--auth", "antp", "--kem", "dh"],
        &["--auth", "antp", "--round-trip-max", "0"],
        &["--auth", "antp", "--pin", "/p", "--ca", "/c"],
        &["--auth", "antp", "--validate-at", "yesterday"],
        &["--auth", "antp", "--tentative", "ntp.test"],
        &["--auth", "plain", "--ocsp"],
        &["--auth", "antp", "--ocsp", "https://ocsp.test/"],
        &["--auth", "antp", "--ocsp", "ocsp.test"],
        &["--auth", "antp", "--ocsp", "--pin", "/p"],
        &["--auth", "antp", "--ocsp", "--validate-at", "2030-01-01T00:00:00Z"],
        &["--auth", "antp", "--ocsp", "--tentative", "a.test", "--tentative", "b.test"],
        &["--auth", "antp", "--keys", "/k", "--key-id", "1"],
    ] {
        let output = bench.run(bench.server.ntp, arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {}", text(&output));
    }
    // A suite that the server does not have is refused by an error that nobody vouches for.
    assert_rejected(&bench.ask(&["--kem", "rsa", "--timeout", "0.3"]), "no common suite");
}
