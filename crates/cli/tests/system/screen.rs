//! `load --tui` on a pseudo-terminal: what is left of it, and what its keys do.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use authentick_lab::servers::{NtpServer, Policy};
use authentick_lab::skip::skip;
use serde_json::Value;

use crate::lab::{authentick, text};

/// Entering and leaving the alternate screen. xterm control sequences, DECSET 1049.
const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

/// Runs `load plain` with the screen on a terminal of 80 x 24, and presses `keys`; the record goes to a file. `None` if
/// this host has no script(1).
fn on_a_terminal(options: &str, keys: &str) -> Option<(Output, Value)> {
    if Command::new("script").arg("--version").output().is_err() {
        skip("there is no script(1), which makes a terminal");
        return None;
    }
    let server = NtpServer::on_loopback(Policy::good());
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("run.json");
    let load = format!(
        "stty cols 80 rows 24; {} load plain {} --tui --json {options} > {}",
        env!("CARGO_BIN_EXE_authentick"),
        server.address(),
        record.display()
    );
    let mut script = Command::new("script")
        .args(["--quiet", "--return", "--command", &load, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = script.stdin.take().unwrap();
    // Keys wait in the terminal until somebody reads them.
    stdin.write_all(keys.as_bytes()).unwrap();
    let output = script.wait_with_output().unwrap();
    drop(stdin);
    let record = std::fs::read_to_string(&record).unwrap();
    let record = serde_json::from_str(&record).unwrap_or_else(|error| panic!("{error}: {}", text(&output)));
    Some((output, record))
}

#[test]
fn screen_leaves_nothing_behind_and_the_record_goes_elsewhere() {
    let Some((output, record)) = on_a_terminal("--rate 200 --step-seconds 1", "") else { return };
    let shown = text(&output);
    let step = &record["steps"][0];
    let code = if step["valid"] == true || step["loss_valid"] == true { 0 } else { 3 };
    assert_eq!(output.status.code(), Some(code), "{shown}");
    assert_eq!((shown.matches(ENTER).count(), shown.matches(LEAVE).count()), (1, 1), "{shown:?}");
    let (before, inside) = shown.split_once(ENTER).unwrap();
    let (inside, behind) = inside.split_once(LEAVE).unwrap();
    assert!(inside.contains("Step 1 of 1: 200/s offered"), "{inside:?}");
    // Why it ended so belongs there.
    let behind = behind.split("authentick: ").next().filter(|_| code == 3).unwrap_or(behind);
    for outside in [before, behind] {
        assert!(!outside.contains("offered") && !outside.contains("authentick"), "{outside:?}");
    }
    // On a machine that others use some requests are given up.
    let count = |name: &str| record["steps"][0][name].as_u64().unwrap_or(0);
    assert!(count("sent") > 0 && count("sent") + count("skipped") == 200, "{record}");
    assert!(step["valid"] != true || count("sent") == 200, "{record}");
}

#[test]
fn q_stops_sending_and_what_was_measured_is_kept() {
    let Some((output, record)) = on_a_terminal("--rate 200 --step-seconds 60", "q") else { return };
    assert!(text(&output).contains(LEAVE), "{}", text(&output));
    assert_eq!(record["interrupted"], "stopped by the user");
    assert!(record["steps"][0]["seconds"].as_f64().is_some_and(|seconds| seconds < 50.0), "{record}");
}

#[test]
fn screen_without_a_terminal_is_a_mistake_that_sends_nothing() {
    let server = NtpServer::on_loopback(Policy::good());
    let output = authentick(["load", "plain", &server.address().to_string(), "--tui"]);
    assert_eq!(output.status.code(), Some(64), "{}", text(&output));
    assert!(
        text(&output).contains("--tui needs a terminal, and standard error is none"),
        "{}",
        text(&output)
    );
    assert_eq!(server.counts().received, 0);
}
