//! Key exchanges that wait for public-key work: a bounded queue that packet workers fill without waiting, and that
//! wakes the public-key threads ([`super::worker`]). [`Handoff`] says why none is left lying.
//!
//! **Invariant:** a packet worker takes no lock and allocates nothing here. If there is no room, the exchange is
//! refused.

use authentick_lockfree::{Handoff, Queue, SLEEPER_COUNT_MAX};
use authentick_net::engine::ReplyPath;
use authentick_proto::antp::server::{ExchangeOutcome, KeyExchange};
use authentick_proto::server::antp::{Full, KeyExchanges};
use authentick_wire::antp::Suite;
use crossbeam_queue::ArrayQueue;

use crate::config::ANTP_WORKER_COUNT_MAX;
use crate::metrics::counters::Counter;

const _: () = assert!(ANTP_WORKER_COUNT_MAX <= SLEEPER_COUNT_MAX, "each thread sleeps");

/// A key exchange, and how its answer goes back.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) exchange: KeyExchange,
    /// The packet worker whose socket it came to.
    pub(super) worker: usize,
    pub(super) path: ReplyPath,
}

/// The queue itself.
#[derive(Debug)]
struct Room(ArrayQueue<Waiting>);

impl Queue for Room {
    type Item = Waiting;

    fn push(&self, waiting: Waiting) -> Result<(), Waiting> {
        self.0.push(waiting)
    }

    fn pop(&self) -> Option<Waiting> {
        self.0.pop()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The queue with its threads, and counts of how its entries ended.
#[derive(Debug)]
pub(crate) struct Exchanges {
    waiting: Handoff<Room>,
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
            waiting: Handoff::new(Room(ArrayQueue::new(room)), thread_count),
            refused: Counter::default(),
            ended: Default::default(),
            send_failures: Counter::default(),
        }
    }

    /// How many key exchanges wait now, and for how many there is room.
    pub(crate) fn depth(&self) -> (usize, usize) {
        (self.waiting.queue().0.len(), self.waiting.queue().0.capacity())
    }

    /// The calling thread is the public-key thread with this number.
    pub(super) fn enlist(&self, number: usize) {
        self.waiting.enlist(number);
    }

    fn push(&self, waiting: Waiting) -> Result<(), Full> {
        self.waiting.push(waiting).map_err(|_| {
            self.refused.count();
            Full
        })
    }

    /// The next exchange for a thread; waits for one. `None` after a stop.
    pub(super) fn next(&self, thread: usize) -> Option<Waiting> {
        self.waiting.next(thread)
    }

    /// Makes all threads end. What waits is not answered any more.
    pub(crate) fn stop(&self) {
        self.waiting.stop();
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
    fn exchange_without_room_is_refused_and_counted() {
        let exchanges = Exchanges::new(1, 1);
        exchanges.enlist(0);
        exchanges.push(waiting()).unwrap();
        assert_eq!(exchanges.push(waiting()), Err(Full));
        assert_eq!((exchanges.depth(), exchanges.refused.get()), ((1, 1), 1));
        assert!(exchanges.next(0).is_some());
        assert_eq!(exchanges.depth(), (0, 1));
    }

    #[test]
    fn threads_take_all_that_packet_workers_bring_and_end_at_a_stop() {
        const COUNT: usize = 10_000;
        let exchanges = Exchanges::new(8, 2);
        let taken = Counter::default();
        std::thread::scope(|scope| {
            for number in 0..2 {
                let (exchanges, taken) = (&exchanges, &taken);
                scope.spawn(move || {
                    exchanges.enlist(number);
                    while exchanges.next(number).is_some() {
                        taken.count();
                    }
                });
            }
            let mut left = COUNT;
            while left > 0 {
                left -= usize::from(exchanges.push(waiting()).is_ok());
            }
            while exchanges.depth().0 > 0 {
                std::thread::yield_now();
            }
            exchanges.stop();
        });
        assert_eq!(taken.get(), COUNT as u64);
    }
}
