//! The client's side of one connection: what is to be sent, and which response belongs to which request. When to
//! connect, how long to wait and what to do about the end of the stream is left to the driver; a request without a
//! response when the stream ends may have been done or not. doc/protocol.txt.
//!
//! Requests are sent without waiting for responses. That has a catch which the document does not mention: when
//! memcached 1.6.18 has no memory for the response to a `gets`, it also drops the responses to earlier requests that it
//! has not sent yet (`process_get_command`), so its error seems to answer the first of them. So a `SERVER_ERROR` ends
//! the connection, unless nothing else waits, or only stores do.

use core::fmt;
use std::collections::VecDeque;

use thiserror::Error;

use super::request::lines;
use super::response::Line;
use super::{
    LINE_SIZE_MAX, Name, REQUEST_COUNT_MAX, RESPONSE_SIZE_MAX, Refusal, RefusalKind, Request, Response,
    UNSENT_SIZE_MAX, Unfit, VALUE_SIZE_MAX, Value,
};

/// What a server did wrong. It ends the connection: what comes after it cannot be attributed to a request.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Fault {
    /// Octets came, and no request waits for a response.
    #[error("the server sent what nobody has asked for")]
    NotWaiting,
    /// More than [`LINE_SIZE_MAX`] octets.
    #[error("the server sent a line of more than {LINE_SIZE_MAX} octets")]
    LineSize,
    /// A line feed without a carriage return before it.
    #[error("the server sent a line that does not end as lines do")]
    LineEnd,
    /// No line of the protocol, or none that answers the request.
    #[error("the server sent a line that is no response to the request")]
    Line,
    /// Flags, size or token of a value are not a number of their range.
    #[error("the server sent a number that is none, or too large")]
    Number,
    /// A value that the line of the request did not name.
    #[error("the server sent a value that was not asked for")]
    NotAsked,
    /// A value that came before.
    #[error("the server sent a value twice")]
    Twice,
    /// A value of more than [`VALUE_SIZE_MAX`] octets.
    #[error("the server has a value of more than {VALUE_SIZE_MAX} octets")]
    ValueSize,
    /// Values of one response of more than [`RESPONSE_SIZE_MAX`] octets.
    #[error("the values of one response have more than {RESPONSE_SIZE_MAX} octets")]
    ResponseSize,
    /// The value is longer or shorter than its line says.
    #[error("the server sent a value that does not end where it should")]
    ValueEnd,
    /// A token of 0: nothing could be replaced.
    #[error("the server gives values no tokens: memcached does so with the option -C")]
    NoToken,
    /// The server has refused a request in a way after which nobody knows what it takes for the next command.
    #[error("the server refused a request and may be out of step")]
    OutOfStep,
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unasked {
    /// The request exceeds a limit. The caller is at fault.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// [`REQUEST_COUNT_MAX`] requests or [`UNSENT_SIZE_MAX`] octets wait. It can be asked later.
    #[error("too many requests wait")]
    Full,
    /// The connection has ended. The server is at fault.
    #[error(transparent)]
    Ended(#[from] Fault),
}

/// What a request waits for.
enum Asked {
    /// Names by lines; from those of the first line the ones are taken out that have come.
    Gets(VecDeque<Vec<Name>>),
    Add,
    Cas,
}

/// A value whose octets come.
struct Arriving {
    name: Name,
    token: u64,
    size: usize,
    /// The value, then its line end.
    octets: Vec<u8>,
}

/// One connection to a server: octets in, octets out.
///
/// The driver sends [`unsent`](Connection::unsent), says how much of it was [`sent`](Connection::sent), hands in what
/// was [`received`](Connection::received), and takes each [`response`](Connection::response). Responses come in the
/// order of the requests. After a [`Fault`] every call says so, and nothing is sent any more; the driver closes the
/// connection.
///
/// Memory is taken as octets come, not as a length announces them: for the values of one response at most
/// [`RESPONSE_SIZE_MAX`] octets, for all responses that the driver has not taken [`REQUEST_COUNT_MAX`] times as many.
/// If it takes responses after each piece, there are never more than one unfinished response and what that piece
/// completed.
///
/// A response may come before its request was sent whole: memcached refuses a value when it has seen the line, and then
/// passes over the value. So the driver reads while it writes, and writes on after a refusal without a fault.
#[derive(Default)]
pub struct Connection {
    unsent: Vec<u8>,
    asked: VecDeque<Asked>,
    /// What has come of a line.
    line: Vec<u8>,
    arriving: Option<Arriving>,
    /// Values of the first response that waits.
    found: Vec<Value>,
    responses: VecDeque<Response>,
    fault: Option<Fault>,
}

impl Connection {
    /// A connection on which nothing was said yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a request to what is to be sent.
    ///
    /// # Errors
    ///
    /// [`Unasked`] if the request exceeds a limit, too much waits already, or the connection has ended; then nothing
    /// has changed.
    pub fn ask(&mut self, request: &Request) -> Result<(), Unasked> {
        self.check()?;
        if self.asked.len() + self.responses.len() >= REQUEST_COUNT_MAX {
            return Err(Unasked::Full);
        }
        let size = self.unsent.len();
        request.emit(&mut self.unsent)?;
        if self.unsent.len() > UNSENT_SIZE_MAX {
            self.unsent.truncate(size);
            return Err(Unasked::Full);
        }
        self.asked.push_back(match request {
            Request::Gets { names } => Asked::Gets(lines(names).map(<[Name]>::to_vec).collect()),
            Request::Add { .. } => Asked::Add,
            Request::Cas { .. } => Asked::Cas,
        });
        Ok(())
    }

    /// Octets to be sent next; none after a fault.
    #[must_use]
    pub fn unsent(&self) -> &[u8] {
        &self.unsent
    }

    /// The first `count` octets of [`unsent`](Connection::unsent) were sent; all of them if there are not as many.
    pub fn sent(&mut self, count: usize) {
        self.unsent.drain(..count.min(self.unsent.len()));
    }

    /// Octets came from the server. In which pieces they come makes no difference.
    ///
    /// # Errors
    ///
    /// The [`Fault`] that has ended the connection, now or earlier. What came before it can still be taken with
    /// [`response`](Connection::response), so a driver does that before it closes the connection.
    pub fn received(&mut self, octets: &[u8]) -> Result<(), Fault> {
        self.check()?;
        let mut rest = octets;
        while !rest.is_empty() {
            match self.take(rest) {
                Ok(count) => rest = &rest[count..],
                Err(fault) => return Err(self.end(fault)),
            }
        }
        Ok(())
    }

    /// The next response that is complete; `None` if more octets have to come.
    ///
    /// # Errors
    ///
    /// The [`Fault`] that has ended the connection, once there are no responses left from before it.
    pub fn response(&mut self) -> Result<Option<Response>, Fault> {
        match self.responses.pop_front() {
            Some(response) => Ok(Some(response)),
            None => self.check().map(|()| None),
        }
    }

    /// What has ended the connection, if anything has.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Requests without a complete response.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.asked.len()
    }

    fn check(&self) -> Result<(), Fault> {
        self.fault.map_or(Ok(()), Err)
    }

    /// Ends the connection, and keeps nothing but complete responses.
    fn end(&mut self, fault: Fault) -> Fault {
        let responses = std::mem::take(&mut self.responses);
        let asked = std::mem::take(&mut self.asked);
        *self = Connection { responses, asked, fault: Some(fault), ..Connection::default() };
        fault
    }

    /// Takes octets up to the end of a line or of a value, and says how many.
    fn take(&mut self, octets: &[u8]) -> Result<usize, Fault> {
        if self.asked.is_empty() {
            return Err(Fault::NotWaiting);
        }
        if let Some(arriving) = &mut self.arriving {
            let end = arriving.size + 2;
            let piece = &octets[..octets.len().min(end - arriving.octets.len())];
            let size = arriving.octets.len() + piece.len();
            if size > arriving.octets.capacity() {
                let room = size.max(2 * arriving.octets.capacity()).min(end);
                arriving.octets.reserve_exact(room - arriving.octets.len());
            }
            arriving.octets.extend_from_slice(piece);
            if size == end {
                self.arrived()?;
            }
            return Ok(piece.len());
        }
        let room = &octets[..octets.len().min(LINE_SIZE_MAX - self.line.len())];
        let end = room.iter().position(|&octet| octet == b'\n');
        let piece = end.map_or(room, |end| &room[..=end]);
        self.line.extend_from_slice(piece);
        if end.is_some() {
            let line = std::mem::take(&mut self.line);
            self.obey(Line::parse(line.strip_suffix(b"\r\n").ok_or(Fault::LineEnd)?)?)?;
        } else if self.line.len() == LINE_SIZE_MAX {
            return Err(Fault::LineSize);
        }
        Ok(piece.len())
    }

    /// A value is complete.
    fn arrived(&mut self) -> Result<(), Fault> {
        let Some(Arriving { name, token, size, mut octets }) = self.arriving.take() else { return Ok(()) };
        if &octets[size..] != b"\r\n" {
            return Err(Fault::ValueEnd);
        }
        octets.truncate(size);
        self.found.push(Value { name, octets, token });
        Ok(())
    }

    /// A whole line has come.
    fn obey(&mut self, line: Line<'_>) -> Result<(), Fault> {
        let response = match (self.asked.front_mut(), line) {
            (Some(Asked::Gets(_)), Line::Value { name, size, token }) => {
                return self.announced(name, size, token);
            }
            (Some(Asked::Gets(lines)), Line::End) => {
                lines.pop_front();
                if !lines.is_empty() {
                    return Ok(());
                }
                Response::Values(std::mem::take(&mut self.found))
            }
            (Some(Asked::Add | Asked::Cas), Line::Stored) => Response::Stored,
            (Some(Asked::Add), Line::NotStored) => Response::NotStored,
            (Some(Asked::Cas), Line::Exists) => Response::Exists,
            (Some(Asked::Cas), Line::NotFound) => Response::NotFound,
            (Some(_), Line::Refused(refusal)) => return self.refused(refusal),
            (
                _,
                Line::Value { .. }
                | Line::End
                | Line::Stored
                | Line::NotStored
                | Line::Exists
                | Line::NotFound
                | Line::Refused(_),
            ) => return Err(Fault::Line),
        };
        self.respond(response);
        Ok(())
    }

    /// A value is to follow.
    fn announced(&mut self, name: &[u8], size: usize, token: u64) -> Result<(), Fault> {
        let Some(Asked::Gets(lines)) = self.asked.front_mut() else { return Err(Fault::Line) };
        let named = |asked: &Name| asked.as_str().as_bytes() == name;
        let Some(names) = lines.front_mut() else { return Err(Fault::Line) };
        let Some(at) = names.iter().position(named) else {
            let came = self.found.iter().any(|value| named(&value.name));
            return Err(if came { Fault::Twice } else { Fault::NotAsked });
        };
        let sum: usize = self.found.iter().map(|value| value.octets.len()).sum();
        if sum + size > RESPONSE_SIZE_MAX {
            return Err(Fault::ResponseSize);
        }
        self.arriving = Some(Arriving { name: names.remove(at), token, size, octets: Vec::new() });
        Ok(())
    }

    /// The request is refused; other responses may still be relied on, or not.
    fn refused(&mut self, refusal: Refusal) -> Result<(), Fault> {
        let is_in_step = refusal.kind == RefusalKind::ServerError && self.is_attributable();
        self.found.clear();
        self.respond(Response::Refused(refusal));
        if is_in_step { Ok(()) } else { Err(Fault::OutOfStep) }
    }

    /// Whether an error can only be the response to the first request that waits, and the others still get theirs.
    fn is_attributable(&self) -> bool {
        let line_count = |asked: &Asked| match asked {
            Asked::Gets(lines) => lines.len(),
            Asked::Add | Asked::Cas => 0,
        };
        match self.asked.iter().map(line_count).sum() {
            0 => true,
            line_count => line_count == 1 && self.asked.len() == 1,
        }
    }

    /// The response to the first request that waits is complete.
    fn respond(&mut self, response: Response) {
        self.asked.pop_front();
        self.responses.push_back(response);
    }

    /// Octets for which memory is taken, those to be sent left out.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn held(&self) -> usize {
        let values = |values: &[Value]| values.iter().map(|value| value.octets.capacity()).sum::<usize>();
        let responses = self.responses.iter().map(|response| match response {
            Response::Values(found) => values(found),
            Response::Refused(refusal) => refusal.text.capacity(),
            Response::Stored | Response::NotStored | Response::Exists | Response::NotFound => 0,
        });
        let arriving = self.arriving.as_ref().map_or(0, |arriving| arriving.octets.capacity());
        self.line.capacity() + arriving + values(&self.found) + responses.sum::<usize>()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("unsent", &self.unsent.len())
            .field("waiting", &self.asked.len())
            .field("responses", &self.responses.len())
            .field("fault", &self.fault)
            .finish_non_exhaustive()
    }
}
