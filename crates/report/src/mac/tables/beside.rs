//! Ours beside what the drafts published: as multiples of legacy MD5, and table by table.

use super::{extremes, kilo, which};
use crate::mac::recommend::Role;
use crate::mac::security::Factors;
use crate::mac::{Algorithm, KeyUse, MacRecord, Side, Timing};
use crate::published::ntp_mac::{
    ALGORITHMS, Advantage, Cell, Column, Content, DRAFT_IETF, Draft, GMAC_SIV_CYCLES, Lengths, Machine,
    Table as Published, cell, cells, ratio_to_md5, tables,
};
use crate::render::{ABSENT, Section, Table, or_absent};
use crate::units::{joined, ratio};

/// Numbers of messages for which a forger's advantage is shown, as powers of two; and for a year at NIST's rate.
const QUERIES_LOG2: [f64; 3] = [20.0, 32.0, 48.0];

/// Which of our figures a column shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    One,
    Batch,
    Rival,
}

impl Own {
    const ALL: [Own; 3] = [Own::One, Own::Batch, Own::Rival];

    const fn name(self) -> &'static str {
        match self {
            Own::One => "Ours",
            Own::Batch => "Ours in batches",
            Own::Rival => "OpenSSL here",
        }
    }

    pub(super) fn timing(self, side: &Side, algorithm: Algorithm) -> Option<&Timing> {
        match self {
            Own::One => side.ours(algorithm, 1),
            Own::Batch => side.fastest_batch(algorithm),
            Own::Rival => side.rival(algorithm, KeyUse::Kept),
        }
    }
}

/// The columns of this host: what, and of which process.
fn own_columns(record: &MacRecord) -> Vec<(Own, &Side)> {
    Own::ALL.into_iter().flat_map(|own| record.in_order().map(move |side| (own, side))).collect()
}

fn own_heading((own, side): &(Own, &Side)) -> String {
    format!("{} {}", own.name(), which(side.instructions))
}

/// Every algorithm as a multiple of legacy MD5 of the same code, process and batch, beside the published ones; and what
/// the instructions are worth.
pub(super) fn multiples(record: &MacRecord) -> Section {
    let mut section = Section::new("As multiples of legacy MD5");
    section.say(
        "How many times as many packets as with legacy MD5: of the same machine, and of ours by the same code, with \
         the same instructions. Absolute figures of other hardware say nothing here.",
    );
    let note = "With and without: the instructions for AES, carry-less multiplication and SHA. In batches: of the size \
                that is fastest, both of the algorithm and of legacy MD5. GMAC-SIV on the Xeon is by the 5.9 cycles \
                per octet of draft-ietf-ntp-mac, section 8. (aws-lc): by OpenSSL\u{2019}s legacy MD5.";
    let table = Table::of("Algorithm / legacy MD5", Algorithm::ALL)
        .words("Algorithm", |algorithm| *algorithm)
        .each(own_columns(record), own_heading, |&algorithm, (own, side)| {
            let [timing, md5] = [algorithm, Algorithm::Md5].map(|algorithm| own.timing(side, algorithm));
            or_absent(timing.zip(md5).map(|(timing, md5)| {
                format!("{}{}", ratio(timing.speed_ratio(md5).median), timing.foreign())
            }))
        })
        .each(
            Machine::ALL,
            |machine| machine.name(),
            |&algorithm, &machine| {
                let mark = mark(&DRAFT_IETF, algorithm, machine);
                or_absent(ratio_to_md5(algorithm, machine).map(|times| format!("{}{mark}", ratio(times))))
            },
        )
        .noted(std::iter::once(note.to_owned()).chain(disagreements(&DRAFT_IETF, &Machine::ALL)));
    let published = |&algorithm: &Algorithm| {
        let [with, without] = [Machine::XeonWith, Machine::XeonWithout]
            .map(|machine| cell(algorithm, machine).map(|cell| cell.throughput_kps));
        Some(ratio(with? / without?))
    };
    let worth = Table::of("With the instructions / without them", Algorithm::ALL)
        .words("Algorithm", |algorithm| *algorithm)
        .each(
            Own::ALL,
            |own| format!("{} (extremes)", own.name()),
            |&algorithm, own| {
                let worth = record.worth(|side| own.timing(side, algorithm));
                or_absent(worth.map(|range| extremes(range, ratio)))
            },
        )
        .number("Published, Xeon", |algorithm| or_absent(published(algorithm)))
        .table();
    section.show([table, worth]);
    section
}

/// The ratios that matter most, in sentences: to OpenSSL, and of CMAC to legacy MD5 as published.
pub(super) fn ratios(record: &MacRecord) -> Vec<String> {
    const CMAC: Algorithm = Algorithm::Cmac128;
    let mut sentences = Vec::new();
    for side in record.in_order() {
        let to_rival = |algorithm, ours: Option<&Timing>| {
            Some(ours?.speed_ratio(side.rival(algorithm, KeyUse::Kept)?).median)
        };
        let one = Algorithm::ALL
            .into_iter()
            .filter_map(|algorithm| Some((algorithm, to_rival(algorithm, side.ours(algorithm, 1))?)));
        let Some((slowest, least)) = one.min_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        let cmac = [side.ours(CMAC, 1), side.fastest_batch(CMAC)].map(|ours| to_rival(CMAC, ours).map(ratio));
        let [one, batch] = cmac.map(or_absent);
        sentences.push(format!(
            "Ours / OpenSSL one at a time (GMAC-SIV: aws-lc), {} the instructions: {} at least, that is {slowest}; \
             {CMAC} {one} one at a time, {batch} in its best batch.",
            which(side.instructions),
            ratio(least),
        ));
    }
    let own = own_columns(record).into_iter().filter_map(|column| {
        let (own, side) = &column;
        let [cmac, md5] = [CMAC, Algorithm::Md5].map(|algorithm| own.timing(side, algorithm));
        Some(format!("{} {}", ratio(cmac?.speed_ratio(md5?).median), own_heading(&column)))
    });
    let published = Machine::ALL
        .iter()
        .filter_map(|&machine| Some(format!("{} {}", ratio(ratio_to_md5(CMAC, machine)?), machine.name())));
    if let (Some(own), Some(published)) = (joined(own, ", "), joined(published, ", ")) {
        sentences.push(format!("{CMAC} / legacy MD5 here: {own}. Published: {published}."));
    }
    sentences
}

/// The nine tables, ours beside each.
pub(super) fn drafts(record: &MacRecord) -> Section {
    let mut section = Section::new("The nine tables of the drafts, and ours");
    section.say(
        "In brackets: how many times as fast as legacy MD5 of the same column. Ratios are compared, not figures of \
         different hardware.",
    );
    section.show(tables().enumerate().map(|(index, (draft, published))| {
        let name = title(index, draft, published);
        match &published.content {
            Content::Lengths(rows) => lengths(name, rows),
            Content::Throughput(columns) => figures(record, name, draft, columns, Figure::Throughput),
            Content::Cycles(columns) => figures(record, name, draft, columns, Figure::Cycles),
            Content::Advantages(rows) => advantages(name, rows),
        }
    }));
    section
}

/// What a table of the drafts is called here.
pub(in crate::mac) fn title(index: usize, draft: &Draft, published: &Published) -> String {
    let Published { section, title, content } = published;
    let unit = match content {
        Content::Throughput(_) => " (thousands)",
        Content::Cycles(_) => " (of ours, reference cycles)",
        Content::Lengths(_) | Content::Advantages(_) => "",
    };
    format!("{} of {}: {}, {section}. {title}{unit}", index + 1, tables().count(), draft.name)
}

fn lengths(name: String, rows: &[Lengths]) -> Table {
    let factors = |row: &&Lengths| Factors::of(row.algorithm);
    let mut table = Table::of(name, rows)
        .words("Algorithm", |row| row.algorithm)
        .number("Key", |row| row.key_size)
        .number("Tag", |row| row.tag_size);
    if rows.iter().any(|row| row.security_bits.is_some()) {
        table = table.number("Security level", |row| {
            row.security_bits.map_or_else(|| "NA".to_owned(), |bits| bits.to_string())
        });
    }
    table
        .number("Ours: key", |row| factors(row).key_bits / 8)
        .number("Tag", |row| factors(row).tag_bits / 8)
        .number("min(key, tag), bits", |row| factors(row).bound_bits())
        .number("Level, bits", |row| or_absent(factors(row).level_bits()))
        .table()
}

/// What a table of figures counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Throughput,
    Cycles,
}

fn figures(record: &MacRecord, name: String, draft: &Draft, columns: &[Column], figure: Figure) -> Table {
    let here: Vec<Machine> = columns.iter().map(|column| column.machine).collect();
    let mut notes = disagreements(draft, &here);
    if figure == Figure::Cycles && draft.name == DRAFT_IETF.name {
        notes.extend(gmac_siv(record, columns));
    }
    Table::of(name, ALGORITHMS.into_iter().enumerate())
        .words("Algorithm", |&(_, algorithm)| algorithm)
        .each(
            columns,
            |column| column.machine.name(),
            |&(index, algorithm), column| {
                let (value, md5) = (column.figures[index], column.figures[0]);
                let (shown, times) = match figure {
                    Figure::Throughput => (kilo(value), value / md5),
                    Figure::Cycles => (value.to_string(), md5 / value),
                };
                format!("{shown}{} ({})", mark(draft, algorithm, column.machine), ratio(times))
            },
        )
        .each(own_columns(record), own_heading, |&(_, algorithm), (own, side)| {
            own_cell(record, *own, side, algorithm, figure)
        })
        .noted(notes)
}

/// A figure of ours with its ratio to our legacy MD5.
fn own_cell(record: &MacRecord, own: Own, side: &Side, algorithm: Algorithm, figure: Figure) -> String {
    let Some(timing) = own.timing(side, algorithm) else { return ABSENT.to_owned() };
    let shown = match (figure, record.reference_hz) {
        (Figure::Throughput, _) => kilo(timing.throughput_kps().median),
        (Figure::Cycles, Some(hz)) => format!("{:.1}", timing.cycles(hz)),
        (Figure::Cycles, None) => return ABSENT.to_owned(),
    };
    let times = own.timing(side, Algorithm::Md5).map(|md5| ratio(timing.speed_ratio(md5).median));
    times.map_or_else(|| shown.clone(), |times| format!("{shown} ({times})"))
}

/// GMAC-SIV, for which the draft gives only cycles, outside of its tables.
fn gmac_siv(record: &MacRecord, columns: &[Column]) -> Option<String> {
    columns.iter().find(|column| column.machine == Machine::XeonWith)?;
    let published = ratio_to_md5(Algorithm::GmacSiv128, Machine::XeonWith).map(ratio)?;
    let own: Vec<String> = own_columns(record)
        .into_iter()
        .filter(|(own, side)| own.timing(side, Algorithm::GmacSiv128).is_some())
        .map(|(own, side)| {
            let name = if own == Own::Rival { "aws-lc here" } else { own.name() };
            let cell = own_cell(record, own, side, Algorithm::GmacSiv128, Figure::Cycles);
            format!("{name} {}: {cell}", which(side.instructions))
        })
        .collect();
    Some(format!(
        "In no table, but in section 8: GMAC-SIV, {GMAC_SIV_CYCLES} ({published}) on the Xeon with AES-NI. {}",
        own.join("; ")
    ))
}

fn advantages(name: String, rows: &[Advantage]) -> Table {
    let year = Role::Server.messages_log2();
    let advantage = |row: &&Advantage, q_log2: f64| {
        or_absent(Factors::of(row.algorithm).advantage_log2(q_log2).map(|log2| match log2 {
            0.0 => "1".to_owned(),
            _ => format!("2^{}", ((log2 * 10.0).round() / 10.0)),
        }))
    };
    let note = "No advantage is less than that of a guess, 1/2^min(key, tag): of HMAC-SHA224 the draft\u{2019}s \
                formula is that of the whole tag.";
    Table::of(name, rows)
        .words("Algorithm", |row| row.algorithm)
        .words("Published", |row| row.formula.clone())
        .each(QUERIES_LOG2, |q_log2| format!("At q = 2^{q_log2}"), |row, &q_log2| advantage(row, q_log2))
        .number(format!("At q = 2^{year:.1}, a year of 28,000/s"), |row| advantage(row, year))
        .number("Packets per key, at most", |row| super::advice::packets(&Factors::of(row.algorithm)))
        .noted([note])
}

/// A star where throughput and cycles of a cell disagree.
fn mark(draft: &Draft, algorithm: Algorithm, machine: Machine) -> &'static str {
    let is_it = |cell: &Cell| cell.algorithm == algorithm && cell.machine == machine && cell.disagrees();
    if cells(draft).iter().any(is_it) { "*" } else { "" }
}

/// What the stars of these machines mean.
fn disagreements(draft: &Draft, machines: &[Machine]) -> Vec<String> {
    let here = cells(draft).into_iter().filter(|cell| machines.contains(&cell.machine));
    here.filter_map(|cell| cell.disagreement()).map(|sentence| format!("* {sentence}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::Instructions;
    use crate::mac::tests::record;

    fn row(table: &Table, name: &str) -> Vec<String> {
        let rows = &mut table.rows.iter().map(|row| &row.cells);
        rows.find(|row| row[0] == name).unwrap_or_else(|| panic!("{name}: {table:?}")).clone()
    }

    #[test]
    fn nine_tables_stand_by_name_with_ours_beside() {
        let section = drafts(&record());
        let tables = section.tables();
        assert_eq!(tables.len(), 9);
        for (index, table) in tables.iter().enumerate() {
            let draft = if index < 3 { "draft-aanchal4-ntp-mac-00" } else { "draft-ietf-ntp-mac" };
            assert!(
                table.name.starts_with(&format!("{} of 9: {draft}, section ", index + 1)),
                "{}",
                table.name
            );
            assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()), "{}", table.name);
            assert!(matches!(table.rows.len(), 5 | 6));
        }
        assert_eq!(
            row(tables[1], "CMAC(AES-128)")[1..],
            [
                "7,567 (2.43)",
                "4,388 (1.39)",
                "16,667 (2.67)",
                "9,259 (1.48)",
                "55,556 (2.67)",
                "30,864 (1.48)",
                "11,111 (2.67)",
                "6,173 (1.48)"
            ]
        );
        assert_eq!(row(tables[2], "GMAC(AES-128)")[1], "3.009 (5.33)");
        assert_eq!(row(tables[0], "HMAC-SHA224/128")[1..5], ["16", "28", "112", "16"]);
        assert_eq!(row(tables[0], "HMAC-MD5")[3], "NA");
        assert_eq!(
            row(tables[8], "CMAC(AES-128)")[1..],
            ["q^2/2^{128}", "2^-88", "2^-64", "2^-32", "2^-48.6", "2^46"]
        );
    }

    #[test]
    fn cells_that_disagree_are_marked_with_the_reason() {
        let section = drafts(&record());
        let tables = section.tables();
        assert_eq!(row(tables[4], "Poly1305(ChaCha20)")[1], "2,598* (0.83)");
        assert_eq!(row(tables[7], "GMAC(AES-128)")[1], "50* (1.04)");
        assert_eq!(row(tables[6], "GMAC(AES-128)")[1..3], ["681* (1.14)", "1,362 (2.51)"]);
        let stars: usize = tables
            .iter()
            .flat_map(|table| table.rows.iter().flat_map(|row| &row.cells))
            .filter(|cell| cell.contains('*'))
            .count();
        // Poly1305 with and without in two tables of each draft, and GMAC on the PowerPC in two.
        assert_eq!(stars, 2 * 2 * 2 + 2);
        assert!(tables[6].notes[0].contains("a clock of 1.63 GHz"), "{:?}", tables[6].notes);
        assert_eq!((tables[4].notes.len(), tables[6].notes.len()), (2, 1));
        assert!(tables[5].notes[2].contains("GMAC-SIV, 5.9 (2.71) on the Xeon"), "{:?}", tables[5].notes);
        assert!(tables[5].notes[2].contains("aws-lc here without"), "{:?}", tables[5].notes);
        assert_eq!(tables[2].notes.len(), 2);
    }

    #[test]
    fn multiples_stand_beside_those_of_each_machine() {
        let section = multiples(&record());
        let tables = section.tables();
        let cmac = row(tables[0], "CMAC(AES-128)");
        assert_eq!(cmac[1..7], ["2.67", "1.48", "2.67", "1.48", "2.67", "1.48"]);
        assert_eq!(cmac[7..], ["2.43", "1.39", "0.96", "0.76", "0.82", "0.64"]);
        let siv = row(tables[0], "GMAC-SIV(AES-128)");
        assert_eq!(siv[5..9], ["1.45 (aws-lc)", "0.81 (aws-lc)", "2.71", "-"]);
        assert_eq!(
            row(tables[1], "CMAC(AES-128)")[1..],
            ["1.80 (1.80 to 1.80)", "1.80 (1.80 to 1.80)", "1.80 (1.80 to 1.80)", "1.72"]
        );
    }

    #[test]
    fn ratios_are_quoted_beside_the_published_ones() {
        let sentences = ratios(&record());
        assert!(sentences[0].contains("with the instructions: 1.50 at least, that is "), "{sentences:?}");
        assert!(sentences[0].ends_with("CMAC(AES-128) 1.50 one at a time, 5.00 in its best batch."));
        assert!(sentences[2].contains("here: 2.67 Ours with, 1.48 Ours without"), "{sentences:?}");
        assert!(
            sentences[2].contains("Published: 2.43 Xeon with AES-NI, 1.39 Xeon without AES-NI, 0.96 PPC74xx")
        );
        let mut bare = record();
        bare.sides.clear();
        assert!(ratios(&bare).is_empty());
    }

    #[test]
    fn one_process_alone_has_its_columns_alone() {
        let mut record = record();
        record.sides.retain(|side| side.instructions == Instructions::With);
        assert_eq!(drafts(&record).tables()[1].columns.len(), 1 + 2 + 3);
        assert!(multiples(&record).tables()[1].rows.iter().all(|row| row.cells[1..4] == [ABSENT; 3]));
        record.reference_hz = None;
        let cycles = &drafts(&record);
        let mut rows = cycles.tables()[2].rows.iter();
        assert!(rows.all(|row| row.cells[3..].iter().all(|cell| cell == ABSENT)));
    }
}
