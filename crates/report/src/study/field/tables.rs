//! What stands below the picture: figures of each cell, and what servers do not have.

use super::figures::Basis;
use super::{Cell, FieldRecord, Latency, Level, Scheme, Server, Trial};
use crate::load::Limit;
use crate::render::{Table, Weight, or_absent};
use crate::stats::bootstrap::Estimate;
use crate::units::{listed, memory, microseconds, percent, plural, rate, ratio, signed_microseconds};

/// More than this share of requests without an answer is told.
const LOSS_TOLD: f64 = 0.001;

/// A share without decimals: `92 %`.
pub(super) fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// `92 % (90 to 94)`.
pub(super) fn share(estimate: Estimate) -> String {
    let Estimate { median, interval } = estimate;
    let ends = interval.map(|[low, high]| format!(" ({:.0} to {:.0})", low * 100.0, high * 100.0));
    whole_percent(median) + &ends.unwrap_or_default()
}

/// `230,000 (220,000 to 240,000)`.
fn rates(estimate: Estimate) -> String {
    let Estimate { median, interval } = estimate;
    let ends = interval.map(|[low, high]| format!(" ({} to {})", rate(low), rate(high)));
    rate(median) + &ends.unwrap_or_default()
}

/// What nobody tells of a server that somebody else runs.
const UNKNOWN: &str = "unknown";

/// A figure of a cell's processes: one that nobody knows, though the cell was measured, is unknown.
fn of_processes(record: &FieldRecord, cell: Cell, figure: Option<String>) -> String {
    let is_measured = record.counted(cell).next().is_some();
    or_absent(figure.or_else(|| is_measured.then(|| UNKNOWN.to_owned())))
}

/// The share of the plain rate, and what it is of if that is not processor time.
fn of_plain(record: &FieldRecord, cell: Cell) -> String {
    let basis = match record.basis(cell) {
        Basis::ProcessorTime => "",
        Basis::Answers => ", by answers",
    };
    or_absent(record.shares(cell).estimate().map(|estimate| share(estimate) + basis))
}

/// The cost of each scheme at each server.
pub(super) fn costs(record: &FieldRecord) -> Table {
    let median = |cell: &Cell, figure: fn(&Trial) -> Option<f64>| {
        record.estimate(*cell, figure).map(|estimate| estimate.median)
    };
    Table::of("What authentication costs", record.measured())
        .weighed(|cell| Weight::of(record.counted(*cell).next().is_some()))
        .words("Server", |cell| cell.server.name().to_owned())
        .words("Scheme", |cell| cell.scheme.name())
        .number("Of the plain rate", |cell| of_plain(record, *cell))
        .number("Answers for a second of processor time", |cell| {
            of_processes(record, *cell, record.estimate(*cell, Trial::core_rps).map(rates))
        })
        .number("Processor time of an answer", |cell| {
            of_processes(record, *cell, median(cell, |trial| trial.cpu_us).map(microseconds))
        })
        .number("Octets of a request", |cell| {
            or_absent(record.trials(*cell).map(|trial| trial.request_size).max())
        })
        .number("Memory", |cell| {
            let octets = median(cell, |trial| trial.memory_octets.map(|octets| octets as f64));
            of_processes(record, *cell, octets.map(|octets| memory(octets as u64)))
        })
        .number("Answered/s", |cell| or_absent(median(cell, |trial| Some(trial.answered_rps)).map(rate)))
        .number("Of its processor", |cell| {
            of_processes(record, *cell, median(cell, |trial| trial.server_share).map(whole_percent))
        })
        .number("Of plain answered/s", |cell| or_absent(record.rate_shares(*cell).estimate().map(share)))
        .number("Trials that count", |cell| {
            format!("{} of {}", record.counted(*cell).count(), record.trials(*cell).count())
        })
        .words("What must be known of it", |cell| remark(record, *cell))
        .number("Octets of an answer", |cell| {
            let sizes = record.trials(*cell).map(|trial| trial.response_size);
            or_absent(sizes.max().filter(|&size| size > 0))
        })
        .number("Answer by request", |cell| or_absent(record.answer_by_request(*cell).map(ratio)))
        .noted([
            "Medians over rounds; in parentheses the interval in which medians of resamples lie with 95 % (bootstrap \
             over rounds, exact). With fewer than six rounds that is from the lowest to the highest.",
            "Answered/s is by the clock on the wall, with whatever else ran on this machine. It is compared with plain \
             answered/s only in rounds in which the server was the limit of both.",
            "Memory is what the server\u{2019}s processes had resident after the trial. Octets are those of the \
             request as UDP payload.",
            "Octets of an answer are those of the largest one that passed every check, all datagrams of it together; \
             the last column has it by the largest request. A server whose answers are longer than requests lets \
             strangers amplify what they send.",
            "Of a server that somebody else runs, processor time and memory are unknown unless its processes were \
             named. Then its share is by answers: answered/s by plain answered/s, each bounded by whatever limited it.",
        ])
}

/// `210.0 us (205.0 us to 220.0 us)`.
pub(super) fn times(estimate: Estimate) -> String {
    let Estimate { median, interval } = estimate;
    let ends = interval.map(|[low, high]| format!(" ({} to {})", microseconds(low), microseconds(high)));
    microseconds(median) + &ends.unwrap_or_default()
}

/// `2.10 (1.95 to 2.20)`.
fn ratios(estimate: Estimate) -> String {
    let Estimate { median, interval } = estimate;
    let ends = interval.map(|[low, high]| format!(" ({} to {})", ratio(low), ratio(high)));
    ratio(median) + &ends.unwrap_or_default()
}

/// What key exchanges cost each server; `None` if none was measured.
pub(super) fn exchanges(record: &FieldRecord) -> Option<Table> {
    let is_there = |server: &Server| record.exchanges.iter().any(|trial| trial.cell.server == *server);
    let servers: Vec<Server> = record.settings.all_servers().filter(is_there).collect();
    if servers.is_empty() {
        return None;
    }
    let of = |server: &Server, figure: fn(&Trial) -> Option<f64>| record.exchange(*server, figure);
    let all = |server: Server| record.exchanges.iter().filter(move |trial| trial.cell.server == server);
    let unless_unknown = |server: &Server, figure: Option<String>| {
        let is_measured = record.exchanges_counted(*server).next().is_some();
        or_absent(figure.or_else(|| is_measured.then(|| UNKNOWN.to_owned())))
    };
    let table = Table::of("What a key exchange costs", servers)
        .weighed(|server| Weight::of(record.exchanges_counted(*server).next().is_some()))
        .words("Server", |server| server.name().to_owned())
        .words("For", |server| all(*server).next().map_or("", |trial| trial.cell.scheme.name()))
        .number("Processor time of an exchange", |server| {
            unless_unknown(server, of(server, |trial| trial.cpu_us).map(times))
        })
        .number("Times ours", |server| or_absent(record.exchange_ratio(*server).map(ratios)))
        .number("Exchanges/s", |server| {
            or_absent(of(server, |trial| Some(trial.answered_rps)).map(|found| rate(found.median)))
        })
        .number("Of its processor", |server| {
            unless_unknown(server, of(server, |trial| trial.server_share).map(|found| whole_percent(found.median)))
        })
        .number("Memory", |server| {
            let octets = of(server, |trial| trial.memory_octets.map(|octets| octets as f64));
            unless_unknown(server, octets.map(|octets| memory(octets.median as u64)))
        })
        .number("Trials that count", |server| {
            format!("{} of {}", record.exchanges_counted(*server).count(), all(*server).count())
        })
        .words("What must be known of it", |server| trials_remark(all(*server)))
        .noted([
            "TCP, TLS 1.3 with a P-256 certificate, and cookies; the kernel\u{2019}s part is in the processor \
             time. A client does about as much work as a server, so exchanges a second are often the \
             generator\u{2019}s limit: where less than all of its processor was used, a server can do more.",
        ]);
    Some(table)
}

/// How long answers take at shares of what each cell answers; `None` if none was measured.
pub(super) fn latencies(record: &FieldRecord) -> Option<Table> {
    let rows = record.levels();
    if rows.is_empty() {
        return None;
    }
    type Row = (Cell, Level);
    let of = |figure: fn(&Latency) -> Option<f64>| {
        move |(cell, level): &Row| {
            or_absent(record.latency(*cell, *level, figure).map(|found| microseconds(found.median)))
        }
    };
    let median = |(cell, level): &Row, figure: fn(&Latency) -> Option<f64>| {
        record.latency(*cell, *level, figure).map(|found| found.median)
    };
    let counted = |(cell, level): &Row| {
        record.latencies(*cell, *level).filter(|trial| trial.why_invalid.is_none()).count()
    };
    let table = Table::of("How long answers take, and how far off they are", rows)
        .weighed(|row| Weight::of(counted(row) > 0))
        .words("Server", |(cell, _)| cell.server.name().to_owned())
        .words("Scheme", |(cell, _)| cell.scheme.name())
        .words("Load", |(_, level)| level.name())
        .number("Asked/s", |row| or_absent(median(row, |trial| Some(trial.offered_rps)).map(rate)))
        .number("p50", of(|trial| trial.latency_us.map(|points| points.p50)))
        .number("Over plain", |(cell, level)| {
            let added = record.added_us(*cell, *level).filter(|_| cell.scheme != Scheme::Plain);
            or_absent(added.map(|found| signed_microseconds(found.median)))
        })
        .number("p99", of(|trial| trial.latency_us.map(|points| points.p99)))
        .number("Error p50", of(|trial| trial.offset_error_us.map(|points| points.p50)))
        .number("Error p99", of(|trial| trial.offset_error_us.map(|points| points.p99)))
        .number("Lost", |row| {
            or_absent(median(row, |trial| Some(trial.loss_ratio)).map(|lost| format!("{} %", percent(lost))))
        })
        .number("Of its processor", |row| {
            let used = median(row, |trial| trial.server_share).map(whole_percent);
            or_absent(used.or_else(|| (counted(row) > 0).then(|| UNKNOWN.to_owned())))
        })
        .number("Trials that count", |row| {
            format!("{} of {}", counted(row), record.latencies(row.0, row.1).count())
        })
        .words("What must be known of it", |(cell, level)| {
            let invalid = record.latencies(*cell, *level).find_map(|trial| trial.why_invalid.as_deref());
            invalid.map_or_else(String::new, |why| format!("a trial does not count: {why}"))
        })
        .noted([
            "Medians over rounds. Load: the share of what the same cell answered in a closed loop of the same round; \
             requests come at random (Poisson), whether or not others were answered. Time counts from when a request \
             was due. Over plain: the median less that of plain requests at the same share, which is another rate.",
            "Error: how far the offset by an answer is from zero, which is the truth, as client and server read one \
             clock. It is half of what the way there takes longer than the way back. Of a server on another host it is \
             not known.",
        ]);
    Some(table)
}

/// What has to be known of trials of a closed loop.
fn trials_remark<'a>(trials: impl Iterator<Item = &'a Trial>) -> String {
    let (mut invalid, mut lost) = (None, 0.0_f64);
    for trial in trials {
        match trial.why_invalid.as_deref() {
            Some(why) => invalid = invalid.or(Some(why)),
            None => lost = lost.max(trial.loss_ratio),
        }
    }
    let mut parts = Vec::new();
    if lost > LOSS_TOLD {
        parts.push(format!("up to {} % had no good answer", percent(lost)));
    }
    if let Some(why) = invalid {
        parts.push(format!("a trial does not count: {why}"));
    }
    parts.join("; ")
}

/// What has to be known of a cell's trials.
fn remark(record: &FieldRecord, cell: Cell) -> String {
    let mut parts: Vec<String> =
        Some(trials_remark(record.trials(cell))).filter(|told| !told.is_empty()).into_iter().collect();
    parts.extend(Some(bounds(record, cell)).filter(|_| record.basis(cell) == Basis::Answers).flatten());
    parts.join("; ")
}

/// What kept the trials of a cell that count from more; `None` if there are none.
fn bounds(record: &FieldRecord, cell: Cell) -> Option<String> {
    let by = |limit: Limit| record.counted(cell).filter(|trial| trial.limited_by == limit).count() as u64;
    let named = [
        ("the server", by(Limit::Server)),
        ("the generator", by(Limit::Generator)),
        ("the path", by(Limit::Path)),
        ("nothing", by(Limit::Nothing)),
        ("server or path", by(Limit::Unknown)),
    ];
    let parts = named.into_iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(who, count)| format!("{who} in {}", plural(count, "trial"))).collect();
    (!parts.is_empty()).then(|| format!("answered/s was bounded by {}", listed(parts)))
}

/// In how many trials the server was what kept it from more: a sentence, if it was not in all.
pub(super) fn limits(record: &FieldRecord) -> Option<String> {
    let is_known = |trial: &&Trial| trial.why_invalid.is_none() && trial.cpu_us.is_some();
    let counted: Vec<&Trial> = record.trials.iter().filter(is_known).collect();
    let by_server = counted.iter().filter(|trial| trial.limited_by == Limit::Server).count();
    (by_server < counted.len()).then(|| {
        format!(
            "The server was busy all the time in {by_server} of {} trials that count. In the others it waited for \
             requests at times, and took fewer of them at once than under full load, which costs all schemes some \
             processor time.",
            counted.len()
        )
    })
}

/// What servers do not have, whichever version they are, of what was to be measured: a sentence for each reason.
pub(super) fn lacks(record: &FieldRecord) -> Vec<String> {
    let mut sentences = Vec::new();
    for &server in &record.settings.servers {
        let mut reasons: Vec<(&str, Vec<Scheme>)> = Vec::new();
        for &scheme in &record.settings.schemes {
            let Some(why) = record.settings.lacks(server, scheme) else { continue };
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, schemes)) => schemes.push(scheme),
                None => reasons.push((why, vec![scheme])),
            }
        }
        sentences.extend(reasons.iter().map(|(why, schemes)| sentence(server, why, schemes)));
    }
    sentences
}

fn sentence(server: Server, why: &str, schemes: &[Scheme]) -> String {
    let names = listed(schemes.iter().map(|scheme| scheme.name().to_owned()));
    format!("{} {why}: {names}.", server.name())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{record, record_with_given};
    use super::*;

    #[test]
    fn cells_say_their_share_with_its_interval() {
        let table = costs(&record());
        let row = |server: &str, scheme: &str| {
            let is_it = |cells: &&Vec<String>| cells[0].starts_with(server) && cells[1] == scheme;
            table.rows.iter().map(|row| &row.cells).find(is_it).unwrap().clone()
        };
        let nts = row("chrony", "NTS, AEAD 15");
        assert_eq!(nts[2], "62 % (62 to 62)");
        assert_eq!(nts[4], "8.0 us");
        assert_eq!(nts[10], "3 of 3");
        assert_eq!(row("authentick", "plain NTP")[2], "100 % (100 to 100)");
        // Octets of an answer stand beside those of a request.
        assert_eq!((nts[5].as_str(), &nts[12..]), ("228", &["220", "0.96"].map(str::to_owned)[..]));
    }

    #[test]
    fn what_nobody_knows_of_a_server_is_unknown_and_its_share_is_by_answers() {
        let (record, cfnts) = record_with_given();
        let table = costs(&record);
        let rows: Vec<_> = table.rows.iter().map(|row| &row.cells).filter(|row| row[0] == "cfnts").collect();
        let schemes: Vec<&str> = rows.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(schemes, ["plain NTP", "NTS, AEAD 15"]);
        assert_eq!(
            rows[1][2..9],
            ["62 % (62 to 62), by answers", "unknown", "unknown", "228", "unknown", "118,750", "unknown"]
                .map(String::from)
        );
        assert_eq!(rows[1][11], "answered/s was bounded by server or path in 3 trials");
        let table = exchanges(&record).unwrap();
        let row = table.rows.iter().map(|row| &row.cells).find(|row| row[0] == "cfnts").unwrap();
        assert_eq!(row[1..4], ["NTS, AEAD 15", "unknown", "-"].map(String::from));
        let table = latencies(&record).unwrap();
        let row = table.rows.iter().map(|row| &row.cells).find(|row| row[0] == "cfnts").unwrap();
        assert_eq!([&row[7], &row[10]], ["-", "unknown"]);
        let lacking = lacks(&record);
        let cells: Vec<_> = lacking.iter().filter(|sentence| sentence.starts_with("cfnts ")).collect();
        assert_eq!(
            cells,
            [
                "cfnts is not asked under a MAC, as it shares no keys with this study: AES-128-CMAC.",
                "cfnts is not asked for ANTP, which nobody but us speaks: ANTP."
            ]
        );
        // With its processes named it is like any other.
        let mut record = record;
        let trials = record.trials.iter_mut().filter(|trial| trial.cell.server == cfnts);
        trials.for_each(|trial| trial.cpu_us = Some(10.0));
        let table = costs(&record);
        let row = table.rows.iter().map(|row| &row.cells).find(|row| row[0] == "cfnts").unwrap();
        assert_eq!(row[2..4], ["100 % (100 to 100)", "100,000 (100,000 to 100,000)"].map(String::from));
    }

    #[test]
    fn trials_that_do_not_count_are_told() {
        let mut record = record();
        record.trials[0].why_invalid = Some("it fell behind".to_owned());
        record.trials[0].loss_ratio = 0.5;
        let cell = record.trials[0].cell;
        assert_eq!(remark(&record, cell), "a trial does not count: it fell behind");
        record.trials[0].why_invalid = None;
        assert_eq!(remark(&record, cell), "up to 50.00 % had no good answer");
    }

    #[test]
    fn key_exchanges_stand_beside_ours() {
        let mut record = record();
        let table = exchanges(&record).unwrap();
        let rows: Vec<&Vec<String>> = table.rows.iter().map(|row| &row.cells).collect();
        assert_eq!(
            rows[0][..4],
            ["authentick", "NTS, AEAD 15", "100.0 us (100.0 us to 100.0 us)", "1.00 (1.00 to 1.00)"]
        );
        assert_eq!(rows[1][2..4], ["250.0 us (250.0 us to 250.0 us)", "2.50 (2.50 to 2.50)"]);
        record.exchanges.clear();
        assert!(exchanges(&record).is_none());
    }

    #[test]
    fn latencies_are_rows_of_scheme_and_load() {
        let mut record = record();
        let table = latencies(&record).unwrap();
        let nts = table.rows.iter().map(|row| &row.cells);
        let nts: Vec<_> = nts.filter(|row| row[0] == "chrony" && row[1] == "NTS, AEAD 15").collect();
        assert_eq!(nts.len(), 2);
        assert_eq!(
            nts[0][2..9],
            ["50 %", "59,375", "23.0 us", "+3.0 us", "46.0 us", "2.0 us", "8.0 us"].map(String::from)
        );
        record.latencies.clear();
        assert!(latencies(&record).is_none());
    }

    #[test]
    fn what_is_lacking_is_a_sentence_for_each_reason() {
        let mut record = record();
        assert_eq!(lacks(&record), ["chrony has no ANTP, as nobody but us: ANTP."]);
        record.settings.servers = vec![Server::NtpdRs];
        record.settings.schemes = vec![Scheme::Plain, Scheme::Md5, Scheme::Cmac128, Scheme::Nts30];
        assert_eq!(
            lacks(&record),
            [
                "ntpd-rs has no symmetric keys: MD5 digest and AES-128-CMAC.",
                "ntpd-rs has no AEAD 30, but 15 and 17: NTS, AEAD 30."
            ]
        );
    }

    #[test]
    fn what_limited_trials_is_told_where_it_was_not_the_server() {
        let mut record = record();
        assert_eq!(limits(&record), None);
        record.trials[0].limited_by = Limit::Path;
        let sentence = limits(&record).unwrap();
        assert!(sentence.contains("in 20 of 21 trials that count."), "{sentence}");
    }
}
