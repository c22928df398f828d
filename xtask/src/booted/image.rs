//! The system that machines begin with: a small Debian 12, made once by debootstrap and kept under `target`. The system
//! of this machine gets nothing from it and gives nothing to it but its package sources.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::limited::{self, MINUTE};
use crate::process;

const RELEASE: &str = "bookworm";

/// What a machine needs to boot, to be a client of ours and to renew certificates.
const PACKAGES: &[&str] = &[
    "adduser",
    "ca-certificates",
    "certbot",
    "chrony",
    "dbus",
    "firewalld",
    "iproute2",
    "lego",
    "openssl",
    "pebble",
    "procps",
    "systemd",
    "systemd-container",
    "systemd-sysv",
    "ufw",
];

/// What judges a package.
const JUDGES: &[&str] = &["lintian", "piuparts", "rpm", "rpmlint"];

/// What would run in a machine by itself and is not ours: it would take ports and look for a network.
const MASKED: &[&str] = &[
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "certbot.timer",
    "chrony.service",
    "firewalld.service",
    "ufw.service",
];

/// A system in a folder.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) folder: PathBuf,
    /// Held while the image is used: nobody makes it anew meanwhile.
    _lock: fs::File,
}

/// What the folder holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What a machine boots from.
    Bootable,
    /// The same, with what judges packages.
    Judging,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Kind::Bootable => "debian",
            Kind::Judging => "debian-judging",
        }
    }

    const fn packages(self) -> &'static [&'static str] {
        match self {
            Kind::Bootable => PACKAGES,
            Kind::Judging => JUDGES,
        }
    }

    /// What is in it, to be compared with what is to be in it.
    fn stamp(self) -> String {
        let own = format!("{RELEASE}\n{}\n{}\n", self.packages().join(" "), MASKED.join(" "));
        match self {
            Kind::Bootable => own,
            Kind::Judging => format!("{}{own}", Kind::Bootable.stamp()),
        }
    }
}

/// What this machine lacks to make such a system and to boot it; `None` if nothing is known to be missing.
pub(crate) fn missing() -> Option<String> {
    if !process::is_root() {
        return Some("needs root's rights".to_owned());
    }
    let programs = ["apt-get", "dpkg", "mount", "nsenter", "setpriv", "tar", "timeout", "unshare"];
    if let Some(program) = programs.into_iter().find(|program| !process::is_on_path(program)) {
        return Some(format!("there is no {program}"));
    }
    let mut namespaces = Command::new("unshare");
    namespaces.args(["--mount", "--pid", "--net", "--uts", "--ipc", "--fork"]);
    // Seen in the new namespace alone.
    namespaces.args(["mount", "-t", "tmpfs", "trial", "/tmp"]);
    if process::output(&mut namespaces).is_err() {
        return Some("namespaces and mounts in them cannot be made here".to_owned());
    }
    mirror().err()
}

impl Image {
    /// Makes the image, unless it is there.
    pub(crate) fn provide(root: &Path, kind: Kind) -> Result<Self, String> {
        let parent = root.join("target/booted");
        let io = |error| format!("{}: {error}", parent.display());
        fs::create_dir_all(&parent).map_err(io)?;
        let lock = fs::File::create(parent.join(format!("{}.lock", kind.name()))).map_err(io)?;
        lock.lock().map_err(io)?;
        let folder = parent.join(kind.name());
        let stamp = parent.join(format!("{}.contents", kind.name()));
        if fs::read_to_string(&stamp).is_ok_and(|text| text == kind.stamp()) && folder.is_dir() {
            return Ok(Image { folder, _lock: lock });
        }
        let _ = fs::remove_file(&stamp);
        // Left behind by an interrupted run, or of other contents.
        remove(&folder)?;
        eprintln!("making a Debian 12 in {}", folder.display());
        match kind {
            Kind::Bootable => bootstrap(&parent, &folder)?,
            Kind::Judging => {
                let base = Image::provide(root, Kind::Bootable)?;
                let mut copy = Command::new("cp");
                copy.args(["-a", "--reflink=auto"]).arg(&base.folder).arg(&folder);
                limited::output(&mut copy, 2 * MINUTE)?;
            }
        }
        install(&folder, kind.packages())?;
        if kind == Kind::Bootable {
            let mut mask = inside(&folder);
            mask.args(["systemctl", "mask"]).args(MASKED);
            limited::output(&mut mask, MINUTE)?;
        }
        fs::write(&stamp, kind.stamp()).map_err(io)?;
        Ok(Image { folder, _lock: lock })
    }
}

fn remove(folder: &Path) -> Result<(), String> {
    let mut command = Command::new("rm");
    command.args(["-rf", "--one-file-system"]).arg(folder);
    limited::output(&mut command, 2 * MINUTE).map(drop)
}

fn bootstrap(parent: &Path, folder: &Path) -> Result<(), String> {
    let mut command = match process::is_on_path("debootstrap") {
        true => Command::new("debootstrap"),
        false => {
            let place = parent.join("debootstrap");
            unpack(&place, "debootstrap")?;
            let mut command = Command::new(place.join("usr/sbin/debootstrap"));
            command.env("DEBOOTSTRAP_DIR", place.join("usr/share/debootstrap"));
            command
        }
    };
    command.args(["--variant=minbase", RELEASE]).arg(folder).arg(mirror()?);
    limited::output(&mut command, 5 * MINUTE).map(drop)
}

/// Unpacks a package of this machine's distribution.
fn unpack(place: &Path, package: &str) -> Result<(), String> {
    remove(place)?;
    let work = place.with_extension("download");
    remove(&work)?;
    fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    let mut download = Command::new("apt-get");
    download.args(["-o", "Acquire::Retries=3", "download", package]).current_dir(&work);
    limited::output(&mut download, 2 * MINUTE)?;
    let mut unpack = Command::new("sh");
    unpack.args(["-ec", "for file in \"$1\"/*.deb; do dpkg -x \"$file\" \"$2\"; done", "sh"]);
    limited::output(unpack.arg(&work).arg(place), MINUTE)?;
    remove(&work)
}

/// A command in a system that is not booted.
fn inside(folder: &Path) -> Command {
    let mut command = Command::new("chroot");
    command.arg(folder).env("LC_ALL", "C.UTF-8").env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}

/// Installs packages inside; nothing is started.
fn install(folder: &Path, packages: &[&str]) -> Result<(), String> {
    // What a package's script asks before it starts a service: 101 is a no.
    let policy = folder.join("usr/sbin/policy-rc.d");
    let io = |error| format!("{}: {error}", policy.display());
    fs::write(&policy, "#!/bin/sh\nexit 101\n").map_err(io)?;
    fs::set_permissions(&policy, fs::Permissions::from_mode(0o755)).map_err(io)?;
    let mut command = inside(folder);
    command.args(["apt-get", "-o", "Acquire::Retries=3", "install", "--yes", "--no-install-recommends"]);
    command.args(packages).env("DEBIAN_FRONTEND", "noninteractive");
    limited::output(&mut command, 5 * MINUTE)?;
    fs::remove_file(&policy).map_err(io)
}

/// Where this machine has the packages of Debian 12 from.
pub(super) fn mirror() -> Result<String, String> {
    let mut command = Command::new("apt-get");
    command.args([
        "indextargets",
        "--format",
        "$(CODENAME) $(COMPONENT) $(REPO_URI)",
        "Created-By: Packages",
    ]);
    let said = limited::output(&mut command, MINUTE)?;
    let found = source(&said).map(str::to_owned);
    found.ok_or_else(|| "the package sources of this machine have no Debian 12".to_owned())
}

/// The address in the line of the release's main component.
fn source(said: &str) -> Option<&str> {
    said.lines().find_map(|line| line.strip_prefix(RELEASE)?.strip_prefix(" main "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_is_that_of_the_release_itself() {
        let said = "bookworm-security main http://b.test/security/\nnodistro main https://c.test/\n\
                    bookworm contrib http://d.test/debian/\nbookworm main http://a.test/debian/\n";
        assert_eq!(source(said), Some("http://a.test/debian/"));
        assert_eq!(source("trixie main http://a.test/debian/\n"), None);
    }

    #[test]
    fn image_is_made_anew_when_what_it_is_to_hold_has_changed() {
        assert!(Kind::Bootable.stamp().contains("systemd-container"));
        assert!(Kind::Judging.stamp().starts_with(&Kind::Bootable.stamp()), "it is a copy of the other");
        assert!(Kind::Judging.stamp().contains("piuparts"));
    }
}
