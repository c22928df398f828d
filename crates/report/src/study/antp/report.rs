//! The report on the study of the ANTP paper.

use super::figures::Which;
use super::findings::findings;
use super::verdicts::tally;
use super::{AntpRecord, Level, Path, Phase, Subject, Suite, Times, extrapolation, tables};
use crate::published::antp::{SOURCE, TIME_RPS};
use crate::render::{Block, Count, Dots, Layout, Marker, Medium, Report, Section, Series, Value};
use crate::stored::Stored;
use crate::study::Task;
use crate::units::rate;

/// Headings that verdicts link to.
pub(super) const RATIOS: &str = "Published ratios, and ours";
pub(super) const ALL_PHASES: &str = "All three phases";

const METHOD: &str = "How it was measured, and what must be known of it";
/// What marks are.
const TRIALS: &str = "Small dots are trials, and crosses those that do not count; large marks are medians, with \
                      intervals of 95 % (bootstrap over trials). Tables have means.";
const TITLE: &str = "The ANTP paper\u{2019}s measurements, beside ours";

/// The report. The record has all that the plan says.
#[must_use]
pub fn report(record: &AntpRecord) -> Report {
    Report::new(TITLE, Layout::Nested, sections(record))
}

/// The report on a study with these tasks, which says of each of the paper's results what became of it.
#[must_use]
pub fn report_on(tasks: &[Task], record: &AntpRecord) -> Report {
    report(record).tallied(tally(record, tasks))
}

/// The paper's tables and ratios with ours beside them, and what follows.
#[must_use]
pub fn sections(record: &AntpRecord) -> Vec<Section> {
    let mut first = Section::default();
    let compare = format!("{SOURCE}, beside ours. Compare the ratios, not the figures.");
    first.say_in(Medium::Text, compare);
    let about = format!(
        "{SOURCE}, tells what authenticated time costs a server. Its hardware is not ours, so ratios are compared."
    );
    first.say_in(Medium::Page, about);
    let mut said = opening(record).into_iter();
    first.say_all(said.next());
    first.fold(METHOD, said);
    let phases = throughput(record).into_iter().chain([Block::Table(tables::table_1(record))]);
    let complete = "One client after the other carries out all three phases, beside a load of time synchronisation. \
                    The paper: \u{201c}the total runtime of a client exceeds the sum of the latencies from each \
                    individual phase due to the client performing its own cryptographic operations\u{201d}.";
    let detail = [tables::throughput_detail(record), tables::latency_detail(record)];
    vec![
        first,
        Section::of("What follows", [Block::findings(findings(record))]),
        Section::of("Table 1: each phase", phases),
        Section::of(ALL_PHASES, [Block::paragraph(complete), Block::Table(tables::complete_runs(record))]),
        Section::of(RATIOS, [Block::Table(tables::ratios(record))]),
        Section::of("What a key exchange costs", [Block::Table(tables::exchange_cost(record))]),
        Section::of("Clients of one server", extrapolation::blocks(record)),
        Section::of("In detail", std::iter::once(latency(record)).chain(detail.map(Block::Table))),
    ]
}

/// What was measured, how, and on what.
fn opening(record: &AntpRecord) -> Vec<String> {
    let settings = &record.settings;
    let capacity = match settings.quick {
        true => "Capacity is what a closed loop had answered: it was not searched for (--quick).",
        false => "Capacity is the highest rate at which a search lost at most a hundredth.",
    };
    let mut sentences = vec![
        format!("Ours on {}", record.provenance().made()),
        format!(
            "{capacity} Throughput is what came back, the mean of {} trials of {} s. Latency is that of clients that \
             ask {} times a second in {} trials of {} s, while others load the server with 50 % or 90 % of the \
             capacity. The long path adds {} ms to a round trip.",
            settings.throughput_trials,
            settings.trial_seconds,
            rate(settings.measured_rps),
            settings.latency_trials,
            settings.latency_seconds,
            settings.long_path_ms
        ),
    ];
    sentences.extend(settings.difference());
    sentences.extend(record.remarks.iter().cloned());
    sentences
}

/// A subject as short as the room beside a figure asks for.
const fn short_name(subject: Subject) -> &'static str {
    match (subject.phase, subject.suite) {
        (Phase::Plain, _) => "plain NTP",
        (Phase::Negotiation, Some(Suite::Rsa)) => "negotiation, RSA",
        (Phase::Negotiation, _) => "negotiation, ECDH",
        (Phase::Exchange, Some(Suite::Rsa)) => "key exchange, RSA",
        (Phase::Exchange, _) => "key exchange, ECDH",
        (Phase::Time, _) => "time, tag inside",
        (Phase::SeparateTag, _) => "time, separate tag",
        (Phase::Complete, Some(Suite::Rsa)) => "all three, RSA",
        (Phase::Complete, _) => "all three, ECDH",
    }
}

fn series(name: &str, marker: Marker, colour: usize, values: Vec<Option<Value>>) -> Series {
    Series { name: name.to_owned(), marker, colour, values }
}

fn throughput(record: &AntpRecord) -> Option<Block> {
    let rps = |path| {
        let of = |subject, void: bool| {
            let trials = record.trials(subject, path).filter(|trial| trial.why_invalid.is_some() == void);
            trials.map(|trial| trial.answered_rps).collect()
        };
        Subject::ALL.map(|subject| Value::of(of(subject, false), of(subject, true))).to_vec()
    };
    let ours = [Path::Short, Path::Gigabit].map(rps);
    // What was published is no figure without ours.
    if ours.iter().flatten().all(Option::is_none) {
        return None;
    }
    let published =
        Subject::ALL.map(|subject| (subject == Subject::TIME).then(|| Value::alone(TIME_RPS, None))).to_vec();
    let [short, linked] = ours;
    let dots = Dots {
        label: "Answers a second of each phase".to_owned(),
        along: "answers a second, one server core",
        count: Count::Rate,
        names: Subject::ALL.map(|subject| short_name(subject).to_owned()).to_vec(),
        series: vec![
            series("ours", Marker::Circle, 0, short),
            series("ours behind 1 Gbit/s", Marker::Square, 2, linked),
            series("published, on other hardware", Marker::Diamond, 1, published),
        ],
    };
    Some(Block::figure(dots, format!("{TRIALS} The further right, the more.")))
}

fn latency(record: &AntpRecord) -> Block {
    let complete = Suite::ALL.map(|suite| Subject::new(Phase::Complete, suite));
    let subjects: Vec<Subject> = Subject::ALL.into_iter().chain(complete).collect();
    let values = |level, figure: fn(&Times) -> f64| {
        let of = |subject, which| {
            let trials = record.chosen(which, subject, level, Path::Short);
            trials.filter_map(|latency| Some(figure(latency.times.as_ref()?) * 1e3)).collect()
        };
        let value = |&subject: &Subject| Value::of(of(subject, Which::Valid), of(subject, Which::Invalid));
        subjects.iter().map(value).collect()
    };
    let dots = Dots {
        label: "Latency of each phase over the short path".to_owned(),
        along: "latency over the short path",
        count: Count::Time,
        names: subjects.iter().map(|&subject| short_name(subject).to_owned()).collect(),
        series: vec![
            series("median at 50 % load", Marker::Circle, 0, values(Level::Half, |times| times.p50_us)),
            series("median at 90 % load", Marker::Square, 2, values(Level::Most, |times| times.p50_us)),
            series("p99 at 90 % load", Marker::Triangle, 1, values(Level::Most, |times| times.p99_us)),
        ],
    };
    Block::figure(dots, format!("{TRIALS} The further left, the better."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::page::{assert_escaped, assert_two_figures};
    use crate::study::antp::tests::record;

    #[test]
    fn page_is_whole_and_escapes_what_comes_from_the_record() {
        let mut record = record();
        record.remarks.push("<script>".to_owned());
        record.capacities[0].remark = Some("<i>".to_owned());
        let page = report(&record).page();
        assert_escaped(&page);
        assert_two_figures(&page);
    }

    #[test]
    fn what_was_not_measured_is_not_in_the_legend() {
        let mut record = record();
        record.trials.retain(|trial| trial.path == Path::Short);
        record.latencies.clear();
        let page = report(&record).page();
        assert!(page.contains("<span>ours</span>") && !page.contains("<span>ours behind"));
        assert_eq!(page.matches("<figure>").count(), 1);
        record.trials.clear();
        assert!(!report(&record).page().contains("<figure>"));
    }

    #[test]
    fn report_has_all_tables_and_says_that_it_is_short() {
        let text = report(&record()).text();
        for part in [
            "USENIX Security 2016",
            "This is a short study (--quick)",
            "Throughput and latency of each phase:",
            "One client's run of all phases:",
            "Ratios:",
            "Processor time of a key exchange:",
            "unknown to us",
            "Server and generators share a machine.",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.lines().all(|line| line.trim_end() == line));
    }

    #[test]
    fn record_cannot_steer_the_terminal() {
        let mut record = record();
        record.host.cpu = "\u{1b}[2J".to_owned();
        record.remarks.push("\u{9b}31m".to_owned());
        record.capacities[0].remark = Some("\r".to_owned());
        assert!(report(&record).text().chars().all(|c| c == '\n' || !c.is_control()));
    }
}
