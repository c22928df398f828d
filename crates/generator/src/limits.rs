//! Limits of the generator's core, and the relations between them.

use std::time::Duration;

use authentick_wire::limits::ANTP_CHAIN_SIZE_MAX;

/// Requests that are written before they are sent together.
pub const BATCH_SIZE: usize = 64;

/// Operations of one group that begin before arrivals are handled.
pub(crate) const BEGIN_COUNT_MAX: usize = BATCH_SIZE;

/// The number of clients among which requests that are due at once are divided: each sends sixteen of a full batch, and
/// at least one. Each client's share is one system call and, if they are of one size, one message for the kernel, which
/// is most of the cost of a request: with eight, 0.8 times as many leave.
pub(crate) const BURST_SHARE: usize = 4;

/// A request that is later than this is given up: nobody asked for a burst after a pause.
pub const GIVE_UP_NS: u64 = 100_000_000;

/// One request in a hundred may leave this late. A step with more of them says nothing about the server.
pub const LATENESS_MAX_NS: u64 = 1_000_000;

/// The same for key exchanges, each of which costs a thread a fraction of a millisecond and takes several.
pub const KE_LATENESS_MAX_NS: u64 = 5_000_000;

/// The background starts this much before the clients that are measured.
pub const BACKGROUND_LEAD: Duration = Duration::from_millis(500);

/// Key exchanges or negotiations in progress at once while clients get what they need before the load.
pub(crate) const PREPARING_COUNT_MAX: usize = 32;

/// Longer than this no client may stay without its sealed state of ANTP before the load, besides waiting for answers.
pub(crate) const STATE_PATIENCE_NS: u64 = 5_000_000_000;

/// Clients that are looked at for one that can send.
pub(crate) const CLIENT_SCAN_MAX: usize = 64;

/// Time requests of ANTP that have ended and whose room is kept: with 250,000 a second, those of 4 ms.
pub(crate) const SPARE_COUNT_MAX: usize = 1024;

/// Single operations that are reported of a step.
pub(crate) const JOINABLE_COUNT_MAX: usize = 60_000;

/// Requests that have ended and are remembered, so that another answer to one of them is recognised: 2 s of 65,536 a
/// second, in 1 MiB.
pub(crate) const ENDED_COUNT_MAX: usize = 1 << 17;

/// Requests of one sending thread that wait for their answers; with so many no further operation begins. That is 5 s of
/// 200,000 a second to a silent server. They take [`FLIGHT_SIZE_MAX`] octets each, 168 MB in all, and half as much more
/// while tables grow.
pub const FLIGHT_COUNT_MAX: usize = 1_000_000;

/// The same of m3 and m5 of ANTP, which take [`SEALED_FLIGHT_SIZE_MAX`] octets: 256 MB in all.
pub const SEALED_FLIGHT_COUNT_MAX: usize = 250_000;

/// The same of m1, and of runs of all phases, which keep as much of a certificate chain as they have: at most
/// [`ANTP_CHAIN_SIZE_MAX`] octets, 370 MB in all.
pub const CHAIN_FLIGHT_COUNT_MAX: usize = 40_000;

/// Octets that a request takes while it waits, with its places in the tables.
pub const FLIGHT_SIZE_MAX: usize = 168;

/// The same of m3 and m5 of ANTP, with what must be known of them when the answer comes.
pub const SEALED_FLIGHT_SIZE_MAX: usize = 1024;

const _: () = assert!(
    SEALED_FLIGHT_COUNT_MAX * SEALED_FLIGHT_SIZE_MAX <= 256_000_000
        && CHAIN_FLIGHT_COUNT_MAX * (SEALED_FLIGHT_SIZE_MAX + ANTP_CHAIN_SIZE_MAX) <= 370_000_000,
    "the memory of a thread is stated"
);
/// From this on a difference between the clocks, beyond what slewing explains, means that the time of day was set: half
/// of what counts as late.
pub(crate) const JUMP_MIN_NS: u64 = 500_000;

/// By how much a clock is slewed that is not set: twice what `adjtimex` allows.
pub(crate) const SLEW_MAX_PPM: u64 = 1_000;

/// The difference is looked at this often at least, so that slewing explains little of it.
pub(crate) const READING_AGE_MAX_NS: u64 = 100_000_000;

/// Both clocks are read at one instant if no more time passed.
pub(crate) const READ_APART_MAX_NS: u64 = 50_000;

/// Seconds of a step whose latencies are in its series: its first quarter of an hour, and some.
pub(crate) const TIMED_SECOND_COUNT_MAX: usize = 1_000;

const _: () = assert!(READ_APART_MAX_NS < JUMP_MIN_NS, "an interruption is no jump");
const _: () = assert!(KE_LATENESS_MAX_NS < GIVE_UP_NS, "what is given up has counted as late long before");
const _: () = assert!(LATENESS_MAX_NS < KE_LATENESS_MAX_NS, "a transfer is shorter than a key exchange");

#[cfg(test)]
mod tests {
    use authentick_report::units::count;

    use super::*;

    /// The text with one space between words.
    fn words(page: &str) -> String {
        page.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn pages_state_how_many_requests_wait_and_the_memory_that_they_take() {
        let security = words(include_str!("../../../SECURITY.md"));
        for (number, size) in [
            (FLIGHT_COUNT_MAX, FLIGHT_SIZE_MAX),
            (SEALED_FLIGHT_COUNT_MAX, SEALED_FLIGHT_SIZE_MAX),
            (CHAIN_FLIGHT_COUNT_MAX, SEALED_FLIGHT_SIZE_MAX + ANTP_CHAIN_SIZE_MAX),
        ] {
            let number_stated = security.find(&count(number as u64)).unwrap_or_else(|| panic!("{number}"));
            let memory =
                format!("({} MB)", number * size / 1_000_000 + usize::from(number * size % 1_000_000 > 0));
            let memory_stated = security[number_stated..].find(&memory).unwrap_or_else(|| panic!("{memory}"));
            assert!(memory_stated < 60, "{memory} is not said of {number}");
        }
        let manual = words(include_str!("../../../docs/manual/load.md"));
        let stated = format!(
            "memory for: a million; {} of ANTP, or {} that have a certificate chain",
            count(SEALED_FLIGHT_COUNT_MAX as u64),
            count(CHAIN_FLIGHT_COUNT_MAX as u64)
        );
        assert!(manual.contains(&stated), "{stated}");
        assert_eq!(FLIGHT_COUNT_MAX, 1_000_000, "a million");
    }
}
