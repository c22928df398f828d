//! Clocks that are wrong in known ways.

use authentick_wire::time::{NtpSpan, NtpTime};

/// Nanoseconds since the world began, which no participant can see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrueTime(pub u64);

impl TrueTime {
    /// This much later.
    #[must_use]
    pub const fn after(self, nanos: u64) -> Self {
        TrueTime(self.0 + nanos)
    }

    /// Whole seconds.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0 / 1_000_000_000
    }
}

/// How one host sees the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// How far it is ahead when the world begins, in nanoseconds.
    pub offset_ns: i64,
    /// How much it gains, in nanoseconds per second (parts per billion).
    pub drift_ppb: i64,
}

/// The world begins in November 2023.
const EPOCH_UNIX_SECONDS: i64 = 1_700_000_000;

impl Clock {
    /// What this clock shows at `time`.
    #[must_use]
    pub fn at(&self, time: TrueTime) -> NtpTime {
        let gained = i128::from(time.0) * i128::from(self.drift_ppb) / 1_000_000_000;
        let error = i128::from(self.offset_ns) + gained;
        let shown = i128::from(time.0) + error;
        NtpTime::from_unix(EPOCH_UNIX_SECONDS, 0)
            + NtpSpan::from_nanos(i64::try_from(shown).expect("a world lasts less than 292 years"))
    }

    /// How far this clock is ahead of `other` at `time`, in nanoseconds.
    #[must_use]
    pub fn ahead_of(&self, other: &Clock, time: TrueTime) -> i64 {
        self.at(time).since(other.at(time)).as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_and_drift_add_up() {
        let (right, wrong) = (Clock::default(), Clock { offset_ns: 5_000, drift_ppb: -1_000 });
        assert_eq!(wrong.ahead_of(&right, TrueTime(0)), 5_000);
        assert_eq!(wrong.ahead_of(&right, TrueTime(10_000_000_000)), -5_000);
    }
}
