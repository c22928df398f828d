//! Symmetric keys as an operator sees them.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::notes::{self, Note};
use super::uses::{Stored, limit_of};
use super::{Foreign, Key, Keys};

/// A key as an operator sees it: never its secret. What is not known is absent.
#[derive(Debug, Default, Serialize)]
pub struct Shown {
    id: u32,
    state: &'static str,
    #[serde(rename = "type")]
    kind: Option<&'static str>,
    bits: Option<usize>,
    salted: bool,
    line: Option<usize>,
    made: Option<String>,
    age_s: Option<u64>,
    replaced_by: Option<u32>,
    /// From when on the key is not accepted, or when it was removed.
    retires: Option<String>,
    /// Tags made under the key, by clients and the server; the most that they can be unless `uses_exact`.
    uses: Option<u64>,
    uses_exact: Option<bool>,
    uses_limit: Option<u64>,
}

impl Shown {
    fn of(key: &Key, stored: Option<&Stored>, now: u64) -> Self {
        let uses = stored.map(|stored| stored.of(&key.key));
        Shown {
            id: key.id(),
            state: key.standing(now).label(),
            kind: Some(key.algorithm().name()),
            bits: Some(8 * key.key.key().expose().len()),
            salted: key.key.salt().is_some(),
            line: Some(key.line),
            made: key.note.made.map(notes::time),
            age_s: key.note.made.map(|made| now.saturating_sub(made)),
            replaced_by: key.note.replaced_by,
            retires: key.note.retires.map(notes::time),
            uses: uses.map(|uses| uses.count),
            uses_exact: uses.map(|uses| uses.is_exact),
            uses_limit: limit_of(&key.key),
        }
    }

    fn foreign(key: &Foreign) -> Self {
        Shown {
            id: key.id,
            state: "unusable",
            kind: Some(key.name),
            line: Some(key.line),
            ..Shown::default()
        }
    }

    fn retired(note: &Note, now: u64) -> Self {
        Shown {
            id: note.id,
            state: "retired",
            made: note.made.map(notes::time),
            age_s: note.made.map(|made| now.saturating_sub(made)),
            replaced_by: note.replaced_by,
            retires: note.retired.map(notes::time),
            ..Shown::default()
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10}  {:<11}", self.id, self.kind.unwrap_or("-"))?;
        match self.bits {
            Some(bits) => write!(f, "  {bits:>4} bits")?,
            None => write!(f, "  {:>9}", "")?,
        }
        write!(f, "  {:<8}", self.state)?;
        match (&self.made, self.age_s) {
            (Some(made), Some(age)) => {
                let age = humantime::format_duration(Duration::from_secs(age));
                write!(f, "  made {made} ({age} ago)")?;
            }
            _ => write!(f, "  made at an unknown time")?,
        }
        if let Some(uses) = self.uses {
            let most = if self.uses_exact == Some(true) { "" } else { "at most " };
            write!(f, "  used {most}{uses} times")?;
            if let Some(limit) = self.uses_limit {
                write!(f, " of 2^{}", limit.ilog2())?;
            }
        }
        if let Some(next) = self.replaced_by {
            write!(f, "  replaced by {next}")?;
        }
        if let Some(end) = &self.retires {
            let verb = if self.kind.is_some() { "retires" } else { "retired" };
            write!(f, "  {verb} {end}")?;
        }
        Ok(())
    }
}

/// All keys of a file, those too that are foreign or retired, at `now` in Unix seconds; `stored` has their uses, where
/// these are known.
#[must_use]
pub fn all(keys: &Keys, stored: Option<&Stored>, now: u64) -> Vec<Shown> {
    let held = keys.keys.iter().map(|key| Shown::of(key, stored, now));
    let retired = keys.retired.iter().map(|note| Shown::retired(note, now));
    let foreign = keys.foreign.iter().map(Shown::foreign);
    held.chain(foreign).chain(retired).collect()
}
