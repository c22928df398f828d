//! One of several by the name that a client asks for: SNI, RFC 6066 section 3. Wildcards count as in RFC 9525 section
//! 6.3: the whole first label, and that alone.

use std::collections::BTreeMap;

/// Something for each name, and one of them for clients that name no server, or one that is not known.
#[derive(Clone, Debug)]
pub struct ByName<T> {
    first: T,
    exact: BTreeMap<String, T>,
    /// By what follows `*.`.
    wildcards: BTreeMap<String, T>,
}

impl<T: Clone> ByName<T> {
    /// The one for clients that name no server, or one that is not known.
    #[must_use]
    pub const fn new(first: T) -> Self {
        ByName { first, exact: BTreeMap::new(), wildcards: BTreeMap::new() }
    }

    /// Has clients that ask for `name` (`a.example`, or `*.a.example`) get `it`, unless there is something else for
    /// this name already; whether there was not.
    pub fn add(&mut self, name: &str, it: T) -> bool {
        let name = normal(name);
        let (names, name) = match name.strip_prefix("*.") {
            Some(rest) => (&mut self.wildcards, rest.to_owned()),
            None => (&mut self.exact, name),
        };
        let is_new = !names.contains_key(&name);
        if is_new {
            names.insert(name, it);
        }
        is_new
    }

    /// What a client gets that asks for this name: what has the name itself, else what has the wildcard for it.
    #[must_use]
    pub fn choose(&self, name: Option<&str>) -> &T {
        let of = |name: &str| {
            let name = normal(name);
            self.exact.get(&name).or_else(|| self.wildcards.get(name.split_once('.')?.1))
        };
        name.and_then(of).unwrap_or(&self.first)
    }
}

/// A name of the DNS in the form in which equal ones are alike.
fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_itself_comes_before_its_wildcard_and_who_is_not_known_gets_the_first() {
        let mut names = ByName::new("first");
        assert!(
            names.add("a.example", "a") && names.add("*.Example", "wild") && names.add("b.example.", "b")
        );
        assert!(!names.add("A.example", "late") && !names.add("*.example", "late"));
        for (name, expected) in [
            (None, "first"),
            (Some("a.example"), "a"),
            (Some("A.EXAMPLE"), "a"),
            (Some("a.example."), "a"),
            (Some("b.example"), "b"),
            (Some("c.example"), "wild"),
            (Some("d.c.example"), "first"),
            (Some("example"), "first"),
            (Some("*.example"), "wild"),
            (Some(".example"), "wild"),
            (Some(""), "first"),
            (Some("a.test"), "first"),
        ] {
            assert_eq!(*names.choose(name), expected, "{name:?}");
        }
    }
}
