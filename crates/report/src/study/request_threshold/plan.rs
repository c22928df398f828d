//! What a study of the request threshold measures, and remarks on it.

use serde::{Deserialize, Serialize};

use super::Remarks;
use crate::published::request_threshold::{TABLE_1, TABLE_2};
use crate::stored::{self, Error, Provenance, Stored};
use crate::study::{self, Paper};
use crate::units::ratio;

/// What a study is to measure, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-study/1")]
pub struct Plan {
    /// [`Paper::Threshold`].
    pub paper: Paper,
    /// The command line that began the study.
    pub command: String,
    /// When it was begun, in Unix seconds.
    pub started_unix_s: u64,
    /// What must not change while a study goes on.
    pub settings: Settings,
    /// The factor for the paper's rates; null until it is known.
    pub scale: Option<f64>,
    /// The hosts of Table 2, as `load --agents` names them; empty if several hosts are not measured.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// How these hosts differ, or why there are none: a sentence.
    pub hosts_remark: String,
    /// What the two configurations are, or why there are none: a sentence.
    pub configurations_remark: String,
    /// Processors that the server has in both; null if not known.
    #[serde(default)]
    pub processors: Option<f64>,
    /// The runs, in the order of measuring.
    pub runs: Vec<PlannedRun>,
}

/// What all runs of a study share: runs under other settings are another study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The server as it was named; null: one of our own, on loopback.
    pub target: Option<String>,
    /// Agents that were named.
    pub agents: Vec<String>,
    /// The factor for the rates that was asked for; null: it is measured.
    pub scale: Option<f64>,
    /// Whether the study is a short one.
    pub quick: bool,
    /// Seconds of each row of Table 1.
    pub one_host_seconds: f64,
    /// Seconds of each row of Table 2.
    pub several_hosts_seconds: f64,
    /// Seconds of the run of each configuration.
    pub configuration_seconds: f64,
    /// Seconds that a request waits for its answer.
    pub timeout_seconds: f64,
    /// Whether records of two configurations were given, instead of measured.
    pub configurations_given: bool,
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Finding the factor for the rates.
    Scale,
    /// A row of Table 1.
    OneHost,
    /// A row of Table 2.
    SeveralHosts,
    /// The earlier configuration.
    Old,
    /// The updated configuration.
    New,
}

/// One run, whose record is in the folder once it has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// The record's name in the folder.
    pub file: String,
    /// What the run is for.
    pub part: Part,
    /// Requests a second that the paper specifies, for each host; null: the run is no row of a table.
    pub published_rps: Option<f64>,
}

impl study::Settings for Settings {
    const PAPER: Paper = Paper::Threshold;

    fn built(&self) -> [&str; 2] {
        [&self.version, &self.commit]
    }
}

impl Stored for Plan {
    const FORMAT: &'static str = study::FORMAT;
    const WHAT: &'static str = study::WHAT;

    fn provenance(&self) -> Provenance<'_> {
        study::provenance(&self.command, self.started_unix_s, &self.settings)
    }

    /// No run's record is outside of the folder.
    fn check(&self) -> Result<(), String> {
        let plain = |name: &str| {
            name.ends_with(".json")
                && !name.starts_with('.')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        match self.runs.iter().find(|run| !plain(&run.file)) {
            Some(run) => Err(format!("runs: {:?} is not the name of a file in this folder", run.file)),
            None => Ok(()),
        }
    }
}

impl PlannedRun {
    /// The rows of Table 1, in its order.
    #[must_use]
    pub fn one_host() -> Vec<Self> {
        rows(Part::OneHost, "run-1", TABLE_1.iter().map(|row| row.requested_rps))
    }

    /// The rows of Table 2, in its order.
    #[must_use]
    pub fn several_hosts() -> Vec<Self> {
        rows(Part::SeveralHosts, "run-2", TABLE_2.iter().map(|row| row.requested_rps))
    }

    /// A run that is no row.
    #[must_use]
    pub fn other(part: Part, file: &str) -> Self {
        PlannedRun { file: file.to_owned(), part, published_rps: None }
    }
}

fn rows(part: Part, name: &str, rates: impl Iterator<Item = u32>) -> Vec<PlannedRun> {
    let run = |(index, rps)| PlannedRun {
        file: format!("{name}-{}.json", index + 1),
        part,
        published_rps: Some(f64::from(rps)),
    };
    rates.enumerate().map(run).collect()
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// If the text is no JSON, is in another format or of another paper, lacks a field, or names a file outside of its
    /// folder.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        study::read(text, Paper::Threshold)
    }

    /// The plan as indented JSON, ending with a line feed.
    #[must_use]
    pub fn to_json(&self) -> String {
        stored::pretty(self)
    }

    /// What is to be said beside the tables. `missing_count`: runs without a record.
    #[must_use]
    pub fn remarks(&self, missing_count: usize) -> Remarks {
        let mut remarks = Remarks { processors: self.processors, ..Remarks::default() };
        if missing_count > 0 {
            remarks.study.push(format!(
                "{missing_count} of {} runs are not measured yet; the same command again measures them.",
                self.runs.len()
            ));
        }
        if self.settings.target.is_none() {
            remarks.study.push(
                "Generators and server are processes of one machine: its loopback was tested, not a network."
                    .to_owned(),
            );
        }
        if let Some(scale) = self.scale.filter(|&scale| scale != 1.0) {
            let why = match self.settings.scale {
                Some(_) => "as was asked for",
                None => "so that a limit of this machine lies among them, as one lay among the note\u{2019}s",
            };
            remarks.study.push(format!("Our rates are the note\u{2019}s times {}, {why}.", ratio(scale)));
        }
        remarks.several_hosts.push(self.hosts_remark.clone());
        remarks.configurations.push(self.configurations_remark.clone());
        remarks
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plan() -> Plan {
        let mut runs = vec![PlannedRun::other(Part::Scale, "run-0.json")];
        runs.extend(PlannedRun::one_host());
        runs.extend(PlannedRun::several_hosts());
        runs.push(PlannedRun::other(Part::Old, "run-old.json"));
        Plan {
            paper: Paper::Threshold,
            command: "authentick study run threshold --out study".to_owned(),
            started_unix_s: 1_780_000_000,
            settings: Settings {
                version: "0.1.0".to_owned(),
                commit: "0123456789ab".to_owned(),
                target: None,
                agents: Vec::new(),
                scale: None,
                quick: true,
                one_host_seconds: 1.0,
                several_hosts_seconds: 1.0,
                configuration_seconds: 2.0,
                timeout_seconds: 0.25,
                configurations_given: false,
            },
            scale: Some(33.0),
            hosts: vec!["127.0.0.1:40001".to_owned()],
            hosts_remark: "Hosts are alike.".to_owned(),
            configurations_remark: "Spans are off and on.".to_owned(),
            processors: Some(0.1),
            runs,
        }
    }

    #[test]
    fn plan_survives_its_file() {
        assert_eq!(Plan::from_json(&plan().to_json()).unwrap(), plan());
        assert!(plan().to_json().contains("\"paper\": \"threshold\""));
    }

    #[test]
    fn each_published_row_has_a_run_of_its_rate() {
        let rates =
            |runs: Vec<PlannedRun>| runs.iter().map(|run| run.published_rps.unwrap()).collect::<Vec<_>>();
        assert_eq!(rates(PlannedRun::one_host()), [1e3, 3e3, 4e3, 5e3, 6e3, 1e4]);
        assert_eq!(rates(PlannedRun::several_hosts()), [1e4, 5e4, 5e4, 5e4, 9e4]);
        let mut files: Vec<String> = plan().runs.into_iter().map(|run| run.file).collect();
        files.sort();
        files.dedup();
        assert_eq!(files.len(), plan().runs.len(), "no record overwrites another");
    }

    #[test]
    fn wrong_plans_are_refused_with_the_reason() {
        let text = plan().to_json();
        let error = |text: &str| Plan::from_json(text).unwrap_err().to_string();
        assert!(error(&text.replace("study/1", "study/9")).contains("authentick-study/9"));
        assert!(error(&text.replace("\"settings\"", "\"set\"")).contains("missing field `settings`"));
        assert!(error(&text.replace("\"threshold\"", "\"mac\"")).contains("a study of \"mac\""));
        for outside in ["../run-1-1.json", "/etc/x.json", ".hidden.json", "run", ""] {
            let error = error(&text.replace("run-1-1.json", outside));
            assert!(error.contains("not the name of a file in this folder"), "{outside}: {error}");
        }
    }

    #[test]
    fn remarks_say_what_was_scaled_and_what_is_missing() {
        let remarks = plan().remarks(2);
        assert!(remarks.study[0].contains("2 of 13 runs"), "{remarks:?}");
        assert!(remarks.study[2].contains("times 33.0, so that a limit"), "{remarks:?}");
        assert_eq!(remarks.several_hosts, ["Hosts are alike."]);
        let mut at_target = plan();
        at_target.settings.target = Some("192.0.2.1".to_owned());
        at_target.scale = Some(1.0);
        assert_eq!(at_target.remarks(0).study, [""; 0]);
    }
}
