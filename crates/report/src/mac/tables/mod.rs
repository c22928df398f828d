//! The results of a bench of MACs, as sentences and tables: once, for the text and for the page.
//!
//! - `ours`: throughput, cycles, set-up and spread on this host, with and without the instructions.
//! - `beside`: ours as multiples of legacy MD5, and the nine tables of the drafts with ours beside them.
//! - `advice`: what algorithms withstand, and what follows for which host.

mod advice;
mod beside;
mod ours;

pub(super) use self::beside::title;
use super::figures::Range;
use super::{Instructions, MacRecord, recommend};
use crate::render::{Block, Layout, Report, Section};
use crate::stored::Stored;
use crate::units::count;

const TITLE: &str = "MACs for NTP on this host, beside the drafts\u{2019}";

/// The opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// This host's figures: of `bench mac`.
    Host,
    /// The drafts' tables: of the study.
    Drafts,
}

/// The report of `bench mac`: this host's figures first.
#[must_use]
pub fn report(record: &MacRecord) -> Report {
    let mut first = Section::default();
    first.say_all(opening(record));
    let sections = std::iter::once(first).chain(sections(record, Order::Host)).collect();
    Report::new(TITLE, Layout::Nested, sections)
}

/// All that follows the opening.
pub(crate) fn sections(record: &MacRecord, order: Order) -> Vec<Section> {
    let said = recommend::findings(record).into_iter().chain(beside::ratios(record));
    let mut sections = vec![Section::of("What follows", [Block::findings(said)])];
    sections.extend(record.sides.iter().map(|side| ours::section(record, side)));
    sections.extend([beside::multiples(record), advice::section(record)]);
    let place = match order {
        Order::Host => sections.len(),
        Order::Drafts => 1,
    };
    sections.insert(place, beside::drafts(record));
    sections
}

/// What was measured, how, and on what.
pub(crate) fn opening(record: &MacRecord) -> Vec<String> {
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
        format!("MACs of packets of {} octets on {}", record.packet_size, record.provenance().made()),
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

/// A figure with its extremes: `2.43 (2.40 to 2.51)`.
fn extremes(range: Range, text: fn(f64) -> String) -> String {
    format!("{} ({} to {})", text(range.median), text(range.low), text(range.high))
}

/// Which process, in a heading.
const fn which(instructions: Instructions) -> &'static str {
    match instructions {
        Instructions::With => "with",
        Instructions::Without => "without",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::Implementation;
    use crate::mac::tests::record;
    use crate::render::page::{assert_escaped, assert_two_figures};
    use crate::study::ntp_mac;

    fn study(record: &MacRecord, remark: &str) -> Report {
        ntp_mac::remarked(record, &[remark.to_owned()])
    }

    #[test]
    fn page_is_whole_and_escapes_what_comes_from_the_record() {
        let mut record = record();
        record.sides[0].remarks.push("<script>".to_owned());
        for page in [report(&record), study(&record, "<i>")].map(|report| report.page()) {
            assert_escaped(&page);
            // One of each process.
            assert_two_figures(&page);
            // A heading, what readers are told of the box, and of its CSV.
            assert_eq!(page.matches("of 9: draft").count(), 3 * 9);
        }
    }

    #[test]
    fn what_was_not_measured_is_not_in_the_legend() {
        let mut record = record();
        for side in &mut record.sides {
            side.timings.retain(|timing| timing.implementation == Implementation::Authentick);
        }
        let page = report(&record).page();
        assert!(!page.contains("<span>OpenSSL") && page.contains("<span>ours, in the best batch"));
        record.sides.iter_mut().for_each(|side| side.timings.clear());
        assert!(!report(&record).page().contains("<figure>"));
    }

    #[test]
    fn both_reports_have_all_tables_in_their_own_order() {
        let study = study(&record(), "A remark.").text();
        let bench = report(&record()).text();
        for text in [&bench, &study] {
            for part in
                ["of 9: draft-ietf-ntp-mac", "conclusion stands", "Algorithm / legacy MD5", "2,598* (0.83)"]
            {
                assert!(text.contains(part), "{part}\n{text}");
            }
            assert_eq!(text.matches(" of 9: draft").count(), 9);
            assert!(text.lines().all(|line| line.trim_end() == line));
        }
        let host = "This host with AES and SHA instructions\n===";
        let at = |text: &str, part: &str| text.find(part).unwrap();
        assert!(at(&bench, host) < at(&bench, "1 of 9"));
        assert!(at(&study, host) > at(&study, "9 of 9") && study.contains("A remark."));
    }

    #[test]
    fn record_cannot_steer_the_terminal() {
        let mut record = record();
        record.host.cpu = "\u{1b}[2J".to_owned();
        record.sides[0].remarks.push("\u{9b}31m".to_owned());
        record.sides[0].path = "\r".to_owned();
        assert!(report(&record).text().chars().all(|c| c == '\n' || !c.is_control()));
    }
}
