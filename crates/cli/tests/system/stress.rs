//! `stress`: NtpStress's arguments, and a report whose lines are checked by arithmetic.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use authentick_lab::process::Process;
use authentick_lab::servers::{Fault, NtpServer, Policy};
use authentick_wire::header::ReferenceId;

use crate::lab::{authentick, program, text, wait_for};

/// One in ten is dropped, one in twenty lied to about the stratum. The first request is good: the command asks once
/// whether anybody answers.
fn liar() -> NtpServer {
    NtpServer::on_loopback(Policy::good().every(10, Fault::Drop).every_from(20, 5, Fault::Stratum(16)))
}

/// Runs `stress` in `folder`; returns what it printed on standard output. On a busy machine its generator may fall
/// behind, which its exit code says; what it counts is right all the same.
fn stress(folder: &Path, arguments: &[&str]) -> String {
    let output =
        Command::new(program().path()).arg("stress").args(arguments).current_dir(folder).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Checks the average of a run of so many seconds with so many good answers. The last request leaves up to a tenth of a
/// second late, and the average is over the time until then.
#[track_caller]
fn assert_average(printed: &str, good_count: u64, seconds: f64) {
    let (most, least) = (good_count as f64 / seconds, good_count as f64 / (seconds + 0.1));
    let average = value(printed, "Average NTP Req/Sec");
    assert!((least - 1.0..=most + 1.0).contains(&average), "{least} to {most}: {printed}");
}

/// Runs a stress of a second at 100 a second against a server that answers one request in four like this, the probe
/// excepted; how many requests were, failed, and had a bad stratum, and how many there should be.
fn counted(fault: Fault) -> ([f64; 3], [u64; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let server = NtpServer::on_loopback(Policy::good().every_from(4, 3, fault));
    let printed = stress(folder.path(), &[&server.address().to_string(), "100", "1"]);
    let names = ["Total Requests", "Failed Requests", "Bad Stratum Level"];
    let counts = server.counts();
    assert_average(&printed, counts.good - 1, 1.0);
    let report = std::fs::read_to_string(folder.path().join("ntpdata.txt")).unwrap();
    assert!(report.ends_with(&printed), "{report}");
    (names.map(|name| value(&printed, name)), [counts.received - 1, counts.faults[0]])
}

#[test]
fn every_lie_is_counted_in_its_line_and_no_other() {
    let kiss = |code| Fault::Kiss { code, identifier: false };
    let cases = [
        (Fault::Drop, false),
        (Fault::Late(Duration::from_millis(1300)), false),
        (Fault::WrongOrigin, false),
        (Fault::Garbage(47), false),
        // Not synchronised, at a good stratum.
        (Fault::Unsynchronised, false),
        // By leap indicator and stratum, as most servers say it.
        (Fault::NeverSet, true),
        (Fault::Stratum(0), true),
        (Fault::Stratum(16), true),
        (Fault::Stratum(17), true),
        (Fault::Stratum(255), true),
        (kiss(ReferenceId::RATE), true),
        (kiss(ReferenceId(*b"INIT")), true),
    ];
    std::thread::scope(|scope| {
        for (fault, is_stratum) in cases {
            scope.spawn(move || {
                let (printed, [sent, lied]) = counted(fault);
                let bad_stratum = if is_stratum { lied } else { 0 };
                assert_eq!(printed, [sent, lied, bad_stratum].map(|count| count as f64), "{fault:?}");
                assert!(lied > 0, "{fault:?}");
            });
        }
    });
}

#[test]
fn server_that_is_not_synchronised_is_stressed() {
    for fault in [Fault::NeverSet, Fault::Unsynchronised, Fault::Stratum(0)] {
        let folder = tempfile::tempdir().unwrap();
        let server = NtpServer::on_loopback(Policy::good().every(1, fault));
        let address = server.address().to_string();
        let mut command = Command::new(program().path());
        let output =
            command.args(["stress", &address, "100", "1"]).current_dir(folder.path()).output().unwrap();
        // Answers came, and none of them gives time.
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        let printed = String::from_utf8_lossy(&output.stdout);
        let sent = (server.counts().received - 1) as f64;
        assert!(sent > 0.0);
        let bad_stratum = if fault == Fault::Unsynchronised { 0.0 } else { sent };
        assert_eq!([value(&printed, "Total Requests"), value(&printed, "Failed Requests")], [sent; 2]);
        assert_eq!(value(&printed, "Bad Stratum Level"), bad_stratum, "{fault:?}");
        assert_eq!(value(&printed, "Average NTP Req/Sec"), 0.0);
        assert!(!printed.contains("Interrupted"), "{printed}");
    }
}

#[test]
fn interrupted_run_says_so_and_after_how_long() {
    let folder = tempfile::tempdir().unwrap();
    let server = NtpServer::on_loopback(Policy::good());
    let report = folder.path().join("report.txt");
    let mut command = Command::new(program().path());
    command.args(["stress", &server.address().to_string(), "200", "60"]).arg(&report);
    let mut process = Process::start(&mut command);
    wait_for("some requests", || (server.counts().received > 150).then_some(()));
    process.signal("-INT");
    assert!(matches!(process.wait(), 0 | 3), "{}", process.log());
    let report = std::fs::read_to_string(&report).unwrap();
    let seconds = value(&report, "Time duration (seconds)");
    let sent = value(&report, "Total Requests");
    assert_eq!(sent, (server.counts().received - 1) as f64);
    // 150 requests take 0.75 s; a run of a minute sends 12,000.
    assert!((0.5..50.0).contains(&seconds) && sent < 10_000.0, "{report}");
    assert!((value(&report, "Average NTP Req/Sec") - sent / seconds).abs() <= 1.0, "{report}");
    let line = format!("Interrupted:\tafter {seconds:.3} of 60 seconds\n");
    assert!(report.ends_with(&line), "{report}");
    wait_for("the same on standard output", || process.log().contains(&line[..line.len() - 1]).then_some(()));
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
    assert_average(&printed, good, SECONDS as f64);
    // Of 600 requests 60 have a number that ten divides, and 30 have a remainder of 5 modulo 20.
    if sent == 200 * SECONDS {
        assert_eq!([failed, lied], [90, 30]);
    }
    assert!(sent > 0);

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
    // On a busy machine a second may have fewer, or its requests may leave in the next one.
    let evenly = rows[..SECONDS as usize].iter().all(|row| row[0].abs_diff(200) <= 100);
    assert!(evenly || sent < 200 * SECONDS, "{report}");
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
    let kiss = Fault::Kiss { code: ReferenceId::RATE, identifier: false };
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
    assert!(text(&output).contains("REPORT /no/such/folder/report.txt: cannot write"), "{}", text(&output));
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
