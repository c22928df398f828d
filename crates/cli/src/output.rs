//! What is printed where: results on standard output, unless that is a file that an option names, and everything else
//! on standard error.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, OnceLock};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::journal;

/// The bars that are shown. They stand aside for whatever else is printed.
static BARS: LazyLock<MultiProgress> = LazyLock::new(|| MultiProgress::with_draw_target(target()));

/// Whether a result was printed.
static HAS_RESULT: AtomicBool = AtomicBool::new(false);

/// Whether standard output is a file that an option named as `-`.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Why standard output could not be written.
static LOST: OnceLock<String> = OnceLock::new();

/// `text` without characters that could steer a terminal. Names in certificates, addresses of responders and what TLS
/// says of a peer were chosen by others.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let steers = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    match text.contains(steers) {
        true => text.replace(steers, "\u{fffd}").into(),
        false => text.into(),
    }
}

/// Leaves standard output to a file that an option named as `-`: results go to standard error from now on.
pub(crate) fn leave_standard_output() {
    IS_TAKEN.store(true, Ordering::Relaxed);
}

/// Prints a result. What could not be written is kept for [`lost`].
pub(crate) fn result(text: &str) {
    HAS_RESULT.store(true, Ordering::Relaxed);
    BARS.suspend(|| {
        if IS_TAKEN.load(Ordering::Relaxed) {
            let _ = std::io::stderr().write_all(printable(text).as_bytes());
            return;
        }
        let mut out = std::io::stdout().lock();
        note(out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()));
    });
}

/// Notes that standard output could not be written, unless its reader has gone away, as `head` does.
pub(crate) fn note(written: std::io::Result<()>) {
    if let Err(error) = written.and_then(|()| std::io::stdout().flush())
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        // The first one says why.
        let _ = LOST.set(error.to_string());
    }
}

/// Why a part of the results is not on standard output, if one is missing.
pub(crate) fn lost() -> Option<Failure> {
    LOST.get().map(|error| Exit::Internal.because(format!("cannot write to standard output: {error}")))
}

/// Prints a result as JSON.
///
/// # Errors
/// If it holds what JSON cannot say.
pub(crate) fn json(result: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(result).map_err(|error| Exit::Internal.because(error.to_string()))?;
    self::result(&format!("{}\n", escaped(&text)));
    Ok(())
}

/// Whether the command line has `--json`, even one that is wrong.
pub(crate) fn is_json() -> bool {
    std::env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| arg == "--json")
}

/// Prints a failure as an object if the command line has `--json` and no result was printed: `--json` prints an object
/// whatever happens, even where the command line itself is wrong.
pub(crate) fn failure_object(exit: Exit, message: &str) {
    if HAS_RESULT.load(Ordering::Relaxed) || !is_json() {
        return;
    }
    let object = serde_json::json!({ "exit": exit as u8, "error": message });
    result(&format!("{}\n", escaped(&format!("{object:#}"))));
}

/// Prints a result as JSON or, unless that was asked for, as text.
///
/// # Errors
/// If it holds what JSON cannot say.
pub(crate) fn json_or_text(
    json: bool,
    result: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if json {
        return self::json(result);
    }
    self::result(&text());
    Ok(())
}

/// JSON in which no character is a control character that serde leaves as it is: DEL, and those of ISO 6429 above it.
/// They stand in strings alone.
pub(crate) fn escaped(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut out, letter| {
        match letter.is_control() && letter != '\n' {
            true => write!(out, "\\u{:04x}", u32::from(letter)).expect("writing to a string cannot fail"),
            false => out.push(letter),
        }
        out
    })
}

/// Prints why a command failed, or what else its user must know.
pub(crate) fn error(message: &str) {
    BARS.suspend(|| {
        let line =
            journal::json_error(message).unwrap_or_else(|| format!("authentick: {}\n", printable(message)));
        if !journal::push(&line) {
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    });
}

/// Prints what happens meanwhile.
pub(crate) fn aside(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable(text));
}

/// A bar for something that takes a while, in countable parts; invisible unless standard error is a terminal.
pub(crate) fn progress(length: u64, what: &'static str) -> ProgressBar {
    shown(ProgressBar::new(length), "{msg} {bar:32} {pos}/{len}").with_message(what)
}

/// A bar over this many milliseconds, with a message after it.
pub(crate) fn bar(length_ms: u64) -> ProgressBar {
    shown(ProgressBar::new(length_ms), "{bar:12} {percent:>3} %  {wide_msg}")
}

/// Something that takes nobody knows how long.
pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    let spinner = shown(ProgressBar::new_spinner(), "{spinner} {elapsed}  {wide_msg}").with_message(what);
    spinner.enable_steady_tick(std::time::Duration::from_millis(100));
    spinner
}

fn shown(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    BARS.add(bar.with_style(style).with_finish(ProgressFinish::AndClear))
}

/// Where bars go: nowhere, unless standard error is a terminal.
fn target() -> ProgressDrawTarget {
    match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_printed_steers_the_terminal() {
        assert_eq!(printable("a\tb\nc \u{b5}s"), "a\tb\nc \u{b5}s");
        let hostile = "CN=\u{1b}[2J\u{1b}]0;x\u{7}\r\u{8}\u{7f}\u{9b}31m\0";
        assert_eq!(
            printable(hostile),
            "CN=\u{fffd}[2J\u{fffd}]0;x\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}31m\u{fffd}"
        );
    }

    #[test]
    fn json_says_the_same_without_control_characters() {
        let hostile = "CN=\u{1b}[2J\n\u{7f}\u{9b}31m";
        let json = escaped(&serde_json::to_string_pretty(&[hostile]).unwrap());
        assert!(json.chars().all(|letter| letter == '\n' || !letter.is_control()), "{json:?}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&json).unwrap(), [hostile]);
    }
}
