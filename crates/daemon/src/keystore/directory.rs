//! The state directory: made if it is missing, and open to its owner only.
//!
//! Root makes it only where nobody else can put a link or another directory in its way meanwhile ([`crate::custody`]).
//! Where that could be the server's own user, that user makes it itself, once the process has become that user.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

use authentick_net::privilege::{self, User};
use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};

use super::error::StoreError;
use crate::custody::{Custodian, custodian};

/// Makes the directory if it is missing (mode 0700, for `owner` if one is given), and checks that nobody else can look
/// into it.
///
/// # Errors
/// If it cannot be made, is no directory, or is open to others.
pub(crate) fn prepare(directory: &Path, owner: Option<&User>) -> Result<(), StoreError> {
    let failed = |error| StoreError::Io(directory.to_owned(), error);
    if fs::symlink_metadata(directory).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        if privilege::is_root()
            && let Some(owner) = owner
        {
            match custodian(directory).map_err(failed)? {
                Custodian::Root => {}
                Custodian::User { uid, .. } if uid == owner.ids().0 => return Ok(()),
                Custodian::User { at, .. } | Custodian::Many(at) => {
                    return Err(StoreError::Unsafe(directory.to_owned(), at));
                }
            }
        }
        make(directory, owner).map_err(failed)?;
    }
    check(directory)
}

/// Checks the directory, if there is one.
///
/// # Errors
/// If it is no directory, or is open to others.
pub(crate) fn check(directory: &Path) -> Result<(), StoreError> {
    let metadata = match fs::metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        result => result.map_err(|error| StoreError::Io(directory.to_owned(), error))?,
    };
    if !metadata.is_dir() {
        return Err(StoreError::NotADirectory(directory.to_owned()));
    }
    match metadata.mode() & 0o7777 {
        mode if mode & 0o077 == 0 => Ok(()),
        mode => Err(StoreError::Mode(directory.to_owned(), mode)),
    }
}

/// Checks that the acting user can work in the directory, or make it if there is none. `is_root_s_to_make`: it would be
/// made by root and given to this user.
///
/// # Errors
/// If the user may not, or the disk cannot be written to.
pub(crate) fn check_access(directory: &Path, is_root_s_to_make: bool) -> Result<(), StoreError> {
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
