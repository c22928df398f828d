//! Who may depend on whom, and why: the code map in ARCHITECTURE.md says it for each crate.
//!
//! ```text
//! | `proto` | what it holds | `wire`, `crypto::lanes`; arrayvec | what would be lost with a further edge |
//! ```
//!
//! A crate is called by the name of its folder. The third column lists exactly what the manifest says, except
//! dependencies of tests. So a new edge is a decision that shows in a change to that file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

use super::Finding;
use super::tree::{Tree, cells};

const FILE: &str = "ARCHITECTURE.md";

/// The heading of the table.
const HEADING: &str = "| crate | holds | may use | the line exists so that |";

/// The crate that depends on nothing, whatever the table says.
const ALONE: &str = "wire";

/// What one crate of the workspace uses: crates of this workspace, by their folders, and other packages.
#[derive(Debug, Default, PartialEq, Eq)]
struct Edges {
    internal: BTreeSet<String>,
    external: BTreeSet<String>,
}

/// One row of the table.
struct Row<'a> {
    line: usize,
    edges: Edges,
    /// What would be lost with another edge.
    reason: &'a str,
}

/// Compares the crates of the workspace at `root` with the table, both ways.
pub(crate) fn check(root: &Path, tree: &Tree) -> Result<Vec<Finding>, String> {
    let file = tree.files.iter().find(|file| file.path == FILE);
    Ok(compare(&edges(root)?, file.map_or("", |file| &file.text)))
}

/// What the crates of the workspace at `root` use, by their folders. Needs no network.
fn edges(root: &Path) -> Result<BTreeMap<String, Edges>, String> {
    let metadata = MetadataCommand::new().current_dir(root).no_deps().exec();
    Ok(edges_of(&metadata.map_err(|error| format!("cargo metadata: {error}"))?))
}

fn edges_of(metadata: &Metadata) -> BTreeMap<String, Edges> {
    let packages = metadata.workspace_packages();
    let edges = packages.iter().map(|package| {
        let mut edges = Edges::default();
        for used in package.dependencies.iter().filter(|used| used.kind != DependencyKind::Development) {
            match packages.iter().find(|package| package.name.as_str() == used.name) {
                Some(package) => edges.internal.insert(folder(package)),
                None => edges.external.insert(used.name.clone()),
            };
        }
        (folder(package), edges)
    });
    edges.collect()
}

fn folder(package: &Package) -> String {
    let folder = package.manifest_path.parent().and_then(|folder| folder.file_name());
    folder.unwrap_or_default().to_owned()
}

/// The rows of the table in `text`, by crate.
fn rows(text: &str) -> BTreeMap<&str, Row<'_>> {
    let table = text.lines().enumerate().skip_while(|(_, line)| *line != HEADING).skip(2);
    let rows = table.map_while(|(index, line)| match cells(line)?[..] {
        [name, _, uses, reason] => {
            let mut edges = Edges::default();
            for used in uses.split([',', ';']).map(str::trim).filter(|used| *used != "nothing") {
                match used.trim_matches('`').split("::").next() {
                    Some(name) if used.starts_with('`') => edges.internal.insert(name.to_owned()),
                    _ => edges.external.insert(used.to_owned()),
                };
            }
            Some((name.trim_matches('`'), Row { line: index + 1, edges, reason }))
        }
        _ => None,
    });
    rows.collect()
}

fn compare(crates: &BTreeMap<String, Edges>, text: &str) -> Vec<Finding> {
    let rows = rows(text);
    let mut findings = Vec::new();
    for (name, edges) in crates {
        let Some(Row { line, edges: listed, reason }) = rows.get(&**name) else {
            findings.push(Finding::violation(FILE, 1, format!("{name} is not in the table of crates")));
            continue;
        };
        let mut add = |problem| findings.push(Finding::violation(FILE, *line, problem));
        if name == ALONE && *edges != Edges::default() {
            add(format!("{ALONE} has a dependency; it must have none"));
        }
        for (used, listed) in [(&edges.internal, &listed.internal), (&edges.external, &listed.external)] {
            for used in used.difference(listed) {
                add(format!("{name} uses {used}, but the line exists so that {reason}"));
            }
            for listed in listed.difference(used) {
                add(format!("{name} does not use {listed}: remove it from the table"));
            }
        }
    }
    let gone = rows.iter().filter(|(name, _)| !crates.contains_key(**name));
    findings.extend(gone.map(|(name, row)| {
        Finding::violation(FILE, row.line, format!("{name} does not exist: remove it from the table"))
    }));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# A\n\n| crate | holds | may use | the line exists so that |\n|---|---|---|---|\n\
                         | `a` | all | `b::part`; libc | a is small |\n| `b` | rest | nothing | b is alone |\n\n\
                         | `c` | in no table | nothing | - |\n";

    fn packages(list: &[(&str, &[&str], &[&str])]) -> BTreeMap<String, Edges> {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let edges = list.iter().map(|(package, internal, external)| {
            ((*package).to_owned(), Edges { internal: set(internal), external: set(external) })
        });
        edges.collect()
    }

    fn problems(list: &[(&str, &[&str], &[&str])]) -> Vec<String> {
        compare(&packages(list), TABLE).into_iter().map(|finding| finding.problem).collect()
    }

    #[test]
    fn tree_that_equals_the_table_passes() {
        assert_eq!(problems(&[("a", &["b"], &["libc"]), ("b", &[], &[])]), [""; 0]);
    }

    #[test]
    fn new_edge_is_found_with_the_reason_against_it() {
        assert_eq!(
            problems(&[("a", &["b"], &["libc", "rand"]), ("b", &[], &[])]),
            ["a uses rand, but the line exists so that a is small"]
        );
        let found = problems(&[("a", &["b"], &["libc"]), ("b", &["a"], &[])]);
        assert_eq!(found, ["b uses a, but the line exists so that b is alone"]);
    }

    #[test]
    fn stale_entry_is_found() {
        let found = problems(&[("a", &[], &["libc"]), ("b", &[], &[])]);
        assert_eq!(found, ["a does not use b: remove it from the table"]);
        assert_eq!(problems(&[("a", &["b"], &["libc"])]), ["b does not exist: remove it from the table"]);
    }

    #[test]
    fn package_without_a_line_is_found() {
        let found = problems(&[("a", &["b"], &["libc"]), ("b", &[], &[]), ("c", &[], &[])]);
        assert_eq!(found, ["c is not in the table of crates"]);
    }

    #[test]
    fn wire_depends_on_nothing_even_if_the_table_allowed_it() {
        let table = format!("{HEADING}\n|---|\n| `{ALONE}` | all | zerocopy | it parses |\n");
        let problems = |external| {
            let found = compare(&packages(&[(ALONE, &[], external)]), &table);
            found.into_iter().map(|finding| finding.problem).collect::<Vec<_>>()
        };
        assert_eq!(problems(&["zerocopy"]), ["wire has a dependency; it must have none"]);
        assert!(!problems(&[]).iter().any(|problem| problem.contains("none")));
    }

    #[test]
    fn findings_point_to_the_row_of_the_crate() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = std::fs::read_to_string(root.join(FILE)).unwrap();
        let found = compare(&packages(&[]), &text);
        assert_eq!(found.len(), edges(root).unwrap().len());
        for finding in &found {
            let line = text.lines().nth(finding.line - 1).unwrap();
            let (name, _) = finding.problem.split_once(' ').unwrap();
            assert!(line.starts_with(&format!("| `{name}` | ")), "{finding}: {line}");
        }
    }

    #[test]
    fn edges_are_read_from_metadata_without_those_of_tests() {
        let dependency = |name: &str, kind: &str| {
            format!(
                r#"{{"name":"{name}","req":"*","kind":{kind},"optional":true,
                    "uses_default_features":true,"features":[]}}"#
            )
        };
        let package = |name: &str, dependencies: &[String]| {
            format!(
                r#"{{"name":"{name}","version":"0.1.0","id":"{name}","dependencies":[{}],"targets":[],"features":{{}},
                    "manifest_path":"/{name}/Cargo.toml"}}"#,
                dependencies.join(",")
            )
        };
        let a = package(
            "a",
            &[
                dependency("b", "null"),
                dependency("libc", "null"),
                dependency("cc", "\"build\""),
                dependency("proptest", "\"dev\""),
            ],
        );
        let b = package("b", &[]);
        let text = format!(
            r#"{{"packages":[{a},{b}],"workspace_members":["a","b"],"resolve":null,"target_directory":"/t","version":1,
                "workspace_root":"/"}}"#
        );
        let metadata = MetadataCommand::parse(text).unwrap();
        assert_eq!(edges_of(&metadata), packages(&[("a", &["b"], &["cc", "libc"]), ("b", &[], &[])]));
    }
}
