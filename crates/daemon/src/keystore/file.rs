//! Cookie keys in a file of the state directory.
//!
//! ```text
//! authentick-cookie-keys 1
//! rotated 1763719200
//! current 5f3a0c11 1763719200 <64 hexadecimal digits>
//! future 5f3a0c12 1763719200 <64 hexadecimal digits>
//! retired 5f3a0c10 1763632800 <64 hexadecimal digits>
//! ```
//!
//! Numbers are a key's identifier and when it was made, in Unix seconds. Retired keys stand with the youngest first.
//! The file is replaced as a whole: a new one is written beside it, flushed to the disk and renamed, so a crash or a
//! full disk leaves the old one. A lock file keeps a daemon and a command line from writing at once.
//!
//! **Invariant:** a key set is on the disk before anything is sealed with it.

use std::fmt::{self, Write as _};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use authentick_crypto::Entropy;
use authentick_net::privilege::{self, User};
use authentick_proto::keyset::{CookieKey, KeySet, KeySetError, Role};
use rustix::fs::{FlockOperation, flock};
use zeroize::Zeroizing;

use crate::replace::replace;

const MAGIC: &str = "authentick-cookie-keys 1";
const NAME: &str = "cookie-keys";
const FILE_SIZE_MAX: u64 = 64 * 1024;

/// The file of cookie keys in a state directory.
#[derive(Clone, Debug)]
pub struct KeyFile {
    directory: PathBuf,
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
    /// The file does not hold cookie keys: the line, and what is wrong with it.
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
                    format!("give {} to the user that the server runs as", path.display())
                }
                io::ErrorKind::StorageFull => "make room on that disk".to_owned(),
                _ => format!("see that {} can be read and written", path.display()),
            },
            KeyFileError::Mode(path, _) => {
                let mode = if path.is_dir() { "700" } else { "600" };
                format!("run: chmod {mode} {}", path.display())
            }
            KeyFileError::NotADirectory(path) => format!("name a directory, or remove {}", path.display()),
            KeyFileError::Line(path, ..) | KeyFileError::Set(path, _) => {
                format!("restore {} from a copy, or remove it: clients then need new cookies", path.display())
            }
        }
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
                write!(f, "{}: mode {mode:o} lets others than its owner at cookie keys", path.display())
            }
            KeyFileError::NotADirectory(path) => write!(f, "{}: not a directory", path.display()),
            KeyFileError::Line(path, line, problem) => {
                write!(f, "{}: line {line}: {problem}", path.display())
            }
            KeyFileError::Set(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for KeyFileError {}

/// Held while the file is read, changed and written; released when dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the lock lives as long as its file is open")] File);

impl KeyFile {
    /// The key file of `directory`, which need not exist yet.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        KeyFile { directory: directory.to_owned() }
    }

    /// The file itself.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.join(NAME)
    }

    /// Makes the directory if it is missing (mode 0700, for `owner` if one is given), and checks that nobody else
    /// can look into it.
    ///
    /// # Errors
    /// If it cannot be made, is no directory, or is open to others.
    pub fn prepare_directory(&self, owner: Option<&User>) -> Result<(), KeyFileError> {
        if !self.directory.exists() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.directory);
            let made = made.and_then(|()| owner.map_or(Ok(()), |owner| owner.own(&self.directory)));
            made.map_err(|error| self.io(&self.directory, error))?;
        }
        self.check_directory()
    }

    /// Checks the directory, if there is one.
    ///
    /// # Errors
    /// If it is no directory, or is open to others.
    pub fn check_directory(&self) -> Result<(), KeyFileError> {
        let metadata = match fs::metadata(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            result => result.map_err(|error| self.io(&self.directory, error))?,
        };
        if !metadata.is_dir() {
            return Err(KeyFileError::NotADirectory(self.directory.clone()));
        }
        check_mode(&self.directory, &metadata)
    }

    /// Waits for the lock.
    ///
    /// # Errors
    /// If the lock file cannot be made.
    pub fn lock(&self) -> Result<Lock, KeyFileError> {
        let path = self.directory.join("cookie-keys.lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = file.map_err(|error| self.io(&path, error))?;
        self.hand_over(&file).map_err(|error| self.io(&path, error))?;
        flock(&file, FlockOperation::LockExclusive).map_err(|error| self.io(&path, error.into()))?;
        Ok(Lock(file))
    }

    /// Reads the keys; `None` if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read, is open to others, or does not hold cookie keys.
    pub fn load(&self) -> Result<Option<KeySet>, KeyFileError> {
        let path = self.path();
        let metadata = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result.map_err(|error| self.io(&path, error))?,
        };
        check_mode(&path, &metadata)?;
        if metadata.len() > FILE_SIZE_MAX {
            return Err(KeyFileError::Line(path, 0, "file is too long to hold cookie keys"));
        }
        let text = Zeroizing::new(fs::read(&path).map_err(|error| self.io(&path, error))?);
        let text = std::str::from_utf8(&text)
            .map_err(|_| KeyFileError::Line(path.clone(), 0, "file is not text"))?;
        parse(&path, text).map(Some)
    }

    /// Replaces the keys.
    ///
    /// # Errors
    /// If the new file cannot be written whole; the old one is then still in place.
    pub fn store(&self, keys: &KeySet) -> Result<(), KeyFileError> {
        let directory = fs::metadata(&self.directory).map_err(|error| self.io(&self.directory, error))?;
        replace(&self.path(), emit(keys).as_bytes(), Some((directory.uid(), directory.gid())))
            .map_err(|(path, error)| KeyFileError::Io(path, error))
    }

    /// A file that root makes here belongs to whom the directory belongs to: the server may not be root any more.
    fn hand_over(&self, file: &File) -> io::Result<()> {
        let directory = fs::metadata(&self.directory)?;
        if privilege::is_root() {
            std::os::unix::fs::fchown(file, Some(directory.uid()), Some(directory.gid()))?;
        }
        Ok(())
    }

    /// The keys in the file; fresh ones, written to it first, if there is none.
    ///
    /// # Errors
    /// As [`KeyFile::load`] and [`KeyFile::store`].
    pub fn load_or_create(&self, now: u64, entropy: &mut Entropy) -> Result<KeySet, KeyFileError> {
        let _lock = self.lock()?;
        if let Some(keys) = self.load()? {
            return Ok(keys);
        }
        let keys = KeySet::generate(now, entropy);
        self.store(&keys)?;
        Ok(keys)
    }

    /// Rotates as often as is due at `now`, at most until every old key is gone; `None` if nothing is due. The file is
    /// read anew, as someone else may have rotated.
    ///
    /// # Errors
    /// As [`KeyFile::load`] and [`KeyFile::store`]; the old keys then stay in force.
    pub fn rotate_if_due(
        &self,
        now: u64,
        period_seconds: u64,
        keep: usize,
        entropy: &mut Entropy,
    ) -> Result<Option<KeySet>, KeyFileError> {
        let _lock = self.lock()?;
        let Some(mut keys) = self.load()? else {
            let keys = KeySet::generate(now, entropy);
            self.store(&keys)?;
            return Ok(Some(keys));
        };
        let due = keys.rotations_due(now, period_seconds).min(keep as u64 + 2);
        if due == 0 {
            return Ok(None);
        }
        for _ in 0..due {
            keys = keys.rotate(now, keep, entropy);
        }
        self.store(&keys)?;
        Ok(Some(keys))
    }

    fn io(&self, path: &Path, error: io::Error) -> KeyFileError {
        KeyFileError::Io(path.to_owned(), error)
    }
}

fn check_mode(path: &Path, metadata: &fs::Metadata) -> Result<(), KeyFileError> {
    match metadata.mode() & 0o7777 {
        mode if mode & 0o077 == 0 => Ok(()),
        mode => Err(KeyFileError::Mode(path.to_owned(), mode)),
    }
}

fn emit(keys: &KeySet) -> Zeroizing<String> {
    // Grown once, so that no copy of a secret is left behind.
    let mut text = Zeroizing::new(String::with_capacity(64 + 128 * keys.keys().count()));
    let written = writeln!(text, "{MAGIC}\nrotated {}", keys.rotated()).and_then(|()| {
        keys.keys().try_for_each(|(role, key)| {
            write!(text, "{} {:08x} {} ", role_name(role), key.id(), key.created())?;
            key.key().expose().iter().try_for_each(|octet| write!(text, "{octet:02x}"))?;
            writeln!(text)
        })
    });
    written.expect("writing to a string cannot fail");
    text
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Current => "current",
        Role::Future => "future",
        Role::Retired => "retired",
    }
}

fn parse(path: &Path, text: &str) -> Result<KeySet, KeyFileError> {
    let (mut current, mut future, mut retired, mut rotated) = (None, None, Vec::new(), None);
    let mut line_count = 0;
    for (index, line) in text.lines().enumerate() {
        line_count = index + 1;
        let wrong = |problem| KeyFileError::Line(path.to_owned(), index + 1, problem);
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match (index, &words[..]) {
            (0, _) if line == MAGIC => {}
            (0, _) => return Err(wrong("the file does not begin with \"authentick-cookie-keys 1\"")),
            (_, ["rotated", seconds]) => {
                rotated = Some(seconds.parse().map_err(|_| wrong("no number of seconds"))?);
            }
            (_, [role, id, created, secret]) => {
                let id = u32::from_str_radix(id, 16).map_err(|_| wrong("no key identifier"))?;
                let created = created.parse().map_err(|_| wrong("no number of seconds"))?;
                let secret = secret_octets(secret)
                    .ok_or_else(|| wrong("the key does not have 64 hexadecimal digits"))?;
                let key = CookieKey::new(id, created, &secret);
                match *role {
                    "current" if current.is_none() => current = Some(key),
                    "future" if future.is_none() => future = Some(key),
                    "retired" => retired.push(key),
                    "current" | "future" => return Err(wrong("a second key of this role")),
                    _ => return Err(wrong("no such role of a key")),
                }
            }
            _ => return Err(wrong("neither a key nor a time of rotation")),
        }
    }
    let missing = |problem| KeyFileError::Line(path.to_owned(), line_count, problem);
    KeySet::from_keys(
        future.ok_or_else(|| missing("the file ends without a future key"))?,
        current.ok_or_else(|| missing("the file ends without a current key"))?,
        retired,
        rotated.ok_or_else(|| missing("the file ends without a time of rotation"))?,
    )
    .map_err(|error| KeyFileError::Set(path.to_owned(), error))
}

fn secret_octets(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let mut octets = Zeroizing::new([0; 32]);
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (octet, digits) in octets.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *octet = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

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
        assert!(file.rotate_if_due(1059, 60, 3, &mut entropy).unwrap().is_none());
        let second = file.rotate_if_due(1060, 60, 3, &mut entropy).unwrap().unwrap();
        assert_eq!(ids(&second), ids(&file.load().unwrap().unwrap()));
        assert!(second.find(first.current().id()).is_some());
        let later = file.rotate_if_due(1_000_000, 60, 3, &mut entropy).unwrap().unwrap();
        assert!(later.find(first.current().id()).is_none(), "keys age while the server is down");
        assert_eq!(later.keys().count(), 5);
    }

    #[test]
    fn rotation_that_cannot_be_written_leaves_the_old_keys() {
        let (_directory, file) = store();
        let mut entropy = Entropy::from_seed(1);
        let first = file.load_or_create(1000, &mut entropy).unwrap();
        // A directory in the way of the new file: writing fails for root too.
        fs::create_dir(file.directory.join("cookie-keys.new")).unwrap();
        let error = file.rotate_if_due(2000, 60, 3, &mut entropy).unwrap_err();
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
        let good = emit(&keys);
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
