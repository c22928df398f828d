//! `cargo xtask sbom`: what the released binary is made of, in JSON of CycloneDX 1.6 (ECMA-424).
//!
//! Every package that is linked, with its version, licence, features and the checksum of its archive; the C library in
//! one of them; Rust's own library. What only runs to build the binary is not in it: `reviewed.toml` has that. There is
//! no time, no serial number and no path in it, and everything is sorted: the same lock file, compiler and target make
//! the same octets.
//!
//! Our own packages have no purl: they are in no registry, and somebody else could have theirs there under such a name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::Package;
use serde_json::{Value, json};

use super::graph::{BINARY, Graph};
use super::{Id, lock, packages};
use crate::process;

/// The package that is a C library with a cover, and where its source has the library's version.
const C_LIBRARY: (&str, &str, &str) =
    ("aws-lc-sys", "aws-lc/include/openssl/base.h", "#define AWSLC_VERSION_NUMBER_STRING \"");

/// Packages that say `links` only so that there is one of them, or to pass variables on: they bring no library.
const NO_LIBRARY: [&str; 2] = ["aws-lc-rs", "rayon-core"];

/// What was read, for the list.
struct World {
    graph: Graph,
    locked: BTreeMap<Id, String>,
    /// Licence expressions.
    licences: BTreeMap<Id, String>,
    /// Versions of Rust and of the C library.
    rust: String,
    c_library: String,
    target: String,
}

/// Writes the list for the workspace at `root` and returns where it is.
///
/// # Errors
/// If something that is linked has no licence, or is a library that this file does not know.
pub(crate) fn run(root: &Path, target: &str) -> Result<PathBuf, String> {
    let text = make(root, target)?;
    let folder = root.join("target/sbom");
    let path = folder.join(format!("{BINARY}.cdx.json"));
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn make(root: &Path, target: &str) -> Result<String, String> {
    let graph = Graph::read(root, target)?;
    let packages = packages(root)?;
    let linked =
        || graph.linked.keys().map(|id| packages.get(id).ok_or_else(|| format!("{id}: no manifest")));
    let mut licences = BTreeMap::new();
    let mut c_library = None;
    for package in linked() {
        let package = package?;
        let id = Id::new(package.name.as_str(), &package.version.to_string());
        licences.insert(id, licence(package)?);
        if let Some(version) = library(package)? {
            c_library = Some(version);
        }
    }
    let rustc = process::output(Command::new("rustc").current_dir(root).arg("--version"))?;
    let world = World {
        locked: lock::read(&root.join("Cargo.lock"))?,
        licences,
        rust: rustc.split(' ').nth(1).ok_or("rustc does not say its version")?.to_owned(),
        c_library: c_library.ok_or_else(|| format!("{} is not linked", C_LIBRARY.0))?,
        target: target.to_owned(),
        graph,
    };
    let list = list(&world)?;
    serde_json::to_string_pretty(&list).map(|text| text + "\n").map_err(|error| error.to_string())
}

/// The licence of a package as an SPDX expression. Old manifests have a slash for "or".
fn licence(package: &Package) -> Result<String, String> {
    let licence = package.license.as_ref().ok_or_else(|| format!("{} names no licence", package.name))?;
    Ok(if licence.contains(" OR ") { licence.clone() } else { licence.replace('/', " OR ") })
}

/// The version of the C library that a package brings.
fn library(package: &Package) -> Result<Option<String>, String> {
    let name = package.name.as_str();
    if package.links.is_none() || NO_LIBRARY.contains(&name) {
        return Ok(None);
    }
    let (known, header, line) = C_LIBRARY;
    if name != known {
        return Err(format!("{name} links a library of its own: say in sbom.rs which, and its version"));
    }
    let path = package.manifest_path.as_std_path().with_file_name(header);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let version = text.lines().find_map(|text| text.strip_prefix(line)?.strip_suffix('"'));
    version.map(|version| Some(version.to_owned())).ok_or_else(|| format!("{header} has no version"))
}

fn list(world: &World) -> Result<Value, String> {
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    let (rust, c_library) = (reference("rust-std", &world.rust), reference("aws-lc", &world.c_library));
    let mut own = None;
    for (id, node) in &world.graph.linked {
        let mut component = component(world, id, node.features.iter().map(|feature| &**feature));
        let mut uses: Vec<String> = node.uses.iter().map(|id| reference(&id.name, &id.version)).collect();
        uses.push(rust.clone());
        if id.name == C_LIBRARY.0 {
            uses.push(c_library.clone());
        }
        uses.sort();
        dependencies.push(json!({ "ref": reference(&id.name, &id.version), "dependsOn": uses }));
        if id.name == BINARY {
            component["type"] = json!("application");
            own = Some(component);
        } else {
            components.push(component);
        }
    }
    components.push(json!({
        "type": "library", "bom-ref": c_library, "name": "aws-lc", "version": world.c_library,
        "description": "C and assembly, in the package aws-lc-sys", "scope": "required",
        "licenses": [{ "expression": world.licences.get(&c_cover(world)?).cloned().unwrap_or_default() }],
    }));
    components.push(json!({
        "type": "library", "bom-ref": rust, "name": "rust-std", "version": world.rust,
        "description": "Rust's standard library, as the compiler brings it, with what is in it",
        "scope": "required", "licenses": [{ "expression": "MIT OR Apache-2.0" }],
    }));
    dependencies.extend([&c_library, &rust].map(|reference| json!({ "ref": reference, "dependsOn": [] })));
    for list in [&mut components, &mut dependencies] {
        list.sort_by_key(|entry| entry["bom-ref"].as_str().or(entry["ref"].as_str()).map(str::to_owned));
    }
    let own = own.ok_or_else(|| format!("{BINARY} is not in its own graph"))?;
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": own,
            "properties": [
                { "name": "cargo:target", "value": world.target },
                { "name": "cdx:reproducible", "value": "true" },
            ],
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// The package around the C library.
fn c_cover(world: &World) -> Result<Id, String> {
    let mut linked = world.graph.linked.keys();
    linked.find(|id| id.name == C_LIBRARY.0).cloned().ok_or_else(|| format!("{} is not linked", C_LIBRARY.0))
}

fn component<'a>(world: &World, id: &Id, features: impl Iterator<Item = &'a str>) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(&id.name, &id.version),
        "name": id.name,
        "version": id.version,
        "scope": "required",
        "licenses": [{ "expression": world.licences.get(id).cloned().unwrap_or_default() }],
    });
    let features: Vec<Value> =
        features.map(|feature| json!({ "name": "cargo:feature", "value": feature })).collect();
    if !features.is_empty() {
        component["properties"] = json!(features);
    }
    if let Some(checksum) = world.locked.get(id) {
        // A plus sign means a blank where it is not written as a number.
        component["purl"] = json!(format!("pkg:cargo/{}@{}", id.name, id.version.replace('+', "%2B")));
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

fn reference(name: &str, version: &str) -> String {
    format!("{name}@{version}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::graph::TARGET;
    use super::*;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    fn texts<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
        list.as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap()).collect()
    }

    #[test]
    fn list_of_the_workspace_is_whole_sorted_and_the_same_again() {
        let text = make(root(), TARGET).unwrap();
        assert_eq!(make(root(), TARGET).unwrap(), text);
        let list: Value = serde_json::from_str(&text).unwrap();
        let graph = Graph::read(root(), TARGET).unwrap();
        let locked = lock::read(&root().join("Cargo.lock")).unwrap();

        // The binary, the C library and Rust's, beside what is linked.
        let references = texts(&list["components"], "bom-ref");
        assert_eq!(references.len() + 1, graph.linked.len() + 2);
        let sorted: BTreeSet<&str> = references.iter().copied().collect();
        assert!(references.iter().eq(&sorted), "each once, in order");
        let nodes: BTreeSet<&str> = texts(&list["dependencies"], "ref").into_iter().collect();
        let own = list["metadata"]["component"]["bom-ref"].as_str().unwrap();
        assert_eq!(nodes, sorted.iter().copied().chain([own]).collect::<BTreeSet<_>>());
        for node in list["dependencies"].as_array().unwrap() {
            let uses = node["dependsOn"].as_array().unwrap();
            assert!(uses.iter().all(|used| nodes.contains(used.as_str().unwrap())), "{node}");
        }
        for component in list["components"].as_array().unwrap() {
            let id = Id::new(component["name"].as_str().unwrap(), component["version"].as_str().unwrap());
            assert_eq!(component["hashes"][0]["content"].as_str(), locked.get(&id).map(String::as_str));
            assert_eq!(component["purl"].is_string(), locked.contains_key(&id), "{component}");
            let licence = component["licenses"][0]["expression"].as_str().unwrap();
            assert!(!licence.is_empty() && !licence.contains('/'), "{component}");
        }
        let place = root().to_str().unwrap();
        assert!(!text.contains(place) && !text.contains("timestamp") && !text.contains("serialNumber"));
        let names = texts(&list["components"], "name");
        assert!(names.contains(&"aws-lc") && names.contains(&"rust-std"));
        assert!(!names.contains(&"openssl") && !names.contains(&"proptest"));
    }

    fn package(rest: &str) -> Package {
        let manifest = root().join("xtask/Cargo.toml");
        let text = format!(
            r#"{{"name":"a","version":"0.1.0","id":"a","dependencies":[],"targets":[],"features":{{}},
                "manifest_path":{manifest:?}{rest}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn library_that_nobody_named_is_refused() {
        assert_eq!(library(&package("")), Ok(None));
        let found = library(&package(r#","links":"z""#)).unwrap_err();
        assert!(found.contains("a links a library of its own"), "{found}");
    }

    #[test]
    fn licence_is_an_expression_and_its_absence_an_error() {
        assert_eq!(licence(&package(r#","license":"MIT/Apache-2.0""#)), Ok("MIT OR Apache-2.0".to_owned()));
        assert_eq!(licence(&package("")), Err("a names no licence".to_owned()));
    }
}
