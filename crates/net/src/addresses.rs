//! Addresses of a host: the one look-up of the workspace, and the one way to connect to what it finds.
//!
//! A host has several addresses, and any of them may be unreachable. So [`Addresses`] has no first element to take:
//! [`race`] connects to whichever lets itself be reached, and what speaks UDP tries all of them in turn. RFC 8305.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{interface, tcp};

/// Time that a connection attempt has before the next address is tried too. RFC 8305 section 5.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// Addresses of one host that are tried; a name with more of them has no need of the others.
const ADDRESS_COUNT_MAX: usize = 16;

/// The addresses of one host, at least one, in the order in which they are to be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses(Vec<SocketAddr>);

impl From<SocketAddr> for Addresses {
    fn from(address: SocketAddr) -> Self {
        Addresses(vec![address])
    }
}

impl Addresses {
    /// Each of them, in order.
    pub fn all(&self) -> impl ExactSizeIterator<Item = SocketAddr> {
        self.0.iter().copied()
    }

    /// Those of them that `is_wanted`; `None` if that is none.
    #[must_use]
    pub fn only(mut self, is_wanted: impl FnMut(&SocketAddr) -> bool) -> Option<Self> {
        self.0.retain(is_wanted);
        (!self.0.is_empty()).then_some(self)
    }

    /// The same, those of `address`'s family before the others.
    #[must_use]
    pub fn like(mut self, address: SocketAddr) -> Self {
        self.0.sort_by_key(|other| other.is_ipv4() != address.is_ipv4());
        self
    }
}

/// Looks up `host`: a name, an address, or a link-local address with its zone (`fe80::1%eth0`). The look-up is the
/// system's (getaddrinfo), with its configuration; where that takes longer than `timeout`, its thread is left behind.
///
/// # Errors
/// The system's if it finds no address, or [`io::ErrorKind::TimedOut`].
pub fn resolve(host: &str, port: u16, timeout: Duration) -> io::Result<Addresses> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return match address {
            IpAddr::V6(address) if needs_zone(host) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("invalid address: a link-local one needs its interface, as in {address}%eth0"),
            )),
            address => Ok(SocketAddr::new(address, port).into()),
        };
    }
    if let Some((address, zone)) = host.split_once('%')
        && address.parse::<Ipv6Addr>().is_ok()
        && zone.parse::<u32>().is_err()
        && interface::index_of(zone).is_err()
    {
        let problem = format!("invalid zone: there is no interface {zone:?}; ip -brief link lists them");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    let name = host.to_owned();
    let (sender, found) = mpsc::sync_channel(1);
    #[expect(clippy::disallowed_methods, reason = "the one look-up of the workspace")]
    thread::Builder::new().name("resolver".to_owned()).spawn(move || {
        let found = (name.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        // Nothing waits for what comes after the timeout.
        _ = sender.send(found);
    })?;
    let found = found.recv_timeout(timeout).map_err(|error| match error {
        RecvTimeoutError::Timeout => io::Error::new(
            io::ErrorKind::TimedOut,
            format!("the look-up took longer than {:.3} s", timeout.as_secs_f64()),
        ),
        RecvTimeoutError::Disconnected => io::Error::other("the look-up ended without a result"),
    })?;
    let mut addresses = Vec::new();
    for address in found? {
        if !addresses.contains(&address) && addresses.len() < ADDRESS_COUNT_MAX {
            addresses.push(address);
        }
    }
    match addresses.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::NotFound, "it has no address")),
        false => Ok(Addresses(addresses)),
    }
}

/// Whether `host` is a link-local address of IPv6 without its zone, by which no host can be reached.
#[must_use]
pub fn needs_zone(host: &str) -> bool {
    host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_unicast_link_local())
}

/// Whether this host's routing table refuses what was to be sent or connected: no route, or one of the types
/// blackhole (EINVAL), prohibit (EACCES) and unreachable, or no address of the family. ip-route(8),
/// `fib_props` in net/ipv4/fib_semantics.c.
#[must_use]
pub fn is_refused_route(error: &io::Error) -> bool {
    let codes = [
        libc::EINVAL,
        libc::EACCES,
        libc::ENETUNREACH,
        libc::EHOSTUNREACH,
        libc::EADDRNOTAVAIL,
        libc::EAFNOSUPPORT,
    ];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// The sentence about a route that refuses, of whatever type it is.
pub const NO_ROUTE: &str = "unreachable: this host has no route to it (see `ip route get`)";

/// Connects to whichever of `addresses` is the first to accept: the next one is tried when an attempt fails, or has
/// taken 250 ms, until `deadline`. All other attempts are closed. The stream blocks.
///
/// # Errors
/// That of the attempt that failed last; [`io::ErrorKind::TimedOut`] if time is up; `NotFound` without addresses.
pub fn race(addresses: &[SocketAddr], deadline: Instant) -> io::Result<(TcpStream, SocketAddr)> {
    let mut waiting = addresses.iter().copied();
    let mut attempts: Vec<(TcpStream, SocketAddr)> = Vec::new();
    let mut failure = None;
    let mut next_at = Instant::now();
    loop {
        let now = Instant::now();
        if now >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if now >= next_at || attempts.is_empty() {
            match waiting.next() {
                Some(address) => match tcp::begin(address, None) {
                    Ok(stream) => {
                        attempts.push((stream, address));
                        next_at = now + ATTEMPT_DELAY;
                    }
                    Err(error) => {
                        failure = Some(error);
                        continue;
                    }
                },
                None if attempts.is_empty() => {
                    let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                    return Err(failure.unwrap_or_else(none));
                }
                None => next_at = deadline,
            }
        }
        let left = next_at.min(deadline).saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut polled: Vec<PollFd<'_>> =
            attempts.iter().map(|(stream, _)| PollFd::new(stream, PollFlags::OUT)).collect();
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ended: Vec<bool> = polled.iter().map(|entry| !entry.revents().is_empty()).collect();
        for index in (0..ended.len()).filter(|index| ended[*index]).rev() {
            let (stream, address) = attempts.remove(index);
            match stream.take_error()? {
                None => {
                    stream.set_nonblocking(false)?;
                    return Ok((stream, address));
                }
                Some(error) => {
                    failure = Some(error);
                    // RFC 8305 section 5: after a failure the next attempt begins at once.
                    next_at = Instant::now();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    /// An address whose listener accepts nothing and drops what comes: its queue is full.
    fn silent() -> (TcpListener, Vec<TcpStream>, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let address = listener.local_addr().unwrap();
        let filling = (0..3).map(|_| tcp::begin(address, None).unwrap()).collect();
        (listener, filling, address)
    }

    #[test]
    fn race_behind_a_silent_address_ends_at_the_next() {
        let (_listener, _filling, silent) = silent();
        let good = TcpListener::bind("127.0.0.1:0").unwrap();
        let good = good.local_addr().map(|address| (good, address)).unwrap();
        let start = Instant::now();
        let (stream, address) = race(&[silent, good.1], start + LONG).unwrap();
        assert_eq!((address, stream.peer_addr().unwrap()), (good.1, good.1));
        assert!(start.elapsed() >= ATTEMPT_DELAY && start.elapsed() < LONG / 2);
        let error = race(&[silent], Instant::now() + ATTEMPT_DELAY).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn race_behind_closed_ports_does_not_wait() {
        let closed: Vec<SocketAddr> = (1..40).map(|host| ([127, 0, 1, host], 9).into()).collect();
        let good = TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = [closed.clone(), vec![good.local_addr().unwrap()]].concat();
        let (_, address) = race(&addresses, Instant::now() + ATTEMPT_DELAY * 30).unwrap();
        assert_eq!(address, good.local_addr().unwrap());
        let error = race(&closed, Instant::now() + LONG).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(race(&[], Instant::now() + LONG).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn zone_becomes_the_scope_of_the_address() {
        let found = |host: &str| resolve(host, 123, LONG).map(|found| found.all().collect::<Vec<_>>());
        for zone in ["lo", "1"] {
            let address = found(&format!("fe80::1%{zone}")).unwrap();
            assert_eq!(address.len(), 1);
            assert!(matches!(address[..], [SocketAddr::V6(address)] if address.scope_id() == 1));
        }
        let error = found("fe80::1").unwrap_err().to_string();
        assert!(error.contains("fe80::1%eth0"), "{error}");
        let error = found("fe80::1%no-such-interface").unwrap_err().to_string();
        assert!(error.contains("no interface \"no-such-interface\""), "{error}");
    }

    #[test]
    fn addresses_of_a_family_go_first_in_their_order() {
        let [a, b, c] = ["127.0.0.1:1", "[::1]:1", "127.0.0.2:1"].map(|text| text.parse().unwrap());
        let sorted = |like: SocketAddr| Addresses(vec![a, b, c]).like(like).all().collect::<Vec<_>>();
        assert_eq!((sorted(a), sorted(b)), (vec![a, c, b], vec![b, a, c]));
    }
}
