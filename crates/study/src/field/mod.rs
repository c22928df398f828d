//! What authentication costs, by scheme and server: no paper has this. Our server and those of others are asked under
//! every scheme that they have, in turn, round after round.
//!
//! - `bench`: the servers, and the load runs against them.
//! - [`Choice`]: who is measured, those included that somebody else runs.
//!
//! Each trial has a record of its own, so that an interrupted study goes on with the next.

mod bench;
mod choice;

use std::time::Duration;

use authentick_crypto::mac::MacAlgorithm;
use authentick_report::Report;
use authentick_report::study::Task;
use authentick_report::study::field::{
    Cell, FieldRecord, Found as FieldFound, Latency, Measure, Scheme, Server, Settings as FieldSettings,
    Trial, report,
};
use authentick_report::units::{microseconds, rate};
use authentick_rig::peers::{self, Kind, Peer};

use self::bench::Bench;
pub use self::choice::{Choice, Said};
use crate::folder::Folder;
use crate::paper::{Found, Planned};
use crate::places::Places;
use crate::{Caller, Error, Paper};

/// Rounds, seconds of a trial, and of what comes before it.
const ROUNDS: u32 = 9;
const TRIAL_SECONDS: f64 = 5.0;
const WARM_UP_SECONDS: f64 = 0.5;
/// The same of latency.
const LATENCY_ROUNDS: u32 = 3;
const LATENCY_SECONDS: f64 = 4.0;
/// The same for those in a hurry.
const QUICK_ROUNDS: u32 = 3;
const QUICK_TRIAL_SECONDS: f64 = 2.0;
const QUICK_WARM_UP_SECONDS: f64 = 0.2;
const QUICK_LATENCY_ROUNDS: u32 = 1;
/// Who is measured then.
const QUICK_SERVERS: [Server; 2] = [Server::Authentick, Server::Chrony];
/// Requests in flight: enough to keep a server busy, and so few that each has room in its socket, which without being
/// told otherwise takes some 270 of them.
const WINDOW: u32 = 128;
/// Key exchanges in flight: enough to keep a server busy, and too few to meet a limit of any.
const EXCHANGE_WINDOW: u32 = 16;

/// Why there is no latency.
const NOT_ANSWERED: &str = "what it answers in this round was not measured, of which this is a share";

/// The study, as the user wants it.
#[derive(Clone, Debug, Default)]
pub struct Field {
    /// Whether some minutes are to do.
    pub quick: bool,
    /// How long a trial lasts, if not as long as ours.
    pub trial: Option<Duration>,
    /// Who is measured; by default those that a study starts: all, or our server and chrony if some minutes are to do.
    pub choice: Choice,
    /// Where servers of others are looked for.
    pub places: Places,
}

/// The server of others that this is; `None` for ours, and for what somebody else runs.
const fn kind(server: Server) -> Option<Kind> {
    match server {
        Server::Authentick | Server::Given(_) => None,
        Server::Chrony => Some(Kind::Chrony),
        Server::NtpdRs => Some(Kind::NtpdRs),
        Server::FacebookTime => Some(Kind::FacebookTime),
    }
}

/// A scheme as servers of others know it. Tags of ANTP that come by themselves are a matter between client and server.
fn asked(scheme: Scheme) -> peers::Scheme {
    let mac = peers::Scheme::Mac;
    match scheme {
        Scheme::Plain => peers::Scheme::Plain,
        Scheme::Md5 => mac(MacAlgorithm::Md5),
        Scheme::Sha1 => mac(MacAlgorithm::Sha1),
        Scheme::Sha256 => mac(MacAlgorithm::Sha256),
        Scheme::Sha384 => mac(MacAlgorithm::Sha384),
        Scheme::Sha512 => mac(MacAlgorithm::Sha512),
        Scheme::HmacMd5 => mac(MacAlgorithm::HmacMd5),
        Scheme::HmacSha224 => mac(MacAlgorithm::HmacSha224),
        Scheme::Cmac128 => mac(MacAlgorithm::Cmac128),
        Scheme::Cmac256 => mac(MacAlgorithm::Cmac256),
        Scheme::Gmac128 => mac(MacAlgorithm::Gmac128),
        Scheme::GmacSiv128 => mac(MacAlgorithm::GmacSiv128),
        Scheme::Poly1305 => mac(MacAlgorithm::Poly1305),
        Scheme::Antp | Scheme::AntpSeparateTag => peers::Scheme::Antp,
        Scheme::Nts15 => peers::Scheme::Nts(15),
        Scheme::Nts30 => peers::Scheme::Nts(30),
    }
}

impl Paper for Field {
    type Settings = FieldSettings;
    type Rig<'a> = Bench<'a>;

    fn plan(&self) -> Planned<FieldSettings> {
        let quick = self.quick;
        let servers = self.choice.servers(if quick { &QUICK_SERVERS } else { &Server::BUILT_IN });
        let trial = |default| self.trial.map_or(default, |trial| trial.as_secs_f64());
        let settings = FieldSettings {
            quick,
            servers,
            given: self.choice.given().cloned().collect(),
            schemes: if quick { Scheme::MAIN.to_vec() } else { Scheme::ALL.to_vec() },
            rounds: if quick { QUICK_ROUNDS } else { ROUNDS },
            trial_seconds: trial(if quick { QUICK_TRIAL_SECONDS } else { TRIAL_SECONDS }),
            warm_up_seconds: if quick { QUICK_WARM_UP_SECONDS } else { WARM_UP_SECONDS },
            window: WINDOW,
            exchange_window: EXCHANGE_WINDOW,
            latency_rounds: if quick { QUICK_LATENCY_ROUNDS } else { LATENCY_ROUNDS },
            latency_seconds: trial(if quick { QUICK_TRIAL_SECONDS } else { LATENCY_SECONDS }),
        };
        Planned { tasks: settings.tasks(), found: FieldFound::default(), settings }
    }

    fn obstacles(&self) -> Vec<String> {
        let search = self.places.search();
        Server::BUILT_IN
            .into_iter()
            .filter_map(kind)
            .filter_map(|kind| Peer::find(kind, &search).err())
            .map(|error| format!("{error}."))
            .collect()
    }

    fn rig<'a>(&'a self, folder: &mut Folder<FieldSettings>, caller: Caller<'a>) -> Result<Bench<'a>, Error> {
        let bench = Bench::new(&folder.plan.settings, &self.choice, &self.places, caller)?;
        // What an interrupted run of this study had to say stays.
        if folder.plan.found.remarks.is_empty() {
            folder.plan.found.remarks = Bench::remarks();
            folder.keep_plan()?;
        }
        Ok(bench)
    }

    fn run(
        &self,
        task: &Task,
        bench: &mut Bench<'_>,
        folder: &mut Folder<FieldSettings>,
    ) -> Result<Found, Error> {
        let Some(measure) = Measure::of(&task.id) else {
            return Ok(Found::Infeasible("the plan has a task that this version does not know".to_owned()));
        };
        // Who answered nothing in this round is not waited for again.
        if let Measure::Latency(Cell { server: Server::Given(_), .. }, ..) = measure
            && answered_rps(folder, task)?.is_none()
        {
            return Ok(Found::Infeasible(NOT_ANSWERED.to_owned()));
        }
        let ready = ready(measure, bench);
        folder.plan.found.remarks.extend(bench.restarts());
        let (cell, title) = match ready? {
            Ok(ready) => ready,
            Err(why) => return Ok(Found::Infeasible(why)),
        };
        folder.plan.found.titles.insert(cell.server, title);
        match (measured(measure, cell, task, bench, folder)?, bench.ended(cell.server)) {
            (Found::Infeasible(_), Some(why)) => Ok(Found::Infeasible(why)),
            (Found::Infeasible(why), None) => {
                bench.doubt(cell);
                Ok(Found::Infeasible(why))
            }
            (found, _) => Ok(found),
        }
    }

    fn render(folder: &Folder<FieldSettings>) -> Result<Report, Error> {
        Field::record(folder).map(|record| report(&record))
    }
}

/// Has the server of a task run, and returns the cell that is measured and the server's title; as an error, why there
/// is nothing to measure. Whose AEADs nobody knows, exchanges keys for the first one that it has.
fn ready(measure: Measure, bench: &mut Bench<'_>) -> Result<Result<(Cell, String), String>, Error> {
    let cells = match measure {
        Measure::Capacity(cell, _) | Measure::Latency(cell, ..) => vec![cell],
        Measure::Exchange(server @ Server::Given(_), _) => {
            [Scheme::Nts15, Scheme::Nts30].map(|scheme| Cell { server, scheme }).to_vec()
        }
        Measure::Exchange(server, _) => vec![Cell { server, scheme: server.exchanges_for() }],
    };
    let mut obstacle = String::new();
    for cell in cells {
        match bench.ready(cell)? {
            Ok(title) => return Ok(Ok((cell, title))),
            Err(why) if obstacle.is_empty() => obstacle = why,
            Err(_) => {}
        }
    }
    Ok(Err(obstacle))
}

/// What comes of a task whose server is ready. A trial in which it ended by itself does not count.
fn measured(
    measure: Measure,
    cell: Cell,
    task: &Task,
    bench: &mut Bench<'_>,
    folder: &Folder<FieldSettings>,
) -> Result<Found, Error> {
    let record = FieldRecord::of(&folder.plan);
    match measure {
        Measure::Capacity(_, round) => {
            let (tried, ended) = (bench.capacity(cell, round)?, bench.ended(cell.server));
            Ok(tried.kept(|trial| {
                let trial = Trial { why_invalid: ended.or(trial.why_invalid), ..trial };
                let line = closed_line(cell.scheme.name(), "answers", &trial);
                kept(trial.why_invalid.clone(), line, &FieldRecord { trials: vec![trial], ..record })
            }))
        }
        Measure::Exchange(_, round) => {
            let (tried, ended) = (bench.exchanges(cell, round)?, bench.ended(cell.server));
            Ok(tried.kept(|trial| {
                let trial = Trial { why_invalid: ended.or(trial.why_invalid), ..trial };
                let line = closed_line("key exchange", "exchanges", &trial);
                kept(trial.why_invalid.clone(), line, &FieldRecord { exchanges: vec![trial], ..record })
            }))
        }
        Measure::Latency(_, level, round) => {
            let Some(answered_rps) = answered_rps(folder, task)? else {
                return Ok(Found::Infeasible(NOT_ANSWERED.to_owned()));
            };
            let rps = (answered_rps * level.share()).max(1.0).round();
            let (tried, ended) = (bench.latency(cell, level, round, rps)?, bench.ended(cell.server));
            Ok(tried.kept(|trial| {
                let trial = Latency { why_invalid: ended.or(trial.why_invalid), ..trial };
                let line = latency_line(&trial);
                kept(trial.why_invalid.clone(), line, &FieldRecord { latencies: vec![trial], ..record })
            }))
        }
    }
}

impl Field {
    /// All that this study has measured.
    pub(crate) fn record(folder: &Folder<FieldSettings>) -> Result<FieldRecord, Error> {
        let mut records = Vec::new();
        for task in &folder.plan.tasks {
            records.extend(folder.record(task, FieldRecord::from_json)?);
        }
        Ok(FieldRecord::merged(&folder.plan, records))
    }
}

/// What a cell answered a second in the trial that a task needs, if it answered anything.
fn answered_rps(folder: &Folder<FieldSettings>, task: &Task) -> Result<Option<f64>, Error> {
    let Some(needed) = task.needs.first() else { return Ok(None) };
    let record = folder.record_of(needed, FieldRecord::from_json)?;
    let trial = record.and_then(|record| record.trials.into_iter().next());
    Ok(trial.map(|trial| trial.answered_rps).filter(|rps| *rps > 0.0))
}

/// What is said of a closed loop.
fn closed_line(what: &str, unit: &str, trial: &Trial) -> String {
    let rps = trial.core_rps().map_or_else(
        || format!("{} {unit}/s; its processor time is unknown", rate(trial.answered_rps)),
        |rps| format!("{} {unit} for a second of processor time", rate(rps)),
    );
    format!("{}, {what}, round {}: {rps}", trial.cell.server.name(), trial.round)
}

fn latency_line(trial: &Latency) -> String {
    let Latency { cell, level, round, latency_us, .. } = trial;
    let times = latency_us.map_or_else(
        || "nothing was answered".to_owned(),
        |points| format!("p50 {}, p99 {}", microseconds(points.p50), microseconds(points.p99)),
    );
    let share = level.share() * 100.0;
    format!("{}, {}, at {share} %, round {round}: {times}", cell.server.name(), cell.scheme.name())
}

/// A trial in its record, by whether it counts.
fn kept(why_invalid: Option<String>, line: String, record: &FieldRecord) -> Found {
    let record = record.to_json();
    match why_invalid {
        None => Found::Measured { record, line },
        Some(why) => Found::Invalid { record, why },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_measured_in_one_order_and_once() {
        use Server::{Authentick, Chrony, NtpdRs};
        let settings = |quick, servers: &[Server], given: &[&str]| {
            let given = given.iter().map(|text| text.parse().unwrap()).collect();
            let choice = Choice::new(Said { servers: servers.to_vec(), given, ..Said::default() }).unwrap();
            Field { quick, choice, ..Field::default() }.plan().settings
        };
        let servers = |quick, servers: &[Server]| settings(quick, servers, &[]).servers;
        assert_eq!(servers(false, &[]), Server::BUILT_IN);
        assert_eq!(servers(true, &[]), [Authentick, Chrony]);
        assert_eq!(servers(true, &[NtpdRs, Chrony, NtpdRs]), [Chrony, NtpdRs]);
        // Another address makes another study.
        let one = settings(true, &[Chrony], &["cfnts=a:1:2"]);
        assert_eq!(one.servers.len(), 2);
        assert_ne!(one, settings(true, &[Chrony], &["cfnts=a:1:3"]));
        assert_ne!(one, settings(true, &[Chrony], &[]));
    }

    #[test]
    fn what_is_missing_is_an_obstacle_with_its_remedy() {
        let obstacles = Field::default().obstacles();
        for obstacle in &obstacles {
            assert!(obstacle.starts_with("no ") && obstacle.contains("install"), "{obstacle}");
        }
    }
}
