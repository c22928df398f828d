//! An engine without sockets: datagrams come and go through queues of this process.
//!
//! It makes batches, lends them, and has early packets leave first, as an engine of the network does. Deliberately
//! absent: receive stamps from elsewhere, and more than one socket.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::time::Duration;

use authentick_wire::datagram::Datagram;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;

use crate::engine::{BATCH_SIZE, Engine, Handler, ReplyPath, ReplySender, Turn};
use crate::udp::SocketMemory;

/// Datagrams that wait for the engine, at most; more are dropped.
const WAITING_COUNT_MAX: usize = 1024;

/// A datagram, and whom it comes from or goes to.
type Addressed = (SocketAddr, Vec<u8>);

/// Moves datagrams between a [`MemoryPeer`] and a handler.
#[derive(Debug)]
pub struct MemoryEngine {
    incoming: Receiver<Addressed>,
    outgoing: Sender<Addressed>,
    dropped: Arc<AtomicU64>,
    patience: Duration,
    batch_size: usize,
}

/// Everybody whom a [`MemoryEngine`] hears and answers.
#[derive(Debug)]
pub struct MemoryPeer {
    outgoing: SyncSender<Addressed>,
    incoming: Receiver<Addressed>,
    dropped: Arc<AtomicU64>,
}

/// Sends later answers of a [`MemoryEngine`].
#[derive(Debug)]
pub struct MemoryReplies(Sender<Addressed>);

impl MemoryEngine {
    /// An engine and its peer; a turn waits for at most `patience` when nothing comes, and takes at most `batch_size`
    /// datagrams, 1 to [`BATCH_SIZE`].
    ///
    /// # Panics
    /// If there is no such batch.
    #[must_use]
    pub fn new(patience: Duration, batch_size: usize) -> (Self, MemoryPeer) {
        assert!((1..=BATCH_SIZE).contains(&batch_size), "a batch has 1 to {BATCH_SIZE} datagrams");
        let (to_engine, incoming) = mpsc::sync_channel(WAITING_COUNT_MAX);
        let (outgoing, from_engine) = mpsc::channel();
        let dropped = Arc::new(AtomicU64::new(0));
        let peer = MemoryPeer { outgoing: to_engine, incoming: from_engine, dropped: Arc::clone(&dropped) };
        (MemoryEngine { incoming, outgoing, dropped, patience, batch_size }, peer)
    }

    /// A handle for answers that another thread sends.
    #[must_use]
    pub fn replies(&self) -> MemoryReplies {
        MemoryReplies(self.outgoing.clone())
    }

    /// What waits, as one batch; empty if nothing came in time.
    fn receive(&self) -> io::Result<Vec<Addressed>> {
        match self.incoming.recv_timeout(self.patience) {
            Ok(first) => {
                let more = self.incoming.try_iter().take(self.batch_size - 1);
                Ok(std::iter::once(first).chain(more).collect())
            }
            Err(RecvTimeoutError::Timeout) => Ok(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn send(&self, destination: SocketAddr, octets: &[u8], turn: &mut Turn) {
        if octets.is_empty() {
            return;
        }
        match self.outgoing.send((destination, octets.to_vec())) {
            Ok(()) => turn.sent += 1,
            Err(_) => turn.send_failures += 1,
        }
    }
}

impl Engine for MemoryEngine {
    fn turn(&mut self, handler: &mut impl Handler) -> io::Result<Turn> {
        let mut arrived = self.receive()?;
        let mut turn = Turn { received: arrived.len(), ..Turn::default() };
        if arrived.is_empty() {
            return Ok(turn);
        }
        let mut responses = vec![[0; DATAGRAM_SIZE_MAX]; arrived.len()];
        let paths = vec![ReplyPath::default(); arrived.len()];
        let received: Vec<NtpTime> = arrived.iter().map(|_| handler.now()).collect();
        let slots = arrived.iter_mut().zip(&mut responses).zip(received);
        let mut batch: Vec<Datagram<'_>> = slots
            .map(|(((source, octets), response), received)| {
                let truncated = octets.len() > DATAGRAM_SIZE_MAX;
                octets.truncate(DATAGRAM_SIZE_MAX);
                Datagram {
                    source: *source,
                    received,
                    truncated,
                    to_many: false,
                    request: octets,
                    response,
                    response_size: 0,
                }
            })
            .collect();
        handler.respond(&mut batch, &paths);
        let mut starts = vec![0; batch.len()];
        if !handler.early().is_empty() {
            for early in handler.early() {
                let datagram = &batch[early.index];
                self.send(datagram.source, &datagram.response[..early.size], &mut turn);
                starts[early.index] = early.size;
            }
            handler.finish(&mut batch);
        }
        let from = handler.now();
        for (datagram, start) in batch.iter().zip(starts) {
            self.send(datagram.source, &datagram.response[start..][..datagram.response_size], &mut turn);
        }
        let to = handler.now();
        handler.sent(from, to);
        Ok(turn)
    }

    fn memory(&self) -> SocketMemory {
        SocketMemory { dropped_count: self.dropped.load(Ordering::Relaxed), ..SocketMemory::default() }
    }
}

impl MemoryPeer {
    /// Sends a datagram as `source`. Never waits: it is dropped if too many wait already, or the engine is gone.
    pub fn send(&self, source: SocketAddr, octets: &[u8]) {
        if let Err(TrySendError::Full(_)) = self.outgoing.try_send((source, octets.to_vec())) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The next datagram that the engine has sent, and to whom; `None` if none comes within `patience`.
    #[must_use]
    pub fn receive(&self, patience: Duration) -> Option<(SocketAddr, Vec<u8>)> {
        self.incoming.recv_timeout(patience).ok()
    }
}

impl ReplySender for MemoryReplies {
    fn send(&self, octets: &[u8], destination: SocketAddr, _: &ReplyPath) -> io::Result<()> {
        let sent = self.0.send((destination, octets.to_vec()));
        sent.map_err(|_| io::ErrorKind::NotConnected.into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::handlers::{Halves, Later};
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn source(number: u16) -> SocketAddr {
        SocketAddr::from(([198, 18, 0, 1], number))
    }

    #[test]
    fn early_packets_leave_first_and_batches_are_no_larger_than_asked() {
        let (mut engine, peer) = MemoryEngine::new(PATIENCE, 3);
        for (number, request) in
            [[1, 2, 3, 4], [2, 4, 6, 8], [3, 6, 9, 12], [4, 8, 12, 16]].iter().enumerate()
        {
            peer.send(source(number as u16), request);
        }
        let mut halves = Halves::default();
        let turn = engine.turn(&mut halves).unwrap();
        assert_eq!((turn.received, turn.sent, turn.send_failures), (3, 5, 0));
        let received: Vec<_> = (0..5).map(|_| peer.receive(PATIENCE).unwrap()).collect();
        let expected =
            [(0, vec![1, 2]), (2, vec![3, 6]), (0, vec![4, 3]), (1, vec![2, 4, 6, 8]), (2, vec![12, 9])];
        assert_eq!(received, expected.map(|(number, octets)| (source(number), octets)));
        assert_eq!(engine.turn(&mut halves).unwrap(), Turn { received: 1, sent: 1, ..Turn::default() });
    }

    #[test]
    fn later_answer_comes_to_whoever_asked() {
        let (mut engine, peer) = MemoryEngine::new(PATIENCE, BATCH_SIZE);
        peer.send(source(7), b"later, please");
        let mut later = Later::default();
        assert_eq!(engine.turn(&mut later).unwrap(), Turn { received: 1, ..Turn::default() });
        let [(asker, path)] = later.0[..] else { panic!("one datagram") };
        engine.replies().send(b"here", asker, &path).unwrap();
        assert_eq!(peer.receive(PATIENCE), Some((source(7), b"here".to_vec())));
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_and_an_end_without_a_peer_is_told() {
        let (mut engine, peer) = MemoryEngine::new(Duration::ZERO, 1);
        assert_eq!(engine.turn(&mut Later::default()).unwrap(), Turn::default());
        (0..=WAITING_COUNT_MAX).for_each(|_| peer.send(source(1), &[1; 48]));
        assert_eq!(engine.memory().dropped_count, 1);
        assert_eq!(engine.turn(&mut Later::default()).unwrap().received, 1);
        drop(peer);
        let left = (1..WAITING_COUNT_MAX).map(|_| engine.turn(&mut Later::default()).unwrap().received);
        assert_eq!(left.sum::<usize>(), WAITING_COUNT_MAX - 1);
        assert_eq!(engine.turn(&mut Later::default()).unwrap_err().kind(), io::ErrorKind::NotConnected);
    }
}
