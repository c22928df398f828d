//! Rules about words: open ends, and text that means something on only one machine.

use super::Finding;
use super::source::{Source, line_of, words};
use super::tree::TextFile;

/// Macros that mark unfinished code.
const UNFINISHED: [&str; 3] = ["todo", "dbg", "unimplemented"];

/// The mark of an open end in a comment. In two halves here and below, so that this file passes its own rules.
const MARK: &str = concat!("TO", "DO");

/// Folders outside the checkout.
const ELSEWHERE: [&str; 3] = [concat!("/wo", "rk/"), concat!("sha", "red/"), concat!("../sha", "red")];

/// No macro that marks unfinished code.
pub(super) fn unfinished(file: &TextFile, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in UNFINISHED {
        let calls = words(&source.code, name).filter(|at| source.code[at + name.len()..].starts_with('!'));
        findings
            .extend(calls.map(|at| file.violation(line_of(&source.code, at), format!("`{name}!` is left"))));
    }
    findings
}

/// Open ends in comments name their issue, as in `(#12)`; those that do are listed.
pub(super) fn open_ends(file: &TextFile, source: &Source) -> Vec<Finding> {
    let ends = words(&source.comments, MARK).map(|at| {
        let line = line_of(&source.comments, at);
        let rest = source.comments[at + MARK.len()..].lines().next().unwrap_or_default();
        match issue(rest) {
            Some(number) => Finding::note(&file.path, line, format!("issue {number} is open{}", said(rest))),
            None => file.violation(line, format!("{MARK} without an issue, such as {MARK}(#12)")),
        }
    });
    ends.collect()
}

/// The number in `(#12)` at the start of `text`.
fn issue(text: &str) -> Option<u32> {
    text.strip_prefix("(#")?.split_once(')')?.0.parse().ok()
}

/// The text after the issue's number, if there is any.
fn said(text: &str) -> String {
    let after = text.split_once(')').map_or("", |(_, after)| after.trim_start_matches(':').trim());
    if after.is_empty() { String::new() } else { format!(": {after}") }
}

/// No file names a folder that only its author has.
pub(super) fn elsewhere(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        // A folder of this name inside the checkout, or a part of an address, is preceded by something.
        let is_start = |at: usize| {
            !line[..at].ends_with(|before: char| before.is_alphanumeric() || "_-./".contains(before))
        };
        let is_named = |folder: &&&str| {
            line.match_indices(**folder).any(|(at, _)| folder.starts_with("..") || is_start(at))
        };
        if let Some(folder) = ELSEWHERE.iter().find(is_named) {
            findings.push(file.violation(index + 1, format!("`{folder}` is a folder outside the checkout")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Rule;
    use crate::tidy::tree::Tree;

    #[test]
    fn unfinished_code_is_found_outside_strings_and_comments() {
        let text = "// todo!()\nfn a() { todo!() }\nfn b() { dbg!(1); \"dbg!()\" }\nfn c() { my_todo!() }\n";
        let findings = Rule::Rust(unfinished).check(&Tree::of(&[("a.rs", text)]));
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn open_end_needs_an_issue() {
        let text = format!(
            "// {MARK}(#12): IPv6.\n/// {MARK}: more.\nfn a() {{}} // {MARK}(me)\nconst {MARK}: u8 = 1;\n"
        );
        let findings = Rule::Rust(open_ends).check(&Tree::of(&[("a.rs", &text)]));
        let found: Vec<_> = findings.iter().map(|finding| (finding.line, finding.is_note)).collect();
        assert_eq!(found, [(1, true), (2, false), (3, false)]);
        assert_eq!(findings[0].to_string(), "a.rs:1: note: issue 12 is open: IPv6.");
    }

    #[test]
    fn folders_of_one_machine_are_found_and_addresses_are_not() {
        let [absolute, beside, above] = ELSEWHERE;
        let good = format!("https://example.net{absolute}a\nsrc/{beside}mod.rs\nsrc/shared.rs\n");
        for bad in
            [format!("see {absolute}main"), format!("`{beside}notes.md`"), format!("cat ../{above}/notes.md")]
        {
            let findings = Rule::File(elsewhere).check(&Tree::of(&[("README.md", &bad)]));
            assert_eq!(findings.len(), 1, "{bad}");
        }
        assert_eq!(Rule::File(elsewhere).check(&Tree::of(&[("README.md", &good)])), []);
    }
}
