//! The tables of a load run.

use crate::load::ceiling::{Ip, LINKS_GBPS, requests_per_second};
use crate::load::text::{Rows, lost_percent, skew};
use crate::load::words::{REPORTED, antp_times, facts_of, remarks, spoilt, why};
use crate::load::{Cause, Drops, HostPart, LoadRecord, Point, ServerUse, Step, Traffic, selected};
use crate::render::{Medium, Table, Weight, or_absent, or_empty};
use crate::units::{count, difference, memory, microseconds, rate, seconds, signed_microseconds};

/// Steps in order. The columns of figures are the same in every run. The text has as much of the remarks as fits.
pub(super) fn steps(record: &LoadRecord) -> Table {
    let (rows, ip) = (Rows::new(&record.address), Ip::of(&record.address));
    let names = ["Offered/s", "Sent/s", "Answered/s", "Lost %", "Invalid", "p50", "p99"];
    let heading = |&(column, name): &(usize, &'static str)| (name, Rows::HEADINGS[column]);
    let table = Table::of("Steps", record.steps.iter().map(|step| (step, rows.cells(step))))
        .weighed(|(step, _)| Weight::of(step.valid))
        .each(names.into_iter().enumerate(), heading, |(_, cells), &(column, _)| cells[column].clone())
        .words_on(Medium::Page, "Remarks", |(step, _)| remarks(step, ip).join("; "))
        .words_on(Medium::Text, "remarks", |(step, _)| rows.short_remark(step))
        .table();
    Table { widths: Some(&Rows::WIDTHS), ..table }
}

/// Percentiles of latency, from the send to the due instant; nothing if there was no answer.
pub(super) fn latency(record: &LoadRecord) -> Option<Table> {
    let steps = record.steps.iter().filter(|step| step.tally.latency_us.is_some());
    let table = Table::of("Latency", steps)
        .weighed(|step| Weight::of(step.valid))
        .number(("Offered/s", "offered/s"), |step| offered(step))
        .each(REPORTED, ToString::to_string, |step, &point| or_absent(step.tally.interval(point)))
        .words(("Generator's part", ""), |step| or_empty(spoilt(&step.tally)))
        .table();
    Some(table).filter(|table| !table.rows.is_empty())
}

/// What limited each step, and why that is said; nothing if no step tells.
pub(super) fn limits(record: &LoadRecord) -> Option<Table> {
    let steps = record.steps.iter().filter_map(|step| Some((step, step.limit.as_ref()?)));
    let table = Table::of("What limited each step", steps)
        .weighed(|(step, _)| Weight::of(step.valid))
        .number(("Offered/s", "offered/s"), |(step, _)| offered(step))
        .words(("Limit", "limit"), |(_, verdict)| verdict.by)
        .words(("Why", "why"), |(_, verdict)| facts_of(verdict))
        .table();
    Some(table).filter(|table| !table.rows.is_empty())
}

/// What is known of the generator's hosts; nothing if no step tells.
pub(super) fn generator(record: &LoadRecord) -> Option<Table> {
    let percent = |share: Option<f64>| or_absent(share.map(|share| format!("{:.0} %", share * 100.0)));
    let late = |step: &&Step, point: Point| {
        or_absent(step.lateness_us.and_then(|lateness| lateness.at(point)).map(microseconds))
    };
    let has_evidence = record.steps.iter().any(|step| step.evidence.is_some());
    let is_known = |step: &Step| step.lateness_us.is_some() || step.generator_busy_share.is_some();
    if !has_evidence && !record.steps.iter().any(is_known) {
        return None;
    }
    let mut table = Table::of("The generator", &record.steps)
        .weighed(|step| Weight::of(step.valid))
        .number(("Offered/s", "offered/s"), |step| offered(step))
        .number(("Sent late p50", "late p50"), |step| late(step, Point::P50))
        .number(("Sent late p95", "late p95"), |step| late(step, Point::P95))
        .number(("Sent late p99", "late p99"), |step| late(step, Point::P99))
        .number(("Sent late p99.9", "late p99.9"), |step| late(step, Point::P999))
        .number(("Sent late p99.99", "late p99.99"), |step| late(step, Point::P9999))
        .number(("Busy", "busy"), |step| percent(step.generator_busy_share));
    if has_evidence {
        let of = |step: &&Step| step.evidence.clone().unwrap_or_default();
        table = table
            .number(("Idle", "idle"), |step| percent(of(step).idle_share))
            .number(("Preempted", "preempted"), |step| percent(of(step).preempted_share))
            .number(("Steal", "steal"), |step| percent(of(step).steal_share))
            .number(("Stalls", "stalls"), |step| {
                or_absent(step.evidence.as_ref().map(|known| count(known.stalls.count)))
            })
            .number(("Longest stall", "longest"), |step| {
                let stalls = of(step).stalls;
                or_absent((stalls.count > 0).then(|| microseconds(stalls.longest_us)))
            })
            .number(("Clock set", "clock set"), |step| {
                or_absent(step.evidence.as_ref().map(|known| count(known.clock_jumps)))
            })
            .number(("Dropped: unread / buffer / queue", "dropped"), |step| {
                or_absent(step.evidence.as_ref().map(|known| {
                    let Drops { unread, send_buffer, queue } = known.drops;
                    format!("{}/{}/{}", count(unread), count(send_buffer), count(queue))
                }))
            });
    }
    Some(table.table())
}

fn offered(step: &Step) -> String {
    or_absent(step.offered_rps.map(rate))
}

/// Phases and the client's own cryptography; nothing if no step has them.
pub(super) fn antp(record: &LoadRecord) -> Option<Table> {
    let rows = record.steps.iter().filter_map(|step| Some((step, antp_times(step)?)));
    let table = Table::of("ANTP", rows)
        .number("Offered/s", |(step, _)| offered(step))
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

/// The server's processes and its host, and the clocks; nothing if no step tells.
pub(super) fn server(record: &LoadRecord) -> Option<Table> {
    let server = |step: &&Step| step.server.filter(|_| step.seconds > 0.0);
    let offset = |step: &&Step, point: Point| {
        or_absent(step.tally.offset_us.and_then(|offset| offset.at(point)).map(signed_microseconds))
    };
    let share = |step: &&Step, get: fn(&ServerUse) -> Option<f64>| {
        let share = step.server.as_ref().and_then(get);
        or_absent(share.map(|share| format!("{:.0} %", share * 100.0)))
    };
    let is_known = |step: &Step| step.server.is_some() || step.tally.offset_us.is_some();
    let has_traffic =
        record.steps.iter().any(|step| step.server.is_some_and(|server| server.traffic.is_some()));
    let mut table = Table::of("The server and the clocks", &record.steps)
        .weighed(|step| Weight::of(step.valid))
        .number(("Offered/s", "offered/s"), |step| offered(step))
        .number(("Offset p50", "offset p50"), |step| offset(step, Point::P50))
        .number(("Offset p95", "offset p95"), |step| offset(step, Point::P95))
        .number(("Offset p99", "offset p99"), |step| offset(step, Point::P99))
        .number(("Offset p99.99", "offset p99.99"), |step| offset(step, Point::P9999))
        .number(("Negative delays", "negative delays"), |step| count(step.tally.negative_delays))
        .number(("CPU per request", "server/request"), |step| {
            or_absent(step.server.and_then(|server| server.cpu_us_per_request).map(microseconds))
        })
        .number(("CPU", "server"), |step| {
            or_absent(
                server(step).map(|server| format!("{:.0} %", 100.0 * server.cpu_seconds / step.seconds)),
            )
        })
        .number(("Its busiest thread", "busiest thread"), |step| {
            share(step, |server| server.busiest_thread_share)
        })
        .number(("Memory", "memory"), |step| {
            or_absent(step.server.map(|server| memory(server.resident_size)))
        });
    if record.steps.iter().any(|step| step.server.is_some_and(|server| server.waiting_share.is_some())) {
        table = table
            .number(("It waited", "waited"), |step| share(step, |server| server.waiting_share))
            .number(("Its quota", "quota"), |step| share(step, |server| server.throttled_share))
            .number(("Stopped", "stopped"), |step| share(step, |server| server.stopped_share));
    }
    if has_traffic {
        let traffic = |step: &&Step, get: fn(&Traffic) -> u64| {
            or_absent(step.server.and_then(|server| server.traffic).map(|traffic| count(get(&traffic))))
        };
        table = table
            .number(("Its host read", "read"), |step| traffic(step, |traffic| traffic.read))
            .number(("Found its socket full", "socket full"), |step| traffic(step, |traffic| traffic.full))
            .number(("Its host sent", "sent"), |step| traffic(step, |traffic| traffic.sent));
    }
    record.steps.iter().any(is_known).then(|| table.table())
}

/// What each agent ran on; nothing if none says so.
pub(super) fn agents(record: &LoadRecord) -> Option<Table> {
    let mut parts: Vec<&HostPart> = Vec::new();
    for part in record.steps.iter().flat_map(|step| &step.hosts) {
        let is_told = [&part.version, &part.cpu, &part.kernel].iter().any(|told| told.is_some());
        if is_told && parts.iter().all(|known| known.name != part.name) {
            parts.push(part);
        }
    }
    let table = Table::of("Agents", parts)
        .words(("Agent", "agent"), |part| &part.name)
        .words(("Processor", "processor"), |part| or_absent(part.cpu.as_ref()))
        .number(("Processors to use", "to use"), |part| or_absent(part.cpu_count))
        .number(("Processors online", "online"), |part| or_absent(part.online_cpu_count))
        .words(("Kernel", "kernel"), |part| or_absent(part.kernel.as_ref()))
        .words(("authentick", "authentick"), |part| or_absent(part.version.as_ref()))
        .table();
    Some(table).filter(|table| !table.rows.is_empty())
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
        .number(("Answered/s", "answered/s"), |(step, _, tally)| rate(step.answered_rps_of(tally)))
        .number(("Lost %", "lost %"), |(.., tally)| lost_percent(tally))
        .number(("Busy", "busy"), |(step, part, _)| {
            let share = part.map_or(step.generator_busy_share, |part| part.busy_share);
            or_absent(share.map(|share| format!("{:.0} %", share * 100.0)))
        })
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
    let rows =
        steps.flat_map(|(step, spans)| spans.shown(&record.scheme).map(move |measure| (step, measure)));
    let table = Table::of("Spans", rows)
        .words(("Measure", "measure"), |(_, measure)| measure.name)
        .number(("Offered/s", "offered/s"), |(step, _)| offered(step))
        .number(("Exchanges", "exchanges"), |(_, measure)| count(measure.times_ns.count()))
        .number(("Mean", "mean"), |(_, measure)| {
            or_absent(measure.times_ns.mean().map(|mean| difference(mean.round() as i64)))
        })
        .number("p50", |(_, measure)| or_absent(measure.times_ns.quantile(0.5).map(difference)))
        .number("p95", |(_, measure)| or_absent(measure.times_ns.quantile(0.95).map(difference)))
        .number("p99", |(_, measure)| or_absent(measure.times_ns.quantile(0.99).map(difference)))
        .number("p99.99", |(_, measure)| or_absent(measure.times_ns.quantile(0.9999).map(difference)))
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
