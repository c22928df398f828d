//! nftables from the distribution's packages: the tests' hosts count, drop and rewrite with it.

use std::path::Path;

use super::{Peer, debian};

pub(super) const PEER: Peer = Peer {
    name: "nftables",
    installed,
    possible: debian::possible,
    install: |place| debian::install(place, &PACKAGES),
};

/// nftables itself, and what `nft` links to beyond the C library.
const PACKAGES: [&str; 11] = [
    "nftables",
    "libbsd0",
    "libedit2",
    "libgmp10",
    "libjansson4",
    "libmd0",
    "libmnl0",
    "libnftables1",
    "libnftnl11",
    "libtinfo6",
    "libxtables12",
];

fn installed(place: &Path) -> Option<String> {
    version(&debian::say(place, "usr/sbin/nft", "--version")?)
}

/// The version in `nftables v1.0.6 (Lester Gooch #5)`.
fn version(text: &str) -> Option<String> {
    Some(text.strip_prefix("nftables v")?.split_whitespace().next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_and_absence_has_none() {
        assert_eq!(version("nftables v1.0.6 (Lester Gooch #5)\n").as_deref(), Some("1.0.6"));
        assert_eq!(version("no such option"), None);
        assert_eq!(installed(tempfile::tempdir().unwrap().path()), None);
    }
}
