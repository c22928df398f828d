//! What a study of the request threshold measures, and remarks on it.

use serde::{Deserialize, Serialize};

use super::Remarks;
use crate::published::request_threshold::{TABLE_1, TABLE_2};
use crate::study::{self, Paper, Task};
use crate::units::ratio;

/// What a study is to measure, how, and what became of it.
pub type Plan = study::Plan<Settings>;

/// What turns out while a study goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
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
}

/// What all runs of a study share: runs under other settings are another study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The name of its task.
    pub id: String,
    /// What the run is for.
    pub part: Part,
    /// Requests a second that the paper specifies, for each host; `None`: the run is no row of a table.
    pub published_rps: Option<f64>,
}

/// Seconds that a run takes beside its step: processes start, the server is asked whether it answers, stragglers are
/// waited for.
const RUN_SECONDS: f64 = 1.0;
/// The flood that looks for this machine's limit lasts so long at most.
pub const SCALE_SECONDS_MAX: f64 = 2.0;
/// Rows without which a table has no shape: its first and its last, and the one where Table 1 bends.
const SHAPE_1: [usize; 3] = [0, 3, 5];
const SHAPE_2: [usize; 2] = [0, 4];

impl study::Settings for Settings {
    const PAPER: Paper = Paper::Threshold;
    type Found = Found;
}

impl Run {
    /// The rows of Table 1, in its order.
    #[must_use]
    pub fn one_host() -> Vec<Self> {
        rows(Part::OneHost, TABLE_1.iter().map(|row| row.requested_rps))
    }

    /// The rows of Table 2, in its order.
    #[must_use]
    pub fn several_hosts() -> Vec<Self> {
        rows(Part::SeveralHosts, TABLE_2.iter().map(|row| row.requested_rps))
    }

    /// The run of a task.
    #[must_use]
    pub fn of(id: &str) -> Option<Self> {
        let others = [Part::Scale, Part::Old, Part::New];
        let others =
            others.into_iter().map(|part| Run { id: part.id().to_owned(), part, published_rps: None });
        let mut all = others.chain(Run::one_host()).chain(Run::several_hosts());
        all.find(|run| run.id == id)
    }
}

impl Part {
    /// The task of the only run of this part, or how the tasks of its rows begin.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Part::Scale => "scale",
            Part::OneHost => "table-1",
            Part::SeveralHosts => "table-2",
            Part::Old => "old",
            Part::New => "new",
        }
    }
}

fn rows(part: Part, rates: impl Iterator<Item = u32>) -> Vec<Run> {
    let run = |(index, rps)| Run {
        id: format!("{}-{}", part.id(), index + 1),
        part,
        published_rps: Some(f64::from(rps)),
    };
    rates.enumerate().map(run).collect()
}

impl Settings {
    /// What is to be measured. Without a target, all of it is on this machine.
    #[must_use]
    pub fn tasks(&self) -> Vec<Task> {
        let is_ours = self.target.is_none();
        let finds_scale = is_ours && self.scale.is_none();
        let mut tasks = Vec::new();
        let mut add = |id: &str, part: Part, seconds: f64, priority| {
            let task = Task::new(id, part.id(), seconds + RUN_SECONDS, priority);
            tasks.push(match part {
                Part::OneHost | Part::SeveralHosts if finds_scale => task.needing(Part::Scale.id()),
                Part::Scale | Part::OneHost | Part::SeveralHosts | Part::Old | Part::New => task,
            });
        };
        if finds_scale {
            add(Part::Scale.id(), Part::Scale, self.one_host_seconds.min(SCALE_SECONDS_MAX), 0);
        }
        for (index, run) in Run::one_host().iter().enumerate() {
            add(&run.id, run.part, self.one_host_seconds, u8::from(!SHAPE_1.contains(&index)));
        }
        if is_ours || !self.agents.is_empty() {
            for (index, run) in Run::several_hosts().iter().enumerate() {
                add(&run.id, run.part, self.several_hosts_seconds, u8::from(!SHAPE_2.contains(&index)));
            }
        }
        if is_ours || self.configurations_given {
            let seconds = if self.configurations_given { 0.0 } else { self.configuration_seconds };
            add(Part::Old.id(), Part::Old, seconds, 0);
            add(Part::New.id(), Part::New, seconds, 0);
        }
        tasks
    }
}

impl Plan {
    /// What is to be said beside the tables.
    #[must_use]
    pub fn remarks(&self) -> Remarks {
        let mut remarks = Remarks { processors: self.found.processors, ..Remarks::default() };
        remarks.study.extend(self.gaps());
        remarks.study.extend(self.stolen());
        if self.settings.target.is_none() {
            remarks.study.push(
                "Generators and server are processes of one machine: its loopback was tested, not a network."
                    .to_owned(),
            );
        }
        if let Some(scale) = self.found.scale.filter(|&scale| scale != 1.0) {
            let why = match self.settings.scale {
                Some(_) => "as was asked for",
                None => "so that a limit of this machine lies among them, as one lay among the note\u{2019}s",
            };
            remarks.study.push(format!("Our rates are the note\u{2019}s times {}, {why}.", ratio(scale)));
        }
        remarks.several_hosts.push(self.found.hosts_remark.clone());
        remarks.configurations.push(self.found.configurations_remark.clone());
        remarks
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::study::tests::plan_of;

    pub(crate) fn plan() -> Plan {
        let settings = Settings {
            target: None,
            agents: Vec::new(),
            scale: None,
            quick: true,
            one_host_seconds: 1.0,
            several_hosts_seconds: 1.0,
            configuration_seconds: 2.0,
            timeout_seconds: 0.25,
            configurations_given: false,
        };
        let found = Found {
            scale: Some(33.0),
            hosts: vec!["127.0.0.1:40001".to_owned()],
            hosts_remark: "Hosts are alike.".to_owned(),
            configurations_remark: "Spans are off and on.".to_owned(),
            processors: Some(0.1),
        };
        let tasks = settings.tasks();
        plan_of(settings, found, tasks)
    }

    #[test]
    fn each_published_row_has_a_task_of_its_rate() {
        let rates = |runs: Vec<Run>| runs.iter().map(|run| run.published_rps.unwrap()).collect::<Vec<_>>();
        assert_eq!(rates(Run::one_host()), [1e3, 3e3, 4e3, 5e3, 6e3, 1e4]);
        assert_eq!(rates(Run::several_hosts()), [1e4, 5e4, 5e4, 5e4, 9e4]);
        let tasks = plan().tasks;
        assert_eq!(tasks.len(), 14);
        for task in &tasks {
            let run = Run::of(&task.id).unwrap();
            assert_eq!((&run.id, run.part.id()), (&task.id, task.part.as_str()));
        }
        for run in Run::one_host().into_iter().chain(Run::several_hosts()) {
            assert!(tasks.iter().any(|task| task.id == run.id && task.needs == ["scale"]), "{run:?}");
        }
        assert_eq!(Run::of("table-1-7"), None);
    }

    #[test]
    fn what_is_measured_depends_on_whose_server_it_is() {
        let ids = |settings: Settings| settings.tasks().into_iter().map(|task| task.id).collect::<Vec<_>>();
        let ours = plan().settings;
        let theirs = Settings { target: Some("192.0.2.1".to_owned()), ..ours.clone() };
        assert_eq!(ids(theirs.clone()).len(), 6);
        assert_eq!(ids(Settings { agents: vec!["a".to_owned()], ..theirs.clone() }).len(), 11);
        assert_eq!(ids(Settings { configurations_given: true, ..theirs.clone() })[6..], ["old", "new"]);
        assert!(theirs.tasks().iter().all(|task| task.needs.is_empty()));
        assert!(!ids(Settings { scale: Some(2.0), ..ours }).contains(&"scale".to_owned()));
    }

    #[test]
    fn every_table_keeps_its_shape_when_time_is_short() {
        let kept: Vec<String> =
            plan().tasks.into_iter().filter(|task| task.priority == 0).map(|task| task.id).collect();
        assert_eq!(
            kept,
            ["scale", "table-1-1", "table-1-4", "table-1-6", "table-2-1", "table-2-5", "old", "new"]
        );
    }

    #[test]
    fn remarks_say_what_was_scaled_and_what_is_missing() {
        let remarks = plan().remarks();
        assert!(remarks.study[0].contains("14 of 14 tasks are not measured yet"), "{remarks:?}");
        assert!(remarks.study[2].contains("times 33.0, so that a limit"), "{remarks:?}");
        assert_eq!(remarks.several_hosts, ["Hosts are alike."]);
        let mut at_target = plan();
        at_target.settings.target = Some("192.0.2.1".to_owned());
        at_target.found.scale = Some(1.0);
        at_target.tasks.clear();
        assert_eq!(at_target.remarks().study, [""; 0]);
    }
}
