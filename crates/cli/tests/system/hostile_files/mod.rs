//! Files that are not what they should be: put there by the user that the server runs as, held by a process that has
//! been stopped, on a disk that is full, gone, or out of reach once rights are given up.
//!
//! Whose user the server runs as must gain nothing from what root's command line does in its directory; and nothing
//! that happens to a file may cost a client an answer.

mod held;
mod planted;
mod rights;
mod volumes;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use authentick_lab::prober::{Probe, lost_count};
use authentick_lab::process::PATIENCE;
use authentick_wire::header::Leap;

pub(crate) use self::rights::memory_of;
use crate::lab::{Lab, Server, program, text, wait_for};

/// The user `nobody`, and its group.
const NOBODY: u32 = 65534;

/// A folder that everybody may enter, with a state directory and a folder for keys that are nobody's, and files of
/// root's that nobody may touch.
struct Bench {
    lab: Lab,
}

/// What can be put in a file's place.
const PLANTS: [&str; 6] = ["link", "dangling link", "hard link", "pipe", "directory", "endless device"];

impl Bench {
    fn new() -> Self {
        let lab = Lab::new();
        set_mode(lab.path(), 0o755);
        let bench = Bench { lab };
        for folder in [bench.lab.state(), bench.theirs()] {
            fs::create_dir(&folder).unwrap();
            give(&folder);
            set_mode(&folder, 0o700);
        }
        fs::write(bench.victim(), "content").unwrap();
        set_mode(&bench.victim(), 0o600);
        bench
    }

    /// A folder that belongs to nobody.
    fn theirs(&self) -> PathBuf {
        self.lab.path().join("theirs")
    }

    fn victim(&self) -> PathBuf {
        self.lab.path().join("victim")
    }

    fn nowhere(&self) -> PathBuf {
        self.lab.path().join("nowhere")
    }

    /// Puts something in the place of `path`, as its directory's owner could.
    fn plant(&self, what: &str, path: &Path) {
        remove(path);
        match what {
            "link" => symlink(self.victim(), path).unwrap(),
            "dangling link" => symlink(self.nowhere(), path).unwrap(),
            "hard link" => fs::hard_link(self.victim(), path).unwrap(),
            "pipe" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
            "directory" => fs::create_dir(path).unwrap(),
            "endless device" => symlink("/dev/zero", path).unwrap(),
            other => panic!("{other}"),
        }
        if ["pipe", "directory"].contains(&what) {
            give(path);
        }
    }

    /// Root's files are as they were, and none was made where the dangling link leads to.
    #[track_caller]
    fn assert_unharmed(&self, case: &str) {
        let victim = fs::metadata(self.victim()).unwrap();
        assert_eq!((victim.uid(), victim.gid(), victim.mode() & 0o7777), (0, 0, 0o600), "{case}");
        assert_eq!(fs::read(self.victim()).unwrap(), b"content", "{case}");
        assert!(!self.nowhere().exists(), "{case}");
        assert_eq!(fs::metadata("/dev/zero").unwrap().uid(), 0, "{case}");
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
}

fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir(path);
}

/// Runs the binary to its end, which must come soon; its exit code and what it said.
#[track_caller]
fn run(arguments: &[&str]) -> (i32, String) {
    // Twice as long as anything may take here, and then an exit code that is nobody else's.
    let seconds = (2 * PATIENCE.as_secs()).to_string();
    let output = Command::new("timeout").arg(seconds).arg(program().path()).args(arguments).output().unwrap();
    let code = output.status.code().unwrap();
    assert_ne!(code, 124, "it did not end: {}", text(&output));
    (code, text(&output))
}

/// `serve --check`, or `serve` where it must not start: exit code, and what it said.
fn check(config: &Path) -> (i32, String) {
    run(&["serve", "--check", "--config", config.to_str().unwrap()])
}

#[track_caller]
fn assert_names(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

fn text_of(output: &std::process::Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(output));
    text(output)
}

/// A rotation has failed, for this reason, and is counted.
fn wait_for_failure(server: &mut Server, part: &str) {
    let failures = "nts_cookie_key_rotation_failures_total";
    server.process.wait_for_line(part);
    wait_for("a failure in the metrics", || (server.metric(failures) >= 1.0).then_some(()));
}

/// None of these requests was lost, and each was told the time.
#[track_caller]
fn assert_served(probes: &[Probe]) {
    assert!(!probes.is_empty());
    assert_eq!(lost_count(probes), 0, "of {}", probes.len());
    for probe in probes {
        let told = probe.told.unwrap();
        assert_eq!((told.leap, told.stratum), (Leap::None, 1), "{told:?}");
    }
}
