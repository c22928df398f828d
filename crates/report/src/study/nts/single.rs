//! One record alone, without the study that it is of: what `authentick report` shows of a file.

use super::beyond::Beyond;
use super::figures::{Cells, Derived};
use super::operations::Alone;
use super::rung::Outcomes;
use super::{
    Cell, OperationsRecord, RatesRecord, Records, Rung, RungRecord, ScaleRecord, SessionsRecord, Times,
    UnloadedRecord, beyond, operations, tables,
};
use crate::load::Cause;
use crate::render::{Block, Layout, Report, Section, Table, or_absent};
use crate::stored::Stored;
use crate::units::{count, listed, microseconds, percent, rate, seconds, time};

fn ns(value: f64) -> String {
    time(value.round() as u64)
}

/// The report on a cell alone: its tables, with theirs beside ours.
#[must_use]
pub fn of_unloaded(record: &UnloadedRecord) -> Report {
    let name = Cell::of(&record.task).map_or_else(|| record.task.clone(), Cell::name);
    let mut first = Section::default();
    first.say(format!("One client without load: {name}. On {}", record.provenance().made()));
    first.show([tables::table_2(record), tables::readings(record)]);
    let figures = tables::figure_4(record).into_iter().chain(tables::figure_5(record));
    figures.for_each(|block| first.add(block));
    first.show(Derived::of(record).as_ref().map(tables::equation_6));
    Report::new("One client of the NTS study", Layout::Nested, vec![first])
}

/// The report on what the server of a ladder serves.
#[must_use]
pub fn of_scale(record: &ScaleRecord) -> Report {
    let ScaleRecord { whole_core_rps, generator_rps, descriptors, quota_share, capacity_rps, factor, .. } =
        record;
    let whole = whole_core_rps.map_or_else(|| "more than the generator can offer".to_owned(), rate);
    let mut first = Section::default();
    first.say(format!("What the server of a ladder serves. On {}", record.provenance().made()));
    let rows = [
        ["key exchanges a second on a whole core".to_owned(), whole],
        ["the most that the generator can offer".to_owned(), rate(*generator_rps)],
        ["descriptors of a process".to_owned(), or_absent(descriptors.map(count))],
        [
            "share of a core".to_owned(),
            quota_share.map_or_else(|| "all of it".to_owned(), |share| format!("{} %", percent(share))),
        ],
        ["key exchanges a second with that".to_owned(), rate(*capacity_rps)],
        ["for each of the axis".to_owned(), format!("{factor:.3}")],
    ];
    first.show([Table::of("Scale", rows)
        .words("figure", |[name, _]: &[String; 2]| name.clone())
        .number("value", |[_, value]| value.clone())
        .table()]);
    Report::new("A scale of the NTS study", Layout::Nested, vec![first])
}

/// The report on a step of a ladder alone.
#[must_use]
pub fn of_rung(record: &RungRecord) -> Report {
    let mut first = Section::default();
    first.say_all(told(record));
    first.add(Block::Table(outcomes(record)));
    first.add(Block::Table(times(record)));
    Report::new("A step of the NTS study\u{2019}s ladder", Layout::Nested, vec![first])
}

/// The report on operations alone.
#[must_use]
pub fn of_operations(record: &OperationsRecord) -> Report {
    let alone = Alone::new(std::slice::from_ref(record));
    let sections = operations::section(&alone, &Cells::new(&[]));
    alone_report("Operations alone of the NTS study", record, sections)
}

/// The report on what a core serves of a pattern.
#[must_use]
pub fn of_sessions(record: &SessionsRecord) -> Report {
    let records = Records { sessions: vec![record.clone()], ..Records::default() };
    alone_report("Sessions of the NTS study", record, beyond::section(&Beyond::new(&records)))
}

/// The report on transfers alone.
#[must_use]
pub fn of_rates(record: &RatesRecord) -> Report {
    let records = Records { rates: vec![record.clone()], ..Records::default() };
    alone_report("Transfers alone of the NTS study", record, beyond::section(&Beyond::new(&records)))
}

/// Where a record is from, and what the report on the study would say of it.
fn alone_report<R: Stored>(title: &str, record: &R, section: Option<Section>) -> Report {
    let mut first = Section::default();
    first.say(format!("{title}. On {}", record.provenance().made()));
    Report::new(title, Layout::Nested, std::iter::once(first).chain(section).collect())
}

fn told(record: &RungRecord) -> Vec<String> {
    let RungRecord { load_rps, measured_rps, background_rps, why_invalid, .. } = record;
    let what = match (record.place(), load_rps) {
        (Some((ladder, Rung::Load(_))), Some(load)) => {
            format!("A step of {} key exchanges a second ({})", rate(*load), ladder.name())
        }
        (Some((ladder, _)), _) => format!("A step without load ({})", ladder.name()),
        (None, _) => record.task.clone(),
    };
    let mut sentences = vec![
        format!("{what}. On {}", record.provenance().made()),
        format!(
            "The measured client was to begin {} key exchanges a second and all others {}, for {} s. The \
             server\u{2019}s busiest thread ran for {} of it, and its quota held it up for {} of the time; the \
             busiest thread of the generator had work for {} of it, and exchanges left up to {} late (99th \
             percentile).",
            rate(*measured_rps),
            rate(*background_rps),
            seconds(record.seconds),
            share(record.server_share),
            share(record.throttled_share),
            share(record.generator_busy_share),
            record.lateness_p99_us.map_or_else(|| "an unknown time".to_owned(), microseconds)
        ),
        format!(
            "ListenOverflows {}, ListenDrops {}, repeated SYNs {}. Both ends are known of {} exchanges and transfers, \
             and of {} the server has no record.",
            or_absent(record.accept_overflows.map(count)),
            or_absent(record.accept_drops.map(count)),
            or_absent(record.syn_repeats.map(count)),
            count(record.joined),
            count(record.unmatched)
        ),
    ];
    sentences.extend(why_invalid.as_ref().map(|why| format!("The step does not count: {why}.")));
    sentences
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "an unknown share".to_owned(), |share| format!("{} %", percent(share)))
}

fn outcomes(record: &RungRecord) -> Table {
    let mut rows: Vec<(&str, &Outcomes)> =
        vec![("key exchanges", &record.exchanges), ("transfers", &record.transfers)];
    rows.extend(record.background.as_ref().map(|background| ("background, key exchanges", background)));
    let causes = |outcomes: &Outcomes| {
        let told = |(cause, number): (&Cause, &u64)| format!("{cause} {}", count(*number));
        listed(outcomes.causes.iter().map(told))
    };
    Table::of("What became of them", rows)
        .words("of", |(name, _)| *name)
        .number("scheduled", |(_, outcomes)| count(outcomes.scheduled))
        .number("sent", |(_, outcomes)| count(outcomes.sent))
        .number("answered", |(_, outcomes)| count(outcomes.answered))
        .words("causes of the rest", |(_, outcomes)| causes(outcomes))
        .table()
}

/// What the paper calls a time that a record calls `d_ske_of_program`.
fn symbol(name: &str) -> String {
    let (measure, program) = name.split_once("_of_program").map_or((name, ""), |(of, _)| (of, ", program"));
    format!("{}{program}", measure.to_uppercase().replacen("D_", "d_", 1))
}

fn times(record: &RungRecord) -> Table {
    let rows = record.times.named().into_iter().filter_map(|(name, times)| Some((name, times?)));
    Table::of("Times of the measured client", rows)
        .words("time", |(name, _): &(&str, &Times)| symbol(name))
        .number("values", |(_, times)| count(times.count))
        .number("min", |(_, times)| time(times.min_ns))
        .number("p25", |(_, times)| time(times.p25_ns))
        .number("p50", |(_, times)| time(times.p50_ns))
        .number("mean", |(_, times)| ns(times.mean_ns))
        .number("p75", |(_, times)| time(times.p75_ns))
        .number("p95", |(_, times)| time(times.p95_ns))
        .number("max", |(_, times)| time(times.max_ns))
        .number("fastest 50 %", |(_, times)| ns(times.fastest_50_ns))
        .number("fastest 95 %", |(_, times)| ns(times.fastest_95_ns))
        .table()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::nts::tests::{operations, rates, record, rung, scale, sessions};

    #[test]
    fn records_alone_are_shown_with_their_figures_and_why_they_do_not_count() {
        let mut spoiled = rung("ladder-quota-4000");
        spoiled.why_invalid = Some("it <b>fell behind".to_owned());
        let shown = of_rung(&spoiled);
        for part in [
            "A step of 4,000 key exchanges a second (to scale)",
            "80.22 ms",
            "connection-timed-out 120",
            "d_SKE, program",
            "it <b>fell behind",
        ] {
            assert!(shown.text().contains(part), "{part}: {}", shown.text());
        }
        assert!(!shown.page().contains("<b>"));
        assert!(of_rung(&rung("ladder-core-file-unloaded")).text().contains("A step without load"));
        let (scale, unloaded) =
            (of_scale(&scale("scale-quota")).text(), of_unloaded(&record("unloaded")).text());
        assert!(scale.contains("50.00 %") && scale.contains("0.400"), "{scale}");
        let text = of_operations(&operations("operations")).text();
        assert!(text.contains("read a small file") && !text.contains("a get from memcached"), "{text}");
        let text = of_sessions(&sessions("sessions-30-one")).text();
        assert!(text.contains("30 transfers per exchange, one cookie") && text.contains("13.3 us"), "{text}");
        let text = of_rates(&rates("rates-2-workers")).text();
        assert!(text.contains("two workers") && text.contains("96,000"), "{text}");
        assert!(
            unloaded.contains("memcached, 0.12 ms, with look-ups") && unloaded.contains("2.10 ms"),
            "{unloaded}"
        );
    }
}
