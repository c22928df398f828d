//! One small load record, made by hand, rendered every way and compared with files in `golden/`.
//!
//! `AUTHENTICK_UPDATE_GOLDEN=1 cargo test -p authentick-report` writes the files anew; look at the difference before
//! committing it. The record itself is never written: it guards the stored format.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod golden_file;

use authentick_report::load::{Capacity, Limit, LoadRecord, compare, csv, report, text};
use authentick_report::study::request_threshold::{Records, Remarks, compared};
use golden_file::{check, read};
use serde_json::Value;

fn record() -> LoadRecord {
    LoadRecord::from_json(&read("load.json")).unwrap()
}

#[test]
fn every_field_of_the_record_is_read_and_written_back() {
    let written: Value = serde_json::from_str(&record().to_json()).unwrap();
    let stored: Value = serde_json::from_str(&read("load.json")).unwrap();
    assert_eq!(written, stored);
}

/// A record of version 1, as it was written then.
#[test]
fn first_version_is_golden() {
    let record = LoadRecord::from_json(&read("load-1.json")).unwrap();
    check("load-1.txt", &text::summary(&record));
}

#[test]
fn text_is_golden() {
    check("load.txt", &text::summary(&record()));
}

#[test]
fn csv_is_golden() {
    check("load.csv", &csv::csv(&record()));
}

#[test]
fn html_is_golden() {
    check("load.html", &report(&[&record()]).page());
}

/// A newer run without a search, on another path, that answers a tenth less.
#[test]
fn comparison_is_golden() {
    let mut new = record();
    new.path = "local".to_owned();
    new.commit = "ba9876543210".to_owned();
    (new.capacity, new.search) = (None, None);
    let tally = &mut new.steps[2].tally;
    tally.answered -= 685;
    tally.lost += 685;
    check("load-against.txt", &compare::against(&new, &record()).text());
}

/// One host is the record without its agents; the updated configuration carries a quarter less.
#[test]
fn study_of_the_request_threshold_is_golden() {
    let (mut single, several, mut updated) = (record(), record(), record());
    single.steps.iter_mut().for_each(|step| step.hosts.clear());
    single.parameters.agents.clear();
    updated.capacity = Some(Capacity {
        at_least: Some(2100.0),
        below: Some(2200.0),
        limited_by: Limit::Server,
        throughput: None,
    });
    let records = Records {
        one_host: vec![Some(single)],
        several_hosts: vec![Some(several.clone())],
        old: Some(several),
        new: Some(updated),
    };
    let remarks = Remarks {
        study: vec!["On <the> study.".to_owned()],
        several_hosts: vec!["On several hosts.".to_owned()],
        configurations: vec!["On two configurations.".to_owned()],
        processors: Some(1.0),
    };
    let report = compared(&records, &remarks);
    check("request-threshold.txt", &report.text());
    check("request-threshold.html", &report.page());
}
