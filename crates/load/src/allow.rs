//! Where load may be sent: aimed at the wrong target, a capacity tester is a weapon.

use std::net::IpAddr;

use authentick_proto::prefix::{Prefix, PrefixSet};

/// Addresses that belong to nobody else: loopback, private networks (RFC 1918, RFC 4193), link-local IPv6, and the
/// block for measurements (RFC 2544).
const OWN: [&str; 8] = [
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
];

/// The addresses that load may be sent to.
#[derive(Clone, Debug)]
pub struct Allow(PrefixSet);

impl Default for Allow {
    /// Loopback, private, link-local and benchmarking addresses.
    fn default() -> Self {
        Allow::with(Vec::new())
    }
}

impl Allow {
    /// These prefixes and no others.
    #[must_use]
    pub fn only(prefixes: Vec<Prefix>) -> Self {
        Allow(PrefixSet::new(prefixes))
    }

    /// These prefixes beside those of the default.
    #[must_use]
    pub fn with(mut prefixes: Vec<Prefix>) -> Self {
        prefixes.extend(OWN.iter().map(|text| text.parse::<Prefix>().expect("the list holds prefixes")));
        Allow::only(prefixes)
    }

    /// The prefixes of a list, one on a line, beside those of the default; text after a `#` is a comment.
    ///
    /// # Errors
    /// A sentence that names the line.
    pub fn from_list(text: &str) -> Result<Self, String> {
        let mut prefixes = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if !entry.is_empty() {
                let problem = |error| format!("line {}: {entry:?}: {error}", index + 1);
                prefixes.push(entry.parse::<Prefix>().map_err(problem)?);
            }
        }
        Ok(Allow::with(prefixes))
    }

    /// Whether anything may be sent to `address`. A generator asks this also about a server that a key exchange names.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_not_loaded() {
        let allow = Allow::default();
        for own in ["127.0.0.1", "10.1.2.3", "198.19.255.255", "::1", "fd00::1", "::ffff:192.168.1.1"] {
            assert!(allow.contains(own.parse().unwrap()), "{own}");
        }
        for other in ["8.8.8.8", "198.20.0.0", "172.32.0.1", "2001:db8::1", "::ffff:8.8.8.8"] {
            assert!(!allow.contains(other.parse().unwrap()), "{other}");
        }
    }

    #[test]
    fn list_adds_prefixes_and_names_a_line_that_is_none() {
        let allow = Allow::from_list("# ours\n192.0.2.0/24 # lab\n\n2001:db8::/32\n").unwrap();
        assert!(
            allow.contains("192.0.2.9".parse().unwrap()) && allow.contains("2001:db8::9".parse().unwrap())
        );
        assert!(
            allow.contains("127.0.0.1".parse().unwrap()) && !allow.contains("192.0.3.1".parse().unwrap())
        );
        assert!(Allow::from_list("192.0.2.0/24\nnonsense").unwrap_err().starts_with("line 2: \"nonsense\""));
    }
}
