//! Who controls where a path leads: root alone, or somebody who owns a directory or a link on the way.
//!
//! Root must not create, give away or replace files where another user can put a link or swap a directory meanwhile:
//! that user could redirect the operation to any place. So a command run as root becomes that user first, and a server
//! creates its directory only where root alone is in control.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::privilege;

/// Links on a way, at most; the kernel follows forty.
const LINK_COUNT_MAX: usize = 40;

/// Who controls a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Custodian {
    /// Root's alone.
    Root,
    /// This user, who owns the directory or link `at`.
    User {
        /// The user's number.
        uid: u32,
        /// The group of what it owns.
        gid: u32,
        /// The directory or link.
        at: PathBuf,
    },
    /// Those of a group or of everybody, who may write to this directory of root's.
    Many(PathBuf),
}

/// Who controls `path`, with all links followed. What does not exist yet is controlled by whoever can create it; a file
/// at the end does not count, as only its directory decides what it is.
///
/// # Errors
/// If a part of the way cannot be looked at.
pub fn custodian(path: &Path) -> io::Result<Custodian> {
    let absolute = std::path::absolute(path)?;
    let mut rest: VecDeque<OsString> = parts(&absolute).collect();
    let mut here = PathBuf::from("/");
    let mut link_count = 0;
    loop {
        let directory = fs::symlink_metadata(&here)?;
        if !directory.is_dir() {
            // The file at the end; the next part of a longer way would not be found.
            return Ok(Custodian::Root);
        }
        if let Some(custodian) = other_than_root(&here, &directory) {
            return Ok(custodian);
        }
        let Some(next) = rest.pop_front() else { return Ok(Custodian::Root) };
        if next == ".." {
            here.pop();
            continue;
        }
        let there = here.join(next);
        match fs::symlink_metadata(&there) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Custodian::Root),
            Err(error) => return Err(error),
            Ok(metadata) if metadata.is_symlink() => {
                // Where everybody can make links, as in /tmp, their owners control them.
                if metadata.uid() != 0 {
                    return Ok(Custodian::User { uid: metadata.uid(), gid: metadata.gid(), at: there });
                }
                link_count += 1;
                if link_count > LINK_COUNT_MAX {
                    return Err(Errno::LOOP.into());
                }
                let target = fs::read_link(&there)?;
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                    rest.push_front(part);
                }
            }
            Ok(_) => here = there,
        }
    }
}

/// Opens a file of secrets or of state to read it, or with `create` to write it, and makes it with mode 0600 if it is
/// not there: a regular file, and not through a link. On a way that root does not control, no directory is a link
/// either.
///
/// # Errors
/// If it cannot be opened, or is another kind of file.
pub fn open_kept(path: &Path, create: bool) -> io::Result<File> {
    let mut flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    flags |= if create { OFlags::RDWR | OFlags::CREATE } else { OFlags::RDONLY };
    let mode = if create { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
    let is_roots = !privilege::is_root() || custodian(path)? == Custodian::Root;
    let opened = match is_roots {
        true => rustix::fs::open(path, flags, mode),
        false => rustix::fs::openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS),
    };
    let refused = |problem| io::Error::new(ErrorKind::InvalidData, problem);
    let file = match opened {
        Err(Errno::LOOP) => return Err(refused("a symbolic link, where a file should be")),
        opened => File::from(opened?),
    };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(refused("not a regular file")),
    }
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Who other than root can replace entries of this directory.
fn other_than_root(path: &Path, directory: &Metadata) -> Option<Custodian> {
    const STICKY: u32 = 0o1000;
    let mode = directory.mode();
    match (directory.uid(), mode & 0o022 != 0 && mode & STICKY == 0) {
        (0, false) => None,
        (0, true) => Some(Custodian::Many(path.to_owned())),
        (uid, _) => Some(Custodian::User { uid, gid: directory.gid(), at: path.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    use super::*;

    #[test]
    fn path_is_in_the_hands_of_whoever_can_change_where_it_leads() {
        if !privilege::is_root() {
            return;
        }
        const USER: u32 = 65534;
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let at = |name: &str| folder.join(name);
        for name in ["roots", "users", "users/roots", "open", "sticky"] {
            fs::create_dir(at(name)).unwrap();
        }
        chown(at("users"), Some(USER), Some(USER)).unwrap();
        fs::set_permissions(at("open"), PermissionsExt::from_mode(0o775)).unwrap();
        fs::set_permissions(at("sticky"), PermissionsExt::from_mode(0o1777)).unwrap();
        fs::write(at("roots/file"), "").unwrap();
        chown(at("roots/file"), Some(USER), Some(USER)).unwrap();
        symlink(at("users/file"), at("roots/to-users")).unwrap();
        symlink("../roots/file", at("roots/to-roots")).unwrap();
        symlink(at("roots/file"), at("users/to-roots")).unwrap();
        symlink(at("roots/file"), at("sticky/theirs")).unwrap();
        lchown(at("sticky/theirs"), Some(USER), Some(USER)).unwrap();
        symlink(at("roots/file"), at("sticky/ours")).unwrap();
        symlink(at("roots/loop"), at("roots/loop")).unwrap();
        let user = |name: &str| Custodian::User { uid: USER, gid: USER, at: at(name) };
        let theirs = Custodian::User { uid: USER, gid: USER, at: at("sticky/theirs") };
        for (path, expected) in [
            ("roots", Custodian::Root),
            ("roots/file", Custodian::Root),
            ("roots/none/at/all", Custodian::Root),
            ("roots/to-roots", Custodian::Root),
            ("roots/to-users", user("users")),
            ("users", user("users")),
            ("users/none", user("users")),
            ("users/roots/file", user("users")),
            ("users/to-roots", user("users")),
            ("users/../roots/file", user("users")),
            ("open/file", Custodian::Many(at("open"))),
            ("sticky/none", Custodian::Root),
            ("sticky/ours", Custodian::Root),
            ("sticky/theirs", theirs),
        ] {
            assert_eq!(custodian(&at(path)).unwrap(), expected, "{path}");
        }
        assert!(custodian(&at("roots/loop")).is_err());
    }
}
