//! Load runs as one HTML page that needs nothing else: one run with its plots, or several side by side with ratios.
//!
//! What a page is made of is in `crate::page`, which plots it has in `figures`. Every text of a record is escaped.

use super::ceiling::{Ip, LINKS_GBPS, requests_per_second};
use super::compare::{At, Comparison, against};
use super::figures::{RUN_COUNT_MAX, Run, carried, causes, distributions, latency, spans};
use super::text::{lost_percent, skew, span};
use super::words::{
    antp_times, capacity, causes_of_run, generator, operations, operations_of, plural, remarks, shape, why,
};
use super::{LOAD_STYLE, LoadRecord, Percentiles, Step, Tally, selected};
use crate::page::{Escaped, Page, Row, cell};
use crate::units::{count, memory, microseconds, rate, ratio, signed_time, typeset, utc};

const TITLE: &str = "A time server under load";
/// The class of a row that says nothing about the server.
const VOID: &str = "void";
/// The names of runs on a page of several.
const LETTERS: [&str; 26] = [
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S", "T", "U",
    "V", "W", "X", "Y", "Z",
];

/// The page for one run, or for several; the first of several is what the others are compared with.
///
/// # Panics
/// If there are more than 26 records: there are no letters for them.
#[must_use]
pub fn page(records: &[&LoadRecord]) -> String {
    assert!(records.len() <= LETTERS.len(), "a page names its runs by letters");
    let letter = |index: usize| if records.len() == 1 { "" } else { LETTERS[index] };
    let runs: Vec<Run<'_>> =
        records.iter().enumerate().map(|(index, &record)| Run { letter: letter(index), record }).collect();
    let mut page = Page::new(TITLE, LOAD_STYLE);
    for run in &runs {
        opening(&mut page, *run);
    }
    findings(&mut page, &runs);
    if let Some((first, others)) = runs.split_first() {
        for other in others {
            side_by_side(&mut page, *other, *first);
        }
    }
    if runs.iter().any(|run| has_plots(run.record)) {
        page.heading("What was answered");
        carried(&mut page, &runs);
        page.heading("Latency against the rate");
        latency(&mut page, &runs);
    }
    page.heading("How long answers took");
    distributions(&mut page, &runs);
    for &run in &runs {
        steps(&mut page, run);
        antp(&mut page, run);
        failures(&mut page, run);
        beside(&mut page, run);
        hosts(&mut page, run);
        study_spans(&mut page, run);
    }
    notes(&mut page, &runs);
    page.finish()
}

/// Whether there are two rates to draw a line through.
fn has_plots(record: &LoadRecord) -> bool {
    record.steps.iter().any(|step| step.rate_rps() != record.steps[0].rate_rps())
}

/// ` of A`, or nothing if there is one run only.
fn of(run: Run<'_>) -> String {
    if run.letter.is_empty() { String::new() } else { format!(" of {}", run.letter) }
}

/// What begins a sentence.
fn begun(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What was loaded, how, and on what.
fn opening(page: &mut Page, run: Run<'_>) {
    let record = run.record;
    match run.letter {
        "" => page.add(format_args!("<p>")),
        letter => page.add(format_args!("<p><strong>{letter}</strong>: ")),
    }
    let host = &record.host;
    page.add(format_args!(
        "{} of <strong>{}</strong> went to <strong>{}</strong> over the path <strong>{}</strong>: {}. ",
        begun(operations(&record.scheme)),
        Escaped(&record.label()),
        Escaped(&record.target),
        Escaped(&record.path),
        Escaped(&shape(record)),
    ));
    page.add(format_args!(
        "The run started on <span class=\"unbroken\">{}</span> with the command <code>{}</code> (authentick {}, \
         commit <code>{}</code>, engine {}) on {}, {}, {}.</p>\n",
        utc(record.started_unix_s),
        Escaped(&record.command),
        Escaped(&record.version),
        Escaped(&record.commit),
        Escaped(&record.engine),
        Escaped(&host.cpu),
        plural(u64::from(host.cpu_count), "processor"),
        Escaped(&host.kernel),
    ));
    if let Some(why) = &record.interrupted {
        page.add(format_args!(
            "<p class=\"warning\"><strong>The run was interrupted</strong>: {}. What follows is of the steps that \
             ended.</p>\n",
            Escaped(why)
        ));
    }
}

/// The results in words.
fn findings(page: &mut Page, runs: &[Run<'_>]) {
    page.add(format_args!("<ul class=\"findings\">\n"));
    for run in runs {
        let record = run.record;
        let colon = if run.letter.is_empty() { "" } else { ": " };
        page.add(format_args!(
            "<li>{}{colon}<strong>Capacity</strong>: {}</li>\n",
            run.letter,
            Escaped(&capacity(record).replace(" %", "\u{a0}%"))
        ));
        if let Some((step, latency)) = best(record) {
            let size = |us| typeset(&microseconds(us));
            page.add(format_args!(
                "<li>{}{colon}At {}/s half of the answers took at most <strong>{}</strong>, 99\u{a0}% at most \
                 <strong>{}</strong>.</li>\n",
                run.letter,
                rate(step.rate_rps()),
                size(latency.p50),
                size(latency.p99)
            ));
        }
        let invalid = record.steps.iter().filter(|step| !step.valid).count() as u64;
        if invalid > 0 {
            page.add(format_args!(
                "<li class=\"warning\">{}{colon}<strong>{} invalid</strong>: the generator did not do its part, so \
                 {} nothing about the server.</li>\n",
                run.letter,
                plural(invalid, "step"),
                if invalid == 1 { "it says" } else { "they say" },
            ));
        }
    }
    page.add(format_args!("</ul>\n"));
}

/// The valid step that stands for the run: the highest rate within the capacity, or the one that answered most.
fn best(record: &LoadRecord) -> Option<(&Step, Percentiles)> {
    let within =
        |step: &&Step| step.valid && record.capacity_rps.is_some_and(|capacity| step.rate_rps() <= capacity);
    let highest =
        record.steps.iter().filter(within).max_by(|left, right| left.rate_rps().total_cmp(&right.rate_rps()));
    let step = highest.or_else(|| record.highest_answered())?;
    Some((step, step.tally.latency_us?))
}

/// A run beside the first one.
fn side_by_side(page: &mut Page, run: Run<'_>, first: Run<'_>) {
    let comparison = against(run.record, first.record);
    let (new, old) = (run.letter, first.letter);
    page.heading(&format!("{new} against {old}"));
    page.add(format_args!("<p class=\"finding\">{}</p>\n", Escaped(&comparison.finding())));
    if !comparison.differences.is_empty() {
        page.add(format_args!("<p>What is not alike (new is {new}, old is {old}):</p>\n<ul>\n"));
        for difference in &comparison.differences {
            page.add(format_args!("<li>{}</li>\n", Escaped(difference)));
        }
        page.add(format_args!("</ul>\n"));
    }
    pairs(page, &comparison, new, old);
}

fn pairs(page: &mut Page, comparison: &Comparison, new: &str, old: &str) {
    if comparison.pairs.is_empty() {
        return page.add(format_args!("<p>No rate was offered in a valid step of both.</p>\n"));
    }
    let headings = [
        "Offered/s".to_owned(),
        format!("{new} answered/s"),
        format!("{old} answered/s"),
        format!("{new}\u{a0}/\u{a0}{old}"),
        format!("{new} p50"),
        format!("{old} p50"),
        format!("{new} p99"),
        format!("{old} p99"),
        format!("p99 {new}\u{a0}/\u{a0}{old}"),
    ];
    let headings = headings.each_ref().map(String::as_str);
    let rows = comparison.pairs.iter().map(|pair| {
        let point =
            |at: &At, get: fn(&Percentiles) -> f64| cell(at.latency_us.as_ref().map(get).map(microseconds));
        vec![
            rate(pair.offered_rps),
            rate(pair.new.answered_rps),
            rate(pair.old.answered_rps),
            cell(pair.answered_ratio().map(ratio)),
            point(&pair.new, |latency| latency.p50),
            point(&pair.old, |latency| latency.p50),
            point(&pair.new, |latency| latency.p99),
            point(&pair.old, |latency| latency.p99),
            cell(pair.p99_ratio().map(ratio)),
        ]
    });
    page.table("Both runs at equal rates", &headings, |_| false, rows);
}

fn steps(page: &mut Page, run: Run<'_>) {
    let record = run.record;
    page.heading(&format!("Steps{}", of(run)));
    if record.steps.is_empty() {
        return page.add(format_args!("<p>No step was measured.</p>\n"));
    }
    let headings = [
        "Offered/s",
        "Sent/s",
        "Answered/s",
        "Lost\u{a0}%",
        "Invalid",
        "p50",
        "p99",
        "p99.9",
        "Max",
        "Remarks",
    ];
    let ip = Ip::of(&record.address);
    let rows = record.steps.iter().map(|step| {
        let latency = step.tally.latency_us;
        let point = |get: fn(Percentiles) -> f64| cell(latency.map(get).map(microseconds));
        let cells = vec![
            cell(step.offered_rps.map(rate)),
            rate(step.sent_rps()),
            rate(step.answered_rps()),
            lost_percent(&step.tally),
            count(step.tally.invalid),
            point(|latency| latency.p50),
            point(|latency| latency.p99),
            point(|latency| latency.p999),
            point(|latency| latency.max),
            remarks(step, ip).join("; ").replace(" %", "\u{a0}%").replace(" GbE", "\u{a0}GbE"),
        ];
        Row { class: if step.valid { "" } else { VOID }, cells }
    });
    page.rows("Steps", &headings, |column| column == 9, rows);
}

/// What is known of ANTP alone: phases, and the client's own cryptography.
fn antp(page: &mut Page, run: Run<'_>) {
    let headings = ["Offered per second", "Phases and the client's own cryptography"];
    let mut rows = run.record.steps.iter().filter_map(|step| {
        let offered = cell(step.offered_rps.map(rate));
        Some(vec![offered, antp_times(step)?])
    });
    if let Some(first) = rows.next() {
        page.heading(&format!("ANTP{}: phases and the client's cryptography", of(run)));
        page.table("ANTP", &headings, |column| column == 1, std::iter::once(first).chain(rows));
    }
}

fn failures(page: &mut Page, run: Run<'_>) {
    let record = run.record;
    let measured = causes_of_run(&record.steps, |step| Some(&step.tally));
    let accompanying = causes_of_run(&record.steps, |step| step.accompanying.as_ref());
    if measured.is_empty() && accompanying.is_empty() {
        return;
    }
    page.heading(&format!("Failures{} by cause", of(run)));
    causes(page, run);
    let beside = record.steps.iter().find_map(|step| step.accompanying.as_ref()).map_or("", operations_of);
    let measured = measured.into_iter().map(|cause| (operations(&record.scheme), cause));
    let rows = measured.chain(accompanying.into_iter().map(|cause| (beside, cause)));
    let rows = rows.map(|(of, (cause, number))| {
        vec![cause.name().to_owned(), of.to_owned(), count(number), cause.meaning().to_owned()]
    });
    page.table("Failures by cause", &["Cause", "Of", "Count", "Meaning"], |column| column != 2, rows);
}

/// The server's process, the generator, the clocks.
fn beside(page: &mut Page, run: Run<'_>) {
    let record = run.record;
    let known = |step: &Step| {
        step.server.is_some()
            || step.tally.offset_us.is_some()
            || step.lateness_us.is_some()
            || step.generator_busy_share.is_some()
    };
    if !record.steps.iter().any(known) {
        return;
    }
    page.heading(&format!("Server, generator and clocks{}", of(run)));
    let clock = match record.shared_clock {
        true => "Client and server read the same clock: the true offset is zero, so an offset is an error.",
        false => "The true offset is unknown, as client and server read different clocks.",
    };
    let generator = generator(record).map_or_else(String::new, |text| format!(" Of the generator: {text}."));
    let generator = generator.replace(" us ", "\u{a0}\u{b5}s ").replace(" %", "\u{a0}%");
    page.add(format_args!("<p>{clock}{}</p>\n", Escaped(&generator)));
    let headings = [
        "Offered/s",
        "Server CPU a request",
        "Server CPU",
        "Server memory",
        "Offset p50",
        "Offset p99",
        "Sent late p99",
        "Generator busy",
    ];
    let rows = record.steps.iter().map(|step| {
        let signed = |us: f64| signed_time((us * 1000.0).round() as i64);
        let share = |seconds: f64| format!("{:.0} %", 100.0 * seconds / step.seconds);
        let cells = vec![
            cell(step.offered_rps.map(rate)),
            cell(step.server.and_then(|server| server.cpu_us_per_request).map(microseconds)),
            cell(step.server.filter(|_| step.seconds > 0.0).map(|server| share(server.cpu_seconds))),
            cell(step.server.map(|server| memory(server.resident_size))),
            cell(step.tally.offset_us.map(|offset| signed(offset.p50))),
            cell(step.tally.offset_us.map(|offset| signed(offset.p99))),
            cell(step.lateness_us.map(|lateness| microseconds(lateness.p99))),
            cell(step.generator_busy_share.map(|share| format!("{:.0} %", share * 100.0))),
        ];
        Row { class: if step.valid { "" } else { VOID }, cells }
    });
    page.rows("Server, generator and clocks", &headings, |_| false, rows);
}

/// Spectracom's Table 2: the total of each step above what each host had of it.
fn hosts(page: &mut Page, run: Run<'_>) {
    let record = run.record;
    if record.steps.iter().all(|step| step.hosts.is_empty()) {
        return;
    }
    page.heading(&format!("Hosts{}", of(run)));
    page.add(format_args!(
        "<p>A host that did not do its part is named as its own limit: what it lacks says nothing about the \
         server.</p>\n"
    ));
    let headings =
        ["Host", "Offered/s", "Seconds", "Sent/s", "Answered/s", "Lost\u{a0}%", "Start skew", "Limit"];
    let mut rows = Vec::new();
    for step in record.steps.iter().filter(|step| !step.hosts.is_empty()) {
        let cells = |name: &str, offered: Option<f64>, tally: &Tally, skew: Option<String>, limit: String| {
            vec![
                name.to_owned(),
                cell(offered.map(rate)),
                step.seconds.to_string(),
                rate(step.per_second(tally.sent)),
                rate(step.per_second(tally.answered)),
                lost_percent(tally),
                cell(skew).replace("+\u{2212}", "\u{b1}"),
                limit,
            ]
        };
        let total = cells("total", step.offered_rps, &step.tally, None, String::new());
        rows.push(Row { class: if step.valid { "total" } else { "total void" }, cells: total });
        rows.extend(step.hosts.iter().map(|part| {
            let skew = Some(skew(part.start_skew_us, part.start_skew_error_us));
            let limit = match part.valid {
                true => String::new(),
                false => format!("its own limit: {}", why(part.why_invalid.as_ref())),
            };
            let cells = cells(&part.name, part.offered_rps, &part.tally, skew, limit);
            Row { class: if part.valid { "" } else { VOID }, cells }
        }));
    }
    page.rows("Hosts", &headings, |column| column == 0 || column == 7, rows.into_iter());
}

fn study_spans(page: &mut Page, run: Run<'_>) {
    let steps = selected(&run.record.steps, |step| step.valid && step.spans.is_some());
    if steps.is_empty() {
        return;
    }
    page.heading(&format!("Spans{}", of(run)));
    page.add(format_args!(
        "<p>Times of client and server of the same exchanges, as the NTS study measures them (section III).</p>\n"
    ));
    spans(page, run);
    let headings = ["Measure", "Offered/s", "Exchanges", "Mean", "p50", "p99", "What it covers"];
    let rows =
        steps.iter().filter_map(|step| Some((step, step.spans.as_ref()?))).flat_map(|(step, spans)| {
            spans.measures().map(|measure| {
                let at = |share| cell(measure.times_ns.quantile(share).map(span));
                vec![
                    measure.name.to_owned(),
                    cell(step.offered_rps.map(rate)),
                    count(measure.times_ns.count()),
                    cell(measure.times_ns.mean().map(|mean| span(mean.round() as i64))),
                    at(0.5),
                    at(0.99),
                    measure.meaning.to_owned(),
                ]
            })
        });
    page.table("Spans", &headings, |column| column == 0 || column == 6, rows);
    let spans = || run.record.steps.iter().filter_map(|step| step.spans.as_ref());
    let (joined, unmatched) = spans().fold((0u64, 0u64), |(joined, unmatched), spans| {
        (joined.saturating_add(spans.joined), unmatched.saturating_add(spans.unmatched))
    });
    page.add(format_args!(
        "<p>{} exchanges are known to both sides, {} to the client alone.</p>\n",
        count(joined),
        count(unmatched)
    ));
}

/// How to read the page, what wires carry, and what the figures do not say.
fn notes(page: &mut Page, runs: &[Run<'_>]) {
    for &run in runs {
        wires(page, run);
    }
    page.heading("How to read this");
    page.add(format_args!("<dl>\n{NOTES}"));
    if runs.len() > RUN_COUNT_MAX {
        page.add(format_args!(
            "<dt>Runs beyond {}</dt>\n<dd>Plots draw the first {RUN_COUNT_MAX} runs; tables have all.</dd>\n",
            LETTERS[RUN_COUNT_MAX - 1]
        ));
    }
    for &run in runs {
        let limits = match run.record.path.as_str() {
            "loopback" | "local" | "veth" => {
                "Generator and server shared one host and its processors, with no network between them: the figures \
                 are a floor for the server, not what it does alone or over a wire."
            }
            _ => "The figures hold for this path, these hosts and their load at that time.",
        };
        page.add(format_args!(
            "<dt>Limits{}: the path is {}</dt>\n<dd>{limits} This is one run: a difference that the next one does \
             not show again means nothing.</dd>\n",
            of(run),
            Escaped(&run.record.path)
        ));
    }
    page.add(format_args!("</dl>\n"));
}

/// The ceilings that no server behind such a link can exceed.
fn wires(page: &mut Page, run: Run<'_>) {
    let record = run.record;
    let size = record.steps.iter().map(|step| step.request_size).max().unwrap_or(0);
    let ip = Ip::of(&record.address);
    let rows: Option<Vec<Vec<String>>> = LINKS_GBPS
        .into_iter()
        .map(|link| {
            let ceiling = requests_per_second(link, size, ip)?;
            let share = record.highest_answered().map(|step| 100.0 * step.answered_rps() / ceiling);
            let share =
                share.map(|share| if share < 0.1 { "<0.1".to_owned() } else { format!("{share:.1}") });
            Some(vec![format!("{link}\u{a0}Gbit/s"), rate(ceiling), cell(share)])
        })
        .collect();
    let Some(rows) = rows.filter(|_| size > 0) else { return };
    page.heading(&format!("What wires carry{}", of(run)));
    page.add(format_args!(
        "<p>The largest request is {size} octets over {}. With its Ethernet frame, so many of them fit a link, \
         whatever the server.</p>\n",
        ip.name()
    ));
    let headings = ["Link", "Requests/s", "Filled at the best valid step, %"];
    page.table("What wires carry", &headings, |column| column == 0, rows.into_iter());
}

const NOTES: &str = "\
<dt>Offered, sent, answered</dt>\n\
<dd>Requests that were to leave, that left, and whose answer came in time and passed every check: origin, \
authentication, stratum, leap. What was to leave is sent or skipped; what was sent is answered, lost or \
invalid.</dd>\n\
<dt>Lost, invalid</dt>\n\
<dd>Lost is what had no answer in time, as a share of what was sent; invalid answers came and failed a \
check.</dd>\n\
<dt>Latency</dt>\n\
<dd>From the instant at which a request was to leave to its answer, so a wait before sending counts. p50, p99 and \
p99.9: at least that percentage of the answers took no longer (nearest rank; stored with three significant \
digits).</dd>\n\
<dt>Invalid step</dt>\n\
<dd>The generator did not offer what it was to offer: it fell behind, or ran out of ports. Such a step is shown and \
counts for nothing.</dd>\n\
<dt>Capacity</dt>\n\
<dd>The highest rate at which no more than the tolerated share was lost in three trials, and more in one other at \
most. It is there only if it was searched for.</dd>\n";

#[cfg(test)]
mod tests;
