//! Limits of what is around the generator's core, and the relations between them.

use std::time::Duration;

use authentick_generator::limits;
pub(crate) use authentick_net::engine::BATCH_SIZE;

/// Datagrams that are read from one socket before the others have their turn.
pub(crate) const RECEIVE_COUNT_MAX: usize = 32;

/// Octets of a request that are read out of what a message of the network quotes: all that one over IPv6 holds.
pub(crate) const QUOTE_SIZE_MAX: usize = 1280 - 40 - 8 - 40 - 8;

/// Turns in which a socket's whole buffer is read: the kernel gives it twice what it asks for, 8 MiB, of which a
/// datagram takes more than 512 octets.
pub(crate) const SOCKET_TURN_COUNT_MAX: usize = (8 << 20) / 512 / RECEIVE_COUNT_MAX;

/// Before something is due the thread spins for this long, as it would wake too late from a sleep.
pub(crate) const SPIN_NS: u64 = 200_000;

/// The longest sleep, so that a stop is noticed soon.
pub(crate) const PATIENCE_MAX: Duration = Duration::from_millis(20);

/// From this on a thread has stood still: no work between two looks at the clock takes as long, nor does waking.
pub(crate) const STALL_MIN_NS: u64 = 1_000_000;

/// The same for a step of a key exchange, with its public-key work.
pub(crate) const KE_WORK_MAX_NS: u64 = 5_000_000;

/// How long a connection may stay open after its key exchange, for the server to close it.
pub(crate) const LINGER_NS: u64 = 1_000_000_000;

/// Numbers of descriptors from which on they are connections; below, clients.
pub(crate) const CONNECTIONS_FROM: u64 = 1 << 32;

const _: () = assert!(limits::BATCH_SIZE <= BATCH_SIZE, "each request of a batch has its buffer");
const _: () = assert!(RECEIVE_COUNT_MAX <= BATCH_SIZE, "what one socket has fits a batch");
const _: () =
    assert!(STALL_MIN_NS <= limits::LATENESS_MAX_NS, "who is late without work to do has stood still");
const _: () = assert!(SPIN_NS < limits::LATENESS_MAX_NS, "a thread that wakes in time is not late");
