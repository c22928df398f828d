//! A run of the demo as a report: a table of the schemes for a terminal, and more of it on a page.

use std::borrow::Cow;

use super::{AntpPhases, KeyExchange, RunRecord, SchemeRun, SchemeSummary, Times, summarise};
use crate::render::{
    Block, Cumulative, Distribution, Layout, Medium, Prose, Report, Section, Table, Words, or_absent,
};
use crate::stored::Stored;
use crate::units::{difference, listed, plural, signed_share, signed_time, time, typeset};

const TITLE: &str = "What authenticated time costs";
const PLOT: Words = Words {
    label: Cow::Borrowed(
        "Cumulative distribution of whole exchanges, by scheme; the table below has its percentiles",
    ),
    share_of: "exchanges",
    time: "whole exchange",
};

/// The report on a run.
#[must_use]
pub fn report(record: &RunRecord) -> Report {
    let summaries = summarise(record);
    let sections = [
        Some(opening(record)),
        findings(record, &summaries),
        side_by_side(record, &summaries),
        Some(distribution(record)),
        percentiles(&summaries),
        key_exchanges(record),
        antp_phases(record),
        failures(record),
        Some(limits(record)),
    ];
    Report::new(TITLE, Layout::Brief, sections.into_iter().flatten().collect())
}

/// What was measured, and on what.
fn opening(record: &RunRecord) -> Section {
    let counts: Vec<String> = record.schemes.iter().map(request_count).collect();
    let asked = match counts[..] {
        [] => Prose::from("No exchange was made over the path ").strong(&record.path).plain(". "),
        [..] => Prose::from("A client asked a server for the time over the path ")
            .strong(&record.path)
            .plain(format!(", {}. ", listed(counts))),
    };
    Section::only(Medium::Page, "", [Block::paragraph(record.provenance().told(asked, ""))])
}

/// How often the server was asked, in words.
fn request_count(run: &SchemeRun) -> String {
    let count = run.failure_count().saturating_add(run.exchanges.len() as u64);
    format!("{count} {} with {}", if count == 1 { "time" } else { "times" }, run.label())
}

/// The extra time of each scheme, in words.
fn findings(record: &RunRecord, summaries: &[SchemeSummary<'_>]) -> Option<Section> {
    let finding = |(run, summary): (&SchemeRun, &SchemeSummary<'_>)| {
        let added = summary.added?;
        let time = typeset(&time(added.ns.unsigned_abs()));
        let prose = Prose::from("The median exchange of ").strong(run.label()).plain(" takes ");
        let prose = match added.ns.signum() {
            0 => prose.plain("as long as"),
            1 => prose.strong(format!("{time} more")).plain(" than"),
            _ => prose.strong(format!("{time} less")).plain(" than"),
        };
        let share = added.ratio.map_or_else(String::new, |ratio| format!(": {}", signed_share(ratio)));
        Some(prose.plain(format!(" that of plain NTP{}.", typeset(&share))))
    };
    let findings: Vec<Prose> = record.schemes.iter().zip(summaries).filter_map(finding).collect();
    (!findings.is_empty()).then(|| Section::only(Medium::Page, "", [Block::findings(findings)]))
}

/// The table for a terminal: one line per scheme, then the failures by cause, then what the figures hold for.
fn side_by_side(record: &RunRecord, summaries: &[SchemeSummary<'_>]) -> Option<Section> {
    let figure =
        |of: &&SchemeSummary<'_>, format: fn(&Times) -> String| or_absent(of.times.as_ref().map(format));
    let table = Table::of("Schemes side by side", summaries)
        .words(("Scheme", "scheme"), |of| of.scheme)
        .words(("Authentication", "authentication"), |of| of.authentication)
        .number(("Exchanges", "exchanges"), |of| of.exchange_count)
        .number(("Failed", "failed"), |of| of.failure_count)
        .number(("Offset, median", "offset\nmedian"), |of| {
            figure(of, |times| or_absent(times.offset_median_ns.map(signed_time)))
        })
        .number(("Delay, median", "delay\nmedian"), |of| {
            figure(of, |times| or_absent(times.delay_median_ns.map(difference)))
        })
        .number(("Whole exchange, median", "whole\nmedian"), |of| {
            figure(of, |times| time(times.whole_median_ns))
        })
        .number(("Whole exchange, p99", "whole\np99"), |of| figure(of, |times| time(times.whole_p99_ns)))
        .number(("Added by authentication", "added by\nauthentication"), |of| or_absent(added(of)))
        .table();
    let mut section = Section::new("Schemes side by side");
    match summaries {
        [] => section.add_to(Medium::Text, Block::Table(table)),
        [..] => section.show([table]),
    }
    for (run, failure) in failed(record) {
        let line = format!("{}: {} failed, {}", run.label(), failure.count, failure.cause);
        section.say_in(Medium::Text, line);
    }
    for (run, summary) in record.schemes.iter().zip(summaries).filter(|(_, of)| of.negative_delay_count > 0) {
        section.say(format!(
            "{}: {} of {} had a negative delay; the medians of offset and delay leave them out.",
            run.label(),
            summary.negative_delay_count,
            plural(summary.exchange_count as u64, "exchange"),
        ));
    }
    let path = format!(
        "Path: {}. A whole exchange lasts from before the request is made until the response is checked.",
        record.path
    );
    section.say_in(Medium::Text, path);
    Some(section)
}

fn failed(record: &RunRecord) -> impl Iterator<Item = (&SchemeRun, &super::Failure)> {
    record.schemes.iter().flat_map(|run| run.failures.iter().map(move |failure| (run, failure)))
}

/// The extra time of a scheme with its share: `+18.2 us (+31 %)`.
fn added(summary: &SchemeSummary<'_>) -> Option<String> {
    let added = summary.added?;
    let share = added.ratio.map_or_else(String::new, |ratio| format!(" ({})", signed_share(ratio)));
    Some(signed_time(added.ns) + &share)
}

fn distribution(record: &RunRecord) -> Section {
    let samples: Vec<_> = record.schemes.iter().map(SchemeRun::whole).collect();
    let zeros = match samples.iter().any(|sample| sample.values().first() == Some(&0)) {
        true => " Times of zero stand at the left edge, which is not zero.",
        false => "",
    };
    let series = record.schemes.iter().zip(&samples);
    let series = series.map(|(run, sample)| (run.label(), Distribution::from(sample))).collect();
    let figure = Block::Figure {
        drawing: Box::new(Cumulative { words: PLOT, series, has_ends: false }),
        caption: format!(
            "The further left a line, the faster the scheme; the steeper, the steadier. Where a line crosses 50 % is \
             its median.{zeros}"
        ),
        otherwise: Some("No exchange succeeded, so there is nothing to draw."),
    };
    Section::of("How long exchanges took", [figure])
}

/// A table that only the page has room for; nothing if it has no rows.
fn detail(heading: &str, introduction: Option<&str>, table: Table) -> Option<Section> {
    let some = !table.rows.is_empty();
    let blocks = introduction.map(Block::paragraph).into_iter().chain([Block::Table(table)]);
    some.then(|| Section::only(Medium::Page, heading, blocks))
}

fn percentiles(summaries: &[SchemeSummary<'_>]) -> Option<Section> {
    let figure =
        |of: &&SchemeSummary<'_>, format: fn(&Times) -> String| or_absent(of.times.as_ref().map(format));
    let some = summaries.iter().any(|summary| summary.times.is_some());
    let table = Table::of("Percentiles of whole exchanges", summaries.iter().filter(|_| some))
        .words("Scheme", |of| of.scheme)
        .words("Authentication", |of| of.authentication)
        .number("p50 (median)", |of| figure(of, |times| time(times.whole_median_ns)))
        .number("p90", |of| figure(of, |times| time(times.whole_p90_ns)))
        .number("p95", |of| figure(of, |times| time(times.whole_p95_ns)))
        .number("p99", |of| figure(of, |times| time(times.whole_p99_ns)))
        .number("p99.99", |of| figure(of, |times| time(times.whole_p9999_ns)))
        .number("Maximum", |of| figure(of, |times| time(times.whole_max_ns)))
        .number("Mean", |of| figure(of, |times| time(times.whole_mean_ns.round() as u64)))
        .number("Standard deviation", |of| {
            let deviation = of.times.and_then(|times| times.whole_deviation_ns);
            or_absent(deviation.map(|deviation| time(deviation.round() as u64)))
        });
    detail("Whole exchange in figures", None, table.table())
}

fn key_exchanges(record: &RunRecord) -> Option<Section> {
    let headings = ["TCP connection", "TLS handshake", "Request, response"];
    let table = before(record, "Times of the key exchange", headings, |run| {
        let KeyExchange { connect_ns, handshake_ns, exchange_ns } = run.key_exchange?;
        Some([connect_ns, handshake_ns, exchange_ns])
    });
    let introduction = "Before its first exchange, a client fetches keys and cookies over TLS. It does so once: every \
                        later response brings a new cookie. None of this time is in the figures above.";
    detail("Key exchange", Some(introduction), table)
}

fn antp_phases(record: &RunRecord) -> Option<Section> {
    let headings = ["Negotiation", "Certificate check", "Encapsulation", "Key exchange"];
    let table = before(record, "Times of the phases", headings, |run| {
        let AntpPhases { negotiation_ns, certificate_check_ns, encapsulation_ns, exchange_ns } =
            run.antp_phases?;
        Some([negotiation_ns, certificate_check_ns, encapsulation_ns, exchange_ns])
    });
    let introduction = "Before its first exchange, a client of ANTP negotiates, checks certificates and exchanges \
                        keys, over the same port. It does so once for the life of a key. None of this time is in the \
                        figures above.";
    detail("Phases of ANTP", Some(introduction), table)
}

/// Times that come before the first exchange of a scheme, and their sum.
fn before<const N: usize>(
    record: &RunRecord,
    name: &str,
    headings: [&str; N],
    times_ns: impl Fn(&SchemeRun) -> Option<[u64; N]>,
) -> Table {
    let rows = record.schemes.iter().filter_map(|run| Some((run, times_ns(run)?)));
    Table::of(name, rows)
        .words("Scheme", |(run, _)| &run.scheme)
        .words("Authentication", |(run, _)| &run.authentication)
        .each(0..N, |&index| headings[index], |(_, times_ns), &index| time(times_ns[index]))
        .number("Together", |(_, times_ns)| time(times_ns.iter().fold(0, |sum, &ns| sum.saturating_add(ns))))
        .table()
}

fn failures(record: &RunRecord) -> Option<Section> {
    let table = Table::of("Failures by cause", failed(record))
        .words("Scheme", |(run, _)| run.label())
        .words("Cause", |(_, failure)| &failure.cause)
        .number("Count", |(_, failure)| failure.count);
    let introduction = "Exchanges that failed have no time and are in no figure above.";
    detail("Failures", Some(introduction), table.table())
}

/// How to read the page, and what it does not show.
fn limits(record: &RunRecord) -> Section {
    let limits = match crate::load::shares_host(&record.path) {
        true => {
            "Client and server shared one host, with no network between them. Over a real network every exchange \
             takes longer, so the same added time is a smaller share there. Both read the same clock: an offset other \
             than zero is the error of the measurement, not of a clock."
        }
        false => {
            "The figures hold for this path, these two hosts and their load at that time. An offset holds the error of \
             both clocks and half of any difference between the two directions of the path."
        }
    };
    let whole = "From before the request was made until the response was checked, by the client\u{2019}s clock: \
                 making and sealing the request, the way to the server, the server\u{2019}s work, the way back, \
                 verifying. The NTS performance study calls it d";
    let whole =
        Prose::from(whole).sub("CNTS").plain(" = t").sub("10").plain(" \u{2212} t").sub("5").plain(".");
    let term = |term: &str, meaning: &str| (term.to_owned(), Prose::from(meaning));
    let terms = vec![
        ("Whole exchange".to_owned(), whole),
        term(
            "Added by authentication",
            "The scheme\u{2019}s median whole exchange minus that of plain NTP, and the difference as a share of the \
             latter.",
        ),
        term(
            "Offset, delay",
            "How far the server\u{2019}s clock is ahead of the client\u{2019}s, and how long the datagrams were under \
             way, by the four timestamps of an exchange (RFC\u{a0}5905, section\u{a0}8).",
        ),
        term(
            "p50, p90, p95, p99, p99.99",
            "At least that percentage of the exchanges took no longer. Percentiles are values that were measured \
             (nearest rank); nothing is interpolated.",
        ),
        (
            format!("Limits: the path is {}", record.path),
            Prose::from(format!(
                "{limits} This is one run on one machine: a difference that the next run does not show again means \
                 nothing."
            )),
        ),
    ];
    Section::only(Medium::Page, "How to read this", [Block::Terms(terms)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::page::assert_whole;
    use crate::run::tests::{record, scheme};
    use crate::run::{Failure, csv};

    fn page(record: &RunRecord) -> String {
        report(record).page()
    }

    fn text(record: &RunRecord) -> String {
        report(record).text()
    }

    const HOSTILE: &str = "<script>alert('x')</script>\"&";

    fn full() -> RunRecord {
        let mut nts = scheme("nts", "AES-SIV-CMAC-256", &[78_600, 80_000, 90_000]);
        nts.key_exchange =
            Some(KeyExchange { connect_ns: 60_000, handshake_ns: 900_000, exchange_ns: 40_000 });
        nts.failures.push(Failure { cause: "no answer".to_owned(), count: 2 });
        record(vec![scheme("plain", "none", &[60_000]), nts])
    }

    #[test]
    fn no_string_of_a_record_becomes_markup() {
        let mut record = full();
        let hostile = || HOSTILE.to_owned();
        record.command = hostile();
        record.version = hostile();
        record.commit = hostile();
        record.path = hostile();
        record.host.cpu = hostile();
        record.host.kernel = hostile();
        let run = &mut record.schemes[1];
        run.scheme = hostile();
        run.authentication = hostile();
        run.failures[0].cause = hostile();
        let page = page(&record);
        assert!(!page.contains("<script") && !page.contains("alert('") && !page.contains("\"&<"), "{page}");
        // Nine strings: each is shown at least once.
        assert!(page.matches("&lt;script&gt;").count() >= 9);
    }

    #[test]
    fn page_needs_nothing_from_elsewhere() {
        let page = page(&full());
        for reference in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(reference), "{reference}");
        }
    }

    #[test]
    fn every_section_has_its_figures() {
        let page = page(&full());
        for text in [
            "1 time with plain and 5 times with nts (AES-SIV-CMAC-256).",
            "2026-07-03 12:00:00 UTC",
            "<strong>20.0\u{a0}\u{b5}s more</strong>",
            "plain NTP:\u{a0}+33\u{a0}%",
            "<td>1.00\u{a0}ms</td>",
            "<td class=\"word\">no answer</td><td>2</td>",
            "the path is loopback",
        ] {
            assert!(page.contains(text), "{text}\n{page}");
        }
    }

    #[test]
    fn sections_without_content_are_left_out() {
        let page = page(&record(vec![scheme("plain", "none", &[60_000])]));
        for text in ["Key exchange", "Failures", "class=\"findings\""] {
            assert!(!page.contains(text), "{text}");
        }
    }

    #[test]
    fn run_without_exchanges_has_a_page() {
        for schemes in [Vec::new(), vec![scheme("plain", "none", &[]), scheme("nts", "a", &[])]] {
            let page = page(&record(schemes));
            assert!(page.contains("nothing to draw") && !page.contains("<figure>"));
        }
    }

    #[test]
    fn findings_say_which_way_the_difference_goes() {
        let finding = |whole_ns| {
            let page =
                page(&record(vec![scheme("plain", "none", &[60_000]), scheme("nts", "", &[whole_ns])]));
            let start = page.find("The median exchange of").unwrap();
            page[start..start + page[start..].find("</li>").unwrap()].replace('\u{a0}', " ")
        };
        let than = "The median exchange of <strong>nts</strong> takes <strong>30.0 \u{b5}s";
        assert_eq!(finding(90_000), format!("{than} more</strong> than that of plain NTP: +50 %."));
        assert_eq!(finding(30_000), format!("{than} less</strong> than that of plain NTP: \u{2212}50 %."));
        assert!(finding(60_000).ends_with("takes as long as that of plain NTP: 0 %."));
    }

    #[test]
    fn elements_are_closed() {
        for record in [full(), record(Vec::<SchemeRun>::new())] {
            let page = page(&record);
            assert_whole(&page);
        }
    }

    #[test]
    fn zero_times_are_explained() {
        assert!(page(&record(vec![scheme("plain", "none", &[0, 5])])).contains("Times of zero"));
        assert!(!page(&full()).contains("Times of zero"));
    }

    #[test]
    fn only_a_shared_host_is_said_to_have_one_clock() {
        let mut record = full();
        assert!(page(&record).contains("Both read the same clock"));
        record.path = "lab network".to_owned();
        assert!(!page(&record).contains("Both read the same clock"));
    }

    #[test]
    fn numbers_end_in_the_same_column() {
        let plain = scheme("plain", "none", &[9_000]);
        let nts = scheme("nts", "AES-SIV-CMAC-256", &[12_000_000; 1000]);
        let text = text(&record(vec![plain, nts]));
        let lines: Vec<&str> = text.lines().collect();
        for (line, end) in [(lines[2], "9.0 us"), (lines[3], "12.00 ms")] {
            let at = lines[1].find("p99").unwrap() + "p99".len();
            assert!(line[..at].ends_with(end), "{line}");
        }
        assert!(lines.iter().all(|line| line.trim_end() == *line));
    }

    #[test]
    fn scheme_without_exchanges_has_dashes_and_its_failures_their_causes() {
        let mut nts = scheme("nts", "AES-SIV-CMAC-256", &[]);
        nts.failures.push(Failure { cause: "tag".to_owned(), count: 7 });
        let record = record(vec![nts]);
        let text = text(&record);
        let cells: Vec<&str> = text.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(cells, ["nts", "AES-SIV-CMAC-256", "0", "7", "-", "-", "-", "-", "-"]);
        assert_eq!(text.lines().nth(3), Some("nts (AES-SIV-CMAC-256): 7 failed, tag"));
        assert!(
            csv(&record)
                .lines()
                .nth(1)
                .unwrap()
                .starts_with("nts,AES-SIV-CMAC-256,0,7,0,,,,,,,,,,,loopback,")
        );
    }

    #[test]
    fn last_line_names_the_path() {
        let mut record = record(Vec::new());
        record.path = "veth".to_owned();
        assert!(text(&record).lines().last().unwrap().starts_with("Path: veth. A whole exchange lasts "));
    }

    #[test]
    fn record_cannot_steer_the_terminal() {
        let mut run = scheme("\u{1b}[2J", "a\u{9b}31m", &[1]);
        run.failures.push(Failure { cause: "x\r\ny".to_owned(), count: 1 });
        let mut record = record(vec![run]);
        record.path = "\u{7}".to_owned();
        let text = text(&record);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert_eq!(text.lines().count(), 5);
    }
}
