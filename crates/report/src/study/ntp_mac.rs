//! The study of the drafts on MACs for NTP: `study.json` beside the one record that it has, a bench of MACs, and the
//! report with the drafts' tables first.

use serde::{Deserialize, Serialize};

use super::Paper;
use crate::mac::{MacRecord, Order, opening, sections as bench};
use crate::render::{Layout, Medium, Report, Section};

/// The name of the record in the folder.
pub const RECORD: &str = "run-mac.json";
const TITLE: &str = "The drafts on MACs for NTP, beside ours";

/// What is measured, and how.
pub type Plan = super::Plan<Settings>;

/// What a study is made under: under other settings it is another study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// Whether the study is a short one.
    pub quick: bool,
    /// The version of OpenSSL; null if there is none in this program.
    pub openssl: Option<String>,
}

impl super::Settings for Settings {
    const PAPER: Paper = Paper::Mac;

    fn built(&self) -> [&str; 2] {
        [&self.version, &self.commit]
    }
}

impl Plan {
    /// What is to be said of the study, in sentences.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        match self.settings.quick {
            true => vec!["This is a short run (--quick): medians of few rounds.".to_owned()],
            false => Vec::new(),
        }
    }
}

/// The report on the study.
#[must_use]
pub fn report(plan: &Plan, record: &MacRecord) -> Report {
    remarked(record, &plan.remarks())
}

/// The same with these remarks.
pub(crate) fn remarked(record: &MacRecord, remarks: &[String]) -> Report {
    Report::new(TITLE, Layout::Nested, said(remarks, record))
}

/// The drafts' tables with ours beside them, and what follows.
#[must_use]
pub fn sections(plan: &Plan, record: &MacRecord) -> Vec<Section> {
    said(&plan.remarks(), record)
}

/// The same with these sentences on the study.
pub(crate) fn said(remarks: &[String], record: &MacRecord) -> Vec<Section> {
    let mut first = Section::default();
    let title = format!("{TITLE}. Compare the ratios, not the figures.");
    first.say_in(Medium::Text, title);
    first.say_all(remarks.iter().cloned().chain(opening(record)));
    std::iter::once(first).chain(bench(record, Order::Drafts)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::study::request_threshold;

    pub(crate) fn plan() -> Plan {
        Plan {
            paper: Paper::Mac,
            command: "authentick study run mac --quick --out study".to_owned(),
            started_unix_s: 1_780_000_000,
            settings: Settings {
                version: "0.1.0".to_owned(),
                commit: "0123456789ab".to_owned(),
                quick: true,
                openssl: None,
            },
        }
    }

    #[test]
    fn plan_survives_its_file_and_is_told_apart_from_the_other() {
        let text = plan().to_json();
        assert_eq!(Plan::from_json(&text).unwrap(), plan());
        assert_eq!(Paper::of_plan(&text).unwrap(), Paper::Mac);
        let other = request_threshold::plan::tests::plan().to_json();
        assert!(Plan::from_json(&other).unwrap_err().to_string().contains("a study of \"threshold\""));
        assert!(
            request_threshold::Plan::from_json(&text).unwrap_err().to_string().contains("a study of \"mac\"")
        );
    }

    #[test]
    fn wrong_plans_are_refused_with_the_reason() {
        let error = |text: &str| Plan::from_json(text).unwrap_err().to_string();
        let text = plan().to_json();
        assert!(error(&text.replace("study/1", "study/9")).contains("authentick-study/9"));
        assert!(error(&text.replace("\"settings\"", "\"set\"")).contains("missing field `settings`"));
        assert!(error(&text.replace("\"mac\"", "\"cake\"")).contains("unknown variant `cake`"));
        assert!(error("{").contains("not a study's plan"));
    }

    #[test]
    fn short_study_says_so() {
        assert!(plan().remarks()[0].contains("--quick"));
        let mut long = plan();
        long.settings.quick = false;
        assert!(long.remarks().is_empty());
    }
}
