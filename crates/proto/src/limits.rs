//! Bounds of the protocol core, and how they relate.

use authentick_wire::limits::{COOKIE_COUNT, COOKIE_SIZE_MAX, DATAGRAM_SIZE_MAX, HEADER_SIZE};

/// Datagrams that the responder takes at once.
pub const BATCH_SIZE: usize = 64;

/// Datagrams that go through the steps of the responder together: as many as the widest lanes take.
pub const GROUP_SIZE: usize = 16;

/// Cookie keys that a key set holds: one future, one current, the rest retired.
pub const KEY_COUNT_MAX: usize = 66;

/// Cookie keys that open at once: those of a set, and those that open beside it.
pub const OPENING_KEY_COUNT_MAX: usize = 2 * KEY_COUNT_MAX;

/// Rotations by which a set that somebody else makes can be late: identifiers so far behind its last one are those of
/// keys that it will have.
pub const KEYS_AHEAD_MAX: u32 = 64;

/// Symmetric keys that a server knows: as many as the identifiers of NTPsec, which are 16 bits wide.
pub const SYMMETRIC_KEY_COUNT_MAX: usize = 1 << 16;

/// Buckets of the rate limiter, four prefixes each.
pub const LIMITER_BUCKET_COUNT: usize = 1 << 16;

/// Exchanges that the interleaved mode remembers.
pub const INTERLEAVE_ENTRY_COUNT: usize = 1 << 16;

/// Where kisses are switched on, one in this many refusals for rate is a RATE kiss; the others are silence.
pub const RATE_KISS_SHARE: u64 = 4;

/// The largest datagram that a client makes: it crosses any IPv6 path whole.
pub const REQUEST_SIZE_MAX: usize = 1280 - 40 - 8;

/// Root distance, in seconds, from which a server's time is useless. RFC 5905 section 7.3 (MAXDISP).
pub const ROOT_DISTANCE_MAX_SECONDS: u64 = 16;

const _: () = assert!(LIMITER_BUCKET_COUNT.is_power_of_two(), "buckets are chosen by masking a hash");
const _: () = assert!(INTERLEAVE_ENTRY_COUNT.is_power_of_two(), "entries are chosen by masking a hash");
const _: () = assert!(REQUEST_SIZE_MAX < DATAGRAM_SIZE_MAX, "servers read everything that clients send");
const _: () = assert!(COOKIE_COUNT * COOKIE_SIZE_MAX <= 4096, "a client's jar stays small");
const _: () = assert!(HEADER_SIZE < REQUEST_SIZE_MAX, "a request has a header");
