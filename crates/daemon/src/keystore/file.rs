//! Keys in a file of the state directory. The kind of key defines its contents: [`super::cookie`], [`super::state`].
//!
//! The file is replaced as a whole: a new one is written beside it, flushed to the disk and renamed, so a crash or a
//! full disk leaves the old one. A lock file keeps a daemon and a command line from writing at once. The age of the key
//! that seals stands in a file of its own ([`super::age`]).

use std::fs;
use std::marker::PhantomData;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authentick_net::privilege::User;
use zeroize::Zeroizing;

use super::directory::StateDirectory;
use super::error::StoreError;
use super::lines::parse;
use super::{Held, KeyKind, KeyStore, Swap, Version};
use crate::guarded::{self, Secrecy, Unreadable};
use crate::lock::{Lock, LockError};
use crate::replace::{Refused, beside, replace};

/// Octets of a file of keys.
pub(super) const FILE_SIZE_MAX: u64 = 64 * 1024;

/// A file of secrets in a state directory, which is replaced as a whole and under a lock.
#[derive(Debug)]
pub struct SecretFile {
    directory: StateDirectory,
    path: PathBuf,
    /// Octets, at most.
    size_max: u64,
}

impl SecretFile {
    /// The file of this name in `directory`, of at most `size_max` octets; neither need exist yet.
    pub(crate) fn new(directory: &StateDirectory, name: &str, size_max: u64) -> Self {
        SecretFile { path: directory.path().join(name), directory: directory.clone(), size_max }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its octets; `None` if there is no such file.
    ///
    /// # Errors
    /// If it cannot be read, is no file, is open to others, or is too long.
    pub(crate) fn read(&self) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        read(&self.path, Secrecy::OwnerAlone, self.size_max)
    }

    /// Replaces a file of the version `expected` by `text`, as [`KeyStore::compare_and_swap`] does.
    ///
    /// # Errors
    /// If it cannot be written whole; the old one is then still in place.
    pub(crate) fn compare_and_swap(
        &self,
        expected: Option<Version>,
        text: &str,
        patience: Duration,
    ) -> Result<Swap, StoreError> {
        self.directory.prepare_if_owed()?;
        let _lock = self.lock(patience)?;
        if self.read()?.map(|octets| Version::of(&octets)) != expected {
            return Ok(Swap::Lost);
        }
        replace(&self.path, text.as_bytes(), Some(self.owner()?)).map_err(refused)?;
        Ok(Swap::Done(Version::of(text.as_bytes())))
    }

    /// Creates the directory, as [`KeyStore::prepare`] does.
    ///
    /// # Errors
    /// If it cannot be made, or is open to others.
    pub(crate) fn prepare(&self, owner: Option<&User>) -> Result<(), StoreError> {
        self.directory.prepare(owner)
    }

    /// Checks the directory, as [`KeyStore::check`] does.
    ///
    /// # Errors
    /// If it is open to others, or something else.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.directory.check()
    }

    fn lock(&self, patience: Duration) -> Result<Lock, StoreError> {
        let path = beside(&self.path, ".lock");
        Lock::take(&path, Some(self.owner()?), patience).map_err(|error| match error {
            LockError::Io(error) => StoreError::Io(path, error),
            LockError::NotOurs(what) => StoreError::NotOurs(path, what),
            LockError::Held(holder) => StoreError::Held(path, holder),
        })
    }

    /// User and group of the directory, to whom a file that root makes in it belongs: the server may not be root any
    /// more.
    fn owner(&self) -> Result<(u32, u32), StoreError> {
        let path = self.directory.path();
        let directory = fs::metadata(path).map_err(|error| refused((path.to_owned(), error)))?;
        Ok((directory.uid(), directory.gid()))
    }
}

/// The file of one kind of keys in a state directory.
#[derive(Debug)]
pub(crate) struct FileStore<K> {
    file: SecretFile,
    kind: PhantomData<fn() -> K>,
}

impl<K: KeyKind> FileStore<K> {
    /// The key file of `directory`, which need not exist yet.
    pub(crate) fn new(directory: &StateDirectory) -> Self {
        FileStore { file: SecretFile::new(directory, K::NAME, FILE_SIZE_MAX), kind: PhantomData }
    }
}

/// The octets of a file of keys; `None` if there is no such file.
///
/// # Errors
/// If it cannot be read, is no file, is open to others than `secrecy` says, or is too long.
pub(super) fn read(
    path: &Path,
    secrecy: Secrecy,
    size_max: u64,
) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
    let place = || path.to_owned();
    match guarded::read(path, secrecy, size_max) {
        Err(error) if error.is_missing() => Ok(None),
        Err(Unreadable::Io(error)) => Err(StoreError::Io(place(), error)),
        Err(Unreadable::Mode(mode)) => Err(StoreError::Mode(place(), mode)),
        Err(Unreadable::Foreign(_)) => {
            Err(StoreError::NotOurs(place(), "another user's link, where keys should be"))
        }
        Err(Unreadable::NotAFile) => Err(StoreError::NotOurs(place(), "not a file, where keys should be")),
        Err(Unreadable::Size(_)) => {
            Err(StoreError::Line(path.display().to_string(), 0, "file is too long to hold such keys"))
        }
        Ok(octets) => Ok(Some(octets)),
    }
}

pub(crate) fn refused((path, error): Refused) -> StoreError {
    StoreError::Io(path, error)
}

impl<K: KeyKind> KeyStore<K> for FileStore<K> {
    fn place(&self) -> String {
        self.file.path().display().to_string()
    }

    fn load(&self) -> Result<Option<Held<K>>, StoreError> {
        let Some(octets) = self.file.read()? else { return Ok(None) };
        let keys = parse(&self.place(), &octets)?;
        Ok(Some(Held { keys, version: Version::of(&octets) }))
    }

    fn compare_and_swap(
        &self,
        expected: Option<Version>,
        keys: &K,
        patience: Duration,
    ) -> Result<Swap, StoreError> {
        self.file.compare_and_swap(expected, &keys.emit(), patience)
    }

    /// The operator announces changes of files with SIGHUP.
    fn is_followed(&self) -> bool {
        false
    }

    fn file(&self) -> Option<&SecretFile> {
        Some(&self.file)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use authentick_crypto::Entropy;
    use authentick_proto::keyset::KeySet;

    use super::super::tests::{here, ids, rotation};
    use super::super::{News, Rotated};
    use super::*;

    type KeyFile = FileStore<KeySet>;

    fn store() -> (tempfile::TempDir, KeyFile) {
        let directory = tempfile::tempdir().unwrap();
        let file = KeyFile::new(&StateDirectory::of(&directory.path().join("state")));
        file.prepare(None).unwrap();
        (directory, file)
    }

    #[test]
    fn keys_outlive_the_process() {
        let (_directory, file) = store();
        let mut entropy = Entropy::from_seed(1);
        let first = file.load_or_create(100, &mut entropy).unwrap().keys;
        let again = file.load_or_create(200, &mut entropy).unwrap().keys;
        assert_eq!(ids(&first), ids(&again));
        for (_, key) in first.keys() {
            assert_eq!(again.find(key.id()).unwrap().key().expose(), key.key().expose());
        }
        assert_eq!(fs::metadata(&file.file.path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(again.rotated(), 100);
    }

    #[test]
    fn rotation_is_on_disk_before_it_is_returned() {
        let (_directory, file) = store();
        let mut entropy = Entropy::from_seed(1);
        let first = file.load_or_create(1000, &mut entropy).unwrap().keys;
        let second = here(file.rotate(&first, rotation(1, 1060), &mut entropy));
        assert_eq!(ids(&second), ids(&file.load().unwrap().unwrap().keys));
        assert!(second.find(first.current().id()).is_some());
        let later = here(file.rotate(&second, rotation(9, 1_000_000), &mut entropy));
        assert!(later.find(first.current().id()).is_none());
        assert_eq!(later.keys().count(), 5);
    }

    #[test]
    fn rotation_of_somebody_else_is_taken_over_and_a_lost_file_is_written_again() {
        let (_directory, file) = store();
        let mut entropy = Entropy::from_seed(1);
        let first = file.load_or_create(1000, &mut entropy).unwrap().keys;
        assert_eq!(file.restore_if_gone(&first).unwrap(), None);
        let second = here(file.rotate(&first, rotation(1, 1060), &mut entropy));
        let Rotated::ByOthers(found) = file.rotate(&first, rotation(1, 1061), &mut entropy).unwrap() else {
            panic!()
        };
        assert_eq!(ids(&found.keys), ids(&second));
        fs::remove_file(&file.file.path).unwrap();
        let third = here(file.rotate(&second, rotation(1, 1120), &mut entropy));
        for (_, key) in first.keys() {
            assert_eq!(third.find(key.id()).unwrap().key().expose(), key.key().expose(), "cookies open");
        }
        assert_eq!(ids(&third), ids(&file.load().unwrap().unwrap().keys));
        // Nothing is due: the keys in use are written, and stay in use.
        fs::remove_file(&file.file.path).unwrap();
        assert!(file.restore_if_gone(&third).unwrap().is_some());
        assert_eq!(ids(&third), ids(&file.load().unwrap().unwrap().keys));
    }

    #[test]
    fn file_that_was_changed_by_hand_is_seen_and_never_overwritten_unseen() {
        let (_directory, file) = store();
        let mut entropy = Entropy::from_seed(1);
        let held = file.load_or_create(1000, &mut entropy).unwrap();
        assert!(matches!(file.watch(Some(held.version)), Ok(News::None)));
        let text = fs::read_to_string(&file.file.path).unwrap().replace("rotated 1000", "rotated 1001");
        fs::write(&file.file.path, text).unwrap();
        let Ok(News::Changed(changed)) = file.watch(Some(held.version)) else { panic!() };
        assert_eq!(changed.keys.rotated(), 1001);
        let swap = |version| file.compare_and_swap(version, &held.keys, Duration::ZERO).unwrap();
        assert_eq!((swap(Some(held.version)), swap(None)), (Swap::Lost, Swap::Lost));
        assert_eq!(swap(Some(changed.version)), Swap::Done(held.version));
        fs::remove_file(&file.file.path).unwrap();
        assert!(matches!(file.watch(Some(held.version)), Ok(News::Gone)));
        assert_eq!(swap(Some(held.version)), Swap::Lost);
    }

    #[test]
    fn rotation_that_cannot_be_written_leaves_the_old_keys() {
        let (_directory, file) = store();
        let mut entropy = Entropy::from_seed(1);
        let first = file.load_or_create(1000, &mut entropy).unwrap().keys;
        // Without the directory writing fails for root too.
        let (here, away) = (file.file.directory.path().to_owned(), _directory.path().join("away"));
        fs::rename(&here, &away).unwrap();
        let error = file.rotate(&first, rotation(1, 2000), &mut entropy).unwrap_err();
        assert!(matches!(error, StoreError::Io(..)), "{error}");
        fs::rename(&away, &here).unwrap();
        assert_eq!(ids(&file.load().unwrap().unwrap().keys), ids(&first));
    }

    #[test]
    fn paths_open_to_others_are_refused_with_the_remedy() {
        let (_directory, file) = store();
        file.load_or_create(0, &mut Entropy::from_seed(1)).unwrap();
        fs::set_permissions(&file.file.path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = file.load().unwrap_err();
        assert!(error.remedy().starts_with("run: chmod 600 "), "{}", error.remedy());
        fs::set_permissions(file.file.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let error = file.prepare(None).unwrap_err();
        assert!(error.remedy().starts_with("run: chmod 700 "), "{}", error.remedy());
        let file = KeyFile::new(&StateDirectory::of(&file.file.path));
        assert!(matches!(file.prepare(None), Err(StoreError::NotADirectory(_))));
    }

    #[test]
    fn broken_files_are_named_by_line() {
        let (_directory, file) = store();
        let keys = file.load_or_create(0, &mut Entropy::from_seed(1)).unwrap().keys;
        let good = keys.emit();
        let broken = |text: &str| {
            fs::write(&file.file.path, text).unwrap();
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
        fs::write(&file.file.path, [0xFF; 100]).unwrap();
        assert!(file.load().unwrap_err().to_string().contains("not text"));
    }
}
