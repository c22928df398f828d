//! Detection of another host that uses this node's name.
//!
//! A cloned virtual machine or a copied configuration gives two hosts one name. Both then write their acknowledgement
//! to one place in the store, and each finds there what it did not write. Every write has a number: the random nonce
//! of its seal, drawn from the kernel for that write, so that a clone does not draw the same one.
//!
//! A store may repeat what this node wrote before its start, lose values, or have been restored. None of this is
//! another host: those values are older than the last write of this start.

use std::collections::VecDeque;
use std::time::Duration;

use crate::claim::Nonce;

/// How long after the last foreign write a name still counts as doubled.
pub const DOUBLE_QUIET: Duration = Duration::from_secs(600);

/// Writes that are remembered: more than can be under way, as one whose outcome is unknown may still arrive.
const WRITE_COUNT: usize = 16;

/// The writes under this node's name in one place of one store.
#[derive(Debug, Default)]
pub struct DoubleDetector {
    /// Numbers of this node's own writes, the last one at the back.
    own: VecDeque<Nonce>,
    /// Unix seconds in the last own write that was stored; `None` before the first one.
    last_time: Option<u64>,
    /// Number of the foreign write that was found last.
    foreign: Option<Nonce>,
    /// When the last two foreign writes were found, by the clock of [`DoubleDetector::observe`].
    found: (Option<Duration>, Option<Duration>),
}

impl DoubleDetector {
    /// Notes a write of this node before it is sent.
    pub fn begin_write(&mut self, number: Nonce) {
        if self.own.len() == WRITE_COUNT {
            self.own.pop_front();
        }
        self.own.push_back(number);
    }

    /// Notes that the last write was stored, with `time` in it, in Unix seconds.
    pub const fn end_write(&mut self, time: u64) {
        self.last_time = Some(time);
    }

    /// Notes what lies under this node's name: the number of the write, and the time in it. `now` is the time since
    /// any fixed instant, by a clock that is never set.
    pub fn observe(&mut self, number: Nonce, time: u64, now: Duration) {
        let is_newer = self.last_time.is_some_and(|last| time >= last);
        if is_newer && !self.own.contains(&number) && self.foreign != Some(number) {
            self.foreign = Some(number);
            self.found = (self.found.1, Some(now));
        }
    }

    /// Whether another host uses the name at `now`: two foreign writes were found, the last one not long ago.
    #[must_use]
    pub fn is_doubled(&self, now: Duration) -> bool {
        let (Some(first), Some(last)) = self.found else { return false };
        let is_recent = |from: Duration, to: Duration| to.saturating_sub(from) < DOUBLE_QUIET;
        is_recent(first, last) && is_recent(last, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::NONCE_SIZE;

    const fn number(number: u8) -> Nonce {
        [number; NONCE_SIZE]
    }

    /// A place in a store under one name, and the detectors of the hosts that use it.
    struct Place {
        now_ms: u64,
        lies: (Nonce, u64),
        drawn: u8,
    }

    impl Place {
        fn new() -> Self {
            Place { now_ms: 5_000_000, lies: (number(0), 4_990), drawn: 0 }
        }

        fn now(&self) -> Duration {
            Duration::from_millis(self.now_ms)
        }

        /// The host reads, and writes again unless its own write is there.
        fn round(&mut self, host: &mut DoubleDetector, clock_ahead_s: u64) {
            host.observe(self.lies.0, self.lies.1, self.now());
            if host.own.back() != Some(&self.lies.0) {
                self.drawn += 1;
                self.lies = (number(self.drawn), self.now_ms / 1000 + clock_ahead_s);
                host.begin_write(self.lies.0);
                host.end_write(self.lies.1);
            }
        }

        fn is_doubled(&self, host: &DoubleDetector) -> bool {
            host.is_doubled(self.now())
        }
    }

    #[test]
    fn two_hosts_with_one_name_find_each_other_in_seconds() {
        // Whatever the phase of the one against the other within a second.
        for phase_ms in (0..1000).step_by(50) {
            let (mut place, mut hosts) =
                (Place::new(), [DoubleDetector::default(), DoubleDetector::default()]);
            for _ in 0..5 {
                place.round(&mut hosts[0], 0);
                place.now_ms += phase_ms;
                place.round(&mut hosts[1], 0);
                place.now_ms += 1050 - phase_ms;
            }
            assert!(hosts.iter().all(|host| place.is_doubled(host)), "{phase_ms}");
        }
    }

    #[test]
    fn host_whose_clock_is_ahead_is_found_by_the_other() {
        let (mut place, mut behind, mut ahead) =
            (Place::new(), DoubleDetector::default(), DoubleDetector::default());
        for _ in 0..5 {
            place.round(&mut behind, 0);
            place.round(&mut ahead, 60);
            place.now_ms += 1050;
        }
        assert!(place.is_doubled(&behind));
    }

    #[test]
    fn name_is_single_again_ten_minutes_after_the_last_foreign_write() {
        let (mut place, mut hosts) = (Place::new(), [DoubleDetector::default(), DoubleDetector::default()]);
        for _ in 0..5 {
            hosts.iter_mut().for_each(|host| place.round(host, 0));
            place.now_ms += 1050;
        }
        let mut waited_s = 0;
        while place.is_doubled(&hosts[0]) {
            place.round(&mut hosts[0], 0);
            (place.now_ms, waited_s) = (place.now_ms + 1000, waited_s + 1);
        }
        assert!((598..=602).contains(&waited_s), "{waited_s}");
    }

    #[test]
    fn older_writes_repeated_by_the_store_are_no_double() {
        let (mut place, mut host) = (Place::new(), DoubleDetector::default());
        place.round(&mut host, 0);
        for old in 100..120 {
            place.now_ms += 1000;
            // Of an earlier start: never stored in this one, and older.
            place.lies = (number(old), 4_000 + u64::from(old));
            place.round(&mut host, 0);
        }
        assert!(!place.is_doubled(&host));
    }

    #[test]
    fn own_write_of_unknown_outcome_is_no_double() {
        let (mut place, mut host) = (Place::new(), DoubleDetector::default());
        place.round(&mut host, 0);
        for lost in 100..110 {
            place.now_ms += 1000;
            // The store took it, and the answer was lost.
            host.begin_write(number(lost));
            place.lies = (number(lost), place.now_ms / 1000);
            host.observe(place.lies.0, place.lies.1, place.now());
        }
        assert!(!place.is_doubled(&host));
    }

    #[test]
    fn first_write_of_a_start_is_not_judged_by_what_lay_there() {
        let (mut place, mut host) = (Place::new(), DoubleDetector::default());
        for other in 100..105 {
            place.lies = (number(other), 9_000);
            host.observe(place.lies.0, place.lies.1, place.now());
        }
        assert!(!place.is_doubled(&host));
    }

    #[test]
    fn one_foreign_write_alone_is_no_double() {
        let (mut place, mut host) = (Place::new(), DoubleDetector::default());
        place.round(&mut host, 0);
        for _ in 0..5 {
            place.now_ms += 1000;
            host.observe(number(200), place.now_ms / 1000, place.now());
        }
        assert!(!place.is_doubled(&host));
    }
}
