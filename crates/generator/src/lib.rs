//! The core of the load generator: simulated clients, what they ask and when, and the results.
//!
//! The crate exists so that a whole load run replays from a seed: it opens no socket or file, starts no thread, reads
//! no clock and speaks no TLS. The driver of a [`Core`] tells it the time and what happened, and carries out what it
//! asks for:
//!
//! ```text
//! in:  the time; a datagram of client N; an obstacle on the way; a key exchange that has ended; stop
//! out: requests of client N, side by side; a key exchange to begin; when to come back; what the step came to
//! ```
//!
//! - [`Core`]: one sending thread's clients and its share of the schedule.
//! - [`Scheme`]: what is offered; each scheme is one file in `scheme`, and one entry of the list there.
//! - [`Schedule`](schedule::Schedule): when operations are to begin.
//! - [`Order`], [`Part`]: the order for a step, and the report on it.
//! - [`validity`]: what a generator must have done for a step to say something about the server.
//! - [`Selection`](selection::Selection): a sample of single operations, the same for all who draw one.
#![forbid(unsafe_code)]

mod arrivals;
mod client;
mod core;
mod counts;
mod exchanges;
mod flight;
mod ledger;
pub mod limits;
mod outbox;
mod plan;
mod prepare;
mod roster;
pub mod schedule;
mod scheme;
pub mod selection;
mod series;
mod streams;
mod time_of_day;
pub mod validity;
mod workload;

use std::time::Duration;

use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;

pub use self::core::{Core, Missing, Settings};
pub use self::counts::Counts;
pub use self::exchanges::Exchange;
pub use self::outbox::{Run, Unsent};
pub use self::plan::{Antp, Arrivals, Joinable, Order, Part};
pub use self::prepare::{Provision, Readiness, Unready};
pub use self::scheme::{Guide, Judge, Nature, Scheme, UnknownSuite};
pub use self::workload::Arrived;
use self::workload::{Call, Workload};

/// Room for one datagram.
pub type Buffer = [u8; DATAGRAM_SIZE_MAX];

/// The clocks of the host on which a load runs, or of a simulated one.
pub trait Clock {
    /// Nanoseconds on a clock that is never set; only differences are meaningful.
    fn monotonic_ns(&self) -> u64;
    /// The time of day.
    fn time_of_day(&self) -> NtpTime;

    /// Both clocks, read together when datagrams have arrived: the time of day first. If this thread is interrupted in
    /// between, an arrival seems later than it was, never earlier, so no latency is too short.
    fn reading(&self) -> Reading {
        let time_of_day = self.time_of_day();
        Reading { ns: self.monotonic_ns(), time_of_day }
    }

    /// Both clocks, read together before requests leave: the time of day last, as close to the departure as can be.
    fn reading_before_sending(&self) -> Reading {
        Reading { ns: self.monotonic_ns(), time_of_day: self.time_of_day() }
    }
}

/// Both clocks at one instant: receive stamps use the time of day, the schedule the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The monotonic clock.
    pub ns: u64,
    /// The time of day.
    pub time_of_day: NtpTime,
}

impl Reading {
    /// The monotonic clock when the time of day was `at`, which is not later than this reading.
    pub(crate) fn ns_at(&self, at: NtpTime) -> u64 {
        self.ns.saturating_add_signed(-self.time_of_day.since(at).as_nanos().max(0))
    }

    /// Of a datagram that is looked at now and came `at`, by the kernel's stamp if it has one.
    #[must_use]
    pub fn arrival(&self, at: Option<NtpTime>) -> Arrived {
        Arrived { at: at.unwrap_or(self.time_of_day), now: *self, is_sound: true }
    }
}

/// What a call may need: clocks, and the buffer of the next slot, [`Core::slot`]. No call writes more than one request.
#[derive(Debug)]
pub struct Desk<'a, C> {
    /// The clocks.
    pub clock: &'a C,
    /// Room for the request that the call may write.
    pub out: &'a mut Buffer,
}

impl<C> Desk<'_, C> {
    /// A scheme's call, on this load.
    pub(crate) fn call<'a>(&'a mut self, load: &'a mut Workload) -> Call<'a, C> {
        Call { load, clock: self.clock, out: self.out }
    }
}

/// A time in nanoseconds; at most 146 years, so that sums of a few hold.
#[must_use]
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock on which each look at it takes a second.
    #[derive(Debug, Default)]
    struct Slow(Cell<u64>);

    impl Slow {
        fn look(&self) -> u64 {
            self.0.set(self.0.get() + 1);
            self.0.get()
        }
    }

    impl Clock for Slow {
        fn monotonic_ns(&self) -> u64 {
            self.look() * 1_000_000_000
        }

        fn time_of_day(&self) -> NtpTime {
            NtpTime::from_bits(self.look() << 32)
        }
    }

    #[test]
    fn interrupted_reading_makes_no_arrival_earlier_than_it_was() {
        // It came at the second 1, which is when the time of day is looked at first.
        let at = NtpTime::from_bits(1 << 32);
        assert_eq!(Slow::default().reading().ns_at(at), 2_000_000_000);
        assert_eq!(Slow::default().reading_before_sending().ns, 1_000_000_000);
    }
}
