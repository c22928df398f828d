//! What stands below the picture: figures of each cell, and what servers do not have.

use super::{Cell, FieldRecord, Scheme, Server, Trial};
use crate::load::Limit;
use crate::render::{Table, Weight, or_absent};
use crate::stats::bootstrap::Estimate;
use crate::units::{listed, memory, microseconds, percent, rate};

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

/// The cost of each scheme at each server.
pub(super) fn costs(record: &FieldRecord) -> Table {
    let median = |cell: &Cell, figure: fn(&Trial) -> Option<f64>| {
        record.estimate(*cell, figure).map(|estimate| estimate.median)
    };
    let of_plain = |cell: &Cell| record.shares(*cell).estimate();
    Table::of("What authentication costs", record.measured())
        .weighed(|cell| Weight::of(record.counted(*cell).next().is_some()))
        .words("Server", |cell| cell.server.name())
        .words("Scheme", |cell| cell.scheme.name())
        .number("Of the plain rate", |cell| or_absent(of_plain(cell).map(share)))
        .number("Answers for a second of processor time", |cell| {
            or_absent(record.estimate(*cell, Trial::core_rps).map(rates))
        })
        .number("Processor time of an answer", |cell| {
            or_absent(median(cell, |trial| trial.cpu_us).map(microseconds))
        })
        .number("Octets of a request", |cell| {
            or_absent(record.trials(*cell).map(|trial| trial.request_size).max())
        })
        .number("Memory", |cell| {
            let octets = median(cell, |trial| trial.memory_octets.map(|octets| octets as f64));
            or_absent(octets.map(|octets| memory(octets as u64)))
        })
        .number("Answered/s", |cell| or_absent(median(cell, |trial| Some(trial.answered_rps)).map(rate)))
        .number("Of its processor", |cell| {
            or_absent(median(cell, |trial| trial.server_share).map(whole_percent))
        })
        .number("Of plain answered/s", |cell| or_absent(record.rate_shares(*cell).estimate().map(share)))
        .number("Trials that count", |cell| {
            format!("{} of {}", record.counted(*cell).count(), record.trials(*cell).count())
        })
        .words("What must be known of it", |cell| remark(record, *cell))
        .noted([
            "Medians over rounds; in parentheses the interval in which medians of resamples lie with 95 % (bootstrap \
             over rounds, exact). With fewer than six rounds that is from the lowest to the highest.",
            "Answered/s is by the clock on the wall, with whatever else ran on this machine. It is compared with plain \
             answered/s only in rounds in which the server was the limit of both.",
            "Memory is what the server\u{2019}s processes had resident after the trial. Octets are those of the \
             request as UDP payload.",
        ])
}

/// What has to be known of a cell's trials.
fn remark(record: &FieldRecord, cell: Cell) -> String {
    let invalid = record.trials(cell).find_map(|trial| trial.why_invalid.as_deref());
    let counted: Vec<&Trial> = record.counted(cell).collect();
    let lost = counted.iter().map(|trial| trial.loss_ratio).fold(0.0, f64::max);
    let mut parts = Vec::new();
    if lost > LOSS_TOLD {
        parts.push(format!("up to {} % of the requests had no good answer", percent(lost)));
    }
    if let Some(why) = invalid {
        parts.push(format!("a trial does not count: {why}"));
    }
    parts.join("; ")
}

/// In how many trials the server was what kept it from more: a sentence, if it was not in all.
pub(super) fn limits(record: &FieldRecord) -> Option<String> {
    let counted: Vec<&Trial> = record.trials.iter().filter(|trial| trial.why_invalid.is_none()).collect();
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
            let Some(why) = server.lacks(scheme) else { continue };
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
    use super::super::tests::record;
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
    }

    #[test]
    fn trials_that_do_not_count_are_told() {
        let mut record = record();
        record.trials[0].why_invalid = Some("it fell behind".to_owned());
        record.trials[0].loss_ratio = 0.5;
        let cell = record.trials[0].cell;
        assert_eq!(remark(&record, cell), "a trial does not count: it fell behind");
        record.trials[0].why_invalid = None;
        assert_eq!(remark(&record, cell), "up to 50.00 % of the requests had no good answer");
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
