//! How a run ends: with which code, and what it leaves in its file, also if it is killed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use authentick_lab::process::Process;
use authentick_lab::servers::{Ending, Fault, NtpServer, Policy};
use authentick_report::load::{Cause, Interruption, LoadRecord};

use super::{begin, finish_ending, load_ending, only, under_nts};
use crate::lab::{Lab, authentick, program, serve, text, wait_for};

/// The record in a file, if there is a whole one.
fn kept(file: &Path) -> Option<LoadRecord> {
    LoadRecord::from_json(&fs::read_to_string(file).ok()?).ok()
}

/// The code of a load that was started, and all that it said.
fn ended(mut process: Process) -> (i32, String) {
    let code = process.wait();
    (code, process.log())
}

#[test]
fn killed_run_leaves_a_record_of_the_steps_that_ended() {
    let lab = Lab::new();
    let file = lab.path().join("run.json");
    let server = NtpServer::on_loopback(Policy::good());
    let address = server.address().to_string();
    let shape = ["--ramp", "100:100:500", "--step-seconds", "2", "--record", file.to_str().unwrap()];
    let process = begin(&[&["plain", address.as_str()], &shape[..]].concat());
    let two = wait_for("two steps", || kept(&file).filter(|record| record.steps.len() == 2));
    process.signal("-KILL");
    assert_eq!(ended(process).0, -1);
    let record = kept(&file).unwrap();
    assert_eq!((record.interrupted.as_ref(), record == two), (Some(&Interruption::Unfinished), true));
    let rates: Vec<_> = record.steps.iter().map(|step| (step.offered_rps, step.tally.scheduled)).collect();
    assert_eq!(rates, [(Some(100.0), 200), (Some(200.0), 400)]);
    let names: Vec<_> = fs::read_dir(lab.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().ends_with(".new")), "{names:?}");
    let shown = authentick(["report", file.to_str().unwrap()]);
    assert!(shown.status.success(), "{}", text(&shown));
    assert!(text(&shown).contains("INTERRUPTED: not finished"), "{}", text(&shown));
}

#[test]
fn second_interrupt_loses_the_running_step_alone() {
    let lab = Lab::new();
    let file = lab.path().join("run.json");
    // The first step is answered, the second is not: whoever stops waits for its answers.
    let server = NtpServer::on_loopback(Policy::good().stop_after(51, Ending::Silent));
    let address = server.address().to_string();
    let shape = ["--ramp", "100:100:200", "--step-seconds", "0.5", "--timeout", "3"];
    let kept_in = ["--record", file.to_str().unwrap()];
    let process = begin(&[&["plain", address.as_str()], &shape[..], &kept_in].concat());
    wait_for("requests of the second step", || (server.counts().ignored > 10).then_some(()));
    process.signal("-INT");
    wait_for("its notice", || process.log().contains("again: quit at once").then_some(()));
    process.signal("-INT");
    let (code, said) = ended(process);
    assert_eq!(code, 130, "{said}");
    let record = kept(&file).unwrap();
    assert_eq!((record.steps.len(), &record.interrupted), (1, &Some(Interruption::Unfinished)));
}

#[test]
fn interrupt_while_the_first_keys_are_fetched_leaves_a_record_that_says_so() {
    let lab = Lab::new();
    let file = lab.path().join("run.json");
    let server = serve(&lab);
    let more = ["--clients", "8000", "--record", file.to_str().unwrap()];
    let process = begin(&under_nts("nts", server.ke, &lab, &more));
    wait_for("key exchanges", || (server.metric("nts_ke_connections_accepted_total") > 5.0).then_some(()));
    process.signal("-INT");
    let printed = finish_ending(3, process);
    assert_eq!((printed.steps.len(), &printed.interrupted), (0, &Some(Interruption::ByUser)));
    assert_eq!(kept(&file).unwrap(), printed);
}

#[test]
fn crossed_threshold_is_exit_4_and_names_itself() {
    // One answer in ten is missing.
    let server = NtpServer::on_loopback(Policy::good().every(10, Fault::Drop));
    let address = server.address().to_string();
    let shape = ["--rate", "200", "--step-seconds", "1", "--timeout", "0.3"];
    let run = |thresholds: &[&str]| {
        let options = thresholds.iter().flat_map(|threshold| ["--fail-if", threshold]);
        authentick(["load", "plain", &address, "--unpinned"].into_iter().chain(shape).chain(options))
    };
    // On a busy machine the run says nothing, and no threshold is asked.
    let is = |output: &std::process::Output, code| [Some(code), Some(3)].contains(&output.status.code());
    let output = run(&["loss>1%", "timeout>100000", "p99>10s"]);
    assert!(is(&output, 4), "{}", text(&output));
    if output.status.code() == Some(4) {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("loss>1%") && !said.contains("timeout>100000"), "{said}");
    }
    let output = run(&["loss>50%"]);
    assert!(is(&output, 0), "{}", text(&output));
    for wrong in ["p99", "p99>2", "loss>1ms", "speed>1"] {
        let output = run(&[wrong]);
        assert_eq!(output.status.code(), Some(64), "{wrong}: {}", text(&output));
    }
}

/// The generator stands still for 0.4 s, and one request in twenty is lost: whose fault that is, nothing shows.
#[test]
fn run_without_a_valid_step_is_exit_3_for_load_and_stress() {
    let lab = Lab::new();
    let report = lab.path().join("ntpdata.txt");
    for command in ["load", "stress"] {
        let server = NtpServer::on_loopback(Policy::good().every(20, Fault::Drop));
        let address = server.address().to_string();
        let arguments: &[&str] = match command {
            "load" => &["plain", &address, "--rate", "500", "--step-seconds", "2"],
            _ => &[&address, "500", "2", report.to_str().unwrap()],
        };
        let mut process = Process::start(Command::new(program().path()).arg(command).args(arguments));
        wait_for("requests", || (server.counts().received > 100).then_some(()));
        process.signal("-STOP");
        std::thread::sleep(Duration::from_millis(400));
        process.signal("-CONT");
        let code = process.wait();
        assert_eq!(code, 3, "{command}: {}", process.log());
        let sentence = "this run says nothing about the server";
        wait_for("the reason", || process.log().contains(sentence).then_some(()));
    }
}

#[test]
fn server_that_is_not_synchronised_is_loaded_if_that_is_said() {
    let server = NtpServer::on_loopback(Policy::good().every(1, Fault::Unsynchronised));
    let address = server.address().to_string();
    let shape = ["plain", &address, "--rate", "100", "--step-seconds", "0.5"];
    let output = authentick(["load"].iter().chain(&shape).copied());
    assert_eq!((output.status.code(), server.counts().received), (Some(2), 1), "{}", text(&output));
    let record = load_ending(2, &[&shape[..], &["--force-first"]].concat());
    let tally = &only(&record).tally;
    assert_eq!((tally.scheduled, tally.answered, tally.invalid), (50, 0, tally.sent));
    let causes = tally.count_of(Cause::BadLeap) + tally.count_of(Cause::BadStratum);
    assert_eq!(causes, tally.sent, "{:?}", tally.causes);
}

#[test]
fn silent_server_is_loaded_if_that_is_said_and_keys_are_no_matter_of_saying_so() {
    let server = NtpServer::on_loopback(Policy::good().stop_after(0, Ending::Silent));
    let address = server.address().to_string();
    let shape = ["--rate", "100", "--step-seconds", "0.5", "--timeout", "0.2", "--force-first"];
    let record = load_ending(1, &[&["plain", address.as_str()], &shape[..]].concat());
    let tally = &only(&record).tally;
    assert_eq!((tally.answered, tally.lost, tally.sent + 1), (0, tally.sent, server.counts().received));
    let (lab, other) = (Lab::new(), Lab::new());
    let server = serve(&lab);
    let arguments = under_nts("nts", server.ke, &other, &["--force-first"]);
    let output = authentick(std::iter::once("load").chain(arguments.iter().map(String::as_str)));
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("--force-first cannot go on without keys"), "{}", text(&output));
}
