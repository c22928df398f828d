//! Files that a user named and that are not as they should be: which one, what is wrong, and what to do.

use std::io::{Error, ErrorKind};
use std::path::Path;

use crate::exit::{Exit, Failure};

/// A file with the wrong content.
pub(crate) fn wrong(path: &Path, problem: &str, remedy: &str) -> Failure {
    Exit::Configuration.because(format!("{}: {problem}; {remedy}", path.display()))
}

/// A file that cannot be read; what to do if it is no text, and if it is something else than a want of rights.
pub(crate) fn unreadable(path: &Path, error: &Error, if_no_text: &str, otherwise: &str) -> Failure {
    let remedy = match error.kind() {
        ErrorKind::PermissionDenied => "run as a user who may read it",
        ErrorKind::InvalidData => if_no_text,
        _ => otherwise,
    };
    Exit::of_access(error).because(format!("cannot read {}: {error}; {remedy}", path.display()))
}

/// What is in a file that an option names.
pub(crate) fn read(option: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        Exit::of_access(&error).because(format!("{option} {}: cannot read: {error}", path.display()))
    })
}

/// A file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &Error, remedy: &str) -> Failure {
    Exit::of_access(error).because(format!("cannot write {}: {error}; {remedy}", path.display()))
}

/// Writes what `option` names.
pub(crate) fn write(option: &str, path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| unwritable(path, &error, &format!("name another file with {option}")))
}

/// Refuses a page that could not be written later, as that would waste everything else.
pub(crate) fn check_page(path: Option<&Path>) -> Result<(), Failure> {
    let check = |path| {
        check_writable(path).map_err(|error| unwritable(path, &error, "name another file with --html"))
    };
    path.map_or(Ok(()), check)
}

/// Whether a file can be written later. Leaves none behind that was not there.
pub(crate) fn check_writable(path: &Path) -> std::io::Result<()> {
    let was_there = path.exists();
    std::fs::OpenOptions::new().append(true).create(true).open(path)?;
    if !was_there {
        // If it cannot be removed it can be written, which is what matters.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}
