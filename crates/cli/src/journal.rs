//! The log on standard error, in the form that whoever reads it wants: a person, systemd's journal, or a program.
//!
//! A server that runs for months writes no flood ([`Causes`]); other commands write all they have to say.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use authentick_daemon::causes::{Causes, LeftOut};
use authentick_daemon::log_queue::LOG;
use env_logger::fmt::Formatter;
use env_logger::{Builder, Target, WriteStyle};
use log::{Level, LevelFilter, Record};
use serde::Serialize;

use crate::args::LogFormat;
use crate::output::{escaped, printable};

static CAUSES: LazyLock<Causes> = LazyLock::new(Causes::default);

/// What a notice says after the newest of the lines that it stands for.
const NOTICE: &str = "lines like this one were left out";

/// Starts the log, at `level` unless `RUST_LOG` says otherwise.
pub(crate) fn start(level: LevelFilter) {
    let is_journal = is_journal();
    builder(level).format(move |out, record| write_text(out, record, 0, is_journal)).init();
    warn_of_filter();
}

/// How long the end of a server waits for the reader of its log.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// Whether the log goes through its queue.
static IS_QUEUED: AtomicBool = AtomicBool::new(false);

/// Has the log of this process, and what it prints on standard error, go through a queue from here on, so that a reader
/// that stands still delays nothing. [`LogQueue::start`](authentick_daemon::log_queue::LogQueue::start) has it written.
pub(crate) fn queue() {
    LazyLock::force(&LOG);
    IS_QUEUED.store(true, Ordering::Relaxed);
    // The library's hook would wait for the reader, and look for files under RUST_BACKTRACE.
    std::panic::set_hook(Box::new(|panic| {
        let name = std::thread::current().name().unwrap_or("unnamed").to_owned();
        log::error!("thread '{name}' {panic}");
    }));
}

/// Whether each line of the log is a JSON object.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// The line of the log for why a command failed, if the log is in JSON. It is neither filtered nor limited.
pub(crate) fn json_error(message: &str) -> Option<String> {
    let time = || humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    IS_JSON.load(Ordering::Relaxed).then(|| json_line(time(), Level::Error, message, 0, is_journal()))
}

/// Leaves a line in the queue; false if there is none.
pub(crate) fn push(line: &str) -> bool {
    let is_queued = IS_QUEUED.load(Ordering::Relaxed);
    if is_queued {
        LOG.push(line.as_bytes());
    }
    is_queued
}

/// Has what is left in the queue written, as far as it is read within a second.
pub(crate) fn end() {
    if IS_QUEUED.load(Ordering::Relaxed) {
        LOG.start(false);
        LOG.flush(END_PATIENCE);
    }
}

/// Where lines go that are to be queued.
struct Queue;

impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LOG.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts the log of a server.
pub(crate) fn start_for_months(format: LogFormat) {
    let is_journal = is_journal();
    IS_JSON.store(format == LogFormat::Json, Ordering::Relaxed);
    let mut builder = builder(LevelFilter::Info);
    if IS_QUEUED.load(Ordering::Relaxed) {
        let is_plain = ["NO_COLOR", "RUST_LOG_STYLE"].iter().any(|name| std::env::var_os(name).is_some());
        if io::stderr().is_terminal() && !is_plain {
            builder.write_style(WriteStyle::Always);
        }
        builder.target(Target::Pipe(Box::new(Queue)));
    }
    builder
        .format(move |out, record| {
            // Whoever asks for more with `RUST_LOG` wants all of it. A notice stands for lines that were limited.
            let is_limited = record.level() <= Level::Info && record.target() != NOTICE;
            let left_out = if is_limited { CAUSES.admit(record, Instant::now()) } else { Some(0) };
            match (left_out, format) {
                (None, _) => Ok(()),
                (Some(left_out), LogFormat::Text) => write_text(out, record, left_out, is_journal),
                (Some(left_out), LogFormat::Json) => write_json(out, record, left_out, is_journal),
            }
        })
        .init();
    warn_of_filter();
}

/// Logs a warning if `RUST_LOG` has a part without effect.
fn warn_of_filter() {
    let filter = std::env::var("RUST_LOG").unwrap_or_default();
    if let Some(part) = idle_part(&filter) {
        log::warn!(
            "RUST_LOG = {filter:?}: without effect: expected a level in place of {part:?}; write error, warn, info or \
             debug, or MODULE=LEVEL"
        );
    }
}

/// The first part of a filter that sets no level of a module that there is.
fn idle_part(filter: &str) -> Option<&str> {
    let is_level = |text: &str| text.trim().parse::<LevelFilter>().is_ok();
    let is_module = |text: &str| {
        let name = text.trim().split("::").next().unwrap_or_default();
        name.starts_with("authentick") || ["rustls", "mio", "hyper", "tokio"].contains(&name)
    };
    let directives = filter.split('/').next().unwrap_or_default();
    directives.split(',').filter(|part| !part.trim().is_empty()).find(|part| match part.split_once('=') {
        Some((_, level)) => !is_level(level),
        None => !is_level(part) && !is_module(part),
    })
}

/// Tells what was left out and is followed by nothing like it. To be called now and then.
pub(crate) fn tell_overdue() {
    CAUSES.overdue(Instant::now()).iter().for_each(tell);
}

/// Tells all that was left out. To be called at the end.
pub(crate) fn tell_rest() {
    CAUSES.rest().iter().for_each(tell);
}

fn tell(left_out: &LeftOut) {
    let LeftOut { count, line, level, .. } = left_out;
    log::log!(target: NOTICE, *level, "{line} ({count} {NOTICE})");
}

/// rustls writes warnings about what strangers send, a line or more for each connection. It is kept to errors, whatever
/// the level of everything else, unless `RUST_LOG` names it.
fn builder(level: LevelFilter) -> Builder {
    let mut builder = Builder::new();
    builder.filter_level(level).filter_module("rustls", LevelFilter::Error).parse_default_env();
    builder
}

/// Whether standard error is the socket of systemd's journal that `JOURNAL_STREAM` names, as `DEVICE:INODE`.
fn is_journal() -> bool {
    let named = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let stderr = io::stderr().as_fd().try_clone_to_owned().map(std::fs::File::from);
    let is = stderr.and_then(|file| file.metadata());
    is.is_ok_and(|is| format!("{}:{}", is.dev(), is.ino()) == named)
}

/// What the journal takes the priority of a line from: see sd-daemon(3).
const fn prefix(level: Level) -> &'static str {
    match level {
        Level::Error => "<3>",
        Level::Warn => "<4>",
        Level::Info => "<6>",
        Level::Debug | Level::Trace => "<7>",
    }
}

fn write_text(out: &mut Formatter, record: &Record<'_>, left_out: u64, is_journal: bool) -> io::Result<()> {
    let level = record.level();
    let words = record.args().to_string();
    let words = printable(&words);
    let more = if left_out == 0 { String::new() } else { format!(" ({left_out} more {NOTICE} before it)") };
    if is_journal {
        // It adds the time, shows the priority, and takes each line for an entry of its own.
        return words.lines().try_for_each(|line| writeln!(out, "{}{line}{more}", prefix(level)));
    }
    let style = out.default_level_style(level);
    writeln!(out, "[{} {style}{level:<5}{style:#}] {words}{more}", out.timestamp_seconds())
}

/// A line of the log, as a program reads it.
#[derive(Serialize)]
struct JsonLine<'a> {
    /// UTC, as RFC 3339 has it.
    time: String,
    level: String,
    message: &'a str,
    /// Lines of the same cause that were not written since the last that was.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn write_json(out: &mut Formatter, record: &Record<'_>, left_out: u64, is_journal: bool) -> io::Result<()> {
    let message = record.args().to_string();
    let time = out.timestamp_millis().to_string();
    out.write_all(json_line(time, record.level(), &message, left_out, is_journal).as_bytes())
}

fn json_line(time: String, level: Level, message: &str, left_out: u64, is_journal: bool) -> String {
    let line = JsonLine { time, level: level.as_str().to_lowercase(), message, left_out };
    let line = serde_json::to_string(&line).expect("text and a number can be written");
    let prefix = if is_journal { prefix(level) } else { "" };
    format!("{prefix}{}\n", escaped(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_filter_without_effect_is_found() {
        for (filter, expected) in [
            ("", None),
            ("debug", None),
            ("WARN", None),
            ("info,rustls=warn", None),
            ("authentick_daemon=debug,off", None),
            ("authentick_daemon", None),
            ("info/text", None),
            ("blah", Some("blah")),
            ("info,blah", Some("blah")),
            ("rustls=loud", Some("rustls=loud")),
            ("5", Some("5")),
        ] {
            assert_eq!(idle_part(filter), expected, "{filter}");
        }
    }
}
