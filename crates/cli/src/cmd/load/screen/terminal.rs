//! The terminal of the screen: it is opened on standard error, so that results go to standard output undisturbed, and
//! given back whatever ends the run: its end, an error, a panic, a signal.

use std::io::{self, BufWriter, IsTerminal, Stderr, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use log::LevelFilter;
use ratatui::Frame;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};

use crate::exit::{Exit, Failure};

/// The name of the thread that draws.
pub(crate) const THREAD: &str = "screen";

/// Octets of a frame that are written in one go.
const BUFFER_SIZE: usize = 1 << 16;

/// Whether the terminal is ours, and the log's level that was in force before. Held while something is drawn.
static OPEN: Mutex<Option<LevelFilter>> = Mutex::new(None);

/// Whether the terminal is still to be given back. Twice would move the cursor over what was printed meanwhile.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Sets the hook that gives the terminal back before a panic is reported.
static HOOK: Once = Once::new();

/// A terminal that shows frames.
pub(crate) struct Terminal(ratatui::Terminal<CrosstermBackend<BufWriter<Stderr>>>);

/// What was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// `q` or Ctrl-C.
    Stop,
    /// Something else, or the size has changed.
    Other,
}

/// Refuses what cannot show a screen.
///
/// # Errors
/// A usage error that says why.
pub(crate) fn check() -> Result<(), Failure> {
    let why = match std::env::var("TERM") {
        _ if !io::stderr().is_terminal() => "standard error is none; leave --tui out, or do not redirect it",
        Ok(term) if term == "dumb" => "this one is dumb, says TERM; leave --tui out",
        _ => return Ok(()),
    };
    Err(Exit::Usage.because(format!("--tui needs a terminal, and {why}")))
}

impl Terminal {
    /// Takes the terminal: raw, and with its alternate screen.
    ///
    /// # Errors
    /// If it cannot be taken.
    pub(crate) fn open() -> Result<Self, Failure> {
        let problem = |error| Exit::Usage.because(format!("--tui: this terminal cannot be used: {error}"));
        HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                // The thread that draws holds the lock, and would wait for itself.
                match std::thread::current().name() {
                    Some(THREAD) => restore(),
                    _ => close(),
                }
                report(panic);
            }));
        });
        let mut open = lock();
        enable_raw_mode().map_err(problem)?;
        TAKEN.store(true, Ordering::Relaxed);
        // A line of the log in the middle of a frame helps nobody.
        *open = Some(log::max_level());
        log::set_max_level(LevelFilter::Off);
        drop(open);
        let backend = CrosstermBackend::new(BufWriter::with_capacity(BUFFER_SIZE, io::stderr()));
        let entered = execute!(io::stderr(), EnterAlternateScreen, cursor::Hide);
        match entered.and_then(|()| ratatui::Terminal::new(backend)) {
            Ok(terminal) => Ok(Terminal(terminal)),
            Err(error) => {
                close();
                Err(problem(error))
            }
        }
    }

    /// Draws a frame; `false` if the terminal is no longer ours, or gone.
    pub(super) fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> bool {
        let open = lock();
        open.is_some() && self.0.draw(render).is_ok()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        close();
    }
}

/// The next key by this instant; `None` if there is none.
pub(super) fn key_until(end: Instant) -> Option<Key> {
    let left = end.saturating_duration_since(Instant::now());
    match event::poll(left) {
        Ok(true) => Some(event::read().map_or(Key::Other, |event| meaning(&event))),
        Ok(false) => None,
        // There is nothing to read keys from; signals still come.
        Err(_) => {
            std::thread::sleep(left.max(Duration::from_millis(1)));
            None
        }
    }
}

fn meaning(event: &Event) -> Key {
    match event {
        Event::Key(KeyEvent { kind: KeyEventKind::Release, .. }) => Key::Other,
        Event::Key(KeyEvent { code: KeyCode::Char('q'), .. }) => Key::Stop,
        Event::Key(KeyEvent { code: KeyCode::Char('c'), modifiers, .. })
            if modifiers.contains(KeyModifiers::CONTROL) =>
        {
            Key::Stop
        }
        _ => Key::Other,
    }
}

/// Whether the screen has the terminal.
pub(crate) fn is_open() -> bool {
    lock().is_some()
}

/// Gives the terminal back, if the screen has it.
pub(crate) fn close() {
    if let Some(level) = lock().take() {
        log::set_max_level(level);
        restore();
    }
}

fn restore() {
    if !TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    let mut out = io::stderr();
    let _ = execute!(out, LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
    let _ = out.flush();
}

fn lock() -> MutexGuard<'static, Option<LevelFilter>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_and_control_c_stop_and_nothing_else_does() {
        let key = |code, modifiers| meaning(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Key::Stop);
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Key::Stop);
        for (code, modifiers) in [
            (KeyCode::Char('c'), KeyModifiers::NONE),
            (KeyCode::Char('x'), KeyModifiers::CONTROL),
            (KeyCode::Esc, KeyModifiers::NONE),
        ] {
            assert_eq!(key(code, modifiers), Key::Other, "{code:?}");
        }
        assert_eq!(meaning(&Event::Resize(10, 10)), Key::Other);
    }
}
