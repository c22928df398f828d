//! Addresses of this host that clients send from.

use std::net::{IpAddr, UdpSocket};

use authentick_proto::prefix::Prefix;

/// Addresses of a prefix that are tried.
const TRIED_COUNT_MAX: usize = 65_536;

/// Those of a prefix that this host has, as many as there are clients at most.
///
/// # Errors
/// A sentence with the option and the remedy, if it has none of them.
pub fn of_prefix(prefix: &Prefix, client_count: u32) -> Result<Vec<IpAddr>, String> {
    let wanted = TRIED_COUNT_MAX.min(client_count.max(1) as usize);
    let sources: Vec<_> = prefix.addresses().take(TRIED_COUNT_MAX).filter(is_own).take(wanted).collect();
    match sources.is_empty() {
        true => Err(format!(
            "--sources {prefix}: this host has none of these addresses; add them, for example with ip address add, or \
             ip route add local {prefix} dev lo"
        )),
        false => Ok(sources),
    }
}

/// The addresses of the background, each of which this host has.
///
/// # Errors
/// A sentence with the option and the remedy, for the first one that it does not have.
pub fn listed(addresses: &[IpAddr]) -> Result<Vec<IpAddr>, String> {
    match addresses.iter().find(|address| !is_own(address)) {
        Some(address) => Err(format!(
            "--background-sources {address}: this host does not have this address; add it, for example with ip address \
             add {address} dev lo"
        )),
        None => Ok(addresses.to_vec()),
    }
}

/// Whether this host can send from an address.
fn is_own(address: &IpAddr) -> bool {
    UdpSocket::bind((*address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_that_this_host_has() {
        let own = of_prefix(&"127.9.8.0/24".parse().unwrap(), 3).unwrap();
        assert_eq!(own, ["127.9.8.0", "127.9.8.1", "127.9.8.2"].map(|text| text.parse::<IpAddr>().unwrap()));
        assert_eq!(listed(&own).as_ref(), Ok(&own));

        // Reserved by RFC 1112, section 4. A host may well have an address of those for documentation: a network of
        // virtual machines was seen to use them.
        let problem = of_prefix(&"240.0.0.0/28".parse().unwrap(), 3).unwrap_err();
        assert!(problem.starts_with("--sources 240.0.0.0/28: this host has none"), "{problem}");
        let problem = listed(&[own[0], "240.0.0.1".parse().unwrap()]).unwrap_err();
        assert!(problem.starts_with("--background-sources 240.0.0.1: this host does not have"), "{problem}");
    }
}
