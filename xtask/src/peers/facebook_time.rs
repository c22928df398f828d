//! The NTS server pair and the NTS test client of facebook/time, where Go is present.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::Peer;
use crate::process;

pub(super) const PEER: Peer = Peer { name: "facebook/time", installed, possible, install };

const VERSION: &str = "v0.0.0-20260822211804-f81aedc1c1e3";

const PROGRAMS: [&str; 3] = ["cmd/ntpresponder", "ntp/ntske/cmd/ntske", "ntp/ntske/cmd/ntsketest"];

/// The programs do not tell their version, so a file beside them does; it is written last.
const STAMP: &str = "version";

fn installed(place: &Path) -> Option<String> {
    let version = fs::read_to_string(place.join(STAMP)).ok()?;
    let has_all = PROGRAMS.iter().all(|program| place.join(name(program)).is_file());
    (has_all && version.trim() == VERSION).then(|| VERSION.to_owned())
}

fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn possible() -> Result<(), String> {
    if process::is_on_path("go") { Ok(()) } else { Err("Go is not installed".to_owned()) }
}

fn install(place: &Path) -> Result<(), String> {
    // Outside any module, so that no other go.mod has an effect.
    let work = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = Command::new("go");
    command.arg("install").current_dir(work.path()).env("GOBIN", place).env("GOFLAGS", "-mod=mod");
    command.args(PROGRAMS.map(|program| format!("github.com/facebook/time/{program}@{VERSION}")));
    process::output(&mut command)?;
    fs::write(place.join(STAMP), format!("{VERSION}\n"))
        .map_err(|error| format!("{}: {error}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_programs_and_their_stamp_make_it_installed() {
        let place = tempfile::tempdir().unwrap();
        for program in PROGRAMS {
            assert_eq!(installed(place.path()), None);
            fs::write(place.path().join(name(program)), "").unwrap();
        }
        fs::write(place.path().join(STAMP), "v0.0.0-1-2\n").unwrap();
        assert_eq!(installed(place.path()), None);
        fs::write(place.path().join(STAMP), format!("{VERSION}\n")).unwrap();
        assert_eq!(installed(place.path()).as_deref(), Some(VERSION));
    }
}
