//! Sections as Markdown (CommonMark, with the tables that GitHub has): what the page has, without its pictures.
//!
//! Nothing of a record becomes markup, or a control character.

use super::text::{lines_as_they_are, printable};
use super::{Block, Heading, Joined, Mark, Medium, Prose, Report, Section, Table};

/// Characters that would be markup wherever they stand.
const MARKUP: [char; 7] = ['\\', '`', '*', '[', ']', '<', '|'];

pub(super) fn report(report: &Report) -> String {
    ended(titled(1, &report.title) + &sections(2, &report.sections))
}

/// Reports one after the other; their headings are a level lower.
pub(super) fn joined(joined: &Joined) -> String {
    let parts = joined.parts.iter();
    let parts = parts.map(|(_, report)| titled(2, &report.title) + &sections(3, &report.sections));
    ended(titled(1, &joined.title) + &sections(2, &joined.front.sections) + &parts.collect::<String>())
}

/// Without the empty line behind its last block.
fn ended(mut text: String) -> String {
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn titled(level: usize, heading: &str) -> String {
    if heading.is_empty() { String::new() } else { format!("{} {}\n\n", "#".repeat(level), escaped(heading)) }
}

fn sections(level: usize, sections: &[Section]) -> String {
    let of = |section: &Section| {
        let table_level = level + usize::from(!section.heading.is_empty());
        let blocks = section.shown(Medium::Page).map(|block| written(table_level, block));
        titled(level, &section.heading) + &blocks.collect::<String>()
    };
    sections.iter().map(of).collect()
}

/// A block with the empty line behind it.
fn written(table_level: usize, block: &Block) -> String {
    let paragraph = |prose: &Prose| format!("{}\n\n", marked(prose));
    let list = |items: &mut dyn Iterator<Item = String>| -> String {
        items.map(|item| format!("- {item}\n")).collect::<String>() + "\n"
    };
    match block {
        Block::Paragraph(prose, _) => paragraph(prose),
        Block::Details(_, sentences) => sentences.iter().map(paragraph).collect(),
        Block::List(items) => list(&mut items.iter().map(marked)),
        Block::Findings(items) => list(&mut items.iter().map(|(item, _)| marked(item))),
        Block::Terms(terms) => list(
            &mut terms.iter().map(|(term, meaning)| format!("**{}** {}", escaped(term), marked(meaning))),
        ),
        Block::Table(table) => titled(table_level, &table.name) + &rows(table),
        Block::Shown { name, words, .. } => {
            // Nothing in a line ends the fence.
            let words = lines_as_they_are(words).replace("```", "\u{b4}\u{b4}\u{b4}");
            format!("**{}**\n\n```text\n{words}```\n\n", escaped(name))
        }
        Block::Label(_) | Block::Figure { .. } => String::new(),
    }
}

fn rows(table: &Table) -> String {
    let shown = table.shown(Medium::Page);
    let line =
        |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let headings = |index: &usize| {
        let Heading(heading, _) = &table.columns[*index].heading;
        escaped(heading)
    };
    let sides = |index: &usize| if table.columns[*index].is_word { ":--" } else { "--:" }.to_owned();
    let mut out = line(&mut shown.iter().map(headings)) + &line(&mut shown.iter().map(sides));
    for row in &table.rows {
        let cell = |index: &usize| row.cells.get(*index).map_or_else(String::new, |cell| escaped(cell));
        out += &line(&mut shown.iter().map(cell));
    }
    out.push('\n');
    table.notes.iter().for_each(|note| out += &format!("{}\n\n", escaped(note)));
    out
}

fn marked(prose: &Prose) -> String {
    let of = |(mark, text): &(Mark, String)| match mark {
        Mark::Plain | Mark::Unbroken | Mark::Sub => escaped(text),
        Mark::Strong => format!("**{}**", escaped(text)),
        Mark::Code => format!("`{}`", printable(text).replace('`', "\u{b4}").replace('|', "\\|")),
    };
    prose.0.iter().map(of).collect()
}

/// Text that stands for itself. What is markup only at the start of a line cannot stand there alone in our sentences.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for char in printable(text).chars() {
        if MARKUP.contains(&char) {
            out.push('\\');
        }
        out.push(char);
    }
    match text.starts_with(['#', '-', '+', '>']) && text.len() > 1 && !text.starts_with("--") {
        true => format!("\\{out}"),
        false => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Layout;

    fn table() -> Table {
        let rows = [["a | b", "1,000"], ["<i>*c*", "-"]];
        let table = Table::of("Many | <b>", rows).words("what [x](y)", |row| row[0]);
        table.number("so many", |row| row[1]).noted(["A `note`."])
    }

    /// The cells of a line: those between bars that are not escaped.
    fn cells(line: &str) -> Vec<String> {
        let inner = line.strip_prefix("| ").unwrap().strip_suffix(" |").unwrap();
        let cells = inner.split(" | ").map(|cell| {
            let mut out = String::new();
            let mut rest = cell.chars();
            while let Some(char) = rest.next() {
                out.push(if char == '\\' { rest.next().unwrap() } else { char });
            }
            out
        });
        cells.collect()
    }

    #[test]
    fn table_reads_back_as_its_cells_and_nothing_of_it_is_markup() {
        let section = Section::of("A <script>", [Block::Table(table())]);
        let text = Report::new("One *two*", Layout::Nested, vec![section]).markdown();
        assert!(text.starts_with("# One \\*two\\*\n\n## A \\<script>\n\n### Many \\| \\<b>\n\n"), "{text}");
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
        assert_eq!(lines[1], "| :-- | --: |");
        assert_eq!(cells(lines[0]), ["what [x](y)", "so many"]);
        assert_eq!(cells(&lines[2].replace("\\|", "\\\u{1}")), ["a \u{1} b", "1,000"]);
        assert_eq!(cells(lines[3]), ["<i>*c*", "-"]);
        assert!(text.ends_with("A \\`note\\`.\n") && !text.contains(" <"), "{text}");
    }

    #[test]
    fn all_studies_have_their_headings_a_level_lower_and_no_control_character() {
        let part = |title: &str| {
            let mut section = Section::of("Part", [Block::list(["# one\u{1b}[2J", "two"])]);
            section.fold("Method", ["it was measured"]);
            section.add(Block::findings([Prose::from("so ").strong("it").plain(" is ").code("a`b")]));
            Report::new(title, Layout::Nested, vec![section])
        };
        let front = Report::new("", Layout::Nested, vec![Section::of("", [Block::paragraph("words")])]);
        let text =
            Joined::new("All", front, vec![("one", part("First")), ("two", part("Second"))]).markdown();
        assert!(
            text.starts_with("# All\n\nwords\n\n## First\n\n### Part\n\n- \\# one\u{fffd}\\[2J\n- two\n\n"),
            "{text}"
        );
        assert!(text.contains("it was measured\n\n- so **it** is `a\u{b4}b`\n\n## Second"), "{text}");
        assert!(text.chars().all(|char| char == '\n' || !char.is_control()));
    }
}
