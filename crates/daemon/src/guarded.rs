//! Opening files where somebody else may have put something in their place: a link, a pipe, a device, a directory, or a
//! file that has another name elsewhere. All files that are read while a server runs are opened here.
//!
//! Reading follows links, by which certificates and keys are often reached; but it accepts only regular files, never
//! blocks, and never reads more than its limit. Root reads through a link that another user can change only what is
//! that user's own. What is checked is what was opened. Writing is in [`crate::replace`]
//! and [`crate::lock`]; whose rights are used for either, in [`crate::custody`].

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use authentick_net::custody::{Custodian, custodian};
use authentick_net::passing::may_pass;
use authentick_net::privilege;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use thiserror::Error;
use zeroize::Zeroizing;

/// Octets of a file with certificates or a private key: more than a hundred certificates.
pub const PEM_SIZE_MAX: u64 = 1 << 20;

/// Who besides its owner may have access to a file that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// Anybody.
    Public,
    /// The group may read: so Debian installs chrony's keys, and so a server's user gets at keys that are root's.
    GroupReads,
    /// Nobody.
    OwnerAlone,
}

impl Secrecy {
    /// The bits of a mode that must not be set.
    const fn forbidden(self) -> u32 {
        match self {
            Secrecy::Public => 0,
            Secrecy::GroupReads => 0o037,
            Secrecy::OwnerAlone => 0o077,
        }
    }
}

/// Why a file was not read.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is a directory, a pipe, a device or the like.
    #[error("not a file")]
    NotAFile,
    /// Others have rights on it that they must not have; its mode.
    #[error("mode {mode:o} {problem}", mode = .0, problem = describe_mode(*.0))]
    Mode(u32),
    /// A link that another user controls leads to it, and it is not that user's; the place of the link.
    #[error("a link leads to it that another user can change, in {0}, and it is not that user's file")]
    Foreign(PathBuf),
    /// It is longer than such files are; its octets.
    #[error("{0} octets are too many")]
    Size(u64),
}

/// What is wrong with a mode, the worst first.
pub(crate) const fn describe_mode(mode: u32) -> &'static str {
    match (mode & 0o007, mode & 0o030) {
        (1.., _) => "gives every user access to the key",
        (0, 1..) => "lets its group change or run the file; it may only read it",
        (0, 0) => "lets its group read the key",
    }
}

/// What to do about a file that is [`Unreadable::Foreign`].
pub const FOREIGN_REMEDY: &str =
    "name the file itself, in a directory that root alone can change, or give it to the owner of the link";

/// How a file is closed to others: by `command`, unless it is on a file system that takes no change, as secrets of
/// Compose and Swarm are.
pub fn close(path: &Path, command: &str) -> String {
    let is_read_only = rustix::fs::statvfs(path)
        .is_ok_and(|system| system.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY));
    match is_read_only || path.starts_with("/run/secrets") {
        true => {
            "write mode: 0440 where the secret is mounted (Compose, Swarm), or defaultMode: 0440 (Kubernetes)"
                .to_owned()
        }
        false => format!("run: {command}"),
    }
}

impl Unreadable {
    /// Whether there is no such file.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Unreadable::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether a permission is missing.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        matches!(self, Unreadable::Io(error) if error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Whether it is a state of the host that may pass.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Unreadable::Io(error) if may_pass(error))
    }
}

/// The octets of a file, of at most `size_max`.
///
/// # Errors
/// If it cannot be read, is no file, is open to others, or is too long.
pub fn read(path: &Path, secrecy: Secrecy, size_max: u64) -> Result<Zeroizing<Vec<u8>>, Unreadable> {
    let (file, metadata) = open(path)?;
    read_checked(file, &metadata, secrecy, size_max)
}

/// The same of a file that belongs to `owner`; `None` if it is another user's.
///
/// # Errors
/// As [`read`].
pub fn read_of(
    path: &Path,
    secrecy: Secrecy,
    size_max: u64,
    owner: u32,
) -> Result<Option<Zeroizing<Vec<u8>>>, Unreadable> {
    let (file, metadata) = open(path)?;
    match metadata.uid() == owner {
        true => read_checked(file, &metadata, secrecy, size_max).map(Some),
        false => Ok(None),
    }
}

fn read_checked(
    file: File,
    metadata: &Metadata,
    secrecy: Secrecy,
    size_max: u64,
) -> Result<Zeroizing<Vec<u8>>, Unreadable> {
    let mode = metadata.mode() & 0o7777;
    if mode & secrecy.forbidden() != 0 {
        return Err(Unreadable::Mode(mode));
    }
    read_open(file, metadata.len(), size_max)
}

/// A text without the byte order mark (UTF-8) that some editors put before it: every kind of text file may have one.
#[must_use]
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Whether this process can read a file with its present rights, regardless of who else may.
///
/// # Errors
/// If it cannot be opened, or is no file.
pub fn try_open(path: &Path) -> Result<(), Unreadable> {
    open(path).map(|_| ())
}

fn open(path: &Path) -> Result<(File, Metadata), Unreadable> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = || OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
    // Root can read what another user's link may lead to, and must not do so for that user.
    let (file, metadata) = match privilege::is_root().then(|| custodian(path)).transpose()? {
        None | Some(Custodian::Root) => with_metadata(open()?)?,
        Some(custodian) => match rustix::fs::openat2(
            rustix::fs::CWD,
            path,
            flags | OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS,
        ) {
            Ok(file) => with_metadata(file.into())?,
            Err(Errno::LOOP | Errno::NOSYS | Errno::PERM) => {
                let (file, metadata) = with_metadata(open()?)?;
                match custodian {
                    Custodian::User { uid, .. } if uid == metadata.uid() => (file, metadata),
                    Custodian::User { at, .. } | Custodian::Many(at) => return Err(Unreadable::Foreign(at)),
                    Custodian::Root => (file, metadata),
                }
            }
            Err(error) => return Err(io::Error::from(error).into()),
        },
    };
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false => Err(Unreadable::NotAFile),
    }
}

fn with_metadata(file: File) -> io::Result<(File, Metadata)> {
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

/// Reads as [`read`] does, but also a pipe, as a shell's `<(...)`, whose writer is waited for: for files that a user
/// has named on the command line of a program that runs with this user's rights.
///
/// # Errors
/// As [`read`].
pub fn read_named(path: &Path, secrecy: Secrecy, size_max: u64) -> Result<Zeroizing<Vec<u8>>, Unreadable> {
    let metadata = std::fs::metadata(path)?;
    match metadata.is_file() {
        true => read(path, secrecy, size_max),
        false if metadata.is_dir() => Err(Unreadable::NotAFile),
        false => read_open(File::open(path)?, 0, size_max),
    }
}

fn read_open(file: File, size: u64, size_max: u64) -> Result<Zeroizing<Vec<u8>>, Unreadable> {
    if size > size_max {
        return Err(Unreadable::Size(size));
    }
    // Room for all, so that no copy of a secret is left behind by growth.
    let mut octets = Zeroizing::new(Vec::with_capacity(size as usize + 1));
    file.take(size_max + 1).read_to_end(&mut octets)?;
    match octets.len() as u64 {
        size if size > size_max => Err(Unreadable::Size(size)),
        _ => Ok(octets),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_regular_files_are_read_and_none_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink("/dev/zero", at("endless")).unwrap();
        symlink(at("nothing"), at("dangling")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        let read = |name: &str| read(&at(name), Secrecy::Public, 100);
        assert_eq!(read("file").unwrap().as_slice(), b"text");
        assert_eq!(read("link").unwrap().as_slice(), b"text");
        assert!(read("dangling").unwrap_err().is_missing());
        for name in ["pipe", "endless", "."] {
            assert!(matches!(read(name), Err(Unreadable::NotAFile)), "{name}");
        }
    }

    #[test]
    fn root_follows_no_link_of_another_user_to_its_own_files() {
        const USER: u32 = 65534;
        if !authentick_lab::skip::is_root("to have files of another user") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let at = |name: &str| folder.join(name);
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir(at("theirs")).unwrap();
        for name in ["roots", "theirs/own", "theirs/roots"] {
            std::fs::write(at(name), name).unwrap();
        }
        symlink(at("roots"), at("theirs/to-roots")).unwrap();
        symlink(at("theirs/own"), at("theirs/to-own")).unwrap();
        symlink(at("roots"), at("link")).unwrap();
        for name in ["theirs", "theirs/own"] {
            std::os::unix::fs::chown(at(name), Some(USER), Some(USER)).unwrap();
        }
        symlink(at("theirs"), at("folder")).unwrap();
        let read = |name: &str| read(&at(name), Secrecy::Public, 100);
        for name in ["link", "roots", "theirs/own", "theirs/roots", "theirs/to-own", "folder/own"] {
            assert!(read(name).is_ok(), "{name}");
        }
        for name in ["theirs/to-roots", "folder/to-roots"] {
            assert!(matches!(read(name), Err(Unreadable::Foreign(_))), "{name}");
        }
        // One that anyone may put links into.
        std::fs::create_dir(at("open")).unwrap();
        std::fs::set_permissions(at("open"), PermissionsExt::from_mode(0o777)).unwrap();
        symlink(at("roots"), at("open/to-roots")).unwrap();
        assert!(matches!(read("open/to-roots"), Err(Unreadable::Foreign(_))));
    }

    #[test]
    fn nothing_longer_than_the_limit_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        for (size, is_read) in [(0, true), (100, true), (101, false)] {
            std::fs::write(&file, vec![b'a'; size]).unwrap();
            assert_eq!(read(&file, Secrecy::Public, 100).is_ok(), is_read, "{size}");
        }
        // A device says that it has no octets.
        assert!(matches!(
            read_named(Path::new("/dev/zero"), Secrecy::Public, 100),
            Err(Unreadable::Size(101))
        ));
    }

    #[test]
    fn message_of_a_mode_names_its_worst_mistake() {
        for (mode, part) in [
            (0o644, "mode 644 gives every user access"),
            (0o666, "gives every user"),
            (0o660, "mode 660 lets its group change"),
            (0o650, "lets its group change or run"),
            (0o640, "lets its group read"),
        ] {
            let message = Unreadable::Mode(mode).to_string();
            assert!(message.contains(part), "{message}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(close(folder.path(), "chmod 640 file"), "run: chmod 640 file");
        // No mode of a secret of Compose or Swarm can be changed where it is mounted.
        assert!(close(Path::new("/run/secrets/key"), "chmod").contains("mode: 0440"));
    }

    #[test]
    fn modes_are_held_against_what_is_secret() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        for mode in 0..0o1000 {
            // The owner, who may be somebody else than root here, must be able to read.
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode | 0o400)).unwrap();
            let is_read = |secrecy| read(&file, secrecy, 100).is_ok();
            assert!(is_read(Secrecy::Public));
            let [group, others] = [mode >> 3 & 7, mode & 7];
            assert_eq!(is_read(Secrecy::GroupReads), [0, 4].contains(&group) && others == 0, "{mode:o}");
            assert_eq!(is_read(Secrecy::OwnerAlone), group == 0 && others == 0, "{mode:o}");
        }
    }
}
