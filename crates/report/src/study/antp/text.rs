//! The study of the ANTP paper as text for a terminal.

use super::AntpRecord;
use super::tables::{opening, sections};
use crate::columns::printable;
use crate::published::antp::SOURCE;
use crate::sections::say;

/// The report.
#[must_use]
pub fn study(record: &AntpRecord) -> String {
    let mut out = format!("{}, beside ours. Compare the ratios, not the figures.\n", printable(SOURCE));
    say(&mut out, &opening(record));
    sections(record).iter().for_each(|section| section.write(&mut out));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::antp::tests::record;

    #[test]
    fn report_has_all_tables_and_says_that_it_is_short() {
        let text = study(&record());
        for part in [
            "USENIX Security 2016",
            "This is a short study (--quick)",
            "Throughput and latency of each phase:",
            "One client's run of all phases:",
            "Ratios:",
            "Processor time of a key exchange:",
            "unknown to us",
            "Server and generators share a machine.",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.lines().all(|line| line.trim_end() == line));
    }

    #[test]
    fn record_cannot_steer_the_terminal() {
        let mut record = record();
        record.host.cpu = "\u{1b}[2J".to_owned();
        record.remarks.push("\u{9b}31m".to_owned());
        record.capacities[0].remark = Some("\r".to_owned());
        assert!(study(&record).chars().all(|c| c == '\n' || !c.is_control()));
    }
}
