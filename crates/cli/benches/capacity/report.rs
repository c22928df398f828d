//! What was measured, as text: medians of rates, and of ratios within rounds.

use std::fmt::Write as _;

use authentick_lab::process::Process;
use authentick_rig::pair::Pair;

use super::load::Kind;
use super::{BATCHES, Row, Subject};

/// The median.
///
/// # Panics
/// If there is no value.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The ratios of two rates within each round.
pub(crate) fn quotients(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a / b).collect()
}

/// What is compared: a name, the subjects and loads of both sides, and the ratio to reach.
type Comparison = (&'static str, (Subject, Kind), (Subject, Kind), &'static str);

const COMPARISONS: [Comparison; 17] = [
    ("plain / chrony", (Subject::Ours, Kind::Plain), (Subject::Chrony, Kind::Plain), "1.10"),
    ("plain / echo", (Subject::Ours, Kind::Plain), (Subject::Echo, Kind::EchoPlain), "0.93"),
    (
        "the same, wildcard",
        (Subject::OursWildcard, Kind::Plain),
        (Subject::EchoWildcard, Kind::EchoPlain),
        "0.93",
    ),
    ("AES-CMAC / chrony", (Subject::Ours, Kind::Cmac), (Subject::Chrony, Kind::Cmac), "1.10"),
    ("AES-CMAC / our plain", (Subject::Ours, Kind::Cmac), (Subject::Ours, Kind::Plain), "0.93"),
    ("AES-CMAC / echo of its size", (Subject::Ours, Kind::Cmac), (Subject::Echo, Kind::EchoMac), "-"),
    ("NTS 15 / chrony", (Subject::Ours, Kind::Nts15), (Subject::Chrony, Kind::Nts15), "1.35"),
    ("NTS 30 / chrony's 15", (Subject::Ours, Kind::Nts30), (Subject::Chrony, Kind::Nts15), "1.35"),
    ("NTS 15 / our plain", (Subject::Ours, Kind::Nts15), (Subject::Ours, Kind::Plain), "0.90"),
    ("NTS 30 / our plain", (Subject::Ours, Kind::Nts30), (Subject::Ours, Kind::Plain), "0.90"),
    ("NTS 15, fleet / alone", (Subject::OursFleet, Kind::Nts15), (Subject::Ours, Kind::Nts15), "0.98"),
    ("chrony's NTS 15 / its plain", (Subject::Chrony, Kind::Nts15), (Subject::Chrony, Kind::Plain), "-"),
    ("NTS 15 / echo of its size", (Subject::Ours, Kind::Nts15), (Subject::Echo, Kind::EchoNts), "-"),
    ("ANTP / our plain", (Subject::Ours, Kind::Antp), (Subject::Ours, Kind::Plain), "0.90 (paper 0.62)"),
    ("ANTP / echo of its size", (Subject::Ours, Kind::Antp), (Subject::Echo, Kind::EchoAntp), "-"),
    ("plain, spans on / off", (Subject::OursTimed, Kind::Plain), (Subject::Ours, Kind::Plain), "-"),
    ("NTS 15, spans on / off", (Subject::OursTimed, Kind::Nts15), (Subject::Ours, Kind::Nts15), "-"),
];

/// Rates, ratios, and both by batch size; `node` is our server.
pub(crate) fn report(rows: &[Row], pair: &Pair, node: &Process) -> String {
    let mut text = String::new();
    let mut line = |arguments: std::fmt::Arguments<'_>| {
        text.write_fmt(arguments)
            .and_then(|()| text.write_char('\n'))
            .expect("writing to a string cannot fail");
    };
    line(format_args!(
        "path: {}; server on one core, generator on another; {} rounds",
        pair.path_name(),
        rows[0].rates.len()
    ));
    line(format_args!("{:<22} {:<16} {:>12}", "server", "load", "answers/s"));
    for row in rows {
        line(format_args!(
            "{:<22} {:<16} {:>12.0}",
            row.subject.name(),
            row.kind.label(),
            median(&row.rates)
        ));
    }
    let find = |subject, kind| rows.iter().find(|row| row.subject == subject && row.kind == kind);
    line(format_args!("{:<28} {:>6} {:>15}   {}", "ratio", "median", "min .. max", "to reach"));
    for (name, (a, a_kind), (b, b_kind), goal) in COMPARISONS {
        let (Some(a), Some(b)) = (find(a, a_kind), find(b, b_kind)) else { continue };
        let ratios = quotients(&a.rates, &b.rates);
        let (least, most) =
            ratios.iter().fold((f64::MAX, 0.0f64), |(low, high), &r| (low.min(r), high.max(r)));
        line(format_args!(
            "{name:<28} {:>6.2} {:>15}   {goal}",
            median(&ratios),
            format!("{least:.2} .. {most:.2}")
        ));
    }
    line(format_args!(
        "{:<6} {:>16} {:>16} {:>16} {:>16} {:>16}   median ratios, by datagrams at a time",
        "batch", "plain / chrony", "NTS 15 / chrony", "NTS 15 / plain", "NTS 30 / plain", "ANTP / plain"
    ));
    for (batch, subject) in BATCHES {
        let ratio = |kind, other, other_kind| {
            let (a, b) = (find(subject, kind)?, find(other, other_kind)?);
            Some(median(&quotients(&a.rates, &b.rates)))
        };
        let ratios = [
            ratio(Kind::Plain, Subject::Chrony, Kind::Plain),
            ratio(Kind::Nts15, Subject::Chrony, Kind::Nts15),
            ratio(Kind::Nts15, subject, Kind::Plain),
            ratio(Kind::Nts30, subject, Kind::Plain),
            ratio(Kind::Antp, subject, Kind::Plain),
        ];
        let cells = ratios.map(|ratio| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")));
        let [a, b, c, d, e] = cells;
        line(format_args!("{batch:<6} {a:>16} {b:>16} {c:>16} {d:>16} {e:>16}"));
    }
    let (resident, cpu) = node.usage();
    line(format_args!(
        "authentick: resident {:.1} MiB, {cpu:.1} s of processor time",
        resident as f64 / 1048576.0
    ));
    line(format_args!("answers/s by round:"));
    for row in rows {
        let rates: Vec<String> = row.rates.iter().map(|rate| format!("{rate:.0}")).collect();
        line(format_args!("{:?},{},{}", row.subject, row.kind, rates.join(",")));
    }
    text
}
