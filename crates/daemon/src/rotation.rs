//! When keys rotate: a pure policy, without clocks and files. Keys that are derived from each other have one of their
//! own, [`phase`]; this is about all others.
//!
//! A host's wall clock is set, jumps, and may start in 1970; a superfluous rotation costs every client its cookies. So
//! a key's age is the time for which it has sealed, by a clock that is never set, carried over restarts:
//!
//! 1. In a running process a key rotates when its age reaches the period: once, and then its age is zero. No jump of
//!    the wall clock, forward or back, makes or prevents a rotation.
//! 2. The wall clock is asked once in the life of a process, how long ago the last rotation was: so that downtime
//!    counts. At the start, if the kernel or an upstream vouches for it, as many rotations are made up for as fit
//!    between the two, and at most `keep`: the key that sealed last still opens. If only the operator vouches, at most
//!    one. If nobody does yet, then when the kernel or an upstream first does, at most one.
//! 3. It is not believed if it, or the time of the last rotation, lies before this program was written, or the last
//!    rotation in the future.

pub(crate) mod phase;

use std::time::Duration;

use self::phase::{Doubt, Phase};
use crate::config::NextKey;

/// No last rotation before this is one by a clock that was right: 2026-01-01.
pub(crate) const PLAUSIBLE_FROM: u64 = 1_767_225_600;

/// Who vouches for the time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VouchedBy {
    /// Nobody.
    Nobody,
    /// The operator, who wrote it into the configuration long ago.
    Operator,
    /// The kernel or an upstream, which look at the clock now.
    Witness,
}

/// The time by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// Unix seconds.
    pub(crate) wall: u64,
    /// On a clock that is never set.
    pub(crate) boot: Duration,
    /// Who vouches for `wall`.
    pub(crate) vouched_by: VouchedBy,
}

/// What the operator wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// One rotation each.
    pub(crate) period: Duration,
    /// How many retired keys still open.
    pub(crate) keep: usize,
    /// Where the next key comes from.
    pub(crate) next: NextKey,
}

/// What tells when keys rotate that come from where they do.
#[derive(Clone, Debug)]
pub(crate) enum Timing {
    /// The age of the key that seals.
    Age(Ageing),
    /// The time of day.
    Phase(Phase),
}

impl Timing {
    /// At the start of a process, as for [`Ageing::resume`] and [`Phase::resume`].
    pub(crate) const fn resume(next: NextKey, rotated: u64, carried: Duration, boot: Duration) -> Self {
        match next {
            NextKey::Random => Timing::Age(Ageing::resume(rotated, carried, boot)),
            NextKey::Derived | NextKey::Hourly => Timing::Phase(Phase::resume(rotated, carried, boot)),
        }
    }

    /// As long as there are no keys.
    pub(crate) const fn anew(next: NextKey, boot: Duration) -> Self {
        match next {
            NextKey::Random => Timing::Age(Ageing::anew(boot)),
            // What brings the first keys says of when they are.
            NextKey::Derived | NextKey::Hourly => Timing::Phase(Phase::resume(0, Duration::ZERO, boot)),
        }
    }

    /// After a rotation; `brought` is when it was due, if somebody else made it.
    pub(crate) fn begin_anew(&mut self, brought: Option<u64>, boot: Duration) {
        match self {
            Timing::Age(ageing) => *ageing = Ageing::anew(boot),
            Timing::Phase(phase) => brought.into_iter().for_each(|rotated| phase.heed(rotated, boot)),
        }
    }

    /// For how long the key has sealed that began to at `rotated`, or what counts as that.
    pub(crate) fn age(&self, rotated: u64, boot: Duration) -> Duration {
        match self {
            Timing::Age(ageing) => ageing.age(boot),
            Timing::Phase(phase) => phase.age(rotated, boot),
        }
    }

    /// How many rotations are due now, after the one at `rotated`, and what is doubtful about that.
    pub(crate) fn due(&mut self, rotated: u64, now: Now, schedule: Schedule) -> (u64, Option<Doubt>) {
        match self {
            Timing::Age(ageing) => (ageing.due(now, schedule), None),
            Timing::Phase(phase) => phase.due(rotated, now, schedule),
        }
    }
}

/// The age of the key that seals, and what follows from it.
#[derive(Clone, Debug)]
pub(crate) struct Ageing {
    /// Unix seconds of the last rotation, as the file has it.
    rotated: u64,
    /// The age at `since`.
    carried: Duration,
    since: Duration,
    wall_clock: WallClock,
    /// Rotations to be made up for.
    missed: u64,
}

/// Whether the wall clock is still to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WallClock {
    /// It is the first look.
    AtStart,
    /// Nobody has vouched for it yet.
    Awaited,
    /// It has been asked, or a rotation has made the question irrelevant.
    Settled,
}

impl Ageing {
    /// At the start of a process: the last rotation was at `rotated` by the wall clock at that time, and the key has
    /// sealed for `carried` in processes before.
    pub(crate) const fn resume(rotated: u64, carried: Duration, boot: Duration) -> Self {
        Ageing { rotated, carried, since: boot, wall_clock: WallClock::AtStart, missed: 0 }
    }

    /// After a rotation, whoever made it.
    pub(crate) const fn anew(boot: Duration) -> Self {
        Ageing { rotated: 0, carried: Duration::ZERO, since: boot, wall_clock: WallClock::Settled, missed: 0 }
    }

    /// For how long the key has sealed, or what counts as that.
    pub(crate) fn age(&self, boot: Duration) -> Duration {
        self.carried.saturating_add(boot.saturating_sub(self.since))
    }

    /// How many rotations are due now. They stay due until they are made, which [`Ageing::anew`] reports.
    pub(crate) fn due(&mut self, now: Now, schedule: Schedule) -> u64 {
        let period = schedule.period.max(Duration::from_secs(1));
        self.ask_wall_clock(now, period, schedule.keep);
        self.missed.max(u64::from(self.age(now.boot) >= period))
    }

    fn ask_wall_clock(&mut self, now: Now, period: Duration, keep: usize) {
        let keep = (keep as u64).max(1);
        let (next, count_max) = match (self.wall_clock, now.vouched_by) {
            (WallClock::Settled, _) => return,
            (WallClock::AtStart | WallClock::Awaited, VouchedBy::Nobody) => (WallClock::Awaited, None),
            (WallClock::AtStart, VouchedBy::Witness) => (WallClock::Settled, Some(keep)),
            (WallClock::AtStart, VouchedBy::Operator) | (WallClock::Awaited, VouchedBy::Witness) => {
                (WallClock::Settled, Some(1))
            }
            // The operator's word does not come later.
            (WallClock::Awaited, VouchedBy::Operator) => (WallClock::Settled, None),
        };
        self.wall_clock = next;
        let Some(count_max) = count_max else { return };
        if self.rotated < PLAUSIBLE_FROM || now.wall < self.rotated {
            return;
        }
        let elapsed = now.wall - self.rotated;
        self.missed = (elapsed / period.as_secs().max(1)).min(count_max);
        if self.missed == 0 {
            self.carried = self.age(now.boot).max(Duration::from_secs(elapsed));
            self.since = now.boot;
        }
    }
}

#[cfg(test)]
mod tests;
