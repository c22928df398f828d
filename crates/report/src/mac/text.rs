//! A bench of MACs as text for a terminal.

use std::borrow::Cow;

use super::MacRecord;
use super::tables::{Order, Section, Table, opening, sections};
use crate::columns::{aligned, printable};

/// The report of `bench mac`: this host's figures first.
#[must_use]
pub fn bench(record: &MacRecord) -> String {
    let mut out = String::new();
    say(&mut out, &opening(record));
    sections(record, Order::Host).iter().for_each(|section| add(&mut out, section));
    out
}

/// The report of the study: the drafts' tables first. `remarks` are sentences on the study.
#[must_use]
pub fn study(record: &MacRecord, remarks: &[String]) -> String {
    let mut out =
        String::from("The drafts on MACs for NTP, beside ours. Compare the ratios, not the figures.\n");
    say(&mut out, remarks);
    say(&mut out, &opening(record));
    sections(record, Order::Drafts).iter().for_each(|section| add(&mut out, section));
    out
}

/// Columns of a sentence; tables may be wider.
const WIDTH: usize = 110;

/// Each sentence on lines of its own, the further ones indented.
fn say(out: &mut String, sentences: &[String]) {
    for sentence in sentences {
        let mut column = 0;
        for (index, word) in printable(sentence).split(' ').enumerate() {
            let width = word.chars().count();
            let gap = match (index, column + 1 + width > WIDTH) {
                (0, _) => "",
                (_, true) => "\n  ",
                (_, false) => " ",
            };
            column = if gap == "\n  " { 2 + width } else { column + gap.len() + width };
            *out += gap;
            *out += word;
        }
        out.push('\n');
    }
}

fn add(out: &mut String, section: &Section) {
    *out += &format!("\n{}\n{}\n", section.heading, "=".repeat(section.heading.chars().count()));
    say(out, &section.sentences);
    for table in &section.tables {
        *out += &format!("\n{}:\n", printable(&table.name));
        *out += &table_text(table);
        say(out, &table.notes);
    }
}

fn table_text(table: &Table) -> String {
    let cells = |row: &[String]| -> Vec<Cow<'_, str>> {
        row.iter().map(|cell| printable(cell).into_owned().into()).collect()
    };
    let mut lines = folded(&table.headings);
    lines.extend(table.rows.iter().map(|row| cells(row)));
    aligned(&lines, |column| table.is_word(column))
}

/// Headings over several lines, so that they are about as narrow as figures.
fn folded(headings: &[String]) -> Vec<Vec<Cow<'_, str>>> {
    const HEADING_WIDTH: usize = 14;
    let columns: Vec<Vec<String>> = headings
        .iter()
        .map(|heading| {
            let mut lines = vec![String::new()];
            for word in heading.split(' ') {
                let last = lines.last_mut().expect("there is one");
                match last.is_empty() || last.chars().count() + 1 + word.chars().count() <= HEADING_WIDTH {
                    true if last.is_empty() => last.push_str(word),
                    true => *last += &format!(" {word}"),
                    false => lines.push(word.to_owned()),
                }
            }
            lines
        })
        .collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    // The last line of each stands over its figures.
    let line = |index: usize| {
        let cell = |column: &Vec<String>| {
            let skipped = height - column.len();
            index.checked_sub(skipped).map_or_else(String::new, |at| column[at].clone()).into()
        };
        columns.iter().map(cell).collect()
    };
    (0..height).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::tests::record;

    #[test]
    fn headings_are_folded_and_end_above_their_figures() {
        let headings = ["Algorithm", "OpenSSL, one at a time"].map(str::to_owned);
        assert_eq!(folded(&headings), [["", "OpenSSL, one"], ["Algorithm", "at a time"]]);
        assert_eq!(folded(&["antidisestablishmentarianism x".to_owned()]).len(), 2);
    }

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
    fn sentences_are_folded_and_lose_no_word() {
        let mut out = String::new();
        let sentence = "word ".repeat(60).trim_end().to_owned();
        say(&mut out, std::slice::from_ref(&sentence));
        assert!(out.lines().count() == 3 && out.lines().all(|line| line.len() <= WIDTH), "{out}");
        assert!(out.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(out.split_whitespace().collect::<Vec<_>>().join(" "), sentence);
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
