//! What a user does wrong, or somebody else, and how the command ends: with which code, and which words.

use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;

use authentick_lab::servers::{Ending, NtpServer, Policy};
use authentick_report::load::Cause;

use super::{begin, failures, finish, load, only, under_nts};
use crate::lab::{Lab, authentick, free_port, is_root, serve, text, wait_for};
use crate::operator::as_nobody;

/// Runs `load` with arguments with which it must not begin; returns what it said.
#[track_caller]
fn refused(code: i32, arguments: &[&str], parts: &[&str]) -> String {
    let output = authentick(["load"].iter().chain(arguments).copied());
    let said = text(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
    said
}

#[test]
fn hosts_that_are_not_there_are_exit_1() {
    refused(1, &["plain", "no-such-host.invalid"], &["no-such-host.invalid", "cannot find its address"]);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    refused(1, &["plain", &address, "--timeout", "0.2"], &[&address, "no answer"]);
    let closed = format!("127.0.0.1:{}", free_port());
    refused(1, &["plain", &closed, "--timeout", "0.2"], &[&closed, "port is closed"]);
    refused(1, &["ke", &closed, "--ke-timeout", "0.5"], &["key exchange on port", "cannot connect"]);
}

#[test]
fn silence_is_asked_once_and_not_loaded() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    refused(1, &["plain", &address, "--timeout", "0.2", "--rate", "1000"], &["no answer"]);
    silent.set_nonblocking(true).unwrap();
    let came = std::iter::from_fn(|| silent.recv(&mut [0; 100]).ok()).count();
    assert_eq!(came, 1);
}

#[test]
fn run_that_does_not_begin_leaves_no_empty_file() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    refused(1, &["plain", &address, "--timeout", "0.2", "--record", file.to_str().unwrap()], &["no answer"]);
    assert!(!file.exists());
}

#[test]
fn wrong_authority_is_exit_2_before_any_load() {
    let (lab, other) = (Lab::new(), Lab::new());
    let server = serve(&lab);
    for scheme in ["nts", "ke", "mix"] {
        let arguments = under_nts(scheme, server.ke, &other, &[]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        refused(2, &arguments, &["key exchange", "certificate: its signature does not match"]);
    }
    assert_eq!(server.metric("nts_ke_connections_accepted_total"), 3.0);
    let arguments = under_nts("ke", server.ke, &lab, &["--server-name", "other.test"]);
    refused(
        2,
        &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
        &[
            "certificate name: it is for ntp.test, localhost, 127.0.0.1, ",
            "and not for other.test; give",
            "--server-name NAME",
        ],
    );
}

#[test]
fn wrong_numbers_are_exit_64() {
    let server = NtpServer::on_loopback(Policy::good());
    let address = server.address().to_string();
    let wrong = |more: &[&str], parts: &[&str]| {
        refused(64, &[&["plain", address.as_str()], more].concat(), parts);
    };
    for rate in ["0", "-1", "1e9", "nan", "many"] {
        wrong(&[&format!("--rate={rate}")], &["--rate", "is no rate"]);
    }
    for ramp in ["100", "100:100", "0:1:5", "5:1:4", "1:0.001:1000"] {
        wrong(&["--ramp", ramp], &["--ramp"]);
    }
    for ratio in ["100:1:200", "100:0.5:200", "100:2"] {
        wrong(&["--geometric", ratio], &["--geometric"]);
    }
    wrong(&["--rate", "1", "--ramp", "1:1:2"], &["--rate", "--ramp"]);
    wrong(&["--step-seconds", "0"], &["--step-seconds"]);
    wrong(&["--step-seconds", "1e6"], &["--step-seconds"]);
    wrong(&["--clients", "0"], &["--clients"]);
    wrong(&["--workers", "0"], &["--workers"]);
    wrong(&["--closed", "0"], &["--closed"]);
    wrong(&["--loss-max", "1", "--search"], &["--loss-max"]);
    assert_eq!(server.counts().received, 0, "nobody was asked");
}

#[test]
fn public_addresses_need_a_word_that_names_the_host() {
    refused(64, &["plain", "192.0.2.1"], &["192.0.2.1", "public address", "--permit 192.0.2.1"]);
    refused(
        64,
        &["nts", "192.0.2.1", "--permit", "192.0.2.2"],
        &["--permit names \"192.0.2.2\"", "192.0.2.1"],
    );
    let lab = Lab::new();
    let list = lab.path().join("list");
    std::fs::write(&list, "198.51.100.0/24\n").unwrap();
    let list = list.to_str().unwrap();
    refused(64, &["ke", "192.0.2.1", "--allow-list", list], &["192.0.2.1", "public address"]);
    std::fs::write(list, "nonsense\n").unwrap();
    refused(78, &["ke", "192.0.2.1", "--allow-list", list], &["--allow-list", "line 1"]);
}

#[test]
fn key_exchange_that_sends_clients_to_a_public_address_is_not_followed() {
    let lab = Lab::new();
    let server = crate::lab::start(&lab.config("", "advertise = { server = \"192.0.2.1\", port = 123 }"));
    let arguments = under_nts("nts", server.ke, &lab, &["--timeout", "0.2"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    refused(64, &arguments, &["192.0.2.1", "--permit"]);
}

#[test]
fn files_that_cannot_be_written_are_told_before_any_load() {
    let server = NtpServer::on_loopback(Policy::good());
    let address = server.address().to_string();
    for option in ["--record", "--csv", "--html"] {
        let parts = [option, "/no/such/folder/run", "cannot write", "make its folder first"];
        refused(78, &["plain", &address, option, "/no/such/folder/run"], &parts);
    }
    if is_root("to become a user who may not write") {
        let lab = Lab::new();
        std::fs::set_permissions(lab.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let file = lab.path().join("run.json");
        let output = as_nobody(lab.path(), &["load", "plain", &address, "--record", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(77), "{}", text(&output));
        assert!(text(&output).contains("--record") && !file.exists());
    }
    assert_eq!(server.counts().received, 0);
}

#[test]
fn server_that_stops_mid_run_leaves_partial_results() {
    let server = NtpServer::on_loopback(Policy::good().stop_after(101, Ending::Silent));
    let address = server.address().to_string();
    let record = load(&["plain", &address, "--rate", "200", "--step-seconds", "1", "--timeout", "0.3"]);
    let tally = &only(&record).tally;
    assert_eq!((tally.answered, tally.lost), (100, tally.sent - 100));
    assert_eq!(failures(tally), [(Cause::Timeout, server.counts().ignored)].into());
    assert!(tally.lost > 50 && record.interrupted.is_none());
}

#[test]
fn sources_that_the_host_does_not_have_are_exit_64() {
    let server = NtpServer::on_loopback(Policy::good());
    let address = server.address().to_string();
    let parts = ["--sources 198.18.77.0/28", "none of these addresses", "ip address add"];
    refused(64, &["plain", &address, "--sources", "198.18.77.0/28"], &parts);
    // The load asked once whether anybody answers.
    assert!(server.counts().received <= 1);
}

#[test]
fn background_s_sources_that_cannot_be_used_are_told() {
    let lab = Lab::new();
    let server = serve(&lab);
    let address = server.ntp.to_string();
    let with = |rest: &[&'static str]| [&["plain", address.as_str(), "--background", "10"], rest].concat();
    let parts =
        ["--background-sources 198.18.77.1", "does not have this address", "ip address add 198.18.77.1"];
    refused(64, &with(&["--background-sources", "127.0.0.2,198.18.77.1"]), &parts);
    let parts = ["--background-sources ::1", "127.0.0.1", "different families"];
    refused(64, &with(&["--background-sources", "::1"]), &parts);
    refused(64, &with(&["--background-sources", "localhost"]), &["--background-sources", "localhost"]);
    refused(64, &["plain", &address, "--background-sources", "127.0.0.2"], &["--background"]);
    refused(64, &["plain", &address, "--spans", "/tmp/x.csv"], &["--server-metrics"]);
}

#[test]
fn sources_that_the_host_has_are_all_used() {
    let lab = Lab::new();
    let server = serve(&lab);
    let (port, metrics) = (server.ntp.port(), server.metrics.to_string());
    let arguments =
        ["--sources", "127.9.8.0/30", "--clients", "12", "--rate", "100", "--step-seconds", "0.5"];
    let target = format!("127.0.0.1:{port}");
    let record = load(&[&["plain", target.as_str(), "--server-metrics", &metrics], &arguments[..]].concat());
    assert_eq!(record.parameters.sources.as_deref(), Some("127.9.8.0/30"));
    let spans: serde_json::Value = serde_json::from_str(&server.get("/spans?ntp=0&ke=0")).unwrap();
    let sources: std::collections::BTreeSet<String> = spans["ntp"]
        .as_array()
        .unwrap()
        .iter()
        .map(|span| span["source"].as_str().unwrap().to_owned())
        .filter(|source| source.starts_with("127.9.8."))
        .collect();
    let hosts: std::collections::BTreeSet<&str> =
        sources.iter().map(|source| source.split(':').next().unwrap()).collect();
    assert_eq!((sources.len(), hosts.len()), (12, 4), "{sources:?}");
}

#[test]
fn interrupt_stops_sending_and_keeps_what_was_measured() {
    let lab = Lab::new();
    let file = lab.path().join("run.json");
    let server = NtpServer::on_loopback(Policy::good());
    let address = server.address().to_string();
    let arguments = [
        "plain",
        &address,
        "--ramp",
        "200:100:900",
        "--step-seconds",
        "30",
        "--record",
        file.to_str().unwrap(),
    ];
    let process = begin(&arguments);
    wait_for("some requests", || (server.counts().received > 100).then_some(()));
    process.signal("-INT");
    let record = finish(process);
    let step = only(&record);
    assert_eq!(record.interrupted.as_deref(), Some("stopped by the user"));
    assert!(step.seconds < 20.0 && step.tally.answered >= 100, "{step:?}");
    // What was due after the signal was neither sent nor counted.
    let due = (step.seconds * 200.0) as u64;
    assert!(step.tally.scheduled.abs_diff(due) <= 10, "{due}: {step:?}");
    assert_eq!(server.counts().received, step.tally.sent + 1);
    let kept = authentick_report::load::LoadRecord::from_json(&std::fs::read_to_string(file).unwrap());
    assert_eq!(kept.unwrap(), record);
}

#[test]
fn agents_need_certificates_on_both_sides() {
    refused(
        64,
        &["plain", "127.0.0.1", "--agents", "127.0.0.1:7000"],
        &["--agent-ca", "--certificate-chain"],
    );
    refused(64, &["plain", "127.0.0.1", "--agent-ca", "ca.pem"], &["--agents"]);
    refused(64, &["agent", "--listen", "127.0.0.1:0"], &["--coordinators-ca", "--private-key"]);
}

#[test]
fn each_worker_has_a_client() {
    let server = NtpServer::on_loopback(Policy::good());
    let address = server.address().to_string();
    let arguments = ["--clients", "1", "--workers", "3", "--rate", "90", "--step-seconds", "0.5"];
    let record = load(&[&["plain", address.as_str()], &arguments[..]].concat());
    // More workers than clients: as many clients as workers, and the record says so.
    assert_eq!((record.parameters.clients, record.parameters.workers), (3, 3));
    assert_eq!((only(&record).tally.scheduled, only(&record).tally.sent + 1), (45, server.counts().received));
}
