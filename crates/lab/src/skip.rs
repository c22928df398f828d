//! Tests that cannot run here, and say why.

use std::io::Write as _;

use authentick_rig::Error;

/// Why something cannot be had on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Skip(String);

impl Skip {
    /// A reason, as a part of a sentence.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Skip(reason.into())
    }

    /// What the rig cannot have on this machine.
    ///
    /// # Panics
    /// If the machine could have it: then something is wrong, and no reason to skip a test.
    pub(crate) fn of(error: Error) -> Self {
        match error {
            Error::Unavailable { .. } => Skip(error.to_string()),
            error => panic!("{error}"),
        }
    }

    /// Says that the running test is skipped; see [`skip`].
    pub fn tell(&self) {
        skip(&self.0);
    }
}

/// Says that a test does not run, and why, where `cargo xtask test` and a person will see it.
pub fn skip(reason: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Past the capture of test output.
    let _ = writeln!(std::io::stderr(), "skipped {name}: {reason}");
    if let Some(list) = std::env::var_os("AUTHENTICK_SKIPS") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(list);
        let _ = file.and_then(|mut file| writeln!(file, "{name}: {reason}"));
    }
}

/// Whether the test runs as root; says that it is skipped if not.
#[must_use]
pub fn is_root(what_for: &str) -> bool {
    let root = authentick_net::privilege::is_root();
    if !root {
        skip(&format!("needs root: {what_for}"));
    }
    root
}
