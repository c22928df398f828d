//! All files of a machine, to see what a package has left.

use std::collections::BTreeSet;

use super::machine::Machine;

/// What changes by itself, or in every installation: logs, what dpkg knows, caches and copies of former versions.
const VOLATILE: &[&str] = &[
    "/root/",
    "/tmp/",
    "/var/tmp/",
    "/run/",
    "/etc/.pwd.lock",
    "/etc/group-",
    "/etc/gshadow-",
    "/etc/hosts",
    "/etc/passwd-",
    "/etc/shadow-",
    "/etc/ssl/authority.pem",
    "/var/cache/",
    "/var/lib/dpkg/",
    "/var/lib/systemd/random-seed",
    "/var/log/",
];

/// Names, kinds, modes and owners of all files, and the contents of configuration but for accounts.
const SCRIPT: &str = r#"set -e
find / -xdev ! -type d -printf '%p %y %m %U:%G %l\n'
find / -xdev -type d -printf '%p/ %y %m %U:%G\n'
find /etc -xdev -type f ! -name 'passwd*' ! -name 'group*' ! -name 'shadow*' ! -name 'gshadow*' \
    -exec sha256sum {} + | sed 's/^\([^ ]*\)  \(.*\)$/\2 \1/'"#;

/// A line for each file.
#[derive(Debug)]
pub(crate) struct Listing(BTreeSet<String>);

impl Listing {
    pub(crate) fn of(machine: &Machine) -> Result<Self, String> {
        Ok(Self::parse(&machine.succeed(SCRIPT)?))
    }

    fn parse(said: &str) -> Self {
        let is_kept = |line: &&str| !VOLATILE.iter().any(|start| line.starts_with(start));
        Listing(said.lines().filter(is_kept).map(str::to_owned).collect())
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// What this one has and the earlier one has not, with a plus, and the other way round with a minus.
    pub(crate) fn since(&self, earlier: &Listing) -> Vec<String> {
        let more = self.0.difference(&earlier.0).map(|line| format!("+{line}"));
        let less = earlier.0.difference(&self.0).map(|line| format!("-{line}"));
        less.chain(more).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_names_what_came_and_what_is_gone_and_no_logs() {
        let before = Listing::parse("/etc/a f 644 0:0 \n/usr/b f 755 0:0 \n/var/log/c f 644 0:0 \n");
        let after = Listing::parse("/etc/a f 600 0:0 \n/usr/b f 755 0:0 \n/var/log/d f 644 0:0 \n");
        assert_eq!(after.since(&before), ["-/etc/a f 644 0:0 ", "+/etc/a f 600 0:0 "]);
        assert!(before.since(&before).is_empty());
        assert_eq!(before.count(), 2);
    }
}
