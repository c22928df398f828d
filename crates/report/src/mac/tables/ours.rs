//! This host's figures: throughput, cycles, what a key's set-up costs, and how single times scatter.

use super::beside::Own;
use super::{extremes, kilo};
use crate::mac::{Algorithm, Implementation, Instructions, KeyUse, MacRecord, Side, Spread, Timing};
use crate::published::ntp_mac::NIST_RPS;
use crate::render::{ABSENT, Block, Count, Dots, Marker, Section, Series, Table, Value, or_absent};
use crate::stats::bootstrap::Estimate;
use crate::units::ratio;

pub(super) fn section(record: &MacRecord, side: &Side) -> Section {
    let heading = match side.instructions {
        Instructions::With => "This host with AES and SHA instructions",
        Instructions::Without => "This host without AES and SHA instructions",
    };
    let mut section = Section::new(heading);
    let seen = match &side.seen[..] {
        [] => "none of them".to_owned(),
        seen => seen.join(", "),
    };
    section.say(format!("Instructions that the process saw: {seen}. Our path: {}.", side.path));
    section.say_all(side.remarks.iter().map(String::as_str));
    section.add(figure(side));
    section.show([throughput(record, side)]);
    section.show(record.reference_hz.map(|reference_hz| cycles(record, side, reference_hz)));
    section.show([set_up(side), spread(side)]);
    section
}

/// Throughput of each algorithm: ours one at a time, ours in the best batch, and OpenSSL's.
fn figure(side: &Side) -> Block {
    let value = |timing: &Timing| {
        let rates = timing.ns.iter().map(|ns| 1e9 / ns);
        Estimate::of(rates).map(|Estimate { median, interval }| Value::alone(median, interval))
    };
    let values =
        |own: Own| Algorithm::ALL.map(|algorithm| own.timing(side, algorithm).and_then(value)).to_vec();
    let series = |name: &str, marker, colour, own| Series {
        name: name.to_owned(),
        marker,
        colour,
        values: values(own),
    };
    let dots = Dots {
        label: "Packets a second of each algorithm".to_owned(),
        along: "packets of 48 octets a second",
        count: Count::Rate,
        names: Algorithm::ALL.map(|algorithm| algorithm.name().to_owned()).to_vec(),
        series: vec![
            series("ours, one at a time", Marker::Circle, 0, Own::One),
            series("ours, in the best batch", Marker::Square, 2, Own::Batch),
            series("OpenSSL, one at a time (GMAC-SIV: aws-lc)", Marker::Diamond, 1, Own::Rival),
        ],
    };
    Block::figure(
        dots,
        "Medians over rounds with intervals of 95 % (bootstrap); the further right, the faster. The key is kept.",
    )
}

/// Batch sizes above one.
fn batches(record: &MacRecord) -> impl Iterator<Item = u32> {
    record.batches().into_iter().filter(|&batch| batch > 1)
}

fn batch_heading(batch: &u32) -> String {
    format!("In batches of {batch}")
}

/// An algorithm with ours and whom that is compared with, one packet at a time, if there is either.
fn pairs(side: &Side, key: KeyUse) -> impl Iterator<Item = (Algorithm, Option<&Timing>, Option<&Timing>)> {
    let pair = move |algorithm| {
        let ours = side.timing(algorithm, Implementation::Authentick, key, 1);
        (algorithm, ours, side.rival(algorithm, key))
    };
    Algorithm::ALL.into_iter().map(pair).filter(|(_, ours, rival)| ours.is_some() || rival.is_some())
}

fn rate(timing: Option<&Timing>) -> String {
    or_absent(timing.map(|timing| kilo(timing.throughput_kps().median)))
}

/// Whose code it is stands beside, unless it is OpenSSL's.
fn rate_of_rival(timing: Option<&Timing>) -> String {
    or_absent(timing.map(|timing| format!("{}{}", kilo(timing.throughput_kps().median), timing.foreign())))
}

fn to_rival(ours: Option<&Timing>, rival: Option<&Timing>) -> String {
    or_absent(ours.zip(rival).map(|(ours, rival)| extremes(ours.speed_ratio(rival), ratio)))
}

fn throughput(record: &MacRecord, side: &Side) -> Table {
    Table::of("Thousand packets a second, the key being kept", pairs(side, KeyUse::Kept))
        .words("Algorithm", |(algorithm, ..)| *algorithm)
        .number("One at a time (extremes)", |(_, one, _)| {
            or_absent(one.map(|timing| extremes(timing.throughput_kps(), kilo)))
        })
        .each(batches(record), batch_heading, |(algorithm, ..), &batch| rate(side.ours(*algorithm, batch)))
        .number("OpenSSL, one at a time", |(.., rival)| rate_of_rival(*rival))
        .number("One at a time / OpenSSL (extremes)", |(_, one, rival)| to_rival(*one, *rival))
        .number("Best batch / OpenSSL (extremes)", |(algorithm, _, rival)| {
            to_rival(side.fastest_batch(*algorithm), *rival)
        })
        .table()
}

fn cycles(record: &MacRecord, side: &Side, reference_hz: f64) -> Table {
    let cycles = |timing: Option<&Timing>| {
        or_absent(timing.map(|timing| format!("{:.1}", timing.cycles(reference_hz))))
    };
    let ours =
        |&algorithm: &Algorithm, key| cycles(side.timing(algorithm, Implementation::Authentick, key, 1));
    let rival = |&algorithm: &Algorithm, key| cycles(side.rival(algorithm, key));
    let mut table = Table::of("Reference cycles per octet", Algorithm::ALL)
        .words("Algorithm", |algorithm| *algorithm)
        .number("One at a time", |algorithm| ours(algorithm, KeyUse::Kept))
        .each(batches(record), batch_heading, |&algorithm, &batch| cycles(side.ours(algorithm, batch)))
        .number("OpenSSL, one at a time", |algorithm| rival(algorithm, KeyUse::Kept))
        .number("One at a time, with key set-up", |algorithm| ours(algorithm, KeyUse::SetUp))
        .number("OpenSSL, with key set-up", |algorithm| rival(algorithm, KeyUse::SetUp))
        .table();
    table.rows.retain(|row| row.cells[1..].iter().any(|cell| cell != ABSENT));
    table
}

fn set_up(side: &Side) -> Table {
    let median = |timing: &Timing| timing.packet_ns().median;
    Table::of("Thousand packets a second, the key being set up for each", pairs(side, KeyUse::SetUp))
        .words("Algorithm", |(algorithm, ..)| *algorithm)
        .number("Ours", |(_, ours, _)| rate(*ours))
        .number("OpenSSL", |(.., rival)| rate_of_rival(*rival))
        .number("Ours / OpenSSL (extremes)", |(_, ours, rival)| to_rival(*ours, *rival))
        .number("What our set-up adds, ns", |(algorithm, with, _)| {
            let both = with.zip(side.ours(*algorithm, 1));
            or_absent(both.map(|(with, without)| format!("{:.0}", median(with) - median(without))))
        })
        .table()
}

fn spread(side: &Side) -> Table {
    let share = |timing: Option<&Timing>| {
        or_absent(timing.map(|timing| percent(timing.packet_ns().median * 1e-9 * NIST_RPS)))
    };
    let ns = |spread: &Option<&Spread>, of: fn(&Spread) -> f64| {
        or_absent(spread.map(|spread| format!("{:.1}", of(spread))))
    };
    let rows = Algorithm::ALL.map(|of| (of, side.spread(of, true), side.spread(of, false)));
    let rows = rows.into_iter().filter(|(_, ours, rival)| ours.is_some() || rival.is_some());
    let name =
        "Latency of single MACs, and the share of a core that NIST\u{2019}s 28,000 packets a second take";
    let note = "Each MAC is timed for itself, less what reading the clock takes. The drafts expect jitter to follow \
                cycles: the deviation up to p99 is the algorithm\u{2019}s, that of all is mostly what interrupted the \
                process. The share is that of one MAC for each packet; who verifies requests and answers them needs \
                two.";
    Table::of(name, rows)
        .words("Algorithm", |(algorithm, ..)| *algorithm)
        .number("Median, ns", |(_, ours, _)| ns(ours, |spread| spread.p50_ns))
        .number("p99, ns", |(_, ours, _)| ns(ours, |spread| spread.p99_ns))
        .number("Deviation, ns", |(_, ours, _)| ns(ours, |spread| spread.deviation_ns))
        .number("Deviation up to p99, ns", |(_, ours, _)| ns(ours, |spread| spread.quiet_deviation_ns))
        .number("OpenSSL: median, ns", |(.., rival)| ns(rival, |spread| spread.p50_ns))
        .number("p99, ns", |(.., rival)| ns(rival, |spread| spread.p99_ns))
        .number("Deviation up to p99, ns", |(.., rival)| ns(rival, |spread| spread.quiet_deviation_ns))
        .number("Share of a core, %", |(algorithm, ..)| share(side.ours(*algorithm, 1)))
        .number("In batches, %", |(algorithm, ..)| share(side.fastest_batch(*algorithm)))
        .number("OpenSSL, %", |(algorithm, ..)| share(side.rival(*algorithm, KeyUse::Kept)))
        .noted(std::iter::once(note.to_owned()).chain(jitter(side)))
}

/// Whether the order of deviations is that of medians: the drafts' argument, as rank correlation (Spearman).
fn jitter(side: &Side) -> Option<String> {
    let spreads: Vec<&Spread> =
        Algorithm::ALL.into_iter().filter_map(|algorithm| side.spread(algorithm, true)).collect();
    let correlation = rank_correlation(
        &spreads.iter().map(|spread| spread.p50_ns).collect::<Vec<_>>(),
        &spreads.iter().map(|spread| spread.quiet_deviation_ns).collect::<Vec<_>>(),
    )?;
    Some(format!(
        "Rank correlation of median and deviation up to p99 over our {} algorithms: {correlation:.2} (1: the slower an \
         algorithm, the larger its jitter, as the drafts say).",
        spreads.len()
    ))
}

/// Spearman's; ties take the mean of their ranks. `None` for fewer than three values, or if one side does not vary.
fn rank_correlation(left: &[f64], right: &[f64]) -> Option<f64> {
    let ranks = |values: &[f64]| -> Vec<f64> {
        let rank = |value: &f64| {
            let below = values.iter().filter(|other| *other < value).count() as f64;
            let equal = values.iter().filter(|other| *other == value).count() as f64;
            below + (equal - 1.0) / 2.0
        };
        values.iter().map(rank).collect()
    };
    let (left, right) = (ranks(left), ranks(right));
    let mean = (left.len() as f64 - 1.0) / 2.0;
    let products =
        |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum() };
    let scale = (products(&left, &left) * products(&right, &right)).sqrt();
    (left.len() >= 3 && scale > 0.0).then(|| products(&left, &right) / scale)
}

/// A share of a core: `0.45`, `0.021`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 0.1 { format!("{percent:.3}") } else { ratio(percent) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::tests::record;

    fn row(table: &Table, algorithm: Algorithm) -> Vec<&str> {
        let name = algorithm.to_string();
        let row = table.rows.iter().find(|row| row.cells[0] == name).unwrap();
        row.cells.iter().map(String::as_str).collect()
    }

    #[test]
    fn ratios_to_openssl_stand_beside_rates() {
        let record = record();
        let side = record.side(Instructions::With).unwrap();
        // 60 ns against 90, and 18 in batches of 64.
        let table = throughput(&record, side);
        assert_eq!(table.rows.len(), 12);
        assert_eq!(
            row(&table, Algorithm::Cmac128)[1..],
            [
                "16,667 (15,152 to 17,544)",
                "27,778",
                "41,667",
                "55,556",
                "11,111",
                "1.50 (1.50 to 1.50)",
                "5.00 (5.00 to 5.00)"
            ]
        );
        assert_eq!(row(&table, Algorithm::GmacSiv128)[5], "6,061 (aws-lc)");
        // 60 ns at 2.4 GHz are 144 cycles for 48 octets.
        assert_eq!(
            row(&cycles(&record, side, 2.4e9), Algorithm::Cmac128)[1..],
            ["3.0", "1.8", "1.2", "0.9", "4.5", "6.0", "12.0"]
        );
        assert_eq!(
            row(&set_up(side), Algorithm::Cmac128)[1..],
            ["8,333", "4,167", "2.00 (2.00 to 2.00)", "60"]
        );
        // 28,000 times 60 ns are 0.168 % of a second.
        assert_eq!(
            row(&spread(side), Algorithm::Cmac128)[1..],
            ["60.0", "72.0", "300.0", "2.5", "-", "-", "-", "0.17", "0.050", "0.25"]
        );
    }

    #[test]
    fn what_was_not_measured_is_a_dash_and_not_a_zero() {
        let mut record = record();
        for side in &mut record.sides {
            side.timings.retain(|timing| timing.implementation != Implementation::OpenSsl);
        }
        let side = record.side(Instructions::With).unwrap();
        assert_eq!(row(&throughput(&record, side), Algorithm::Cmac128)[5..], ["-", "-", "-"]);
        let mut record = crate::mac::tests::record();
        record.sides[1].timings.retain(|timing| timing.implementation != Implementation::Authentick);
        record.sides[1].spreads.clear();
        let table = throughput(&record, &record.sides[1]);
        assert_eq!(row(&table, Algorithm::Md5)[1..], ["-", "-", "-", "-", "4,167", "-", "-"]);
        assert!(spread(&record.sides[1]).rows.is_empty());
    }

    #[test]
    fn jitter_is_held_against_cycles() {
        assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[10.0, 20.0, 99.0]), Some(1.0));
        assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[5.0, 5.0, 5.0]), None);
        assert_eq!(rank_correlation(&[1.0, 2.0], &[1.0, 2.0]), None);
        let ties = rank_correlation(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((ties - 0.9487).abs() < 0.0001, "{ties}");
    }
}
