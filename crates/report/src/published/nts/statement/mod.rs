//! What the paper says with a number or a claim, row by row: what was printed, what the data and the source say of
//! it, and how the study here answers it.
//!
//! A row is told in our words. Its numbers are recomputed in code where the data allow it; where they do not, the row
//! says so. Rows with [`Tag::Source`] or [`Tag::Capture`] rest on reading the authors' program and their capture:
//! what is not recomputed there cannot be, without that program.

mod performance;
mod scalability;
mod setup;

use std::fmt;

use strum::{EnumCount, VariantArray};

use super::recompute::{Agreement, Recomputation, Stated};

/// Where in the paper something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The abstract.
    Abstract,
    /// A section, by its number.
    Section(&'static str),
    /// A figure, by its number.
    Figure(u8),
    /// A table, by its number.
    Table(&'static str),
    /// An equation, by its number.
    Equation(u8),
    /// Nowhere: it is in the data alone.
    Data,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Abstract => out.write_str("abstract"),
            Place::Section(number) => write!(out, "section {number}"),
            Place::Figure(number) => write!(out, "Figure {number}"),
            Place::Table(number) => write!(out, "Table {number}"),
            Place::Equation(number) => write!(out, "equation ({number})"),
            Place::Data => out.write_str("not printed"),
        }
    }
}

/// What a row rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumCount, VariantArray)]
pub enum Tag {
    /// The paper's text.
    Printed,
    /// The raw results.
    Raw,
    /// The vector figures.
    Figure,
    /// The source of the program that was measured, and of what drew the figures.
    Source,
    /// The capture.
    Capture,
}

impl Tag {
    /// All of them.
    pub const ALL: [Tag; Tag::COUNT] = *Tag::VARIANTS.first_chunk().expect("as many as there are");

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tag::Printed => "printed",
            Tag::Raw => "raw",
            Tag::Figure => "figure",
            Tag::Source => "source",
            Tag::Capture => "capture",
        }
    }
}

/// A part of the study here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumCount, VariantArray)]
pub enum Part {
    /// One client, each second a key exchange, an NTS and a plain transfer.
    Unloaded,
    /// The same over paths with longer round trips.
    RoundTrips,
    /// The same with a look-up of the server's name.
    LookUp,
    /// Operations measured alone: handshake, cookies, tags, reading a small file, a get from memcached.
    Operations,
    /// The ladder against a server that has a core for itself.
    LadderWholeCore,
    /// The ladder against a server under a quota, with rates to its scale.
    LadderToScale,
    /// Other numbers of transfers for each key exchange, with fresh cookies and with one.
    TransfersPerExchange,
    /// NTS without key exchanges, past the rates of the paper.
    TransfersAlone,
    /// All schemes at all servers, capacity and latency: the field study.
    Field,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; Part::COUNT] = *Part::VARIANTS.first_chunk().expect("as many as there are");

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Part::Unloaded => "unloaded",
            Part::RoundTrips => "unloaded, over longer paths",
            Part::LookUp => "unloaded, with a name look-up",
            Part::Operations => "operations alone",
            Part::LadderWholeCore => "ladder, a whole core",
            Part::LadderToScale => "ladder, to scale",
            Part::TransfersPerExchange => "transfers per key exchange",
            Part::TransfersAlone => "transfers alone",
            Part::Field => "the field study",
        }
    }
}

/// How a row is answered here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is measured here, by these parts of the study.
    Measured(&'static [Part]),
    /// It is recomputed from what was published, and there is nothing to measure.
    Recomputed,
    /// It is a matter of the paper's words, which its data or source settle: there is nothing to measure. The
    /// sentence says what holds here.
    Settled(&'static str),
    /// It cannot be answered here. The sentence says why.
    NotHere(&'static str),
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    /// Its name, which does not change: words joined with hyphens.
    pub id: &'static str,
    /// Where in the paper it stands; at least one place.
    pub places: &'static [Place],
    /// What was printed, in our words; `None` if it is in the data alone.
    pub printed: Option<&'static str>,
    /// What data and source say of it.
    pub data: &'static str,
    /// What the row rests on; at least one.
    pub tags: &'static [Tag],
    /// How it is answered here.
    pub answer: Answer,
    /// Its numbers, recomputed; empty where what is at hand yields none.
    pub recomputations: &'static [Recomputation],
}

impl Statement {
    /// Where it stands, in words: "section IV, Table II".
    #[must_use]
    pub fn place(&self) -> String {
        self.places.iter().map(Place::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// All rows, in the order of the paper.
pub fn all() -> impl Iterator<Item = &'static Statement> {
    setup::STATEMENTS.iter().chain(performance::STATEMENTS).chain(scalability::STATEMENTS)
}

/// The row with this name; `None` if there is none.
#[must_use]
pub fn find(id: &str) -> Option<&'static Statement> {
    all().find(|statement| statement.id == id)
}

/// The rows that say something of a place, such as a figure.
pub fn at(place: Place) -> impl Iterator<Item = &'static Statement> {
    all().filter(move |statement| statement.places.contains(&place))
}

/// A number that the paper printed.
const fn printed(
    what: &'static str,
    unit: &'static str,
    stated: f64,
    agreement: Agreement,
    compute: fn() -> f64,
) -> Recomputation {
    Recomputation { what, unit, stated, by: Stated::Printed, agreement, compute }
}

/// A number that the authors' data say.
const fn data(
    what: &'static str,
    unit: &'static str,
    stated: f64,
    agreement: Agreement,
    compute: fn() -> f64,
) -> Recomputation {
    Recomputation { what, unit, stated, by: Stated::Data, agreement, compute }
}

#[cfg(test)]
mod tests;
