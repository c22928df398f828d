//! Verdicts as a table, and what there is to play.

use std::fmt;

use serde::Serialize;

use super::{Played, Strategy, all};
use crate::protocol::{self, Protocol};
use crate::verdict::Verdict;

/// Strategies against protocols.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// From what all followed.
    pub seed: u64,
    /// Whether everything came out as expected.
    pub as_expected: bool,
    /// The columns.
    pub protocols: Vec<String>,
    /// By strategy, what came of it against each protocol that it is for.
    pub rows: Vec<Vec<Played>>,
}

impl Table {
    /// Plays each strategy against those `protocols` that it is for; says when one is through.
    #[must_use]
    pub fn play(
        strategies: &[Strategy],
        protocols: &[Box<dyn Protocol>],
        seed: u64,
        through: impl Fn(),
    ) -> Self {
        let row = |strategy: &Strategy| {
            let mine = protocols.iter().filter(|protocol| strategy.is_for(protocol.as_ref()));
            let row = mine.map(|protocol| strategy.play(protocol.as_ref(), seed)).collect();
            through();
            row
        };
        let mut rows: Vec<Vec<Played>> = strategies.iter().map(row).collect();
        rows.retain(|row| !row.is_empty());
        let as_expected = rows.iter().flatten().all(Played::is_as_expected);
        let protocols = protocols.iter().map(|protocol| protocol.name().to_owned()).collect();
        Table { seed, as_expected, protocols, rows }
    }
}

/// A line for each strategy, a column for each protocol. What was not expected has an exclamation mark.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.rows.iter().flatten().map(|played| played.strategy.len()).max().unwrap_or(0).max(8);
        let width = |name: &String| name.len().max(Verdict::WinAuthentication.word().len() + 1);
        write!(f, "{:first$}", "strategy")?;
        for name in &self.protocols {
            write!(f, "  {name:0$}", width(name))?;
        }
        for row in &self.rows {
            write!(f, "\n{:first$}", row.first().map_or("", |played| played.strategy))?;
            let mut cells = String::new();
            for name in &self.protocols {
                let played = row.iter().find(|played| played.protocol == *name);
                let verdict = played.map_or("-".to_owned(), |played| {
                    let mark = if played.is_as_expected() { "" } else { "!" };
                    format!("{}{mark}", played.verdict)
                });
                cells += &format!("  {verdict:0$}", width(name));
            }
            write!(f, "{}", cells.trim_end())?;
        }
        Ok(())
    }
}

/// What there is to play.
#[derive(Clone, Debug, Serialize)]
pub struct Listing {
    /// The protocols.
    pub protocols: Vec<Listed>,
    /// The strategies.
    pub strategies: Vec<Listed>,
}

/// A protocol or a strategy.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// How it is named on a command line.
    pub name: String,
    /// What it is, in a few words.
    pub title: &'static str,
    /// What is to be said of it.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub says: &'static str,
    /// What is to come of a strategy, by protocol.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<(String, Verdict)>,
}

impl Default for Listing {
    fn default() -> Self {
        Self::new()
    }
}

impl Listing {
    /// Of all protocols and strategies of this crate.
    #[must_use]
    pub fn new() -> Self {
        let protocols = protocol::all();
        let expected = |strategy: &Strategy| {
            let verdicts = protocols.iter().map(|protocol| {
                let verdict = strategy.expected.of_protocol(protocol.as_ref())?;
                Some((protocol.name().to_owned(), verdict))
            });
            verdicts.flatten().collect()
        };
        let strategies = all().into_iter().map(|strategy| Listed {
            name: strategy.id.to_owned(),
            title: strategy.title,
            says: strategy.says,
            expected: expected(&strategy),
        });
        let strategies = strategies.collect();
        let listed = protocols.iter().map(|protocol| Listed {
            name: protocol.name().to_owned(),
            title: protocol.says(),
            says: "",
            expected: vec![],
        });
        Listing { protocols: listed.collect(), strategies }
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "protocols")?;
        for listed in &self.protocols {
            writeln!(f, "  {:18}  {}", listed.name, listed.title)?;
        }
        write!(f, "\nstrategies")?;
        for listed in &self.strategies {
            write!(f, "\n  {:18}  {}", listed.name, listed.title)?;
        }
        Ok(())
    }
}
