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
use crate::sections;
use crate::units::{count, ratio, utc};

/// A part of the report, and of which process it has a figure.
type Section = sections::Section<Instructions>;

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
