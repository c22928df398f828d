//! `authentick study`, one study after the other.

mod antp;
mod engine;
mod field;
mod given;
mod lacks;
mod ladder;
mod mac;
mod nts;
mod rig;

use authentick_lab::process::{PATIENCE, wait_within};

/// Waits for what a study's first tasks leave behind, each of which is many trials.
#[track_caller]
fn wait_for_task<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    wait_within(5 * PATIENCE, what, ask)
}
