//! What a server says: responses as the driver gets them, and the lines of which they are made. doc/protocol.txt,
//! "Error strings", "Storage commands" and "Retrieval command". Which line may come when is the business of
//! `connection`.

use core::fmt;

use super::{Fault, Name, TEXT_SIZE_MAX, VALUE_SIZE_MAX};

/// The response to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// To `Gets`: what was found, in the order of the server. What is missing is not there.
    Values(Vec<Value>),
    /// To `Add` and `Cas`: it was done.
    Stored,
    /// To `Add`: there is a value already.
    NotStored,
    /// To `Cas`: the value is another one by now.
    Exists,
    /// To `Cas`: there is no value any more.
    NotFound,
    /// To any request: the server has not done it, and says why. Where [`Connection::fault`](super::Connection::fault)
    /// is [`Fault::OutOfStep`] afterwards, it is unknown what was done.
    Refused(Refusal),
}

/// A value that was found.
#[derive(Clone, PartialEq, Eq)]
pub struct Value {
    /// The name that was asked for.
    pub name: Name,
    /// At most [`VALUE_SIZE_MAX`] octets.
    pub octets: Vec<u8>,
    /// What [`Request::Cas`](super::Request::Cas) needs to replace it; never 0. A server that starts counts from 1
    /// again, so a token is to be used on the connection on which it came.
    pub token: u64,
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value {{ {}, {} octets, token {} }}", self.name, self.octets.len(), self.token)
    }
}

/// Why a server refuses a request, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Whose fault it is, as the server sees it.
    pub kind: RefusalKind,
    /// What it says: printable ASCII, at most [`TEXT_SIZE_MAX`] octets, `?` for others. May be empty.
    pub text: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.word())?;
        if self.text.is_empty() { Ok(()) } else { write!(f, " {}", self.text) }
    }
}

/// The three kinds of errors. doc/protocol.txt, "Error strings".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The server cannot: out of memory, or a value larger than it takes. It has passed over the value.
    ServerError,
    /// The server says that the client breaks the protocol.
    ClientError,
    /// The server does not know the command; also what memcached says when it has too many connections.
    Error,
}

impl RefusalKind {
    /// How the protocol writes it.
    const fn word(self) -> &'static str {
        match self {
            RefusalKind::ServerError => "SERVER_ERROR",
            RefusalKind::ClientError => "CLIENT_ERROR",
            RefusalKind::Error => "ERROR",
        }
    }
}

/// One line of a server, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A value follows.
    Value {
        name: &'a [u8],
        /// Octets of the value, at most [`VALUE_SIZE_MAX`].
        size: usize,
        /// Not 0.
        token: u64,
    },
    /// There are no more values.
    End,
    Stored,
    NotStored,
    Exists,
    NotFound,
    Refused(Refusal),
}

impl<'a> Line<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Result<Self, Fault> {
        match line {
            b"END" => Ok(Line::End),
            b"STORED" => Ok(Line::Stored),
            b"NOT_STORED" => Ok(Line::NotStored),
            b"EXISTS" => Ok(Line::Exists),
            b"NOT_FOUND" => Ok(Line::NotFound),
            _ => match line.strip_prefix(b"VALUE ") {
                Some(fields) => Line::value(fields),
                None => refusal(line).map(Line::Refused).ok_or(Fault::Line),
            },
        }
    }

    /// `<name> <flags> <size> <token>`, with single spaces, as memcached writes them.
    fn value(fields: &'a [u8]) -> Result<Self, Fault> {
        let mut fields = fields.split(|&octet| octet == b' ');
        let mut next = || fields.next().ok_or(Fault::Line);
        let (name, flags, size, token) = (next()?, next()?, next()?, next()?);
        if fields.next().is_some() {
            return Err(Fault::Line);
        }
        number(flags).and_then(|flags| u32::try_from(flags).ok()).ok_or(Fault::Number)?;
        let size = number(size).ok_or(Fault::Number)?;
        let size =
            usize::try_from(size).ok().filter(|&size| size <= VALUE_SIZE_MAX).ok_or(Fault::ValueSize)?;
        match number(token).ok_or(Fault::Number)? {
            0 => Err(Fault::NoToken),
            token => Ok(Line::Value { name, size, token }),
        }
    }
}

/// Decimal digits, at least one and nothing else, of a number below 2^64.
fn number(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0_u64, |sum, octet| {
        let digit = octet.checked_sub(b'0').filter(|&digit| digit <= 9)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

fn refusal(line: &[u8]) -> Option<Refusal> {
    let (word, text) = match line.iter().position(|&octet| octet == b' ') {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, &[][..]),
    };
    let kinds = [RefusalKind::ServerError, RefusalKind::ClientError, RefusalKind::Error];
    let kind = kinds.into_iter().find(|kind| kind.word().as_bytes() == word)?;
    let shown = |&octet: &u8| if octet == b' ' || octet.is_ascii_graphic() { char::from(octet) } else { '?' };
    Some(Refusal { kind, text: text.iter().take(TEXT_SIZE_MAX).map(shown).collect() })
}
