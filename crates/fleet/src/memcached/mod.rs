//! The classic text protocol of memcached, as a client speaks it on one connection: memcached's doc/protocol.txt, with
//! what the document leaves open as memcached 1.6.18 does it.
//!
//! There are three commands, and they suffice for documents that several writers keep: `gets` reads values with their
//! tokens, `add` stores what is not there yet, `cas` replaces what nobody has replaced since. Left out: every other
//! command (among them `set`, which would overwrite what another writer has stored), expiry and flags (both are sent
//! as 0; flags of a value that is read are ignored), `noreply`, authentication, TLS, and the binary and meta protocols.
//! There is no socket, clock or thread either: the driver of a [`Connection`] moves octets, and decides how long to
//! wait.
//!
//! - `request`: names, requests, and how they are written.
//! - `response`: what a server says to them.
//! - `connection`: which response belongs to which request, within limits.
//! - `fuzzing`: what the fuzz target runs.

mod connection;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub use connection::{Connection, Fault, Unasked};
pub use request::{BadName, Name, Request, Unfit, fetch_count};
pub use response::{Refusal, RefusalKind, Response, Value};

/// Octets of the longest name. doc/protocol.txt, "Keys".
pub const NAME_SIZE_MAX: usize = 250;

/// Names in one request.
pub const NAME_COUNT_MAX: usize = 1024;

/// Octets of the largest value, in both directions. memcached takes up to 1 MiB if nobody has changed it.
pub const VALUE_SIZE_MAX: usize = 256 << 10;

/// Octets of all values in the response to one request.
pub const RESPONSE_SIZE_MAX: usize = 1 << 20;

/// Octets of the longest line that a client sends, with its end. Where memcached finds no end of a line in more than
/// these, it closes the connection, or makes room for a line that begins with `gets`. `try_read_command_ascii`.
pub const COMMAND_SIZE_MAX: usize = 2048;

/// Octets of the longest line that is taken from a server, with its end. The longest `VALUE` line has 297.
pub const LINE_SIZE_MAX: usize = 512;

/// Octets that are kept of the text of an error.
pub const TEXT_SIZE_MAX: usize = 128;

/// Requests that may wait: for their response, or with a response that the driver has not taken.
pub const REQUEST_COUNT_MAX: usize = 16;

/// Octets of requests that may wait to be sent. The largest single request needs less than a third of them.
pub const UNSENT_SIZE_MAX: usize = 1 << 20;
