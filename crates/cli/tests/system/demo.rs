//! `authentick demo`, from nothing to a report.

use std::process::Command;
use std::time::{Duration, Instant};

use authentick_report::load::{LoadRecord, Operation};
use authentick_report::{RunRecord, SchemeRun, units};

use crate::lab::{authentick, text};

/// The middle of the values, by nearest rank; computed here anew, not by the crate that made the table.
fn median_whole_ns(run: &SchemeRun) -> u64 {
    let mut values: Vec<u64> = run.exchanges.iter().map(|exchange| exchange.whole_ns).collect();
    values.sort_unstable();
    values[values.len().div_ceil(2) - 1]
}

#[test]
fn table_says_what_the_record_holds() {
    let folder = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_authentick"))
        .arg("demo")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(start.elapsed() < Duration::from_secs(30));
    let table = String::from_utf8(output.stdout).unwrap();
    let json = std::fs::read_to_string(folder.path().join("authentick-demo/run.json")).unwrap();
    let record = RunRecord::from_json(&json).unwrap();
    let page = std::fs::read_to_string(folder.path().join("authentick-demo/report.html")).unwrap();

    let schemes: Vec<&str> = record.schemes.iter().map(|run| run.scheme.as_str()).collect();
    assert_eq!(schemes, ["plain", "mac", "nts", "nts", "antp", "antp", "antp"]);
    let phases: Vec<bool> = record.schemes.iter().map(|run| run.antp_phases.is_some()).collect();
    assert_eq!(phases, [false, false, false, false, true, true, false]);
    assert!(page.contains("Phases of ANTP"));
    let plain = median_whole_ns(&record.schemes[0]);
    for run in &record.schemes {
        assert!(run.exchanges.len() >= 200, "{}", run.exchanges.len());
        let row =
            table.lines().find(|line| line.starts_with(&run.scheme) && line.contains(&run.authentication));
        let row = row.unwrap_or_else(|| panic!("no row for {}", run.authentication));
        for exchange in &run.exchanges {
            // The four timestamps and what was concluded from them belong together, to the rounding.
            let there = exchange.server_receive_ns - exchange.sent_ns;
            let back = exchange.arrived_ns - exchange.server_transmit_ns;
            assert!((exchange.offset_ns - (there - back) / 2).abs() <= 4, "{exchange:?}");
            assert!((exchange.delay_ns - (there + back)).abs() <= 4, "{exchange:?}");
        }
        let median = median_whole_ns(run);
        assert!(row.contains(&units::time(median)), "{row}");
        if run.scheme != "plain" {
            let added = i64::try_from(median).unwrap() - i64::try_from(plain).unwrap();
            let share = added as f64 / plain as f64;
            let shown = format!("{} ({})", units::signed_time(added), units::signed_share(share));
            assert!(row.ends_with(&shown), "{row:?} does not end with {shown:?}");
            assert!(page.contains(&run.authentication));
        }
    }
    let (_, loads) = table.split_once("Loaded for").unwrap();
    let page = std::fs::read_to_string(folder.path().join("authentick-demo/load.html")).unwrap();
    let mut before = 0;
    for scheme in ["plain", "mac", "nts", "antp"] {
        let file = folder.path().join(format!("authentick-demo/load-{scheme}.json"));
        let load = LoadRecord::from_json(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!((load.scheme.as_str(), load.steps.len()), (scheme, 1));
        let step = &load.steps[0];
        let tally = &step.tally;
        assert!(tally.answered > 1000 && tally.invalid == 0, "{scheme}: {tally:?}");
        // Side by side: one row each in this order, and all of them on one page.
        let at = loads.find(&format!("\n{}  ", load.label())).unwrap_or_else(|| panic!("{scheme}: {loads}"));
        assert!(at > before, "{loads}");
        before = at;
        let row = loads[at..].lines().nth(1).unwrap();
        let column = row[load.label().len()..].split_whitespace().nth(2);
        assert_eq!(column, Some(units::rate(step.answered_rps()).as_str()), "{row:?}");
        assert!(page.contains(&load.label()), "{scheme} is not on the page");
        if scheme == "antp" {
            assert_loaded_with_sessions(&load);
        }
    }
}

/// What the load with ANTP says of itself: real clients, each with a session of its own, as `load antp` has them.
#[track_caller]
fn assert_loaded_with_sessions(load: &LoadRecord) {
    let (antp, step) = (load.parameters.antp.as_ref().unwrap(), &load.steps[0]);
    assert_eq!((antp.kem.as_str(), antp.replay, antp.separate_tag), ("ecdh", false, false));
    assert_eq!((step.tally.operation, step.request_size), (Operation::Transfer, 152));
    let figures = step.antp.as_ref().unwrap();
    assert_eq!((figures.histograms.client_crypto_ns.count(), figures.early), (step.tally.answered, 0));
}

#[test]
fn json_is_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("deep/er");
    let output = authentick(["demo", "--json", "--exchanges", "200", "--out", out.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed, std::fs::read_to_string(out.join("run.json")).unwrap());
    assert!(RunRecord::from_json(&printed).is_ok());
}

#[test]
fn folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = authentick(["demo", "--out", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(78), "{}", text(&output));
    assert!(text(&output).contains("--out"), "{}", text(&output));
}
