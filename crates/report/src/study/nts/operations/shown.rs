//! Operations alone, as a table and in sentences.

use super::{Operation, OperationTimes, OperationsRecord};
use crate::published::nts::recompute::file_read_us;
use crate::published::nts::{Measure, table_2};
use crate::render::{ABSENT, Block, Medium, Section, Table, or_absent};
use crate::study::nts::figures::{Cells, Reading};
use crate::units::{count, listed, percent, ratio, time};

/// What was measured alone.
#[derive(Debug)]
pub(in crate::study::nts) struct Alone<'a>(&'a [OperationsRecord]);

/// Below this a time is told in nanoseconds: tenths of a microsecond would be too coarse.
const FINE_NS: f64 = 10_000.0;

fn ns(value: f64) -> String {
    match value.round() {
        fine if fine < FINE_NS => format!("{} ns", count(fine as u64)),
        other => time(other as u64),
    }
}

/// What holds of theirs, and is not printed.
fn of_theirs(operation: Operation) -> String {
    let printed = |measure: Measure| {
        let value = or_absent(table_2(measure).map(|value| ns(value * measure.unit().ns())));
        format!("{} {value}", measure.symbol())
    };
    match operation {
        Operation::HandshakeClient | Operation::Handshake => {
            format!("part of {}", printed(Measure::Cke))
        }
        Operation::SealEightCookies => format!("part of {}", printed(Measure::Ske)),
        Operation::SealCookie | Operation::OpenCookie | Operation::VerifySivCmac | Operation::SignSivCmac => {
            format!("part of {}", printed(Measure::Snts))
        }
        Operation::ReadFile => {
            format!("about {} of {}, parsing included", ns(file_read_us() * 1e3), printed(Measure::Snts))
        }
        Operation::HandshakeServer | Operation::MemcachedGet => "in no span".to_owned(),
        Operation::OpenCookieInGroup
        | Operation::VerifySivCmacInGroup
        | Operation::SignSivCmacInGroup
        | Operation::VerifyGcmSiv
        | Operation::VerifyGcmSivInGroup
        | Operation::SignGcmSiv
        | Operation::SignGcmSivInGroup => ABSENT.to_owned(),
    }
}

impl<'a> Alone<'a> {
    pub(in crate::study::nts) const fn new(records: &'a [OperationsRecord]) -> Self {
        Alone(records)
    }

    fn all(&self) -> impl Iterator<Item = &'a OperationTimes> + '_ {
        let find = |operation: Operation| self.get(operation).map(|(_, times)| times);
        Operation::ALL.into_iter().filter_map(find)
    }

    fn get(&self, operation: Operation) -> Option<(&'a OperationsRecord, &'a OperationTimes)> {
        self.0.iter().find_map(|record| {
            let times = record.operations.iter().find(|times| times.operation == operation)?;
            Some((record, times))
        })
    }

    /// A median, in nanoseconds.
    fn median(&self, operation: Operation) -> Option<f64> {
        self.get(operation).map(|(_, times)| times.p50_ns)
    }

    /// Whether anything was measured.
    pub(in crate::study::nts) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What follows, with what was measured of one client.
    pub(in crate::study::nts) fn findings(&self, cells: &Cells<'_>) -> Vec<String> {
        [self.of_preloading(cells), self.of_memcached(cells)].into_iter().flatten().collect()
    }

    /// d_SNTS and d_SKE of our server as their program took them, in nanoseconds.
    fn of_program(cells: &Cells<'_>) -> Option<[f64; 2]> {
        let (cell, _) = cells.main()?;
        let median = |measure| cells.median(cell, measure, Reading::Program).filter(|ns| *ns > 0.0);
        Some([median(Measure::Snts)?, median(Measure::Ske)?])
    }

    /// Whether preloaded keys make the difference, as the paper says.
    fn of_preloading(&self, cells: &Cells<'_>) -> Option<String> {
        let (record, read) = self.get(Operation::ReadFile)?;
        let size = record.size.map(|size| format!(" of {} octets", count(size))).unwrap_or_default();
        let read_ns = read.p50_ns;
        let alone =
            format!("Opening, reading and closing a file{size} takes {} alone, unparsed", ns(read_ns));
        let theirs = file_read_us() / table_2(Measure::Snts)?;
        let Some([snts, ske]) = Alone::of_program(cells) else {
            return Some(format!("{alone}."));
        };
        let with = snts + read_ns;
        let verdict = match snts <= ske {
            true => {
                "so that preloading, of which the paper speaks, does not set them apart: both have their keys in memory"
            }
            false => "though both have their keys in memory, and preloading does not set them apart",
        };
        Some(format!(
            "{alone}. d_SNTS as their program took it is {}, {} times d_SKE, {verdict}. With such a read for each \
             request it would be {}, {} times d_SKE, and {} % of it the read; of theirs the file is about {:.0} %, by \
             inference, with its parsing.",
            ns(snts),
            ratio(snts / ske),
            ns(with),
            ratio(with / ske),
            percent(read_ns / with),
            theirs * 100.0
        ))
    }

    /// What a get would cost where none is.
    fn of_memcached(&self, cells: &Cells<'_>) -> Option<String> {
        let (record, get) = self.get(Operation::MemcachedGet)?;
        let size = record.size.map(|size| format!(" ({} octets)", count(size))).unwrap_or_default();
        let factor = Alone::of_program(cells).map_or_else(String::new, |[snts, _]| {
            format!(
                ": with one for each request d_SNTS would be {} times as long",
                ratio(1.0 + get.p50_ns / snts)
            )
        });
        Some(format!(
            "A get of the document of keys{size} from memcached takes {} over loopback. Neither d_SKE nor d_SNTS has \
             one, here or in theirs{factor}.",
            ns(get.p50_ns)
        ))
    }

    /// What it says to a statement of the paper, if anything.
    pub(in crate::study::nts) fn answer(&self, id: &str, cells: &Cells<'_>) -> Option<String> {
        match id {
            "isolated-operations" => self.in_short(),
            "preloaded-keys" => {
                let findings = self.findings(cells);
                (!findings.is_empty()).then(|| findings.join(" "))
            }
            "d-snts-and-d-sntp" => {
                let (cell, _) = cells.main()?;
                let [sntp, snts] = [Measure::Sntp, Measure::Snts]
                    .map(|measure| cells.median(cell, measure, Reading::Program));
                let read = self.median(Operation::ReadFile)?;
                Some(format!(
                    "d_SNTP has {}, and d_SNTS with a fresh cookie {}; a file read for each request would add {}, \
                     measured alone.",
                    ns(sntp?),
                    ns(snts?),
                    ns(read)
                ))
            }
            _ => None,
        }
    }

    fn in_short(&self) -> Option<String> {
        let told = [
            (Operation::Handshake, "a TLS handshake"),
            (Operation::HandshakeServer, "the server\u{2019}s half of it"),
            (Operation::SealEightCookies, "sealing eight cookies"),
            (Operation::OpenCookie, "opening one"),
            (Operation::VerifySivCmac, "verifying a request"),
            (Operation::SignSivCmac, "signing a response"),
        ];
        let told = told
            .into_iter()
            .filter_map(|(operation, name)| Some(format!("{name} {}", ns(self.median(operation)?))));
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| format!("alone, by medians, {}.", listed(told)))
    }

    fn about(&self) -> Vec<String> {
        let conditions = self.0.iter().filter(|record| record.operations.len() > 1).map(|record| {
            format!(
                "One thread computes, on the processor that the server has otherwise. AEADs are computed with {}; a \
                 group is of {} requests, as the server works on them under load. The clock shows {:.0} ns of an empty \
                 block, which are taken off each.",
                record.path,
                count(record.group.into()),
                record.clock_ns
            )
        });
        let memcached = self.0.iter().filter_map(|record| record.memcached.as_ref());
        conditions.chain(memcached.map(|version| format!("memcached is {version}."))).collect()
    }

    pub(in crate::study::nts) fn table(&self) -> Table {
        let spread = |times: &&OperationTimes| format!("{} - {}", ns(times.p5_ns), ns(times.p95_ns));
        let interval = |times: &&OperationTimes| {
            let interval = times.estimate().and_then(|estimate| estimate.interval);
            or_absent(interval.map(|[low, high]| format!("{} - {}", ns(low), ns(high))))
        };
        Table::of("Operations alone", self.all())
            .words("operation", |times: &&OperationTimes| times.operation.name())
            .number("median", |times| ns(times.p50_ns))
            .number("95 % of medians", interval)
            .number("mean", |times| ns(times.mean_ns))
            .number_on(Medium::Page, "5th - 95th percentile", spread)
            .number_on(Medium::Page, "blocks", |times| count(times.count))
            .number_on(Medium::Page, "in a block", |times| count(times.block.into()))
            .words("theirs", |times| of_theirs(times.operation))
            .noted([
                "Intervals are of the medians of rounds, by the bootstrap. A handshake is in memory, with the \
                 certificate and the settings of the server in the other tasks: X25519, ECDSA with P-256, \
                 AES-128-GCM; nothing is resumed. A request is verified over 184 octets (AEAD 30: 152), a response \
                 signed over 84 with a fresh cookie inside. Theirs has no span of an operation alone: it is said in \
                 which one it is.",
            ])
    }
}

/// Operations alone; nothing where none was measured.
pub(in crate::study::nts) fn section(alone: &Alone<'_>, cells: &Cells<'_>) -> Option<Section> {
    if alone.is_empty() {
        return None;
    }
    let mut section = Section::new("Operations alone");
    section.add(Block::findings(alone.findings(cells)));
    section.say_all(alone.about());
    section.add(Block::Table(alone.table()));
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::nts::tests::{operations, records};

    fn measured() -> Vec<OperationsRecord> {
        ["operations", "operations-memcached"].map(operations).into()
    }

    #[test]
    fn read_of_a_file_is_put_beside_d_ske_and_preloading_is_not() {
        let (records, cells) = (measured(), records());
        let (alone, cells) = (Alone::new(&records), Cells::new(&cells));
        let said = alone.of_preloading(&cells).unwrap();
        // d_SNTS is 4 us, d_SKE 18 us, and the read 16 us.
        for part in [
            "a file of 192 octets takes 16.0 us alone, unparsed.",
            "it is 4,000 ns, 0.22 times d_SKE, so that preloading",
            "it would be 20.0 us, 1.09 times d_SKE, and 80.00 % of it the read",
            "of theirs the file is about 82 %,",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = alone.of_memcached(&cells).unwrap();
        assert!(said.contains("(400 octets) from memcached takes 17.0 us"), "{said}");
        assert!(said.contains("would be 5.25 times as long"), "{said}");
        // Without a client's record there is the time alone.
        let none = Cells::new(&[]);
        assert_eq!(alone.findings(&none).len(), 2);
        assert!(!alone.findings(&none)[0].contains("d_SKE"));
    }

    #[test]
    fn each_operation_has_a_row_with_its_interval_and_what_theirs_has() {
        let records = measured();
        let table = Alone::new(&records).table();
        assert_eq!(table.rows.len(), Operation::ALL.len());
        assert!(table.rows.iter().all(|row| row.cells[2].contains(" - ")), "{table:?}");
        let read = table.rows.iter().find(|row| row.cells[0] == "read a small file").unwrap();
        assert_eq!(read.cells.last().unwrap(), "about 66.1 us of d_SNTS 80.8 us, parsing included");
        assert!(section(&Alone::new(&[]), &Cells::new(&[])).is_none());
    }
}
