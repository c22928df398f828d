//! The live screen of `load --tui`.
//!
//! - `frame`: how a run looks.
//! - `terminal`: the alternate screen on standard error, and giving the terminal back whatever happens.

mod frame;
pub(super) mod terminal;
#[cfg(test)]
mod tests;

use std::time::Instant;

use self::terminal::{Key, Terminal};
use super::progress::{REFRESH, Shown};

/// Draws a frame, and reads keys until the next one is due. A terminal that goes away ends the drawing (`false`), and
/// not the run.
pub(super) fn show(terminal: &mut Terminal, run: &Shown, stop: impl Fn()) -> bool {
    let next = Instant::now() + REFRESH;
    if !run.update(|live| terminal.draw(|frame| frame::draw(frame, live))) {
        return false;
    }
    while let Some(key) = terminal::key_until(next) {
        match key {
            Key::Stop => stop(),
            Key::Other => {}
        }
    }
    true
}
