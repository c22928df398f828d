//! All connections of a worker, from their admission to their one outcome. Sockets and the clock are arguments.
//!
//! **Invariants.** A connection ends at its deadline at the latest: set when it was accepted, and once more, to an
//! earlier instant, when our first flight is written. When the server is full, the worker that a newcomer comes to ends
//! one of its own by [`EvictionOrder`], so slow clients cannot keep others out, and distant ones are not taken for
//! slow. Nothing else that a client does ends anything but its own connection.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use slab::Slab;

use super::connection::{Connection, Phase, Service, Stream};
use super::eviction::{EvictionOrder, Id, Stage};
use super::{Admission, Environment, Outcome};

/// From our first flight to the end of a connection: six round trips at 300 ms each, or a retransmission by TCP.
const FLIGHT_TIMEOUT: Duration = Duration::from_secs(2);

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
    /// When each connection ends at the latest.
    deadlines: BTreeSet<(Instant, Id)>,
    eviction: EvictionOrder,
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
            deadlines: BTreeSet::new(),
            eviction: EvictionOrder::default(),
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
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(deadline, _)| deadline)
    }

    /// Ends the connections whose deadline has come.
    pub(super) fn end_overdue(&mut self, now: Instant) {
        while let Some(&(deadline, id)) = self.deadlines.first()
            && deadline <= now
        {
            let outcome = self.open[id.key].overdue();
            self.end(id.key, outcome);
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
            self.evict(now);
        }
        // Without this, the response would wait for the client's acknowledgement of the handshake.
        if stream.send_at_once().is_err() {
            self.environment.ended(Outcome::Closed);
            return;
        }
        let entry = self.open.vacant_entry();
        let id = Id { serial: self.next_serial, key: entry.key() };
        self.next_serial += 1;
        let deadline = now + self.admission.limits().timeout;
        let connection = entry.insert(Connection::new(stream, source, place, now, id, deadline));
        let is_registered = self.network.register(&mut connection.stream, id.key).is_ok();
        self.deadlines.insert((deadline, id));
        self.eviction.add(id, source.ip());
        if !is_registered {
            self.end(id.key, Outcome::Internal);
            return;
        }
        // The client's first flight is often here already.
        self.advance(id.key, now);
    }

    /// Ends the connection that gives way next, if there is one.
    pub(super) fn evict(&mut self, now: Instant) {
        let Some(Id { key, .. }) = self.eviction.next(now) else { return };
        let outcome = match self.open[key].phase {
            Phase::Reading | Phase::Responding(_) => Outcome::Evicted,
            Phase::Lingering(outcome, _) => outcome,
        };
        self.end(key, outcome);
    }

    fn end(&mut self, key: usize, outcome: Outcome) {
        let Some(mut connection) = self.open.try_remove(key) else { return };
        self.network.deregister(&mut connection.stream);
        self.deadlines.remove(&(connection.deadline, connection.id));
        self.eviction.remove(connection.id);
        // Its place is free before it counts as ended.
        drop(connection);
        self.environment.ended(outcome);
    }

    /// Gives a turn to those that have more to be read; in each round one, as to all others.
    pub(super) fn advance_unread(&mut self, now: Instant) {
        for key in std::mem::take(&mut self.unread) {
            if let Some(connection) = self.open.get_mut(key) {
                (connection.has_more, connection.is_queued) = (false, false);
            }
            self.advance(key, now);
        }
    }

    /// Does for a connection what can be done without waiting.
    pub(super) fn advance(&mut self, key: usize, now: Instant) {
        let Some(connection) = self.open.get_mut(key) else { return };
        let mut service = Service { environment: &*self.environment, entropy: &mut self.entropy };
        let (received_size, stage) = (connection.received_size, connection.stage());
        if let Some(outcome) = connection.advance(&mut service) {
            return self.end(key, outcome);
        }
        if connection.has_more && !connection.is_queued {
            connection.is_queued = true;
            self.unread.push(key);
        }
        let reached = connection.stage();
        if reached == Stage::Answered && stage != Stage::Answered {
            let deadline = connection.deadline.min(now + FLIGHT_TIMEOUT);
            self.deadlines.remove(&(connection.deadline, connection.id));
            self.deadlines.insert((deadline, connection.id));
            connection.deadline = deadline;
        }
        if connection.received_size != received_size {
            self.eviction.advance(connection.id, reached, now);
        }
    }
}
