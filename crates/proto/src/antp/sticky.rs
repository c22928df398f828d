//! Servers that are asked with ANTP, and hence never without it.
//!
//! Who controls the path can strip what makes a request one of ANTP, and gets a plain answer for it. A client that
//! gave up authentication when it seems to be missing would let him choose. The ANTP paper, section 3, on downgrade:
//! clients that use ANTP take time from nothing else, and should have no fallback. So what was once asked with ANTP is
//! remembered, and only an operator's hand makes it forgotten.

use std::collections::BTreeSet;

use thiserror::Error;

/// Most servers that are remembered.
pub const SERVER_COUNT_MAX: usize = 1024;

/// Octets of the longest name of a server.
const NAME_SIZE_MAX: usize = 255;

/// Names of servers, in lower case, without a dot at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sticky {
    servers: BTreeSet<String>,
}

/// A server is to be asked without ANTP that was asked with it before.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{server} was asked with ANTP before, and is not asked with less")]
pub struct Downgrade {
    /// The server.
    pub server: String,
}

/// A list of servers that does not follow its syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("line {number}: a line is the name or address of one server")]
pub struct BadLine {
    /// Counted from one.
    pub number: usize,
}

impl Sticky {
    /// Reads one server a line, as [`Sticky::to_text`] writes them; empty lines and those that begin with `#` are
    /// passed over.
    ///
    /// # Errors
    /// On the first line that is not a name, and on the one after the last of [`SERVER_COUNT_MAX`] servers. A list that
    /// is read in part would allow what it forbids.
    pub fn parse(text: &str) -> Result<Self, BadLine> {
        let mut sticky = Sticky::default();
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if !sticky.remember(line) {
                return Err(BadLine { number: index + 1 });
            }
        }
        Ok(sticky)
    }

    /// One server a line.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.servers.iter().map(|server| format!("{server}\n")).collect()
    }

    /// Remembers a server that is asked with ANTP; `false` if there is no room for it, or if it is no name that
    /// [`Sticky::parse`] would read again, and it must not be asked.
    #[must_use]
    pub fn remember(&mut self, server: &str) -> bool {
        let server = normal(server);
        let has_room = self.servers.len() < SERVER_COUNT_MAX || self.servers.contains(&server);
        let is_kept = has_room && is_name(&server);
        if is_kept {
            self.servers.insert(server);
        }
        is_kept
    }

    /// Forgets a server, by an operator's order; `false` if it was not there.
    pub fn forget(&mut self, server: &str) -> bool {
        self.servers.remove(&normal(server))
    }

    /// Whether a server may be asked without ANTP.
    ///
    /// # Errors
    /// If it was asked with ANTP before.
    //= antp#clients-9
    pub fn admit_without(&self, server: &str) -> Result<(), Downgrade> {
        let server = normal(server);
        if self.servers.contains(&server) { Err(Downgrade { server }) } else { Ok(()) }
    }
}

/// Whether a line can hold `server`: the name of a host or an address, with a port or a zone where it has one.
fn is_name(server: &str) -> bool {
    let is_known = |character: char| character.is_ascii_alphanumeric() || "-._:[]%".contains(character);
    (1..=NAME_SIZE_MAX).contains(&server.len()) && server.chars().all(is_known)
}

fn normal(server: &str) -> String {
    server.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    //= antp#clients-9
    #[test]
    fn server_that_was_asked_with_antp_is_not_asked_without_until_it_is_forgotten() {
        let mut sticky = Sticky::default();
        assert_eq!(sticky.admit_without("time.example"), Ok(()));
        assert!(sticky.remember("Time.Example."));
        for name in ["time.example", "TIME.EXAMPLE", "time.example."] {
            assert_eq!(sticky.admit_without(name), Err(Downgrade { server: "time.example".to_owned() }));
        }
        assert_eq!(sticky.admit_without("other.example"), Ok(()));
        let mut read = Sticky::parse(&sticky.to_text()).unwrap();
        assert_eq!(read, sticky, "it outlives the process");
        assert!(read.forget("time.example") && !read.forget("time.example"));
        assert_eq!(read.admit_without("time.example"), Ok(()));
    }

    #[test]
    fn list_is_read_whole_or_not_at_all() {
        let text = "# servers\n\ntime.example\n2001:db8::1\n";
        assert!(Sticky::parse(text).unwrap().admit_without("2001:DB8::1").is_err());
        assert_eq!(Sticky::parse("a\ntime example\n"), Err(BadLine { number: 2 }));
        let many: String = (0..=SERVER_COUNT_MAX).map(|index| format!("host-{index}\n")).collect();
        assert_eq!(Sticky::parse(&many), Err(BadLine { number: SERVER_COUNT_MAX + 1 }));
    }

    #[test]
    fn name_that_a_list_cannot_hold_is_not_remembered_and_spoils_no_list() {
        let mut sticky = Sticky::default();
        let long = "a".repeat(NAME_SIZE_MAX + 1);
        for name in ["", ".", "zeit-b\u{fc}ro", "#time.example", "time example", "a/b", "a\nb", &long] {
            assert!(!sticky.remember(name), "{name:?}");
        }
        for name in ["time.example:1123", "[2001:db8::1]:123", "fe80::1%eth0", "time_1", &long[1..]] {
            assert!(sticky.remember(name), "{name:?}");
        }
        assert_eq!(Sticky::parse(&sticky.to_text()).as_ref(), Ok(&sticky));
    }

    #[test]
    fn full_list_still_knows_its_own() {
        let mut sticky = Sticky::default();
        assert!((0..SERVER_COUNT_MAX).all(|index| sticky.remember(&format!("host-{index}"))));
        assert!(!sticky.remember("one-more") && sticky.remember("host-7"));
    }
}
