//! One small load record, made by hand, rendered every way and compared with files in `golden/`.
//!
//! `AUTHENTICK_UPDATE_GOLDEN=1 cargo test -p authentick-report` writes the files anew; look at the difference before
//! committing it. The record itself is never written: it guards the stored format.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod golden_file;

use authentick_report::load::{LoadRecord, compare, csv, html, text};
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
    check("load.html", &html::page(&[&record()]));
}

/// A newer run without a search, on another path, that answers a tenth less.
#[test]
fn comparison_is_golden() {
    let mut new = record();
    new.path = "local".to_owned();
    new.commit = "ba9876543210".to_owned();
    new.capacity_rps = None;
    new.search = None;
    let tally = &mut new.steps[2].tally;
    tally.answered -= 685;
    tally.lost += 685;
    check("load-against.txt", &compare::against(&new, &record()).text());
}
