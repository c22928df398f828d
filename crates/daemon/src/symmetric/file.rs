//! A key file on the disk: read with its mode checked, replaced as a whole.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use authentick_net::privilege;
use rustix::fs::{FlockOperation, OFlags, flock};
use zeroize::Zeroizing;

use crate::replace::{beside, replace};

use super::text::{self, Format, Keys, Mistake};

/// Octets of a file: the most keys on lines of some 250 octets.
const FILE_SIZE_MAX: u64 = 16 << 20;

/// A file of symmetric keys.
#[derive(Clone, Debug)]
pub struct KeyFile {
    path: PathBuf,
    format: Format,
}

/// Why keys could not be read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The system refused an operation on this path.
    Io(PathBuf, io::Error),
    /// Others than owner and group may read the file, or others than the owner change it; its mode.
    Mode(PathBuf, u32),
    /// The path is a directory, a pipe or the like.
    NotAFile(PathBuf),
    /// What stands in the file is wrong.
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
            KeyFileError::Mode(path, _) => format!("run: chmod 600 {}", path.display()),
            KeyFileError::NotAFile(_) => "name a file with keys".to_owned(),
            KeyFileError::Text(_, mistake) => mistake.remedy.clone(),
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

/// Without the remedy: see [`KeyFileError::remedy`].
impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyFileError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            KeyFileError::Mode(path, mode) => {
                write!(
                    f,
                    "{}: mode {mode:o} lets others than its owner and group at the keys",
                    path.display()
                )
            }
            KeyFileError::NotAFile(path) => write!(f, "{}: not a file", path.display()),
            KeyFileError::Text(path, Mistake { line: 0, problem, .. }) => {
                write!(f, "{}: {problem}", path.display())
            }
            KeyFileError::Text(path, Mistake { line, problem, .. }) => {
                write!(f, "{}: line {line}: {problem}", path.display())
            }
        }
    }
}

impl std::error::Error for KeyFileError {}

/// Held while the file is read, changed and written; released when dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the lock lives as long as its file is open")] File);

impl KeyFile {
    /// The file at `path`, which need not exist yet.
    #[must_use]
    pub fn new(path: &Path, format: Format) -> Self {
        KeyFile { path: path.to_owned(), format }
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
        let io = |error| KeyFileError::Io(self.path.clone(), error);
        // A pipe in its place must not make the reader wait. What is checked is what is read.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(&self.path)
            .map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(KeyFileError::NotAFile(self.path.clone()));
        }
        let mode = metadata.mode() & 0o7777;
        // The group may read: that is how Debian installs chrony's keys.
        if mode & 0o037 != 0 {
            return Err(KeyFileError::Mode(self.path.clone(), mode));
        }
        if metadata.len() > FILE_SIZE_MAX {
            let problem = format!("{} octets are too many for a file of keys", metadata.len());
            let mistake = Mistake { line: 0, problem, remedy: "name a file with keys".to_owned() };
            return Err(KeyFileError::Text(self.path.clone(), mistake));
        }
        // Room for all, so that no copy of a secret is left behind by growth.
        let mut octets = Zeroizing::new(Vec::with_capacity(metadata.len() as usize + 1));
        file.take(FILE_SIZE_MAX).read_to_end(&mut octets).map_err(io)?;
        Ok(octets)
    }

    /// Waits until nobody else of this project changes the file.
    ///
    /// # Errors
    /// If the lock file beside it cannot be made.
    pub fn lock(&self) -> Result<Lock, KeyFileError> {
        let path = beside(&self.path, ".lock");
        let io = |error| KeyFileError::Io(path.clone(), error);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(io)?;
        if let Some((user, group)) = self.owner().filter(|_| privilege::is_root()) {
            // Whoever owns the keys may change them without root too.
            fchown(&file, Some(user), Some(group)).map_err(io)?;
        }
        flock(&file, FlockOperation::LockExclusive).map_err(|error| io(error.into()))?;
        Ok(Lock(file))
    }

    /// Replaces the text, under its owner and with mode 0600.
    ///
    /// # Errors
    /// If the new file cannot be written whole; the old one is then still in place.
    pub fn store(&self, text: &[u8]) -> Result<(), KeyFileError> {
        // A name that is a link leads to the file: that is replaced, and the link stays.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        replace(&target, text, self.owner()).map_err(|(path, error)| KeyFileError::Io(path, error))
    }

    /// User and group of the file, if there is one.
    fn owner(&self) -> Option<(u32, u32)> {
        fs::metadata(&self.path).ok().map(|old| (old.uid(), old.gid()))
    }
}

#[cfg(test)]
mod tests;
