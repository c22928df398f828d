//! The host's clocks as the daemon sees them. Code that serves time, judges it or measures age by it is given a
//! [`HostClock`]; the dates of certificates (`validity`) and the instants of spans are this machine's own.
//!
//! So a test can start a whole node in 1970, set its clock nine days forward, or make the kernel report an
//! unsynchronised clock, without touching the machine's own clock. Receive stamps are the kernel's, and real even then.

use std::fmt;
use std::time::Duration;

use authentick_net::clock::{self, KernelClock};
use authentick_proto::server::Clock;
use authentick_wire::time::NtpTime;

/// The clocks of a host, and what its kernel says about the one that can be set.
pub trait HostClock: fmt::Debug + Send + Sync {
    /// The time of day.
    fn now(&self) -> NtpTime;
    /// The same in Unix seconds; 0 before 1970.
    fn unix_seconds(&self) -> u64;
    /// Nanoseconds on a clock that is never set and keeps counting while the host sleeps; only differences are
    /// meaningful.
    fn boot_ns(&self) -> u64;
    /// What the kernel says about the time of day.
    fn kernel(&self) -> KernelClock;

    /// [`HostClock::boot_ns`] as a duration.
    fn boot(&self) -> Duration {
        Duration::from_nanos(self.boot_ns())
    }
}

/// The clocks of this host.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl HostClock for SystemClock {
    #[inline]
    fn now(&self) -> NtpTime {
        clock::now()
    }

    fn unix_seconds(&self) -> u64 {
        clock::unix_seconds()
    }

    #[inline]
    fn boot_ns(&self) -> u64 {
        clock::boot_ns()
    }

    fn kernel(&self) -> KernelClock {
        clock::kernel_clock()
    }
}

/// A host's clocks as the responder wants them.
pub(crate) struct ResponderClock<'a>(pub(crate) &'a dyn HostClock);

impl Clock for ResponderClock<'_> {
    #[inline]
    fn now(&mut self) -> NtpTime {
        self.0.now()
    }

    #[inline]
    fn monotonic_us(&mut self) -> u64 {
        self.0.boot_ns() / 1000
    }
}
