//! What authentication costs, by scheme and server: no paper has this. Our server and those of others are asked under
//! every scheme that they have, in turn, round after round.
//!
//! - `bench`: the servers, and the load runs against them.
//!
//! Each trial has a record of its own, so that an interrupted study goes on with the next.

mod bench;

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

/// The study, as the user wants it.
#[derive(Clone, Debug, Default)]
pub struct Field {
    /// Whether some minutes are to do.
    pub quick: bool,
    /// How long a trial lasts, if not as long as ours.
    pub trial: Option<Duration>,
    /// Who is measured; empty: all, or our server and chrony if some minutes are to do.
    pub servers: Vec<Server>,
    /// Where servers of others are looked for.
    pub places: Places,
}

/// The server of others that this is; `None` for ours.
const fn kind(server: Server) -> Option<Kind> {
    match server {
        Server::Authentick => None,
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
        let servers = match (&self.servers[..], quick) {
            ([], true) => QUICK_SERVERS.to_vec(),
            ([], false) => Server::ALL.to_vec(),
            // In one order, however they were named, and each once.
            (named, _) => Server::ALL.into_iter().filter(|server| named.contains(server)).collect(),
        };
        let trial = |default| self.trial.map_or(default, |trial| trial.as_secs_f64());
        let settings = FieldSettings {
            quick,
            servers,
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
        Server::ALL
            .into_iter()
            .filter_map(kind)
            .filter_map(|kind| Peer::find(kind, &search).err())
            .map(|error| format!("{error}."))
            .collect()
    }

    fn rig<'a>(&'a self, folder: &mut Folder<FieldSettings>, caller: Caller<'a>) -> Result<Bench<'a>, Error> {
        let bench = Bench::new(&folder.plan.settings, &self.places, caller)?;
        folder.plan.found.remarks = Bench::remarks();
        folder.keep_plan()?;
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
        let cell = match measure {
            Measure::Capacity(cell, _) | Measure::Latency(cell, ..) => cell,
            Measure::Exchange(server, _) => Cell { server, scheme: server.exchanges_for() },
        };
        match bench.ready(cell) {
            Ok(title) => folder.plan.found.titles.insert(cell.server, title),
            Err(why) => return Ok(Found::Infeasible(why)),
        };
        let record = FieldRecord::of(&folder.plan);
        match measure {
            Measure::Capacity(_, round) => Ok(bench.capacity(cell, round)?.kept(|trial| {
                let line = closed_line(cell.scheme.name(), "answers", &trial);
                kept(trial.why_invalid.clone(), line, &FieldRecord { trials: vec![trial], ..record })
            })),
            Measure::Exchange(_, round) => Ok(bench.exchanges(cell, round)?.kept(|trial| {
                let line = closed_line("key exchange", "exchanges", &trial);
                kept(trial.why_invalid.clone(), line, &FieldRecord { exchanges: vec![trial], ..record })
            })),
            Measure::Latency(_, level, round) => {
                let Some(answered_rps) = answered_rps(folder, task)? else {
                    let why = "what it answers in this round was not measured, of which this is a share";
                    return Ok(Found::Infeasible(why.to_owned()));
                };
                let rps = (answered_rps * level.share()).max(1.0).round();
                Ok(bench.latency(cell, level, round, rps)?.kept(|trial| {
                    let line = latency_line(&trial);
                    kept(trial.why_invalid.clone(), line, &FieldRecord { latencies: vec![trial], ..record })
                }))
            }
        }
    }

    fn render(folder: &Folder<FieldSettings>) -> Result<Report, Error> {
        Field::record(folder).map(|record| report(&record))
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
        || "the kernel does not tell its processor time".to_owned(),
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
        let servers = |quick, servers: &[Server]| {
            Field { quick, servers: servers.to_vec(), ..Field::default() }.plan().settings.servers
        };
        assert_eq!(servers(false, &[]), Server::ALL);
        assert_eq!(servers(true, &[]), [Authentick, Chrony]);
        assert_eq!(servers(true, &[NtpdRs, Chrony, NtpdRs]), [Chrony, NtpdRs]);
    }

    #[test]
    fn what_is_missing_is_an_obstacle_with_its_remedy() {
        let obstacles = Field::default().obstacles();
        for obstacle in &obstacles {
            assert!(obstacle.starts_with("no ") && obstacle.contains("install"), "{obstacle}");
        }
    }
}
