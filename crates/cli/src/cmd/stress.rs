//! `authentick stress`: NtpStress's arguments and report, over the load generator.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use authentick_load::ending::Ending;
use authentick_load::runner::{Run, Steps};
use authentick_load::{Generator, Plan, Scheme, Watch};
use authentick_report::load::StressReport;

use super::load::{Proof, find, stop_on_signals, verdict};
use crate::args::Stress;
use crate::exit::{Exit, Failure};
use crate::{files, output};

/// Ports that requests come from.
const CLIENT_COUNT: u32 = 64;
const TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &Stress) -> Result<Exit, Failure> {
    // First of all, as a report that cannot be written would waste the run.
    let file = files::output("REPORT", Some(&arguments.report))?;
    let (permission, force) = (&arguments.permission, arguments.force_first);
    let target = find(Scheme::Plain, &arguments.host, Proof::Presence, permission, TIMEOUT, force)?;
    let _ = authentick_net::descriptors::raise_limit();
    let plan = Plan { clients: CLIENT_COUNT, ..target.plan };
    let watch = Watch::default();
    stop_on_signals(&watch);
    let mut generator =
        Generator::prepare(&plan, None, &watch).map_err(|problem| Exit::Unavailable.because(problem))?;
    let mut run = Run::new(Steps::Open(vec![arguments.rate]), arguments.seconds);
    let over = AtomicBool::new(false);
    let (outcome, seconds) = std::thread::scope(|scope| {
        let rows = scope.spawn(|| rows(&watch, &over));
        let outcome = run.carry_out(&mut generator, &watch, |_| {});
        over.store(true, Ordering::Relaxed);
        (outcome, rows.join().unwrap_or_default())
    });
    let Some(step) = outcome.steps.first() else {
        let reason = outcome.interrupted.map_or_else(|| "the run did not start".to_owned(), String::from);
        return Err(Exit::Internal.because(reason));
    };
    let report = StressReport {
        host: &arguments.host,
        rate: arguments.rate,
        ordered: arguments.seconds,
        is_interrupted: outcome.interrupted.is_some(),
        step,
        seconds: &seconds,
    };
    let written = file.map_or(Ok(()), |mut file| file.write(&report.text()));
    output::json_or_text(arguments.json, &report, || report.lines())?;
    written?;
    verdict(&arguments.host, Ending::of_steps(std::slice::from_ref(step)))
}

/// What was sent, answered and failed by the end of each second.
fn rows(watch: &Watch, over: &AtomicBool) -> Vec<[u64; 3]> {
    const TICK: Duration = Duration::from_millis(10);
    let mut rows = Vec::new();
    // Seconds count from the first request.
    while watch.counts()[0] == 0 && !over.load(Ordering::Relaxed) {
        std::thread::sleep(TICK);
    }
    let start = Instant::now();
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(TICK);
        if start.elapsed().as_secs() as usize > rows.len() {
            rows.push(watch.counts());
        }
    }
    let last = watch.counts();
    if rows.last() != Some(&last) {
        rows.push(last);
    }
    rows
}
