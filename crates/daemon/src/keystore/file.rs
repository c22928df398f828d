//! The generations of one kind of keys in a file of the state directory. What stands in it is for the kind to say:
//! [`super::cookie`], [`super::state`].
//!
//! The file is replaced as a whole: a new one is written beside it, flushed to the disk and renamed, so a crash or a
//! full disk leaves the old one. A lock file keeps a daemon and a command line from writing at once.
//!
//! **Invariant:** a key set is on the disk before anything is sealed with it.

use std::fmt;
use std::fs;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_net::privilege::{self, User};
use authentick_proto::generations::KeySetError;
use zeroize::Zeroizing;

use super::lines::Lines;
use crate::guarded::{self, Secrecy, Unreadable};
use crate::lock::{self, Lock, LockError};
use crate::replace::{beside, replace};
use crate::state_directory;

const FILE_SIZE_MAX: u64 = 64 * 1024;

/// A set of keys that is kept in a file of its own.
pub trait Stored: Sized {
    /// The name of the file.
    const NAME: &'static str;
    /// The first line.
    const MAGIC: &'static str;

    /// A first set; `now` in Unix seconds.
    fn generate(now: u64, entropy: &mut Entropy) -> Self;
    /// The identifier of the key that seals.
    fn current_id(&self) -> u32;
    /// When the current key began to seal, in Unix seconds by the clock of then.
    fn rotated(&self) -> u64;
    /// The set after one rotation, with at most `keep` retired keys.
    #[must_use]
    fn rotated_once(&self, now: u64, keep: usize, entropy: &mut Entropy) -> Self;
    /// The text of the file.
    fn emit(&self) -> Zeroizing<String>;
    /// The set that `lines` describe, which are those of a file after the first.
    ///
    /// # Errors
    /// What is wrong with which line.
    fn parse(lines: Lines<'_>) -> Result<Self, KeyFileError>;
}

/// The file of one kind of keys in a state directory.
#[derive(Debug)]
pub struct SetFile<S> {
    directory: PathBuf,
    kind: PhantomData<fn() -> S>,
}

impl<S> Clone for SetFile<S> {
    fn clone(&self) -> Self {
        SetFile { directory: self.directory.clone(), kind: PhantomData }
    }
}

/// Who has rotated, and the set after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned<S> {
    /// This process did.
    Here(S),
    /// Somebody else had done so before.
    ByOthers(S),
}

/// Why keys could not be read or written.
#[derive(Debug)]
pub enum KeyFileError {
    /// The system refused an operation on this path.
    Io(PathBuf, io::Error),
    /// Others than the owner may read or change this path; its mode.
    Mode(PathBuf, u32),
    /// The path should be a directory.
    NotADirectory(PathBuf),
    /// Something else stands where a file of ours should be: what it is.
    NotOurs(PathBuf, &'static str),
    /// Somebody else holds the lock file: who.
    Held(PathBuf, String),
    /// Root would make a directory where another user, or anyone, can put something in its way: where.
    Unsafe(PathBuf, PathBuf),
    /// The file does not hold keys of its kind: the line, and what is wrong with it.
    Line(PathBuf, usize, &'static str),
    /// The keys in the file make no set.
    Set(PathBuf, KeySetError),
}

impl KeyFileError {
    /// What the operator can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            KeyFileError::Io(path, error) => match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    format!("make it accessible to the user {}", privilege::acting_user())
                }
                io::ErrorKind::StorageFull => "make room on that disk".to_owned(),
                _ => format!("see that {} can be read and written", path.display()),
            },
            KeyFileError::Mode(path, _) => {
                let mode = if path.is_dir() { "700" } else { "600" };
                format!("run: chmod {mode} {}", path.display())
            }
            KeyFileError::NotADirectory(path) => format!("name a directory, or remove {}", path.display()),
            KeyFileError::NotOurs(path, _) => {
                format!("find out who put it there, and remove {}", path.display())
            }
            KeyFileError::Held(..) => "let it go on or end it, and try again".to_owned(),
            KeyFileError::Unsafe(path, _) => format!(
                "make it: install -d -m 700 -o USER {}, with the user that the server runs as",
                path.display()
            ),
            KeyFileError::Line(path, ..) | KeyFileError::Set(path, _) => {
                format!(
                    "restore {} from a copy, or remove it: clients then exchange keys anew",
                    path.display()
                )
            }
        }
    }

    /// Whether somebody else is at work on the file, and does not come to an end.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(self, KeyFileError::Held(..))
    }

    /// Whether rights are what is missing.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        matches!(self, KeyFileError::Io(_, error) if error.kind() == io::ErrorKind::PermissionDenied)
    }
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyFileError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            KeyFileError::Mode(path, mode) => {
                write!(f, "{}: mode {mode:o} lets others than its owner at the keys", path.display())
            }
            KeyFileError::NotADirectory(path) => write!(f, "{}: not a directory", path.display()),
            KeyFileError::NotOurs(path, what) => write!(f, "{}: {what}", path.display()),
            KeyFileError::Held(path, holder) => write!(f, "{}: locked by {holder}", path.display()),
            KeyFileError::Unsafe(path, at) => {
                let (path, at) = (path.display(), at.display());
                write!(f, "{path}: not made, as others than root and the server's user can change {at}")
            }
            KeyFileError::Line(path, line, problem) => {
                write!(f, "{}: line {line}: {problem}", path.display())
            }
            KeyFileError::Set(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for KeyFileError {}

impl<S: Stored> SetFile<S> {
    /// The key file of `directory`, which need not exist yet.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        SetFile { directory: directory.to_owned(), kind: PhantomData }
    }

    /// The file itself.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.join(S::NAME)
    }

    /// Makes the directory if it is missing (mode 0700, for `owner` if one is given), and checks that nobody else
    /// can look into it. Where `owner` itself can put something in the way, root leaves it to `owner` to make it.
    ///
    /// # Errors
    /// If it cannot be made, is no directory, or is open to others.
    pub fn prepare_directory(&self, owner: Option<&User>) -> Result<(), KeyFileError> {
        state_directory::prepare(&self.directory, owner)
    }

    /// Checks the directory, if there is one.
    ///
    /// # Errors
    /// If it is no directory, or is open to others.
    pub fn check_directory(&self) -> Result<(), KeyFileError> {
        state_directory::check(&self.directory)
    }

    /// Takes the lock, and waits for it as long as a command may, which says for whom.
    ///
    /// # Errors
    /// If the lock file cannot be made, something else stands in its place, or another process does not let go of it.
    pub fn lock(&self) -> Result<Lock, KeyFileError> {
        self.lock_within(lock::OF_A_COMMAND)
    }

    fn lock_within(&self, patience: Duration) -> Result<Lock, KeyFileError> {
        let path = beside(&self.path(), ".lock");
        Lock::take(&path, Some(self.owner()?), patience).map_err(|error| match error {
            LockError::Io(error) => self.io(&path, error),
            LockError::NotOurs(what) => KeyFileError::NotOurs(path, what),
            LockError::Held(holder) => KeyFileError::Held(path, holder),
        })
    }

    /// Reads the keys; `None` if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read, is open to others, or does not hold keys of its kind.
    pub fn load(&self) -> Result<Option<S>, KeyFileError> {
        let path = self.path();
        let text = match guarded::read(&path, Secrecy::OwnerAlone, FILE_SIZE_MAX) {
            Err(error) if error.is_missing() => return Ok(None),
            Err(Unreadable::Io(error)) => return Err(self.io(&path, error)),
            Err(Unreadable::Mode(mode)) => return Err(KeyFileError::Mode(path, mode)),
            Err(Unreadable::NotAFile) => {
                return Err(KeyFileError::NotOurs(path, "not a file, where keys should be"));
            }
            Err(Unreadable::Size(_)) => {
                return Err(KeyFileError::Line(path, 0, "file is too long to hold such keys"));
            }
            Ok(text) => text,
        };
        let text = std::str::from_utf8(&text)
            .map_err(|_| KeyFileError::Line(path.clone(), 0, "file is not text"))?;
        S::parse(Lines::new(&path, text, S::MAGIC)?).map(Some)
    }

    /// Replaces the keys.
    ///
    /// # Errors
    /// If the new file cannot be written whole; the old one is then still in place.
    pub fn store(&self, keys: &S) -> Result<(), KeyFileError> {
        replace(&self.path(), keys.emit().as_bytes(), Some(self.owner()?))
            .map_err(|(path, error)| KeyFileError::Io(path, error))
    }

    /// User and group of the directory, to whom a file that root makes in it belongs: the server may not be root any
    /// more.
    fn owner(&self) -> Result<(u32, u32), KeyFileError> {
        let directory = fs::metadata(&self.directory).map_err(|error| self.io(&self.directory, error))?;
        Ok((directory.uid(), directory.gid()))
    }

    /// The keys in the file; fresh ones, written to it first, if there is none.
    ///
    /// # Errors
    /// As [`SetFile::load`] and [`SetFile::store`].
    pub fn load_or_create(&self, now: u64, entropy: &mut Entropy) -> Result<S, KeyFileError> {
        // A file that is there is whole, whoever is about to replace it.
        if let Some(keys) = self.load()? {
            return Ok(keys);
        }
        let _lock = self.lock_within(lock::AT_START)?;
        if let Some(keys) = self.load()? {
            return Ok(keys);
        }
        let keys = S::generate(now, entropy);
        self.store(&keys)?;
        Ok(keys)
    }

    /// Rotates `count` times, at least once and at most until every old key is gone. The file is read anew, as someone
    /// else may have rotated since `in_force` was read: then what it holds is returned as it is. Where there is no file
    /// any more, `in_force` rotates.
    ///
    /// # Errors
    /// As [`SetFile::load`] and [`SetFile::store`]; the old keys then stay in force.
    pub fn rotate(
        &self,
        in_force: &S,
        count: u64,
        now: u64,
        keep: usize,
        entropy: &mut Entropy,
    ) -> Result<Turned<S>, KeyFileError> {
        let _lock = self.lock_within(lock::OF_A_RUNNING_SERVER)?;
        let mut keys = match self.load()? {
            Some(stored) if stored.current_id() != in_force.current_id() => {
                return Ok(Turned::ByOthers(stored));
            }
            Some(stored) => stored.rotated_once(now, keep, entropy),
            None => {
                log::warn!("{} was gone; the keys in force are written to it again", self.path().display());
                in_force.rotated_once(now, keep, entropy)
            }
        };
        for _ in 1..count.min(keep as u64 + 2) {
            keys = keys.rotated_once(now, keep, entropy);
        }
        self.store(&keys)?;
        Ok(Turned::Here(keys))
    }

    /// Writes the keys `in_force` again if their file is gone; whether it was.
    ///
    /// # Errors
    /// As [`SetFile::load`] and [`SetFile::store`].
    pub fn restore_if_gone(&self, in_force: &S) -> Result<bool, KeyFileError> {
        let _lock = self.lock_within(lock::OF_A_RUNNING_SERVER)?;
        Ok(self.load_or_restore(in_force)?.is_none())
    }

    /// The keys in the file; if there is none, those `in_force` are written to it, and the answer is `None`.
    fn load_or_restore(&self, in_force: &S) -> Result<Option<S>, KeyFileError> {
        let held = self.load()?;
        if held.is_none() {
            self.store(in_force)?;
            log::warn!("{} was gone; the keys in force are written to it again", self.path().display());
        }
        Ok(held)
    }

    fn io(&self, path: &Path, error: io::Error) -> KeyFileError {
        KeyFileError::Io(path.to_owned(), error)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use authentick_proto::keyset::{KeySet, Role};

    use super::super::KeyFile;
    use super::*;

    fn store() -> (tempfile::TempDir, KeyFile) {
        let directory = tempfile::tempdir().unwrap();
        let file = KeyFile::new(&directory.path().join("state"));
        file.prepare_directory(None).unwrap();
        (directory, file)
    }

    fn ids(keys: &KeySet) -> Vec<(Role, u32)> {
        keys.keys().map(|(role, key)| (role, key.id())).collect()
    }

    fn here(turned: Result<Turned<KeySet>, KeyFileError>) -> KeySet {
        match turned.unwrap() {
            Turned::Here(keys) => keys,
            Turned::ByOthers(_) => panic!("nobody else has rotated"),
        }
    }

    #[test]
    fn keys_outlive_the_process() {
        let (_directory, file) = store();
        let mut entropy = Entropy::from_seed(1);
        let first = file.load_or_create(100, &mut entropy).unwrap();
        let again = file.load_or_create(200, &mut entropy).unwrap();
        assert_eq!(ids(&first), ids(&again));
        for (_, key) in first.keys() {
            assert_eq!(again.find(key.id()).unwrap().key().expose(), key.key().expose());
        }
        assert_eq!(fs::metadata(file.path()).unwrap().mode() & 0o777, 0o600);
        assert_eq!(again.rotated(), 100);
    }

    #[test]
    fn rotation_is_on_disk_before_it_is_returned() {
        let (_directory, file) = store();
        let mut entropy = Entropy::from_seed(1);
        let first = file.load_or_create(1000, &mut entropy).unwrap();
        let second = here(file.rotate(&first, 1, 1060, 3, &mut entropy));
        assert_eq!(ids(&second), ids(&file.load().unwrap().unwrap()));
        assert!(second.find(first.current().id()).is_some());
        let later = here(file.rotate(&second, 9, 1_000_000, 3, &mut entropy));
        assert!(later.find(first.current().id()).is_none());
        assert_eq!(later.keys().count(), 5);
    }

    #[test]
    fn rotation_of_somebody_else_is_taken_over_and_a_lost_file_is_written_again() {
        let (_directory, file) = store();
        let mut entropy = Entropy::from_seed(1);
        let first = file.load_or_create(1000, &mut entropy).unwrap();
        assert!(!file.restore_if_gone(&first).unwrap());
        let second = here(file.rotate(&first, 1, 1060, 3, &mut entropy));
        let Turned::ByOthers(found) = file.rotate(&first, 1, 1061, 3, &mut entropy).unwrap() else {
            panic!()
        };
        assert_eq!(ids(&found), ids(&second));
        fs::remove_file(file.path()).unwrap();
        let third = here(file.rotate(&second, 1, 1120, 3, &mut entropy));
        for (_, key) in first.keys() {
            assert_eq!(third.find(key.id()).unwrap().key().expose(), key.key().expose(), "cookies open");
        }
        assert_eq!(ids(&third), ids(&file.load().unwrap().unwrap()));
        // Nothing is due: what is in force is written, and stays in force.
        fs::remove_file(file.path()).unwrap();
        assert!(file.restore_if_gone(&third).unwrap());
        assert_eq!(ids(&third), ids(&file.load().unwrap().unwrap()));
    }

    #[test]
    fn rotation_that_cannot_be_written_leaves_the_old_keys() {
        let (_directory, file) = store();
        let mut entropy = Entropy::from_seed(1);
        let first = file.load_or_create(1000, &mut entropy).unwrap();
        // A directory in the way of the new file: writing fails for root too.
        fs::create_dir(file.directory.join("cookie-keys.new")).unwrap();
        let error = file.rotate(&first, 1, 2000, 3, &mut entropy).unwrap_err();
        assert!(matches!(error, KeyFileError::Io(..)), "{error}");
        assert_eq!(ids(&file.load().unwrap().unwrap()), ids(&first));
    }

    #[test]
    fn paths_open_to_others_are_refused_with_the_remedy() {
        let (_directory, file) = store();
        file.load_or_create(0, &mut Entropy::from_seed(1)).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
        let error = file.load().unwrap_err();
        assert!(error.remedy().starts_with("run: chmod 600 "), "{}", error.remedy());
        fs::set_permissions(&file.directory, fs::Permissions::from_mode(0o755)).unwrap();
        let error = file.prepare_directory(None).unwrap_err();
        assert!(error.remedy().starts_with("run: chmod 700 "), "{}", error.remedy());
        let file = KeyFile::new(&file.path());
        assert!(matches!(file.prepare_directory(None), Err(KeyFileError::NotADirectory(_))));
    }

    #[test]
    fn broken_files_are_named_by_line() {
        let (_directory, file) = store();
        let keys = file.load_or_create(0, &mut Entropy::from_seed(1)).unwrap();
        let good = keys.emit();
        let broken = |text: &str| {
            fs::write(file.path(), text).unwrap();
            file.load().unwrap_err().to_string()
        };
        assert!(broken("").contains("future key"));
        assert!(broken("hello").contains("line 1"));
        assert!(broken(&good.replace("rotated 0", "rotated x")).contains("line 2"));
        assert!(broken(&good.replace("current", "curent")).contains("line 3: no such role"));
        assert!(broken(&good.replace("future", "current")).contains("line 4: a second key"));
        assert!(broken(&good[..good.len() - 3]).contains("64 hexadecimal digits"));
        assert!(
            broken(&format!("{}{}", *good, good.lines().nth(2).unwrap().replace("current", "retired")))
                .contains("two keys have the identifier")
        );
        fs::write(file.path(), [0xFF; 100]).unwrap();
        assert!(file.load().unwrap_err().to_string().contains("not text"));
    }
}
