//! A load run as CSV (RFC 4180, with line feeds): raw numbers for other programs, the same columns in every run.
//!
//! A line for each step, and after it one for each of its parts: what accompanied it, the background, the hosts. The
//! column `part` says which; sums over a run take the lines of one kind. Distributions are left out: the record has
//! them. A field without a value is empty.

use super::{AntpFigures, Cause, Histogram, LoadRecord, Percentiles, ServerUse, Spans, Step, Tally};
use crate::render::csv::lines;
use crate::render::{Table, or_empty};

/// What a line has of something, if anything.
type Of<T> = fn(&Part<'_>) -> Option<T>;
/// One of the figures that a distribution comes to.
type Point = fn(&Percentiles) -> f64;
type SpanPoint = fn(&Histogram) -> String;

const TIMES: [(&str, Of<Percentiles>); 3] = [
    ("latency", |part| part.tally.latency_us),
    ("offset", |part| part.tally.offset_us),
    ("lateness", |part| part.whole()?.lateness_us),
];
const ANTP_TIMES: [(&str, Of<Percentiles>); 5] = [
    ("client_crypto", |part| part.antp()?.client_crypto_us),
    ("negotiation", |part| part.antp()?.negotiation_us),
    ("key_exchange", |part| part.antp()?.key_exchange_us),
    ("time", |part| part.antp()?.time_us),
    ("phases", |part| part.antp()?.phases_us),
];
const POINTS: [(&str, Point); 6] = [
    ("min", |times| times.min),
    ("p50", |times| times.p50),
    ("p90", |times| times.p90),
    ("p99", |times| times.p99),
    ("p999", |times| times.p999),
    ("max", |times| times.max),
];
const SPAN_POINTS: [(&str, SpanPoint); 3] = [
    ("mean", |times_ns| or_empty(times_ns.mean().map(|mean| format!("{mean:.1}")))),
    ("p50", |times_ns| or_empty(times_ns.quantile(0.5))),
    ("p99", |times_ns| or_empty(times_ns.quantile(0.99))),
];

/// A line of the file, and what it is about.
#[derive(Clone, Copy)]
struct Part<'a> {
    step: &'a Step,
    /// The number of the step, from one.
    number: usize,
    kind: &'static str,
    host: &'a str,
    offered_rps: Option<f64>,
    tally: &'a Tally,
    valid: bool,
    why_invalid: Option<&'a String>,
    skew_us: Option<[f64; 2]>,
}

impl<'a> Part<'a> {
    /// A step and its parts.
    fn all(number: usize, step: &'a Step) -> impl Iterator<Item = Self> {
        let whole = Part {
            step,
            number,
            kind: "step",
            host: "",
            offered_rps: step.offered_rps,
            tally: &step.tally,
            valid: step.valid,
            why_invalid: step.why_invalid.as_ref(),
            skew_us: None,
        };
        let of = move |kind, tally| Part { kind, offered_rps: None, tally, ..whole };
        let accompanying = step.accompanying.iter().map(move |tally| of("accompanying", tally));
        let background = step.background.iter().map(move |tally| of("background", tally));
        let hosts = step.hosts.iter().map(move |part| Part {
            kind: "host",
            host: &part.name,
            offered_rps: part.offered_rps,
            tally: &part.tally,
            valid: part.valid,
            why_invalid: part.why_invalid.as_ref(),
            skew_us: Some([part.start_skew_us, part.start_skew_error_us]),
            ..whole
        });
        std::iter::once(whole).chain(accompanying).chain(background).chain(hosts)
    }

    /// The step, if the line is not about a part of it.
    fn whole(&self) -> Option<&'a Step> {
        (self.kind == "step").then_some(self.step)
    }

    fn antp(&self) -> Option<&'a AntpFigures> {
        self.whole()?.antp.as_ref()
    }

    fn spans(&self) -> Option<&'a Spans> {
        self.whole()?.spans.as_ref()
    }
}

/// The run as CSV, with a heading.
#[must_use]
pub fn csv(record: &LoadRecord) -> String {
    let parts = record.steps.iter().enumerate().flat_map(|(index, step)| Part::all(index + 1, step));
    let points = |times: &'static [(&str, Of<Percentiles>)]| {
        let points = |&(name, of)| POINTS.map(|(point, at)| (format!("{name}_{point}_us"), of, at));
        times.iter().flat_map(points)
    };
    let times =
        |part: &Part<'_>, (_, of, at): &(String, Of<Percentiles>, Point)| or_empty(of(part).as_ref().map(at));
    let spans = Spans::default().measures().map(|measure| measure.name.to_lowercase());
    let spans = spans
        .into_iter()
        .enumerate()
        .flat_map(|(index, name)| SPAN_POINTS.map(|(point, at)| (format!("{name}_{point}_ns"), index, at)));
    let table = Table::of("Steps and their parts", parts)
        .words("scheme", |_| &record.scheme)
        .words("authentication", |_| &record.authentication)
        .words("target", |_| &record.target)
        .words("path", |_| &record.path)
        .words("commit", |_| &record.commit)
        .number("started_unix_s", |_| record.started_unix_s)
        .number("step", |part| part.number)
        .words("part", |part| part.kind)
        .words("host", |part| part.host)
        .words("operation", |part| part.tally.operation)
        .number("offered_rps", |part| or_empty(part.offered_rps))
        .number("seconds", |part| part.step.seconds)
        .words("valid", |part| part.valid)
        .words("why_invalid", |part| or_empty(part.why_invalid))
        .number("scheduled", |part| part.tally.scheduled)
        .number("skipped", |part| part.tally.skipped)
        .number("sent", |part| part.tally.sent)
        .number("answered", |part| part.tally.answered)
        .number("lost", |part| part.tally.lost)
        .number("invalid", |part| part.tally.invalid)
        .each(
            Cause::ALL,
            |cause| format!("cause_{cause}").replace('-', "_"),
            |part, &cause| part.tally.count_of(cause),
        )
        .number("surplus", |part| part.tally.surplus)
        .each(points(&TIMES), |(heading, ..)| heading.clone(), times)
        .number("generator_busy_share", |part| {
            or_empty(part.whole().and_then(|step| step.generator_busy_share))
        })
        .number("request_size", |part| or_empty(part.whole().map(|step| step.request_size)))
        .number("server_cpu_seconds", |part| or_empty(server(part).map(|server| server.cpu_seconds)))
        .number("server_cpu_us_per_request", |part| {
            or_empty(server(part).and_then(|server| server.cpu_us_per_request))
        })
        .number("server_resident_size", |part| or_empty(server(part).map(|server| server.resident_size)))
        .number("start_skew_us", |part| or_empty(part.skew_us.map(|[skew_us, _]| skew_us)))
        .number("start_skew_error_us", |part| or_empty(part.skew_us.map(|[_, error_us]| error_us)))
        .number("spans_joined", |part| or_empty(part.spans().map(|spans| spans.joined)))
        .number("spans_unmatched", |part| or_empty(part.spans().map(|spans| spans.unmatched)))
        .each(
            spans,
            |(heading, ..)| heading.clone(),
            |part, &(_, index, at)| or_empty(part.spans().map(|spans| at(spans.measures()[index].times_ns))),
        )
        .each(points(&ANTP_TIMES), |(heading, ..)| heading.clone(), times)
        .number("client_crypto_seconds", |part| or_empty(part.antp().map(|antp| antp.client_crypto_seconds)))
        .number("client_crypto_share", |part| or_empty(part.antp().and_then(|antp| antp.client_crypto_share)))
        .number("early", |part| or_empty(part.antp().map(|antp| antp.early)))
        .table();
    lines(&table)
}

fn server(part: &Part<'_>) -> Option<ServerUse> {
    part.whole()?.server
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::record;

    /// The fields of each line; no field of this record needs quotes.
    fn table(record: &LoadRecord) -> Vec<Vec<String>> {
        csv(record).lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn every_line_has_every_column() {
        let mut record = record();
        record.steps[3].why_invalid = None;
        let table = table(&record);
        assert!(table.iter().all(|line| line.len() == table[0].len()));
        // Four steps; two tallies of key exchanges, one of background; two hosts in each step.
        let part = table[0].iter().position(|column| column == "part").unwrap();
        let kinds = |kind: &str| table.iter().filter(|line| line[part] == kind).count();
        assert_eq!([kinds("step"), kinds("accompanying"), kinds("background"), kinds("host")], [4, 2, 1, 8]);
        let names: std::collections::HashSet<&String> = table[0].iter().collect();
        assert_eq!(names.len(), table[0].len(), "two columns have one name");
    }

    #[test]
    fn causes_of_every_line_add_up_to_its_failures() {
        let table = table(&record());
        let column = |name: &str| table[0].iter().position(|column| column == name).unwrap();
        let number = |line: &[String], name: &str| line[column(name)].parse::<u64>().unwrap();
        for line in &table[1..] {
            let causes: u64 = Cause::ALL
                .map(|cause| number(line, &format!("cause_{}", cause.to_string().replace('-', "_"))))
                .iter()
                .sum();
            let failed = number(line, "skipped") + number(line, "lost") + number(line, "invalid");
            assert_eq!(causes, failed, "{line:?}");
            assert_eq!(number(line, "scheduled"), failed + number(line, "answered"));
        }
    }

    #[test]
    fn fields_that_would_break_a_line_are_quoted() {
        let mut record = record();
        record.steps[3].why_invalid = Some("late, \"very\"\nlate".to_owned());
        record.steps[3].hosts[0].name = "a,b".to_owned();
        let csv = csv(&record);
        assert!(csv.contains(",false,\"late, \"\"very\"\"\nlate\",16000,"), "{csv}");
        assert!(csv.contains(",host,\"a,b\",transfer,"), "{csv}");
    }
}
