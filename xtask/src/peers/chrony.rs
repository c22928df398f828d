//! chrony from the distribution's packages.

use std::path::Path;

use super::{Peer, debian};

pub(super) const PEER: Peer = Peer {
    name: "chrony",
    installed,
    possible: debian::possible,
    install: |place| debian::install(place, &PACKAGES),
};

/// chrony itself, and what `chronyd` and `chronyc` link to beyond the C library.
const PACKAGES: [&str; 15] = [
    "chrony",
    "libbsd0",
    "libcap2",
    "libedit2",
    "libffi8",
    "libgmp10",
    "libgnutls30",
    "libhogweed6",
    "libidn2-0",
    "libmd0",
    "libnettle8",
    "libp11-kit0",
    "libseccomp2",
    "libtasn1-6",
    "libunistring2",
];

fn installed(place: &Path) -> Option<String> {
    debian::say(place, "usr/bin/chronyc", "--version")?;
    version(&debian::say(place, "usr/sbin/chronyd", "--version")?)
}

/// The version in `chronyd (chrony) version 4.3 (+CMDMON +NTS ..)`, if NTS is among the features.
fn version(text: &str) -> Option<String> {
    let (version, features) = text.split_once(" version ")?.1.split_once(' ')?;
    features.contains("+NTS").then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_counts_only_with_nts() {
        let text = "chronyd (chrony) version 4.3 (+CMDMON +NTP +REFCLOCK -RTC +NTS -SIGND)\n";
        assert_eq!(version(text).as_deref(), Some("4.3"));
        assert_eq!(version(&text.replace("+NTS", "-NTS")), None);
        assert_eq!(version("no such option"), None);
    }

    #[test]
    fn folder_without_chrony_has_no_version() {
        assert_eq!(installed(tempfile::tempdir().unwrap().path()), None);
    }
}
