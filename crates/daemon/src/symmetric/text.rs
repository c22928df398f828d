//! The text of a key file: octets in, keys or the line of the first mistake out.
//!
//! chrony's lines are `ID [TYPE] KEY`, with MD5 as the type that is not named, and `HEX:` or `ASCII:` before the key;
//! a key without either is text. ntpd's are `ID TYPE KEY [SERVERS] [# COMMENT]`; a key of up to 20 characters is text,
//! a longer one hexadecimal. Where one line means different keys to the two, what else is in the file decides whose it
//! is, or the reader's [`Format`]; if nothing does, ntpd's reading holds and a warning says so.
//!
//! A key of a type that another program knows and this one does not is no mistake: it is named in a warning, and its id
//! stays without a key. A type that nobody knows is a slip of the pen, and refused.
//!
//! Deliberately absent: what these programs do in silence. Nothing is padded, nothing cut, no line skipped.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

use authentick_crypto::mac::{MacAlgorithm, MacKey};
use authentick_proto::limits::SYMMETRIC_KEY_COUNT_MAX;
use authentick_proto::prefix::{Prefix, PrefixSet};
use authentick_proto::symmetric::{SALT_SIZE, SymmetricKey};
use zeroize::Zeroizing;

use super::notes::{self, Note};
use super::types::{self, Type};

/// Octets of a line. chrony reads no longer ones.
pub const LINE_SIZE_MAX: usize = 2047;
/// ntpd reads a key of more characters as hexadecimal.
pub(super) const NTP_TEXT_SIZE_MAX: usize = 20;
/// ntpd cuts a longer key.
pub(super) const NTP_KEY_SIZE_MAX: usize = 32;
/// chrony warns of shorter keys: 80 bits.
const SOUND_SIZE_MIN: usize = 10;

/// A program whose way of writing keys it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// chrony.keys.
    Chrony,
    /// ntp.keys.
    Ntp,
}

/// Whose file it is, as far as the reader knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The file shows it, or it makes no difference.
    #[default]
    Auto,
    /// chrony's.
    Chrony,
    /// ntpd's.
    Ntp,
}

/// What is wrong with a file, and where. Holds nothing of what stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1; 0 if the file as a whole is meant.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}; {}", self.problem, self.remedy),
            line => write!(f, "line {line}: {}; {}", self.problem, self.remedy),
        }
    }
}

impl std::error::Error for Mistake {}

/// How a key stands at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In use.
    Current,
    /// Another has taken its place; still accepted.
    Replaced,
    /// Not accepted any more; its line should go.
    Expired,
}

impl State {
    /// Its name in lists.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            State::Current => "current",
            State::Replaced => "replaced",
            State::Expired => "expired",
        }
    }
}

/// A key of the file.
#[derive(Debug)]
pub struct Key {
    /// The key, with its id.
    pub key: SymmetricKey,
    /// Which servers are trusted with the key, if ntpd's list says so. It says nothing of clients.
    pub servers: Option<PrefixSet>,
    /// Where it stands, from 1.
    pub line: usize,
    /// What the notes say of it.
    pub note: Note,
}

impl Key {
    /// Its id, never 0.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.key.id()
    }

    /// Its algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> MacAlgorithm {
        self.key.algorithm()
    }

    /// How it stands at `now`, in Unix seconds.
    #[must_use]
    pub const fn state(&self, now: u64) -> State {
        match (self.note.retires, self.note.replaced_by) {
            (Some(end), _) if end <= now => State::Expired,
            (None, None) => State::Current,
            _ => State::Replaced,
        }
    }

    /// Whether a server at `address` may prove itself with this key.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.contains(address))
    }
}

/// A key of a type that is not implemented here. Its id is taken, and a request under it is one under an unknown key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Its id, never 0.
    pub id: u32,
    /// The name of its type.
    pub name: &'static str,
    /// Where it stands, from 1.
    pub line: usize,
}

/// What a file holds.
#[derive(Debug, Default)]
pub struct Keys {
    /// The keys, as they stand in the file. No two have one id.
    pub keys: Vec<Key>,
    /// Keys that cannot be used here. None of their ids is among `keys`.
    pub foreign: Vec<Foreign>,
    /// Ids whose keys are gone.
    pub retired: Vec<Note>,
    /// Whose file it is, if something in it shows that.
    pub dialect: Option<Dialect>,
    /// What is allowed and unwise, or read in one of two ways: a sentence each, with the line.
    pub warnings: Vec<String>,
}

impl Keys {
    /// The key with this id.
    #[must_use]
    pub fn find(&self, id: u32) -> Option<&Key> {
        self.keys.iter().find(|key| key.id() == id)
    }

    /// The keys that are accepted at `now`, in Unix seconds.
    pub fn accepted(&self, now: u64) -> impl Iterator<Item = &Key> {
        self.keys.iter().filter(move |key| key.state(now) != State::Expired)
    }

    /// The same, for a set of them.
    pub fn into_accepted(self, now: u64) -> impl Iterator<Item = SymmetricKey> {
        self.keys.into_iter().filter(move |key| key.state(now) != State::Expired).map(|key| key.key)
    }

    /// The key with this id whose type is not implemented here.
    #[must_use]
    pub fn find_foreign(&self, id: u32) -> Option<&Foreign> {
        self.foreign.iter().find(|key| key.id == id)
    }

    /// Takes out the key with this id.
    #[must_use]
    pub fn take(&mut self, id: u32) -> Option<Key> {
        let index = self.keys.iter().position(|key| key.id() == id)?;
        Some(self.keys.swap_remove(index))
    }
}

/// Whether chrony and ntpd know no such type.
pub(super) const fn is_ours(algorithm: MacAlgorithm) -> bool {
    match algorithm {
        MacAlgorithm::HmacMd5
        | MacAlgorithm::HmacSha224
        | MacAlgorithm::Gmac128
        | MacAlgorithm::GmacSiv128
        | MacAlgorithm::Poly1305 => true,
        MacAlgorithm::Md5
        | MacAlgorithm::Sha1
        | MacAlgorithm::Sha256
        | MacAlgorithm::Sha384
        | MacAlgorithm::Sha512
        | MacAlgorithm::Cmac128
        | MacAlgorithm::Cmac256 => false,
    }
}

/// A line with a key, before the key itself is understood.
struct Entry<'a> {
    line: usize,
    id: u32,
    /// The algorithm, or the name of one that is not implemented here.
    algorithm: Result<MacAlgorithm, &'static str>,
    /// Whose line it is by the name of its type alone.
    named: Option<Dialect>,
    word: &'a [u8],
    servers: Option<PrefixSet>,
    /// Whose line it is by anything in it.
    shows: Vec<Dialect>,
}

/// A problem and its remedy, before the line is known.
type Wrong = (String, String);

fn wrong<T>(problem: impl Into<String>, remedy: impl Into<String>) -> Result<T, Wrong> {
    Err((problem.into(), remedy.into()))
}

/// Reads a file.
///
/// # Errors
/// The first mistake in it.
pub fn parse(octets: &[u8], format: Format) -> Result<Keys, Mistake> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut noted: HashMap<u32, (usize, Note)> = HashMap::new();
    let mut shows = Vec::new();
    for (index, line) in octets.split(|&octet| octet == b'\n').enumerate() {
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
                        let problem = format!("a second note on key {}, after that on line {first}", note.id);
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
    let dialect = match format {
        Format::Chrony => Some(Dialect::Chrony),
        Format::Ntp => Some(Dialect::Ntp),
        Format::Auto => shows.first().copied().filter(|first| shows.iter().all(|other| other == first)),
    };
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
                keys.warnings.push(format!(
                    "line {line}: key {id} cannot be used, as keys of type {name} are not implemented here; remove \
                     the line, or {}",
                    types::REMEDY
                ));
                continue;
            }
        };
        let key = decode(&entry, algorithm, format, dialect, &mut keys.warnings).map_err(at)?;
        let Decoded { octets, salt } = key;
        if octets.len() < SOUND_SIZE_MIN {
            let bits = 8 * octets.len();
            keys.warnings
                .push(format!("line {line}: key {id} has {bits} bits; fewer than 80 can be guessed"));
        }
        let key = MacKey::new(algorithm, &octets)
            .map_err(|error| at((format!("key {id}: {error}"), size_remedy(algorithm))))?;
        let key = SymmetricKey::new(id, key);
        let key = match salt {
            Some(salt) => key.with_salt(salt).expect("a salt was read only for GMAC"),
            None => key,
        };
        let note = note.unwrap_or(Note { id, ..Note::default() });
        keys.keys.push(Key { key, servers: entry.servers, line, note });
    }
    keys.retired = noted.into_values().map(|(_, note)| note).filter(|note| note.retired.is_some()).collect();
    keys.retired.sort_by_key(|note| note.id);
    Ok(keys)
}

fn entry(line: &[u8], number: usize, format: Format) -> Result<Entry<'_>, Wrong> {
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
        if format == Format::Chrony {
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
    match id {
        Some(0) => wrong(
            "0 is no key id: on the wire it says that there is no key",
            "choose one from 1 to 4294967295",
        ),
        Some(id) => Ok(id),
        None => wrong(
            "the key id is above 4294967295 and has no room on the wire",
            "choose one from 1 to 4294967295",
        ),
    }
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

fn prefix(word: &[u8]) -> Option<Prefixed<'_>> {
    match word.strip_prefix(Prefixed::HEX.as_bytes()) {
        Some(digits) => Some(Prefixed::Hex(digits)),
        None => word.strip_prefix(b"ASCII:").map(Prefixed::Ascii),
    }
}

struct Decoded {
    octets: Zeroizing<Vec<u8>>,
    salt: Option<[u8; SALT_SIZE]>,
}

impl Decoded {
    fn text(text: &[u8]) -> Self {
        Decoded { octets: Zeroizing::new(text.to_vec()), salt: None }
    }
}

fn decode(
    entry: &Entry<'_>,
    algorithm: MacAlgorithm,
    format: Format,
    dialect: Option<Dialect>,
    warnings: &mut Vec<String>,
) -> Result<Decoded, Wrong> {
    let (id, word) = (entry.id, entry.word);
    if prefix(word).is_some() && format == Format::Ntp && !is_ours(algorithm) {
        let problem = format!("key {id}: ntpd knows neither HEX: nor ASCII: before a key");
        return wrong(problem, "write more than 20 hexadecimal digits alone, or read the file as chrony's");
    }
    match prefix(word) {
        Some(Prefixed::Hex(digits)) => return decode_hex(id, algorithm, digits),
        Some(Prefixed::Ascii(b"")) => {
            return wrong(format!("key {id}: nothing after ASCII:"), "write the key there");
        }
        Some(Prefixed::Ascii(text)) => return Ok(Decoded::text(text)),
        None => {}
    }
    let lower = word.to_ascii_lowercase();
    let lower = Zeroizing::new(lower);
    if lower.starts_with(b"hex:") || lower.starts_with(b"ascii:") {
        let problem =
            format!("key {id}: chrony knows HEX: and ASCII: in capitals only, and takes this for text");
        return wrong(problem, "write HEX: or ASCII: in capitals");
    }
    if word.len() <= NTP_TEXT_SIZE_MAX {
        return Ok(Decoded::text(word));
    }
    let is_hex = word.iter().all(u8::is_ascii_hexdigit);
    let fits = |size: usize| algorithm.key_sizes().contains(&size);
    let is_text = match entry.named.or(dialect) {
        _ if format == Format::Chrony => true,
        _ if format == Format::Ntp => false,
        // Chrony refuses such a line: as hexadecimal it is at least the key that was meant.
        Some(Dialect::Chrony) => !is_hex || fits(word.len()),
        Some(Dialect::Ntp) => false,
        None => !is_hex,
    };
    if is_text {
        return Ok(Decoded::text(word));
    }
    if !is_hex {
        let problem =
            format!("key {id}: ntpd takes a key of more than 20 characters for hexadecimal, and this is not");
        return wrong(problem, "write it in hexadecimal");
    }
    if word.len() > 2 * NTP_KEY_SIZE_MAX {
        let problem = format!("key {id}: {} octets, of which ntpd uses the first 32", word.len() / 2);
        return wrong(problem, "write 64 hexadecimal digits at most, or HEX: before them for more");
    }
    if entry.named.or(dialect).is_none() && !is_ours(algorithm) && fits(word.len()) && fits(word.len() / 2) {
        warnings.push(format!(
            "line {}: key {id} is read as {} octets in hexadecimal, as ntpd does; to chrony it is {} characters of \
             text: write HEX: or ASCII: before it, or say whose file it is",
            entry.line,
            word.len() / 2,
            word.len()
        ));
    }
    decode_hex(id, algorithm, word)
}

/// Hexadecimal digits, and with GMAC a salt after a colon.
fn decode_hex(id: u32, algorithm: MacAlgorithm, digits: &[u8]) -> Result<Decoded, Wrong> {
    let (digits, salt) = match digits.iter().position(|&octet| octet == b':') {
        None => (digits, None),
        Some(_) if algorithm != MacAlgorithm::Gmac128 => {
            let problem = format!("key {id}: a salt after the key, and {algorithm} takes none");
            return wrong(problem, "remove the colon and what follows it");
        }
        Some(colon) => {
            let salt = hex(id, "salt", &digits[colon + 1..])?;
            let salt = salt.as_slice().try_into();
            let salt = salt.or_else(|_| {
                wrong(format!("key {id}: a salt has 4 octets"), "write 8 digits after the colon")
            })?;
            (&digits[..colon], Some(salt))
        }
    };
    Ok(Decoded { octets: hex(id, "key", digits)?, salt })
}

fn hex(id: u32, what: &str, digits: &[u8]) -> Result<Zeroizing<Vec<u8>>, Wrong> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        let problem = format!("key {id}: something in the {what} is no hexadecimal digit");
        return wrong(problem, "write digits and the letters A to F, or ASCII: for text");
    }
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        let problem = format!("key {id}: {} hexadecimal digits in the {what}", digits.len());
        return wrong(problem, "write two for each octet; one may be missing");
    }
    let nibble = |digit: u8| (digit as char).to_digit(16).expect("all are hexadecimal") as u8;
    let octets = digits.chunks_exact(2).map(|pair| nibble(pair[0]) << 4 | nibble(pair[1]));
    // The size is known, so that no copy of a secret is left behind by growth.
    Ok(Zeroizing::new(octets.collect()))
}

fn size_remedy(algorithm: MacAlgorithm) -> String {
    let sizes = algorithm.key_sizes();
    match sizes.start() == sizes.end() {
        true => format!("write HEX: and {} digits; nothing is padded or cut here", 2 * sizes.start()),
        false => format!("write a key of {} to {} octets", sizes.start(), sizes.end()),
    }
}

#[cfg(test)]
mod tests;
