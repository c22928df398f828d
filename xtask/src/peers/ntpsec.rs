//! NTPsec from the distribution's packages: the daemon, and ntpdig, which is a Python program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Peer, debian};
use crate::process;

pub(super) const PEER: Peer = Peer { name: "ntpsec", installed, possible, install };

/// NTPsec itself, and what `ntpd` links to beyond the C library.
const PACKAGES: [&str; 7] =
    ["ntpsec", "ntpsec-ntpdig", "python3-ntp", "libbsd0", "libcap2", "libmd0", "libssl3"];

fn installed(place: &Path) -> Option<String> {
    let mut ntpdig = Command::new("python3");
    ntpdig.arg(place.join("usr/bin/ntpdig")).arg("--version").env("PYTHONPATH", modules(place));
    process::output(ntpdig.env("LD_LIBRARY_PATH", debian::libraries(place))).ok()?;
    version(&debian::say(place, "usr/sbin/ntpd", "--version")?)
}

/// The version in `ntpd ntpsec-1.2.2`.
fn version(text: &str) -> Option<String> {
    Some(text.trim().strip_prefix("ntpd ntpsec-")?.to_owned())
}

fn possible() -> Result<(), String> {
    debian::possible()?;
    if process::is_on_path("python3") { Ok(()) } else { Err("there is no python3".to_owned()) }
}

fn modules(place: &Path) -> PathBuf {
    place.join("usr/lib/python3/dist-packages")
}

/// The Python modules look for their library beside themselves, and else where the package would be installed.
fn install(place: &Path) -> Result<(), String> {
    debian::install(place, &PACKAGES)?;
    let library = debian::libraries(place).join("ntp/libntpc.so");
    let io = |error| format!("{}: {error}", library.display());
    fs::copy(&library, modules(place).join("ntp/libntpc.so")).map(drop).map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_and_absence_has_none() {
        assert_eq!(version("ntpd ntpsec-1.2.2\n").as_deref(), Some("1.2.2"));
        assert_eq!(version("ntpd 4.2.8p15"), None);
        assert_eq!(installed(tempfile::tempdir().unwrap().path()), None);
    }
}
