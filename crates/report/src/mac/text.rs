//! A bench of MACs as text for a terminal.

use super::MacRecord;
use super::tables::{Order, opening, sections};
use crate::sections::say;

/// The report of `bench mac`: this host's figures first.
#[must_use]
pub fn bench(record: &MacRecord) -> String {
    let mut out = String::new();
    say(&mut out, &opening(record));
    sections(record, Order::Host).iter().for_each(|section| section.write(&mut out));
    out
}

/// The report of the study: the drafts' tables first. `remarks` are sentences on the study.
#[must_use]
pub fn study(record: &MacRecord, remarks: &[String]) -> String {
    let mut out =
        String::from("The drafts on MACs for NTP, beside ours. Compare the ratios, not the figures.\n");
    say(&mut out, remarks);
    say(&mut out, &opening(record));
    sections(record, Order::Drafts).iter().for_each(|section| section.write(&mut out));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::tests::record;

    #[test]
    fn both_reports_have_all_tables_in_their_own_order() {
        let (bench, study) = (bench(&record()), study(&record(), &["A remark.".to_owned()]));
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
        assert!(bench(&record).chars().all(|c| c == '\n' || !c.is_control()));
    }
}
