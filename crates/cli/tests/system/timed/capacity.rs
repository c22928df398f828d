//! `authentick load` on one host against Debian's chrony on another: every scheme, at rates that chrony holds.

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::Chrony;
use authentick_lab::process::text;
use authentick_lab::skip::skip;
use authentick_report::load::{LoadRecord, Operation};

use crate::lab::{Lab, alone, has_measured, program};

const NTP: u16 = 11_123;
const KE: u16 = 14_460;

const STEP_SECONDS: u32 = 1;

/// A busy machine may keep a generator from its schedule for a while.
const ATTEMPT_COUNT: usize = 8;

/// What a scheme is to show.
struct Case {
    arguments: &'static [&'static str],
    rate_rps: f64,
    operation: Operation,
    authentication: &'static str,
}

const CASES: [Case; 3] = [
    Case { arguments: &["plain"], rate_rps: 5000.0, operation: Operation::Transfer, authentication: "none" },
    Case {
        arguments: &["nts", "--aead", "15", "--clients", "128"],
        rate_rps: 2000.0,
        operation: Operation::Transfer,
        authentication: "AES-SIV-CMAC-256",
    },
    Case {
        arguments: &["ke", "--aead", "15"],
        rate_rps: 50.0,
        operation: Operation::KeyExchange,
        authentication: "AES-SIV-CMAC-256",
    },
];

#[test]
fn chrony_holds_modest_rates_of_every_scheme_unless_the_generator_says_that_it_did_not() {
    let _turn = alone();
    let Some(chrony) = Chrony::find() else { return };
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let lab = Lab::new();
    let _server = chrony.on(&hosts, Host::Server).server(&lab, NTP, KE);
    for case in CASES {
        let mut attempts = (0..ATTEMPT_COUNT).map(|_| measure(&hosts, &lab, &case));
        let (record, printed) = attempts
            .by_ref()
            .find(|(record, _)| record.steps[0].valid)
            .unwrap_or_else(|| measure(&hosts, &lab, &case));
        let step = &record.steps[0];
        assert!(step.tally.answered > 0, "{printed}");
        if !step.valid {
            let why = step.why_invalid.as_deref().unwrap_or_default();
            let is_marked = printed.contains("INVALID") || printed.contains("latency not known");
            assert!(why.starts_with("generator fell behind") && is_marked, "{printed}");
            // A generator that is disturbed on every attempt must say so, and has; what the server holds, nobody saw.
            skip(&format!("load {}: this machine is too busy: {why}", case.arguments[0]));
            continue;
        }
        // As many as the order says: a generator that stood still at the end took longer than that to send them.
        let sent = (case.rate_rps * f64::from(STEP_SECONDS)) as u64;
        assert_eq!(
            (step.tally.scheduled, step.tally.sent, step.tally.answered),
            (sent, sent, sent),
            "{printed}"
        );
        assert!(step.tally.causes.is_empty(), "{printed}");
        assert_eq!(
            (step.tally.operation, record.authentication.as_str()),
            (case.operation, case.authentication)
        );
        assert_eq!(step.tally.histograms.latency_ns.count(), sent);
        let latency = step.tally.latency_us.unwrap();
        assert!(0.0 < latency.min && latency.min <= latency.p50 && latency.p99 <= latency.max, "{latency:?}");
        // Both hosts are namespaces of one machine.
        assert_eq!((record.path.as_str(), record.shared_clock), ("network", false));
        let row = printed.lines().nth(1).unwrap();
        for cell in [authentick_report::units::rate(case.rate_rps), "0.00".to_owned()] {
            assert!(row.contains(&cell), "{row}");
        }
        assert!(
            printed.lines().next().is_some_and(|head| head.contains("p50") && head.contains("p99")),
            "{printed}"
        );
        assert!(!row.contains("INVALID"), "{row}");
    }
}

/// One step of load; the record, and what was printed.
fn measure(hosts: &Hosts, lab: &Lab, case: &Case) -> (LoadRecord, String) {
    let (scheme, more) = case.arguments.split_first().unwrap();
    let port = if *scheme == "ke" { KE } else { NTP };
    let file = lab.path().join("record.json");
    let mut command = hosts.on(Host::Client(0), program().path());
    command
        .args(["load", scheme, &format!("198.18.0.1:{port}"), "--unpinned"])
        .args(["--step-seconds", &STEP_SECONDS.to_string()])
        .args(more);
    command.args(["--rate", &case.rate_rps.to_string(), "--record"]).arg(&file);
    if *scheme != "plain" {
        command.args(["--server-name", "ntp.test", "--ca"]).arg(lab.ca());
    }
    if *scheme == "nts" {
        command.args(["--ke-port", &KE.to_string()]);
    }
    let output = command.output().unwrap();
    assert!(has_measured(&output), "{}", text(&output));
    let record = LoadRecord::from_json(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert!(record.steps[0].adds_up());
    (record, String::from_utf8(output.stdout).unwrap())
}
