//! The plan of a study of the ANTP paper: `study.json` beside the record.

use serde::{Deserialize, Serialize};

use crate::published::antp::{TRIAL_COUNT, TRIAL_SECONDS};
use crate::stored;
use crate::study::plan::{Paper, PlanError, StudyFormat};

/// What the study is to measure, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AntpPlan {
    /// The format of the file that holds the plan.
    pub format: StudyFormat,
    /// [`Paper::Antp`].
    pub paper: Paper,
    /// The command line that began the study.
    pub command: String,
    /// When it was begun, in Unix seconds.
    pub started_unix_s: u64,
    /// What must not change while a study goes on.
    pub settings: AntpSettings,
}

/// What all trials of a study share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AntpSettings {
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// Whether the study is a short one.
    pub quick: bool,
    /// Seconds of a trial of throughput or of latency.
    pub trial_seconds: f64,
    /// Trials of throughput for each row.
    pub throughput_trials: u32,
    /// Trials of latency for each cell.
    pub latency_trials: u32,
    /// Seconds of each step of the search for a capacity.
    pub search_seconds: f64,
    /// Requests a second of the clients whose latency is taken.
    pub measured_rps: f64,
    /// The round trip that the long path adds, in milliseconds.
    pub long_path_ms: f64,
}

impl AntpPlan {
    /// Reads a plan.
    ///
    /// # Errors
    /// If the text is no JSON, is in another format or of another paper, or lacks a field.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        match Paper::of_plan(text)? {
            Paper::Antp => Ok(stored::read(text, StudyFormat::V1.name())?),
            other @ (Paper::Threshold | Paper::Mac) => Err(PlanError::Paper(other)),
        }
    }

    /// The plan as JSON for people, with a line end after it.
    #[must_use]
    pub fn to_json(&self) -> String {
        stored::pretty(self)
    }
}

impl AntpSettings {
    /// How these settings differ from the paper's, in a sentence; `None` if they do not.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        let counts = [self.throughput_trials, self.latency_trials];
        if self.trial_seconds >= TRIAL_SECONDS && counts.iter().all(|&count| count >= TRIAL_COUNT) {
            return None;
        }
        let which = if self.quick { "This is a short study (--quick)" } else { "This study is shorter" };
        Some(format!(
            "{which}: {} trials of throughput and {} of latency, {} s each, where the paper has {TRIAL_COUNT} of \
             {TRIAL_SECONDS} s. Differences of some percent say nothing.",
            counts[0], counts[1], self.trial_seconds
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::antp::tests::{plan, settings};
    use crate::study::mac::MacPlan;
    use crate::study::plan::StudyPlan;

    #[test]
    fn plan_survives_its_file_and_is_told_apart_from_the_others() {
        let text = plan().to_json();
        assert_eq!(AntpPlan::from_json(&text).unwrap(), plan());
        assert_eq!(Paper::of_plan(&text).unwrap(), Paper::Antp);
        let other = crate::study::plan::tests::plan().to_json();
        assert!(AntpPlan::from_json(&other).unwrap_err().to_string().contains("a study of \"threshold\""));
        assert!(StudyPlan::from_json(&text).unwrap_err().to_string().contains("a study of \"antp\""));
        assert!(MacPlan::from_json(&text).unwrap_err().to_string().contains("a study of \"antp\""));
    }

    #[test]
    fn wrong_plans_are_refused_with_the_reason() {
        let error = |text: &str| AntpPlan::from_json(text).unwrap_err().to_string();
        let text = plan().to_json();
        assert!(error(&text.replace("study/1", "study/9")).contains("authentick-study/9"));
        assert!(error(&text.replace("\"quick\"", "\"fast\"")).contains("missing field `quick`"));
        assert!(error("{").contains("not a study's plan"));
    }

    #[test]
    fn what_is_shorter_than_the_papers_trials_says_so() {
        let short = settings().difference().unwrap();
        assert!(
            short.contains("--quick") && short.contains("2 trials") && short.contains("5 of 100 s"),
            "{short}"
        );
        let whole = AntpSettings {
            quick: false,
            trial_seconds: 100.0,
            throughput_trials: 5,
            latency_trials: 5,
            ..settings()
        };
        assert_eq!(whole.difference(), None);
        let fewer = AntpSettings { latency_trials: 4, ..whole.clone() };
        let shorter = AntpSettings { trial_seconds: 99.0, ..whole };
        for settings in [fewer, shorter] {
            assert!(settings.difference().unwrap().starts_with("This study is shorter"));
        }
    }
}
