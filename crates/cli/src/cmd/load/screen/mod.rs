//! The live screen of `load --tui`.
//!
//! - `state`: what it knows of a run.
//! - `frame`: how that looks.
//! - `terminal`: the alternate screen on standard error, and giving the terminal back whatever happens.

mod frame;
mod state;
pub(crate) mod terminal;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use authentick_load::Watch;
use authentick_load::runner::Run;
use authentick_report::load::{LoadRecord, Step};

use self::state::State;
use self::terminal::{Key, Terminal};
use super::progress;
use crate::exit::Failure;

/// How often counts are taken and a frame is drawn.
const REFRESH: Duration = Duration::from_millis(100);

/// A screen that shows a run until it is dropped.
pub(crate) struct Screen {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    began: Instant,
    over: AtomicBool,
}

impl Screen {
    /// Opens the screen and starts to show a run.
    ///
    /// # Errors
    /// If the terminal is none that can show it.
    pub(crate) fn start(run: &Run, watch: &Watch, record: &LoadRecord) -> Result<Self, Failure> {
        let terminal = Terminal::open()?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(record, run)),
            began: Instant::now(),
            over: AtomicBool::new(false),
        });
        let (own, watch) = (Arc::clone(&shared), watch.clone());
        let thread = std::thread::Builder::new()
            .name(terminal::THREAD.to_owned())
            .spawn(move || show(terminal, &own, &watch))
            .inspect_err(|_| terminal::close())?;
        Ok(Screen { shared, thread: Some(thread) })
    }

    /// A step has ended.
    pub(crate) fn step(&self, step: &Step) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.end_step(self.shared.began.elapsed(), step);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        terminal::close();
    }
}

/// Draws until the run is over. A terminal that goes away ends the drawing, not the run.
fn show(mut screen: Terminal, shared: &Shared, watch: &Watch) {
    let mut next = Instant::now();
    while !shared.over.load(Ordering::Relaxed) {
        let drawn = {
            let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.sample(shared.began.elapsed(), watch.counts(), watch.is_stopped());
            screen.draw(|frame| frame::draw(frame, &state))
        };
        if !drawn {
            return;
        }
        next = (next + REFRESH).max(Instant::now());
        while let Some(key) = terminal::key_until(next) {
            match key {
                Key::Stop => progress::stop(watch),
                Key::Other => {}
            }
        }
    }
}
