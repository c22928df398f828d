//! A load run as text: a line for each step while it goes on, and the whole of it afterwards.

use super::ceiling::Ip;
use super::report::{Steps, report, with};
use super::words::{causes_of_run, remarks};
use super::{Cause, LoadRecord, Step, Tally};
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
        let [a, b, c, d, e, f, g, h] = Self::HEADINGS;
        fixed(&[a, b, c, d, e, f, g, h, "remarks"], &Self::WIDTHS)
    }

    /// A step, with a line end.
    #[must_use]
    pub fn row(&self, step: &Step) -> String {
        let mut cells = self.cells(step).to_vec();
        cells.push(self.remark(step));
        fixed(&cells, &Self::WIDTHS)
    }

    /// The headings of [`Rows::cells`].
    pub const HEADINGS: [&'static str; 8] =
        ["offered/s", "sent/s", "answered/s", "lost %", "invalid", "p50", "p99", "max"];

    /// The widths of the columns of figures, which are one space apart.
    pub const WIDTHS: [usize; 8] = [10, 10, 10, 6, 7, 9, 9, 9];

    /// The figures of a step. Invalid answers are a count, losses a share of what was sent.
    #[must_use]
    pub fn cells(&self, step: &Step) -> [String; 8] {
        let tally = &step.tally;
        let [p50, p99, max] = match tally.latency_us {
            Some(latency) => [latency.p50, latency.p99, latency.max].map(microseconds),
            None => [ABSENT; 3].map(str::to_owned),
        };
        [
            or_absent(step.offered_rps.map(rate)),
            rate(step.sent_rps()),
            rate(step.answered_rps()),
            lost_percent(tally),
            count(tally.invalid),
            p50,
            p99,
            max,
        ]
    }

    /// Remarks on a step, most serious first: empty, or a single line.
    #[must_use]
    pub fn remark(&self, step: &Step) -> String {
        printable(&remarks(step, self.ip).join("; ")).into_owned()
    }
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
                ("max", microseconds(step.tally.latency_us.unwrap().max)),
            ] {
                assert!(row[..ends(heading)].ends_with(&format!(" {value}")), "{heading}: {row}");
            }
        }
    }

    #[test]
    fn row_names_the_worst_first() {
        let record = record();
        let row = |index: usize| Rows::new("[::1]:123").row(&record.steps[index]);
        assert!(row(3).contains("INVALID: generator fell behind: 56.3 %"), "{}", row(3));
        let parts =
            ["timeout 1,100, late 38, bad-tag 8, 4 otherwise", "key exchanges: connection-timed-out 5"];
        let found: Vec<usize> = parts.iter().map(|part| row(2).find(part).unwrap()).collect();
        assert!(found.is_sorted() && !row(2).contains("INVALID"));
        assert!(row(0).trim_end().ends_with("410.0 us"), "{}", row(0));
    }

    #[test]
    fn share_of_the_wire_depends_on_the_version_of_ip() {
        let mut step = record().steps[1].clone();
        (step.offered_rps, step.seconds) = (Some(400_000.0), 0.01);
        assert!(Rows::new("198.18.0.1:123").row(&step).contains("94 % of 1 GbE"));
        assert!(Rows::new("[2001:db8::1]:123").row(&step).contains("10 % of 10 GbE"));
        step.request_size = 0;
        assert!(!Rows::new("198.18.0.1:123").row(&step).contains("GbE"));
    }

    #[test]
    fn closed_loop_and_silence_have_dashes() {
        let mut step = record().steps[0].clone();
        step.offered_rps = None;
        step.tally = Tally { scheduled: 2, skipped: 2, ..Tally::default() };
        let row = Rows::new("").row(&step);
        let cells: Vec<&str> = row.split_whitespace().take(8).collect();
        assert_eq!(cells, ["-", "0", "0", "-", "0", "-", "-", "-"]);
    }

    #[test]
    fn record_cannot_steer_the_terminal() {
        let lines = summary(&record()).lines().count();
        let text = summary(&record_with("\u{1b}[2J\n\u{9b}31m\r"));
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert_eq!(text.lines().count(), lines);
    }

    #[test]
    fn sections_without_content_are_left_out() {
        let mut record = record();
        record.capacity_rps = None;
        record.steps.truncate(1);
        let step = &mut record.steps[0];
        (step.spans, step.server, step.accompanying, step.background) = (None, None, None, None);
        step.hosts.clear();
        let text = summary(&record);
        for absent in ["Spans", "Hosts", "by cause", "Beside", "Background", "INVALID"] {
            assert!(!text.contains(absent), "{absent}:\n{text}");
        }
        assert!(text.contains("Capacity: not found. 2,800/s held, 2,900/s did not."), "{text}");
        record.search = None;
        assert!(summary(&record).contains("not searched for. The most that a valid step answered is 1,000 "));
        record.steps.clear();
        record.interrupted = Some("the agent a went away".to_owned().into());
        let text = summary(&record);
        assert!(
            text.contains("No step was measured.") && text.contains("INTERRUPTED: the agent a went away")
        );
    }
}
