//! What authentication costs, by scheme and server: the stored record, version 1, with the results of each trial. No
//! paper has this; the study is our own.
//!
//! - [`Plan`]: what the study is to measure, as its folder keeps it.
//! - `scheme`: servers and schemes, and which server lacks which scheme; `given`: servers that somebody else runs.
//! - [`latency`]: how long answers take, at a share of what was answered.
//! - `figures`: medians over rounds, and shares of the same server's plain rate.
//! - `tables`: what stands below the picture.
//! - [`report()`]: all of it.
//!
//! Each task of a study has a record with what it measured, so that an interrupted study can be resumed;
//! [`FieldRecord::merged`] makes one of them. A record keeps figures of each trial and no distributions.

mod figures;
mod given;
pub mod latency;
mod plan;
mod report;
mod scheme;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::given::{GIVEN_COUNT_MAX, Given, Name, of_name};
pub use self::latency::{Latency, Level, Points};
pub use self::plan::{Found, Measure, Plan, Settings};
pub(super) use self::report::headlines;
pub use self::report::{report, sections};
pub use self::scheme::{Scheme, Server};
use crate::load::{Limit, Step};
use crate::run::Host;
use crate::stored::stored;
use crate::study::antp::why_invalid;

/// A scheme at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Who answers.
    pub server: Server,
    /// How it is asked.
    pub scheme: Scheme,
}

/// One trial: a closed loop for some seconds, of requests for time or of key exchanges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Who answered, and how it was asked.
    #[serde(flatten)]
    pub cell: Cell,
    /// The round, from 1. Ratios are taken within one.
    pub round: u32,
    /// Answers a second that passed every check.
    pub answered_rps: f64,
    /// The share of requests without such an answer.
    pub loss_ratio: f64,
    /// Processor time of the server's processes for an answer, in microseconds; null if the kernel does not tell.
    pub cpu_us: Option<f64>,
    /// The share of its one processor that the server used; null if unknown.
    pub server_share: Option<f64>,
    /// Resident memory of the server's processes at the end, in octets; null if unknown.
    pub memory_octets: Option<u64>,
    /// Octets of the largest request as UDP payload; 0 of key exchanges, which go over TCP.
    pub request_size: u32,
    /// Octets of the largest answer in the same way, all datagrams of it together.
    pub response_size: u32,
    /// What kept it from more.
    pub limited_by: Limit,
    /// Why the trial says nothing about the server; null if it does.
    pub why_invalid: Option<String>,
}

impl Trial {
    /// What the step of a load run says.
    #[must_use]
    pub fn of(cell: Cell, round: u32, step: &Step) -> Self {
        let used = step.server;
        Trial {
            cell,
            round,
            answered_rps: step.answered_rps(),
            loss_ratio: step.tally.loss_ratio(),
            cpu_us: used.and_then(|used| used.cpu_us_per_request).filter(|us| *us > 0.0),
            server_share: used.filter(|_| step.seconds > 0.0).map(|used| used.cpu_seconds / step.seconds),
            memory_octets: used.map(|used| used.resident_size).filter(|octets| *octets > 0),
            request_size: step.request_size,
            response_size: step.response_size,
            limited_by: step.limit.as_ref().map_or(Limit::Unknown, |limit| limit.by),
            why_invalid: why_invalid(step),
        }
    }

    /// Answers for a second of the server's processor time.
    #[must_use]
    pub fn core_rps(&self) -> Option<f64> {
        self.cpu_us.map(|us| 1e6 / us)
    }
}

stored!(FieldRecord = "authentick-field-study/1", "a record of study run field", pretty, FieldRecord::check);

/// What one task of a study has measured, or all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-field-study/1")]
pub struct FieldRecord {
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The command line that began it.
    pub command: String,
    /// When it began, in Unix seconds.
    pub started_unix_s: u64,
    /// What it runs on.
    pub host: Host,
    /// How it is measured.
    pub settings: Settings,
    /// General remarks, in sentences: where servers and generator run, what could not be measured.
    pub remarks: Vec<String>,
    /// Names and versions of the servers that were measured.
    pub titles: BTreeMap<Server, String>,
    /// All trials of requests for time, in a closed loop.
    pub trials: Vec<Trial>,
    /// All trials of key exchanges, in a closed loop; their scheme is what keys were exchanged for.
    pub exchanges: Vec<Trial>,
    /// All trials of requests for time at a rate.
    pub latencies: Vec<Latency>,
}

impl FieldRecord {
    /// A record of this study without anything in it.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        FieldRecord {
            version: plan.version.clone(),
            commit: plan.commit.clone(),
            command: plan.command.clone(),
            started_unix_s: plan.started_unix_s,
            host: plan.machine.clone(),
            settings: plan.settings.clone(),
            remarks: Vec::new(),
            titles: plan.found.titles.clone(),
            trials: Vec::new(),
            exchanges: Vec::new(),
            latencies: Vec::new(),
        }
    }

    /// All that the tasks of this study have measured, and what is to be said of it.
    #[must_use]
    pub fn merged(plan: &Plan, records: impl IntoIterator<Item = FieldRecord>) -> Self {
        let mut all = FieldRecord::of(plan);
        all.remarks.extend(plan.found.remarks.iter().cloned());
        all.remarks.extend(plan.gaps().into_iter().chain(plan.stolen()));
        for record in records {
            all.titles.extend(record.titles);
            all.trials.extend(record.trials);
            all.exchanges.extend(record.exchanges);
            all.latencies.extend(record.latencies);
        }
        all
    }

    /// What a server is called: with its version, if it is known.
    #[must_use]
    pub fn title(&self, server: Server) -> String {
        self.titles.get(&server).map_or_else(|| server.name().to_owned(), Clone::clone)
    }

    fn check(&self) -> Result<(), String> {
        self.settings.check()?;
        let closed = self.trials.iter().chain(&self.exchanges).map(|trial| trial.cell.server);
        let mut servers = closed.chain(self.latencies.iter().map(|trial| trial.cell.server));
        if let Some(stranger) = servers.find(|server| !self.settings.knows(*server)) {
            return Err(format!("trials: the settings do not say where {:?} is", stranger.name()));
        }
        check_trials("trials", &self.trials)?;
        check_trials("exchanges", &self.exchanges)?;
        self.check_latencies()
    }
}

/// Trials of closed loops, under the name that their field has.
fn check_trials(name: &str, trials: &[Trial]) -> Result<(), String> {
    let positive = |number: f64| number > 0.0 && number.is_finite();
    let rate = |number: f64| number >= 0.0 && number.is_finite();
    for (index, trial) in trials.iter().enumerate() {
        let Trial { cell, round, .. } = trial;
        let place = format!("{name}, {} at {}, round {round}", cell.scheme.name(), cell.server.name());
        let is_sound = rate(trial.answered_rps)
            && (0.0..=1.0).contains(&trial.loss_ratio)
            && trial.cpu_us.is_none_or(positive)
            && trial.server_share.is_none_or(rate);
        if !is_sound {
            return Err(format!("{place}: a rate, a share or a time cannot be"));
        }
        if trials[..index].iter().any(|other| (other.cell, other.round) == (*cell, *round)) {
            return Err(format!("{place}: it is there twice"));
        }
    }
    Ok(())
}
