//! How often keys have been used, kept over restarts.
//!
//! ```text
//! authentick-symmetric-uses 1
//! 30 AES128 5f3a0c115f3a0c115f3a0c115f3a0c11 123456 exact
//! 31 GMAC128 0c115f3a0c115f3a0c115f3a0c115f3a 69536 most
//! ```
//!
//! The words of a line: the id, the type, a check value of the key, uses, and what kind of number it is. A use is a tag
//! made under the key, the client's or ours, so a request that is answered makes two.
//!
//! The number on the disk is never below the true count: from the first use of a key on, while the server runs, it is
//! ahead of the count by some time's uses, and is rewritten before the count reaches it. An orderly stop writes the
//! exact count; after a crash the number on the disk is used. A key that has not been used since startup keeps its
//! line, so a crash costs it nothing.
//!
//! The counts are checked each second, and workers never wait for a disk. So the number is too low, by the uses of a
//! second, if the server dies within a second of a key's first use after startup, or within a second in which a key is
//! used more than half a margin more often than in the one before. Uses by other servers with the same key are not
//! known here.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use authentick_crypto::mac::{MacAlgorithm, MacKey, Tag, usage};
use authentick_crypto::run_batch;
use authentick_proto::limits::SYMMETRIC_KEY_COUNT_MAX;
use authentick_proto::symmetric::{SymmetricKey, SymmetricKeys};
use authentick_wire::limits::HEADER_SIZE;
use thiserror::Error;

use crate::guarded::{self, Secrecy, Unreadable};
use crate::replace::{Refused, replace};

const MAGIC: &str = "authentick-symmetric-uses 1";
pub(crate) const NAME: &str = "symmetric-uses";
const FILE_SIZE_MAX: u64 = 32 << 20;

/// The number on the disk is ahead of the count by so many seconds' uses, and by this at least.
const MARGIN_SECONDS: u64 = 64;
const MARGIN_MIN: u64 = 1 << 16;
/// The share of a limit that a crash may cost at least.
const LIMIT_SHARE: u64 = 16;

/// After how many uses a key should be replaced; `None` if no realistic number of uses weakens it. The sources are in
/// [`usage`]; messages are taken to be headers alone, as nearly all are.
#[must_use]
pub const fn limit(algorithm: MacAlgorithm, has_salt: bool) -> Option<u64> {
    match usage::messages_log2(algorithm, has_salt, HEADER_SIZE) {
        Some(log2) => Some(1 << log2),
        None => None,
    }
}

/// The limit of a key.
#[must_use]
pub fn limit_of(key: &SymmetricKey) -> Option<u64> {
    limit(key.algorithm(), key.salt().is_some())
}

/// Tags made under a key since its counters began.
fn counted(key: &SymmetricKey) -> u64 {
    key.counts().answered.saturating_mul(2)
}

/// How often a key has been used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Tags made under it.
    pub count: u64,
    /// Whether the number is exact; otherwise it is an upper bound.
    pub is_exact: bool,
}

/// Distinguishes keys with the same id, without revealing the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name {
    id: u32,
    algorithm: &'static str,
    check: String,
}

impl Name {
    fn of(key: &SymmetricKey) -> Self {
        let digest = MacKey::new(MacAlgorithm::Sha256, key.key().expose())
            .expect("a digest takes keys of all sizes that there are");
        let mut message = b"authentick: which key this is".to_vec();
        message.extend(key.salt().iter().flatten());
        let mut tag = [0; 16];
        run_batch(std::iter::once(Tag { key: &digest, nonce: None, message: &message, tag: &mut tag }));
        let check = format!("{:032x}", u128::from_be_bytes(tag));
        Name { id: key.id(), algorithm: key.algorithm().name(), check }
    }
}

/// The uses on the disk, as they were when it was read.
#[derive(Debug, Default)]
pub struct Stored(HashMap<Name, Uses>);

impl Stored {
    /// Reads the file of a state directory; nothing is in it if there is none.
    ///
    /// # Errors
    /// If it cannot be read or is something else.
    pub fn load(directory: &Path) -> Result<Self, UsesError> {
        let path = path(directory);
        match guarded::read(&path, Secrecy::Public, FILE_SIZE_MAX) {
            Ok(octets) => {
                parse(&String::from_utf8_lossy(&octets)).map_err(|line| UsesError::Line(path, line))
            }
            Err(error) if error.is_missing() => Ok(Stored::default()),
            Err(Unreadable::Io(error)) => Err(UsesError::Io(path, error)),
            Err(
                Unreadable::NotAFile | Unreadable::Foreign(_) | Unreadable::Mode(_) | Unreadable::Size(_),
            ) => Err(UsesError::Line(path, 0)),
        }
    }

    /// Reads as [`Stored::load`] does. A file that holds something else is set aside under another name, which the next
    /// write would otherwise take from whoever can still mend it; nothing is then stored.
    pub(crate) fn load_or_set_aside(directory: &Path) -> Self {
        const LOST: &str = "uses of symmetric keys are counted from 0";
        match Stored::load(directory) {
            Ok(stored) => return stored,
            Err(error @ UsesError::Io(..)) => log::error!("{error}; {LOST}; make the file readable"),
            Err(error @ UsesError::Line(..)) => match set_aside(directory) {
                Ok(kept) => log::error!(
                    "{error}; {LOST}; the file is now {}: mend it, and put it back while the server is stopped",
                    kept.display()
                ),
                Err(refused) => log::error!("{error}; {LOST}; it could not be set aside: {refused}"),
            },
        }
        Stored::default()
    }

    /// The uses of a key.
    #[must_use]
    pub fn of(&self, key: &SymmetricKey) -> Uses {
        self.0.get(&Name::of(key)).copied().unwrap_or(Uses { count: 0, is_exact: true })
    }
}

/// Why uses could not be read.
#[derive(Debug, Error)]
pub enum UsesError {
    /// The system refused an operation on this path.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// The file does not hold uses: the line.
    #[error("{0}: line {1}: no uses of a key")]
    Line(PathBuf, usize),
}

fn path(directory: &Path) -> PathBuf {
    directory.join(NAME)
}

/// Renames the file to an unused name; returns that.
fn set_aside(directory: &Path) -> io::Result<PathBuf> {
    let names = (1..).map(|number| directory.join(format!("{NAME}.damaged-{number}")));
    let kept = names.into_iter().find(|name| !name.exists()).expect("there are numbers enough");
    fs::rename(path(directory), &kept).map(|()| kept)
}

fn parse(text: &str) -> Result<Stored, usize> {
    let mut lines = text.lines();
    if lines.next() != Some(MAGIC) {
        return Err(1);
    }
    let parse_line = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let &[id, algorithm, check, count, kind] = &words[..] else { return None };
        let algorithm = MacAlgorithm::ALL.iter().map(|known| known.name()).find(|&name| name == algorithm)?;
        let is_exact = match kind {
            "exact" => true,
            "most" => false,
            _ => return None,
        };
        let name = Name { id: id.parse().ok()?, algorithm, check: check.to_owned() };
        Some((name, Uses { count: count.parse().ok()?, is_exact }))
    };
    lines
        .enumerate()
        .map(|(index, line)| parse_line(line).ok_or(index + 2))
        .collect::<Result<_, _>>()
        .map(Stored)
}

/// A key that is close to its limit, or beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Worn {
    pub(crate) id: u32,
    pub(crate) algorithm: MacAlgorithm,
    pub(crate) uses: Uses,
    pub(crate) limit: u64,
}

/// What a running server knows about the uses of its keys.
#[derive(Debug)]
pub(crate) struct Ledger {
    directory: PathBuf,
    /// Keys that are not in force, from the file or from before a change.
    absent: HashMap<Name, Uses>,
    /// Keys in force, in the order of the set.
    entries: Vec<Entry>,
    /// The set before the last change, and those of its entries that are not in force any more. Workers may still use
    /// it when it is replaced, and do not when the ledger is looked at again.
    departing: Option<(Arc<SymmetricKeys>, Vec<Entry>)>,
    /// Whether the file is to be written whatever the counts say: it could not be, or it says too much of keys that
    /// have departed.
    is_stale: bool,
}

/// A key in force.
#[derive(Debug)]
struct Entry {
    name: Name,
    /// Uses that the key's counters do not have.
    before: Uses,
    limit: Option<u64>,
    /// The count at the last look, to see how fast it grows.
    last: u64,
    /// What the disk says.
    stored: u64,
    /// How many halves of the limit have been warned of.
    warned_halves: u64,
}

impl Entry {
    fn uses(&self, key: &SymmetricKey) -> Uses {
        Uses { count: self.before.count.saturating_add(counted(key)), ..self.before }
    }

    /// How far ahead of the count the disk should be, if the key is used so many times a second: not at all before it
    /// is used.
    fn margin(&self, key: &SymmetricKey, rate: u64) -> u64 {
        if counted(key) == 0 {
            return 0;
        }
        let least = self.limit.map_or(MARGIN_MIN, |limit| MARGIN_MIN.min(limit / LIMIT_SHARE));
        rate.saturating_mul(MARGIN_SECONDS).max(least)
    }
}

impl Ledger {
    /// Goes on from the uses that are on the disk.
    pub(crate) fn new(directory: &Path, stored: Stored) -> Self {
        Ledger {
            directory: directory.to_owned(),
            absent: stored.0,
            entries: Vec::new(),
            departing: None,
            is_stale: false,
        }
    }

    /// Takes account of a set that is to take the place of `old`, whose successor it is, and writes the file.
    ///
    /// # Errors
    /// If the file cannot be written. The set is accounted for nevertheless, and the next look tries again.
    pub(crate) fn replace(
        &mut self,
        old: Option<&Arc<SymmetricKeys>>,
        new: &SymmetricKeys,
    ) -> Result<(), Refused> {
        self.settle();
        let entries = self.entries.drain(..).map(|entry| (entry.name.clone(), entry));
        let mut entries: HashMap<Name, Entry> = entries.collect();
        for key in new.iter() {
            let name = Name::of(key);
            // The same in all its parts, so it goes on with its counters.
            let kept = entries.remove(&name);
            self.entries.push(kept.unwrap_or_else(|| {
                let before = self.absent.remove(&name).unwrap_or(Uses { count: 0, is_exact: true });
                Entry { name, before, limit: limit_of(key), last: before.count, stored: 0, warned_halves: 0 }
            }));
        }
        self.departing = old.map(|old| (Arc::clone(old), entries.into_values().collect()));
        self.store(new, true)
    }

    /// Looks at the counts, as is done every second: writes the file if they come up to what it says, and returns the
    /// keys that have passed half of their limit or all of it since the last look.
    ///
    /// # Errors
    /// If the file cannot be written; with the keys nevertheless.
    pub(crate) fn look(&mut self, keys: &SymmetricKeys) -> (Vec<Worn>, Result<(), Refused>) {
        self.settle();
        let (mut worn, mut is_behind) = (Vec::new(), self.is_stale);
        for (entry, key) in self.entries.iter_mut().zip(keys.iter()) {
            let uses = entry.uses(key);
            is_behind |=
                uses.count.saturating_add(entry.margin(key, uses.count - entry.last) / 2) > entry.stored;
            let Some(limit) = entry.limit else { continue };
            let halves = (uses.count / (limit / 2)).min(2);
            if halves > entry.warned_halves {
                entry.warned_halves = halves;
                worn.push(Worn { id: key.id(), algorithm: key.algorithm(), uses, limit });
            }
        }
        let stored = if is_behind { self.store(keys, true) } else { Ok(()) };
        for (entry, key) in self.entries.iter_mut().zip(keys.iter()) {
            entry.last = entry.uses(key).count;
        }
        (worn, stored)
    }

    /// Writes the counts themselves. Nothing may use the keys any more.
    ///
    /// # Errors
    /// If the file cannot be written: then what it said before holds.
    pub(crate) fn close(mut self, keys: &SymmetricKeys) -> Result<(), Refused> {
        self.settle();
        self.store(keys, false)
    }

    /// The uses of each key of the set in force, in its order.
    pub(crate) fn before(&self) -> Vec<Uses> {
        self.entries.iter().map(|entry| entry.before).collect()
    }

    /// Removes the keys that a change has put out of use.
    fn settle(&mut self) {
        let Some((set, entries)) = self.departing.take() else { return };
        self.is_stale |= !entries.is_empty();
        for entry in entries {
            let uses = set.find(entry.name.id).map_or(entry.before, |key| entry.uses(key));
            self.absent.insert(entry.name, uses);
        }
    }

    fn store(&mut self, keys: &SymmetricKeys, ahead: bool) -> Result<(), Refused> {
        let mut text = format!("{MAGIC}\n");
        let mut say = |name: &Name, uses: Uses| {
            let kind = if uses.is_exact { "exact" } else { "most" };
            writeln!(text, "{} {} {} {} {kind}", name.id, name.algorithm, name.check, uses.count)
                .expect("writing to a string cannot fail");
        };
        let mut written = Vec::with_capacity(self.entries.len());
        for (entry, key) in self.entries.iter().zip(keys.iter()) {
            let mut uses = entry.uses(key);
            if ahead {
                let margin = entry.margin(key, uses.count - entry.last);
                uses.count = uses.count.saturating_add(margin);
                uses.is_exact &= margin == 0;
            }
            written.push(uses.count);
            say(&entry.name, uses);
        }
        let departing = self.departing.iter().flat_map(|(set, entries)| {
            entries.iter().filter_map(|entry| Some((&entry.name, entry.uses(set.find(entry.name.id)?))))
        });
        // Workers may still use what departs: its margin stays until the next look.
        let departing = departing.map(|(name, uses)| {
            (name, Uses { count: uses.count.saturating_add(MARGIN_MIN), is_exact: false })
        });
        let absent = self.absent.iter().map(|(name, &uses)| (name, uses));
        departing.chain(absent).take(SYMMETRIC_KEY_COUNT_MAX).for_each(|(name, uses)| say(name, uses));
        self.is_stale = true;
        replace(&path(&self.directory), text.as_bytes(), None)?;
        self.is_stale = false;
        for (entry, count) in self.entries.iter_mut().zip(written) {
            entry.stored = count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
