//! The closed loop with which a search begins: what the server answers when it always has work.
//!
//! Windows double until the rate stops growing; a last run at the best of them gives the throughput. It is a result of
//! its own, and where the bracket of open trials starts.

use std::time::Duration;

use authentick_report::load::{Step, Throughput};

/// How long one window is tried.
const TRIAL: Duration = Duration::from_millis(200);
/// How long the best one runs, for the result.
const LAST: Duration = Duration::from_secs(1);
/// Windows are tried for so long at most, with the waits for their last responses.
const SPENT_MAX: Duration = Duration::from_secs(4);
/// A rate grows if it is higher by this factor.
const GROWTH_MIN: f64 = 1.05;
/// So many windows in a row without growth end the doubling.
const FLAT_COUNT: u32 = 2;
/// A window that loses more than this share is too large: a further one only loses more.
const LOSS_MAX: f64 = 0.01;

/// The windows that a closed loop tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The first one, at least 1: operations that each worker keeps in flight.
    pub first: u32,
    /// The largest.
    pub largest: u32,
}

/// One run of a closed loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedTrial {
    /// Operations sent.
    pub sent: u64,
    /// Those that were lost or answered wrongly.
    pub failed: u64,
    /// Operations answered, a second.
    pub answered_rps: f64,
}

impl From<&Step> for ClosedTrial {
    fn from(step: &Step) -> Self {
        ClosedTrial {
            sent: step.tally.sent,
            failed: step.tally.lost + step.tally.invalid,
            answered_rps: step.answered_rps(),
        }
    }
}

/// A closed loop in progress.
#[derive(Clone, Debug)]
pub(super) struct ClosedLoop {
    windows: Windows,
    /// The window that runs next.
    window: u32,
    /// The window with the highest rate so far.
    best: Option<Throughput>,
    flat_count: u32,
    spent: Duration,
    /// Whether the best window has its last run.
    is_last: bool,
}

impl ClosedLoop {
    pub(super) const fn new(windows: Windows) -> Self {
        let window = windows.first;
        ClosedLoop { windows, window, best: None, flat_count: 0, spent: Duration::ZERO, is_last: false }
    }

    /// The window to run, and for how long.
    pub(super) const fn next(&self) -> (u32, Duration) {
        (self.window, if self.is_last { LAST } else { TRIAL })
    }

    /// Takes in the run of [`ClosedLoop::next`], which took that long in all. Whether another one follows.
    pub(super) fn take(&mut self, trial: ClosedTrial, took: Duration) -> bool {
        let result = Throughput { rate_rps: trial.answered_rps, window: self.window };
        if self.is_last {
            self.best = Some(result);
            return false;
        }
        self.spent += took;
        let best_rps = self.best.map_or(0.0, |best| best.rate_rps);
        self.flat_count = if trial.answered_rps > best_rps * GROWTH_MIN { 0 } else { self.flat_count + 1 };
        if trial.answered_rps > best_rps {
            self.best = Some(result);
        }
        let is_over = self.flat_count >= FLAT_COUNT
            || trial.failed as f64 > LOSS_MAX * trial.sent as f64
            || self.window >= self.windows.largest
            || self.spent >= SPENT_MAX;
        match (is_over, self.best) {
            (false, _) => self.window = (self.window * 2).min(self.windows.largest),
            (true, Some(best)) => (self.window, self.is_last) = (best.window, true),
            (true, None) => return false,
        }
        true
    }

    /// What was found: of the last run, or the best so far; `None` if nothing was answered.
    pub(super) const fn throughput(&self) -> Option<Throughput> {
        self.best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: Windows = Windows { first: 8, largest: 4096 };

    /// Runs a closed loop of a server that answers `rate_rps(window)`, and loses what is beyond `place_count` at once.
    fn run(place_count: u32, rate_rps: impl Fn(u32) -> f64) -> (Option<Throughput>, Vec<u32>) {
        let mut closed = ClosedLoop::new(WINDOWS);
        let mut windows = Vec::new();
        loop {
            let (window, duration) = closed.next();
            windows.push(window);
            let failed = u64::from(window.saturating_sub(place_count));
            let answered_rps = if failed > 0 { 1.0 } else { rate_rps(window) };
            if !closed.take(ClosedTrial { sent: 1000, failed, answered_rps }, duration) {
                return (closed.throughput(), windows);
            }
        }
    }

    #[test]
    fn windows_double_until_the_rate_stops_growing() {
        let (throughput, windows) = run(u32::MAX, |window| f64::from(window.min(100)) * 1000.0);
        assert_eq!(windows, [8, 16, 32, 64, 128, 256, 512, 128]);
        assert_eq!(throughput, Some(Throughput { rate_rps: 100_000.0, window: 128 }));
    }

    #[test]
    fn window_that_loses_ends_the_doubling() {
        let (throughput, windows) = run(50, |window| f64::from(window) * 1000.0);
        assert_eq!(windows, [8, 16, 32, 64, 32]);
        assert_eq!(throughput, Some(Throughput { rate_rps: 32_000.0, window: 32 }));
    }

    #[test]
    fn silent_server_has_no_throughput() {
        let (throughput, windows) = run(u32::MAX, |_| 0.0);
        assert_eq!((throughput, windows.len()), (None, 2));
    }

    #[test]
    fn long_round_trips_grow_up_to_the_largest_window() {
        let (throughput, windows) = run(u32::MAX, f64::from);
        assert_eq!(throughput, Some(Throughput { rate_rps: 4096.0, window: 4096 }));
        assert_eq!((windows.len(), windows.last()), (11, Some(&4096)));
    }
}
