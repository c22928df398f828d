//! Whether a locked package has been withdrawn ("yanked") from its registry since it was locked.
//!
//! Cargo silently continues to build packages that are locked and yanked. What the registry says about each package is
//! in the cache of its index, in cargo's home; `cargo update --dry-run` refreshes it and changes nothing else. This
//! file names no registry: it reads every cache that exists.
//!
//! ```text
//! CARGO_HOME/registry/index/REGISTRY/.cache/se/rd/serde
//! version of the format, and what the registry said of the file's age | 0
//! version of the package | 0 | what the index says of it, JSON | 0
//! ...
//! ```
//!
//! Deliberately absent: advisories. They are in a separate database, which is not always reachable: see CONTRIBUTING.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Id, lock};
use crate::process;

/// Checks all packages that the lock files of `root`, of the workspace and of the fuzz targets, take from registries.
/// Returns how many there are.
///
/// # Errors
/// If one is yanked, or nothing is known about one.
pub(crate) fn run(root: &Path) -> Result<usize, String> {
    let mut locked = BTreeSet::new();
    for folder in [root.to_owned(), root.join("fuzz")] {
        let file = folder.join("Cargo.lock");
        if !file.is_file() {
            continue;
        }
        locked.extend(lock::read(&file)?.into_keys());
        // Without a network the cached index has to do.
        if let Err(problem) =
            process::output(process::cargo(&folder).args(["update", "--dry-run", "--quiet"]))
        {
            println!("the index is not asked again: {problem}");
        }
    }
    judge(&locked, &caches(&home()?))
}

/// Cargo's own folder.
fn home() -> Result<PathBuf, String> {
    let named = env::var_os("CARGO_HOME").map(PathBuf::from);
    let default = || env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    named.or_else(default).ok_or_else(|| "neither CARGO_HOME nor HOME is set".to_owned())
}

/// The caches of all registries' indexes.
fn caches(home: &Path) -> Vec<PathBuf> {
    let registries = fs::read_dir(home.join("registry/index")).into_iter().flatten().flatten();
    registries.map(|entry| entry.path().join(".cache")).filter(|path| path.is_dir()).collect()
}

/// How many of the packages, by name and version, are known to the caches and not yanked. If two caches know a package,
/// one that says it is yanked decides.
///
/// # Errors
/// If one is yanked, or nothing is known about one: which, and what to do.
fn judge(locked: &BTreeSet<Id>, caches: &[PathBuf]) -> Result<usize, String> {
    let (mut yanked, mut unknown) = (Vec::new(), Vec::new());
    for id in locked {
        let place = place(&id.name);
        let files = caches.iter().filter_map(|cache| fs::read(cache.join(&place)).ok());
        let said: Vec<bool> = files.filter_map(|file| is_yanked(&file, &id.version)).collect();
        if said.is_empty() {
            unknown.push(id.to_string());
        } else if said.contains(&true) {
            yanked.push(id);
        }
    }
    if let Some(first) = yanked.first() {
        let all: Vec<String> = yanked.iter().map(ToString::to_string).collect();
        let (all, name) = (all.join(", "), &first.name);
        return Err(format!(
            "yanked by their authors: {all}; for each: cargo update -p {name}, or another one"
        ));
    }
    if let Some(first) = unknown.first() {
        let count = unknown.len();
        return Err(format!(
            "whether {count} packages are yanked is not known, as {first}; run: cargo update --dry-run"
        ));
    }
    Ok(locked.len())
}

/// Where the index has a package. The Cargo Book, "Index Format".
fn place(name: &str) -> PathBuf {
    let name = name.to_ascii_lowercase();
    match name.len() {
        0..=2 => PathBuf::from(name.len().to_string()).join(name),
        3 => Path::new("3").join(&name[..1]).join(name),
        _ => Path::new(&name[..2]).join(&name[2..4]).join(&name),
    }
}

/// Whether a version is yanked, by a file of the cache; `None` if the file does not know that version.
fn is_yanked(file: &[u8], version: &str) -> Option<bool> {
    let entries =
        file.split(|octet| *octet == 0).filter_map(|part| serde_json::from_slice::<Value>(part).ok());
    let mut entries = entries.filter(|entry| entry.get("vers").and_then(Value::as_str) == Some(version));
    entries.next()?.get("yanked")?.as_bool()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as cargo 1.95 writes it.
    fn file(versions: &[(&str, bool)]) -> Vec<u8> {
        let mut octets = b"\x03\x02\0\0\0etag: \"5d\"\0".to_vec();
        for (version, yanked) in versions {
            let entry = format!(
                "{version}\0{{\"name\": \"serde\", \"vers\": \"{version}\", \"deps\": [], \"yanked\": {yanked}}}\0"
            );
            octets.extend(entry.as_bytes());
        }
        octets
    }

    fn locked(packages: &[(&str, &str)]) -> BTreeSet<Id> {
        packages.iter().map(|(name, version)| Id::new(name, version)).collect()
    }

    #[test]
    fn packages_lie_where_the_index_has_them() {
        for (name, expected) in [
            ("a", "1/a"),
            ("nb", "2/nb"),
            ("url", "3/u/url"),
            ("serde", "se/rd/serde"),
            ("RustyXML", "ru/st/rustyxml"),
        ] {
            assert_eq!(place(name), Path::new(expected));
        }
    }

    #[test]
    fn yanked_version_is_told_from_its_neighbours() {
        let file = file(&[("1.0.1", false), ("1.0.2", true), ("1.0.20", false)]);
        assert_eq!(
            ["1.0.1", "1.0.2", "1.0.20", "1.0.3"].map(|version| is_yanked(&file, version)),
            [Some(false), Some(true), Some(false), None]
        );
        for cut in 0..file.len() {
            let _ = is_yanked(&file[..cut], "1.0.2");
        }
        assert_eq!(is_yanked(b"", "1.0.1"), None);
    }

    #[test]
    fn yanked_and_unknown_packages_fail_the_step_and_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("registry/index/somewhere-1/.cache");
        for (name, versions) in
            [("serde", &[("1.0.1", false), ("1.0.2", true)][..]), ("nb", &[("0.1.0", false)])]
        {
            let path = cache.join(place(name));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file(versions)).unwrap();
        }
        let caches = caches(folder.path());
        let judged = |packages: &[(&str, &str)]| judge(&locked(packages), &caches);
        assert_eq!(judged(&[("serde", "1.0.1"), ("nb", "0.1.0")]), Ok(2));
        let yanked = judged(&[("serde", "1.0.2"), ("nb", "0.1.0")]).unwrap_err();
        assert!(yanked.contains("serde 1.0.2") && yanked.contains("cargo update -p serde"), "{yanked}");
        for absent in [("nb", "0.2.0"), ("log", "0.4.0")] {
            let unknown = judged(&[("serde", "1.0.1"), absent]).unwrap_err();
            assert!(unknown.contains(absent.0) && unknown.contains("cargo update --dry-run"), "{unknown}");
        }
        assert!(judge(&locked(&[("nb", "0.1.0")]), &[]).is_err(), "no cache at all");
    }
}
