//! A server as people name it.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// `HOST[:PORT]`; an IPv6 address with a port stands in brackets, and a link-local one has its zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// A host name, which is not looked up, or an address without brackets, with its zone.
    pub host: String,
    /// Never 0.
    pub port: Option<u16>,
}

/// A text that names no server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoHostPort {
    /// Its form is another.
    #[error(
        "invalid server {0:?}: expected HOST, HOST:PORT, or [ADDRESS]:PORT for IPv6; a link-local ADDRESS has its \
         interface, as in fe80::1%eth0"
    )]
    Form(String),
    /// The name has letters that the DNS does not have.
    #[error("invalid server {0:?}: expected the name's ASCII form, which begins with xn--")]
    Letters(String),
}

impl HostPort {
    /// The name or address that a certificate has: the host without its zone, which means nothing elsewhere.
    #[must_use]
    pub fn without_zone(host: &str) -> &str {
        host.split_once('%').map_or(host, |(address, _)| address)
    }
}

/// Whether `text` is an address of IPv4 or IPv6, the latter with or without a zone.
fn is_address(text: &str) -> bool {
    match text.split_once('%') {
        None => text.parse::<IpAddr>().is_ok(),
        Some((address, zone)) => {
            let is_zone = !zone.is_empty() && !zone.contains(['%', '/', ' ', '[', ']']);
            address.parse::<Ipv6Addr>().is_ok() && is_zone
        }
    }
}

impl FromStr for HostPort {
    type Err = NoHostPort;

    fn from_str(text: &str) -> Result<Self, NoHostPort> {
        let wrong = || NoHostPort::Form(text.to_owned());
        let of = |host: &str, port: Option<u16>| HostPort { host: host.to_owned(), port };
        let port_of = |port: &str| port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong);
        if is_address(text) {
            return Ok(of(text, None));
        }
        if let Some((address, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
            let port = match rest.strip_prefix(':') {
                Some(port) => Some(port_of(port)?),
                None if rest.is_empty() => None,
                None => return Err(wrong()),
            };
            return is_address(address).then(|| of(address, port)).ok_or_else(wrong);
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port_of(port)?)),
            None => (text, None),
        };
        let is_plain = |c: char| c.is_alphanumeric() || "-._".contains(c);
        match !host.is_empty() && host.chars().all(is_plain) {
            true if host.is_ascii() => Ok(of(host, port)),
            true => Err(NoHostPort::Letters(text.to_owned())),
            false => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_written_in_all_usual_ways() {
        for (text, host, port) in [
            ("time.example", "time.example", None),
            ("time.example:4123", "time.example", Some(4123)),
            ("192.0.2.1", "192.0.2.1", None),
            ("192.0.2.1:123", "192.0.2.1", Some(123)),
            ("2001:db8::1", "2001:db8::1", None),
            ("[2001:db8::1]", "2001:db8::1", None),
            ("[2001:db8::1]:123", "2001:db8::1", Some(123)),
            ("fe80::1%eth0", "fe80::1%eth0", None),
            ("[fe80::1%eth0]", "fe80::1%eth0", None),
            ("[fe80::1%2]:123", "fe80::1%2", Some(123)),
        ] {
            assert_eq!(text.parse(), Ok(HostPort { host: host.to_owned(), port }), "{text}");
        }
        for text in ["", ":123", "host:", "host:port", "host:70000", "host:0", "a b", "http://host"]
            .into_iter()
            .chain([
                "[::1",
                "::1]",
                "[::1]123",
                "[::1]:",
                "[::1]:0",
                "[host]:1",
                "fe80::1%",
                "host%eth0",
                "1.2.3.4%1",
            ])
        {
            assert_eq!(text.parse::<HostPort>(), Err(NoHostPort::Form(text.to_owned())), "{text}");
        }
        let error = "bücher.example:123".parse::<HostPort>().unwrap_err().to_string();
        assert!(error.contains("xn--"), "{error}");
        assert_eq!(HostPort::without_zone("fe80::1%eth0"), "fe80::1");
    }
}
