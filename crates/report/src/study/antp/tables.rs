//! What the study has to say, as sentences and tables: once, for the text and for the page.

use super::figures::{Cell, Mean, Throughput, Which};
use super::{AntpRecord, Level, Path, Phase, Subject, Suite};
use crate::published::antp::{
    EXCHANGE_ECDH_OVER_RSA, EXCHANGE_LATENCY_RSA_OVER_ECDH, PLAIN_OVER_TIME, PRIMITIVE_ECDH_OVER_RSA,
    TIME_LATENCY_INCREASE, TIME_RPS, TRIAL_COUNT, TRIAL_SECONDS, UNKNOWN, exchange_efficiency, plain_rps,
};
use crate::sections::{self, ABSENT, Table, or_absent};
use crate::units::{microseconds, percent, rate, ratio, signed_share, utc};

/// Which figure a section has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// What each phase has answered a second.
    Throughput,
    /// How long each phase takes over the short path.
    Latency,
}

type Section = sections::Section<Figure>;

/// Paths on which latency is taken, in the order of the table.
const PATHS: [Path; 2] = [Path::Short, Path::Long];
/// What stands behind a figure of trials that do not count.
const MARK: &str = " !";
/// Where a search has found nothing.
const NOT_MEASURED: &str = "not measured";

/// The whole report.
pub(super) fn sections(record: &AntpRecord) -> Vec<Section> {
    let mut findings = Section::new("What follows");
    findings.sentences = self::findings(record);
    let mut first = Section::new("Table 1: each phase");
    first.figure = Some(Figure::Throughput);
    first.tables = vec![table_1(record)];
    let mut complete = Section::new("All three phases");
    complete.sentences = vec![
        "One client after the other carries out all three phases, beside a load of time synchronisation. The paper: \
         \u{201c}the total runtime of a client exceeds the sum of the latencies from each individual phase due to the \
         client performing its own cryptographic operations\u{201d}."
            .to_owned(),
    ];
    complete.tables = vec![complete_runs(record)];
    let mut ratios = Section::new("Published ratios, and ours");
    ratios.tables = vec![self::ratios(record)];
    let mut cost = Section::new("What a key exchange costs");
    cost.tables = vec![exchange_cost(record)];
    let mut detail = Section::new("In detail");
    detail.figure = Some(Figure::Latency);
    detail.tables = vec![throughput_detail(record), latency_detail(record)];
    vec![findings, first, complete, ratios, cost, detail]
}

/// What was measured, how, and on what.
pub(super) fn opening(record: &AntpRecord) -> Vec<String> {
    let (host, settings) = (&record.host, &record.settings);
    let capacity = match settings.quick {
        true => "Capacity is what a closed loop had answered: it was not searched for (--quick).",
        false => "Capacity is the highest rate at which a search lost at most a hundredth.",
    };
    let mut sentences = vec![
        format!(
            "Ours on {}, {} processors, {}, {}, by authentick {} (commit {}): {}.",
            host.cpu,
            host.cpu_count,
            host.kernel,
            utc(record.started_unix_s),
            record.version,
            record.commit,
            record.command
        ),
        format!(
            "{capacity} Throughput is what came back, the mean of {} trials of {} s. Latency is that of clients that \
             ask {} times a second, while others load the server with 50 % or 90 % of the capacity. The long path adds \
             {} ms to a round trip.",
            settings.throughput_trials,
            settings.trial_seconds,
            rate(settings.measured_rps),
            settings.long_path_ms
        ),
    ];
    sentences.extend(settings.difference());
    sentences.extend(record.remarks.iter().cloned());
    sentences
}

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
fn table_1(record: &AntpRecord) -> Table {
    let mut headings = ["Phase", "Suite", "Published/s", "Ours/s"].map(str::to_owned).to_vec();
    for path in PATHS {
        headings
            .extend(Level::ALL.map(|level| format!("Latency, {}, {}", path_name(path), level_name(level))));
    }
    let mut table = Table::new("Throughput and latency of each phase", headings);
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
        table.rows.push(row);
    }
    for suite in Suite::ALL {
        let subject = Subject::new(Phase::Complete, suite);
        let mut row = names(subject, Path::Short).to_vec();
        // "it does not make sense to measure server throughput for complete 3-phase time synchronizations" (4.2).
        row.extend([ABSENT.to_owned(), ABSENT.to_owned()]);
        row.extend(latencies(subject, Path::Short));
        table.rows.push(row);
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
fn complete_runs(record: &AntpRecord) -> Table {
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
    let mut table = Table::new("One client's run of all phases", headings);
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
                table.rows.push(row);
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
fn ratios(record: &AntpRecord) -> Table {
    let exchange = |suite| Subject::new(Phase::Exchange, suite);
    let negotiation = |suite| Subject::new(Phase::Negotiation, suite);
    let increase = |subject, level| {
        record.latency_ratio(subject, Subject::PLAIN, level).map(|ratio| signed_share(ratio - 1.0))
    };
    let mut table = Table::new("Ratios", ["What", "Published", "Ours"]);
    let mut add = |what: &str, published: String, ours: Option<String>| {
        table.rows.push(vec![what.to_owned(), published, or_absent(ours)]);
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
    table.words = Vec::new();
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
fn exchange_cost(record: &AntpRecord) -> Table {
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
    let mut table = Table::new("Processor time of a key exchange", headings);
    for suite in Suite::ALL {
        let primitive = record.primitive(suite);
        let found = record.throughput(Subject::new(Phase::Exchange, suite), Path::Short);
        let us = |value: Option<f64>| or_absent(value.map(microseconds));
        let by =
            |value: Option<f64>| or_absent(value.zip(primitive).map(|(us, one)| ratio(us / one.library_us)));
        let worker = found.and_then(|found| found.public_key_us());
        let whole = found.and_then(|found| found.server_us());
        table.rows.push(vec![
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
fn throughput_detail(record: &AntpRecord) -> Table {
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
    let mut table = Table::new("Throughput", headings);
    table.words = vec![8];
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
        table.rows.push(row);
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
fn latency_detail(record: &AntpRecord) -> Table {
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
    let mut table = Table::new("Latency", headings);
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
                table.rows.push(row);
            }
        }
    }
    table
}

/// The sentences that stand first.
fn findings(record: &AntpRecord) -> Vec<String> {
    let exchange = |suite| Subject::new(Phase::Exchange, suite);
    let mut sentences = Vec::new();
    if let Some(slower) = record.throughput_ratio(Subject::PLAIN, Subject::TIME) {
        sentences.push(format!(
            "Authenticated time comes at {} of the plain rate here ({} as published).",
            ratio(1.0 / slower),
            ratio(1.0 / PLAIN_OVER_TIME)
        ));
    }
    let latency = |level| record.latency_ratio(Subject::TIME, Subject::PLAIN, level);
    if let [Some(half), Some(most)] = Level::ALL.map(latency) {
        sentences.push(format!(
            "It takes {} longer than plain time at 50 % load and {} at 90 % (published: {} and {}).",
            signed_share(half - 1.0),
            signed_share(most - 1.0),
            signed_share(TIME_LATENCY_INCREASE[0]),
            signed_share(TIME_LATENCY_INCREASE[1])
        ));
    }
    if let Some(faster) = record.throughput_ratio(exchange(Suite::Ecdh), exchange(Suite::Rsa)) {
        let primitives = record.primitive_ratio();
        let primitives = primitives.map_or_else(String::new, |found| {
            format!(
                "; the primitives alone differ by {} here, and by {PRIMITIVE_ECDH_OVER_RSA} there",
                ratio(found)
            )
        });
        sentences.push(format!(
            "Key exchanges with ECDH come {} times as often as with RSA (published: \
             {EXCHANGE_ECDH_OVER_RSA}){primitives}.",
            ratio(faster)
        ));
    }
    for suite in Suite::ALL {
        let Some((share, ceiling)) = record.link_share(Subject::new(Phase::Negotiation, suite)) else {
            continue;
        };
        // A link whose requests fill so much of it has no room for the next.
        let bound = if share >= 0.95 { "the link is the limit" } else { "something else is the limit" };
        sentences.push(format!(
            "Negotiations with {} fill {} % of a link of 1 Gbit/s, which carries {} a second: {bound} (published: the \
             link).",
            suite.name(),
            percent(share),
            rate(ceiling)
        ));
    }
    for suite in Suite::ALL {
        let Some(complete) = record.complete(suite, Level::Half, Path::Short) else { continue };
        let (whole, phases) = (microseconds(complete.whole_us), microseconds(complete.phases_us()));
        sentences.push(format!(
            "A run of all phases with {} takes {whole} at 50 % load, its phases {phases} of them, and the client's own \
             cryptography {}.",
            suite.name(),
            microseconds(complete.client_crypto_us)
        ));
    }
    let unsure = cells(record).filter(|state| *state == State::Marked).count();
    if unsure > 0 {
        sentences.push(format!(
            "{unsure} cells of Table 1 have a mark (!): the generator did not keep up in any trial of theirs, so they \
             say little about the server, and are in no ratio and no figure."
        ));
    }
    let missing = cells(record).filter(|state| *state == State::Missing).count();
    if missing > 0 {
        sentences.push(format!("{missing} cells of Table 1 are not measured yet."));
    }
    sentences
}

/// What a cell of Table 1 has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Measured,
    Marked,
    Missing,
}

/// All cells of Table 1 but those behind the link, which not every host has.
fn cells(record: &AntpRecord) -> impl Iterator<Item = State> {
    let state = |has: &dyn Fn(Which) -> bool| match [Which::Valid, Which::Invalid].map(has) {
        [true, _] => State::Measured,
        [false, true] => State::Marked,
        [false, false] => State::Missing,
    };
    let throughput = Subject::ALL
        .into_iter()
        .map(move |subject| state(&|which| record.throughput_of(which, subject, Path::Short).is_some()));
    let complete = Suite::ALL.map(|suite| Subject::new(Phase::Complete, suite));
    let places = Subject::ALL.into_iter().chain(complete).flat_map(|subject| {
        PATHS.into_iter().flat_map(move |path| Level::ALL.map(|level| (subject, level, path)))
    });
    let latency = places.map(move |(subject, level, path)| {
        state(&|which| record.cell_of(which, subject, level, path).is_some())
    });
    throughput.chain(latency)
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;

    fn row<'a>(table: &'a Table, start: &[&str]) -> &'a [String] {
        let rows = table.rows.iter();
        rows.into_iter().find(|row| row.iter().zip(start).all(|(cell, part)| cell == part)).unwrap()
    }

    #[test]
    fn table_1_has_phases_suites_throughput_and_four_latencies() {
        let table = table_1(&record());
        assert_eq!((table.headings.len(), table.rows.len()), (8, 7 + 2 + 2));
        assert!(table.rows.iter().all(|row| row.len() == table.headings.len()));
        let time = row(&table, &["time synchronisation", "-"]);
        assert_eq!(time[2..5], ["175,644", "200,000 (\u{b1} 1,414)", "110.0 us (330.0 us)"]);
        assert_eq!(time[7], "70.24 ms (210.72 ms)");
        let rsa = row(&table, &["key exchange", "RSA"]);
        assert_eq!(rsa[2..5], ["unknown to us", "4,000 (\u{b1} 28.3)", "350.0 us (1.05 ms)"]);
        let link = row(&table, &["negotiation behind 1 Gbit/s", "RSA"]);
        assert_eq!(link[2..5], ["unknown to us", "90,000 (\u{b1} 636)", "-"]);
        assert_eq!(row(&table, &["all three phases", "ECDH"])[2..5], ["-", "-", "700.0 us (700.0 us)"]);
        assert_eq!(row(&table, &["plain NTP"])[2], "about 281,000 (computed)");
    }

    #[test]
    fn published_ratios_stand_beside_ours() {
        let table = ratios(&record());
        let find = |what: &str| row(&table, &[what])[1..].to_vec();
        assert_eq!(find("throughput, plain over time synchronisation"), ["1.6", "1.25"]);
        assert_eq!(find("latency of time synchronisation against plain, at 50 %"), ["+14 %", "+10 %"]);
        assert_eq!(find("latency of time synchronisation against plain, at 90 %"), ["+27 %", "+20 %"]);
        assert_eq!(find("throughput of key exchanges, ECDH over RSA"), ["7.54", "5.00"]);
        assert_eq!(find("the primitives alone, ECDH over RSA"), ["8.62", "7.00"]);
        assert_eq!(find("the former by the latter"), ["0.87", "0.71"]);
        assert_eq!(find("latency of key exchanges at 90 %, RSA over ECDH"), ["2.9", "3.00"]);
    }

    #[test]
    fn complete_run_shows_the_difference_and_what_was_timed_of_it() {
        let table = complete_runs(&record());
        let short = row(&table, &["ECDH", "short", "50 %"]);
        assert_eq!(
            short[3..],
            ["700.0 us", "130.0 us", "160.0 us", "110.0 us", "400.0 us", "300.0 us", "280.0 us", UNKNOWN]
        );
        assert_eq!(table.rows.len(), 8);
        assert_eq!(signed(-12.0), "-12.0 us");
    }

    #[test]
    fn cost_of_an_exchange_is_told_by_the_primitive() {
        let table = exchange_cost(&record());
        assert_eq!(
            row(&table, &["ECDH"])[1..],
            ["28.0 us", "30.0 us", "30.0 us", "1.07", "47.5 us", "1.70", "60.0 us"]
        );
    }

    #[test]
    fn what_is_not_measured_is_counted_and_never_a_number() {
        let whole = record();
        assert!(cells(&whole).all(|state| state == State::Measured));
        let mut part = whole.clone();
        part.trials.retain(|trial| trial.subject != Subject::TIME);
        part.latencies.retain(|latency| latency.path == Path::Short);
        assert_eq!(cells(&part).filter(|state| *state == State::Missing).count(), 1 + 9 * 2);
        let table = table_1(&part);
        assert_eq!(row(&table, &["time synchronisation"])[3], NOT_MEASURED);
        assert_eq!(row(&table, &["plain NTP"])[6..], ["-", "-"]);
        assert!(findings(&part).last().unwrap().contains("19 cells"));
        let empty = AntpRecord {
            primitives: Vec::new(),
            capacities: Vec::new(),
            trials: Vec::new(),
            latencies: Vec::new(),
            ..whole
        };
        assert_eq!(findings(&empty), ["43 cells of Table 1 are not measured yet."]);
        assert!(ratios(&empty).rows.iter().all(|row| row[2] == ABSENT));
        assert!(exchange_cost(&empty).rows.iter().all(|row| row[1..].iter().all(|cell| cell == ABSENT)));
    }

    #[test]
    fn figures_of_trials_that_do_not_count_have_a_mark_and_are_in_no_ratio() {
        let mut record = record();
        for trial in record.trials.iter_mut().filter(|trial| trial.subject == Subject::TIME) {
            trial.why_invalid = Some("late".to_owned());
        }
        for latency in &mut record.latencies {
            let is_marked = latency.subject.phase == Phase::Complete || latency.subject == Subject::PLAIN;
            latency.why_invalid = is_marked.then(|| "late".to_owned());
        }
        let table = table_1(&record);
        assert_eq!(row(&table, &["time synchronisation"])[3], "200,000 (\u{b1} 1,414) !");
        assert_eq!(row(&table, &["plain NTP"])[4], "100.0 us (300.0 us) !");
        assert_eq!(row(&table, &["key exchange", "ECDH"])[4], "150.0 us (450.0 us)");
        assert_eq!(row(&complete_runs(&record), &["RSA", "long", "90 %"])[8], "300.0 us !");
        let ratios = ratios(&record);
        assert_eq!(row(&ratios, &["throughput, plain over time synchronisation"])[2], ABSENT);
        assert_eq!(row(&ratios, &["latency of time synchronisation against plain, at 50 %"])[2], ABSENT);
        assert!(findings(&record).iter().any(|one| one.starts_with("13 cells") && one.contains("(!)")));
    }

    #[test]
    fn trial_that_does_not_count_says_why() {
        let mut record = record();
        record.capacities[0].remark = Some("the generator was the limit".to_owned());
        record.trials[0].why_invalid = Some("it fell behind".to_owned());
        let table = throughput_detail(&record);
        let plain = row(&table, &["plain NTP"]);
        assert_eq!(plain[4], "1 of 2");
        assert_eq!(plain[8], "the generator was the limit; a trial does not count: it fell behind");
    }

    #[test]
    fn findings_say_which_limit_negotiations_met() {
        let mut record = record();
        assert!(
            findings(&record).iter().any(|one| one.contains("91.04 %") && one.contains("something else"))
        );
        record.trials.iter_mut().for_each(|trial| trial.answered_rps *= 1.09);
        assert!(findings(&record).iter().any(|one| one.contains("the link is the limit")));
    }
}
