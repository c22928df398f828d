//! The tables of a load run.

use crate::load::ceiling::{Ip, LINKS_GBPS, requests_per_second};
use crate::load::text::{Rows, lost_percent, skew};
use crate::load::words::{antp_times, remarks, why};
use crate::load::{Cause, LoadRecord, Step, Tally, selected};
use crate::render::{ABSENT, Column, Medium, Row, Table, Weight, or_absent};
use crate::units::{count, memory, microseconds, rate, seconds, signed_time};

/// Steps as they came. The first 80 columns of the text are the same in every run.
pub(super) fn steps(record: &LoadRecord) -> Table {
    let [offered, sent, answered, lost, invalid, p50, p99, max] = Rows::HEADINGS;
    let columns = [
        Column::number("Offered/s").short(offered),
        Column::number("Sent/s").short(sent),
        Column::number("Answered/s").short(answered),
        Column::number("Lost %").short(lost),
        Column::number("Invalid").short(invalid),
        Column::number("p50").short(p50),
        Column::number("p99").short(p99),
        Column::number("p99.9").only(Medium::Page),
        Column::number("Max").short(max),
        Column::words("Remarks").short("remarks"),
    ];
    let mut table = Table::new("Steps", columns);
    table.widths = Some(&Rows::WIDTHS);
    let (rows, ip) = (Rows::new(&record.address), Ip::of(&record.address));
    table.rows = record
        .steps
        .iter()
        .map(|step| {
            let mut cells = rows.cells(step).to_vec();
            cells.insert(7, or_absent(step.tally.latency_us.map(|latency| microseconds(latency.p999))));
            cells.push(remarks(step, ip).join("; "));
            Row { weight: Weight::of(step.valid), cells }
        })
        .collect();
    table
}

fn offered(step: &Step) -> String {
    or_absent(step.offered_rps.map(rate))
}

/// Phases and the client's own cryptography; nothing if no step has them.
pub(super) fn antp(record: &LoadRecord) -> Option<Table> {
    let columns =
        [Column::number("Offered per second"), Column::words("Phases and the client's own cryptography")];
    let rows = record.steps.iter().filter_map(|step| Some(vec![offered(step), antp_times(step)?]));
    Some(Table::new("ANTP", columns).with(rows)).filter(|table| !table.rows.is_empty())
}

/// Causes of one kind of operation, for the text, which says above them of which.
pub(super) fn causes(causes: &[(Cause, u64)]) -> Table {
    let columns = [Column::words("").short(""), Column::number("").short(""), Column::words("").short("")];
    let row = |&(cause, number): &(Cause, u64)| {
        vec![format!("  {cause}"), count(number), cause.meaning().to_owned()]
    };
    Table::new("Failures by cause", columns).with(causes.iter().map(row))
}

/// Causes with the operations that they are of.
pub(super) fn causes_of(all: &[(&str, Vec<(Cause, u64)>)]) -> Table {
    let rows = all.iter().flat_map(|(of, causes)| causes.iter().map(move |cause| (of, cause)));
    let row = |(of, &(cause, number)): (&&str, &(Cause, u64))| {
        vec![cause.to_string(), (*of).to_owned(), count(number), cause.meaning().to_owned()]
    };
    Table::headed("Failures by cause", ["Cause", "Of", "Count", "Meaning"], &[1, 3]).with(rows.map(row))
}

/// The server's process, the generator, the clocks: what the table of steps has no room for.
pub(super) fn beside(record: &LoadRecord) -> Option<(Medium, Table)> {
    let columns = [
        Column::number("Offered/s").short("offered/s"),
        Column::number("").short("p90").only(Medium::Text),
        Column::number("").short("p99.9").only(Medium::Text),
        Column::number("Offset p50").short("offset p50"),
        Column::number("Offset p99").short("offset p99"),
        Column::number("Sent late p99").short("late p99"),
        Column::number("Generator busy").short("busy"),
        Column::number("Server CPU a request").short("server/request"),
        Column::number("Server CPU").only(Medium::Page),
        Column::number("Server memory").short("memory"),
    ];
    let mut table = Table::new("Server, generator and clocks", columns);
    table.rows = record.steps.iter().map(beside_row).collect();
    let known =
        |from: usize| table.rows.iter().any(|row| row.cells[from..].iter().any(|cell| cell != ABSENT));
    // The text has columns of its own.
    match (known(1), known(3)) {
        (_, true) => Some((Medium::Both, table)),
        (true, false) => Some((Medium::Text, table)),
        (false, false) => None,
    }
}

fn beside_row(step: &Step) -> Row {
    let signed = |us: f64| signed_time((us * 1000.0).round() as i64);
    let share = |seconds: f64| format!("{:.0} %", 100.0 * seconds / step.seconds);
    let Tally { latency_us, offset_us, .. } = step.tally;
    let cells = [
        step.offered_rps.map(rate),
        latency_us.map(|latency| microseconds(latency.p90)),
        latency_us.map(|latency| microseconds(latency.p999)),
        offset_us.map(|offset| signed(offset.p50)),
        offset_us.map(|offset| signed(offset.p99)),
        step.lateness_us.map(|lateness| microseconds(lateness.p99)),
        step.generator_busy_share.map(|share| format!("{:.0} %", share * 100.0)),
        step.server.and_then(|server| server.cpu_us_per_request).map(microseconds),
        step.server.filter(|_| step.seconds > 0.0).map(|server| share(server.cpu_seconds)),
        step.server.map(|server| memory(server.resident_size)),
    ];
    Row { weight: Weight::of(step.valid), cells: cells.map(or_absent).to_vec() }
}

/// The total of each step above what each host had of it; nothing if there was one host only.
pub(super) fn hosts(record: &LoadRecord) -> Option<Table> {
    let columns = [
        Column::words("Host").short("host"),
        Column::number("Offered/s").short("offered/s"),
        Column::number("Seconds").short("seconds"),
        Column::number("Sent/s").short("sent/s"),
        Column::number("Answered/s").short("answered/s"),
        Column::number("Lost %").short("lost %"),
        Column::number("Start skew").short("start skew"),
        Column::words("Limit").short("limit"),
    ];
    let mut table = Table::new("Hosts", columns);
    for step in record.steps.iter().filter(|step| !step.hosts.is_empty()) {
        let cells = |name: &str, offered: Option<f64>, tally: &Tally, skew: Option<String>, limit: String| {
            vec![
                name.to_owned(),
                or_absent(offered.map(rate)),
                seconds(step.seconds),
                rate(step.per_second(tally.sent)),
                rate(step.per_second(tally.answered)),
                lost_percent(tally),
                or_absent(skew),
                limit,
            ]
        };
        let total = cells("total", step.offered_rps, &step.tally, None, String::new());
        let weight = if step.valid { Weight::Total } else { Weight::VoidTotal };
        table.rows.push(Row { weight, cells: total });
        table.rows.extend(step.hosts.iter().map(|part| {
            let skew = Some(skew(part.start_skew_us, part.start_skew_error_us));
            let limit = match part.valid {
                true => String::new(),
                false => format!("its own limit: {}", why(part.why_invalid.as_ref())),
            };
            let cells = cells(&part.name, part.offered_rps, &part.tally, skew, limit);
            Row { weight: Weight::of(part.valid), cells }
        }));
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The measures of the NTS study; nothing if no valid step has them.
pub(super) fn spans(record: &LoadRecord) -> Option<Table> {
    let columns = [
        Column::words("Measure").short("measure"),
        Column::number("Offered/s").short("offered/s"),
        Column::number("Exchanges").short("exchanges"),
        Column::number("Mean").short("mean"),
        Column::number("p50"),
        Column::number("p99"),
        Column::words("What it covers").short(""),
    ];
    let steps = selected(&record.steps, |step| step.valid && step.spans.is_some());
    let steps = steps.iter().filter_map(|step| Some((step, step.spans.as_ref()?)));
    let rows = steps.flat_map(|(step, spans)| {
        spans.measures().map(|measure| {
            let at = |share| or_absent(measure.times_ns.quantile(share).map(span));
            vec![
                measure.name.to_owned(),
                offered(step),
                count(measure.times_ns.count()),
                or_absent(measure.times_ns.mean().map(|mean| span(mean.round() as i64))),
                at(0.5),
                at(0.99),
                measure.meaning.to_owned(),
            ]
        })
    });
    Some(Table::new("Spans", columns).with(rows)).filter(|table| !table.rows.is_empty())
}

/// A span; a difference of two clocks' readings may be negative.
fn span(ns: i64) -> String {
    signed_time(ns).trim_start_matches('+').to_owned()
}

/// How many of the largest requests each link carries; nothing if they need fragments.
pub(super) fn wires(record: &LoadRecord, size: u32, ip: Ip) -> Option<Table> {
    let table =
        Table::headed("What wires carry", ["Link", "Requests/s", "Filled at the best valid step, %"], &[]);
    let rows: Option<Vec<Vec<String>>> = LINKS_GBPS
        .into_iter()
        .map(|link| {
            let ceiling = requests_per_second(link, size, ip)?;
            let share = record.highest_answered().map(|step| 100.0 * step.answered_rps() / ceiling);
            let share =
                share.map(|share| if share < 0.1 { "<0.1".to_owned() } else { format!("{share:.1}") });
            Some(vec![format!("{link}\u{a0}Gbit/s"), rate(ceiling), or_absent(share)])
        })
        .collect();
    rows.map(|rows| table.with(rows))
}
