//! The time of day beside the clock that is never set: whether somebody sets it during a step.
//!
//! Receive stamps are by the time of day. If it is set after a request has left, or after its answer was stamped,
//! neither the latency by that stamp nor the offset mean anything. Then the latency is counted until the answer was
//! looked at, by the monotonic clock, and there is no offset; and the step says that it was disturbed.
//!
//! A clock that is slewed is not set: on Linux both clocks run at the slewed rate, and elsewhere their difference
//! changes by at most [`SLEW_MAX_PPM`].

use authentick_wire::time::{NtpSpan, NtpTime};

use crate::limits::{JUMP_MIN_NS, READ_APART_MAX_NS, READING_AGE_MAX_NS, SLEW_MAX_PPM};
use crate::workload::Arrived;
use crate::{Clock, Reading};

/// How often both clocks are read again if the thread was interrupted in between.
const ATTEMPT_COUNT: usize = 8;

/// What was seen of the time of day in a step.
#[derive(Debug, Default)]
pub(crate) struct TimeOfDay {
    /// Both clocks at one instant, read without interruption.
    known: Option<Reading>,
    /// The last reading that was compared.
    seen_ns: u64,
    /// When it was seen last that the time of day was set.
    jumped_ns: u64,
    /// From when on jumps count.
    from_ns: u64,
    pub(crate) jump_count: u64,
    /// The largest jump that counts.
    largest_ns: i64,
}

impl TimeOfDay {
    /// A step begins in which jumps count from `from_ns` on.
    pub(crate) fn start(&mut self, from_ns: u64) {
        *self = TimeOfDay { from_ns, ..TimeOfDay::default() };
    }

    /// Reads both clocks again if that is long ago.
    pub(crate) fn refresh(&mut self, now_ns: u64, clock: &impl Clock) {
        if self.known.is_none_or(|known| now_ns.saturating_sub(known.ns) > READING_AGE_MAX_NS) {
            self.compare(clock);
        }
    }

    /// Datagrams are looked at by this reading.
    pub(crate) fn look(&mut self, now: &Reading, clock: &impl Clock) {
        if now.ns == self.seen_ns {
            return;
        }
        self.seen_ns = now.ns;
        if self.known.is_none_or(|known| jump_ns(&known, now).is_some()) {
            // Perhaps the thread was interrupted between both clocks.
            self.compare(clock);
        }
    }

    fn compare(&mut self, clock: &impl Clock) {
        let Some(now) = read_together(clock) else { return };
        if let Some(ns) = self.known.and_then(|known| jump_ns(&known, &now)) {
            self.jumped_ns = now.ns;
            if now.ns >= self.from_ns {
                self.jump_count += 1;
                if ns.unsigned_abs() > self.largest_ns.unsigned_abs() {
                    self.largest_ns = ns;
                }
            }
        }
        self.known = Some(now);
    }

    /// When an answer came to a request that left at `sent_ns`: by its stamp, or when it was looked at, if the time of
    /// day was set meanwhile.
    pub(crate) fn trusted(&self, came: Arrived, sent_ns: u64) -> Arrived {
        match sent_ns > self.jumped_ns {
            true => came,
            false => Arrived { at: came.now.time_of_day, is_sound: false, ..came },
        }
    }

    /// Why the figures say nothing about the server; `None` if nobody set the time of day.
    pub(crate) fn why_invalid(&self) -> Option<String> {
        (self.jump_count > 0).then(|| {
            format!(
                "the time of day was set by {:+.1} ms during the step, and latencies are by its stamps; keep this \
                 host's clock from being set while it measures",
                self.largest_ns as f64 / 1e6
            )
        })
    }
}

/// Both clocks at one instant; `None` if the thread is interrupted each time.
fn read_together(clock: &impl Clock) -> Option<Reading> {
    (0..ATTEMPT_COUNT).find_map(|_| {
        let before_ns = clock.monotonic_ns();
        let Reading { ns, time_of_day } = clock.reading();
        (ns.saturating_sub(before_ns) <= READ_APART_MAX_NS).then_some(Reading { ns, time_of_day })
    })
}

/// By how much the time of day was set from one reading to a later one; `None` if slewing explains the difference.
fn jump_ns(known: &Reading, now: &Reading) -> Option<i64> {
    let lasted_ns = i64::try_from(now.ns.saturating_sub(known.ns)).unwrap_or(i64::MAX);
    let expected: NtpTime = known.time_of_day + NtpSpan::from_nanos(lasted_ns);
    let ns = now.time_of_day.since(expected).as_nanos();
    let slewed_ns = lasted_ns.unsigned_abs() / 1_000_000 * SLEW_MAX_PPM;
    (ns.unsigned_abs() > JUMP_MIN_NS.saturating_add(slewed_ns)).then_some(ns)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const MS: u64 = 1_000_000;

    /// Clocks of which the time of day was set, and runs too fast.
    #[derive(Default)]
    struct Clocks {
        ns: Cell<u64>,
        set_ns: Cell<i64>,
        fast_ppm: i64,
        /// How long the thread is interrupted after it has read the time of day.
        interrupted_ns: Cell<u64>,
    }

    impl Clock for Clocks {
        fn monotonic_ns(&self) -> u64 {
            self.ns.set(self.ns.get() + 40);
            self.ns.get()
        }

        fn time_of_day(&self) -> NtpTime {
            let ns = self.ns.get() as i64;
            self.ns.set(self.ns.get() + self.interrupted_ns.take());
            NtpTime::from_unix(1_800_000_000, 0)
                + NtpSpan::from_nanos(ns + ns / 1_000_000 * self.fast_ppm + self.set_ns.get())
        }
    }

    /// What is seen over 10 s, in the middle of which something happens.
    fn seen(clocks: &Clocks, happen: impl Fn(&Clocks)) -> TimeOfDay {
        let mut seen = TimeOfDay::default();
        seen.start(0);
        for ms in 1..=10_000 {
            clocks.ns.set(clocks.ns.get().max(ms * MS));
            if ms == 5_000 {
                happen(clocks);
            }
            match ms % 3 {
                0 => seen.refresh(clocks.monotonic_ns(), clocks),
                _ => seen.look(&clocks.reading(), clocks),
            }
        }
        seen
    }

    #[test]
    fn clock_that_is_set_is_seen_once_and_by_how_much() {
        for set_ms in [1_000, -1_000, 2, -2] {
            let clocks = Clocks::default();
            let seen = seen(&clocks, |clocks| clocks.set_ns.set(set_ms * MS as i64));
            assert_eq!(seen.jump_count, 1, "{set_ms}");
            assert!(seen.why_invalid().unwrap().contains(&format!("by {set_ms:+}.0 ms")), "{seen:?}");
            assert!((5_000 * MS..5_003 * MS).contains(&seen.jumped_ns));
        }
    }

    #[test]
    fn slewing_and_interruptions_are_no_jumps() {
        for fast_ppm in [500, -500, 1_000, -1_000] {
            let clocks = Clocks { fast_ppm, ..Clocks::default() };
            let seen = seen(&clocks, |_| {});
            assert_eq!((seen.jump_count, seen.jumped_ns, seen.why_invalid()), (0, 0, None), "{fast_ppm}");
        }
        let clocks = Clocks::default();
        assert_eq!(seen(&clocks, |clocks| clocks.interrupted_ns.set(30 * MS)).jump_count, 0);
    }

    #[test]
    fn jump_in_the_warm_up_spoils_no_step_but_its_answers() {
        let clocks = Clocks { ns: Cell::new(10 * MS), ..Clocks::default() };
        let mut seen = TimeOfDay::default();
        seen.start(100 * MS);
        seen.refresh(clocks.monotonic_ns(), &clocks);
        clocks.set_ns.set(50 * MS as i64);
        clocks.ns.set(50 * MS);
        let now = clocks.reading();
        seen.look(&now, &clocks);
        assert_eq!((seen.jump_count, seen.why_invalid()), (0, None));
        let came = now.arrival(Some(NtpTime::from_unix(1_800_000_000, 0)));
        assert_eq!(seen.trusted(came, 49 * MS).at_ns(), now.ns);
        assert!(!seen.trusted(came, 49 * MS).is_sound && seen.trusted(came, 51 * MS).is_sound);
    }
}
