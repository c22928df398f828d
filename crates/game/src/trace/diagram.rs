//! Sequence diagrams: a lane for each party, and an arrow for each message.

use std::fmt::Write as _;

use authentick_report::render::escaped;

use super::{Event, Trace, summed, time};

/// Who stands where, from the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Another client.
    OtherClient,
    /// The client that is attacked.
    Victim,
    /// The adversary, which is the network.
    Adversary,
    /// The server.
    Server,
    /// Another server.
    OtherServer,
}

impl Lane {
    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Lane::OtherClient => "other client",
            Lane::Victim => "victim",
            Lane::Adversary => "adversary",
            Lane::Server => "server",
            Lane::OtherServer => "other server",
        }
    }
}

/// The lanes in which something happens.
fn lanes(trace: &Trace) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = trace
        .steps
        .iter()
        .flat_map(|step| match &step.event {
            Event::Message { from, to, .. } => [*from, *to],
            Event::Remark { lane, .. } => [*lane; 2],
        })
        .collect();
    lanes.extend([Lane::Victim, Lane::Adversary, Lane::Server]);
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

/// Columns of text to the left of the first lane, and from lane to lane.
const MARGIN: usize = 20;
const LANE: usize = 30;

/// The diagram in text. Double arrows are messages that the adversary has made or changed.
#[must_use]
pub fn text(trace: &Trace) -> String {
    let lanes = lanes(trace);
    let column = |lane: Lane| MARGIN + LANE * lanes.iter().position(|one| *one == lane).unwrap_or(0);
    let width = MARGIN + LANE * lanes.len();
    let blank = || {
        let mut row = vec![' '; width];
        lanes.iter().for_each(|lane| row[column(*lane)] = '|');
        row
    };
    let put = |row: &mut Vec<char>, at: usize, words: &str| {
        for (place, letter) in words.chars().enumerate() {
            match row.get_mut(at + place) {
                Some(one) => *one = letter,
                None => row.push(letter),
            }
        }
    };
    let mut rows = Vec::new();
    let mut head = vec![' '; width];
    for lane in &lanes {
        put(&mut head, column(*lane).saturating_sub(lane.name().len() / 2), lane.name());
    }
    rows.push(head);
    let mut before = None;
    for (step, count) in summed(&trace.steps) {
        let mut row = blank();
        if before != Some(step.now) {
            put(&mut row, 0, &time(step.now));
        }
        before = Some(step.now);
        match &step.event {
            Event::Message { from, to, kind, is_forged } => {
                let (left, right) = (column(*from).min(column(*to)), column(*from).max(column(*to)));
                row[left + 1..right].fill(if *is_forged { '=' } else { '-' });
                let is_right = column(*to) > column(*from);
                row[if is_right { right - 1 } else { left + 1 }] = if is_right { '>' } else { '<' };
                let times = if count > 1 { format!(" {count} such ") } else { format!(" {kind} ") };
                put(&mut row, (left + right).saturating_sub(times.chars().count()) / 2 + 1, &times);
            }
            Event::Remark { lane, words } => put(&mut row, column(*lane) + 2, words),
        }
        rows.push(row);
    }
    let lines = rows.into_iter().map(|row| row.into_iter().collect::<String>().trim_end().to_owned());
    lines.fold(String::new(), |text, line| text + &line + "\n")
}

/// Pixels to the left of the first lane, from lane to lane, and from step to step.
const MARGIN_PX: usize = 170;
const LANE_PX: usize = 230;
const STEP_PX: usize = 26;
const TOP_PX: usize = 66;

/// Length and half the height of the head of an arrow.
const HEAD_PX: usize = 8;

/// The diagram as a picture that stands by itself. Its colours follow the reader's theme.
#[must_use]
pub fn svg(trace: &Trace) -> String {
    const STYLE: &str = "svg{font:13px system-ui,sans-serif;background:#fff;color:#1b1b1b}\
        text{fill:currentColor;font-size:12px}.lane{stroke:#8a8a8a;stroke-dasharray:2 4}.said{stroke:#1b5e9e}\
        .made{stroke:#b3261e;stroke-dasharray:6 3}.said-head{fill:#1b5e9e}.made-head{fill:#b3261e}\
        .name{font-weight:600;font-size:13px}@media(prefers-color-scheme:dark){svg{background:#161616;color:#e8e8e8}\
        .said{stroke:#7db8f0}.made{stroke:#ff8a80}.said-head{fill:#7db8f0}.made-head{fill:#ff8a80}}";
    let (width, height, body) = drawn(trace);
    let title = escaped(&trace.title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n<text class=\"name\" x=\"12\" y=\"22\">{title}</text>\n\
         {body}</svg>\n"
    )
}

/// The same for a page that has a style for it and says elsewhere what is played.
#[must_use]
pub fn inline(trace: &Trace) -> String {
    let (width, height, body) = drawn(trace);
    let (title, top) = (escaped(&trace.title), TOP_PX / 2);
    format!(
        "<svg class=\"sequence\" viewBox=\"0 {top} {width} {}\" width=\"{width}\" role=\"img\">\n\
         <title>{title}</title>\n{body}</svg>\n",
        height - top
    )
}

/// Width, height, and what is below the title.
fn drawn(trace: &Trace) -> (usize, usize, String) {
    let (lanes, steps) = (lanes(trace), summed(&trace.steps));
    let x = |lane: Lane| MARGIN_PX + LANE_PX * lanes.iter().position(|one| *one == lane).unwrap_or(0);
    // The last lane's remarks stand to its right.
    let (width, height) = (MARGIN_PX + LANE_PX * (lanes.len() + 1), TOP_PX + STEP_PX * (steps.len() + 1));
    let mut out = String::new();
    for lane in &lanes {
        let (x, end) = (x(*lane), height - STEP_PX / 2);
        let _ = writeln!(
            out,
            "<text class=\"name\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <line class=\"lane\" x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{end}\"/>",
            TOP_PX - 16,
            lane.name(),
            TOP_PX - 8
        );
    }
    let mut before = None;
    for (row, (step, count)) in steps.into_iter().enumerate() {
        let y = TOP_PX + STEP_PX * row + STEP_PX / 2;
        if before != Some(step.now) {
            let _ = writeln!(out, "<text x=\"12\" y=\"{}\">{}</text>", y + 4, time(step.now));
        }
        before = Some(step.now);
        match &step.event {
            Event::Message { from, to, kind, is_forged } => {
                out += &arrow(x(*from), x(*to), y, *is_forged);
                let times = if count > 1 { format!(", {count} such") } else { String::new() };
                let _ = writeln!(
                    out,
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}{times}</text>",
                    (x(*from) + x(*to)) / 2,
                    y - 4,
                    escaped(kind)
                );
            }
            Event::Remark { lane, words } => {
                let (x, y) = (x(*lane) + 8, y + 4);
                let _ = writeln!(out, "<text x=\"{x}\" y=\"{y}\">{}</text>", escaped(words));
            }
        }
    }
    (width, height, out)
}

/// An arrow, dashed if the adversary has made or changed what it stands for. Its head is drawn and not a marker, so
/// that several pictures can stand on one page.
fn arrow(from: usize, to: usize, y: usize, is_forged: bool) -> String {
    let class = if is_forged { "made" } else { "said" };
    let base = if to > from { to - HEAD_PX } else { to + HEAD_PX };
    let (above, below) = (y - HEAD_PX / 2, y + HEAD_PX / 2);
    format!(
        "<line class=\"{class}\" x1=\"{from}\" y1=\"{y}\" x2=\"{base}\" y2=\"{y}\"/>\
         <polygon class=\"{class}-head\" points=\"{to},{y} {base},{above} {base},{below}\"/>"
    )
}
