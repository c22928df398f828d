//! Names under which values are stored, requests, and how they are written. doc/protocol.txt, "Keys", "Storage
//! commands" and "Retrieval command". What they are answered with is not here.

use core::fmt;
use core::str::FromStr;

use thiserror::Error;

use super::{COMMAND_SIZE_MAX, NAME_COUNT_MAX, NAME_SIZE_MAX, VALUE_SIZE_MAX};

/// The command that reads, and what stands between and after names.
const GETS: &[u8] = b"gets";
const LINE_END: &[u8] = b"\r\n";

/// The name of a value: 1 to [`NAME_SIZE_MAX`] printable octets of ASCII, none of them a space. memcached forbids
/// spaces and control characters; octets beyond ASCII are left out because names are shown to operators.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

impl Name {
    /// The name `text`.
    ///
    /// # Errors
    ///
    /// [`BadName`] if it is empty, too long, or has a character that no name may have.
    pub fn new(text: &str) -> Result<Self, BadName> {
        if text.is_empty() {
            return Err(BadName::Empty);
        }
        if text.len() > NAME_SIZE_MAX {
            return Err(BadName::Size);
        }
        if !text.bytes().all(|octet| octet.is_ascii_graphic()) {
            return Err(BadName::Character);
        }
        Ok(Name(text.into()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        Name::new(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is no [`Name`]. The caller is at fault.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BadName {
    /// There is nothing in it.
    #[error("the name is empty")]
    Empty,
    /// It is longer than [`NAME_SIZE_MAX`].
    #[error("the name is longer than {NAME_SIZE_MAX} octets")]
    Size,
    /// A space, a control character, or something beyond ASCII.
    #[error("the name has a character that is not printable ASCII, or a space")]
    Character,
}

/// What a client asks.
#[derive(Clone, PartialEq, Eq)]
pub enum Request {
    /// Values with their tokens: [`Response::Values`](super::Response::Values).
    Gets {
        /// 1 to [`NAME_COUNT_MAX`], each once.
        names: Vec<Name>,
    },
    /// Store a value if there is none: [`Response::Stored`](super::Response::Stored) or
    /// [`Response::NotStored`](super::Response::NotStored).
    Add {
        /// Where.
        name: Name,
        /// At most [`VALUE_SIZE_MAX`] octets, of any kind.
        value: Vec<u8>,
    },
    /// Replace a value if it is still the one that came with this token: [`Response::Stored`](super::Response::Stored),
    /// [`Response::Exists`](super::Response::Exists) or [`Response::NotFound`](super::Response::NotFound).
    Cas {
        /// Where.
        name: Name,
        /// At most [`VALUE_SIZE_MAX`] octets, of any kind.
        value: Vec<u8>,
        /// [`Value::token`](super::Value::token), read on the same connection.
        token: u64,
    },
}

/// Why a [`Request`] is not written. The caller is at fault.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unfit {
    /// No name is asked for.
    #[error("no name is asked for")]
    NoNames,
    /// More than [`NAME_COUNT_MAX`].
    #[error("more than {NAME_COUNT_MAX} names are asked for at once")]
    NameCount,
    /// A name is asked for twice: its value would come twice.
    #[error("a name is asked for twice")]
    NameTwice,
    /// More than [`VALUE_SIZE_MAX`].
    #[error("the value has more than {VALUE_SIZE_MAX} octets")]
    ValueSize,
}

impl Request {
    /// Appends the octets of the request to `out`. Many names take several lines of at most [`COMMAND_SIZE_MAX`]
    /// octets, each of which a server answers by itself.
    ///
    /// # Errors
    ///
    /// [`Unfit`] if the request exceeds a limit or names something twice; then `out` is as it was.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), Unfit> {
        match self {
            Request::Gets { names } => {
                check_names(names)?;
                for line in lines(names) {
                    out.extend_from_slice(GETS);
                    for name in line {
                        out.push(b' ');
                        out.extend_from_slice(name.0.as_bytes());
                    }
                    out.extend_from_slice(LINE_END);
                }
                Ok(())
            }
            Request::Add { name, value } => emit_store(out, format_args!("add {name} 0 0"), value, None),
            Request::Cas { name, value, token } => {
                emit_store(out, format_args!("cas {name} 0 0"), value, Some(*token))
            }
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Gets { names } => f.debug_struct("Gets").field("names", names).finish(),
            Request::Add { name, value } => write!(f, "Add {{ {name}, {} octets }}", value.len()),
            Request::Cas { name, value, token } => {
                write!(f, "Cas {{ {name}, {} octets, token {token} }}", value.len())
            }
        }
    }
}

/// How often a server is asked by one request for these names: once by each of its lines.
#[must_use]
pub fn fetch_count(names: &[Name]) -> usize {
    lines(names).count()
}

/// The lines on which these names are asked for, in their order.
pub(super) fn lines(names: &[Name]) -> impl Iterator<Item = &[Name]> {
    let mut rest = names;
    core::iter::from_fn(move || {
        let mut size = GETS.len() + LINE_END.len();
        let fits = |name: &&Name| {
            size += 1 + name.0.len();
            size <= COMMAND_SIZE_MAX
        };
        let (line, left) = rest.split_at(rest.iter().take_while(fits).count());
        rest = left;
        (!line.is_empty()).then_some(line)
    })
}

fn check_names(names: &[Name]) -> Result<(), Unfit> {
    if names.is_empty() {
        return Err(Unfit::NoNames);
    }
    if names.len() > NAME_COUNT_MAX {
        return Err(Unfit::NameCount);
    }
    let mut sorted: Vec<&Name> = names.iter().collect();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Unfit::NameTwice);
    }
    Ok(())
}

fn emit_store(
    out: &mut Vec<u8>,
    begin: fmt::Arguments<'_>,
    value: &[u8],
    token: Option<u64>,
) -> Result<(), Unfit> {
    if value.len() > VALUE_SIZE_MAX {
        return Err(Unfit::ValueSize);
    }
    let size = value.len();
    let line = match token {
        None => format!("{begin} {size}\r\n"),
        Some(token) => format!("{begin} {size} {token}\r\n"),
    };
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(value);
    out.extend_from_slice(LINE_END);
    Ok(())
}
