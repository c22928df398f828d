//! One memcached server, as a thread asks it that waits for each answer, and for none longer than it says. The protocol
//! is `authentick_fleet::memcached`'s; here are the socket, the deadlines, and when to connect again.
//!
//! There is at most one connection, opened when something is asked, and at most one request on it. The stream does not
//! block: each wait is for what is left of the deadline, and for reading and writing at once, as a server may stop
//! reading until it was read. Which server to ask, what about, and what to do about a failure is the caller's affair;
//! so is the log.

mod parts;
#[cfg(test)]
mod tests;

use core::fmt;
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_fleet::memcached::{
    self, Connection, Fault, Name, Refusal, RefusalKind, Request, Response, Unasked,
};
use authentick_net::tcp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use thiserror::Error;

use self::parts::Parts;
use crate::config::Endpoint;
use crate::names::ServerAddresses;

/// How long connecting may take, and then a request with its response, however many octets come meanwhile.
///
/// Connecting takes less than the second after which the first packet would be sent again: a server that can be reached
/// answers at once, and the others are tried anew soon.
const CONNECT: Duration = Duration::from_millis(500);
const EXCHANGE: Duration = Duration::from_secs(2);
/// How long a server that failed is left alone: this, and up to as much again, so that the nodes of a fleet do not
/// come back to it together.
const PAUSE: Duration = Duration::from_secs(1);

/// Requests of one reading that may turn out too large; the next reading begins with what they have taught.
const TOO_LARGE_COUNT_MAX: u32 = 16;

/// Octets that are read at once.
const PIECE_SIZE: usize = 16 << 10;

/// Which value was read, for [`Server::put`]. It means nothing on any other connection than the one on which it came,
/// of this server or another: a server that starts counts from 1 again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    generation: u64,
    number: u64,
}

/// A value that a server has.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Value {
    /// At most [`memcached::VALUE_SIZE_MAX`].
    pub(crate) octets: Vec<u8>,
    /// For replacing it.
    pub(crate) token: Token,
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        &self.octets
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value {{ {} octets, {:?} }}", self.octets.len(), self.token)
    }
}

/// What a server has done with a value that it was given.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It has it, or says so.
    Stored,
    /// Nothing: what the value was to follow is not what is there, or the token is from an earlier connection. It is
    /// to be read again.
    Lost,
    /// Nothing: it is full, or takes no values of this size. It says so in these words, printable ASCII.
    Refused(String),
}

/// Why a server did not answer, as a part of a line that names it. Unless nothing was sent, whether a value was stored
/// is unknown. The connection is closed then, but not for what the caller cannot ask.
#[derive(Debug, Error)]
pub(crate) enum ServerError {
    /// There is no address. Nothing was sent.
    #[error("its name cannot be looked up: {0}")]
    Unresolved(String),
    /// There is no connection. Nothing was sent.
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    /// The connection has failed.
    #[error("the connection failed: {0}")]
    Io(io::Error),
    /// The response did not come in time, or not all of it, or the request could not be sent.
    #[error("no whole answer within {EXCHANGE:?}")]
    Deadline,
    /// The server has closed the connection.
    #[error("the server closed the connection")]
    Ended,
    /// What the server says is not the protocol.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The server does not do what is asked, and says why. Values that do not fit are [`Put::Refused`].
    #[error("the server refuses to answer: {0}")]
    Refused(Refusal),
    /// The caller asks what cannot be asked. Nothing was sent.
    #[error(transparent)]
    Unasked(#[from] Unasked),
    /// The server failed a moment ago. Nothing was sent, and nothing tried.
    #[error("the server failed a moment ago and is left alone")]
    NotYet,
}

/// One memcached server.
///
/// A failure closes the connection, and for one to two seconds after it all that would need one is
/// [`ServerError::NotYet`]. It is different when the connection had served before and has ended, as all do when a
/// server is restarted: the next call connects at once. Where a response was too large, it is asked at once for less.
#[derive(Debug)]
pub(crate) struct Server {
    addresses: ServerAddresses,
    /// For how long it is left alone.
    entropy: Entropy,
    limits: Limits,
    link: Link,
    parts: Parts,
    /// How often it was asked for values.
    fetches: u64,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
struct Limits {
    connect: Duration,
    exchange: Duration,
    pause: Duration,
}

#[derive(Debug)]
enum Link {
    Open(Open),
    /// There is none, and is to be none before this instant.
    Closed(Option<Instant>),
}

impl Server {
    /// The server at one of `addresses`. It is connected to when it is asked something.
    pub(crate) fn new(addresses: ServerAddresses, entropy: Entropy) -> Self {
        let limits = Limits { connect: CONNECT, exchange: EXCHANGE, pause: PAUSE };
        Server { addresses, entropy, limits, link: Link::Closed(None), parts: Parts::default(), fetches: 0 }
    }

    /// What the configuration calls it.
    pub(crate) const fn endpoint(&self) -> &Endpoint {
        self.addresses.server()
    }

    /// How often it was asked for values so far, by a line each.
    pub(crate) const fn fetches(&self) -> u64 {
        self.fetches
    }

    /// What the server has under `names`, in their order: 1 to [`memcached::NAME_COUNT_MAX`], each once. It is asked
    /// once, or so often that each response has at most [`memcached::RESPONSE_SIZE_MAX`] octets of values.
    ///
    /// # Errors
    /// If there is no answer; see [`ServerError`].
    pub(crate) fn get(&mut self, names: &[Name]) -> Result<Vec<Option<Value>>, ServerError> {
        let (mut values, mut too_large) = (Vec::with_capacity(names.len()), 0);
        loop {
            let rest = &names[values.len()..];
            let part = &rest[..self.parts.first(rest).min(rest.len())];
            match self.get_part(part) {
                Ok(found) => values.extend(found),
                Err(ServerError::Fault(Fault::ResponseSize))
                    if part.len() > 1 && too_large < TOO_LARGE_COUNT_MAX =>
                {
                    self.parts.halve(part);
                    too_large += 1;
                }
                Err(error) => return Err(error),
            }
            if values.len() == names.len() {
                return Ok(values);
            }
        }
    }

    /// What the server has under these names, by one request.
    fn get_part(&mut self, names: &[Name]) -> Result<Vec<Option<Value>>, ServerError> {
        let answer = self.ask(&Request::Gets { names: names.to_vec() });
        let is_unsent = matches!(
            &answer,
            Err(ServerError::NotYet
                | ServerError::Unresolved(_)
                | ServerError::Connect(_)
                | ServerError::Unasked(Unasked::Unfit(_)))
        );
        self.fetches += if is_unsent { 0 } else { memcached::fetch_count(names) as u64 };
        let (response, generation) = answer?;
        let found = match response {
            Response::Values(found) => found,
            Response::Refused(refusal) => return Err(self.end(ServerError::Refused(refusal))),
            Response::Stored | Response::NotStored | Response::Exists | Response::NotFound => {
                return Err(self.end(Fault::Line.into()));
            }
        };
        let value = |found: memcached::Value| {
            let token = Token { generation, number: found.token };
            (found.name, Value { octets: found.octets, token })
        };
        let mut values: HashMap<Name, Value> = found.into_iter().map(value).collect();
        let values: Vec<Option<Value>> = names.iter().map(|name| values.remove(name)).collect();
        for (name, value) in names.iter().zip(&values) {
            self.parts.note(name, value.as_ref().map_or(0, |value| value.octets.len()));
        }
        Ok(values)
    }

    /// Has the server store `octets`, at most [`memcached::VALUE_SIZE_MAX`], in the place of the value that came with
    /// the token, or where there is no value.
    ///
    /// # Errors
    /// If there is no answer; see [`ServerError`].
    pub(crate) fn put(
        &mut self,
        name: &Name,
        octets: &[u8],
        expected: Option<Token>,
    ) -> Result<Put, ServerError> {
        let (name, value) = (name.clone(), octets.to_vec());
        let request = match expected {
            None => Request::Add { name, value },
            Some(token) if self.generation() == Some(token.generation) => {
                Request::Cas { name, value, token: token.number }
            }
            Some(_) => return Ok(Put::Lost),
        };
        match self.ask(&request)?.0 {
            Response::Stored => Ok(Put::Stored),
            Response::NotStored | Response::Exists | Response::NotFound => Ok(Put::Lost),
            // It has passed over the value, and goes on.
            Response::Refused(Refusal { kind: RefusalKind::ServerError, text }) => Ok(Put::Refused(text)),
            Response::Refused(refusal) => Err(self.end(ServerError::Refused(refusal))),
            Response::Values(_) => Err(self.end(Fault::Line.into())),
        }
    }

    /// Until when the server is left alone, if it is.
    pub(crate) const fn left_alone_until(&self) -> Option<Instant> {
        match self.link {
            Link::Open(_) => None,
            Link::Closed(until) => until,
        }
    }

    /// Of the connection that there is.
    fn generation(&self) -> Option<u64> {
        match &self.link {
            Link::Open(open) => Some(open.generation),
            Link::Closed(_) => None,
        }
    }

    /// The response to a request, and the generation of the connection on which it came.
    fn ask(&mut self, request: &Request) -> Result<(Response, u64), ServerError> {
        let open = match &mut self.link {
            Link::Open(open) => open,
            Link::Closed(Some(before)) if Instant::now() < *before => return Err(ServerError::NotYet),
            Link::Closed(_) => match self.open() {
                Ok(open) => {
                    self.link = Link::Open(open);
                    return self.ask(request);
                }
                Err(error) => return Err(self.end(error)),
            },
        };
        match open.exchange(request, Instant::now() + self.limits.exchange) {
            Ok(response) => Ok((response, open.generation)),
            Err(error) => Err(self.end(error)),
        }
    }

    /// Connects to the address whose turn it is.
    fn open(&mut self) -> Result<Open, ServerError> {
        self.addresses.receive(Instant::now(), false);
        match self.addresses.current() {
            Some(address) => Open::new(address, self.limits.connect).map_err(ServerError::Connect),
            None => Err(ServerError::Unresolved(self.addresses.trouble().to_owned())),
        }
    }

    /// Closes the connection after this error, if there is one to close, and returns the error.
    fn end(&mut self, error: ServerError) -> ServerError {
        let has_served = matches!(&self.link, Link::Open(Open { has_served: true, .. }));
        let is_at_once = match &error {
            ServerError::Unasked(Unasked::Unfit(_)) | ServerError::NotYet => return error,
            ServerError::Io(_) | ServerError::Ended => has_served,
            // It was asked for too much; what is asked for next is less.
            ServerError::Fault(Fault::ResponseSize) => true,
            ServerError::Unasked(Unasked::Full | Unasked::Ended(_))
            | ServerError::Unresolved(_)
            | ServerError::Connect(_)
            | ServerError::Deadline
            | ServerError::Fault(_)
            | ServerError::Refused(_) => false,
        };
        if !is_at_once {
            // It may have moved, if it has a name.
            self.addresses.pass_over();
            self.addresses.want(Instant::now());
        }
        let pause = pause(&mut self.entropy, self.limits.pause);
        self.link = Link::Closed((!is_at_once).then(|| Instant::now() + pause));
        error
    }
}

/// Between `least` and twice as long.
fn pause(entropy: &mut Entropy, least: Duration) -> Duration {
    least + least.mul_f64((entropy.u64() >> 11) as f64 / (1_u64 << 53) as f64)
}

/// A connection that stands.
#[derive(Debug)]
struct Open {
    stream: TcpStream,
    connection: Connection,
    /// No other connection of this process has it.
    generation: u64,
    /// Whether a request was answered on it.
    has_served: bool,
}

impl Open {
    fn new(address: SocketAddr, limit: Duration) -> io::Result<Self> {
        static GENERATIONS: AtomicU64 = AtomicU64::new(0);
        let until = Instant::now() + limit;
        let stream = tcp::begin(address, None)?;
        if !wait(&stream, PollFlags::OUT, until)? {
            return Err(ErrorKind::TimedOut.into());
        }
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        let generation = GENERATIONS.fetch_add(1, Ordering::Relaxed);
        Ok(Open { stream, connection: Connection::new(), generation, has_served: false })
    }

    /// Sends a request, and reads until its response is there and all of the request is sent: a server that refuses a
    /// value says so before it has passed over it.
    fn exchange(&mut self, request: &Request, until: Instant) -> Result<Response, ServerError> {
        if self.has_served {
            // What came after the last response: the end, or what would be taken for the next response.
            self.receive()?;
            self.connection.response()?;
        }
        self.connection.ask(request)?;
        let mut response = None;
        loop {
            let (sent, received) = (self.send(), self.receive());
            // What the server has said last counts, whatever became of the connection after it.
            if response.is_none() {
                response = self.connection.response()?;
            }
            if let Some(response) = response.take_if(|_| self.connection.unsent().is_empty()) {
                self.has_served = true;
                return Ok(response);
            }
            received?;
            sent.map_err(ServerError::Io)?;
            let interest = match self.connection.unsent() {
                [] => PollFlags::IN,
                [_, ..] => PollFlags::IN | PollFlags::OUT,
            };
            if !wait(&self.stream, interest, until).map_err(ServerError::Io)? {
                return Err(ServerError::Deadline);
            }
        }
    }

    /// Sends what the kernel takes now.
    fn send(&mut self) -> io::Result<()> {
        let unsent = self.connection.unsent();
        if unsent.is_empty() {
            return Ok(());
        }
        match self.stream.write(unsent) {
            Ok(count) => {
                self.connection.sent(count);
                Ok(())
            }
            Err(error) if is_to_wait(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reads what is there, at most [`PIECE_SIZE`] octets.
    fn receive(&mut self) -> Result<(), ServerError> {
        let mut piece = [0; PIECE_SIZE];
        match self.stream.read(&mut piece) {
            Ok(0) => Err(ServerError::Ended),
            Ok(count) => {
                // The fault is told again when there are no responses left from before it.
                let _ = self.connection.received(&piece[..count]);
                Ok(())
            }
            Err(error) if is_to_wait(&error) => Ok(()),
            Err(error) => Err(ServerError::Io(error)),
        }
    }
}

fn is_to_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Waits until a stream can be used as `interest` says, or has failed; false if `until` is there first.
fn wait(stream: &TcpStream, interest: PollFlags, until: Instant) -> io::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(stream, interest)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}
