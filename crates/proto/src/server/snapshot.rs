//! What the server says about its clock: one value, copied once per batch.

use authentick_wire::header::{Leap, ReferenceId};
use authentick_wire::time::{NtpShort, NtpTime};

/// Frequency tolerance of a clock that nothing corrects: 15 us per second. RFC 5905 figure 6 (PHI).
const DISPERSION_PER_SECOND_NS: u64 = 15_000;

/// The state of the server's clock when it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Leap warning; [`Leap::Unsynchronised`] if the clock is not to be trusted.
    pub leap: Leap,
    /// 1 to 15; 0 goes out when unsynchronised, as RFC 5905 section 7.3 says for 16.
    pub stratum: u8,
    /// log2 seconds.
    pub precision: i8,
    /// Round-trip delay to the reference clock.
    pub root_delay: NtpShort,
    /// Dispersion at `taken`; it grows from there.
    pub root_dispersion: NtpShort,
    /// The source of time.
    pub reference_id: ReferenceId,
    /// When the clock was last set or corrected.
    pub reference: NtpTime,
    /// When this snapshot was taken.
    pub taken: NtpTime,
}

impl Snapshot {
    /// A clock that nobody vouches for.
    //= rfc5905#7.3-2, rfc5905#7.3-3
    #[must_use]
    pub const fn unsynchronised(precision: i8) -> Self {
        Snapshot {
            leap: Leap::Unsynchronised,
            stratum: 0,
            precision,
            root_delay: NtpShort::ZERO,
            root_dispersion: NtpShort::MAX,
            reference_id: ReferenceId(*b"INIT"),
            reference: NtpTime::ZERO,
            taken: NtpTime::ZERO,
        }
    }

    /// The clock of a primary server (stratum 1), which was set at `taken` and is exact.
    #[must_use]
    pub const fn primary(precision: i8, reference_id: ReferenceId, taken: NtpTime) -> Self {
        Snapshot {
            leap: Leap::None,
            stratum: 1,
            precision,
            root_delay: NtpShort::ZERO,
            root_dispersion: NtpShort::ZERO,
            reference_id,
            reference: taken,
            taken,
        }
    }

    /// The dispersion at `now`: what it was, and 15 us for each second since. RFC 5905 section 11.2.
    //= rfc5905#14-5
    #[inline]
    #[must_use]
    pub fn root_dispersion_at(&self, now: NtpTime) -> NtpShort {
        let age = now.since(self.taken).as_nanos().max(0).unsigned_abs();
        let growth = age / 1_000_000_000 * DISPERSION_PER_SECOND_NS
            + age % 1_000_000_000 * DISPERSION_PER_SECOND_NS / 1_000_000_000;
        self.root_dispersion.saturating_add(NtpShort::from_nanos(growth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use authentick_wire::time::NtpSpan;

    //= rfc5905#14-5
    #[test]
    fn dispersion_grows_15_us_a_second_and_never_shrinks() {
        let taken = NtpTime::from_unix(1_700_000_000, 0);
        let snapshot = Snapshot {
            taken,
            root_dispersion: NtpShort::from_nanos(1_000_000),
            ..Snapshot::unsynchronised(-20)
        };
        let grown = snapshot.root_dispersion_at(taken + NtpSpan::from_nanos(100_000_000_000));
        assert!(grown.as_nanos().abs_diff(2_500_000) < 40_000, "{grown:?}");
        assert_eq!(snapshot.root_dispersion_at(taken - NtpSpan::SECOND), snapshot.root_dispersion);
    }
}
