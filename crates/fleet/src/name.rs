//! Names of fleets and of their nodes.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Octets of the longest name: two of them fit into a name of memcached, which has at most 250 octets.
const SIZE_MAX: usize = 64;

/// The name of a fleet or of a node: 1 to 64 ASCII letters, digits, dots, hyphens and underscores.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// `text` as a name; `None` if it is none.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_allowed = |octet: u8| octet.is_ascii_alphanumeric() || b".-_".contains(&octet);
        let is_name = (1..=SIZE_MAX).contains(&text.len()) && text.bytes().all(is_allowed);
        is_name.then(|| Name(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names in a sentence: `a, b`.
#[must_use]
pub fn list(names: &BTreeSet<Name>) -> String {
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_a_word_that_every_store_takes() {
        let long = "n".repeat(SIZE_MAX);
        for good in ["a", "ntp-1", "time.example.net", "N_2", &long] {
            assert_eq!(Name::new(good).expect(good).as_str(), good);
        }
        let longer = "n".repeat(SIZE_MAX + 1);
        for bad in ["", "a b", "a/b", "a:b", "é", "a\n", "a\0", &longer] {
            assert_eq!(Name::new(bad), None, "{bad}");
        }
    }
}
