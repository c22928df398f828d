//! Why keys could not be read from a store, or written to it, and what the operator can do about it.

use std::io;
use std::path::PathBuf;

use authentick_net::privilege;
use authentick_proto::generations::KeySetError;
use thiserror::Error;

/// Why keys could not be read or written.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The system refused an operation on this path.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// Others than the owner may read or change this path; its mode.
    #[error("{0}: mode {1:o} lets others than its owner at the keys")]
    Mode(PathBuf, u32),
    /// The path should be a directory.
    #[error("{0}: not a directory")]
    NotADirectory(PathBuf),
    /// Something else stands where a file of ours should be: what it is.
    #[error("{0}: {1}")]
    NotOurs(PathBuf, &'static str),
    /// Somebody else holds the lock file: who.
    #[error("{0}: locked by {1}")]
    Held(PathBuf, String),
    /// Root would make a directory where another user, or anyone, can put something in its way: where.
    #[error("{0}: not made, as others than root and the server's user can change {1}")]
    Unsafe(PathBuf, PathBuf),
    /// What is stored there are not keys of the kind: the line, and what is wrong with it.
    #[error("{0}: line {1}: {2}")]
    Line(String, usize, &'static str),
    /// The keys that are stored there make no set.
    #[error("{0}: {1}")]
    Set(String, KeySetError),
    /// Keys that something else makes and puts into this file were to be changed here.
    #[error("{0}: these keys are made elsewhere, and only read here")]
    MadeElsewhere(PathBuf),
    /// Keys that something else makes are not there.
    #[error("{0}: there is no such file, and its keys are made elsewhere")]
    NotThere(PathBuf),
    /// Others replaced the keys there again and again, each time before this process could.
    #[error("{0}: others replace the keys all the time")]
    Contended(String),
}

impl StoreError {
    /// What the operator can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            StoreError::Io(path, error) => match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    format!("make it accessible to the user {}", privilege::acting_user())
                }
                io::ErrorKind::StorageFull => "make room on that disk".to_owned(),
                _ => format!("see that {} can be read and written", path.display()),
            },
            StoreError::Mode(path, _) => {
                let mode = if path.is_dir() { "700" } else { "600" };
                format!("run: chmod {mode} {}", path.display())
            }
            StoreError::NotADirectory(path) => format!("name a directory, or remove {}", path.display()),
            StoreError::NotOurs(path, _) => {
                format!("find out who put it there, and remove {}", path.display())
            }
            StoreError::Held(..) => "let it go on or end it, and try again".to_owned(),
            StoreError::Unsafe(path, _) => format!(
                "make it: install -d -m 700 -o USER {}, with the user that the server runs as",
                path.display()
            ),
            StoreError::Line(place, ..) | StoreError::Set(place, _) => {
                format!("restore {place} from a copy, or remove it: clients then exchange keys anew")
            }
            StoreError::MadeElsewhere(_) => "change them where they are made".to_owned(),
            StoreError::NotThere(_) => "have what makes the keys put the file there".to_owned(),
            StoreError::Contended(_) => "see who rotates these keys, and try again".to_owned(),
        }
    }

    /// Whether somebody else is at work on the keys, and does not come to an end.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(self, StoreError::Held(..) | StoreError::Contended(_))
    }

    /// Whether rights are what is missing.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        matches!(self, StoreError::Io(_, error) if error.kind() == io::ErrorKind::PermissionDenied)
    }
}
