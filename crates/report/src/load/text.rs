//! A load run as text: a line for each step while it goes on, and the whole of it afterwards.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::ceiling::Ip;
use super::words::{
    antp_times, capacity, causes_of_run, generator, operations, operations_of, plural, remarks, shape, why,
    wires,
};
use super::{Cause, LoadRecord, Spans, Step, Tally, selected};
use crate::columns::{aligned, printable};
use crate::units::{count, memory, microseconds, percent, rate, signed_time, utc};

/// What stands where there is no value.
const ABSENT: &str = "-";

/// The lines of a run, one for each step, in columns whose widths do not depend on what comes.
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
        line(Self::HEADINGS, "remarks")
    }

    /// A step, with a line end.
    #[must_use]
    pub fn row(&self, step: &Step) -> String {
        line(self.cells(step).each_ref().map(String::as_str), &self.remark(step))
    }

    /// What stands above [`Rows::cells`].
    pub const HEADINGS: [&'static str; 8] =
        ["offered/s", "sent/s", "answered/s", "lost %", "invalid", "p50", "p99", "max"];

    /// How many characters the figures have room for, one apart.
    pub const WIDTHS: [usize; 8] = [10, 10, 10, 6, 7, 9, 9, 9];

    /// The figures of a step. Invalid answers are counted, what was lost is a share of what was sent.
    #[must_use]
    pub fn cells(&self, step: &Step) -> [String; 8] {
        let tally = &step.tally;
        let [p50, p99, max] = match tally.latency_us {
            Some(latency) => [latency.p50, latency.p99, latency.max].map(microseconds),
            None => [ABSENT; 3].map(str::to_owned),
        };
        [
            step.offered_rps.map_or_else(|| ABSENT.to_owned(), rate),
            rate(step.sent_rps()),
            rate(step.answered_rps()),
            lost_percent(tally),
            count(tally.invalid),
            p50,
            p99,
            max,
        ]
    }

    /// What is to be said of a step, the gravest first: empty, or on one line whatever it is made of.
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

/// Cells in columns of fixed widths, which fit into 80 characters; a cell that is too long moves what follows.
fn line(cells: [&str; 8], remark: &str) -> String {
    let mut out = String::new();
    for (cell, width) in cells.into_iter().zip(Rows::WIDTHS) {
        let gap = if out.is_empty() { "" } else { " " };
        write!(out, "{gap}{cell:>width$}").expect("writing to a string cannot fail");
    }
    if !remark.is_empty() {
        out += "  ";
        out += remark;
    }
    out.push('\n');
    out
}

/// What had no answer, as a share of what was sent, in percent; a dash if nothing was sent.
#[must_use]
pub fn lost_percent(tally: &Tally) -> String {
    match tally.sent {
        0 => ABSENT.to_owned(),
        sent => percent(tally.lost as f64 / sent as f64),
    }
}

/// The whole run: what was offered and how, a line for each step, failures by cause, capacity, the wires' ceilings,
/// the server's side, the spans, and the hosts, each as far as the record has it.
#[must_use]
pub fn summary(record: &LoadRecord) -> String {
    let mut out = Summary(String::new());
    out.opening(record);
    out.steps(record);
    out.rest(record);
    out.0
}

/// The same without the lines of the steps, for a reader who has seen them come one by one.
#[must_use]
pub fn conclusion(record: &LoadRecord) -> String {
    let mut out = Summary(String::new());
    out.opening(record);
    out.rest(record);
    out.0
}

/// A text that grows section by section.
struct Summary(String);

type Cells = Vec<Cow<'static, str>>;

impl Summary {
    fn rest(&mut self, record: &LoadRecord) {
        self.causes(record);
        self.figures(record);
        self.beside(record);
        self.spans(record);
        self.hosts(record);
    }

    /// A sentence, whatever it is made of, on one line.
    fn say(&mut self, text: &str) {
        self.0 += &printable(text);
        self.0.push('\n');
    }

    fn table(&mut self, lines: &[Cells], words: &[usize]) {
        self.0 += &aligned(lines, |column| words.contains(&column));
    }

    fn opening(&mut self, record: &LoadRecord) {
        let address = match record.target == record.address {
            true => String::new(),
            false => format!(" ({})", record.address),
        };
        self.say(&format!("{} against {}{address}, path: {}", record.label(), record.target, record.path));
        self.say(&format!("Load: {}.", shape(record)));
        let host = &record.host;
        self.say(&format!(
            "Generator: {}, {}, {}; engine {}.",
            host.cpu,
            plural(u64::from(host.cpu_count), "processor"),
            host.kernel,
            record.engine
        ));
        self.say(&format!(
            "Run: {}, authentick {}, commit {}, {}",
            utc(record.started_unix_s),
            record.version,
            record.commit,
            record.command
        ));
        if let Some(why) = &record.interrupted {
            self.say(&format!("INTERRUPTED: {why}; the steps below are those that ended."));
        }
    }

    fn steps(&mut self, record: &LoadRecord) {
        self.0.push('\n');
        if record.steps.is_empty() {
            return self.say("No step was measured.");
        }
        let rows = Rows::new(&record.address);
        self.0 += &rows.header();
        for step in &record.steps {
            self.0 += &rows.row(step);
        }
        let invalid = record.steps.iter().filter(|step| !step.valid).count() as u64;
        if invalid > 0 {
            let say = if invalid == 1 { "says" } else { "say" };
            self.say(&format!(
                "{} {say} nothing about the server: the generator did not do its part.",
                plural(invalid, "step")
            ));
        }
    }

    fn causes(&mut self, record: &LoadRecord) {
        let measured = failures(&record.steps);
        self.cause_table(&format!("Failed {} by cause", operations(&record.scheme)), &measured);
        if let Some(other) = record.steps.iter().find_map(|step| step.accompanying.as_ref()) {
            let causes = causes_of_run(&record.steps, |step| step.accompanying.as_ref());
            self.cause_table(&format!("Failed {} beside them", operations_of(other)), &causes);
        }
    }

    fn cause_table(&mut self, heading: &str, causes: &[(Cause, u64)]) {
        if causes.is_empty() {
            return;
        }
        self.0 += &format!("\n{heading}:\n");
        let line = |&(cause, number): &(Cause, u64)| {
            vec![format!("  {cause}").into(), count(number).into(), cause.meaning().into()]
        };
        let lines: Vec<Cells> = causes.iter().map(line).collect();
        self.table(&lines, &[0, 2]);
    }

    fn figures(&mut self, record: &LoadRecord) {
        self.0.push('\n');
        self.say(&format!("Capacity: {}", capacity(record)));
        if let Some(wires) = wires(record) {
            self.say(&format!("Wires: {wires}."));
        }
        if let Some(generator) = generator(record) {
            self.say(&format!("Generator: {generator}."));
        }
        for (step, times) in record.steps.iter().filter_map(|step| Some((step, antp_times(step)?))) {
            let offered =
                step.offered_rps.map_or_else(String::new, |offered| format!(" at {}/s", rate(offered)));
            self.say(&format!("ANTP{offered}: {times}"));
        }
        for (name, tally) in [
            ("Beside", sum(&record.steps, |step| step.accompanying.as_ref())),
            ("Background", sum(&record.steps, |step| step.background.as_ref())),
        ] {
            if let Some(tally) = tally {
                self.say(&format!(
                    "{name}: {} {}, {} answered, {} lost, {} invalid, {} not begun.",
                    count(tally.sent),
                    operations_of(&tally),
                    count(tally.answered),
                    count(tally.lost),
                    count(tally.invalid),
                    count(tally.skipped),
                ));
            }
        }
        let clock = match record.shared_clock {
            true => {
                "Client and server read the same clock: the true offset is zero, and what is shown is its error."
            }
            false => "The true offset is unknown: client and server read different clocks.",
        };
        if record.steps.iter().any(|step| step.tally.offset_us.is_some()) {
            self.say(clock);
        }
    }

    /// What the first table has no room for.
    fn beside(&mut self, record: &LoadRecord) {
        let mut lines: Vec<Cells> = vec![
            [
                "offered/s",
                "p90",
                "p99.9",
                "offset p50",
                "offset p99",
                "late p99",
                "busy",
                "server/request",
                "memory",
            ]
            .map(Cow::Borrowed)
            .to_vec(),
        ];
        for step in &record.steps {
            let latency = step.tally.latency_us;
            let offset = step.tally.offset_us;
            let signed = |us: f64| signed_time((us * 1000.0).round() as i64);
            let cells = [
                step.offered_rps.map(rate),
                latency.map(|latency| microseconds(latency.p90)),
                latency.map(|latency| microseconds(latency.p999)),
                offset.map(|offset| signed(offset.p50)),
                offset.map(|offset| signed(offset.p99)),
                step.lateness_us.map(|lateness| microseconds(lateness.p99)),
                step.generator_busy_share.map(|share| format!("{:.0} %", share * 100.0)),
                step.server.and_then(|server| server.cpu_us_per_request).map(microseconds),
                step.server.map(|server| memory(server.resident_size)),
            ];
            lines.push(cells.map(|cell| cell.map_or(Cow::Borrowed(ABSENT), Cow::Owned)).to_vec());
        }
        if lines.iter().skip(1).any(|line| line.iter().skip(1).any(|cell| cell != ABSENT)) {
            self.0.push('\n');
            self.table(&lines, &[]);
            self.say(
                "late: how much later than intended requests left; busy: the busiest sending thread; server/request: \
                 processor time of the server.",
            );
        }
    }

    fn spans(&mut self, record: &LoadRecord) {
        let with: Vec<&Step> = selected(&record.steps, |step| step.valid && step.spans.is_some());
        if with.is_empty() {
            return;
        }
        let heading = ["offered/s", "measure", "exchanges", "mean", "p50", "p99", ""];
        let mut lines: Vec<Cells> = vec![heading.map(Cow::Borrowed).to_vec()];
        for step in &with {
            let Some(spans) = &step.spans else { continue };
            for measure in spans.measures() {
                let times = &measure.times_ns;
                let Some(mean) = times.mean() else { continue };
                let at = |share| times.quantile(share).unwrap_or_default();
                lines.push(vec![
                    step.offered_rps.map_or(Cow::Borrowed(ABSENT), |offered| rate(offered).into()),
                    measure.name.into(),
                    count(times.count()).into(),
                    span(mean.round() as i64).into(),
                    span(at(0.5)).into(),
                    span(at(0.99)).into(),
                    measure.meaning.into(),
                ]);
            }
        }
        let total = |get: fn(&Spans) -> u64| -> u64 {
            record.steps.iter().filter_map(|step| Some(get(step.spans.as_ref()?))).sum()
        };
        self.0.push_str("\nSpans of the NTS study, section III:\n");
        self.table(&lines, &[1, 6]);
        self.say(&format!(
            "{} exchanges are known to both sides, {} to the client alone.",
            count(total(|spans| spans.joined)),
            count(total(|spans| spans.unmatched))
        ));
    }

    /// The total of each step above what each host had of it.
    fn hosts(&mut self, record: &LoadRecord) {
        if record.steps.iter().all(|step| step.hosts.is_empty()) {
            return;
        }
        let heading =
            ["host", "offered/s", "seconds", "sent/s", "answered/s", "lost %", "start skew", "limit"];
        let mut lines: Vec<Cells> = vec![heading.map(Cow::Borrowed).to_vec()];
        for step in record.steps.iter().filter(|step| !step.hosts.is_empty()) {
            let cells = |name: &str, offered: Option<f64>, tally: &Tally| -> Cells {
                vec![
                    printable(name).into_owned().into(),
                    offered.map_or(Cow::Borrowed(ABSENT), |offered| rate(offered).into()),
                    format!("{}", step.seconds).into(),
                    rate(step.per_second(tally.sent)).into(),
                    rate(step.per_second(tally.answered)).into(),
                    lost_percent(tally).into(),
                ]
            };
            lines.push(cells("total", step.offered_rps, &step.tally));
            for part in &step.hosts {
                let mut line = cells(&format!("  {}", part.name), part.offered_rps, &part.tally);
                line.push(skew(part.start_skew_us, part.start_skew_error_us).into());
                if !part.valid {
                    let own = format!("its own limit: {}", why(part.why_invalid.as_ref()));
                    line.push(printable(&own).into_owned().into());
                }
                lines.push(line);
            }
        }
        self.0.push_str("\nHosts:\n");
        self.table(&lines, &[0, 7]);
    }
}

/// How late a host began, and how far that may be off, both in microseconds.
#[must_use]
pub fn skew(us: f64, error_us: f64) -> String {
    format!("{} +-{}", signed_time((us * 1000.0).round() as i64), microseconds(error_us))
}

/// A span; a difference of two clocks' readings may be negative.
pub(super) fn span(ns: i64) -> String {
    signed_time(ns).trim_start_matches('+').to_owned()
}

/// The counts of all steps together, without distributions.
fn sum(steps: &[Step], tally: impl Fn(&Step) -> Option<&Tally>) -> Option<Tally> {
    let mut tallies = steps.iter().filter_map(tally);
    let mut sum = tallies.next()?.without_histograms();
    for tally in tallies {
        sum.merge(&tally.without_histograms());
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::record;

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
        let mut record = record();
        let lines = summary(&record).lines().count();
        let hostile = || "\u{1b}[2J\n\u{9b}31m\r".to_owned();
        for text in [
            &mut record.command,
            &mut record.version,
            &mut record.commit,
            &mut record.path,
            &mut record.scheme,
            &mut record.authentication,
            &mut record.target,
            &mut record.address,
            &mut record.engine,
            &mut record.host.cpu,
            &mut record.host.kernel,
            &mut record.parameters.arrivals,
            &mut record.parameters.agents[0],
            &mut record.steps[3].hosts[0].name,
        ] {
            *text = hostile();
        }
        record.parameters.sources = Some(hostile());
        record.search.as_mut().unwrap().remark = Some(hostile());
        record.steps[3].why_invalid = Some(hostile());
        record.steps[3].hosts[1].why_invalid = Some(hostile());
        let text = summary(&record);
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
        record.interrupted = Some("the agent a went away".to_owned());
        let text = summary(&record);
        assert!(
            text.contains("No step was measured.") && text.contains("INTERRUPTED: the agent a went away")
        );
    }
}
