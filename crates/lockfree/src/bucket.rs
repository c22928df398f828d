//! A rate over all sources together: the generic cell rate algorithm in one word.
//!
//! # What holds
//! Let `threads` ask at once, and let `counted` be the requests that changed the word.
//! - At any instant `counted` is at most the burst, and one more for each interval that has passed. None is refused
//!   before.
//! - What has lost [`ATTEMPT_COUNT`] races is admitted and not counted. Each of these races was lost to a request that
//!   was counted, and a thread loses only one race to it. So at most `counted * (threads - 1) / ATTEMPT_COUNT` are
//!   admitted without being counted; below [`ATTEMPT_COUNT`] others at once there is none.
//!
//! All accesses are relaxed. The decision depends on this one word, and nothing else is read because of it. An update
//! compares with the last value that the word had, whatever was loaded, so none is lost; and a thread that has lost a
//! race never sees an older value again, as the accesses to one word have one order.

use std::sync::atomic::Ordering;

use crate::Allowance;
use crate::sync::AtomicU64;

/// How many times an update is tried while other workers change the same word. After that the request is admitted.
const ATTEMPT_COUNT: usize = 8;

/// One bucket of tokens.
#[derive(Debug)]
pub struct Bucket {
    allowance: Allowance,
    /// When it will be full again, by the clock of the requests.
    full_at_us: AtomicU64,
}

impl Bucket {
    /// A full bucket.
    #[must_use]
    pub fn new(allowance: Allowance) -> Self {
        Bucket { allowance, full_at_us: AtomicU64::new(0) }
    }

    /// Whether another request is within the rate; counts it if it is. `now_us` comes from a monotonic clock.
    #[inline]
    pub fn admit(&self, now_us: u64) -> bool {
        self.admit_within(ATTEMPT_COUNT, now_us)
    }

    #[inline]
    fn admit_within(&self, attempt_count: usize, now_us: u64) -> bool {
        let mut full_at = self.full_at_us.load(Ordering::Relaxed);
        for _ in 0..attempt_count {
            let begin = full_at.max(now_us);
            if begin - now_us > self.allowance.tolerance_us() {
                return false;
            }
            let next = begin.saturating_add(self.allowance.interval_us());
            // Not the weak one: it may fail without a race.
            match self.full_at_us.compare_exchange(full_at, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(changed) => full_at = changed,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;
