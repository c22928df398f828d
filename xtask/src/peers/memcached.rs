//! memcached from the distribution's packages: servers share what they keep in it.

use std::path::Path;

use super::{Peer, debian};

pub(super) const PEER: Peer = Peer {
    name: "memcached",
    installed,
    possible: debian::possible,
    install: |place| debian::install(place, &PACKAGES),
};

/// memcached itself, and what it links to beyond the C library.
const PACKAGES: [&str; 4] = ["memcached", "libevent-2.1-7", "libsasl2-2", "libssl3"];

fn installed(place: &Path) -> Option<String> {
    version(&debian::say(place, "usr/bin/memcached", "--version")?)
}

/// The version in `memcached 1.6.18`.
fn version(text: &str) -> Option<String> {
    Some(text.trim().strip_prefix("memcached ")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_and_absence_has_none() {
        assert_eq!(version("memcached 1.6.18\n").as_deref(), Some("1.6.18"));
        assert_eq!(version("no such option"), None);
        assert_eq!(installed(tempfile::tempdir().unwrap().path()), None);
    }
}
