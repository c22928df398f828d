//! How many requests a second a link carries: no server behind it can exceed that.
//!
//! An Ethernet frame (IEEE 802.3) around one UDP datagram, in octets, with what the wire spends around it:
//!
//! ```text
//! | preamble, start 8 | header 14 | IPv4 20 or IPv6 40 | UDP 8 | payload | FCS 4 | gap 12 |
//!                     |<---------------- frame, at least 64 ---------------->|
//! ```
//!
//! Without VLAN tags, IP options and fragments. A response is at most as long as its request, and the directions of a
//! link do not share it, so the requests set the limit.

use std::net::SocketAddr;

/// Links for which ceilings are shown, in Gbit/s.
pub const LINKS_GBPS: [u32; 4] = [1, 10, 25, 100];

const PREAMBLE_SIZE: u32 = 8;
const HEADER_SIZE: u32 = 14;
const UDP_SIZE: u32 = 8;
const FCS_SIZE: u32 = 4;
const GAP_SIZE: u32 = 12;
const FRAME_SIZE_MIN: u32 = 64;
/// The largest IP packet that Ethernet carries.
const MTU: u32 = 1500;

/// The version of the Internet Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip {
    /// Version 4, without options.
    V4,
    /// Version 6, without extension headers.
    V6,
}

impl Ip {
    /// The version of an address and port, such as `[::1]:123`; version 4 if it is neither, which has the higher
    /// ceiling.
    #[must_use]
    pub fn of(address: &str) -> Self {
        match address.parse::<SocketAddr>() {
            Ok(SocketAddr::V6(address)) if address.ip().to_ipv4_mapped().is_none() => Ip::V6,
            _ => Ip::V4,
        }
    }

    /// `IPv4`, `IPv6`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Ip::V4 => "IPv4",
            Ip::V6 => "IPv6",
        }
    }

    const fn header_size(self) -> u32 {
        match self {
            Ip::V4 => 20,
            Ip::V6 => 40,
        }
    }
}

/// Octets of wire time that a datagram with `payload_size` octets takes; `None` if it needs fragments.
#[must_use]
pub fn wire_size(payload_size: u32, ip: Ip) -> Option<u32> {
    let packet_size = payload_size.checked_add(UDP_SIZE + ip.header_size()).filter(|&size| size <= MTU)?;
    let frame_size = (HEADER_SIZE + packet_size + FCS_SIZE).max(FRAME_SIZE_MIN);
    Some(PREAMBLE_SIZE + frame_size + GAP_SIZE)
}

/// Requests a second with `payload_size` octets of UDP payload that a link of `link_gbps` Gbit/s carries; `None` if
/// they need fragments.
#[must_use]
pub fn requests_per_second(link_gbps: u32, payload_size: u32, ip: Ip) -> Option<f64> {
    wire_size(payload_size, ip).map(|size| f64::from(link_gbps) * 1e9 / 8.0 / f64::from(size))
}

/// The slowest of [`LINKS_GBPS`] that carries `rate_rps` requests, and the share of it that they fill; `None` if none
/// does, or they need fragments.
#[must_use]
pub fn fill(rate_rps: f64, payload_size: u32, ip: Ip) -> Option<(u32, f64)> {
    LINKS_GBPS.into_iter().find_map(|link_gbps| {
        let share = rate_rps / requests_per_second(link_gbps, payload_size, ip)?;
        (share <= 1.0).then_some((link_gbps, share))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gigabit_ethernet_carries_what_its_octets_allow() {
        for (payload_size, millions) in [(48, 1.096), (68, 0.933), (196, 0.477), (228, 0.425), (956, 0.122)] {
            for link_gbps in LINKS_GBPS {
                let rate = requests_per_second(link_gbps, payload_size, Ip::V4).unwrap();
                let expected = millions * f64::from(link_gbps);
                assert!(
                    (rate / 1e6 - expected).abs() < 0.0006 * f64::from(link_gbps),
                    "{payload_size}: {rate}"
                );
            }
        }
        let v6 = requests_per_second(1, 48, Ip::V6).unwrap();
        assert!((v6 - 1e9 / 8.0 / 134.0).abs() < 1e-6, "{v6}");
    }

    #[test]
    fn short_frames_are_padded_and_long_datagrams_are_not_judged() {
        assert_eq!(wire_size(0, Ip::V4), Some(84));
        assert_eq!(wire_size(18, Ip::V4), Some(84));
        assert_eq!(wire_size(19, Ip::V4), Some(85));
        assert_eq!(wire_size(1472, Ip::V4), Some(1538));
        assert_eq!(wire_size(1473, Ip::V4), None);
        assert_eq!(wire_size(1453, Ip::V6), None);
        assert_eq!(wire_size(u32::MAX, Ip::V6), None);
    }

    #[test]
    fn slowest_link_that_suffices_is_named() {
        let (link, share) = fill(500_000.0, 48, Ip::V4).unwrap();
        assert!(link == 1 && (share - 0.456).abs() < 0.001, "{share}");
        assert_eq!(fill(2e6, 48, Ip::V4).unwrap().0, 10);
        assert_eq!(fill(1e9, 48, Ip::V4), None);
    }

    #[test]
    fn address_tells_the_version() {
        assert_eq!(Ip::of("[2001:db8::1]:123"), Ip::V6);
        for address in ["198.18.0.1:123", "[::ffff:198.18.0.1]:123", "ntp.example:123", ""] {
            assert_eq!(Ip::of(address), Ip::V4, "{address}");
        }
    }
}
