//! `cargo xtask test`: all tests against real components, and a list of those that did not run.
//!
//! A test that cannot run appends a line `NAME: REASON` to the file that `AUTHENTICK_SKIPS` names. Cargo hides what a
//! passing test prints, so without this a skip would look like a success.
//!
//! A busy machine turns nothing red. A test whose figures mean nothing there skips for that reason, and has its turn
//! again when all else is done, see [`BUSY`]. A few that failed beside others have a second turn alone, see [`failed`];
//! those that pass then are listed.

mod failed;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::peers::{self, State};
use crate::process::{self, Begun};

/// The environment variable that names the file of skips.
const SKIPS: &str = "AUTHENTICK_SKIPS";

/// The environment variable that names the file to which tests append how much they tried, a line each.
const FIGURES: &str = "AUTHENTICK_FIGURES";

/// Provides the peers and runs the tests; with `arguments`, one `cargo test` with these. With `require_peers` a skip is
/// a failure, unless its reason names a peer that this machine cannot have.
pub(crate) fn run(root: &Path, require_peers: bool, arguments: &[String]) -> Result<(), String> {
    let peers = peers::provide(root, require_peers)?;
    let skips = root.join("target/skips.txt");
    let io = |error| format!("{}: {error}", skips.display());
    let figures = root.join("target/figures.txt");
    let emptied = fs::create_dir_all(root.join("target")).and_then(|()| fs::write(&figures, ""));
    emptied.and_then(|()| fs::write(&skips, "")).map_err(io)?;
    let peers_folder = peers::folder(root)?;
    let told = |command: &mut Command| {
        command.env(peers::FOLDER, &peers_folder).env(SKIPS, &skips).env(FIGURES, &figures);
    };
    let run = |command: &mut Command| {
        told(command);
        process::run(command)
    };
    let turn = match arguments {
        [] => all(root, openssl(require_peers), &told),
        _ => run(&mut choice(root, arguments)).map(|()| Vec::new()),
    };
    let passed_alone = turn.as_deref().map(failed::summary).unwrap_or_default();
    let mut result = turn.map(|_| ());
    let mut text = fs::read_to_string(&skips).map_err(io)?;
    // What a busy machine kept from running has its turn again when all else is done.
    for _ in 0..RETRY_COUNT {
        let (busy, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains(BUSY));
        let names: BTreeSet<&str> =
            busy.iter().filter_map(|line| line.split_once(": ")).map(|(name, _)| name).collect();
        if names.is_empty() || !arguments.is_empty() {
            break;
        }
        fs::write(&skips, rest.iter().map(|line| format!("{line}\n")).collect::<String>()).map_err(io)?;
        let mut command = again(root, openssl(require_peers), &names);
        command.env(peers::FOLDER, &peers_folder).env(SKIPS, &skips);
        result = result.and(process::run(&mut command));
        text = fs::read_to_string(&skips).map_err(io)?;
    }
    let skipped = skipped(&text);
    let tried = tried(&fs::read_to_string(&figures).map_err(io)?);
    print!("{tried}{passed_alone}{}", summary(&skipped));
    result?;
    match inexcusable(&skipped, &peers) {
        0 => Ok(()),
        count if require_peers => Err(format!("tests were skipped that should run here: {count}")),
        _ => Ok(()),
    }
}

/// Runs all tests, each command told by `told`; the names of those that passed only alone.
fn all(root: &Path, openssl: &str, told: &dyn Fn(&mut Command)) -> Result<Vec<String>, String> {
    let run = |command: &mut Command| {
        told(command);
        process::run(command)
    };
    let begin = |command: &mut Command, file: &str| {
        told(command);
        Begun::new(command, root.join("target").join(file))
    };
    let Plan { mut build, mut beside, mut first, then } = plan(root, openssl);
    run(&mut build)?;
    let beside_begun = begin(&mut beside, "tests-beside.txt")?;
    println!("meanwhile `{}` prints to target/tests-beside.txt", process::line(&beside));
    // All commands run, so that one failure does not hide another.
    let mut ended = vec![begin(&mut first, "tests.txt")?.finish()?];
    ended.push(beside_begun.finish()?);
    for mut command in then {
        ended.push(begin(&mut command, "tests.txt")?.finish()?);
    }
    failed::second_turn(root, &ended, |command| begin(command, "tests.txt")?.finish())
}

/// How many of the skips nothing excuses: those without an excuse, and, if a busy machine excuses more than a few, all
/// of these.
fn inexcusable(skipped: &BTreeSet<&str>, peers: &[(&str, State)]) -> usize {
    let busy = skipped.iter().filter(|line| line.contains(BUSY)).count();
    let without = skipped.iter().filter(|line| !is_excused(line, peers)).count();
    without + if busy > BUSY_COUNT_MAX { busy } else { 0 }
}

/// Runs these tests again, one at a time.
fn again(root: &Path, openssl: &str, names: &BTreeSet<&str>) -> Command {
    let mut command = process::cargo(root);
    // Those that a busy machine may keep from running are in these.
    let choice = "--no-fail-fast --test system --test relay -- --test-threads=1 --exact";
    command.args(format!("test --workspace {openssl} {choice}").split_whitespace());
    command.args(names);
    command
}

/// System tests that depend on timing, which other tests would disturb: they run last, one at a time.
const TIMED: &str = "timed::";

/// System tests that take turns, as generators that measure are pinned to one processor. With all others in one
/// program they would keep its threads waiting for their turns.
const MEASURED: &str = "measured::";

/// How many tests run at once, beside those that measure. Most wait for most of their time, so that two on each of two
/// processors leave half of these idle.
const THREAD_COUNT: usize = 4;

/// What CI adds to each choice from the workspace, so that the MACs are compared with those of OpenSSL and nothing is
/// built twice for that. Elsewhere OpenSSL's headers may be missing.
const fn openssl(is_ci: bool) -> &'static str {
    if is_ci { "--features authentick/openssl" } else { "" }
}

/// All that there is to run.
struct Plan {
    /// What builds the tests of the next two, so that neither waits for the other's build.
    build: Command,
    /// What runs while `first` does.
    beside: Command,
    first: Command,
    /// What runs after both, one after the other.
    then: Vec<Command>,
}

/// What the tests of the spans and of the mutants need: the server can be slowed down at single steps, and checks can
/// be left out.
const CHANGED: &str = "authentick-daemon/delays,authentick-game/mutants";

/// The tests of the spans and of the mutants have their own build, of code that can be changed. That build too selects
/// from the whole workspace, so that dependencies have the same features as in the other and are not built again.
fn plan(root: &Path, openssl: &str) -> Plan {
    let test = |words: &str| {
        let mut command = process::cargo(root);
        command.arg("test").args(words.split_whitespace());
        command
    };
    let one_by_one = |name| {
        test(&format!("--workspace {openssl} --no-fail-fast --test system -- --test-threads=1 {name}"))
    };
    Plan {
        build: test(&format!("--workspace {openssl} --no-run")),
        beside: one_by_one(MEASURED),
        // Each in one word: benches take a word without a dash for the name of what to run.
        first: test(&format!(
            "--workspace {openssl} --no-fail-fast -- --test-threads={THREAD_COUNT} --skip={TIMED} --skip={MEASURED}"
        )),
        then: vec![
            test(&format!(
                "--workspace --no-fail-fast --features {CHANGED} --test spans --test mutants --test concrete"
            )),
            one_by_one(TIMED),
        ],
    }
}

/// One `cargo test` with these arguments.
fn choice(root: &Path, arguments: &[String]) -> Command {
    let own = arguments.iter().take_while(|argument| *argument != "--");
    let names_packages =
        own.into_iter().any(|argument| argument.starts_with("-p") || argument.starts_with("--package"));
    let mut command = process::cargo(root);
    command.arg("test").args((!names_packages).then_some("--workspace")).args(arguments);
    command
}

/// The tests of the crypto crate, in the same build as all tests. All packages that cargo is asked for turn on
/// features: the others here have no library and no test `paths`, and are named only for the features of their
/// dependencies.
pub(crate) fn of_crypto(root: &Path) -> Command {
    let mut command = process::cargo(root);
    command.args("test -p authentick-crypto -p authentick -p xtask --lib --test paths".split(' '));
    command
}

/// How many tests passed, by the last line of each program of tests in what `cargo test` printed.
pub(crate) fn passed_count(said: &str) -> u64 {
    let counts = said.lines().filter_map(|line| {
        let (_, rest) = line.strip_prefix("test result: ")?.split_once(". ")?;
        rest.split_once(" passed")?.0.parse::<u64>().ok()
    });
    counts.sum()
}

/// The lines of the file of skips, in order, each once.
pub(crate) fn skipped(text: &str) -> BTreeSet<&str> {
    text.lines().filter(|line| !line.trim().is_empty()).collect()
}

fn summary(skipped: &BTreeSet<&str>) -> String {
    let heading = match skipped.len() {
        0 => return "nothing was skipped\n".to_owned(),
        1 => "1 test was skipped:".to_owned(),
        count => format!("{count} tests were skipped:"),
    };
    let lines: String = skipped.iter().map(|line| format!("    {line}\n")).collect();
    format!("{heading}\n{lines}")
}

/// What tests said of how much they tried, in order, each once.
fn tried(text: &str) -> String {
    skipped(text).iter().map(|line| format!("tried: {line}\n")).collect()
}

/// The reason of a test whose figures mean nothing on a busy machine. It runs again at the end; if it is skipped then
/// too, that is listed, but is not a failure unless there are more than [`BUSY_COUNT_MAX`].
const BUSY: &str = "machine is too busy";

/// How often tests run again that a busy machine kept from running.
const RETRY_COUNT: usize = 2;

/// The most tests that a busy machine may keep from running.
const BUSY_COUNT_MAX: usize = 2;

/// The reason of a test for instructions that the processor lacks: no machine has all. Such a skip is listed, but is
/// not a failure.
const LACKING: &str = "this processor lacks";

/// Whether the line says that the machine is too busy, or something that this machine can never have.
fn is_excused(line: &str, peers: &[(&str, State)]) -> bool {
    line.contains(BUSY) || is_impossible(line, peers)
}

/// Whether the line names a peer that this machine cannot have, or a file in its folder, or says that its processor
/// lacks something.
pub(crate) fn is_impossible(line: &str, peers: &[(&str, State)]) -> bool {
    let mut absent = peers.iter().filter(|(_, state)| matches!(state, State::Impossible(_)));
    line.contains(LACKING)
        || absent.any(|(name, _)| line.contains(name) || line.contains(&peers::folder_of(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::Tree;

    #[test]
    fn all_is_two_builds_and_those_that_keep_times_run_last() {
        let Plan { build, beside, first, then } = plan(Path::new("/"), openssl(false));
        let lines: Vec<_> = [build, beside, first].iter().chain(&then).map(process::line).collect();
        assert_eq!(
            lines,
            [
                "cargo test --workspace --no-run",
                "cargo test --workspace --no-fail-fast --test system -- --test-threads=1 measured::",
                "cargo test --workspace --no-fail-fast -- --test-threads=4 --skip=timed:: --skip=measured::",
                "cargo test --workspace --no-fail-fast --features authentick-daemon/delays,authentick-game/mutants \
                 --test spans --test mutants --test concrete",
                "cargo test --workspace --no-fail-fast --test system -- --test-threads=1 timed::"
            ]
        );
    }

    #[test]
    fn ci_has_openssl_in_every_build_but_that_of_changed_code() {
        let Plan { build, beside, first, then } = plan(Path::new("/"), openssl(true));
        let again = again(Path::new("/"), openssl(true), &BTreeSet::from(["a::b"]));
        for command in [build, beside, first, again].iter().chain(&then) {
            let line = process::line(command);
            let is_there = line.contains(" --features authentick/openssl ");
            assert_ne!(is_there, line.contains(CHANGED), "{line}");
        }
    }

    #[test]
    fn choice_is_one_command() {
        let line = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
            process::line(&choice(Path::new("/"), &arguments))
        };
        assert_eq!(line(&["cookie"]), "cargo test --workspace cookie");
        assert_eq!(line(&["-p", "authentick-ke"]), "cargo test -p authentick-ke");
        assert_eq!(line(&["a", "--", "-p"]), "cargo test --workspace a -- -p");
    }

    /// What is skipped in one command is skipped wherever a test's path has that text, but runs in system tests only.
    #[test]
    fn groups_of_system_tests_are_named_as_nothing_else_is() {
        let tree = Tree::read(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()).unwrap();
        for group in [TIMED, MEASURED] {
            let declaration = format!("mod {} ", group.trim_end_matches("::"));
            let is_declared =
                |text: &str| text.lines().any(|line| line.replace([';', '{'], " ").contains(&declaration));
            let found: Vec<&str> = tree
                .rust()
                .filter(|(file, _)| is_declared(&file.text))
                .map(|(file, _)| file.path.as_str())
                .collect();
            assert_eq!(found, ["crates/cli/tests/system/main.rs"], "{group}");
        }
    }

    #[test]
    fn skips_are_listed_once_each() {
        assert_eq!(summary(&skipped("")), "nothing was skipped\n");
        assert_eq!(summary(&skipped("b: no root\n\n")), "1 test was skipped:\n    b: no root\n");
        let text = "b: no root\na: no chrony\nb: no root\n";
        assert_eq!(summary(&skipped(text)), "2 tests were skipped:\n    a: no chrony\n    b: no root\n");
    }

    #[test]
    fn what_was_tried_is_listed_by_name() {
        assert_eq!(
            tried("b: x = 2 states\na: x = 1 states\n"),
            "tried: a: x = 1 states\ntried: b: x = 2 states\n"
        );
        assert_eq!(tried(""), "");
    }

    #[test]
    fn only_what_this_machine_cannot_have_excuses_a_skip() {
        let peers = [
            ("chrony", State::Missing("no network".to_owned())),
            ("ntpd-rs", State::Ready("1.9.0".to_owned())),
            ("facebook/time", State::Impossible("no Go".to_owned())),
        ];
        assert!(is_excused("aead_30: facebook/time is not there", &peers));
        assert!(is_excused("aead_30: facebook-time/ntske is missing", &peers));
        assert!(is_excused("search: this machine is too busy for a generator to keep its times", &peers));
        assert!(is_excused("paths_that_are_not_tested_are_told: this processor lacks VAES-512", &peers));
        assert!(!is_excused("one_shot: chrony is not there", &peers));
        assert!(!is_excused("query: ntpd-rs does not start", &peers));
        assert!(!is_excused("drop: needs root", &peers));
    }

    #[test]
    fn tests_that_passed_are_counted() {
        let said = "test result: ok. 314 passed; 0 failed; 2 ignored; 0 measured; 9 filtered out";
        assert_eq!(passed_count(said), 314);
        assert_eq!(passed_count("test result: FAILED. 5 passed; 1 failed; 0 ignored"), 5);
        assert_eq!(passed_count("test query::a ... ok\ntest result: ok"), 0);
    }

    #[test]
    fn busy_machine_excuses_few_tests_and_has_them_run_again() {
        let lines = |count: usize| -> String {
            (0..count).map(|number| format!("t{number}: this {BUSY}\n")).collect::<String>()
                + "x: needs root\n"
        };
        let counts = [0, BUSY_COUNT_MAX, BUSY_COUNT_MAX + 1];
        assert_eq!(counts.map(|count| inexcusable(&skipped(&lines(count)), &[])), [1, 1, BUSY_COUNT_MAX + 2]);
        assert_eq!(
            process::line(&again(Path::new("/"), openssl(false), &BTreeSet::from(["a::b", "c"]))),
            "cargo test --workspace --no-fail-fast --test system --test relay -- --test-threads=1 --exact a::b c"
        );
    }
}
