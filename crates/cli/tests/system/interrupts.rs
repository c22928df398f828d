//! SIGINT and SIGTERM end every command with what it has by then, as the first process of a PID namespace too.

use std::fs::{File, read_to_string};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use authentick_lab::process::wait_within;
use authentick_lab::servers::{NtpServer, Policy};

use crate::lab::{is_root, program, text, wait_for};

/// Long enough for a round of the bench, in a build for tests on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn begin(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args([name, process]).status().unwrap().success());
}

/// The end of a command that got this signal when `is_due`.
fn interrupted(name: &str, words: &str, folder: &Path, is_due: impl FnMut() -> Option<()>) -> Output {
    let child = begin(Command::new(program().path()).args(words.split(' ')).current_dir(folder));
    wait_within(PATIENCE, "the moment of the signal", is_due);
    signal(name, &child.id().to_string());
    child.wait_with_output().unwrap()
}

#[test]
fn interrupted_query_prints_its_summary() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["-INT", "-TERM"] {
        for json in ["", " --json"] {
            let server = NtpServer::on_loopback(Policy::good());
            let words = format!("query --auth plain {} --count 1000 --interval 0.05{json}", server.address());
            let several = || (server.counts().received > 4).then_some(());
            let output = interrupted(name, &words, folder.path(), several);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output));
            if json.is_empty() {
                for part in [" of 1000 exchanges with 127.0.0.1, median", ", interrupted after "] {
                    assert!(text(&output).contains(part), "{part:?} is not in {}", text(&output));
                }
                continue;
            }
            let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(object["exchanges"].as_array().unwrap().len() >= 4, "{object}");
            assert_eq!((&object["interrupted"], &object["count_wanted"]), (&true.into(), &1000.into()));
        }
    }
}

#[test]
fn query_interrupted_before_a_response_is_silence() {
    let server = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let words = format!("query --auth plain {} --count 3 --timeout 60 --json", server.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let output = interrupted("-INT", &words, folder.path(), || server.recv(&mut [0; 100]).ok().map(drop));
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), object["exit"].as_u64()), (Some(1), Some(1)), "{object}");
    assert!(object["error"].as_str().unwrap().starts_with("interrupted before"), "{object}");
}

#[test]
fn first_process_of_a_namespace_ends_by_sigterm() {
    if !is_root("a PID namespace") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = NtpServer::on_loopback(Policy::good());
    let address = server.address().to_string();
    let run = "--rate 50 --step-seconds 100";
    for (words, codes) in [
        (format!("query --auth plain {address} --count 1000"), &[0][..]),
        (format!("load plain {address} {run} --record run.json"), &[0, 3]),
        (format!("stress {address} 50 100 report"), &[0, 3]),
        ("bench mac --rounds 1000 --turn-ms 1 --singles 2 --json".to_owned(), &[0]),
        // Its own server may be too slow for it on a busy machine.
        ("demo --exchanges 10000 --json".to_owned(), &[0, 70]),
        ("game mac --seed 1 --json".to_owned(), &[143]),
        ("study run mac --out study".to_owned(), &[0]),
    ] {
        let mut command = Command::new("unshare");
        command
            .args(["--pid", "--fork", "--mount-proc", "--kill-child"])
            .arg(program().path())
            .args(words.split(' '));
        // A pipe would have no room for the record of the demo.
        let printed = folder.path().join("printed");
        command.current_dir(folder.path()).stdin(Stdio::null()).stderr(Stdio::piped());
        let child = command.stdout(File::create(&printed).unwrap()).spawn().unwrap();
        let parent = child.id().to_string();
        let children = format!("/proc/{parent}/task/{parent}/children");
        let first = wait_for("the first process", || {
            let found = read_to_string(&children).ok()?.trim().to_owned();
            // It is the program, and has its thread of signals.
            let threads = std::fs::read_dir(format!("/proc/{found}/task")).ok()?;
            let is_there = threads.flatten().any(|thread| {
                let name = read_to_string(thread.path().join("comm")).unwrap_or_default();
                name.trim() == "signals"
            });
            is_there.then_some(found)
        });
        std::thread::sleep(Duration::from_secs(1));
        signal("-TERM", &first);
        let gone = || (!Path::new(&format!("/proc/{first}")).exists()).then_some(());
        wait_within(PATIENCE, &words, gone);
        let output = child.wait_with_output().unwrap();
        let ended = output.status.code();
        assert!(ended.is_some_and(|code| codes.contains(&code)), "{words}: {ended:?} {}", text(&output));
        if words.ends_with("--json") {
            serde_json::from_slice::<serde_json::Value>(&std::fs::read(&printed).unwrap())
                .unwrap_or_else(|error| panic!("{words}: {error}: {}", text(&output)));
        }
    }
}
