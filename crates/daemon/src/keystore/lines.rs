//! The lines that the texts of all kinds of keys have in common.
//!
//! ```text
//! authentick-cookie-keys 1
//! rotated 1763719200
//! current 5f3a0c11 1763719200 <hexadecimal digits>
//! retired 5f3a0c10 1763632800 <hexadecimal digits>
//! ```
//!
//! After the first line there are words with a value, and keys: role, identifier, when it was made in Unix seconds, and
//! its octets. Retired keys stand with the youngest first.

use std::fmt::Write as _;

use authentick_proto::generations::{KeySetError, Role};
use zeroize::Zeroizing;

use super::KeyKind;
use super::error::StoreError;
use crate::guarded::without_mark;

/// The keys that a text describes, which is stored at `place`.
pub(crate) fn parse<K: KeyKind>(place: &str, octets: &[u8]) -> Result<K, StoreError> {
    let text = std::str::from_utf8(without_mark(octets))
        .map_err(|_| StoreError::Line(place.to_owned(), 0, "file is not text"))?;
    K::parse(Lines::new(place, text, K::MAGIC)?)
}

/// One line of a key.
struct KeyLine<'t> {
    number: usize,
    role: Role,
    id: u32,
    created: u64,
    /// Hexadecimal digits.
    secret: &'t str,
}

/// The lines of a text after the first.
pub struct Lines<'t> {
    place: String,
    count: usize,
    words: Vec<(usize, &'t str, &'t str)>,
    keys: Vec<KeyLine<'t>>,
}

impl<'t> Lines<'t> {
    /// The lines of `text`, which is stored at `place` and begins with the line `magic`.
    ///
    /// # Errors
    /// On the first line that is neither a key nor a word with a value.
    fn new(place: &str, text: &'t str, magic: &str) -> Result<Self, StoreError> {
        let mut lines = Lines { place: place.to_owned(), count: 0, words: Vec::new(), keys: Vec::new() };
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            lines.count = number;
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match (index, &words[..]) {
                (0, _) if line == magic => {}
                (0, [kind, version])
                    if magic.starts_with(&format!("{kind} ")) && version.parse::<u32>().is_ok() =>
                {
                    return Err(StoreError::Version(place.to_owned()));
                }
                (0, _) => {
                    return Err(lines.wrong(number, "the file does not begin with its kind and version"));
                }
                (_, [word, value]) => lines.words.push((number, word, value)),
                (_, [role, id, created, secret]) => {
                    let id =
                        u32::from_str_radix(id, 16).map_err(|_| lines.wrong(number, "no key identifier"))?;
                    let created = created.parse().map_err(|_| lines.wrong(number, "no number of seconds"))?;
                    let role = role_of(role).ok_or_else(|| lines.wrong(number, "no such role of a key"))?;
                    let is_second = role != Role::Retired && lines.keys.iter().any(|key| key.role == role);
                    if is_second {
                        return Err(lines.wrong(number, "a second key of this role"));
                    }
                    lines.keys.push(KeyLine { number, role, id, created, secret });
                }
                _ => return Err(lines.wrong(number, "neither a key nor a word with a value")),
            }
        }
        Ok(lines)
    }

    /// What `read` makes of the value of `word`; `problem` says what is wrong with it, `missing` that there is none.
    pub(super) fn value<T>(
        &self,
        word: &str,
        read: impl Fn(&str) -> Option<T>,
        problem: &'static str,
        missing: &'static str,
    ) -> Result<T, StoreError> {
        let found = self.words.iter().find(|(_, known, _)| *known == word);
        let (number, _, value) = found.ok_or_else(|| self.wrong(self.count, missing))?;
        read(value).ok_or_else(|| self.wrong(*number, problem))
    }

    /// The value of `word` as a number of seconds; `missing` says that there is none.
    pub(super) fn seconds(&self, word: &str, missing: &'static str) -> Result<u64, StoreError> {
        self.value(word, |text| text.parse().ok(), "no number of seconds", missing)
    }

    /// The value of `word` as an identifier, if the word is there.
    pub(super) fn identifier(&self, word: &str) -> Result<Option<u32>, StoreError> {
        let Some((number, _, value)) = self.words.iter().find(|(_, known, _)| *known == word) else {
            return Ok(None);
        };
        let id = u32::from_str_radix(value, 16).map_err(|_| self.wrong(*number, "no key identifier"))?;
        Ok(Some(id))
    }

    /// Fails on a word that is none of `known`.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), StoreError> {
        match self.words.iter().find(|(_, word, _)| !known.contains(word)) {
            Some((number, ..)) => Err(self.wrong(*number, "neither a key nor a time of rotation")),
            None => Ok(()),
        }
    }

    /// The keys of `role`, as `new` makes them of identifier, time and octets; `problem` says what is wrong with one's
    /// octets.
    pub(super) fn keys<K, const N: usize>(
        &self,
        role: Role,
        new: impl Fn(u32, u64, &[u8; N]) -> K,
        problem: &'static str,
    ) -> Result<Vec<K>, StoreError> {
        let read = |key: &KeyLine<'_>| Some(new(key.id, key.created, &*octets(key.secret)?));
        let keys = self.keys.iter().filter(|key| key.role == role);
        keys.map(|key| read(key).ok_or_else(|| self.wrong(key.number, problem))).collect()
    }

    /// The one key among `keys`; `missing` says that there is none.
    pub(super) fn one<K>(&self, keys: Vec<K>, missing: &'static str) -> Result<K, StoreError> {
        keys.into_iter().next().ok_or_else(|| self.wrong(self.count, missing))
    }

    /// Keys that make no set.
    pub(super) fn no_set(&self, error: KeySetError) -> StoreError {
        StoreError::Set(self.place.clone(), error)
    }

    fn wrong(&self, number: usize, problem: &'static str) -> StoreError {
        StoreError::Line(self.place.clone(), number, problem)
    }
}

/// Writes the line of a key.
pub(super) fn emit_key(
    text: &mut String,
    role: Role,
    id: u32,
    created: u64,
    secret: &[u8],
) -> std::fmt::Result {
    write!(text, "{} {id:08x} {created} ", role_name(role))?;
    emit_octets(text, secret)
}

/// Writes octets as hexadecimal digits, and ends the line.
pub(crate) fn emit_octets(text: &mut String, octets: &[u8]) -> std::fmt::Result {
    octets.iter().try_for_each(|octet| write!(text, "{octet:02x}"))?;
    writeln!(text)
}

/// `N` octets in hexadecimal digits.
pub(crate) fn octets<const N: usize>(text: &str) -> Option<Zeroizing<[u8; N]>> {
    let mut octets = Zeroizing::new([0; N]);
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (octet, digits) in octets.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *octet = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(octets)
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Current => "current",
        Role::Future => "future",
        Role::Retired => "retired",
    }
}

fn role_of(name: &str) -> Option<Role> {
    [Role::Current, Role::Future, Role::Retired].into_iter().find(|&role| role_name(role) == name)
}
