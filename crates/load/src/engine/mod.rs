//! The driver of the generator's core on this host: the only part of the load generator with sockets and clocks.
//!
//! - [`Sockets`]: one sending thread's datagrams, and the loop that sends, receives and gives up.
//! - `host_clock`: the clocks, and how the thread spends its time.
//! - `exchanges`, `connection`: key exchanges over TCP and TLS.

mod connection;
mod exchanges;
mod host_clock;
mod sockets;

pub(crate) use self::sockets::{Setup, Sockets};
