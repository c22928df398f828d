//! Requirements against code and tests: `cargo xtask spec`.
//!
//! `docs/requirements` has a row for each requirement that concerns us. A comment `//= rfc8915#5.7-15` above code says
//! that the code meets the row with this id; above a test it says that the test would fail if the code did not.
//! `docs/spec-gaps.md` has the ids of what we do not do. The check compares the three, and counts.

mod citations;
mod draw;
mod requirements;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use self::citations::Place;
use self::requirements::{Row, Section};
use crate::tidy::Finding;
use crate::tidy::tree::{Tree, cells};

const GAPS: &str = "docs/spec-gaps.md";

/// Everything known about the tree's requirements.
struct Spec {
    /// In the order of files and text.
    sections: Vec<Section>,
    /// Where each id is cited.
    cited: BTreeMap<String, Vec<Place>>,
    /// What we do not do, by id, with the line in the list of gaps.
    gaps: BTreeMap<String, usize>,
}

/// Checks the tree at `root` and prints what it finds, and how much of each section has rows. With a seed, prints ten
/// rows with the places of their code and tests instead.
pub(crate) fn run(root: &Path, seed: Option<u64>) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let mut findings = Vec::new();
    let spec = read(&tree, &mut findings);
    findings.extend(spec.check());
    findings.sort();
    findings.iter().for_each(|finding| println!("{finding}"));
    if !findings.is_empty() {
        return Err(format!("requirements, code and tests disagree in {} places", findings.len()));
    }
    match seed {
        Some(seed) => print!("{}", draw::text(&spec, seed)),
        None => print!("{}", spec.coverage()),
    }
    Ok(())
}

fn read(tree: &Tree, findings: &mut Vec<Finding>) -> Spec {
    let sections = requirements::read(tree, findings);
    let cited = citations::read(tree, findings);
    let mut gaps = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.path == GAPS) {
        for (index, line) in file.text.lines().enumerate() {
            let id = cells(line).and_then(|cells| requirements::id_of(cells.first()?));
            if let Some(id) = id
                && gaps.insert(id.to_owned(), index + 1).is_some()
            {
                findings.push(file.violation(index + 1, format!("{id} has two rows")));
            }
        }
    }
    Spec { sections, cited, gaps }
}

impl Spec {
    /// All rows with their sections.
    fn rows(&self) -> impl Iterator<Item = (&Section, &Row)> {
        self.sections.iter().flat_map(|section| section.rows.iter().map(move |row| (section, row)))
    }

    /// The places of an id: those in code, or those in tests.
    fn places<'a>(&'a self, id: &str, in_test: bool) -> impl Iterator<Item = &'a Place> {
        self.cited.get(id).into_iter().flatten().filter(move |place| place.is_test == in_test)
    }

    fn is_met(&self, id: &str) -> bool {
        self.places(id, false).next().is_some() && self.places(id, true).next().is_some()
    }

    /// All contradictions between rows, citations and gaps.
    fn check(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let ids: BTreeSet<&str> = self.rows().map(|(_, row)| &*row.id).collect();
        for (id, places) in self.cited.iter().filter(|(id, _)| !ids.contains(&***id)) {
            let unknown = format!("no row has the id {id}");
            findings.extend(places.iter().map(|at| Finding::violation(&at.path, at.line, &*unknown)));
        }
        for (section, row) in self.rows().filter(|(_, row)| !self.gaps.contains_key(&row.id)) {
            for (in_test, missing) in [(false, "code"), (true, "test")] {
                if self.places(&row.id, in_test).next().is_none() {
                    let problem = format!("no {missing} cites {}", row.id);
                    findings.push(Finding::violation(&section.path, row.line, problem));
                }
            }
        }
        for (id, &line) in &self.gaps {
            if !ids.contains(&**id) {
                findings.push(Finding::violation(GAPS, line, format!("no row has the id {id}")));
            } else if self.is_met(id) {
                findings.push(Finding::violation(
                    GAPS,
                    line,
                    format!("{id} has code and test: it is no gap"),
                ));
            }
        }
        findings
    }

    /// How many MUSTs and SHOULDs each section has, how many have rows, and what was left out.
    fn coverage(&self) -> String {
        let mut text = String::new();
        for section in &self.sections {
            let [must, should] = section.has.map(|count| count.to_string());
            let [must_rows, should_rows] = section.covered();
            let gaps = section.rows.iter().filter(|row| self.gaps.contains_key(&row.id)).count();
            text += &format!(
                "{}#{}: MUST {must}, rows for {must_rows}; SHOULD {should}, rows for {should_rows}; {} rows",
                section.specification,
                section.name,
                section.rows.len(),
            );
            text += &if gaps > 0 { format!(", {gaps} of them gaps\n") } else { "\n".to_owned() };
            for left in &section.left_out {
                text += &format!("  left out: {}\n", left.text);
            }
        }
        let total = |of: fn(&Section) -> [usize; 2], level: usize| {
            self.sections.iter().map(|section| of(section)[level]).sum::<usize>()
        };
        text += &format!(
            "MUST {}, rows for {}; SHOULD {}, rows for {}; {} rows, {} of them gaps\n",
            total(|section| section.has, 0),
            total(Section::covered, 0),
            total(|section| section.has, 1),
            total(Section::covered, 1),
            self.rows().count(),
            self.gaps.len(),
        );
        text
    }
}

#[cfg(test)]
mod tests;
