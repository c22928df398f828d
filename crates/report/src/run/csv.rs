//! A run as CSV: raw nanoseconds, no units, and the same columns in every run.

use super::{RunRecord, SchemeSummary, Times, summarise};
use crate::render::csv::lines;
use crate::render::{Table, or_empty};

/// The figures as CSV (RFC 4180, with line feeds): a heading, then one line per scheme. A field without a value is
/// empty; `added_ratio` is a fraction, not percent.
#[must_use]
pub fn csv(record: &RunRecord) -> String {
    let time =
        |summary: &SchemeSummary<'_>, of: fn(&Times) -> String| or_empty(summary.times.as_ref().map(of));
    let table = Table::of("Schemes", summarise(record))
        .words("scheme", |of| of.scheme.to_owned())
        .words("authentication", |of| of.authentication.to_owned())
        .number("exchange_count", |of| of.exchange_count)
        .number("failure_count", |of| of.failure_count)
        .number("negative_delay_count", |of| of.negative_delay_count)
        .number("offset_median_ns", |of| time(of, |times| or_empty(times.offset_median_ns)))
        .number("delay_median_ns", |of| time(of, |times| or_empty(times.delay_median_ns)))
        .number("whole_median_ns", |of| time(of, |times| times.whole_median_ns.to_string()))
        .number("whole_p90_ns", |of| time(of, |times| times.whole_p90_ns.to_string()))
        .number("whole_p95_ns", |of| time(of, |times| times.whole_p95_ns.to_string()))
        .number("whole_p99_ns", |of| time(of, |times| times.whole_p99_ns.to_string()))
        .number("whole_p9999_ns", |of| time(of, |times| times.whole_p9999_ns.to_string()))
        .number("whole_max_ns", |of| time(of, |times| times.whole_max_ns.to_string()))
        .number("added_ns", |of| or_empty(of.added.map(|added| added.ns)))
        .number("added_ratio", |of| {
            or_empty(of.added.and_then(|added| added.ratio).map(|ratio| format!("{ratio:.6}")))
        })
        .words("path", |_| &record.path)
        .words("commit", |_| &record.commit)
        .number("started_unix_s", |_| record.started_unix_s)
        .table();
    lines(&table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::{record, scheme};

    #[test]
    fn csv_quotes_what_would_break_a_field() {
        let mut record = record(vec![scheme("a,b", "say \"no\"", &[1])]);
        record.path = "two\nlines".to_owned();
        let csv = csv(&record);
        assert!(csv.contains("\"a,b\",\"say \"\"no\"\"\",1,0,"), "{csv}");
        assert!(csv.contains(",\"two\nlines\","), "{csv}");
    }
}
