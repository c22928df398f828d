//! Address prefixes: who may ask, and whose requests count together.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// A block of addresses, such as `192.0.2.0/24` or `2001:db8::/32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// Text that is no prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PrefixError {
    /// Neither an IPv4 nor an IPv6 address before the slash.
    #[error("no IP address; write ADDRESS/LENGTH")]
    Address,
    /// The length is no number, or more than the address has bits.
    #[error("prefix length is out of range")]
    Length,
    /// Bits beyond the length are set: the prefix that was probably meant.
    #[error("bits beyond the prefix are set; write {0}")]
    HostBits(Prefix),
}

impl Prefix {
    /// The block of `length` leading bits of `address`; `None` if the address has fewer. Other bits are cleared.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let address = match address {
            IpAddr::V4(v4) if length <= 32 => IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask32(length))),
            IpAddr::V6(v6) if length <= 128 => {
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask128(length)))
            }
            _ => return None,
        };
        Some(Prefix { address, length })
    }

    /// Whether `address` lies in the block. An IPv4 address mapped into IPv6 counts as IPv4.
    #[inline]
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(block), IpAddr::V4(v4)) => v4.to_bits() & mask32(self.length) == block.to_bits(),
            (IpAddr::V6(block), IpAddr::V6(v6)) => v6.to_bits() & mask128(self.length) == block.to_bits(),
            _ => false,
        }
    }

    /// The addresses of the block in ascending order. There can be very many: take what is needed.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let (first, host_bits, is_v4) = match self.address {
            IpAddr::V4(block) => (u128::from(block.to_bits()), 32 - u32::from(self.length), true),
            IpAddr::V6(block) => (block.to_bits(), 128 - u32::from(self.length), false),
        };
        let last = first | 1u128.checked_shl(host_bits).map_or(u128::MAX, |size| size - 1);
        (first..=last).map(move |bits| match is_v4 {
            true => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
            false => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        })
    }
}

#[inline]
const fn mask32(length: u8) -> u32 {
    match length {
        0 => 0,
        length => u32::MAX << (32 - length),
    }
}

#[inline]
const fn mask128(length: u8) -> u128 {
    match length {
        0 => 0,
        length => u128::MAX << (128 - length),
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    /// Reads `ADDRESS/LENGTH`, or an address alone for all of its bits.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| PrefixError::Address)?;
        let length = match length {
            Some(length) => length.parse().map_err(|_| PrefixError::Length)?,
            None if address.is_ipv4() => 32,
            None => 128,
        };
        let prefix = Prefix::new(address, length).ok_or(PrefixError::Length)?;
        if prefix.address == address { Ok(prefix) } else { Err(PrefixError::HostBits(prefix)) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// A list of prefixes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrefixSet {
    prefixes: Vec<Prefix>,
    everything: bool,
}

impl PrefixSet {
    /// The union of `prefixes`.
    #[must_use]
    pub fn new(prefixes: Vec<Prefix>) -> Self {
        let whole =
            |v4: bool| prefixes.iter().any(|prefix| prefix.length == 0 && prefix.address.is_ipv4() == v4);
        PrefixSet { everything: whole(true) && whole(false), prefixes }
    }

    /// Every address.
    #[must_use]
    pub fn everything() -> Self {
        PrefixSet { prefixes: Vec::new(), everything: true }
    }

    /// Whether any prefix contains `address`.
    #[inline]
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.everything || self.prefixes.iter().any(|prefix| prefix.contains(address))
    }

    /// Whether no address is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.everything && self.prefixes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_block_are_all_that_it_contains() {
        let addresses = |text: &str| -> Vec<String> {
            let prefix: Prefix = text.parse().unwrap();
            prefix.addresses().take(5).map(|address| address.to_string()).collect()
        };
        assert_eq!(addresses("192.0.2.252/30"), ["192.0.2.252", "192.0.2.253", "192.0.2.254", "192.0.2.255"]);
        assert_eq!(addresses("2001:db8::/127"), ["2001:db8::", "2001:db8::1"]);
        assert_eq!(addresses("255.255.255.255/32"), ["255.255.255.255"]);
        assert_eq!(addresses("0.0.0.0/0").len() + addresses("::/0").len(), 10);
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn prefixes_contain_what_their_leading_bits_say() {
        let v4: Prefix = "198.18.0.0/15".parse().unwrap();
        assert!(v4.contains(address("198.19.255.255")));
        assert!(!v4.contains(address("198.20.0.0")));
        assert!(v4.contains(address("::ffff:198.18.0.1")), "mapped addresses count as IPv4");
        let v6: Prefix = "2001:db8::/33".parse().unwrap();
        assert!(v6.contains(address("2001:db8:7fff::1")));
        assert!(!v6.contains(address("2001:db8:8000::1")));
        assert!("0.0.0.0/0".parse::<Prefix>().unwrap().contains(address("255.255.255.255")));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!("localhost/8".parse::<Prefix>(), Err(PrefixError::Address));
        assert_eq!("10.0.0.0/33".parse::<Prefix>(), Err(PrefixError::Length));
        assert_eq!("10.0.0.0/".parse::<Prefix>(), Err(PrefixError::Length));
        let error = "10.0.0.1/8".parse::<Prefix>().unwrap_err();
        assert_eq!(error.to_string(), "bits beyond the prefix are set; write 10.0.0.0/8");
    }

    #[test]
    fn set_of_both_whole_families_is_everything() {
        let set = PrefixSet::new(vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()]);
        assert!(set.contains(address("192.0.2.1")) && set.contains(address("2001:db8::1")));
        let v4_only = PrefixSet::new(vec!["0.0.0.0/0".parse().unwrap()]);
        assert!(!v4_only.contains(address("2001:db8::1")));
        assert!(PrefixSet::default().is_empty());
    }
}
