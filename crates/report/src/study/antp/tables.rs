//! Table 1's shape, the runs of all three phases, the published ratios beside ours, and what is behind them.

use super::figures::{Cell, Mean, Throughput, Which};
use super::{AntpRecord, Level, Path, Phase, Subject, Suite};
use crate::published::antp::{
    EXCHANGE_ECDH_OVER_RSA, EXCHANGE_LATENCY_RSA_OVER_ECDH, PLAIN_OVER_TIME, PRIMITIVE_ECDH_OVER_RSA,
    TIME_LATENCY_INCREASE, TIME_RPS, TRIAL_COUNT, TRIAL_SECONDS, UNKNOWN, exchange_efficiency, plain_rps,
};
use crate::render::{ABSENT, Table, or_absent};
use crate::units::{microseconds, percent, rate, ratio, signed_share};

/// Paths on which latency is taken, in the order of the table.
pub(super) const PATHS: [Path; 2] = [Path::Short, Path::Long];
/// What stands behind a figure of trials that do not count.
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

/// The two first cells of a row.
fn names(subject: Subject, path: Path) -> [String; 2] {
    let behind = if path == Path::Gigabit { " behind 1 Gbit/s" } else { "" };
    let suite = subject.suite.map_or(ABSENT, Suite::name);
    [format!("{}{behind}", subject.phase.name()), suite.to_owned()]
}

/// A cell of Table 1 that the paper's text quotes or implies.
fn published_rps(subject: Subject, path: Path) -> String {
    match (subject.phase, path) {
        (Phase::Time, Path::Short) => rate(TIME_RPS),
        (Phase::Plain, Path::Short) => {
            format!("about {} (computed)", rate((plain_rps() / 1e3).round() * 1e3))
        }
        (Phase::SeparateTag, _) => "not published".to_owned(),
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
    or_absent(marked(|which| record.cell_of(which, subject, level, path), text))
}

/// Table 1's shape: phase, suite, throughput, and latency under two loads on two paths.
pub(super) fn table_1(record: &AntpRecord) -> Table {
    let mut headings = ["Phase", "Suite", "Published/s", "Ours/s"].map(str::to_owned).to_vec();
    for path in PATHS {
        headings
            .extend(Level::ALL.map(|level| format!("Latency, {}, {}", path_name(path), level_name(level))));
    }
    let mut table = Table::headed("Throughput and latency of each phase", headings, &[]);
    let latencies = |subject: Subject, own: Path| {
        let cells = PATHS.into_iter().flat_map(|path| Level::ALL.map(|level| (level, path)));
        cells
            .map(|(level, path)| match own {
                Path::Gigabit => ABSENT.to_owned(),
                Path::Short | Path::Long => cell(record, subject, level, path),
            })
            .collect::<Vec<_>>()
    };
    for (subject, path) in rows(record) {
        let mut row = names(subject, path).to_vec();
        row.push(published_rps(subject, path));
        let found = marked(|which| record.throughput_of(which, subject, path), |found| mean_rate(found.rps));
        row.push(found.unwrap_or_else(|| NOT_MEASURED.to_owned()));
        row.extend(latencies(subject, path));
        table.push(row);
    }
    for suite in Suite::ALL {
        let subject = Subject::new(Phase::Complete, suite);
        let mut row = names(subject, Path::Short).to_vec();
        // "it does not make sense to measure server throughput for complete 3-phase time synchronizations" (4.2).
        row.extend([ABSENT.to_owned(), ABSENT.to_owned()]);
        row.extend(latencies(subject, Path::Short));
        table.push(row);
    }
    table.notes = vec![
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
    ];
    table
}

/// Complete runs beside the sum of their phases.
pub(super) fn complete_runs(record: &AntpRecord) -> Table {
    let headings = [
        "Suite",
        "Path",
        "Load",
        "Whole run",
        "Negotiation",
        "Key exchange",
        "Time",
        "Sum of phases",
        "Difference",
        "Client's cryptography, timed",
        "Published",
    ];
    let mut table = Table::headed("One client's run of all phases", headings, &[]);
    for suite in Suite::ALL {
        for path in PATHS {
            for level in Level::ALL {
                let mut row = [suite.name(), path_name(path), level_name(level)].map(str::to_owned).to_vec();
                let found = |which| record.complete_of(which, suite, level, path);
                let mark = if found(Which::Valid).is_some() { "" } else { MARK };
                match found(Which::Valid).or_else(|| found(Which::Invalid)) {
                    Some(complete) => row.extend(
                        [
                            complete.whole_us,
                            complete.negotiation_us,
                            complete.exchange_us,
                            complete.time_us,
                            complete.phases_us(),
                            complete.difference_us(),
                            complete.client_crypto_us,
                        ]
                        .map(|us| signed(us) + mark),
                    ),
                    None => row.extend([ABSENT; 7].map(str::to_owned)),
                }
                row.push(UNKNOWN.to_owned());
                table.push(row);
            }
        }
    }
    table.notes = vec![
        "Arithmetic means, as only those add up. The difference is what a run takes beyond its phases; what was timed \
         of it is encapsulation, tags, hashes and the check of the certificates. The rest is waiting for a processor."
            .to_owned(),
    ];
    table
}

/// A time that may be below zero, as a difference of means may.
fn signed(us: f64) -> String {
    if us < 0.0 { format!("-{}", microseconds(-us)) } else { microseconds(us) }
}

/// The paper's sentences as ratios, ours beside them.
pub(super) fn ratios(record: &AntpRecord) -> Table {
    let exchange = |suite| Subject::new(Phase::Exchange, suite);
    let negotiation = |suite| Subject::new(Phase::Negotiation, suite);
    let increase = |subject, level| {
        record.latency_ratio(subject, Subject::PLAIN, level).map(|ratio| signed_share(ratio - 1.0))
    };
    let mut table = Table::headed("Ratios", ["What", "Published", "Ours"], &[]);
    let mut add = |what: &str, published: String, ours: Option<String>| {
        table.push(vec![what.to_owned(), published, or_absent(ours)]);
    };
    let throughput = |over, under| record.throughput_ratio(over, under).map(ratio);
    add(
        "throughput, plain over time synchronisation",
        PLAIN_OVER_TIME.to_string(),
        throughput(Subject::PLAIN, Subject::TIME),
    );
    add(
        "throughput, plain over separate tag",
        "not published".to_owned(),
        throughput(Subject::PLAIN, Subject::SEPARATE_TAG),
    );
    for (level, published) in Level::ALL.into_iter().zip(TIME_LATENCY_INCREASE) {
        let what = format!("latency of time synchronisation against plain, at {}", level_name(level));
        add(&what, signed_share(published), increase(Subject::TIME, level));
        let what = format!("the same with a separate tag, at {}", level_name(level));
        add(&what, "not published".to_owned(), increase(Subject::SEPARATE_TAG, level));
    }
    add(
        "throughput of key exchanges, ECDH over RSA",
        EXCHANGE_ECDH_OVER_RSA.to_string(),
        throughput(exchange(Suite::Ecdh), exchange(Suite::Rsa)),
    );
    add(
        "the primitives alone, ECDH over RSA",
        PRIMITIVE_ECDH_OVER_RSA.to_string(),
        record.primitive_ratio().map(ratio),
    );
    add("the former by the latter", ratio(exchange_efficiency()), efficiency(record).map(ratio));
    add(
        "latency of key exchanges at 90 %, RSA over ECDH",
        EXCHANGE_LATENCY_RSA_OVER_ECDH.to_string(),
        record.latency_ratio(exchange(Suite::Rsa), exchange(Suite::Ecdh), Level::Most).map(ratio),
    );
    add(
        "throughput of negotiations, ECDH over RSA",
        "above 1".to_owned(),
        throughput(negotiation(Suite::Ecdh), negotiation(Suite::Rsa)),
    );
    for suite in Suite::ALL {
        let what = format!("share of the 1 Gbit/s link that negotiations fill, {}", suite.name());
        let share = record.link_share(negotiation(suite)).map(|(share, _)| format!("{} %", percent(share)));
        add(&what, "all of it".to_owned(), share);
    }
    table.notes =
        vec!["Medians of latency, over the short path; the paper's are averages on a LAN.".to_owned()];
    table
}

/// The share of its primitives' ratio that the exchange keeps.
fn efficiency(record: &AntpRecord) -> Option<f64> {
    let exchange = |suite| Subject::new(Phase::Exchange, suite);
    Some(record.throughput_ratio(exchange(Suite::Ecdh), exchange(Suite::Rsa))? / record.primitive_ratio()?)
}

/// What the server spends on a key exchange beside what the primitive takes.
pub(super) fn exchange_cost(record: &AntpRecord) -> Table {
    let headings = [
        "Suite",
        "Primitive",
        "Decapsulation",
        "Public-key thread, an exchange",
        "By the primitive",
        "Whole server, an exchange",
        "By the primitive",
        "Client's encapsulation",
    ];
    let mut table = Table::headed("Processor time of a key exchange", headings, &[]);
    for suite in Suite::ALL {
        let primitive = record.primitive(suite);
        let found = record.throughput(Subject::new(Phase::Exchange, suite), Path::Short);
        let us = |value: Option<f64>| or_absent(value.map(microseconds));
        let by =
            |value: Option<f64>| or_absent(value.zip(primitive).map(|(us, one)| ratio(us / one.library_us)));
        let worker = found.and_then(|found| found.public_key_us());
        let whole = found.and_then(|found| found.server_us());
        table.push(vec![
            suite.name().to_owned(),
            us(primitive.map(|one| one.library_us)),
            us(primitive.map(|one| one.decapsulation_us)),
            us(worker),
            by(worker),
            us(whole),
            by(whole),
            us(primitive.map(|one| one.encapsulation_us)),
        ]);
    }
    table.notes = vec![
        "The primitive is the crypto library's P-256 agreement, or its decryption with RSA-2048, alone on one thread, \
         measured in this study. Server times are at capacity."
            .to_owned(),
    ];
    table
}

/// What is behind the throughput.
pub(super) fn throughput_detail(record: &AntpRecord) -> Table {
    let headings = [
        "Phase",
        "Suite",
        "Capacity/s",
        "Answered/s",
        "Trials that count",
        "Lost",
        "Of a processor",
        "Processor time, an answer",
        "What must be known of it",
    ];
    let mut table = Table::headed("Throughput", headings, &[8]);
    for (subject, path) in rows(record) {
        let capacity = record.capacity(subject, path);
        let found = record.throughput(subject, path);
        let unsure = record.throughput_of(Which::Invalid, subject, path);
        let of = |text: fn(&Throughput) -> Option<String>| match (&found, &unsure) {
            (Some(found), _) => or_absent(text(found)),
            (None, Some(unsure)) => text(unsure).map_or_else(|| ABSENT.to_owned(), |text| text + MARK),
            (None, None) => ABSENT.to_owned(),
        };
        let mut row = names(subject, path).to_vec();
        row.extend([
            or_absent(capacity.and_then(|capacity| capacity.rps).map(rate)),
            of(|found| Some(mean_rate(found.rps))),
            found.map_or_else(
                || format!("0 of {}", record.trials(subject, path).count()),
                |found| format!("{} of {}", found.counted, found.all),
            ),
            of(|found| Some(format!("{} %", percent(found.loss_ratio.value)))),
            of(|found| Some(format!("{} %", percent(found.server_share?.value)))),
            of(|found| found.server_us().map(microseconds)),
            remark(record, subject, path),
        ]);
        table.push(row);
    }
    table.notes = vec![format!(
        "The paper tuned its rates to about 95 % of the server's core and less than 1 % lost, in {TRIAL_COUNT} trials \
         of {TRIAL_SECONDS} s."
    )];
    table
}

/// What is to be said of a row's search and trials.
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
    let headings = [
        "Phase",
        "Suite",
        "Path",
        "Load",
        "Median",
        "Mean",
        "p99",
        "Deviation of means",
        "Trials that count",
        "Background answered/s",
    ];
    let mut table = Table::headed("Latency", headings, &[]);
    let complete = Suite::ALL.map(|suite| Subject::new(Phase::Complete, suite));
    for subject in Subject::ALL.into_iter().chain(complete) {
        for path in PATHS {
            for level in Level::ALL {
                let found = |which| record.cell_of(which, subject, level, path);
                let counted = found(Which::Valid).map_or(0, |found| found.counted);
                let Some(found) = found(Which::Valid).or_else(|| found(Which::Invalid)) else { continue };
                let trials = record.latencies(subject, subject.background(), level, path);
                let background = Mean::of(trials.map(|trial| trial.background_rps));
                let mut row = names(subject, path).to_vec();
                row.extend([
                    path_name(path).to_owned(),
                    level_name(level).to_owned(),
                    microseconds(found.p50_us.value),
                    microseconds(found.mean_us.value),
                    microseconds(found.p99_us.value),
                    or_absent(found.mean_us.deviation.map(microseconds)),
                    format!("{counted} of {}", found.all),
                    or_absent(background.map(|mean| rate(mean.value))),
                ]);
                table.push(row);
            }
        }
    }
    table
}

#[cfg(test)]
mod tests;
