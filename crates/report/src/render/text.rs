//! Sections as text for a terminal.
//!
//! Nothing of a record reaches the terminal as a control character.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::{Block, Heading, Layout, Medium, Section, Table};

const GAP: &str = "  ";
/// Columns of a sentence that is folded; tables may be wider.
const WIDTH: usize = 110;
/// Headings are folded so that they are about as narrow as figures.
const HEADING_WIDTH: usize = 14;

pub(super) fn report(layout: Layout, sections: &[Section]) -> String {
    let mut out = String::new();
    for section in sections {
        let mut blocks =
            section.shown(Medium::Text).filter(|block| !matches!(block, Block::Figure { .. })).peekable();
        match (layout, blocks.peek()) {
            (Layout::Nested, _) if !section.heading.is_empty() => {
                let heading = printable(&section.heading);
                out += &format!("\n{heading}\n{}\n", "=".repeat(heading.chars().count()));
            }
            (Layout::Flat, Some(first)) if !matches!(first, Block::Label(_)) && !out.is_empty() => {
                out.push('\n');
            }
            (Layout::Brief | Layout::Flat | Layout::Nested, _) => {}
        }
        blocks.for_each(|block| write(&mut out, layout, block));
    }
    out
}

/// The title of one of several reports.
pub(super) fn titled(title: &str) -> String {
    let title = printable(title);
    format!("{title}\n{}\n\n", "#".repeat(title.chars().count()))
}

fn write(out: &mut String, layout: Layout, block: &Block) {
    match block {
        Block::Paragraph(prose, _) => say(out, layout, &prose.text()),
        Block::Details(_, sentences) => {
            sentences.iter().for_each(|prose| say(out, layout, &prose.text()));
        }
        Block::List(items) => items.iter().for_each(|item| say(out, layout, &item.text())),
        Block::Findings(items) => {
            items.iter().for_each(|(item, _)| say(out, layout, &item.text()));
        }
        Block::Terms(terms) => {
            terms.iter().for_each(|(term, meaning)| say(out, layout, &format!("{term}: {}", meaning.text())));
        }
        // Its table has a name.
        Block::Label(_) if layout == Layout::Nested => {}
        Block::Label(label) => *out += &format!("\n{}:\n", printable(label)),
        Block::Table(table) => {
            if layout == Layout::Nested {
                *out += &format!("\n{}:\n", printable(&table.name));
            }
            *out += &lines(layout, table);
            table.notes.iter().for_each(|note| say(out, layout, note));
        }
        Block::Shown { name, words, .. } => {
            *out += &format!("\n{}:\n{}", printable(name), lines_as_they_are(words));
        }
        Block::Figure { .. } => {}
    }
}

/// Lines without what could steer a terminal, each with its end.
pub(super) fn lines_as_they_are(words: &str) -> String {
    words.lines().map(|line| format!("{}\n", printable(line))).collect()
}

/// A sentence on a line of its own; if it is folded, on several, the further ones indented.
fn say(out: &mut String, layout: Layout, sentence: &str) {
    let width = if layout == Layout::Nested { WIDTH } else { usize::MAX };
    *out += &folded(&printable(sentence), width, GAP).join("\n");
    out.push('\n');
}

fn lines(layout: Layout, table: &Table) -> String {
    let shown = table.shown(Medium::Text);
    let headings: Vec<Vec<String>> = shown
        .iter()
        .map(|&index| match (layout, &table.columns[index].heading) {
            (Layout::Nested, Heading(heading, _)) => folded(&printable(heading), HEADING_WIDTH, ""),
            (Layout::Brief | Layout::Flat, Heading(heading, short)) => {
                let parts = short.as_ref().unwrap_or(heading).split('\n');
                parts.map(|part| printable(part).into_owned()).collect()
            }
        })
        .collect();
    let mut lines = stacked(&headings);
    lines.retain(|line| line.iter().any(|cell| !cell.is_empty()));
    // The parts of a total are below it, indented.
    let has_total = table.rows.iter().any(|row| row.weight.is_total());
    lines.extend(table.rows.iter().map(|row| {
        let cell = |index: &usize| row.cells.get(*index).map_or(Cow::Borrowed(""), |cell| printable(cell));
        let mut cells: Vec<Cow<'_, str>> = shown.iter().map(cell).collect();
        if let Some(first) = cells.first_mut()
            && has_total
            && !row.weight.is_total()
        {
            *first = format!("{GAP}{first}").into();
        }
        cells
    }));
    match table.widths {
        Some(widths) => lines.iter().map(|line| fixed(line, widths)).collect(),
        None => aligned(&lines, |column| table.columns[shown[column]].is_word),
    }
}

/// Cells in columns of fixed widths, one space apart, followed by the rest; a cell that is too long shifts what
/// follows.
pub(crate) fn fixed(cells: &[impl AsRef<str>], widths: &[usize]) -> String {
    let mut out = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let gap = if out.is_empty() { "" } else { " " };
        write!(out, "{gap}{:>width$}", cell.as_ref()).expect("writing to a string cannot fail");
    }
    for cell in cells.iter().skip(widths.len()).map(AsRef::as_ref).filter(|cell| !cell.is_empty()) {
        out += GAP;
        out += cell;
    }
    out.push('\n');
    out
}

/// Lines of cells whose columns line up: words are aligned left, numbers right. Nothing follows the last cell of a
/// line. A line may have fewer cells than another.
pub(crate) fn aligned<'a, L: AsRef<[Cow<'a, str>]>>(lines: &[L], is_word: impl Fn(usize) -> bool) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for line in lines {
        for (column, cell) in line.as_ref().iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(column) {
                Some(known) => *known = width.max(*known),
                None => widths.push(width),
            }
        }
    }
    let mut out = String::new();
    for line in lines {
        let start = out.len();
        for (column, (cell, &width)) in line.as_ref().iter().zip(&widths).enumerate() {
            let gap = if column == 0 { "" } else { GAP };
            let written = match is_word(column) {
                true => write!(out, "{gap}{cell:<width$}"),
                false => write!(out, "{gap}{cell:>width$}"),
            };
            written.expect("writing to a string cannot fail");
        }
        out.truncate(start + out[start..].trim_end().len());
        out.push('\n');
    }
    out
}

/// `text` without characters that could steer a terminal.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    match text.contains(char::is_control) {
        true => text.replace(char::is_control, "\u{fffd}").into(),
        false => text.into(),
    }
}

/// A text over lines of at most so many characters, words that are longer left whole; the further lines are indented.
fn folded(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut column = 0;
    for word in text.split(' ') {
        let word_width = word.chars().count();
        match lines.last_mut() {
            Some(line) if column + 1 + word_width <= width => {
                *line += &format!(" {word}");
                column += 1 + word_width;
            }
            Some(_) => {
                lines.push(format!("{indent}{word}"));
                column = indent.len() + word_width;
            }
            None => {
                lines.push(word.to_owned());
                column = word_width;
            }
        }
    }
    lines
}

/// Headings as lines of a table: the last line of each stands over its figures.
fn stacked(columns: &[Vec<String>]) -> Vec<Vec<Cow<'_, str>>> {
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
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

    #[test]
    fn words_start_and_numbers_end_in_the_same_column() {
        let lines = [["a", "1", "x"], ["bcd", "200", ""]].map(|line| line.map(Cow::Borrowed));
        assert_eq!(aligned(&lines, |column| column != 1), "a      1  x\nbcd  200\n");
        let ragged = [vec![Cow::Borrowed("a")], vec![Cow::Borrowed("bc"), Cow::Borrowed("d")]];
        assert_eq!(aligned(&ragged, |_| false), " a\nbc  d\n");
    }

    /// A column may be named after a host, which a record names.
    #[test]
    fn no_heading_steers_a_terminal() {
        let table = Table::of("", [1]).number("a\u{1b}[2J\u{9b}8m", |row| *row).table();
        for layout in [Layout::Brief, Layout::Flat, Layout::Nested] {
            let text = lines(layout, &table);
            assert!(text.chars().all(|char| char == '\n' || !char.is_control()), "{layout:?}: {text:?}");
        }
    }

    #[test]
    fn headings_are_folded_and_end_above_their_figures() {
        let headings =
            ["Algorithm", "OpenSSL, one at a time"].map(|heading| folded(heading, HEADING_WIDTH, ""));
        assert_eq!(stacked(&headings), [["", "OpenSSL, one"], ["Algorithm", "at a time"]]);
        assert_eq!(folded("antidisestablishmentarianism x", HEADING_WIDTH, "").len(), 2);
    }

    #[test]
    fn sentences_are_folded_and_lose_no_word() {
        let mut out = String::new();
        let sentence = "word ".repeat(60).trim_end().to_owned();
        say(&mut out, Layout::Nested, &sentence);
        assert!(out.lines().count() == 3 && out.lines().all(|line| line.len() <= WIDTH), "{out}");
        assert!(out.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(out.split_whitespace().collect::<Vec<_>>().join(" "), sentence);
        say(&mut out, Layout::Flat, &sentence);
        assert_eq!(out.lines().count(), 4);
    }
}
