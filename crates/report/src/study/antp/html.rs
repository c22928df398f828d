//! The study of the ANTP paper as a page that needs nothing else.

use super::tables::{Figure, opening, sections};
use super::{AntpRecord, Level, Path, Phase, Subject, Suite};
use crate::dots::{Count, Dots, Marker, Series};
use crate::page::Page;
use crate::published::antp::{SOURCE, TIME_RPS};
use crate::sections::{add_to, sentences};

/// The style of pages of load runs, which has that of marks, and more.
const STYLE: &str = concat!(
    include_str!("../../page.css"),
    include_str!("../../load/load.css"),
    include_str!("../../mac/mac.css")
);

/// The report.
#[must_use]
pub fn study(record: &AntpRecord) -> String {
    let mut page = Page::new("The ANTP paper\u{2019}s measurements, beside ours", STYLE);
    page.add(format_args!(
        "<p>{SOURCE}, tells what authenticated time costs a server. Its hardware is not ours, so ratios are \
         compared.</p>\n"
    ));
    sentences(&mut page, &opening(record));
    let draw = |page: &mut Page, figure: &Figure| match figure {
        Figure::Throughput => throughput(page, record),
        Figure::Latency => latency(page, record),
    };
    add_to(&mut page, &sections(record), draw);
    page.finish()
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

fn throughput(page: &mut Page, record: &AntpRecord) {
    let rps = |path| {
        Subject::ALL
            .map(|subject| record.throughput(subject, path).map(|found| found.rps.value.round() as u64))
            .to_vec()
    };
    let ours = [Path::Short, Path::Gigabit].map(rps);
    // What was published is no figure without ours.
    if ours.iter().flatten().all(Option::is_none) {
        return;
    }
    let published =
        Subject::ALL.map(|subject| (subject == Subject::TIME).then_some(TIME_RPS.round() as u64)).to_vec();
    let series = |name, marker, colour, values| Series { name, marker, colour, values };
    let [short, linked] = ours;
    let dots = Dots {
        label: "Answers a second of each phase; the table has the figures",
        along: "answers a second, one server core",
        count: Count::Rate,
        names: Subject::ALL.map(short_name).to_vec(),
        series: vec![
            series("ours", Marker::Circle, 0, short),
            series("ours behind 1 Gbit/s", Marker::Square, 2, linked),
            series("published, on other hardware", Marker::Cross, 1, published),
        ],
    };
    dots.add_to(page, "Means of the trials that count; the further right, the more.");
}

fn latency(page: &mut Page, record: &AntpRecord) {
    let complete = Suite::ALL.map(|suite| Subject::new(Phase::Complete, suite));
    let subjects: Vec<Subject> = Subject::ALL.into_iter().chain(complete).collect();
    let ns = |us: f64| (us * 1e3).round() as u64;
    let values = |level, is_median: bool| {
        let value = |&subject: &Subject| {
            let cell = record.cell(subject, level, Path::Short)?;
            Some(ns(if is_median { cell.p50_us.value } else { cell.p99_us.value }))
        };
        subjects.iter().map(value).collect()
    };
    let series = |name, marker, colour, values| Series { name, marker, colour, values };
    let dots = Dots {
        label: "Latency of each phase over the short path; the table has the figures",
        along: "latency over the short path",
        count: Count::Time,
        names: subjects.iter().map(|&subject| short_name(subject)).collect(),
        series: vec![
            series("median at 50 % load", Marker::Circle, 0, values(Level::Half, true)),
            series("median at 90 % load", Marker::Square, 2, values(Level::Most, true)),
            series("p99 at 90 % load", Marker::Cross, 1, values(Level::Most, false)),
        ],
    };
    dots.add_to(page, "Means of the trials that count; the further left, the better.");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::assert_whole;
    use crate::study::antp::tests::record;

    #[test]
    fn page_is_whole_and_escapes_what_comes_from_the_record() {
        let mut record = record();
        record.remarks.push("<script>".to_owned());
        record.capacities[0].remark = Some("<i>".to_owned());
        let page = study(&record);
        assert_whole(&page);
        assert!(!page.contains("<b>") && !page.contains("<script") && !page.contains("<i>"));
        assert!(page.contains("A &lt;b&gt;processor") && page.contains("&lt;script&gt;"));
        // Two figures in two sizes, with three marks in each legend.
        assert_eq!(page.matches("<figure>").count(), 2);
        assert_eq!(page.matches("class=\"plot ").count(), 4);
        assert_eq!(page.matches("class=\"swatch\"").count(), 6);
    }

    #[test]
    fn what_was_not_measured_is_not_in_the_legend() {
        let mut record = record();
        record.trials.retain(|trial| trial.path == Path::Short);
        record.latencies.clear();
        let page = study(&record);
        assert!(page.contains("<span>ours</span>") && !page.contains("<span>ours behind"));
        assert_eq!(page.matches("<figure>").count(), 1);
        record.trials.clear();
        assert!(!study(&record).contains("<figure>"));
    }
}
