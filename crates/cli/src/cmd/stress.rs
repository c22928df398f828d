//! `authentick stress`: NtpStress's arguments and report, over the load generator.
//!
//! What it prints is defined here, as the technical note "NTP Server Capacity Testing" (Spectracom) does not:
//! - Average NTP Req/Sec: answers a second that passed every check.
//! - Total Requests: requests that were sent.
//! - Failed Requests: those without an answer in time, and those whose answer failed a check.
//! - Bad Stratum Level: those of them whose answer had stratum 0 or one above 15, whatever its leap indicator and
//!   timestamps say.
//!
//! A run that was interrupted says after how long, in a fifth line.

use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use authentick_load::ending::Ending;
use authentick_load::runner::{Run, Steps};
use authentick_load::{Generator, Plan, Scheme, Watch};
use authentick_report::load::{Cause, Step};

use super::load::{Proof, find, stop_on_signals, verdict};
use crate::args::Stress;
use crate::exit::{Exit, Failure};
use crate::{files, output};

/// Ports that requests come from.
const CLIENT_COUNT: u32 = 64;
const TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &Stress) -> Result<Exit, Failure> {
    let unwritable = |error: std::io::Error| {
        let exit = Exit::of_access(&error);
        let file = arguments.report.display();
        exit.because(format!("{file}: cannot write: {error}; name another file after SECONDS"))
    };
    // First of all, as a report that cannot be written would waste the run.
    files::check_writable(&arguments.report).map_err(unwritable)?;
    let target =
        find(Scheme::Plain, &arguments.host, Proof::Presence, &arguments.permission, TIMEOUT, false)?;
    let _ = authentick_net::descriptors::raise_limit();
    let plan = Plan { clients: CLIENT_COUNT, ..target.plan };
    let watch = Watch::default();
    stop_on_signals(&watch)?;
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
    let lasted = Lasted {
        seconds: step.seconds.min(arguments.seconds.as_secs_f64()),
        ordered: outcome.interrupted.is_some().then_some(arguments.seconds),
    };
    let lines = lines(step, lasted);
    let text = format!(
        "Server: {}\nRequests specified per second: {}\nTime duration (seconds): {}\n\n{}\n{}\n{lines}",
        arguments.host,
        arguments.rate,
        lasted.shown(),
        table(&seconds),
        causes(step),
    );
    let written = fs::write(&arguments.report, text).map_err(unwritable);
    output::result(&lines);
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

fn table(rows: &[[u64; 3]]) -> String {
    let mut text = format!("{:>6}  {:>10}  {:>10}  {:>10}\n", "second", "sent", "answered", "failed");
    let mut before = [0; 3];
    for (index, row) in rows.iter().enumerate() {
        let [sent, answered, failed] = std::array::from_fn(|column| row[column] - before[column]);
        writeln!(text, "{:>6}  {sent:>10}  {answered:>10}  {failed:>10}", index + 1)
            .expect("writing to a string cannot fail");
        before = *row;
    }
    text
}

/// For how long requests were sent.
#[derive(Clone, Copy)]
struct Lasted {
    seconds: f64,
    /// What was ordered, if the run was interrupted.
    ordered: Option<Duration>,
}

impl Lasted {
    /// Seconds, without a fraction that nobody ordered.
    fn shown(self) -> String {
        match self.ordered {
            Some(_) => format!("{:.3}", self.seconds),
            None => self.seconds.to_string(),
        }
    }
}

/// How many requests failed for which reason; all of them together are the failed ones.
fn causes(step: &Step) -> String {
    let failed = step.tally.causes.iter().filter(|(cause, _)| !cause.is_skip());
    failed.map(|(cause, count)| format!("{cause}: {count} ({})\n", cause.meaning())).collect()
}

fn lines(step: &Step, lasted: Lasted) -> String {
    let tally = &step.tally;
    // A kiss is what the checks call an answer of stratum 0.
    let bad_stratum = tally.count_of(Cause::BadStratum) + tally.count_of(Cause::Kiss);
    let mut lines = format!(
        "Average NTP Req/Sec:\t{:.0}\nTotal Requests:\t{}\nFailed Requests:\t{}\nBad Stratum Level:\t{bad_stratum}\n",
        step.answered_rps(),
        tally.sent,
        tally.lost + tally.invalid,
    );
    if let Some(ordered) = lasted.ordered {
        writeln!(lines, "Interrupted:\tafter {} of {} seconds", lasted.shown(), ordered.as_secs_f64())
            .expect("writing to a string cannot fail");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_differences() {
        let text = table(&[[10, 8, 1], [25, 20, 3]]);
        assert!(text.ends_with(
            "     1          10           8           1\n     2          15          12           2\n"
        ));
    }
}
