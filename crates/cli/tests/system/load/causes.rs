//! Each way in which a transfer of time can fail, made on purpose, is counted under its name, as often as it happened.

use std::time::Duration;

use authentick_lab::corrupt::{Changed, Corrupt, Damage};
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::relay::{Link, Path};
use authentick_lab::servers::{Ending, Fault, NtpServer, Policy};
use authentick_report::load::{Cause, LoadRecord, Stray};
use authentick_wire::header::ReferenceId;

use super::{Apart, behind, failures, finish, load, load_nts, only};
use crate::lab::{Lab, authentick, text, wait_for};

/// Loads a server that treats one request in four like this, and compares the counts of both. `stray`: what its answers
/// are if they belong to no request.
fn compare(fault: Fault, cause: Cause, stray: Option<Stray>) {
    // The first request, by which the load finds out whether the server answers, is a good one.
    let server = NtpServer::on_loopback(Policy::good().every_from(4, 3, fault));
    let address = server.address().to_string();
    let record = load(&["plain", &address, "--rate", "200", "--step-seconds", "1", "--timeout", "0.6"]);
    let (tally, counts) = (&only(&record).tally, server.counts());
    assert_eq!(failures(tally), [(cause, counts.faults[0])].into(), "{fault:?}");
    assert_eq!((tally.sent + 1, tally.answered + 1), (counts.received, counts.good), "{fault:?}");
    let (lost, invalid) = if cause.is_invalid() { (0, counts.faults[0]) } else { (counts.faults[0], 0) };
    let strays = stray.map(|stray| (stray, counts.faults[0]));
    let surplus = strays.map_or(0, |(_, count)| count);
    assert_eq!((tally.lost, tally.invalid, tally.surplus), (lost, invalid, surplus), "{fault:?}");
    assert_eq!(tally.strays, strays.into_iter().collect(), "{fault:?}");
}

#[test]
fn every_fault_of_a_server_is_counted_under_its_name() {
    let kiss = |code| Fault::Kiss { code, identifier: false };
    let cases = [
        (Fault::Drop, Cause::Timeout, None),
        (Fault::Late(Duration::from_millis(900)), Cause::Late, None),
        (Fault::Stratum(16), Cause::BadStratum, None),
        (Fault::Unsynchronised, Cause::BadLeap, None),
        (Fault::NeverSet, Cause::BadStratum, None),
        (Fault::WrongOrigin, Cause::Timeout, Some(Stray::BadOrigin)),
        (Fault::Garbage(47), Cause::Timeout, Some(Stray::Malformed)),
        (kiss(ReferenceId::RATE), Cause::Kiss, None),
        (kiss(ReferenceId::DENY), Cause::Kiss, None),
    ];
    std::thread::scope(|scope| {
        for (fault, cause, stray) in cases {
            scope.spawn(move || compare(fault, cause, stray));
        }
    });
}

#[test]
fn second_answers_are_surplus_and_no_failure() {
    let server = NtpServer::on_loopback(Policy::good().every_from(2, 0, Fault::Twice));
    let address = server.address().to_string();
    let record = load(&["plain", &address, "--rate", "101", "--step-seconds", "1"]);
    let (tally, counts) = (&only(&record).tally, server.counts());
    assert_eq!((tally.answered, failures(tally)), (tally.sent, [].into()));
    assert_eq!((tally.surplus, tally.sent + 1), (counts.faults[0], counts.received));
}

#[test]
fn answers_after_two_timeouts_are_no_fault_of_other_requests() {
    // Each late answer comes when its request was given up, and other requests of the same port wait.
    let late = Fault::Late(Duration::from_millis(700));
    let server = NtpServer::on_loopback(Policy::good().every_from(2, 0, late));
    let address = server.address().to_string();
    let arguments = ["--rate", "100", "--step-seconds", "2", "--timeout", "0.2", "--clients", "5"];
    let record = load(&[&["plain", address.as_str()], &arguments[..]].concat());
    let (tally, counts) = (&only(&record).tally, server.counts());
    assert_eq!(failures(tally), [(Cause::Timeout, counts.faults[0])].into());
    // Those that came before the end of the step are mentioned.
    assert!(tally.surplus >= counts.faults[0] / 2, "{}", tally.surplus);
}

#[test]
fn server_that_closes_its_port_is_refused_and_what_it_answered_is_kept() {
    let server = NtpServer::on_loopback(Policy::good().stop_after(101, Ending::Closed));
    let address = server.address().to_string();
    let arguments = ["--rate", "200", "--step-seconds", "1", "--timeout", "0.3", "--clients", "1"];
    let record = load(&[&["plain", address.as_str()], &arguments[..]].concat());
    let tally = &only(&record).tally;
    assert_eq!((tally.answered, server.counts().good), (100, 101));
    assert_eq!(failures(tally), [(Cause::Refused, tally.sent - 100)].into());
    assert!(tally.lost > 50 && tally.lost == tally.sent - 100, "{tally:?}");
}

#[test]
fn one_corrupted_tag_in_a_thousand_is_found() {
    let lab = Lab::new();
    let (server, relay) = behind(&lab, Corrupt::new(Damage::Tag, 1000));
    let arguments = ["--rate", "1000", "--step-seconds", "5", "--clients", "100"];
    let record = load_nts("nts", server.ke, &lab, &arguments);
    let tally = &only(&record).tally;
    assert_eq!(relay.counts().lost, 0);
    let (seen, damaged) = relay.with(|corrupt| (corrupt.seen(), corrupt.damaged()));
    assert_eq!((tally.scheduled, tally.sent + 1), (5000, seen));
    assert!(damaged >= 4 && damaged == seen / 1000, "{damaged} of {seen}");
    assert_eq!((tally.invalid, tally.count_of(Cause::BadTag)), (damaged, damaged));
    assert_eq!(failures(tally), [(Cause::BadTag, damaged)].into());
}

#[test]
fn answers_without_an_authenticator_are_bad_tags() {
    let lab = Lab::new();
    let mut count = 0;
    let stripped = move |mut response: Vec<u8>| {
        count += 1;
        // The header alone, as anybody can send it who has seen the request.
        if count % 5 == 0 {
            response.truncate(48);
        }
        vec![response]
    };
    let (server, relay) = behind(&lab, Changed(stripped));
    let arguments = ["--rate", "200", "--step-seconds", "1", "--timeout", "0.5"];
    let record = load_nts("nts", server.ke, &lab, &arguments);
    let tally = &only(&record).tally;
    assert_eq!(failures(tally), [(Cause::BadTag, relay.counts().responses / 5)].into());
}

#[test]
fn kisses_under_nts_are_counted_apart_from_ntsn() {
    let lab = Lab::new();
    let (server, relay) = behind(&lab, Corrupt::new(Damage::Kiss(ReferenceId::RATE), 10));
    let arguments = ["--rate", "200", "--step-seconds", "1", "--timeout", "0.5"];
    let record = load_nts("nts", server.ke, &lab, &arguments);
    let damaged = relay.with(|corrupt| corrupt.damaged());
    assert!(damaged >= 10);
    assert_eq!(failures(&only(&record).tally), [(Cause::Kiss, damaged)].into());
    assert!(only(&record).accompanying.is_none(), "RATE is no reason for new keys");
}

/// Takes the way to the server away in the midst of a step. An exchange takes 10 ms until then.
fn without_way(arguments: &[&str]) -> Option<LoadRecord> {
    let delay = || Link::delayed(Duration::from_millis(5));
    let way = Hosts::new(1).and_then(|hosts| Ok((Path::new(&hosts, 0, delay(), delay(), 1)?, hosts)));
    let (path, hosts) = match way {
        Ok(way) => way,
        Err(skip) => {
            skip.tell();
            return None;
        }
    };
    let apart = Apart::on(hosts, "0.0.0.0");
    let (ca, address) = (apart.lab.ca(), path.server_address().to_string());
    let ke_port = Apart::KE_PORT.to_string();
    let under_nts = ["--ke-port", &ke_port, "--server-name", "ntp.test", "--ca", ca.to_str().unwrap()];
    let target = match arguments[0] {
        "plain" => format!("{address}:{}", Apart::NTP.port()),
        _ => address,
    };
    let mut command = apart.load();
    command.args([arguments[0], &target]).args(&arguments[1..]).args(super::ALWAYS);
    if arguments[0] != "plain" {
        command.args(under_nts);
    }
    let process = authentick_lab::process::Process::start(&mut command);
    wait_for("some requests", || (apart.received() > 20.0).then_some(()));
    let name = apart.hosts.name(Host::Client(0));
    // The cable first, or what is on its way would go round over it.
    for interface in [Hosts::client_interface(), "path0"] {
        let arguments = ["-n", name, "route", "flush", "dev", interface];
        let flushed = std::process::Command::new("ip").args(arguments).status().unwrap();
        assert!(flushed.success());
    }
    Some(finish(process))
}

#[test]
fn way_that_is_gone_is_unreachable() {
    let arguments = ["plain", "--rate", "100", "--step-seconds", "2", "--timeout", "0.3"];
    let Some(record) = without_way(&arguments) else { return };
    let tally = &only(&record).tally;
    // Of those on their way in that instant some may be lost otherwise.
    let unreachable = tally.count_of(Cause::Unreachable);
    assert!(tally.answered >= 20 && unreachable >= 20 && tally.lost - unreachable <= 5, "{:?}", tally.causes);
    assert_eq!((tally.sent, tally.invalid), (tally.answered + tally.lost, 0));
}

#[test]
fn what_the_queue_of_its_own_interface_drops_is_the_generators_loss() {
    let Some(apart) = Apart::new() else { return };
    // Some 280 requests a second, and 22 that wait.
    let bucket = ["root", "tbf", "rate", "200kbit", "burst", "2000", "limit", "2000"];
    let mut command = std::process::Command::new("tc");
    command.args(["-n", apart.hosts.name(Host::Client(0)), "qdisc", "add", "dev", Hosts::client_interface()]);
    assert!(command.args(bucket).status().unwrap().success());
    let mut command = apart.load();
    let address = Apart::NTP.to_string();
    command.args(["plain", &address, "--rate", "1000", "--step-seconds", "1"]).args(super::ALWAYS);
    let mut process = authentick_lab::process::Process::start(&mut command);
    process.wait();
    let record = super::record(&process.log());
    let (step, tally) = (only(&record), &only(&record).tally);
    let dropped = tally.count_of(Cause::LocalBuffer);
    // Nobody else is blamed: what was sent was answered.
    assert_eq!((tally.lost, tally.invalid, tally.answered), (0, 0, tally.sent), "{:?}", tally.causes);
    assert!(dropped >= 200 && tally.sent >= 200, "{:?}", tally.causes);
    assert_eq!(tally.skipped, dropped + tally.count_of(Cause::FellBehind));
    assert_eq!(apart.received() as u64, tally.sent + 1);
    assert!(step.why_invalid.is_some());
}

#[test]
fn mixed_transfers_that_cannot_be_sent_are_counted_and_the_step_ends() {
    // Transfers for ten seconds, so that the way ends in their midst.
    let arguments = ["mix", "--rate", "20", "--step-seconds", "1", "--transfers-per-exchange", "1000"];
    let more = ["--same-cookie", "--timeout", "0.3", "--ke-timeout", "1"];
    let Some(record) = without_way(&[&arguments[..], &more].concat()) else { return };
    let step = only(&record);
    let transfers = step.accompanying.as_ref().unwrap();
    assert!(transfers.answered > 20 && transfers.count_of(Cause::Unreachable) > 20, "{step:?}");
    assert!(step.tally.count_of(Cause::Unreachable) > 0, "{:?}", step.tally.causes);
    // None was forgotten on the way: those of a key exchange are all there.
    assert_eq!(transfers.scheduled, 1000 * step.tally.answered, "{transfers:?}");
}

#[test]
fn nobody_is_taken_for_a_server_that_failed_every_check() {
    // All answers after the first are bad: the command says which kind of failure it was.
    for (fault, code) in [(Fault::Stratum(0), 2), (Fault::Drop, 1)] {
        let server =
            NtpServer::on_loopback(Policy::good().every_from(1_000_000, 1, Fault::Twice).every(1, fault));
        let address = server.address().to_string();
        let arguments = ["--rate", "50", "--step-seconds", "0.2", "--timeout", "0.2", "--unpinned"];
        let output = authentick([&["load", "plain", address.as_str()], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(code), "{fault:?}: {}", text(&output));
    }
}
