//! A number with a label, which one thread writes and others read: two words, and nobody waits.
//!
//! # What holds
//! - A reader never gets a number beside another label than it was written with. A writer that changes the label takes
//!   it away before it writes a number of the next, and each number is stored with `Release` and loaded with `Acquire`:
//!   who sees it sees also that the old label is gone. A label that comes back is told from what it was before by how
//!   often labels have changed, which takes 2^32 changes to come round.
//! - Numbers of a label that stays are seen in the order in which they were written.
//!
//! A reader that meets a change gets nothing.

use std::sync::atomic::Ordering;

use crate::sync::AtomicU64;

/// A place for a label and a number; empty at first.
#[derive(Debug)]
pub struct Labelled {
    /// The label below, how often it has changed above; zero while there is none.
    label: AtomicU64,
    number: AtomicU64,
}

impl Default for Labelled {
    fn default() -> Self {
        Labelled { label: AtomicU64::new(0), number: AtomicU64::new(0) }
    }
}

impl Labelled {
    /// Writes a number under a label. Only one thread may do so.
    #[inline]
    pub fn write(&self, label: u32, number: u64) {
        let present = self.label.load(Ordering::Relaxed);
        let changes = present >> 32;
        if changes != 0 && present == word(changes, label) {
            self.number.store(number, Ordering::Release);
            return;
        }
        // Never zero: that would be an empty place.
        let changes = if changes == u64::from(u32::MAX) { 1 } else { changes + 1 };
        self.label.store(0, Ordering::Relaxed);
        self.number.store(number, Ordering::Release);
        self.label.store(word(changes, label), Ordering::Release);
    }

    /// The label and its number; `None` if there is none, or it is changing.
    #[inline]
    pub fn read(&self) -> Option<(u32, u64)> {
        let label = self.label.load(Ordering::Acquire);
        let number = self.number.load(Ordering::Acquire);
        let is_still_its = label != 0 && self.label.load(Ordering::Relaxed) == label;
        is_still_its.then_some(((label & u64::from(u32::MAX)) as u32, number))
    }
}

const fn word(changes: u64, label: u32) -> u64 {
    changes << 32 | label as u64
}

#[cfg(test)]
mod tests;
