//! The ANTP paper's measurements (section 4.2): throughput and latency of each phase under both suites, over a short
//! and a long path, and complete runs, beside plain NTP.
//!
//! - `bench`: the server, and what one trial takes.
//! - `relay`: the long path.
//! - `link`: the path of 1 Gbit/s, where the system lets us have one.
//! - `primitives`: what key encapsulation takes.
//!
//! The record is written after each trial, so that an interrupted study goes on with the next.

mod bench;
mod link;
mod primitives;
mod relay;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use authentick_net::clock::unix_seconds;
use authentick_report::published::antp::{TRIAL_COUNT, TRIAL_SECONDS};
use authentick_report::study::antp::{
    AntpFormat, AntpPlan, AntpRecord, AntpSettings, Capacity, Level, Path as Way, Phase, RECORD, Subject,
    Suite, html, text,
};
use authentick_report::study::plan::{Paper, StudyFormat};
use signal_hook::consts::{SIGINT, SIGTERM};

use self::bench::Bench;
use super::folder::{self, Known, no_plan, plan_text, write};
use crate::args::StudyRun;
use crate::exit::{Exit, Failure};
use crate::host::{COMMIT, VERSION, command, host};
use crate::output;

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

pub(super) fn run(arguments: &StudyRun) -> Result<Exit, Failure> {
    refuse_what_has_no_meaning(arguments)?;
    let path = &arguments.out;
    let plan = plan(arguments);
    let known =
        path.join(authentick_report::study::plan::FILE).exists().then(|| read_plan(path)).transpose()?;
    let known = known.as_ref().map(|known| Known {
        is_the_same: known.settings == plan.settings,
        version: &known.settings.version,
        commit: &known.settings.commit,
        command: &known.command,
    });
    folder::begin(path, RECORD, known, &plan.to_json())?;
    let mut record = record(path)?.unwrap_or_else(|| begun(&plan));
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let mut tasks = tasks();
    tasks.retain(|task| open_count(&record, *task) > 0);
    if !tasks.is_empty() {
        let mut bench = Bench::new(&plan.settings, &stop)?;
        carry_out(path, &mut record, &tasks, &mut bench, &stop)?;
    }
    render(path)?;
    if stop.load(Ordering::Relaxed) {
        output::error("stopped; what was measured is kept, and the same command goes on");
    }
    Ok(Exit::Done)
}

/// Options of other studies. One that did nothing would be worse than none.
fn refuse_what_has_no_meaning(arguments: &StudyRun) -> Result<(), Failure> {
    let given = [
        ("--scale", arguments.scale.is_some()),
        ("--target", arguments.target.is_some()),
        ("--agents", !arguments.coordination.agents.is_empty()),
        ("--old and --new", arguments.old.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            let message = format!(
                "{option}: of study run threshold alone, as this study brings a server of its own; leave it out"
            );
            Err(Failure::new(Exit::Usage, message))
        }
        None => Ok(()),
    }
}

fn plan(arguments: &StudyRun) -> AntpPlan {
    let quick = arguments.quick;
    let default = if quick { QUICK_SECONDS } else { TRIAL_SECONDS };
    let trial_seconds = arguments.step_seconds.map_or(default, |seconds| seconds.as_secs_f64());
    AntpPlan {
        format: StudyFormat::V1,
        paper: Paper::Antp,
        command: command(),
        started_unix_s: unix_seconds(),
        settings: AntpSettings {
            version: VERSION.to_owned(),
            commit: COMMIT.to_owned(),
            quick,
            trial_seconds,
            throughput_trials: if quick { 2 } else { TRIAL_COUNT },
            latency_trials: if quick { 1 } else { TRIAL_COUNT },
            search_seconds: trial_seconds.min(if quick { QUICK_SEARCH_SECONDS } else { SEARCH_SECONDS_MAX }),
            measured_rps: MEASURED_RPS,
            long_path_ms: LONG_PATH_MS,
        },
    }
}

fn begun(plan: &AntpPlan) -> AntpRecord {
    AntpRecord {
        format: AntpFormat::V1,
        version: VERSION.to_owned(),
        commit: COMMIT.to_owned(),
        command: plan.command.clone(),
        started_unix_s: plan.started_unix_s,
        host: host(),
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
fn carry_out(
    path: &Path,
    record: &mut AntpRecord,
    tasks: &[Task],
    bench: &mut Bench<'_>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    for remark in bench.remarks() {
        if !record.remarks.contains(&remark) {
            record.remarks.push(remark);
        }
    }
    for (index, task) in tasks.iter().enumerate() {
        let place = format!("[{}/{}]", index + 1, tasks.len());
        for _ in 0..open_count(record, *task) {
            if stop.load(Ordering::Relaxed) || !step(record, *task, bench, &place)? {
                break;
            }
            write(path, RECORD, &record.to_json())?;
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    write(path, RECORD, &record.to_json())
}

/// What a search has found, if it has.
fn capacity(record: &AntpRecord, subject: Subject, way: Way) -> Option<(&Capacity, f64)> {
    let found = record.capacity(subject, way)?;
    Some((found, found.rps?))
}

/// One measurement of a task; whether there was anything to measure, and it was not interrupted.
fn step(record: &mut AntpRecord, task: Task, bench: &mut Bench<'_>, place: &str) -> Result<bool, Failure> {
    match task {
        Task::Primitives => {
            let turn = if record.settings.quick { QUICK_PRIMITIVE_TURN } else { PRIMITIVE_TURN };
            record.primitives = primitives::measure(turn)?;
            output::aside(&format!("{place} primitives"));
        }
        Task::Search(subject, way) => {
            if way == Way::Gigabit && !bench.has_link() {
                return Ok(false);
            }
            let Some(capacity) = bench.search(subject, way)? else { return Ok(false) };
            let found = capacity.rps.map_or_else(|| "no rate held".to_owned(), |rps| format!("{rps:.0}/s"));
            output::aside(&format!("{place} {subject}: capacity {found}"));
            record.capacities.push(capacity);
        }
        Task::Throughput(subject, way) => {
            let Some((capacity, rps)) = capacity(record, subject, way) else { return Ok(false) };
            let Some(trial) = bench.throughput(capacity, rps)? else { return Ok(false) };
            output::aside(&format!("{place} {subject}: {:.0}/s answered", trial.answered_rps));
            record.trials.push(trial);
        }
        Task::Latency(subject, level, way) => {
            let Some((_, rps)) = capacity(record, subject.background(), Way::Short) else { return Ok(false) };
            let Some(latency) = bench.latency(subject, level, way, rps * level.share())? else {
                return Ok(false);
            };
            let median = latency.times.map_or(f64::NAN, |times| times.p50_us);
            output::aside(&format!("{place} {subject}, {way:?} path, {level:?}: {median:.1} us"));
            record.latencies.push(latency);
        }
    }
    Ok(true)
}

fn read_plan(path: &Path) -> Result<AntpPlan, Failure> {
    AntpPlan::from_json(&plan_text(path)?).map_err(|error| no_plan(path, &error))
}

/// The record, if the study has begun to measure.
fn record(path: &Path) -> Result<Option<AntpRecord>, Failure> {
    folder::record(path, RECORD, Paper::Antp, AntpRecord::from_json)
}

/// Writes text and page from what is in the folder, and prints the text.
pub(super) fn render(path: &Path) -> Result<(), Failure> {
    let plan = read_plan(path)?;
    let Some(record) = record(path)? else {
        return Err(folder::not_carried_out(path, RECORD, &plan.command));
    };
    folder::publish(path, &text::study(&record), &html::study(&record))
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
