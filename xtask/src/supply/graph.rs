//! What is compiled into the binary that is shipped, as cargo resolves it for a release: without what only tests need,
//! and with the features that are on there. The graph of `cargo metadata` cannot tell: it unites the features of tests,
//! build scripts and the binary.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Id;
use crate::process;

/// The package that is shipped.
pub(super) const BINARY: &str = "authentick";

/// What it is shipped for. Named, so that the answer is the same on every machine.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A package in the binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) features: BTreeSet<String>,
    /// What it uses of what is in the binary.
    pub(super) uses: BTreeSet<Id>,
}

/// What is in the binary, and what is only run to build it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Graph {
    pub(super) linked: BTreeMap<Id, Node>,
    /// Macros, build scripts' dependencies, and what these use.
    pub(super) builders: BTreeSet<Id>,
}

impl Graph {
    /// Asks cargo about the workspace at `root`.
    pub(super) fn read(root: &Path, target: &str) -> Result<Self, String> {
        let linked = parse(&tree(root, target, "normal,no-proc-macro")?)?;
        let all = parse(&tree(root, target, "normal,build")?)?;
        let builders = all.into_keys().filter(|id| !linked.contains_key(id)).collect();
        Ok(Graph { linked, builders })
    }

    /// The names of those that use a package directly.
    pub(super) fn users(&self, id: &Id) -> Vec<&str> {
        let users = self.linked.iter().filter(|(_, node)| node.uses.contains(id));
        users.map(|(user, _)| &*user.name).collect()
    }
}

fn tree(root: &Path, target: &str, edges: &str) -> Result<String, String> {
    let mut command = process::cargo(root);
    command.args(["tree", "--locked", "--package", BINARY, "--target", target, "--edges", edges]);
    process::output(command.args(["--prefix", "depth", "--format", "|{p}|{f}|"]))
}

/// Reads `DEPTH|NAME vVERSION (PLACE)|FEATURES|`, a line for each use of a package by the one above it.
fn parse(text: &str) -> Result<BTreeMap<Id, Node>, String> {
    let mut nodes: BTreeMap<Id, Node> = BTreeMap::new();
    let mut above: Vec<Id> = Vec::new();
    for line in text.lines() {
        let unread = || format!("`cargo tree` printed what cannot be read: {line}");
        let (depth, rest) = line.split_once('|').ok_or_else(unread)?;
        let depth: usize = depth.parse().map_err(|_| unread())?;
        let (package, rest) = rest.split_once('|').ok_or_else(unread)?;
        let (features, _) = rest.split_once('|').ok_or_else(unread)?;
        let mut words = package.split(' ');
        let name = words.next().ok_or_else(unread)?;
        let version = words.next().and_then(|word| word.strip_prefix('v')).ok_or_else(unread)?;
        let id = Id::new(name, version);
        let features = features.split(',').filter(|feature| !feature.is_empty()).map(str::to_owned);
        nodes.entry(id.clone()).or_default().features.extend(features);
        if depth > above.len() {
            return Err(unread());
        }
        above.truncate(depth);
        if let Some(user) = above.last().and_then(|user| nodes.get_mut(user)) {
            user.uses.insert(id.clone());
        }
        above.push(id);
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_become_uses_and_repeated_packages_are_united() {
        let text = "0|authentick v0.1.0 (/a)|default|\n1|aes v0.9.4|a,b|\n2|cipher v0.5.2||\n\
                    1|ke v0.1.0 (/a/ke)||\n2|aes v0.9.4|a,b| (*)\n";
        let nodes = parse(text).unwrap();
        let ids: Vec<String> = nodes.keys().map(Id::to_string).collect();
        assert_eq!(ids, ["aes 0.9.4", "authentick 0.1.0", "cipher 0.5.2", "ke 0.1.0"]);
        let aes = Id::new("aes", "0.9.4");
        assert_eq!(nodes[&aes].uses, BTreeSet::from([Id::new("cipher", "0.5.2")]));
        assert_eq!(nodes[&aes].features, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        let graph = Graph { linked: nodes, builders: BTreeSet::new() };
        assert_eq!(graph.users(&aes), ["authentick", "ke"]);
    }

    #[test]
    fn output_of_another_form_is_refused() {
        for text in ["authentick v0.1.0", "0|authentick|", "0|authentick v1||\n2|aes v1||", "x|a v1||"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_only_tests_or_builds_need_is_not_in_the_binary() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let graph = Graph::read(root, TARGET).unwrap();
        let has = |name: &str| graph.linked.keys().any(|id| id.name == name);
        assert!(has(BINARY) && has("rustls") && has("authentick-wire"));
        assert!(!has("proptest") && !has("cc") && !has("serde_derive") && !has("xtask"));
        let builds = |name: &str| graph.builders.iter().any(|id| id.name == name);
        assert!(builds("cc") && builds("serde_derive") && !builds("proptest"));
    }
}
