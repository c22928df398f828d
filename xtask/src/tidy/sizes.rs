//! Rules about sizes: of files, of functions, and of the crate of the command line. Only lines with code are counted,
//! neither blank lines nor comments; in a file, only those outside items for tests.

use super::Finding;
use super::source::{Source, line_of, words};
use super::tree::{TextFile, Tree};

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 80;

/// Code that is not about the command line belongs to another crate. A dozen commands have four hundred lines each.
const CLI: &str = "crates/cli/src/";
const CLI_LINES_MAX: usize = 5_800;

/// No file holds two subjects.
pub(super) fn files(file: &TextFile, source: &Source) -> Vec<Finding> {
    let count = line_count(&source.shipped);
    let problem = format!("{count} lines of code; {FILE_LINES_MAX} are the limit");
    (count > FILE_LINES_MAX).then(|| file.violation(1, problem)).into_iter().collect()
}

/// No function is too long to be read at once; clippy counts the same lines, but not in macros.
pub(super) fn functions(file: &TextFile, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for at in words(&source.code, "fn") {
        let Some((name, body)) = function(&source.code[at..]) else { continue };
        let count = line_count(body);
        if count > FUNCTION_LINES_MAX {
            let problem = format!("`{name}` has {count} lines of code; {FUNCTION_LINES_MAX} are the limit");
            findings.push(file.violation(line_of(&source.code, at), problem));
        }
    }
    findings
}

/// The crate of the command line does not grow.
pub(super) fn command_line(tree: &Tree) -> Vec<Finding> {
    let own = tree.rust().filter(|(file, _)| file.path.starts_with(CLI) && file.name() != "tests.rs");
    let count: usize = own.map(|(_, source)| line_count(&source.shipped)).sum();
    if count <= CLI_LINES_MAX {
        return Vec::new();
    }
    vec![Finding::violation(CLI, 1, format!("{count} lines of code; {CLI_LINES_MAX} are the limit"))]
}

fn line_count(code: &str) -> usize {
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Name and body of the function that `code` begins with; `None` if it has no body, or is a function type.
fn function(code: &str) -> Option<(&str, &str)> {
    let rest = code.strip_prefix("fn")?.trim_start();
    let name =
        rest.split(|character: char| !(character.is_alphanumeric() || "_$".contains(character))).next()?;
    if name.is_empty() {
        return None;
    }
    let (mut depth, mut start) = (0_usize, None);
    for (at, character) in rest.char_indices() {
        match character {
            '{' if depth == 0 => start = Some(at + 1),
            ';' if depth == 0 => return None,
            _ => {}
        }
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if let (0, '}', Some(start)) = (depth, character, start) {
            return Some((name, &rest[start..at]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Rule;

    fn places(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
    }

    #[test]
    fn long_files_are_found_but_long_tests_and_comments_are_not() {
        let long = "fn a() {}\n".repeat(FILE_LINES_MAX + 1);
        let comments = "// A.\n\n".repeat(FILE_LINES_MAX + 1);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{long}}}\n{comments}");
        let tree = Tree::of(&[("long.rs", &long), ("tests.rs", &tests)]);
        assert_eq!(places(&Rule::Rust(files).check(&tree)), ["long.rs:1"]);
    }

    #[test]
    fn long_functions_are_found_in_macros_and_tests_too() {
        let body = |count: usize| format!("{{\n// A.\n{}\n}}\n", "b();\n".repeat(count));
        let (good, bad) = (body(FUNCTION_LINES_MAX), body(FUNCTION_LINES_MAX + 1));
        let tree = Tree::of(&[
            ("good.rs", &format!("fn a() {good}fn c(d: fn(u8)) {good}")),
            ("bad.rs", &format!("struct A;\npub fn a<T>(b: [u8; 2]) -> T {bad}")),
            ("trait.rs", &format!("trait A {{ fn a(&self);\nfn b(&self) {bad} }}")),
            ("macro.rs", &format!("macro_rules! a {{ ($b:ident) => {{\nfn $b() {bad} }} }}")),
            ("tests.rs", &format!("#[cfg(test)]\nmod tests {{\nfn a() {bad} }}\n")),
        ]);
        let findings = Rule::Rust(functions).check(&tree);
        assert_eq!(places(&findings), ["bad.rs:2", "trait.rs:2", "macro.rs:2", "tests.rs:3"]);
        assert!(findings[2].problem.starts_with("`$b` has 81 lines"), "{}", findings[2].problem);
    }

    #[test]
    fn command_line_is_counted_over_all_of_its_files() {
        let half = "fn a() {}\n".repeat(CLI_LINES_MAX / 2);
        let (one, other) = (format!("{half}// A.\n"), format!("{half}fn b() {{}}\n"));
        let tree = |path| Tree::of(&[("crates/cli/src/a.rs", &one), (path, &other)]);
        assert_eq!(places(&command_line(&tree("crates/cli/src/b/c.rs"))), ["crates/cli/src/:1"]);
        for path in ["crates/cli/tests/b.rs", "crates/cli/src/b/tests.rs"] {
            assert_eq!(places(&command_line(&tree(path))), [""; 0], "{path}");
        }
    }
}
