//! What is shown while a run goes on, and how it is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use authentick_load::Watch;
use authentick_load::runner::{Run, Steps};
use authentick_report::load::text::Rows;
use authentick_report::load::{LoadRecord, Step};
use authentick_report::units::count;
use indicatif::ProgressBar;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::screen::{Screen, terminal};
use crate::args::LoadArguments;
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
            stop(&watch);
        }
    })?;
    Ok(())
}

/// Stops sending; if that has been asked for already, ends the process.
pub(super) fn stop(watch: &Watch) {
    if watch.is_stopped() {
        terminal::close();
        std::process::exit(INTERRUPTED);
    }
    watch.stop();
    // The screen says so itself.
    if !terminal::is_open() {
        output::error("stopping; waiting for the last answers (again: ends at once)");
    }
}

/// How a run is shown while it goes on.
pub(super) enum Display {
    /// A row for each step, above a bar.
    Rows(Bar, Rows),
    /// A bar alone: standard output belongs to the record.
    Bar(Bar),
    /// The live screen.
    Screen(Screen),
}

impl Display {
    /// Starts to show a run as the arguments ask for.
    ///
    /// # Errors
    /// If the screen cannot be opened.
    pub(super) fn start(
        arguments: &LoadArguments,
        run: &Run,
        watch: &Watch,
        record: &LoadRecord,
    ) -> Result<Self, Failure> {
        if arguments.tui {
            return Ok(Display::Screen(Screen::start(run, watch, record)?));
        }
        if arguments.json {
            return Ok(Display::Bar(Bar::start(run, watch)));
        }
        let rows = Rows::new(&record.address);
        output::result(&rows.header());
        Ok(Display::Rows(Bar::start(run, watch), rows))
    }

    /// A step has ended.
    pub(super) fn step(&self, step: &Step) {
        match self {
            Display::Rows(bar, rows) => {
                output::result(&rows.row(step));
                bar.step();
            }
            Display::Bar(bar) => bar.step(),
            Display::Screen(screen) => screen.step(step),
        }
    }
}

/// Shows how many of `client_count` have their first keys, until it is dropped.
pub(super) fn preparation(client_count: u64, watch: &Watch) -> Ticker {
    let watch = watch.clone();
    let bar = output::progress(client_count, "clients get their keys");
    Ticker::start(bar, move |bar| bar.set_position(watch.ready_count()))
}

/// A bar with what was sent and answered so far, shown until it is dropped.
pub(super) struct Bar {
    ended_count: Arc<AtomicU64>,
    _ticker: Ticker,
}

impl Bar {
    /// Starts to show a run.
    fn start(run: &Run, watch: &Watch) -> Self {
        let step_ms = run.duration.as_millis() as u64;
        let (bar, step_count) = match &run.steps {
            Steps::Open(rates) => (output::bar(step_ms * rates.len() as u64), Some(rates.len() as u64)),
            Steps::Closed => (output::bar(step_ms), Some(1)),
            // Nobody knows how long a search is.
            Steps::Search(_) => (output::spinner(""), None),
        };
        let ended_count = Arc::new(AtomicU64::new(0));
        let (ended, watch) = (Arc::clone(&ended_count), watch.clone());
        let (mut current, mut since) = (0, Instant::now());
        let ticker = Ticker::start(bar, move |bar| {
            let now_ended = ended.load(Ordering::Relaxed);
            if now_ended != current {
                (current, since) = (now_ended, Instant::now());
            }
            let within = (since.elapsed().as_millis() as u64).min(step_ms);
            let what = match step_count {
                Some(step_count) => {
                    bar.set_position((current * step_ms + within).min(step_ms * step_count));
                    format!("step {} of {step_count}", (current + 1).min(step_count))
                }
                None => format!("search, trial {}", current + 1),
            };
            let [sent, answered, failed] = watch.counts().map(count);
            bar.set_message(format!("{what}; {sent} sent, {answered} answered, {failed} failed"));
        });
        Bar { ended_count, _ticker: ticker }
    }

    /// A step has ended.
    fn step(&self) {
        self.ended_count.fetch_add(1, Ordering::Relaxed);
    }
}

/// A thread that keeps a bar up to date, and takes it away when it is dropped.
pub(super) struct Ticker {
    bar: ProgressBar,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    fn start(bar: ProgressBar, mut update: impl FnMut(&ProgressBar) + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let thread = (!bar.is_hidden()).then(|| {
            let (bar, over) = (bar.clone(), Arc::clone(&over));
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    update(&bar);
                    std::thread::sleep(REFRESH);
                }
            })
        });
        Ticker { bar, over, thread }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}
