//! The addresses of a host.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::error::{Error, Place, Why};

/// The port of NTP. RFC 5905 section 16.
pub const NTP_PORT: u16 = 123;

/// The addresses of `host` with this port, at least one.
///
/// # Errors
/// If the system finds none.
pub fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
    let found = (host, port).to_socket_addrs().map(Vec::from_iter);
    let not_found = |error| Error::new(Place::Host(host.to_owned()), Why::NoAddress(error));
    match found {
        Ok(addresses) if addresses.is_empty() => Err(not_found(None)),
        Ok(addresses) => Ok(addresses),
        Err(error) => Err(not_found(Some(error))),
    }
}
