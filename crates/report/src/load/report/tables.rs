//! The tables of a load run.

use crate::load::ceiling::{Ip, LINKS_GBPS, requests_per_second};
use crate::load::text::{Rows, lost_percent, skew};
use crate::load::words::{antp_times, remarks, why};
use crate::load::{Cause, HostPart, LoadRecord, Percentiles, Step, selected};
use crate::render::{ABSENT, Medium, Table, Weight, or_absent};
use crate::units::{count, difference, memory, microseconds, rate, seconds, signed_microseconds};

/// Steps in order. The first 80 columns of the text are the same in every run.
pub(super) fn steps(record: &LoadRecord) -> Table {
    let (rows, ip) = (Rows::new(&record.address), Ip::of(&record.address));
    let names = ["Offered/s", "Sent/s", "Answered/s", "Lost %", "Invalid", "p50", "p99", "Max"];
    let figures = |columns: std::ops::Range<usize>| columns.map(|column| (column, names[column]));
    let heading = |&(column, name): &(usize, &'static str)| (name, Rows::HEADINGS[column]);
    let table = Table::of("Steps", record.steps.iter().map(|step| (step, rows.cells(step))))
        .weighed(|(step, _)| Weight::of(step.valid))
        .each(figures(0..7), heading, |(_, cells), &(column, _)| cells[column].clone())
        .number_on(Medium::Page, "p99.9", |(step, _)| {
            or_absent(step.tally.latency_us.map(|latency| microseconds(latency.p999)))
        })
        .each(figures(7..8), heading, |(_, cells), &(column, _)| cells[column].clone())
        .words(("Remarks", "remarks"), |(step, _)| remarks(step, ip).join("; "))
        .table();
    Table { widths: Some(&Rows::WIDTHS), ..table }
}

fn offered(step: &Step) -> String {
    or_absent(step.offered_rps.map(rate))
}

/// Phases and the client's own cryptography; nothing if no step has them.
pub(super) fn antp(record: &LoadRecord) -> Option<Table> {
    let rows = record.steps.iter().filter_map(|step| Some((step, antp_times(step)?)));
    let table = Table::of("ANTP", rows)
        .number("Offered per second", |(step, _)| offered(step))
        .words("Phases and the client's own cryptography", |(_, times)| times.clone())
        .table();
    Some(table).filter(|table| !table.rows.is_empty())
}

/// Causes of one kind of operation, for the text, which says above them of which.
pub(super) fn causes(causes: &[(Cause, u64)]) -> Table {
    Table::of("Failures by cause", causes)
        .words("", |(cause, _)| format!("  {cause}"))
        .number("", |&&(_, number)| count(number))
        .words("", |(cause, _)| cause.meaning())
        .table()
}

/// Causes with the operations that they are of.
pub(super) fn causes_of(all: &[(&str, Vec<(Cause, u64)>)]) -> Table {
    let rows =
        all.iter().flat_map(|(of, causes)| causes.iter().map(move |&(cause, number)| (of, cause, number)));
    Table::of("Failures by cause", rows)
        .words("Cause", |(_, cause, _)| *cause)
        .words("Of", |(of, ..)| **of)
        .number("Count", |&(.., number)| count(number))
        .words("Meaning", |(_, cause, _)| cause.meaning())
        .table()
}

/// The server's process, the generator, the clocks: what the table of steps has no room for.
pub(super) fn beside(record: &LoadRecord) -> Option<(Medium, Table)> {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let server = |step: &&Step| step.server.filter(|_| step.seconds > 0.0);
    let latency = |step: &&Step, point: fn(&Percentiles) -> f64| {
        or_absent(step.tally.latency_us.as_ref().map(point).map(microseconds))
    };
    let offset = |step: &&Step, point: fn(&Percentiles) -> f64| {
        or_absent(step.tally.offset_us.as_ref().map(point).map(signed_microseconds))
    };
    let table = Table::of("Server, generator and clocks", &record.steps)
        .weighed(|step| Weight::of(step.valid))
        .number(("Offered/s", "offered/s"), |step| offered(step))
        .number_on(Medium::Text, "p90", |step| latency(step, |latency| latency.p90))
        .number_on(Medium::Text, "p99.9", |step| latency(step, |latency| latency.p999))
        .number(("Offset p50", "offset p50"), |step| offset(step, |offset| offset.p50))
        .number(("Offset p99", "offset p99"), |step| offset(step, |offset| offset.p99))
        .number(("Sent late p99", "late p99"), |step| {
            or_absent(step.lateness_us.map(|lateness| microseconds(lateness.p99)))
        })
        .number(("Generator busy", "busy"), |step| or_absent(step.generator_busy_share.map(percent)))
        .number(("Server CPU a request", "server/request"), |step| {
            or_absent(step.server.and_then(|server| server.cpu_us_per_request).map(microseconds))
        })
        .number_on(Medium::Page, "Server CPU", |step| {
            or_absent(
                server(step).map(|server| format!("{:.0} %", 100.0 * server.cpu_seconds / step.seconds)),
            )
        })
        .number(("Server memory", "memory"), |step| {
            or_absent(step.server.map(|server| memory(server.resident_size)))
        })
        .table();
    let known =
        |from: usize| table.rows.iter().any(|row| row.cells[from..].iter().any(|cell| cell != ABSENT));
    // The text has columns of its own.
    match (known(1), known(3)) {
        (_, true) => Some((Medium::Both, table)),
        (true, false) => Some((Medium::Text, table)),
        (false, false) => None,
    }
}

/// The total of each step above what each host had of it; nothing if there was one host only.
pub(super) fn hosts(record: &LoadRecord) -> Option<Table> {
    let rows = record.steps.iter().filter(|step| !step.hosts.is_empty()).flat_map(|step| {
        let parts = step.hosts.iter().map(move |part| (step, Some(part), &part.tally));
        std::iter::once((step, None, &step.tally)).chain(parts)
    });
    let table = Table::of("Hosts", rows)
        .weighed(|(step, part, _)| match part {
            Some(part) => Weight::of(part.valid),
            None if step.valid => Weight::Total,
            None => Weight::VoidTotal,
        })
        .words(("Host", "host"), |(_, part, _)| part.map_or("total", |part| &part.name))
        .number(("Offered/s", "offered/s"), |(step, part, _)| {
            or_absent(part.map_or(step.offered_rps, |part| part.offered_rps).map(rate))
        })
        .number(("Seconds", "seconds"), |(step, ..)| seconds(step.seconds))
        .number(("Sent/s", "sent/s"), |(step, _, tally)| rate(step.per_second(tally.sent)))
        .number(("Answered/s", "answered/s"), |(step, _, tally)| rate(step.per_second(tally.answered)))
        .number(("Lost %", "lost %"), |(.., tally)| lost_percent(tally))
        .number(("Start skew", "start skew"), |(_, part, _)| {
            or_absent(part.map(|part: &HostPart| skew(part.start_skew_us, part.start_skew_error_us)))
        })
        .words(("Limit", "limit"), |(_, part, _)| match part {
            Some(part) if !part.valid => format!("its own limit: {}", why(part.why_invalid.as_ref())),
            Some(_) | None => String::new(),
        })
        .table();
    Some(table).filter(|table| !table.rows.is_empty())
}

/// The measures of the NTS study; nothing if no valid step has them.
pub(super) fn spans(record: &LoadRecord) -> Option<Table> {
    let steps = selected(&record.steps, |step| step.valid && step.spans.is_some());
    let steps = steps.into_iter().filter_map(|step| Some((step, step.spans.as_ref()?)));
    let rows = steps.flat_map(|(step, spans)| spans.measures().map(|measure| (step, measure)));
    let table = Table::of("Spans", rows)
        .words(("Measure", "measure"), |(_, measure)| measure.name)
        .number(("Offered/s", "offered/s"), |(step, _)| offered(step))
        .number(("Exchanges", "exchanges"), |(_, measure)| count(measure.times_ns.count()))
        .number(("Mean", "mean"), |(_, measure)| {
            or_absent(measure.times_ns.mean().map(|mean| difference(mean.round() as i64)))
        })
        .number("p50", |(_, measure)| or_absent(measure.times_ns.quantile(0.5).map(difference)))
        .number("p99", |(_, measure)| or_absent(measure.times_ns.quantile(0.99).map(difference)))
        .words(("What it covers", ""), |(_, measure)| measure.meaning)
        .table();
    Some(table).filter(|table| !table.rows.is_empty())
}

/// How many of the largest requests each link carries; nothing if they need fragments.
pub(super) fn wires(record: &LoadRecord, size: u32, ip: Ip) -> Option<Table> {
    let links: Option<Vec<(u32, f64)>> =
        LINKS_GBPS.into_iter().map(|link| Some((link, requests_per_second(link, size, ip)?))).collect();
    let best = record.highest_answered().map(Step::answered_rps);
    let table = Table::of("What wires carry", links?)
        .words("Link", |(link, _)| format!("{link}\u{a0}Gbit/s"))
        .number("Requests/s", |&(_, ceiling)| rate(ceiling))
        .number("Filled at the best valid step, %", |(_, ceiling)| {
            or_absent(best.map(|best| match 100.0 * best / ceiling {
                ..0.1 => "<0.1".to_owned(),
                share => format!("{share:.1}"),
            }))
        });
    Some(table.table())
}
