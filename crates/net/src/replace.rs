//! Replacing a file as a whole: a crash or a full disk leaves the old one.
//!
//! What is written, and given to its owner, is a file that was just made and has no other name. Where others could put
//! links into the directory meanwhile, root must not write as root; whose directory it is, the caller knows.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::privilege;

/// An operation that the system refused, and on which path.
pub type Refused = (PathBuf, io::Error);

/// `path` with `suffix` behind its name.
#[must_use]
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// Writes `octets` to `target.new`, flushes them to the disk, and renames. The file has mode 0600, and belongs to
/// `owner` (user and group) if root writes it.
///
/// # Errors
/// If the new file cannot be written whole; the old one is then still in place.
pub fn replace(target: &Path, octets: &[u8], owner: Option<(u32, u32)>) -> Result<(), Refused> {
    replace_as(target, octets, Rights { mode: 0o600, is_exact: false, owner })
}

/// The same for a file that its group may go on reading: if root writes it, it has mode 0640, whatever the process's
/// mask is. Others cannot give it the group that it had, so it has mode 0600 then.
///
/// # Errors
/// If the new file cannot be written whole; the old one is then still in place.
pub fn replace_for_group(target: &Path, octets: &[u8], owner: (u32, u32)) -> Result<(), Refused> {
    let owner = Some(owner);
    match privilege::is_root() {
        true => replace_as(target, octets, Rights { mode: 0o640, is_exact: true, owner }),
        false => replace(target, octets, owner),
    }
}

/// The same for a file that others may read: it has this mode, less the process's mask, and belongs to whoever writes
/// it.
///
/// # Errors
/// If the new file cannot be written whole; the old one is then still in place.
pub fn replace_with_mode(target: &Path, octets: &[u8], mode: u32) -> Result<(), Refused> {
    replace_as(target, octets, Rights { mode, is_exact: false, owner: None })
}

/// Who may do what with a new file.
#[derive(Clone, Copy)]
struct Rights {
    mode: u32,
    /// Whether the process's mask takes nothing away.
    is_exact: bool,
    /// User and group, if root writes it.
    owner: Option<(u32, u32)>,
}

fn replace_as(target: &Path, octets: &[u8], rights: Rights) -> Result<(), Refused> {
    let fresh = beside(target, ".new");
    let written = write(&fresh, target, octets, rights);
    if written.is_err() {
        // A part of a file helps nobody, and may be what filled the disk.
        let _ = fs::remove_file(&fresh);
    }
    written
}

fn write(fresh: &Path, target: &Path, octets: &[u8], rights: Rights) -> Result<(), Refused> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| (path, error)
    };
    // A leftover of a crash might have another mode.
    match fs::remove_file(fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(fresh)(error)),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.create_new(true).write(true).mode(rights.mode);
    let mut file = options.open(fresh).map_err(at(fresh))?;
    if let Some((user, group)) = rights.owner.filter(|_| privilege::is_root()) {
        fchown(&file, Some(user), Some(group)).map_err(at(fresh))?;
    }
    if rights.is_exact {
        file.set_permissions(Permissions::from_mode(rights.mode)).map_err(at(fresh))?;
    }
    file.write_all(octets).map_err(at(fresh))?;
    file.sync_all().map_err(at(fresh))?;
    fs::rename(fresh, target).map_err(at(target))?;
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(directory);
    opened.and_then(|directory| directory.sync_all()).map_err(at(directory))
}
