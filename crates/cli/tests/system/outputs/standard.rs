//! Results and standard streams: a stream that leads to a file that is named too, a reader that leaves, a wait that a
//! signal ends.

use std::fs;
use std::process::{Command, Output};

use super::RECORD;
use crate::lab::{authentick, program, refused, text};

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
        assert_eq!((output.status.code(), text(&output).as_str()), (Some(0), ""), "{name}");
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

fn refused_by_code(output: &Output, code: i32, words: &str) {
    assert!(output.status.code() == Some(code) && text(output).contains(words), "{output:?}");
}
