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

use authentick_report::Report;
use authentick_report::load::LoadRecord;
use authentick_report::published::request_threshold::TABLE_1;
use authentick_report::study::Task;
use authentick_report::study::antp::why_invalid;
use authentick_report::study::request_threshold::{
    Found as ThresholdFound, Part, Records, Run, Settings, report,
};
use authentick_report::units::rate;

use self::hosts::Inequality;
use self::runs::Bench;
use crate::folder::Folder;
use crate::paper::{Found, Planned};
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
    /// A file of prefixes that may be loaded.
    pub allow_list: Option<PathBuf>,
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

impl RequestThreshold {
    /// The same, if what was said of other hosts is of use.
    ///
    /// # Errors
    /// [`Error::Usage`] if it is about a server that nobody named.
    pub fn checked(self) -> Result<Self, Error> {
        let why = match (&self.target, &self.hosts, self.permit.is_some() || self.allow_list.is_some()) {
            (None, Some(_), _) => {
                "--agents needs --target: other hosts do not reach a server on this one's loopback"
            }
            (None, None, true) => {
                "--permit and --allow-list need --target: a server of this study is nobody else's"
            }
            (Some(_), _, _) | (None, None, false) => return Ok(self),
        };
        Err(Error::Usage(why.to_owned()))
    }
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
    type Settings = Settings;
    type Rig<'a> = Bench<'a>;

    fn plan(&self) -> Planned<Settings> {
        let inequality = Inequality::find();
        let is_ours = self.target.is_none();
        let given = self.given.is_some();
        let agents = self.hosts.as_ref().map_or_else(Vec::new, |hosts| hosts.names.clone());
        let defaults = if self.quick { QUICK } else { NOTE };
        let seconds = defaults.map(|default| self.step.unwrap_or(default).as_secs_f64());
        let settings = Settings {
            target: self.target.clone(),
            agents: agents.clone(),
            scale: self.scale,
            quick: self.quick,
            one_host_seconds: seconds[0],
            several_hosts_seconds: seconds[1],
            configuration_seconds: seconds[2],
            timeout_seconds: if self.quick { QUICK_TIMEOUT } else { TIMEOUT }.as_secs_f64(),
            configurations_given: given,
        };
        let found = ThresholdFound {
            scale: self.scale.or((!is_ours).then_some(1.0)),
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
        };
        Planned { tasks: settings.tasks(), settings, found }
    }

    fn obstacles(&self) -> Vec<String> {
        match Inequality::find() {
            Inequality::Quotas => Vec::new(),
            inequality @ (Inequality::Priorities | Inequality::None) => vec![inequality.remark()],
        }
    }

    fn rig<'a>(&'a self, _: &mut Folder<Settings>, caller: Caller<'a>) -> Result<Bench<'a>, Error> {
        Bench::new(self, Inequality::find(), caller)
    }

    fn run(&self, task: &Task, bench: &mut Bench<'_>, folder: &mut Folder<Settings>) -> Result<Found, Error> {
        let Some(run) = Run::of(&task.id) else {
            return Ok(Found::Infeasible("the plan has a task that this version does not know".to_owned()));
        };
        let given = self.given.as_ref().and_then(|[old, new]| match run.part {
            Part::Old => Some(old),
            Part::New => Some(new),
            Part::Scale | Part::OneHost | Part::SeveralHosts => None,
        });
        if let Some(given) = given {
            return Ok(Found::Measured { record: given.to_json(), line: line(&run, given) });
        }
        let found = measure(folder, &run, bench)?;
        // Rows that are there already have the factor that was found first.
        if let Found::Measured { record, .. } = &found
            && run.part == Part::Scale
            && folder.plan.found.scale.is_none()
        {
            let record = LoadRecord::from_json(record).map_err(|error| Error::Bug(error.to_string()))?;
            folder.plan.found.scale = Some(found_scale(&record)?);
        }
        Ok(found)
    }

    fn render(folder: &Folder<Settings>) -> Result<Report, Error> {
        let mut records = Records::default();
        for task in &folder.plan.tasks {
            let record = folder.record(task, LoadRecord::from_json)?;
            match Run::of(&task.id).map(|run| run.part) {
                Some(Part::Old) => records.old = record,
                Some(Part::New) => records.new = record,
                Some(Part::OneHost) => records.one_host.push(record),
                Some(Part::SeveralHosts) => records.several_hosts.push(record),
                Some(Part::Scale) | None => {}
            }
        }
        Ok(report(&folder.plan, &records))
    }
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

/// Carries out one run.
fn measure(folder: &mut Folder<Settings>, run: &Run, bench: &mut Bench<'_>) -> Result<Found, Error> {
    // A row shows a limit, whosever it is. The ratio of two configurations needs two runs that are sound.
    let (attempt_count, must_be_sound) = match run.part {
        Part::Old | Part::New => (ATTEMPT_COUNT_MAX, true),
        Part::Scale | Part::OneHost | Part::SeveralHosts => (1, false),
    };
    let mut attempt = 1;
    loop {
        let mut words = vec!["load".to_owned(), "plain".to_owned()];
        words.extend(bench.arguments(folder, run)?);
        let file = bench.record_file();
        // One of the run before is not taken for this one's.
        let _ = fs::remove_file(&file);
        say(&mut words, "--record", &file.display());
        let caller = bench.caller();
        let status = caller.load(Launch::Here, &words)?;
        let text = fs::read_to_string(&file).unwrap_or_default();
        let Some(record) = whole(&text) else {
            return match caller.says_stop() {
                true => Ok(Found::Stopped(None)),
                false => Err(caller.program.nothing_came(&run.id, status, &words)),
            };
        };
        if record.interrupted.is_some() {
            return Ok(Found::Stopped(Some(text)));
        }
        let why = record.steps.iter().find_map(why_invalid);
        match why.filter(|_| must_be_sound) {
            None => return Ok(Found::Measured { line: line(run, &record), record: kept(record) }),
            Some(why) if attempt == attempt_count || caller.says_stop() => {
                return Ok(Found::Invalid { record: kept(record), why });
            }
            Some(_) => caller.console.note("the generator fell behind; again"),
        }
        attempt += 1;
    }
}

/// A record as it is kept: no table here needs the precision of its distributions, in which most of its size lies.
fn kept(mut record: LoadRecord) -> String {
    for step in &mut record.steps {
        step.tally.histograms = step.tally.histograms.coarse();
    }
    record.to_json()
}

/// A finished run for whoever watches.
fn line(run: &Run, record: &LoadRecord) -> String {
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
