//! Which parts are run, on which tree, and what follows from how they ended.

use std::fs;

use super::record::tests::record;
use super::*;

fn part(name: &str, steps: &'static [parts::Step]) -> Part {
    let work = Work::Steps { steps, figures: &[], missing: |_| None };
    Part { name: name.to_owned(), establishes: String::new(), minutes: 1, work }
}

fn names(parts: &[Part]) -> Vec<&str> {
    parts.iter().map(|part| &*part.name).collect()
}

#[test]
fn what_has_passed_on_this_commit_is_not_due() {
    let parts = || ["a", "b", "c", "d", "e", "f"].map(|name| part(name, &[])).to_vec();
    let dirty = Record { clean: false, ..record("d", "here", Outcome::Passed) };
    let records = [
        record("a", "here", Outcome::Passed),
        record("b", "here", Outcome::Found),
        record("c", "here", Outcome::Skipped),
        dirty,
        record("e", "elsewhere", Outcome::Passed),
    ];
    let due = |again| due(parts(), &records, again, |commit| commit == "here");
    assert_eq!(names(&due(false)), ["b", "c", "d", "e", "f"]);
    assert_eq!(names(&due(true)), ["a", "b", "c", "d", "e", "f"]);
}

#[test]
fn unknown_part_is_refused_with_those_that_exist() {
    let parts = || vec![part("a", &[]), part("b", &[])];
    assert_eq!(names(&chosen(parts(), &[]).unwrap()), ["a", "b"]);
    assert_eq!(names(&chosen(parts(), &["b".to_owned()]).unwrap()), ["b"]);
    let problem = chosen(parts(), &["b".to_owned(), "x".to_owned()]).unwrap_err();
    assert_eq!(problem, "there is no part x; there are a, b");
}

#[test]
fn what_parts_leave_is_no_change_of_the_tree() {
    let paths = [
        "docs/assurance.md",
        "docs/assurance/a.json",
        "fuzz/corpus/ke/1",
        "docs/assurance",
        "fuzz/Cargo.toml",
        "docs/antp.md",
    ];
    assert_eq!(changes(paths.into_iter()), ["docs/assurance", "fuzz/Cargo.toml", "docs/antp.md"]);
}

/// A checkout with one commit.
fn checkout() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join(".gitignore"), "/target\n").unwrap();
    let lines: [&[&str]; 3] = [&["init", "-q"], &["add", "."], &["commit", "-q", "-m", "one"]];
    for line in lines {
        in_git(root.path(), line);
    }
    root
}

fn in_git(root: &Path, words: &[&str]) {
    let own = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"];
    process::output(git(root).args(own).args(words)).unwrap();
}

#[test]
fn records_may_be_committed_without_making_parts_due_again() {
    let root = checkout();
    let before = State::of(root.path()).unwrap();
    assert_eq!(before.changes, [""; 0]);
    record::write(&root.path().join(record::FOLDER), &record("a", &before.commit, Outcome::Passed)).unwrap();
    assert_eq!(State::of(root.path()).unwrap(), before);
    in_git(root.path(), &["add", "."]);
    in_git(root.path(), &["commit", "-q", "-m", "two"]);
    let after = State::of(root.path()).unwrap();
    assert!(after.commit != before.commit && after.is_at(root.path(), &before.commit));
    fs::write(root.path().join("code"), "").unwrap();
    assert_eq!(State::of(root.path()).unwrap().changes, ["code"]);
    in_git(root.path(), &["add", "."]);
    in_git(root.path(), &["commit", "-q", "-m", "three"]);
    let later = State::of(root.path()).unwrap();
    assert!(!later.is_at(root.path(), &before.commit) && !later.is_at(root.path(), "no such commit"));
}

#[test]
fn part_whose_tree_changes_meanwhile_is_marked() {
    const QUIET: &[parts::Step] = &[parts::Step::new("true")];
    const CHANGES: &[parts::Step] = &[parts::Step::new("touch code")];
    let root = checkout();
    let state = State::of(root.path()).unwrap();
    let bench = Bench { root: root.path(), fuzz_seconds: 1, keeps: false, peers: Vec::new() };
    let quiet = carry_out(&bench, &state, &part("a", QUIET)).unwrap();
    assert!(quiet.clean && quiet.commit == state.commit && quiet.result == Outcome::Passed);
    let changed = carry_out(&bench, &state, &part("a", CHANGES)).unwrap();
    assert!(!changed.clean && changed.result == Outcome::Passed);
}

#[test]
fn something_found_makes_the_run_fail_at_its_end() {
    let of = |outcomes: &[Outcome]| {
        let records: Vec<Record> = outcomes.iter().map(|outcome| record("a", "1", *outcome)).collect();
        conclude(&records)
    };
    assert_eq!(of(&[]), Ok(()));
    assert_eq!(of(&[Outcome::Passed, Outcome::Skipped]), Ok(()));
    let problem = of(&[Outcome::Passed, Outcome::Found]).unwrap_err();
    assert_eq!(problem, "1 of 2 parts found something: a; see target/nightly/PART.log");
}

#[test]
fn last_record_is_told_in_a_line() {
    let mut found = record("a", "12", Outcome::Found);
    found.words = vec!["x".to_owned(), "y".to_owned()];
    assert_eq!(line(&found), "a: FOUND in 61 s; x; y");
    found.clean = false;
    let expected = "last 2026-11-22T01:02:03Z on 12 with uncommitted changes: FOUND in 61 s; x; y";
    assert_eq!(last(&found), expected);
}
