//! The file of rows, which grows as steps end: what a run has measured is in it, whatever ends the run.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use authentick_net::report_file::ReportFile;
use authentick_report::load::span_rows::{ROW_COUNT_MAX, SpanRow, heading};
use authentick_report::units::{count, plural};

/// A file that rows are written to.
#[derive(Debug)]
pub(super) struct RowFile {
    path: PathBuf,
    out: BufWriter<File>,
    /// Rows that the file still has room for.
    room: u64,
    /// Rows of this step that found none.
    left_out: u64,
    /// Why it cannot be written any more.
    error: Option<io::Error>,
    is_told: bool,
}

impl RowFile {
    /// Empties the file, and begins it with the heading.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn begin(file: ReportFile) -> io::Result<Self> {
        let path = file.name().to_owned();
        let mut out = BufWriter::new(file.into_growing()?);
        // It is written with the first rows at the latest when a step ends, and a full disk is reported then.
        out.write_all(heading().as_bytes())?;
        Ok(RowFile { path, out, room: ROW_COUNT_MAX, left_out: 0, error: None, is_told: false })
    }

    /// The same file with room for so many rows.
    #[cfg(test)]
    pub(super) fn with_room(self, room: u64) -> Self {
        RowFile { room, ..self }
    }

    /// Adds a row, or counts it as left out.
    pub(super) fn add(&mut self, row: &SpanRow) {
        if self.room == 0 {
            self.left_out += 1;
        } else if self.error.is_none() {
            self.room -= 1;
            self.error = self.out.write_all(row.line().as_bytes()).err();
        }
    }

    /// A step has ended; `sampled_out` of its exchanges were not in the sample of which rows were made. Returns what is
    /// missing, in a sentence.
    pub(super) fn end_step(&mut self, sampled_out: u64) -> Option<String> {
        if self.error.is_none() {
            self.error = self.out.flush().err();
        }
        let path = self.path.display();
        if let Some(error) = &self.error {
            let is_told = std::mem::replace(&mut self.is_told, true);
            let again = if is_told { ", as before" } else { "" };
            return Some(format!("Rows of spans are missing{again}: {path}: cannot write: {error}."));
        }
        let beyond = std::mem::take(&mut self.left_out);
        let missing = sampled_out.saturating_add(beyond);
        let why = match beyond {
            0 => "as there are too many, it has a sample".to_owned(),
            _ => format!("a file has at most {} rows", count(ROW_COUNT_MAX)),
        };
        (missing > 0)
            .then(|| format!("{path} has no rows of {} of this step: {why}.", plural(missing, "exchange")))
    }
}
