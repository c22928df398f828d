//! Addresses to listen on. A link-local one has a zone, the interface that it is of (RFC 4007 11): `fe80::1%eth0`.
//!
//! Zones stay names until a socket is bound, as an interface may come after the server, and with another index.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use authentick_net::interface;

use super::values::address_mistake;
use super::{ConfigError, Resolver};
use crate::warnings::Warning;

/// The longest name of an interface, IFNAMSIZ without its last octet: netdevice(7).
const ZONE_SIZE_MAX: usize = 15;

/// An address and a port to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    /// Without its zone.
    address: SocketAddr,
    zone: Option<String>,
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        ListenAddress { address, zone: None }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.zone {
            Some(zone) => write!(f, "[{}%{zone}]:{}", self.ip(), self.port()),
            None => self.address.fmt(f),
        }
    }
}

impl ListenAddress {
    /// The address without port and zone.
    #[must_use]
    pub const fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    /// The port; 0: the kernel chooses one.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// Whether it stands for every address of its family.
    #[must_use]
    pub const fn is_wildcard(&self) -> bool {
        self.ip().is_unspecified()
    }

    /// Whether what comes to `other` comes to a socket of this address too, as it is the wildcard of its family.
    pub(crate) fn covers(&self, other: &ListenAddress) -> bool {
        self.is_wildcard()
            && !other.is_wildcard()
            && self.ip().is_ipv4() == other.ip().is_ipv4()
            && self.port() == other.port()
            && self.port() != 0
    }

    /// The address as sockets have it, with the index that its interface has now.
    ///
    /// # Errors
    /// `ENODEV` if its interface is missing.
    pub(crate) fn resolve(&self) -> io::Result<SocketAddr> {
        let (SocketAddr::V6(address), Some(zone)) = (self.address, &self.zone) else {
            return Ok(self.address);
        };
        let index = zone.parse().map_or_else(|_| interface::index_of(zone), Ok)?;
        Ok(SocketAddrV6::new(*address.ip(), address.port(), 0, index).into())
    }

    /// The address of `key`.
    ///
    /// # Errors
    /// What is wrong with the text, and what to do.
    fn parse(key: &str, text: &str) -> Result<Self, (String, String)> {
        let malformed = || address_mistake(key, text);
        let Some((head, tail)) = text.split_once('%') else {
            let address: SocketAddr = text.parse().map_err(|_| malformed())?;
            return ListenAddress::from(address).checked();
        };
        let parts = match head.strip_prefix('[') {
            Some(head) => tail.split_once("]:").map(|(zone, port)| (head, zone, port)),
            None => tail.rsplit_once(':').map(|(zone, port)| (head, zone, port)),
        };
        let (ip, zone, port) = parts.ok_or_else(malformed)?;
        let ip: Ipv6Addr = ip.parse().map_err(|_| malformed())?;
        let port: u16 = port.parse().map_err(|_| malformed())?;
        let is_name = zone.len() <= ZONE_SIZE_MAX
            && zone
                .bytes()
                .all(|octet| octet.is_ascii_graphic() && !matches!(octet, b'/' | b'%' | b'[' | b']'));
        if zone.is_empty() || !is_name {
            let remedy = format!("write it as in \"[{ip}%eth0]:{port}\"");
            return Err(("invalid name of an interface after %".to_owned(), remedy));
        }
        if !ip.is_unicast_link_local() {
            let remedy = format!("write it without %{zone}");
            return Err(("only link-local addresses (fe80::/10) are of one interface".to_owned(), remedy));
        }
        Ok(ListenAddress { address: SocketAddr::new(ip.into(), port), zone: Some(zone.to_owned()) })
    }

    /// Refuses what no socket can be bound to as it is.
    pub(super) fn checked(self) -> Result<Self, (String, String)> {
        let IpAddr::V6(ip) = self.ip() else { return Ok(self) };
        let port = self.port();
        match (ip.to_ipv4_mapped(), ip.is_unicast_link_local()) {
            (Some(mapped), _) => {
                Err(("an IPv4 address in the form of IPv6".to_owned(), format!("write \"{mapped}:{port}\"")))
            }
            (None, true) => Err((
                "a link-local address is of one interface".to_owned(),
                format!("name the interface, as in \"[{ip}%eth0]:{port}\""),
            )),
            (None, false) => Ok(self),
        }
    }
}

impl Resolver<'_> {
    pub(super) fn address(&self, key: &str, text: &str) -> Result<ListenAddress, ConfigError> {
        ListenAddress::parse(key, text).map_err(|(problem, remedy)| self.wrong(key, text, problem, &remedy))
    }
}

/// The warnings of the addresses of `key`, on any host: those that another one covers, and a family that is not served.
pub(crate) fn warnings(key: &str, addresses: &[ListenAddress]) -> Vec<Warning> {
    let mut all = Vec::new();
    for address in addresses {
        if let Some(wildcard) = addresses.iter().find(|other| other.covers(address)) {
            let consequence = format!("{wildcard} covers it: it has no socket of its own");
            all.push(Warning::new(key, address, consequence, "remove one of the two"));
        }
    }
    let wildcard = addresses.iter().find(|address| address.is_wildcard() && address.ip().is_ipv6());
    if let (Some(wildcard), false) = (wildcard, addresses.iter().any(|address| address.ip().is_ipv4())) {
        let port = wildcard.port();
        let remedy = format!("add \"0.0.0.0:{port}\" to serve both");
        all.push(Warning::new(key, wildcard, "IPv4 is not served: this is IPv6 alone", remedy));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_zones() {
        for (text, shown) in [
            ("0.0.0.0:123", "0.0.0.0:123"),
            ("[::]:123", "[::]:123"),
            ("[2001:DB8::1]:123", "[2001:db8::1]:123"),
            ("[fe80::1%eth0]:123", "[fe80::1%eth0]:123"),
            ("fe80::1%eth0:123", "[fe80::1%eth0]:123"),
            ("[fe80::1%2]:123", "[fe80::1%2]:123"),
            ("[fe80::1%br-lan.7]:0", "[fe80::1%br-lan.7]:0"),
        ] {
            assert_eq!(ListenAddress::parse("server.listen", text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn address_that_no_socket_takes_is_refused_with_remedy() {
        for (text, problem, remedy) in [
            ("", "invalid address", "\"[::]:123\""),
            ("localhost:123", "expected the IP address of an interface", "\"[::]:123\""),
            ("fe80::1%eth0", "the port is missing", "\"[fe80::1%eth0]:123\""),
            ("fe80::1", "the port is missing", "\"[fe80::1%eth0]:123\""),
            (
                "::1:123",
                "needs brackets",
                "\"[::1]:123\" (or, if ::1:123 is the address, write \"[::1:123]:123\")",
            ),
            ("::123", "needs brackets", "write \"[::]:123\""),
            ("2001:db8::5:4460", "needs brackets", "write \"[2001:db8::5]:4460\""),
            ("fe80::1:123", "needs brackets", "[fe80::1%eth0]:123"),
            ("::1", "the port is missing", "\"[::1]:123\""),
            ("2001:db8::1", "the port is missing", "\"[2001:db8::1]:123\""),
            ("2001:db8::a:b1", "the port is missing", "\"[2001:db8::a:b1]:123\""),
            ("1:2:3:4:5:6:7:123", "the port is missing", "\"[1:2:3:4:5:6:7:123]:123\""),
            ("[::1:123]", "the port is missing", "\"[::1:123]:123\""),
            ("[fe80::1%eth0]", "the port is missing", "\"[fe80::1%eth0]:123\""),
            ("[fe80::1%eth0]:65536", "port 65536 is out of range", "from 1 to 65535"),
            ("[192.0.2.1%eth0]:123", "invalid address", "\"[::]:123\""),
            ("[fe80::1%]:123", "invalid name of an interface", "[fe80::1%eth0]:123"),
            ("[fe80::1%a/b]:123", "invalid name of an interface", "[fe80::1%eth0]:123"),
            ("[fe80::1%sixteen-octets-x]:123", "invalid name of an interface", "[fe80::1%eth0]:123"),
            ("[2001:db8::1%eth0]:123", "only link-local", "without %eth0"),
            ("[fe80::1]:123", "of one interface", "[fe80::1%eth0]:123"),
            ("[::ffff:192.0.2.1]:123", "in the form of IPv6", "192.0.2.1:123"),
        ] {
            let (said, to_do) = ListenAddress::parse("server.listen", text).unwrap_err();
            assert!(said.contains(problem) && to_do.contains(remedy), "{text}: {said}; {to_do}");
        }
    }

    #[test]
    fn zone_is_the_index_of_its_interface_or_missing() {
        let resolve = |text: &str| ListenAddress::parse("server.listen", text).unwrap().resolve();
        let SocketAddr::V6(resolved) = resolve("[fe80::1%lo]:123").unwrap() else { panic!() };
        assert_eq!((resolved.scope_id(), resolved.port()), (1, 123));
        let error = resolve("[fe80::1%nosuchif0]:123").unwrap_err();
        assert!(authentick_net::passing::may_pass(&error), "{error}");
    }

    #[test]
    fn covered_addresses_and_a_missing_family_are_warned_of() {
        let warnings = |texts: &[&str]| {
            let addresses: Vec<ListenAddress> =
                texts.iter().map(|text| ListenAddress::parse("server.listen", text).unwrap()).collect();
            let all = warnings("server.listen", &addresses);
            all.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let none: [String; 0] = [];
        assert_eq!(warnings(&["0.0.0.0:123", "[::]:123"]), none);
        assert_eq!(warnings(&["127.0.0.1:123", "[::]:123"]), none);
        assert_eq!(warnings(&["0.0.0.0:123", "127.0.0.1:124", "[::1]:123"]), none);
        assert_eq!(warnings(&["0.0.0.0:0", "127.0.0.1:0"]), none);
        let covered = &warnings(&["127.0.0.1:123", "0.0.0.0:123"])[0];
        assert!(covered.contains("= \"127.0.0.1:123\": 0.0.0.0:123 covers it"), "{covered}");
        assert!(warnings(&["[::]:123"])[0].contains("IPv4 is not served"));
        let covered = &warnings(&["[::]:123", "[fe80::1%lo]:123"])[0];
        assert!(covered.contains("= \"[fe80::1%lo]:123\": [::]:123 covers it"), "{covered}");
    }
}
