//! What an ANTP client keeps between runs, in a directory of its user.
//!
//! ```text
//! antp-servers       servers that have spoken ANTP, one a line: they are not asked for time without authentication
//! antp-time          the last time that a server vouched for: a certificate is not judged by an earlier one
//! antp-chains/NAME   the certificate chain of a server, as ANTP encodes it
//! antp-lock          held while one of these is changed
//! ```
//!
//! Directories have mode 0700 and files 0600. A file is replaced as a whole or not at all. An invalid file is an error
//! that names it; it is never treated as missing, as that would allow what it forbids.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use authentick_net::custody::open_kept;
use authentick_net::replace::replace;
use authentick_proto::antp::client::HeldChain;
use authentick_proto::antp::sticky::{BadLine, Downgrade, Sticky};
use authentick_wire::Malformed;
use authentick_wire::antp::Chain;
use authentick_wire::limits::ANTP_CHAIN_SIZE_MAX;
use thiserror::Error;

use crate::error::Fault;
use crate::trust::rfc3339;

/// A list of [`authentick_proto::antp::sticky::SERVER_COUNT_MAX`] long names fits.
const FILE_SIZE_MAX: u64 = 512 << 10;

const HEADING: &str = "# Servers that have spoken ANTP: authentick asks them for no unauthenticated time.\n";

/// What is wrong with a file or directory that is kept.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It cannot be read.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Unreadable(PathBuf, io::Error),
    /// It cannot be written.
    #[error("cannot write {}: {}", .0.display(), .1)]
    Unwritable(PathBuf, io::Error),
    /// Others than its owner may write to the directory.
    #[error("{}: others may write to it", .0.display())]
    OpenToOthers(PathBuf),
    /// It should hold a chain of certificates.
    #[error("{}: is no certificate chain of ANTP ({})", .0.display(), .1)]
    NoChain(PathBuf, Malformed),
    /// It should hold a time.
    #[error("{}: is no time such as 2030-01-31T12:00:00Z", .0.display())]
    NoTime(PathBuf),
    /// It should hold names of servers, and is not UTF-8.
    #[error("{}: is no text", .0.display())]
    NoText(PathBuf),
    /// It should hold names of servers.
    #[error("{}: {}", .0.display(), .1)]
    BadLine(PathBuf, BadLine),
    /// It has no room for another server, or cannot hold this name.
    #[error("{}: is full, or cannot hold the name {:?}", .0.display(), .1)]
    Full(PathBuf, String),
    /// The server has spoken ANTP before: it is not asked with less.
    #[error("{1}")]
    Downgrade(PathBuf, Downgrade),
}

impl StoreError {
    /// Whether the error says that files of the store cannot be reached, rather than what is in them.
    #[must_use]
    pub const fn is_out_of_reach(&self) -> bool {
        matches!(self, StoreError::Unreadable(..))
    }

    /// What its user can do about it, in the words of the command line.
    #[must_use]
    pub fn remedy(&self) -> String {
        let elsewhere = "name another directory with --state-directory";
        match self {
            StoreError::Unreadable(_, error) => match error.kind() {
                ErrorKind::PermissionDenied => "run as a user who may read it",
                ErrorKind::InvalidData => "remove it",
                _ => elsewhere,
            },
            StoreError::Unwritable(..) => elsewhere,
            StoreError::OpenToOthers(_) => "chmod 700, or name another one with --state-directory",
            StoreError::NoChain(..) => "remove it, and it is fetched anew",
            StoreError::NoTime(_) => {
                "remove it; certificates are then judged by the time of the build and of the clock"
            }
            StoreError::NoText(_) => "remove it if no server in it needs ANTP",
            StoreError::BadLine(..) => "correct or remove that line",
            StoreError::Full(..) => {
                "remove lines that are not needed any more, or name the server by its address"
            }
            StoreError::Downgrade(path, _) => {
                return format!(
                    "if the operator of the server has given ANTP up, forget it with --forget-antp (its line in {} \
                    goes)",
                    path.display()
                );
            }
        }
        .to_owned()
    }

    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            StoreError::Unreadable(_, error) | StoreError::Unwritable(_, error) => Fault::of_access(error),
            StoreError::OpenToOthers(_)
            | StoreError::NoChain(..)
            | StoreError::NoTime(_)
            | StoreError::NoText(_)
            | StoreError::BadLine(..)
            | StoreError::Full(..) => Fault::Input,
            StoreError::Downgrade(..) => Fault::Rejected,
        }
    }
}

/// The state directory of a user.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// The store in `directory`, which need not exist.
    #[must_use]
    pub const fn at(directory: PathBuf) -> Self {
        Store { directory }
    }

    /// Creates the directory and what is missing in it. Needed before anything is kept.
    ///
    /// # Errors
    /// If it cannot be created, or others may write to it.
    pub fn prepare(&self) -> Result<(), StoreError> {
        for directory in [&self.directory, &self.directory.join("antp-chains")] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .map_err(|error| unwritable(directory, error))?;
            let metadata = fs::metadata(directory).map_err(|error| unwritable(directory, error))?;
            if metadata.permissions().mode() & 0o022 != 0 {
                return Err(StoreError::OpenToOthers(directory.clone()));
            }
        }
        Ok(())
    }

    /// The last known chain of `server`.
    ///
    /// # Errors
    /// If it cannot be read, or is not a chain.
    pub fn chain(&self, server: &str) -> Result<Option<HeldChain>, StoreError> {
        let path = self.chain_file(server);
        let Some(octets) = read(&path)? else { return Ok(None) };
        match Chain::parse(&octets) {
            Ok(chain) => Ok(Some(HeldChain::new(&chain))),
            Err(malformed) => Err(StoreError::NoChain(path, malformed)),
        }
    }

    /// Saves the chain of `server`, which was checked, and that the server has spoken ANTP.
    ///
    /// # Errors
    /// If files cannot be written, or there is no room for another server.
    pub fn keep(&self, server: &str, chain: &Chain<'_>) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        let (path, mut servers) = self.servers()?;
        if servers.admit_without(server).is_ok() {
            if !servers.remember(server) {
                return Err(StoreError::Full(path, server.to_owned()));
            }
            write(&path, (HEADING.to_owned() + &servers.to_text()).as_bytes())?;
        }
        let path = self.chain_file(server);
        if read(&path)?.as_deref() != Some(chain.octets()) {
            write(&path, chain.octets())?;
        }
        Ok(())
    }

    /// Whether `server` may be asked for time without authentication.
    ///
    /// # Errors
    /// If it has spoken ANTP.
    pub fn admit_plain(&self, server: &str) -> Result<(), StoreError> {
        let (path, servers) = self.servers()?;
        servers.admit_without(server).map_err(|downgrade| StoreError::Downgrade(path, downgrade))
    }

    /// Forgets that `server` has spoken ANTP, and its chain. Returns whether there was anything to forget.
    ///
    /// # Errors
    /// If files cannot be changed.
    pub fn forget(&self, server: &str) -> Result<bool, StoreError> {
        if !self.directory.exists() {
            return Ok(false);
        }
        let _lock = self.lock()?;
        let (path, mut servers) = self.servers()?;
        let was_there = servers.forget(server);
        if was_there {
            write(&path, (HEADING.to_owned() + &servers.to_text()).as_bytes())?;
        }
        let chain = self.chain_file(server);
        match fs::remove_file(&chain) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(was_there),
            Err(error) => Err(unwritable(&chain, error)),
        }
    }

    /// The latest saved time, in Unix seconds.
    ///
    /// # Errors
    /// If the file cannot be read, or holds no time.
    pub fn last_time(&self) -> Result<Option<u64>, StoreError> {
        let path = self.directory.join("antp-time");
        let Some(octets) = read(&path)? else { return Ok(None) };
        let time = str::from_utf8(&octets).ok().and_then(|text| humantime::parse_rfc3339(text.trim()).ok());
        let seconds = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_secs());
        seconds.map(Some).ok_or(StoreError::NoTime(path))
    }

    /// Saves a time that a server vouched for, if it is later than the saved one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save_time(&self, unix_seconds: u64) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        if self.last_time()?.is_some_and(|last| last >= unix_seconds) {
            return Ok(());
        }
        let text = format!("{}\n", rfc3339(unix_seconds));
        write(&self.directory.join("antp-time"), text.as_bytes())
    }

    fn servers(&self) -> Result<(PathBuf, Sticky), StoreError> {
        let path = self.directory.join("antp-servers");
        let octets = read(&path)?.unwrap_or_default();
        let Ok(text) = str::from_utf8(&octets) else { return Err(StoreError::NoText(path)) };
        match Sticky::parse(text) {
            Ok(servers) => Ok((path, servers)),
            Err(bad) => Err(StoreError::BadLine(path, bad)),
        }
    }

    /// Names of servers contain no slash; the prefix keeps `.` and `..` from naming directories.
    fn chain_file(&self, server: &str) -> PathBuf {
        let name = server.trim_end_matches('.').to_ascii_lowercase();
        self.directory.join("antp-chains").join(format!("of-{name}"))
    }

    /// Waits for the lock, which is released when the file is dropped.
    fn lock(&self) -> Result<File, StoreError> {
        let path = self.directory.join("antp-lock");
        open_kept(&path, true)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|error| unwritable(&path, error))
    }
}

/// What is in a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let size_max = FILE_SIZE_MAX.max(ANTP_CHAIN_SIZE_MAX as u64);
    let octets = open_kept(path, false).and_then(|file| {
        let mut octets = Vec::new();
        file.take(size_max + 1).read_to_end(&mut octets)?;
        match octets.len() as u64 > size_max {
            true => Err(io::Error::new(ErrorKind::InvalidData, "the file is too long")),
            false => Ok(octets),
        }
    });
    match octets {
        Ok(octets) => Ok(Some(octets)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::Unreadable(path.to_owned(), error)),
    }
}

fn write(path: &Path, octets: &[u8]) -> Result<(), StoreError> {
    replace(path, octets, None).map_err(|(path, error)| unwritable(&path, error))
}

fn unwritable(path: &Path, error: io::Error) -> StoreError {
    StoreError::Unwritable(path.to_owned(), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("state"));
        store.prepare().unwrap();
        (folder, store)
    }

    fn chain() -> Chain<'static> {
        Chain::parse(&[0, 3, 7, 8, 9, 0, 1, 5]).unwrap()
    }

    #[test]
    fn server_that_was_kept_is_asked_with_nothing_less_until_it_is_forgotten() {
        let (_folder, store) = store();
        assert!(store.admit_plain("ntp.test").is_ok() && store.chain("ntp.test").unwrap().is_none());
        store.keep("ntp.test", &chain()).unwrap();
        for name in ["ntp.test", "NTP.Test", "ntp.test."] {
            let refused = store.admit_plain(name).unwrap_err();
            assert_eq!(refused.fault(), Fault::Rejected);
            assert!(matches!(refused, StoreError::Downgrade(..)), "{refused}");
            assert_eq!(store.chain(name).unwrap().unwrap().octets(), chain().octets());
        }
        assert!(store.admit_plain("ntp.test:1123").is_ok(), "another port is another server");
        assert!(store.forget("ntp.test").unwrap() && !store.forget("ntp.test").unwrap());
        assert!(store.admit_plain("ntp.test").is_ok() && store.chain("ntp.test").unwrap().is_none());
    }

    #[test]
    fn time_that_is_saved_only_grows() {
        let (_folder, store) = store();
        assert_eq!(store.last_time().unwrap(), None);
        for (saved, kept) in [(1_700_000_000, 1_700_000_000), (1_600_000_000, 1_700_000_000)] {
            store.save_time(saved).unwrap();
            assert_eq!(store.last_time().unwrap(), Some(kept));
        }
    }

    #[test]
    fn files_are_private_and_corrupt_ones_are_named() {
        let (_folder, store) = store();
        store.keep("ntp.test", &chain()).unwrap();
        store.save_time(1_700_000_000).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&store.directory), 0o700);
        for name in ["antp-servers", "antp-time", "antp-chains/of-ntp.test", "antp-lock"] {
            assert_eq!(mode(&store.directory.join(name)), 0o600, "{name}");
        }
        let failure = |name: &str, octets: &[u8], of: &dyn Fn() -> StoreError| {
            fs::write(store.directory.join(name), octets).unwrap();
            let failure = of();
            assert_eq!(failure.fault(), Fault::Input);
            assert!(failure.to_string().contains(name), "{failure}");
        };
        failure("antp-servers", b"two words\n", &|| store.admit_plain("other.test").unwrap_err());
        failure("antp-servers", &[0xFF], &|| store.admit_plain("other.test").unwrap_err());
        failure("antp-time", b"yesterday", &|| store.last_time().unwrap_err());
        failure("antp-chains/of-ntp.test", &[0, 9, 1], &|| store.chain("ntp.test").unwrap_err());
        failure("antp-chains/of-ntp.test", &vec![0; 1 << 20], &|| store.chain("ntp.test").unwrap_err());
    }

    #[test]
    fn link_or_pipe_in_place_of_a_file_is_refused() {
        let (folder, store) = store();
        let victim = folder.path().join("victim");
        fs::write(&victim, "2030-01-31T12:00:00Z").unwrap();
        for name in ["antp-time", "antp-lock"] {
            std::os::unix::fs::symlink(&victim, store.directory.join(name)).unwrap();
        }
        let failure = store.last_time().unwrap_err().to_string();
        assert!(failure.contains("antp-time: a symbolic link, where a file should be"), "{failure}");
        let failure = store.save_time(1).unwrap_err().to_string();
        assert!(failure.contains("antp-lock: a symbolic link, where a file should be"), "{failure}");
        std::os::unix::fs::symlink(folder.path().join("none"), store.directory.join("antp-servers")).unwrap();
        assert!(store.admit_plain("ntp.test").is_err(), "a dangling link is not a missing file");
        fs::remove_file(store.directory.join("antp-time")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(store.directory.join("antp-time")).status();
        assert!(made.unwrap().success() && store.last_time().is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "2030-01-31T12:00:00Z");
    }

    #[test]
    fn directory_that_others_may_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let refused = Store::at(folder.path().to_owned()).prepare().unwrap_err();
        assert!(matches!(refused, StoreError::OpenToOthers(_)), "{refused}");
    }
}
