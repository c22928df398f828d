//! The ANTP paper's measurements (section 4.2): throughput and latency of each phase under both suites, over a short
//! and a long path, and complete runs, beside plain NTP.
//!
//! - `bench`: the servers, and the load runs against them.
//! - `trials`: what one measurement takes.
//! - `primitives`: what key encapsulation takes.
//!
//! The record is written after each trial, so that an interrupted study goes on with the next.

mod bench;
mod primitives;
mod trials;

use std::time::Duration;

use authentick_net::clock::unix_seconds;
use authentick_report::Report;
use authentick_report::published::antp::{TRIAL_COUNT, TRIAL_SECONDS};
use authentick_report::study::Paper as Stored;
use authentick_report::study::antp::{
    AntpRecord, Capacity, Level, Path as Way, Phase, Plan as AntpPlan, RECORD, Settings as AntpSettings,
    Subject, Suite, report,
};

use self::bench::Bench;
use crate::folder::Folder;
use crate::single::{self, Single};
use crate::{Caller, Error, Paper};

/// The round trip of the long path, from one coast of North America to the other.
const LONG_PATH_MS: f64 = 70.0;
/// Seconds of a trial for those in a hurry.
const QUICK_SECONDS: f64 = 1.0;
/// Seconds of a step of a search at most: a trial of the paper's length would make a search take an hour.
const SEARCH_SECONDS_MAX: f64 = 5.0;
const QUICK_SEARCH_SECONDS: f64 = 0.25;
/// Requests a second of the clients whose latency is taken: few, so that they are no load.
const MEASURED_RPS: f64 = 100.0;
/// How long each primitive runs in a round.
const PRIMITIVE_TURN: Duration = Duration::from_millis(100);
const QUICK_PRIMITIVE_TURN: Duration = Duration::from_millis(10);

/// One thing to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Task {
    Primitives,
    /// A capacity, before its trials.
    Search(Subject, Way),
    Throughput(Subject, Way),
    Latency(Subject, Level, Way),
}

/// The paper, as the user wants it repeated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Antp {
    /// Whether some minutes are to do.
    pub quick: bool,
    /// How long a trial lasts, if not as long as the paper's.
    pub trial: Option<Duration>,
}

impl Paper for Antp {
    type Plan = AntpPlan;

    fn plan(&self, caller: &Caller<'_>) -> AntpPlan {
        let quick = self.quick;
        let default = if quick { QUICK_SECONDS } else { TRIAL_SECONDS };
        let trial_seconds = self.trial.map_or(default, |trial| trial.as_secs_f64());
        let search_seconds_max = if quick { QUICK_SEARCH_SECONDS } else { SEARCH_SECONDS_MAX };
        AntpPlan {
            paper: Stored::Antp,
            command: caller.program.command.clone(),
            started_unix_s: unix_seconds(),
            settings: AntpSettings {
                version: caller.program.version.clone(),
                commit: caller.program.commit.clone(),
                quick,
                trial_seconds,
                throughput_trials: if quick { 2 } else { TRIAL_COUNT },
                latency_trials: if quick { 1 } else { TRIAL_COUNT },
                search_seconds: trial_seconds.min(search_seconds_max),
                measured_rps: MEASURED_RPS,
                long_path_ms: LONG_PATH_MS,
            },
        }
    }

    fn run(&self, folder: &mut Folder<AntpPlan>, caller: &Caller<'_>) -> Result<(), Error> {
        let mut record = single::record(folder)?.unwrap_or_else(|| begun(&folder.plan, caller));
        let mut tasks = tasks();
        tasks.retain(|task| open_count(&record, *task) > 0);
        if tasks.is_empty() {
            return Ok(());
        }
        let bench = Bench::new(&folder.plan.settings, *caller)?;
        measure(folder, &mut record, &tasks, &bench)
    }
}

impl Single for AntpSettings {
    const RECORD: &'static str = RECORD;
    type Record = AntpRecord;

    fn report(_: &AntpPlan, record: &AntpRecord) -> Report {
        report(record)
    }
}

fn begun(plan: &AntpPlan, caller: &Caller<'_>) -> AntpRecord {
    AntpRecord {
        version: caller.program.version.clone(),
        commit: caller.program.commit.clone(),
        command: plan.command.clone(),
        started_unix_s: plan.started_unix_s,
        host: caller.program.host.clone(),
        settings: plan.settings.clone(),
        remarks: Vec::new(),
        primitives: Vec::new(),
        capacities: Vec::new(),
        trials: Vec::new(),
        latencies: Vec::new(),
    }
}

/// All there is to measure, in this order: latency needs the capacities.
fn tasks() -> Vec<Task> {
    let mut tasks = vec![Task::Primitives];
    for subject in Subject::ALL {
        tasks.extend([Task::Search(subject, Way::Short), Task::Throughput(subject, Way::Short)]);
    }
    for suite in Suite::ALL {
        let subject = Subject::new(Phase::Negotiation, suite);
        tasks.extend([Task::Search(subject, Way::Gigabit), Task::Throughput(subject, Way::Gigabit)]);
    }
    let complete = Suite::ALL.map(|suite| Subject::new(Phase::Complete, suite));
    for way in [Way::Short, Way::Long] {
        for subject in Subject::ALL.into_iter().chain(complete) {
            tasks.extend(Level::ALL.map(|level| Task::Latency(subject, level, way)));
        }
    }
    tasks
}

/// How many measurements of a task are missing in the record.
fn open_count(record: &AntpRecord, task: Task) -> u32 {
    let settings = &record.settings;
    let (wanted, there) = match task {
        Task::Primitives => (1, usize::from(!record.primitives.is_empty())),
        Task::Search(subject, way) => (1, usize::from(record.capacity(subject, way).is_some())),
        Task::Throughput(subject, way) => (settings.throughput_trials, record.trials(subject, way).count()),
        Task::Latency(subject, level, way) => {
            let there = record.latencies(subject, subject.background(), level, way).count();
            (settings.latency_trials, there)
        }
    };
    wanted.saturating_sub(there as u32)
}

/// Measures what is missing. What cannot be measured for want of a capacity or of a path is said in the record.
fn measure(
    folder: &Folder<AntpPlan>,
    record: &mut AntpRecord,
    tasks: &[Task],
    bench: &Bench<'_>,
) -> Result<(), Error> {
    for remark in bench.remarks() {
        if !record.remarks.contains(&remark) {
            record.remarks.push(remark);
        }
    }
    for (index, task) in tasks.iter().enumerate() {
        let place = format!("[{}/{}]", index + 1, tasks.len());
        for _ in 0..open_count(record, *task) {
            if bench.caller.says_stop() || !step(record, *task, bench, &place)? {
                break;
            }
            folder.keep(RECORD, &record.to_json())?;
        }
        if bench.caller.says_stop() {
            break;
        }
    }
    folder.keep(RECORD, &record.to_json())
}

/// What a search has found, if it has.
fn capacity(record: &AntpRecord, subject: Subject, way: Way) -> Option<(&Capacity, f64)> {
    let found = record.capacity(subject, way)?;
    Some((found, found.rps?))
}

/// One measurement of a task; whether there was anything to measure, and it was not interrupted.
fn step(record: &mut AntpRecord, task: Task, bench: &Bench<'_>, place: &str) -> Result<bool, Error> {
    let console = bench.caller.console;
    match task {
        Task::Primitives => {
            let turn = if record.settings.quick { QUICK_PRIMITIVE_TURN } else { PRIMITIVE_TURN };
            record.primitives = primitives::measure(turn)?;
            console.note(&format!("{place} primitives"));
        }
        Task::Search(subject, way) => {
            if way == Way::Gigabit && !bench.has_gigabit() {
                return Ok(false);
            }
            let Some(capacity) = bench.search(subject, way)? else { return Ok(false) };
            let found = capacity.rps.map_or_else(|| "no rate held".to_owned(), |rps| format!("{rps:.0}/s"));
            console.note(&format!("{place} {subject}: capacity {found}"));
            record.capacities.push(capacity);
        }
        Task::Throughput(subject, way) => {
            let Some((capacity, rps)) = capacity(record, subject, way) else { return Ok(false) };
            let Some(trial) = bench.throughput(capacity, rps)? else { return Ok(false) };
            console.note(&format!("{place} {subject}: {:.0}/s answered", trial.answered_rps));
            record.trials.push(trial);
        }
        Task::Latency(subject, level, way) => {
            let Some((_, rps)) = capacity(record, subject.background(), Way::Short) else { return Ok(false) };
            let Some(latency) = bench.latency(subject, level, way, rps * level.share())? else {
                return Ok(false);
            };
            let median = latency.times.map_or(f64::NAN, |times| times.p50_us);
            console.note(&format!("{place} {subject}, {way:?} path, {level:?}: {median:.1} us"));
            record.latencies.push(latency);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capacity_is_found_before_it_is_needed() {
        let tasks = tasks();
        let at = |task: Task| tasks.iter().position(|other| *other == task).unwrap();
        for (index, task) in tasks.iter().enumerate() {
            match *task {
                Task::Primitives | Task::Search(..) => {}
                Task::Throughput(subject, way) => assert!(at(Task::Search(subject, way)) < index),
                Task::Latency(subject, ..) => {
                    assert!(at(Task::Search(subject.background(), Way::Short)) < index);
                }
            }
        }
        // Seven rows and two behind a link, each searched for and tried; nine rows under two loads on two paths.
        assert_eq!(tasks.len(), 1 + 2 * (7 + 2) + 9 * 2 * 2);
    }
}
