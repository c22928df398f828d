//! A run as CSV: raw nanoseconds, no units, and the same columns in every run.

use super::{RunRecord, summarise};
use crate::render::csv::{optional, quoted};

const HEADING: &str = "scheme,authentication,exchange_count,failure_count,offset_median_ns,delay_median_ns,\
                           whole_median_ns,whole_p90_ns,whole_p99_ns,whole_max_ns,added_ns,added_ratio,\
                           path,commit,started_unix_s";

/// The figures as CSV (RFC 4180, with line feeds): a heading, then one line per scheme. A field without a value is
/// empty; `added_ratio` is a fraction, not percent.
#[must_use]
pub fn csv(record: &RunRecord) -> String {
    let mut out = format!("{HEADING}\n");
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
