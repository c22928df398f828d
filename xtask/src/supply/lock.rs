//! A lock file: which packages it has, from where, and the checksum of each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::Id;

#[derive(Deserialize)]
struct File {
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    source: Option<String>,
    /// SHA-256 of the package as the registry has it, in hexadecimal.
    checksum: Option<String>,
}

/// The packages of the file at `path` that are not ours, each with the checksum of its archive.
///
/// # Errors
/// If there is no such file, or a package in it comes from elsewhere than a registry.
pub(super) fn read(path: &Path) -> Result<BTreeMap<Id, String>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))
}

fn parse(text: &str) -> Result<BTreeMap<Id, String>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let others = file.package.into_iter().filter(|package| package.source.is_some());
    let checked = others.map(|package| match package.checksum {
        Some(checksum) => Ok((Id::new(&package.name, &package.version), checksum)),
        None => Err(format!("{} {} has no checksum", package.name, package.version)),
    });
    checked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_registries_have_checksums_and_ours_are_left_out() {
        let ours = "version = 4\n\n[[package]]\nname = \"wire\"\nversion = \"0.1.0\"\n\n";
        let other = "[[package]]\nname = \"aes\"\nversion = \"0.9.4\"\nsource = \"registry+somewhere\"\n";
        let text = format!("{ours}{other}checksum = \"77\"\n");
        let expected = BTreeMap::from([(Id::new("aes", "0.9.4"), "77".to_owned())]);
        assert_eq!(parse(&text), Ok(expected));
        assert_eq!(parse(&format!("{ours}{other}")), Err("aes 0.9.4 has no checksum".to_owned()));
        assert!(parse("package = 1").is_err());
    }
}
