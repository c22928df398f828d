//! How far each package in the binary was read: `reviewed.toml`, compared with what is locked.
//!
//! ```toml
//! [[crate]]
//! name = "aes"
//! version = "0.9.4"
//! checksum = "SHA-256 of the package, as in Cargo.lock"
//! sees = ["secrets"]
//! level = "called"
//! note = "what was looked at, and what came of it"
//! ```
//!
//! A package that is handed secrets or octets from the network has to be the very one that was looked at; another is a
//! violation. For the rest it is a note. But a package that is new, or has a build script that nobody read, is a
//! violation whatever it sees: all that is compiled in could see everything if its authors wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use cargo_metadata::Package;
use serde::Deserialize;
use toml::Spanned;

use super::facts::Facts;
use super::graph::{Graph, TARGET};
use super::{Id, build_script, is_macro, lock, packages};
use crate::tidy::Finding;
use crate::tidy::source::line_of;

/// The list, in the root of the checkout.
pub(crate) const FILE: &str = "reviewed.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(rename = "crate")]
    entries: Vec<Entry>,
    /// What is only run to build the binary.
    #[serde(default)]
    builders: Vec<Builder>,
}

/// A package that is in the binary.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Entry {
    pub(super) name: Spanned<String>,
    pub(super) version: String,
    pub(super) checksum: String,
    sees: BTreeSet<Sight>,
    /// What the build script does; absent if there is none.
    build_script: Option<String>,
    lines: usize,
    #[serde(rename = "unsafe")]
    unsafes: usize,
    panics: usize,
    #[serde(default)]
    foreign: usize,
    #[serde(default)]
    objects: usize,
    #[serde(default)]
    reaches: BTreeSet<String>,
    level: Level,
    /// The day of the look.
    looked: String,
    #[serde(default)]
    note: String,
}

/// A package that is run on the machine that builds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Builder {
    name: Spanned<String>,
    #[serde(default, rename = "macro")]
    is_macro: bool,
    build_script: Option<String>,
}

/// What a package is handed by those who use it here.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Sight {
    /// Keys, and what is encrypted.
    Secrets,
    /// Octets that a stranger sent.
    Network,
    /// Arguments, configuration, records: what the operator chose.
    Operator,
}

/// How far a package was read.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Level {
    /// Only a program counted in it.
    Counted,
    /// Where we, or what calls it for us, call it.
    Called,
    /// Every line that is compiled here.
    Whole,
}

impl Entry {
    pub(super) fn id(&self) -> Id {
        Id::new(self.name.get_ref(), &self.version)
    }

    /// Which figures of the list are not those of the source.
    pub(super) fn differences(&self, facts: &Facts) -> impl Iterator<Item = String> {
        let reaches: BTreeSet<String> = facts.reaches.iter().map(|word| (*word).to_owned()).collect();
        let figures = [
            ("lines", self.lines, facts.lines),
            ("unsafe", self.unsafes, facts.unsafes),
            ("panics", self.panics, facts.panics),
            ("foreign", self.foreign, facts.foreign),
            ("objects", self.objects, facts.objects),
        ];
        let reaches = (self.reaches != reaches)
            .then(|| format!("reaches = {:?} in the list, {reaches:?} in the source", self.reaches));
        let figures = figures.into_iter().filter(|(_, listed, counted)| listed != counted);
        figures
            .map(|(name, listed, counted)| format!("{name} = {listed} in the list, {counted} in the source"))
            .chain(reaches)
    }

    /// The entry in one line.
    pub(super) fn row(&self) -> String {
        let (unsafes, lines) = (self.unsafes, self.lines);
        let level = format!("{:?}", self.level).to_lowercase();
        format!("{:32} {level:8} unsafe {unsafes:5} lines {lines:7} sees {}", self.id(), self.shown_sees())
    }

    /// Whether the binary may have no other source than the one that was looked at.
    fn is_pinned(&self) -> bool {
        self.sees.contains(&Sight::Secrets) || self.sees.contains(&Sight::Network)
    }

    fn shown_sees(&self) -> String {
        let words = self.sees.iter().map(|sight| match sight {
            Sight::Secrets => "secrets",
            Sight::Network => "octets from the network",
            Sight::Operator => "what the operator chose",
        });
        let words: Vec<&str> = words.collect();
        if words.is_empty() { "nothing of ours".to_owned() } else { words.join(" and ") }
    }
}

/// What was read, for the comparison.
pub(super) struct World {
    pub(super) graph: Graph,
    /// Checksums of packages that are not ours.
    pub(super) locked: BTreeMap<Id, String>,
    /// What manifests say of each.
    pub(super) manifests: BTreeMap<Id, Manifest>,
}

/// What matters of a manifest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manifest {
    has_build_script: bool,
    is_macro: bool,
}

impl World {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let manifest = |package: &Package| Manifest {
            has_build_script: build_script(package).is_some(),
            is_macro: is_macro(package),
        };
        let packages = packages(root)?;
        Ok(World {
            graph: Graph::read(root, TARGET)?,
            locked: lock::read(&root.join("Cargo.lock"))?,
            manifests: packages.iter().map(|(id, package)| (id.clone(), manifest(package))).collect(),
        })
    }

    fn manifest(&self, id: &Id) -> Manifest {
        self.manifests.get(id).copied().unwrap_or_default()
    }
}

/// Compares the list at `root` with what is compiled into the binary.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let text = fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    compare(&text, &World::read(root)?)
}

/// The entries of the list at `root`.
pub(super) fn entries(root: &Path) -> Result<Vec<Entry>, String> {
    let text = fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    parse(&text).map(|list| list.entries)
}

fn parse(text: &str) -> Result<List, String> {
    toml::from_str(text).map_err(|error| format!("{FILE}: {error}"))
}

pub(super) fn compare(text: &str, world: &World) -> Result<Vec<Finding>, String> {
    let list = parse(text)?;
    let mut findings = Vec::new();
    let line = |name: &Spanned<String>| line_of(text, name.span().start);
    let others = world.graph.linked.keys().filter_map(|id| Some((id, world.locked.get(id)?)));
    let mut free: Vec<&Entry> = list.entries.iter().collect();
    let mut unread: Vec<(&Id, &String)> = Vec::new();
    for (id, checksum) in others {
        let exact = |entry: &&Entry| {
            *entry.name.get_ref() == id.name && entry.version == id.version && entry.checksum == *checksum
        };
        match free.iter().position(exact) {
            Some(index) => {
                let entry = free.swap_remove(index);
                findings.extend(of_entry(entry, line(&entry.name), world.manifest(id)));
            }
            None => unread.push((id, checksum)),
        }
    }
    for (id, _) in unread {
        // Of several versions of the list, the one that is no longer locked is the one that it replaces.
        match free.iter().position(|entry| *entry.name.get_ref() == id.name) {
            Some(index) => {
                let entry = free.swap_remove(index);
                let problem = changed(entry, id);
                findings.push(match entry.is_pinned() {
                    true => Finding::violation(FILE, line(&entry.name), problem),
                    false => Finding::note(FILE, line(&entry.name), problem),
                });
                findings.extend(of_entry(entry, line(&entry.name), world.manifest(id)));
            }
            None => findings.push(Finding::violation(FILE, 1, missing(id, &world.graph))),
        }
    }
    for entry in free {
        let problem = format!("{} {} is not in the binary: remove it", entry.name.get_ref(), entry.version);
        findings.push(Finding::violation(FILE, line(&entry.name), problem));
    }
    findings.extend(of_builders(&list.builders, line, world));
    Ok(findings)
}

fn changed(entry: &Entry, id: &Id) -> String {
    let (name, sees) = (&id.name, entry.shown_sees());
    if entry.version == id.version {
        return format!(
            "{id}, which sees {sees}, is locked with another checksum than what was looked at: one version has two \
             sources; find out why before you build it"
        );
    }
    format!(
        "{name} {} was looked at, {} is locked, and it sees {sees}: read what changed (cargo xtask review {name}), \
         then write the new version, checksum and figures here",
        entry.version, id.version
    )
}

fn missing(id: &Id, graph: &Graph) -> String {
    let users = graph.users(id).join(", ");
    format!(
        "{id}, used by {users}, is in the binary and not in the list: look at it, and add what \
         `cargo xtask review {}` prints",
        id.name
    )
}

/// What is wrong with an entry by itself, or by the manifest of its package.
fn of_entry(entry: &Entry, line: usize, manifest: Manifest) -> Vec<Finding> {
    let name = entry.name.get_ref();
    let mut findings = Vec::new();
    let mut add = |problem: String| findings.push(Finding::violation(FILE, line, problem));
    match (&entry.build_script, manifest.has_build_script) {
        (None, true) => {
            add(format!("{name} has a build script: read it, and say in build-script what it does"));
        }
        (Some(_), false) => add(format!("{name} has no build script: remove build-script")),
        (None, false) | (Some(_), true) => {}
    }
    if (entry.is_pinned() || entry.level != Level::Counted) && entry.note.is_empty() {
        add(format!("{name} sees {}: say in note what was looked at", entry.shown_sees()));
    }
    if !is_day(&entry.looked) {
        add(format!("{name}: looked is the day of the look, YEAR-MONTH-DAY, not {:?}", entry.looked));
    }
    findings
}

fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_number = |part: &&str| part.bytes().all(|octet| octet.is_ascii_digit());
    parts.iter().map(|part| part.len()).eq([4, 2, 2]) && parts.iter().all(is_number)
}

fn of_builders(list: &[Builder], line: impl Fn(&Spanned<String>) -> usize, world: &World) -> Vec<Finding> {
    let mut findings = Vec::new();
    for id in &world.graph.builders {
        let manifest = world.manifest(id);
        let Some(builder) = list.iter().find(|builder| *builder.name.get_ref() == id.name) else {
            let problem = format!(
                "{id} is run to build the binary and not in the list: add it to builders (cargo xtask review {})",
                id.name
            );
            findings.push(Finding::violation(FILE, 1, problem));
            continue;
        };
        let mut add = |problem: &str| {
            findings.push(Finding::violation(FILE, line(&builder.name), format!("{id} {problem}")));
        };
        if builder.is_macro != manifest.is_macro {
            add(if manifest.is_macro { "is a macro: say macro = true" } else { "is no macro: remove macro" });
        }
        match (&builder.build_script, manifest.has_build_script) {
            (None, true) => add("has a build script: read it, and say in build-script what it does"),
            (Some(_), false) => add("has no build script: remove build-script"),
            (None, false) | (Some(_), true) => {}
        }
    }
    let is_used = |name: &str| world.graph.builders.iter().any(|id| id.name == name);
    for builder in list.iter().filter(|builder| !is_used(builder.name.get_ref())) {
        let problem = format!("{} is not run to build the binary: remove it", builder.name.get_ref());
        findings.push(Finding::violation(FILE, line(&builder.name), problem));
    }
    findings
}

#[cfg(test)]
mod tests;
