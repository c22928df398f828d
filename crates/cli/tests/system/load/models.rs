//! Shapes of load: distances, staircases, and the search for a capacity that is known.

use authentick_lab::servers::{Fault, NtpServer, Policy};
use authentick_lab::skip::skip;
use authentick_report::load::{LoadRecord, Step};

use super::{load, load_first, load_nts, only};
use crate::lab::{Lab, serve};

fn plain(server: &NtpServer, more: &[&str]) -> LoadRecord {
    let address = server.address().to_string();
    load(&[&["plain", address.as_str()], more].concat())
}

#[test]
fn seed_repeats_exponential_arrivals() {
    let server = NtpServer::on_loopback(Policy::good());
    let exponential = |more: &[&str]| {
        let arguments = ["--arrivals", "exponential", "--rate", "500", "--step-seconds", "1"];
        let record = plain(&server, &[&arguments[..], more].concat());
        assert_eq!(record.parameters.arrivals, "exponential");
        (record.parameters.seed, only(&record).tally.scheduled)
    };
    let (seed, count) = exponential(&[]);
    let seed_text = seed.to_string();
    assert_eq!(exponential(&["--seed", &seed_text]), (seed, count));
    // 500 within five of the standard deviations of a Poisson process.
    assert!(count.abs_diff(500) <= 112, "{count}");
    let others = ["1", "2", "3"].map(|seed| exponential(&["--seed", seed]).1);
    assert!(others.iter().any(|&other| other != others[0]), "{others:?}");
}

#[test]
fn steps_follow_the_ramp_and_the_ratio() {
    let server = NtpServer::on_loopback(Policy::good());
    let offered = |record: &LoadRecord| -> Vec<(f64, u64)> {
        record.steps.iter().map(|step| (step.offered_rps.unwrap(), step.tally.scheduled)).collect()
    };
    let ramp = plain(&server, &["--ramp", "100:100:300", "--step-seconds", "0.4"]);
    assert_eq!(offered(&ramp), [(100.0, 40), (200.0, 80), (300.0, 120)]);
    let geometric = plain(&server, &["--geometric", "100:2:400", "--seconds", "0.4"]);
    assert_eq!(offered(&geometric), [(100.0, 40), (200.0, 80), (400.0, 160)]);
    let sent: u64 = ramp.steps.iter().chain(&geometric.steps).map(|step| step.tally.sent).sum();
    assert_eq!(server.counts().received, sent + 2);
    assert!(ramp.capacity_rps.is_none() && ramp.search.is_none());
}

#[test]
fn closed_loop_keeps_its_window_in_flight() {
    // An answer takes 50 ms: four at a time make 80 a second.
    let delay = Fault::Late(std::time::Duration::from_millis(50));
    let server = NtpServer::on_loopback(Policy::good().every(1, delay));
    let record = plain(&server, &["--closed", "4", "--step-seconds", "2"]);
    let step = only(&record);
    assert_eq!((record.parameters.arrivals.as_str(), record.parameters.window), ("closed", Some(4)));
    assert!((60..=164).contains(&step.tally.answered) && step.tally.answered == step.tally.sent, "{step:?}");
    assert_eq!(server.counts().received, step.tally.sent + 1);
}

const CAPACITY_RPS: f64 = 1000.0;

/// What a search has to say of its result, whatever it is.
fn assert_consistent(record: &LoadRecord, server: &NtpServer) {
    let search = record.search.as_ref().unwrap();
    assert_eq!((record.capacity_rps, search.confidence), (search.lower_rps, 0.95));
    assert!(search.loss_low <= search.loss_high && search.loss_low <= search.loss_max, "{search:?}");
    let tried = |rate: Option<f64>| record.steps.iter().filter(move |step| step.offered_rps == rate);
    let held = |step: &Step| step.valid && step.tally.loss_ratio() <= search.loss_max;
    if search.lower_rps.is_some() {
        // A trial that the generator spoilt says nothing of the server: it is repeated, and not counted.
        let trials: Vec<&Step> = tried(search.lower_rps).filter(|step| step.valid).collect();
        let held_count = trials.iter().filter(|step| held(step)).count();
        let counted = (search.trial_count as usize, search.held_count as usize);
        assert_eq!((trials.len(), held_count), counted, "{search:?}");
        assert!(
            held_count >= 3 && trials.len() - held_count < 2,
            "what did not hold is no capacity: {search:?}"
        );
    }
    assert!(!tried(search.upper_rps).all(held), "what held is no bound");
    let by_generator = tried(search.upper_rps).next_back().is_some_and(|step| !step.valid);
    let remark = search.remark.as_deref().unwrap_or_default();
    assert_eq!(
        remark.starts_with("The generator, not the server"),
        by_generator && search.lower_rps.is_some()
    );
    // A search that a busy machine has led astray may come out too low, and never too high.
    assert!(search.lower_rps.is_none_or(|rate| rate < 1.1 * CAPACITY_RPS), "{search:?}");
    let answered: u64 = record.steps.iter().map(|step| step.tally.answered).sum();
    assert!(
        answered < server.counts().good,
        "the server answered at least those, and the load's own request"
    );
}

#[test]
fn search_finds_a_capacity_that_is_known() {
    let arguments = ["--search", "--search-from", "800", "--step-seconds", "0.4", "--timeout", "0.1"];
    for _ in 0..2 {
        let server = NtpServer::on_loopback(Policy::good().limit(CAPACITY_RPS, 15));
        let address = server.address().to_string();
        let record = load_first(&[&["plain", address.as_str()], &arguments[..]].concat());
        let remark = record.search.as_ref().and_then(|search| search.remark.as_deref());
        if remark.is_some_and(|remark| remark.starts_with("The search was given up")) {
            continue;
        }
        assert_consistent(&record, &server);
        // If the generator was kept from it, a rate that the server holds counts as one that did not.
        let misled =
            |step: &Step| !step.valid && step.offered_rps.is_some_and(|rate| rate < 1.1 * CAPACITY_RPS);
        if record.steps.iter().any(misled) {
            continue;
        }
        let (capacity, search) = (record.capacity_rps.unwrap(), record.search.as_ref().unwrap());
        assert!((capacity / CAPACITY_RPS - 1.0).abs() < 0.1, "{capacity}");
        let upper = search.upper_rps.unwrap();
        assert!(capacity < upper && upper < 1.05 * capacity, "{search:?}");
        let words = authentick_report::load::text::conclusion(&record);
        assert!(words.contains("did not. The true loss there is ") && words.contains("95 % confidence"));
        return;
    }
    skip("this machine is too busy for a generator to keep its times");
}

#[test]
fn files_are_written_and_can_be_read() {
    let lab = Lab::new();
    let server = serve(&lab);
    let file = |name: &str| lab.path().join(name).to_str().unwrap().to_owned();
    let (kept, csv, html) = (file("run.json"), file("run.csv"), file("run.html"));
    let arguments =
        ["--rate", "100", "--step-seconds", "0.5", "--record", &kept, "--csv", &csv, "--html", &html];
    let record = load_nts("mix", server.ke, &lab, &arguments);
    let kept = LoadRecord::from_json(&std::fs::read_to_string(kept).unwrap()).unwrap();
    assert_eq!(kept, record, "what is kept is what is printed");

    let csv = std::fs::read_to_string(csv).unwrap();
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(csv.as_bytes());
    // The reader refuses rows of different lengths.
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let of = |row: usize, name: &str| {
        let column = rows[0].iter().position(|heading| heading == name).unwrap();
        &rows[row][column]
    };
    assert_eq!((rows.len(), of(1, "part"), of(2, "part")), (3, "step", "accompanying"));
    assert_eq!(of(1, "scheduled"), "50");
    assert_eq!(of(1, "answered"), only(&record).tally.answered.to_string());
    assert_eq!(of(2, "operation"), "transfer");

    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("<svg") && !page.contains("<script src") && page.contains("mix"));
}
