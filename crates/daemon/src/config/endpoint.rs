//! `ADDRESS:PORT` or `NAME:PORT` of a server that this one asks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

/// The sizes of a name and of its labels. RFC 1035 section 2.3.4.
const NAME_SIZE_MAX: usize = 253;
const LABEL_SIZE_MAX: usize = 63;

/// A server by its address, or by a name that is looked up while this one runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// An address and a port that is not 0.
    Address(SocketAddr),
    /// A name of the resolver's, and a port that is not 0.
    Name {
        /// Labels of ASCII letters, digits, hyphens and underscores, between dots.
        host: String,
        /// Where the server is at each of the name's addresses.
        port: u16,
    },
}

/// What is wrong with a text that is not an [`Endpoint`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidEndpoint {
    /// It has no port.
    #[error("the port is missing")]
    NoPort,
    /// Its port is a number that ports do not have.
    #[error("port {0} is out of range")]
    PortRange(String),
    /// It has another form.
    #[error("invalid server: expected ADDRESS:PORT or NAME:PORT")]
    Form,
}

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
        if text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
            return Err(InvalidEndpoint::NoPort);
        }
        let (host, digits) = match text.rsplit_once(':') {
            Some((host, "")) if is_host(host) => return Err(InvalidEndpoint::NoPort),
            Some(parts) => parts,
            None if is_host(text) => return Err(InvalidEndpoint::NoPort),
            None => return Err(InvalidEndpoint::Form),
        };
        if !is_host(host) || !digits.bytes().all(|octet| octet.is_ascii_digit()) {
            return Err(InvalidEndpoint::Form);
        }
        let port = digits.parse().ok().filter(|port| *port != 0);
        let port = port.ok_or_else(|| InvalidEndpoint::PortRange(digits.to_owned()))?;
        Ok(match text.parse() {
            Ok(address) => Endpoint::Address(address),
            Err(_) => Endpoint::Name { host: host.to_owned(), port },
        })
    }
}

/// Whether it is what stands in front of a port: an address, that of IPv6 in brackets, or a name.
fn is_host(text: &str) -> bool {
    let in_brackets = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_address = match in_brackets {
        // With a zone, which is a number here.
        Some(_) => format!("{text}:1").parse::<SocketAddr>().is_ok(),
        None => text.parse::<Ipv4Addr>().is_ok(),
    };
    is_address || is_name(text)
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
        let out_of_range = |port: &str| InvalidEndpoint::PortRange(port.to_owned());
        for (text, problem) in [
            ("", InvalidEndpoint::Form),
            (":1", InvalidEndpoint::Form),
            ("a", InvalidEndpoint::NoPort),
            ("a:", InvalidEndpoint::NoPort),
            ("a:0", out_of_range("0")),
            ("a:65536", out_of_range("65536")),
            ("192.0.2.9:0", out_of_range("0")),
            ("[::1]:99999", out_of_range("99999")),
            ("a:b", InvalidEndpoint::Form),
            ("a b:1", InvalidEndpoint::Form),
            ("a..b:1", InvalidEndpoint::Form),
            ("192.0.2.300:1", InvalidEndpoint::Form),
            ("192.0.2:1", InvalidEndpoint::Form),
            ("2001:db8::1", InvalidEndpoint::NoPort),
            ("[::1]", InvalidEndpoint::NoPort),
            ("192.0.2.9", InvalidEndpoint::NoPort),
            ("http://a:1", InvalidEndpoint::Form),
            (&long, InvalidEndpoint::Form),
        ] {
            assert_eq!(text.parse::<Endpoint>(), Err(problem), "{text}");
        }
    }
}
