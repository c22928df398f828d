//! The server: one thread, many connections, no waiting on any of them.
//!
//! **Invariants.** Who may connect, how often, and how many at once, [`Admission`] decides for all workers, before
//! TLS. A connection lives until one deadline, set when it was accepted; as all deadlines are equally far away, the
//! connections stand in a queue in the order in which they end. When the server is full, the worker that a newcomer
//! comes to ends the one of its own that is nearest to its end, so slow strangers cannot keep anyone out. Nothing that
//! a client does ends anything but its own connection.

mod admission;
mod connection;
mod listen;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_proto::keyset::KeySet;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use rustls::ServerConfig;
use slab::Slab;
use socket2::SockRef;

pub use self::admission::{Admission, Limits, Place, Rates};
use self::connection::{Connection, Phase, Service};
pub use self::listen::bind_group;
use crate::session::Terms;

/// Connections that are accepted before others are served again.
const ACCEPT_COUNT_MAX: usize = 64;
/// After the kernel refused a connection for want of descriptors or memory, nothing is accepted for so long, whatever
/// else happens: clients wait in the kernel's queue.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const WAKER: Token = Token(usize::MAX);

authentick_proto::outcomes! {
    /// The end of one connection. Accepted connections equal the sum of all outcomes and those still open.
    pub enum Outcome {
        /// Cookies were given.
        Served = "served",
        /// No protocol or AEAD in common.
        NothingInCommon = "nothing_in_common",
        /// Error record: a critical record that is not known here.
        UnrecognisedCritical = "unrecognised_critical_record",
        /// Error record: the request is malformed, too long or incomplete.
        BadRequest = "bad_request",
        /// Error record: something failed here.
        Internal = "internal_error",
        /// The TLS handshake failed: version, certificate refused, garbage.
        Tls = "tls_failure",
        /// The client does not speak `ntske/1`.
        Alpn = "no_alpn",
        /// The deadline passed during the handshake, or before the response was taken.
        Timeout = "timeout",
        /// The client went away first.
        Closed = "closed_by_client",
        /// Too many connections of its prefix.
        PrefixLimit = "prefix_limit",
        /// Its prefix or its network opened too many of late: reset before TLS.
        PrefixRate = "prefix_rate",
        /// It is not of those who may ask: reset before TLS.
        Denied = "denied",
        /// It gave way to a newer connection.
        Evicted = "evicted",
    }
}

/// When one exchange reached its stages.
#[derive(Clone, Copy, Debug)]
pub struct Instants {
    /// The client.
    pub source: SocketAddr,
    /// The connection was accepted.
    pub accepted: Instant,
    /// The request was read and understood.
    pub request_parsed: Instant,
    /// The cookies were sealed: the response can go out.
    pub cookies_sealed: Instant,
}

/// What a worker needs of the world. Asked anew for each connection, so keys and certificates can change.
pub trait Environment: Send + Sync {
    /// The cookie keys.
    fn keys(&self) -> Arc<KeySet>;
    /// The TLS configuration.
    fn tls(&self) -> Arc<ServerConfig>;
    /// A connection was accepted.
    fn accepted(&self);
    /// The kernel had no descriptor or no memory for a connection, which waits.
    fn accept_failed(&self);
    /// A connection came to its end.
    fn ended(&self, outcome: Outcome);
    /// Whether this client's exchanges are timed.
    fn is_watched(&self, source: IpAddr) -> bool;
    /// A timed exchange gave cookies.
    fn timed(&self, instants: Instants);
}

/// Stops a worker from another thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Waker>);

impl Stopper {
    /// The worker returns soon after.
    pub fn stop(&self) {
        // If the worker is gone, there is nothing to stop.
        let _ = self.0.wake();
    }
}

/// One thread's share of the server.
pub struct Worker<E> {
    poll: Poll,
    waker: Arc<Waker>,
    listeners: Vec<Listener>,
    connections: Slab<Connection>,
    /// Keys and serial numbers of connections, the one that ends first in front. Ended ones are passed over.
    queue: VecDeque<(usize, u64)>,
    next_serial: u64,
    /// Keys of connections that had their share of reads and may have sent more. One whose connection has ended may
    /// name another by now, which then has a turn for nothing.
    unread: Vec<usize>,
    /// Nothing is accepted before then.
    accept_again: Option<Instant>,
    admission: Arc<Admission>,
    terms: Terms,
    entropy: Entropy,
    environment: Arc<E>,
}

struct Listener {
    listener: TcpListener,
    /// There may be more to accept: polling tells only once.
    ready: bool,
}

impl<E: Environment> Worker<E> {
    /// A worker for `listeners`; `admission` is the same for all.
    ///
    /// # Errors
    /// If the kernel has no event queue to give.
    pub fn new(
        listeners: Vec<std::net::TcpListener>,
        admission: Arc<Admission>,
        terms: Terms,
        entropy: Entropy,
        environment: Arc<E>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let mut registered = Vec::with_capacity(listeners.len());
        for (index, listener) in listeners.into_iter().enumerate() {
            let mut listener = TcpListener::from_std(listener);
            poll.registry().register(&mut listener, Token(index), Interest::READABLE)?;
            registered.push(Listener { listener, ready: true });
        }
        Ok(Worker {
            poll,
            waker,
            listeners: registered,
            connections: Slab::new(),
            queue: VecDeque::new(),
            next_serial: 0,
            unread: Vec::new(),
            accept_again: None,
            admission,
            terms,
            entropy,
            environment,
        })
    }

    /// A handle that stops this worker.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.waker))
    }

    /// Serves until stopped.
    ///
    /// # Errors
    /// If the kernel's event queue fails.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        loop {
            let timeout = self.timeout();
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            for event in &events {
                match event.token() {
                    WAKER => return Ok(()),
                    Token(index) if index < self.listeners.len() => self.listeners[index].ready = true,
                    Token(index) => self.advance(index - self.listeners.len()),
                }
            }
            // Those that have more to be read have a turn in each round, as everybody else.
            for key in std::mem::take(&mut self.unread) {
                if let Some(connection) = self.connections.get_mut(key) {
                    (connection.has_more, connection.is_queued) = (false, false);
                }
                self.advance(key);
            }
            self.end_overdue();
            if self.accept_again.is_none_or(|again| again <= Instant::now()) {
                self.accept_again = None;
                for index in 0..self.listeners.len() {
                    self.accept(index);
                }
            }
        }
    }

    /// How long there is nothing to do unless something comes.
    fn timeout(&mut self) -> Option<Duration> {
        if !self.unread.is_empty() {
            return Some(Duration::ZERO);
        }
        let until = |instant: Instant| instant.saturating_duration_since(Instant::now());
        let deadline = self.next_deadline().map(until);
        match self.listeners.iter().any(|listener| listener.ready) {
            true => {
                Some(self.accept_again.map_or(Duration::ZERO, until).min(deadline.unwrap_or(Duration::MAX)))
            }
            false => deadline,
        }
    }

    fn next_deadline(&mut self) -> Option<Instant> {
        self.forget_ended();
        let &(key, _) = self.queue.front()?;
        Some(self.connections[key].accepted + self.admission.limits().timeout)
    }

    /// Drops ended connections from the front of the queue.
    fn forget_ended(&mut self) {
        while let Some(&(key, serial)) = self.queue.front() {
            if self.connections.get(key).is_some_and(|connection| connection.serial == serial) {
                break;
            }
            self.queue.pop_front();
        }
    }

    fn end_overdue(&mut self) {
        let now = Instant::now();
        loop {
            self.forget_ended();
            let Some(&(key, _)) = self.queue.front() else { break };
            let connection = &mut self.connections[key];
            if connection.accepted + self.admission.limits().timeout > now {
                break;
            }
            let outcome = connection.overdue();
            self.end(key, outcome);
        }
    }

    fn accept(&mut self, index: usize) {
        for _ in 0..ACCEPT_COUNT_MAX {
            if !self.listeners[index].ready || self.accept_again.is_some() {
                return;
            }
            match self.listeners[index].listener.accept() {
                Ok((stream, source)) => self.admit(stream, source),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.listeners[index].ready = false;
                }
                // The client gave up while it waited.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                // Out of descriptors or memory: end the oldest connection, and try again a little later.
                Err(_) => {
                    self.environment.accept_failed();
                    self.accept_again = Some(Instant::now() + ACCEPT_PAUSE);
                    self.evict_oldest();
                    return;
                }
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, source: SocketAddr) {
        self.environment.accepted();
        let accepted = Instant::now();
        let place = match self.admission.admit(source.ip(), accepted) {
            Ok(place) => place,
            Err(outcome) => {
                refuse(&stream);
                self.environment.ended(outcome);
                return;
            }
        };
        if self.admission.is_crowded() {
            self.evict_oldest();
        }
        // Without this, the response would wait for the client's acknowledgement of the handshake.
        if stream.set_nodelay(true).is_err() {
            self.environment.ended(Outcome::Closed);
            return;
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        let entry = self.connections.vacant_entry();
        let key = entry.key();
        let connection = entry.insert(Connection::new(stream, source, place, accepted, serial));
        let token = Token(key + self.listeners.len());
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(&mut connection.stream, token, interest).is_err() {
            self.end(key, Outcome::Internal);
            return;
        }
        self.queue.push_back((key, serial));
        // The client's first flight is often here already.
        self.advance(key);
    }

    fn evict_oldest(&mut self) {
        self.forget_ended();
        if let Some(&(key, _)) = self.queue.front() {
            let outcome = match self.connections[key].phase {
                Phase::Reading | Phase::Responding(_) => Outcome::Evicted,
                Phase::Lingering(outcome, _) => outcome,
            };
            self.end(key, outcome);
        }
    }

    fn end(&mut self, key: usize, outcome: Outcome) {
        let Some(mut connection) = self.connections.try_remove(key) else { return };
        let _ = self.poll.registry().deregister(&mut connection.stream);
        // Its place is free before it counts as ended.
        drop(connection);
        self.environment.ended(outcome);
    }

    /// Does for a connection what can be done without waiting.
    fn advance(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let mut service =
            Service { environment: &*self.environment, terms: &self.terms, entropy: &mut self.entropy };
        match connection.advance(&mut service) {
            Some(outcome) => self.end(key, outcome),
            None if connection.has_more && !connection.is_queued => {
                connection.is_queued = true;
                self.unread.push(key);
            }
            None => {}
        }
    }
}

/// Resets a connection that may not be. A TLS alert would be worse for the client as well: after one, chrony waits 17
/// minutes before it tries again, and 16 seconds after a connection that was closed during the handshake. A plain close
/// would leave the kernel with the connection for another minute (TIME_WAIT).
fn refuse(stream: &TcpStream) {
    // If the kernel refuses, the connection is closed the plain way.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}
