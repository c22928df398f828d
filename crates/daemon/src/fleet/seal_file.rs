//! The file of seal keys, which all nodes of a fleet have: what they say is sealed under the first, and each opens.
//!
//! ```text
//! authentick-fleet-seal 1
//! key 1763719200 <64 hexadecimal digits>
//! ```
//!
//! After the first line there are keys: when each was made, in Unix seconds, and its octets in lower-case digits.
//!
//! Nodes read the file at different times, so a key is replaced in three steps, with the file brought to all nodes
//! after each: the new key opens; it seals, while the old one still opens; the old one goes.

use std::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_crypto::kdf::sha256;
use authentick_fleet::Name;
use authentick_fleet::seal::{SEAL_KEY_SIZE, SealKeys};
use authentick_net::passing::may_pass;
use authentick_net::privilege::{self, User};
use serde::Serialize;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::guarded::{self, Secrecy, Unreadable, without_mark};
use crate::identity::let_read;
use crate::keystore::{emit_octets, octets};
use crate::lock::{self, Lock, LockError};
use crate::replace::{beside, replace, replace_for_group};
use crate::symmetric::notes;

/// Keys in a file, at most.
pub const KEY_COUNT_MAX: usize = 4;

/// Octets of a file: more than the most keys take.
const FILE_SIZE_MAX: u64 = 4096;
const MAGIC: &str = "authentick-fleet-seal 1";
/// Octets of a line: its word, the most digits of a number, those of a key, two spaces and its end.
const LINE_SIZE_MAX: usize = 3 + 20 + 2 * SEAL_KEY_SIZE + 3;

/// The seal keys of a fleet, as a file has them.
pub struct SealFile {
    /// At least one.
    keys: Vec<Key>,
}

struct Key {
    /// Unix seconds.
    made: u64,
    octets: Zeroizing<[u8; SEAL_KEY_SIZE]>,
}

/// What may be shown of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// The first digits of its hash.
    pub fingerprint: String,
    /// Whether it seals; all open.
    pub seals: bool,
    /// When it was made.
    pub made: String,
    /// How long ago that is, in seconds.
    pub age_s: u64,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { fingerprint, seals, made, age_s } = self;
        let role = if *seals { "seals" } else { "opens" };
        let age = humantime::format_duration(Duration::from_secs(*age_s));
        write!(f, "{fingerprint}  {role}  made {made}  ({age} ago)")
    }
}

/// A step on the way from one key to the next; in words, with what has to be done then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A new key opens.
    Added,
    /// The new key seals.
    Moved,
    /// The old keys are gone.
    Removed,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, next) = match self {
            Step::Added => ("step 1 of 3: a new key opens, and does not seal yet", ", then run this again"),
            Step::Moved => ("step 2 of 3: the new key seals, and the old one opens", ", then run this again"),
            Step::Removed => ("step 3 of 3: the old key is removed", ""),
        };
        write!(f, "{done}; copy the file to all nodes, and have each read it (SIGHUP){next}")
    }
}

/// What is said of a file whose first line has another version.
const OTHER_VERSION: &str = "it was written by another version of authentick";

/// Why a file of seal keys was not read or not changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SealFileError {
    /// It cannot be read, or is open to others.
    #[error("{0}: {1}")]
    Unreadable(PathBuf, Unreadable),
    /// The system refused to write this path.
    #[error("{0}: {1}")]
    Unwritten(PathBuf, io::Error),
    /// A first key was to be made, and something is there.
    #[error("{0}: it exists already")]
    Exists(PathBuf),
    /// Something else stands where the lock file should be: what it is.
    #[error("{0}: {1}")]
    NotOurs(PathBuf, &'static str),
    /// Somebody else holds the lock file: who.
    #[error("{0}: locked by {1}")]
    Held(PathBuf, String),
    /// What is in it are no seal keys: the line, and what is wrong with it.
    #[error("{0}: line {1}: {2}")]
    Line(PathBuf, usize, &'static str),
}

impl SealFileError {
    /// What the operator can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            SealFileError::Unreadable(file, error) => {
                let path = file.display();
                match error {
                    Unreadable::Mode(_) => format!(
                        "{}; if others may have read it: authentick keys seal rotate --file {path}",
                        guarded::close(file, &format!("chmod 600 {path}"))
                    ),
                    Unreadable::Foreign(_) => guarded::FOREIGN_REMEDY.to_owned(),
                    Unreadable::NotAFile | Unreadable::Size(_) => "name a file of seal keys".to_owned(),
                    Unreadable::Io(_) if error.is_missing() => format!(
                        "copy it from another node, or make the first: authentick keys seal generate --file {path}"
                    ),
                    Unreadable::Io(_) => let_read(&privilege::acting_user(), &path),
                }
            }
            SealFileError::Unwritten(path, error) => match error.kind() {
                io::ErrorKind::NotFound => format!("make the directory of {}", path.display()),
                io::ErrorKind::PermissionDenied => "run this as the user who owns it".to_owned(),
                io::ErrorKind::StorageFull => "make room on that disk".to_owned(),
                _ => format!("see that {} can be written", path.display()),
            },
            SealFileError::Exists(_) => "rotate it instead: authentick keys seal rotate".to_owned(),
            SealFileError::NotOurs(path, _) => {
                format!("find out who put it there, and remove {}", path.display())
            }
            SealFileError::Held(..) => "let it go on or end it, and try again".to_owned(),
            SealFileError::Line(path, _, OTHER_VERSION) => format!(
                "run the version of authentick that wrote {}, or restore the copy from before its upgrade; the file is \
                 good",
                path.display()
            ),
            SealFileError::Line(path, ..) => format!(
                "copy it from a node that has it whole; if none has, remove it, and copy to all what this makes: \
                 authentick keys seal generate --file {}",
                path.display()
            ),
        }
    }

    /// Whether rights are what is missing.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        match self {
            SealFileError::Unreadable(_, error) => error.is_permission(),
            SealFileError::Unwritten(_, error) => error.kind() == io::ErrorKind::PermissionDenied,
            SealFileError::Exists(_)
            | SealFileError::NotOurs(..)
            | SealFileError::Held(..)
            | SealFileError::Line(..) => false,
        }
    }

    /// Whether it is a state of the host that may pass.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            SealFileError::Unreadable(_, error) => error.may_pass(),
            SealFileError::Unwritten(_, error) => may_pass(error),
            SealFileError::Held(..) => true,
            SealFileError::Exists(_) | SealFileError::NotOurs(..) | SealFileError::Line(..) => false,
        }
    }

    /// Whether somebody else is at work on the file, and does not come to an end.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(self, SealFileError::Held(..))
    }
}

impl SealFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, is open to others, or has a mistake in it.
    pub fn read(path: &Path) -> Result<Self, SealFileError> {
        let octets = guarded::read(path, Secrecy::GroupReads, FILE_SIZE_MAX)
            .map_err(|error| SealFileError::Unreadable(path.to_owned(), error))?;
        parse(&octets).map_err(|(line, problem)| SealFileError::Line(path.to_owned(), line, problem))
    }

    /// Makes a file with one key, which belongs to `owner` if root makes it; `now` in Unix seconds.
    ///
    /// # Errors
    /// If something is at `path`, or the file cannot be written.
    pub fn generate(
        path: &Path,
        owner: Option<&User>,
        now: u64,
        entropy: &mut Entropy,
    ) -> Result<Self, SealFileError> {
        let owner = owner.map(User::ids);
        let _lock = lock(path, owner)?;
        if path.symlink_metadata().is_ok() {
            return Err(SealFileError::Exists(path.to_owned()));
        }
        let file = SealFile { keys: vec![Key::fresh(now, entropy)] };
        replace(path, file.emit().as_bytes(), owner).map_err(unwritten)?;
        Ok(file)
    }

    /// Takes the next step towards another key. Owner and group stay; a group that could read the file still can.
    ///
    /// # Errors
    /// If the file cannot be read or not be written; it is then as it was.
    pub fn rotate(path: &Path, now: u64, entropy: &mut Entropy) -> Result<(Self, Step), SealFileError> {
        // A name that is a link leads to the file: that is locked and replaced, and the link stays.
        let found = fs::canonicalize(path).and_then(|target| Ok((fs::metadata(&target)?, target)));
        let (metadata, target) =
            found.map_err(|error| SealFileError::Unreadable(path.to_owned(), error.into()))?;
        let owner = (metadata.uid(), metadata.gid());
        let _lock = lock(&target, Some(owner))?;
        let (file, step) = SealFile::read(path)?.rotated(now, entropy);
        let text = file.emit();
        match metadata.mode() & 0o040 {
            0 => replace(&target, text.as_bytes(), Some(owner)),
            _ => replace_for_group(&target, text.as_bytes(), owner),
        }
        .map_err(unwritten)?;
        Ok((file, step))
    }

    /// The keys of the fleet with this name.
    #[must_use]
    pub fn keys(&self, fleet: Name) -> SealKeys {
        let octets: Vec<_> = self.keys.iter().map(|key| key.octets.clone()).collect();
        SealKeys::new(fleet, &octets).expect("a file has at least one key")
    }

    /// What may be shown of the keys; `now` in Unix seconds.
    #[must_use]
    pub fn shown(&self, now: u64) -> Vec<Shown> {
        let shown = |(index, key): (usize, &Key)| Shown {
            fingerprint: sha256(&[&*key.octets])[..4].iter().map(|octet| format!("{octet:02x}")).collect(),
            seals: index == 0,
            made: notes::time(key.made),
            age_s: now.saturating_sub(key.made),
        };
        self.keys.iter().enumerate().map(shown).collect()
    }

    fn rotated(mut self, now: u64, entropy: &mut Entropy) -> (Self, Step) {
        let (first, last) = (self.keys[0].made, self.keys[self.keys.len() - 1].made);
        let step = if self.keys.len() == 1 {
            // What tells the steps apart, also if the clock was set back.
            self.keys.push(Key::fresh(now.max(first.saturating_add(1)), entropy));
            Step::Added
        } else if last > first {
            self.keys.rotate_right(1);
            Step::Moved
        } else {
            self.keys.truncate(1);
            Step::Removed
        };
        (self, step)
    }

    fn emit(&self) -> Zeroizing<String> {
        // Room for all, so that no copy of a secret is left behind by growth.
        let size = MAGIC.len() + 1 + self.keys.len() * LINE_SIZE_MAX;
        let mut text = Zeroizing::new(String::with_capacity(size));
        let written = writeln!(text, "{MAGIC}").and_then(|()| {
            self.keys.iter().try_for_each(|key| {
                write!(text, "key {} ", key.made)?;
                emit_octets(&mut text, &*key.octets)
            })
        });
        written.expect("writing to a string cannot fail");
        text
    }
}

impl fmt::Debug for SealFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} seal keys", self.keys.len())
    }
}

impl Key {
    fn fresh(made: u64, entropy: &mut Entropy) -> Self {
        let mut octets = Zeroizing::new([0; SEAL_KEY_SIZE]);
        entropy.fill(&mut *octets);
        Key { made, octets }
    }

    fn parse(line: &[u8]) -> Result<Self, &'static str> {
        let line = std::str::from_utf8(line).map_err(|_| "it is not text")?;
        let words: Vec<&str> = line.split(' ').collect();
        let ["key", made, secret] = words[..] else { return Err("it is not a word, a time and a key") };
        let is_number = made.bytes().all(|octet| octet.is_ascii_digit());
        let made = made.parse().ok().filter(|_| is_number).ok_or("its time is no number of seconds")?;
        let is_digits = secret.bytes().all(|octet| matches!(octet, b'0'..=b'9' | b'a'..=b'f'));
        let octets = octets(secret).filter(|_| is_digits);
        Ok(Key { made, octets: octets.ok_or("its key is not 64 lower-case hexadecimal digits")? })
    }
}

/// The keys that a text describes; otherwise the line with a mistake, and what it is.
fn parse(text: &[u8]) -> Result<SealFile, (usize, &'static str)> {
    let mut keys: Vec<Key> = Vec::with_capacity(KEY_COUNT_MAX);
    let text = without_mark(text);
    for (index, line) in text.strip_suffix(b"\n").unwrap_or(text).split(|octet| *octet == b'\n').enumerate() {
        let wrong = |problem| (index + 1, problem);
        if index == 0 {
            if line != MAGIC.as_bytes() {
                let kind = MAGIC.rsplit_once(' ').map_or(MAGIC, |(kind, _)| kind);
                return Err(wrong(match line.starts_with(kind.as_bytes()) {
                    true => OTHER_VERSION,
                    false => "the file does not begin with its kind and version",
                }));
            }
            continue;
        }
        let key = Key::parse(line).map_err(wrong)?;
        if keys.iter().any(|other| other.octets == key.octets) {
            return Err(wrong("its key stands above already"));
        }
        if keys.len() == KEY_COUNT_MAX {
            return Err(wrong("there are more than four keys"));
        }
        keys.push(key);
    }
    match keys.is_empty() {
        true => Err((2, "there is no key")),
        false => Ok(SealFile { keys }),
    }
}

fn lock(target: &Path, owner: Option<(u32, u32)>) -> Result<Lock, SealFileError> {
    let path = beside(target, ".lock");
    Lock::take(&path, owner, lock::OF_A_COMMAND).map_err(|error| match error {
        LockError::Io(error) => SealFileError::Unwritten(path, error),
        LockError::NotOurs(what) => SealFileError::NotOurs(path, what),
        LockError::Held(holder) => SealFileError::Held(path, holder),
    })
}

fn unwritten((path, error): (PathBuf, io::Error)) -> SealFileError {
    SealFileError::Unwritten(path, error)
}

#[cfg(test)]
mod tests;
