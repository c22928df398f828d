//! What is printed where: results on standard output, everything else on standard error.

use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Prints a result. A reader that has gone away is no failure of ours.
pub(crate) fn result(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints why a command failed.
pub(crate) fn error(message: &str) {
    let _ = writeln!(std::io::stderr(), "authentick: {message}");
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

/// A bar for something that takes a while; invisible unless standard error is a terminal.
pub(crate) fn progress(length: u64, what: &'static str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{msg} {bar:32} {pos}/{len}").expect("the template is well formed");
    ProgressBar::with_draw_target(Some(length), target()).with_style(style).with_message(what)
}

/// A bar over this many milliseconds, with a message after it.
pub(crate) fn bar(length_ms: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:32} {percent:>3} %  {msg}").expect("the template is well formed");
    ProgressBar::with_draw_target(Some(length_ms), target()).with_style(style)
}

/// Something that takes nobody knows how long.
pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{spinner} {elapsed}  {msg}").expect("the template is well formed");
    let spinner = ProgressBar::with_draw_target(None, target()).with_style(style).with_message(what);
    spinner.enable_steady_tick(std::time::Duration::from_millis(100));
    spinner
}

/// Where bars go: nowhere, unless standard error is a terminal.
fn target() -> ProgressDrawTarget {
    match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}
