//! Files that are locked by a stopped process, gone, or on a disk that is full or read-only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use authentick_lab::prober::Prober;
use authentick_lab::process::Process;

use super::{assert_served, check, wait_for_failure};
use crate::lab::{Lab, is_root, program, start, wait_for};

/// A process that holds the lock of a file and has been stopped. It ends with this at the latest.
struct StoppedHolder(Process);

impl StoppedHolder {
    fn of(file: &Path) -> Self {
        let script = "echo held; kill -STOP $$";
        let mut command = Command::new("flock");
        let mut process = Process::start(command.arg("--no-fork").arg(file).args(["sh", "-c", script]));
        process.wait_for_line("held");
        StoppedHolder(process)
    }

    /// Lets it go on, to its end.
    fn let_go(mut self) {
        self.0.signal("-CONT");
        assert_eq!(self.0.wait(), 0);
    }
}

#[test]
fn lock_of_a_stopped_process_keeps_nobody_for_ever() {
    let lab = Lab::new();
    let config = lab.config("", "cookie-keys = { rotate = \"1s\", keep = 60 }");
    let mut server = start(&config);
    let (file, state) = (lab.state().join("cookie-keys.lock"), lab.state());
    let holder = StoppedHolder::of(&file);
    let prober = Prober::start(server.ntp);
    let line = server.process.wait_for_line("cookie keys not rotated: ");
    let stopped = format!("locked by process {};", holder.0.id());
    let named = ["cookie-keys.lock", &stopped, "stays in use"];
    named.iter().for_each(|part| assert!(line.contains(part), "{part:?} is not in {line:?}"));
    assert!(server.metric("nts_cookie_key_rotation_failures_total") >= 1.0);
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0));
    assert_served(&prober.stop());
    // It stops when it is told to, and starts, as a file that is there is read without the lock.
    server.process.signal("-TERM");
    assert_eq!(server.process.wait(), 0, "{}", server.process.log());
    drop(start(&config));

    // The command says for whom it waits, and goes on when that process does.
    let arguments = ["keys", "rotate", "--state-directory", state.to_str().unwrap()];
    let mut command = Process::start(Command::new(program().path()).args(arguments));
    let line = command.wait_for_line("locked by process ");
    assert!(line.contains("which is stopped"), "{line}");
    holder.let_go();
    assert_eq!(command.wait(), 0, "{}", command.log());
}

#[test]
fn key_file_that_is_gone_is_written_again_and_costs_no_client_a_cookie() {
    let lab = Lab::new();
    let mut server = start(&lab.config("", "cookie-keys = { rotate = \"2s\", keep = 60 }"));
    let (prober, file) = (Prober::start(server.ntp), lab.state().join("cookie-keys"));
    let mut client = Process::start(Command::new(program().path()).args([
        "query",
        &server.ke.ip().to_string(),
        "--ke-port",
        &server.ke.port().to_string(),
        "--ca",
        lab.ca().to_str().unwrap(),
        "--count",
        "30",
        "--interval",
        "0.2",
        "--json",
    ]));
    wait_for("the client's first exchange", || (server.outcome("nts") >= 1.0).then_some(()));
    fs::remove_file(&file).unwrap();
    server.process.wait_for_line("cookie-keys was gone; the keys in force are written to it again");
    // Said before it is done.
    wait_for("the file", || file.exists().then_some(()));
    fs::remove_file(&file).unwrap();
    server.process.signal("-HUP");
    wait_for("the file", || file.exists().then_some(()));
    assert_eq!(client.wait(), 0, "{}", client.log());
    assert_eq!(server.outcome("nts"), 30.0);
    assert_eq!(server.metric("nts_ke_connections_accepted_total"), 1.0, "no cookie was refused");
    assert!(server.metric("nts_cookie_key_rotations_total") >= 1.0);
    assert_eq!(server.metric("nts_cookie_key_rotation_failures_total"), 0.0);
    assert_served(&prober.stop());
}

#[test]
fn disk_that_is_full_or_read_only_costs_no_client_anything() {
    if !is_root("to mount a file system") {
        return;
    }
    std::thread::scope(|scope| {
        for case in ["full", "read-only"] {
            scope.spawn(move || try_disk(case));
        }
    });
}

/// A server whose state directory is a disk of its own, which cannot be written to after a while.
fn try_disk(case: &str) {
    let lab = Lab::new();
    fs::create_dir(lab.state()).unwrap();
    let mount = |options: &str| {
        let arguments = ["-t", "tmpfs", "-o", options, "tmpfs"];
        Command::new("mount").args(arguments).arg(lab.state()).status().unwrap().success()
    };
    if !mount("size=16k,mode=700") {
        authentick_lab::skip::skip("a tmpfs cannot be mounted here");
        return;
    }
    let unmount = Unmount(lab.state());
    let config = lab.config("", "cookie-keys = { rotate = \"2s\", keep = 60 }");
    let mut server = start(&config);
    let prober = Prober::start(server.ntp);
    let reason = match case {
        "full" => {
            let fill = fs::write(lab.state().join("filler"), vec![1; 64 * 1024]);
            assert_eq!(fill.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
            "No space left"
        }
        _ => {
            assert!(mount("remount,ro"));
            "Read-only file system"
        }
    };
    wait_for_failure(&mut server, reason);
    server.process.signal("-HUP");
    server.process.wait_for_line("cookie keys read again");
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0), "{case}");
    assert_served(&prober.stop());
    // A start tells what it cannot write to, a full disk when it comes to that.
    let (code, said) = check(&config);
    let expected = if case == "full" { 0 } else { 78 };
    assert_eq!(code, expected, "{case}: {said}");
    assert!(code == 0 || said.contains(reason), "{said}");
    server.process.signal("-TERM");
    assert_eq!(server.process.wait(), 0, "{}", server.process.log());
    drop(server);
    drop(unmount);
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
