//! One frame of the screen, drawn from what is known. Pure: the same run and size give the same cells.

use std::fmt::Display;
use std::time::Duration;

use authentick_load::live::{LiveRun, Phase};
use authentick_report::load::text::{self, Rows};
use authentick_report::load::{Cause, HostPart, LoadRecord, Point, Step};
use authentick_report::units::{count, microseconds, plural, rate};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, LineGauge, Paragraph, Sparkline};

/// The smallest terminal that has room for everything.
pub(super) const WIDTH_MIN: u16 = 80;
pub(super) const HEIGHT_MIN: u16 = 24;

/// From this width on a remark stands in the line of its step.
const WIDTH_WITH_REMARKS: u16 = 110;

/// What stands before a step or host that did not do its part.
const INVALID_MARK: &str = "!";

/// Room for the name, rate and time of the current step, before its bar.
const TITLE_WIDTH: usize = 60;

/// Widths of the figures of a host, after its name.
const HOST_WIDTHS: [usize; 5] = [9, 9, 10, 6, 19];
const HOST_NAME_WIDTH: usize = 18;
const HOST_HEADINGS: [&str; 5] = ["offered/s", "sent/s", "answered/s", "lost %", "start skew"];

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const CURVE: Style = Style::new().fg(Color::Cyan);

/// Draws the run.
pub(super) fn draw(frame: &mut Frame<'_>, run: &LiveRun) {
    let area = frame.area();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        return too_small(frame, run);
    }
    let extra = usize::from(area.height - HEIGHT_MIN);
    let causes = causes(run, 2 + extra / 4);
    let hosts = run.ended.last().map_or_else(Vec::new, |step| hosts(step, 3 + extra / 3, area.width));
    let search = run.searched();
    let titled = |lines: usize| if lines == 0 { 0 } else { lines as u16 + 1 };
    let [head, current, bracket, chart, steps, latency, parts, failed, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(4),
        Constraint::Length(u16::from(search.is_some())),
        Constraint::Length(4 + (extra as u16 / 3).min(5)),
        Constraint::Min(4),
        Constraint::Length(titled(1)),
        Constraint::Length(titled(hosts.len())),
        Constraint::Length(titled(causes.len())),
        Constraint::Length(1),
    ])
    .areas(area);
    header(frame, run, head);
    progress(frame, run, current);
    if let Some(search) = search {
        frame.render_widget(Line::from(format!(" {search}")), bracket);
    }
    curve(frame, run, chart);
    let room = usize::from(steps.height.saturating_sub(1));
    section(frame, steps, "Steps that have ended", table(run, room, area.width));
    section(frame, latency, &latency_title(run), vec![last_latency(run)]);
    section(frame, parts, "Hosts in that step", hosts);
    section(frame, failed, "Failed so far, by cause", causes);
    frame.render_widget(footer(run), foot);
}

/// What matters most, and why it is no more.
fn too_small(frame: &mut Frame<'_>, run: &LiveRun) {
    let area = frame.area();
    let [sent, answered, failed] = run.rates().map(rate);
    let lines = vec![
        footer(run),
        Line::from(step_title(run)),
        Line::from(format!("{sent} sent/s, {answered} answered/s, {failed} failed/s")),
        Line::from(format!(
            "This terminal has {} x {}; more is shown from {WIDTH_MIN} x {HEIGHT_MIN} on.",
            area.width, area.height
        )),
    ];
    frame.render_widget(Paragraph::new(lines), area);
}

fn header(frame: &mut Frame<'_>, run: &LiveRun, area: Rect) {
    let record = &run.record;
    let clock = match (run.total(), run.left_max()) {
        (Some(total), _) => format!("{} of about {} ", minutes(run.now), minutes(total)),
        (None, Some(left)) => format!("{}, at most {} left ", minutes(run.now), minutes(left)),
        (None, None) => format!("{} ", minutes(run.now)),
    };
    let address = match record.server() == record.address {
        true => String::new(),
        false => format!(" ({})", record.address),
    };
    let room = usize::from(area.width).saturating_sub(clock.len() + 2);
    let title = clipped(&format!("{} against {}{address}", record.label(), record.server()), room);
    let [first, second] = Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
    frame.render_widget(Line::styled(format!(" {title}"), BOLD), first);
    frame.render_widget(Line::from(clock).alignment(Alignment::Right), first);
    let shape = clipped(&shape(record), usize::from(area.width).saturating_sub(2));
    frame.render_widget(Line::styled(format!(" {shape}"), DIM), second);
}

/// How the load is shaped, in few words.
fn shape(record: &LoadRecord) -> String {
    let parameters = &record.parameters;
    let arrivals = match parameters.window {
        Some(window) => format!("closed loop, {window} in flight per worker"),
        None => format!("open loop, {} intervals", parameters.arrivals),
    };
    let mut parts = vec![
        arrivals,
        plural(u64::from(parameters.clients), "client"),
        plural(u64::from(parameters.workers), "worker"),
    ];
    if !parameters.agents.is_empty() {
        parts.push(plural(parameters.agents.len() as u64, "agent"));
    }
    if parameters.background_rps > 0.0 {
        parts.push(format!("background {}/s", rate(parameters.background_rps)));
    }
    parts.push(format!("path: {}", record.path));
    parts.join("; ")
}

/// The current step: how far it is, and what is sent, answered and failed.
fn progress(frame: &mut Frame<'_>, run: &LiveRun, area: Rect) {
    let [gauge, figures] = Layout::vertical([Constraint::Length(1), Constraint::Length(3)]).areas(area);
    let duration = run.step_duration();
    let ratio = match run.phase() {
        Phase::Sending(within) => (within.as_secs_f64() / duration.as_secs_f64().max(1e-9)).clamp(0.0, 1.0),
        Phase::Waiting | Phase::Stopping | Phase::Over => 1.0,
    };
    let gauge = Rect { x: gauge.x + 1, width: gauge.width.saturating_sub(2), ..gauge };
    let title = format!("{:<TITLE_WIDTH$}", clipped(&step_title(run), TITLE_WIDTH));
    frame.render_widget(
        LineGauge::default()
            .label(Line::styled(title, BOLD))
            .ratio(ratio)
            .filled_symbol("\u{2501}")
            .unfilled_symbol("\u{2500}")
            .filled_style(CURVE)
            .unfilled_style(DIM),
        gauge,
    );
    let line = |name: &str, cells: [String; 3]| {
        let [sent, answered, failed] = cells;
        format!(" {name:<12}{sent:>14}{answered:>14}{failed:>14}")
    };
    let headings = ["sent", "answered", "failed"].map(str::to_owned);
    let lines = vec![
        Line::styled(line("", headings), DIM),
        Line::styled(line("each second", run.rates().map(rate)), BOLD),
        Line::from(line("in all", run.counts().map(count))),
    ];
    frame.render_widget(Paragraph::new(lines), figures);
}

/// Which step it is, at which rate, and what is going on in it.
fn step_title(run: &LiveRun) -> String {
    let number = match (run.phase(), run.step_count()) {
        (Phase::Over, _) => return "All steps have ended".to_owned(),
        (_, Some(count)) => format!("Step {} of {count}", run.ended.len() + 1),
        (_, None) => format!("Trial {}", run.ended.len() + 1),
    };
    let offered = match run.offered_rps() {
        Some(offered) => format!("{}/s offered", rate(offered)),
        None => "as fast as answers come".to_owned(),
    };
    let going_on = match run.phase() {
        Phase::Sending(within) => {
            format!("{:.1} s of {} s", within.as_secs_f64(), run.step_duration().as_secs_f64())
        }
        Phase::Waiting => "waiting for last answers".to_owned(),
        Phase::Stopping | Phase::Over => "STOPPING: last answers".to_owned(),
    };
    format!("{number}: {offered}, {going_on}")
}

fn curve(frame: &mut Frame<'_>, run: &LiveRun, area: Rect) {
    let columns = usize::from(area.width.saturating_sub(2));
    let values = run.answered_rps(columns);
    let most = values.iter().copied().max().unwrap_or(0);
    let block = Block::new()
        .borders(Borders::TOP)
        .border_style(DIM)
        .title(" Answered a second, over the last minute ")
        .title(Line::from(format!(" highest {} ", count(most))).alignment(Alignment::Right));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let inner = Rect { x: inner.x + 1, width: columns as u16, ..inner };
    frame.render_widget(Sparkline::default().data(&values).max(most.max(1)).style(CURVE), inner);
}

/// Lines under a title.
fn section(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>) {
    let block = Block::new().borders(Borders::TOP).border_style(DIM).title(format!(" {title} "));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// The newest steps for which there is room, the newest last.
fn table(run: &LiveRun, room: usize, width: u16) -> Vec<Line<'static>> {
    let rows = Rows::new(&run.record.address);
    let wide = width >= WIDTH_WITH_REMARKS;
    let remark_heading = if wide { "  remarks" } else { "" };
    let heading = format!("{}{remark_heading}", cells(" ", Rows::HEADINGS, Rows::WIDTHS));
    let mut blocks: Vec<Vec<Line<'static>>> = Vec::new();
    let mut left = room.saturating_sub(1);
    for (age, step) in run.ended.iter().rev().enumerate() {
        let mut lines = step_lines(&rows, step, width, age == 0);
        if age == 0 {
            lines.truncate(left);
        }
        if lines.len() > left {
            break;
        }
        left -= lines.len();
        blocks.push(lines);
    }
    if run.ended.is_empty() {
        blocks.push(vec![Line::styled(" none yet", DIM)]);
    }
    std::iter::once(Line::styled(heading, DIM)).chain(blocks.into_iter().rev().flatten()).collect()
}

/// A step. A remark that has no room beside it stands below, if the step is invalid or the newest.
fn step_lines(rows: &Rows, step: &Step, width: u16, newest: bool) -> Vec<Line<'static>> {
    let style = if step.valid { Style::new() } else { ALARM };
    let mark = if step.valid { " " } else { INVALID_MARK };
    let line = cells(mark, rows.cells(step), Rows::WIDTHS);
    let remark = rows.remark(step);
    let beside = usize::from(width).saturating_sub(line.chars().count() + 3);
    let lines = match remark.chars().count() {
        0 => vec![line],
        length if length <= beside => vec![format!("{line}  {remark}")],
        _ if newest || !step.valid => {
            let below = wrapped(&remark, usize::from(width).saturating_sub(5), 2);
            let below = below.into_iter().map(|part| format!("{mark}   {part}"));
            std::iter::once(line).chain(below).collect()
        }
        _ if width >= WIDTH_WITH_REMARKS => vec![format!("{line}  {}", clipped(&remark, beside))],
        _ => vec![line],
    };
    lines.into_iter().map(|line| Line::styled(line, style)).collect()
}

fn latency_title(run: &LiveRun) -> String {
    match run.ended.last().and_then(|step| step.offered_rps) {
        Some(offered) => format!("Latency in the last step, {}/s", rate(offered)),
        None => "Latency in the last step".to_owned(),
    }
}

fn last_latency(run: &LiveRun) -> Line<'static> {
    let Some(step) = run.ended.last() else { return Line::styled(" none yet", DIM) };
    let Some(latency) = step.tally.latency_us else { return Line::from(" no answer") };
    let mut spans = Vec::new();
    // As many as 80 columns hold; the table that follows the run has p99.99 too.
    for point in [Point::P50, Point::P95, Point::P99, Point::P999, Point::Max] {
        spans.push(Span::styled(format!(" {point} "), DIM));
        spans.push(Span::raw(latency.at(point).map_or_else(|| "-".to_owned(), microseconds)));
    }
    Line::from(spans)
}

/// The hosts of a step, those that did not do their part first.
fn hosts(step: &Step, room: usize, width: u16) -> Vec<Line<'static>> {
    if step.hosts.is_empty() {
        return Vec::new();
    }
    let mut parts: Vec<&HostPart> = step.hosts.iter().collect();
    parts.sort_by_key(|part| part.valid);
    let (shown, hidden) = match parts.len() > room {
        true => parts.split_at(room.saturating_sub(1)),
        false => (parts.as_slice(), [].as_slice()),
    };
    let name = |name: &str| format!("{:<HOST_NAME_WIDTH$}", clipped(name, HOST_NAME_WIDTH));
    let heading = cells(&format!("  {}", name("")), HOST_HEADINGS, HOST_WIDTHS);
    let mut lines = vec![Line::styled(heading, DIM)];
    for part in shown {
        let (mark, style) = if part.valid { (" ", Style::new()) } else { (INVALID_MARK, ALARM) };
        let figures = [
            part.offered_rps.map_or_else(|| "-".to_owned(), rate),
            rate(step.per_second(part.tally.sent)),
            rate(step.answered_rps_of(&part.tally)),
            text::lost_percent(&part.tally),
            text::skew(part.start_skew_us, part.start_skew_error_us),
        ];
        let mut line = cells(&format!("{mark} {}", name(&part.name)), figures, HOST_WIDTHS);
        if let Some(why) = &part.why_invalid {
            line = format!("{line}  {why}");
        }
        lines.push(Line::styled(clipped(&line, usize::from(width).saturating_sub(1)), style));
    }
    if !hidden.is_empty() {
        lines.push(Line::styled(format!("  and {} more, which did their part", hidden.len()), DIM));
    }
    lines
}

/// Each cause on a line with its meaning, or all on one if they are too many.
fn causes(run: &LiveRun, room: usize) -> Vec<Line<'static>> {
    let failures = text::failures(&run.ended);
    match failures.len() {
        0 => vec![Line::styled(" nothing in the steps that have ended", DIM)],
        number if number <= room => {
            let line = |(cause, number): (Cause, u64)| {
                Line::from(format!(" {cause:<20} {:>10}  {}", count(number), cause.meaning()))
            };
            failures.into_iter().map(line).collect()
        }
        _ => {
            let parts: Vec<String> =
                failures.iter().map(|&(cause, number)| format!("{cause} {}", count(number))).collect();
            vec![Line::from(format!(" {}", parts.join(", ")))]
        }
    }
}

fn footer(run: &LiveRun) -> Line<'static> {
    let (keys, what) = match run.stopped {
        false => (" q, Ctrl-C ", " stop sending and wait for the last answers"),
        true => (" q, Ctrl-C ", " end at once, without a result"),
    };
    Line::from(vec![Span::styled(keys, Style::new().add_modifier(Modifier::REVERSED)), Span::raw(what)])
}

/// Cells in columns after a first one; a cell that is too long moves what follows.
fn cells<const N: usize>(first: &str, cells: [impl Display; N], widths: [usize; N]) -> String {
    let columns = cells.into_iter().zip(widths);
    columns.fold(first.to_owned(), |line, (cell, width)| format!("{line} {cell:>width$}"))
}

/// A text on at most so many lines, broken between words.
fn wrapped(text: &str, width: usize, line_count_max: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let full = lines.len() == line_count_max;
        let last = lines.last_mut().expect("there is a first line");
        if last.is_empty() || full || last.chars().count() + 1 + word.chars().count() <= width {
            let gap = if last.is_empty() { "" } else { " " };
            *last += gap;
            *last += word;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.into_iter().map(|line| clipped(&line, width)).collect()
}

/// At most so many characters of a text, with a sign if some are missing.
fn clipped(text: &str, length_max: usize) -> String {
    if text.chars().count() <= length_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(length_max.saturating_sub(1)).collect();
    if length_max == 0 { kept } else { format!("{}\u{2026}", kept.trim_end()) }
}

/// `1:05`, `1:00:00`.
fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}
