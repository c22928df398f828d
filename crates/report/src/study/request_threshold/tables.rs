//! The note's tables beside ours, and what limited each row of ours.

use crate::load::{LoadRecord, Step, why as why_of};
use crate::published::request_threshold::{HOSTS, TABLE_1, TABLE_2};
use crate::render::{Block, Chart, Line, Point, Table, Weight, or_empty};
use crate::units::{count, joined, microseconds, percent, rate, ratio, seconds};

/// Unanswered shares above this one are a limit that was reached.
const LOSS_MAX: f64 = 0.01;
const SPECIFIED_2: &str = "Specified/s, each host";
const NOT_MEASURED: &str = "not measured";
const LIMIT: &str = "What limited ours";

/// A step of ours as a row, and what it is compared by.
struct Ours<'a> {
    step: &'a Step,
    /// Answers a second as a share of the most in the table.
    share: f64,
}

/// Each row of ours; `None` where it was not measured.
fn ours(records: &[Option<LoadRecord>]) -> Vec<Option<Ours<'_>>> {
    let mut rows: Vec<Option<&Step>> = Vec::new();
    for record in records {
        match record.as_ref().filter(|record| !record.steps.is_empty()) {
            Some(record) => rows.extend(record.steps.iter().map(Some)),
            None => rows.push(None),
        }
    }
    let most = rows.iter().flatten().map(|step| step.answered_rps()).fold(0.0, f64::max);
    let share = |step: &Step| if most > 0.0 { step.answered_rps() / most } else { 0.0 };
    rows.into_iter().map(|row| row.map(|step| Ours { step, share: share(step) })).collect()
}

/// Why a host did not do its part, without the remedy that the record adds: the row is there to show the limit.
fn reason(why: Option<&String>) -> &str {
    let text = why_of(why);
    text.split_once("; ").map_or(text, |(reason, _)| reason)
}

/// What limited a row.
fn limit(step: &Step) -> String {
    let hosts: Vec<_> = step.hosts.iter().filter(|part| !part.valid).collect();
    let unanswered = step.tally.loss_ratio();
    match hosts[..] {
        [] if !step.valid => format!("the host is its own limit: {}", reason(step.why_invalid.as_ref())),
        [] if unanswered > LOSS_MAX => {
            format!("the server or the path: {} % had no good answer", percent(unanswered))
        }
        [] => "nothing: what was specified was serviced".to_owned(),
        [part] => format!("{} is its own limit: {}", part.name, reason(part.why_invalid.as_ref())),
        [..] => {
            // The record has the details of each; what they have in common stands before the colon.
            let kinds: Vec<&str> = hosts
                .iter()
                .map(|part| reason(part.why_invalid.as_ref()))
                .map(|reason| reason.split_once(':').map_or(reason, |(kind, _)| kind))
                .collect();
            let names: Vec<&str> = hosts.iter().map(|part| part.name.as_str()).collect();
            match kinds.iter().all(|kind| *kind == kinds[0]) {
                true => format!("{} are their own limits: {}", names.join(", "), kinds[0]),
                false => names
                    .iter()
                    .zip(&kinds)
                    .map(|(name, kind)| format!("{name} is its own limit: {kind}"))
                    .collect::<Vec<_>>()
                    .join("; "),
            }
        }
    }
}

/// `94 %`.
fn share(value: f64) -> String {
    format!("{:.0} %", value * 100.0)
}

/// Both Tables 1, row beside row. What is ours of a row whose step is invalid is marked.
pub(super) fn table_1(single: &[Option<LoadRecord>]) -> Table {
    let ours = ours(single);
    let rows = (0..TABLE_1.len().max(ours.len()))
        .map(|index| (TABLE_1.get(index), ours.get(index).and_then(Option::as_ref)));
    Table::of("Table 1", rows)
        .weighed(|(_, ours)| match ours.is_none_or(|ours| ours.step.valid) {
            true => Weight::Plain,
            false => Weight::VoidRight,
        })
        .number("Published: specified/s", |(row, _)| or_empty(row.map(|row| count(row.requested_rps.into()))))
        .number("Seconds", |(row, _)| or_empty(row.map(|row| row.seconds)))
        .number("Serviced/s", |(row, _)| or_empty(row.map(|row| count(row.serviced_rps.into()))))
        .number("Of the most", |(row, _)| {
            or_empty(row.map(|row| share(f64::from(row.serviced_rps) / f64::from(most_1()))))
        })
        .number("Ours: specified/s", |(_, ours)| {
            or_empty(ours.and_then(|ours| ours.step.offered_rps).map(rate))
        })
        .number("Seconds", |(_, ours)| or_empty(ours.map(|ours| seconds(ours.step.seconds))))
        .number("Serviced/s", |(_, ours)| or_empty(ours.map(|ours| rate(ours.step.answered_rps()))))
        .number("Of the most", |(_, ours)| or_empty(ours.map(|ours| share(ours.share))))
        .words(LIMIT, |(_, ours)| ours.map_or_else(|| NOT_MEASURED.to_owned(), |ours| limit(ours.step)))
        .table()
}

/// The most of the published Table 1, a second.
fn most_1() -> u32 {
    TABLE_1.iter().map(|row| row.serviced_rps).max().expect("the table has rows")
}

/// The published Table 2.
pub(super) fn published_2() -> Table {
    let most = TABLE_2.iter().map(|row| row.total_rps).max().expect("the table has rows");
    Table::of("Table 2, published", &TABLE_2)
        .number(SPECIFIED_2, |row| count(row.requested_rps.into()))
        .number("Seconds", |row| row.seconds)
        .each(
            0..HOSTS.len(),
            |&index| HOSTS[index],
            |row, &index| with_share(f64::from(row.serviced_rps[index]), f64::from(row.total_rps)),
        )
        .number("Total", |row| count(row.total_rps.into()))
        .number("Of the most", |row| share(f64::from(row.total_rps) / f64::from(most)))
        .table()
}

/// Our Table 2: a row for each step, a column for each host that took part in any.
pub(super) fn ours_2(several: &[Option<LoadRecord>]) -> Table {
    let rows: Vec<Ours<'_>> = ours(several).into_iter().flatten().collect();
    let mut hosts: Vec<&str> = Vec::new();
    for part in rows.iter().flat_map(|row| &row.step.hosts) {
        if !hosts.contains(&part.name.as_str()) {
            hosts.push(&part.name);
        }
    }
    let answered = |step: &Step, host: &str| {
        let part = step.hosts.iter().find(|part| part.name == host)?;
        Some(with_share(step.per_second(part.tally.answered), step.answered_rps()))
    };
    Table::of("Table 2, ours", rows)
        .weighed(|row| Weight::of(row.step.valid))
        .number(SPECIFIED_2, |row| {
            let host_count = row.step.hosts.len().max(1) as f64;
            or_empty(row.step.offered_rps.map(|offered| rate(offered / host_count)))
        })
        .number("Seconds", |row| seconds(row.step.seconds))
        .each(hosts, |host| *host, |row, host| or_empty(answered(row.step, host)))
        .number("Total", |row| rate(row.step.answered_rps()))
        .number("Of the most", |row| share(row.share))
        .number("Start skew", |row| start_skew(row.step))
        .words(LIMIT, |row| limit(row.step))
        .table()
}

/// How far from the common instant the furthest host began, at worst.
fn start_skew(step: &Step) -> String {
    let worst = step.hosts.iter().map(|part| part.start_skew_us.abs() + part.start_skew_error_us);
    or_empty(worst.reduce(f64::max).map(|us| format!("\u{2264} {}", microseconds(us))))
}

/// `2,452 (25 %)`.
fn with_share(rps: f64, total: f64) -> String {
    match total > 0.0 {
        true => format!("{} ({})", rate(rps), share(rps / total)),
        false => rate(rps),
    }
}

const SHAPES: &str = "Serviced against specified, both as multiples of the most that was serviced";

/// Where a line of a picture begins and ends; `None` of nothing.
fn ends(line: &Line) -> Option<String> {
    let (first, last) = line.points.first().zip(line.points.last())?;
    let told = |point: &Point| format!("{} of {} are serviced", ratio(point.value), ratio(point.rate));
    Some(format!("{}: from {} to {}", line.name, told(first), told(last)))
}

/// Table 1 as two lines whose units are the most that each serviced.
pub(super) fn shapes(single: &[Option<LoadRecord>]) -> Block {
    let most = f64::from(most_1());
    let published = TABLE_1.iter().map(|row| Point {
        rate: f64::from(row.requested_rps) / most,
        value: f64::from(row.serviced_rps) / most,
        valid: true,
        interval: None,
    });
    let rows: Vec<Ours<'_>> = ours(single).into_iter().flatten().collect();
    let unit = rows.iter().map(|row| row.step.answered_rps()).fold(0.0, f64::max);
    let measured = rows.iter().filter(|_| unit > 0.0).map(|row| Point {
        rate: row.step.rate_rps() / unit,
        value: row.share,
        valid: row.step.valid,
        interval: None,
    });
    let lines = vec![
        Line { name: "published".to_owned(), colour: 1, dashes: 1, points: published.collect() },
        Line { name: "ours".to_owned(), colour: 0, dashes: 0, points: measured.collect() },
    ];
    let said = joined(lines.iter().filter_map(ends), "; ").unwrap_or_default();
    let chart = Chart {
        label: format!("{SHAPES}. {said}.").into(),
        up: "serviced, by the most serviced",
        along: "specified, by the most serviced",
        diagonal: Some("all that is specified"),
        void: "the host was its own limit",
        lines,
        ..Chart::default()
    };
    let caption =
        "Where a line leaves the dotted one, something is exhausted; the table says what it is in ours.";
    Block::figure(chart, caption)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::record;

    #[test]
    fn several_hosts_that_are_their_own_limits_are_named_once() {
        let mut step = record().steps[3].clone();
        let why =
            "generator fell behind: 1 % of requests left 2.2 ms late or more; offer less, or use more hosts";
        for part in &mut step.hosts {
            (part.valid, part.why_invalid) = (false, Some(why.to_owned()));
        }
        assert_eq!(
            limit(&step),
            "198.18.0.11:4470, 198.18.0.12:4470 are their own limits: generator fell behind"
        );
        step.hosts[0].why_invalid =
            Some("the generator's host refused 3 operations; use more hosts".to_owned());
        assert_eq!(
            limit(&step),
            "198.18.0.11:4470 is its own limit: the generator's host refused 3 operations; 198.18.0.12:4470 is its \
             own limit: generator fell behind"
        );
        step.hosts.truncate(1);
        assert!(limit(&step).ends_with("refused 3 operations"));
    }
}
