//! NTP time: 64-bit instants, 32-bit unsigned durations, signed differences.
//!
//! All arithmetic on fixed-point values happens here. Instants wrap every 2^32 seconds (an *era*; era 0 ends on
//! 2036-02-07), so they are only ever subtracted, with wrapping, and never compared: RFC 5905 section 6. The
//! difference of two instants is right as long as they lie within 68 years of each other.

use core::fmt;
use core::ops::{Add, Neg, Sub};
use core::time::Duration;

/// Seconds from 1900-01-01 (the NTP epoch) to 1970-01-01 (the Unix epoch).
pub const UNIX_EPOCH_SECONDS: u64 = 2_208_988_800;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// An instant: seconds since 1900 in the upper 32 bits, 2^-32 seconds in the lower. Zero means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NtpTime(u64);

impl NtpTime {
    /// The value that stands for "unknown", in every era.
    pub const ZERO: NtpTime = NtpTime(0);

    /// The instant with this 64-bit representation.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        NtpTime(bits)
    }

    /// The 64-bit representation.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The instant in eight octets, as on the wire.
    #[must_use]
    pub const fn from_be_bytes(octets: [u8; 8]) -> Self {
        NtpTime(u64::from_be_bytes(octets))
    }

    /// Eight octets, as on the wire.
    #[must_use]
    pub const fn to_be_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// Whether this is the value for "unknown".
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The instant `nanos` nanoseconds (below 10^9) after `seconds` of Unix time; the era is dropped.
    //= rfc5905#6-1
    #[must_use]
    pub const fn from_unix(seconds: i64, nanos: u32) -> Self {
        // The cast and the addition wrap: an era number has no place in the format.
        let seconds = (seconds as u64).wrapping_add(UNIX_EPOCH_SECONDS);
        let fraction = ((nanos as u64) << 32) / NANOS_PER_SECOND;
        NtpTime((seconds << 32) | fraction)
    }

    /// Unix seconds and nanoseconds, in the era that puts the result nearest to `pivot_seconds` of Unix time.
    #[must_use]
    pub const fn to_unix(self, pivot_seconds: i64) -> (i64, u32) {
        let pivot = (pivot_seconds as u64).wrapping_add(UNIX_EPOCH_SECONDS);
        // The low 32 bits of the difference, read as signed, lie within half an era of the pivot.
        let ahead = ((self.0 >> 32) as u32).wrapping_sub(pivot as u32) as i32;
        let nanos = ((self.0 & 0xffff_ffff) * NANOS_PER_SECOND) >> 32;
        (pivot_seconds + ahead as i64, nanos as u32)
    }

    /// The time from `earlier` to `self`; negative if `self` comes first. Wraps with the era.
    //= rfc5905#6-3
    #[must_use]
    pub const fn since(self, earlier: NtpTime) -> NtpSpan {
        NtpSpan(self.0.wrapping_sub(earlier.0) as i64)
    }
}

impl Add<NtpSpan> for NtpTime {
    type Output = NtpTime;

    fn add(self, span: NtpSpan) -> NtpTime {
        NtpTime(self.0.wrapping_add(span.0 as u64))
    }
}

impl Sub<NtpSpan> for NtpTime {
    type Output = NtpTime;

    fn sub(self, span: NtpSpan) -> NtpTime {
        NtpTime(self.0.wrapping_sub(span.0 as u64))
    }
}

/// A signed difference of two instants, in units of 2^-32 seconds; reaches 68 years either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NtpSpan(i64);

impl NtpSpan {
    /// No time at all.
    pub const ZERO: NtpSpan = NtpSpan(0);
    /// One second.
    pub const SECOND: NtpSpan = NtpSpan(1 << 32);

    /// The span with this representation in units of 2^-32 seconds.
    #[must_use]
    pub const fn from_bits(bits: i64) -> Self {
        NtpSpan(bits)
    }

    /// The representation in units of 2^-32 seconds.
    #[must_use]
    pub const fn to_bits(self) -> i64 {
        self.0
    }

    /// `nanos` nanoseconds, rounded towards zero, at most 68 years either way.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        let bits = ((nanos as i128) << 32) / NANOS_PER_SECOND as i128;
        if bits > i64::MAX as i128 {
            NtpSpan(i64::MAX)
        } else if bits < i64::MIN as i128 {
            NtpSpan(i64::MIN)
        } else {
            NtpSpan(bits as i64)
        }
    }

    /// Whole nanoseconds, rounded to the nearest.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        ((self.0 as i128 * NANOS_PER_SECOND as i128 + (1 << 31)) >> 32) as i64
    }

    /// Half the sum of two spans, without overflow; rounds towards minus infinity.
    #[must_use]
    pub const fn mean(self, other: NtpSpan) -> NtpSpan {
        NtpSpan(((self.0 as i128 + other.0 as i128) >> 1) as i64)
    }
}

impl Add for NtpSpan {
    type Output = NtpSpan;

    fn add(self, other: NtpSpan) -> NtpSpan {
        NtpSpan(self.0.saturating_add(other.0))
    }
}

impl Sub for NtpSpan {
    type Output = NtpSpan;

    fn sub(self, other: NtpSpan) -> NtpSpan {
        NtpSpan(self.0.saturating_sub(other.0))
    }
}

impl Neg for NtpSpan {
    type Output = NtpSpan;

    fn neg(self) -> NtpSpan {
        NtpSpan(self.0.saturating_neg())
    }
}

impl From<Duration> for NtpSpan {
    fn from(duration: Duration) -> Self {
        NtpSpan::from_nanos(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for NtpSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.as_nanos();
        let (sign, magnitude) = (if nanos < 0 { "-" } else { "+" }, nanos.unsigned_abs());
        match magnitude {
            0..1_000 => write!(f, "{sign}{magnitude} ns"),
            1_000..1_000_000 => write!(f, "{sign}{}.{:03} us", magnitude / 1_000, magnitude % 1_000),
            1_000_000..1_000_000_000 => {
                write!(f, "{sign}{}.{:03} ms", magnitude / 1_000_000, magnitude / 1_000 % 1_000)
            }
            _ => write!(f, "{sign}{}.{:03} s", magnitude / 1_000_000_000, magnitude / 1_000_000 % 1_000),
        }
    }
}

/// An unsigned duration of the header: seconds in the upper 16 bits, 2^-16 seconds in the lower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NtpShort(u32);

impl NtpShort {
    /// No time at all.
    pub const ZERO: NtpShort = NtpShort(0);
    /// The longest duration the format holds, a little under 18.3 hours.
    pub const MAX: NtpShort = NtpShort(u32::MAX);

    /// The duration with this 32-bit representation.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        NtpShort(bits)
    }

    /// The 32-bit representation.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// `nanos` nanoseconds, rounded up (an error bound must not shrink), at most [`NtpShort::MAX`].
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        //= rfc5905#6-2
        let bits = ((nanos as u128) << 16).div_ceil(NANOS_PER_SECOND as u128);
        if bits > u32::MAX as u128 { NtpShort::MAX } else { NtpShort(bits as u32) }
    }

    /// Whole nanoseconds, rounded towards zero.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        (self.0 as u64 * NANOS_PER_SECOND) >> 16
    }

    /// The sum, at most [`NtpShort::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: NtpShort) -> NtpShort {
        NtpShort(self.0.saturating_add(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    //= rfc5905#6-1
    #[test]
    fn unix_epoch_is_2208988800_seconds_after_1900() {
        assert_eq!(NtpTime::from_unix(0, 0).to_bits(), UNIX_EPOCH_SECONDS << 32);
        assert_eq!(NtpTime::from_unix(0, 500_000_000).to_bits(), (UNIX_EPOCH_SECONDS << 32) | 1 << 31);
    }

    //= rfc5905#6-3
    #[test]
    fn era_0_ends_on_2036_02_07_at_06_28_16() {
        assert_eq!(NtpTime::from_unix(2_085_978_496, 0), NtpTime::ZERO);
        let before = NtpTime::from_unix(2_085_978_495, 0);
        let after = NtpTime::from_unix(2_085_978_497, 0);
        assert_eq!(after.since(before), NtpSpan::from_nanos(2_000_000_000));
        assert_eq!(before.to_unix(2_000_000_000), (2_085_978_495, 0));
        assert_eq!(after.to_unix(2_000_000_000), (2_085_978_497, 0));
    }

    #[test]
    fn spans_print_with_unit_and_sign() {
        use std::string::ToString;
        assert_eq!(NtpSpan::from_nanos(-12_345).to_string(), "-12.345 us");
        assert_eq!(NtpSpan::from_nanos(12_345_678).to_string(), "+12.345 ms");
        assert_eq!(NtpSpan::from_nanos(7).to_string(), "+7 ns");
    }

    //= rfc5905#6-2
    #[test]
    fn short_format_rounds_bounds_up() {
        assert_eq!(NtpShort::from_nanos(1).to_bits(), 1);
        assert_eq!(NtpShort::from_nanos(1_000_000_000).to_bits(), 1 << 16);
        assert_eq!(NtpShort::from_nanos(u64::MAX), NtpShort::MAX);
    }

    proptest! {
        #[test]
        fn unix_time_survives_a_round_trip(seconds in -3_000_000_000i64..6_000_000_000, nanos in 0u32..1_000_000_000) {
            let (s, n) = NtpTime::from_unix(seconds, nanos).to_unix(seconds + 1_000_000_000);
            prop_assert_eq!(s, seconds);
            prop_assert!(n.abs_diff(nanos) <= 1);
        }

        #[test]
        fn difference_undoes_addition(start: u64, span: i64) {
            let start = NtpTime::from_bits(start);
            prop_assert_eq!((start + NtpSpan::from_bits(span)).since(start), NtpSpan::from_bits(span));
        }

        #[test]
        fn mean_lies_between(a: i64, b: i64) {
            let mean = NtpSpan(a).mean(NtpSpan(b));
            prop_assert!(mean.0 >= a.min(b) && mean.0 <= a.max(b));
        }

        #[test]
        fn nanoseconds_survive_a_round_trip(nanos in -2_000_000_000_000_000_000i64..2_000_000_000_000_000_000) {
            prop_assert!(NtpSpan::from_nanos(nanos).as_nanos().abs_diff(nanos) <= 1);
        }
    }
}
