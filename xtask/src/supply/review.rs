//! `cargo xtask review`: what a reader of a package needs, its figures and what changed since it was last looked at.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::Package;

use super::facts::{self, Facts};
use super::graph::{Graph, TARGET};
use super::reviews::{self, Entry};
use super::{Id, build_script, lock, packages};
use crate::process;

/// Prints what to write into the list about packages of these names, and what changed in them.
///
/// # Errors
/// If there is no such package.
pub(crate) fn run(root: &Path, names: &[String]) -> Result<(), String> {
    let packages = packages(root)?;
    let locked = lock::read(&root.join("Cargo.lock"))?;
    let entries = reviews::entries(root)?;
    let graph = Graph::read(root, TARGET)?;
    for name in names {
        let ids: Vec<&Id> =
            locked.keys().filter(|id| id.name == *name && packages.contains_key(id)).collect();
        if ids.is_empty() {
            return Err(format!("no package {name} is built for this workspace"));
        }
        for id in ids {
            let package = &packages[id];
            println!("# used by {}; source: {}\n", graph.users(id).join(", "), folder(package).display());
            println!("{}", proposal(id, &locked[id], build_script(package).is_some(), &count(package)?));
            let is_other = |entry: &&Entry| *entry.name.get_ref() == id.name && entry.version != id.version;
            if let Some(entry) = entries.iter().find(is_other) {
                let old = fetched(package, entry)?;
                // Its exit code says whether there are differences.
                let mut diff = Command::new("git");
                diff.args(["diff", "--no-index", "--stat", "--patch", "--"]).arg(old).arg(folder(package));
                process::collect(&mut diff)
                    .map(|found| print!("{}", String::from_utf8_lossy(&found.stdout)))?;
            }
        }
    }
    Ok(())
}

/// Counts again in all packages of the list, and prints them.
///
/// # Errors
/// If the list has other figures than a source.
pub(crate) fn recount(root: &Path) -> Result<(), String> {
    let packages = packages(root)?;
    let locked = lock::read(&root.join("Cargo.lock"))?;
    let mut wrong = Vec::new();
    for entry in reviews::entries(root)? {
        let id = entry.id();
        let Some(package) = packages.get(&id).filter(|_| locked.get(&id) == Some(&entry.checksum)) else {
            println!("{id}: another one is locked");
            continue;
        };
        println!("{}", entry.row());
        let facts = count(package)?;
        wrong.extend(entry.differences(&facts).map(|problem| format!("{id}: {problem}")));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn folder(package: &Package) -> &Path {
    let manifest = package.manifest_path.as_std_path();
    manifest.parent().unwrap_or(manifest)
}

fn count(package: &Package) -> Result<Facts, String> {
    facts::count(folder(package), build_script(package))
}

/// The entry of a package, with what a program can fill in.
fn proposal(id: &Id, checksum: &str, has_build_script: bool, facts: &Facts) -> String {
    let mut text = format!(
        "[[crate]]\nname = \"{}\"\nversion = \"{}\"\nchecksum = \"{checksum}\"\nsees = []\n",
        id.name, id.version
    );
    if has_build_script {
        let _ = writeln!(text, "build-script = \"reaches {:?}\"", facts.builder_reaches);
    }
    let _ = writeln!(text, "lines = {}\nunsafe = {}\npanics = {}", facts.lines, facts.unsafes, facts.panics);
    for (name, count) in [("foreign", facts.foreign), ("objects", facts.objects)] {
        if count > 0 {
            let _ = writeln!(text, "{name} = {count}");
        }
    }
    if !facts.reaches.is_empty() {
        let _ = writeln!(text, "reaches = {:?}", Vec::from_iter(&facts.reaches));
    }
    text.push_str("level = \"counted\"\nlooked = \"YEAR-MONTH-DAY\"\nnote = \"\"\n");
    text
}

/// The source of the version that was looked at, which cargo fetches if it is no longer here.
fn fetched(package: &Package, entry: &Entry) -> Result<PathBuf, String> {
    let id = entry.id();
    let place = folder(package).with_file_name(format!("{}-{}", id.name, id.version));
    if place.is_dir() {
        return Ok(place);
    }
    let project = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (version, _) = id.version.split_once('+').unwrap_or((&id.version, ""));
    let manifest = format!(
        "[package]\nname = \"look\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[lib]\npath = \"look.rs\"\n\n\
         [dependencies]\n\"{}\" = \"={version}\"\n",
        id.name
    );
    let write = |name: &str, text: &str| fs::write(project.path().join(name), text);
    write("look.rs", "").and_then(|()| write("Cargo.toml", &manifest)).map_err(|error| error.to_string())?;
    process::run(process::cargo(project.path()).args(["fetch", "--quiet", "--target", TARGET]))?;
    match lock::read(&project.path().join("Cargo.lock"))?.get(&id) {
        Some(checksum) if *checksum == entry.checksum => Ok(place),
        _ => Err(format!("the registry has no {id} with the checksum of the list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_proposed_is_an_entry_of_the_list() {
        let facts = Facts { lines: 3, unsafes: 1, objects: 2, ..Facts::default() };
        let text = proposal(&Id::new("aes", "0.9.4"), "77", true, &facts);
        assert!(text.contains("unsafe = 1\n") && text.contains("objects = 2\n"), "{text}");
        assert!(!text.contains("foreign") && !text.contains("reaches = "), "{text}");
        let list = format!("builders = []\n\n{}", text.replace("YEAR-MONTH-DAY", "2026-01-02"));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(reviews::FILE), list).unwrap();
        let entries = reviews::entries(folder.path()).unwrap();
        assert_eq!(entries[0].differences(&facts).collect::<Vec<_>>(), [""; 0]);
        let other = Facts { unsafes: 2, ..facts };
        let found: Vec<String> = entries[0].differences(&other).collect();
        assert_eq!(found, ["unsafe = 1 in the list, 2 in the source"]);
    }
}
