//! What is shown while a run goes on, and how it is stopped.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use authentick_load::Watch;
use authentick_load::live::LiveRun;
use authentick_load::runner::Run;
use authentick_report::load::text::Rows;
use authentick_report::load::{LoadRecord, Step};
use authentick_report::units::count;
use indicatif::ProgressBar;

use super::screen;
use super::screen::terminal::{self, Terminal};
use crate::args::LoadArguments;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

/// How often counts are taken and shown.
pub(super) const REFRESH: Duration = Duration::from_millis(100);

/// From now on the first Ctrl-C or SIGTERM stops sending, and a second one ends the process.
pub(crate) fn stop_on_signals(watch: &Watch) {
    let watch = watch.clone();
    interrupt::on_signal(move |exit| stop(&watch, exit));
}

/// Stops sending; if that has been asked for already, the process is to end so.
fn stop(watch: &Watch, exit: Exit) -> interrupt::Ending {
    if watch.is_stopped() {
        terminal::close();
        return Some(Err(interrupt::quit(exit)));
    }
    watch.stop();
    // The screen says so itself.
    if !terminal::is_open() {
        output::error("stopping; waiting for the last answers (again: quit at once)");
    }
    None
}

/// What the screen's key does: the same as Ctrl-C.
fn stop_by_key(watch: &Watch) {
    if let Some(result) = stop(watch, Exit::Interrupted) {
        std::process::exit(crate::end(result) as i32);
    }
}

/// A run that is shown until this is dropped.
pub(super) struct Display {
    run: Arc<Shown>,
    /// A row for each step; none on the screen, and where standard output belongs to the record.
    rows: Option<Rows>,
    _ticker: Option<Ticker>,
}

/// What is shown of a run, for the thread that does so and the one that measures.
pub(super) struct Shown {
    live: Mutex<LiveRun>,
    began: Instant,
    watch: Watch,
}

impl Shown {
    /// Brings up to date what is known, and hands it to `show`.
    pub(super) fn update<T>(&self, show: impl FnOnce(&LiveRun) -> T) -> T {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.sample(self.began.elapsed(), self.watch.counts(), self.watch.is_stopped());
        show(&live)
    }
}

impl Display {
    /// Starts to show a run as the arguments ask for: by a bar, or on the live screen.
    ///
    /// # Errors
    /// If the screen cannot be opened.
    pub(super) fn start(
        arguments: &LoadArguments,
        run: &Run,
        watch: &Watch,
        record: &LoadRecord,
    ) -> Result<Self, Failure> {
        let live = LiveRun::new(record, run);
        let bar = (!arguments.tui).then(|| bar(&live));
        if let Some(longest) = live.longest() {
            output::aside(&format!("the search takes {} s at most", longest.as_secs()));
        }
        let shown = Shown { live: Mutex::new(live), began: Instant::now(), watch: watch.clone() };
        let run = Arc::new(shown);
        let own = Arc::clone(&run);
        let rows = (!arguments.tui && !arguments.json).then(|| Rows::new(&record.address));
        if let Some(rows) = &rows {
            output::result(&rows.header());
        }
        let ticker = match bar {
            None => {
                let (mut terminal, watch) = (Terminal::open()?, watch.clone());
                let show = move || screen::show(&mut terminal, &own, || stop_by_key(&watch));
                Some(Ticker::start(terminal::THREAD, show)?)
            }
            Some(bar) => Ticker::of_bar(bar, move |bar| own.update(|live| advance(bar, live)))?,
        };
        Ok(Display { run, rows, _ticker: ticker })
    }

    /// A step has ended; it has a row if it is kept in the record.
    pub(super) fn step(&self, step: &Step, is_kept: bool) {
        if let Some(rows) = self.rows.as_ref().filter(|_| is_kept) {
            output::result(&rows.row(step));
        }
        let mut live = self.run.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.end_step(self.run.began.elapsed(), step);
    }
}

/// A bar for a run that has not begun. Nobody knows how long a search is.
fn bar(live: &LiveRun) -> ProgressBar {
    let step_ms = live.step_duration().as_millis() as u64;
    live.step_count().map_or_else(|| output::spinner(""), |count| output::bar(step_ms * count as u64))
}

/// Shows on a bar how far the run is, and what was sent and answered.
fn advance(bar: &ProgressBar, live: &LiveRun) {
    let ended = live.ended.len();
    let what = match live.step_count() {
        Some(count) => {
            let steps = live.step_duration() * ended as u32 + live.within().min(live.step_duration());
            bar.set_position((steps.as_millis() as u64).min(bar.length().unwrap_or(0)));
            format!("step {} of {count}", (ended + 1).min(count))
        }
        None => {
            let left = live.left_max().unwrap_or_default().as_secs();
            format!("{}; at most {left} s left", live.searched().unwrap_or_default())
        }
    };
    let [sent, answered, failed] = live.counts().map(count);
    bar.set_message(format!("{what}; {sent} sent, {answered} answered, {failed} failed"));
}

/// Shows how many of `client_count` have their first keys, until it is dropped.
pub(super) fn preparation(client_count: u64, watch: &Watch) -> io::Result<Option<Ticker>> {
    let watch = watch.clone();
    let bar = output::progress(client_count, "clients get their keys");
    Ticker::of_bar(bar, move |bar| bar.set_position(watch.ready_count()))
}

/// A thread that shows something again and again until this is dropped.
pub(super) struct Ticker {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// `show` waits until it is to be called again, and says whether it is.
    fn start(name: &str, mut show: impl FnMut() -> bool + Send + 'static) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let body = move || while !ended.load(Ordering::Relaxed) && show() {};
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Ticker { over, thread: Some(thread) })
    }

    /// Keeps a bar up to date, which goes away in the end; `None` if nobody sees it.
    fn of_bar(bar: ProgressBar, update: impl Fn(&ProgressBar) + Send + 'static) -> io::Result<Option<Self>> {
        if bar.is_hidden() {
            return Ok(None);
        }
        let show = move || {
            update(&bar);
            std::thread::sleep(REFRESH);
            true
        };
        Ticker::start("progress", show).map(Some)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
