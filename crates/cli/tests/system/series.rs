//! Series of requests, and servers that want fewer of them, are on networks of others, or respond in an older version.

use std::net::UdpSocket;
use std::process::Output;
use std::time::{Duration, Instant};

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::servers::{Fault, NtpServer, Policy};
use authentick_wire::header::ReferenceId;

use crate::lab::{authentick, has_measured, program, refused, text};

const ALWAYS: u64 = 1;

fn series(server: &NtpServer, more: &str) -> Output {
    let address = server.address().to_string();
    authentick(format!("query --auth plain {address} --timeout 0.3 {more}").split(' '))
}

fn kiss(code: ReferenceId) -> Fault {
    Fault::Kiss { code, identifier: false }
}

#[test]
fn kiss_deny_or_rstr_ends_a_series() {
    for code in [ReferenceId::DENY, ReferenceId::RSTR] {
        let server = NtpServer::on_loopback(Policy::good().every(2, kiss(code)));
        let output = series(&server, "--count 20 --interval 0");
        let name = String::from_utf8_lossy(&code.0).into_owned();
        refused(&output, 69, &[&format!("kiss code {name}: "), "series ended after 2 of 20 exchanges"]);
        assert!(text(&output).contains("1 of 2 exchanges with 127.0.0.1, median"), "{}", text(&output));
        assert_eq!(server.counts().received, 2);
        let output = series(&server, "--count 20 --interval 0 --json");
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), object["exit"].as_u64()), (Some(69), Some(69)), "{object}");
        assert!(object["error"].as_str().unwrap().contains(&name), "{object}");
    }
}

#[test]
fn kiss_rate_doubles_the_interval() {
    let server = NtpServer::on_loopback(Policy::good().every_from(100, 1, kiss(ReferenceId::RATE)));
    let start = Instant::now();
    let output = series(&server, "--count 2 --interval 0");
    assert!(start.elapsed() >= Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    for part in ["kiss code RATE: the server wants fewer", "kiss code RATE: the interval is doubled"] {
        assert!(text(&output).contains(part), "{part} is not in {}", text(&output));
    }
}

#[test]
fn public_server_is_asked_once_a_second_at_most() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let client = Host::Client(0);
    for (address, server) in [("203.0.113.9", "203.0.113.9:1123"), ("2001:db8::9", "[2001:db8::9]:1123")] {
        // Never on a link.
        let added = hosts.on(client, "ip").args(["addr", "add", address, "dev", "lo"]).status().unwrap();
        assert!(added.success());
        let socket = hosts.within(client, || UdpSocket::bind(server).unwrap());
        let _server = NtpServer::start(socket, Policy::good());
        let run = |arguments: &str| {
            let start = Instant::now();
            let words = format!("query {arguments} --interval 0 --count 3");
            let output = hosts.on(client, program().path()).args(words.split(' ')).output().unwrap();
            (output, start.elapsed())
        };
        let query = |more: &str| run(&format!("--auth plain {server}{more}"));
        // Nothing listens for key exchanges, which fail at once.
        let (output, elapsed) = run(&server.replace(":1123", ""));
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(elapsed >= Duration::from_secs(2), "{elapsed:?}: {}", text(&output));
        let (output, elapsed) = query("");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert!(elapsed >= Duration::from_secs(2), "{elapsed:?}: {}", text(&output));
        let notice = format!("--interval 0 is raised to 1 s: {address} ({address}) is a public address");
        assert!(text(&output).contains(&notice), "{}", text(&output));
        let (output, elapsed) = query(&format!(" --permit {address}"));
        assert!(
            output.status.success() && elapsed < Duration::from_secs(1),
            "{elapsed:?}: {}",
            text(&output)
        );
        refused(&query(" --permit other.example").0, 64, &["--permit names \"other.example\""]);
    }
}

#[test]
fn version_3_response_passes_without_authentication() {
    let server = NtpServer::on_loopback(Policy::good().every(ALWAYS, Fault::Version(3)));
    let output = series(&server, "--count 2 --interval 0");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let address = server.address().to_string();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let load = authentick(["load", "plain", &address, "--rate", "20", "--step-seconds", "1", "--json"]);
    assert!(has_measured(&load), "{}", text(&load));
    let record: serde_json::Value = serde_json::from_slice(&load.stdout).unwrap();
    let tally = &record["steps"][0];
    assert_eq!((&tally["answered"], &tally["invalid"]), (&tally["sent"], &0.into()), "{tally}");
    let stress = authentick(["stress", &address, "20", "1", report.to_str().unwrap()]);
    assert!(has_measured(&stress), "{}", text(&stress));
}

#[test]
fn run_that_sent_nothing_fails() {
    let server = NtpServer::on_loopback(Policy::good());
    let address = server.address().to_string();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    for words in [
        format!("load plain {address} --rate 0.01 --seed 1 --step-seconds 0.2"),
        format!("load plain {address} --ramp 0.01:0.01:0.02 --seed 1 --step-seconds 0.2 --json"),
        format!("stress {address} 0.01 0.2 {}", report.display()),
    ] {
        let output = authentick(words.split(' '));
        refused(&output, 3, &["no request was due: raise the rate, or make steps longer"]);
    }
}
