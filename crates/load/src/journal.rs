//! The record of a run in its file, written again after each step: whatever ends the program, the steps that had ended
//! are kept.

use authentick_net::report_file::ReportFile;
use authentick_report::load::{Interruption, LoadRecord, Step};

/// A record that grows in its file.
#[derive(Debug)]
pub struct Journal<'f> {
    file: &'f mut ReportFile,
    record: LoadRecord,
    has_failed: bool,
}

impl<'f> Journal<'f> {
    /// For a run that begins now, and of which `record` says everything but its steps. Nothing is written yet.
    #[must_use]
    pub fn new(file: &'f mut ReportFile, record: &LoadRecord) -> Self {
        let record = LoadRecord { interrupted: Some(Interruption::Unfinished), ..record.clone() };
        Journal { file, record, has_failed: false }
    }

    /// A step has ended. The file then holds all steps so far, and says that the run has not ended. A file that is no
    /// regular one, such as a pipe, waits for the end of the run. That a file cannot be written is logged once.
    pub fn step(&mut self, step: &Step) {
        self.record.steps.push(step.clone());
        if !self.file.is_plain() {
            return;
        }
        if let Err(error) = self.file.write(self.record.to_json().as_bytes()) {
            if !self.has_failed {
                log::warn!("{}: cannot write what was measured so far: {error}", self.file.name().display());
            }
            self.has_failed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The record of the report's golden files, which has four steps.
    fn record() -> LoadRecord {
        LoadRecord::from_json(include_str!("../../report/tests/golden/load.json")).unwrap()
    }

    #[test]
    fn file_holds_a_whole_record_after_each_step() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        let mut whole = record();
        let steps = std::mem::take(&mut whole.steps);
        let mut file = ReportFile::open(&path, || true).unwrap();
        let mut journal = Journal::new(&mut file, &whole);
        for (index, step) in steps.iter().enumerate() {
            journal.step(step);
            let kept = LoadRecord::from_json(&fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(kept.steps, steps[..=index]);
            assert_eq!(kept.interrupted, Some(Interruption::Unfinished));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");
    }

    #[test]
    fn device_takes_nothing_before_the_end() {
        let mut file = ReportFile::open(Path::new("/dev/full"), || true).unwrap();
        let mut journal = Journal::new(&mut file, &record());
        journal.step(&record().steps[0]);
        assert!(!journal.has_failed);
    }
}
