//! Spectracom, technical note "NTP Server Capacity Testing": requests a second without authentication that a SecureSync
//! serviced, as NtpStress counted them.

/// How the source is cited.
pub const SOURCE: &str = "Spectracom, technical note \u{201c}NTP Server Capacity Testing\u{201d}";

/// A row of Table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleHost {
    /// "NTP requests specified (per second)".
    pub requested_rps: u32,
    /// "Time Duration (Seconds)".
    pub seconds: u32,
    /// "Average NTP requests serviced (per second)".
    pub serviced_rps: u32,
}

/// A row of Table 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeveralHosts {
    /// "NTP requests specified (per host, per second)".
    pub requested_rps: u32,
    /// "Time Duration (Seconds)".
    pub seconds: u32,
    /// "Average NTP requests serviced (per second)" of each of [`HOSTS`].
    pub serviced_rps: [u32; 3],
    /// Their "Total".
    pub total_rps: u32,
}

const fn single(requested_rps: u32, serviced_rps: u32) -> SingleHost {
    SingleHost { requested_rps, seconds: 60, serviced_rps }
}

const fn several(requested_rps: u32, serviced_rps: [u32; 3], total_rps: u32) -> SeveralHosts {
    SeveralHosts { requested_rps, seconds: 100, serviced_rps, total_rps }
}

/// Table 1, "Test Results with a Single Host": a laptop with Windows 7 and 1 Gigabit Ethernet. The note says of its
/// limit that it is "due to ability of the host to generate requests".
pub const TABLE_1: [SingleHost; 6] = [
    single(1_000, 1_000),
    single(3_000, 2_371),
    single(4_000, 3_548),
    single(5_000, 4_321),
    single(6_000, 4_377),
    single(10_000, 4_484),
];

/// The hosts of Table 2.
pub const HOSTS: [&str; 3] =
    ["Laptop (10/100M) Windows XP", "Laptop (1 Gigabit) Windows 7", "PC (10/100M) Windows XP"];

/// Table 2, "Test Results with Multiple Hosts".
pub const TABLE_2: [SeveralHosts; 5] = [
    several(10_000, [2_452, 3_502, 3_929], 9_883),
    several(50_000, [2_415, 2_449, 4_131], 8_995),
    several(50_000, [2_428, 2_459, 4_137], 9_024),
    several(50_000, [2_374, 3_457, 3_945], 9_776),
    several(90_000, [2_448, 3_518, 3_943], 9_909),
];

/// "An earlier configuration was capable of up to 9,909 NTP requests per second" (Conclusion).
pub const EARLIER_RPS: u32 = 9_909;

/// "An updated configuration was able to serve approximately 7,500 NTP requests per second" (Conclusion).
pub const UPDATED_RPS: u32 = 7_500;

/// What the update left: 0.76.
#[must_use]
pub fn updated_ratio() -> f64 {
    f64::from(UPDATED_RPS) / f64::from(EARLIER_RPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_table_2_are_the_sums_of_its_hosts() {
        for row in TABLE_2 {
            assert_eq!(row.serviced_rps.iter().sum::<u32>(), row.total_rps, "{row:?}");
        }
        assert_eq!(TABLE_2.iter().map(|row| row.total_rps).max(), Some(EARLIER_RPS));
    }

    #[test]
    fn single_host_saturates_close_to_4500() {
        assert!(TABLE_1.is_sorted_by_key(|row| row.serviced_rps));
        assert!(TABLE_1.iter().all(|row| row.serviced_rps <= row.requested_rps.min(4_500)));
        assert!((updated_ratio() - 0.757).abs() < 0.0005);
    }
}
