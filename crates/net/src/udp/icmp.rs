//! What the network says about datagrams that were sent, as the kernel passes it on.
//!
//! The kernel turns an ICMP message about a connected socket's datagrams into an error of the next call on that socket,
//! whichever that is. Nothing vouches for such a message: whoever guesses or sees a client's port can send it. So it is
//! a hint, to be told if no answer comes, and never a reason to stop waiting for one.
//!
//! A socket that asks for reports gets each message besides, with what it quotes of the datagram that it is about
//! (`IP_RECVERR` in ip(7)). Then the kernel also says when a queue of this host drops a datagram: ENOBUFS.

use std::io;
use std::os::fd::BorrowedFd;

use super::control;
use super::socket::set_flag;

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
    hint_of(error.raw_os_error()?)
}

fn hint_of(code: i32) -> Option<Hint> {
    match code {
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

/// A message of the network about one datagram of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// What it claims.
    pub hint: Hint,
    /// Octets of that datagram that it quotes, as far as there was room for them; none if it quotes too little.
    pub size: usize,
}

/// Has the kernel keep what the network says of a socket's datagrams, for [`next_report`].
pub(super) fn keep_reports(socket: BorrowedFd<'_>, is_v4: bool) -> io::Result<()> {
    match is_v4 {
        true => set_flag(socket, libc::IPPROTO_IP, libc::IP_RECVERR),
        false => set_flag(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    }
}

/// The oldest message that was kept, with the beginning of what it quotes in `quote`; `None` if there is none.
///
/// # Errors
/// The kernel's, if it fails to tell.
pub(super) fn next_report(socket: BorrowedFd<'_>, quote: &mut [u8]) -> io::Result<Option<Report>> {
    loop {
        let (size, ancillary) = match control::receive(socket, quote, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
        {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            received => received?,
        };
        // What this host says itself was an error of the call that it is about.
        if let Some(error) = ancillary.error
            && matches!(error.ee_origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6)
        {
            let hint = hint_of(error.ee_errno as i32).unwrap_or(Hint::Unreachable);
            return Ok(Some(Report { hint, size: size.min(quote.len()) }));
        }
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
