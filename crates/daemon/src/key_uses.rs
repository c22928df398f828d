//! How often each key was used of late: what it would cost to take one away.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use authentick_fleet::Count;

/// How far back one looks.
const MINUTE: Duration = Duration::from_secs(60);
/// How often is written down how far the counters are.
const PERIOD: Duration = Duration::from_secs(5);

/// Where the counters of keys of one kind stood within the last minute.
#[derive(Debug, Default)]
pub(crate) struct KeyUseHistory(Mutex<VecDeque<(Instant, BTreeMap<u32, u64>)>>);

impl KeyUseHistory {
    /// The counters stand at `totals`, by key, at `now`; looked at only if it is time for that.
    pub(crate) fn note(&self, now: Instant, totals: impl FnOnce() -> BTreeMap<u32, u64>) {
        let mut history = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let age = |seen: Option<&(Instant, _)>| seen.map(|(when, _)| now.saturating_duration_since(*when));
        if age(history.back()).is_some_and(|age| age < PERIOD) {
            return;
        }
        history.push_back((now, totals()));
        // One that is a minute old stays: what came since is what counts.
        while age(history.get(1)).is_some_and(|age| age >= MINUTE) {
            history.pop_front();
        }
    }

    /// Requests under each of `keys`, as of the last note.
    pub(crate) fn counts(&self, keys: &[u32]) -> Vec<Count> {
        let history = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some((start, before)), Some((end, after))) = (history.front(), history.back()) else {
            return Vec::new();
        };
        let span = end.saturating_duration_since(*start).max(MINUTE);
        let count = |id: &u32| {
            let requests = after.get(id).copied().unwrap_or(0);
            let lately = requests.saturating_sub(before.get(id).copied().unwrap_or(0));
            let last_minute = (lately as f64 * (MINUTE.as_secs_f64() / span.as_secs_f64())).round() as u64;
            Count { id: *id, requests, last_minute }
        };
        keys.iter().map(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_minute_is_what_came_in_it_and_a_longer_gap_is_scaled() {
        let (history, start) = (KeyUseHistory::default(), Instant::now());
        assert_eq!(history.counts(&[1]), []);
        let count = |id, requests, last_minute| Count { id, requests, last_minute };
        // Ten a second under 1; one a second under 2, until it ends.
        for second in 0..=200_u64 {
            let totals = || BTreeMap::from([(1, 1000 + 10 * second), (2, second.min(100))]);
            history.note(start + Duration::from_secs(second), totals);
            match second {
                3 => assert_eq!(history.counts(&[1]), [count(1, 1000, 0)]),
                30 => assert_eq!(history.counts(&[1, 2]), [count(1, 1300, 300), count(2, 30, 30)]),
                130 => assert_eq!(history.counts(&[2, 1]), [count(2, 100, 30), count(1, 2300, 600)]),
                200 => assert_eq!(history.counts(&[2, 7]), [count(2, 100, 0), count(7, 0, 0)]),
                _ => {}
            }
        }
        assert!(history.0.lock().unwrap().len() <= 14);
        // Nobody looked for ten minutes.
        history.note(start + Duration::from_secs(800), || BTreeMap::from([(1, 9000)]));
        history.note(start + Duration::from_secs(805), || BTreeMap::from([(1, 9050)]));
        let [lately] = history.counts(&[1])[..] else { panic!() };
        assert_eq!(lately.requests, 9050);
        assert!((595..=605).contains(&lately.last_minute), "{lately:?}");
    }
}
