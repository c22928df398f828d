//! Rules about files: their names, their first line, white space, widths.

use super::Finding;
use super::source::Source;
use super::tree::TextFile;

const COLUMNS_MAX: usize = 120;

/// Breaking a literal of at least this length would make a vector harder to compare with its source.
const LONG_LITERAL: usize = 64;

/// Names that do not say what the file holds.
const EMPTY_NAMES: [&str; 4] = ["utils.rs", "helpers.rs", "misc.rs", "common.rs"];

/// Endings of the files whose white space counts.
const OURS: [&str; 5] = [".rs", ".toml", ".md", ".sh", ".ci/run"];

/// No tabs, no blanks at the end of a line, one line break at the end of the file.
pub(super) fn white_space(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !OURS.iter().any(|ending| file.path.ends_with(ending)) {
        return findings;
    }
    for (index, line) in file.text.split('\n').enumerate() {
        if line.contains('\t') {
            findings.push(file.violation(index + 1, "a tab"));
        }
        if line.ends_with(char::is_whitespace) {
            findings.push(file.violation(index + 1, "white space at the end of the line"));
        }
    }
    let last = file.text.lines().count().max(1);
    if !file.text.ends_with('\n') {
        findings.push(file.violation(last, "the last line has no line break"));
    } else if file.text.ends_with("\n\n") || file.text == "\n" {
        findings.push(file.violation(last, "an empty line at the end of the file"));
    }
    findings
}

/// Lines of Rust have at most so many columns, except long literals in tests.
pub(super) fn widths(file: &TextFile, source: &Source) -> Vec<Finding> {
    let is_test = file.name() == "tests.rs" || file.path.split('/').any(|part| part == "tests");
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let columns = line.chars().count();
        let has_vector = || line.split('"').any(|part| part.len() >= LONG_LITERAL && !part.contains(' '));
        let is_exempt = || (is_test || source.is_test_line(index + 1)) && has_vector();
        if columns > COLUMNS_MAX && !is_exempt() {
            findings
                .push(file.violation(index + 1, format!("{columns} columns; {COLUMNS_MAX} are the limit")));
        }
    }
    findings
}

/// A file of ours begins by saying what it holds.
pub(super) fn first_lines(file: &TextFile, _: &Source) -> Vec<Finding> {
    let folders = ["xtask/src/", "fuzz/fuzz_targets/"];
    let is_ours = file.is_shipped() || folders.iter().any(|folder| file.path.starts_with(folder));
    let is_silent = is_ours && !file.text.starts_with("//! ");
    found(is_silent, file, "the file does not begin with `//!` and what it holds")
}

/// No file has a name that could mean anything.
pub(super) fn names(file: &TextFile) -> Vec<Finding> {
    found(EMPTY_NAMES.contains(&file.name()), file, "the name does not say what the file holds")
}

/// Every file parses as Rust; otherwise the other rules see nothing in it.
pub(super) fn syntax(file: &TextFile, source: &Source) -> Vec<Finding> {
    found(source.is_broken, file, "the file is no Rust")
}

/// The problem, if there is one, at the first line.
fn found(is_found: bool, file: &TextFile, problem: &str) -> Vec<Finding> {
    is_found.then(|| file.violation(1, problem)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Rule;
    use crate::tidy::tree::Tree;

    fn lines(rule: Rule, tree: &Tree) -> Vec<String> {
        let findings = rule.check(tree);
        findings.iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
    }

    #[test]
    fn tabs_and_loose_ends_are_found() {
        let tree = Tree::of(&[
            ("a.rs", "//! A.\n\tb\nc \n"),
            ("b.toml", "x = 1"),
            ("c.md", "# C\n\n"),
            ("good.md", "# D\n\nText.\n"),
            ("table.csv", "1\t2\n"),
        ]);
        assert_eq!(lines(Rule::File(white_space), &tree), ["a.rs:2", "a.rs:3", "b.toml:1", "c.md:2"]);
    }

    #[test]
    fn wide_lines_are_found_except_vectors_in_tests() {
        let fits = format!("// {}\n", "é".repeat(117));
        let wide = format!("// {}\n", "é".repeat(118));
        let vector = format!("const A: &str = \"{}\";\n", "5f".repeat(80));
        let in_tests = format!("#[cfg(test)]\nmod tests {{\n    {vector}}}\n");
        let tree = Tree::of(&[
            ("fits.rs", &fits),
            ("wide.rs", &wide),
            ("vector.rs", &vector),
            ("inside.rs", &in_tests),
            ("crates/a/tests/vector.rs", &vector),
            ("crates/a/src/tests.rs", &wide),
        ]);
        assert_eq!(lines(Rule::Rust(widths), &tree), ["wide.rs:1", "vector.rs:1", "crates/a/src/tests.rs:1"]);
    }

    #[test]
    fn files_that_do_not_say_what_they_hold_are_found() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "//! A.\n"),
            ("crates/a/src/b.rs", "use c;\n"),
            ("crates/a/src/utils.rs", "//! B.\n"),
            ("crates/a/tests/c.rs", "use c;\n"),
            ("fuzz/fuzz_targets/d.rs", "#![no_main]\n"),
            ("xtask/src/e.rs", ""),
        ]);
        let expected = ["crates/a/src/b.rs:1", "fuzz/fuzz_targets/d.rs:1", "xtask/src/e.rs:1"];
        assert_eq!(lines(Rule::Rust(first_lines), &tree), expected);
        assert_eq!(lines(Rule::File(names), &tree), ["crates/a/src/utils.rs:1"]);
    }

    #[test]
    fn file_that_is_no_rust_is_found() {
        let tree = Tree::of(&[("good.rs", "fn a() {}\n"), ("broken.rs", "fn (\n")]);
        assert_eq!(lines(Rule::Rust(syntax), &tree), ["broken.rs:1"]);
    }
}
