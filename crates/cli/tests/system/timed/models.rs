//! Shapes of load: distances, staircases, and the search for a capacity that is known.

use authentick_lab::servers::{Fault, NtpServer, Policy};
use authentick_lab::skip::skip;
use authentick_report::load::{Finding, LoadRecord};

use crate::lab::{Lab, serve};
use crate::load::{load, load_first, load_nts, only};

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
    assert!(ramp.capacity.is_none() && ramp.search.is_none());
}

#[test]
fn rates_in_equal_ratios_end_where_the_server_collapses() {
    // 1,600/s and 6,400/s lose more than half; 400/s does not.
    let shape = ["--geometric", "100:4:25600", "--step-seconds", "0.5", "--timeout", "0.1"];
    let server = NtpServer::on_loopback(Policy::good().limit(500.0, 15));
    let record = plain(&server, &shape);
    assert_eq!((record.steps.len(), record.collapsed, &record.interrupted), (4, true, &None));
    assert_eq!(record.parameters.stop_at_loss, Some(0.5));
    let words = authentick_report::load::text::summary(&record);
    assert!(words.contains("ended after two steps in a row that lost more than 50"), "{words}");
    let server = NtpServer::on_loopback(Policy::good().limit(500.0, 15));
    let record = plain(&server, &[&shape[..], &["--stop-at-loss", "1"]].concat());
    assert_eq!((record.steps.len(), record.collapsed), (5, false), "nothing loses more than all");
}

#[test]
fn warm_up_is_offered_and_counted_by_the_server_alone() {
    let server = NtpServer::on_loopback(Policy::good());
    let record = plain(&server, &["--rate", "200", "--step-seconds", "1", "--warm-up", "0.5"]);
    let tally = &only(&record).tally;
    assert_eq!((tally.scheduled, record.parameters.warm_up_seconds), (200, 0.5));
    // A hundred more, as far as this machine sent them in time, and the load's own request.
    let more = server.counts().received - tally.sent - 1;
    assert!((50..=100).contains(&more), "{more}");
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
    let (search, capacity) = (record.search.as_ref().unwrap(), record.capacity.unwrap());
    let of = |finding: Finding| search.samples.iter().filter(move |sample| sample.finding == finding);
    let highest = of(Finding::Holds).filter_map(|sample| sample.sustained_rps).reduce(f64::max);
    let lowest = of(Finding::Exceeds).map(|sample| sample.rate_rps).reduce(f64::min);
    assert_eq!((capacity.at_least, capacity.below), (highest, lowest), "each end rests on a sample");
    for sample in &search.samples {
        // Trials at this rate that count are at least those of the sample.
        let there = record.steps.iter().filter(|step| step.offered_rps == Some(sample.rate_rps));
        assert!(there.clone().count() >= sample.trial_count as usize, "{sample:?}");
        assert!(sample.failed <= sample.sent && sample.held_count <= sample.trial_count);
    }
    // A search whose trials were spoilt may say little, but nothing that is wrong.
    assert!(capacity.at_least.is_none_or(|rate| rate < 1.1 * CAPACITY_RPS), "{search:?}");
    assert!(capacity.below.is_none_or(|rate| capacity.at_least.is_none_or(|least| least < rate)));
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
        assert_consistent(&record, &server);
        let words = authentick_report::load::text::conclusion(&record);
        assert!(words.contains("95 % confidence"), "{words}");
        // If the generator was kept from it, there is no upper end.
        let capacity = record.capacity.unwrap();
        let (Some(at_least), Some(below)) = (capacity.at_least, capacity.below) else { continue };
        assert!(at_least > 0.8 * CAPACITY_RPS, "{capacity:?}");
        assert!((CAPACITY_RPS..1.3 * CAPACITY_RPS).contains(&below), "{capacity:?}");
        assert!(
            words.contains("5 of 5 fresh trials held") || words.contains("8 fresh trials held"),
            "{words}"
        );
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
        ["--rate", "100", "--step-seconds", "0.5", "--label", "the lab's", "--record", &kept, "--csv", &csv];
    let arguments = [&arguments[..], &["--html", &html]].concat();
    let record = load_nts("mix", server.ke, &lab, &arguments);
    let kept = LoadRecord::from_json(&std::fs::read_to_string(kept).unwrap()).unwrap();
    assert_eq!(kept, record, "what is kept is what is printed");
    assert_eq!(kept.server_label.as_deref(), Some("the lab's"));

    let csv = std::fs::read_to_string(csv).unwrap();
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(csv.as_bytes());
    // The reader refuses rows of different lengths.
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let of = |row: usize, name: &str| {
        let column = rows[0].iter().position(|heading| heading == name).unwrap();
        &rows[row][column]
    };
    let parts: Vec<&str> = (1..rows.len()).map(|row| of(row, "part")).collect();
    // The step lasts half a second, and what came of its last requests may be in another.
    assert!(parts.starts_with(&["step", "accompanying", "second"]), "{parts:?}");
    assert!(parts[2..].iter().all(|part| *part == "second"), "{parts:?}");
    assert_eq!(of(1, "scheduled"), "50");
    assert_eq!(of(1, "answered"), only(&record).tally.answered.to_string());
    assert_eq!(of(2, "operation"), "transfer");

    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("<svg") && !page.contains("<script src") && page.contains("mix"));
}
