//! `authentick report`: records in, text and pages out, and a gate between two runs.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use authentick_report::load::{Capacity, Limit, LoadRecord};
use tempfile::TempDir;

use crate::lab::{is_root, text};
use crate::operator::as_nobody;

/// The hand-made record that the golden files of the report crate are rendered from.
fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden/load.json")
}

fn demo() -> PathBuf {
    golden().with_file_name("run.json")
}

/// A folder with a record that differs from the golden one.
fn changed(change: impl FnOnce(&mut LoadRecord)) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mut record = LoadRecord::from_json(&std::fs::read_to_string(golden()).unwrap()).unwrap();
    change(&mut record);
    let path = folder.path().join("changed.json");
    std::fs::write(&path, record.to_json()).unwrap();
    (folder, path)
}

fn report(arguments: &[&dyn AsRef<OsStr>]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_authentick")).arg("report").args(arguments).output().unwrap()
}

fn printed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(output: &Output, code: i32, parts: &[&str]) {
    crate::lab::refused(output, code, parts);
    assert!(output.stdout.is_empty(), "{}", text(output));
}

#[test]
fn format_decides_what_is_rendered() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let out = printed(&report(&[&golden(), &"--html", &page]));
    assert!(out.contains("Capacity: From 2,800/s to 2,900/s") && out.contains("page.html"), "{out}");
    let load_page = std::fs::read_to_string(&page).unwrap();
    assert!(load_page.contains("A time server under load") && load_page.ends_with("</html>\n"));
    let out = printed(&report(&[&demo(), &"--html", &page]));
    assert!(out.contains("added by"), "{out}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("What authenticated time costs"));
    // Both kinds as text, but not on one page.
    let out = printed(&report(&[&demo(), &golden()]));
    assert!(out.contains("added by") && out.contains("Capacity: From 2,800/s"), "{out}");
    let both = report(&[&demo(), &golden(), &"--html", &page]);
    refused(&both, 64, &["one page", "not both"]);
    refused(&report(&[&demo(), &demo(), &"--html", &page]), 64, &["one run of the demo"]);
}

/// A capacity that the server limited.
fn capacity(at_least: f64, below: f64) -> Option<Capacity> {
    Some(Capacity {
        at_least: Some(at_least),
        below: Some(below),
        limited_by: Limit::Server,
        throughput: None,
    })
}

#[test]
fn several_runs_are_compared_with_the_first() {
    let (folder, faster) = changed(|record| {
        record.capacity = capacity(4200.0, 4350.0);
        record.server_label = Some("the faster".to_owned());
    });
    let page = folder.path().join("page.html");
    let out = printed(&report(&[&golden(), &faster, &"--html", &page]));
    assert!(
        out.contains("from 4,200 to 4,350 against from 2,800 to 2,900 requests a second, a ratio of 1.50"),
        "{out}"
    );
    assert!(std::fs::read_to_string(&page).unwrap().contains("<h2>B (the faster) against A ("));
}

#[test]
fn gate_passes_at_the_ratio_and_fails_below() {
    let (_folder, slower) = changed(|record| {
        record.capacity = capacity(2520.0, 2600.0);
        record.server_label = Some("the slower".to_owned());
    });
    let gate = |least: &'static str| report(&[&slower, &"--against", &golden(), &"--fail-below", &least]);
    let out = printed(&gate("0.9"));
    assert!(out.contains("a ratio of 0.90; the intervals allow 0.87 to 0.93."), "{out}");
    let failed = gate("0.91");
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed));
    let message = String::from_utf8_lossy(&failed.stderr);
    for part in ["the gate failed", "changed.json: the slower: ", "0.900, less than 0.91"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(String::from_utf8_lossy(&failed.stdout).contains("a ratio of 0.90"), "the figures are shown too");
}

#[test]
fn gate_on_latency_compares_a_percentile_at_equal_rates() {
    let (_folder, slower) = changed(|record| {
        let tally = &mut record.steps[1].tally;
        tally.latency_us.as_mut().unwrap().p99 *= 2.0;
        tally.from_send_us = tally.latency_us;
    });
    let gate = |words: &[&'static str]| {
        let mut all: Vec<&dyn AsRef<OsStr>> = vec![&slower, &"--against"];
        let golden = golden();
        all.push(&golden);
        all.extend(words.iter().map(|word| word as &dyn AsRef<OsStr>));
        report(&all)
    };
    printed(&gate(&["--fail-above", "2"]));
    printed(&gate(&["--fail-above", "1", "--percentile", "p50"]));
    let failed = gate(&["--fail-above", "1.9"]);
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed));
    assert!(
        text(&failed).contains("the ratio of p99 at 2,000/s is 2.000, more than 1.9"),
        "{}",
        text(&failed)
    );
    refused(&gate(&["--fail-above", "2", "--percentile", "p98"]), 64, &["--percentile", "p98", "p99.9"]);
}

#[test]
fn unlike_runs_are_refused_unless_told() {
    let (_folder, other) = changed(|record| {
        record.path = "loopback".to_owned();
        record.parameters.clients = 3;
    });
    let gate: [&dyn AsRef<OsStr>; 5] = [&other, &"--against", &golden(), &"--fail-below", &"0.5"];
    let parts =
        ["changed.json", "path: new loopback; old network", "clients: new 3; old 100", "--allow-unlike"];
    refused(&report(&gate), 64, &parts);
    let told: Vec<&dyn AsRef<OsStr>> =
        gate.into_iter().chain([&"--allow-unlike" as &dyn AsRef<OsStr>]).collect();
    assert!(printed(&report(&told)).contains("unlike: path: new loopback; old network"));
    // Without a gate they are compared, and the differences are told.
    assert!(printed(&report(&gate[..3])).contains("unlike: clients: new 3; old 100"));
}

#[test]
fn run_that_measured_nothing_passes_no_gate() {
    let (_folder, empty) = changed(|record| {
        let limited_by = Limit::Generator;
        record.capacity =
            Some(Capacity { at_least: Some(9000.0), below: None, limited_by, throughput: None });
    });
    let output = report(&[&empty, &"--against", &golden(), &"--fail-below", &"0.01"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(
        text(&output).contains("no capacity in the new run: the generator was the limit"),
        "{}",
        text(&output)
    );
}

#[test]
fn options_that_make_no_sense_are_usage_errors() {
    refused(&report(&[&golden(), &"--fail-below", &"0.9"]), 64, &["--against"]);
    let zero = report(&[&golden(), &"--against", &golden(), &"--fail-below", &"0"]);
    refused(&zero, 64, &["--fail-below", "above 0"]);
    refused(&report(&[&golden(), &"--fail-above", &"2"]), 64, &["--against"]);
    refused(&report(&[&golden(), &"--allow-unlike"]), 64, &["--against"]);
    refused(&report(&[&golden(), &"--against", &golden(), &"--percentile", &"p50"]), 64, &["--fail-above"]);
    refused(&report(&[]), 64, &["RUN.json"]);
}

#[test]
fn wrong_files_are_named_with_problem_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file.json");
    let of = |content: &[u8]| {
        std::fs::write(&file, content).unwrap();
        report(&[&file])
    };
    refused(&of(b"not json"), 78, &["file.json", "line 1", "--record"]);
    refused(&of(b"[1]"), 78, &["file.json"]);
    refused(&of(b"\xff\xfe"), 78, &["file.json", "UTF-8"]);
    let later = br#"{"format": "authentick-load/9"}"#;
    refused(
        &of(later),
        78,
        &["file.json", "authentick-load/9", "authentick-load/1", "authentick-load/2", "later one"],
    );
    refused(&of(br#"{"format": "authentick-load/1"}"#), 78, &["file.json", "missing field `command`"]);
    let text = std::fs::read_to_string(golden()).unwrap();
    let tampered = text.replacen("\"answered\": 2000", "\"answered\": 2001", 1);
    assert_ne!(tampered, text);
    refused(&of(tampered.as_bytes()), 78, &["file.json", "step 1", "do not add up"]);
    let missing = folder.path().join("missing.json");
    refused(&report(&[&missing]), 78, &["missing.json", "cannot read", "exists"]);
    let demo_against = report(&[&golden(), &"--against", &demo()]);
    refused(&demo_against, 78, &["run.json", "run of the demo", "--against"]);
    refused(&report(&[&demo(), &"--against", &golden()]), 78, &["run.json", "load record"]);
    let nowhere = folder.path().join("missing/page.html");
    refused(&report(&[&golden(), &"--html", &nowhere]), 78, &["page.html", "--html"]);
}

#[test]
fn record_that_may_not_be_read_is_exit_77() {
    if !is_root("to start as a user who may not read the record") {
        return;
    }
    let (folder, path) = changed(|_| ());
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let output = as_nobody(folder.path(), &["report", path.to_str().unwrap()]);
    refused(&output, 77, &["changed.json", "Permission denied", "may read"]);
}
