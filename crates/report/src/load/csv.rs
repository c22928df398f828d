//! A load run as CSV (RFC 4180, with line feeds): raw numbers for other programs, the same columns in every run.
//!
//! A line for each step, and after it one for each of its parts: what accompanied it, the background, the hosts. The
//! column `part` says which; sums over a run take the lines of one kind. Distributions are left out: the record has
//! them. A field without a value is empty.

use std::borrow::Cow;

use super::{Cause, Histogram, LoadRecord, Percentiles, Spans, Step, Tally};
use crate::render::csv::{optional, quoted};

/// The run that a line belongs to.
const RUN_COLUMNS: [&str; 6] = ["scheme", "authentication", "target", "path", "commit", "started_unix_s"];
const PART_COLUMNS: [&str; 14] = [
    "step",
    "part",
    "host",
    "operation",
    "offered_rps",
    "seconds",
    "valid",
    "why_invalid",
    "scheduled",
    "skipped",
    "sent",
    "answered",
    "lost",
    "invalid",
];
const PERCENTILES: [&str; 6] = ["min", "p50", "p90", "p99", "p999", "max"];
/// What only a step has, or only a host.
const OTHER_COLUMNS: [&str; 7] = [
    "generator_busy_share",
    "request_size",
    "server_cpu_seconds",
    "server_cpu_us_per_request",
    "server_resident_size",
    "start_skew_us",
    "start_skew_error_us",
];
/// What only a step of ANTP has, after its times.
const ANTP_COLUMNS: [&str; 3] = ["client_crypto_seconds", "client_crypto_share", "early"];
const ANTP_TIMES: [&str; 5] = ["client_crypto", "negotiation", "key_exchange", "time", "phases"];
const SPAN_COLUMNS: [&str; 2] = ["spans_joined", "spans_unmatched"];
const SPAN_POINTS: [&str; 3] = ["mean", "p50", "p99"];

type Field<'a> = Cow<'a, str>;

/// A line of the file, and what it is about.
#[derive(Clone, Copy)]
struct Part<'a> {
    kind: &'static str,
    host: &'a str,
    offered_rps: Option<f64>,
    tally: &'a Tally,
    valid: bool,
    why_invalid: Option<&'a String>,
    skew_us: Option<[f64; 2]>,
}

/// The run as CSV, with a heading.
#[must_use]
pub fn csv(record: &LoadRecord) -> String {
    let mut out = heading().join(",");
    out.push('\n');
    for (index, step) in record.steps.iter().enumerate() {
        let whole = Part {
            kind: "step",
            host: "",
            offered_rps: step.offered_rps,
            tally: &step.tally,
            valid: step.valid,
            why_invalid: step.why_invalid.as_ref(),
            skew_us: None,
        };
        let of = |kind, tally| Part { kind, offered_rps: None, tally, ..whole };
        let accompanying = step.accompanying.iter().map(|tally| of("accompanying", tally));
        let background = step.background.iter().map(|tally| of("background", tally));
        let hosts = step.hosts.iter().map(|part| Part {
            kind: "host",
            host: &part.name,
            offered_rps: part.offered_rps,
            tally: &part.tally,
            valid: part.valid,
            why_invalid: part.why_invalid.as_ref(),
            skew_us: Some([part.start_skew_us, part.start_skew_error_us]),
        });
        for part in std::iter::once(whole).chain(accompanying).chain(background).chain(hosts) {
            out += &line(record, index + 1, step, &part).join(",");
            out.push('\n');
        }
    }
    out
}

fn heading() -> Vec<String> {
    let points = |name: &'static str| PERCENTILES.iter().map(move |point| format!("{name}_{point}_us"));
    let mut columns: Vec<String> = RUN_COLUMNS.iter().chain(&PART_COLUMNS).map(ToString::to_string).collect();
    columns.extend(Cause::ALL.map(|cause| format!("cause_{}", cause.to_string().replace('-', "_"))));
    columns.push("surplus".to_owned());
    columns.extend(["latency", "offset", "lateness"].into_iter().flat_map(points));
    columns.extend(OTHER_COLUMNS.iter().chain(&SPAN_COLUMNS).map(ToString::to_string));
    for measure in Spans::default().measures() {
        let name = measure.name.to_lowercase();
        columns.extend(SPAN_POINTS.iter().map(|point| format!("{name}_{point}_ns")));
    }
    columns.extend(ANTP_TIMES.into_iter().flat_map(points));
    columns.extend(ANTP_COLUMNS.iter().map(ToString::to_string));
    columns
}

fn line<'a>(record: &'a LoadRecord, number: usize, step: &Step, part: &Part<'a>) -> Vec<Field<'a>> {
    let tally = part.tally;
    let mut fields = vec![
        quoted(&record.scheme),
        quoted(&record.authentication),
        quoted(&record.target),
        quoted(&record.path),
        quoted(&record.commit),
        record.started_unix_s.to_string().into(),
        number.to_string().into(),
        part.kind.into(),
        quoted(part.host),
        tally.operation.to_string().into(),
        optional(part.offered_rps),
        step.seconds.to_string().into(),
        part.valid.to_string().into(),
        part.why_invalid.map_or(Cow::Borrowed(""), |why| quoted(why)),
    ];
    let counts = [tally.scheduled, tally.skipped, tally.sent, tally.answered, tally.lost, tally.invalid];
    fields.extend(counts.iter().map(|count| count.to_string().into()));
    fields.extend(Cause::ALL.map(|cause| tally.count_of(cause).to_string().into()));
    fields.push(tally.surplus.to_string().into());
    let is_step = part.kind == "step";
    fields.extend(points(tally.latency_us));
    fields.extend(points(tally.offset_us));
    fields.extend(points(step.lateness_us.filter(|_| is_step)));
    let server = step.server.filter(|_| is_step);
    fields.extend([
        optional(step.generator_busy_share.filter(|_| is_step)),
        optional(is_step.then_some(step.request_size)),
        optional(server.map(|server| server.cpu_seconds)),
        optional(server.and_then(|server| server.cpu_us_per_request)),
        optional(server.map(|server| server.resident_size)),
        optional(part.skew_us.map(|[skew_us, _]| skew_us)),
        optional(part.skew_us.map(|[_, error_us]| error_us)),
    ]);
    let spans = step.spans.as_ref().filter(|_| is_step);
    fields.push(optional(spans.map(|spans| spans.joined)));
    fields.push(optional(spans.map(|spans| spans.unmatched)));
    for measure in spans.unwrap_or(&Spans::default()).measures() {
        fields.extend(span_points(measure.times_ns));
    }
    let antp = step.antp.as_ref().filter(|_| is_step);
    let times = antp.map_or([None; ANTP_TIMES.len()], |antp| {
        [antp.client_crypto_us, antp.negotiation_us, antp.key_exchange_us, antp.time_us, antp.phases_us]
    });
    for time in times {
        fields.extend(points(time));
    }
    fields.push(optional(antp.map(|antp| antp.client_crypto_seconds)));
    fields.push(optional(antp.and_then(|antp| antp.client_crypto_share)));
    fields.push(optional(antp.map(|antp| antp.early)));
    fields
}

fn points(percentiles: Option<Percentiles>) -> [Field<'static>; 6] {
    let values =
        percentiles.map(|Percentiles { min, p50, p90, p99, p999, max }| [min, p50, p90, p99, p999, max]);
    std::array::from_fn(|index| optional(values.map(|values| values[index])))
}

fn span_points(times_ns: &Histogram) -> [Field<'static>; 3] {
    [
        optional(times_ns.mean().map(|mean| format!("{mean:.1}"))),
        optional(times_ns.quantile(0.5)),
        optional(times_ns.quantile(0.99)),
    ]
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
