//! The list against worlds that differ from it in one thing each.

use std::collections::{BTreeMap, BTreeSet};

use super::super::graph::{Graph, Node};
use super::*;

const LIST: &str = r#"
[[crate]]
name = "rustls"
version = "0.23.46"
checksum = "aa"
sees = ["secrets", "network"]
lines = 1
unsafe = 0
panics = 0
level = "called"
looked = "2026-11-22"
note = "what we call"

[[crate]]
name = "clap"
version = "4.6.7"
checksum = "bb"
sees = ["operator"]
build-script = "asks the compiler's version"
lines = 1
unsafe = 0
panics = 0
level = "counted"
looked = "2026-11-22"

[[builders]]
name = "syn"

[[builders]]
name = "serde_derive"
macro = true
"#;

/// The binary of `LIST`.
fn world() -> World {
    let (own, rustls, clap) =
        (Id::new("authentick", "0.1.0"), Id::new("rustls", "0.23.46"), Id::new("clap", "4.6.7"));
    let uses = BTreeSet::from([rustls.clone(), clap.clone()]);
    let linked = BTreeMap::from([
        (own, Node { uses, ..Node::default() }),
        (rustls.clone(), Node::default()),
        (clap.clone(), Node::default()),
    ]);
    let (syn, derive) = (Id::new("syn", "2.0.1"), Id::new("serde_derive", "1.0.1"));
    let script = Manifest { has_build_script: true, is_macro: false };
    let is_macro = Manifest { has_build_script: false, is_macro: true };
    World {
        graph: Graph { linked, builders: BTreeSet::from([syn, derive.clone()]) },
        locked: BTreeMap::from([(rustls, "aa".to_owned()), (clap.clone(), "bb".to_owned())]),
        manifests: BTreeMap::from([(clap, script), (derive, is_macro)]),
    }
}

impl World {
    /// Another version in the place of the one that is there.
    fn replace(&mut self, name: &str, version: &str, checksum: &str) {
        let old = self.graph.linked.keys().find(|id| id.name == name).unwrap().clone();
        let node = self.graph.linked.remove(&old).unwrap();
        let manifest = self.manifest(&old);
        let new = Id::new(name, version);
        self.locked.remove(&old);
        self.locked.insert(new.clone(), checksum.to_owned());
        self.manifests.insert(new.clone(), manifest);
        self.graph.linked.insert(new, node);
    }
}

fn problems(list: &str, world: &World) -> Vec<String> {
    compare(list, world).unwrap().iter().map(Finding::to_string).collect()
}

#[test]
fn list_of_what_is_locked_passes() {
    assert_eq!(problems(LIST, &world()), [""; 0]);
}

#[test]
fn another_version_of_what_sees_secrets_is_a_violation() {
    let mut world = world();
    world.replace("rustls", "0.23.47", "cc");
    assert_eq!(
        problems(LIST, &world),
        [
            "reviewed.toml:3: rustls 0.23.46 was looked at, 0.23.47 is locked, and it sees secrets and octets from \
             the network: read what changed (cargo xtask review rustls), then write the new version, checksum and \
             figures here"
        ]
    );
}

#[test]
fn another_checksum_of_the_same_version_is_told_apart() {
    let mut world = world();
    world.replace("rustls", "0.23.46", "cc");
    let found = problems(LIST, &world);
    assert!(matches!(&found[..], [one] if one.contains("one version has two sources")), "{found:?}");
}

#[test]
fn another_version_of_what_sees_neither_is_a_note() {
    let mut world = world();
    world.replace("clap", "4.6.8", "cc");
    let found = problems(LIST, &world);
    assert!(
        matches!(&found[..], [one] if one.starts_with("reviewed.toml:15: note: clap 4.6.7")),
        "{found:?}"
    );
}

#[test]
fn package_that_nobody_looked_at_is_a_violation_and_says_who_uses_it() {
    let mut world = world();
    let id = Id::new("slab", "0.4.12");
    world.locked.insert(id.clone(), "dd".to_owned());
    world.graph.linked.insert(id.clone(), Node::default());
    world.graph.linked.get_mut(&Id::new("rustls", "0.23.46")).unwrap().uses.insert(id);
    assert_eq!(
        problems(LIST, &world),
        [
            "reviewed.toml:1: slab 0.4.12, used by rustls, is in the binary and not in the list: look at it, and \
             add what `cargo xtask review slab` prints"
        ]
    );
}

#[test]
fn second_version_of_a_package_needs_an_entry_of_its_own() {
    let mut world = world();
    let id = Id::new("rustls", "0.22.0");
    world.locked.insert(id.clone(), "dd".to_owned());
    world.graph.linked.insert(id, Node::default());
    let found = problems(LIST, &world);
    assert!(matches!(&found[..], [one] if one.contains("rustls 0.22.0") && one.contains("not in the list")));
}

#[test]
fn entry_of_what_is_gone_is_a_violation() {
    let mut world = world();
    world.graph.linked.remove(&Id::new("clap", "4.6.7"));
    world.graph.builders.remove(&Id::new("syn", "2.0.1"));
    assert_eq!(
        problems(LIST, &world),
        [
            "reviewed.toml:15: clap 4.6.7 is not in the binary: remove it",
            "reviewed.toml:27: syn is not run to build the binary: remove it",
        ]
    );
}

#[test]
fn build_script_or_macro_that_nobody_read_is_a_violation_whatever_the_package_sees() {
    let mut world = world();
    world
        .manifests
        .insert(Id::new("rustls", "0.23.46"), Manifest { has_build_script: true, is_macro: false });
    world.manifests.insert(Id::new("clap", "4.6.7"), Manifest::default());
    world.manifests.insert(Id::new("syn", "2.0.1"), Manifest { has_build_script: true, is_macro: true });
    let found = problems(LIST, &world);
    let expected = [
        "clap has no build script",
        "rustls has a build script",
        "syn 2.0.1 is a macro",
        "syn 2.0.1 has a build script",
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn builder_that_nobody_named_is_a_violation() {
    let mut world = world();
    world.graph.builders.insert(Id::new("cc", "1.11.1"));
    let found = problems(LIST, &world);
    assert!(matches!(&found[..], [one] if one.contains("cc 1.11.1 is run to build the binary")), "{found:?}");
}

#[test]
fn look_without_a_word_or_a_day_is_a_violation() {
    let list = LIST.replace("note = \"what we call\"\n", "");
    let found = problems(&list, &world());
    assert!(matches!(&found[..], [one] if one.contains("say in note what was looked at")), "{found:?}");
    let list = LIST.replacen("2026-11-22", "yesterday", 1);
    let found = problems(&list, &world());
    assert!(matches!(&found[..], [one] if one.contains("YEAR-MONTH-DAY")), "{found:?}");
}

#[test]
fn word_that_the_list_does_not_know_is_refused() {
    let sees = LIST.replace("sees = [\"operator\"]", "sees = [\"nothing\"]");
    let key = LIST.replace("note =", "notes =");
    for list in [sees, key] {
        assert!(compare(&list, &world()).is_err());
    }
}
