//! What becomes of a folder, by a paper that is in memory alone: it measures how often it was asked to.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};

use authentick_report::Host;
use serde::{Deserialize, Serialize};

use super::*;
use crate::program::Program;
use crate::{Caller, Console, Fault, carry_out};

/// A plan of so many rows under one setting; on the disk it passes for one of a paper that there is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-study/1")]
struct Rows {
    paper: Paper,
    setting: u32,
    files: Vec<String>,
}

impl Rows {
    fn new(setting: u32, count: usize) -> Self {
        let files = (1..=count).map(|row| format!("run-{row}.json")).collect();
        Rows { paper: Self::PAPER, setting, files }
    }
}

impl Stored for Rows {
    const FORMAT: &'static str = "authentick-study/1";
    const WHAT: &'static str = "rows";

    fn provenance(&self) -> Provenance<'_> {
        let command = "authentick study run rows";
        Provenance { version: "0.0.1", commit: "c0ffee", command, started_unix_s: 0, host: None }
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Plan for Rows {
    const PAPER: Paper = Paper::Mac;
    const NAME: &'static str = "rows";

    fn has_settings_of(&self, other: &Self) -> bool {
        self.setting == other.setting
    }

    fn files(&self) -> Vec<&str> {
        self.files.iter().map(String::as_str).collect()
    }

    fn render(folder: &Folder<Self>) -> Result<[String; 2], Error> {
        let mut text = Vec::new();
        for file in folder.plan.files() {
            text.push(folder.record(file, str::parse::<u32>)?.map_or("-".to_owned(), |row| row.to_string()));
        }
        Ok([text.join(" "), format!("<p>{}</p>", text.join(" "))])
    }
}

/// The paper. Each row is the number of rows that this value has measured until then.
struct Counting {
    plan: Rows,
    measured: Cell<u32>,
    stop_after: Option<u32>,
}

impl Counting {
    fn new(setting: u32, count: usize) -> Self {
        Counting { plan: Rows::new(setting, count), measured: Cell::new(0), stop_after: None }
    }
}

impl crate::Paper for Counting {
    type Plan = Rows;

    fn plan(&self, _: &Caller<'_>) -> Rows {
        self.plan.clone()
    }

    fn run(&self, folder: &mut Folder<Rows>, caller: &Caller<'_>) -> Result<(), Error> {
        for file in folder.plan.files() {
            if caller.says_stop() {
                break;
            }
            if folder.record(file, str::parse::<u32>)?.is_none() {
                self.measured.set(self.measured.get() + 1);
                folder.keep(file, &self.measured.get().to_string())?;
                caller.console.note(file);
                caller.stop.store(self.stop_after == Some(self.measured.get()), Ordering::Relaxed);
            }
        }
        Ok(())
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

/// Carries the study out; the report, and what was said meanwhile.
fn study(paper: &Counting, path: &Path) -> Result<(Report, Vec<String>), Error> {
    let program = Program {
        path: PathBuf::new(),
        version: String::new(),
        commit: String::new(),
        command: String::new(),
        host: Host { cpu: String::new(), cpu_count: 1, kernel: String::new() },
        fault_of: |_| Fault::Program,
    };
    let (console, stop) = (Heard::default(), AtomicBool::new(false));
    let caller = Caller { program: &program, console: &console, stop: &stop };
    let report = carry_out(paper, path, &caller)?;
    Ok((report, console.0.into_inner()))
}

/// The failure of a study, whose message has all these parts.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, parts: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.fault(), Fault::User);
    let message = error.to_string();
    parts.iter().for_each(|part| assert!(message.contains(part), "{part:?} is not in {message:?}"));
}

#[test]
fn study_is_kept_and_rendered_in_a_folder_that_it_makes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er");
    let (report, heard) = study(&Counting::new(1, 3), &path).unwrap();
    assert_eq!(
        (report.text.as_str(), heard),
        ("1 2 3", vec!["run-1.json".into(), "run-2.json".into(), "run-3.json".into()])
    );
    assert_eq!(fs::read_to_string(report.page).unwrap(), "<p>1 2 3</p>");
    assert_eq!(fs::read_to_string(path.join("report.txt")).unwrap(), "1 2 3");
    let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["report.html", "report.txt", "run-1.json", "run-2.json", "run-3.json", "study.json"]);
    let again = Folder::<Rows>::read(&path).unwrap();
    assert_eq!(again.plan, Rows::new(1, 3));
    assert_eq!(again.publish().unwrap().text, "1 2 3");
}

#[test]
fn interrupted_study_goes_on_with_what_is_missing_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let first = Counting { stop_after: Some(2), ..Counting::new(1, 4) };
    assert_eq!(study(&first, folder.path()).unwrap().0.text, "1 2 - -");
    let second = Counting::new(1, 4);
    assert_eq!(study(&second, folder.path()).unwrap().0.text, "1 2 1 2");
    fs::remove_file(folder.path().join("run-2.json")).unwrap();
    let third = Counting::new(1, 4);
    assert_eq!(study(&third, folder.path()).unwrap().0.text, "1 1 1 2");
    assert_eq!(third.measured.get(), 1);
    let fourth = Counting::new(1, 4);
    study(&fourth, folder.path()).unwrap();
    assert_eq!(fourth.measured.get(), 0, "nothing is left to measure");
}

#[test]
fn plan_of_the_folder_holds_and_not_that_of_whoever_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    study(&Counting::new(1, 2), folder.path()).unwrap();
    // The settings are the same; how many rows there are was decided when the study began.
    let opened = Folder::open(folder.path(), Rows::new(1, 5)).unwrap();
    assert_eq!(opened.plan.files.len(), 2);
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
    assert_eq!(other.measured.get(), 0);
    assert_eq!(Folder::<Rows>::read(folder.path()).unwrap().plan, Rows::new(1, 2));

    // A study of one record names it.
    let folder = tempfile::tempdir().unwrap();
    study(&Counting::new(1, 1), folder.path()).unwrap();
    refused(study(&Counting::new(2, 1), folder.path()), &["or remove ", "study.json and run-1.json"]);
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
    fs::write(path.join("run-2.json"), "x").unwrap();
    let remedy = format!("measure it again with authentick study run rows --out {}", path.display());
    refused(study(&Counting::new(1, 3), path), &["run-2.json: ", &remedy]);
    refused(Folder::<Rows>::read(path).unwrap().publish(), &["run-2.json: ", &remedy]);
    fs::write(path.join("run-2.json"), [0xFF]).unwrap();
    refused(study(&Counting::new(1, 3), path), &["cannot read", "run-2.json", "it is to be JSON in UTF-8"]);
    fs::write(path.join(FILE), "half a pl").unwrap();
    refused(study(&Counting::new(1, 3), path), &["study.json: ", "measure anew in another folder"]);
    refused(study(&Counting::new(1, 3), Path::new("/dev/null/x")), &["cannot write /dev/null/x"]);
    let folder = Folder { path: path.to_owned(), plan: Rows::new(1, 3) };
    refused(
        Err::<(), _>(folder.gap("run-2.json")),
        &["run-2.json: it is missing, and records of later rows"],
    );
    refused(Err::<(), _>(folder.not_carried_out("run-1.json")), &["not carried out", "study run rows"]);
}

#[test]
fn record_counts_once_its_run_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::open(folder.path(), Rows::new(1, 1)).unwrap();
    let part = folder.part("run-1.json");
    assert_eq!(folder.take("run-1.json", |text| text.parse::<u32>().ok()).unwrap(), None);
    fs::write(&part, "7 and the rest is mis").unwrap();
    assert_eq!(folder.take("run-1.json", |text| text.parse::<u32>().ok()).unwrap(), None);
    assert!(!part.exists() && folder.record("run-1.json", str::parse::<u32>).unwrap().is_none());
    fs::write(&part, "7").unwrap();
    assert_eq!(folder.take("run-1.json", |text| text.parse::<u32>().ok()).unwrap(), Some(7));
    assert_eq!(folder.record("run-1.json", str::parse::<u32>).unwrap(), Some(7));
    assert!(!part.exists());
}
