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
    let failed = |why| Error::new(Place::Host(host.to_owned()), why);
    let found = (host, port).to_socket_addrs().map_err(|error| failed(Why::Unresolved(error)))?;
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() { Err(failed(Why::NoAddress)) } else { Ok(addresses) }
}
