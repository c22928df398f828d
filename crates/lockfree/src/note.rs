//! A number that one thread leaves for another, which takes it once: two words, and nobody waits.
//!
//! The second word is a seal, which the caller computes over the number and over whom it is for, by a keyed hash.
//!
//! # What holds
//! - A number that was taken was left with the seal that its taker computed over it: for that taker. This needs no
//!   order of memory. Two writers can leave the number of one beside the seal of the other, and so can a reader meet
//!   them, but then the seal is wrong, except by a chance of 2^-64.
//! - Each number is taken at most once: who takes it replaces the seal by zero, and only one can.
//! - Who sees a seal beside whose number nothing was left since also sees that number: the seal is stored with
//!   `Release`, after the number, and loaded with `Acquire`, before it. Without that a note would sometimes be missed,
//!   but no wrong one taken.
//!
//! A note that two writers have spoilt, or that was overwritten, is not found. The caller must be able to do without.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;

use crate::sync::AtomicU64;

/// A place for a number and its seal; empty at first.
#[derive(Debug)]
pub struct Note {
    number: AtomicU64,
    /// Zero if there is none.
    seal: AtomicU64,
}

impl Default for Note {
    fn default() -> Self {
        Note { number: AtomicU64::new(0), seal: AtomicU64::new(0) }
    }
}

impl Note {
    /// Leaves `number`, and overwrites what was there.
    #[inline]
    pub fn leave(&self, number: u64, seal: NonZeroU64) {
        self.number.store(number, Ordering::Relaxed);
        self.seal.store(seal.get(), Ordering::Release);
    }

    /// Takes the number, if its seal is the one that `seal_of` makes of it.
    #[inline]
    pub fn take(&self, seal_of: impl FnOnce(u64) -> NonZeroU64) -> Option<u64> {
        let seal = NonZeroU64::new(self.seal.load(Ordering::Acquire))?;
        let number = self.number.load(Ordering::Relaxed);
        if seal != seal_of(number) {
            return None;
        }
        let used = self.seal.compare_exchange(seal.get(), 0, Ordering::Relaxed, Ordering::Relaxed);
        used.is_ok().then_some(number)
    }
}

#[cfg(test)]
mod tests;
