//! What the tables show of a record with round figures.

use super::*;
use crate::study::antp::findings::{Filled, cells, findings};
use crate::study::antp::tests::record;

fn row<'a>(table: &'a Table, start: &[&str]) -> &'a [String] {
    let rows = table.rows.iter().map(|row| &row.cells[..]);
    rows.into_iter().find(|row| row.iter().zip(start).all(|(cell, part)| cell == part)).unwrap()
}

#[test]
fn table_1_has_phases_suites_throughput_and_four_latencies() {
    let table = table_1(&record());
    assert_eq!((table.columns.len(), table.rows.len()), (8, 7 + 2 + 2));
    assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
    let time = row(&table, &["time synchronisation", "-"]);
    assert_eq!(time[2..5], ["175,644", "200,000 (\u{b1} 1,414)", "110.0 us (330.0 us)"]);
    assert_eq!(time[7], "70.24 ms (210.72 ms)");
    let rsa = row(&table, &["key exchange", "RSA"]);
    assert_eq!(rsa[2..5], ["unknown to us", "4,000 (\u{b1} 28.3)", "350.0 us (1.05 ms)"]);
    let link = row(&table, &["negotiation behind 1 Gbit/s", "RSA"]);
    assert_eq!(link[2..5], ["unknown to us", "90,000 (\u{b1} 636)", "-"]);
    assert_eq!(row(&table, &["all three phases", "ECDH"])[2..5], ["-", "-", "700.0 us (700.0 us)"]);
    assert_eq!(row(&table, &["plain NTP"])[2], "about 281,000 (computed)");
}

#[test]
fn published_ratios_stand_beside_ours() {
    let table = ratios(&record());
    let find = |what: &str| row(&table, &[what])[1..3].to_vec();
    assert_eq!(find("throughput, plain over time synchronisation"), ["1.6", "1.25 (1.24 .. 1.26)"]);
    assert_eq!(find("latency of time synchronisation against plain, at 50 %"), ["+14 %", "+10 %"]);
    assert_eq!(find("latency of time synchronisation against plain, at 90 %"), ["+27 %", "+20 %"]);
    assert_eq!(find("throughput of key exchanges, ECDH over RSA"), ["7.54", "5.00 (4.95 .. 5.05)"]);
    assert_eq!(find("the primitives alone, ECDH over RSA"), ["8.62", "7.00"]);
    assert_eq!(find("the former by the latter"), ["0.87", "0.71"]);
    assert_eq!(find("latency of key exchanges at 90 %, RSA over ECDH"), ["2.9", "3.00"]);
    assert_eq!(find("latency of negotiations at 90 %, ECDH over RSA"), ["above 1", "1.20"]);
    assert!(table.rows.iter().all(|row| row.cells[3].is_empty()));
}

#[test]
fn ratio_that_is_withheld_says_why_in_table_and_findings() {
    let mut record = record();
    record.trials.iter_mut().for_each(|trial| trial.server_share = Some(0.39));
    let table = ratios(&record);
    let cells = row(&table, &["throughput, plain over time synchronisation"]);
    assert_eq!(cells[1..3], ["1.6", "withheld"]);
    assert!(cells[3].contains("39.00 % of its processor"), "{}", cells[3]);
    assert_eq!(row(&table, &["the former by the latter"])[2], "-");
    let sentences = findings(&record).join("\n");
    assert_eq!(sentences.matches("39.00 % of its processor").count(), 3, "{sentences}");
    assert!(!sentences.contains("of the plain rate here"), "{sentences}");
}

#[test]
fn complete_run_shows_the_difference_and_what_was_timed_of_it() {
    let table = complete_runs(&record());
    let short = row(&table, &["ECDH", "short", "50 %"]);
    assert_eq!(
        short[3..],
        ["700.0 us", "130.0 us", "160.0 us", "110.0 us", "400.0 us", "300.0 us", "280.0 us", UNKNOWN]
    );
    assert_eq!(table.rows.len(), 8);
    assert_eq!(signed(-12.0), "-12.0 us");
}

#[test]
fn cost_of_an_exchange_is_told_by_the_primitive() {
    let table = exchange_cost(&record());
    assert_eq!(
        row(&table, &["ECDH"])[1..],
        ["28.0 us", "30.0 us", "30.0 us", "1.07", "47.5 us", "1.70", "60.0 us"]
    );
}

#[test]
fn what_is_not_measured_is_counted_and_never_a_number() {
    let whole = record();
    assert!(cells(&whole).all(|cell| cell == Filled::Measured));
    let mut part = whole.clone();
    part.trials.retain(|trial| trial.subject != Subject::TIME);
    part.latencies.retain(|latency| latency.path == Path::Short);
    assert_eq!(cells(&part).filter(|cell| *cell == Filled::Missing).count(), 1 + 9 * 2);
    let table = table_1(&part);
    assert_eq!(row(&table, &["time synchronisation"])[3], NOT_MEASURED);
    assert_eq!(row(&table, &["plain NTP"])[6..], ["-", "-"]);
    assert!(findings(&part).last().unwrap().contains("19 cells"));
    let empty = AntpRecord {
        primitives: Vec::new(),
        capacities: Vec::new(),
        trials: Vec::new(),
        latencies: Vec::new(),
        ..whole
    };
    assert_eq!(findings(&empty), ["43 cells of Table 1 are not measured yet."]);
    assert!(ratios(&empty).rows.iter().all(|row| row.cells[2] == ABSENT));
    assert!(exchange_cost(&empty).rows.iter().all(|row| row.cells[1..].iter().all(|cell| cell == ABSENT)));
}

#[test]
fn figures_of_trials_that_do_not_count_have_a_mark_and_are_in_no_ratio() {
    let mut record = record();
    for trial in record.trials.iter_mut().filter(|trial| trial.subject == Subject::TIME) {
        trial.why_invalid = Some("late".to_owned());
    }
    for latency in &mut record.latencies {
        let is_marked = latency.subject.phase == Phase::Complete || latency.subject == Subject::PLAIN;
        latency.why_invalid = is_marked.then(|| "late".to_owned());
    }
    let table = table_1(&record);
    assert_eq!(row(&table, &["time synchronisation"])[3], "200,000 (\u{b1} 1,414) !");
    assert_eq!(row(&table, &["plain NTP"])[4], "100.0 us (300.0 us) !");
    assert_eq!(row(&table, &["key exchange", "ECDH"])[4], "150.0 us (450.0 us)");
    assert_eq!(row(&complete_runs(&record), &["RSA", "long", "90 %"])[8], "300.0 us !");
    let ratios = ratios(&record);
    assert_eq!(row(&ratios, &["throughput, plain over time synchronisation"])[2], ABSENT);
    assert_eq!(row(&ratios, &["latency of time synchronisation against plain, at 50 %"])[2], ABSENT);
    assert!(findings(&record).iter().any(|one| one.starts_with("13 cells") && one.contains("(!)")));
}

#[test]
fn trial_that_does_not_count_says_why() {
    let mut record = record();
    record.capacities[0].remark = Some("the generator was the limit".to_owned());
    record.trials[0].why_invalid = Some("it fell behind".to_owned());
    let table = throughput_detail(&record);
    let plain = row(&table, &["plain NTP"]);
    assert_eq!(plain[5], "1 of 2");
    assert_eq!(plain[9], "the generator was the limit; a trial does not count: it fell behind");
}
