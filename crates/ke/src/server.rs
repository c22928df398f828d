//! The server: one thread, many connections, no waiting on any of them.
//!
//! Here are the sockets and the clock; what becomes of connections, `connections` decides. Who may connect, how often,
//! and how many at once, [`Admission`] decides for all workers, before TLS.

mod admission;
mod connection;
mod connections;
mod eviction;
#[cfg(any(all(test, feature = "client", feature = "server"), feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod listen;

use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_proto::keyset::KeySet;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use rustls::ServerConfig;
use socket2::SockRef;

pub use self::admission::{Admission, CONNECTION_SIZE, Limits, Place, Rates};
use self::connection::Stream;
use self::connections::{Connections, Network};
pub use self::listen::{bind_group, join_group};
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
    /// A protocol and an algorithm were found that are served.
    pub algorithm_chosen: Instant,
    /// The session's keys were exported.
    pub keys_exported: Instant,
    /// The cookies were sealed.
    pub cookies_sealed: Instant,
    /// The response with all cookies was written, and can go out.
    pub response_written: Instant,
}

/// What a worker needs of the world. Asked anew for each connection, so keys, certificates and terms can change.
pub trait Environment: Send + Sync {
    /// The cookie keys; while there are none, no keys are exchanged.
    fn keys(&self) -> Option<Arc<KeySet>>;
    /// The TLS configuration.
    fn tls(&self) -> Arc<ServerConfig>;
    /// What is offered.
    fn terms(&self) -> Arc<Terms>;
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
    connections: Connections<Sockets, E>,
    /// Nothing is accepted before then.
    accept_again: Option<Instant>,
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
        let sockets = Sockets { registry: poll.registry().try_clone()?, listener_count: registered.len() };
        let connections = Connections::new(sockets, admission, entropy, Arc::clone(&environment));
        Ok(Worker { poll, waker, listeners: registered, connections, accept_again: None, environment })
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
                    Token(index) => {
                        self.connections.advance(index - self.listeners.len(), Instant::now());
                    }
                }
            }
            self.connections.advance_unread(Instant::now());
            self.connections.end_overdue(Instant::now());
            if self.accept_again.is_none_or(|again| again <= Instant::now()) {
                self.accept_again = None;
                for index in 0..self.listeners.len() {
                    self.accept(index);
                }
            }
        }
    }

    /// How long there is nothing to do unless something comes.
    fn timeout(&self) -> Option<Duration> {
        if self.connections.has_unread() {
            return Some(Duration::ZERO);
        }
        let until = |instant: Instant| instant.saturating_duration_since(Instant::now());
        let deadline = self.connections.next_deadline().map(until);
        match self.listeners.iter().any(|listener| listener.ready) {
            true => {
                Some(self.accept_again.map_or(Duration::ZERO, until).min(deadline.unwrap_or(Duration::MAX)))
            }
            false => deadline,
        }
    }

    fn accept(&mut self, index: usize) {
        for _ in 0..ACCEPT_COUNT_MAX {
            if !self.listeners[index].ready || self.accept_again.is_some() {
                return;
            }
            match self.listeners[index].listener.accept() {
                Ok((stream, source)) => self.connections.admit(stream, source, Instant::now()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.listeners[index].ready = false;
                }
                // The client gave up while it waited.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                // Out of descriptors or memory: end a connection, and try again a little later.
                Err(_) => {
                    let now = Instant::now();
                    self.environment.accept_failed();
                    self.accept_again = Some(now + ACCEPT_PAUSE);
                    self.connections.evict(now);
                    return;
                }
            }
        }
    }
}

/// The kernel's streams, of which the worker hears by tokens behind those of its listeners.
struct Sockets {
    registry: Registry,
    listener_count: usize,
}

impl Network for Sockets {
    type Stream = TcpStream;

    fn register(&self, stream: &mut TcpStream, key: usize) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.registry.register(stream, Token(key + self.listener_count), interest)
    }

    fn deregister(&self, stream: &mut TcpStream) {
        let _ = self.registry.deregister(stream);
    }
}

impl Stream for TcpStream {
    fn send_at_once(&self) -> io::Result<()> {
        self.set_nodelay(true)
    }

    fn acknowledge(&self) {
        // Without it the exchange only takes longer.
        let _ = SockRef::from(self).set_tcp_quickack(true);
    }

    fn end_ours(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }

    fn reset(&self) {
        // If the kernel refuses, the connection is closed the plain way.
        let _ = SockRef::from(self).set_linger(Some(Duration::ZERO));
    }
}
