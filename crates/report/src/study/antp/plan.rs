//! The plan of a study of the ANTP paper: `study.json` beside the record.

use serde::{Deserialize, Serialize};

use crate::published::antp::{TRIAL_COUNT, TRIAL_SECONDS};
use crate::study::Paper;

/// What the study is to measure, and how.
pub type Plan = crate::study::Plan<Settings>;

/// What all trials of a study share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
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

impl crate::study::Settings for Settings {
    const PAPER: Paper = Paper::Antp;

    fn built(&self) -> [&str; 2] {
        [&self.version, &self.commit]
    }
}

impl Settings {
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
    use crate::study::{ntp_mac, request_threshold};

    #[test]
    fn plan_survives_its_file_and_is_told_apart_from_the_others() {
        let text = plan().to_json();
        assert_eq!(Plan::from_json(&text).unwrap(), plan());
        assert_eq!(Paper::of_plan(&text).unwrap(), Paper::Antp);
        let other = request_threshold::plan::tests::plan().to_json();
        assert!(Plan::from_json(&other).unwrap_err().to_string().contains("a study of \"threshold\""));
        assert!(
            request_threshold::Plan::from_json(&text)
                .unwrap_err()
                .to_string()
                .contains("a study of \"antp\"")
        );
        assert!(ntp_mac::Plan::from_json(&text).unwrap_err().to_string().contains("a study of \"antp\""));
    }

    #[test]
    fn wrong_plans_are_refused_with_the_reason() {
        let error = |text: &str| Plan::from_json(text).unwrap_err().to_string();
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
        let whole = Settings {
            quick: false,
            trial_seconds: 100.0,
            throughput_trials: 5,
            latency_trials: 5,
            ..settings()
        };
        assert_eq!(whole.difference(), None);
        let fewer = Settings { latency_trials: 4, ..whole.clone() };
        let shorter = Settings { trial_seconds: 99.0, ..whole };
        for settings in [fewer, shorter] {
            assert!(settings.difference().unwrap().starts_with("This study is shorter"));
        }
    }
}
