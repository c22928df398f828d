//! Counters that their owners write and the endpoint reads, without a lock between them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use authentick_ke::server::Outcome as KeOutcome;
use authentick_lockfree::Labelled;
use authentick_net::engine::Turn;
use authentick_net::udp::SocketMemory;
use authentick_proto::limits::OPENING_KEY_COUNT_MAX;
use authentick_proto::server::outcome::{OUTCOME_COUNT, Outcome, Outcomes};
use authentick_proto::server::uses::KeyUses;

/// The counters of one worker. Only that worker writes; each stands on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerCounters {
    outcomes: [AtomicU64; OUTCOME_COUNT],
    received: AtomicU64,
    send_failures: AtomicU64,
    send_buffer_full: AtomicU64,
    /// Of the send buffer when it last had no room: octets in it, and its size.
    full_at: [AtomicU64; 2],
    receive_failures: AtomicU64,
    dropped: AtomicU64,
    /// When it last turned, by the clock that nobody sets.
    beat_ns: AtomicU64,
    /// Requests under each cookie key.
    key_uses: [Labelled; OPENING_KEY_COUNT_MAX],
    /// Requests under each of ANTP's state keys.
    state_key_uses: [Labelled; OPENING_KEY_COUNT_MAX],
}

impl WorkerCounters {
    /// Those of a worker that begins now.
    pub(crate) fn new(boot_ns: u64) -> Self {
        WorkerCounters {
            outcomes: [const { AtomicU64::new(0) }; OUTCOME_COUNT],
            received: AtomicU64::new(0),
            send_failures: AtomicU64::new(0),
            send_buffer_full: AtomicU64::new(0),
            full_at: [const { AtomicU64::new(0) }; 2],
            receive_failures: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            beat_ns: AtomicU64::new(boot_ns),
            key_uses: std::array::from_fn(|_| Labelled::default()),
            state_key_uses: std::array::from_fn(|_| Labelled::default()),
        }
    }

    /// Shows a batch of `size` datagrams and the responder's counters after it: `key_uses` of cookie keys, and of
    /// ANTP's state keys.
    pub(crate) fn publish_batch(&self, size: usize, outcomes: &Outcomes, key_uses: [&[KeyUses]; 2]) {
        for (shown, count) in self.outcomes.iter().zip(outcomes.counters()) {
            shown.store(*count, Ordering::Relaxed);
        }
        let [cookie_keys, state_keys] = key_uses;
        let of_cookies = self.key_uses.iter().zip(cookie_keys);
        for (shown, uses) in of_cookies.chain(self.state_key_uses.iter().zip(state_keys)) {
            shown.write(uses.id, uses.requests);
        }
        add(&self.received, size);
    }

    /// Shows what failed in a turn.
    pub(crate) fn publish_failures(&self, turn: &Turn) {
        add(&self.send_failures, turn.send_failures);
        add(&self.send_buffer_full, turn.send_buffer_full);
        add(&self.receive_failures, turn.receive_failures);
    }

    /// Shows that the worker turns.
    pub(crate) fn publish_beat(&self, boot_ns: u64) {
        self.beat_ns.store(boot_ns, Ordering::Relaxed);
    }

    /// How long ago it last turned.
    pub(crate) fn age(&self, boot_ns: u64) -> Duration {
        Duration::from_nanos(boot_ns.saturating_sub(self.beat_ns.load(Ordering::Relaxed)))
    }

    /// Shows how many datagrams the kernel has dropped before this worker could read them, and the send buffer if it
    /// had no room in this turn.
    pub(crate) fn publish_memory(&self, turn: &Turn, memory: SocketMemory) {
        self.dropped.store(memory.dropped_count, Ordering::Relaxed);
        if turn.send_buffer_full > 0 {
            let [unsent, size] = &self.full_at;
            unsent.store(memory.unsent as u64, Ordering::Relaxed);
            size.store(memory.send_buffer as u64, Ordering::Relaxed);
        }
    }
}

/// A single writer needs no atomic addition.
fn add(shown: &AtomicU64, count: usize) {
    shown.store(shown.load(Ordering::Relaxed) + count as u64, Ordering::Relaxed);
}

/// The counters of all workers, added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// How often each outcome happened, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; OUTCOME_COUNT],
    /// Datagrams received.
    pub received: u64,
    /// Responses that the kernel refused to send.
    pub send_failures: u64,
    /// Of these, responses for which the send buffer had no room.
    pub send_buffer_full: u64,
    /// Octets in the fullest of the send buffers when it last had no room, and its size.
    pub full_at: [u64; 2],
    /// Times that the kernel failed to receive, in a way that passed.
    pub receive_failures: u64,
    /// Datagrams that the kernel dropped because nobody read them in time.
    pub dropped: u64,
}

impl Default for Totals {
    /// Nothing has happened yet.
    fn default() -> Self {
        Totals {
            outcomes: [0; OUTCOME_COUNT],
            received: 0,
            send_failures: 0,
            send_buffer_full: 0,
            full_at: [0; 2],
            receive_failures: 0,
            dropped: 0,
        }
    }
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
            totals.send_buffer_full += worker.send_buffer_full.load(Ordering::Relaxed);
            totals.full_at =
                totals.full_at.max(worker.full_at.each_ref().map(|octets| octets.load(Ordering::Relaxed)));
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

/// Requests under each cookie key that were given time, by all workers together. Keys that open no more may be among
/// them.
pub(crate) fn key_uses<'a>(workers: impl IntoIterator<Item = &'a WorkerCounters>) -> BTreeMap<u32, u64> {
    added_up(workers.into_iter().flat_map(|worker| &worker.key_uses))
}

/// The same under each of ANTP's state keys.
pub(crate) fn state_key_uses<'a>(
    workers: impl IntoIterator<Item = &'a WorkerCounters>,
) -> BTreeMap<u32, u64> {
    added_up(workers.into_iter().flat_map(|worker| &worker.state_key_uses))
}

fn added_up<'a>(counters: impl Iterator<Item = &'a Labelled>) -> BTreeMap<u32, u64> {
    let mut all = BTreeMap::new();
    for (id, requests) in counters.filter_map(Labelled::read) {
        *all.entry(id).or_insert(0) += requests;
    }
    all
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_added_up_over_workers() {
        let workers = [WorkerCounters::new(0), WorkerCounters::new(0)];
        let uses = |id, requests| KeyUses { id, requests };
        workers[0].publish_batch(1, &Outcomes::default(), [&[uses(0, 3), uses(9, 4)], &[uses(9, 1)]]);
        workers[1].publish_batch(1, &Outcomes::default(), [&[uses(9, 5)], &[uses(9, 2), uses(1, 7)]]);
        assert_eq!(key_uses(&workers), BTreeMap::from([(0, 3), (9, 9)]));
        assert_eq!(state_key_uses(&workers), BTreeMap::from([(1, 7), (9, 3)]));
        workers[0].publish_batch(1, &Outcomes::default(), [&[uses(u32::MAX, 1), uses(9, 6)], &[]]);
        assert_eq!(key_uses(&workers), BTreeMap::from([(9, 11), (u32::MAX, 1)]));
    }
}
