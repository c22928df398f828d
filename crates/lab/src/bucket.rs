//! A token bucket: so many a second, and a few at once. It reads no clock.

use std::time::Instant;

/// Lets through what a rate allows.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    rate_rps: f64,
    burst: f64,
    tokens: f64,
    at: Option<Instant>,
}

impl Bucket {
    /// A full bucket of `burst` tokens, into which `rate_rps` fall every second.
    pub(crate) fn new(rate_rps: f64, burst: u32) -> Self {
        let burst = f64::from(burst);
        Bucket { rate_rps, burst, tokens: burst, at: None }
    }

    /// Takes a token at `now`, which is no earlier than the time before; `false` if there is none.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let passed = self.at.map_or(0.0, |at| now.saturating_duration_since(at).as_secs_f64());
        self.at = Some(now);
        self.tokens = (self.tokens + passed * self.rate_rps).min(self.burst);
        let has = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(has));
        has
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_more_passes_than_rate_and_burst_allow_and_no_less() {
        let start = Instant::now();
        for offered_rps in [500, 1000, 1500, 4000] {
            let mut bucket = Bucket::new(1000.0, 20);
            let at = |index: u32| start + Duration::from_secs(1) * index / offered_rps;
            let passed = (0..2 * offered_rps).filter(|&index| bucket.take(at(index))).count() as u32;
            let expected = (2 * offered_rps).min(2020);
            assert!(passed.abs_diff(expected) <= 2, "{passed} of {offered_rps} a second");
        }
    }

    #[test]
    fn idle_bucket_holds_no_more_than_its_burst() {
        let start = Instant::now();
        let mut bucket = Bucket::new(1000.0, 3);
        assert!(bucket.take(start));
        let later = start + Duration::from_secs(100);
        assert_eq!((0..10).filter(|_| bucket.take(later)).count(), 3);
    }
}
