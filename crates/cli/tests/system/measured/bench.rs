//! `authentick bench mac` with few and short turns: that everything is measured and rendered, and never how fast.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use authentick_report::mac::{Algorithm, Implementation, Instructions, KeyUse, MacRecord, Side};

use crate::lab::{alone, authentick, text};

const SMALL: [&str; 8] = ["bench", "mac", "--rounds", "2", "--turn-ms", "0.2", "--singles", "50"];

fn bench(more: &[&str]) -> Output {
    authentick(SMALL.iter().chain(more).copied())
}

/// Whether a side has figures of this, alone and in batches.
fn has(side: &Side, algorithm: Algorithm, implementation: Implementation, key: KeyUse, batch: u32) -> bool {
    let wanted = (algorithm, implementation, key, batch);
    side.timings
        .iter()
        .any(|timing| (timing.algorithm, timing.implementation, timing.key, timing.batch) == wanted)
}

#[test]
fn every_algorithm_is_measured_by_everybody_with_and_without_the_instructions() {
    let _turn = alone();
    let output = bench(&["--json"]);
    assert!(output.status.success(), "{}", text(&output));
    let record = MacRecord::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap();
    assert_eq!((record.round_count, record.turn_ms), (2, 0.2));
    assert_eq!(record.openssl.is_some(), cfg!(feature = "openssl"));
    let both = cfg!(target_arch = "x86_64");
    assert_eq!(record.sides.len(), if both { 2 } else { 1 });
    for side in &record.sides {
        let are_ours_measured = side.remarks.is_empty();
        assert!(are_ours_measured || side.instructions == Instructions::Without, "{:?}", side.remarks);
        for algorithm in Algorithm::ALL {
            let ours = |key, batch| has(side, algorithm, Implementation::Authentick, key, batch);
            for batch in [1, 4, 16, 64] {
                assert_eq!(ours(KeyUse::Kept, batch), are_ours_measured, "{algorithm} {batch}");
            }
            assert_eq!(ours(KeyUse::SetUp, 1), are_ours_measured, "{algorithm}");
            for key in [KeyUse::Kept, KeyUse::SetUp] {
                let is_siv = algorithm == Algorithm::GmacSiv128;
                assert_eq!(has(side, algorithm, Implementation::AwsLc, key, 1), is_siv);
                let openssl = cfg!(feature = "openssl") && !is_siv;
                assert_eq!(has(side, algorithm, Implementation::OpenSsl, key, 1), openssl, "{algorithm}");
            }
        }
        assert!(side.spreads.iter().all(|spread| spread.count == 100), "{:?}", side.spreads);
    }
    if both {
        let [with, without] =
            [Instructions::With, Instructions::Without].map(|which| record.side(which).unwrap());
        assert_eq!(with.path, authentick_crypto::path().to_string());
        // What was hidden is seen by nobody; where nothing can be hidden, that is said.
        if without.remarks.is_empty() {
            assert!(without.seen.is_empty() && without.path == "portable", "{without:?}");
        } else {
            assert!(without.remarks[0].contains("cannot be hidden from us here"), "{:?}", without.remarks);
        }
    }
}

#[test]
fn tables_are_printed_and_written_as_a_page() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("mac.html");
    let output = bench(&["--html", page.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    let html = fs::read_to_string(&page).unwrap();
    for index in 1..=9 {
        let draft = if index <= 3 { "draft-aanchal4-ntp-mac-00" } else { "draft-ietf-ntp-mac" };
        let name = format!("{index} of 9: {draft}, section ");
        assert!(printed.contains(&name) && html.contains(&name), "{name}");
    }
    for part in
        ["Recommended on this host", "What algorithms withstand", "GMAC-SIV, 5.9 (2.71)", "2,598* (0.83)"]
    {
        assert!(printed.contains(part) && html.contains(part), "{part}\n{printed}");
    }
    assert!(printed.contains("reference cycles") || cfg!(not(target_arch = "x86_64")));
    assert_eq!(printed.contains("without OpenSSL (cargo feature openssl)"), cfg!(not(feature = "openssl")));
    assert!(printed.ends_with(&format!("report: {}\n", page.display())));
}

#[test]
fn stored_bench_renders_to_the_same_text_and_page() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let output = bench(&["--json", "--html", &path("first.html")]);
    assert!(output.status.success(), "{}", text(&output));
    fs::write(path("run.json"), &output.stdout).unwrap();
    let rendered = authentick(["report", &path("run.json"), "--html", &path("second.html")]);
    assert!(rendered.status.success(), "{}", text(&rendered));
    assert!(String::from_utf8_lossy(&rendered.stdout).contains("Algorithm / legacy MD5:"));
    assert_eq!(fs::read(path("first.html")).unwrap(), fs::read(path("second.html")).unwrap());
    let both = authentick(["report", &path("run.json"), &path("run.json"), "--html", &path("x.html")]);
    assert_eq!(both.status.code(), Some(64), "{}", text(&both));
    let against = authentick(["report", &path("run.json"), "--against", &path("run.json")]);
    assert_eq!(against.status.code(), Some(78), "{}", text(&against));
    assert!(text(&against).contains("a bench of MACs"), "{}", text(&against));
}

#[test]
fn page_that_cannot_be_written_is_told_before_anything_is_measured() {
    let output = bench(&["--rounds", "1", "--html", "/dev/null/mac.html"]);
    // The option is there twice, which is a mistake of its own.
    assert_eq!(output.status.code(), Some(64));
    let output = authentick(["bench", "mac", "--html", "/dev/null/mac.html"]);
    assert_eq!(output.status.code(), Some(78), "{}", text(&output));
    assert!(
        text(&output).contains("/dev/null/mac.html") && text(&output).contains("--html"),
        "{}",
        text(&output)
    );
    for wrong in [["--rounds", "0"], ["--turn-ms", "0"], ["--turn-ms", "x"], ["--singles", "1"]] {
        let output = authentick(["bench", "mac"].into_iter().chain(wrong));
        assert_eq!(output.status.code(), Some(64), "{wrong:?}");
    }
}

#[test]
fn masked_process_obeys_and_ends_with_who_gives_the_orders() {
    let _turn = alone();
    let run = |orders: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_authentick"))
            .args(SMALL)
            .arg("--without-instructions")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(orders.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let ended = run("");
    assert_eq!((ended.status.code(), &ended.stdout[..]), (Some(0), &b"ready\n"[..]), "{}", text(&ended));
    let refused = run("round\nsleep\n");
    assert_eq!(refused.status.code(), Some(64), "{}", text(&refused));
    assert!(text(&refused).contains("no order of a bench: \"sleep\""), "{}", text(&refused));
    let done = run("round\nround\nfinish\n");
    let last = String::from_utf8(done.stdout).unwrap();
    let side: Side = serde_json::from_str(last.lines().last().unwrap()).unwrap();
    assert_eq!(side.instructions, Instructions::Without);
    assert!(side.timings.iter().all(|timing| timing.ns.len() == 2) && !side.timings.is_empty());
}
