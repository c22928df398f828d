//! The record of a run in a file, written anew after each step: whatever ends the program, the steps that had ended are
//! kept.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use authentick_net::replace::replace_with_mode;
use authentick_report::load::{Interruption, LoadRecord, Step};

/// What files get that were not there, as far as the process's mask lets them.
const MODE: u32 = 0o666;

/// A record that grows in its file.
#[derive(Debug)]
pub struct Journal {
    file: PathBuf,
    record: LoadRecord,
    has_failed: bool,
}

impl Journal {
    /// For a run that begins now, and of which `record` says everything but its steps. Nothing is written yet.
    #[must_use]
    pub fn new(file: &Path, record: &LoadRecord) -> Self {
        let record = LoadRecord { interrupted: Some(Interruption::Unfinished), ..record.clone() };
        Journal { file: file.to_owned(), record, has_failed: false }
    }

    /// A step has ended. The file then holds all steps so far, and says that the run has not ended. A file that is no
    /// regular one, such as a pipe, waits for the end of the run. That a file cannot be written is logged once.
    pub fn step(&mut self, step: &Step) {
        self.record.steps.push(step.clone());
        if fs::metadata(&self.file).is_ok_and(|metadata| !metadata.is_file()) {
            return;
        }
        if let Err(error) = keep(&self.file, &self.record.to_json()) {
            if !self.has_failed {
                log::warn!("{}: cannot write what was measured so far: {error}", self.file.display());
            }
            self.has_failed = true;
        }
    }
}

/// Writes `text` to a file: whoever reads it finds what was there before, or all of the text. In a folder that takes no
/// new file, and if it is no regular file, it is written in place.
///
/// # Errors
/// If it cannot be written.
pub fn keep(file: &Path, text: &str) -> io::Result<()> {
    // What a link names is replaced, and not the link.
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mode = match fs::metadata(&target) {
        Ok(metadata) if !metadata.is_file() => return fs::write(&target, text),
        Ok(metadata) => metadata.permissions().mode() & 0o777,
        Err(_) => MODE,
    };
    match replace_with_mode(&target, text.as_bytes(), mode) {
        Err((_, error)) if error.kind() == io::ErrorKind::PermissionDenied => fs::write(&target, text),
        replaced => replaced.map_err(|(_, error)| error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    /// The record of the report's golden files, which has four steps.
    fn record() -> LoadRecord {
        LoadRecord::from_json(include_str!("../../report/tests/golden/load.json")).unwrap()
    }

    #[test]
    fn file_holds_a_whole_record_after_each_step() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.json");
        let mut whole = record();
        let steps = std::mem::take(&mut whole.steps);
        let mut journal = Journal::new(&file, &whole);
        assert!(!file.exists(), "nothing was measured yet");
        for (index, step) in steps.iter().enumerate() {
            journal.step(step);
            let kept = LoadRecord::from_json(&fs::read_to_string(&file).unwrap()).unwrap();
            assert_eq!(kept.steps, steps[..=index]);
            assert_eq!(kept.interrupted, Some(Interruption::Unfinished));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");
    }

    #[test]
    fn links_and_modes_stay_and_pipes_are_written_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("run.json"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        keep(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        keep(Path::new("/dev/null"), "new").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn file_that_cannot_be_written_ends_no_run() {
        let mut journal = Journal::new(Path::new("/no/such/folder/run.json"), &record());
        let step = record().steps[0].clone();
        journal.step(&step);
        journal.step(&step);
        assert!(journal.has_failed);
        assert!(keep(Path::new("/no/such/folder/run.json"), "").is_err());
    }
}
