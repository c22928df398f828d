//! `cargo xtask nightly`: what takes too long for each change, in parts that leave records.
//!
//! A part that has passed on the commit that is checked out is not run again unless asked for, so the same command goes
//! on after an interruption. A record is written when its part has ended, and the page made anew.

mod figures;
pub(crate) mod page;
mod parts;
pub(crate) mod record;
mod work;

use std::fs::{File, TryLockError};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use self::parts::{Part, Work};
use self::record::{Machine, Outcome, Record};
use self::work::Bench;
use crate::{peers, process};

/// Runs parts, or all of them if none is named, except those that have passed on this commit, unless `again`.
/// `trial`: any tree will do, targets are fuzzed for so many seconds, and what is left is under target/nightly.
pub(crate) fn run(root: &Path, names: &[String], again: bool, trial: Option<u32>) -> Result<(), String> {
    let parts = chosen(parts::all(root)?, names)?;
    let folder = work::folder(root)?;
    let lock = folder.join("lock");
    // Held until the end of this process, however that comes.
    let lock = File::create(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err("another run of parts is under way in this checkout".to_owned());
        }
        Err(TryLockError::Error(error)) => return Err(error.to_string()),
    }
    let state = State::of(root)?;
    if trial.is_none() && !state.changes.is_empty() {
        let changes = state.changes.join(", ");
        return Err(format!(
            "records are about commits, and these files are changed: {changes} (--trial takes them)"
        ));
    }
    let place = if trial.is_some() { folder.join("records") } else { root.join(record::FOLDER) };
    let records = record::read_all(&place)?;
    let due = due(parts, &records, again || trial.is_some(), |commit| state.is_at(root, commit));
    let peers = match due.iter().any(|part| matches!(part.work, Work::Steps { .. })) {
        true => peers::provide(root, false)?,
        false => Vec::new(),
    };
    let fuzz_seconds = trial.unwrap_or(parts::FUZZ_SECONDS);
    let bench = Bench { root, fuzz_seconds, keeps: trial.is_none(), peers };
    let mut left = Vec::new();
    for (index, part) in due.iter().enumerate() {
        println!("== {} ({} of {}), {} min expected", part.name, index + 1, due.len(), part.minutes);
        let record = carry_out(&bench, &state, part)?;
        record::write(&place, &record)?;
        match trial {
            Some(_) => record::replace(&folder.join("assurance.md"), &page::make(root, &place)?)?,
            None => page::write(root)?,
        }
        println!("{}", line(&record));
        left.push(record);
    }
    conclude(&left)
}

/// Prints all parts, or those named.
pub(crate) fn list(root: &Path, names: &[String]) -> Result<(), String> {
    let records = record::read_all(&root.join(record::FOLDER))?;
    for part in chosen(parts::all(root)?, names)? {
        println!("{}: {}", part.name, part.establishes);
        let record = records.iter().find(|record| record.part == part.name);
        println!(
            "    {} min expected; {}",
            part.minutes,
            record.map_or_else(|| "never ran".to_owned(), last)
        );
    }
    Ok(())
}

/// What the last record of a part says.
fn last(record: &Record) -> String {
    let changes = if record.clean { "" } else { " with uncommitted changes" };
    format!("last {} on {}{changes}: {}", record.began, record.commit, ended(record))
}

/// How a part ended, in a line.
fn line(record: &Record) -> String {
    format!("{}: {}", record.part, ended(record))
}

fn ended(record: &Record) -> String {
    let result = match record.result {
        Outcome::Passed => "passed",
        Outcome::Found => "FOUND",
        Outcome::Skipped => "skipped",
    };
    let words: String = record.words.iter().map(|words| format!("; {words}")).collect();
    format!("{result} in {} s{words}", record.seconds)
}

/// The parts of these names, or all.
fn chosen(parts: Vec<Part>, names: &[String]) -> Result<Vec<Part>, String> {
    if let Some(name) = names.iter().find(|name| parts.iter().all(|part| part.name != **name)) {
        let known: Vec<&str> = parts.iter().map(|part| &*part.name).collect();
        return Err(format!("there is no part {name}; there are {}", known.join(", ")));
    }
    Ok(parts.into_iter().filter(|part| names.is_empty() || names.contains(&part.name)).collect())
}

/// The parts that have no record of having passed on the commit that is checked out; `again`: all of them.
fn due(parts: Vec<Part>, records: &[Record], again: bool, is_here: impl Fn(&str) -> bool) -> Vec<Part> {
    let has_passed = |part: &Part| {
        records.iter().any(|record| {
            let is_good = record.part == part.name && record.result == Outcome::Passed && record.clean;
            is_good && is_here(&record.commit)
        })
    };
    parts.into_iter().filter(|part| again || !has_passed(part)).collect()
}

/// Carries out one part, and says what it left.
fn carry_out(bench: &Bench<'_>, state: &State, part: &Part) -> Result<Record, String> {
    let (began, start) = (record::now()?, Instant::now());
    let ended = bench.carry_out(part);
    let (result, words) = bench.result(&ended);
    let is_same = State::of(bench.root)? == *state;
    Ok(Record {
        part: part.name.clone(),
        commit: state.commit.clone(),
        part_of: None,
        clean: is_same && state.changes.is_empty(),
        began,
        seconds: start.elapsed().as_secs(),
        machine: Machine::here(),
        result,
        words,
        figures: ended.figures,
    })
}

/// Last lines: each part, and what failed.
fn conclude(records: &[Record]) -> Result<(), String> {
    if records.is_empty() {
        println!("nightly: all of this has passed on this commit; --again runs it anyhow");
        return Ok(());
    }
    println!("== nightly");
    records.iter().for_each(|record| println!("{}", line(record)));
    let found = records.iter().filter(|record| record.result == Outcome::Found);
    let found: Vec<&str> = found.map(|record| &*record.part).collect();
    if found.is_empty() {
        return Ok(());
    }
    let names = found.join(", ");
    Err(format!(
        "{} of {} parts found something: {names}; see target/nightly/PART.log",
        found.len(),
        records.len()
    ))
}

/// What is checked out.
#[derive(Debug, PartialEq, Eq)]
struct State {
    commit: String,
    /// Files that differ from it, other than what parts leave.
    changes: Vec<String>,
}

impl State {
    fn of(root: &Path) -> Result<Self, String> {
        let commit = process::output(git(root).args(["rev-parse", "HEAD"]))?.trim().to_owned();
        let said = process::output(git(root).args(["status", "--porcelain", "--untracked-files=all"]))?;
        Ok(State { commit, changes: changes(said.lines().filter_map(|line| line.get(3..))) })
    }

    /// Whether this commit is the one that is checked out, but for what parts leave.
    fn is_at(&self, root: &Path, commit: &str) -> bool {
        let differ = || process::output(git(root).args(["diff", "--name-only", commit, &self.commit]));
        commit == self.commit || differ().is_ok_and(|said| changes(said.lines()).is_empty())
    }
}

/// The files among these that parts do not leave themselves.
fn changes<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let folder = format!("{}/", record::FOLDER);
    let is_left =
        |path: &str| path == page::PAGE || path.starts_with(&folder) || path.starts_with("fuzz/corpus/");
    paths.filter(|path| !is_left(path)).map(str::to_owned).collect()
}

fn git(root: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(root);
    command
}

#[cfg(test)]
mod tests;
