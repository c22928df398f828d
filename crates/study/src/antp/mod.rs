//! The ANTP paper's measurements (section 4.2): throughput and latency of each phase under both suites, over a short
//! and a long path, and complete runs, beside plain NTP.
//!
//! - `bench`: the servers, and the load runs against them.
//! - `trials`: what one measurement takes.
//! - `tune`: the rate of trials, which keeps the server about as busy as the paper's was.
//! - `primitives`: what key encapsulation takes.
//!
//! Each task has a record of its own, so that an interrupted study goes on with the next.

mod bench;
mod primitives;
mod trials;
mod tune;

use std::time::Duration;

use authentick_report::Report;
use authentick_report::published::antp::{TRIAL_COUNT, TRIAL_SECONDS};
use authentick_report::study::Task;
use authentick_report::study::antp::{
    AntpRecord, Capacity, Found as AntpFound, Measure, Settings as AntpSettings, Subject, report_on,
};

use self::bench::Bench;
use crate::folder::Folder;
use crate::paper::{Found, Planned};
use crate::{Caller, Error, Paper};

/// The round trip of the long path, from one coast of North America to the other.
const LONG_PATH_MS: f64 = 70.0;
/// Seconds of a trial for those in a hurry.
const QUICK_SECONDS: f64 = 1.0;
/// Seconds of a trial of latency, unless one of throughput is shorter. With the paper's length its 36 cells would take
/// five hours; the percentiles of five trials of this length rest on 7,500 answers.
const LATENCY_SECONDS_MAX: f64 = 15.0;
/// Seconds of a step of a search at most: a trial of the paper's length would make a search take an hour.
const SEARCH_SECONDS_MAX: f64 = 5.0;
const QUICK_SEARCH_SECONDS: f64 = 0.25;
/// Requests a second of the clients whose latency is taken: few, so that they are no load.
const MEASURED_RPS: f64 = 100.0;
/// How long each primitive runs in a round.
const PRIMITIVE_TURN: Duration = Duration::from_millis(100);
const QUICK_PRIMITIVE_TURN: Duration = Duration::from_millis(10);

/// The paper, as the user wants it repeated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Antp {
    /// Whether some minutes are to do.
    pub quick: bool,
    /// How long a trial lasts, if not as long as the paper's.
    pub trial: Option<Duration>,
}

impl Paper for Antp {
    type Settings = AntpSettings;
    type Rig<'a> = Bench<'a>;

    fn plan(&self) -> Planned<AntpSettings> {
        let quick = self.quick;
        let default = if quick { QUICK_SECONDS } else { TRIAL_SECONDS };
        let trial_seconds = self.trial.map_or(default, |trial| trial.as_secs_f64());
        let search_seconds_max = if quick { QUICK_SEARCH_SECONDS } else { SEARCH_SECONDS_MAX };
        let settings = AntpSettings {
            quick,
            trial_seconds,
            throughput_trials: if quick { 2 } else { TRIAL_COUNT },
            latency_trials: if quick { 1 } else { TRIAL_COUNT },
            latency_seconds: trial_seconds.min(LATENCY_SECONDS_MAX),
            search_seconds: trial_seconds.min(search_seconds_max),
            measured_rps: MEASURED_RPS,
            long_path_ms: LONG_PATH_MS,
        };
        Planned { tasks: settings.tasks(), found: AntpFound::default(), settings }
    }

    fn obstacles(&self) -> Vec<String> {
        let why = bench::gigabit().err();
        why.map(|why| format!("Negotiation is not measured behind 1 Gbit/s: {why}.")).into_iter().collect()
    }

    fn rig<'a>(&'a self, folder: &mut Folder<AntpSettings>, caller: Caller<'a>) -> Result<Bench<'a>, Error> {
        let bench = Bench::new(&folder.plan.settings, caller)?;
        for remark in bench.remarks() {
            if !folder.plan.found.remarks.contains(&remark) {
                folder.plan.found.remarks.push(remark);
            }
        }
        folder.keep_plan()?;
        Ok(bench)
    }

    fn run(
        &self,
        task: &Task,
        bench: &mut Bench<'_>,
        folder: &mut Folder<AntpSettings>,
    ) -> Result<Found, Error> {
        let Some(measure) = Measure::of(&task.id) else {
            return Ok(Found::Infeasible("the plan has a task that this version does not know".to_owned()));
        };
        let mut record = AntpRecord::of(&folder.plan);
        match measure {
            Measure::Primitives => {
                let turn = if bench.settings.quick { QUICK_PRIMITIVE_TURN } else { PRIMITIVE_TURN };
                record.primitives = primitives::measure(turn)?;
                Ok(measured(&record, "primitives of both suites".to_owned()))
            }
            Measure::Search(subject, way) => {
                if let Some(why) = bench.why_not(way) {
                    return Ok(Found::Infeasible(why));
                }
                Ok(bench.search(subject, way)?.kept(|capacity| {
                    let found =
                        capacity.rps.map_or_else(|| "no rate held".to_owned(), |rps| format!("{rps:.0}/s"));
                    let line = format!("{subject}: capacity {found}");
                    record.capacities.push(capacity);
                    measured(&record, line)
                }))
            }
            Measure::Throughput(subject, _) => {
                let Some((capacity, rps)) = capacity(folder, task)? else { return Ok(no_capacity(subject)) };
                Ok(bench.throughput(&capacity, rps)?.kept(|trial| {
                    let line = format!("{subject}: {:.0}/s answered", trial.answered_rps);
                    let why = trial.why_invalid.clone();
                    record.trials.push(trial);
                    judged(&record, line, why)
                }))
            }
            Measure::Latency(subject, level, way) => {
                let background = subject.background();
                let Some((_, rps)) = capacity(folder, task)? else { return Ok(no_capacity(background)) };
                Ok(bench.latency(subject, level, way, rps * level.share())?.kept(|latency| {
                    let median = latency.times.map_or(f64::NAN, |times| times.p50_us);
                    let line = format!("{subject}, {way:?} path, {level:?}: {median:.1} us");
                    let why = latency.why_invalid.clone();
                    record.latencies.push(latency);
                    judged(&record, line, why)
                }))
            }
        }
    }

    fn render(folder: &Folder<AntpSettings>) -> Result<Report, Error> {
        let mut records = Vec::new();
        for task in &folder.plan.tasks {
            records.extend(folder.record(task, AntpRecord::from_json)?);
        }
        Ok(report_on(&folder.plan.tasks, &AntpRecord::merged(&folder.plan, records)))
    }
}

/// What a search found that a task needs, if it found a rate.
fn capacity(folder: &Folder<AntpSettings>, task: &Task) -> Result<Option<(Capacity, f64)>, Error> {
    let Some(search) = task.needs.first() else { return Ok(None) };
    let record = folder.record_of(search, AntpRecord::from_json)?;
    let found = record.and_then(|record| record.capacities.into_iter().next());
    Ok(found.and_then(|capacity| capacity.rps.map(|rps| (capacity, rps))))
}

fn no_capacity(subject: Subject) -> Found {
    Found::Infeasible(format!("there is no capacity of {subject} to take a share of"))
}

fn measured(record: &AntpRecord, line: String) -> Found {
    Found::Measured { record: record.to_json(), line }
}

/// A trial, which may say nothing about the server.
fn judged(record: &AntpRecord, line: String, why_invalid: Option<String>) -> Found {
    match why_invalid {
        None => measured(record, line),
        Some(why) => Found::Invalid { record: record.to_json(), why },
    }
}
