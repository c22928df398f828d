//! The house rules as a check. Each rule is a function from the tree to findings, and has a test in which it finds one.

mod assurance;
mod dependencies;
mod layout;
mod purity;
mod sizes;
pub(crate) mod source;
pub(crate) mod tree;
mod unsafety;
mod words;

use std::fmt;
use std::path::Path;

use self::source::Source;
use self::tree::{TextFile, Tree};
use crate::supply::reviews;

/// Something found at a line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    problem: String,
    is_note: bool,
}

impl Finding {
    pub(crate) fn violation(path: &str, line: usize, problem: impl Into<String>) -> Self {
        Finding { path: path.to_owned(), line, problem: problem.into(), is_note: false }
    }

    pub(crate) fn note(path: &str, line: usize, problem: impl Into<String>) -> Self {
        Finding { is_note: true, ..Self::violation(path, line, problem) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_note { "note: " } else { "" };
        write!(f, "{}:{}: {kind}{}", self.path, self.line, self.problem)
    }
}

/// A rule about single files, or about single Rust files. It returns what violates it.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    File(fn(&TextFile) -> Vec<Finding>),
    Rust(fn(&TextFile, &Source) -> Vec<Finding>),
}

impl Rule {
    fn check(self, tree: &Tree) -> Vec<Finding> {
        match self {
            Rule::File(rule) => tree.files.iter().flat_map(rule).collect(),
            Rule::Rust(rule) => tree.rust().flat_map(|(file, source)| rule(file, source)).collect(),
        }
    }
}

const RULES: [Rule; 13] = [
    Rule::File(layout::white_space),
    Rule::File(layout::names),
    Rule::Rust(layout::widths),
    Rule::Rust(layout::first_lines),
    Rule::Rust(layout::syntax),
    Rule::Rust(sizes::files),
    Rule::Rust(sizes::functions),
    Rule::Rust(words::unfinished),
    Rule::Rust(words::open_ends),
    Rule::File(words::elsewhere),
    Rule::Rust(unsafety::places),
    Rule::Rust(unsafety::reasons),
    Rule::Rust(purity::check),
];

/// Checks the tree at `root` and prints what it finds. Notes do not make it fail.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let mut findings = dependencies::check(root, &tree)?;
    findings.extend(assurance::check(root, &tree)?);
    findings.extend(reviews::check(root)?);
    findings.extend(sizes::command_line(&tree));
    findings.extend(RULES.iter().flat_map(|rule| rule.check(&tree)));
    findings.sort();
    findings.iter().for_each(|finding| println!("{finding}"));
    match findings.iter().filter(|finding| !finding.is_note).count() {
        0 => {
            println!("tidy: {} files, no violation", tree.files.len());
            Ok(())
        }
        count => Err(format!("the tree violates house rules in {count} places")),
    }
}
