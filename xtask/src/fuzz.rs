//! Running fuzz targets, on whichever compiler is installed.
//!
//! Address checks need unstable flags. A stable compiler accepts them in bootstrap mode; otherwise a nightly one does;
//! otherwise targets run without these checks and still find panics and failed assertions.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::process;
use crate::tools::{self, Tool};

pub(crate) const FUZZ: Tool = Tool { word: "fuzz", version: "0.13.2", level: "0" };

/// An input that takes longer than this counts as a finding.
const INPUT_SECONDS_MAX: u32 = 10;

/// How many of a target's last lines are shown when it fails.
const LINES_SHOWN: usize = 40;

/// A way to build fuzz targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Build {
    /// The installed compiler, in bootstrap mode.
    Bootstrap,
    Nightly,
    /// Coverage alone.
    NoSanitizer,
}

impl Build {
    /// In order of preference.
    const ALL: [Build; 3] = [Build::Bootstrap, Build::Nightly, Build::NoSanitizer];

    fn command(self, root: &Path, task: &str) -> Command {
        let mut command = tools::cargo(root);
        match self {
            Build::Bootstrap => command.env("RUSTC_BOOTSTRAP", "1").args(["fuzz", task]),
            Build::Nightly => command.args(["+nightly", "fuzz", task]),
            Build::NoSanitizer => command.args(["fuzz", task, "-s", "none"]),
        };
        command
    }
}

/// How one target's run ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) run_count: u64,
    /// The input that made the target fail, or another problem.
    pub(crate) finding: Option<String>,
    /// Inputs that joined the corpus.
    pub(crate) kept_count: usize,
    /// The last that it printed, if it failed.
    pub(crate) last_lines: String,
}

/// Targets in order, and how each ended; an error if it could not be run.
pub(crate) type Ends = Vec<(String, Result<Ran, String>)>;

/// How targets are run.
struct Campaign<'a> {
    root: &'a Path,
    build: Build,
    seconds: u32,
    /// Whether inputs that reach new code join the corpus.
    keeps: bool,
}

/// The targets of the checkout at `root`, in order: each is a file.
pub(crate) fn targets(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".rs").map(str::to_owned)
    });
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    Ok(names)
}

/// Runs targets, or all of them if none is named, for `seconds` each. If the campaign `keeps`, inputs that reach new
/// code join the corpus; else it stays as it is.
pub(crate) fn run(root: &Path, seconds: u32, targets: &[String], keeps: bool) -> Result<(), String> {
    let ends = campaign(root, seconds, targets, keeps)?;
    let broken_count = ends.iter().filter(|(_, end)| !matches!(end, Ok(Ran { finding: None, .. }))).count();
    match broken_count {
        0 => Ok(()),
        count => Err(format!("{count} of {} fuzz targets have a finding", ends.len())),
    }
}

/// The same; says how each target ended.
pub(crate) fn campaign(root: &Path, seconds: u32, targets: &[String], keeps: bool) -> Result<Ends, String> {
    tools::provide(root, &FUZZ)?;
    let list = process::output(tools::cargo(root).args(["fuzz", "list"]))?;
    let known: Vec<&str> = list.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let targets = choose(&known, targets)?;
    let build = find_build(root)?;
    println!("fuzzing for {seconds} s each: {}; build: {build:?}", targets.join(", "));
    let campaign = Campaign { root, build, seconds, keeps };
    let (next, ends) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::SeqCst)) {
            let end = campaign.run(target);
            println!("{}", summary(target, &end));
            if let Ok(Ran { last_lines, .. }) = &end {
                eprint!("{last_lines}");
            }
            ends.lock().unwrap_or_else(PoisonError::into_inner).push(((*target).to_owned(), end));
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut ends = ends.into_inner().unwrap_or_else(PoisonError::into_inner);
    ends.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(ends)
}

/// The targets to run: those asked for, if they exist, or all.
fn choose<'a>(known: &[&'a str], asked: &[String]) -> Result<Vec<&'a str>, String> {
    if asked.is_empty() {
        return Ok(known.to_vec());
    }
    let find = |name: &String| {
        let found = known.iter().copied().find(|target| target == name);
        found.ok_or_else(|| format!("there is no fuzz target {name}; there are {}", known.join(", ")))
    };
    asked.iter().map(find).collect()
}

/// The first build that works for all targets.
fn find_build(root: &Path) -> Result<Build, String> {
    let mut complaint = String::new();
    for build in Build::ALL {
        let output = process::collect(&mut build.command(root, "build"))?;
        if output.status.success() {
            return Ok(build);
        }
        complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    eprintln!("{complaint}");
    Err("the fuzz targets do not build".to_owned())
}

impl Campaign<'_> {
    /// Runs one target.
    fn run(&self, target: &str) -> Result<Ran, String> {
        let corpus = self.root.join("fuzz/corpus").join(target);
        let io = |error| format!("{}: {error}", corpus.display());
        fs::create_dir_all(&corpus).map_err(io)?;
        let fresh = tempfile::tempdir().map_err(io)?;
        let fuzz = |folders: [&Path; 2], options: &[String]| {
            let mut command = self.build.command(self.root, "run");
            command.arg(target).args(folders).arg("--").args(options);
            process::collect(&mut command)
        };
        // New inputs go to the first folder.
        let options = [format!("-max_total_time={}", self.seconds), format!("-timeout={INPUT_SECONDS_MAX}")];
        let output = fuzz([fresh.path(), &corpus], &options)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let mut ran = outcome(&said, output.status.success());
        if ran.finding.is_some() {
            let lines: Vec<&str> = said.lines().collect();
            let last = lines.iter().skip(lines.len().saturating_sub(LINES_SHOWN));
            ran.last_lines = last.map(|line| format!("{line}\n")).collect();
        }
        if self.keeps {
            // A small set that reaches every edge which was reached, without how often: libFuzzer's own measure keeps
            // five times as many, and all tests replay them. Files of the corpus stay, with their names.
            let before = file_count(&corpus).map_err(io)?;
            let options = ["-set_cover_merge=1".to_owned(), "-use_counters=0".to_owned()];
            if !fuzz([&corpus, fresh.path()], &options)?.status.success() {
                return Err(format!("new inputs could not be merged into {}", corpus.display()));
            }
            ran.kept_count = file_count(&corpus).map_err(io)? - before;
        }
        Ok(ran)
    }
}

fn file_count(folder: &Path) -> io::Result<usize> {
    Ok(fs::read_dir(folder)?.count())
}

/// Parses the output of libFuzzer.
fn outcome(said: &str, is_success: bool) -> Ran {
    // `Done 4096 runs in 11 second(s)` at the end; `#4096 NEW cov: ..` on the way there.
    let done = |line: &str| line.strip_prefix("Done ")?.split_once(" runs ")?.0.parse().ok();
    let on_the_way = |line: &str| line.strip_prefix('#')?.split_whitespace().next()?.parse().ok();
    let run_count = said.lines().rev().find_map(|line| done(line).or_else(|| on_the_way(line)));
    let written =
        said.lines().find_map(|line| Some(line.split_once("Test unit written to ")?.1.trim().to_owned()));
    let last =
        || said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned();
    let finding = if is_success { None } else { Some(written.unwrap_or_else(last)) };
    Ran { run_count: run_count.unwrap_or(0), finding, ..Ran::default() }
}

/// One line about how a target's run ended.
pub(crate) fn summary(target: &str, end: &Result<Ran, String>) -> String {
    match end {
        Err(problem) => format!("{target}: {problem}"),
        Ok(Ran { run_count, finding: Some(finding), .. }) => {
            format!("{target}: {run_count} runs, finding: {finding}")
        }
        Ok(Ran { run_count, kept_count: 0, .. }) => format!("{target}: {run_count} runs, no finding"),
        Ok(Ran { run_count, kept_count, .. }) => {
            format!("{target}: {run_count} runs, no finding, {kept_count} inputs kept")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_tried_from_the_strictest_to_the_one_that_always_works() {
        let lines = Build::ALL.map(|build| process::line(&build.command(Path::new("/"), "build")));
        assert_eq!(lines, ["cargo fuzz build", "cargo +nightly fuzz build", "cargo fuzz build -s none"]);
    }

    #[test]
    fn quiet_run_has_its_count_and_no_finding() {
        let said = "INFO: seed\n#2\tINITED cov: 3\n#8192\tNEW    cov: 12\nDone 524288 runs in 11 second(s)\n";
        assert_eq!(outcome(said, true), Ran { run_count: 524_288, ..Ran::default() });
    }

    #[test]
    fn broken_run_names_its_input() {
        let said = "#2\tINITED cov: 3\n#77\tNEW    cov: 12\nthread panicked\n\
            artifact_prefix='./'; Test unit written to /a/crash-1\nError: Fuzz target exited\n";
        let expected = Ran { run_count: 77, finding: Some("/a/crash-1".to_owned()), ..Ran::default() };
        assert_eq!(outcome(said, false), expected);
    }

    #[test]
    fn failure_without_an_input_is_a_finding_too() {
        let found = outcome("error: could not compile\n\n", false);
        assert_eq!(found.finding.as_deref(), Some("error: could not compile"));
        assert_eq!(outcome("", false).finding.as_deref(), Some("it said nothing"));
    }

    #[test]
    fn unknown_target_is_refused_with_those_that_exist() {
        assert_eq!(choose(&["ke", "nts"], &[]).unwrap(), ["ke", "nts"]);
        assert_eq!(choose(&["ke", "nts"], &["nts".to_owned()]).unwrap(), ["nts"]);
        let problem = choose(&["ke", "nts"], &["ntp".to_owned()]).unwrap_err();
        assert_eq!(problem, "there is no fuzz target ntp; there are ke, nts");
    }

    #[test]
    fn summary_tells_runs_findings_and_what_was_kept() {
        let ran = |finding: Option<&str>, kept_count| {
            let finding = finding.map(str::to_owned);
            summary("ke", &Ok(Ran { run_count: 7, finding, kept_count, ..Ran::default() }))
        };
        assert_eq!(ran(None, 0), "ke: 7 runs, no finding");
        assert_eq!(ran(None, 2), "ke: 7 runs, no finding, 2 inputs kept");
        assert_eq!(ran(Some("crash-1"), 2), "ke: 7 runs, finding: crash-1");
        assert_eq!(summary("ke", &Err("no room".to_owned())), "ke: no room");
    }

    #[test]
    fn each_file_of_a_target_is_in_the_manifest_and_the_other_way_round() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
        let named = manifest.lines().filter_map(|line| line.strip_prefix("path = \"fuzz_targets/"));
        let mut named: Vec<&str> = named.filter_map(|rest| rest.strip_suffix(".rs\"")).collect();
        named.sort_unstable();
        assert_eq!(targets(root).unwrap(), named);
    }
}
