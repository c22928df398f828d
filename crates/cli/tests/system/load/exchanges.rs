//! Each way in which a key exchange can fail, made on purpose, is counted under its name, as often as it happened.

use authentick_lab::exchanges::{Behaviour, KeServer};
use authentick_lab::hosts::Host;
use authentick_lab::peers::{Chrony, NtpdRs};
use authentick_report::load::{Cause, LoadRecord};
use authentick_wire::ke::ErrorCode;

use super::{ALWAYS, Apart, failures, load_ending, load_nts, only, record, under_nts};
use crate::lab::{Lab, has_measured, serve, wait_for};

/// Connections that reach a real server first. One of them is the load's question whether anybody answers.
const GOOD_COUNT: u64 = 5;

const RATE: [&str; 4] = ["--rate", "20", "--step-seconds", "1"];

/// Loads a server of key exchange that behaves like this after `good_count` connections.
fn run(good_count: u64, behaviour: Behaviour, is_trusted: bool, code: i32) -> (LoadRecord, KeServer) {
    let lab = Lab::new();
    let real = serve(&lab);
    let stranger = Lab::new();
    let certificate = if is_trusted { &lab } else { &stranger };
    let server = KeServer::start_after(good_count, real.ke, behaviour, certificate);
    let arguments = under_nts("ke", server.address(), &lab, &[&RATE[..], &["--ke-timeout", "1"]].concat());
    let record = load_ending(code, &arguments);
    assert_eq!(server.counts().passed, good_count);
    (record, server)
}

/// All but the good ones fail for this reason, and as many as the server says.
fn compare(behaviour: Behaviour, is_trusted: bool, cause: Cause) {
    let (record, server) = run(GOOD_COUNT, behaviour, is_trusted, 0);
    let tally = &only(&record).tally;
    let answered = GOOD_COUNT - 1;
    assert_eq!(tally.answered, answered, "{behaviour:?}: {:?}", tally.causes);
    assert_eq!(failures(tally), [(cause, tally.sent - answered)].into(), "{behaviour:?}");
    assert!(tally.sent >= 15 && tally.scheduled == 20, "{behaviour:?}: {tally:?}");
    // Some are counted after the client was told.
    wait_for("the server's counts", || (server.counts().accepted == tally.sent - answered).then_some(()));
    let failed = if cause.is_invalid() { tally.invalid } else { tally.lost };
    assert_eq!(failed, tally.sent - answered, "{behaviour:?}");
}

//= rfc8915#4.1.3-3
#[test]
fn every_misbehaviour_of_a_key_exchange_is_counted_under_its_name() {
    let cases = [
        (Behaviour::Reset, true, Cause::Reset),
        (Behaviour::Close, true, Cause::Reset),
        (Behaviour::Alert(40), true, Cause::TlsAlert),
        (Behaviour::NoProtocol, true, Cause::TlsAlert),
        (Behaviour::Error(ErrorCode::INTERNAL), true, Cause::KeRefused),
        (Behaviour::Nonsense, true, Cause::KeRefused),
        // The certificate is somebody else's from then on.
        (Behaviour::Close, false, Cause::Tls),
    ];
    std::thread::scope(|scope| {
        for (behaviour, is_trusted, cause) in cases {
            scope.spawn(move || compare(behaviour, is_trusted, cause));
        }
    });
}

#[test]
fn servers_that_an_early_close_notify_upsets_are_loaded_without_a_failure() {
    for behaviour in [Behaviour::OneRecord, Behaviour::NoEarlyClose] {
        let lab = Lab::new();
        let server = KeServer::on_loopback(behaviour, &lab);
        let record = load_nts("ke", server.address(), &lab, &RATE);
        let tally = &only(&record).tally;
        assert_eq!((tally.answered, failures(tally)), (tally.sent, [].into()), "{behaviour:?}");
        // And the question whether anybody answers.
        assert_eq!(server.counts().requests, tally.sent + 1, "{behaviour:?}");
    }
}

#[test]
fn server_that_accepts_and_says_nothing_is_resource_temporarily_unavailable() {
    compare(Behaviour::Mute, true, Cause::ResourceTemporarilyUnavailable);
}

#[test]
fn server_that_accepts_nobody_is_connection_timed_out() {
    let (record, server) = run(1, Behaviour::Deaf, true, 1);
    let tally = &only(&record).tally;
    assert_eq!(failures(tally), [(Cause::ConnectionTimedOut, tally.sent)].into());
    assert!(tally.sent >= 15 && tally.lost == tally.sent && server.counts().accepted == 0);
}

#[test]
fn port_without_a_listener_is_refused() {
    let (record, server) = run(1, Behaviour::Gone, true, 1);
    let tally = &only(&record).tally;
    assert_eq!(failures(tally), [(Cause::Refused, tally.sent)].into());
    assert!(tally.sent >= 15 && tally.lost == tally.sent && server.counts().accepted == 0);
}

/// How many connections to this port of others the calling thread's host keeps for a minute after their end.
fn kept(port: u16) -> usize {
    // proc(5): remote address and port, then the state, 6 being TIME_WAIT.
    let remote = format!(":{port:04X} 06 ");
    let table = std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
    table.lines().filter(|line| line.contains(&remote)).count()
}

#[test]
fn server_closes_first_so_that_the_generator_has_its_ports_back() {
    let (Some(chrony), Some(ntpd_rs)) = (Chrony::find(), NtpdRs::find()) else { return };
    let Some(apart) = Apart::new() else { return };
    let Apart { lab, hosts, .. } = &apart;
    let _chrony = chrony.on(hosts, Host::Server).server(lab, 1124, 14461);
    let _ntpd_rs = ntpd_rs.on(hosts, Host::Server).server(lab, 1125, 14462);
    for port in [Apart::KE_PORT, 14461, 14462] {
        let run = || {
            let mut command = apart.load();
            let target = format!("{}:{port}", Apart::NTP.ip());
            command.args(["ke", &target, "--server-name", "ntp.test", "--ca"]).arg(lab.ca());
            command.args(RATE).args(ALWAYS).output().unwrap()
        };
        // Until the server listens.
        let output = wait_for("a load", || Some(run()).filter(has_measured));
        let tally = &only(&record(&String::from_utf8_lossy(&output.stdout))).tally.clone();
        assert!(tally.answered == tally.sent && tally.sent >= 15, "{port}: {tally:?}");
        // The question whether anybody answers, which comes first, does not wait.
        let kept = hosts.within(Host::Client(0), || kept(port));
        assert!(kept <= 1, "{port}: {kept} of {} connections", tally.sent);
    }
}
