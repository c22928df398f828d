//! Lock files: they keep a daemon and a command line from changing one file at once.
//!
//! The lock is flock(2)'s, which ends with the process that holds it. Nobody waits for it without a limit, as its
//! holder may have been stopped. A lock file is created as a new file or is one already; anything else in its place is
//! left alone, and only a newly created file is ever given to another owner.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use authentick_net::privilege;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use thiserror::Error;

/// How long a running server waits, whose thread has other things to do: it tries again later.
pub const OF_A_RUNNING_SERVER: Duration = Duration::from_millis(200);
/// How long a server waits at its start.
pub const AT_START: Duration = Duration::from_secs(5);
/// How long a command waits.
pub const OF_A_COMMAND: Duration = Duration::from_secs(30);

/// After this long a message says who holds the lock.
const SILENCE_MAX: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// Held while a file is read, changed and written; released when dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the lock lives as long as its file is open")] File);

/// Why there is no lock.
#[derive(Debug, Error)]
pub enum LockError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What stands in the lock file's place is not one: what it is.
    #[error("{0}")]
    NotOurs(&'static str),
    /// Somebody else has it: who, if that can be told.
    #[error("locked by {0}")]
    Held(String),
}

impl Lock {
    /// Takes the lock whose file is at `path`, and waits for it as long as `patience` allows. A lock file that root
    /// makes belongs to `owner`, user and group.
    ///
    /// # Errors
    /// If the lock file cannot be made, if something else stands there, or if another process does not let go.
    pub fn take(path: &Path, owner: Option<(u32, u32)>, patience: Duration) -> Result<Self, LockError> {
        let file = open(path, owner)?;
        let start = Instant::now();
        let mut is_said = false;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock(file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
            if start.elapsed() >= patience {
                return Err(LockError::Held(holder(&file)));
            }
            if !is_said && start.elapsed() >= SILENCE_MAX {
                is_said = true;
                let (path, holder) = (path.display(), holder(&file));
                log::warn!("{path}: locked by {holder}; waiting for {} s", patience.as_secs());
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn open(path: &Path, owner: Option<(u32, u32)>) -> Result<File, LockError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = |is_new| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600).custom_flags(flags.bits() as i32);
        options.create_new(is_new).open(path)
    };
    match open(true) {
        Ok(file) => {
            if let Some((user, group)) = owner.filter(|_| privilege::is_root()) {
                fchown(&file, Some(user), Some(group))?;
            }
            return Ok(file);
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    let file = open(false).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => LockError::NotOurs("a link, where a lock file should be"),
        Some(Errno::ISDIR) => LockError::NotOurs("a directory, where a lock file should be"),
        _ => error.into(),
    })?;
    let metadata = file.metadata()?;
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

/// Who holds the lock of this file, in words.
fn holder(file: &File) -> String {
    let unknown = || "another process".to_owned();
    let (Ok(metadata), Ok(locks)) = (file.metadata(), std::fs::read_to_string("/proc/locks")) else {
        return unknown();
    };
    let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    // 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF. Waiting processes have an arrow before the kind.
    let pid = locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        (words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&place.as_str())).then(|| words[4].to_owned())
    });
    let Some(pid) = pid.filter(|pid| pid.parse::<u32>().is_ok_and(|pid| pid > 0)) else { return unknown() };
    let status =
        std::fs::read_to_string(PathBuf::from("/proc").join(&pid).join("status")).unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    // A contained server may not look at other processes: their numbers do.
    let Some(name) = field("Name:") else { return format!("process {pid}") };
    let name = name.escape_debug();
    match field("State:") {
        Some(state) if state.starts_with(['T', 't']) => format!("process {pid} ({name}), which is stopped"),
        _ => format!("process {pid} ({name})"),
    }
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
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        let before = fs::metadata(at("victim")).unwrap();
        for name in ["link", "dangling", "hard", "directory", "pipe"] {
            let error = Lock::take(&at(name), Some((65534, 65534)), Duration::ZERO).unwrap_err();
            assert!(matches!(error, LockError::NotOurs(_)), "{name}: {error}");
        }
        let after = fs::metadata(at("victim")).unwrap();
        assert_eq!((before.uid(), before.gid(), before.mode()), (after.uid(), after.gid(), after.mode()));
        assert_eq!(fs::read(at("victim")).unwrap(), b"content");
        assert!(!at("nowhere").exists());
    }

    #[test]
    fn lock_that_is_held_is_given_up_and_its_holder_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = Lock::take(&path, None, Duration::ZERO).unwrap();
        // A second descriptor acts as a second process.
        let error = Lock::take(&path, None, Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("process"), "{error}");
        drop(held);
        Lock::take(&path, None, Duration::ZERO).unwrap();
    }

    #[test]
    fn lock_of_somebody_else_is_refused_and_of_the_owner_taken() {
        if !privilege::is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        drop(Lock::take(&path, Some((65534, 65534)), Duration::ZERO).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().uid(), 65534, "it was made here");
        drop(Lock::take(&path, Some((65534, 65534)), Duration::ZERO).unwrap());
        let error = Lock::take(&path, Some((1, 1)), Duration::ZERO).unwrap_err();
        assert!(matches!(error, LockError::NotOurs(_)), "{error}");
        assert_eq!(fs::metadata(&path).unwrap().uid(), 65534, "it is not given to anyone");
    }
}
