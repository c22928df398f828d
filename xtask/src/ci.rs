//! `cargo xtask ci`: all that must pass before a change is taken, step by step, up to the first failure.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use cargo_metadata::MetadataCommand;
use clap::ValueEnum;

use crate::booted::{self, Proof};
use crate::supply::yanked;
use crate::tools::{self, Tool};
use crate::{memcheck, portable, process, spec, test, tidy};

pub(crate) const DENY: Tool = Tool { word: "deny", version: "0.20.2", level: "0" };

/// The steps, in their order: those that fail fast come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// All Rust is formatted
    Fmt,
    /// No lint complains, in any target, with all features
    Clippy,
    /// House rules hold, docs/assurance.md is what the records say, and requirements have their code and tests
    Tidy,
    /// The documentation of all crates builds without a warning
    Doc,
    /// All tests pass, against all peers and OpenSSL, and none is skipped that could run
    Test,
    /// What computes on secrets neither branches on them nor misuses memory, and the check can fail
    Memcheck,
    /// What computes on secrets works without any instruction that is made for it
    Portable,
    /// Crates build with one half of their features
    Features,
    /// Dependencies have allowed licences and sources, and none is banned or yanked
    Deny,
    /// Each fuzz target compiles; the tests replay what fuzzing kept, and scheduled parts run the targets
    Fuzz,
    /// The oldest promised compiler works, if it is installed; where the other steps use it, they show that
    Msrv,
    /// The README's first command works in an empty folder
    Demo,
    /// The package starts, outlasts passing states, is upgraded and purged, renews certificates, in a booted Debian 12
    Booted,
    /// All studies run in three minutes, and their report renders from the folders alone
    Studies,
}

/// How a step that did not fail ended.
enum End {
    Done,
    /// Why there was nothing to do.
    Skipped(String),
}

/// Runs all steps, or one.
pub(crate) fn run(root: &Path, only: Option<Step>) -> Result<(), String> {
    let steps: Vec<Step> =
        Step::value_variants().iter().copied().filter(|step| only.is_none_or(|one| one == *step)).collect();
    let mut skipped = Vec::new();
    let start = Instant::now();
    for step in steps {
        let name = name(step);
        println!("== {name}");
        let start = Instant::now();
        let end = run_step(root, step).map_err(|problem| format!("step {name}: {problem}"))?;
        println!("== {name}: {:.0?}", start.elapsed());
        if let End::Skipped(reason) = end {
            skipped.push(format!("{name}: {reason}"));
        }
    }
    skipped.iter().for_each(|line| println!("skipped: {line}"));
    println!("passed in {:.0?}", start.elapsed());
    Ok(())
}

fn name(step: Step) -> String {
    step.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Each step in its order, and what it establishes.
pub(crate) fn establishes() -> Vec<(String, String)> {
    let help =
        |step: &Step| step.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
    Step::value_variants().iter().map(|step| (name(*step), help(step).unwrap_or_default())).collect()
}

fn run_step(root: &Path, step: Step) -> Result<End, String> {
    match step {
        Step::Fmt => format(root),
        Step::Clippy => cargo(root, "clippy --workspace --all-targets --all-features -- -D warnings"),
        Step::Tidy => tidy::run(root).and_then(|()| spec::run(root, None)).map(|()| End::Done),
        Step::Doc => document(root),
        Step::Test => test::run(root, true, &[]).map(|()| End::Done),
        Step::Memcheck => memcheck::run(root).map(|reason| reason.map_or(End::Done, End::Skipped)),
        Step::Portable => portable::run(root).map(|reason| reason.map_or(End::Done, End::Skipped)),
        Step::Features => features(root),
        Step::Deny => deny(root),
        Step::Fuzz if !root.join("fuzz").is_dir() => Ok(End::Skipped("there is no folder fuzz".to_owned())),
        Step::Fuzz => cargo(root, "check --locked --manifest-path fuzz/Cargo.toml --bins"),
        Step::Msrv => oldest_compiler(root),
        Step::Demo => demo(root),
        Step::Booted => booted(root),
        Step::Studies => studies(root),
    }
}

/// Runs cargo in the root; `words` are separated by spaces.
fn cargo(root: &Path, words: &str) -> Result<End, String> {
    process::run(process::cargo(root).args(words.split(' ')))?;
    Ok(End::Done)
}

/// The folder `fuzz` is outside the workspace, so it is formatted separately.
fn format(root: &Path) -> Result<End, String> {
    cargo(root, "fmt --all --check")?;
    if root.join("fuzz/Cargo.toml").is_file() {
        cargo(root, "fmt --manifest-path fuzz/Cargo.toml --check")?;
    }
    Ok(End::Done)
}

fn document(root: &Path) -> Result<End, String> {
    let mut command = process::cargo(root);
    command.args(["doc", "--workspace", "--no-deps", "--all-features"]).env("RUSTDOCFLAGS", "-Dwarnings");
    process::run(&mut command)?;
    Ok(End::Done)
}

/// A crate that is only built together with the rest can depend on features that others turn on, or keep code that
/// neither of its own halves needs. What a feature adds is tested where it is on.
fn features(root: &Path) -> Result<End, String> {
    for choice in [
        "authentick-proto",
        "authentick-proto --features client",
        "authentick-proto --features server",
        "authentick-ke --features client",
        "authentick-ke --features server",
    ] {
        cargo(root, &format!("clippy --no-default-features -p {choice} -- -D warnings"))?;
    }
    Ok(End::Done)
}

fn deny(root: &Path) -> Result<End, String> {
    if !root.join("deny.toml").is_file() {
        return Ok(End::Skipped("there is no deny.toml".to_owned()));
    }
    let good_count = yanked::run(root)?;
    println!("{good_count} locked packages, none of them yanked");
    tools::provide(root, &DENY)?;
    for mut command in deny_commands(root) {
        process::run(&mut command)?;
    }
    Ok(End::Done)
}

/// What is locked for the workspace, and for the fuzz targets. What `deny.toml` excepts must still be there in the
/// first; the second ships nothing, so its licences bind nobody.
fn deny_commands(root: &Path) -> Vec<Command> {
    let check = |place: &str, words: &[&str]| {
        let mut command = tools::cargo(root);
        command.args(["deny", "--locked", "--manifest-path", place, "--config", "deny.toml", "check"]);
        command.args(words);
        command
    };
    let stale = ["unmatched-skip", "unnecessary-skip", "unused-wrapper", "license-not-encountered"];
    let stale: Vec<&str> = stale.iter().flat_map(|lint| ["--deny", lint]).collect();
    let mut commands = vec![check("Cargo.toml", &[&stale[..], &["bans", "licenses", "sources"]].concat())];
    if root.join("fuzz/Cargo.toml").is_file() {
        commands.push(check("fuzz/Cargo.toml", &["bans", "sources"]));
    }
    commands
}

fn oldest_compiler(root: &Path) -> Result<End, String> {
    let metadata =
        MetadataCommand::new().current_dir(root).no_deps().exec().map_err(|error| error.to_string())?;
    let oldest = metadata.packages.iter().filter_map(|package| package.rust_version.as_ref()).max();
    let oldest = oldest.ok_or("no manifest names a rust-version")?;
    let installed = process::output(Command::new("rustup").args(["toolchain", "list"])).unwrap_or_default();
    if !has_toolchain(&installed, &oldest.to_string()) {
        return Ok(End::Skipped(format!("the toolchain {oldest} is not installed")));
    }
    let commit = |toolchain: &[String]| {
        let version = process::output(Command::new("rustc").args(toolchain).arg("-vV")).ok()?;
        commit_of(&version).map(str::to_owned)
    };
    if let Some(commit) =
        commit(&[format!("+{oldest}")]).filter(|oldest| Some(oldest) == commit(&[]).as_ref())
    {
        println!("the other steps used this compiler: {oldest}, commit {commit}");
        return Ok(End::Done);
    }
    cargo(root, &format!("+{oldest} check --workspace"))
}

/// The commit of a compiler, as `rustc -vV` shows it.
fn commit_of(version: &str) -> Option<&str> {
    let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: "))?;
    Some(commit).filter(|commit| *commit != "unknown")
}

/// Whether `rustup toolchain list` names this version.
fn has_toolchain(list: &str, version: &str) -> bool {
    let mut names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.any(|name| name.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')))
}

/// Runs the demo as a newcomer would, in an empty folder.
fn demo(root: &Path) -> Result<End, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    authentick(root, folder.path(), "demo")?;
    is_written(&folder.path().join("authentick-demo/report.html"))
}

/// What is proved of the package on each change.
const CI_PROOFS: [Proof; 5] =
    [Proof::Install, Proof::Restart, Proof::Renewal, Proof::Firewall, Proof::Passing];

/// Proves the package without those who judge it: they take a network.
fn booted(root: &Path) -> Result<End, String> {
    if let Some(reason) = booted::missing() {
        return Ok(End::Skipped(reason));
    }
    // The binary that other steps run, too.
    authentick(root, root, "--version")?;
    cargo(root, "xtask package --only deb --binary target/release/authentick")?;
    booted::run(root, None, &CI_PROOFS).map(|_| End::Done)
}

/// Runs all studies in their short forms, with a ceiling, and renders what they wrote once more.
fn studies(root: &Path) -> Result<End, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    authentick(root, folder.path(), "study run all --quick --minutes 3 --out studies")?;
    let page = folder.path().join("studies/report.html");
    let read = || std::fs::read(&page).map_err(|error| format!("{}: {error}", page.display()));
    let written = read()?;
    authentick(root, folder.path(), "study render studies")?;
    if read()? != written {
        return Err("the studies render to another page than they wrote".to_owned());
    }
    is_written(&page)
}

/// Runs the release build of the binary in a folder; `words` are separated by spaces.
fn authentick(root: &Path, folder: &Path, words: &str) -> Result<(), String> {
    let mut command = process::cargo(folder);
    command.args(["run", "--release", "--manifest-path"]).arg(root.join("Cargo.toml")).arg("--");
    process::run(command.args(words.split(' ')))
}

fn is_written(page: &Path) -> Result<End, String> {
    match page.metadata() {
        Ok(file) if file.len() > 0 => Ok(End::Done),
        _ => Err(format!("{} was not written", page.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_named_in_their_order() {
        let names: Vec<String> = Step::value_variants().iter().map(|step| name(*step)).collect();
        let expected = [
            "fmt", "clippy", "tidy", "doc", "test", "memcheck", "portable", "features", "deny", "fuzz",
            "msrv", "demo", "booted", "studies",
        ];
        assert_eq!(names, expected);
        assert!(establishes().iter().map(|(name, _)| name).eq(&names));
        assert!(establishes().iter().all(|(_, establishes)| !establishes.is_empty()));
    }

    #[test]
    fn toolchain_is_found_by_its_whole_version() {
        let list = "stable-x86_64-unknown-linux-gnu (active, default)\n1.95.0-x86_64-unknown-linux-gnu\n";
        assert!(has_toolchain(list, "1.95.0"));
        assert!(!has_toolchain(list, "1.95") && !has_toolchain(list, "1.9") && !has_toolchain("", "1.95.0"));
    }

    #[test]
    fn compiler_of_unknown_commit_equals_no_other() {
        assert_eq!(commit_of("rustc 1.95.0\nbinary: rustc\ncommit-hash: 5980\nhost: x"), Some("5980"));
        assert_eq!(commit_of("rustc 1.95.0\ncommit-hash: unknown\n"), None);
        assert_eq!(commit_of(""), None);
    }

    #[test]
    fn step_without_its_subject_is_skipped_with_the_reason() {
        let root = tempfile::tempdir().unwrap();
        for step in [Step::Deny, Step::Fuzz] {
            assert!(matches!(run_step(root.path(), step), Ok(End::Skipped(_))), "{step:?}");
        }
    }
}
