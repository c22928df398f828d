//! The bench as these tests use it, with the binary that cargo has built for them.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use authentick_lab::certificates::Lab;
pub(crate) use authentick_lab::corrupt::{Changed, Relay};
pub(crate) use authentick_lab::daemon::{Program, Server};
pub(crate) use authentick_lab::process::{free_port, text, wait_for};
pub(crate) use authentick_lab::skip::is_root;

/// Generators are pinned to the last processor: tests that measure with them take turns.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The binary.
pub(crate) fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_authentick"))
}

/// Runs the binary to its end.
pub(crate) fn authentick<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Output {
    program().run(arguments)
}

/// Starts a server with this configuration.
pub(crate) fn start(config: &Path) -> Server {
    program().serve(config)
}

/// Starts a server with the usual configuration.
pub(crate) fn serve(lab: &Lab) -> Server {
    start(&lab.config("", ""))
}

/// Renders what a study has kept in its folder.
pub(crate) fn render(folder: &Path) -> Output {
    authentick(["study", "render", folder.to_str().unwrap()])
}

/// Years later there is the folder of a study, elsewhere, and nothing else: it renders to the same page. Returns the
/// report as text.
#[track_caller]
pub(crate) fn renders_alone(folder: &Path, moved: &Path) -> String {
    fs::rename(folder, moved).unwrap();
    let before = fs::read_to_string(moved.join("report.html")).unwrap();
    fs::remove_file(moved.join("report.html")).unwrap();
    fs::remove_file(moved.join("report.txt")).unwrap();
    let output = render(moved);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(fs::read_to_string(moved.join("report.html")).unwrap(), before);
    let report = fs::read_to_string(moved.join("report.txt")).unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).starts_with(&report));
    report
}

/// A command that ended with this code and said all of this.
#[track_caller]
pub(crate) fn refused(output: &Output, code: i32, parts: &[&str]) {
    assert_eq!(output.status.code(), Some(code), "{}", text(output));
    let message = String::from_utf8_lossy(&output.stderr);
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

/// Whether a load has measured: on a busy machine its code may say that it tells nothing of the server's speed; what it
/// counts is right all the same.
pub(crate) fn has_measured(output: &Output) -> bool {
    matches!(output.status.code(), Some(0 | 3))
}
