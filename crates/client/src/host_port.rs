//! A server as people name it.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

/// `HOST[:PORT]`; an IPv6 address with a port stands in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// A host name, which is not looked up, or an address without brackets.
    pub host: String,
    /// Never 0.
    pub port: Option<u16>,
}

/// A text that names no server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no server; write HOST, HOST:PORT, or [ADDRESS]:PORT for IPv6")]
pub struct NoHostPort(String);

impl FromStr for HostPort {
    type Err = NoHostPort;

    fn from_str(text: &str) -> Result<Self, NoHostPort> {
        let wrong = || NoHostPort(text.to_owned());
        let of = |host: &str, port: Option<u16>| HostPort { host: host.to_owned(), port };
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(of(&address.ip().to_string(), Some(address.port())));
        }
        let bare = text.trim_matches(['[', ']']);
        if bare.parse::<IpAddr>().is_ok() {
            return Ok(of(bare, None));
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let plain = |c: char| c.is_alphanumeric() || "-._".contains(c);
        let is_name = !host.is_empty() && host.chars().all(plain) && port != Some(0);
        is_name.then(|| of(host, port)).ok_or_else(wrong)
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
        ] {
            assert_eq!(text.parse(), Ok(HostPort { host: host.to_owned(), port }), "{text}");
        }
        for text in ["", ":123", "host:", "host:port", "host:70000", "host:0", "a b", "http://host"] {
            assert_eq!(text.parse::<HostPort>(), Err(NoHostPort(text.to_owned())), "{text}");
        }
    }
}
