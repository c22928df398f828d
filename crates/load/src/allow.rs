//! Where load may be sent: aimed at the wrong target, a capacity tester is a weapon.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use authentick_proto::prefix::{Prefix, PrefixSet};
use thiserror::Error;

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
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
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

/// Whom the user allows to load.
#[derive(Clone, Debug)]
pub struct Permission {
    allow: Allow,
    host: Option<String>,
}

/// Why a host may not be loaded.
#[derive(Debug, Error)]
pub enum NotAllowed {
    /// The list of prefixes cannot be used.
    #[error("--allow-list {}: {problem}", file.display())]
    List {
        /// Where it is.
        file: PathBuf,
        /// What is wrong, in words.
        problem: String,
    },
    /// Its address is somebody's, as far as one can know.
    #[error(
        "{0} ({1}) is a public address; if it is yours to load, say so with --permit {0}, or put it on a list \
         (--allow-list)"
    )]
    Public(String, IpAddr),
    /// The user allowed another host.
    #[error("--permit names {0:?}, and {1:?} ({2}) is another host; repeat its name if it is yours to load")]
    Another(String, String, IpAddr),
}

impl Permission {
    /// For a host whose name the user repeated, and a file of prefixes.
    ///
    /// # Errors
    /// If the file cannot be read, or a line of it is no prefix.
    pub fn new(host: Option<String>, list: Option<&Path>) -> Result<Self, NotAllowed> {
        let Some(file) = list else { return Ok(Permission { allow: Allow::default(), host }) };
        let problem = |problem| NotAllowed::List { file: file.to_owned(), problem };
        let text = fs::read_to_string(file).map_err(|error| problem(format!("cannot read: {error}")))?;
        let allow = Allow::from_list(&text)
            .map_err(|error| problem(format!("{error}; write prefixes such as 192.0.2.0/24")))?;
        Ok(Permission { allow, host })
    }

    /// Refuses to load `address`, known as `host`, unless it is nobody else's or the user said so.
    ///
    /// # Errors
    /// If it is somebody's.
    pub fn check(&self, host: &str, address: IpAddr) -> Result<(), NotAllowed> {
        match &self.host {
            _ if self.allow.contains(address) => Ok(()),
            Some(permitted) if permitted == host => Ok(()),
            Some(permitted) => Err(NotAllowed::Another(permitted.clone(), host.to_owned(), address)),
            None => Err(NotAllowed::Public(host.to_owned(), address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_need_a_word_that_names_the_host() {
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let silent = Permission::new(None, None).unwrap();
        let said = silent.check("time.example", address).unwrap_err().to_string();
        assert!(said.contains("--permit time.example"), "{said}");
        assert!(silent.check("lab", "10.0.0.1".parse().unwrap()).is_ok());
        let permission = Permission::new(Some("time.example".to_owned()), None).unwrap();
        assert!(permission.check("time.example", address).is_ok());
        assert!(permission.check("other.example", address).is_err());
    }

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
        let allow = Allow::from_list("\u{feff}# ours\n192.0.2.0/24 # lab\n\n2001:db8::/32\n").unwrap();
        assert!(
            allow.contains("192.0.2.9".parse().unwrap()) && allow.contains("2001:db8::9".parse().unwrap())
        );
        assert!(
            allow.contains("127.0.0.1".parse().unwrap()) && !allow.contains("192.0.3.1".parse().unwrap())
        );
        assert!(Allow::from_list("192.0.2.0/24\nnonsense").unwrap_err().starts_with("line 2: \"nonsense\""));
    }
}
