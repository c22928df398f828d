//! The study of the drafts on MACs for NTP: `study.json` beside the one record that it has, a bench of MACs, and the
//! report with the drafts' tables first.

use serde::{Deserialize, Serialize};

use super::{Paper, Task};
use crate::mac::{MacRecord, Order, opening, sections as bench, tally};
use crate::render::{Layout, Medium, Report, Section};

/// The only task: the bench on this host.
pub const BENCH: &str = "mac";
/// How long it takes, in seconds; and in its short form.
const SECONDS: [f64; 2] = [120.0, 3.0];
const TITLE: &str = "The drafts on MACs for NTP, beside ours";

/// What is measured, and how.
pub type Plan = super::Plan<Settings>;

/// What a study is made under: under other settings it is another study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Whether the study is a short one.
    pub quick: bool,
    /// The version of OpenSSL; null if there is none in this program.
    pub openssl: Option<String>,
}

impl super::Settings for Settings {
    const PAPER: Paper = Paper::Mac;
    type Found = ();
}

impl Settings {
    /// What is to be measured.
    #[must_use]
    pub fn tasks(&self) -> Vec<Task> {
        vec![Task::new(BENCH, "bench", SECONDS[usize::from(self.quick)], 0)]
    }
}

impl Plan {
    /// What is to be said of the study, in sentences.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let short = "This is a short run (--quick): medians of few rounds.";
        let quick = self.settings.quick.then(|| short.to_owned());
        self.gaps().into_iter().chain(quick).chain(self.stolen()).collect()
    }
}

/// The report on the study; without a record it says what is missing.
#[must_use]
pub fn report(plan: &Plan, record: Option<&MacRecord>) -> Report {
    Report::new(TITLE, Layout::Nested, sections(plan, record)).tallied(tally(record, &plan.tasks))
}

/// The report on a record that has no plan, with these remarks.
#[cfg(test)]
pub(crate) fn remarked(record: &MacRecord, remarks: &[String]) -> Report {
    Report::new(TITLE, Layout::Nested, said(remarks, Some(record)))
}

/// The drafts' tables with ours beside them, and what follows.
#[must_use]
pub fn sections(plan: &Plan, record: Option<&MacRecord>) -> Vec<Section> {
    said(&plan.remarks(), record)
}

/// The same with these sentences on the study.
fn said(remarks: &[String], record: Option<&MacRecord>) -> Vec<Section> {
    let mut first = Section::default();
    let title = format!("{TITLE}. Compare the ratios, not the figures.");
    first.say_in(Medium::Text, title);
    let mut opening = record.into_iter().flat_map(opening);
    first.say_all(remarks.iter().cloned().chain(opening.next()));
    first.fold("How it was measured", opening);
    let tables = record.map(|record| bench(record, Order::Drafts));
    std::iter::once(first).chain(tables.into_iter().flatten()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::study::tests::plan_of;

    pub(crate) fn plan() -> Plan {
        let settings = Settings { quick: true, openssl: None };
        let tasks = settings.tasks();
        plan_of(settings, (), tasks)
    }

    #[test]
    fn short_study_says_so() {
        let short = plan().remarks();
        assert!(short[0].contains("is not measured yet") && short[1].contains("--quick"), "{short:?}");
        let mut long = plan();
        long.settings.quick = false;
        long.tasks.clear();
        assert!(long.remarks().is_empty());
    }

    #[test]
    fn study_without_a_record_says_so_and_shows_no_table() {
        let text = report(&plan(), None).text();
        assert!(
            text.contains("1 of 1 task is not measured yet")
                && !text.contains("Algorithm  ")
                && text.contains("9 of 9: draft-ietf-ntp-mac, section 6, advantages"),
            "{text}"
        );
    }
}
