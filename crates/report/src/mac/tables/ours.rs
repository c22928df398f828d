//! This host's figures: throughput, cycles, what a key's set-up costs, and how single times scatter.

use super::{kilo, ratio_range};
use crate::mac::{Algorithm, Implementation, Instructions, KeyUse, MacRecord, Side, Spread, Timing};
use crate::published::ntp_mac::NIST_RPS;
use crate::render::{Block, Count, Dots, Drawing, Figure, Marker, Section, Series, Table, or_absent};
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
    let rate = |timing: &Timing| (timing.throughput_kps().median * 1e3).round() as u64;
    let series = [
        ("ours, one at a time", Marker::Circle, 0),
        ("ours, in the best batch", Marker::Square, 2),
        ("OpenSSL, one at a time (GMAC-SIV: aws-lc)", Marker::Cross, 1),
    ];
    let values = |index: usize, algorithm: Algorithm| {
        let timing = match index {
            0 => side.ours(algorithm, 1),
            1 => side.fastest_batch(algorithm),
            _ => side.rival(algorithm, KeyUse::Kept),
        };
        timing.map(rate)
    };
    let dots = Dots {
        label: "Packets a second of each algorithm; the table has the figures",
        along: "packets of 48 octets a second",
        count: Count::Rate,
        names: Algorithm::ALL.map(Algorithm::name).to_vec(),
        series: series
            .iter()
            .enumerate()
            .map(|(index, &(name, marker, colour))| Series {
                name,
                marker,
                colour,
                values: Algorithm::ALL.map(|algorithm| values(index, algorithm)).to_vec(),
            })
            .collect(),
    };
    let caption = "Medians; the further right, the faster. The key is kept.".to_owned();
    Block::Figure(Figure { drawing: Drawing::Marks(dots), caption }, None)
}

/// Batch sizes above one.
fn batches(record: &MacRecord) -> Vec<u32> {
    record.batches().into_iter().filter(|&batch| batch > 1).collect()
}

/// Headings of ours and of OpenSSL's, with one for each batch size.
fn headings(first: &str, batches: &[u32], others: [&str; 3]) -> Vec<String> {
    let batches = batches.iter().map(|batch| format!("In batches of {batch}"));
    let first = ["Algorithm".to_owned(), first.to_owned()];
    first.into_iter().chain(batches).chain(others.map(str::to_owned)).collect()
}

/// Whose code it is stands beside, unless it is OpenSSL's.
fn rate_of_rival(timing: &Timing) -> String {
    format!("{}{}", kilo(timing.throughput_kps().median), timing.foreign())
}

fn throughput(record: &MacRecord, side: &Side) -> Table {
    let batches = batches(record);
    let others =
        ["OpenSSL, one at a time", "One at a time / OpenSSL (extremes)", "Best batch / OpenSSL (extremes)"];
    let headings = headings("One at a time (extremes)", &batches, others);
    let mut table = Table::headed("Thousand packets a second, the key being kept", headings, &[]);
    for algorithm in Algorithm::ALL {
        let (one, rival) = (side.ours(algorithm, 1), side.rival(algorithm, KeyUse::Kept));
        if one.is_none() && rival.is_none() {
            continue;
        }
        let mut row = vec![algorithm.to_string()];
        row.push(or_absent(one.map(|timing| {
            let rate = timing.throughput_kps();
            format!("{} ({} to {})", kilo(rate.median), kilo(rate.low), kilo(rate.high))
        })));
        row.extend(batches.iter().map(|&batch| {
            or_absent(side.ours(algorithm, batch).map(|timing| kilo(timing.throughput_kps().median)))
        }));
        row.push(or_absent(rival.map(rate_of_rival)));
        for ours in [one, side.fastest_batch(algorithm)] {
            row.push(or_absent(ours.zip(rival).map(|(ours, rival)| ratio_range(ours.speed_ratio(rival)))));
        }
        table.push(row);
    }
    table
}

fn cycles(record: &MacRecord, side: &Side, reference_hz: f64) -> Table {
    let batches = batches(record);
    let others = ["OpenSSL, one at a time", "One at a time, with key set-up", "OpenSSL, with key set-up"];
    let headings = headings("One at a time", &batches, others);
    let mut table = Table::headed("Reference cycles per octet", headings, &[]);
    for algorithm in Algorithm::ALL {
        let ours = |key, batch| side.timing(algorithm, Implementation::Authentick, key, batch);
        let mut timings = vec![ours(KeyUse::Kept, 1)];
        timings.extend(batches.iter().map(|&batch| ours(KeyUse::Kept, batch)));
        timings.push(side.rival(algorithm, KeyUse::Kept));
        timings.push(ours(KeyUse::SetUp, 1));
        timings.push(side.rival(algorithm, KeyUse::SetUp));
        if timings.iter().all(Option::is_none) {
            continue;
        }
        let mut row = vec![algorithm.to_string()];
        let cell = |timing: &Timing| format!("{:.1}", timing.cycles(reference_hz));
        row.extend(timings.into_iter().map(|timing| or_absent(timing.map(cell))));
        table.push(row);
    }
    table
}

fn set_up(side: &Side) -> Table {
    let mut table = Table::headed(
        "Thousand packets a second, the key being set up for each",
        ["Algorithm", "Ours", "OpenSSL", "Ours / OpenSSL (extremes)", "What our set-up adds, ns"],
        &[],
    );
    for algorithm in Algorithm::ALL {
        let ours = side.timing(algorithm, Implementation::Authentick, KeyUse::SetUp, 1);
        let rival = side.rival(algorithm, KeyUse::SetUp);
        if ours.is_none() && rival.is_none() {
            continue;
        }
        let added = ours
            .zip(side.ours(algorithm, 1))
            .map(|(with, without)| format!("{:.0}", with.packet_ns().median - without.packet_ns().median));
        table.push(vec![
            algorithm.to_string(),
            or_absent(ours.map(|timing| kilo(timing.throughput_kps().median))),
            or_absent(rival.map(rate_of_rival)),
            or_absent(ours.zip(rival).map(|(ours, rival)| ratio_range(ours.speed_ratio(rival)))),
            or_absent(added),
        ]);
    }
    table
}

fn spread(side: &Side) -> Table {
    let mut table = Table::headed(
        "Latency of single MACs, and the share of a core that NIST\u{2019}s 28,000 packets a second take",
        [
            "Algorithm",
            "Median, ns",
            "p99, ns",
            "Deviation, ns",
            "Deviation up to p99, ns",
            "OpenSSL: median, ns",
            "p99, ns",
            "Deviation up to p99, ns",
            "Share of a core, %",
            "In batches, %",
            "OpenSSL, %",
        ],
        &[],
    );
    let share = |timing: Option<&Timing>| {
        or_absent(timing.map(|timing| percent(timing.packet_ns().median * 1e-9 * NIST_RPS)))
    };
    let ns = |spread: Option<&Spread>, of: fn(&Spread) -> f64| {
        or_absent(spread.map(|spread| format!("{:.1}", of(spread))))
    };
    for algorithm in Algorithm::ALL {
        let (ours, rival) = (side.spread(algorithm, true), side.spread(algorithm, false));
        if ours.is_none() && rival.is_none() {
            continue;
        }
        table.push(vec![
            algorithm.to_string(),
            ns(ours, |spread| spread.p50_ns),
            ns(ours, |spread| spread.p99_ns),
            ns(ours, |spread| spread.deviation_ns),
            ns(ours, |spread| spread.quiet_deviation_ns),
            ns(rival, |spread| spread.p50_ns),
            ns(rival, |spread| spread.p99_ns),
            ns(rival, |spread| spread.quiet_deviation_ns),
            share(side.ours(algorithm, 1)),
            share(side.fastest_batch(algorithm)),
            share(side.rival(algorithm, KeyUse::Kept)),
        ]);
    }
    table.notes.push(
        "Each MAC is timed for itself, less what reading the clock takes. The drafts expect jitter to follow cycles: \
         the deviation up to p99 is the algorithm\u{2019}s, that of all is mostly what interrupted the process. The \
         share is that of one MAC for each packet; who verifies requests and answers them needs two."
            .to_owned(),
    );
    if let Some(sentence) = jitter(side) {
        table.notes.push(sentence);
    }
    table
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
