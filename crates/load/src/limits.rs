//! Limits of the generator, and the relations between them.

use std::time::Duration;

pub(crate) use authentick_net::udp::BATCH_SIZE;

/// Requests that one thread prepares before it looks at what has arrived.
pub(crate) const BEGIN_COUNT_MAX: usize = BATCH_SIZE;

/// Of the requests that are due at once, a client sends one in so many, but at least one: eight of a full batch. Each
/// client's share of a batch is one system call.
pub(crate) const BURST_SHARE: usize = 8;

/// Datagrams that are read from one socket before the others have their turn.
pub(crate) const RECEIVE_COUNT_MAX: usize = 32;

/// A request that is later than this is given up: a burst after a pause is no load that anybody asked for.
pub(crate) const GIVE_UP_NS: u64 = 100_000_000;

/// One request in a hundred may leave this late. A step with more of them says nothing about the server.
pub(crate) const LATENESS_MAX_NS: u64 = 1_000_000;

/// The same for key exchanges, each of which costs a thread a fraction of a millisecond and takes several.
pub(crate) const KE_LATENESS_MAX_NS: u64 = 5_000_000;

/// Before something is due the thread spins for this long, as it would wake too late from a sleep.
pub(crate) const SPIN_NS: u64 = 200_000;

/// The longest sleep, so that a stop is noticed soon.
pub(crate) const PATIENCE_MAX: Duration = Duration::from_millis(20);

/// The background starts this much before the clients that are measured.
pub(crate) const BACKGROUND_LEAD: Duration = Duration::from_millis(500);

/// Key exchanges that a worker has in progress while clients get their first keys.
pub(crate) const FIRST_KEYS_COUNT_MAX: usize = 32;

/// How long a connection may stay open after its key exchange, for the server to close it.
pub(crate) const LINGER_NS: u64 = 1_000_000_000;

/// Clients that are looked at for one that can send.
pub(crate) const CLIENT_SCAN_MAX: usize = 64;

/// Time requests of ANTP that have ended and whose room a worker keeps: with 250,000 a second, those of 4 ms.
pub(crate) const SPARE_COUNT_MAX: usize = 1024;

/// Single operations that a worker reports of a step.
pub(crate) const JOINABLE_COUNT_MAX: usize = 60_000;

/// Requests without an answer whose answers a worker still knows when they come after all: 2 s of 65,536 a second.
pub(crate) const ABANDONED_COUNT_MAX: usize = 1 << 17;

/// Numbers of descriptors from which on they are connections; below, clients.
pub(crate) const CONNECTIONS_FROM: u64 = 1 << 32;

const _: () = assert!(KE_LATENESS_MAX_NS < GIVE_UP_NS, "what is given up has counted as late long before");
const _: () = assert!(LATENESS_MAX_NS < KE_LATENESS_MAX_NS, "a transfer is shorter than a key exchange");
const _: () = assert!(SPIN_NS < LATENESS_MAX_NS, "a thread that wakes in time is not late");
