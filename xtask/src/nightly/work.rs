//! Carrying out one part: its commands one after the other, with all that they print in a log of its own, and what
//! follows from that.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::figures::{self, Figure};
use super::parts::{Part, Step, Work};
use super::record::Outcome;
use crate::peers::{self, State};
use crate::{fuzz, test, tools};

/// Where logs are, in the checkout.
const FOLDER: &str = "target/nightly";

/// A part that has taken this long is ended. It is expected to take two thirds of it at most.
const PART_DURATION_MAX: Duration = Duration::from_secs(90 * 60);

/// How often it is asked whether a command has ended.
const TURN: Duration = Duration::from_millis(100);

/// The most sentences in a record, and the most characters in each.
const WORDS_MAX: usize = 20;
const CHARACTERS_MAX: usize = 300;

/// The word in a command that stands for an empty folder.
const SCRATCH: &str = "SCRATCH";

/// The figure that is counted here: tests that passed.
const TESTS: &str = "tests";

/// What is the same for all parts.
pub(crate) struct Bench<'a> {
    pub(crate) root: &'a Path,
    pub(crate) fuzz_seconds: u32,
    /// Whether inputs that reach new code join the corpus.
    pub(crate) keeps: bool,
    pub(crate) peers: Vec<(&'static str, State)>,
}

/// How a part ended.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Ended {
    problems: Vec<String>,
    /// Tests that did not run, with the reason.
    skips: Vec<String>,
    /// Why nothing was tried at all.
    missing: Option<String>,
    pub(crate) figures: Vec<Figure>,
}

impl Ended {
    /// The result, and what there is to say about it. `is_impossible`: whether this machine can never run a test that
    /// was skipped.
    pub(crate) fn result(&self, is_impossible: impl Fn(&str) -> bool) -> (Outcome, Vec<String>) {
        let skips = || self.skips.iter().map(|skip| format!("not run: {skip}"));
        if !self.problems.is_empty() {
            return (Outcome::Found, limited(self.problems.iter().cloned().chain(skips())));
        }
        if let Some(missing) = &self.missing {
            return (Outcome::Skipped, limited([missing.clone()].into_iter()));
        }
        let is_complete = self.skips.iter().all(|skip| is_impossible(skip));
        (if is_complete { Outcome::Passed } else { Outcome::Skipped }, limited(skips()))
    }

    fn complain(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }
}

/// Sentences as a record has them.
fn limited(sentences: impl Iterator<Item = String>) -> Vec<String> {
    let mut sentences: Vec<String> = sentences.collect();
    let rest = sentences.len().saturating_sub(WORDS_MAX);
    sentences.truncate(WORDS_MAX);
    for sentence in &mut sentences {
        if let Some((end, _)) = sentence.char_indices().nth(CHARACTERS_MAX) {
            sentence.truncate(end);
            sentence.push_str(" [..]");
        }
    }
    sentences.extend((rest > 0).then(|| format!("and {rest} more")));
    sentences
}

/// The log of a part.
pub(crate) fn log(root: &Path, part: &Part) -> PathBuf {
    root.join(FOLDER).join(format!("{}.log", part.name))
}

/// The folder of logs, which is made.
pub(crate) fn folder(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

impl Bench<'_> {
    /// Carries out a part. What keeps it from ending is something found, too.
    pub(crate) fn carry_out(&self, part: &Part) -> Ended {
        let ended = match &part.work {
            Work::Fuzz(targets) => self.fuzz(part, targets),
            Work::Steps { steps, figures, missing } => match missing(self.root) {
                Some(missing) => Ok(Ended { missing: Some(missing), ..Ended::default() }),
                None => self.run_steps(part, steps).map(|ended| with_figures(ended, figures)),
            },
        };
        let mut ended = ended.unwrap_or_else(|problem| Ended { problems: vec![problem], ..Ended::default() });
        // What a reader of the record finds in any checkout.
        let root = format!("{}/", self.root.display());
        for words in ended.problems.iter_mut().chain(&mut ended.skips) {
            *words = words.replace(&root, "");
        }
        ended
    }

    /// Result and words of a part that was carried out.
    pub(crate) fn result(&self, ended: &Ended) -> (Outcome, Vec<String>) {
        ended.result(|line| test::is_impossible(line, &self.peers))
    }

    fn fuzz(&self, part: &Part, targets: &[String]) -> Result<Ended, String> {
        let mut log = create(&log(self.root, part))?;
        let mut ended = Ended::default();
        for (target, end) in fuzz::campaign(self.root, self.fuzz_seconds, targets, self.keeps)? {
            let summary = fuzz::summary(&target, &end);
            let last = end.as_ref().map_or("", |ran| &ran.last_lines);
            writeln!(log, "{summary}\n{last}").map_err(|error| error.to_string())?;
            if let Ok(ran) = &end {
                ended.figures.push(Figure::count(&target, ran.run_count, "runs"));
                if ran.kept_count > 0 {
                    let kept = u64::try_from(ran.kept_count).unwrap_or(u64::MAX);
                    ended.figures.push(Figure::count(&format!("{target}-kept"), kept, "inputs"));
                }
            }
            match end {
                Ok(ran) if ran.finding.is_none() && ran.run_count > 0 => {}
                Ok(_) | Err(_) => ended.complain(summary),
            }
        }
        ended.figures.push(Figure::count("each", u64::from(self.fuzz_seconds), "seconds"));
        Ok(ended)
    }

    fn run_steps(&self, part: &Part, steps: &[Step]) -> Result<Ended, String> {
        let folder = folder(self.root)?;
        let (scratch, skips) = (folder.join(&part.name), folder.join(format!("{}.skips", part.name)));
        empty(&scratch)?;
        create(&skips)?;
        let log_path = log(self.root, part);
        let mut log = create(&log_path)?;
        let until = Instant::now() + PART_DURATION_MAX;
        let mut ended = Ended::default();
        for step in steps {
            for turn in 1..=step.times {
                let mut command = self.command(step, &scratch)?;
                command.env("AUTHENTICK_SKIPS", &skips);
                let start = log.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
                writeln!(log, "$ {}", step.words).map_err(|error| error.to_string())?;
                let status = run(&mut command, &log, until)?;
                let said = read_from(&log_path, start)?;
                let of =
                    if step.times > 1 { format!("run {turn} of {}: ", step.times) } else { String::new() };
                judge(step, status.is_some_and(|status| status.success()), &said, &of, &mut ended);
                if status.is_none() {
                    let minutes = PART_DURATION_MAX.as_secs() / 60;
                    ended.complain(format!(
                        "{of}`{}` was ended after {minutes} minutes of this part",
                        step.words
                    ));
                    return Ok(ended);
                }
            }
        }
        let text = fs::read_to_string(&skips).map_err(|error| format!("{}: {error}", skips.display()))?;
        ended.skips = test::skipped(&text).into_iter().map(str::to_owned).collect();
        Ok(ended)
    }

    fn command(&self, step: &Step, scratch: &Path) -> Result<Command, String> {
        let scratch = scratch.to_string_lossy();
        let mut words = step.words.split(' ').map(|word| word.replace(SCRATCH, &scratch));
        let program = words.next().unwrap_or_default();
        let mut command = match &*program {
            "cargo" => tools::cargo(self.root),
            _ => Command::new(&program),
        };
        command.current_dir(self.root).args(words).env(peers::FOLDER, peers::folder(self.root)?);
        command.env("CARGO_TERM_COLOR", "never");
        command.envs(step.environment.iter().map(|(name, value)| (name, value.replace(SCRATCH, &scratch))));
        Ok(command)
    }
}

/// Draws conclusions from one command and what it printed. `of` says which of several runs it was.
fn judge(step: &Step, is_success: bool, said: &str, of: &str, ended: &mut Ended) {
    if let Some(expected) = step.must_fail_with {
        if is_success {
            ended.complain(format!("{of}`{}` has to fail, and did not", step.words));
        } else if !said.contains(expected) {
            ended.complain(format!(
                "{of}`{}` has to fail with `{expected}`, and failed otherwise",
                step.words
            ));
        }
        return;
    }
    if let Err(problem) = figures::collect(said, &mut ended.figures) {
        ended.complain(format!("{of}{problem}"));
    }
    // Also `cargo +nightly test` and `cargo miri test`.
    if step.words.starts_with("cargo ") && step.words.split(' ').any(|word| word == "test") {
        let count = test::passed_count(said);
        if let Err(problem) = figures::add(Figure::count(TESTS, count, "passed"), &mut ended.figures) {
            ended.complain(problem);
        }
        if is_success && count == 0 {
            ended.complain(format!("{of}`{}` ran no test", step.words));
        }
    }
    if !is_success {
        let failed = failed_tests(said);
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let why = if failed.is_empty() { last.trim().to_owned() } else { failed.join(", ") };
        ended.complain(format!("{of}`{}` failed: {why}", step.words));
    }
}

/// A part that passed without saying what it tried may have tried nothing.
fn with_figures(mut ended: Ended, expected: &[&str]) -> Ended {
    let is_said = |name: &str| ended.figures.iter().any(|figure| figure.name == name);
    let missing: Vec<&str> = expected.iter().copied().filter(|name| !is_said(name)).collect();
    if !missing.is_empty() && ended.skips.is_empty() && ended.problems.is_empty() {
        ended.complain(format!("no figure was printed for {}", missing.join(", ")));
    }
    ended
}

/// The names of tests that failed: each program of tests lists them at its end.
fn failed_tests(said: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut lines = said.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "failures:" {
            while let Some(name) = lines.next_if(|line| line.starts_with("    ")) {
                names.push(name.trim());
            }
        }
    }
    names
}

/// Runs a command with its output in `log`. `None`: it had to be ended.
fn run(command: &mut Command, log: &File, until: Instant) -> Result<Option<ExitStatus>, String> {
    let copy = || log.try_clone().map_err(|error| error.to_string());
    command.stdin(Stdio::null()).stdout(copy()?).stderr(copy()?);
    let start = command.spawn();
    let mut child =
        start.map_err(|error| format!("`{}` did not start: {error}", command.get_program().display()))?;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            end(child.id())?;
            child.wait().map_err(|error| error.to_string())?;
            return Ok(None);
        }
        thread::sleep(TURN);
    }
}

/// Ends a process and all that it started.
fn end(process: u32) -> Result<(), String> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").map_err(|error| error.to_string())?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // A process may have ended meanwhile.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (id, parent)));
    }
    let mut ended = vec![process];
    let mut index = 0;
    while let Some(parent) = ended.get(index).copied() {
        ended.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        index += 1;
    }
    let ids: Vec<String> = ended.iter().map(u32::to_string).collect();
    let mut command = Command::new("sh");
    // Some may have ended meanwhile.
    command.args(["-c", &format!("kill -KILL {} 2>/dev/null", ids.join(" "))]);
    command.status().map(drop).map_err(|error| error.to_string())
}

/// A new file, or an emptied one, that everybody appends to.
fn create(path: &Path) -> Result<File, String> {
    let io = |error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).and_then(|()| fs::write(path, "")).map_err(io)?;
    File::options().append(true).open(path).map_err(io)
}

/// An empty folder.
fn empty(folder: &Path) -> Result<(), String> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// What a file has from this octet on.
fn read_from(path: &Path, start: u64) -> Result<String, String> {
    let io = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = File::open(path).map_err(io)?;
    file.seek(SeekFrom::Start(start)).map_err(io)?;
    let mut octets = Vec::new();
    file.read_to_end(&mut octets).map_err(io)?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

#[cfg(test)]
mod tests;
