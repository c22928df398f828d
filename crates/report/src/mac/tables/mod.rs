//! What a bench of MACs has to say, as sentences and tables: once, for the text and for the page.
//!
//! - `ours`: throughput, cycles, set-up and spread on this host, with and without the instructions.
//! - `beside`: ours as multiples of legacy MD5, and the nine tables of the drafts with ours beside them.
//! - `advice`: what algorithms withstand, and what follows for which host.

mod advice;
mod beside;
mod ours;

use super::figures::Range;
use super::{Instructions, MacRecord, recommend};
use crate::units::{count, ratio, utc};

/// A table, before it is text or markup.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    /// What it is called.
    pub(super) name: String,
    /// Columns of words besides the first.
    pub(super) words: Vec<usize>,
    pub(super) headings: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// What must be known of it, in sentences.
    pub(super) notes: Vec<String>,
}

impl Table {
    fn new(name: impl Into<String>, headings: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let headings = headings.into_iter().map(Into::into).collect();
        Table { name: name.into(), words: Vec::new(), headings, rows: Vec::new(), notes: Vec::new() }
    }

    pub(super) fn is_word(&self, column: usize) -> bool {
        column == 0 || self.words.contains(&column)
    }
}

/// A part of the report.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Section {
    pub(super) heading: String,
    pub(super) sentences: Vec<String>,
    /// Of which process there is a figure.
    pub(super) figure: Option<Instructions>,
    pub(super) tables: Vec<Table>,
}

impl Section {
    fn new(heading: &str) -> Self {
        Section { heading: heading.to_owned(), sentences: Vec::new(), figure: None, tables: Vec::new() }
    }
}

/// What stands first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// This host's figures: of `bench mac`.
    Host,
    /// The drafts' tables: of the study.
    Drafts,
}

/// The whole report.
pub(super) fn sections(record: &MacRecord, order: Order) -> Vec<Section> {
    let mut findings = Section::new("What follows");
    findings.sentences = recommend::findings(record);
    findings.sentences.extend(beside::ratios(record));
    let mut sections = vec![findings];
    let mut host: Vec<Section> = record.sides.iter().map(|side| ours::section(record, side)).collect();
    host.push(beside::multiples(record));
    let drafts = beside::drafts(record);
    match order {
        Order::Host => {
            sections.extend(host);
            sections.push(advice::section(record));
            sections.push(drafts);
        }
        Order::Drafts => {
            sections.push(drafts);
            sections.extend(host);
            sections.push(advice::section(record));
        }
    }
    sections
}

/// What was measured, how, and on what.
pub(super) fn opening(record: &MacRecord) -> Vec<String> {
    let host = &record.host;
    let clock = record.reference_hz.map_or_else(
        || "There is no time-stamp counter here, so cycles are not known.".to_owned(),
        |hz| {
            format!(
                "Cycles are reference cycles: ticks of the time-stamp counter, which ran at {:.3} GHz all the time, \
                 whatever the processor was clocked at.",
                hz / 1e9
            )
        },
    );
    let openssl = record.openssl.as_ref().map_or_else(
        || {
            "This program was built without OpenSSL (cargo feature openssl): those columns are empty."
                .to_owned()
        },
        |version| {
            format!("Beside it: {version}, in the same process; for GMAC-SIV, which that lacks, aws-lc.")
        },
    );
    vec![
        format!(
            "MACs of packets of {} octets on {}, {} processors, {}, {}, by authentick {} (commit {}): {}.",
            record.packet_size,
            host.cpu,
            host.cpu_count,
            host.kernel,
            utc(record.started_unix_s),
            record.version,
            record.commit,
            record.command
        ),
        format!(
            "One thread, and a second is one of processor time. {} rounds, in which everything takes its turn for {} \
             ms, both processes too; medians stand with their extremes, and ratios are taken within a round. On a \
             machine that others use the extremes are theirs.",
            record.round_count, record.turn_ms
        ),
        clock,
        openssl,
    ]
}

/// What stands where there is no value.
const ABSENT: &str = "-";

fn or_absent(text: Option<String>) -> String {
    text.unwrap_or_else(|| ABSENT.to_owned())
}

/// Thousands a second: `7,567`.
fn kilo(value: f64) -> String {
    count(value.round() as u64)
}

/// A ratio with its extremes: `2.43 (2.40 to 2.51)`.
fn ratio_range(range: Range) -> String {
    format!("{} ({} to {})", ratio(range.median), ratio(range.low), ratio(range.high))
}

/// Which process, in a heading.
const fn which(instructions: Instructions) -> &'static str {
    match instructions {
        Instructions::With => "with",
        Instructions::Without => "without",
    }
}
