//! A run as a table: plain text for a terminal, CSV for other programs.
//!
//! The text has units and no colours. The CSV has raw nanoseconds, no units, and the same columns in every run.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::columns::{aligned, optional, printable, quoted};
use crate::run::RunRecord;
use crate::summary::{SchemeSummary, Times, summarise};
use crate::units::{signed_share, signed_time, time};

/// What stands where there is no value.
const ABSENT: &str = "-";
const COLUMN_COUNT: usize = 9;
/// The heading of each column, in two lines.
const HEADINGS: [[&str; COLUMN_COUNT]; 2] = [
    ["", "", "", "", "offset", "delay", "whole", "whole", "added by"],
    [
        "scheme",
        "authentication",
        "exchanges",
        "failed",
        "median",
        "median",
        "median",
        "p99",
        "authentication",
    ],
];
/// Columns of words, which start on the left; the others hold numbers.
const WORD_COLUMN_COUNT: usize = 2;

const CSV_HEADING: &str = "scheme,authentication,exchange_count,failure_count,offset_median_ns,delay_median_ns,\
                           whole_median_ns,whole_p90_ns,whole_p99_ns,whole_max_ns,added_ns,added_ratio,\
                           path,commit,started_unix_s";

/// The table for a terminal: one line per scheme, then the failures by cause, then what the figures hold for.
#[must_use]
pub fn text(record: &RunRecord) -> String {
    let summaries = summarise(record);
    let headings = HEADINGS.iter().map(|line| line.map(Cow::Borrowed));
    let lines: Vec<[Cow<'_, str>; COLUMN_COUNT]> = headings.chain(summaries.iter().map(cells)).collect();
    let mut out = aligned(&lines, |column| column < WORD_COLUMN_COUNT);
    for run in &record.schemes {
        for failure in &run.failures {
            let (label, cause) = (run.label(), printable(&failure.cause));
            let _ = writeln!(out, "{}: {} failed, {cause}", printable(&label), failure.count);
        }
    }
    let path = printable(&record.path);
    let _ = writeln!(
        out,
        "Path: {path}. A whole exchange lasts from before the request is made until the response is checked."
    );
    out
}

fn cells<'a>(summary: &SchemeSummary<'a>) -> [Cow<'a, str>; COLUMN_COUNT] {
    let [offset, delay, whole, p99] = match summary.times {
        Some(times) => [
            signed_time(times.offset_median_ns).into(),
            delay(&times).into(),
            time(times.whole_median_ns).into(),
            time(times.whole_p99_ns).into(),
        ],
        None => [const { Cow::Borrowed(ABSENT) }; 4],
    };
    [
        printable(summary.scheme),
        printable(summary.authentication),
        summary.exchange_count.to_string().into(),
        summary.failure_count.to_string().into(),
        offset,
        delay,
        whole,
        p99,
        added(summary).map_or(Cow::Borrowed(ABSENT), Cow::Owned),
    ]
}

/// The median delay. It has a sign only where clocks that disagree make it negative.
pub(crate) fn delay(times: &Times) -> String {
    signed_time(times.delay_median_ns).trim_start_matches('+').to_owned()
}

/// The extra time of a scheme with its share: `+18.2 us (+31 %)`.
pub(crate) fn added(summary: &SchemeSummary<'_>) -> Option<String> {
    let added = summary.added?;
    let share = added.ratio.map_or_else(String::new, |ratio| format!(" ({})", signed_share(ratio)));
    Some(signed_time(added.ns) + &share)
}

/// The figures as CSV (RFC 4180, with line feeds): a heading, then one line per scheme. A field without a value is
/// empty; `added_ratio` is a fraction, not percent.
#[must_use]
pub fn csv(record: &RunRecord) -> String {
    let mut out = format!("{CSV_HEADING}\n");
    for summary in summarise(record) {
        let times = summary.times;
        let fields = [
            quoted(summary.scheme),
            quoted(summary.authentication),
            summary.exchange_count.to_string().into(),
            summary.failure_count.to_string().into(),
            optional(times.map(|times| times.offset_median_ns)),
            optional(times.map(|times| times.delay_median_ns)),
            optional(times.map(|times| times.whole_median_ns)),
            optional(times.map(|times| times.whole_p90_ns)),
            optional(times.map(|times| times.whole_p99_ns)),
            optional(times.map(|times| times.whole_max_ns)),
            optional(summary.added.map(|added| added.ns)),
            optional(summary.added.and_then(|added| added.ratio).map(|ratio| format!("{ratio:.6}"))),
            quoted(&record.path),
            quoted(&record.commit),
            record.started_unix_s.to_string().into(),
        ];
        out += &fields.join(",");
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Failure;
    use crate::run::tests::{record, scheme};

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
            csv(&record).lines().nth(1).unwrap().starts_with("nts,AES-SIV-CMAC-256,0,7,,,,,,,,,loopback,")
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

    #[test]
    fn csv_quotes_what_would_break_a_field() {
        let mut record = record(vec![scheme("a,b", "say \"no\"", &[1])]);
        record.path = "two\nlines".to_owned();
        let csv = csv(&record);
        assert!(csv.contains("\"a,b\",\"say \"\"no\"\"\",1,0,"), "{csv}");
        assert!(csv.contains(",\"two\nlines\","), "{csv}");
    }
}
