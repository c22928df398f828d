//! What the two drafts on MACs for NTP have in common: machines, cells, tables, and how to tell that a cell is wrong.
//!
//! The figures are in a file for each draft. Both are titled "Message Authentication Codes for the Network Time
//! Protocol", by A. Malhotra and S. Goldberg.

use std::sync::LazyLock;

use serde::Deserialize;
use strum::{EnumCount, VariantArray};

use crate::mac::Algorithm;

/// Octets over which the drafts measured: "We therefore consider the latency and throughput [...] when computed over
/// 48-byte messages" (both, section 4).
pub const PACKET_SIZE: f64 = 48.0;

/// "A study on the usage analysis of NIST's NTP stratum 1 servers shows that these servers cater to 28,000
/// requests/second on an average, per server" (draft-ietf-ntp-mac, section 3.1).
pub const NIST_RPS: f64 = 28_000.0;

/// GMAC-SIV: "~5.9 CPU cycles/byte to generate a tag of length 16 bytes on a 48-byte NTP payload", on the Xeon with
/// AES-NI (draft-ietf-ntp-mac, section 8). It is in no table.
pub const GMAC_SIV_CYCLES: f64 = 5.9;

/// Throughput and cycles of a cell may differ by so much: both are rounded, 39 and 150 K by more than a percent
/// together, and a clock is not quite what its name says.
const ROUNDING_MAX: f64 = 0.02;

/// What the drafts measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumCount, VariantArray, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Machine {
    /// "x86_64, Intel(R) Xeon(R) CPU E5-2676 v3 @ 2.40GHz with one core CPU", with AES-NI.
    XeonWith,
    /// The same without AES-NI.
    XeonWithout,
    /// "Freescale/Apple PPC74xx 1.5GHz".
    Ppc74xx,
    /// "NXP i.MX6 1GHz (dual core) ARM Cortex-A9".
    CortexA9,
    /// "Broadcom BCM2837 1.2GHz (quad core) ARM Cortex-A53".
    CortexA53,
    /// "Marvell 88F6281 1.2GHz 88FR131 (ARMv5te compliant)".
    Marvell,
}

impl Machine {
    /// All of them, in the order of the tables.
    pub const ALL: [Machine; Machine::COUNT] =
        *Machine::VARIANTS.first_chunk().expect("as many as there are");

    /// The head of its column.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Machine::XeonWith => "Xeon with AES-NI",
            Machine::XeonWithout => "Xeon without AES-NI",
            Machine::Ppc74xx => "PPC74xx",
            Machine::CortexA9 => "Cortex-A9",
            Machine::CortexA53 => "Cortex-A53",
            Machine::Marvell => "Marvell",
        }
    }

    /// The frequency that the drafts name.
    #[must_use]
    pub const fn hz(self) -> f64 {
        match self {
            Machine::XeonWith | Machine::XeonWithout => 2.4e9,
            Machine::Ppc74xx => 1.5e9,
            Machine::CortexA9 => 1e9,
            Machine::CortexA53 | Machine::Marvell => 1.2e9,
        }
    }
}

/// The algorithms of the tables, in their order.
pub const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::Md5,
    Algorithm::HmacMd5,
    Algorithm::HmacSha224,
    Algorithm::Cmac128,
    Algorithm::Gmac128,
    Algorithm::Poly1305,
];

/// A column of a table: a figure for each of [`ALGORITHMS`].
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Column {
    /// What it was measured on.
    pub machine: Machine,
    /// The figures.
    pub figures: [f64; 6],
}

/// A row of the tables that tell lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Lengths {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// "Input Key Length (Bytes)".
    pub key_size: u32,
    /// "Output Tag Length (Bytes)".
    pub tag_size: u32,
    /// "Security Level (bits)"; `None` is the draft's "NA".
    pub security_bits: Option<u32>,
}

/// A row of the table of advantages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Advantage {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The advantage after q messages, as the draft writes it.
    pub formula: String,
}

/// What a table tells.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Lengths of keys and tags.
    Lengths(Vec<Lengths>),
    /// Thousands of 48-octet packets a second.
    Throughput(Vec<Column>),
    /// Cycles per octet of a 48-octet packet.
    Cycles(Vec<Column>),
    /// A forger's advantage after q messages.
    Advantages(Vec<Advantage>),
}

/// A table as it was published.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Table {
    /// Its section, with number and title.
    pub section: String,
    /// What the table tells, in the draft's words.
    pub title: String,
    /// Its figures.
    pub content: Content,
}

/// A draft with its tables, in their order.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Draft {
    /// Its name.
    pub name: String,
    /// Its tables.
    pub tables: Vec<Table>,
}

/// draft-aanchal4-ntp-mac-00 (2016). It recommends GMAC, "because it has the best latency and throughput performance"
/// (section 5).
pub static DRAFT_00: LazyLock<Draft> = LazyLock::new(|| read(include_str!("draft_00.json")));

/// draft-ietf-ntp-mac, "Message Authentication Codes for the Network Time Protocol" (October 26, 2016): six tables. It
/// withdraws the recommendation of GMAC in favour of CMAC, as NTP cannot ensure that nonces never repeat (section 9).
/// It became RFC 8573.
pub static DRAFT_IETF: LazyLock<Draft> = LazyLock::new(|| read(include_str!("draft_ietf.json")));

fn read(text: &str) -> Draft {
    serde_json::from_str(text).expect("it is part of the program, and tests read it")
}

/// The nine tables of both drafts, in their order, each with its draft.
pub fn tables() -> impl Iterator<Item = (&'static Draft, &'static Table)> {
    let drafts: [&'static Draft; 2] = [&DRAFT_00, &DRAFT_IETF];
    drafts.into_iter().flat_map(|draft| draft.tables.iter().map(move |table| (draft, table)))
}

/// Throughput and cycles of one algorithm on one machine, where a draft tells both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The machine.
    pub machine: Machine,
    /// Thousands of packets a second.
    pub throughput_kps: f64,
    /// Cycles per octet.
    pub cycles: f64,
}

impl Cell {
    /// The clock frequency at which both figures would be true, in hertz.
    #[must_use]
    pub fn implied_hz(&self) -> f64 {
        self.throughput_kps * 1e3 * PACKET_SIZE * self.cycles
    }

    /// Whether throughput and cycles cannot both be true at the machine's frequency.
    #[must_use]
    pub fn disagrees(&self) -> bool {
        (self.implied_hz() / self.machine.hz() - 1.0).abs() > ROUNDING_MAX
    }

    /// What is wrong, in a sentence.
    #[must_use]
    pub fn disagreement(&self) -> Option<String> {
        self.disagrees().then(|| {
            format!(
                "{} on the {}: {} thousand packets of 48 octets a second at {} cycles per octet take a clock of {:.2} \
                 GHz, and the machine has {:.2} GHz.",
                self.algorithm,
                self.machine.name(),
                self.throughput_kps,
                self.cycles,
                self.implied_hz() / 1e9,
                self.machine.hz() / 1e9,
            )
        })
    }
}

/// The cells of a draft's tables, each with both figures.
#[must_use]
pub fn cells(draft: &Draft) -> Vec<Cell> {
    let contents = || draft.tables.iter().map(|table| &table.content);
    let throughput = contents().filter_map(|content| match content {
        Content::Throughput(columns) => Some(columns),
        Content::Lengths(_) | Content::Cycles(_) | Content::Advantages(_) => None,
    });
    let cycles = contents().filter_map(|content| match content {
        Content::Cycles(columns) => Some(columns),
        Content::Lengths(_) | Content::Throughput(_) | Content::Advantages(_) => None,
    });
    let cycles: Vec<&Column> = cycles.flatten().collect();
    let of = |column: &Column| {
        let cycles = cycles.iter().find(|cycles| cycles.machine == column.machine)?;
        let rows = ALGORITHMS.into_iter().zip(column.figures).zip(cycles.figures);
        let machine = column.machine;
        Some(rows.map(move |((algorithm, throughput_kps), cycles)| Cell {
            algorithm,
            machine,
            throughput_kps,
            cycles,
        }))
    };
    throughput.flatten().filter_map(of).flatten().collect()
}

/// The cell of an algorithm on a machine, by draft-ietf-ntp-mac, the later one.
#[must_use]
pub fn cell(algorithm: Algorithm, machine: Machine) -> Option<Cell> {
    let cells = cells(&DRAFT_IETF);
    cells.into_iter().find(|cell| cell.algorithm == algorithm && cell.machine == machine)
}

/// How many times as many packets as with legacy MD5 a machine did in the same time: by throughput, or for GMAC-SIV,
/// of which only cycles are known, by cycles.
#[must_use]
pub fn ratio_to_md5(algorithm: Algorithm, machine: Machine) -> Option<f64> {
    let md5 = cell(Algorithm::Md5, machine)?;
    match (algorithm, machine) {
        (Algorithm::GmacSiv128, Machine::XeonWith) => Some(md5.cycles / GMAC_SIV_CYCLES),
        _ => cell(algorithm, machine).map(|cell| cell.throughput_kps / md5.throughput_kps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_nine_tables_three_and_six() {
        let of = |draft: &str| tables().filter(|(of, _)| of.name == draft).count();
        assert_eq!((tables().count(), of("draft-aanchal4-ntp-mac-00"), of("draft-ietf-ntp-mac")), (9, 3, 6));
    }

    #[test]
    fn cells_that_disagree_are_found_by_computing() {
        let found: Vec<(Algorithm, Machine)> = cells(&DRAFT_IETF)
            .iter()
            .filter(|cell| cell.disagrees())
            .map(|cell| (cell.algorithm, cell.machine))
            .collect();
        assert_eq!(
            found,
            [
                (Algorithm::Poly1305, Machine::XeonWith),
                (Algorithm::Poly1305, Machine::XeonWithout),
                (Algorithm::Gmac128, Machine::Ppc74xx),
            ]
        );
        let sentence = cell(Algorithm::Gmac128, Machine::Ppc74xx).unwrap().disagreement().unwrap();
        assert!(sentence.contains("a clock of 1.63 GHz, and the machine has 1.50 GHz"), "{sentence}");
        // All others agree to within rounding, so the limit is not what decides.
        for cell in cells(&DRAFT_00) {
            let off = (cell.implied_hz() / cell.machine.hz() - 1.0).abs();
            assert!(!(0.012..=0.05).contains(&off), "{cell:?} {off}");
        }
    }

    #[test]
    fn figures_that_both_drafts_have_are_the_same_but_for_rounding() {
        let second = cells(&DRAFT_IETF);
        for cell in cells(&DRAFT_00) {
            let other = second
                .iter()
                .find(|other| (other.algorithm, other.machine) == (cell.algorithm, cell.machine));
            let other = other.unwrap();
            assert_eq!(other.throughput_kps, cell.throughput_kps);
            assert!((other.cycles - cell.cycles).abs() <= 0.05, "{cell:?} {other:?}");
        }
    }

    #[test]
    fn ratios_are_to_legacy_md5_of_the_same_machine() {
        let ratio = |algorithm, machine| ratio_to_md5(algorithm, machine).unwrap();
        assert!((ratio(Algorithm::Cmac128, Machine::XeonWith) - 2.427).abs() < 0.001);
        assert!((ratio(Algorithm::Gmac128, Machine::XeonWith) - 5.328).abs() < 0.001);
        assert!((ratio(Algorithm::Cmac128, Machine::Marvell) - 0.642).abs() < 0.001);
        assert!((ratio(Algorithm::GmacSiv128, Machine::XeonWith) - 2.712).abs() < 0.001);
        assert_eq!(ratio_to_md5(Algorithm::GmacSiv128, Machine::Marvell), None);
        assert!(Machine::ALL.iter().all(|&machine| ratio(Algorithm::Md5, machine) == 1.0));
    }
}
