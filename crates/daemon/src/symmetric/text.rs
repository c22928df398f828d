//! The text of a key file: octets in, keys or the line of the first mistake out. A line is split in `symmetric::entry`,
//! and its key decoded in `symmetric::secret`.
//!
//! chrony's lines are `ID [TYPE] KEY`, with MD5 as the type that is not named, and `HEX:` or `ASCII:` before the key;
//! a key without either is text. ntpd's are `ID TYPE KEY [SERVERS] [# COMMENT]`; a key of up to 20 characters is text,
//! a longer one hexadecimal. Where one line means different keys to the two, what else is in the file decides whose it
//! is, or what the reader says; if nothing does, ntpd's reading holds and a warning says so.
//!
//! A key of a type that another program knows and this one does not is not a mistake: a warning names it, and its id
//! has no key. A type that no program knows is a typing error, and refused.
//!
//! Deliberately absent: what these programs do silently. Nothing is padded or truncated, and no line is skipped.

use std::collections::HashMap;

use authentick_proto::limits::SYMMETRIC_KEY_COUNT_MAX;

pub use super::entry::LINE_SIZE_MAX;
use super::entry::{Entry, entry};
use super::keys::{Dialect, Foreign, Key, Keys, Mistake, Warning};
use super::notes::{self, Note};
use super::{secret, types};
use crate::guarded::without_mark;

/// Reads a file.
///
/// # Errors
/// The first mistake in it.
pub fn parse(octets: &[u8], format: Option<Dialect>) -> Result<Keys, Mistake> {
    let Lines { entries, mut noted, dialect } = Lines::read(octets, format)?;
    let mut keys = Keys { dialect, ..Keys::default() };
    let mut lines: HashMap<u32, usize> = HashMap::new();
    for entry in entries {
        let (line, id) = (entry.line, entry.id);
        let at = |(problem, remedy)| Mistake { line, problem, remedy };
        if let Some(first) = lines.insert(id, line) {
            let problem = format!("key {id} stands on line {first} already");
            return Err(at((problem, "give one of them another id, or remove it".to_owned())));
        }
        let note = noted.remove(&id).map(|(_, note)| note);
        if note.and_then(|note| note.retired).is_some() {
            let problem = format!("key {id} is back, and was retired by a note");
            return Err(at((problem, "give the key another id, or remove the note".to_owned())));
        }
        let algorithm = match entry.algorithm {
            Ok(algorithm) => algorithm,
            Err(name) => {
                keys.foreign.push(Foreign { id, name, line });
                let problem = format!(
                    "cannot be used, as keys of type {name} are not implemented here; remove the line, or {}",
                    types::REMEDY
                );
                keys.warnings.push(Warning { line, id, problem });
                continue;
            }
        };
        let key = secret::key(&entry, algorithm, format, dialect, &mut keys.warnings).map_err(at)?;
        let note = note.unwrap_or(Note { id, ..Note::default() });
        keys.keys.push(Key { key, servers: entry.servers, line, note });
    }
    keys.retired = noted.into_values().map(|(_, note)| note).filter(|note| note.retired.is_some()).collect();
    keys.retired.sort_by_key(|note| note.id);
    Ok(keys)
}

/// The lines of a file, before any key is understood.
struct Lines<'a> {
    entries: Vec<Entry<'a>>,
    /// What notes say of an id, and on which line.
    noted: HashMap<u32, (usize, Note)>,
    dialect: Option<Dialect>,
}

impl<'a> Lines<'a> {
    fn read(octets: &'a [u8], format: Option<Dialect>) -> Result<Self, Mistake> {
        let mut entries: Vec<Entry<'a>> = Vec::new();
        let mut noted: HashMap<u32, (usize, Note)> = HashMap::new();
        let mut shows = Vec::new();
        for (index, line) in without_mark(octets).split(|&octet| octet == b'\n').enumerate() {
            let at = |(problem, remedy)| Mistake { line: index + 1, problem, remedy };
            let text = line.trim_ascii_start();
            match text.first() {
                None => continue,
                Some(b'#') => {
                    if let Some(note) = notes::parse(text) {
                        let note = note.map_err(|problem| {
                            at((problem.to_owned(), "mend the note, or remove its line".to_owned()))
                        })?;
                        if let Some((first, _)) = noted.insert(note.id, (index + 1, note)) {
                            let problem =
                                format!("a second note on key {}, after that on line {first}", note.id);
                            return Err(at((problem, "remove one of them".to_owned())));
                        }
                    }
                    continue;
                }
                Some(b'!' | b';' | b'%') => {
                    shows.push(Dialect::Chrony);
                    continue;
                }
                Some(_) => {}
            }
            let entry = entry(line, index + 1, format).map_err(at)?;
            shows.extend(&entry.shows);
            entries.push(entry);
            if entries.len() > SYMMETRIC_KEY_COUNT_MAX {
                return Err(at((
                    format!("more than {SYMMETRIC_KEY_COUNT_MAX} keys"),
                    "split the file".to_owned(),
                )));
            }
        }
        let shown = || shows.first().copied().filter(|first| shows.iter().all(|other| other == first));
        Ok(Lines { entries, noted, dialect: format.or_else(shown) })
    }
}

#[cfg(test)]
mod tests;
