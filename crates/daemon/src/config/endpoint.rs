//! `ADDRESS:PORT` or `NAME:PORT` of a server that this one asks.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use thiserror::Error;

/// The sizes of a name and of its labels. RFC 1035 section 2.3.4.
const NAME_SIZE_MAX: usize = 253;
const LABEL_SIZE_MAX: usize = 63;

/// A server by its address, or by a name that is looked up while this one runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// An address and a port.
    Address(SocketAddr),
    /// A name of the resolver's, and a port that is not 0.
    Name {
        /// Labels of ASCII letters, digits, hyphens and underscores, between dots.
        host: String,
        /// Where the server is at each of the name's addresses.
        port: u16,
    },
}

/// A text that is no [`Endpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected ADDRESS:PORT or NAME:PORT")]
pub struct InvalidEndpoint;

impl Endpoint {
    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        match self {
            Endpoint::Address(address) => address.port(),
            Endpoint::Name { port, .. } => *port,
        }
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Endpoint::Address(address)
    }
}

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        if let Ok(address) = text.parse() {
            return Ok(Endpoint::Address(address));
        }
        let (host, port) = text.rsplit_once(':').ok_or(InvalidEndpoint)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or(InvalidEndpoint)?;
        match is_name(host) {
            true => Ok(Endpoint::Name { host: host.to_owned(), port }),
            false => Err(InvalidEndpoint),
        }
    }
}

/// Whether the resolver can be asked for it. What ends in a number is a mistyped address: no domain does.
fn is_name(host: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_SIZE_MAX).contains(&label.len())
            && label.bytes().all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_'))
    };
    let bare = host.strip_suffix('.').unwrap_or(host);
    let last = bare.rsplit('.').next().unwrap_or(bare);
    host.len() <= NAME_SIZE_MAX
        && bare.split('.').all(is_label)
        && !last.bytes().all(|octet| octet.is_ascii_digit())
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Address(address) => address.fmt(f),
            Endpoint::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_addresses_or_names_with_a_port() {
        for text in ["192.0.2.9:11211", "[2001:db8::1]:123", "localhost:1", "a.example.net:123", "a_b-c.:1"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        let long = format!("{}:1", "a".repeat(64));
        for text in [
            "",
            ":1",
            "a",
            "a:",
            "a:0",
            "a:65536",
            "a b:1",
            "a..b:1",
            "192.0.2.300:1",
            "192.0.2:1",
            "2001:db8::1",
            "[::1]",
            "http://a:1",
            &long,
        ] {
            assert_eq!(text.parse::<Endpoint>(), Err(InvalidEndpoint), "{text}");
        }
    }
}
