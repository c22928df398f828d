//! Replacing a file of secrets or of state as a whole: a crash or a full disk leaves the old one.
//!
//! It is never written in place. For results that a user names, see [`crate::report_file`].
//!
//! What is written, and given to its owner, is a file that was just made and has no other name. Where others could put
//! links into the directory meanwhile, root must not write as root; whose directory it is, the caller knows.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::BuildHasher as _;
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

/// How names of new files begin, before as many hexadecimal digits as [`TAG_SIZE`].
const TEMPORARY_PREFIX: &str = ".authentick-";
const TAG_SIZE: usize = 16;

/// Writes `octets` to a new file beside `target`, flushes them to the disk, and renames. The file has mode 0600, and
/// belongs to `owner` (user and group) if root writes it.
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

/// The folder that a file is in.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether a file of this name was made here, and left behind by a crash.
#[must_use]
pub fn is_temporary(name: &str) -> bool {
    let tag = name.strip_prefix(TEMPORARY_PREFIX);
    tag.is_some_and(|tag| tag.len() == TAG_SIZE && tag.bytes().all(|octet| octet.is_ascii_hexdigit()))
}

/// A new file in `folder`, of a name that no other file has, whatever the length of other names there.
pub(crate) fn temporary_in(folder: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    options.create_new(true).write(true).mode(mode);
    loop {
        let tag = RandomState::new().hash_one(std::process::id());
        let path = folder.join(format!("{TEMPORARY_PREFIX}{tag:0TAG_SIZE$x}"));
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (path, file)),
        }
    }
}

fn replace_as(target: &Path, octets: &[u8], rights: Rights) -> Result<(), Refused> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| (path, error)
    };
    // A link would be replaced, and a directory refused; anything else than a file was put there by mistake, or worse.
    match fs::symlink_metadata(target) {
        Ok(metadata) if !metadata.is_file() && !metadata.is_symlink() => {
            return Err(at(target)(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        _ => {}
    }
    let folder = folder_of(target);
    let (fresh, file) = temporary_in(folder, rights.mode).map_err(at(folder))?;
    let written = fill(file, octets, rights).map_err(at(target)).and_then(|()| {
        fs::rename(&fresh, target).map_err(at(target))?;
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(folder);
        opened.and_then(|folder| folder.sync_all()).map_err(at(folder))
    });
    if written.is_err() {
        // A part of a file helps nothing, and may be what filled the disk.
        let _ = fs::remove_file(&fresh);
    }
    written
}

/// Gives a new file its owner and mode, and writes it to the disk.
fn fill(mut file: File, octets: &[u8], rights: Rights) -> io::Result<()> {
    if let Some((user, group)) = rights.owner.filter(|_| privilege::is_root()) {
        fchown(&file, Some(user), Some(group))?;
    }
    if rights.is_exact {
        file.set_permissions(Permissions::from_mode(rights.mode))?;
    }
    file.write_all(octets)?;
    file.sync_all()
}
