//! Studies whose plan is their settings alone, and whose folder keeps one record.

use authentick_report::Report;
use authentick_report::stored::{self, Stored};
use authentick_report::study::{self, Settings};
use serde::Serialize;

use crate::Error;
use crate::folder::{Folder, Plan};

/// The settings of such a study.
pub(crate) trait Single: Settings + Serialize + PartialEq {
    /// The name of the file that holds the record.
    const RECORD: &'static str;

    /// What was measured.
    type Record: Stored;

    /// The report on a record that was measured by `plan`.
    fn report(plan: &study::Plan<Self>, record: &Self::Record) -> Report;
}

impl<S: Single> Plan for study::Plan<S> {
    const PAPER: study::Paper = S::PAPER;

    fn has_settings_of(&self, other: &Self) -> bool {
        self.settings == other.settings
    }

    fn files(&self) -> Vec<&str> {
        vec![S::RECORD]
    }

    fn render(folder: &Folder<Self>) -> Result<[String; 2], Error> {
        let record = record(folder)?.ok_or_else(|| folder.not_carried_out(S::RECORD))?;
        let report = S::report(&folder.plan, &record);
        Ok([report.text(), report.page()])
    }
}

/// The record, if the study has begun to measure.
///
/// # Errors
/// If it is there and not whole.
pub(crate) fn record<S: Single>(folder: &Folder<study::Plan<S>>) -> Result<Option<S::Record>, Error> {
    folder.record(S::RECORD, stored::read)
}
