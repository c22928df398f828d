//! The age of the key that seals, in a file beside that of its set: it survives a restart even on a host whose wall
//! clock does not.
//!
//! ```text
//! authentick-key-age 1
//! 5f3a0c11 81200
//! ```
//!
//! The identifier of the key, and seconds. Nothing in it is secret, and it only affects when the key rotates: a file
//! that is missing, damaged or about another key counts as age zero. After a crash a key looks younger, by at most the
//! time between two writes.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::replace::{Refused, beside, replace};

const MAGIC: &str = "authentick-key-age 1";
/// Many times what the file has.
const FILE_SIZE_MAX: u64 = 256;

/// The file of one kind of keys.
#[derive(Clone, Debug)]
pub(crate) struct AgeFile(PathBuf);

impl AgeFile {
    /// The file that belongs to the key set in `keys`.
    pub(crate) fn of(keys: &Path) -> Self {
        AgeFile(beside(keys, ".age"))
    }

    /// The age of the key `id` when it was last written; zero if nothing is known.
    ///
    /// # Errors
    /// If there is a file, and it cannot be read or says nothing of the kind.
    pub(crate) fn read(&self, id: u32) -> Result<Duration, Refused> {
        let text = match self.text() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Duration::ZERO),
            result => result.map_err(|error| (self.0.clone(), error))?,
        };
        let damaged = || (self.0.clone(), io::Error::new(io::ErrorKind::InvalidData, "no age of a key"));
        let (of, seconds) = parse(&text).ok_or_else(damaged)?;
        Ok(if of == id { Duration::from_secs(seconds) } else { Duration::ZERO })
    }

    /// Writes the age of the key `id`.
    ///
    /// # Errors
    /// If the file cannot be written whole; the old one is then still in place.
    pub(crate) fn write(&self, id: u32, age: Duration) -> Result<(), Refused> {
        replace(&self.0, format!("{MAGIC}\n{id:08x} {}\n", age.as_secs()).as_bytes(), None)
    }

    fn text(&self) -> io::Result<String> {
        // A link or a FIFO that somebody has put there must neither lead elsewhere nor stop the start.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let file = OpenOptions::new().read(true).custom_flags(flags as i32).open(&self.0)?;
        let mut text = String::new();
        file.take(FILE_SIZE_MAX).read_to_string(&mut text)?;
        Ok(text)
    }
}

fn parse(text: &str) -> Option<(u32, u64)> {
    let (id, seconds) = text.strip_prefix(MAGIC)?.strip_prefix('\n')?.strip_suffix('\n')?.split_once(' ')?;
    Some((u32::from_str_radix(id, 16).ok()?, seconds.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_that_of_its_key_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = AgeFile::of(&folder.path().join("cookie-keys"));
        assert_eq!(file.read(7).unwrap(), Duration::ZERO);
        file.write(7, Duration::from_millis(81_200_900)).unwrap();
        assert_eq!(file.read(7).unwrap(), Duration::from_secs(81_200));
        assert_eq!(file.read(8).unwrap(), Duration::ZERO);
        assert!(folder.path().join("cookie-keys.age").exists());
    }

    #[test]
    fn damaged_file_is_named_and_stops_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = AgeFile::of(&folder.path().join("cookie-keys"));
        let good = format!("{MAGIC}\n00000007 60\n");
        for damaged in ["", "hello", "authentick-key-age 2\n00000007 60\n", &good[..good.len() - 1]] {
            std::fs::write(&file.0, damaged).unwrap();
            let (path, error) = file.read(7).unwrap_err();
            assert_eq!((path, error.kind()), (file.0.clone(), io::ErrorKind::InvalidData), "{damaged:?}");
        }
        std::fs::write(&file.0, [0xFF; 100]).unwrap();
        assert!(file.read(7).is_err());
        std::fs::remove_file(&file.0).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &file.0).unwrap();
        assert!(file.read(7).is_err(), "a link is not followed");
        std::fs::remove_file(&file.0).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &file.0, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .unwrap();
        assert!(file.read(7).is_err(), "a FIFO stops nothing");
    }
}
