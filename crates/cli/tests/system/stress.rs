//! `stress`: NtpStress's arguments, and a report whose lines are checked by arithmetic.

use std::path::Path;
use std::process::Command;

use authentick_lab::servers::{Fault, NtpServer, Policy};

use crate::lab::{authentick, program, text};

/// One in ten is dropped, one in twenty lied to about the stratum. The first request is good: the command asks once
/// whether anybody answers.
fn liar() -> NtpServer {
    NtpServer::on_loopback(Policy::good().every(10, Fault::Drop).every_from(20, 5, Fault::Stratum(16)))
}

/// Runs `stress` in `folder`; returns what it printed on standard output.
fn stress(folder: &Path, arguments: &[&str]) -> String {
    let output =
        Command::new(program().path()).arg("stress").args(arguments).current_dir(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The value of a line that begins like this.
#[track_caller]
fn value(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text:?}")).trim().parse().unwrap()
}

/// The rows of a report: sent, answered, failed.
fn rows(report: &str) -> Vec<[u64; 3]> {
    let numbers = |line: &str| line.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>().ok();
    let rows: Vec<Vec<u64>> = report.lines().filter_map(numbers).filter(|row| row.len() == 4).collect();
    assert!(rows.iter().zip(1..).all(|(row, second)| row[0] == second), "{report}");
    rows.iter().map(|row| [row[1], row[2], row[3]]).collect()
}

#[test]
fn lines_are_what_the_server_did() {
    const SECONDS: u64 = 3;
    let folder = tempfile::tempdir().unwrap();
    let server = liar();
    let address = server.address().to_string();
    let printed = stress(folder.path(), &[&address, "200", "3"]);
    let counts = server.counts();
    let (good, failed, lied) = (counts.good - 1, counts.faults[0] + counts.faults[1], counts.faults[1]);
    let sent = counts.received - 1;
    assert_eq!(value(&printed, "Total Requests"), sent as f64);
    assert_eq!(value(&printed, "Failed Requests"), failed as f64);
    assert_eq!(value(&printed, "Bad Stratum Level"), lied as f64);
    assert_eq!(value(&printed, "Average NTP Req/Sec"), (good as f64 / SECONDS as f64).round());
    // Of 600 requests 60 have a number that ten divides, and 30 have a remainder of 5 modulo 20.
    if sent == 200 * SECONDS {
        assert_eq!([failed, lied], [90, 30]);
    }
    assert!(sent >= 150 * SECONDS, "{sent}");

    let report = std::fs::read_to_string(folder.path().join("ntpdata.txt")).unwrap();
    assert!(report.ends_with(&printed), "the four lines end the report: {report}");
    assert!(report.starts_with(&format!("Server: {address}\n")), "{report}");
    assert_eq!(value(&report, "Requests specified per second"), 200.0);
    assert_eq!(value(&report, "Time duration (seconds)"), 3.0);
    let rows = rows(&report);
    // A row for each second, and some more until the last requests have timed out.
    assert!((SECONDS..=SECONDS + 3).contains(&(rows.len() as u64)), "{report}");
    let sum = |column: usize| rows.iter().map(|row| row[column]).sum::<u64>();
    assert_eq!([sum(0), sum(1), sum(2)], [sent, good, failed]);
    assert!(rows[..SECONDS as usize].iter().all(|row| row[0].abs_diff(200) <= 100), "{report}");
}

#[test]
fn report_goes_where_it_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let server = NtpServer::on_loopback(Policy::good());
    let printed = stress(folder.path(), &[&server.address().to_string(), "100", "1", "other.txt"]);
    assert_eq!(value(&printed, "Bad Stratum Level"), 0.0);
    assert!(std::fs::read_to_string(folder.path().join("other.txt")).unwrap().ends_with(&printed));
    assert!(!folder.path().join("ntpdata.txt").exists());
}

#[test]
fn kisses_are_answers_of_stratum_zero() {
    let folder = tempfile::tempdir().unwrap();
    let code = authentick_wire::header::ReferenceId::RATE;
    let kiss = Fault::Kiss { code, identifier: false };
    let server = NtpServer::on_loopback(Policy::good().every(4, kiss));
    let printed = stress(folder.path(), &[&server.address().to_string(), "100", "1"]);
    assert_eq!(value(&printed, "Bad Stratum Level"), server.counts().faults[0] as f64);
    assert_eq!(value(&printed, "Failed Requests"), server.counts().faults[0] as f64);
}

#[test]
fn report_that_cannot_be_written_is_told_before_anything_is_sent() {
    let server = NtpServer::on_loopback(Policy::good());
    let address = server.address().to_string();
    let output = authentick(["stress", &address, "100", "1", "/no/such/folder/report.txt"]);
    assert_eq!(output.status.code(), Some(78), "{}", text(&output));
    assert!(text(&output).contains("/no/such/folder/report.txt: cannot write"), "{}", text(&output));
    assert_eq!(server.counts().received, 0);
}

#[test]
fn strangers_and_nonsense_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.txt");
    let report = report.to_str().unwrap();
    let output = authentick(["stress", "192.0.2.1", "100", "1", report]);
    assert_eq!(output.status.code(), Some(64), "{}", text(&output));
    assert!(text(&output).contains("--permit 192.0.2.1"), "{}", text(&output));
    assert!(!folder.path().join("report.txt").exists(), "a run that does not begin leaves no file");
    for (rate, seconds) in [("0", "1"), ("100", "0"), ("many", "1")] {
        let output = authentick(["stress", "127.0.0.1", rate, seconds, report]);
        assert_eq!(output.status.code(), Some(64), "{}", text(&output));
    }
}
