//! ntpd-rs, built from its published package.

use std::path::Path;
use std::process::Command;

use super::Peer;
use crate::process;

pub(super) const PEER: Peer = Peer { name: "ntpd-rs", installed, possible: || Ok(()), install };

const VERSION: &str = "1.9.0";

fn installed(place: &Path) -> Option<String> {
    let output = process::collect(Command::new(place.join("bin/ntp-daemon")).arg("--version")).ok()?;
    // It prints its version on standard error.
    is_wanted(&String::from_utf8_lossy(&output.stderr)).then(|| VERSION.to_owned())
}

fn is_wanted(text: &str) -> bool {
    text.split_whitespace().last() == Some(VERSION)
}

fn install(place: &Path) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.args(["install", "ntpd", "--version", VERSION, "--locked", "--root"]).arg(place);
    process::output(&mut command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_version_does_not_count() {
        assert!(is_wanted(&format!("ntp-daemon {VERSION}\n")));
        assert!(!is_wanted("ntp-daemon 1.8.0\n") && !is_wanted(""));
        assert_eq!(installed(tempfile::tempdir().unwrap().path()), None);
    }
}
