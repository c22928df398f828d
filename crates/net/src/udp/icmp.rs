//! What the network says about datagrams that were sent, as the kernel passes it on.
//!
//! The kernel turns an ICMP message about a connected socket's datagrams into an error of the next call on that socket,
//! whichever that is. Nothing vouches for such a message: whoever guesses or sees a client's port can send it. So it is
//! a hint, to be told if no answer comes, and never a reason to stop waiting for one.

use std::io;

/// What a message of ICMP claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Nobody listens on that port.
    Refused,
    /// Anything else that keeps datagrams away: no route, a filter, a protocol, a size.
    Unreachable,
}

/// How often a call is made again that a hint about datagrams before has ended. Each such error takes one message away,
/// and is gone; a route that is really missing, or a datagram that is really too large, fails each time.
const ATTEMPT_COUNT: usize = 16;

/// What the network says, if `error` is its word and not this host's.
///
/// These are all that Linux makes of messages: `icmp_err_convert` and `icmp_err` in net/ipv4/icmp.c, `__udp4_lib_err`
/// (fragmentation needed) in net/ipv4/udp.c, `icmpv6_err_convert` in net/ipv6/icmp.c. Some are also what this host says
/// of itself, if it has no route, for example; then the same call fails again.
#[must_use]
pub fn hint(error: &io::Error) -> Option<Hint> {
    match error.raw_os_error()? {
        libc::ECONNREFUSED => Some(Hint::Refused),
        libc::ENETUNREACH
        | libc::EHOSTUNREACH
        | libc::EHOSTDOWN
        | libc::ENONET
        | libc::ENOPROTOOPT
        | libc::EOPNOTSUPP
        | libc::EPROTO
        | libc::EMSGSIZE
        | libc::EACCES => Some(Hint::Unreachable),
        _ => None,
    }
}

/// Calls `send` until what it says is its own: a hint about datagrams before is passed to `noted` and tried past.
///
/// # Errors
/// What `send` says of this datagram, or the last of very many hints.
pub fn send_past_hints<T>(
    mut send: impl FnMut() -> io::Result<T>,
    mut noted: impl FnMut(Hint),
) -> io::Result<T> {
    for _ in 1..ATTEMPT_COUNT {
        match send() {
            Err(error) => match hint(&error) {
                Some(hint) => noted(hint),
                None => return Err(error),
            },
            sent => return sent,
        }
    }
    send()
}
