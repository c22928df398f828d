//! The rate of trials, tuned as the paper's was: the server's core about 95 % busy, and less than a hundredth lost.
//!
//! A search ends at the highest rate at which little is lost, and there a core is busy all the time. From there the
//! rate falls, by more each time, until it is too low; then the middle of what is left is tried.

use authentick_report::published::antp::{LOSS_MAX, SERVER_SHARE};

/// How far the share of the processor may be from the paper's.
const SHARE_DEVIATION_MAX: f64 = 0.02;
/// What the first fall leaves of a rate; each further one leaves the square of what the one before left.
const FIRST_FALL: f64 = 0.95;
/// What a fall leaves at least.
const FALL_MIN: f64 = 0.7;
/// Steps that are tried.
const STEP_COUNT_MAX: usize = 8;

/// What a step at some rate showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tried {
    pub(super) rps: f64,
    /// The share of its processor that the server used.
    pub(super) server_share: f64,
    pub(super) loss_ratio: f64,
}

impl Tried {
    fn is_lossy(&self) -> bool {
        self.loss_ratio >= LOSS_MAX
    }

    fn is_near(&self) -> bool {
        !self.is_lossy() && self.deviation() <= SHARE_DEVIATION_MAX
    }

    fn is_too_much(&self) -> bool {
        self.is_lossy() || self.server_share > SERVER_SHARE + SHARE_DEVIATION_MAX
    }

    fn deviation(&self) -> f64 {
        (self.server_share - SERVER_SHARE).abs()
    }
}

/// The next rate to try, after these; `None`: it is tuned as well as it can be.
pub(super) fn next_rps(tried: &[Tried]) -> Option<f64> {
    let last = tried.last()?;
    if tried.len() >= STEP_COUNT_MAX || last.is_near() {
        return None;
    }
    let too_much = tried.iter().filter(|one| one.is_too_much()).map(|one| one.rps).min_by(f64::total_cmp);
    let too_little = tried.iter().filter(|one| !one.is_too_much()).map(|one| one.rps).max_by(f64::total_cmp);
    match (too_little, too_much) {
        (Some(low), Some(high)) if low < high => Some((low + high) / 2.0),
        // Machines that others use too: what was too much before is not now.
        (Some(_), Some(_)) => None,
        (None, _) => {
            let falls = 1 << (tried.len() - 1).min(4);
            Some(last.rps * FIRST_FALL.powi(falls).max(FALL_MIN))
        }
        // The highest rate that held leaves the server idle: something else is the limit.
        (Some(_), None) => None,
    }
}

/// The best of them: where little was lost, the one nearest to the paper's share; if there is none, the lowest rate.
pub(super) fn best(tried: &[Tried]) -> Option<Tried> {
    let held = tried.iter().filter(|one| !one.is_lossy());
    let nearest = held.min_by(|a, b| a.deviation().total_cmp(&b.deviation()));
    nearest.or_else(|| tried.iter().min_by(|a, b| a.rps.total_cmp(&b.rps))).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tunes against a server with some share and loss at each rate; returns what was tried.
    fn tuned(from_rps: f64, server: impl Fn(f64) -> (f64, f64)) -> Vec<Tried> {
        let mut tried = Vec::new();
        let mut next = Some(from_rps);
        while let Some(rps) = next {
            let (server_share, loss_ratio) = server(rps);
            tried.push(Tried { rps, server_share, loss_ratio });
            next = next_rps(&tried);
        }
        tried
    }

    #[test]
    fn rate_falls_to_where_the_server_is_nearly_busy() {
        // Busy all the time at 100,000 a second, and at more.
        for from_rps in [100_000.0, 104_000.0, 130_000.0] {
            let tried = tuned(from_rps, |rps| ((rps / 100_000.0).min(1.0), 0.0));
            let best = best(&tried).unwrap();
            assert!(best.deviation() <= SHARE_DEVIATION_MAX, "{from_rps} {tried:?}");
            assert!((93_000.0..=97_000.0).contains(&best.rps), "{best:?}");
            assert!(tried.len() <= STEP_COUNT_MAX);
        }
    }

    #[test]
    fn what_batches_make_cheaper_under_load_is_found_by_halving() {
        // Half the load takes three quarters of the processor.
        let share = |rps: f64| (0.5 + rps / 200_000.0).min(1.0);
        let best = best(&tuned(120_000.0, |rps| (share(rps), 0.0))).unwrap();
        assert!(best.deviation() <= SHARE_DEVIATION_MAX && best.rps < 100_000.0, "{best:?}");
    }

    #[test]
    fn rate_that_loses_is_lowered_though_the_server_is_not_busy() {
        let tried = tuned(50_000.0, |rps| (0.95, if rps > 40_000.0 { 0.02 } else { 0.0 }));
        let best = best(&tried).unwrap();
        assert!(best.rps <= 40_000.0 && best.rps > 25_000.0, "{tried:?}");
    }

    #[test]
    fn server_that_something_else_keeps_idle_is_left_at_what_held() {
        let tried = tuned(80_000.0, |_| (0.4, 0.001));
        assert_eq!(tried.len(), 1);
        assert_eq!(best(&tried).unwrap().rps, 80_000.0);
    }

    #[test]
    fn nothing_tried_is_nothing_tuned() {
        assert_eq!((next_rps(&[]), best(&[])), (None, None));
        let all_lose = tuned(1000.0, |_| (1.0, 0.5));
        assert_eq!(all_lose.len(), STEP_COUNT_MAX);
        assert_eq!(best(&all_lose).unwrap().rps, all_lose.last().unwrap().rps);
    }
}
