//! Why keys could not be read from a store, or written to it, and what the operator can do about it.

use std::io;
use std::path::PathBuf;

use authentick_net::passing::may_pass;
use authentick_net::privilege;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::generations::KeySetError;
use authentick_proto::keyset::KeySet;
use thiserror::Error;

use super::KeyKind;
use crate::guarded::{self, Unreadable};
use crate::identity::let_read;

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
    /// What is stored there is of another version of the format.
    #[error("{0}: line 1: it was written by another version of authentick")]
    Version(String),
    /// The keys that are stored there make no set.
    #[error("{0}: {1}")]
    Set(String, KeySetError),
    /// Keys that something else makes and puts into this file were to be changed here.
    #[error("{0}: these keys are made elsewhere, and only read here")]
    MadeElsewhere(PathBuf),
    /// Keys that something else makes are not there.
    #[error("{0}: there is no such file, and its keys are made elsewhere")]
    NotThere(PathBuf),
    /// What is stored there is not what a node of a fleet keeps: what is wrong with it.
    #[error("{0}: {1}")]
    Kept(PathBuf, String),
    /// Keys of this fleet were to be changed by other means than its rules, or where others write them.
    #[error("the keys of {0} are not changed like this here")]
    OfFleet(String),
    /// Keys of CFNTS's layout were to be changed by hand.
    #[error("{0}: its keys are those that memcached has for each hour, and are not changed by hand")]
    OfHours(String),
    /// The master key of CFNTS's layout cannot be read, or is open to others.
    #[error("{0}: {1}")]
    Master(PathBuf, Unreadable),
    /// The file has too few octets for a master key; how many.
    #[error("{0}: {1} octets are too few for a master key")]
    ShortMaster(PathBuf, usize),
    /// There are no keys, and a command or a server was to use them.
    #[error("{0} does not exist")]
    Nothing(String),
    /// There are keys, and a command was to make the first ones.
    #[error("{0} holds keys already")]
    Full(String),
    /// There are no keys, and hosts that derive theirs must begin with the same.
    #[error("{0} does not exist, and hosts with derived keys begin with the same file")]
    NothingToDerive(String),
    /// A rotation by hand, on one of the hosts that derive their keys alike.
    #[error(
        "{0}: its keys are derived, and this host would go on with others than the hosts that share them"
    )]
    WouldPart(String),
    /// A future key was to be drawn that would be drawn anyway.
    #[error("{0}: its keys are drawn one by one, and none follows from what somebody has copied")]
    NotDerived(String),
    /// A rotation is due, and has not been made: other hosts have made it.
    #[error("{0}: a rotation is due that hosts with the same keys have made")]
    Overdue(String),
    /// Others replaced the keys there again and again, each time before this process could.
    #[error("{0}: others replace the keys all the time")]
    Contended(String),
}

/// The command that works on the keys of a place, by the name that its file has there.
fn command(place: &str) -> &'static str {
    if place.ends_with(StateKeys::NAME) { StateKeys::COMMAND } else { KeySet::COMMAND }
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
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on that disk".to_owned(),
                _ => format!("see that {} can be read and written", path.display()),
            },
            StoreError::Mode(path, _) => {
                let mode = if path.is_dir() { "700" } else { "600" };
                guarded::close(path, &format!("chmod {mode} {}", path.display()))
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
            StoreError::Version(place) => format!(
                "run the version of authentick that wrote {place}, or restore the copy from before its upgrade; the \
                 file is good"
            ),
            StoreError::Line(place, ..) | StoreError::Set(place, _) => {
                format!("restore {place} from a copy, or remove it: clients then exchange keys anew")
            }
            StoreError::Kept(path, _) => format!(
                "restore {} from a copy, or remove it: the writer of the fleet then welcomes this node anew",
                path.display()
            ),
            StoreError::OfFleet(_) => {
                "the node that writes rotates them when they are due; see `authentick keys rotate --now`, `revoke`, \
                 `take-over` and `status`"
                    .to_owned()
            }
            StoreError::MadeElsewhere(_) => "change them where they are made".to_owned(),
            StoreError::NotThere(_) => "have what makes the keys put the file there".to_owned(),
            StoreError::OfHours(_) => {
                "a server makes them when it runs; if one has leaked, give all hosts another \
                 nts.cookie-keys.master-key and restart them: clients then exchange keys anew"
                    .to_owned()
            }
            StoreError::Master(path, Unreadable::Mode(_)) => {
                guarded::close(path, &format!("chmod 600 {}", path.display()))
            }
            StoreError::Master(_, Unreadable::Foreign(_)) => guarded::FOREIGN_REMEDY.to_owned(),
            StoreError::Master(_, Unreadable::NotAFile | Unreadable::Size(_)) | StoreError::ShortMaster(..) => {
                "name the file that is cookie_key_file to CFNTS, or 16 random octets in a file".to_owned()
            }
            StoreError::Master(path, Unreadable::Io(error)) => match error.kind() {
                io::ErrorKind::NotFound => "copy it from another host; on the first one make it: head -c 16 \
                                            /dev/urandom"
                    .to_owned(),
                _ => let_read(&privilege::acting_user(), &path.display()),
            },
            StoreError::Nothing(place) => format!(
                "run: {} generate; a new member of a fleet that has keys takes them when its server starts",
                command(place)
            ),
            StoreError::Full(place) => format!(
                "they are used as they are; to replace the current one, run: {0} rotate (in a fleet: {0} rotate --now, \
                 on the node that writes)",
                command(place)
            ),
            StoreError::NothingToDerive(place) => {
                format!("copy it from another host; on the first one run: {} generate", command(place))
            }
            StoreError::WouldPart(place) => {
                format!("they rotate by the clock; if they have leaked, run: {} refresh", command(place))
            }
            StoreError::NotDerived(place) => format!("run: {} rotate", command(place)),
            StoreError::Overdue(_) => {
                "let the server make it, or copy the file from a host that is up; then try again".to_owned()
            }
            StoreError::Contended(_) => "see who rotates these keys, and try again".to_owned(),
        }
    }

    /// Whether somebody else is at work on the keys, and does not come to an end.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(self, StoreError::Held(..) | StoreError::Contended(_))
    }

    /// Whether it is a state of the host that may pass: a full disk, or another process at work on the keys.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            StoreError::Io(_, error) => may_pass(error),
            StoreError::Master(_, error) => error.may_pass(),
            _ => self.is_held(),
        }
    }

    /// Whether room on a disk is what is missing.
    pub(crate) fn is_for_room(&self) -> bool {
        let StoreError::Io(_, error) = self else { return false };
        matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Whether rights are what is missing.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        matches!(self, StoreError::Io(_, error) if error.kind() == io::ErrorKind::PermissionDenied)
            || matches!(self, StoreError::Master(_, error) if error.is_permission())
    }
}
