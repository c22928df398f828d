//! A bench of MACs as a page that needs nothing else.

use super::tables::{Order, opening, sections};
use super::{Algorithm, Instructions, KeyUse, MacRecord, Timing};
use crate::dots::{Count, Dots, Marker, Series};
use crate::page::Page;
use crate::sections::{add_to, sentences};

/// The style of pages of load runs, which has that of marks, and more.
const STYLE: &str =
    concat!(include_str!("../page.css"), include_str!("../load/load.css"), include_str!("mac.css"));

/// The report of `bench mac`: this host's figures first.
#[must_use]
pub fn bench(record: &MacRecord) -> String {
    page("MACs for NTP on this host, beside the drafts\u{2019}", record, &[], Order::Host)
}

/// The report of the study: the drafts' tables first. `remarks` are sentences on the study.
#[must_use]
pub fn study(record: &MacRecord, remarks: &[String]) -> String {
    page("The drafts on MACs for NTP, beside ours", record, remarks, Order::Drafts)
}

fn page(title: &str, record: &MacRecord, remarks: &[String], order: Order) -> String {
    let mut page = Page::new(title, STYLE);
    sentences(&mut page, remarks);
    sentences(&mut page, &opening(record));
    let draw = |page: &mut Page, instructions: &Instructions| figure(page, record, *instructions);
    add_to(&mut page, &sections(record, order), draw);
    page.finish()
}

/// Throughput of each algorithm: ours one at a time, ours in the best batch, and OpenSSL's.
fn figure(page: &mut Page, record: &MacRecord, instructions: Instructions) {
    let Some(side) = record.side(instructions) else { return };
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
    dots.add_to(page, "Medians; the further right, the faster. The key is kept.");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::tests::record;
    use crate::page::assert_whole;

    #[test]
    fn page_is_whole_and_escapes_what_comes_from_the_record() {
        let mut record = record();
        record.sides[0].remarks.push("<script>".to_owned());
        for page in [bench(&record), study(&record, &["<i>".to_owned()])] {
            assert_whole(&page);
            assert!(!page.contains("<b>") && !page.contains("<script") && !page.contains("<i>"));
            assert!(page.contains("A &lt;b&gt;processor") && page.contains("&lt;script&gt;"));
            // A figure of each process, in two sizes, with three marks in each legend.
            assert_eq!(page.matches("<figure>").count(), 2);
            assert_eq!(page.matches("class=\"plot ").count(), 4);
            assert_eq!(page.matches("class=\"swatch\"").count(), 6);
            assert_eq!(page.matches("of 9: draft").count(), 2 * 9);
        }
    }

    #[test]
    fn what_was_not_measured_is_not_in_the_legend() {
        let mut record = record();
        for side in &mut record.sides {
            side.timings.retain(|timing| timing.implementation == crate::mac::Implementation::Authentick);
        }
        let page = bench(&record);
        assert!(!page.contains("<span>OpenSSL") && page.contains("<span>ours, in the best batch"));
        record.sides.iter_mut().for_each(|side| side.timings.clear());
        assert!(!bench(&record).contains("<figure>"));
    }
}
