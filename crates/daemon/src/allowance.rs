//! How often something may be done: requests to a server that others use too, lines in the log.

use std::time::Instant;

/// How often something may be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// At once, if nothing was done for long.
    pub(crate) most: u32,
    pub(crate) an_hour: u32,
}

/// Lines of the log about one thing: about each of a few dozen certificates, about a server that does wrong in many
/// places at once, and for an operator who tries a change again and again.
pub(crate) const LINES: Allowance = Allowance { most: 30, an_hour: 60 };

/// What is left of an allowance.
#[derive(Debug)]
pub(crate) struct Bucket {
    allowance: Allowance,
    level: f64,
    when: Instant,
}

impl Bucket {
    /// One of which nothing was used up to `now`.
    pub(crate) const fn full(allowance: Allowance, now: Instant) -> Self {
        Bucket { allowance, level: allowance.most as f64, when: now }
    }

    /// How much may be done at `now`.
    pub(crate) fn level(&mut self, now: Instant) -> f64 {
        let hours = now.saturating_duration_since(self.when).as_secs_f64() / 3600.0;
        self.when = now.max(self.when);
        let Allowance { most, an_hour } = self.allowance;
        self.level = (self.level + hours * f64::from(an_hour)).min(f64::from(most));
        self.level
    }

    /// Whether so much may be done at `now`, and is done.
    pub(crate) fn take(&mut self, now: Instant, count: f64) -> bool {
        let is_enough = self.level(now) >= count;
        if is_enough {
            self.level -= count;
        }
        is_enough
    }
}
