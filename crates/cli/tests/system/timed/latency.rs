//! A server that stops shows as open-loop arithmetic says, and a generator that stops is not taken for it.

use std::time::Duration;

use authentick_lab::process::Process;
use authentick_lab::servers::{NtpServer, Policy};
use authentick_lab::skip::skip;
use authentick_report::load::{Cause, LoadRecord, Percentiles};

use crate::lab::{program, wait_for};
use crate::load::{begin, finish_ending, load, load_first, only};

const ATTEMPT_COUNT: usize = 4;

/// Loads a server with `arguments` until the generator has kept its times in every step, as a record of another run
/// says nothing; `None` if this machine never lets it.
fn valid(arguments: &[&str]) -> Option<LoadRecord> {
    let found = (0..ATTEMPT_COUNT)
        .map(|_| load_first(arguments))
        .find(|record| record.steps.iter().all(|step| step.valid));
    if found.is_none() {
        skip("this machine is too busy for a generator to keep its times");
    }
    found
}

fn latency_ms(record: &LoadRecord) -> Percentiles {
    let us = only(record).tally.latency_us.unwrap();
    let [min, p50, p90, p99, p999, max] =
        [us.min, us.p50, us.p90, us.p99, us.p999, us.max].map(|us| us / 1000.0);
    Percentiles { min, p50, p90, p99, p999, max, ..Percentiles::default() }
}

#[test]
fn stop_of_200_ms_a_second_shows_as_arithmetic_says_and_a_closed_loop_hides_it() {
    let pausing = || Policy::good().pause(Duration::from_secs(1), Duration::from_millis(200));
    let server = NtpServer::on_loopback(pausing());
    let address = server.address().to_string();
    let Some(open) = valid(&["plain", &address, "--rate", "400", "--step-seconds", "3"]) else { return };
    let tally = &only(&open).tally;
    // Requests wait in the server's socket and are answered afterwards.
    assert_eq!((tally.answered, server.dropped()), (1200, 0));
    // One in five comes into a stop, and waits for its end: evenly between 0 and 200 ms.
    let waits = &tally.histograms.latency_ns;
    let longer = |ms: i64| -> u64 {
        waits.pairs().iter().filter(|(ns, _)| *ns > ms * 1_000_000).map(|&(_, count)| count).sum()
    };
    for (ms, expected) in [(40, 192), (80, 144), (120, 96), (160, 48)] {
        assert!(longer(ms).abs_diff(expected) <= 36, "{} waited for more than {ms} ms", longer(ms));
    }
    let ms = latency_ms(&open);
    assert!(ms.p50 < 20.0 && (80.0..125.0).contains(&ms.p90), "{ms:?}");
    assert!((175.0..225.0).contains(&ms.p99) && ms.max >= ms.p99, "{ms:?}");

    let closed = load(&["plain", &address, "--closed", "1", "--step-seconds", "2"]);
    let ms = latency_ms(&closed);
    assert!(ms.p90 < 10.0 && ms.p99 < 50.0, "a closed loop asks nothing during a stop: {ms:?}");
    assert!(ms.max > 100.0, "it met the stop: {ms:?}");
    assert_eq!(only(&closed).offered_rps, None);
}

#[test]
fn generator_that_was_stopped_says_so_and_the_step_is_invalid() {
    const RATE_RPS: u64 = 300;
    let server = NtpServer::on_loopback(Policy::good());
    let (address, rate) = (server.address().to_string(), RATE_RPS.to_string());
    let arguments = ["plain", &address, "--rate", &rate, "--step-seconds", "2"];
    let as_json = begin(&arguments);
    let mut as_text = Process::start(
        std::process::Command::new(program().path()).arg("load").args(arguments).arg("--unpinned"),
    );
    // Both are in the midst of their steps.
    wait_for("requests of both", || (server.counts().received > RATE_RPS).then_some(()));
    let signal = |signal| [&as_json, &as_text].map(|process| process.signal(signal));
    signal("-STOP");
    std::thread::sleep(Duration::from_millis(400));
    signal("-CONT");
    let record = finish_ending(0, as_json);
    assert_eq!(as_text.wait(), 0, "{}", as_text.log());
    let step = only(&record);
    let why = step.why_invalid.as_deref().unwrap();
    assert!(!step.valid && step.loss_valid && why.starts_with("generator fell behind: "), "{why}");
    // What was due more than 100 ms before the generator went on is given up, and says so; the rest left late.
    let given_up = step.tally.count_of(Cause::FellBehind);
    assert_eq!((step.tally.scheduled, step.tally.skipped), (2 * RATE_RPS, given_up));
    assert!((60..=250).contains(&given_up) && why.contains(&format!("{given_up} were given up")), "{why}");
    assert!(step.lateness_us.unwrap().p99 > 50_000.0, "{:?}", step.lateness_us);
    // Nobody takes it for the server's fault.
    assert_eq!((step.tally.lost, step.tally.invalid), (0, 0));
    let text = wait_for("the text", || Some(as_text.log()).filter(|log| log.contains("Capacity")));
    assert!(text.contains("latency not known: generator"), "{text}");
}
