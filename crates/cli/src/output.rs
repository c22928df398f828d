//! What is printed where: results on standard output, everything else on standard error.

use std::io::{IsTerminal, Write};
use std::sync::LazyLock;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::exit::{Exit, Failure};

/// The bars that are shown. They stand aside for whatever else is printed.
static BARS: LazyLock<MultiProgress> = LazyLock::new(|| MultiProgress::with_draw_target(target()));

/// Prints a result. A reader that has gone away is no failure of ours.
pub(crate) fn result(text: &str) {
    BARS.suspend(|| {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    });
}

/// Prints a result as JSON.
///
/// # Errors
/// If it holds what JSON cannot say.
pub(crate) fn json(result: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(result)
        .map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
    self::result(&format!("{text}\n"));
    Ok(())
}

/// Prints why a command failed, or what else its user must know.
pub(crate) fn error(message: &str) {
    BARS.suspend(|| {
        let _ = writeln!(std::io::stderr(), "authentick: {message}");
    });
}

/// Prints what happens meanwhile.
pub(crate) fn aside(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Starts the log on standard error, at `level` unless `RUST_LOG` says otherwise; under systemd, the journal adds the
/// time.
pub(crate) fn start_log(level: &str) {
    let filter = format!("{level},rustls=error");
    let mut builder = env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(filter));
    if std::env::var_os("JOURNAL_STREAM").is_some() {
        builder.format_timestamp(None);
    }
    builder.format_target(false).init();
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
    BARS.add(bar.with_style(style))
}

/// Where bars go: nowhere, unless standard error is a terminal.
fn target() -> ProgressDrawTarget {
    match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}
