//! Tests that failed beside others have a second turn, one at a time.
//!
//! A machine that somebody else uses at the same time keeps processes from their deadlines. Where each test has the
//! machine to itself, as much of it as there is, most of that is over; a fault that is always there fails again.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::process::{self, Ended};

/// The most tests that have a second turn. Where more fail, something is wrong with all of them.
const COUNT_MAX: usize = 5;

/// What begins the line of cargo that names a failed program of tests, and the option that selects it.
const PROGRAM: &str = "error: test failed, to rerun pass `";

/// The tests that failed in what `cargo test --no-fail-fast` printed, and the options that select their programs.
#[derive(Debug, PartialEq, Eq)]
struct Failed<'a> {
    names: BTreeSet<&'a str>,
    /// Words such as `--test system`.
    programs: BTreeSet<&'a str>,
}

impl<'a> Failed<'a> {
    /// `None` if anything else went wrong besides: a program that did not say how it ended, a test in documentation.
    fn of(said: &'a str) -> Option<Self> {
        let lines = || said.lines();
        let ended_count = lines().filter(|line| line.starts_with("test result: FAILED.")).count();
        let told = lines().filter(|line| line.starts_with("error: ") && line.contains(", to rerun pass `"));
        let programs: Option<Vec<&str>> = told.map(program).collect();
        let programs = programs.filter(|programs| !programs.is_empty() && programs.len() == ended_count)?;
        let mut names = BTreeSet::new();
        // The names are the last thing under such a heading before the result, each on a line that is indented.
        let mut listed = Vec::new();
        for line in lines() {
            if line == "failures:" {
                listed.clear();
            } else if let Some(name) = line.strip_prefix("    ") {
                listed.push(name);
            } else if line.starts_with("test result: FAILED.") {
                names.extend(listed.drain(..));
            } else if !line.is_empty() {
                listed.clear();
            }
        }
        Some(Failed { names, programs: programs.into_iter().collect() })
    }

    /// The command that ran them with these tests only, one at a time.
    fn alone(&self, root: &Path, command: &str) -> Command {
        let mut alone = process::cargo(root);
        let own = command.split(' ').skip(1).take_while(|word| *word != "--");
        alone.args(own).args(self.programs.iter().flat_map(|program| program.split(' ')));
        alone.args(["--", "--test-threads=1", "--exact"]).args(&self.names);
        alone
    }

    /// That all have passed in their second turn. A name that selects nothing passes nothing.
    fn have_passed(&self, turn: &Ended) -> Result<(), String> {
        turn.result()?;
        match (super::passed_count(&turn.said), self.names.len() as u64) {
            (passed, count) if passed >= count => Ok(()),
            (passed, count) => Err(format!("`{}` ran {passed} tests of {count}", turn.line)),
        }
    }
}

/// `--lib`, `--bin NAME` or `--test NAME` in a line such as "error: test failed, to rerun pass `-p a --test b`".
fn program(line: &str) -> Option<&str> {
    let words = line.strip_prefix(PROGRAM)?.strip_suffix('`')?;
    let start = ["--lib", "--bin ", "--test "].iter().find_map(|option| words.find(option))?;
    Some(&words[start..])
}

/// Gives those that failed in these commands their second turn, by `run`, if they are few. Returns what failed then, or
/// had no second turn, as an error, and else the names of those that passed alone.
pub(super) fn second_turn(
    root: &Path,
    commands: &[Ended],
    run: impl Fn(&mut Command) -> Result<Ended, String>,
) -> Result<Vec<String>, String> {
    let failed: Vec<_> = commands.iter().filter(|ended| !ended.status.success()).collect();
    let with_turn: Option<Vec<_>> = failed.iter().map(|ended| Failed::of(&ended.said)).collect();
    let count = |all: &[Failed<'_>]| all.iter().map(|failed| failed.names.len()).sum::<usize>();
    let Some(with_turn) = with_turn.filter(|all| count(all) <= COUNT_MAX) else {
        return failed.iter().try_for_each(|ended| ended.result()).map(|()| Vec::new());
    };
    let mut result = Ok(());
    for (ended, failed) in failed.iter().zip(&with_turn) {
        let turn = run(&mut failed.alone(root, &ended.line)).and_then(|turn| failed.have_passed(&turn));
        result = result.and(turn);
    }
    result?;
    Ok(with_turn.iter().flat_map(|failed| &failed.names).map(ToString::to_string).collect())
}

/// What the summary says of those that passed in their second turn.
pub(super) fn summary(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let lines: String = names.iter().map(|name| format!("    {name}\n")).collect();
    format!("failed beside others and passed alone, as on a busy machine or in a race:\n{lines}")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    /// As cargo and the harness of tests print it, with standard error in between.
    const SAID: &str = "\
running 3 tests
test a::one ... ok
test a::two ... FAILED
test b::three ... FAILED

failures:

---- a::two stdout ----
failures:
    no name

thread 'a::two' panicked at crates/x.rs:1:1:
    it was 3


failures:
    a::two
    b::three

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.62s

error: test failed, to rerun pass `-p authentick --test system`
     Running unittests src/lib.rs
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.62s

error: 1 target failed:
    `-p authentick --test system`
";

    fn ended(line: &str, said: String) -> Ended {
        let status = ExitStatus::from_raw(if said.contains("error") { 101 << 8 } else { 0 });
        Ended { line: line.to_owned(), status, said }
    }

    #[test]
    fn tests_that_failed_run_again_alone_by_the_same_command() {
        let failed = Failed::of(SAID).unwrap();
        assert_eq!(failed.names, ["a::two", "b::three"].into());
        assert_eq!(
            process::line(&failed.alone(Path::new("/"), "cargo test --workspace -- --skip=x")),
            "cargo test --workspace --test system -- --test-threads=1 --exact a::two b::three"
        );
        let library = SAID.replace("--test system", "--lib");
        assert_eq!(Failed::of(&library).unwrap().programs, ["--lib"].into());
    }

    #[test]
    fn whatever_else_fails_has_no_second_turn() {
        // A program that crashed names no test; one of documentation, and a benchmark, take no names of tests.
        let crashed = format!("{SAID}error: test failed, to rerun pass `-p authentick-wire --lib`\n");
        let document = SAID.replace("error: test failed", "error: doctest failed");
        let bench = SAID.replace("--test system", "--bench crypto");
        let broken = "error: could not compile `authentick`\n".to_owned();
        for said in [crashed, document, bench, broken] {
            assert_eq!(Failed::of(&said), None, "{said}");
            let commands = [ended("cargo test", said)];
            let problem = second_turn(Path::new("/"), &commands, |_| panic!("it ran")).unwrap_err();
            assert!(problem.starts_with("`cargo test` failed: "), "{problem}");
        }
    }

    #[test]
    fn second_turn_decides_if_few_failed() {
        let ran = RefCell::new(Vec::new());
        let turn = |commands: &[Ended], said: &str| {
            ran.borrow_mut().clear();
            second_turn(Path::new("/"), commands, |command| {
                ran.borrow_mut().push(process::line(command));
                Ok(ended("cargo test again", said.to_owned()))
            })
        };
        let both = "test result: ok. 2 passed; 0 failed; 0 ignored";
        let passed = ended("cargo test x", both.to_owned());
        assert_eq!(turn(&[passed.clone(), passed.clone()], both), Ok(Vec::new()));
        let failed = |line: &str| ended(line, SAID.to_owned());
        let four = [passed, failed("cargo test y"), failed("cargo test z")];
        assert_eq!(turn(&four, both).unwrap(), ["a::two", "b::three", "a::two", "b::three"]);
        assert_eq!(ran.borrow().len(), 2);
        assert!(turn(&four, SAID).unwrap_err().starts_with("`cargo test again` failed"));
        let none = "test result: ok. 0 passed; 0 failed; 0 ignored";
        assert_eq!(turn(&four, none).unwrap_err(), "`cargo test again` ran 0 tests of 2");
        // Six are too many.
        let six = [failed("cargo test w"), failed("cargo test y"), failed("cargo test z")];
        assert!(turn(&six, both).unwrap_err().starts_with("`cargo test w` failed"));
        assert!(ran.borrow().is_empty());
    }

    #[test]
    fn those_that_passed_alone_are_listed() {
        assert_eq!(summary(&[]), "");
        assert!(summary(&["a::two".to_owned()]).ends_with("race:\n    a::two\n"));
    }
}
