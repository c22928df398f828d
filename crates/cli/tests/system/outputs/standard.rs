//! Results and standard streams: a stream that leads to a file that is named too, a reader that leaves, a wait that a
//! signal ends.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};

use authentick_lab::servers::{NtpServer, Policy};

use super::{RECORD, Servers, writers};
use crate::lab::{authentick, has_measured, program, refused, text};

#[test]
fn standard_stream_in_a_named_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(RECORD).unwrap();
    for script in [
        "$A report - --html in < in",
        "$A report - --html other < in",
        "$A report /dev/stdin --html in < in",
        "$A report in >> in",
        "$A report in --html /dev/stdout >> in",
        "$A report in --against old >> old",
        "$A report - < in >> in",
        "$A query 127.0.0.1 --timeout 0.1 --ca in >> in",
        "$A load plain 127.0.0.1 --record in >> in",
        "$A load nts 127.0.0.1 --ca in --csv in",
        "$A game trace --protocol nts replay --svg in >> in",
    ] {
        for name in ["in", "old"] {
            fs::copy(RECORD, folder.path().join(name)).unwrap();
        }
        let _ = fs::remove_file(folder.path().join("other"));
        fs::hard_link(folder.path().join("in"), folder.path().join("other")).unwrap();
        let mut command = Command::new("bash");
        command.args(["-c", script]).env("A", program().path()).current_dir(folder.path());
        refused(&command.output().unwrap(), 64, &["are one file; name another one"]);
        for name in ["in", "old"] {
            assert!(fs::read(folder.path().join(name)).unwrap() == whole, "{script}: {name}");
        }
    }
}

#[test]
fn standard_input_named_twice_is_refused() {
    let record = fs::canonicalize(RECORD).unwrap();
    for command in
        ["report - --against -", "report - -", "report - /dev/stdin", "report /dev/stdin --against -"]
    {
        for input in [format!("< {}", record.display()), format!("< <(cat {})", record.display())] {
            let output = Command::new("bash")
                .args(["-c", &format!("$A {command} {input}")])
                .env("A", program().path())
                .output()
                .unwrap();
            refused(&output, 64, &["standard input can be read once; name a file for one of them"]);
        }
    }
    let path = record.to_str().unwrap();
    let output = authentick(["report", path, "--against", path]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn reader_of_a_named_output_that_left_is_silent() {
    let folder = tempfile::tempdir().unwrap();
    let record = fs::canonicalize(RECORD).unwrap();
    for name in ["-", "/dev/stdout", "/proc/self/fd/1"] {
        let script = format!("$A report {} --html {name} | true; exit ${{PIPESTATUS[0]}}", record.display());
        let mut command = Command::new("bash");
        let output = command.args(["-c", &script]).env("A", program().path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output));
        // With `-`, the text of the command is on standard error, and nothing else.
        let is_silent = text(&output).is_empty();
        assert!(is_silent || name == "-" && text(&output).ends_with("report: -\n"), "{}", text(&output));
    }
    // The reader of another pipe is missed.
    let script = format!(
        "mkfifo p; true < p & $A report {} --html p > out 2> err; rc=$?; cat err; exit $rc",
        record.display()
    );
    let output = Command::new("bash")
        .args(["-c", &script])
        .env("A", program().path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        output.status.code() != Some(0) && text(&output).contains("--html p: not written"),
        "{}",
        text(&output)
    );
}

#[test]
fn names_that_were_made_are_removed_when_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mkfifo p; $A load plain 127.0.0.1 --record made.csv --csv p 2> err & \
        until grep -q 'for a reader' err; do sleep 0.05; done; test -e made.csv || exit 9; kill -$S $!; \
        wait $!; rc=$?; cat err; rm p; exit $rc";
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        // Job control, as a shell has what it starts in the background ignore SIGINT without it.
        let output = Command::new("bash")
            .args(["-mc", script])
            .envs([("A", program().path().to_str().unwrap()), ("S", signal)])
            .current_dir(folder.path())
            .output()
            .unwrap();
        refused_by_code(&output, code, &format!("ended by SIG{signal}"));
        assert!(!folder.path().join("made.csv").exists(), "{signal}");
    }
    let made = folder.path().join("made.html");
    let output = authentick(["report", "/nonexistent", "--html", made.to_str().unwrap()]);
    assert!(output.status.code() == Some(78) && !made.exists(), "{}", text(&output));
}

#[test]
fn standard_output_named_as_output_is_that_file_alone() {
    let servers = Servers::start();
    for writer in writers(&servers).iter().filter(|writer| writer.state_count > 1) {
        for (chosen, word) in writer.words.iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let mut command = writer.command.clone();
            for index in 0..writer.words.len() {
                let name = if index == chosen { "-".to_owned() } else { format!("o{index}") };
                command = command.replace(&format!("{{{index}}}"), &name);
            }
            let run = |command: &str| {
                let mut child = Command::new(program().path());
                child.args(command.split(' ')).current_dir(folder.path()).output().unwrap()
            };
            let output = run(&command);
            assert!(has_measured(&output), "{command}: {}", text(&output));
            let out = String::from_utf8(output.stdout).unwrap();
            let is_whole = match *word {
                "\"format\"" => serde_json::from_str::<serde_json::Value>(&out).is_ok(),
                "<html" => out.starts_with("<!") && out.trim_end().ends_with("</html>"),
                "<svg" => out.starts_with("<svg") && out.trim_end().ends_with("</svg>"),
                "NTP" => out.starts_with("Server: "),
                // CSV, whose quoted fields have commas of their own.
                _ => {
                    let unquoted =
                        |line: &str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum();
                    let commas: BTreeSet<usize> = out.lines().map(unquoted).collect();
                    commas.len() == 1 && out.contains(word)
                }
            };
            assert!(is_whole, "{command}: {out}");
            // A diagram comes without text.
            assert!(*word == "<svg" || !output.stderr.is_empty(), "{command}: its text is lost");
        }
    }
}

#[test]
fn standard_output_claimed_twice_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = NtpServer::on_loopback(Policy::good());
    let target = server.address();
    for (command, parts) in [
        (format!("load plain {target} --csv o --record - --html -"), ["--record - and --html -", "--record"]),
        (format!("load plain {target} --csv - --html -"), ["--csv - and --html -", "--csv"]),
        (format!("load plain {target} --json --record -"), ["--record - and --json", "--record"]),
        (format!("load plain {target} --html - --json"), ["--html - and --json", "--html"]),
        (format!("stress {target} 50 0.2 - --json"), ["REPORT - and --json", "REPORT"]),
        ("bench mac --quick --json --html -".to_owned(), ["--html - and --json", "--html"]),
    ] {
        let mut child = Command::new(program().path());
        let output = child.args(command.split(' ')).current_dir(folder.path()).output().unwrap();
        let remedy = format!("standard output takes one result; name a file for {}", parts[1]);
        refused(&output, 64, &[parts[0], &remedy]);
        let object = serde_json::from_slice::<serde_json::Value>(&output.stdout);
        let has_json = command.contains("--json");
        assert!(object.is_ok() == has_json && (has_json || output.stdout.is_empty()), "{output:?}");
        assert!(!folder.path().join("o").exists(), "{command}: nothing is made");
    }
    assert_eq!(server.counts().received, 0, "nothing was sent");
}

fn refused_by_code(output: &Output, code: i32, words: &str) {
    assert!(output.status.code() == Some(code) && text(output).contains(words), "{output:?}");
}
