//! When the clock was last read, and when a thread last completed its loop. Either can be too old to rely on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use authentick_proto::server::snapshot::Snapshot;

/// How often the clock's state and the keys' age are checked.
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// A reading of the clock that is older than this no longer counts, and a thread whose last loop is longer ago hangs.
/// Ten readings; an upstream may take half a second to answer each.
pub(crate) const STALE_AFTER: Duration = Duration::from_secs(10);

/// The state of the clock, and when it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looked {
    snapshot: Snapshot,
    boot_ns: u64,
}

impl Looked {
    pub(crate) const fn new(snapshot: Snapshot, boot_ns: u64) -> Self {
        Looked { snapshot, boot_ns }
    }

    /// The state to report now: unsynchronised, if the last reading is too old.
    #[inline]
    pub(crate) fn at(&self, boot_ns: u64) -> Snapshot {
        if self.age(boot_ns) <= STALE_AFTER {
            self.snapshot
        } else {
            Snapshot::unsynchronised(self.snapshot.precision)
        }
    }

    #[inline]
    pub(crate) const fn age(&self, boot_ns: u64) -> Duration {
        Duration::from_nanos(boot_ns.saturating_sub(self.boot_ns))
    }
}

/// When a thread last completed its loop, and what it is doing.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    boot_ns: AtomicU64,
    work: Mutex<String>,
}

impl Heartbeat {
    pub(crate) fn new(boot_ns: u64) -> Self {
        Heartbeat { boot_ns: AtomicU64::new(boot_ns), work: Mutex::default() }
    }

    /// The thread has completed its loop.
    pub(crate) fn beat(&self, boot_ns: u64) {
        self.boot_ns.store(boot_ns, Ordering::Relaxed);
    }

    /// The thread begins an operation, which is named as the object of a sentence.
    pub(crate) fn begin(&self, work: &str) {
        work.clone_into(&mut self.work.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The operation that it began last.
    pub(crate) fn work(&self) -> String {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn age(&self, boot_ns: u64) -> Duration {
        Duration::from_nanos(boot_ns.saturating_sub(self.boot_ns.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use authentick_wire::header::{Leap, ReferenceId};
    use authentick_wire::time::NtpTime;

    use super::*;

    //= rfc5905#7.3-3, rfc5905#7.3-2
    #[test]
    fn state_that_nobody_renews_is_no_state() {
        let good = Snapshot::primary(-20, ReferenceId(*b"TEST"), NtpTime::ZERO);
        let (taken, limit) = (5_000_000_000, STALE_AFTER.as_nanos() as u64);
        let looked = Looked::new(good, taken);
        assert_eq!(looked.at(taken - 1), good, "another processor's clock is a little behind");
        assert_eq!(looked.at(taken + limit), good);
        let stale = looked.at(taken + limit + 1);
        assert_eq!((stale.leap, stale.stratum, stale.precision), (Leap::Unsynchronised, 0, -20));
    }
}
