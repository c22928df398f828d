//! chrony from the distribution's packages, unpacked beside the libraries that it needs.
//!
//! Whoever runs it sets `LD_LIBRARY_PATH` to `usr/lib/ARCHITECTURE-linux-gnu` in its folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Peer;
use crate::process;

pub(super) const PEER: Peer = Peer { name: "chrony", installed, possible, install };

/// chrony itself, and what `chronyd` and `chronyc` link to beyond the C library.
const PACKAGES: [&str; 15] = [
    "chrony",
    "libbsd0",
    "libcap2",
    "libedit2",
    "libffi8",
    "libgmp10",
    "libgnutls30",
    "libhogweed6",
    "libidn2-0",
    "libmd0",
    "libnettle8",
    "libp11-kit0",
    "libseccomp2",
    "libtasn1-6",
    "libunistring2",
];

fn installed(place: &Path) -> Option<String> {
    let say = |program: &str| {
        let mut command = Command::new(place.join(program));
        command.arg("--version").env("LD_LIBRARY_PATH", libraries(place));
        process::output(&mut command).ok()
    };
    say("usr/bin/chronyc")?;
    version(&say("usr/sbin/chronyd")?)
}

/// The version in `chronyd (chrony) version 4.3 (+CMDMON +NTS ..)`, if NTS is among the features.
fn version(text: &str) -> Option<String> {
    let (version, features) = text.split_once(" version ")?.1.split_once(' ')?;
    features.contains("+NTS").then(|| version.to_owned())
}

fn libraries(place: &Path) -> PathBuf {
    place.join("usr/lib").join(architecture())
}

fn architecture() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

fn possible() -> Result<(), String> {
    let absent = ["apt-get", "dpkg"].into_iter().find(|program| !process::is_on_path(program));
    absent.map_or(Ok(()), |program| Err(format!("there is no {program}")))
}

fn install(place: &Path) -> Result<(), String> {
    let parent = place.parent().ok_or("the folder of the peers has no parent")?;
    let work = tempfile::tempdir_in(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    let io = |error| format!("{}: {error}", work.path().display());
    if let Err(problem) = download(work.path()) {
        // Package lists may be missing, or so old that the packages are gone.
        if !process::is_root() {
            return Err(format!("{problem} (does `apt-get update` help?)"));
        }
        process::output(Command::new("apt-get").arg("update"))?;
        download(work.path())?;
    }
    let tree = work.path().join("tree");
    for entry in fs::read_dir(work.path()).map_err(io)? {
        let package = entry.map_err(io)?.path();
        if package.extension().is_some_and(|ending| ending == "deb") {
            process::output(Command::new("dpkg").arg("-x").arg(&package).arg(&tree))?;
        }
    }
    gather_libraries(&tree).map_err(io)?;
    fs::rename(&tree, place).map_err(io)
}

fn download(folder: &Path) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.args(["-o", "Acquire::Retries=3", "download"]).args(PACKAGES).current_dir(folder);
    process::output(&mut command).map(drop)
}

/// Some packages have their libraries in `lib`, not in `usr/lib`: one path must do for all.
fn gather_libraries(tree: &Path) -> std::io::Result<()> {
    let other = tree.join("lib").join(architecture());
    if !other.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(libraries(tree))?;
    for entry in fs::read_dir(other)? {
        let entry = entry?;
        fs::rename(entry.path(), libraries(tree).join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_counts_only_with_nts() {
        let text = "chronyd (chrony) version 4.3 (+CMDMON +NTP +REFCLOCK -RTC +NTS -SIGND)\n";
        assert_eq!(version(text).as_deref(), Some("4.3"));
        assert_eq!(version(&text.replace("+NTS", "-NTS")), None);
        assert_eq!(version("no such option"), None);
    }

    #[test]
    fn libraries_of_both_folders_come_together() {
        let tree = tempfile::tempdir().unwrap();
        let other = tree.path().join("lib").join(architecture());
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join("libcap.so.2"), "").unwrap();
        gather_libraries(tree.path()).unwrap();
        assert!(libraries(tree.path()).join("libcap.so.2").is_file());
    }

    #[test]
    fn folder_without_chrony_has_no_version() {
        assert_eq!(installed(tempfile::tempdir().unwrap().path()), None);
    }
}
