//! The NTS study's measurements. Without load: one client, whose exchanges are timed stage by stage at both ends, over
//! several paths and with both key stores. Under load: the same client beside others, step by step. Operations
//! alone, and what goes beyond the paper.
//!
//! - `bench`: hosts, paths, the resolver, memcached and servers.
//! - `beyond`: other numbers of transfers for each key exchange, and transfers alone.
//! - `ladder`: steps under load.
//! - `operations`: operations alone.
//!
//! Each cell and each step is a task with a record and a server of its own, so that nothing is left of the cell before.

mod bench;
mod beyond;
mod ladder;
mod operations;

use std::time::Duration;

use authentick_report::Report;
use authentick_report::published::nts::{
    LOAD_STEP_RPS, STEP_SECONDS, TRANSFERS_PER_EXCHANGE, UNLOADED_COUNT, WARM_UPS,
};
use authentick_report::study::nts::{
    Cell, Found as NtsFound, KeyExchange, Ladder, Measure, OperationsRecord, Outcomes, Plan, RatesRecord,
    Records, Rung, RungRecord, ScaleRecord, SessionsRecord, Settings as NtsSettings, Transfer,
    UnloadedRecord, report,
};
use authentick_report::study::{Outcome, Task};
use authentick_report::units::{rate, time};

use self::bench::Bench;
use self::ladder::{Came, Offer, rung_record};
use crate::folder::Folder;
use crate::paper::{Found, Planned};
use crate::places::Places;
use crate::{Caller, Error, Paper};

/// Rounds of a cell; and over the long path.
const ROUNDS: [u32; 2] = [200, 200];
/// The same for those in a hurry, the paper's experiment first.
const QUICK_ROUNDS: [u32; 3] = [100, 100, 20];
/// The least and the highest load of the ladder to scale, and how far its steps are apart; in key exchanges a second of
/// the paper's axis.
const LADDER: [u32; 3] = [LOAD_STEP_RPS, 8_000, LOAD_STEP_RPS];
/// The same for those in a hurry.
const QUICK_LADDER: [u32; 3] = [500, 8_000, 500];
/// Seconds of a step for those in a hurry.
const QUICK_STEP_SECONDS: f64 = 3.0;
/// Steps of a ladder on a whole core.
const CORE_STEPS: u32 = 16;
/// Seconds that a client waits for a key exchange under load: what the paper says, not what its program did.
const DEADLINE_SECONDS: f64 = 10.0;
/// Rounds of operations alone, and how long the turn of each lasts, in seconds.
const OPERATION_ROUNDS: u32 = 21;
const OPERATION_SECONDS: f64 = 0.15;
/// The same for those in a hurry.
const QUICK_OPERATION_ROUNDS: u32 = 7;
const QUICK_OPERATION_SECONDS: f64 = 0.025;
/// Sessions that are under way at once: enough to keep a core busy, and so few that a step has many one after another.
const SESSION_WINDOW: u32 = 16;
/// How long sessions begin, in seconds; and for those in a hurry.
const SESSION_SECONDS: [f64; 2] = [8.0, 0.6];
/// Rates of transfers alone, and how long each is offered, in seconds.
const RATE_STEPS: u32 = 8;
const RATE_SECONDS: f64 = 5.0;
/// The same for those in a hurry.
const QUICK_RATE_STEPS: u32 = 4;
const QUICK_RATE_SECONDS: f64 = 0.4;
/// Of more exchanges than this share a cell must have an answer, or it says nothing.
const FAILED_SHARE_MAX: f64 = 0.01;
/// After so many steps in a row that the generator spoiled no higher load is offered.
const SPOILED_COUNT: usize = 3;

/// The paper, as the user wants it repeated.
#[derive(Clone, Debug, Default)]
pub struct Nts {
    /// Whether some minutes are to do.
    pub quick: bool,
    /// How long a step of a ladder offers its load, if not as long as ours; and at most how long what goes beyond the
    /// paper does.
    pub step: Option<Duration>,
    /// Where memcached is looked for.
    pub places: Places,
}

impl Paper for Nts {
    type Settings = NtsSettings;
    type Rig<'a> = Bench<'a>;

    fn plan(&self) -> Planned<NtsSettings> {
        let [rounds, long_rounds] = ROUNDS;
        let [ladder_first_rps, ladder_last_rps, ladder_step_rps] = LADDER;
        let whole = NtsSettings {
            quick: false,
            warm_ups: WARM_UPS,
            study_rounds: UNLOADED_COUNT,
            study_interval_seconds: 1.0,
            rounds,
            long_rounds,
            ladder_first_rps,
            ladder_step_rps,
            ladder_last_rps,
            step_seconds: f64::from(STEP_SECONDS),
            core_steps: CORE_STEPS,
            deadline_seconds: DEADLINE_SECONDS,
            transfers: TRANSFERS_PER_EXCHANGE,
            operation_rounds: OPERATION_ROUNDS,
            operation_seconds: OPERATION_SECONDS,
            session_window: SESSION_WINDOW,
            session_seconds: SESSION_SECONDS[0],
            rate_steps: RATE_STEPS,
            rate_seconds: RATE_SECONDS,
        };
        let [ladder_first_rps, ladder_last_rps, ladder_step_rps] = QUICK_LADDER;
        let [study_rounds, rounds, long_rounds] = QUICK_ROUNDS;
        let quick = NtsSettings {
            quick: true,
            study_rounds,
            study_interval_seconds: 0.0,
            rounds,
            long_rounds,
            ladder_first_rps,
            ladder_step_rps,
            ladder_last_rps,
            step_seconds: QUICK_STEP_SECONDS,
            operation_rounds: QUICK_OPERATION_ROUNDS,
            operation_seconds: QUICK_OPERATION_SECONDS,
            session_seconds: SESSION_SECONDS[1],
            rate_steps: QUICK_RATE_STEPS,
            rate_seconds: QUICK_RATE_SECONDS,
            ..whole
        };
        let mut settings = if self.quick { quick } else { whole };
        if let Some(step) = self.step {
            settings.step_seconds = step.as_secs_f64();
            settings.session_seconds = settings.session_seconds.min(settings.step_seconds);
            settings.rate_seconds = settings.rate_seconds.min(settings.step_seconds);
        }
        Planned { tasks: settings.tasks(), found: NtsFound::default(), settings }
    }

    fn obstacles(&self) -> Vec<String> {
        let found =
            [bench::hosts().map(drop), bench::memcached(&self.places).map(drop), bench::quotas().map(drop)];
        found.into_iter().filter_map(Result::err).map(|why| format!("{why}.")).collect()
    }

    fn rig<'a>(&'a self, folder: &mut Folder<NtsSettings>, caller: Caller<'a>) -> Result<Bench<'a>, Error> {
        let bench = Bench::new(&self.places, caller)?;
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
        folder: &mut Folder<NtsSettings>,
    ) -> Result<Found, Error> {
        match Measure::of(&task.id) {
            Some(Measure::Cell(cell)) => unloaded(cell, task, bench, folder),
            Some(Measure::Operations(of)) => operations::operations(of, task, bench, folder),
            Some(Measure::Scale(ladder)) => scale(ladder, task, bench, folder),
            Some(Measure::Rung(ladder, step)) => rung((ladder, step), task, bench, folder),
            Some(Measure::Sessions(pattern)) => beyond::sessions(pattern, task, bench, folder),
            Some(Measure::Rates(workers)) => beyond::rates(workers, task, bench, folder),
            None => Ok(Found::Infeasible("the plan has a task that this version does not know".to_owned())),
        }
    }

    fn render(folder: &Folder<NtsSettings>) -> Result<Report, Error> {
        let plan: &Plan = &folder.plan;
        let mut records = Records::default();
        for task in &plan.tasks {
            // Steps of ladders and rates that the generator spoiled are drawn, too.
            let is_drawn = |of: &Measure| matches!(of, Measure::Rung(..) | Measure::Rates(_)) || counts(task);
            let Some(measure) = Measure::of(&task.id).filter(is_drawn) else { continue };
            match measure {
                Measure::Cell(_) => records.unloaded.extend(folder.record(task, UnloadedRecord::from_json)?),
                Measure::Operations(_) => {
                    records.operations.extend(folder.record(task, OperationsRecord::from_json)?);
                }
                Measure::Scale(_) => records.scales.extend(folder.record(task, ScaleRecord::from_json)?),
                Measure::Rung(..) => records.rungs.extend(folder.record(task, RungRecord::from_json)?),
                Measure::Sessions(_) => {
                    records.sessions.extend(folder.record(task, SessionsRecord::from_json)?);
                }
                Measure::Rates(_) => records.rates.extend(folder.record(task, RatesRecord::from_json)?),
            }
        }
        Ok(report(plan, &records))
    }
}

/// A cell without load.
fn unloaded(
    cell: Cell,
    task: &Task,
    bench: &Bench<'_>,
    folder: &Folder<NtsSettings>,
) -> Result<Found, Error> {
    if let Some(why) = bench.why_not(cell) {
        return Ok(Found::Infeasible(why));
    }
    let (rounds, interval) = folder.plan.settings.rounds_of(cell);
    let found = bench.measure(cell, folder.plan.settings.warm_ups, rounds, interval)?;
    if bench.caller.says_stop() {
        return Ok(Found::Stopped(None));
    }
    let found = match found {
        Ok(found) => found,
        Err(why) => return Ok(Found::Infeasible(why)),
    };
    let failure = found.timings.failure.clone();
    let record = found.record(&folder.plan, task);
    let asked = f64::from(rounds) * 3.0;
    if f64::from(record.failed) > asked * FAILED_SHARE_MAX {
        let why =
            format!("{} of {asked} exchanges brought no good answer; the last: {failure}", record.failed);
        return Ok(Found::Invalid { record: record.to_json(), why });
    }
    let middle = |mut times: Vec<u64>| {
        times.sort_unstable();
        time(times[times.len() / 2])
    };
    let exchange = middle(record.exchanges.iter().map(KeyExchange::d_cke).collect());
    let transfer = middle(record.transfers.iter().map(Transfer::d_cnts).collect());
    let line = format!("{}: d_CKE {exchange}, d_CNTS {transfer}", cell.name());
    Ok(Found::Measured { record: record.to_json(), line })
}

/// What the server of a ladder serves.
fn scale(
    ladder: Ladder,
    task: &Task,
    bench: &Bench<'_>,
    folder: &Folder<NtsSettings>,
) -> Result<Found, Error> {
    if let Some(why) = bench.why_no_ladder(ladder) {
        return Ok(Found::Infeasible(why));
    }
    let scaled = match bench.scale(ladder, &folder.plan.settings)? {
        Came::Measured(scaled) => scaled,
        Came::Stopped => return Ok(Found::Stopped(None)),
        Came::Impossible(why) => return Ok(Found::Infeasible(why)),
    };
    let record = scaled.record(&folder.plan, task);
    let [served, offered] = [record.capacity_rps, record.generator_rps].map(rate);
    let name = ladder.name();
    let line = format!("{name}: {served} key exchanges a second; the generator can offer {offered}");
    Ok(Found::Measured { record: record.to_json(), line })
}

/// A step of a ladder.
fn rung(
    (ladder, step): (Ladder, Rung),
    task: &Task,
    bench: &Bench<'_>,
    folder: &Folder<NtsSettings>,
) -> Result<Found, Error> {
    let (settings, tasks) = (&folder.plan.settings, &folder.plan.tasks);
    if let Some(why) = bench.why_no_ladder(ladder) {
        return Ok(Found::Infeasible(why));
    }
    let scale_id = ladder.scale_id();
    let Some(scale) = folder.record_of(&scale_id, ScaleRecord::from_json)? else {
        return Ok(Found::Infeasible(format!(
            "nobody knows what its server serves, as {scale_id} has no record"
        )));
    };
    if let Some(why) = not_offered(tasks, &settings.rungs(ladder), ladder, step) {
        return Ok(Found::Infeasible(why));
    }
    let offer = Offer::of(ladder, step, &scale, settings);
    let climbed = match bench.climb(ladder, offer, scale.quota_share, settings)? {
        Came::Measured(climbed) => climbed,
        Came::Stopped => return Ok(Found::Stopped(None)),
        Came::Impossible(why) => return Ok(Found::Infeasible(why)),
    };
    let record = rung_record(&climbed, &folder.plan, task, &scale);
    if let Some(why) = record.why_invalid.clone() {
        return Ok(Found::Invalid { record: record.to_json(), why });
    }
    let exchange = match &record.times.d_cke {
        Some(times) => format!("d_CKE {} in the median", time(times.p50_ns)),
        None => "no key exchange ended well".to_owned(),
    };
    let load = record.load_rps.map_or_else(|| "no load".to_owned(), |rps| format!("L = {}/s", rate(rps)));
    let Outcomes { scheduled, .. } = record.exchanges;
    let line =
        format!("{}, {load}: {exchange}, {} of {scheduled} failed", ladder.name(), record.exchanges.failed());
    Ok(Found::Measured { record: record.to_json(), line })
}

/// Why a step is not offered, if so: the generator has spoiled so many in a row just below it.
fn not_offered(tasks: &[Task], rungs: &[Rung], ladder: Ladder, step: Rung) -> Option<String> {
    let place = rungs.iter().position(|rung| *rung == step)?;
    let lower = rungs[..place].iter().filter(|rung| **rung != Rung::Unloaded).rev();
    let tried: Vec<(&Task, bool)> = lower
        .filter_map(|rung| tasks.iter().find(|task| task.id == ladder.rung_id(*rung)))
        .filter_map(|task| match task.end.as_ref()?.outcome {
            Outcome::Measured => Some((task, false)),
            Outcome::Invalid => Some((task, true)),
            Outcome::Infeasible | Outcome::Stopped | Outcome::Cut => None,
        })
        .take(SPOILED_COUNT)
        .collect();
    (tried.len() == SPOILED_COUNT && tried.iter().all(|(_, spoiled)| *spoiled)).then(|| {
        let names: Vec<&str> = tried.iter().rev().map(|(task, _)| task.id.as_str()).collect();
        format!("not offered: the generator spoiled the {SPOILED_COUNT} steps below: {}", names.join(", "))
    })
}

/// Whether a task's record counts.
fn counts(task: &Task) -> bool {
    task.end.as_ref().is_some_and(|end| end.outcome == Outcome::Measured)
}
