//! A load run as text: a line for each step while it goes on, and the whole of it afterwards.

use super::ceiling::Ip;
use super::report::{Steps, report, with};
use super::words::{causes_of_run, remarks};
use super::{Cause, LoadRecord, Point, Step, Tally};
use crate::render::text::{fixed, printable};
use crate::render::{ABSENT, or_absent};
use crate::units::{count, microseconds, percent, rate, signed_microseconds};

/// The lines of a run, one for each step, in columns whose widths do not depend on later lines.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    ip: Ip,
}

impl Rows {
    /// Lines for a server at `address` with its port, such as `198.18.0.1:123`; it tells the size of a frame.
    #[must_use]
    pub fn new(address: &str) -> Self {
        Rows { ip: Ip::of(address) }
    }

    /// The headings, with a line end.
    #[must_use]
    pub fn header(&self) -> String {
        let [a, b, c, d, e, f, g] = Self::HEADINGS;
        fixed(&[a, b, c, d, e, f, g, "remarks"], &Self::WIDTHS)
    }

    /// A step, with a line end: at most 120 columns, as long as its figures are no wider than their columns.
    #[must_use]
    pub fn row(&self, step: &Step) -> String {
        let mut cells = self.cells(step).to_vec();
        let room = Self::WIDTH.saturating_sub(fixed(&cells, &Self::WIDTHS).trim_end().chars().count() + 2);
        cells.push(clipped(&self.remark(step), room));
        fixed(&cells, &Self::WIDTHS)
    }

    /// The headings of [`Rows::cells`].
    pub const HEADINGS: [&'static str; 7] =
        ["offered/s", "sent/s", "answered/s", "lost %", "invalid", "p50", "p99"];

    /// The widths of the columns of figures, which are one space apart.
    pub const WIDTHS: [usize; 7] = [10, 10, 10, 6, 7, 14, 14];

    /// The columns of a terminal that a row takes at most.
    const WIDTH: usize = 120;

    /// The figures of a step. Invalid answers are a count, losses a share of what was sent; a percentile of latency is
    /// an interval from the send to the due instant, and absent where requests left too late for it to be known.
    #[must_use]
    pub fn cells(&self, step: &Step) -> [String; 7] {
        let tally = &step.tally;
        let latency = |point: Point| or_absent(tally.interval(point).filter(|_| !step.loss_valid));
        [
            or_absent(step.offered_rps.map(rate)),
            rate(step.sent_rps()),
            rate(step.answered_rps()),
            lost_percent(tally),
            count(tally.invalid),
            latency(Point::P50),
            latency(Point::P99),
        ]
    }

    /// As much of the remarks on a step as a row has room for.
    pub(super) fn short_remark(&self, step: &Step) -> String {
        let room = Self::WIDTH - Self::WIDTHS.iter().sum::<usize>() - Self::WIDTHS.len() - 1;
        clipped(&self.remark(step), room)
    }

    /// Remarks on a step, most serious first: empty, or a single line.
    #[must_use]
    pub fn remark(&self, step: &Step) -> String {
        printable(&remarks(step, self.ip).join("; ")).into_owned()
    }
}

/// `text`, or its beginning with dots after it.
fn clipped(text: &str, width: usize) -> String {
    const DOTS: &str = "...";
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(DOTS.len())).collect();
    kept.trim_end().to_owned() + DOTS
}

/// Why operations of these steps failed, with their number, the most frequent cause first.
#[must_use]
pub fn failures(steps: &[Step]) -> Vec<(Cause, u64)> {
    causes_of_run(steps, |step| Some(&step.tally))
}

/// The share of requests without an answer, in percent; a dash if nothing was sent.
#[must_use]
pub fn lost_percent(tally: &Tally) -> String {
    match tally.sent {
        0 => ABSENT.to_owned(),
        sent => percent(tally.lost as f64 / sent as f64),
    }
}

/// The whole run: what was offered and how, a line for each step, failures by cause, capacity, the wires' ceilings,
/// the server's side, the hosts, and the spans, each as far as the record has it.
#[must_use]
pub fn summary(record: &LoadRecord) -> String {
    report(&[record]).text()
}

/// The same without the lines of the steps, for a reader who has seen them come one by one.
#[must_use]
pub fn conclusion(record: &LoadRecord) -> String {
    with(&[record], Steps::Known).text()
}

/// How late a host began, and how far that may be off, both in microseconds.
#[must_use]
pub fn skew(us: f64, error_us: f64) -> String {
    format!("{} +-{}", signed_microseconds(us), microseconds(error_us))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::{record, record_with};

    #[test]
    fn numbers_of_every_row_end_where_the_headings_do() {
        let record = record();
        let rows = Rows::new(&record.address);
        let header = rows.header();
        let ends = |heading: &str| header.find(heading).unwrap() + heading.len();
        for step in &record.steps {
            let row = rows.row(step);
            for (heading, value) in [
                ("offered/s", rate(step.offered_rps.unwrap())),
                ("answered/s", rate(step.answered_rps())),
                ("invalid", count(step.tally.invalid)),
                ("p99", step.tally.interval(Point::P99).unwrap().to_string()),
            ] {
                assert!(row[..ends(heading)].ends_with(&format!(" {value}")), "{heading}: {row}");
            }
        }
    }

    #[test]
    fn remark_names_the_worst_first() {
        let record = record();
        let remark = |index: usize| Rows::new("[::1]:123").remark(&record.steps[index]);
        assert!(
            remark(3).starts_with("INVALID: generator: 1 % of requests left 2.90 ms late"),
            "{}",
            remark(3)
        );
        let parts = [
            "server: 1,100 of 1,150 failed operations",
            "generator adds to p99.9, p99.99, max; ",
            "timeout 1,100, late 38, bad-tag 8, 4 others",
            "key exchanges: connection-timed-out 5",
        ];
        let found: Vec<usize> = parts
            .iter()
            .map(|part| remark(2).find(part).unwrap_or_else(|| panic!("{}", remark(2))))
            .collect();
        assert!(found.is_sorted() && !remark(2).contains("INVALID"), "{}", remark(2));
        assert_eq!(remark(0), "");
        let mut old = record.steps[3].clone();
        old.limit = None;
        assert!(Rows::new("").remark(&old).starts_with("INVALID: generator fell behind: 56.3 %"));
    }

    #[test]
    fn rows_fit_a_terminal() {
        let record = record();
        let rows = Rows::new(&record.address);
        for step in &record.steps {
            let row = rows.row(step);
            assert!(row.trim_end().chars().count() <= 120 && row.lines().count() == 1, "{row}");
        }
        assert!(
            rows.row(&record.steps[2]).contains("server: 1,100 of")
                && rows.row(&record.steps[2]).contains("...")
        );
        assert!(summary(&record).lines().filter(|line| line.contains("...")).all(|line| line.len() <= 120));
    }

    #[test]
    fn percentile_is_an_interval_where_the_send_is_known() {
        let mut step = record().steps[0].clone();
        assert!(
            Rows::new("").row(&step).contains("118.0-120.0 us 176.0-180.0 us"),
            "{}",
            Rows::new("").row(&step)
        );
        step.tally.from_send_us = None;
        assert!(Rows::new("").row(&step).trim_end().ends_with("120.0 us       180.0 us"));
    }

    #[test]
    fn share_of_the_wire_depends_on_the_version_of_ip() {
        let mut step = record().steps[1].clone();
        (step.offered_rps, step.seconds) = (Some(400_000.0), 0.01);
        assert!(Rows::new("198.18.0.1:123").remark(&step).contains("94 % of 1 GbE"));
        assert!(Rows::new("[2001:db8::1]:123").remark(&step).contains("10 % of 10 GbE"));
        step.request_size = 0;
        assert!(!Rows::new("198.18.0.1:123").remark(&step).contains("GbE"));
    }

    #[test]
    fn closed_loop_and_silence_have_dashes() {
        let mut step = record().steps[0].clone();
        step.offered_rps = None;
        step.tally = Tally { scheduled: 2, skipped: 2, ..Tally::default() };
        let row = Rows::new("").row(&step);
        let cells: Vec<&str> = row.split_whitespace().take(7).collect();
        assert_eq!(cells, ["-", "0", "0", "-", "0", "-", "-"]);
    }

    #[test]
    fn record_cannot_steer_the_terminal() {
        let lines = summary(&record_with("harmless")).lines().count();
        let text = summary(&record_with("\u{1b}[2J\n\u{9b}31m\r"));
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert_eq!(text.lines().count(), lines);
    }

    #[test]
    fn sections_without_content_are_left_out() {
        let mut record = record();
        record.capacity.as_mut().unwrap().at_least = None;
        record.steps.truncate(1);
        let step = &mut record.steps[0];
        (step.spans, step.server, step.accompanying, step.background) = (None, None, None, None);
        (step.evidence, step.limit, step.background_accompanying) = (None, None, None);
        step.hosts.clear();
        record.search.as_mut().unwrap().trial_count_max = None;
        let text = summary(&record);
        let absent =
            ["Spans", "Hosts", "Agents", "by cause", "Accompanying", "Background", "INVALID", "What limited"];
        for absent in absent.into_iter().chain(["preempted"]) {
            assert!(!text.contains(absent), "{absent}:\n{text}");
        }
        assert!(
            text.contains("Capacity: not found; 2,900/s is too much; the server was the limit."),
            "{text}"
        );
        (record.search, record.capacity) = (None, None);
        assert!(summary(&record).contains("not searched for. The most that a valid step answered is 1,000 "));
        record.steps.clear();
        record.interrupted = Some("the agent a went away".to_owned().into());
        let text = summary(&record);
        assert!(
            text.contains("No step was measured.") && text.contains("INTERRUPTED: the agent a went away")
        );
    }
}
