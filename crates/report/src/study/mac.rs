//! The plan of a study of the drafts on MACs for NTP: `study.json` beside the one record that it has.
//!
//! What is rendered of it is [`mac::text::study`](crate::mac::text::study) and its page.

use serde::{Deserialize, Serialize};

use super::plan::{Paper, PlanError, StudyFormat};
use crate::stored;

/// The name of the record in the folder.
pub const RECORD: &str = "run-mac.json";

/// What is measured, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MacPlan {
    /// The format of the file that holds the plan.
    pub format: StudyFormat,
    /// The paper: [`Paper::Mac`].
    pub paper: Paper,
    /// The command line that began the study.
    pub command: String,
    /// When it was begun, in Unix seconds.
    pub started_unix_s: u64,
    /// What must not change while a study goes on.
    pub settings: MacSettings,
}

/// What a study is made under: under other settings it is another study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MacSettings {
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// Whether the study is a short one.
    pub quick: bool,
    /// The version of OpenSSL; null if there is none in this program.
    pub openssl: Option<String>,
}

impl MacPlan {
    /// Reads a plan.
    ///
    /// # Errors
    /// If the text is no JSON, is in another format or of another paper, or lacks a field.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        match Paper::of_plan(text)? {
            Paper::Mac => Ok(stored::read(text, StudyFormat::V1.name())?),
            other @ (Paper::Threshold | Paper::Antp) => Err(PlanError::Paper(other)),
        }
    }

    /// The plan as JSON for people, with a line end after it.
    #[must_use]
    pub fn to_json(&self) -> String {
        stored::pretty(self)
    }

    /// What is to be said of the study, in sentences.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        match self.settings.quick {
            true => vec!["This is a short run (--quick): medians of few rounds.".to_owned()],
            false => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::plan::StudyPlan;

    fn plan() -> MacPlan {
        MacPlan {
            format: StudyFormat::V1,
            paper: Paper::Mac,
            command: "authentick study run mac --quick --out study".to_owned(),
            started_unix_s: 1_780_000_000,
            settings: MacSettings {
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
        assert_eq!(MacPlan::from_json(&text).unwrap(), plan());
        assert_eq!(Paper::of_plan(&text).unwrap(), Paper::Mac);
        let other = crate::study::plan::tests::plan().to_json();
        assert!(MacPlan::from_json(&other).unwrap_err().to_string().contains("a study of \"threshold\""));
        assert!(StudyPlan::from_json(&text).unwrap_err().to_string().contains("a study of \"mac\""));
    }

    #[test]
    fn wrong_plans_are_refused_with_the_reason() {
        let error = |text: &str| MacPlan::from_json(text).unwrap_err().to_string();
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
