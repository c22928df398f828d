//! What is shown while a run goes on, and how it is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use authentick_load::Watch;
use authentick_load::runner::{Run, Steps};
use indicatif::ProgressBar;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Failure;
use crate::output;

const REFRESH: Duration = Duration::from_millis(100);
/// How a shell reports an end by SIGINT.
const INTERRUPTED: i32 = 130;

/// From now on the first Ctrl-C or SIGTERM stops sending, and a second one ends the process.
pub(crate) fn stop_on_signals(watch: &Watch) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let watch = watch.clone();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            if watch.is_stopped() {
                std::process::exit(INTERRUPTED);
            }
            watch.stop();
            output::error("stopping; waiting for the last answers (again: ends at once)");
        }
    })?;
    Ok(())
}

/// A bar with what was sent and answered so far.
pub(crate) struct Bar {
    bar: ProgressBar,
    ended_count: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Bar {
    /// Starts to show a run.
    pub(crate) fn start(run: &Run, watch: &Watch) -> Self {
        let step_ms = run.duration.as_millis() as u64;
        let bar = match &run.steps {
            Steps::Open(rates) => output::bar(step_ms * rates.len() as u64),
            Steps::Closed => output::bar(step_ms),
            // Nobody knows how long a search is.
            Steps::Search(_) => output::spinner("searching"),
        };
        let (ended_count, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let thread = (!bar.is_hidden()).then(|| {
            let (bar, ended_count, over, watch) =
                (bar.clone(), Arc::clone(&ended_count), Arc::clone(&over), watch.clone());
            std::thread::spawn(move || show(&bar, &ended_count, &over, &watch, step_ms))
        });
        Bar { bar, ended_count, over, thread }
    }

    /// Prints something that stays.
    pub(crate) fn aside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// A step has ended.
    pub(crate) fn step(&self) {
        self.ended_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the bar away.
    pub(crate) fn finish(mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

fn show(bar: &ProgressBar, ended_count: &AtomicU64, over: &AtomicBool, watch: &Watch, step_ms: u64) {
    let (mut ended, mut since) = (0, std::time::Instant::now());
    while !over.load(Ordering::Relaxed) {
        let now_ended = ended_count.load(Ordering::Relaxed);
        if now_ended != ended {
            (ended, since) = (now_ended, std::time::Instant::now());
        }
        let within = (since.elapsed().as_millis() as u64).min(step_ms);
        bar.set_position(ended * step_ms + within);
        let [sent, answered, failed] = watch.counts();
        bar.set_message(format!("{sent} sent, {answered} answered, {failed} failed"));
        std::thread::sleep(REFRESH);
    }
}
