//! What studies say on a host that lacks something: no TUN devices, no control groups, no iproute2, a full disk. Each
//! is made in a mount namespace, which leaves the host as it is.

use std::path::Path;
use std::process::{Command, Output};

use authentick_lab::skip::{is_root, skip};

use crate::lab::{alone, refused, text};

const PROGRAM: &str = env!("CARGO_BIN_EXE_authentick");

/// Runs a shell's script among mounts of its own, with the program as `$0` and these words as `$1` and so on.
fn among_mounts(script: &str, words: &[&str]) -> Output {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", script, PROGRAM]).args(words).output().unwrap()
}

/// Whether this host lets one hide something from a process; if not, the skipped test says why.
fn can_hide() -> bool {
    if !is_root("for mounts of its own") {
        return false;
    }
    let tried = among_mounts("mount -t tmpfs none /mnt", &[]);
    if !tried.status.success() {
        skip(&format!("no mounts of its own: {}", text(&tried).trim()));
    }
    tried.status.success()
}

#[test]
fn list_names_what_the_host_lacks_and_what_comes_instead() {
    if !can_hide() {
        return;
    }
    let _turn = alone();
    let without = "client and server share loopback, without a path between them and without look-ups: ";
    let no_quota =
        "there is no ladder to scale, whose server has a share of a processor: no control groups in ";
    for (script, said) in [
        ("mount -t tmpfs none /dev/net; exec $0 study list", vec![format!("{without}no TUN device")]),
        ("mount -t tmpfs none /sys/fs/cgroup; exec $0 study list", vec![no_quota.to_owned()]),
        (
            "PATH=/nowhere; exec $0 study list",
            vec![
                format!("{without}there is no program \"ip\" on PATH; install iproute2"),
                "no chrony: chronyd is not on PATH; install chrony".to_owned(),
                "servers keep keys in files alone: no memcached: memcached is not on PATH; install memcached"
                    .to_owned(),
            ],
        ),
    ] {
        let output = among_mounts(script, &[]);
        assert!(output.status.success(), "{script}: {}", text(&output));
        let printed = text(&output);
        for part in said {
            assert!(printed.contains(&part), "{script}: {part}\n{printed}");
        }
    }
}

#[test]
fn full_disk_ends_a_study_by_name_and_with_room_the_same_command_goes_on() {
    if !can_hide() {
        return;
    }
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    let study = "$0 study run mac --quick --out \"$1\"";
    // Room for the plan and its successor, and not for a record.
    let full = format!("mount -t tmpfs -o size=16k none \"$1\"; exec {study}");
    refused(&among_mounts(&full, &[at]), 78, &[&format!("{at}/run-mac.json"), "No space left on device"]);
    let roomy = format!(
        "mount -t tmpfs -o size=16k none \"$1\"; {study} || test $? = 78; test ! -e \"$1/report.html\"; \
         mount -o remount,size=4m \"$1\"; {study}; ls -A \"$1\""
    );
    let output = among_mounts(&roomy, &[at]);
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let left: Vec<&str> = printed.lines().rev().take(5).collect();
    assert_eq!(left, ["study.json", "run-mac.json", "report.txt", "report.md", "report.html"], "{printed}");
    assert!(!Path::new(at).join("study.json").exists(), "the host has none of it");
}
