//! `authentick query` as users and scripts see it: what it prints, and which code it ends with.

use std::net::UdpSocket;
use std::time::Duration;

use authentick_lab::exchanges::{Behaviour, KeServer};
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::relay::{Link, Path};

use crate::lab::{
    Changed, Lab, Relay, Server, authentick, free_port, has_measured, program, serve, start, text,
};

/// A server whose key exchange sends clients to a relay, which changes responses.
fn behind_relay<F>(lab: &Lab, change: F) -> (Server, Relay<Changed<F>>)
where
    F: FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send + 'static,
{
    let port = free_port();
    let server = start(&lab.config("", &format!("advertise = {{ port = {port} }}")));
    let relay = Relay::on_loopback(port, server.ntp, Changed(change));
    (server, relay)
}

//= rfc5905#7.3-6
#[test]
fn authenticated_answer_names_who_vouched_and_how() {
    let lab = Lab::new();
    let server = serve(&lab);
    for (aead, name) in
        [("15", "AES-SIV-CMAC-256"), ("16", "-384"), ("17", "-512"), ("30", "AES-128-GCM-SIV")]
    {
        let output = server.query(&lab, &["--aead", aead]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        for part in
            [name, "CN=ntp.test", "authentick test authority", "stratum        1 (TEST)", "TLS handshake"]
        {
            assert!(text(&output).contains(part), "{part} is not in {}", text(&output));
        }
    }
    assert_eq!(server.outcome("nts"), 4.0);
}

/// An authority signs what it is asked to, and whoever made the certificate chose its text.
#[test]
fn names_in_a_certificate_do_not_steer_the_terminal() {
    let hostile = "CN\u{1b}[2J\u{1b}]0;title\u{7}\nauthenticated  no\u{9b}31m\r";
    let is_harmless = |octets: &[u8]| {
        let text = String::from_utf8_lossy(octets);
        assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
        assert!(!text.contains("\nauthenticated  no"), "{text}");
        text.into_owned()
    };
    let change = |params: &mut rcgen::CertificateParams| {
        params.distinguished_name.push(rcgen::DnType::CommonName, hostile);
    };
    let lab = Lab::with_certificate(change);
    let mut server = serve(&lab);
    for arguments in [&[][..], &["--json"]] {
        let output = server.query(&lab, arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert!(is_harmless(&output.stdout).contains("]0;title"), "{}", text(&output));
        is_harmless(&output.stderr);
    }
    // What is wrong with the name of the server is said with the names of the certificate.
    let output = server.query(&lab, &["--server-name", "other.test"]);
    assert_ne!(output.status.code(), Some(0));
    is_harmless(&output.stderr);
    lab.renew(change);
    server.process.signal("-HUP");
    let line = server.process.wait_for_line("certificate read again");
    assert!(line.contains("]0;title"), "{line}");
    is_harmless(server.process.log().as_bytes());
}

#[test]
fn both_families_are_served_and_asked() {
    let lab = Lab::new();
    let server = start(&lab.config("listen = [\"[::1]:0\"]", "ke-listen = [\"[::1]:0\"]\naeads = [15]"));
    let (ca, ke) = (lab.ca(), server.ke.port().to_string());
    let output = authentick(["query", "::1", "--ca", ca.to_str().unwrap(), "--ke-port", &ke]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let output = authentick(["query", &server.ntp.to_string(), "--auth", "plain"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn json_holds_everything_with_units() {
    let lab = Lab::new();
    let server = serve(&lab);
    let output = server.query(&lab, &["--json", "--count", "3", "--interval", "0.01"]);
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["exit"], 0);
    assert_eq!(result["exchanges"].as_array().unwrap().len(), 3);
    assert_eq!(result["authentication"]["aead"], 30);
    let exchange = &result["exchanges"][0];
    let ns = |name: &str| exchange[name].as_i64().unwrap();
    assert!(
        ns("offset_ns").abs() < 100_000_000 && ns("delay_ns") > 0 && ns("round_trip_ns") >= ns("delay_ns")
    );
    assert!(result["timing"]["tls_handshake_ns"].as_u64().unwrap() > 0);
}

#[test]
fn long_path_between_two_hosts_shows_as_delay_and_handshakes_take_round_trips() {
    const ROUND_TRIP_NS: u64 = 40_000_000;
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let link = || Link::delayed(Duration::from_millis(20));
    let path = match Path::new(&hosts, 0, link(), link(), 1) {
        Ok(path) => path,
        Err(skip) => return skip.tell(),
    };
    let (lab, (ntp, ke)) = (Lab::new(), (1123, 14_460));
    let config =
        lab.config(&format!("listen = [\"0.0.0.0:{ntp}\"]"), &format!("ke-listen = [\"0.0.0.0:{ke}\"]"));
    let server = program().serve_on(&hosts, Host::Server, &config);
    let (ca, address) = (lab.ca(), path.server_address().to_string());
    let output = hosts
        .on(Host::Client(0), program().path())
        .args([
            "query",
            &address,
            "--server-name",
            "ntp.test",
            "--ke-port",
            &ke.to_string(),
            "--json",
            "--ca",
        ])
        .arg(ca)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let delay = result["exchanges"][0]["delay_ns"].as_u64().unwrap();
    assert!(delay >= ROUND_TRIP_NS, "{delay}");
    assert!(result["timing"]["tls_handshake_ns"].as_u64().unwrap() >= ROUND_TRIP_NS);
    assert_eq!(hosts.within(Host::Server, || server.outcome("nts")), 1.0);
}

#[test]
fn server_that_closes_at_an_unknown_algorithm_is_told_apart_and_the_remedy_named() {
    let lab = Lab::new();
    let server = KeServer::on_loopback(Behaviour::OnlyAead15, &lab);
    let (ca, port) = (lab.ca(), server.address().port().to_string());
    let run = |more: &[&str]| {
        let arguments = ["127.0.0.1", "--ca", ca.to_str().unwrap(), "--ke-port", &port];
        authentick(more.iter().copied().chain(arguments))
    };
    for command in [&["query"][..], &["load", "ke", "--rate", "1", "--step-seconds", "1"]] {
        let output = run(command);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        for part in ["closed the connection during the key exchange without a word", "try --aead 15"] {
            assert!(text(&output).contains(part), "{part} is not in {}", text(&output));
        }
    }
    let output = run(&["load", "ke", "--rate", "1", "--step-seconds", "1", "--aead", "15"]);
    assert!(has_measured(&output), "{}", text(&output));
    // There is nothing else to try.
    let server = KeServer::on_loopback(Behaviour::Close, &lab);
    let port = server.address().port().to_string();
    let output =
        authentick(["query", "127.0.0.1", "--ca", ca.to_str().unwrap(), "--ke-port", &port, "--aead", "15"]);
    assert!(text(&output).contains("without a word") && !text(&output).contains("try"), "{}", text(&output));
}

#[test]
fn plain_query_needs_no_key_exchange() {
    let lab = Lab::new();
    let server = serve(&lab);
    let output = authentick(["query", &server.ntp.to_string(), "--auth", "plain"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("authenticated  no"));
    assert_eq!(server.metric("nts_ke_connections_accepted_total"), 0.0);
}

#[test]
fn silence_is_exit_1() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let output = authentick(["query", &address, "--auth", "plain", "--timeout", "0.2"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("no answer"));
    let closed = free_port().to_string();
    let output = authentick(["query", "127.0.0.1", "--ke-port", &closed, "--timeout", "0.2"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let output = authentick(["query", "no-such-host.invalid", "--timeout", "0.2"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
}

#[test]
fn wrong_certificates_are_exit_2_and_name_the_check() {
    let failed = |lab: &Lab, arguments: &[&str], check: &str| {
        let server = serve(lab);
        let output = server.query(lab, arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(check), "{check} is not in {}", text(&output));
    };
    failed(&Lab::new(), &["--server-name", "other.test"], "certificate name");
    let expired = Lab::with_certificate(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    failed(&expired, &[], "certificate validity: expired");
    let early = Lab::with_certificate(|params| params.not_before = rcgen::date_time_ymd(2090, 1, 1));
    failed(&early, &[], "certificate validity: not yet valid");
    let (lab, stranger) = (Lab::new(), Lab::new());
    let server = serve(&lab);
    let output = server.query(&stranger, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("certificate"), "{}", text(&output));
}

/// One process per place in the packet; every bit of every place is tried below the binary, in the protocol's tests.
#[test]
fn flipped_bit_anywhere_in_the_response_is_exit_2_and_names_the_check() {
    let lab = Lab::new();
    // Octets: leap and mode, stratum, origin, receive, transmit; identifier; authenticator header, lengths, nonce,
    // tag, ciphertext.
    let places = [
        (0, "mode"),
        (1, "tag"),
        (24, "origin"),
        (32, "tag"),
        (47, "tag"),
        (48, "unique identifier"),
        (50, "syntax"),
        (52, "unique identifier"),
        (84, "authenticator"),
        (86, "syntax"),
        (88, "syntax"),
        (92, "tag"),
        (108, "tag"),
        (130, "tag"),
        (223, "tag"),
    ];
    for (octet, check) in places {
        let (server, _relay) = behind_relay(&lab, move |mut response| {
            assert_eq!(response.len(), 224);
            response[octet] ^= 1;
            vec![response]
        });
        let output = server.query(&lab, &["--aead", "15", "--timeout", "0.3"]);
        assert_eq!(output.status.code(), Some(2), "octet {octet}: {}", text(&output));
        assert!(text(&output).contains(check), "octet {octet}: {check} is not in {}", text(&output));
    }
}

//= rfc9769#2-11, rfc8915#5.7-18
#[test]
fn client_waits_on_after_an_answer_that_does_not_match() {
    let lab = Lab::new();
    let (server, _relay) = behind_relay(&lab, |response| {
        let mut forged = response.clone();
        forged[40] ^= 1;
        vec![vec![0; 48], forged, response]
    });
    let output = server.query(&lab, &["--timeout", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn kiss_ends_with_exit_2_and_its_code() {
    let lab = Lab::new();
    let (server, _relay) = behind_relay(&lab, |mut response| {
        // NTSN as a server would send it that lost its keys: identifier and no authenticator.
        response.truncate(84);
        response[0] = 0xE4;
        response[1] = 0;
        response[12..16].copy_from_slice(b"NTSN");
        vec![response]
    });
    let output = server.query(&lab, &["--timeout", "0.3"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("kiss code NTSN"), "{}", text(&output));
}

#[test]
fn lost_answers_are_asked_for_again_with_placeholders() {
    let lab = Lab::new();
    let mut count = 0;
    let (server, _relay) = behind_relay(&lab, move |response| {
        count += 1;
        if count % 2 == 0 { vec![] } else { vec![response] }
    });
    let arguments = ["--count", "30", "--interval", "0", "--timeout", "0.1", "--aead", "15", "--json"];
    let output = server.query(&lab, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["exchanges"].as_array().unwrap().len(), 15);
    assert_eq!(
        server.metric("nts_ke_connections_accepted_total"),
        1.0,
        "lost cookies are replaced, not exchanged anew"
    );
}

#[test]
fn wrong_use_is_exit_64() {
    for arguments in [
        &["query"][..],
        &["query", "a b"],
        &["query", "host:port"],
        &["query", "host", "--aead", "31"],
        &["query", "host", "--auth", "mac"],
        &["query", "host", "--timeout", "-1"],
        &["query", "host", "--server-name", "a b"],
        &["frobnicate"],
    ] {
        let output = authentick(arguments.iter().copied());
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {}", text(&output));
    }
    assert_eq!(authentick(["--help"]).status.code(), Some(0));
    let output = authentick(["query", "127.0.0.1", "--ca", "/no/such/file"]);
    assert_eq!(output.status.code(), Some(78), "{}", text(&output));
    assert!(text(&output).contains("/no/such/file"));
}

#[test]
fn reader_that_goes_away_is_no_crash() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_authentick"))
        .arg("--help")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    std::thread::sleep(Duration::from_millis(50));
    assert_ne!(child.wait().unwrap().code(), Some(101), "a panic");
}
