//! Programs from the distribution's packages, unpacked beside the libraries that they need.
//!
//! Whoever runs one sets `LD_LIBRARY_PATH` to `usr/lib/ARCHITECTURE-linux-gnu` in its folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// What a program prints when it runs with its own libraries; `None` if it does not run.
pub(super) fn say(place: &Path, program: &str, argument: &str) -> Option<String> {
    let mut command = Command::new(place.join(program));
    process::output(command.arg(argument).env("LD_LIBRARY_PATH", libraries(place))).ok()
}

pub(super) fn libraries(place: &Path) -> PathBuf {
    place.join("usr/lib").join(architecture())
}

fn architecture() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

/// Whether there are packages here.
pub(super) fn possible() -> Result<(), String> {
    let absent = ["apt-get", "dpkg"].into_iter().find(|program| !process::is_on_path(program));
    absent.map_or(Ok(()), |program| Err(format!("there is no {program}")))
}

/// Puts packages into a folder.
pub(super) fn install(place: &Path, packages: &[&str]) -> Result<(), String> {
    let parent = place.parent().ok_or("the folder of the peers has no parent")?;
    let work = tempfile::tempdir_in(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    let io = |error| format!("{}: {error}", work.path().display());
    if let Err(problem) = download(work.path(), packages) {
        // Package lists may be missing, or so old that the packages are gone.
        if !process::is_root() {
            return Err(format!("{problem} (does `apt-get update` help?)"));
        }
        process::output(Command::new("apt-get").arg("update"))?;
        download(work.path(), packages)?;
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

fn download(folder: &Path, packages: &[&str]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.args(["-o", "Acquire::Retries=3", "download"]).args(packages).current_dir(folder);
    process::output(&mut command).map(drop)
}

/// Some packages have their libraries in `lib`, not in `usr/lib`; one path must be enough for all.
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
    fn libraries_of_both_folders_come_together() {
        let tree = tempfile::tempdir().unwrap();
        let other = tree.path().join("lib").join(architecture());
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join("libcap.so.2"), "").unwrap();
        gather_libraries(tree.path()).unwrap();
        assert!(libraries(tree.path()).join("libcap.so.2").is_file());
    }
}
