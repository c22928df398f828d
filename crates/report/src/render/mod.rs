//! A report as sections, before it is text or markup: made once, shown twice.
//!
//! `text` writes sections for a terminal, `page` as one self-contained HTML page. Both show the same, except for what
//! suits only one of them (`Medium`): a terminal has no pictures, and its tables are narrow.

use std::fmt;

mod chart;
pub(crate) mod csv;
mod dots;
mod intervals;
pub(crate) mod page;
mod plot;
mod stack;
pub(crate) mod text;

pub(crate) use self::chart::{Chart, Line, Point, Unit};
pub(crate) use self::dots::{Count, Dots, Marker, Series};
pub(crate) use self::intervals::{Group, Intervals, Kind, Line as IntervalLine};
pub(crate) use self::plot::{Cumulative, Distribution, Words};
pub(crate) use self::stack::{Bar, Panel, Stack};

/// A whole report.
#[derive(Debug)]
pub struct Report {
    title: String,
    layout: Layout,
    sections: Vec<Section>,
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
        Report { title: title.to_owned(), layout, sections }
    }

    /// The report for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        text::report(self.layout, &self.sections)
    }

    /// The report as a page.
    #[must_use]
    pub fn page(&self) -> String {
        page::report(&self.title, self.layout, &self.sections)
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
    fn is_on(self, medium: Medium) -> bool {
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
    /// Items of equal rank; in the text a line for each.
    List(Vec<Prose>),
    /// What the report found, in a few sentences, which stand out.
    Findings(Vec<(Prose, Tone)>),
    /// Terms and what they mean.
    Terms(Vec<(String, Prose)>),
    /// A heading of the text, above the block that follows.
    Label(String),
    Table(Table),
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
        let blocks = self.blocks.iter().map(|(_, block)| block);
        blocks
            .filter_map(
                |block| if let Block::Paragraph(prose, _) = block { Some(prose.text()) } else { None },
            )
            .collect()
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

/// A table. Cells are as the text has them; the page typesets those that hold numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    /// What it is called.
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// What must be known of it, in sentences.
    pub(crate) notes: Vec<String>,
    /// Minimum widths of the text's columns, one space apart; `None`: as wide as their contents, two spaces apart.
    pub(crate) widths: Option<&'static [usize]>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    heading: Heading,
    /// Words start on the left; numbers end on the right.
    pub(crate) is_word: bool,
    medium: Medium,
}

/// What a column is called, and what a flat text calls it if that is something else, over several lines if need be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heading(String, Option<String>);

impl From<&str> for Heading {
    fn from(heading: &str) -> Self {
        Heading(heading.to_owned(), None)
    }
}

impl From<String> for Heading {
    fn from(heading: String) -> Self {
        Heading(heading, None)
    }
}

impl<T: Into<String>> From<(T, &str)> for Heading {
    fn from((heading, short): (T, &str)) -> Self {
        Heading(heading.into(), Some(short.to_owned()))
    }
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) weight: Weight,
    pub(crate) cells: Vec<String>,
}

/// What a row is among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Plain,
    /// It says nothing.
    Void,
    /// Its right part, beside the published figures, says nothing.
    VoidRight,
    /// The sum of the rows that follow.
    Total,
    VoidTotal,
}

impl Weight {
    /// A row that says nothing unless it is `valid`.
    pub(crate) fn of(valid: bool) -> Self {
        if valid { Weight::Plain } else { Weight::Void }
    }

    fn is_total(self) -> bool {
        matches!(self, Weight::Total | Weight::VoidTotal)
    }
}

impl Table {
    /// A table with a row for each of these, to which columns are added.
    pub(crate) fn of<R>(name: impl Into<String>, rows: impl IntoIterator<Item = R>) -> Filling<R> {
        let of: Vec<R> = rows.into_iter().collect();
        let rows = vec![Row { weight: Weight::Plain, cells: Vec::new() }; of.len()];
        let table = Table { name: name.into(), columns: Vec::new(), rows, notes: Vec::new(), widths: None };
        Filling { table, of }
    }

    /// The numbers of the columns that a medium shows.
    fn shown(&self, medium: Medium) -> Vec<usize> {
        (0..self.columns.len()).filter(|&index| self.columns[index].medium.is_on(medium)).collect()
    }
}

/// A table that gets its columns one by one, and what its rows are of. A column has its heading beside what it says of
/// a row.
pub(crate) struct Filling<R> {
    table: Table,
    of: Vec<R>,
}

impl<R> Filling<R> {
    /// Adds a column of numbers.
    pub(crate) fn number<T: ToString>(self, heading: impl Into<Heading>, cell: impl Fn(&R) -> T) -> Self {
        self.number_on(Medium::Both, heading, cell)
    }

    /// Adds a column of numbers that one of them shows.
    pub(crate) fn number_on<T: ToString>(
        self,
        medium: Medium,
        heading: impl Into<Heading>,
        cell: impl Fn(&R) -> T,
    ) -> Self {
        self.add(Column { heading: heading.into(), is_word: false, medium }, cell)
    }

    /// Adds a column of words.
    pub(crate) fn words<T: ToString>(self, heading: impl Into<Heading>, cell: impl Fn(&R) -> T) -> Self {
        self.add(Column { heading: heading.into(), is_word: true, medium: Medium::Both }, cell)
    }

    /// Adds a column of words that one of them shows.
    pub(crate) fn words_on<T: ToString>(
        self,
        medium: Medium,
        heading: impl Into<Heading>,
        cell: impl Fn(&R) -> T,
    ) -> Self {
        self.add(Column { heading: heading.into(), is_word: true, medium }, cell)
    }

    /// Adds a column of numbers for each key.
    pub(crate) fn each<K, H: Into<Heading>, T: ToString>(
        self,
        keys: impl IntoIterator<Item = K>,
        heading: impl Fn(&K) -> H,
        cell: impl Fn(&R, &K) -> T,
    ) -> Self {
        keys.into_iter().fold(self, |filling, key| filling.number(heading(&key), |row| cell(row, &key)))
    }

    fn add<T: ToString>(mut self, column: Column, cell: impl Fn(&R) -> T) -> Self {
        self.table.columns.push(column);
        for (row, of) in self.table.rows.iter_mut().zip(&self.of) {
            row.cells.push(cell(of).to_string());
        }
        self
    }

    /// Says what each row is among the others.
    pub(crate) fn weighed(mut self, weight: impl Fn(&R) -> Weight) -> Self {
        self.table.rows.iter_mut().zip(&self.of).for_each(|(row, of)| row.weight = weight(of));
        self
    }

    /// The table.
    pub(crate) fn table(self) -> Table {
        self.table
    }

    /// The table with these sentences below it.
    pub(crate) fn noted(self, notes: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { notes: notes.into_iter().map(Into::into).collect(), ..self.table }
    }
}

/// What stands in a table where there is no value; the page has a dash for it.
pub(crate) const ABSENT: &str = "-";

pub(crate) fn or_absent(value: Option<impl ToString>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| value.to_string())
}

/// A value, or nothing where there is none.
pub(crate) fn or_empty(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// What is drawn.
pub(crate) trait Drawing: fmt::Debug {
    /// Pictures of what is drawn, as markup, and their names.
    fn legend(&self) -> Vec<(String, String)>;

    /// The picture; `None` if there is nothing to draw.
    fn svg(&self, size: plot::Size) -> Option<String>;
}
