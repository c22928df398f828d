//! When derived keys rotate: a pure policy, without clocks and files.
//!
//! Hosts that derive their keys from one file do not talk, so that only the time of day can tell all of them which key
//! seals: the n-th rotation after the one that the file names is due n periods later. Rotations cannot be taken back,
//! as a key does not show the one before it. So:
//!
//! 1. A clock that somebody vouches for decides, at each look. After downtime, or when it has been set, all rotations
//!    are made up for, and their phase stays. If it is behind the keys, they wait for it, and nothing is lost by that.
//! 2. Otherwise the clock that is never set decides. It goes on from the first time of day that the kernel or an
//!    upstream vouched for in this process; if there was none, from when the key had sealed for as long as is noted.
//!    It is never before the last rotation of keys that somebody brings.
//! 3. The time of day makes at most `keep` rotations more than the clock that is never set: the key that sealed last
//!    still opens then, and the others answer what is sealed meanwhile with silence, not with an NTSN. Only the first
//!    time that the kernel or an upstream vouches for is believed whatever it is, as downtime has no limit.
//! 4. A clock that shows a time before this program was written is nobody's.

use std::time::Duration;

use super::{Now, PLAUSIBLE_FROM, Schedule, VouchedBy};

/// How many rotations are made at once; the others follow with the next looks. So many take a tenth of a second.
pub(crate) const ROTATIONS_AT_ONCE: u64 = 1 << 16;

/// What is known of the time by the clock that is never set.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    /// Unix seconds at `since`, at least, or as the kernel or an upstream had it.
    known: u64,
    since: Duration,
    /// Whether the kernel or an upstream has vouched for the time of day in this process.
    is_seen: bool,
}

/// Why the time of day is not what decides, or what is wrong with the keys if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It wants more rotations than is believed: how many.
    Leap(u64),
    /// The keys are ahead of it by a period and more: seconds until the last rotation.
    Ahead(u64),
}

impl Phase {
    /// At the start of a process: the last rotation was due at `rotated`, in Unix seconds, and the key is noted to have
    /// sealed for `carried`.
    pub(crate) const fn resume(rotated: u64, carried: Duration, boot: Duration) -> Self {
        Phase { known: rotated.saturating_add(carried.as_secs()), since: boot, is_seen: false }
    }

    /// Somebody has brought keys whose last rotation was due at `rotated`: it is that time at least.
    pub(crate) fn heed(&mut self, rotated: u64, boot: Duration) {
        (self.known, self.since) = (self.at(boot).max(rotated), boot);
    }

    /// For how long the key has sealed that began to at `rotated`, by the clock that is never set.
    pub(crate) const fn age(&self, rotated: u64, boot: Duration) -> Duration {
        Duration::from_secs(self.at(boot).saturating_sub(rotated))
    }

    /// How many rotations are due now after the one that was due at `rotated`, and what is doubtful about that.
    pub(crate) fn due(&mut self, rotated: u64, now: Now, schedule: Schedule) -> (u64, Option<Doubt>) {
        let period = schedule.period.as_secs().max(1);
        // Below zero if the keys are ahead.
        let count = |time: u64| (i128::from(time) - i128::from(rotated)).div_euclid(i128::from(period));
        let vouched_by = if now.wall < PLAUSIBLE_FROM { VouchedBy::Nobody } else { now.vouched_by };
        let is_first_word = match vouched_by {
            VouchedBy::Nobody | VouchedBy::Operator => false,
            VouchedBy::Witness => !self.is_seen,
        };
        if is_first_word {
            *self = Phase { known: now.wall, since: now.boot, is_seen: true };
        }
        let known = count(self.at(now.boot));
        let (due, doubt) = match vouched_by {
            VouchedBy::Nobody => (known, None),
            VouchedBy::Operator | VouchedBy::Witness => match count(now.wall) {
                due if due > known + schedule.keep as i128 => (known, Some(Doubt::Leap(due as u64))),
                due => {
                    (due, rotated.checked_sub(now.wall).filter(|ahead| *ahead >= period).map(Doubt::Ahead))
                }
            },
        };
        (due.clamp(0, i128::from(ROTATIONS_AT_ONCE)) as u64, doubt)
    }

    const fn at(&self, boot: Duration) -> u64 {
        self.known.saturating_add(boot.saturating_sub(self.since).as_secs())
    }
}

#[cfg(test)]
mod tests;
