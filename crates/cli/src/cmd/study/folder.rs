//! A study's folder: the plan, a record for each run that has ended, and what is rendered from them.
//!
//! A record is written under another name and renamed when its run has ended, and the plan likewise, so an interruption
//! at any time leaves whole files.

use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use authentick_report::load::LoadRecord;
use authentick_report::study::plan::{FILE, Paper, Part, PlanError, PlannedRun, StudyPlan};
use authentick_report::study::request_threshold;

use crate::exit::Failure;
use crate::files::{self, wrong};
use crate::output;

pub(super) const TEXT: &str = "report.txt";
pub(super) const PAGE: &str = "report.html";

/// A folder whose plan is known.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    pub(super) plan: StudyPlan,
}

/// The records that there are, by what they are for.
#[derive(Debug, Default)]
struct Records {
    one_host: Vec<LoadRecord>,
    several_hosts: Vec<LoadRecord>,
    old: Option<LoadRecord>,
    new: Option<LoadRecord>,
    missing_count: usize,
}

impl Folder {
    /// The study that is in `path`.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let plan = StudyPlan::from_json(&plan_text(path)?).map_err(|error| no_plan(path, &error))?;
        Ok(Folder { path: path.to_owned(), plan })
    }

    /// The study that is in `path` and has this plan, or a new one.
    pub(super) fn open(path: &Path, plan: StudyPlan) -> Result<Self, Failure> {
        if path.join(FILE).exists() {
            let folder = Folder::read(path)?;
            return match folder.plan.paper == plan.paper && folder.plan.settings == plan.settings {
                true => Ok(folder),
                false => Err(folder.of_another_kind()),
            };
        }
        fs::create_dir_all(path).map_err(|error| unwritable(path, &error))?;
        if let Some(run) = plan.runs.iter().find(|run| path.join(&run.file).exists()) {
            let problem = format!("it is in the way, as there is no {FILE} that says what it is");
            return Err(wrong(
                &path.join(&run.file),
                &problem,
                "remove it, or name another folder with --out",
            ));
        }
        let folder = Folder { path: path.to_owned(), plan };
        folder.keep_plan()?;
        Ok(folder)
    }

    fn of_another_kind(&self) -> Failure {
        let problem = format!(
            "the folder holds a study by authentick {} (commit {}) under other settings: {}",
            self.plan.settings.version, self.plan.settings.commit, self.plan.command
        );
        let remedy = format!(
            "repeat that command to go on with it, name another folder with --out, or remove {} and its run-*.json",
            self.path.join(FILE).display()
        );
        wrong(&self.path.join(FILE), &problem, &remedy)
    }

    /// Writes the plan.
    pub(super) fn keep_plan(&self) -> Result<(), Failure> {
        self.write(FILE, &self.plan.to_json())
    }

    /// Whether the record of a run is there and whole. An interrupted one is to be measured again.
    pub(super) fn has(&self, run: &PlannedRun) -> Result<bool, Failure> {
        Ok(self.record(run)?.is_some_and(|record| record.interrupted.is_none() && !record.steps.is_empty()))
    }

    /// The record of a run, if it is there.
    pub(super) fn record(&self, run: &PlannedRun) -> Result<Option<LoadRecord>, Failure> {
        record(&self.path, &run.file, Paper::Threshold, LoadRecord::from_json)
    }

    /// Puts a record of elsewhere into the folder.
    pub(super) fn keep(&self, run: &PlannedRun, record: &LoadRecord) -> Result<(), Failure> {
        self.write(&run.file, &record.to_json())
    }

    /// Where a run is to write its record until it has ended.
    pub(super) fn part(&self, run: &PlannedRun) -> PathBuf {
        self.path.join(format!("{}.part", run.file))
    }

    /// Takes over what a run has written, and reads it; `None` if it is not a record with a step.
    pub(super) fn take(&self, run: &PlannedRun) -> Result<Option<LoadRecord>, Failure> {
        let part = self.part(run);
        let record = fs::read_to_string(&part).ok().and_then(|text| LoadRecord::from_json(&text).ok());
        match record.filter(|record| !record.steps.is_empty()) {
            Some(record) => {
                let file = self.path.join(&run.file);
                fs::rename(&part, &file).map_err(|error| unwritable(&file, &error))?;
                Ok(Some(record))
            }
            None => {
                // It may not even be there.
                let _ = fs::remove_file(&part);
                Ok(None)
            }
        }
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        write(&self.path, name, text)
    }

    fn records(&self) -> Result<Records, Failure> {
        let mut records = Records::default();
        for run in &self.plan.runs {
            let Some(record) = self.record(run)? else {
                records.missing_count += 1;
                continue;
            };
            let row = match run.part {
                Part::Scale => continue,
                Part::Old => {
                    records.old = Some(record);
                    continue;
                }
                Part::New => {
                    records.new = Some(record);
                    continue;
                }
                Part::OneHost => &mut records.one_host,
                Part::SeveralHosts => &mut records.several_hosts,
            };
            // Rows stand beside the published ones by their order, so none may be missing before another.
            let before = self.plan.runs.iter().take_while(|other| other != &run);
            if row.len() != before.filter(|other| other.part == run.part).count() {
                return Err(self.gap(run.part, row.len()));
            }
            row.push(record);
        }
        Ok(records)
    }

    /// The row of a table is missing while later ones are there.
    fn gap(&self, part: Part, index: usize) -> Failure {
        let missing = self.plan.runs.iter().filter(|run| run.part == part).nth(index);
        let file = self.path.join(missing.map_or(FILE, |run| &run.file));
        let remedy = format!(
            "restore it, or repeat the command of the study, which measures it again: {}",
            self.plan.command
        );
        wrong(&file, "it is missing, and records of later rows are there", &remedy)
    }

    /// Writes text and page from what is in the folder, and prints the text.
    pub(super) fn render(&self) -> Result<(), Failure> {
        let records = self.records()?;
        let remarks = self.plan.remarks(records.missing_count);
        let old_new = records.old.as_ref().zip(records.new.as_ref());
        let (one, several) = (&records.one_host, &records.several_hosts);
        let text = request_threshold::text(one, several, old_new, &remarks);
        publish(&self.path, &text, &request_threshold::page(one, several, old_new, &remarks))
    }
}

/// The text of the plan that is in `path`.
pub(super) fn plan_text(path: &Path) -> Result<String, Failure> {
    let file = path.join(FILE);
    fs::read_to_string(&file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => wrong(
            &file,
            "there is no such file",
            "name the folder that authentick study run was given with --out",
        ),
        _ => unreadable(&file, &error),
    })
}

/// The paper whose study is in `path`.
pub(super) fn paper(path: &Path) -> Result<Paper, Failure> {
    Paper::of_plan(&plan_text(path)?).map_err(|error| no_plan(path, &error))
}

/// A plan that is not what it should be.
pub(super) fn no_plan(path: &Path, error: &PlanError) -> Failure {
    let remedy = match error {
        PlanError::Paper(_) => "name another folder with --out",
        _ => "restore it, or measure anew in another folder",
    };
    wrong(&path.join(FILE), &error.to_string(), remedy)
}

/// What the plan says that a folder has already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    /// Whether its settings are those of the study that is to begin.
    pub(super) is_the_same: bool,
    pub(super) version: &'a str,
    pub(super) commit: &'a str,
    pub(super) command: &'a str,
}

/// Makes sure that the folder holds this study, whose only record is `record`, or begins it there with this plan.
pub(super) fn begin(path: &Path, record: &str, known: Option<Known<'_>>, plan: &str) -> Result<(), Failure> {
    let file = path.join(FILE);
    if let Some(known) = known {
        if known.is_the_same {
            return Ok(());
        }
        let problem = format!(
            "the folder holds a study by authentick {} (commit {}) under other settings: {}",
            known.version, known.commit, known.command
        );
        let remedy = format!("name another folder with --out, or remove {} and {record}", file.display());
        return Err(wrong(&file, &problem, &remedy));
    }
    fs::create_dir_all(path).map_err(|error| unwritable(path, &error))?;
    if path.join(record).exists() {
        let problem = format!("it is in the way, as there is no {FILE} that says what it is");
        return Err(wrong(&path.join(record), &problem, "remove it, or name another folder with --out"));
    }
    write(path, FILE, plan)
}

/// The record `name` of a study of `paper` that is in `path`, if it is there; `parse` reads it.
pub(super) fn record<R, E: Display>(
    path: &Path,
    name: &str,
    paper: Paper,
    parse: impl FnOnce(&str) -> Result<R, E>,
) -> Result<Option<R>, Failure> {
    let file = path.join(name);
    let text = match fs::read_to_string(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| unreadable(&file, &error))?,
    };
    let remedy = format!(
        "restore it, or remove it and measure it again with authentick study run {} --out {}",
        paper.name(),
        path.display()
    );
    parse(&text).map(Some).map_err(|error| wrong(&file, &error.to_string(), &remedy))
}

/// The only record of a study is missing; `command` is what began the study.
pub(super) fn not_carried_out(path: &Path, record: &str, command: &str) -> Failure {
    let problem = "it is missing: the study was begun, and not carried out";
    wrong(&path.join(record), problem, &format!("repeat the command of the study: {command}"))
}

/// Writes a study's report as text and as a page, and prints the text.
pub(super) fn publish(path: &Path, text: &str, page: &str) -> Result<(), Failure> {
    write(path, TEXT, text)?;
    write(path, PAGE, page)?;
    output::result(&format!("{text}\nreport: {}\n", path.join(PAGE).display()));
    Ok(())
}

/// Writes a file of a study, whole or not at all.
pub(super) fn write(path: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let (file, part) = (path.join(name), path.join(format!("{name}.part")));
    let written = fs::write(&part, text).and_then(|()| fs::rename(&part, &file));
    written.map_err(|error| unwritable(&file, &error))
}

/// A file of a study that cannot be read, with the remedy.
pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    files::unreadable(path, error, "it is to be JSON in UTF-8; restore it", "name a folder that can be read")
}

pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    files::unwritable(path, error, "name a folder that can be written")
}
