//! What becomes of a folder, by a paper that is in memory alone: it measures how often it was asked to.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use authentick_report::Report;
use authentick_report::study::{Outcome, Paper as Stored};
use serde::{Deserialize, Serialize};

use super::*;
use crate::paper::{Found, Planned};
use crate::program::Program;
use crate::{Caller, Console, Fault, Paper, carry_out};

/// The settings; on the disk the plan passes for one of a paper that there is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Rows {
    setting: u32,
}

impl Settings for Rows {
    const PAPER: Stored = Stored::Mac;
    type Found = Vec<String>;
}

/// What a row brings, if not the number of rows that were measured until then.
#[derive(Clone, Copy, PartialEq)]
enum Turn {
    Invalid,
    Infeasible,
    Failure,
    Stop,
    Fill,
}

/// The paper. Each row is the number of rows that this value has measured until then.
struct Counting {
    setting: u32,
    count: usize,
    measured: Cell<u32>,
    stop_after: Option<u32>,
    turns: Vec<(&'static str, Turn)>,
}

impl Counting {
    fn new(setting: u32, count: usize) -> Self {
        Counting { setting, count, measured: Cell::new(0), stop_after: None, turns: Vec::new() }
    }

    fn tasks(&self) -> Vec<Task> {
        (1..=self.count).map(|row| Task::new(row.to_string(), "row", 60.0, row as u8)).collect()
    }
}

impl Paper for Counting {
    type Settings = Rows;
    type Rig<'a> = Caller<'a>;

    fn plan(&self) -> Planned<Rows> {
        Planned { settings: Rows { setting: self.setting }, found: Vec::new(), tasks: self.tasks() }
    }

    fn obstacles(&self) -> Vec<String> {
        Vec::new()
    }

    fn rig<'a>(&'a self, folder: &mut Folder<Rows>, caller: Caller<'a>) -> Result<Caller<'a>, Error> {
        folder.plan.found.push("a rig was made".to_owned());
        Ok(caller)
    }

    fn run(&self, task: &Task, caller: &mut Caller<'_>, folder: &mut Folder<Rows>) -> Result<Found, Error> {
        self.measured.set(self.measured.get() + 1);
        let record = self.measured.get().to_string();
        caller.stop.store(self.stop_after == Some(self.measured.get()), Ordering::Relaxed);
        let turn = self.turns.iter().find(|(id, _)| *id == task.id).map(|(_, turn)| *turn);
        Ok(match turn {
            None => Found::Measured { record, line: format!("row {}", task.id) },
            Some(Turn::Invalid) => Found::Invalid { record, why: "too late".to_owned() },
            Some(Turn::Infeasible) => Found::Infeasible("no root".to_owned()),
            Some(Turn::Stop) => Found::Stopped(Some(record)),
            Some(Turn::Failure) => return Err(Error::Bug("the rig broke".to_owned())),
            Some(Turn::Fill) => {
                // A full disk: the record's place cannot be written.
                fs::create_dir(folder.path.join(&task.file)).unwrap();
                Found::Measured { record, line: String::new() }
            }
        })
    }

    fn render(folder: &Folder<Rows>) -> Result<Report, Error> {
        let mut text = Vec::new();
        for task in &folder.plan.tasks {
            text.push(folder.record(task, str::parse::<u32>)?.map_or("-".to_owned(), |row| row.to_string()));
        }
        let rows = std::iter::once(text.join(" "));
        Ok(Report::of_sentences("Rows", rows.chain(folder.plan.gaps())))
    }
}

/// A console that remembers.
#[derive(Default)]
struct Heard(RefCell<Vec<String>>);

impl Console for Heard {
    fn note(&self, line: &str) {
        self.0.borrow_mut().push(line.to_owned());
    }

    fn warn(&self, line: &str) {
        self.note(line);
    }

    fn progress(&self, done: u32, of: u32) {
        self.note(&format!("{done}/{of}"));
    }
}

fn program(commit: &str, cpu: &str) -> Program {
    Program {
        path: PathBuf::new(),
        version: "0.0.1".to_owned(),
        commit: commit.to_owned(),
        command: "authentick study run rows".to_owned(),
        host: Host {
            cpu: cpu.to_owned(),
            cpu_count: 1,
            online_cpu_count: None,
            cpu_quota_millicpus: None,
            memory_octets: None,
            kernel: String::new(),
        },
        fault_of: |_| Fault::Program,
    }
}

fn by(
    program: &Program,
    paper: &Counting,
    path: &Path,
    ceiling: Option<Duration>,
) -> Result<(Rendered, Vec<String>), Error> {
    let (console, stop) = (Heard::default(), AtomicBool::new(false));
    let caller = Caller { program, console: &console, stop: &stop };
    let rendered = carry_out(paper, path, ceiling, &caller)?;
    Ok((rendered, console.0.into_inner()))
}

/// Carries the study out; the rows, and what was said meanwhile.
fn study(paper: &Counting, path: &Path) -> Result<(String, Vec<String>), Error> {
    let (rendered, heard) = by(&program("c0ffee", "a cpu"), paper, path, None)?;
    Ok((rows(&rendered.text), heard))
}

/// The line with the rows.
fn rows(text: &str) -> String {
    let is_row =
        |line: &&str| line.chars().all(|c| c.is_ascii_digit() || c == ' ' || c == '-') && !line.is_empty();
    text.lines().find(is_row).unwrap_or_default().to_owned()
}

fn outcomes(path: &Path) -> Vec<Option<Outcome>> {
    let folder = Folder::<Rows>::read(path).unwrap();
    folder.plan.tasks.iter().map(|task| task.end.as_ref().map(|end| end.outcome)).collect()
}

/// The failure of a study, whose message has all these parts.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, parts: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.fault(), Fault::User, "{error}");
    let message = error.to_string();
    parts.iter().for_each(|part| assert!(message.contains(part), "{part:?} is not in {message:?}"));
}

#[test]
fn study_is_kept_and_rendered_in_a_folder_that_it_makes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er");
    let (rendered, heard) = by(&program("c0ffee", "a cpu"), &Counting::new(1, 3), &path, None).unwrap();
    assert_eq!(rows(&rendered.text), "1 2 3");
    assert_eq!(heard[0], "3 tasks to measure, about 3 min");
    assert_eq!(heard[1..], ["[1/3, 0 s left] row 1", "[2/3, 0 s left] row 2", "[3/3, 0 s left] row 3"]);
    let page = fs::read_to_string(rendered.page).unwrap();
    assert!(page.contains("1 2 3"));
    for file in ["study.json", "run-1.json", "run-2.json", "run-3.json"] {
        assert!(
            page.contains(&format!("<a href=\"{file}\">{file}</a>")) && path.join(file).exists(),
            "{file}"
        );
    }
    assert!(fs::read_to_string(path.join("report.md")).unwrap().contains("1 2 3"));
    assert_eq!(fs::read_to_string(path.join("report.txt")).unwrap(), rendered.text);
    let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        ["report.html", "report.md", "report.txt", "run-1.json", "run-2.json", "run-3.json", "study.json"]
    );
    let again = Folder::<Rows>::read(&path).unwrap();
    assert_eq!(again.plan.settings, Rows { setting: 1 });
    for task in &again.plan.tasks {
        let end = task.end.as_ref().unwrap();
        assert_eq!((end.outcome, &end.why), (Outcome::Measured, &None));
        let record = fs::read_to_string(path.join(&task.file)).unwrap();
        assert_eq!(end.sha256.as_deref(), Some(digest(&record).as_str()));
        assert!(end.started_unix_s > 0 && end.boot_id.is_some() && end.steal_seconds.is_some(), "{end:?}");
    }
    assert_eq!(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

#[test]
fn interrupted_study_goes_on_with_what_is_missing_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let first = Counting { stop_after: Some(2), ..Counting::new(1, 4) };
    assert_eq!(study(&first, folder.path()).unwrap().0, "1 2 - -");
    assert_eq!(study(&Counting::new(1, 4), folder.path()).unwrap().0, "1 2 1 2");
    fs::remove_file(folder.path().join("run-2.json")).unwrap();
    let third = Counting::new(1, 4);
    assert_eq!(study(&third, folder.path()).unwrap().0, "1 1 1 2");
    assert_eq!(third.measured.get(), 1);
    let fourth = Counting::new(1, 4);
    let (_, heard) = study(&fourth, folder.path()).unwrap();
    assert_eq!((fourth.measured.get(), heard), (0, Vec::new()), "nothing is left to measure");
    // A rig was made each time that there was something to measure.
    assert_eq!(Folder::<Rows>::read(folder.path()).unwrap().plan.found.len(), 3);
}

#[test]
fn what_brought_nothing_is_said_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let turns = vec![("1", Turn::Invalid), ("2", Turn::Infeasible), ("3", Turn::Stop)];
    let first = Counting { turns, stop_after: Some(3), ..Counting::new(1, 4) };
    let (rendered, heard) = by(&program("c0ffee", "a cpu"), &first, folder.path(), None).unwrap();
    assert_eq!(rows(&rendered.text), "1 - 3 -", "what was stopped is kept");
    for part in ["1: too late.", "2: no root.", "3: it was stopped", "1 of 4 tasks is not measured yet"] {
        assert!(rendered.text.contains(part), "{part}\n{}", rendered.text);
    }
    assert!(heard.iter().any(|line| line.ends_with("2: not measured: no root")), "{heard:?}");
    let expected = [Outcome::Invalid, Outcome::Infeasible, Outcome::Stopped].map(Some);
    assert_eq!(outcomes(folder.path()), [&expected[..], &[None]].concat());
    // What does not count was tried often enough; the others are tried again.
    assert_eq!(study(&Counting::new(1, 4), folder.path()).unwrap().0, "1 1 2 3");
}

#[test]
fn failure_ends_the_study_and_keeps_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let broken = Counting { turns: vec![("2", Turn::Failure)], ..Counting::new(1, 3) };
    assert_eq!(study(&broken, folder.path()).unwrap_err().to_string(), "the rig broke");
    assert_eq!(outcomes(folder.path()), [Some(Outcome::Measured), None, None]);
    // Nor is a record that could not be written said to be there.
    let full = Counting { turns: vec![("3", Turn::Fill)], ..Counting::new(1, 3) };
    refused(study(&full, folder.path()), &["cannot write", "run-3.json"]);
    assert_eq!(outcomes(folder.path()), [Some(Outcome::Measured), Some(Outcome::Measured), None]);
    fs::remove_dir(folder.path().join("run-3.json")).unwrap();
    assert_eq!(study(&Counting::new(1, 3), folder.path()).unwrap().0, "1 1 1");
}

#[test]
fn ceiling_leaves_out_what_matters_least_and_more_time_measures_it() {
    let folder = tempfile::tempdir().unwrap();
    let minutes = |count: u64| Some(Duration::from_secs(60 * count));
    let first = Counting::new(1, 4);
    let program = program("c0ffee", "a cpu");
    // Rows are done at once, but each is expected to take a minute; after the first one it is known better.
    let (_, heard) = by(&program, &first, folder.path(), minutes(2)).unwrap();
    assert_eq!(heard[0], "2 tasks to measure, about 2 min");
    assert_eq!(heard[1], "no time for 2 tasks (--minutes): 3, 4");
    assert_eq!(outcomes(folder.path()), [Some(Outcome::Measured); 4], "there was time after all");

    // Time that is spent is spent, whoever interrupted the study.
    let mut held = Folder::<Rows>::read(folder.path()).unwrap();
    for task in &mut held.plan.tasks[..2] {
        task.end.as_mut().unwrap().seconds = 50.0;
    }
    held.plan.tasks[2].end = None;
    held.plan.tasks[3].end = None;
    held.keep_plan().unwrap();
    let (rendered, _) = by(&program, &Counting::new(1, 4), folder.path(), minutes(2)).unwrap();
    assert_eq!(outcomes(folder.path())[2..], [Some(Outcome::Cut), Some(Outcome::Cut)]);
    assert!(rendered.text.contains("the study may take 2 min (--minutes)"), "{}", rendered.text);
    by(&program, &Counting::new(1, 4), folder.path(), minutes(3)).unwrap();
    assert_eq!(outcomes(folder.path())[2..], [Some(Outcome::Measured); 2], "50 s are expected of the third");

    let empty = tempfile::tempdir().unwrap();
    let none = by(&program, &Counting::new(1, 4), empty.path(), Some(Duration::from_secs(3)));
    refused(none, &["--minutes: there is no time to measure anything in 3 s", "takes about 60 s", "4 min"]);
}

#[test]
fn what_cannot_be_measured_takes_no_time_from_what_can() {
    let folder = tempfile::tempdir().unwrap();
    let program = program("abc", "a processor");
    let turns = vec![("1", Turn::Infeasible), ("2", Turn::Infeasible)];
    let paper = Counting { turns, ..Counting::new(1, 3) };
    // The time for two of three.
    by(&program, &paper, folder.path(), Some(Duration::from_secs(130))).unwrap();
    let infeasible = Some(Outcome::Infeasible);
    assert_eq!(outcomes(folder.path()), [infeasible, infeasible, Some(Outcome::Measured)]);
}

#[test]
fn plan_of_the_folder_holds_and_not_that_of_whoever_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    study(&Counting::new(1, 2), folder.path()).unwrap();
    // The settings are the same; how many rows there are was decided when the study began.
    assert_eq!(study(&Counting::new(1, 5), folder.path()).unwrap().0, "1 2");
}

#[test]
fn folder_of_another_study_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    study(&Counting::new(1, 2), folder.path()).unwrap();
    let other = Counting::new(2, 2);
    refused(
        study(&other, folder.path()),
        &[
            "study.json: the folder holds a study by authentick 0.0.1 (commit c0ffee) under other settings",
            "authentick study run rows; repeat that command",
            "its run-*.json",
        ],
    );
    let same = Counting::new(1, 2);
    let with = |commit: &str, cpu: &str| by(&program(commit, cpu), &same, folder.path(), None);
    refused(with("decade", "a cpu"), &["(commit c0ffee) by another build than this one (commit decade)"]);
    refused(with("c0ffee", "b cpu"), &["on another machine (a cpu, 1 processors"]);
    assert_eq!((other.measured.get(), same.measured.get()), (0, 0));
    assert_eq!(Folder::<Rows>::read(folder.path()).unwrap().plan.settings, Rows { setting: 1 });

    // A study of one record names it.
    let folder = tempfile::tempdir().unwrap();
    study(&Counting::new(1, 1), folder.path()).unwrap();
    refused(study(&Counting::new(2, 1), folder.path()), &["or remove ", "study.json and run-1.json"]);
}

#[test]
fn folder_that_is_in_use_is_refused_and_may_be_rendered() {
    let folder = tempfile::tempdir().unwrap();
    study(&Counting::new(1, 2), folder.path()).unwrap();
    let held = lock(folder.path()).unwrap();
    refused(
        study(&Counting::new(1, 2), folder.path()),
        &["another process measures into this folder", "--out"],
    );
    let read = Folder::<Rows>::read(folder.path()).unwrap();
    let report = Counting::render(&read).unwrap();
    publish(folder.path(), &report.text(), &report.markdown(), &report.page()).unwrap();
    drop(held);
    study(&Counting::new(1, 2), folder.path()).unwrap();
}

#[test]
fn records_without_a_plan_are_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    study(&Counting::new(1, 3), folder.path()).unwrap();
    fs::remove_file(folder.path().join(FILE)).unwrap();
    fs::remove_file(folder.path().join("run-1.json")).unwrap();
    refused(
        study(&Counting::new(1, 3), folder.path()),
        &["run-2.json: it is in the way", "another folder with --out"],
    );
    assert!(!folder.path().join(FILE).exists(), "nothing was begun");
}

#[test]
fn damage_is_told_with_the_file_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    refused(Folder::<Rows>::read(path), &["study.json: there is no such file", "with --out"]);
    study(&Counting::new(1, 3), path).unwrap();
    let remedy = "remove it and measure it again with the command of the study: authentick study run rows";
    let rendered = || Counting::render(&Folder::<Rows>::read(path).unwrap());
    // Another number is a record, but not the one that was measured.
    fs::write(path.join("run-2.json"), "7").unwrap();
    for result in [study(&Counting::new(1, 3), path).map(drop), rendered().map(drop)] {
        refused(result, &["run-2.json: it is not what was measured", "SHA-256", remedy]);
    }
    fs::remove_file(path.join("run-2.json")).unwrap();
    refused(rendered().map(drop), &["run-2.json: it is missing", remedy]);
    fs::write(path.join("run-2.json"), [0xFF]).unwrap();
    refused(study(&Counting::new(1, 3), path), &["cannot read", "run-2.json", "it is to be JSON in UTF-8"]);
    fs::write(path.join(FILE), "half a pl").unwrap();
    refused(study(&Counting::new(1, 3), path), &["study.json: ", "measure anew in another folder"]);
    refused(study(&Counting::new(1, 3), Path::new("/dev/null/x")), &["cannot write /dev/null/x"]);
}

/// What a process leaves that is killed between a record and the plan is measured again.
#[test]
fn record_that_the_plan_does_not_know_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    study(&Counting { stop_after: Some(1), ..Counting::new(1, 2) }, folder.path()).unwrap();
    fs::write(folder.path().join("run-2.json"), "99").unwrap();
    assert_eq!(rows(&render_text(folder.path())), "1 -");
    assert_eq!(study(&Counting::new(1, 2), folder.path()).unwrap().0, "1 1");
}

fn render_text(path: &Path) -> String {
    Counting::render(&Folder::<Rows>::read(path).unwrap()).unwrap().text()
}
