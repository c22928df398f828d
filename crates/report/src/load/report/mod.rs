//! Load runs as a report: one run with its plots, or several side by side with ratios.
//!
//! Sentences are in `crate::load::words`, tables in `tables`, and which plots there are in `figures`.

mod figures;
mod tables;

use self::figures::{RUN_COUNT_MAX, Run};
use super::compare::against;
use super::words::{self, antp_times, capacity, causes_of_run, generator, shape, shares_host};
use super::{LoadRecord, Percentiles, Spans, Step, Tally};
use crate::render::{Block, Layout, Medium, Prose, Report, Section, Tone};
use crate::stored::Stored;
use crate::units::{capital, count, microseconds, plural, rate, utc};

const TITLE: &str = "A time server under load";
/// The names of runs of a report on several.
const LETTERS: [&str; 26] = [
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S", "T", "U",
    "V", "W", "X", "Y", "Z",
];

/// Whether the reader has seen the steps come one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Steps {
    Shown,
    Known,
}

/// The report on one run, or on several; the first of several is what the others are compared with.
///
/// # Panics
/// If there are more than 26 records: there are no letters for them.
#[must_use]
pub fn report(records: &[&LoadRecord]) -> Report {
    with(records, Steps::Shown)
}

pub(super) fn with(records: &[&LoadRecord], steps: Steps) -> Report {
    assert!(records.len() <= LETTERS.len(), "a report names its runs by letters");
    let letter = |index: usize| if records.len() == 1 { "" } else { LETTERS[index] };
    let runs: Vec<Run<'_>> =
        records.iter().enumerate().map(|(index, &record)| Run { letter: letter(index), record }).collect();
    let mut sections: Vec<Section> = runs.iter().map(|run| opening(*run)).collect();
    sections.push(findings(&runs));
    sections.extend(runs.iter().map(|run| measured(*run)));
    if let Some((first, others)) = runs.split_first() {
        let beside = |other: &Run<'_>| {
            against(other.record, first.record).section(
                &other.name(),
                &first.name(),
                [other.letter, first.letter],
            )
        };
        sections.extend(others.iter().map(beside));
    }
    let mut draw = |heading, figure| sections.push(Section::of(heading, [figure]));
    if runs.iter().any(|run| has_plots(run.record)) {
        draw("What was answered", figures::carried(&runs));
        draw("Latency against the rate", figures::latency(&runs));
    }
    draw("How long answers took", figures::distributions(&runs));
    for &run in &runs {
        if steps == Steps::Shown {
            sections.push(self::steps(run));
        }
        sections.extend([
            verdicts(run),
            latency(run),
            series(run),
            antp(run),
            failures(run),
            conclusions(run),
        ]);
        sections.extend([spans(run), hosts(run)].into_iter().flatten());
    }
    sections.extend(runs.iter().filter_map(|&run| wires(run)));
    sections.push(notes(&runs));
    Report::new(TITLE, Layout::Flat, sections)
}

/// Whether there are two rates to draw a line through.
fn has_plots(record: &LoadRecord) -> bool {
    record.steps.iter().any(|step| step.rate_rps() != record.steps[0].rate_rps())
}

/// ` of A (chrony)`, or nothing if there is one run only.
fn of(run: Run<'_>) -> String {
    if run.letter.is_empty() { String::new() } else { format!(" of {}", run.name()) }
}

/// What was loaded; in the text also how, and by what.
fn opening(run: Run<'_>) -> Section {
    let record = run.record;
    let mut section = Section::default();
    let LoadRecord { target, path, version, commit, command, .. } = record;
    let mut known: Vec<&str> = vec![target, &record.address];
    known.dedup();
    known.retain(|known| *known != record.server());
    let address = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
    let lines = [
        format!("{} against {}{address}, path: {path}", record.label(), record.server()),
        format!("Load: {}.", shape(record)),
        format!("{}: {}.", sender(record), machine(record)),
        format!(
            "Run: {}, measured by authentick {version}, commit {commit}, {command}",
            utc(record.started_unix_s)
        ),
    ];
    lines.into_iter().for_each(|line| section.say_in(Medium::Text, line));
    let name = match run.letter {
        "" => Prose::default(),
        letter => Prose::default().strong(letter).plain(": "),
    };
    let address = if record.server_label.is_some() { address } else { String::new() };
    let went = name
        .plain(format!("{} of ", capital(record.operation().offered())))
        .strong(record.label())
        .plain(" went to ")
        .strong(record.server())
        .plain(format!("{address} over the path "))
        .strong(path)
        .plain(".");
    section.say_in(Medium::Page, went);
    if let Some(why) = &record.interrupted {
        let line = format!("INTERRUPTED: {why}; the steps below are those that ended.");
        section.say_in(Medium::Text, line);
        let prose = Prose::default()
            .strong("The run was interrupted")
            .plain(format!(": {why}. What follows is of the steps that ended."));
        section.add_to(Medium::Page, Block::Paragraph(prose, Tone::Warning));
    }
    section
}

/// What the machine is to the run whose record it made.
const fn sender(record: &LoadRecord) -> &'static str {
    if record.parameters.agents.is_empty() { "Generator" } else { "Coordinator" }
}

/// That machine, and how it sent.
fn machine(record: &LoadRecord) -> String {
    format!("{}; engine {}", record.provenance().host(), record.engine)
}

/// How the load was shaped, and by what machine, program and command it was measured.
fn measured(run: Run<'_>) -> Section {
    let record = run.record;
    let heading = match run.letter {
        "" => "Measured by".to_owned(),
        _ => format!("What measured {}", run.name()),
    };
    let program = format!("authentick {}, commit ", record.version);
    let terms = [
        (sender(record), Prose::from(machine(record))),
        ("Program", Prose::from(program).code(&record.commit)),
        ("Command", Prose::default().code(&record.command)),
        ("Started", Prose::default().unbroken(utc(record.started_unix_s))),
        ("Load", Prose::from(capital(&shape(record)))),
    ];
    let terms = terms.map(|(term, meaning)| (term.to_owned(), meaning));
    Section::only(Medium::Page, heading, [Block::Terms(terms.into())])
}

/// The results in words.
fn findings(runs: &[Run<'_>]) -> Section {
    let mut findings = Vec::new();
    for run in runs {
        let record = run.record;
        let name = || match run.letter {
            "" => Prose::default(),
            _ => Prose::from(format!("{}: ", run.name())),
        };
        let capacity = name().strong("Capacity").plain(format!(": {}", capacity(record)));
        findings.push((capacity, Tone::Plain));
        if let Some((step, latency)) = best(record) {
            let at = format!("At {}/s half of the answers took at most ", rate(step.rate_rps()));
            let prose = name().plain(at).strong(microseconds(latency.p50)).plain(", 99 % at most ");
            findings.push((prose.strong(microseconds(latency.p99)).plain("."), Tone::Plain));
        }
        let invalid = invalid(record);
        if invalid > 0 {
            let says = if invalid == 1 { "it says" } else { "they say" };
            let prose = name().strong(format!("{} invalid", plural(invalid, "step")));
            let why = format!(": the generator did not do its part, so {says} nothing about the server.");
            findings.push((prose.plain(why), Tone::Warning));
        }
    }
    Section::only(Medium::Page, "", [Block::Findings(findings)])
}

/// How many steps are invalid.
fn invalid(record: &LoadRecord) -> u64 {
    record.steps.iter().filter(|step| !step.valid).count() as u64
}

/// The valid step that stands for the run: the highest rate within the capacity, or the one that answered most.
fn best(record: &LoadRecord) -> Option<(&Step, Percentiles)> {
    let within = |step: &&Step| {
        step.valid && record.capacity_rps().is_some_and(|capacity| step.rate_rps() <= capacity)
    };
    let highest =
        record.steps.iter().filter(within).max_by(|left, right| left.rate_rps().total_cmp(&right.rate_rps()));
    let step = highest.or_else(|| record.highest_answered())?;
    Some((step, step.tally.latency_us?))
}

fn steps(run: Run<'_>) -> Section {
    let mut section = Section::new(format!("Steps{}", of(run)));
    if run.record.steps.is_empty() {
        section.say("No step was measured.");
        return section;
    }
    section.show([tables::steps(run.record)]);
    section
}

/// What limited each step and why, and what helps if that was the generator.
fn verdicts(run: Run<'_>) -> Section {
    let mut section = Section::new(format!("What limited each step{}", of(run)));
    let table = tables::limits(run.record);
    let invalid = invalid(run.record);
    let advice = words::advice(run.record);
    if table.is_some() {
        section.label("What limited each step");
    }
    section.show(table);
    if invalid > 0 {
        let says = if invalid == 1 { "says" } else { "say" };
        let line = format!(
            "{} {says} nothing about the server: the generator did not do its part.",
            plural(invalid, "step")
        );
        section.say_in(Medium::Text, line);
    }
    section.say_all(advice);
    section
}

/// Each percentile of latency as an interval.
fn latency(run: Run<'_>) -> Section {
    let mut section = Section::new(format!("Latency{}", of(run)));
    let Some(table) = tables::latency(run.record) else { return section };
    section.label("Latency");
    section.show([table]);
    if run.record.steps.iter().any(|step| step.tally.from_send_us.is_some()) {
        section.say(INTERVAL);
    }
    section
}

const INTERVAL: &str = "From latency counted from the send to latency counted from when the request was due: the \
                        server's own lies between them. Where they differ by more than a tenth, the generator adds \
                        to it.";

/// How the run went, second by second.
fn series(run: Run<'_>) -> Section {
    Section::only(Medium::Page, format!("Second by second{}", of(run)), figures::series(run))
}

/// What only ANTP has: phases, and the client's own cryptography.
fn antp(run: Run<'_>) -> Section {
    let heading = format!("ANTP{}: phases and the client's cryptography", of(run));
    Section::only(Medium::Page, heading, tables::antp(run.record).map(Block::Table))
}

fn failures(run: Run<'_>) -> Section {
    let steps = &run.record.steps;
    let measured = causes_of_run(steps, |step| Some(&step.tally));
    let accompanying = causes_of_run(steps, |step| step.accompanying.as_ref());
    let mut section = Section::new(format!("Failures{} by cause", of(run)));
    if measured.is_empty() && accompanying.is_empty() {
        return section;
    }
    section.add(figures::causes(run));
    let offered = run.record.operation().offered();
    let beside =
        steps.iter().find_map(|step| step.accompanying.as_ref()).map_or("", |tally| tally.operation.plural());
    for (label, causes) in [
        (format!("Failed {offered} by cause"), &measured),
        (format!("Failed accompanying {beside} by cause"), &accompanying),
    ] {
        if !causes.is_empty() {
            section.label(label);
            section.add_to(Medium::Text, Block::Table(tables::causes(causes)));
        }
    }
    let table = tables::causes_of(&[(offered, measured), (beside, accompanying)]);
    section.add_to(Medium::Page, Block::Table(table));
    section
}

/// Capacity and what it rests on; the generator, the clocks and the server.
fn conclusions(run: Run<'_>) -> Section {
    let record = run.record;
    let mut section = Section::new(format!("Server, generator and clocks{}", of(run)));
    section.say_in(Medium::Text, format!("Capacity: {}", capacity(record)));
    if let Some(wires) = words::wires(record) {
        section.say_in(Medium::Text, format!("Links: {wires}."));
    }
    section.say_all(words::answers(record).map(|answers| format!("Answers: {answers}.")));
    section.say_all(generator(record).map(|generator| format!("Generator: {generator}.")));
    for (step, times) in record.steps.iter().filter_map(|step| Some((step, antp_times(step)?))) {
        let offered = step.offered_rps.map_or_else(String::new, |offered| format!(" at {}/s", rate(offered)));
        section.say_in(Medium::Text, format!("ANTP{offered}: {times}"));
    }
    for (name, tally) in [
        ("Accompanying", sum(&record.steps, |step| step.accompanying.as_ref())),
        ("Background", sum(&record.steps, |step| step.background.as_ref())),
        ("Background, accompanying", sum(&record.steps, |step| step.background_accompanying.as_ref())),
    ] {
        let Some(tally) = tally else { continue };
        let (sent, of, answered) = (count(tally.sent), tally.operation.plural(), count(tally.answered));
        let (lost, invalid, skipped) = (count(tally.lost), count(tally.invalid), count(tally.skipped));
        let line = format!(
            "{name}: {sent} {of}, {answered} answered, {lost} lost, {invalid} invalid, {skipped} not sent."
        );
        section.say_in(Medium::Text, line);
    }
    if record.steps.iter().any(|step| step.tally.offset_us.is_some()) {
        section.say(match record.shared_clock {
            true => {
                "Client and server read the same clock: the true offset is zero, and what is shown is its error."
            }
            false => "The true offset is unknown: client and server read different clocks.",
        });
    }
    let has_evidence = record.steps.iter().any(|step| step.evidence.is_some());
    let generator = if has_evidence { EVIDENCE } else { GENERATOR };
    for (table, words) in [(tables::generator(record), generator), (tables::server(record), SERVER)] {
        let Some(table) = table else { continue };
        section.label(table.name.clone());
        section.show([table]);
        section.say_in(Medium::Text, words);
    }
    section
}

const GENERATOR: &str = "late: how long after they were due requests left; busy: the busiest sending thread.";
const EVIDENCE: &str = "late: how long after they were due requests left; busy, idle: the busiest sending thread; \
                        preempted: the thread that waited longest for its processor; steal: the whole host; stalls: \
                        how often a thread stood still; dropped: unread answers / requests for which there was no \
                        buffer / requests dropped by the queue of the interface.";
const SERVER: &str = "server/request, server: its processor time, per request and as a share of the step; waited, \
                      quota: its busiest thread was ready to run, but had no processor, or had used up its quota.";

/// The counts of all steps together, without distributions.
fn sum(steps: &[Step], tally: impl Fn(&Step) -> Option<&Tally>) -> Option<Tally> {
    let mut tallies = steps.iter().filter_map(tally);
    let mut sum = tallies.next()?.without_histograms();
    for tally in tallies {
        sum.merge(&tally.without_histograms());
    }
    Some(sum)
}

fn spans(run: Run<'_>) -> Option<Section> {
    let table = tables::spans(run.record)?;
    let mut section = Section::new(format!("Spans{}", of(run)));
    section.label("Spans of the NTS study, section III");
    let introduction =
        "Times of client and server of the same exchanges, as the NTS study measures them (section III).";
    section.say_in(Medium::Page, introduction);
    figures::spans(run).into_iter().for_each(|figure| section.add(figure));
    section.show([table]);
    let spans = run.record.steps.iter().filter_map(|step| step.spans.as_ref());
    let (joined, unmatched, left_out) =
        spans.fold((0u64, 0u64, 0u64), |(joined, unmatched, left_out), spans| {
            (
                joined.saturating_add(spans.joined),
                unmatched.saturating_add(spans.unmatched),
                left_out.saturating_add(spans.left_out),
            )
        });
    section.say(format!(
        "Exchanges of which both sides have a record: {}; of which only the client has one: {}.",
        count(joined),
        count(unmatched)
    ));
    if left_out > 0 {
        section.say(format!("These are a sample: {} further exchanges were left out.", count(left_out)));
    }
    for sentence in how_timed(run.record.steps.iter().filter_map(|step| step.spans.as_ref())) {
        section.say(sentence);
    }
    Some(section)
}

/// What the server says of its timing, in sentences.
fn how_timed<'a>(spans: impl Iterator<Item = &'a Spans> + Clone) -> Vec<String> {
    let costs = spans.clone().filter_map(|spans| spans.clock_ns);
    let cost = costs.clone().min().zip(costs.max()).map(|(least, most)| {
        let cost = if least == most { least.to_string() } else { format!("{least} to {most}") };
        format!("What a reading of the server's clock costs, {cost}\u{a0}ns, is subtracted from each of its stages.")
    });
    let every = spans.filter_map(|spans| spans.every).max().map(|every| {
        format!(
            "The server timed one request for time in {}; of the others only the client has a record.",
            count(every.into())
        )
    });
    cost.into_iter().chain(every).collect()
}

/// Like Spectracom's Table 2: the total of each step, above the share of each host.
fn hosts(run: Run<'_>) -> Option<Section> {
    let table = tables::hosts(run.record)?;
    let mut section = Section::new(format!("Hosts{}", of(run)));
    if let Some(agents) = tables::agents(run.record) {
        section.label("Agents");
        section.show([agents]);
    }
    section.label("Hosts");
    let introduction = "A host that did not do its part is named as its own limit: what it lacks says nothing about \
                        the server.";
    section.say_in(Medium::Page, introduction);
    section.show([table]);
    Some(section)
}

/// The ceilings that no server behind such a link can exceed. The text has them in a sentence.
fn wires(run: Run<'_>) -> Option<Section> {
    let (size, ip) = words::largest_request(run.record)?;
    let table = tables::wires(run.record, size, ip)?;
    let introduction = format!(
        "The largest request is {size} octets over {}. With its Ethernet frame, so many of them fit a link, whatever \
         the server.",
        ip.name()
    );
    let blocks = [Block::paragraph(introduction), Block::Table(table)];
    Some(Section::only(Medium::Page, format!("What wires carry{}", of(run)), blocks))
}

/// How to read the page, and what the figures do not say.
fn notes(runs: &[Run<'_>]) -> Section {
    let mut terms: Vec<(String, Prose)> =
        NOTES.iter().map(|&(term, meaning)| (term.to_owned(), Prose::from(meaning))).collect();
    if runs.len() > RUN_COUNT_MAX {
        terms.push((
            format!("Runs beyond {}", LETTERS[RUN_COUNT_MAX - 1]),
            Prose::from(format!("Plots draw the first {RUN_COUNT_MAX} runs; tables have all.")),
        ));
    }
    for &run in runs {
        let limits = match shares_host(&run.record.path) {
            true => {
                "Generator and server shared one host and its processors, with no network between them: the figures \
                 are a floor for the server, not what it does alone or over a wire."
            }
            false => "The figures hold for this path, these hosts and their load at that time.",
        };
        let meaning = format!(
            "{limits} This is one run: a difference that the next one does not show again means nothing."
        );
        terms.push((format!("Limits{}: the path is {}", of(run), run.record.path), Prose::from(meaning)));
    }
    Section::only(Medium::Page, "How to read this", [Block::Terms(terms)])
}

const NOTES: [(&str, &str); 5] = [
    (
        "Offered, sent, answered",
        "Requests that were to leave, that left, and whose answer came in time and passed every check: \
         origin, authentication, stratum, leap. What was to leave is sent or skipped; what was sent is \
         answered, lost or invalid.",
    ),
    (
        "Lost, invalid",
        "Lost is what had no answer in time, as a share of what was sent; invalid answers came and failed a \
         check.",
    ),
    (
        "Latency",
        "An interval: from the send, and from the instant at which the request was to leave, so that a wait before \
         sending counts. What the server did to a client that sends on time lies between both. One figure stands for \
         both ends if they look alike, or if the send is not known. p50, p95, p99 and so on: at least that percentage \
         of the answers took no longer (nearest rank; stored with three significant digits).",
    ),
    (
        "Invalid step",
        "The generator did not offer what it was to offer: it fell behind, or ran out of ports. Such a step \
         is shown and counts for nothing.",
    ),
    (
        "Capacity",
        "An interval, if it was searched for: from the highest rate at which no more than the tolerated share is lost \
         to the lowest at which more is, each by samples of valid trials with the confidence that is stated. An \
         invalid trial is no evidence. \u{201c}At least\u{201d}: no rate was found that is too much, as where the \
         generator could offer no more.",
    ),
];

#[cfg(test)]
mod tests;
