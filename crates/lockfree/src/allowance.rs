//! How much may be asked for: a rate and a burst, as the generic cell rate algorithm counts them.

/// One request every so often in the long run, and so many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    interval_us: u64,
    /// How far ahead of now a bucket may be full again, so that there is still room for one request.
    tolerance_us: u64,
}

impl Allowance {
    /// A request every `interval_us` microseconds, and `burst` at once; zero counts as one for both.
    #[must_use]
    pub const fn new(interval_us: u64, burst: u32) -> Self {
        let interval_us = if interval_us == 0 { 1 } else { interval_us };
        Allowance { interval_us, tolerance_us: interval_us.saturating_mul(burst.saturating_sub(1) as u64) }
    }

    pub(crate) const fn interval_us(&self) -> u64 {
        self.interval_us
    }

    pub(crate) const fn tolerance_us(&self) -> u64 {
        self.tolerance_us
    }

    /// How far ahead of now a request can have put the time at which a bucket is full again.
    pub(crate) const fn ahead_max_us(&self) -> u64 {
        self.tolerance_us.saturating_add(self.interval_us)
    }
}
