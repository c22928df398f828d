//! Addresses of a family that this kernel does not have.
//!
//! The default configuration listens on the wildcards of both families, and should serve where there is one. Who names
//! an address of a family that is missing wants just that one, and is told.

use std::net::SocketAddr;

use authentick_net::udp;

/// The addresses of `key` without the wildcards of IPv6 if this kernel has no IPv6; says so. All of them if nothing
/// else would be left, so that binding names the mistake.
pub(crate) fn usable(key: &str, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let (left, skipped) = split(addresses, udp::has_ipv6());
    for address in skipped {
        log::warn!("{key}: {address} is left out: this kernel has no IPv6");
    }
    left
}

/// What is left, and what is left out.
fn split(addresses: &[SocketAddr], has_ipv6: bool) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
    let is_missing = |address: &SocketAddr| address.is_ipv6() && address.ip().is_unspecified() && !has_ipv6;
    let (skipped, left): (Vec<_>, Vec<_>) = addresses.iter().copied().partition(is_missing);
    if left.is_empty() { (skipped, left) } else { (left, skipped) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wildcards_are_left_out_and_never_all() {
        let addresses =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let default = addresses(&["0.0.0.0:123", "[::]:123"]);
        assert_eq!(split(&default, true), (default.clone(), vec![]));
        assert_eq!(split(&default, false), (addresses(&["0.0.0.0:123"]), addresses(&["[::]:123"])));
        let named = addresses(&["0.0.0.0:123", "[2001:db8::1]:123"]);
        assert_eq!(split(&named, false), (named.clone(), vec![]));
        let alone = addresses(&["[::]:123"]);
        assert_eq!(split(&alone, false), (alone.clone(), vec![]));
    }
}
