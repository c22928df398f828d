//! A rate over all sources together: the generic cell rate algorithm in one word, which all workers share without a
//! lock.
//!
//! [`super::limit`] limits each source. This limits what the server spends in total.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many times an update is tried while other workers change the same word. After that the request is admitted.
const ATTEMPT_COUNT: usize = 8;

/// One bucket of tokens.
#[derive(Debug)]
pub struct Bucket {
    interval_us: u64,
    /// How far ahead of now the bucket may be full again.
    tolerance_us: u64,
    /// When it will be full again, by the clock of the requests.
    full_at_us: AtomicU64,
}

impl Bucket {
    /// A bucket out of which one request may come every `interval_us` in the long run, and `burst` at once.
    #[must_use]
    pub fn new(interval_us: u64, burst: u32) -> Self {
        let interval_us = interval_us.max(1);
        let tolerance_us = interval_us.saturating_mul(u64::from(burst.max(1) - 1));
        Bucket { interval_us, tolerance_us, full_at_us: AtomicU64::new(0) }
    }

    /// Whether another request is within the rate; counts it if it is. `now_us` comes from a monotonic clock.
    pub fn admit(&self, now_us: u64) -> bool {
        let mut full_at = self.full_at_us.load(Ordering::Relaxed);
        for _ in 0..ATTEMPT_COUNT {
            let begin = full_at.max(now_us);
            if begin - now_us > self.tolerance_us {
                return false;
            }
            let next = begin.saturating_add(self.interval_us);
            match self.full_at_us.compare_exchange_weak(full_at, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(changed) => full_at = changed,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_then_rate_then_the_burst_comes_back() {
        let bucket = Bucket::new(10_000, 5);
        let start = 5_000_000;
        assert_eq!((0..50).filter(|_| bucket.admit(start)).count(), 5);
        let in_a_second = (1..=1000).filter(|tick| bucket.admit(start + tick * 1000)).count();
        assert!((99..=101).contains(&in_a_second), "{in_a_second}");
        assert_eq!((0..50).filter(|_| bucket.admit(start + 60_000_000)).count(), 5);
    }

    #[test]
    fn threads_share_what_there_is() {
        const COUNT: usize = 2000;
        let bucket = Bucket::new(1_000_000, 1000);
        let admitted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..2).map(|_| scope.spawn(|| (0..COUNT).filter(|_| bucket.admit(7)).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        // What loses a race eight times over is let through.
        assert!((1000..1010).contains(&admitted), "{admitted}");
    }
}
