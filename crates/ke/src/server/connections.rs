//! All connections of a worker, from their admission to their one outcome. Sockets and the clock are arguments.
//!
//! **Invariants.** A connection lives until one deadline, set when it was accepted; as all deadlines are equally far
//! away, the connections stand in a queue in the order in which they end. When the server is full, the worker that a
//! newcomer comes to ends the one of its own that is nearest to its end, so slow strangers cannot keep anyone out.
//! Nothing that a client does ends anything but its own connection.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use authentick_crypto::Entropy;
use slab::Slab;

use super::connection::{Connection, Phase, Service, Stream};
use super::{Admission, Environment, Outcome};

/// Where streams come from, and who tells that one of them can go on.
pub(super) trait Network {
    type Stream: Stream;

    /// From now on it is told when this stream can go on, which has the key of its connection.
    fn register(&self, stream: &mut Self::Stream, key: usize) -> io::Result<()>;

    /// It is not told any more.
    fn deregister(&self, stream: &mut Self::Stream);
}

/// The connections of a worker.
pub(super) struct Connections<N: Network, E> {
    network: N,
    open: Slab<Connection<N::Stream>>,
    /// Keys and serial numbers of connections, the one that ends first in front. Ended ones are passed over.
    queue: VecDeque<(usize, u64)>,
    next_serial: u64,
    /// Keys of connections that had their share of reads and may have sent more. One whose connection has ended may
    /// name another by now, which then has a turn for nothing.
    unread: Vec<usize>,
    admission: Arc<Admission>,
    entropy: Entropy,
    environment: Arc<E>,
}

impl<N: Network, E: Environment> Connections<N, E> {
    pub(super) fn new(network: N, admission: Arc<Admission>, entropy: Entropy, environment: Arc<E>) -> Self {
        Connections {
            network,
            open: Slab::new(),
            queue: VecDeque::new(),
            next_serial: 0,
            unread: Vec::new(),
            admission,
            entropy,
            environment,
        }
    }

    /// Whether a connection had its share of reads and may have sent more.
    pub(super) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// When the next connection is to end.
    pub(super) fn next_deadline(&mut self) -> Option<Instant> {
        self.forget_ended();
        let &(key, _) = self.queue.front()?;
        Some(self.open[key].accepted + self.admission.limits().timeout)
    }

    /// Drops ended connections from the front of the queue.
    fn forget_ended(&mut self) {
        while let Some(&(key, serial)) = self.queue.front() {
            if self.open.get(key).is_some_and(|connection| connection.serial == serial) {
                break;
            }
            self.queue.pop_front();
        }
    }

    /// Ends the connections whose deadline has come.
    pub(super) fn end_overdue(&mut self, now: Instant) {
        loop {
            self.forget_ended();
            let Some(&(key, _)) = self.queue.front() else { break };
            let connection = &mut self.open[key];
            if connection.accepted + self.admission.limits().timeout > now {
                break;
            }
            let outcome = connection.overdue();
            self.end(key, outcome);
        }
    }

    /// Takes a connection that was accepted now, or refuses it.
    pub(super) fn admit(&mut self, stream: N::Stream, source: SocketAddr, now: Instant) {
        self.environment.accepted();
        let place = match self.admission.admit(source.ip(), now) {
            Ok(place) => place,
            Err(outcome) => {
                // A TLS alert would be worse for the client as well: after one, chrony waits 17 minutes before it tries
                // again, and 16 seconds after a connection that was closed during the handshake. A plain close would
                // leave the kernel with the connection for another minute (TIME_WAIT).
                stream.reset();
                self.environment.ended(outcome);
                return;
            }
        };
        if self.admission.is_crowded() {
            self.evict_oldest();
        }
        // Without this, the response would wait for the client's acknowledgement of the handshake.
        if stream.send_at_once().is_err() {
            self.environment.ended(Outcome::Closed);
            return;
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        let entry = self.open.vacant_entry();
        let key = entry.key();
        let connection = entry.insert(Connection::new(stream, source, place, now, serial));
        if self.network.register(&mut connection.stream, key).is_err() {
            self.end(key, Outcome::Internal);
            return;
        }
        self.queue.push_back((key, serial));
        // The client's first flight is often here already.
        self.advance(key);
    }

    /// Ends the connection that is nearest to its deadline.
    pub(super) fn evict_oldest(&mut self) {
        self.forget_ended();
        if let Some(&(key, _)) = self.queue.front() {
            let outcome = match self.open[key].phase {
                Phase::Reading | Phase::Responding(_) => Outcome::Evicted,
                Phase::Lingering(outcome, _) => outcome,
            };
            self.end(key, outcome);
        }
    }

    fn end(&mut self, key: usize, outcome: Outcome) {
        let Some(mut connection) = self.open.try_remove(key) else { return };
        self.network.deregister(&mut connection.stream);
        // Its place is free before it counts as ended.
        drop(connection);
        self.environment.ended(outcome);
    }

    /// Gives a turn to those that have more to be read; in each round one, as to everybody else.
    pub(super) fn advance_unread(&mut self) {
        for key in std::mem::take(&mut self.unread) {
            if let Some(connection) = self.open.get_mut(key) {
                (connection.has_more, connection.is_queued) = (false, false);
            }
            self.advance(key);
        }
    }

    /// Does for a connection what can be done without waiting.
    pub(super) fn advance(&mut self, key: usize) {
        let Some(connection) = self.open.get_mut(key) else { return };
        let mut service = Service { environment: &*self.environment, entropy: &mut self.entropy };
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
