//! What the generator's own host refuses is never laid to the server: each way is made on purpose, with real sockets.
//!
//! Such steps say nothing about the server, so it does not matter here how the command ends.

use std::net::SocketAddr;
use std::process::Command;

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::process::{Process, text};
use authentick_lab::skip::skip;
use authentick_report::load::{Cause, LoadRecord, Tally};

use super::{ALWAYS, Apart, only, record, under_nts};
use crate::lab::{Lab, program, serve, wait_for};

/// Runs `ip` or `tc` on the client; says that the test is skipped if it cannot be had.
fn has(hosts: &Hosts, tool: &str, arguments: &str) -> bool {
    let output = hosts.on(Host::Client(0), tool).args(arguments.split(' ')).output().unwrap();
    if !output.status.success() {
        skip(&format!("{tool} {arguments}: {}", text(&output)));
    }
    output.status.success()
}

/// The record of a load, however it ended.
#[track_caller]
fn run(mut command: Command, arguments: &[&str]) -> LoadRecord {
    let output = command.args(arguments).args(ALWAYS).output().unwrap();
    let record = record(&String::from_utf8_lossy(&output.stdout));
    assert!(!only(&record).valid, "a step that the host held up says nothing: {}", text(&output));
    record
}

/// Everything that was not sent was not for this reason, and there is plenty of it; nothing else went wrong.
#[track_caller]
fn check(tally: &Tally, cause: Cause, at_least: u64) {
    let local: Vec<Cause> = tally.causes.keys().copied().filter(|cause| cause.is_local()).collect();
    // A loop that is held up by its host may be late too.
    assert!(local.iter().all(|&seen| seen == cause || seen == Cause::FellBehind), "{:?}", tally.causes);
    assert!(tally.count_of(cause) >= at_least, "{cause}: {:?}", tally.causes);
    assert!(tally.adds_up() && tally.invalid == 0, "{tally:?}");
    assert_eq!(tally.skipped, tally.count_of(cause) + tally.count_of(Cause::FellBehind));
}

#[test]
fn full_socket_is_local_buffer() {
    let Some(apart) = Apart::new() else { return };
    // 500 requests a second leave. A socket has room for some hundreds; the queue for all that sockets hold.
    let interface = Hosts::client_interface();
    let bucket = format!("qdisc add dev {interface} root tbf rate 360kbit burst 2000 limit 10000000");
    if !has(&apart.hosts, "tc", &bucket) {
        return;
    }
    let arguments = ["--rate", "5000", "--clients", "1", "--step-seconds", "1", "--timeout", "0.5"];
    let record = run(apart.load(), &[&["plain", &Apart::NTP.to_string()], &arguments[..]].concat());
    let tally = &only(&record).tally;
    check(tally, Cause::LocalBuffer, 1000);
    // Whatever was sent arrives in the end, and nothing else; one more asked whether anybody answers.
    let sent = tally.sent as f64 + 1.0;
    wait_for("what was sent", || {
        let received = apart.received();
        assert!(received <= sent, "{received} of {sent}");
        (received == sent).then_some(())
    });
}

#[test]
fn range_of_ports_that_is_used_up_is_local_port() {
    let Some(apart) = Apart::new() else { return };
    apart.hosts.set(Host::Client(0), "ipv4/ip_local_port_range", "40000 40007");
    let target = SocketAddr::new(Apart::NTP.ip(), Apart::KE_PORT).to_string();
    let mut command = apart.load();
    command.args(["ke", &target, "--server-name", "ntp.test", "--ca"]).arg(apart.lab.ca());
    let record = run(command, &["--closed", "64", "--step-seconds", "0.5"]);
    let tally = &only(&record).tally;
    check(tally, Cause::LocalPort, 1);
    assert!(tally.answered > 0, "{tally:?}");
}

#[test]
fn descriptors_that_are_used_up_are_local_port() {
    let lab = Lab::new();
    let server = serve(&lab);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 48 && exec \"$0\" load \"$@\""]).arg(program().path());
    command.args(under_nts("ke", server.ke, &lab, &[]));
    let record = run(command, &["--closed", "64", "--step-seconds", "0.5"]);
    let tally = &only(&record).tally;
    check(tally, Cause::LocalPort, 1);
    assert!(tally.answered > 0, "{tally:?}");
}

#[test]
fn what_a_host_forbids_itself_is_local() {
    let Some(apart) = Apart::new() else { return };
    let mut command = apart.load();
    let arguments = ["--rate", "100", "--step-seconds", "2", "--timeout", "0.3"];
    command.args(["plain", &Apart::NTP.to_string()]).args(arguments).args(ALWAYS);
    let mut process = Process::start(&mut command);
    wait_for("some requests", || (apart.received() > 20.0).then_some(()));
    // Every send fails from now on, with an error that no message from the network causes.
    assert!(has(&apart.hosts, "ip", "route replace blackhole 198.18.0.1/32"));
    process.wait();
    let printed =
        wait_for("the record", || Some(process.log()).filter(|log| log.contains("authentick-load/")));
    let record = record(&printed);
    let tally = &only(&record).tally;
    check(tally, Cause::Local, 20);
    assert!(tally.answered >= 15 && !only(&record).valid, "{tally:?}");
}
