//! A report as sections, before it is text or markup: made once, shown three times.
//!
//! `text` writes sections for a terminal, `page` as one self-contained HTML page, and `markdown` what that has without
//! its pictures. They show the same, except for what suits only one of them (`Medium`): a terminal has no pictures, and
//! its tables are narrow.

use std::fmt;

use crate::study::tally::Tally;

mod chart;
mod compose;
pub(crate) mod csv;
mod dots;
mod intervals;
mod markdown;
pub(crate) mod page;
mod plot;
mod stack;
mod table;
pub(crate) mod text;

pub(crate) use self::chart::{Chart, Line, Point, Unit};
pub use self::compose::Composition;
pub(crate) use self::dots::{Count, Dots, Marker, Series, Value};
pub(crate) use self::intervals::{Group, Intervals, Kind, Line as IntervalLine};
pub use self::page::escaped;
pub(crate) use self::plot::{Cumulative, Distribution, Words};
pub(crate) use self::stack::{Bar, Panel, Stack};
pub(crate) use self::table::{ABSENT, Filling, Heading, Link, Row, Table, Weight, or_absent, or_empty};

/// A whole report.
#[derive(Debug)]
pub struct Report {
    title: String,
    layout: Layout,
    sections: Vec<Section>,
    /// What became of the tables and figures of the paper that it is on.
    pub(crate) tally: Option<Tally>,
    /// Files beside the page that it is made of.
    files: Vec<String>,
}

impl Report {
    /// A report of sentences alone.
    #[must_use]
    pub fn of_sentences(title: &str, sentences: impl IntoIterator<Item = String>) -> Self {
        let mut section = Section::default();
        section.say_all(sentences);
        Report::new(title, Layout::Flat, vec![section])
    }

    pub(crate) fn new(title: &str, layout: Layout, sections: Vec<Section>) -> Self {
        Report { title: title.to_owned(), layout, sections, tally: None, files: Vec::new() }
    }

    /// The report with links to these files, which lie beside its page: names in the same folder.
    #[must_use]
    pub fn beside(self, files: impl IntoIterator<Item = String>) -> Self {
        Report { files: files.into_iter().collect(), ..self }
    }

    /// The report with a block that comes first, and a section that follows those without a heading.
    pub(crate) fn insert(&mut self, first: Block, section: Section) {
        let place = self.sections.iter().position(|section| !section.heading.is_empty());
        self.sections.insert(place.unwrap_or(self.sections.len()), section);
        match self.sections.first_mut() {
            Some(opening) if opening.heading.is_empty() => opening.blocks.insert(0, (Medium::Both, first)),
            Some(_) | None => self.sections.insert(0, Section::of("", [first])),
        }
    }

    /// The report for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        text::report(self.layout, &self.sections)
    }

    /// The report as Markdown: what the page has, without its pictures.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::report(self)
    }

    /// The report as a page.
    #[must_use]
    pub fn page(&self) -> String {
        page::report(self)
    }
}

/// Reports one after the other, as one text and one page.
#[derive(Debug)]
pub struct Joined {
    title: String,
    /// What stands before them, without a title of its own.
    front: Report,
    /// Each with the name by which the page links to it.
    parts: Vec<(&'static str, Report)>,
}

impl Joined {
    /// Reports under one title, behind a front. The page links to each by its name, a word.
    #[must_use]
    pub fn new(title: &str, front: Report, parts: Vec<(&'static str, Report)>) -> Self {
        Joined { title: title.to_owned(), front, parts }
    }

    /// The reports for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let part = |(_, report): &(&str, Report)| text::titled(&report.title) + &report.text();
        let parts: Vec<String> = self.parts.iter().map(part).collect();
        text::titled(&self.title) + &self.front.text() + "\n" + &parts.join("\n")
    }

    /// The reports as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::joined(self)
    }

    /// The reports as a page.
    #[must_use]
    pub fn page(&self) -> String {
        page::joined(&self.title, &self.front, &self.parts)
    }
}

/// How much structure a report shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The text is one table and a few lines.
    Brief,
    /// One level of headings. Each sentence is one line of the text, so that it can be searched for.
    Flat,
    /// Tables have names below the headings of sections. The text is folded, its table headings too.
    Nested,
}

/// The media on which something is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    Both,
    Text,
    Page,
}

impl Medium {
    /// Whether what is for it is on that one.
    pub(super) fn is_on(self, medium: Medium) -> bool {
        self == Medium::Both || self == medium
    }
}

/// A part of a report.
#[derive(Debug, Default)]
pub struct Section {
    /// Empty: it has none. A flat text shows [`Block::Label`] instead.
    heading: String,
    blocks: Vec<(Medium, Block)>,
}

/// What a section is made of.
#[derive(Debug)]
pub(crate) enum Block {
    Paragraph(Prose, Tone),
    /// Paragraphs that the page shows when they are asked for, under this name.
    Details(&'static str, Vec<Prose>),
    /// Items of equal rank; in the text a line for each.
    List(Vec<Prose>),
    /// What the report found, in a few sentences, which stand out.
    Findings(Vec<(Prose, Tone)>),
    /// Terms and what they mean.
    Terms(Vec<(String, Prose)>),
    /// A heading of the text, above the block that follows.
    Label(String),
    Table(Table),
    /// What is long, under its name, which the page shows when it is asked for: a picture that is markup, and the same
    /// in words, whose lines stay as they are.
    Shown {
        name: String,
        svg: Option<String>,
        words: String,
    },
    /// A picture with its caption, and what is said instead if there is nothing to draw. The text has none.
    Figure {
        drawing: Box<dyn Drawing>,
        caption: String,
        otherwise: Option<&'static str>,
    },
}

/// How a sentence is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Warning,
    /// Larger.
    Lead,
}

impl Section {
    pub(crate) fn new(heading: impl Into<String>) -> Self {
        Section { heading: heading.into(), blocks: Vec::new() }
    }

    /// A section of these blocks, which both show.
    pub(crate) fn of(heading: &str, blocks: impl IntoIterator<Item = Block>) -> Self {
        Section::only(Medium::Both, heading, blocks)
    }

    /// A section of these blocks, which one of them shows.
    pub(crate) fn only(
        medium: Medium,
        heading: impl Into<String>,
        blocks: impl IntoIterator<Item = Block>,
    ) -> Self {
        let blocks = blocks.into_iter().map(|block| (medium, block)).collect();
        Section { heading: heading.into(), blocks }
    }

    /// Adds a block that both show.
    pub(crate) fn add(&mut self, block: Block) {
        self.blocks.push((Medium::Both, block));
    }

    /// Adds a block that one of them shows.
    pub(crate) fn add_to(&mut self, medium: Medium, block: Block) {
        self.blocks.push((medium, block));
    }

    /// Adds a paragraph.
    pub(crate) fn say(&mut self, sentence: impl Into<Prose>) {
        self.add(Block::paragraph(sentence));
    }

    /// Adds a paragraph for each.
    pub(crate) fn say_all(&mut self, sentences: impl IntoIterator<Item = impl Into<Prose>>) {
        sentences.into_iter().for_each(|sentence| self.say(sentence));
    }

    /// Adds a paragraph that one of them shows.
    pub(crate) fn say_in(&mut self, medium: Medium, sentence: impl Into<Prose>) {
        self.add_to(medium, Block::paragraph(sentence));
    }

    /// Adds paragraphs that the page shows when they are asked for.
    pub(crate) fn fold(&mut self, name: &'static str, sentences: impl IntoIterator<Item = impl Into<Prose>>) {
        let sentences: Vec<Prose> = sentences.into_iter().map(Into::into).collect();
        if !sentences.is_empty() {
            self.add(Block::Details(name, sentences));
        }
    }

    /// Adds a heading of the text.
    pub(crate) fn label(&mut self, text: impl Into<String>) {
        self.add_to(Medium::Text, Block::Label(text.into()));
    }

    /// Adds tables.
    pub(crate) fn show(&mut self, tables: impl IntoIterator<Item = Table>) {
        tables.into_iter().for_each(|table| self.add(Block::Table(table)));
    }

    /// What is shown on a medium.
    fn shown(&self, medium: Medium) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(move |(of, _)| of.is_on(medium)).map(|(_, block)| block)
    }
}

#[cfg(test)]
impl Section {
    pub(crate) fn tables(&self) -> Vec<&Table> {
        let blocks = self.blocks.iter().map(|(_, block)| block);
        blocks.filter_map(|block| if let Block::Table(table) = block { Some(table) } else { None }).collect()
    }

    pub(crate) fn sentences(&self) -> Vec<String> {
        let said = |(_, block): &(Medium, Block)| match block {
            Block::Paragraph(prose, _) => vec![prose.text()],
            Block::Details(_, sentences) => sentences.iter().map(Prose::text).collect(),
            _ => Vec::new(),
        };
        self.blocks.iter().flat_map(said).collect()
    }
}

impl Block {
    /// A picture with its caption.
    pub(crate) fn figure(drawing: impl Drawing + 'static, caption: impl Into<String>) -> Self {
        Block::Figure { drawing: Box::new(drawing), caption: caption.into(), otherwise: None }
    }

    pub(crate) fn paragraph(sentence: impl Into<Prose>) -> Self {
        Block::Paragraph(sentence.into(), Tone::Plain)
    }

    pub(crate) fn list(items: impl IntoIterator<Item = impl Into<Prose>>) -> Self {
        Block::List(items.into_iter().map(Into::into).collect())
    }

    pub(crate) fn findings(items: impl IntoIterator<Item = impl Into<Prose>>) -> Self {
        Block::Findings(items.into_iter().map(|item| (item.into(), Tone::Plain)).collect())
    }
}

/// Words with what stands out among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prose(Vec<(Mark, String)>);

/// How words stand out. Plain and strong ones are typeset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Plain,
    Strong,
    Code,
    /// Not to be broken over lines.
    Unbroken,
    /// Below the line.
    Sub,
}

impl<T: Into<String>> From<T> for Prose {
    fn from(text: T) -> Self {
        Prose(vec![(Mark::Plain, text.into())])
    }
}

impl Prose {
    fn with(mut self, mark: Mark, text: impl Into<String>) -> Self {
        self.0.push((mark, text.into()));
        self
    }

    pub(crate) fn plain(self, text: impl Into<String>) -> Self {
        self.with(Mark::Plain, text)
    }

    pub(crate) fn strong(self, text: impl Into<String>) -> Self {
        self.with(Mark::Strong, text)
    }

    pub(crate) fn code(self, text: impl Into<String>) -> Self {
        self.with(Mark::Code, text)
    }

    pub(crate) fn unbroken(self, text: impl Into<String>) -> Self {
        self.with(Mark::Unbroken, text)
    }

    pub(crate) fn sub(self, text: impl Into<String>) -> Self {
        self.with(Mark::Sub, text)
    }

    /// The words alone.
    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }
}

/// An entry of a legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// The layer of the picture that it is of, which a reader can hide; `None`: it is in several.
    pub(crate) layer: Option<usize>,
    /// A mark, as markup.
    pub(crate) swatch: String,
    pub(crate) name: String,
}

impl Key {
    /// Of a layer.
    fn of(layer: usize, swatch: String, name: impl Into<String>) -> Self {
        Key { layer: Some(layer), swatch, name: name.into() }
    }

    /// Of marks that are in several layers.
    fn shared(swatch: String, name: impl Into<String>) -> Self {
        Key { layer: None, swatch, name: name.into() }
    }
}

/// What is drawn.
pub(crate) trait Drawing: fmt::Debug {
    /// What is drawn, with a mark of each.
    fn legend(&self) -> Vec<Key>;

    /// The picture; `None` if there is nothing to draw. What a [`Key`] can hide stands in the class of its layer.
    fn svg(&self, size: plot::Size) -> Option<String>;

    /// What is drawn, as numbers that a program can read, with the units in the headings.
    fn data(&self) -> Table;
}
