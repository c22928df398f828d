//! Sizes, counts and times of what agents and coordinators tell each other, and how they relate.

use std::time::Duration;

/// The application protocol, agreed on in the TLS handshake.
pub(crate) const ALPN: &[u8] = b"authentick-load/3";

/// The longest message to an agent, in octets: a plan with its authorities is the largest.
pub(crate) const ORDER_SIZE_MAX: u32 = 1 << 20;

/// The longest message from an agent, in octets: the report of a step is the largest.
pub(crate) const REPORT_SIZE_MAX: u32 = 32 << 20;

/// Single operations in a report, and in the sum of all reports: as many as a server keeps spans of both kinds.
pub(crate) const JOINABLE_COUNT_MAX: usize = 2 * 65_536;

/// The longest JSON of one single operation, in octets: IPv6 with port, two 64-bit numbers, names and marks.
const JOINABLE_SIZE_MAX: usize = 160;

const _: () = assert!(
    JOINABLE_COUNT_MAX * JOINABLE_SIZE_MAX < REPORT_SIZE_MAX as usize * 3 / 4,
    "single operations leave a quarter of a report to the histograms"
);

/// A higher count cannot be true, as so many operations do not fit into a step; and [`AGENT_COUNT_MAX`] times as many
/// do not overflow.
pub(crate) const OPERATION_COUNT_MAX: u64 = 1 << 48;

/// The longest step that is ordered; agents' own limits are lower.
pub(crate) const DURATION_MAX: Duration = Duration::from_secs(86_400);

/// Seconds of which a report of a step tells: those of the longest step, and of waiting for the last answers.
pub(crate) const SECOND_COUNT_MAX: usize = 86_400 + 4000;

/// The longest JSON of one second in a report, in octets: five names, three 64-bit counts, two times.
const SECOND_SIZE_MAX: usize = 150;

const _: () = assert!(
    SECOND_COUNT_MAX * SECOND_SIZE_MAX < REPORT_SIZE_MAX as usize / 2,
    "seconds leave half of a report to everything else"
);

/// Agents in a run.
pub(crate) const AGENT_COUNT_MAX: usize = 64;

const _: () = assert!(
    (OPERATION_COUNT_MAX as u128) * 4 * (AGENT_COUNT_MAX as u128) < u64::MAX as u128,
    "sums over all agents fit"
);

/// Connections that an agent has open at once: one coordinator's, those that are told that it is busy, and those
/// without a verified certificate, one of which is closed for each new one.
pub(crate) const CONNECTION_COUNT_MAX: usize = 8;

/// Connections that have sent nothing, which are beside these and have no threads.
pub(crate) const PENDING_COUNT_MAX: usize = 64;

/// Threads of connections, including those that are about to end.
pub(crate) const HANDLER_COUNT_MAX: usize = 4 * CONNECTION_COUNT_MAX;

/// Connecting, and a TLS handshake.
pub(crate) const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// The interval between heartbeats, which each side sends all the time.
pub(crate) const BEAT: Duration = Duration::from_millis(250);

/// After this long without an octet the other side is considered gone: ten heartbeats are missing.
pub(crate) const SILENCE_MAX: Duration = Duration::from_millis(2500);

const _: () =
    assert!(SILENCE_MAX.as_millis() >= 4 * BEAT.as_millis(), "one late sign of life ends no connection");

/// From a message's first octet to its last.
pub(crate) const MESSAGE_MAX: Duration = Duration::from_secs(60);

/// How long an agent may take to create its generator: it gives up then, and says so.
pub(crate) const PREPARE_MAX: Duration = Duration::from_secs(60);

/// How long its coordinator waits for that.
pub(crate) const READY_MAX: Duration = Duration::from_secs(70);

const _: () = assert!(
    READY_MAX.as_secs() >= PREPARE_MAX.as_secs() + 2 * SILENCE_MAX.as_secs(),
    "an agent that gives up is heard"
);

/// How long an answer to a ping may take.
pub(crate) const PING_MAX: Duration = Duration::from_secs(2);

/// Pings in a comparison of clocks; the fastest counts.
pub(crate) const PING_COUNT: u64 = 8;

/// From the order to the common start, in addition to the time that the order takes to arrive.
pub(crate) const LEAD: Duration = Duration::from_millis(250);

/// The furthest start that an agent accepts.
pub(crate) const LEAD_MAX: Duration = Duration::from_secs(30);

/// How long the report of a step may take, after its duration and all timeouts.
pub(crate) const REPORT_MAX: Duration = Duration::from_secs(15);

/// How long a new coordinator waits for the one before to disconnect: in scripts, runs follow each other.
pub(crate) const HANDOVER: Duration = Duration::from_millis(500);

/// How long an agent waits for a coordinator that it refused to read why.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// How fast two clocks may drift apart: what NTP tolerates of a clock, RFC 5905 section 11.
pub(crate) const DRIFT_PPM: i128 = 500;
