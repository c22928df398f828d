//! Whether this host's clock was set during an exchange, and by how much it may have been set unnoticed.
//!
//! T1 and T4 are read from the time-of-day clock, as the kernel stamps arrivals by it. If that clock is set in between,
//! the offset mixes two times of day, and half the round trip bounds nothing: setting the clock back makes the round
//! trip look shorter. The kernel's monotonic clock runs at the same rate, with the same frequency corrections, and is
//! never set: the difference of the two is constant to the nanosecond until somebody sets the time of day.
//!
//! Two clocks cannot be read at the same instant. The time of day is read between two readings of the other clock, so
//! the difference is known to within the distance of these two. A step within that uncertainty is added to the error
//! bound; a larger one is noticed. A clock that is set twice within one exchange, back to where it was, is not noticed.

use authentick_net::clock;
use authentick_wire::time::{NtpSpan, NtpTime};

/// How often the clocks are read; the three readings that are closest together count.
const ATTEMPT_COUNT: usize = 8;

/// What the time of day was when the steady clock was at zero, had nobody ever set it: a time between these two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference {
    earliest: NtpTime,
    latest: NtpTime,
}

impl Difference {
    /// Reads this host's clocks.
    pub(super) fn read_host() -> Self {
        Self::read(|| (clock::monotonic_ns(), clock::now(), clock::monotonic_ns()))
    }

    /// Reads clocks. Each call of `read` returns the time of day between two readings, in nanoseconds, of a clock that
    /// is never set and runs at the same rate.
    fn read(mut read: impl FnMut() -> (u64, NtpTime, u64)) -> Self {
        let readings = (0..ATTEMPT_COUNT).map(|_| {
            let (before, day, after) = read();
            let back = |steady_ns: u64| day + NtpSpan::from_nanos(-(steady_ns as i64));
            Difference { earliest: back(after), latest: back(before) }
        });
        readings
            .min_by_key(|reading| reading.latest.since(reading.earliest))
            .expect("they are read several times")
    }

    /// By how much the clock may have been set, in either direction, between `self` and `later`; `None` if it was set
    /// by more.
    pub(super) fn unnoticed(self, later: Self) -> Option<NtpSpan> {
        let (forward, back) = (later.latest.since(self.earliest), self.latest.since(later.earliest));
        // Each reading is rounded to units of 2^-32 s.
        let rounding = NtpSpan::from_bits(2);
        (forward + rounding >= NtpSpan::ZERO && back + rounding >= NtpSpan::ZERO)
            .then(|| forward.max(back).max(NtpSpan::ZERO) + rounding)
    }
}

#[cfg(test)]
mod tests {
    use authentick_proto::client::Sample;
    use authentick_wire::header::Header;

    use super::*;

    /// Clocks that go on by some nanoseconds at each reading.
    struct Simulated {
        true_ns: i64,
        reading_ns: i64,
        /// By how much the time of day was set.
        set_ns: i64,
    }

    const BEGIN: NtpTime = NtpTime::from_unix(1_700_000_000, 0);

    impl Simulated {
        fn day(&mut self) -> NtpTime {
            self.true_ns += self.reading_ns;
            BEGIN + NtpSpan::from_nanos(self.true_ns + self.set_ns)
        }

        fn steady_ns(&mut self) -> u64 {
            self.true_ns += self.reading_ns;
            1_000_000_000_000 + self.true_ns as u64
        }

        fn read(&mut self) -> (u64, NtpTime, u64) {
            (self.steady_ns(), self.day(), self.steady_ns())
        }
    }

    /// An exchange during which the clock is set: by how much the offset is wrong of the clock as it is then, and the
    /// bound on that; `None` if it was noticed.
    fn exchange(
        there_ns: i64,
        back_ns: i64,
        reading_ns: i64,
        step_ns: i64,
        is_early: bool,
    ) -> Option<[i64; 2]> {
        let mut clocks = Simulated { true_ns: 0, reading_ns, set_ns: 0 };
        let before = Difference::read(|| clocks.read());
        let sent = clocks.day();
        let step = |clocks: &mut Simulated| clocks.set_ns += step_ns;
        if is_early {
            step(&mut clocks);
        }
        clocks.true_ns += there_ns;
        // The server's clock is right.
        let receive = BEGIN + NtpSpan::from_nanos(clocks.true_ns);
        let transmit = receive;
        if !is_early {
            step(&mut clocks);
        }
        clocks.true_ns += back_ns;
        let arrived = clocks.day();
        let unnoticed = before.unnoticed(Difference::read(|| clocks.read()))?;
        let header = Header { receive, transmit, ..Header::minimal_request(sent) };
        let sample = Sample::new(&header, sent, arrived);
        let bound = sample.delay.as_nanos() / 2 + 1 + unnoticed.as_nanos();
        Some([(sample.offset.as_nanos() + step_ns).abs(), bound])
    }

    #[test]
    fn clock_that_is_set_is_noticed_or_within_the_bound() {
        let mut noticed = 0;
        for reading_ns in [0, 1, 40, 5_000] {
            for step_ns in [0, 1, 10, 100, 1_000, 4_000, 20_000, 1_000_000, 4_900_000, 3_600_000_000_000] {
                for step_ns in [step_ns, -step_ns] {
                    for [there, back] in [[100_000, 100_000], [0, 6_000_000], [6_000_000, 0], [300, 200]] {
                        for is_early in [false, true] {
                            let end = exchange(there, back, reading_ns, step_ns, is_early);
                            let what = format!("{step_ns} {reading_ns} {there} {back}: {end:?}");
                            match end {
                                // Rounding of the offset and of the bound.
                                Some([error, bound]) => assert!(error <= bound + 2, "{what}"),
                                None => noticed += 1,
                            }
                            if step_ns.abs() > 8 * reading_ns + 10 {
                                assert!(end.is_none(), "{what}");
                            }
                            if step_ns == 0 {
                                assert!(end.is_some(), "{what}");
                            }
                        }
                    }
                }
            }
        }
        assert!(noticed > 300, "{noticed}");
    }

    #[test]
    fn reading_that_was_interrupted_does_not_count() {
        let read = || {
            let mut clocks = Simulated { true_ns: 0, reading_ns: 50, set_ns: 0 };
            let mut count = 0;
            Difference::read(|| {
                count += 1;
                let before = clocks.steady_ns();
                // All but one are interrupted for ten milliseconds.
                clocks.true_ns += if count == 5 { 0 } else { 10_000_000 };
                (before, clocks.day(), clocks.steady_ns())
            })
        };
        let unnoticed = read().unnoticed(read()).unwrap();
        assert!(unnoticed < NtpSpan::from_nanos(110), "{unnoticed}");
    }

    #[test]
    fn clocks_of_this_host_differ_by_the_same_all_the_time() {
        let before = Difference::read_host();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let unnoticed = before.unnoticed(Difference::read_host());
        assert!(unnoticed.unwrap() < NtpSpan::from_nanos(5_000_000), "{unnoticed:?}");
    }
}
