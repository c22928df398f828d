//! The runs of "NTP Server Capacity Testing": rates from one host, rates from several, and two configurations.
//!
//! Each run is an `authentick load` of its own, whose record is kept as it ends. Without a target all of it happens on
//! this machine's loopback.
//!
//! - `runs`: what a run is started with.
//! - `hosts`: agents on this machine that stand for hosts of unequal strength.

mod hosts;
mod runs;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use authentick_net::clock::unix_seconds;
use authentick_report::load::LoadRecord;
use authentick_report::published::request_threshold::TABLE_1;
use authentick_report::study::Paper as Stored;
use authentick_report::study::request_threshold::{
    Part, Plan as StudyPlan, PlannedRun, Records, Settings, report,
};
use authentick_report::units::rate;

use self::hosts::Inequality;
use self::runs::Bench;
use crate::folder::{Folder, Plan};
use crate::program::{Launch, say, whole};
use crate::{Caller, Error, Paper};

/// The note's durations of a row of Table 1 and of Table 2. A configuration is measured as long as the latter.
const NOTE: [Duration; 3] = [Duration::from_secs(60), Duration::from_secs(100), Duration::from_secs(100)];
/// The same for those in a hurry.
const QUICK: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(1), Duration::from_secs(2)];
const TIMEOUT: Duration = Duration::from_secs(1);
const QUICK_TIMEOUT: Duration = Duration::from_millis(250);
/// Requests in flight while a configuration is measured.
const WINDOW: u32 = 256;
/// The share of a processor that the server has then, as an appliance's is slower than its clients.
const SERVER_SHARE: f64 = 0.1;
/// How often a configuration is measured until the generator has kept up.
const ATTEMPT_COUNT_MAX: u32 = 5;

/// The note, as the user wants it repeated.
#[derive(Clone, Debug, Default)]
pub struct RequestThreshold {
    /// Whether a minute is to do.
    pub quick: bool,
    /// How long each row lasts, if not as long as the note's.
    pub step: Option<Duration>,
    /// By how much the note's rates are multiplied, if not as it turns out.
    pub scale: Option<f64>,
    /// The server, if not one of our own on loopback.
    pub target: Option<String>,
    /// A host that may be loaded although its address is public.
    pub permit: Option<String>,
    /// Hosts that send, if not agents of our own.
    pub hosts: Option<NamedHosts>,
    /// Records of the server in its earlier and in its updated configuration.
    pub given: Option<[LoadRecord; 2]>,
}

/// Agents on other hosts, and the files by which coordinator and agents know each other.
#[derive(Clone, Debug)]
pub struct NamedHosts {
    /// The agents, as `load --agents` names them.
    pub names: Vec<String>,
    /// Authorities that vouch for agents.
    pub ca: PathBuf,
    /// The coordinator's certificates.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Reads a record that the user names with `option`.
///
/// # Errors
/// If it is none, or cannot be read.
pub fn given(option: &str, file: &std::path::Path) -> Result<LoadRecord, Error> {
    let text = fs::read_to_string(file).map_err(|error| Error::unreadable(file, &error))?;
    LoadRecord::from_json(&text).map_err(|error| Error::File {
        place: format!("{option} {}", file.display()),
        problem: error.to_string(),
        remedy: "name a record that authentick load wrote with --record FILE".to_owned(),
    })
}

impl Paper for RequestThreshold {
    type Plan = StudyPlan;

    fn plan(&self, caller: &Caller<'_>) -> StudyPlan {
        let inequality = Inequality::find();
        let is_ours = self.target.is_none();
        let given = self.given.is_some();
        let agents = self.hosts.as_ref().map_or_else(Vec::new, |hosts| hosts.names.clone());
        let defaults = if self.quick { QUICK } else { NOTE };
        let seconds = defaults.map(|default| self.step.unwrap_or(default).as_secs_f64());
        let scale = self.scale.or((!is_ours).then_some(1.0));
        let mut runs = Vec::new();
        if scale.is_none() {
            runs.push(PlannedRun::other(Part::Scale, "run-scale.json"));
        }
        runs.extend(PlannedRun::one_host());
        if is_ours || !agents.is_empty() {
            runs.extend(PlannedRun::several_hosts());
        }
        if is_ours || given {
            runs.push(PlannedRun::other(Part::Old, "run-old.json"));
            runs.push(PlannedRun::other(Part::New, "run-new.json"));
        }
        StudyPlan {
            paper: Stored::Threshold,
            command: caller.program.command.clone(),
            started_unix_s: unix_seconds(),
            settings: Settings {
                version: caller.program.version.clone(),
                commit: caller.program.commit.clone(),
                target: self.target.clone(),
                agents: agents.clone(),
                scale: self.scale,
                quick: self.quick,
                one_host_seconds: seconds[0],
                several_hosts_seconds: seconds[1],
                configuration_seconds: seconds[2],
                timeout_seconds: if self.quick { QUICK_TIMEOUT } else { TIMEOUT }.as_secs_f64(),
                configurations_given: given,
            },
            scale,
            hosts_remark: match (is_ours, agents.len()) {
                (true, _) => inequality.remark(),
                (false, 0) => "Several hosts were not measured: no --agents were named.".to_owned(),
                (false, 3) => "Our hosts are the agents that were named.".to_owned(),
                (false, count) => {
                    format!("Our hosts are the agents that were named, {count} instead of three.")
                }
            },
            hosts: agents,
            configurations_remark: configurations_remark(is_ours, given, inequality),
            processors: match inequality {
                _ if !is_ours || given => None,
                Inequality::Quotas => Some(SERVER_SHARE),
                Inequality::Priorities | Inequality::None => Some(1.0),
            },
            runs,
        }
    }

    fn run(&self, folder: &mut Folder<StudyPlan>, caller: &Caller<'_>) -> Result<(), Error> {
        for (part, record) in [Part::Old, Part::New].into_iter().zip(self.given.iter().flatten()) {
            if let Some(run) = folder.plan.runs.iter().find(|run| run.part == part) {
                folder.keep(&run.file, &record.to_json())?;
            }
        }
        let mut bench = Bench::new(self, Inequality::find(), *caller)?;
        let runs = folder.plan.runs.clone();
        for (index, run) in runs.iter().enumerate() {
            if caller.says_stop() {
                break;
            }
            if !is_measured(folder, run)? {
                let place = format!("[{}/{}]", index + 1, runs.len());
                measure(folder, run, &mut bench, &place, caller)?;
            }
            if run.part == Part::Scale && folder.plan.scale.is_none() {
                let Some(record) = record(folder, run)? else { break };
                folder.plan.scale = Some(found_scale(&record)?);
                folder.keep_plan()?;
            }
        }
        Ok(())
    }
}

impl Plan for StudyPlan {
    const PAPER: Stored = Stored::Threshold;

    fn has_settings_of(&self, other: &Self) -> bool {
        self.settings == other.settings
    }

    fn files(&self) -> Vec<&str> {
        self.runs.iter().map(|run| run.file.as_str()).collect()
    }

    fn render(folder: &Folder<Self>) -> Result<[String; 2], Error> {
        let mut records = Records::default();
        for run in &folder.plan.runs {
            let Some(record) = record(folder, run)? else {
                records.missing_count += 1;
                continue;
            };
            match run.part {
                Part::Scale => {}
                Part::Old => records.old = Some(record),
                Part::New => records.new = Some(record),
                Part::OneHost => add_row(folder, run, &mut records.one_host, record)?,
                Part::SeveralHosts => add_row(folder, run, &mut records.several_hosts, record)?,
            }
        }
        let report = report(&folder.plan, &records);
        Ok([report.text(), report.page()])
    }
}

/// Adds the record of a row. Rows stand beside the published ones by their order, so none may be missing before
/// another.
fn add_row(
    folder: &Folder<StudyPlan>,
    run: &PlannedRun,
    rows: &mut Vec<LoadRecord>,
    record: LoadRecord,
) -> Result<(), Error> {
    let mut planned = folder.plan.runs.iter().filter(|other| other.part == run.part);
    match planned.nth(rows.len()) {
        Some(next) if next != run => Err(folder.gap(&next.file)),
        Some(_) | None => {
            rows.push(record);
            Ok(())
        }
    }
}

/// The record of a run, if it is there.
fn record(folder: &Folder<StudyPlan>, run: &PlannedRun) -> Result<Option<LoadRecord>, Error> {
    folder.record(&run.file, LoadRecord::from_json)
}

/// Whether the record of a run is there and whole. An interrupted one is to be measured again.
fn is_measured(folder: &Folder<StudyPlan>, run: &PlannedRun) -> Result<bool, Error> {
    Ok(record(folder, run)?.is_some_and(|record| record.interrupted.is_none() && !record.steps.is_empty()))
}

fn configurations_remark(is_ours: bool, given: bool, inequality: Inequality) -> String {
    if given {
        return "Our two configurations are those of the records that were given with --old and --new."
            .to_owned();
    }
    if !is_ours {
        return "Keep a record of the server in each configuration (authentick load plain --search --record FILE), and \
                name them with --old and --new."
            .to_owned();
    }
    let processor = match inequality {
        Inequality::Quotas => format!("one worker that has {SERVER_SHARE} of a processor"),
        Inequality::Priorities | Inequality::None => "one worker".to_owned(),
    };
    format!(
        "Our two configurations are authentick serve with {processor}: the earlier one does no more than answer, \
         the updated one also counts every request for a rate limit that none exceeds (server.rate-limit), and times \
         it stage by stage (metrics.span-clients). {WINDOW} requests are kept in flight."
    )
}

/// Carries out one run and keeps its record.
fn measure(
    folder: &mut Folder<StudyPlan>,
    run: &PlannedRun,
    bench: &mut Bench<'_>,
    place: &str,
    caller: &Caller<'_>,
) -> Result<(), Error> {
    // A row shows a limit, whosever it is. The ratio of two configurations needs two runs that are sound.
    let attempt_count = match run.part {
        Part::Old | Part::New => ATTEMPT_COUNT_MAX,
        Part::Scale | Part::OneHost | Part::SeveralHosts => 1,
    };
    for attempt in 1..=attempt_count {
        let mut words = vec!["load".to_owned(), "plain".to_owned()];
        words.extend(bench.arguments(folder, run)?);
        say(&mut words, "--record", &folder.part(&run.file).display());
        let status = caller.load(Launch::Here, &words)?;
        let Some(record) = folder.take(&run.file, whole)? else {
            return match caller.says_stop() {
                true => Ok(()),
                false => Err(caller.program.nothing_came(&run.file, status, &words)),
            };
        };
        caller.console.note(&format!("{place} {}", line(run, &record)));
        if attempt == attempt_count || record.steps.iter().all(|step| step.valid) || caller.says_stop() {
            break;
        }
        caller.console.note("the generator fell behind; again");
    }
    Ok(())
}

/// A finished run for whoever watches.
fn line(run: &PlannedRun, record: &LoadRecord) -> String {
    let what = match run.part {
        Part::Scale => "the limit of this machine",
        Part::OneHost => "Table 1, one host",
        Part::SeveralHosts => "Table 2, several hosts",
        Part::Old => "the earlier configuration",
        Part::New => "the updated configuration",
    };
    let mut line = what.to_owned();
    for step in &record.steps {
        let offered = step.offered_rps.map_or_else(String::new, |rps| format!("{}/s specified, ", rate(rps)));
        write!(line, ": {offered}{}/s serviced", rate(step.answered_rps()))
            .expect("writing to a string cannot fail");
    }
    line
}

/// The factor that puts this machine's limit where the note's was: what a flood had answered, by the most that was
/// serviced in Table 1. Two digits, so that rates stay legible.
fn found_scale(record: &LoadRecord) -> Result<f64, Error> {
    let answered = record.steps.iter().map(authentick_report::load::Step::answered_rps).fold(0.0, f64::max);
    if answered <= 0.0 {
        return Err(Error::Silence);
    }
    let most = TABLE_1.iter().map(|row| row.serviced_rps).max().expect("the table has rows");
    let factor = answered / f64::from(most);
    let digit = 10f64.powf(factor.log10().floor() - 1.0);
    Ok((factor / digit).round() * digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_puts_the_limit_where_the_notes_was() {
        let text = include_str!("../../../report/tests/golden/load.json");
        let mut record = LoadRecord::from_json(text).unwrap();
        record.steps.truncate(1);
        let mut scale = |answered: u64| {
            record.steps[0].seconds = 1.0;
            record.steps[0].tally.answered = answered;
            found_scale(&record)
        };
        assert_eq!(scale(4_484).unwrap(), 1.0);
        assert_eq!(scale(150_000).unwrap(), 33.0);
        assert!((scale(3_000).unwrap() - 0.67).abs() < 1e-9);
        assert!(matches!(scale(0), Err(Error::Silence)));
    }
}
