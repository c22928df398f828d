//! Counters that their owners write and the endpoint reads, without a lock between them.

use std::sync::atomic::{AtomicU64, Ordering};

use authentick_ke::server::Outcome as KeOutcome;
use authentick_net::engine::Turn;
use authentick_proto::server::outcome::{OUTCOME_COUNT, Outcome, Outcomes};

/// The counters of one worker. Only that worker writes; each stands on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerCounters {
    outcomes: [AtomicU64; OUTCOME_COUNT],
    received: AtomicU64,
    send_failures: AtomicU64,
    receive_failures: AtomicU64,
    dropped: AtomicU64,
}

impl Default for WorkerCounters {
    fn default() -> Self {
        WorkerCounters {
            outcomes: [const { AtomicU64::new(0) }; OUTCOME_COUNT],
            received: AtomicU64::new(0),
            send_failures: AtomicU64::new(0),
            receive_failures: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }
}

impl WorkerCounters {
    /// Shows a turn and the responder's counters after it.
    pub(crate) fn publish(&self, turn: &Turn, outcomes: &Outcomes) {
        for (shown, count) in self.outcomes.iter().zip(outcomes.counters()) {
            shown.store(*count, Ordering::Relaxed);
        }
        // A single writer needs no atomic addition.
        let add = |shown: &AtomicU64, count: usize| {
            shown.store(shown.load(Ordering::Relaxed) + count as u64, Ordering::Relaxed);
        };
        add(&self.received, turn.received);
        add(&self.send_failures, turn.send_failures);
        add(&self.receive_failures, turn.receive_failures);
    }

    /// Shows how many datagrams the kernel has dropped before this worker could read them.
    pub(crate) fn publish_dropped(&self, count: u64) {
        self.dropped.store(count, Ordering::Relaxed);
    }
}

/// The counters of all workers, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// How often each outcome happened, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; OUTCOME_COUNT],
    /// Datagrams received.
    pub received: u64,
    /// Responses that the kernel refused to send.
    pub send_failures: u64,
    /// Times that the kernel failed to receive, in a way that passed.
    pub receive_failures: u64,
    /// Datagrams that the kernel dropped because nobody read them in time.
    pub dropped: u64,
}

impl Totals {
    /// Adds up.
    #[must_use]
    pub fn of<'a>(workers: impl IntoIterator<Item = &'a WorkerCounters>) -> Self {
        let mut totals = Totals::default();
        for worker in workers {
            for (total, count) in totals.outcomes.iter_mut().zip(&worker.outcomes) {
                *total += count.load(Ordering::Relaxed);
            }
            totals.received += worker.received.load(Ordering::Relaxed);
            totals.send_failures += worker.send_failures.load(Ordering::Relaxed);
            totals.receive_failures += worker.receive_failures.load(Ordering::Relaxed);
            totals.dropped += worker.dropped.load(Ordering::Relaxed);
        }
        totals
    }

    /// How often `outcome` happened.
    #[must_use]
    pub const fn of_outcome(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }
}

/// Counts one thing; several threads may count.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// It has happened once more.
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it has happened.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of key exchange, shared by its threads.
#[derive(Debug, Default)]
pub(crate) struct KeCounters {
    /// Connections accepted so far.
    pub(crate) accepted: Counter,
    /// How often the kernel had no descriptor or no memory for a connection.
    pub(crate) accept_failures: Counter,
    ended: [Counter; KeOutcome::ALL.len()],
}

impl KeCounters {
    /// Connections that ended with `outcome`.
    pub(crate) const fn ended(&self, outcome: KeOutcome) -> &Counter {
        &self.ended[outcome as usize]
    }

    /// Connections open now.
    pub(crate) fn open_count(&self) -> u64 {
        self.accepted.get().saturating_sub(self.ended.iter().map(Counter::get).sum())
    }
}
