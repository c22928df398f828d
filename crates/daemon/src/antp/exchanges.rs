//! Key exchanges that wait for public-key work: a bounded queue that packet workers fill without waiting, and that
//! wakes the public-key threads ([`super::worker`]).
//!
//! **Invariant:** a packet worker takes no lock and allocates nothing here. If there is no room, the exchange is
//! refused.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use authentick_net::engine::ReplyPath;
use authentick_proto::antp::server::{ExchangeOutcome, KeyExchange};
use authentick_proto::server::antp::{Full, KeyExchanges};
use authentick_wire::antp::Suite;
use crossbeam_queue::ArrayQueue;

use crate::config::ANTP_WORKER_COUNT_MAX;
use crate::metrics::counters::Counter;

/// How long a thread sleeps before it looks whether it should stop.
const PATIENCE: Duration = Duration::from_millis(200);

const _: () = assert!(ANTP_WORKER_COUNT_MAX <= u64::BITS as usize, "each thread has a bit in a word");

/// A key exchange, and how its answer goes back.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) exchange: KeyExchange,
    /// The packet worker whose socket it came to.
    pub(super) worker: usize,
    pub(super) path: ReplyPath,
}

/// The queue, and counts of how its entries ended.
#[derive(Debug)]
pub(crate) struct Exchanges {
    waiting: ArrayQueue<Waiting>,
    threads: Box<[OnceLock<Thread>]>,
    /// A bit for each thread that sleeps, or is about to sleep.
    idle: AtomicU64,
    /// Key exchanges for which there was no room.
    pub(crate) refused: Counter,
    /// Key exchanges by outcome, and by the index of their suite in [`Suite::ALL`].
    pub(crate) ended: [[Counter; Suite::ALL.len()]; ExchangeOutcome::ALL.len()],
    /// Answers that the kernel refused to send.
    pub(crate) send_failures: Counter,
}

impl Exchanges {
    pub(crate) fn new(room: usize, thread_count: usize) -> Self {
        Exchanges {
            waiting: ArrayQueue::new(room),
            threads: (0..thread_count).map(|_| OnceLock::new()).collect(),
            idle: AtomicU64::new(0),
            refused: Counter::default(),
            ended: Default::default(),
            send_failures: Counter::default(),
        }
    }

    /// How many key exchanges wait now, and for how many there is room.
    pub(crate) fn depth(&self) -> (usize, usize) {
        (self.waiting.len(), self.waiting.capacity())
    }

    /// The calling thread is the public-key thread with this number.
    pub(super) fn enlist(&self, number: usize) {
        // Set once: a number belongs to one thread.
        let _ = self.threads[number].set(thread::current());
    }

    fn push(&self, waiting: Waiting) -> Result<(), Full> {
        if self.waiting.push(waiting).is_err() {
            self.refused.count();
            return Err(Full);
        }
        // A thread sets its bit before it looks into the queue for the last time: either it sees this exchange, or its
        // bit is seen here.
        self.wake_one();
        Ok(())
    }

    /// Wakes a sleeping thread. Its bit is cleared at once, so that the next exchange of a burst wakes another thread.
    fn wake_one(&self) {
        let mut idle = self.idle.load(Ordering::SeqCst);
        // Each turn clears a bit that is set here, so there are at most as many turns as bits.
        while idle != 0 {
            let (number, bit) = (idle.trailing_zeros() as usize, idle & idle.wrapping_neg());
            // Otherwise another packet worker was faster, and wakes that thread.
            let is_ours = self.idle.fetch_and(!bit, Ordering::SeqCst) & bit != 0;
            if let (true, Some(thread)) = (is_ours, self.threads.get(number).and_then(OnceLock::get)) {
                return thread.unpark();
            }
            idle &= !bit;
        }
    }

    /// The next exchange; waits for one, at most as long as a thread's patience.
    pub(super) fn next(&self, thread: usize) -> Option<Waiting> {
        if let Some(waiting) = self.waiting.pop() {
            return Some(waiting);
        }
        let bit = 1 << thread;
        self.idle.fetch_or(bit, Ordering::SeqCst);
        if self.waiting.is_empty() {
            thread::park_timeout(PATIENCE);
        }
        self.idle.fetch_and(!bit, Ordering::SeqCst);
        self.waiting.pop()
    }

    pub(super) fn count(&self, outcome: ExchangeOutcome, suite: Suite) {
        // Only suites with a KEM come here.
        if let Some(suite) = Suite::ALL.iter().position(|&known| known == suite) {
            self.ended[outcome as usize][suite].count();
        }
    }
}

/// The queue as a packet worker sees it during a batch.
pub(crate) struct Inbox<'a> {
    pub(super) exchanges: &'a Exchanges,
    pub(super) worker: usize,
    pub(super) paths: &'a [ReplyPath],
}

impl KeyExchanges for Inbox<'_> {
    fn offer(&self, index: usize, exchange: KeyExchange) -> Result<(), Full> {
        self.exchanges.push(Waiting { exchange, worker: self.worker, path: self.paths[index] })
    }
}

#[cfg(test)]
mod tests {
    use authentick_proto::antp::state::Pending;

    use super::*;

    fn waiting() -> Waiting {
        let source = "198.18.0.1:123".parse().unwrap();
        let pending = Pending { suite: Suite::P256, issued: 0, transcript: [0; 32] };
        let exchange = KeyExchange::new(source, &[0; 48], 0, pending, &[0; 156]);
        Waiting { exchange, worker: 0, path: ReplyPath::default() }
    }

    #[test]
    fn burst_wakes_as_many_threads_as_it_has_exchanges() {
        let exchanges = Exchanges::new(8, 3);
        for thread in &exchanges.threads {
            thread.set(thread::current()).unwrap();
        }
        exchanges.idle.store(0b110, Ordering::SeqCst);
        for left in [0b100, 0, 0] {
            exchanges.push(waiting()).unwrap();
            assert_eq!(exchanges.idle.load(Ordering::SeqCst), left);
        }
        assert_eq!(exchanges.depth().0, 3);
    }

    #[test]
    fn exchange_that_comes_when_all_threads_are_awake_is_taken_without_a_sleep() {
        let exchanges = Exchanges::new(1, 1);
        exchanges.threads[0].set(thread::current()).unwrap();
        exchanges.push(waiting()).unwrap();
        assert_eq!(exchanges.push(waiting()), Err(Full));
        assert!(exchanges.next(0).is_some() && exchanges.next(0).is_none());
        assert_eq!((exchanges.idle.load(Ordering::SeqCst), exchanges.refused.get()), (0, 1));
    }
}
