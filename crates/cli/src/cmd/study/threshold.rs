//! The runs of "NTP Server Capacity Testing": rates from one host, rates from several, and two configurations.
//!
//! Each run is an `authentick load` of its own, whose record is kept as it ends. Without a target all of it happens on
//! this machine's loopback.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use authentick_net::clock::unix_seconds;
use authentick_report::load::LoadRecord;
use authentick_report::published::request_threshold::TABLE_1;
use authentick_report::study::plan::{Paper, Part, PlannedRun, Settings, StudyFormat, StudyPlan};
use authentick_report::units::rate;
use signal_hook::consts::{SIGINT, SIGTERM};
use tempfile::TempDir;

use super::folder::{Folder, unreadable};
use super::helper::{self, Helper};
use super::hosts::{Agents, Inequality, Papers, Quota, remove_orphans};
use crate::args::StudyRun;
use crate::exit::{Exit, Failure};
use crate::host::{COMMIT, VERSION, command};
use crate::output;

/// The note's durations of a row of Table 1 and of Table 2. A configuration is measured as long as the latter.
const NOTE: [Duration; 3] = [Duration::from_secs(60), Duration::from_secs(100), Duration::from_secs(100)];
/// The same for those in a hurry.
const QUICK: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(1), Duration::from_secs(2)];
const TIMEOUT: Duration = Duration::from_secs(1);
const QUICK_TIMEOUT: Duration = Duration::from_millis(250);
/// What is offered to find this machine's limit: more than any host sends.
const FLOOD_RPS: f64 = 2e6;
/// The limit is looked for in so long a run at most.
const SCALE_MAX: Duration = Duration::from_secs(2);
/// Requests in flight while a configuration is measured.
const WINDOW: u32 = 256;
/// The share of a processor that the server has then, as an appliance's is slower than its clients.
const SERVER_SHARE: f64 = 0.1;

/// How often a configuration is measured until the generator has kept up.
const ATTEMPT_COUNT_MAX: u32 = 5;

/// Which server is running, where the study brings its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Configuration {
    /// One worker that does no more than answer.
    Plain,
    /// The same under a quota.
    Old,
    /// The same under the same quota, which also counts every request for a rate limit, and times it.
    New,
}

pub(super) fn run(arguments: &StudyRun) -> Result<Exit, Failure> {
    if arguments.target.is_none() && !arguments.coordination.agents.is_empty() {
        let message = "--agents needs --target: other hosts do not reach a server on this one's loopback";
        return Err(Failure::new(Exit::Usage, message));
    }
    let given = given(arguments)?;
    remove_orphans();
    let inequality = Inequality::find();
    let mut folder = Folder::open(&arguments.out, plan(arguments, inequality))?;
    for (part, record) in &given {
        if let Some(run) = folder.plan.runs.iter().find(|run| run.part == *part) {
            folder.keep(run, record)?;
        }
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let mut bench = Bench::new(arguments, inequality)?;
    let runs = folder.plan.runs.clone();
    for (index, run) in runs.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if !folder.has(run)? {
            let place = format!("[{}/{}]", index + 1, runs.len());
            measure(&mut folder, run, &mut bench, &place, &stop)?;
        }
        if run.part == Part::Scale && folder.plan.scale.is_none() {
            let Some(record) = folder.record(run)? else { break };
            folder.plan.scale = Some(found_scale(&record)?);
            folder.keep_plan()?;
        }
    }
    drop(bench);
    folder.render()?;
    if stop.load(Ordering::Relaxed) {
        output::error("stopped; what was measured is kept, and the same command goes on");
    }
    Ok(Exit::Done)
}

/// The records of two configurations that the user names.
fn given(arguments: &StudyRun) -> Result<Vec<(Part, LoadRecord)>, Failure> {
    let read = |option: &str, file: &Path| {
        let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
        LoadRecord::from_json(&text).map_err(|error| {
            let remedy = "name a record that authentick load wrote with --record FILE";
            Failure::new(Exit::Configuration, format!("{option} {}: {error}; {remedy}", file.display()))
        })
    };
    match (&arguments.old, &arguments.new) {
        (Some(old), Some(new)) => {
            Ok(vec![(Part::Old, read("--old", old)?), (Part::New, read("--new", new)?)])
        }
        (None, None) | (None, Some(_)) | (Some(_), None) => Ok(Vec::new()),
    }
}

fn plan(arguments: &StudyRun, inequality: Inequality) -> StudyPlan {
    let is_ours = arguments.target.is_none();
    let given = arguments.old.is_some();
    let agents = arguments.coordination.agents.clone();
    let defaults = if arguments.quick { QUICK } else { NOTE };
    let seconds = defaults.map(|default| arguments.step_seconds.unwrap_or(default).as_secs_f64());
    let scale = arguments.scale.or((!is_ours).then_some(1.0));
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
        format: StudyFormat::V1,
        paper: Paper::Threshold,
        command: command(),
        started_unix_s: unix_seconds(),
        settings: Settings {
            version: VERSION.to_owned(),
            commit: COMMIT.to_owned(),
            target: arguments.target.clone(),
            agents: agents.clone(),
            scale: arguments.scale,
            quick: arguments.quick,
            one_host_seconds: seconds[0],
            several_hosts_seconds: seconds[1],
            configuration_seconds: seconds[2],
            timeout_seconds: if arguments.quick { QUICK_TIMEOUT } else { TIMEOUT }.as_secs_f64(),
            configurations_given: given,
        },
        scale,
        hosts_remark: match (is_ours, agents.len()) {
            (true, _) => inequality.remark(),
            (false, 0) => "Several hosts were not measured: no --agents were named.".to_owned(),
            (false, 3) => "Our hosts are the agents that were named.".to_owned(),
            (false, count) => format!("Our hosts are the agents that were named, {count} instead of three."),
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
    folder: &mut Folder,
    run: &PlannedRun,
    bench: &mut Bench<'_>,
    place: &str,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    // A row shows a limit, whosever it is. The ratio of two configurations needs two runs that are sound.
    let attempt_count = match run.part {
        Part::Old | Part::New => ATTEMPT_COUNT_MAX,
        Part::Scale | Part::OneHost | Part::SeveralHosts => 1,
    };
    for attempt in 1..=attempt_count {
        let mut words = vec!["load".to_owned(), "plain".to_owned()];
        words.extend(bench.arguments(folder, run)?);
        words.extend(["--record".to_owned(), folder.part(run).to_string_lossy().into_owned()]);
        let status = helper::load(&words, stop)?;
        let Some(record) = folder.take(run)? else {
            return match stop.load(Ordering::Relaxed) {
                true => Ok(()),
                false => Err(helper::nothing_came(&run.file, status, &words)),
            };
        };
        output::aside(&format!("{place} {}", line(run, &record)));
        if attempt == attempt_count
            || record.steps.iter().all(|step| step.valid)
            || stop.load(Ordering::Relaxed)
        {
            break;
        }
        output::aside("the generator fell behind; again");
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
fn found_scale(record: &LoadRecord) -> Result<f64, Failure> {
    let answered = record.steps.iter().map(authentick_report::load::Step::answered_rps).fold(0.0, f64::max);
    if answered <= 0.0 {
        return Err(Failure::new(Exit::Silence, "the server of this study answered nothing"));
    }
    let most = TABLE_1.iter().map(|row| row.serviced_rps).max().expect("the table has rows");
    let factor = answered / f64::from(most);
    let digit = 10f64.powf(factor.log10().floor() - 1.0);
    Ok((factor / digit).round() * digit)
}

/// Files, each with the option of `load` that takes it.
type Files = [(&'static str, PathBuf); 3];

/// What runs need: a server and agents, started when they are.
struct Bench<'a> {
    arguments: &'a StudyRun,
    inequality: Inequality,
    folder: TempDir,
    papers: Papers,
    server: Option<(Configuration, Helper, Option<Quota>)>,
    agents: Option<Agents>,
}

impl<'a> Bench<'a> {
    fn new(arguments: &'a StudyRun, inequality: Inequality) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let papers = Papers::new(folder.path())?;
        Ok(Bench { arguments, inequality, folder, papers, server: None, agents: None })
    }

    /// The arguments of a run, all but the scheme and the record. Starts what it needs.
    fn arguments(&mut self, folder: &mut Folder, run: &PlannedRun) -> Result<Vec<String>, Failure> {
        let settings = folder.plan.settings.clone();
        let mut words = vec![match &self.arguments.target {
            Some(target) => target.clone(),
            None => self.server(run.part)?.address.to_string(),
        }];
        let mut say = |option: &str, value: String| words.extend([option.to_owned(), value]);
        if let Some(host) = &self.arguments.permit {
            say("--permit", host.clone());
        }
        say("--timeout", settings.timeout_seconds.to_string());
        let seconds = match run.part {
            Part::Scale => settings.one_host_seconds.min(SCALE_MAX.as_secs_f64()),
            Part::OneHost => settings.one_host_seconds,
            Part::SeveralHosts => settings.several_hosts_seconds,
            Part::Old | Part::New => settings.configuration_seconds,
        };
        say("--step-seconds", seconds.to_string());
        let rate = run.published_rps.unwrap_or(0.0) * folder.plan.scale.unwrap_or(1.0);
        match run.part {
            Part::Scale => say("--rate", FLOOD_RPS.to_string()),
            Part::OneHost => say("--rate", rate.to_string()),
            Part::SeveralHosts => {
                let (hosts, papers) = self.hosts(folder)?;
                say("--rate", (rate * hosts.len() as f64).to_string());
                say("--agents", hosts.join(","));
                for (option, file) in papers {
                    say(option, file.to_string_lossy().into_owned());
                }
            }
            Part::Old | Part::New => {
                say("--closed", WINDOW.to_string());
                if let Some((_, server, _)) = &self.server {
                    say("--server-pid", server.id().to_string());
                }
            }
        }
        Ok(words)
    }

    /// The hosts' names, and the files by which coordinator and agents know each other.
    fn hosts(&mut self, folder: &mut Folder) -> Result<(Vec<String>, Files), Failure> {
        let coordination = &self.arguments.coordination;
        if let (Some(ca), Some(chain), Some(key)) =
            (&coordination.agent_ca, &coordination.certificate_chain, &coordination.private_key)
        {
            let files = [
                ("--agent-ca", ca.clone()),
                ("--certificate-chain", chain.clone()),
                ("--private-key", key.clone()),
            ];
            return Ok((coordination.agents.clone(), files));
        }
        if self.agents.is_none() {
            let agents = Agents::start(&self.papers, self.inequality, &folder.plan.hosts)?;
            folder.plan.hosts = agents.names();
            let remark = self.inequality.remark();
            if !folder.plan.hosts_remark.ends_with(&remark) {
                write!(folder.plan.hosts_remark, " After an interruption: {remark}")
                    .expect("writing to a string cannot fail");
            }
            folder.keep_plan()?;
            self.agents = Some(agents);
        }
        let papers = &self.papers;
        let files = [
            ("--agent-ca", papers.authority()),
            ("--certificate-chain", papers.chain("coordinator")),
            ("--private-key", papers.key("coordinator")),
        ];
        Ok((folder.plan.hosts.clone(), files))
    }

    /// The server for this part, in place of any other.
    fn server(&mut self, part: Part) -> Result<&Helper, Failure> {
        let wanted = match part {
            Part::Scale | Part::OneHost | Part::SeveralHosts => Configuration::Plain,
            Part::Old => Configuration::Old,
            Part::New => Configuration::New,
        };
        if self.server.as_ref().is_none_or(|(running, ..)| *running != wanted) {
            // Agents do not stand in the way of what is measured next.
            if wanted != Configuration::Plain {
                self.agents = None;
            }
            // The next one takes its port, so that runs name one target; if somebody else was faster, any port.
            let port = self.server.take().map_or(0, |(_, server, _)| server.address.port());
            let server = match Helper::server(&self.configuration(wanted, port)?) {
                Err(_) if port != 0 => Helper::server(&self.configuration(wanted, 0)?)?,
                started => started?,
            };
            let quota = match wanted {
                Configuration::Plain => None,
                Configuration::Old | Configuration::New => Quota::new("server", SERVER_SHARE),
            };
            if let Some(quota) = &quota {
                quota.add(server.id())?;
            }
            self.server = Some((wanted, server, quota));
        }
        let (_, server, _) = self.server.as_ref().expect("it was just started");
        Ok(server)
    }

    fn configuration(&self, wanted: Configuration, port: u16) -> Result<PathBuf, Failure> {
        let (limit, metrics) = match wanted {
            Configuration::Plain | Configuration::Old => ("", ""),
            Configuration::New => (
                "rate-limit = { requests-per-second = 1000000, burst = 1000000 }\n",
                "[metrics]\nlisten = \"127.0.0.1:0\"\nspan-clients = [\"127.0.0.0/8\"]\n",
            ),
        };
        let file = self.folder.path().join("authentick.toml");
        let text = format!(
            "[server]\nlisten = [\"127.0.0.1:{port}\"]\nworkers = 1\nuser = \"root\"\n\
             reference = {{ stratum = 1, id = \"TEST\" }}\nstate-directory = {:?}\n{limit}\
             [nts]\nke-listen = [\"127.0.0.1:0\"]\nke-workers = 1\ncertificate-chain = {:?}\nprivate-key = {:?}\n\
             {metrics}",
            self.folder.path().join("state"),
            self.papers.chain("server"),
            self.papers.key("server"),
        );
        fs::write(&file, text)?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_puts_the_limit_where_the_notes_was() {
        let text = include_str!("../../../../report/tests/golden/load.json");
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
        assert_eq!(scale(0).unwrap_err().exit, Exit::Silence);
    }
}
