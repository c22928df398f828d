//! The state directory: made if it is missing, and open to its owner only.
//!
//! Root makes it only where nobody else can put a link or another directory in its way meanwhile ([`crate::custody`]).
//! Where that could be the server's own user, that user makes it itself, once the process has become that user.
//!
//! The root of a volume belongs to whoever mounts it, and often has rights for a group or for everybody: Kubernetes
//! makes an `emptyDir` with mode 0777, and one with `fsGroup` has 2775. State is then kept in the folder [`PRIVATE`] in
//! it, which is the server's own. What others may do to it follows from the rights of the volume: without the sticky
//! bit, who may write there can rename the folder or put something else in its place. So every look at it demands a
//! folder, no link, of the acting user and closed to others; and a contained server reaches that one folder alone,
//! whatever its name leads to later.

use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use authentick_net::privilege::{self, User};
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;
use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};

use super::error::StoreError;
use super::{KeyKind, cfnts};
use crate::custody::{Custodian, custodian};
use crate::fleet::disk;
use crate::symmetric::uses;

/// The folder in a state directory that others can look into.
const PRIVATE: &str = "private";

/// Whether this process found no room for its state directory at the start.
static IS_OWED: AtomicBool = AtomicBool::new(false);

/// Where a server keeps its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDirectory {
    path: PathBuf,
    /// The state directory that was named, if `path` is the private folder in it.
    volume: Option<PathBuf>,
}

impl StateDirectory {
    /// Where state is kept if `named` is said to be the state directory: this alone decides it. It may be missing.
    ///
    /// That is the private folder in it if others can look into it, or could when that folder was made. State that is
    /// in the directory itself stays the state: if others can look into that, it is refused later, so that no keys are
    /// left behind unseen.
    #[must_use]
    pub fn of(named: &Path) -> Self {
        let itself = StateDirectory { path: named.to_owned(), volume: None };
        let Ok(directory) = fs::metadata(named) else { return itself };
        let private = named.join(PRIVATE);
        let is_private = || is_open(&directory) || fs::symlink_metadata(&private).is_ok_and(|it| it.is_dir());
        match directory.is_dir() && is_private() && !holds_state(named) {
            true => StateDirectory { path: private, volume: Some(named.to_owned()) },
            false => itself,
        }
    }

    /// The directory that state is in.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory if it is missing (mode 0700, for `owner` if one is given), and checks that nobody else can
    /// look into it. As root with an `owner`, leaves it to that user to make it where that is safer.
    ///
    /// # Errors
    /// If it cannot be made, is no directory, or is open to others.
    pub(crate) fn prepare(&self, owner: Option<&User>) -> Result<(), StoreError> {
        let directory = &self.path;
        let failed = |error| StoreError::Io(directory.clone(), error);
        if is_missing(directory) {
            if privilege::is_root() && (owner.is_some() || self.volume.is_some()) {
                match (custodian(directory).map_err(failed)?, owner) {
                    (Custodian::Root, _) => {}
                    (Custodian::User { uid, .. }, Some(owner)) if uid == owner.ids().0 => return Ok(()),
                    // In a volume of others the folder is as safe as they let it be, whoever makes it, but root has
                    // more to lose there.
                    (_, Some(_)) if self.volume.is_some() => return Ok(()),
                    (Custodian::User { at, .. } | Custodian::Many(at), _) => {
                        return Err(StoreError::Unsafe(directory.clone(), at));
                    }
                }
            }
            make(directory, owner).map_err(failed)?;
        }
        self.check_for(owner)
    }

    /// The same at the start of a server, which does not need the directory yet: on a full disk it is made when keys
    /// are written.
    ///
    /// # Errors
    /// As [`StateDirectory::prepare`].
    pub(crate) fn prepare_at_start(&self, owner: Option<&User>) -> Result<(), StoreError> {
        match self.prepare(owner) {
            Err(error) if error.is_for_room() => {
                log::error!("state directory not made: {error}; {}", error.remedy());
                IS_OWED.store(true, Ordering::Relaxed);
                Ok(())
            }
            prepared => prepared,
        }
    }

    /// Makes the directory if there was no room for it at the start. One that went away later is not made again: what
    /// was mounted there may come back with other keys.
    ///
    /// # Errors
    /// As [`StateDirectory::prepare`].
    pub(crate) fn prepare_if_owed(&self) -> Result<(), StoreError> {
        if IS_OWED.load(Ordering::Relaxed) {
            self.prepare(None)?;
            IS_OWED.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Checks the directory, if there is one.
    ///
    /// # Errors
    /// If it is no directory, or is open to others; a private folder also if it is a link, or is not the acting user's.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.check_for(None)
    }

    /// The same, if it is to belong to `owner`, or to the acting user if that is absent.
    fn check_for(&self, owner: Option<&User>) -> Result<(), StoreError> {
        let directory = &self.path;
        // A link to the state directory is the operator's; in a volume of others, it can be anybody's.
        let looked =
            if self.volume.is_some() { fs::symlink_metadata(directory) } else { fs::metadata(directory) };
        let metadata = match looked {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            result => result.map_err(|error| StoreError::Io(directory.clone(), error))?,
        };
        if metadata.is_symlink() {
            let what = "a link, where the private folder of the state directory should be";
            return Err(StoreError::NotOurs(directory.clone(), what));
        }
        if !metadata.is_dir() {
            return Err(StoreError::NotADirectory(directory.clone()));
        }
        let user = owner.map_or_else(privilege::acting_uid, |owner| owner.ids().0);
        if self.volume.is_some() && metadata.uid() != user {
            return Err(StoreError::NotOurs(directory.clone(), "a folder of another user than the server's"));
        }
        match is_open(&metadata) {
            false => Ok(()),
            true => Err(StoreError::Mode(directory.clone(), metadata.mode() & 0o7777)),
        }
    }

    /// Checks that the acting user can work in the directory, or make it if there is none. `is_by_root`: what only root
    /// can make safely would be made by root and given to this user.
    ///
    /// # Errors
    /// If the user may not, or the disk cannot be written to.
    pub(crate) fn check_access(&self, is_by_root: bool) -> Result<(), StoreError> {
        let directory = &*self.path;
        let is_root_s_to_make = is_by_root
            && (self.volume.is_none() || custodian(directory).is_ok_and(|it| it == Custodian::Root));
        let mut place = directory;
        while fs::metadata(place).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            let Some(parent) = place.parent() else { break };
            place = parent;
        }
        let wanted = match place == directory || !is_root_s_to_make {
            true => Access::WRITE_OK | Access::EXEC_OK,
            false => Access::EXEC_OK,
        };
        accessat(CWD, place, wanted, AtFlags::EACCESS)
            .map_err(|error| StoreError::Io(place.to_owned(), error.into()))
    }

    /// Says where state is kept, if that is not what was named.
    pub(crate) fn tell(&self) {
        let Some(volume) = &self.volume else { return };
        let (path, volume) = (self.path.display(), volume.display());
        log::info!("state is kept in {path}: others can look into {volume}, or could when that was made");
    }
}

fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Whether others than the owner have any right in a directory.
fn is_open(directory: &Metadata) -> bool {
    directory.mode() & 0o077 != 0
}

/// Whether state lies in the directory itself, or what cannot be looked at could be state.
fn holds_state(directory: &Path) -> bool {
    let fleet = [KeySet::NAME, StateKeys::NAME].map(disk::name);
    let own = [KeySet::NAME, StateKeys::NAME, cfnts::NAME, uses::NAME];
    let mut names = own.into_iter().chain(fleet.iter().map(String::as_str));
    names.any(|name| !is_missing(&directory.join(name)))
}

/// Makes the directory, and its parents, which everybody may enter: whatever the mask of new modes is, the directory's
/// owner must be able to.
fn make(directory: &Path, owner: Option<&User>) -> io::Result<()> {
    let missing = |path: &&Path| fs::symlink_metadata(path).is_err();
    let parents: Vec<&Path> = directory.ancestors().skip(1).take_while(missing).collect();
    for parent in parents.into_iter().rev() {
        DirBuilder::new().mode(0o755).create(parent)?;
        fs::set_permissions(parent, Permissions::from_mode(0o755))?;
    }
    DirBuilder::new().mode(0o700).create(directory)?;
    let Some((user, group)) = owner.map(User::ids) else { return Ok(()) };
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
    let made = OpenOptions::new().read(true).custom_flags(flags).open(directory)?;
    fchown(&made, Some(user), Some(group))
}

#[cfg(test)]
mod tests;
