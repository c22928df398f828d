//! Every operation that was to happen is counted exactly once, and the server counts the same.

use authentick_lab::servers::{Fault, NtpServer, Policy};
use authentick_report::load::{Operation, Tally};

use super::{load, load_nts, only};
use crate::lab::{Lab, Server, serve, wait_for};

/// What must hold of operations of which none fails but by the noise of a machine.
#[track_caller]
fn assert_conserved(tally: &Tally, scheduled: u64) {
    assert_eq!(tally.scheduled, scheduled);
    assert_eq!(tally.scheduled, tally.sent + tally.skipped);
    assert_eq!(tally.sent, tally.answered + tally.lost + tally.invalid);
    assert!(tally.answered * 2 > scheduled, "{tally:?}");
    assert_eq!(tally.invalid, 0, "{:?}", tally.causes);
    assert_eq!(tally.histograms.latency_ns.count(), tally.answered);
}

/// Waits until the server shows these counts; a worker publishes them after a batch.
#[track_caller]
fn assert_served(server: &Server, [plain, nts, exchanges]: [u64; 3]) {
    let served = || {
        [
            server.outcome("plain"),
            server.outcome("nts"),
            server.metric("nts_ke_connections_total{outcome=\"served\"}"),
            server.metric("ntp_server_received_packets_total"),
        ]
    };
    let expected = [plain, nts, exchanges, plain + nts].map(|count| count as f64);
    wait_for(&format!("{expected:?}, not {:?}", served()), || (served() == expected).then_some(()));
}

#[test]
fn plain_requests_equal_what_the_server_counts() {
    let lab = Lab::new();
    let server = serve(&lab);
    let record = load(&["plain", &server.ntp.to_string(), "--rate", "400", "--step-seconds", "1.5"]);
    assert_eq!((record.scheme.as_str(), record.path.as_str()), ("plain", "loopback"));
    let step = only(&record);
    assert_conserved(&step.tally, 600);
    assert_eq!((step.offered_rps, step.request_size), (Some(400.0), 48));
    // Longer by as much as the last request left late.
    assert!(step.seconds >= 1.5, "{}", step.seconds);
    assert_eq!(step.response_size, 48);
    assert_eq!(step.tally.operation, Operation::Transfer);
    assert!(step.accompanying.is_none() && step.background.is_none());
    assert_served(&server, [step.tally.sent + 1, 0, 0]);
}

#[test]
fn nts_requests_equal_what_the_server_counts() {
    let lab = Lab::new();
    let server = serve(&lab);
    let arguments = ["--rate", "300", "--step-seconds", "2", "--clients", "40", "--aead", "15"];
    let record = load_nts("nts", server.ke, &lab, &arguments);
    let step = only(&record);
    assert_conserved(&step.tally, 600);
    assert_eq!(record.authentication, "AES-SIV-CMAC-256");
    // Header 48, identifier 36, cookie 4 + 100, authenticator 4 + 4 + 16 + 16.
    assert!(step.request_size >= 224, "{}", step.request_size);
    // An answer has a new cookie as long as the one that was spent, and is no longer than its request.
    assert!((200..=step.request_size).contains(&step.response_size), "{}", step.response_size);
    let renewed = step.accompanying.as_ref().map_or(0, |tally| tally.sent);
    assert_served(&server, [0, step.tally.sent + 1, 40 + renewed + 1]);
}

#[test]
fn key_exchanges_equal_what_the_server_counts() {
    let lab = Lab::new();
    let server = serve(&lab);
    let record = load_nts("ke", server.ke, &lab, &["--rate", "40", "--step-seconds", "1.5"]);
    let step = only(&record);
    assert_conserved(&step.tally, 60);
    assert_eq!((step.tally.operation, step.request_size, step.response_size), (Operation::KeyExchange, 0, 0));
    assert_served(&server, [0, 0, step.tally.sent + 1]);
}

#[test]
fn mixed_exchanges_and_transfers_equal_what_the_server_counts() {
    let lab = Lab::new();
    let server = serve(&lab);
    let arguments = ["--rate", "30", "--step-seconds", "2", "--transfers-per-exchange", "4"];
    let record = load_nts("mix", server.ke, &lab, &arguments);
    let step = only(&record);
    assert_conserved(&step.tally, 60);
    let transfers = step.accompanying.as_ref().unwrap();
    assert_eq!(transfers.operation, Operation::Transfer);
    assert_conserved(transfers, 4 * step.tally.answered);
    assert_eq!(record.parameters.transfers_per_exchange, Some(4));
    assert_served(&server, [0, transfers.sent + 1, step.tally.sent + 1]);
}

#[test]
fn what_a_server_drops_is_what_is_lost() {
    let server = NtpServer::on_loopback(Policy::good().every(7, Fault::Drop));
    let address = server.address().to_string();
    let record = load(&[
        "plain",
        &address,
        "--rate",
        "300",
        "--step-seconds",
        "1.5",
        "--timeout",
        "0.5",
        "--workers",
        "2",
    ]);
    let (tally, counts) = (&only(&record).tally, server.counts());
    assert_eq!(tally.scheduled, 450);
    assert_eq!(
        [tally.sent + 1, tally.answered + 1, tally.lost],
        [counts.received, counts.good, counts.faults[0]]
    );
    assert_eq!(server.dropped(), 0);
}
