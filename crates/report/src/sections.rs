//! What a report says, as sentences and tables, before it is text or markup: made once, shown twice.

use std::borrow::Cow;

use crate::columns::{aligned, printable};
use crate::page::{Escaped, Page};

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    /// What it is called.
    pub(crate) name: String,
    /// Columns of words besides the first.
    pub(crate) words: Vec<usize>,
    pub(crate) headings: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// What must be known of it, in sentences.
    pub(crate) notes: Vec<String>,
}

impl Table {
    pub(crate) fn new(
        name: impl Into<String>,
        headings: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let headings = headings.into_iter().map(Into::into).collect();
        Table { name: name.into(), words: Vec::new(), headings, rows: Vec::new(), notes: Vec::new() }
    }

    pub(crate) fn is_word(&self, column: usize) -> bool {
        column == 0 || self.words.contains(&column)
    }
}

/// A part of the report. `F` says which figure it has, which only the page shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Section<F> {
    pub(crate) heading: String,
    pub(crate) sentences: Vec<String>,
    pub(crate) figure: Option<F>,
    pub(crate) tables: Vec<Table>,
}

impl<F> Section<F> {
    pub(crate) fn new(heading: &str) -> Self {
        Section { heading: heading.to_owned(), sentences: Vec::new(), figure: None, tables: Vec::new() }
    }

    /// Adds the section to a text for a terminal.
    pub(crate) fn write(&self, out: &mut String) {
        *out += &format!("\n{}\n{}\n", self.heading, "=".repeat(self.heading.chars().count()));
        say(out, &self.sentences);
        for table in &self.tables {
            *out += &format!("\n{}:\n", printable(&table.name));
            *out += &table_text(table);
            say(out, &table.notes);
        }
    }
}

/// What stands where there is no value.
pub(crate) const ABSENT: &str = "-";

pub(crate) fn or_absent(text: Option<String>) -> String {
    text.unwrap_or_else(|| ABSENT.to_owned())
}

/// Columns of a sentence; tables may be wider.
const WIDTH: usize = 110;

/// Each sentence on lines of its own, the further ones indented.
pub(crate) fn say(out: &mut String, sentences: &[String]) {
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

/// Adds sections to a page; `draw` adds a figure. The first one has its sentences as a list: what most readers want.
pub(crate) fn add_to<F>(page: &mut Page, sections: &[Section<F>], mut draw: impl FnMut(&mut Page, &F)) {
    for (index, section) in sections.iter().enumerate() {
        page.heading(&Escaped(&section.heading).to_string());
        match index {
            0 => list(page, &section.sentences),
            _ => sentences(page, &section.sentences),
        }
        if let Some(figure) = &section.figure {
            draw(page, figure);
        }
        section.tables.iter().for_each(|table| add_table(page, table));
    }
}

/// A paragraph for each.
pub(crate) fn sentences(page: &mut Page, sentences: &[String]) {
    for sentence in sentences {
        page.add(format_args!("<p>{}</p>\n", Escaped(sentence)));
    }
}

fn list(page: &mut Page, sentences: &[String]) {
    page.add(format_args!("<ul class=\"findings\">\n"));
    for sentence in sentences {
        page.add(format_args!("<li>{}</li>\n", Escaped(sentence)));
    }
    page.add(format_args!("</ul>\n"));
}

fn add_table(page: &mut Page, table: &Table) {
    let name = Escaped(&table.name).to_string();
    page.add(format_args!("<h3>{name}</h3>\n"));
    let headings: Vec<String> = table.headings.iter().map(|heading| Escaped(heading).to_string()).collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    page.table(&name, &headings, |column| table.is_word(column), table.rows.iter().cloned());
    sentences(page, &table.notes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_folded_and_end_above_their_figures() {
        let headings = ["Algorithm", "OpenSSL, one at a time"].map(str::to_owned);
        assert_eq!(folded(&headings), [["", "OpenSSL, one"], ["Algorithm", "at a time"]]);
        assert_eq!(folded(&["antidisestablishmentarianism x".to_owned()]).len(), 2);
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
}
