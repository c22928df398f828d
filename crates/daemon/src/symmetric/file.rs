//! A key file on the disk: read with its mode checked, replaced as a whole.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use authentick_net::passing::may_pass;
use authentick_net::privilege::User;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::guarded::{self, Secrecy, Unreadable};
use crate::lock::{self, Lock, LockError};
use crate::replace::{beside, replace};

use super::keys::{Dialect, Keys, Mistake};
use super::text;

/// Octets of a file: the most keys on lines of some 250 octets.
const FILE_SIZE_MAX: u64 = 16 << 20;

/// A file of symmetric keys.
#[derive(Clone, Debug)]
pub struct KeyFile {
    path: PathBuf,
    format: Option<Dialect>,
    /// User and group to whom the file is to belong if root makes it.
    owner: Option<(u32, u32)>,
}

/// Why keys could not be read or written; in words without the remedy, which [`KeyFileError::remedy`] says.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The system refused an operation on this path.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// Others than owner and group may read the file, or others than the owner change it; its mode.
    #[error("{0}: mode {1:o} {problem}", problem = guarded::describe_mode(*.1))]
    Mode(PathBuf, u32),
    /// The path is a directory, a pipe or the like.
    #[error("{0}: not a file")]
    NotAFile(PathBuf),
    /// A link that another user can change leads to it, from this place, and it is not that user's.
    #[error("{0}: a link leads to it that another user can change, in {1}, and it is not that user's file")]
    Foreign(PathBuf, PathBuf),
    /// Something else stands where the lock file should be: what it is.
    #[error("{0}: {1}")]
    NotOurs(PathBuf, &'static str),
    /// Somebody else holds the lock file: who.
    #[error("{0}: locked by {1}")]
    Held(PathBuf, String),
    /// What stands in the file is wrong.
    #[error("{0}: {mistake}", mistake = .1.located())]
    Text(PathBuf, Mistake),
}

impl KeyFileError {
    /// What the operator can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            KeyFileError::Io(path, error) => match error.kind() {
                io::ErrorKind::NotFound => match path.parent() {
                    Some(parent) if !parent.as_os_str().is_empty() && !parent.exists() => {
                        format!("make the directory {}", parent.display())
                    }
                    _ => format!(
                        "name a file that exists, or run: authentick keys symmetric generate --keys {}",
                        path.display()
                    ),
                },
                io::ErrorKind::PermissionDenied => "run as the user who owns it".to_owned(),
                io::ErrorKind::StorageFull => "make room on that disk".to_owned(),
                _ => format!("see that {} can be read and written", path.display()),
            },
            KeyFileError::Mode(path, _) => guarded::close(path, &format!("chmod 600 {}", path.display())),
            KeyFileError::NotAFile(_) => "name a file with keys".to_owned(),
            KeyFileError::Foreign(..) => guarded::FOREIGN_REMEDY.to_owned(),
            KeyFileError::NotOurs(path, _) => {
                format!("find out who put it there, and remove {}", path.display())
            }
            KeyFileError::Held(..) => "let it go on or end it, and try again".to_owned(),
            KeyFileError::Text(_, mistake) => mistake.remedy.clone(),
        }
    }

    /// Whether somebody else is at work on the file, and does not come to an end.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(self, KeyFileError::Held(..))
    }

    /// Whether it is a state of the host that may pass.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            KeyFileError::Io(_, error) => may_pass(error),
            KeyFileError::Held(..) => true,
            KeyFileError::Mode(..)
            | KeyFileError::NotAFile(_)
            | KeyFileError::Foreign(..)
            | KeyFileError::NotOurs(..)
            | KeyFileError::Text(..) => false,
        }
    }

    /// Whether rights are what is missing.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        matches!(self, KeyFileError::Io(_, error) if error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Whether there is no such file.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, KeyFileError::Io(_, error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// A file as it is at one time, without what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Device, number and size.
    place: [u64; 3],
    /// When it was written and changed, in seconds and nanoseconds.
    changed: [i64; 4],
}

impl KeyFile {
    /// The file at `path`, which need not exist yet.
    #[must_use]
    pub fn new(path: &Path, format: Option<Dialect>) -> Self {
        KeyFile { path: path.to_owned(), format, owner: None }
    }

    /// The same file, which is to belong to `owner` if root makes it.
    #[must_use]
    pub fn with_owner(self, owner: &User) -> Self {
        KeyFile { owner: Some(owner.ids()), ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the keys.
    ///
    /// # Errors
    /// If the file cannot be read, is open to others, or has a mistake in it.
    pub fn load(&self) -> Result<Keys, KeyFileError> {
        self.parse(&self.read()?)
    }

    /// What the file would hold with this text.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse(&self, octets: &[u8]) -> Result<Keys, KeyFileError> {
        text::parse(octets, self.format).map_err(|mistake| KeyFileError::Text(self.path.clone(), mistake))
    }

    /// Reads the text.
    ///
    /// # Errors
    /// If the file cannot be read or is open to others.
    pub fn read(&self) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
        let path = self.path.clone();
        guarded::read(&path, Secrecy::GroupReads, FILE_SIZE_MAX).map_err(|error| match error {
            Unreadable::Io(error) => KeyFileError::Io(path, error),
            Unreadable::NotAFile => KeyFileError::NotAFile(path),
            Unreadable::Foreign(at) => KeyFileError::Foreign(path, at),
            Unreadable::Mode(mode) => KeyFileError::Mode(path, mode),
            Unreadable::Size(size) => {
                let problem = format!("{size} octets are too many for a file of keys");
                let mistake = Mistake { line: 0, problem, remedy: "name a file with keys".to_owned() };
                KeyFileError::Text(path, mistake)
            }
        })
    }

    /// What tells this file from another one, or from itself after a change; `None` if none can be looked at.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        let found = fs::metadata(&self.path).ok()?;
        let changed = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
        Some(Stamp { place: [found.dev(), found.ino(), found.size()], changed })
    }

    /// Waits until nobody else of this project changes the file, as long as a command may, which says for whom.
    ///
    /// # Errors
    /// If the lock file beside it cannot be made, something else stands in its place, or another process does not let
    /// go of it.
    pub fn lock(&self) -> Result<Lock, KeyFileError> {
        let path = beside(&self.target(), ".lock");
        // Whoever owns the keys may change them without root too.
        Lock::take(&path, self.owner(), lock::OF_A_COMMAND).map_err(|error| match error {
            LockError::Io(error) => KeyFileError::Io(path, error),
            LockError::NotOurs(what) => KeyFileError::NotOurs(path, what),
            LockError::Held(holder) => KeyFileError::Held(path, holder),
        })
    }

    /// Replaces the text, under its owner and with mode 0600.
    ///
    /// # Errors
    /// If the new file cannot be written whole; the old one is then still in place.
    pub fn store(&self, text: &[u8]) -> Result<(), KeyFileError> {
        replace(&self.target(), text, self.owner()).map_err(|(path, error)| KeyFileError::Io(path, error))
    }

    /// A name that is a link leads to the file: that is locked and replaced, and the link stays.
    fn target(&self) -> PathBuf {
        fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    /// User and group of the file; if there is none yet, those that it is to have.
    fn owner(&self) -> Option<(u32, u32)> {
        fs::metadata(&self.path).ok().map(|old| (old.uid(), old.gid())).or(self.owner)
    }
}

#[cfg(test)]
mod tests;
