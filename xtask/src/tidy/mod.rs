//! The house rules as a check. Each rule is a function from the tree to findings, and has a test in which it finds one.

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

use self::tree::Tree;

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

    fn note(path: &str, line: usize, problem: impl Into<String>) -> Self {
        Finding { is_note: true, ..Self::violation(path, line, problem) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_note { "note: " } else { "" };
        write!(f, "{}:{}: {kind}{}", self.path, self.line, self.problem)
    }
}

/// Checks the tree at `root` and prints what it finds. Notes do not make it fail.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let mut findings = dependencies::check(&dependencies::edges(root)?);
    for rule in [layout::check, sizes::check, words::check, unsafety::check, purity::check] {
        findings.extend(rule(&tree));
    }
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
