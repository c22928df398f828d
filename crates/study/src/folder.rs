//! A study's folder: the plan, a record for each run that has ended, and what is rendered from them.
//!
//! A record is written under another name and renamed when its run has ended, and the plan likewise, so an interruption
//! at any time leaves whole files.

use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use authentick_report::stored::{Error as PlanError, Provenance, Stored, pretty};
use authentick_report::study::{FILE, Paper, read};
use serde::Serialize;

use crate::Error;

const TEXT: &str = "report.txt";
const PAGE: &str = "report.html";

/// What a folder says of the study that it holds: stored when the study begins.
pub trait Plan: Stored + Serialize {
    /// The paper, as the file says.
    const PAPER: Paper;
    /// The paper, as the command line calls it.
    const NAME: &'static str = Self::PAPER.name();

    /// Whether a study under `other` goes on with what was measured under this plan.
    fn has_settings_of(&self, other: &Self) -> bool;

    /// The names of its records, in the order of measuring.
    fn files(&self) -> Vec<&str>;

    /// What is rendered from the folder, as text and as a page.
    ///
    /// # Errors
    /// If a record is not whole, or one is missing that others rest on.
    fn render(folder: &Folder<Self>) -> Result<[String; 2], Error>;
}

/// A folder whose plan is known.
#[derive(Debug)]
pub struct Folder<P> {
    path: PathBuf,
    /// The plan.
    pub plan: P,
}

/// What was rendered: the text, and where the page is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The report as text.
    pub text: String,
    /// The page with the same, in the folder.
    pub page: PathBuf,
}

impl<P: Plan> Folder<P> {
    /// The study that is in `path`.
    ///
    /// # Errors
    /// If there is none, or one of another paper.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let plan = read(&plan_text(path)?, P::PAPER).map_err(|error| no_plan(path, &error))?;
        Ok(Folder { path: path.to_owned(), plan })
    }

    /// The study that is in `path` if it has these settings, or a new one by this plan.
    ///
    /// # Errors
    /// If the folder holds another study, or records without a plan, or cannot be read or written.
    pub fn open(path: &Path, plan: P) -> Result<Self, Error> {
        if path.join(FILE).exists() {
            let folder = Folder::<P>::read(path)?;
            return match folder.plan.has_settings_of(&plan) {
                true => Ok(folder),
                false => Err(folder.of_another_kind()),
            };
        }
        fs::create_dir_all(path).map_err(|error| Error::unwritable(path, &error))?;
        if let Some(file) = plan.files().iter().map(|name| path.join(name)).find(|file| file.exists()) {
            let problem = format!("it is in the way, as there is no {FILE} that says what it is");
            return Err(Error::wrong(&file, &problem, "remove it, or name another folder with --out"));
        }
        let folder = Folder { path: path.to_owned(), plan };
        folder.keep_plan()?;
        Ok(folder)
    }

    fn of_another_kind(&self) -> Error {
        let (file, Provenance { version, commit, command, .. }) =
            (self.path.join(FILE), self.plan.provenance());
        let problem = format!(
            "the folder holds a study by authentick {version} (commit {commit}) under other settings: {command}"
        );
        let remedy = match self.plan.files()[..] {
            [record] => {
                format!("name another folder with --out, or remove {} and {record}", file.display())
            }
            _ => format!(
                "repeat that command to go on with it, name another folder with --out, or remove {} and its run-*.json",
                file.display()
            ),
        };
        Error::wrong(&file, &problem, &remedy)
    }

    /// Writes the plan.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_plan(&self) -> Result<(), Error> {
        self.keep(FILE, &pretty(&self.plan))
    }

    /// The record `name`, if it is there; `parse` reads it.
    ///
    /// # Errors
    /// If it is there and not whole.
    pub fn record<R, E: Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<R, E>,
    ) -> Result<Option<R>, Error> {
        let file = self.path.join(name);
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| Error::unreadable(&file, &error))?,
        };
        let remedy = format!(
            "restore it, or remove it and measure it again with authentick study run {} --out {}",
            P::NAME,
            self.path.display()
        );
        parse(&text).map(Some).map_err(|error| Error::wrong(&file, &error.to_string(), &remedy))
    }

    /// Writes a file of the study, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, name: &str, text: &str) -> Result<(), Error> {
        let (file, part) = (self.path.join(name), self.part(name));
        let written = fs::write(&part, text).and_then(|()| fs::rename(&part, &file));
        written.map_err(|error| Error::unwritable(&file, &error))
    }

    /// Where a run is to write its record until it has ended.
    #[must_use]
    pub fn part(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.part"))
    }

    /// Takes over what a run has written as its record; `None` if `parse` makes nothing of it.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn take<R>(&self, name: &str, parse: impl FnOnce(&str) -> Option<R>) -> Result<Option<R>, Error> {
        let part = self.part(name);
        let record = fs::read_to_string(&part).ok().and_then(|text| parse(&text));
        if record.is_some() {
            let file = self.path.join(name);
            fs::rename(&part, &file).map_err(|error| Error::unwritable(&file, &error))?;
        } else {
            // It may not even be there.
            let _ = fs::remove_file(&part);
        }
        Ok(record)
    }

    /// The only record of a study is missing.
    pub(crate) fn not_carried_out(&self, record: &str) -> Error {
        let remedy = format!("repeat the command of the study: {}", self.plan.provenance().command);
        let problem = "it is missing: the study was begun, and not carried out";
        Error::wrong(&self.path.join(record), problem, &remedy)
    }

    /// A record is missing while later ones are there, which stand beside published ones by their order.
    pub(crate) fn gap(&self, record: &str) -> Error {
        let remedy = format!(
            "restore it, or repeat the command of the study, which measures it again: {}",
            self.plan.provenance().command
        );
        let problem = "it is missing, and records of later rows are there";
        Error::wrong(&self.path.join(record), problem, &remedy)
    }

    /// Writes the study's report as text and as a page.
    ///
    /// # Errors
    /// If a record is not whole, or the folder cannot be written.
    pub fn publish(&self) -> Result<Report, Error> {
        let [text, page] = P::render(self)?;
        self.keep(TEXT, &text)?;
        self.keep(PAGE, &page)?;
        Ok(Report { text, page: self.path.join(PAGE) })
    }
}

/// The text of the plan that is in `path`.
pub(crate) fn plan_text(path: &Path) -> Result<String, Error> {
    let file = path.join(FILE);
    fs::read_to_string(&file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::wrong(
            &file,
            "there is no such file",
            "name the folder that authentick study run was given with --out",
        ),
        _ => Error::unreadable(&file, &error),
    })
}

/// A plan that is not what it should be.
pub(crate) fn no_plan(path: &Path, error: &PlanError) -> Error {
    let remedy = match error {
        PlanError::Paper(_) => "name another folder with --out",
        _ => "restore it, or measure anew in another folder",
    };
    Error::wrong(&path.join(FILE), &error.to_string(), remedy)
}

#[cfg(test)]
mod tests;
