//! A study's folder: the plan, a record for each task that has ended, and what is rendered from them.
//!
//! A record is written whole or not at all, and then the plan, which has its SHA-256. So an interruption at any time
//! leaves whole files, and a record that was changed, or comes from elsewhere, is noticed. One process at a time
//! measures into a folder; others may render it meanwhile.

use std::fmt::Display;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authentick_net::report_file;
use authentick_report::Host;
use authentick_report::stored::Error as PlanError;
use authentick_report::study::{FILE, Plan, Settings, Task};
use aws_lc_rs::digest as hash;

use crate::Error;

const TEXT: &str = "report.txt";
const MARKDOWN: &str = "report.md";
const PAGE: &str = "report.html";
/// How often a lock is tried again that somebody has, and after which time.
const LOCK_COUNT_MAX: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A folder whose plan is known.
#[derive(Debug)]
pub struct Folder<S: Settings> {
    path: PathBuf,
    /// The plan.
    pub plan: Plan<S>,
    /// Holds the folder's lock, if this process measures into it.
    _lock: Option<File>,
}

/// What was rendered: the text, and where the page is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The report as text.
    pub text: String,
    /// The page with the same, in the folder.
    pub page: PathBuf,
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    let digest = hash::digest(&hash::SHA256, text.as_bytes());
    digest.as_ref().iter().map(|octet| format!("{octet:02x}")).collect()
}

impl<S: Settings> Folder<S> {
    /// The study that is in `path`, to be rendered.
    ///
    /// # Errors
    /// If there is none, or one of another paper.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let plan = Plan::from_json(&plan_text(path)?).map_err(|error| no_plan(path, &error))?;
        Ok(Folder { path: path.to_owned(), plan, _lock: None })
    }

    /// The study that is in `path` if it is the one that `plan` would begin, or a new one by this plan.
    ///
    /// # Errors
    /// If another process measures into the folder, if it holds another study, or records without a plan, or if it
    /// cannot be read or written.
    pub fn open(path: &Path, plan: Plan<S>) -> Result<Self, Error>
    where
        S: PartialEq,
    {
        fs::create_dir_all(path).map_err(|error| Error::unwritable(path, &error))?;
        let lock = Some(lock(path)?);
        if path.join(FILE).exists() {
            let folder = Folder { _lock: lock, ..Folder::<S>::read(path)? };
            return match folder.difference(&plan) {
                None => Ok(folder),
                Some(difference) => Err(folder.of_another_kind(&difference)),
            };
        }
        if let Some(file) = plan.tasks.iter().map(|task| path.join(&task.file)).find(|file| file.exists()) {
            let problem = format!("it is in the way, as there is no {FILE} that says what it is");
            return Err(Error::wrong(&file, &problem, "remove it, or name another folder with --out"));
        }
        let folder = Folder { path: path.to_owned(), plan, _lock: lock };
        folder.keep_plan()?;
        Ok(folder)
    }

    /// Why a study that begins now would be another one than this, in half a sentence; `None` if it would not.
    fn difference(&self, new: &Plan<S>) -> Option<String>
    where
        S: PartialEq,
    {
        let known = |host: &Host| (host.cpu.clone(), host.cpu_count, host.kernel.clone());
        if self.plan.settings != new.settings {
            Some("under other settings".to_owned())
        } else if (&self.plan.version, &self.plan.commit) != (&new.version, &new.commit) {
            Some(format!("by another build than this one (commit {})", new.commit))
        } else if known(&self.plan.machine) != known(&new.machine) {
            let Host { cpu, cpu_count, kernel, .. } = &self.plan.machine;
            Some(format!("on another machine ({cpu}, {cpu_count} processors, {kernel})"))
        } else {
            None
        }
    }

    fn of_another_kind(&self, difference: &str) -> Error {
        let Plan { version, commit, command, tasks, .. } = &self.plan;
        let file = self.path.join(FILE);
        let problem = format!(
            "the folder holds a study by authentick {version} (commit {commit}) {difference}: {command}"
        );
        let records = match &tasks[..] {
            [task] => task.file.clone(),
            _ => "its run-*.json".to_owned(),
        };
        let remedy = format!(
            "repeat that command as it was to go on with it, name another folder with --out, or remove {} \
             and {records}",
            file.display()
        );
        Error::wrong(&file, &problem, &remedy)
    }

    /// Tasks whose records somebody removed are to be measured again.
    ///
    /// # Errors
    /// If the plan cannot be written.
    pub(crate) fn reopen_what_is_missing(&mut self) -> Result<(), Error> {
        let mut is_changed = false;
        for task in &mut self.plan.tasks {
            if task.sha256().is_some() && !self.path.join(&task.file).exists() {
                task.end = None;
                is_changed = true;
            }
        }
        if is_changed { self.keep_plan() } else { Ok(()) }
    }

    /// Writes the plan.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_plan(&self) -> Result<(), Error> {
        self.keep(FILE, &self.plan.to_json())
    }

    /// The record of a task, if it has one; `parse` reads it.
    ///
    /// # Errors
    /// If it is not there, not whole, or not the one that was measured.
    pub fn record<R, E: Display>(
        &self,
        task: &Task,
        parse: impl FnOnce(&str) -> Result<R, E>,
    ) -> Result<Option<R>, Error> {
        let Some(sha256) = task.sha256() else { return Ok(None) };
        let file = self.path.join(&task.file);
        let text = fs::read_to_string(&file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                self.damaged(&file, &format!("it is missing, though {FILE} says that it was measured"))
            }
            _ => Error::unreadable(&file, &error),
        })?;
        if digest(&text) != sha256 {
            let problem = format!("it is not what was measured: {FILE} has another SHA-256 of it");
            return Err(self.damaged(&file, &problem));
        }
        parse(&text).map(Some).map_err(|error| self.damaged(&file, &error.to_string()))
    }

    /// The record of the task with this name, as [`Folder::record`].
    ///
    /// # Errors
    /// As there.
    pub fn record_of<R, E: Display>(
        &self,
        id: &str,
        parse: impl FnOnce(&str) -> Result<R, E>,
    ) -> Result<Option<R>, Error> {
        match self.plan.tasks.iter().find(|task| task.id == id) {
            Some(task) => self.record(task, parse),
            None => Ok(None),
        }
    }

    /// What is wrong with a record, and what to do.
    fn damaged(&self, file: &Path, problem: &str) -> Error {
        let remedy = format!(
            "restore it, or remove it and measure it again with the command of the study: {}",
            self.plan.command
        );
        Error::wrong(file, problem, &remedy)
    }

    /// Writes a file of the study, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, name: &str, text: &str) -> Result<(), Error> {
        keep(&self.path, name, text)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn keep(path: &Path, name: &str, text: &str) -> Result<(), Error> {
    let file = path.join(name);
    report_file::write(&file, text.as_bytes()).map_err(|error| Error::unwritable(&file, &error))
}

/// Writes a report into a folder, as text, as Markdown and as a page.
///
/// # Errors
/// If the folder cannot be written.
pub(crate) fn publish(path: &Path, text: &str, markdown: &str, page: &str) -> Result<Rendered, Error> {
    keep(path, TEXT, text)?;
    keep(path, MARKDOWN, markdown)?;
    keep(path, PAGE, page)?;
    Ok(Rendered { text: text.to_owned(), page: path.join(PAGE) })
}

/// Takes the lock of a folder, which ends with the process.
fn lock(path: &Path) -> Result<File, Error> {
    let folder = File::open(path).map_err(|error| Error::unreadable(path, &error))?;
    let mut tried = folder.try_lock();
    // A process that this one is just starting has the lock, too, until it is the other program.
    for _ in 0..LOCK_COUNT_MAX {
        if !matches!(tried, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        tried = folder.try_lock();
    }
    match tried {
        Ok(()) => Ok(folder),
        Err(TryLockError::WouldBlock) => {
            let remedy = "wait for it, stop it, or name another folder with --out";
            Err(Error::wrong(path, "another process measures into this folder", remedy))
        }
        // Some network file systems know no locks; then nobody is kept out.
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(folder),
        Err(TryLockError::Error(error)) => Err(Error::unreadable(path, &error)),
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
        PlanError::Format { .. } => {
            "render it with the version of authentick that made it, or measure anew in another folder"
        }
        _ => "restore it, or measure anew in another folder",
    };
    Error::wrong(&path.join(FILE), &error.to_string(), remedy)
}

#[cfg(test)]
mod tests;
