//! Changes to a key file: a key is made, takes another's place, or is retired. All other lines stay as they are.
//!
//! The text is changed in memory and parsed before it is stored, so an unreadable file is never written. Rotation has
//! an overlap: the old key is accepted beside the new one until the moment in its note. A retired key leaves a note
//! behind, because its id must not be given to another key while somebody may still use it.

use std::collections::HashSet;

use authentick_crypto::Entropy;
use authentick_crypto::mac::MacAlgorithm;
use authentick_proto::symmetric::SALT_SIZE;
use thiserror::Error;
use zeroize::Zeroizing;

use super::entry::{Prefixed, line_id};
use super::file::{KeyFile, KeyFileError};
use super::keys::{Dialect, Key, Keys, Standing};
use super::notes::{self, Note};
use super::secret::{NTP_KEY_SIZE_MAX, NTP_TEXT_SIZE_MAX};
use super::types::Type;
use crate::guarded::without_mark;

/// The highest id that ntpd and NTPsec read.
const NTP_ID_MAX: u32 = 65_535;

/// A key to be made.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Its id; `None` for the lowest that is free.
    pub id: Option<u32>,
    /// Its algorithm.
    pub algorithm: MacAlgorithm,
    /// Whether nonces have a salt. For GMAC alone.
    pub salt: bool,
}

/// Why a file was not changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EditError {
    /// It cannot be read, or not be written.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// No key has this id.
    #[error("there is no key {0}")]
    NoKey(u32),
    /// The key with this id is of a type that is not implemented here.
    #[error("key {0} is of type {1}, which is not implemented here")]
    Foreign(u32, &'static str),
    /// A key has this id.
    #[error("there is a key {0}")]
    Taken(u32),
    /// A key had this id, and was retired.
    #[error("there was a key {0}, and somebody may still have it")]
    Retired(u32),
    /// 0, or above what the readers of the file accept: their maximum.
    #[error("{0} is no key id for this file")]
    Id(u32, u32),
    /// This key has been replaced by that one.
    #[error("key {0} has been replaced by key {1}")]
    Replaced(u32, u32),
    /// This key will retire without a successor.
    #[error("key {0} has its end already")]
    Ending(u32),
    /// This algorithm takes no salt.
    #[error("a key of {0} has no salt")]
    NoSalt(MacAlgorithm),
    /// There is no id left.
    #[error("no key id is left")]
    Full,
}

impl EditError {
    /// What the operator can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            EditError::File(error) => error.remedy(),
            EditError::NoKey(_) => "see: authentick keys symmetric list".to_owned(),
            EditError::Foreign(..) => "retire it, and generate another".to_owned(),
            EditError::Taken(_) | EditError::Retired(_) => {
                "choose another id, or none for the lowest that is free".to_owned()
            }
            EditError::Id(_, most) => format!("choose one from 1 to {most}"),
            EditError::Replaced(_, next) => format!("rotate key {next}, or retire the old one"),
            EditError::Ending(_) => "retire it".to_owned(),
            EditError::NoSalt(_) => format!("only {} may have one", MacAlgorithm::Gmac128),
            EditError::Full => "begin another file".to_owned(),
        }
    }
}

/// Makes a key, and the file if there is none, which is then written as `dialect` says. Returns what the file holds
/// then, and the new id.
///
/// # Errors
/// If the order cannot be carried out, or the file cannot be changed; it is then as it was.
pub fn generate(
    file: &KeyFile,
    order: Order,
    dialect: Dialect,
    now: u64,
    entropy: &mut Entropy,
) -> Result<(Keys, u32), EditError> {
    let _lock = file.lock()?;
    let text = match file.read() {
        Err(error) if error.is_missing() => Zeroizing::default(),
        text => text?,
    };
    let keys = file.parse(&text)?;
    let mut draft = Draft::new(&text, &keys, dialect);
    let id = draft.make(&keys, order, 1, now, entropy)?;
    Ok((draft.store(file)?, id))
}

/// Makes a key of the same type as the one with this id, which is accepted for `overlap_seconds` more. Returns what the
/// file holds then, and the new id.
///
/// # Errors
/// As [`generate`], and if there is no such key or it has been replaced before.
pub fn rotate(
    file: &KeyFile,
    id: u32,
    new_id: Option<u32>,
    overlap_seconds: u64,
    now: u64,
    entropy: &mut Entropy,
) -> Result<(Keys, u32), EditError> {
    let _lock = file.lock()?;
    let text = file.read()?;
    let keys = file.parse(&text)?;
    let old = known(&keys, id)?;
    if old.standing(now) != Standing::Current {
        let replaced = |next| EditError::Replaced(id, next);
        return Err(old.note.replaced_by.map_or(EditError::Ending(id), replaced));
    }
    let order = Order { id: new_id, algorithm: old.algorithm(), salt: old.key.salt().is_some() };
    let mut draft = Draft::new(&text, &keys, Dialect::Chrony);
    let next = draft.make(&keys, order, id, now, entropy)?;
    let retires = Some(now.saturating_add(overlap_seconds));
    draft.note(Note { replaced_by: Some(next), retires, ..old.note });
    Ok((draft.store(file)?, next))
}

/// Removes the key with this id. Returns what the file holds then.
///
/// # Errors
/// If there is no such key, or the file cannot be changed; it is then as it was.
pub fn retire(file: &KeyFile, id: u32, now: u64) -> Result<Keys, EditError> {
    let _lock = file.lock()?;
    let text = file.read()?;
    let keys = file.parse(&text)?;
    // A key that cannot be used here can go like any other.
    let note = match keys.find_foreign(id) {
        Some(_) => Note { id, ..Note::default() },
        None => known(&keys, id)?.note,
    };
    let mut draft = Draft::new(&text, &keys, Dialect::Chrony);
    draft.note(Note { retired: Some(now), ..note });
    draft.remove(id);
    draft.store(file)
}

/// The key with this id, if it can be used here.
fn known(keys: &Keys, id: u32) -> Result<&Key, EditError> {
    match (keys.find(id), keys.find_foreign(id)) {
        (Some(key), _) => Ok(key),
        (None, Some(foreign)) => Err(EditError::Foreign(id, foreign.name)),
        (None, None) => Err(EditError::NoKey(id)),
    }
}

/// A file's text while it is changed.
struct Draft {
    lines: Vec<Zeroizing<Vec<u8>>>,
    dialect: Dialect,
}

impl Draft {
    /// `otherwise`: how a key is written if the file does not show whose it is.
    fn new(text: &[u8], keys: &Keys, otherwise: Dialect) -> Self {
        let text = without_mark(text);
        let lines = text.strip_suffix(b"\n").unwrap_or(text).split(|&octet| octet == b'\n');
        let lines = lines.map(|line| Zeroizing::new(line.to_vec())).collect();
        Draft {
            lines: if text.is_empty() { Vec::new() } else { lines },
            dialect: keys.dialect.unwrap_or(otherwise),
        }
    }

    /// Adds a fresh key; the lowest free id from `from` on is its own if the order names none.
    fn make(
        &mut self,
        keys: &Keys,
        order: Order,
        from: u32,
        now: u64,
        entropy: &mut Entropy,
    ) -> Result<u32, EditError> {
        let most = match self.dialect {
            Dialect::Chrony => u32::MAX,
            Dialect::Ntp => NTP_ID_MAX,
        };
        let is_retired = |id| keys.retired.iter().any(|note| note.id == id);
        let taken: HashSet<u32> = keys
            .keys
            .iter()
            .map(Key::id)
            .chain(keys.foreign.iter().map(|key| key.id))
            .chain(keys.retired.iter().map(|note| note.id))
            .collect();
        let id = match order.id {
            Some(id) if keys.find(id).is_some() || keys.find_foreign(id).is_some() => {
                return Err(EditError::Taken(id));
            }
            Some(id) if is_retired(id) => return Err(EditError::Retired(id)),
            Some(id) if !(1..=most).contains(&id) => return Err(EditError::Id(id, most)),
            Some(id) => id,
            None => (from..=most)
                .chain(1..from.min(most))
                .find(|id| !taken.contains(id))
                .ok_or(EditError::Full)?,
        };
        if order.salt && order.algorithm != MacAlgorithm::Gmac128 {
            return Err(EditError::NoSalt(order.algorithm));
        }
        let mut octets = Zeroizing::new(vec![0; fresh_size(order.algorithm)]);
        entropy.fill(&mut octets);
        let salt = order.salt.then(|| {
            let mut salt = [0; SALT_SIZE];
            entropy.fill(&mut salt);
            salt
        });
        let line = line(id, order.algorithm, &octets, salt, self.dialect)
            .expect("fresh keys have sizes that both programs take");
        self.note(Note { id, made: Some(now), ..Note::default() });
        self.lines.push(line);
        Ok(id)
    }

    /// Replaces the note of its key; without one, puts it before the key, or else at the end.
    fn note(&mut self, note: Note) {
        let line = Zeroizing::new(note.emit().into_bytes());
        let old = self
            .lines
            .iter()
            .position(|line| matches!(notes::parse(line), Some(Ok(other)) if other.id == note.id));
        match (old, self.key(note.id)) {
            (Some(old), _) => self.lines[old] = line,
            (None, Some(key)) => self.lines.insert(key, line),
            (None, None) => self.lines.push(line),
        }
    }

    fn remove(&mut self, id: u32) {
        let index = self.key(id).expect("the key was read from these lines");
        self.lines.remove(index);
    }

    /// Where the key with this id stands.
    fn key(&self, id: u32) -> Option<usize> {
        self.lines.iter().position(|line| line_id(line) == Some(id))
    }

    fn store(self, file: &KeyFile) -> Result<Keys, EditError> {
        // Room for all, so that no copy of a secret is left behind by growth.
        let size = self.lines.iter().map(|line| line.len() + 1).sum();
        let mut text = Zeroizing::new(Vec::with_capacity(size));
        for line in self.lines {
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
        let keys = file.parse(&text)?;
        file.store(&text)?;
        Ok(keys)
    }
}

/// Octets of a fresh key: what the algorithm takes; for a digest as many as it has itself, up to what ntpd reads.
fn fresh_size(algorithm: MacAlgorithm) -> usize {
    let sizes = algorithm.key_sizes();
    match sizes.start() == sizes.end() {
        true => *sizes.start(),
        false => algorithm.tag_size().min(NTP_KEY_SIZE_MAX),
    }
}

/// A line of a key file, without its end. `None` if the program of `dialect` takes no such key: ntpd reads none of more
/// than 32 octets, and one of up to 20 digits as text.
#[must_use]
pub fn line(
    id: u32,
    algorithm: MacAlgorithm,
    octets: &[u8],
    salt: Option<[u8; SALT_SIZE]>,
    dialect: Dialect,
) -> Option<Zeroizing<Vec<u8>>> {
    let is_bare = match dialect {
        Dialect::Chrony => false,
        Dialect::Ntp => salt.is_none(),
    };
    if is_bare && !(NTP_TEXT_SIZE_MAX / 2 + 1..=NTP_KEY_SIZE_MAX).contains(&octets.len()) {
        return None;
    }
    let name = Type::name(algorithm, dialect);
    let prefix = if is_bare { "" } else { Prefixed::HEX };
    let opening = format!("{id} {name} {prefix}");
    let mut line = Zeroizing::new(Vec::with_capacity(opening.len() + 2 * octets.len() + 1 + 2 * SALT_SIZE));
    line.extend_from_slice(opening.as_bytes());
    extend_hex(&mut line, octets);
    if let Some(salt) = salt {
        line.push(b':');
        extend_hex(&mut line, &salt);
    }
    Some(line)
}

fn extend_hex(out: &mut Vec<u8>, octets: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for octet in octets {
        out.push(DIGITS[usize::from(octet >> 4)]);
        out.push(DIGITS[usize::from(octet & 15)]);
    }
}

#[cfg(test)]
mod tests;
