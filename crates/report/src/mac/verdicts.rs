//! What became here of the nine tables of the two drafts.
//!
//! Times and rates are of other processors. What is compared is which of two algorithms is faster, where a table is
//! clear about that, on a host with the same instructions.

use super::figures::Range;
use super::security::Factors;
use super::tables::title;
use super::{Instructions, MacRecord, Side};
use crate::published::ntp_mac::{ALGORITHMS, Column, Content, Lengths, Machine, tables};
use crate::study::Task;
use crate::study::tally::{Entry, Judged, Tally, Verdict, missing};
use crate::units::{joined, plural};

/// Two published figures that differ by less say nothing of an order.
const CLEAR: f64 = 1.1;
/// More pairs that stand the other way round are counted instead of named.
const NAMES_MAX: usize = 3;
const NOTES: [&str; 1] = [
    "Ours is authentick\u{2019}s code, one packet at a time with the key kept, where the drafts \
                           measured OpenSSL. A pair is clear where published figures differ by at least a tenth, and \
                           decided here where all rounds agree. Columns of other processors than x86-64 have no \
                           counterpart here. The drafts\u{2019} Xeon had no instructions for SHA, which this host may \
                           have.",
];

/// Every table of both drafts.
pub(crate) fn tally(record: Option<&MacRecord>, tasks: &[Task]) -> Tally {
    let count = tables().count();
    let entries = tables().enumerate().map(|(index, (draft, published))| {
        let (what, claim, judged) = match &published.content {
            Content::Lengths(rows) => ("lengths", "Keys and tags have the same lengths here.", lengths(rows)),
            Content::Advantages(_) => (
                "advantages",
                "Nothing is measured.",
                (
                    Verdict::CouldNot,
                    "It has formulas: there is nothing to measure, and ours evaluates them.".to_owned(),
                ),
            ),
            Content::Throughput(columns) => {
                ("throughput", ORDER, order(record, tasks, columns, |value| value))
            }
            Content::Cycles(columns) => ("cycles", ORDER, order(record, tasks, columns, |value| 1.0 / value)),
        };
        let number = published.section.split(',').next().unwrap_or_default();
        let place = format!("{} of {count}: {}, {number}, {what}", index + 1, draft.name);
        Entry::new(place, title(index, draft, published), claim, judged)
    });
    Tally { what: "tables", entries: entries.collect(), notes: NOTES.to_vec() }
}

const ORDER: &str = "Of each two algorithms that are clearly apart in a column, the same one is faster here, with the \
                     same instructions.";

/// Whether ours have the lengths of a table.
fn lengths(rows: &[Lengths]) -> Judged {
    let others = rows.iter().filter_map(|row| {
        let Factors { key_bits, tag_bits, .. } = Factors::of(row.algorithm);
        let is_same = (key_bits / 8, tag_bits / 8) == (row.key_size, row.tag_size);
        (!is_same).then(|| format!("{}: key {}, tag {} octets", row.algorithm, key_bits / 8, tag_bits / 8))
    });
    match joined(others, "; ") {
        None => (Verdict::Reproduced, format!("All {} are the same.", rows.len())),
        Some(others) => (Verdict::Differs, format!("Ours differ: {others}.")),
    }
}

/// The process that had the instructions of a machine; `None`: a machine of another kind.
const fn counterpart(machine: Machine) -> Option<Instructions> {
    match machine {
        Machine::XeonWith => Some(Instructions::With),
        Machine::XeonWithout => Some(Instructions::Without),
        Machine::Ppc74xx | Machine::CortexA9 | Machine::CortexA53 | Machine::Marvell => None,
    }
}

/// Pairs of algorithms, by how they stand here.
#[derive(Debug, Default)]
struct Pairs {
    same: u64,
    /// Rounds disagree.
    open: u64,
    /// The other way round: what is faster here.
    reversed: Vec<String>,
}

/// Whether algorithms stand in the order of a table; `speed` makes a figure one that is larger the faster it is.
fn order(record: Option<&MacRecord>, tasks: &[Task], columns: &[Column], speed: fn(f64) -> f64) -> Judged {
    let Some(record) = record else { return missing(tasks, |_| true) };
    if columns.iter().all(|column| counterpart(column.machine).is_none()) {
        return (
            Verdict::CouldNot,
            "All of its columns are of processors that this host has not.".to_owned(),
        );
    }
    let mut pairs = Pairs::default();
    for column in columns {
        let side = counterpart(column.machine).and_then(|instructions| record.side(instructions));
        if let Some(side) = side {
            pairs.add(side, column, speed);
        }
    }
    pairs.judged()
}

impl Pairs {
    fn add(&mut self, side: &Side, column: &Column, speed: fn(f64) -> f64) {
        for (index, &one) in ALGORITHMS.iter().enumerate() {
            for (other_index, &other) in ALGORITHMS.iter().enumerate().skip(index + 1) {
                let published = speed(column.figures[index]) / speed(column.figures[other_index]);
                if (1.0 / CLEAR..=CLEAR).contains(&published) {
                    continue;
                }
                let Some((ours, theirs)) = side.ours(one, 1).zip(side.ours(other, 1)) else { continue };
                let Range { low, high, .. } = ours.speed_ratio(theirs);
                let (faster, slower) = if published > 1.0 { (other, one) } else { (one, other) };
                match (published > 1.0, low > 1.0, high < 1.0) {
                    (true, true, _) | (false, _, true) => self.same += 1,
                    (true, _, true) | (false, true, _) => {
                        self.reversed.push(format!("{faster} over {slower} ({})", column.machine.name()));
                    }
                    (_, false, false) => self.open += 1,
                }
            }
        }
    }

    fn judged(self) -> Judged {
        let Pairs { same, open, reversed } = self;
        let all = same + open + reversed.len() as u64;
        let undecided =
            if open > 0 { format!(", and rounds decide {open} neither way") } else { String::new() };
        let told = format!("Of {} {same} stand alike{undecided}", plural(all, "clear pair"));
        match reversed.len() {
            0 if same == 0 => (Verdict::CouldNot, "No clear pair of it was measured.".to_owned()),
            0 => (Verdict::Reproduced, format!("{told}.")),
            count => {
                let names = reversed[..count.min(NAMES_MAX)].join(", ");
                let more = if count > NAMES_MAX {
                    format!(" and {} more", count - NAMES_MAX)
                } else {
                    String::new()
                };
                (Verdict::Differs, format!("{told}; faster here, the other way round: {names}{more}."))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::tests::record;
    use crate::mac::{Algorithm, Implementation};

    fn throughput(record: &MacRecord) -> Judged {
        let tally = tally(Some(record), &[]);
        let of = |(_, table): &(usize, _)| {
            let (_, published): &(&crate::published::ntp_mac::Draft, &crate::published::ntp_mac::Table) =
                table;
            matches!(published.content, Content::Throughput(_))
        };
        let (index, _) = tables().enumerate().find(of).unwrap();
        (tally.entries[index].verdict, tally.entries[index].why.clone())
    }

    #[test]
    fn nine_tables_have_a_verdict_each() {
        let record = record();
        let tally = tally(Some(&record), &[]);
        assert_eq!(tally.len(), 9);
        assert!(tally.entries.iter().all(|entry| entry.why.ends_with('.')), "{tally:?}");
        assert_eq!(tally.count(Verdict::CouldNot), 1 + without_record_of_x86());
    }

    /// Tables whose columns are all of other processors.
    fn without_record_of_x86() -> usize {
        let is_other =
            |columns: &[Column]| columns.iter().all(|column| counterpart(column.machine).is_none());
        tables()
            .filter(|(_, published)| match &published.content {
                Content::Throughput(columns) | Content::Cycles(columns) => is_other(columns),
                Content::Lengths(_) | Content::Advantages(_) => false,
            })
            .count()
    }

    #[test]
    fn planted_times_flip_a_verdict() {
        // As the first table has them, whatever the hand-made record says.
        let mut like = record();
        let (_, published) =
            tables().find(|(_, table)| matches!(table.content, Content::Throughput(_))).unwrap();
        let Content::Throughput(columns) = &published.content else { panic!() };
        for side in &mut like.sides {
            let is_it = |column: &&Column| counterpart(column.machine) == Some(side.instructions);
            let Some(column) = columns.iter().find(is_it) else { continue };
            for timing in &mut side.timings {
                let place = ALGORITHMS.iter().position(|algorithm| *algorithm == timing.algorithm);
                if let (Some(place), Implementation::Authentick) = (place, timing.implementation) {
                    timing.ns.iter_mut().for_each(|ns| *ns = 1e6 / column.figures[place]);
                }
            }
        }
        let (verdict, why) = throughput(&like);
        assert!(verdict == Verdict::Reproduced && !why.contains("neither way"), "{why}");
        for timing in like.sides.iter_mut().flat_map(|side| &mut side.timings) {
            if timing.algorithm == Algorithm::HmacMd5 {
                timing.ns.iter_mut().for_each(|ns| *ns = 0.01);
            }
        }
        let (verdict, why) = throughput(&like);
        assert!(verdict == Verdict::Differs && why.contains("HMAC-MD5 over"), "{why}");
        like.sides.clear();
        assert_eq!(throughput(&like), (Verdict::CouldNot, "No clear pair of it was measured.".to_owned()));
    }

    #[test]
    fn without_a_record_figures_could_not_be_and_lengths_stand() {
        let tally = tally(None, &crate::study::task::tests::tasks());
        assert_eq!(
            tally.count(Verdict::Differs),
            super::tally(Some(&record()), &[])
                .entries
                .iter()
                .filter(|entry| { entry.verdict == Verdict::Differs && entry.claim.starts_with("Keys") })
                .count()
        );
        assert!(tally.entries.iter().any(|entry| entry.why.contains("no time")), "{tally:?}");
    }
}
