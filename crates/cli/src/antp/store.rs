//! What a client of ANTP keeps between runs, in a directory of its user's.
//!
//! ```text
//! antp-servers       servers that have spoken ANTP, one a line: they are not asked for time without authentication
//! antp-time          the last time that a server vouched for: a certificate is not judged by an earlier one
//! antp-chains/NAME   the certificate chain of a server, as ANTP encodes it
//! antp-lock          held while one of these is changed
//! ```
//!
//! Directories have mode 0700 and files 0600. A file is replaced as a whole or not at all. One that is not as it should
//! be is named, with what to do, and nothing goes on as if it were missing: that would allow what it forbids.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use authentick_daemon::replace::replace;
use authentick_proto::antp::client::HeldChain;
use authentick_proto::antp::sticky::Sticky;
use authentick_wire::antp::Chain;
use authentick_wire::limits::ANTP_CHAIN_SIZE_MAX;

use crate::exit::{Exit, Failure};
use crate::files;

/// A list of [`authentick_proto::antp::sticky::SERVER_COUNT_MAX`] long names fits.
const FILE_SIZE_MAX: u64 = 512 << 10;

const HEADING: &str = "# Servers that have spoken ANTP: authentick asks them for no unauthenticated time.\n";

/// The state directory of a user.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    directory: PathBuf,
}

impl Store {
    /// The store in `chosen`, or in the usual place. `None` if there is no such place, as nothing says where home is.
    pub(crate) fn find(chosen: Option<&Path>) -> Option<Self> {
        let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let usual = || {
            let state = from("XDG_STATE_HOME").or_else(|| Some(from("HOME")?.join(".local/state")))?;
            Some(state.join("authentick"))
        };
        let directory = chosen.map(Path::to_owned).or_else(usual)?;
        Some(Store { directory })
    }

    /// The same for who must keep something; the directory is made if it is missing.
    ///
    /// # Errors
    /// If there is no place for it, or others may write to it.
    pub(crate) fn prepare(chosen: Option<&Path>) -> Result<Self, Failure> {
        let store = Store::find(chosen).ok_or_else(|| {
            let message = "nothing says where to keep what is known of servers: set HOME, or name a directory \
                           with --state-directory";
            Failure::new(Exit::Configuration, message)
        })?;
        for directory in [&store.directory, &store.directory.join("antp-chains")] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .map_err(|error| unwritable(directory, &error))?;
            let metadata = fs::metadata(directory).map_err(|error| unwritable(directory, &error))?;
            if metadata.permissions().mode() & 0o022 != 0 {
                let remedy = "chmod 700, or name another one with --state-directory";
                return Err(files::wrong(directory, "others may write to it", remedy));
            }
        }
        Ok(store)
    }

    /// The chain that `server` had last time.
    pub(crate) fn chain(&self, server: &str) -> Result<Option<HeldChain>, Failure> {
        let path = self.chain_file(server);
        let Some(octets) = read(&path)? else { return Ok(None) };
        let chain = Chain::parse(&octets).map_err(|malformed| {
            let problem = format!("is no certificate chain of ANTP ({malformed})");
            files::wrong(&path, &problem, "remove it, and it is fetched anew")
        })?;
        Ok(Some(HeldChain::new(&chain)))
    }

    /// Keeps the chain of `server`, which was checked, and that the server has spoken ANTP.
    pub(crate) fn keep(&self, server: &str, chain: &Chain<'_>) -> Result<(), Failure> {
        let _lock = self.lock()?;
        let (path, mut servers) = self.servers()?;
        if servers.admit_without(server).is_ok() {
            if !servers.remember(server) {
                let problem = format!("is full, or cannot hold the name {server:?}");
                let remedy = "remove lines that are not needed any more, or name the server by its address";
                return Err(files::wrong(&path, &problem, remedy));
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
    /// If it has spoken ANTP; what to do if that is no longer so is said.
    pub(crate) fn admit_plain(&self, server: &str) -> Result<(), Failure> {
        let (path, servers) = self.servers()?;
        servers.admit_without(server).map_err(|downgrade| {
            let message = format!(
                "{downgrade}; if the operator of the server has given ANTP up, forget it with --forget-antp (its line \
                 in {} goes)",
                path.display()
            );
            Failure::new(Exit::Authentication, message)
        })
    }

    /// Forgets that `server` has spoken ANTP, and its chain; whether there was anything to forget.
    pub(crate) fn forget(&self, server: &str) -> Result<bool, Failure> {
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
            Err(error) => Err(unwritable(&chain, &error)),
        }
    }

    /// The last time that was saved, in Unix seconds.
    pub(crate) fn last_time(&self) -> Result<Option<u64>, Failure> {
        let path = self.directory.join("antp-time");
        let Some(octets) = read(&path)? else { return Ok(None) };
        let time = str::from_utf8(&octets).ok().and_then(|text| humantime::parse_rfc3339(text.trim()).ok());
        let seconds = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_secs());
        seconds.map(Some).ok_or_else(|| {
            let remedy = "remove it; certificates are then judged by the time of the build and of the clock";
            files::wrong(&path, "is no time such as 2030-01-31T12:00:00Z", remedy)
        })
    }

    /// Saves a time that a server vouched for, if it is later than the one that is saved.
    pub(crate) fn save_time(&self, unix_seconds: u64) -> Result<(), Failure> {
        let _lock = self.lock()?;
        if self.last_time()?.is_some_and(|last| last >= unix_seconds) {
            return Ok(());
        }
        let text = format!("{}\n", humantime::format_rfc3339_seconds(instant(unix_seconds)));
        write(&self.directory.join("antp-time"), text.as_bytes())
    }

    fn servers(&self) -> Result<(PathBuf, Sticky), Failure> {
        let path = self.directory.join("antp-servers");
        let octets = read(&path)?.unwrap_or_default();
        let text = str::from_utf8(&octets)
            .map_err(|_| files::wrong(&path, "is no text", "remove it if no server in it needs ANTP"))?;
        let servers = Sticky::parse(text)
            .map_err(|bad| files::wrong(&path, &bad.to_string(), "correct or remove that line"))?;
        Ok((path, servers))
    }

    /// Names of servers have no slash; the leading letter keeps the dots of `.` and `..` apart from directories.
    fn chain_file(&self, server: &str) -> PathBuf {
        let name = server.trim_end_matches('.').to_ascii_lowercase();
        self.directory.join("antp-chains").join(format!("of-{name}"))
    }

    /// Waits for the lock, which is released when dropped.
    fn lock(&self) -> Result<File, Failure> {
        let path = self.directory.join("antp-lock");
        let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        opened.and_then(|file| file.lock().map(|()| file)).map_err(|error| unwritable(&path, &error))
    }
}

/// A point in time for people.
pub(crate) fn instant(unix_seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(unix_seconds)
}

/// What is in a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    let size_max = FILE_SIZE_MAX.max(ANTP_CHAIN_SIZE_MAX as u64);
    let octets = fs::metadata(path).and_then(|metadata| match metadata.len() > size_max {
        true => Err(io::Error::new(ErrorKind::InvalidData, "the file is too long")),
        false => fs::read(path),
    });
    match octets {
        Ok(octets) => Ok(Some(octets)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(files::unreadable(path, &error, "remove it", "name another directory with --state-directory"))
        }
    }
}

fn write(path: &Path, octets: &[u8]) -> Result<(), Failure> {
    replace(path, octets, None).map_err(|(path, error)| unwritable(&path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    files::unwritable(path, error, "name another directory with --state-directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::prepare(Some(&folder.path().join("state"))).unwrap();
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
            assert_eq!(refused.exit, Exit::Authentication);
            assert!(refused.message.contains("--forget-antp"), "{}", refused.message);
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
    fn files_are_private_and_corrupt_ones_are_named_with_a_remedy() {
        let (_folder, store) = store();
        store.keep("ntp.test", &chain()).unwrap();
        store.save_time(1_700_000_000).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&store.directory), 0o700);
        for name in ["antp-servers", "antp-time", "antp-chains/of-ntp.test", "antp-lock"] {
            assert_eq!(mode(&store.directory.join(name)), 0o600, "{name}");
        }
        let failure = |name: &str, octets: &[u8], of: &dyn Fn() -> Failure| {
            fs::write(store.directory.join(name), octets).unwrap();
            let failure = of();
            assert_eq!(failure.exit, Exit::Configuration);
            assert!(
                failure.message.contains(name) && failure.message.contains("remove"),
                "{}",
                failure.message
            );
        };
        failure("antp-servers", b"two words\n", &|| store.admit_plain("other.test").unwrap_err());
        failure("antp-servers", &[0xFF], &|| store.admit_plain("other.test").unwrap_err());
        failure("antp-time", b"yesterday", &|| store.last_time().unwrap_err());
        failure("antp-chains/of-ntp.test", &[0, 9, 1], &|| store.chain("ntp.test").unwrap_err());
        failure("antp-chains/of-ntp.test", &vec![0; 1 << 20], &|| store.chain("ntp.test").unwrap_err());
    }

    #[test]
    fn directory_that_others_may_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let refused = Store::prepare(Some(folder.path())).unwrap_err();
        assert!(refused.message.contains("chmod 700"), "{}", refused.message);
    }
}
