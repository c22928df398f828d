//! Work that threads hand to others, which sleep while there is none: a queue, and a bit for each sleeper.
//!
//! Who brings work takes no lock. It makes a system call only if it wakes a thread.
//!
//! # What holds
//! - Work that was pushed is taken: no thread goes to sleep, or goes on sleeping, while something waits, unless another
//!   one is awake and looks once more before it sleeps.
//! - After [`Handoff::stop`] all threads return.
//!
//! Both without a time limit on any sleep. They hold because a thread sets its bit, then passes a fence, then looks for
//! the last time; and who brings work pushes it, then passes a fence, then looks at the bits. Fences that are `SeqCst`
//! have one order. If the sleeper's is the later one, its look finds the work; otherwise its bit is seen, and whoever
//! clears that wakes it. This asks nothing of the queue but that an entry which was pushed is not lost.
//!
//! A waker that finds a bit cleared since it looked leaves that thread to whoever cleared it. That thread looks again:
//! it sets its bit anew after the waker found it cleared, and the waker's fence before and its own after this make it
//! see all that was pushed before. A token of `unpark` that comes to a thread that is awake makes one later sleep end
//! early, and it looks once more than it has to.
//!
//! `fetch_or` releases and a waker's `fetch_and` acquires, so that a waker that sees a bit also sees which thread it
//! belongs to. The word of bits is never stored to, only updated, so this holds across the updates of others. Nothing
//! else needs an order: the queue itself passes on what is in its entries.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::sync::{AtomicBool, AtomicU64, OnceLock, Thread, current, fence, park_timeout};

/// How many threads can sleep: each has a bit in a word.
pub const SLEEPER_COUNT_MAX: usize = u64::BITS as usize;

/// How long a thread sleeps at most. Nothing depends on it.
const PATIENCE: Duration = Duration::from_millis(200);

/// A bounded queue that any number of threads may use at once, without waiting.
pub trait Queue {
    /// What waits in it.
    type Item;

    /// Appends an item, or gives it back if there is no room.
    ///
    /// # Errors
    /// The item, if there is no room.
    fn push(&self, item: Self::Item) -> Result<(), Self::Item>;

    /// Takes the next item.
    fn pop(&self) -> Option<Self::Item>;

    /// Whether nothing waits.
    fn is_empty(&self) -> bool;
}

/// A queue, and the threads that take from it.
#[derive(Debug)]
pub struct Handoff<Q> {
    queue: Q,
    threads: Box<[OnceLock<Thread>]>,
    /// A bit for each thread that sleeps, or is about to sleep.
    idle: AtomicU64,
    is_stopped: AtomicBool,
}

impl<Q: Queue> Handoff<Q> {
    /// For `thread_count` threads that take from `queue`.
    ///
    /// # Panics
    /// If there are more than [`SLEEPER_COUNT_MAX`].
    pub fn new(queue: Q, thread_count: usize) -> Self {
        assert!(thread_count <= SLEEPER_COUNT_MAX, "each thread has a bit in a word");
        Handoff {
            queue,
            threads: (0..thread_count).map(|_| OnceLock::new()).collect(),
            idle: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// The queue; what is pushed there wakes nobody.
    pub fn queue(&self) -> &Q {
        &self.queue
    }

    /// The calling thread is the one with this number. To be called once, before [`Handoff::next`].
    ///
    /// # Panics
    /// If there is no such number.
    pub fn enlist(&self, number: usize) {
        // Set once: a number belongs to one thread.
        let _ = self.threads[number].set(current());
    }

    /// Hands `item` to a thread, and wakes one if one sleeps.
    ///
    /// # Errors
    /// The item, if there is no room.
    pub fn push(&self, item: Q::Item) -> Result<(), Q::Item> {
        self.queue.push(item)?;
        self.wake_one();
        Ok(())
    }

    /// The next item for the thread with this number; waits for one. `None` after a stop.
    pub fn next(&self, number: usize) -> Option<Q::Item> {
        while !self.is_stopped() {
            if let Some(item) = self.queue.pop() {
                return Some(item);
            }
            let bit = 1 << number;
            self.idle.fetch_or(bit, Ordering::Release);
            fence(Ordering::SeqCst);
            if self.queue.is_empty() && !self.is_stopped() {
                park_timeout(PATIENCE);
            }
            self.idle.fetch_and(!bit, Ordering::Relaxed);
        }
        None
    }

    /// Makes all threads return from [`Handoff::next`], now and ever after. What waits stays in the queue.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let idle = self.idle.load(Ordering::Relaxed);
        (0..self.threads.len()).filter(|number| idle & 1 << number != 0).for_each(|number| {
            self.wake(number);
        });
    }

    /// Wakes a sleeping thread. Its bit is cleared at once, so that the next item of a burst wakes another thread.
    fn wake_one(&self) {
        fence(Ordering::SeqCst);
        let mut idle = self.idle.load(Ordering::Relaxed);
        // Each turn clears a bit that is set here, so there are at most as many turns as bits.
        while idle != 0 {
            if self.wake(idle.trailing_zeros() as usize) {
                return;
            }
            idle &= idle - 1;
        }
    }

    /// Wakes a thread whose bit was seen. False if somebody was faster, who wakes it.
    fn wake(&self, number: usize) -> bool {
        let bit = 1 << number;
        let is_ours = self.idle.fetch_and(!bit, Ordering::Acquire) & bit != 0;
        let (true, Some(thread)) = (is_ours, self.threads.get(number).and_then(OnceLock::get)) else {
            return false;
        };
        thread.unpark();
        true
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
