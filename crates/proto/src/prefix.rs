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

    /// The first address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How many leading bits all addresses share.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// The numbers of the first and the last address.
    fn range(&self) -> (u128, u128) {
        match self.address {
            IpAddr::V4(block) => (block.to_bits().into(), (block.to_bits() | !mask32(self.length)).into()),
            IpAddr::V6(block) => (block.to_bits(), block.to_bits() | !mask128(self.length)),
        }
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
        let ((first, last), is_v4) = (self.range(), self.address.is_ipv4());
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

/// Ranges of addresses, as the numbers of their first and last: in ascending order, apart by one address at least.
type Ranges = Vec<(u128, u128)>;

/// A set of addresses, made of prefixes. To look an address up takes the logarithm of how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrefixSet {
    v4: Ranges,
    v6: Ranges,
    everything: bool,
}

impl PrefixSet {
    /// The union of `prefixes`.
    #[must_use]
    pub fn new(prefixes: Vec<Prefix>) -> Self {
        let (v4, v6): (Vec<Prefix>, Vec<Prefix>) =
            prefixes.into_iter().partition(|prefix| prefix.address.is_ipv4());
        let ranges =
            |prefixes: Vec<Prefix>| union(prefixes.into_iter().map(|prefix| prefix.range()).collect());
        PrefixSet::of(ranges(v4), ranges(v6))
    }

    /// Every address.
    #[must_use]
    pub fn everything() -> Self {
        PrefixSet::of(vec![(0, u32::MAX.into())], vec![(0, u128::MAX)])
    }

    /// Whether any address of IPv4, or of IPv6, is in the set.
    #[must_use]
    pub const fn has_family(&self, is_v4: bool) -> bool {
        if is_v4 { !self.v4.is_empty() } else { !self.v6.is_empty() }
    }

    /// The addresses that are not in `others`.
    #[must_use]
    pub fn without(&self, others: &PrefixSet) -> Self {
        PrefixSet::of(difference(&self.v4, &others.v4), difference(&self.v6, &others.v6))
    }

    fn of(v4: Ranges, v6: Ranges) -> Self {
        let everything = v4 == [(0, u32::MAX.into())] && v6 == [(0, u128::MAX)];
        PrefixSet { v4, v6, everything }
    }

    /// Whether `address` is in the set. An IPv4 address mapped into IPv6 counts as IPv4.
    #[inline]
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.everything || self.finds(address)
    }

    fn finds(&self, address: IpAddr) -> bool {
        let (ranges, number) = match address.to_canonical() {
            IpAddr::V4(v4) => (&self.v4, v4.to_bits().into()),
            IpAddr::V6(v6) => (&self.v6, v6.to_bits()),
        };
        let after = ranges.partition_point(|(first, _)| *first <= number);
        after.checked_sub(1).is_some_and(|index| number <= ranges[index].1)
    }

    /// Whether no address is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }
}

/// The same addresses in order, without overlaps and seams.
fn union(mut ranges: Ranges) -> Ranges {
    ranges.sort_unstable();
    let mut joined: Ranges = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match joined.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => joined.push((first, last)),
        }
    }
    joined
}

/// What is in `ranges` and not in `others`.
fn difference(ranges: &Ranges, others: &Ranges) -> Ranges {
    let mut left = Vec::new();
    let mut others = others.iter().copied().peekable();
    for &(first, last) in ranges {
        // Where what is left begins; `None` if nothing is.
        let mut from = Some(first);
        while let (Some(begin), Some(&(start, end))) = (from, others.peek())
            && start <= last
        {
            if begin < start {
                left.push((begin, start - 1));
            }
            from = end.checked_add(1).filter(|next| *next <= last).map(|next| next.max(begin));
            if end > last {
                // It reaches into the next range.
                break;
            }
            others.next();
        }
        left.extend(from.map(|begin| (begin, last)));
    }
    left
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
        let halves = ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"].map(|text| text.parse().unwrap());
        assert_eq!(PrefixSet::new(halves.into()), PrefixSet::everything());
    }

    /// Every pair of sets of up to two prefixes in a space of eight addresses, of either family, at either end of it.
    #[test]
    fn sets_and_their_differences_contain_what_their_prefixes_say() {
        for (base, bits) in [("192.0.2.0", 32), ("255.255.255.248", 32), ("::", 128), ("0.0.0.0", 32)] {
            let space: Prefix = format!("{base}/{}", bits - 3).parse().unwrap();
            let all: Vec<IpAddr> = space.addresses().collect();
            let prefixes: Vec<Prefix> = (bits - 3..=bits)
                .flat_map(|length| all.iter().filter_map(move |address| Prefix::new(*address, length)))
                .collect();
            let pairs = |sets: &mut Vec<Vec<Prefix>>| {
                for (index, one) in prefixes.iter().enumerate() {
                    sets.extend(prefixes[index..].iter().map(|other| vec![*other, *one]));
                }
            };
            let mut sets = vec![vec![]];
            pairs(&mut sets);
            sets.dedup();
            let in_list = |list: &[Prefix], address| list.iter().any(|prefix| prefix.contains(address));
            for one in &sets {
                let set = PrefixSet::new(one.clone());
                assert!(
                    all.iter().all(|address| set.contains(*address) == in_list(one, *address)),
                    "{one:?}"
                );
                for other in sets.iter().step_by(7) {
                    let left = set.without(&PrefixSet::new(other.clone()));
                    let is_right = |address: &IpAddr| {
                        left.contains(*address) == (in_list(one, *address) && !in_list(other, *address))
                    };
                    assert!(all.iter().all(is_right), "{one:?} without {other:?} is {left:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_denied_out_of_everything_is_a_hole() {
        let denied = PrefixSet::new(vec!["198.18.0.0/15".parse().unwrap(), "2001:db8::/32".parse().unwrap()]);
        let left = PrefixSet::everything().without(&denied);
        for (text, is_in) in [
            ("198.17.255.255", true),
            ("198.18.0.0", false),
            ("198.19.255.255", false),
            ("198.20.0.0", true),
            ("::ffff:198.18.0.1", false),
            ("2001:db7:ffff::", true),
            ("2001:db8::1", false),
            ("2001:db9::", true),
        ] {
            assert_eq!(left.contains(address(text)), is_in, "{text}");
        }
        assert!(PrefixSet::everything().without(&PrefixSet::everything()).is_empty());
    }
}
