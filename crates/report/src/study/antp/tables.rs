//! Table 1, the runs of all three phases, the published ratios beside ours, and the figures behind them.

use super::compare::{Compared, Ratio};
use super::figures::{Cell, Complete, Mean, Throughput, Which};
use super::{AntpRecord, Level, Path, Phase, Primitive, Subject, Suite};
use crate::published::antp::{
    EXCHANGE_ECDH_OVER_RSA, EXCHANGE_LATENCY_RSA_OVER_ECDH, PLAIN_OVER_TIME, PRIMITIVE_ECDH_OVER_RSA,
    TIME_LATENCY_INCREASE, TIME_RPS, TRIAL_COUNT, TRIAL_SECONDS, UNKNOWN, exchange_efficiency, plain_rps,
};
use crate::render::{ABSENT, Filling, Table, or_absent};
use crate::units::{microseconds, percent, rate, ratio, signed_share};

/// Paths on which latency is taken, in the order of the table.
pub(super) const PATHS: [Path; 2] = [Path::Short, Path::Long];
/// The mark after a figure of trials that do not count.
const MARK: &str = " !";
/// Where a search has found nothing.
const NOT_MEASURED: &str = "not measured";

const fn level_name(level: Level) -> &'static str {
    match level {
        Level::Half => "50 %",
        Level::Most => "90 %",
    }
}

const fn path_name(path: Path) -> &'static str {
    match path {
        Path::Short => "short",
        Path::Long => "long",
        Path::Gigabit => "1 Gbit/s",
    }
}

/// The rows that have a throughput: each subject, and negotiation once more behind the link where that was measured.
fn rows(record: &AntpRecord) -> Vec<(Subject, Path)> {
    let mut rows = Vec::new();
    for subject in Subject::ALL {
        rows.push((subject, Path::Short));
        if record.capacity(subject, Path::Gigabit).is_some() {
            rows.push((subject, Path::Gigabit));
        }
    }
    rows
}

/// Phase and suite, the two first columns of a table.
fn named<R>(name: &str, rows: impl IntoIterator<Item = R>, of: impl Fn(&R) -> (Subject, Path)) -> Filling<R> {
    let phase = |row: &R| {
        let (subject, path) = of(row);
        format!("{}{}", subject.phase.name(), if path == Path::Gigabit { " behind 1 Gbit/s" } else { "" })
    };
    Table::of(name, rows)
        .words("Phase", phase)
        .number("Suite", |row| of(row).0.suite.map_or(ABSENT, Suite::name))
}

/// Paths and loads under which latency is taken, in the order of the tables.
fn places() -> impl Iterator<Item = (Path, Level)> + Clone {
    PATHS.into_iter().flat_map(|path| Level::ALL.map(|level| (path, level)))
}

/// A cell of Table 1 that the paper's text quotes or implies.
fn published_rps(subject: Subject, path: Path) -> String {
    match (subject.phase, path) {
        (Phase::Time, Path::Short) => rate(TIME_RPS),
        (Phase::Plain, Path::Short) => {
            format!("about {} (computed)", rate((plain_rps() / 1e3).round() * 1e3))
        }
        (Phase::SeparateTag, _) => "not published".to_owned(),
        // "it does not make sense to measure server throughput for complete 3-phase time synchronizations" (4.2).
        (Phase::Complete, _) => ABSENT.to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

/// `20,000 (± 140)`.
fn mean_rate(mean: Mean) -> String {
    match mean.deviation {
        Some(deviation) => format!("{} (\u{b1} {})", rate(mean.value), rate(deviation)),
        None => rate(mean.value),
    }
}

/// Of the trials that count, or with a mark of those that do not.
fn marked<T>(of: impl Fn(Which) -> Option<T>, text: impl Fn(T) -> String) -> Option<String> {
    match of(Which::Valid) {
        Some(figure) => Some(text(figure)),
        None => of(Which::Invalid).map(|figure| text(figure) + MARK),
    }
}

/// Median, and the 99th percentile.
fn cell(record: &AntpRecord, subject: Subject, level: Level, path: Path) -> String {
    let text =
        |cell: Cell| format!("{} ({})", microseconds(cell.p50_us.value), microseconds(cell.p99_us.value));
    or_absent(marked(|which| record.cell(which, subject, level, path), text))
}

/// Table 1's shape: phase, suite, throughput, and latency under two loads on two paths.
pub(super) fn table_1(record: &AntpRecord) -> Table {
    let complete = Suite::ALL.map(|suite| (Subject::new(Phase::Complete, suite), Path::Short));
    let rows = rows(record).into_iter().chain(complete);
    let heading =
        |(path, level): &(Path, Level)| format!("Latency, {}, {}", path_name(*path), level_name(*level));
    named("Throughput and latency of each phase", rows, |row| *row)
        .number("Published/s", |&(subject, path)| published_rps(subject, path))
        .number("Ours/s", |&(subject, path)| {
            let of = |which| record.throughput(which, subject, path);
            let found = marked(of, |found| mean_rate(found.rps));
            found.unwrap_or_else(|| if subject.phase == Phase::Complete { ABSENT } else { NOT_MEASURED }.to_owned())
        })
        .each(places(), heading, |&(subject, own), &(path, level)| match own {
            Path::Gigabit => ABSENT.to_owned(),
            Path::Short | Path::Long => cell(record, subject, level, path),
        })
        .noted([
            format!(
                "Ours: means of trials, with the standard deviation. Latencies: medians, the 99th percentile in \
                 parentheses. The paper's cells are {UNKNOWN} but for the one that its text quotes; the plain rate is \
                 computed from that and the factor of {PLAIN_OVER_TIME}. A mark (!) stands where no trial \
                 counts. The paper's server was an Intel Core i7-4770 behind 1 Gbit/s, \
                 so compare ratios, not figures."
            ),
            "Time synchronisation is the same under both suites; the separate tag is of the paper's design, and not \
             among its results."
                .to_owned(),
        ])
}

/// Complete runs beside the sum of their phases.
pub(super) fn complete_runs(record: &AntpRecord) -> Table {
    let rows =
        Suite::ALL.into_iter().flat_map(|suite| places().map(move |(path, level)| (suite, path, level)));
    let us = |&(suite, path, level): &(Suite, Path, Level), figure: fn(Complete) -> f64| {
        or_absent(marked(
            |which| record.complete(which, suite, level, path),
            |complete| signed(figure(complete)),
        ))
    };
    Table::of("One client's run of all phases", rows)
        .words("Suite", |(suite, ..)| suite.name())
        .number("Path", |&(_, path, _)| path_name(path))
        .number("Load", |&(.., level)| level_name(level))
        .number("Whole run", |row| us(row, |complete| complete.whole_us))
        .number("Negotiation", |row| us(row, |complete| complete.negotiation_us))
        .number("Key exchange", |row| us(row, |complete| complete.exchange_us))
        .number("Time", |row| us(row, |complete| complete.time_us))
        .number("Sum of phases", |row| us(row, |complete| complete.phases_us()))
        .number("Difference", |row| us(row, |complete| complete.difference_us()))
        .number("Client's cryptography, timed", |row| us(row, |complete| complete.client_crypto_us))
        .number("Published", |_| UNKNOWN)
        .noted([
            "Arithmetic means, as only those add up. The difference is what a run takes beyond its phases; what was \
             timed of it is encapsulation, tags, hashes and the check of the certificates. The rest is waiting for a \
             processor.",
        ])
}

/// A time that may be below zero, as a difference of means may.
fn signed(us: f64) -> String {
    if us < 0.0 { format!("-{}", microseconds(-us)) } else { microseconds(us) }
}

/// The paper's sentences as ratios, ours beside them.
pub(super) fn ratios(record: &AntpRecord) -> Table {
    let exchange = |suite| Subject::new(Phase::Exchange, suite);
    let negotiation = |suite| Subject::new(Phase::Negotiation, suite);
    let change =
        |subject, level| Ours::of(record.latency_ratio(subject, Subject::PLAIN, level), Ratio::change);
    let throughput = |over, under| Ours::of(record.throughput_ratio(over, under), Ratio::text);
    let latency = |over, under| Ours::of(record.latency_ratio(over, under, Level::Most), Ratio::text);
    let mut rows = Vec::new();
    let mut add = |what: &str, published: String, ours: Ours| rows.push((what.to_owned(), published, ours));
    let not_published = || "not published".to_owned();
    add(
        "throughput, plain over time synchronisation",
        PLAIN_OVER_TIME.to_string(),
        throughput(Subject::PLAIN, Subject::TIME),
    );
    add(
        "throughput, plain over separate tag",
        not_published(),
        throughput(Subject::PLAIN, Subject::SEPARATE_TAG),
    );
    for (level, published) in Level::ALL.into_iter().zip(TIME_LATENCY_INCREASE) {
        let what = format!("latency of time synchronisation against plain, at {}", level_name(level));
        add(&what, signed_share(published), change(Subject::TIME, level));
        let what = format!("the same with a separate tag, at {}", level_name(level));
        add(&what, not_published(), change(Subject::SEPARATE_TAG, level));
    }
    add(
        "throughput of key exchanges, ECDH over RSA",
        EXCHANGE_ECDH_OVER_RSA.to_string(),
        throughput(exchange(Suite::Ecdh), exchange(Suite::Rsa)),
    );
    add(
        "the primitives alone, ECDH over RSA",
        PRIMITIVE_ECDH_OVER_RSA.to_string(),
        Ours::figure(record.primitive_ratio().map(ratio)),
    );
    add(
        "the former by the latter",
        ratio(exchange_efficiency()),
        Ours::figure(efficiency(record).map(ratio)),
    );
    add(
        "latency of key exchanges at 90 %, RSA over ECDH",
        EXCHANGE_LATENCY_RSA_OVER_ECDH.to_string(),
        latency(exchange(Suite::Rsa), exchange(Suite::Ecdh)),
    );
    add(
        "throughput of negotiations, ECDH over RSA",
        "above 1".to_owned(),
        throughput(negotiation(Suite::Ecdh), negotiation(Suite::Rsa)),
    );
    add(
        "latency of negotiations at 90 %, ECDH over RSA",
        "above 1".to_owned(),
        latency(negotiation(Suite::Ecdh), negotiation(Suite::Rsa)),
    );
    for suite in Suite::ALL {
        let what = format!("share of the 1 Gbit/s link that negotiations fill, {}", suite.name());
        let share = record.link_share(negotiation(suite)).map(|(share, _)| format!("{} %", percent(share)));
        add(&what, "all of it".to_owned(), Ours::figure(share));
    }
    Table::of("Ratios", rows)
        .words("What", |(what, ..)| what.clone())
        .number("Published", |(_, published, _)| published.clone())
        .number("Ours", |(.., ours)| ours.text.clone())
        .words("Why there is none", |(.., ours)| ours.why_not.clone().unwrap_or_default())
        .noted([
            "Medians of latency, over the short path; the paper's are averages on a LAN. In parentheses: the least and \
             the most that the extremes of trials allow.",
            "The paper's negotiations were bound by its link, and latency was higher with ECDH as more of its requests \
             fit through; ours are bound by the server.",
        ])
}

/// A cell of the table of ratios.
struct Ours {
    text: String,
    /// Why there is none though it was measured.
    why_not: Option<String>,
}

impl Ours {
    fn of(compared: Compared, text: fn(Ratio) -> String) -> Self {
        match compared {
            Compared::Missing => Ours::figure(None),
            Compared::Withheld(why) => Ours { text: "withheld".to_owned(), why_not: Some(why) },
            Compared::Found(found) => Ours::figure(Some(text(found))),
        }
    }

    fn figure(text: Option<String>) -> Self {
        Ours { text: or_absent(text), why_not: None }
    }
}

/// The share of its primitives' ratio that the exchange keeps.
fn efficiency(record: &AntpRecord) -> Option<f64> {
    let exchange = |suite| Subject::new(Phase::Exchange, suite);
    let exchanges = record.throughput_ratio(exchange(Suite::Ecdh), exchange(Suite::Rsa)).found()?;
    Some(exchanges.value / record.primitive_ratio()?)
}

/// What the server spends on a key exchange beside what the primitive takes.
pub(super) fn exchange_cost(record: &AntpRecord) -> Table {
    let us = |value: Option<f64>| or_absent(value.map(microseconds));
    let primitive = |&suite: &Suite, figure: fn(Primitive) -> f64| us(record.primitive(suite).map(figure));
    let exchange = |suite| record.throughput(Which::Valid, Subject::new(Phase::Exchange, suite), Path::Short);
    let worker = |&suite: &Suite| exchange(suite)?.public_key_us();
    let whole = |&suite: &Suite| exchange(suite)?.server_us();
    let by = |value: Option<f64>, &suite: &Suite| {
        or_absent(value.zip(record.primitive(suite)).map(|(us, one)| ratio(us / one.library_us)))
    };
    Table::of("Processor time of a key exchange", Suite::ALL)
        .words("Suite", |suite| suite.name())
        .number("Primitive", |suite| primitive(suite, |one| one.library_us))
        .number("Decapsulation", |suite| primitive(suite, |one| one.decapsulation_us))
        .number("Public-key thread, an exchange", |suite| us(worker(suite)))
        .number("By the primitive", |suite| by(worker(suite), suite))
        .number("Whole server, an exchange", |suite| us(whole(suite)))
        .number("By the primitive", |suite| by(whole(suite), suite))
        .number("Client's encapsulation", |suite| primitive(suite, |one| one.encapsulation_us))
        .noted([
            "The primitive is the crypto library's P-256 agreement, or its decryption with RSA-2048, alone on one \
             thread, measured in this study. Server times are at capacity.",
        ])
}

/// What is behind the throughput.
pub(super) fn throughput_detail(record: &AntpRecord) -> Table {
    let of = |&(subject, path): &(Subject, Path), text: fn(&Throughput) -> Option<String>| {
        let found = |which| record.throughput(which, subject, path);
        match (found(Which::Valid), found(Which::Invalid)) {
            (Some(found), _) => or_absent(text(&found)),
            (None, unsure) => or_absent(unsure.and_then(|unsure| Some(text(&unsure)? + MARK))),
        }
    };
    named("Throughput", rows(record), |row| *row)
        .number("Capacity/s", |&(subject, path)| {
            let capacity = record.capacity(subject, path);
            or_absent(capacity.and_then(|capacity| capacity.searched_rps.or(capacity.rps)).map(rate))
        })
        .number("Tuned to/s", |&(subject, path)| {
            let capacity = record.capacity(subject, path).filter(|capacity| capacity.searched_rps.is_some());
            or_absent(capacity.and_then(|capacity| capacity.rps).map(rate))
        })
        .number("Answered/s", |row| of(row, |found| Some(mean_rate(found.rps))))
        .number("Trials that count", |&(subject, path)| {
            let counted = record.throughput(Which::Valid, subject, path).map_or(0, |found| found.counted);
            format!("{counted} of {}", record.trials(subject, path).count())
        })
        .number("Lost", |row| of(row, |found| Some(format!("{} %", percent(found.loss_ratio.value)))))
        .number("Of a processor", |row| {
            of(row, |found| Some(format!("{} %", percent(found.server_share?.value))))
        })
        .number("Processor time, an answer", |row| of(row, |found| found.server_us().map(microseconds)))
        .words("What must be known of it", |&(subject, path)| remark(record, subject, path))
        .noted([format!(
            "The paper tuned its rates to about 95 % of the server's core and less than 1 % lost, in {TRIAL_COUNT} \
             trials of {TRIAL_SECONDS} s. Ours are tuned alike where a search found a rate; a closed loop keeps the \
             server as busy as it can be."
        )])
}

/// Remarks on a row's search and trials.
fn remark(record: &AntpRecord, subject: Subject, path: Path) -> String {
    let searched = record.capacity(subject, path).and_then(|capacity| capacity.remark.as_deref());
    let invalid = record.trials(subject, path).find_map(|trial| trial.why_invalid.as_deref());
    match (searched, invalid) {
        (None, None) => String::new(),
        (Some(searched), None) => searched.to_owned(),
        (None, Some(why)) => format!("a trial does not count: {why}"),
        (Some(searched), Some(why)) => format!("{searched}; a trial does not count: {why}"),
    }
}

/// What is behind the latencies.
pub(super) fn latency_detail(record: &AntpRecord) -> Table {
    let complete = Suite::ALL.map(|suite| Subject::new(Phase::Complete, suite));
    let subjects = Subject::ALL.into_iter().chain(complete);
    let all = subjects.flat_map(|subject| places().map(move |(path, level)| (subject, path, level)));
    let rows = all.filter_map(|(subject, path, level)| {
        let found = |which| record.cell(which, subject, level, path);
        let counted = found(Which::Valid).map_or(0, |found| found.counted);
        let found = found(Which::Valid).or_else(|| found(Which::Invalid))?;
        let trials = record.latencies(subject, subject.background(), level, path);
        let background = Mean::of(trials.map(|trial| trial.background_rps));
        Some(LatencyRow { subject, path, level, found, counted, background })
    });
    named("Latency", rows, |row| (row.subject, row.path))
        .number("Path", |row| path_name(row.path))
        .number("Load", |row| level_name(row.level))
        .number("Median", |row| microseconds(row.found.p50_us.value))
        .number("Mean", |row| microseconds(row.found.mean_us.value))
        .number("p99", |row| microseconds(row.found.p99_us.value))
        .number("Deviation of means", |row| or_absent(row.found.mean_us.deviation.map(microseconds)))
        .number("Trials that count", |row| format!("{} of {}", row.counted, row.found.all))
        .number("Background answered/s", |row| or_absent(row.background.map(|mean| rate(mean.value))))
        .table()
}

/// A row of the table of latencies.
struct LatencyRow {
    subject: Subject,
    path: Path,
    level: Level,
    found: Cell,
    /// Trials that count.
    counted: usize,
    background: Option<Mean>,
}

#[cfg(test)]
mod tests;
