//! The comments `//= ID, ID` in the sources, and whether they stand above a test.

use std::collections::{BTreeMap, BTreeSet};

use super::requirements::id_of;
use crate::tidy::Finding;
use crate::tidy::source::{Source, words};
use crate::tidy::tree::{TextFile, Tree};

const MARK: &str = "//=";

/// A line of a source file that cites an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) is_test: bool,
}

/// Where each id is cited; comments that cite nothing go to `findings`.
pub(super) fn read(tree: &Tree, findings: &mut Vec<Finding>) -> BTreeMap<String, Vec<Place>> {
    let test_files = test_files(tree);
    let mut cited: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    for (file, source) in tree.rust() {
        let is_test_file = is_test_path(&file.path) || test_files.contains(&file.path);
        for (index, comment) in source.comments.lines().enumerate() {
            let Some(ids) = comment.trim().strip_prefix(MARK) else { continue };
            let line = index + 1;
            let Some(subject) = subject(source, line) else {
                findings.push(file.violation(line, "the citation stands above no code"));
                continue;
            };
            if file.text.lines().nth(line).is_some_and(|below| below.trim().is_empty()) {
                findings.push(file.violation(line, "a blank line parts the citation from the code"));
            }
            let is_test = is_test_file || source.is_test_line(subject);
            for id in ids.split(',').map(str::trim) {
                let place = Place { path: file.path.clone(), line, is_test };
                match id_of(id) {
                    Some(id) => cited.entry(id.to_owned()).or_default().push(place),
                    None => findings.push(file.violation(line, format!("`{id}` is no id"))),
                }
            }
        }
    }
    cited
}

/// The first line of code below `line`.
fn subject(source: &Source, line: usize) -> Option<usize> {
    let mut below = source.code.lines().enumerate().skip(line);
    below.find(|(_, code)| !code.trim().is_empty()).map(|(index, _)| index + 1)
}

fn is_test_path(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs"))
}

/// Files of modules that are declared under `#[cfg(test)]` and are not called `tests`.
fn test_files(tree: &Tree) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for (file, source) in tree.rust() {
        for at in words(&source.code, "mod") {
            let is_shipped = source.shipped.as_bytes()[at] != b' ';
            let rest = &source.code[at + "mod".len()..];
            if let (false, Some((name, _))) = (is_shipped, rest.split_once([';', '{'])) {
                let folder = folder_of_modules(file);
                paths.insert(format!("{folder}/{}.rs", name.trim()));
                paths.insert(format!("{folder}/{}/mod.rs", name.trim()));
            }
        }
    }
    paths
}

/// The folder of the modules that a file declares.
fn folder_of_modules(file: &TextFile) -> &str {
    match file.name() {
        "mod.rs" | "lib.rs" | "main.rs" => file.path.rsplit_once('/').map_or("", |(folder, _)| folder),
        _ => file.path.trim_end_matches(".rs"),
    }
}
