//! Clocks of two hosts compared, as NTP does: RFC 5905 section 8. And an agent's own clock.
//!
//! All of it is arithmetic on nanoseconds in 128 bits, which no 64-bit reading overflows.

use std::time::{Duration, Instant};

use authentick_generator::nanos;

use super::limits::DRIFT_PPM;

/// A clock that is never set, in nanoseconds since some instant of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Monotonic {
    zero: Instant,
}

impl Monotonic {
    /// A clock that shows 0 now.
    pub(crate) fn start() -> Self {
        Monotonic { zero: Instant::now() }
    }

    /// What it shows at an instant; 0 before its start.
    pub(crate) fn at(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.zero))
    }

    /// What it shows now.
    pub(crate) fn now(&self) -> u64 {
        self.at(Instant::now())
    }

    /// The instant at which it shows `ns`; `None` if this host cannot tell such an instant.
    pub(crate) fn instant(&self, ns: u64) -> Option<Instant> {
        self.zero.checked_add(Duration::from_nanos(ns))
    }
}

/// The four instants of a ping. T1 and T4 by the coordinator's clock, T2 and T3 by the agent's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ping {
    pub(crate) t1: u64,
    pub(crate) t2: u64,
    pub(crate) t3: u64,
    pub(crate) t4: u64,
}

/// What one ping says about the agent's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The middle of the ping, by the coordinator's clock.
    pub(crate) at: i128,
    /// The agent's clock minus the coordinator's.
    pub(crate) offset: i128,
    /// How far off that may be: half the round trip.
    pub(crate) error: i128,
}

/// Numbers that no honest clock gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lie {
    /// The answer left before the ping came, or the agent held it longer than it was gone; nanoseconds.
    #[error("it says that it held a ping for {} us, which was gone for {} us", micros(*.held), micros(*.gone))]
    Held { held: i128, gone: i128 },
    /// Two readings disagree by more than their errors and the drift allow; nanoseconds.
    #[error(
        "its clock moved by {} us against ours, where round trips and {DRIFT_PPM} ppm of drift allow {} us",
        micros(*.by),
        micros(*.allowed)
    )]
    Jump { by: i128, allowed: i128 },
}

/// Nanoseconds as microseconds with a decimal, for people.
pub(crate) fn micros(ns: i128) -> String {
    format!("{:.1}", ns as f64 / 1000.0)
}

/// A reading of a clock has no better resolution than this, in nanoseconds.
const RESOLUTION: i128 = 1000;

impl Reading {
    /// What a ping says.
    pub(crate) fn of(ping: &Ping) -> Result<Self, Lie> {
        let [t1, t2, t3, t4] = [ping.t1, ping.t2, ping.t3, ping.t4].map(i128::from);
        let (held, gone) = (t3 - t2, t4 - t1);
        if held < 0 || held > gone {
            return Err(Lie::Held { held, gone });
        }
        Ok(Reading {
            at: t1 + gone / 2,
            offset: (t2 - t1 + t3 - t4).div_euclid(2),
            error: (gone - held).div_euclid(2) + 1,
        })
    }

    /// Whether both can come from one clock.
    pub(crate) fn agrees(&self, other: &Reading) -> Result<(), Lie> {
        let by = other.offset - self.offset;
        let drift = (other.at - self.at).abs() * DRIFT_PPM / 1_000_000;
        let allowed = self.error + other.error + drift + RESOLUTION;
        if by.abs() <= allowed { Ok(()) } else { Err(Lie::Jump { by, allowed }) }
    }
}

/// The reading with the shortest round trip, if all of them can come from one clock; `None` if there are none.
pub(crate) fn best(readings: &[Reading]) -> Result<Option<Reading>, Lie> {
    let Some(best) = readings.iter().min_by_key(|reading| reading.error) else { return Ok(None) };
    readings.iter().try_for_each(|reading| best.agrees(reading))?;
    Ok(Some(*best))
}

/// What is known about an agent's clock over a step: a reading before and one after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    before: Reading,
    after: Reading,
}

impl Span {
    /// Between two readings that agree.
    pub(crate) fn new(before: Reading, after: Reading) -> Result<Self, Lie> {
        before.agrees(&after)?;
        Ok(Span { before, after })
    }

    /// The coordinator's time at which the agent's clock showed `agent_ns`, on a line between the readings, and how far
    /// off that may be.
    pub(crate) fn ours(&self, agent_ns: u64) -> (i128, i128) {
        let (first, last) = (self.before, self.after);
        let agent = i128::from(agent_ns);
        let length = (last.at - first.at).max(1);
        // Outside of the readings, the nearer one is used: extrapolation could give any result.
        let passed = (agent - first.offset - first.at).clamp(0, length);
        let offset = first.offset + (last.offset - first.offset) * passed / length;
        (agent - offset, first.error.max(last.error))
    }
}

/// The agent's time at which the coordinator's clock shows `ours_ns`, by a reading; `None` if its clock cannot show
/// such a time.
pub(crate) fn theirs(reading: &Reading, ours_ns: u64) -> Option<u64> {
    u64::try_from(i128::from(ours_ns) + reading.offset).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A ping to a clock that is ahead by `offset`, with these delays there and back.
    fn ping(t1: u64, offset: u64, there: u64, held: u64, back: u64) -> Ping {
        let t2 = t1 + there + offset;
        Ping { t1, t2, t3: t2 + held, t4: t1 + there + held + back }
    }

    #[test]
    fn fastest_ping_counts() {
        let slow = Reading::of(&ping(0, 5 * SECOND, 9_000_000, 1000, 1_000_000)).unwrap();
        let fast = Reading::of(&ping(SECOND, 5 * SECOND, 10_000, 1000, 12_000)).unwrap();
        assert_eq!(best(&[slow, fast]), Ok(Some(fast)));
        assert_eq!(fast.error, 11_001);
        assert_eq!(best(&[]), Ok(None));
    }

    #[test]
    fn jump_between_pings_is_a_lie() {
        let first = Reading::of(&ping(0, 0, 10_000, 0, 10_000)).unwrap();
        let second = Reading::of(&ping(1_000_000, 2 * SECOND, 10_000, 0, 10_000)).unwrap();
        let Err(Lie::Jump { by, allowed }) = best(&[first, second]) else { panic!("believed") };
        assert_eq!(by.abs(), i128::from(2 * SECOND));
        assert!(allowed < 30_000, "{allowed}");
    }

    #[test]
    fn ping_held_longer_than_it_was_gone_is_a_lie() {
        let held = Ping { t1: 10, t2: 100, t3: 200, t4: 50 };
        assert_eq!(Reading::of(&held).unwrap_err(), Lie::Held { held: 100, gone: 40 });
        let backwards = Ping { t1: 10, t2: 100, t3: 99, t4: 50 };
        assert!(Reading::of(&backwards).is_err());
    }

    #[test]
    fn drift_is_a_line_between_readings() {
        let before = Reading { at: 0, offset: 1000, error: 10 };
        let after = Reading { at: 1_000_000, offset: 1200, error: 30 };
        let span = Span::new(before, after).unwrap();
        assert_eq!(span.ours(501_100), (500_000, 30));
        assert_eq!(span.ours(0), (-1000, 30), "before both, the first reading counts");
        assert_eq!(span.ours(u64::MAX).0, i128::from(u64::MAX) - 1200);
    }

    #[test]
    fn clock_that_drifts_as_clocks_do_is_believed_and_a_worse_one_is_not() {
        let before = Reading { at: 0, offset: 0, error: 100 };
        let after = |offset| Reading { at: i128::from(10 * SECOND), offset, error: 100 };
        assert!(Span::new(before, after(5_000_000)).is_ok(), "500 ppm");
        assert!(Span::new(before, after(-5_002_000)).is_err());
    }

    #[test]
    fn clock_converts_both_ways() {
        let clock = Monotonic::start();
        let instant = clock.instant(7_000_000_123).unwrap();
        assert_eq!(clock.at(instant), 7_000_000_123);
        let _ = clock.instant(u64::MAX);
    }

    proptest! {
        #[test]
        fn offset_is_within_half_the_round_trip(
            t1 in 0..1u64 << 50, offset in 0..1u64 << 50, there in 0..SECOND, held in 0..SECOND, back in 0..SECOND,
        ) {
            let reading = Reading::of(&ping(t1, offset, there, held, back)).unwrap();
            prop_assert!((reading.offset - i128::from(offset)).abs() <= reading.error);
            prop_assert!(reading.error <= i128::from((there + back) / 2 + 2));
            let at = theirs(&reading, t1).unwrap();
            prop_assert!((i128::from(at) - i128::from(t1 + offset)).abs() <= reading.error);
        }

        #[test]
        fn no_numbers_overflow(t: [u64; 8], at: u64) {
            let readings = [[t[0], t[1], t[2], t[3]], [t[4], t[5], t[6], t[7]]].map(|[t1, t2, t3, t4]| {
                Reading::of(&Ping { t1, t2, t3, t4 }).unwrap_or(Reading { at: 0, offset: i128::from(t1), error: 1 })
            });
            let _ = best(&readings);
            if let Ok(span) = Span::new(readings[0], readings[1]) {
                let _ = span.ours(at);
            }
            let _ = theirs(&readings[0], at);
        }
    }
}
