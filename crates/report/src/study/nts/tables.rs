//! Theirs and ours, as tables and as plots.

use super::Cell;
use super::figures::{Cells, Derived, Estimate, Reading, mean, median, sample};
use super::record::UnloadedRecord;
use crate::published::nts::recompute::average_ms;
use crate::published::nts::recompute::{
    WithExchange, d_cntp_ms, increase_percent, symmetric_difference_percent,
};
use crate::published::nts::unloaded::distribution;
use crate::published::nts::{
    Average, EXCHANGE_INCREASE_PERCENT, Ends, FIGURE_4, FIGURE_5, Measure, TABLE_2, TRANSFER_INCREASE_PERCENT,
};
use crate::render::{
    ABSENT, Block, Count, Cumulative, Distribution, Dots, Marker, Series, Table, Value, Words, or_absent,
};
use crate::stats::Sample;
use crate::units::{percent, time};

fn ns(value: f64) -> String {
    time(value.round() as u64)
}

/// The one with a median or a mean: `2.10 ms`.
fn value(estimate: Option<Estimate>) -> String {
    or_absent(estimate.map(|estimate| ns(estimate.value)))
}

fn interval(estimate: Option<Estimate>) -> String {
    or_absent(estimate.map(|Estimate { interval: [low, high], .. }| format!("{} - {}", ns(low), ns(high))))
}

/// Percent with one decimal, from percent.
fn percents(value: f64) -> String {
    format!("{} %", percent(value / 100.0))
}

/// Table II: what they printed, what their data say, and ours.
pub(super) fn table_2(record: &UnloadedRecord) -> Table {
    let printed = |measure: Measure| {
        let average = TABLE_2.into_iter().find(|average| average.measure == measure);
        or_absent(average.map(|average| ns(average.value * measure.unit().ns())))
    };
    Table::of("Table II, theirs and ours, medians", TABLE_2.map(|average| average.measure))
        .words("measure", |measure| measure.symbol())
        .number("printed", |&measure| printed(measure))
        .number("their mean", |&measure| or_absent(distribution(measure).map(|all| ns(all.mean_ns))))
        .number("ours, by the equations", |&measure| {
            value(median(&sample(record, measure, Reading::Equations)))
        })
        .number("ours, as their program did", |&measure| {
            value(median(&sample(record, measure, Reading::Program)))
        })
        .noted([
            "The paper calls its figures averages, and the second d_CNTP: they are medians of their data, and it is \
             d_CNTS. Their program read a file for each request in d_SNTS; ours reads none, and it is not in here.",
        ])
}

/// Table II as a picture: theirs, and medians of ours in both readings with their intervals.
pub(super) fn picture(record: &UnloadedRecord) -> Block {
    let of = |reading: Reading| {
        let value = |average: Average| {
            let Estimate { value, interval } = median(&sample(record, average.measure, reading))?;
            Some(Value::alone(value, Some(interval)))
        };
        TABLE_2.map(value).to_vec()
    };
    let theirs = |average: Average| Some(Value::alone(average.value * average.measure.unit().ns(), None));
    let series =
        |name: &str, marker, colour, values| Series { name: name.to_owned(), marker, colour, values };
    let dots = Dots {
        label: "Table II, medians without load, theirs and ours".to_owned(),
        along: "median without load",
        count: Count::Time,
        names: TABLE_2.map(|average| average.measure.symbol().to_owned()).to_vec(),
        series: vec![
            series("theirs, as printed", Marker::Diamond, 1, TABLE_2.map(theirs).to_vec()),
            series("ours, by the equations", Marker::Square, 2, of(Reading::Equations)),
            series("ours, as their program did", Marker::Circle, 0, of(Reading::Program)),
        ],
    };
    Block::figure(dots, "Medians of ours have intervals of 95 %, which may be smaller than their marks.")
}

/// The same figures of ours, all of them.
pub(super) fn readings(record: &UnloadedRecord) -> Table {
    let rows = Measure::ALL
        .into_iter()
        .flat_map(|measure| Reading::ALL.map(|reading| (measure, reading, sample(record, measure, reading))));
    // There are no two readings of it.
    let rows = rows.filter(|(measure, reading, _)| (*measure, *reading) != (Measure::Sntp, Reading::Program));
    Table::of("Table II, ours in both readings", rows)
        .words("measure", |(measure, ..)| measure.symbol())
        .words("by", |(_, reading, _)| reading.name())
        .number("median", |(.., sample)| value(median(sample)))
        .number("95 % of medians", |(.., sample)| interval(median(sample)))
        .number("mean", |(.., sample)| value(mean(sample)))
        .number("95 % of means", |(.., sample)| interval(mean(sample)))
        .number("values", |(.., sample)| sample.values().len())
        .noted([
            "d_CNTP by the equations is a plain transfer, measured; as their program did, it is equation (6): d_CNTS \
             less d_SNTS, of each transfer.",
        ])
}

/// The ends of the distributions of a figure, theirs and ours.
fn ends(name: &str, record: &UnloadedRecord, published: &[Ends]) -> Table {
    let of = |measure, reading| {
        let sample = sample(record, measure, reading);
        let ends = sample.values().first().zip(sample.values().last());
        or_absent(ends.map(|(&min, &max)| format!("{} - {}", time(min), time(max))))
    };
    Table::of(name, published.iter().copied())
        .words("measure", |ends: &Ends| ends.measure.symbol())
        .number("theirs, smallest - largest", |ends| {
            let unit = ends.measure.unit().ns();
            format!("{} - {}", ns(ends.min * unit), ns(ends.max * unit))
        })
        .number("ours, by the equations", |ends| of(ends.measure, Reading::Equations))
        .number("ours, as their program did", |ends| of(ends.measure, Reading::Program))
        .table()
}

/// In which readings a measure of ours is drawn: there is one of d_SNTP.
const fn drawn(measure: Measure) -> &'static [Reading] {
    match measure {
        Measure::Sntp => &[Reading::Program],
        Measure::Cke | Measure::Cntp | Measure::Cnts | Measure::Ske | Measure::Snts => {
            &[Reading::Program, Reading::Equations]
        }
    }
}

/// What such a reading of ours is called.
const fn ours_as(measure: Measure, reading: Reading) -> &'static str {
    match (measure, reading) {
        (Measure::Sntp, _) => "ours",
        (_, Reading::Program) => "ours, as their program did,",
        (_, Reading::Equations) => "ours, by the equations,",
    }
}

/// What a figure of distributions shows, for those who do not see it: where ours begin and end, and theirs.
fn described(record: &UnloadedRecord, published: &[Ends]) -> String {
    let each = published.iter().map(|ends| {
        let (measure, unit) = (ends.measure, ends.measure.unit().ns());
        let ours = drawn(measure).iter().map(|reading| {
            let values = sample(record, measure, *reading);
            let ends = values.values().first().zip(values.values().last());
            let ends = ends.map_or_else(
                || "without a value".to_owned(),
                |(&min, &max)| format!("from {} to {}", time(min), time(max)),
            );
            format!("{} {ends}", ours_as(measure, *reading))
        });
        format!(
            "{}: {}, theirs from {} to {}",
            measure.symbol(),
            ours.collect::<Vec<_>>().join(", "),
            ns(ends.min * unit),
            ns(ends.max * unit)
        )
    });
    format!("Distributions. {}.", each.collect::<Vec<_>>().join("; "))
}

/// A figure of distributions, whose curves begin at the smallest value and end at the largest, and its table.
fn figure(words: Words, name: &str, record: &UnloadedRecord, published: &[Ends]) -> [Block; 2] {
    let series = published.iter().flat_map(|ends| {
        let measure = ends.measure;
        let theirs: Sample<u64> = distribution(measure)
            .into_iter()
            .flat_map(|all| all.percentiles_ns.iter().map(|ns| ns.round() as u64))
            .collect();
        let ours = drawn(measure).iter().map(move |reading| {
            let name = ours_as(measure, *reading).trim_end_matches(',');
            let name = format!("{}, {name}", measure.symbol());
            (name, Distribution::from(&sample(record, measure, *reading)))
        });
        let theirs = (format!("{}, theirs", measure.symbol()), Distribution::from(&theirs));
        std::iter::once(theirs).chain(ours)
    });
    let caption = "Ours in both readings. The smallest and the largest value of each are marked, and say what they \
                   are when they are pointed at; theirs is of whole percentiles of the raw results.";
    [
        Block::figure(Cumulative { words, series: series.collect(), has_ends: true }, caption),
        Block::Table(ends(name, record, published)),
    ]
}

/// Figure 4.
pub(super) fn figure_4(record: &UnloadedRecord) -> [Block; 2] {
    let words = Words {
        label: described(record, &FIGURE_4).into(),
        share_of: "exchanges",
        time: "time at the client",
    };
    figure(words, "Figure 4, client", record, &FIGURE_4)
}

/// Figure 5.
pub(super) fn figure_5(record: &UnloadedRecord) -> [Block; 2] {
    let words = Words {
        label: described(record, &FIGURE_5).into(),
        share_of: "exchanges",
        time: "time at the server",
    };
    figure(words, "Figure 5, server", record, &FIGURE_5)
}

/// Equation (6) beside a plain transfer, and what the paper makes of it.
pub(super) fn equation_6(derived: &Derived) -> Table {
    let (plain, authenticated) = (d_cntp_ms(), average_ms(Measure::Cnts));
    let theirs = |with: WithExchange| percents(with.percent());
    let rows: [[String; 4]; 7] = [
        ["a plain transfer, measured".into(), ABSENT.into(), ABSENT.into(), ns(derived.plain)],
        ["d_CNTP by equation (6)".into(), "0.79 ms".into(), ns(plain * 1e6), ns(derived.equation_6)],
        [
            "NTS: increase".into(),
            ABSENT.into(),
            percents(increase_percent(plain, authenticated)),
            percents(derived.increase()),
        ],
        [
            "NTS: symmetric difference".into(),
            percents(TRANSFER_INCREASE_PERCENT),
            percents(symmetric_difference_percent(plain, authenticated)),
            percents(derived.difference()),
        ],
        [
            "with the exchange: increase".into(),
            ABSENT.into(),
            theirs(WithExchange::IncreaseAuthenticated),
            percents(derived.increase_with_exchange()),
        ],
        [
            "with the exchange: difference".into(),
            percents(EXCHANGE_INCREASE_PERCENT),
            theirs(WithExchange::DifferencePlain),
            percents(derived.difference_with_exchange()),
        ],
        [
            "one exchange for three: increase".into(),
            ABSENT.into(),
            theirs(WithExchange::IncreaseOneInThree),
            percents(derived.increase_one_in_three()),
        ],
    ];
    Table::of("Equation (6) and a plain transfer", rows)
        .words("of medians", |row| row[0].clone())
        .number("printed", |row| row[1].clone())
        .number("their data", |row| row[2].clone())
        .number("ours", |row| row[3].clone())
        .noted([
            "Increases are over a plain transfer: theirs by equation (6), ours measured. A symmetric difference is \
             over the mean of both values, as the paper has it, and is no increase.",
        ])
}

/// Medians of every cell.
pub(super) fn cells(cells: &Cells<'_>) -> Table {
    let rows: Vec<(Cell, &UnloadedRecord)> = cells.iter().collect();
    let of = |measure, reading| {
        move |(cell, _): &(Cell, &UnloadedRecord)| or_absent(cells.median(*cell, measure, reading).map(ns))
    };
    Table::of("What the path makes of it", rows)
        .words("keys in, round trip", |(cell, _)| cell.name())
        .number("echo", |(_, record)| {
            or_absent(record.relayed.as_ref().map(|relayed| ns(relayed.echo_us * 1e3)))
        })
        .number("d_CKE", of(Measure::Cke, Reading::Equations))
        .number("d_CNTS", of(Measure::Cnts, Reading::Equations))
        .number("plain", of(Measure::Cntp, Reading::Equations))
        .number("d_SKE", of(Measure::Ske, Reading::Equations))
        .number("d_SNTS", of(Measure::Snts, Reading::Equations))
        .number("values", |(_, record)| record.exchanges.len())
        .noted([
            "Medians by the equations. Echo: a round trip of a datagram with nothing at either end, over the relay. \
             d_SKE by the equations contains the TLS handshake, and so a round trip of the path.",
        ])
}
