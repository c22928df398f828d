//! The NTS study's measurements without load: one client, whose exchanges are timed stage by stage at both ends, over
//! several paths and with both key stores.
//!
//! - `bench`: hosts, paths, the resolver, memcached and servers.
//!
//! Each cell is a task with a record and a server of its own, so that nothing is left of the cell before.

mod bench;

use authentick_report::Report;
use authentick_report::published::nts::{
    LOAD_STEP_RPS, STEP_SECONDS, TRANSFERS_PER_EXCHANGE, UNLOADED_COUNT, WARM_UPS,
};
use authentick_report::study::Task;
use authentick_report::study::nts::{
    Found as NtsFound, KeyExchange, Measure, Plan, Records, RungRecord, ScaleRecord, Settings as NtsSettings,
    Transfer, UnloadedRecord, report,
};
use authentick_report::units::time;

use self::bench::Bench;
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
/// Of more exchanges than this share a cell must have an answer, or it says nothing.
const FAILED_SHARE_MAX: f64 = 0.01;

/// The paper, as the user wants it repeated.
#[derive(Clone, Debug, Default)]
pub struct Nts {
    /// Whether a minute is to do.
    pub quick: bool,
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
            ..whole
        };
        let settings = if self.quick { quick } else { whole };
        Planned { tasks: settings.tasks(), found: NtsFound::default(), settings }
    }

    fn obstacles(&self) -> Vec<String> {
        let found = [bench::hosts().map(drop), bench::memcached(&self.places).map(drop)];
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
        let cell = match Measure::of(&task.id) {
            Some(Measure::Cell(cell)) => cell,
            Some(Measure::Scale(_) | Measure::Rung(..)) => {
                return Ok(Found::Infeasible("this version does not measure it yet".to_owned()));
            }
            None => {
                return Ok(Found::Infeasible(
                    "the plan has a task that this version does not know".to_owned(),
                ));
            }
        };
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

    fn render(folder: &Folder<NtsSettings>) -> Result<Report, Error> {
        let plan: &Plan = &folder.plan;
        let mut records = Records::default();
        for task in &plan.tasks {
            match Measure::of(&task.id) {
                Some(Measure::Cell(_)) if counts(task) => {
                    records.unloaded.extend(folder.record(task, UnloadedRecord::from_json)?);
                }
                Some(Measure::Scale(_)) if counts(task) => {
                    records.scales.extend(folder.record(task, ScaleRecord::from_json)?);
                }
                // Those that the generator spoiled are drawn, too.
                Some(Measure::Rung(..)) => records.rungs.extend(folder.record(task, RungRecord::from_json)?),
                Some(Measure::Cell(_) | Measure::Scale(_)) | None => {}
            }
        }
        Ok(report(plan, &records))
    }
}

/// Whether a task's record counts.
fn counts(task: &Task) -> bool {
    use authentick_report::study::Outcome;
    task.end.as_ref().is_some_and(|end| end.outcome == Outcome::Measured)
}
