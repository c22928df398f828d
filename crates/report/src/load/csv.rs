//! A load run as CSV (RFC 4180, with line feeds): raw numbers for other programs, the same columns in every run.
//!
//! A line for each step, and after it one for each of its parts: what accompanied it, the background, the hosts, and
//! each second of its series. The column `part` says which; sums over a run take the lines of one kind. Distributions
//! are left out: the record has them. A field without a value is empty.

use super::{
    AntpFigures, Cause, Evidence, Histogram, HostPart, LoadRecord, Percentiles, Point, Second, ServerUse,
    Spans, Step, Stray, Tally, Traffic, Verdict,
};
use crate::render::csv::lines;
use crate::render::{Filling, Table, or_empty};

/// What a line has of something, if anything.
type Of<T> = fn(&Part<'_>) -> Option<T>;
type SpanPoint = fn(&Histogram) -> String;

const TIMES: [(&str, Of<Percentiles>); 4] = [
    ("latency", |part| part.tally.latency_us),
    ("from_send", |part| part.tally.from_send_us),
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
const SPAN_POINTS: [(&str, SpanPoint); 5] = [
    ("mean", |times_ns| or_empty(times_ns.mean().map(|mean| format!("{mean:.1}")))),
    ("p50", |times_ns| or_empty(times_ns.quantile(0.5))),
    ("p95", |times_ns| or_empty(times_ns.quantile(0.95))),
    ("p99", |times_ns| or_empty(times_ns.quantile(0.99))),
    ("p9999", |times_ns| or_empty(times_ns.quantile(0.9999))),
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
    of_host: Option<&'a HostPart>,
    /// A second with its number, from one.
    second: Option<(usize, &'a Second)>,
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
            of_host: None,
            second: None,
        };
        let of = move |kind, tally| Part { kind, offered_rps: None, tally, ..whole };
        let accompanying = step.accompanying.iter().map(move |tally| of("accompanying", tally));
        let background = step.background.iter().map(move |tally| of("background", tally));
        let beside = step.background_accompanying.iter();
        let beside = beside.map(move |tally| of("background-accompanying", tally));
        let hosts = step.hosts.iter().map(move |part| Part {
            kind: "host",
            host: &part.name,
            offered_rps: part.offered_rps,
            tally: &part.tally,
            valid: part.valid,
            why_invalid: part.why_invalid.as_ref(),
            of_host: Some(part),
            ..whole
        });
        let seconds = step.series.iter().enumerate().map(move |(index, second)| Part {
            kind: "second",
            offered_rps: None,
            second: Some((index + 1, second)),
            ..whole
        });
        std::iter::once(whole).chain(accompanying).chain(background).chain(beside).chain(hosts).chain(seconds)
    }

    /// The step, if the line is not about a part of it.
    fn whole(&self) -> Option<&'a Step> {
        (self.kind == "step").then_some(self.step)
    }

    /// A count of its operations; of a second only few are known.
    fn count(&self, of_tally: impl Fn(&Tally) -> u64, of_second: Option<fn(&Second) -> u64>) -> String {
        match (self.second, of_second) {
            (Some((_, second)), Some(get)) => get(second).to_string(),
            (Some(_), None) => String::new(),
            (None, _) => of_tally(self.tally).to_string(),
        }
    }

    /// Times of its operations; of a second there is no more than its own columns say.
    fn times(&self, of: Of<Percentiles>) -> Option<Percentiles> {
        if self.second.is_some() { None } else { of(self) }
    }

    fn evidence(&self) -> Option<&'a Evidence> {
        self.whole()?.evidence.as_ref()
    }

    fn traffic(&self) -> Option<Traffic> {
        server(self)?.traffic
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
        let points =
            |&(name, of)| Point::ALL.map(|point| (format!("{name}_{}_us", point.field()), of, point));
        times.iter().flat_map(points)
    };
    let times = |part: &Part<'_>, (_, of, at): &(String, Of<Percentiles>, Point)| {
        or_empty(part.times(*of).and_then(|times| times.at(*at)))
    };
    let spans = Spans::default().measures().map(|measure| measure.name.to_lowercase());
    let spans = spans
        .into_iter()
        .enumerate()
        .flat_map(|(index, name)| SPAN_POINTS.map(|(point, at)| (format!("{name}_{point}_ns"), index, at)));
    let table = Table::of("Steps and their parts", parts)
        .words("scheme", |_| &record.scheme)
        .words("authentication", |_| &record.authentication)
        .words("target", |_| &record.target)
        .words("server", |_| record.server())
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
        .words("limit", |part| or_empty(verdict(part).map(|verdict| verdict.by)))
        .words("limit_why", |part| or_empty(verdict(part).map(|verdict| verdict.why.join("; "))))
        .number("second", |part| or_empty(part.second.map(|(number, _)| number)))
        .number("scheduled", |part| part.count(|tally| tally.scheduled, None))
        .number("skipped", |part| part.count(|tally| tally.skipped, None))
        .number("sent", |part| part.count(|tally| tally.sent, Some(|second| second.sent)))
        .number("answered", |part| part.count(|tally| tally.answered, Some(|second| second.answered)))
        .number("lost", |part| part.count(|tally| tally.lost, None))
        .number("invalid", |part| part.count(|tally| tally.invalid, None))
        .number("second_failed", |part| or_empty(part.second.map(|(_, second)| second.failed)))
        .number("second_p50_us", |part| or_empty(part.second.and_then(|(_, second)| second.p50_us)))
        .number("second_p99_us", |part| or_empty(part.second.and_then(|(_, second)| second.p99_us)))
        .each(
            Cause::ALL,
            |cause| format!("cause_{cause}").replace('-', "_"),
            |part, &cause| part.count(|tally| tally.count_of(cause), None),
        )
        .number("surplus", |part| part.count(|tally| tally.surplus, None))
        .each(
            Stray::ALL,
            |stray| format!("stray_{stray}").replace('-', "_"),
            |part, stray| part.count(|tally| tally.strays.get(stray).copied().unwrap_or(0), None),
        )
        .number("negative_delays", |part| part.count(|tally| tally.negative_delays, None))
        .each(points(&TIMES), |(heading, ..)| heading.clone(), times);
    let table = of_hosts(table)
        .number("spans_joined", |part| or_empty(part.spans().map(|spans| spans.joined)))
        .number("spans_unmatched", |part| or_empty(part.spans().map(|spans| spans.unmatched)))
        .number("spans_left_out", |part| or_empty(part.spans().map(|spans| spans.left_out)))
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

/// Adds what is known of the generator, of the server and of agents.
fn of_hosts<'a>(table: Filling<Part<'a>>) -> Filling<Part<'a>> {
    table
        .number("generator_busy_share", |part| {
            let of_host = part.of_host.and_then(|host| host.busy_share);
            or_empty(of_host.or_else(|| part.whole()?.generator_busy_share))
        })
        .number("idle_share", |part| or_empty(part.evidence().and_then(|known| known.idle_share)))
        .number("preempted_share", |part| or_empty(part.evidence().and_then(|known| known.preempted_share)))
        .number("steal_share", |part| or_empty(part.evidence().and_then(|known| known.steal_share)))
        .number("stalls", |part| or_empty(part.evidence().map(|known| known.stalls.count)))
        .number("stall_longest_us", |part| or_empty(part.evidence().map(|known| known.stalls.longest_us)))
        .number("stall_total_us", |part| or_empty(part.evidence().map(|known| known.stalls.total_us)))
        .number("clock_jumps", |part| or_empty(part.evidence().map(|known| known.clock_jumps)))
        .number("dropped_unread", |part| or_empty(part.evidence().map(|known| known.drops.unread)))
        .number("dropped_send_buffer", |part| or_empty(part.evidence().map(|known| known.drops.send_buffer)))
        .number("dropped_queue", |part| or_empty(part.evidence().map(|known| known.drops.queue)))
        .number("request_size", |part| or_empty(part.whole().map(|step| step.request_size)))
        .number("response_size", |part| or_empty(part.whole().map(|step| step.response_size)))
        .number("server_cpu_seconds", |part| or_empty(server(part).map(|server| server.cpu_seconds)))
        .number("server_cpu_us_per_request", |part| {
            or_empty(server(part).and_then(|server| server.cpu_us_per_request))
        })
        .number("server_resident_size", |part| or_empty(server(part).map(|server| server.resident_size)))
        .number("server_busiest_thread_share", |part| {
            or_empty(server(part).and_then(|server| server.busiest_thread_share))
        })
        .number("server_waiting_share", |part| or_empty(server(part).and_then(|server| server.waiting_share)))
        .number("server_throttled_share", |part| {
            or_empty(server(part).and_then(|server| server.throttled_share))
        })
        .number("server_stopped_share", |part| or_empty(server(part).and_then(|server| server.stopped_share)))
        .number("server_udp_read", |part| or_empty(part.traffic().map(|traffic| traffic.read)))
        .number("server_udp_full", |part| or_empty(part.traffic().map(|traffic| traffic.full)))
        .number("server_udp_sent", |part| or_empty(part.traffic().map(|traffic| traffic.sent)))
        .number("start_skew_us", |part| or_empty(part.of_host.map(|host| host.start_skew_us)))
        .number("start_skew_error_us", |part| or_empty(part.of_host.map(|host| host.start_skew_error_us)))
        .words("host_version", |part| or_empty(part.of_host.and_then(|host| host.version.as_ref())))
        .words("host_cpu", |part| or_empty(part.of_host.and_then(|host| host.cpu.as_ref())))
        .number("host_cpu_count", |part| or_empty(part.of_host.and_then(|host| host.cpu_count)))
        .number("host_online_cpu_count", |part| or_empty(part.of_host.and_then(|host| host.online_cpu_count)))
        .number("host_cpu_quota_millicpus", |part| {
            or_empty(part.of_host.and_then(|host| host.cpu_quota_millicpus))
        })
        .words("host_kernel", |part| or_empty(part.of_host.and_then(|host| host.kernel.as_ref())))
}

fn verdict<'a>(part: &Part<'a>) -> Option<&'a Verdict> {
    part.whole()?.limit.as_ref()
}

fn server(part: &Part<'_>) -> Option<ServerUse> {
    part.whole()?.server
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::record;

    /// The fields of each line, of a record that needs no quotes.
    fn table(record: &LoadRecord) -> Vec<Vec<String>> {
        let mut record = record.clone();
        let verdicts = record.steps.iter_mut().filter_map(|step| step.limit.as_mut());
        verdicts.for_each(|verdict| verdict.why.clear());
        csv(&record).lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn every_line_has_every_column() {
        let mut record = record();
        record.steps[3].why_invalid = None;
        let table = table(&record);
        assert!(table.iter().all(|line| line.len() == table[0].len()));
        // Four steps; two tallies of key exchanges, one of background; two hosts and two seconds in each step.
        let part = table[0].iter().position(|column| column == "part").unwrap();
        let kinds = ["step", "accompanying", "background", "host", "second"];
        let counts = kinds.map(|kind| table.iter().filter(|line| line[part] == kind).count());
        assert_eq!(counts, [4, 2, 1, 8, 8]);
        let names: std::collections::HashSet<&String> = table[0].iter().collect();
        assert_eq!(names.len(), table[0].len(), "two columns have one name");
    }

    #[test]
    fn causes_of_every_line_add_up_to_its_failures() {
        let table = table(&record());
        let column = |name: &str| table[0].iter().position(|column| column == name).unwrap();
        let number = |line: &[String], name: &str| line[column(name)].parse::<u64>().unwrap();
        for line in table[1..].iter().filter(|line| line[column("part")] != "second") {
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
        assert!(csv.contains(",false,\"late, \"\"very\"\"\nlate\",generator,"), "{csv}");
        assert!(csv.contains(",host,\"a,b\",transfer,"), "{csv}");
    }
}
