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

/// The diagram as a picture that stands by itself. Its colours follow the reader's theme.
#[must_use]
pub fn svg(trace: &Trace) -> String {
    const STYLE: &str = "svg{font:13px system-ui,sans-serif;background:#fff;color:#1b1b1b}\
        text{fill:currentColor}.lane{stroke:#8a8a8a;stroke-dasharray:2 4}.said{stroke:#1b5e9e}\
        .made{stroke:#b3261e;stroke-dasharray:6 3}.h{font-weight:600}.r{font-size:12px}\
        @media(prefers-color-scheme:dark){svg{background:#161616;color:#e8e8e8}.said{stroke:#7db8f0}\
        .made{stroke:#ff8a80}}";
    let (lanes, steps) = (lanes(trace), summed(&trace.steps));
    let x = |lane: Lane| MARGIN_PX + LANE_PX * lanes.iter().position(|one| *one == lane).unwrap_or(0);
    // The last lane's remarks stand to its right.
    let (width, height) = (MARGIN_PX + LANE_PX * (lanes.len() + 1), TOP_PX + STEP_PX * (steps.len() + 1));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n<defs>",
        escaped(&trace.title)
    );
    for (class, colour) in [("said", "#1b5e9e"), ("made", "#b3261e")] {
        let _ = write!(
            out,
            "<marker id=\"{class}\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
             orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"{colour}\"/></marker>"
        );
    }
    let _ = writeln!(out, "</defs>\n<text class=\"h\" x=\"12\" y=\"22\">{}</text>", escaped(&trace.title));
    for lane in &lanes {
        let (x, end) = (x(*lane), height - STEP_PX / 2);
        let _ = writeln!(
            out,
            "<text class=\"h\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
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
            let _ = writeln!(out, "<text class=\"r\" x=\"12\" y=\"{}\">{}</text>", y + 4, time(step.now));
        }
        before = Some(step.now);
        match &step.event {
            Event::Message { from, to, kind, is_forged } => {
                let (from, to) = (x(*from), x(*to));
                let class = if *is_forged { "made" } else { "said" };
                let times = if count > 1 { format!(", {count} such") } else { String::new() };
                let _ = writeln!(
                    out,
                    "<line class=\"{class}\" x1=\"{from}\" y1=\"{y}\" x2=\"{to}\" y2=\"{y}\" \
                     marker-end=\"url(#{class})\"/><text class=\"r\" x=\"{}\" y=\"{}\" \
                     text-anchor=\"middle\">{}{times}</text>",
                    (from + to) / 2,
                    y - 4,
                    escaped(kind)
                );
            }
            Event::Remark { lane, words } => {
                let (x, y) = (x(*lane) + 8, y + 4);
                let _ = writeln!(out, "<text class=\"r\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(words));
            }
        }
    }
    out + "</svg>\n"
}
