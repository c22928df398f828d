//! The driver of the generator's core on this host: the only part of the load generator with sockets and clocks.
//!
//! - [`Sockets`]: one sending thread's datagrams, and the loop that sends, receives and gives up.
//! - `exchanges`, `connection`: key exchanges over TCP and TLS.

mod connection;
mod exchanges;
mod sockets;

use std::io;

use authentick_net::udp::{Hint, hint};
use authentick_report::load::Cause;

pub(crate) use self::sockets::{Report, Setup, Sockets};

/// What the network says about requests, as opposed to what this host does.
fn obstacle(error: &io::Error) -> Option<Cause> {
    hint(error).map(cause_of)
}

const fn cause_of(hint: Hint) -> Cause {
    match hint {
        Hint::Refused => Cause::Refused,
        Hint::Unreachable => Cause::Unreachable,
    }
}
