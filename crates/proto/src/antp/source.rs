//! Whom a C1 is for: the address that m2 went to, or the prefix around it.
//!
//! An m2 arrives only where its address is, so a C1 that comes back from there proves that its sender can be reached.
//! The prefixes are those by which rates are counted: an address that changes within one (an IPv6 host has many) keeps
//! its C1, and no other prefix's bucket pays for what it asks. Ports are not in it, as translators change them.

use std::net::IpAddr;

/// Leading bits of an address that make a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixSizes {
    /// Of IPv4, at most 32.
    pub v4: u8,
    /// Of IPv6, at most 128.
    pub v6: u8,
}

impl Default for PrefixSizes {
    fn default() -> Self {
        PrefixSizes { v4: 32, v6: 64 }
    }
}

/// A prefix, as C1 is bound to it: an IPv6 address, or an IPv4 one mapped into IPv6, with zeros behind the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePrefix([u8; SourcePrefix::SIZE]);

impl SourcePrefix {
    /// Octets of it.
    pub const SIZE: usize = 16;

    /// Every source: nothing is proved.
    pub const ANY: Self = SourcePrefix([0; Self::SIZE]);

    /// The prefix that `source` is in.
    #[must_use]
    pub fn of(source: IpAddr, sizes: PrefixSizes) -> Self {
        let (bits, kept) = match source.to_canonical() {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped().to_bits(), 96 + u32::from(sizes.v4.min(32))),
            IpAddr::V6(v6) => (v6.to_bits(), u32::from(sizes.v6.min(128))),
        };
        let mask = u128::MAX.checked_shl(u128::BITS - kept).unwrap_or(0);
        SourcePrefix((bits & mask).to_be_bytes())
    }

    /// The octets that C1 authenticates.
    #[must_use]
    pub const fn octets(&self) -> &[u8; Self::SIZE] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(source: &str, v4: u8, v6: u8) -> SourcePrefix {
        SourcePrefix::of(source.parse().unwrap(), PrefixSizes { v4, v6 })
    }

    #[test]
    fn addresses_of_one_prefix_are_one_source_and_others_are_not() {
        for (one, other, v4, v6, same) in [
            ("198.18.0.1", "198.18.0.1", 32, 64, true),
            ("198.18.0.1", "198.18.0.2", 32, 64, false),
            ("198.18.0.1", "198.18.0.2", 24, 64, true),
            ("198.18.0.1", "198.18.1.1", 24, 64, false),
            ("198.18.0.1", "::ffff:198.18.0.1", 32, 64, true),
            ("2001:db8:0:1::1", "2001:db8:0:1:ffff::9", 32, 64, true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", 32, 64, false),
            ("2001:db8:0:1::1", "2001:db8:0:1::2", 32, 128, false),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", 32, 48, true),
        ] {
            assert_eq!(prefix(one, v4, v6) == prefix(other, v4, v6), same, "{one} {other} {v4} {v6}");
        }
    }

    #[test]
    fn octets_are_those_of_the_specification() {
        let mut expected = [0; 16];
        expected[10..].copy_from_slice(&[0xFF, 0xFF, 198, 18, 7, 0]);
        assert_eq!(prefix("198.18.7.9", 24, 64).octets(), &expected);
        assert_eq!(prefix("2001:db8:1:2:3:4:5:6", 32, 64).octets()[..8], [0x20, 1, 0xD, 0xB8, 0, 1, 0, 2]);
        assert_eq!(prefix("2001:db8:1:2:3:4:5:6", 32, 64).octets()[8..], [0; 8]);
        assert_eq!(prefix("::1", 32, 0), SourcePrefix::ANY, "no bits, no shift out of range");
    }
}
