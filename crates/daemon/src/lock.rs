//! Lock files: they keep a daemon and a command line from changing one file at once.
//!
//! The lock is flock(2)'s, which ends with the process that holds it. A lock file is made as a new file or is one already;
//! what else somebody has put in its place is left alone, and nothing but a file that was just made is ever given to
//! somebody.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

use authentick_net::privilege;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// Held while a file is read, changed and written; released when dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the lock lives as long as its file is open")] File);

/// Why there is no lock.
#[derive(Debug)]
pub enum LockError {
    /// The system refused.
    Io(io::Error),
    /// What stands in the lock file's place is not one: what it is.
    NotOurs(&'static str),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Io(error) => error.fmt(f),
            LockError::NotOurs(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for LockError {}

impl From<Errno> for LockError {
    fn from(error: Errno) -> Self {
        LockError::Io(error.into())
    }
}

impl Lock {
    /// Waits for the lock whose file is at `path`. A lock file that root makes belongs to `owner`, user and group.
    ///
    /// # Errors
    /// If the lock file cannot be made, or if something else stands there.
    pub fn take(path: &Path, owner: Option<(u32, u32)>) -> Result<Self, LockError> {
        let file = open(path, owner)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Lock(file))
    }
}

fn open(path: &Path, owner: Option<(u32, u32)>) -> Result<File, LockError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = |is_new| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600).custom_flags(flags.bits() as i32).create_new(is_new).open(path)
    };
    match open(true) {
        Ok(file) => {
            if let Some((user, group)) = owner.filter(|_| privilege::is_root()) {
                fchown(&file, Some(user), Some(group)).map_err(LockError::Io)?;
            }
            return Ok(file);
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(LockError::Io(error)),
    }
    let file = open(false).map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::LOOP) => LockError::NotOurs("a link, where a lock file should be"),
        Some(Errno::ISDIR) => LockError::NotOurs("a directory, where a lock file should be"),
        _ => LockError::Io(error),
    })?;
    let metadata = file.metadata().map_err(LockError::Io)?;
    let me = privilege::acting_uid();
    if !metadata.is_file() {
        return Err(LockError::NotOurs("not a file, where a lock file should be"));
    }
    if metadata.nlink() != 1 {
        return Err(LockError::NotOurs("a file with another name elsewhere, where a lock file should be"));
    }
    if metadata.uid() != me && owner.is_none_or(|(user, _)| metadata.uid() != user) {
        return Err(LockError::NotOurs("a file of somebody else, where a lock file should be"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_but_a_lock_file_is_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("victim"), "content").unwrap();
        symlink(at("victim"), at("link")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        fs::hard_link(at("victim"), at("hard")).unwrap();
        fs::create_dir(at("directory")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let before = fs::metadata(at("victim")).unwrap();
        for name in ["link", "dangling", "hard", "directory", "pipe"] {
            let error = Lock::take(&at(name), Some((65534, 65534))).unwrap_err();
            assert!(matches!(error, LockError::NotOurs(_)), "{name}: {error}");
        }
        let after = fs::metadata(at("victim")).unwrap();
        assert_eq!((before.uid(), before.gid(), before.mode()), (after.uid(), after.gid(), after.mode()));
        assert_eq!(fs::read(at("victim")).unwrap(), b"content");
        assert!(!at("nowhere").exists());
    }

    #[test]
    fn lock_of_somebody_else_is_refused_and_of_the_owner_taken() {
        if !privilege::is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        drop(Lock::take(&path, Some((65534, 65534))).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().uid(), 65534, "it was made here");
        drop(Lock::take(&path, Some((65534, 65534))).unwrap());
        let error = Lock::take(&path, Some((1, 1))).unwrap_err();
        assert!(matches!(error, LockError::NotOurs(_)), "{error}");
        assert_eq!(fs::metadata(&path).unwrap().uid(), 65534, "it is not given to anyone");
    }
}
