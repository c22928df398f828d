//! The bench as these tests use it, with the binary that cargo has built for them.

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
