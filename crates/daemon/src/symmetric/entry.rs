//! The words of a line with a key: id, type, the key as it is written, servers.

use authentick_crypto::mac::MacAlgorithm;
use authentick_proto::prefix::{Prefix, PrefixSet};

use super::keys::Dialect;
use super::types::{self, Type, is_ours};

/// Octets of a line. chrony reads no longer ones.
pub const LINE_SIZE_MAX: usize = 2047;
/// A line with a key, before the key itself is understood.
pub(super) struct Entry<'a> {
    pub(super) line: usize,
    pub(super) id: u32,
    /// The algorithm, or the name of one that is not implemented here.
    pub(super) algorithm: Result<MacAlgorithm, &'static str>,
    /// Whose line it is by the name of its type alone.
    pub(super) named: Option<Dialect>,
    pub(super) word: &'a [u8],
    pub(super) servers: Option<PrefixSet>,
    /// Whose line it is by anything in it.
    pub(super) shows: Vec<Dialect>,
}

/// A problem and its remedy, before the line is known.
pub(super) type Wrong = (String, String);

pub(super) fn wrong<T>(problem: impl Into<String>, remedy: impl Into<String>) -> Result<T, Wrong> {
    Err((problem.into(), remedy.into()))
}

/// Reads the line with this number, which is not empty.
pub(super) fn entry(line: &[u8], number: usize, format: Option<Dialect>) -> Result<Entry<'_>, Wrong> {
    if line.len() > LINE_SIZE_MAX {
        let problem = format!("{} octets, of which chrony reads {LINE_SIZE_MAX} and ntpd 511", line.len());
        return wrong(problem, "write a shorter key");
    }
    if line.ends_with(b"\r") {
        let problem = "the line ends with a carriage return, which ntpd takes for a part of the key";
        return wrong(problem, "remove it: sed -i 's/\\r$//' FILE");
    }
    let words: Vec<&[u8]> =
        line.split(|octet| matches!(octet, b' ' | b'\t')).filter(|word| !word.is_empty()).collect();
    let (&id, rest) = words.split_first().expect("lines without a word are skipped");
    let id = key_id(id)?;
    let (algorithm, named, word, rest) = match rest {
        [] => return wrong(format!("key {id}: neither type nor key"), "write ID TYPE KEY"),
        [only] => {
            if Type::find(only).is_some() {
                return wrong(format!("key {id}: a type and no key"), "write the key after the type");
            }
            (Ok(MacAlgorithm::Md5), Some(Dialect::Chrony), *only, &[][..])
        }
        [name, word, rest @ ..] => match Type::find(name) {
            Some(Type::Known(algorithm, named)) => (Ok(algorithm), named, *word, rest),
            Some(Type::Foreign(name)) => (Err(name), None, *word, rest),
            None => {
                return wrong(format!("key {id}: the second word is no type that is known"), types::REMEDY);
            }
        },
    };
    if word.contains(&b'#') {
        let problem = format!("key {id}: a # in the key, where ntpd ends it and chrony does not");
        return wrong(problem, "write the key as HEX:, or choose another");
    }
    if !word.iter().all(u8::is_ascii_graphic) {
        let problem = format!("key {id}: something in the key is no printable ASCII character");
        return wrong(problem, "write the key as HEX:");
    }
    let mut shows: Vec<Dialect> = named.into_iter().collect();
    if prefix(word).is_some() && !algorithm.is_ok_and(is_ours) {
        shows.push(Dialect::Chrony);
    }
    if !rest.is_empty() {
        if format == Some(Dialect::Chrony) {
            let problem = format!("key {id}: words after the key, with which chrony skips the line");
            return wrong(problem, "remove them; comments stand on lines of their own");
        }
        shows.push(Dialect::Ntp);
    }
    let servers = match rest {
        [] => None,
        [comment, ..] if comment.starts_with(b"#") => None,
        [list] => Some(servers(id, list)?),
        [list, comment, ..] if comment.starts_with(b"#") => Some(servers(id, list)?),
        _ => {
            let problem = format!("key {id}: more words than ID, TYPE, KEY and a list of servers");
            return wrong(problem, "write a key with spaces as HEX:, and # before a comment");
        }
    };
    Ok(Entry { line: number, id, algorithm, named, word, servers, shows })
}

/// The first word of a line. It is not repeated in messages: who forgets the id may have begun with the key.
fn key_id(word: &[u8]) -> Result<u32, Wrong> {
    if !word.iter().all(u8::is_ascii_digit) {
        return wrong("the first word is no key id", "write ID TYPE KEY, with an id from 1 to 4294967295");
    }
    // Digits alone that are no u32 are too many.
    let id = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
    let problem = match id {
        Some(0) => "0 is no key id: on the wire it says that there is no key",
        Some(id) => return Ok(id),
        None => "the key id is above 4294967295 and has no room on the wire",
    };
    wrong(problem, "choose one from 1 to 4294967295")
}

/// The id of the key on a line of a file that has been read; `None` if there is no key on it.
pub(super) fn line_id(line: &[u8]) -> Option<u32> {
    let word = line.split(|octet| matches!(octet, b' ' | b'\t')).find(|word| !word.is_empty())?;
    key_id(word).ok()
}

/// ntpd's list of those who may prove with the key that they are a server.
fn servers(id: u32, list: &[u8]) -> Result<PrefixSet, Wrong> {
    let parse = |item: &[u8]| std::str::from_utf8(item).ok().and_then(|item| item.parse().ok());
    let prefixes: Option<Vec<Prefix>> = list.split(|&octet| octet == b',').map(parse).collect();
    match prefixes {
        Some(prefixes) => Ok(PrefixSet::new(prefixes)),
        None => wrong(
            format!("key {id}: what follows the key is no list of servers"),
            "write addresses as in 192.0.2.1,2001:db8::/32, or # before a comment, or a key with spaces as HEX:",
        ),
    }
}

/// A key with the word before it that says how it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefixed<'a> {
    Hex(&'a [u8]),
    Ascii(&'a [u8]),
}

impl Prefixed<'_> {
    pub(super) const HEX: &'static str = "HEX:";
}

pub(super) fn prefix(word: &[u8]) -> Option<Prefixed<'_>> {
    match word.strip_prefix(Prefixed::HEX.as_bytes()) {
        Some(digits) => Some(Prefixed::Hex(digits)),
        None => word.strip_prefix(b"ASCII:").map(Prefixed::Ascii),
    }
}
