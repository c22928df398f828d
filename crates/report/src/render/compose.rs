//! A report that another crate makes, block by block.

use super::{Block, Layout, Medium, Prose, Report, Section, Table};

/// A report in the making: what is added stands in its last section.
#[derive(Debug)]
pub struct Composition {
    title: String,
    sections: Vec<Section>,
}

impl Composition {
    /// A report of that title. What is added before the first section has no heading.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Composition { title: title.to_owned(), sections: vec![Section::default()] }
    }

    /// Begins a section.
    pub fn section(&mut self, heading: &str) {
        self.sections.push(Section::new(heading));
    }

    fn add(&mut self, medium: Medium, block: Block) {
        self.sections.last_mut().expect("there is a section from the start").add_to(medium, block);
    }

    /// Adds what was found, in sentences that stand out.
    pub fn find(&mut self, sentences: impl IntoIterator<Item = String>) {
        self.add(Medium::Both, Block::findings(sentences));
    }

    /// Adds a paragraph.
    pub fn say(&mut self, sentence: &str) {
        self.add(Medium::Both, Block::paragraph(sentence));
    }

    /// Adds a paragraph that begins with a name.
    pub fn say_of(&mut self, name: &str, sentence: &str) {
        let prose = Prose::default().strong(name).plain(format!(": {sentence}"));
        self.add(Medium::Both, Block::paragraph(prose));
    }

    /// Adds terms and what they mean.
    pub fn define<'a>(&mut self, terms: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let term = |(term, meaning): (&str, &str)| (term.to_owned(), meaning.into());
        self.add(Medium::Both, Block::Terms(terms.into_iter().map(term).collect()));
    }

    /// Adds a table that is shown at once, however long it is. A column whose heading is said to be of words starts on
    /// the left; the others hold numbers. Words that are a warning stand out.
    pub fn table(
        &mut self,
        name: &str,
        columns: &[(&str, bool)],
        rows: Vec<Vec<String>>,
        is_warning: impl Fn(&str) -> bool,
    ) {
        let filling = columns.iter().enumerate().fold(Table::of(name, rows), |filling, (index, column)| {
            let (heading, is_word) = *column;
            let cell = move |row: &Vec<String>| row.get(index).cloned().unwrap_or_default();
            if is_word { filling.words(heading, cell) } else { filling.number(heading, cell) }
        });
        self.add(Medium::Both, Block::Table(filling.open().warned(is_warning).table()));
    }

    /// Adds what is long, as a picture if there is one (an `svg` element of class `sequence`, which is taken as it is)
    /// and in words whose lines stay as they are. Where there is a picture the text for a terminal leaves both out.
    pub fn show(&mut self, name: &str, svg: Option<String>, words: String) {
        let medium = if svg.is_some() { Medium::Page } else { Medium::Both };
        self.add(medium, Block::Shown { name: name.to_owned(), svg, words });
    }

    /// The report.
    #[must_use]
    pub fn report(self) -> Report {
        Report::new(&self.title, Layout::Nested, self.sections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::page::assert_whole;

    fn composed() -> Report {
        let mut made = Composition::new("A title");
        made.find(["It holds.".to_owned()]);
        made.section("First");
        made.define([("WIN", "somebody <i>lost</i>")]);
        let rows = (0..20).map(|number| vec![format!("row {number}"), number.to_string()]).collect();
        made.table("All rows", &[("name", true), ("word", true)], rows, |word| word == "7");
        made.section("Second");
        made.say_of("replay", "an old <answer>");
        let svg = "<svg class=\"sequence\"><title>one</title></svg>\n".to_owned();
        made.show("a trace", Some(svg), "0.1 s  <a>\n```\n0.2 s  \u{1b}[2J b\n".to_owned());
        made.show("a listing", None, "WIN  x\n".to_owned());
        made.report()
    }

    #[test]
    fn page_has_pictures_as_they_are_and_words_as_text() {
        let page = composed().page();
        assert_whole(&page);
        assert!(
            page.contains("<svg class=\"sequence\"><title>one</title></svg>") && page.contains(".sequence")
        );
        assert!(page.contains("<pre>0.1 s  &lt;a&gt;\n```\n0.2 s  \u{fffd}[2J b\n</pre>"), "{page}");
        assert!(page.contains("row 19") && !page.contains("20 rows"), "a table that is shown at once");
        assert_eq!(page.matches("<td class=\"word warning\">7</td>").count(), 1);
        assert_eq!(page.matches("class=\"word warning\"").count(), 1);
        assert!(!page.contains("<i>lost"));
    }

    #[test]
    fn text_and_markdown_have_the_words() {
        let report = composed();
        let (text, markdown) = (report.text(), report.markdown());
        assert!(text.contains("\na listing:\nWIN  x\n") && !text.contains("a trace"), "{text}");
        assert!(text.contains("replay: an old <answer>") && text.contains("WIN: somebody"), "{text}");
        assert!(markdown.contains("**a listing**\n\n```text\nWIN  x\n```\n"), "{markdown}");
        assert_eq!(markdown.matches("```").count(), 4, "{markdown}");
    }

    #[test]
    fn other_reports_have_no_style_for_what_they_do_not_show() {
        assert!(!Report::of_sentences("Words", ["one".to_owned()]).page().contains("sequence"));
    }
}
