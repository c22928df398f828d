//! Files that a user names for results: records, pages, tables.
//!
//! A [`ReportFile`] is opened before the work whose result it takes, without touching what is in it, and stays open. So
//! what cannot be written is known early, and outputs can be compared with each other and with inputs before an octet
//! is lost. Links are followed as a shell does. A plain file with one name is replaced as a whole where its folder
//! allows that; everything else is written in place. Secrets and state are in [`crate::replace`], which never does.
//!
//! Root uses the rights of another user where that user could put a link: in a directory or through a link that is
//! that user's.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Seek as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::custody::{Custodian, custodian};
use crate::privilege;
use crate::replace;

/// The name that stands for standard output, and for standard input where a file is read.
pub const STANDARD: &str = "-";

/// How long a pipe without a reader is waited for.
pub const READER_PATIENCE: Duration = Duration::from_secs(10);

/// Between two attempts at it.
const READER_INTERVAL: Duration = Duration::from_millis(50);

/// Links in a row that [`is_descriptor`] follows, as many as the kernel does.
const LINK_COUNT_MAX: usize = 40;

/// What a file gets that was not there, as far as the process's mask lets it.
const MODE: u32 = 0o666;

/// User and group with whose rights root works.
type Owner = (u32, u32);

/// A file for a result, open. One that this made is removed again if nothing is written.
#[derive(Debug)]
pub struct ReportFile {
    name: PathBuf,
    file: File,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A regular file.
    Plain(Plain),
    /// A pipe, a device, a terminal, or whatever standard output is: written once, in order.
    Stream {
        /// Whether it is this process's standard output or error, whose reader may leave, as `head` does.
        is_standard: bool,
    },
}

#[derive(Debug)]
struct Plain {
    /// Where all links lead; `None` if that has no name.
    target: Option<PathBuf>,
    owner: Option<Owner>,
    /// Whether it was made here, and has nothing in it yet.
    is_new: bool,
}

/// What tells a regular file from others: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(u64, u64);

impl FileId {
    fn of(metadata: &Metadata) -> Self {
        FileId(metadata.dev(), metadata.ino())
    }

    /// That of the regular file `path`, links followed; `None` if it is none.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().filter(Metadata::is_file).map(|metadata| FileId::of(&metadata))
    }

    /// That of an open regular file, such as standard input; `None` if it is a pipe, a device or a terminal.
    #[must_use]
    pub fn of_open(file: &impl AsFd) -> Option<Self> {
        let metadata = descriptor(file).and_then(|file| file.metadata()).ok()?;
        metadata.is_file().then(|| FileId::of(&metadata))
    }
}

/// Whether `name` is [`STANDARD`] or leads to an open descriptor, as `/dev/stdout` does, and not to a file by its name.
#[must_use]
pub fn is_descriptor(name: &Path) -> bool {
    let mut name = name.to_owned();
    for _ in 0..LINK_COUNT_MAX {
        let Ok(folder) = fs::canonicalize(replace::folder_of(&name)) else { break };
        if folder.starts_with("/proc") && folder.ends_with("fd") {
            return true;
        }
        let Ok(target) = fs::read_link(&name) else { break };
        name = folder.join(target);
    }
    name == Path::new(STANDARD)
}

impl ReportFile {
    /// Opens the file `name`, or makes it; [`STANDARD`] is standard output. What is in it stays until
    /// [`ReportFile::write`]. For a pipe that has no reader, calls `waiting` again and again, for
    /// [`READER_PATIENCE`] and as long as it returns true.
    ///
    /// # Errors
    /// If it cannot be written: the system's reason.
    pub fn open(name: &Path, waiting: impl FnMut() -> bool + Send) -> io::Result<Self> {
        let stream = |file, is_standard| ReportFile {
            name: name.to_owned(),
            file,
            kind: Kind::Stream { is_standard },
        };
        if name == Path::new(STANDARD) {
            return Ok(stream(descriptor(&io::stdout())?, true));
        }
        let (owner, follow) = rights(name)?;
        let (file, is_new) = as_owner(owner, || open_patiently(name, follow, waiting))?;
        let metadata = file.metadata()?;
        for own in [descriptor(&io::stdout()), descriptor(&io::stderr())].into_iter().flatten() {
            // Another description of the same file would write over what this one has written.
            if own
                .metadata()
                .is_ok_and(|own| (FileId::of(&own), own.rdev()) == (FileId::of(&metadata), metadata.rdev()))
            {
                if metadata.is_file() && !is_descriptor(name) {
                    let problem = "standard output or error goes to the same file";
                    return Err(io::Error::new(ErrorKind::AlreadyExists, problem));
                }
                return Ok(stream(own, true));
            }
        }
        if !metadata.is_file() {
            return Ok(stream(file, false));
        }
        if !follow && metadata.nlink() > 1 {
            return Err(io::Error::new(
                ErrorKind::PermissionDenied,
                "it has other names, in a folder of many users",
            ));
        }
        let target = as_owner(owner, || fs::canonicalize(name)).ok();
        Ok(ReportFile { name: name.to_owned(), file, kind: Kind::Plain(Plain { target, owner, is_new }) })
    }

    /// The name under which it was opened.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Which file it is; `None` if it is no regular one, and so can be written twice without loss.
    #[must_use]
    pub fn id(&self) -> Option<FileId> {
        match self.kind {
            Kind::Plain(_) => self.file.metadata().ok().map(|metadata| FileId::of(&metadata)),
            Kind::Stream { .. } => None,
        }
    }

    /// Whether each write replaces the one before; what is no regular file is to be written once.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        matches!(self.kind, Kind::Plain(_))
    }

    /// Writes `octets` in place of what is in the file. Whoever reads a plain file with one name meanwhile finds what
    /// was there before, or all of them. That the reader of standard output has left is no error.
    ///
    /// # Errors
    /// If they cannot be written whole.
    pub fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        match &mut self.kind {
            Kind::Stream { is_standard } => match self.file.write_all(octets) {
                Err(error) if *is_standard && error.kind() == ErrorKind::BrokenPipe => Ok(()),
                written => written,
            },
            Kind::Plain(plain) => {
                let (owner, file) = (plain.owner, &mut self.file);
                as_owner(owner, || plain.write(file, octets))?;
                plain.is_new = false;
                Ok(())
            }
        }
    }

    /// Empties the file and returns it, for a result that is written as it grows.
    ///
    /// # Errors
    /// If it cannot be emptied.
    pub fn into_growing(mut self) -> io::Result<File> {
        if let Kind::Plain(plain) = &mut self.kind {
            self.file.set_len(0)?;
            plain.is_new = false;
        }
        self.file.try_clone()
    }
}

impl Drop for ReportFile {
    fn drop(&mut self) {
        if let Kind::Plain(Plain { target: Some(target), owner, is_new: true }) = &self.kind {
            let is_ours = FileId::of_path(target) == self.id();
            if is_ours {
                // If it cannot be removed, an empty file is left.
                let _ = as_owner(*owner, || fs::remove_file(target));
            }
        }
    }
}

/// Writes a whole file that a user named.
///
/// # Errors
/// If it cannot be written.
pub fn write(name: &Path, octets: &[u8]) -> io::Result<()> {
    ReportFile::open(name, || true)?.write(octets)
}

/// Another descriptor of an open file.
fn descriptor(file: &impl AsFd) -> io::Result<File> {
    file.as_fd().try_clone_to_owned().map(File::from)
}

/// With whose rights root opens a file, and whether it follows a link there.
fn rights(name: &Path) -> io::Result<(Option<Owner>, bool)> {
    if !privilege::is_root() {
        return Ok((None, true));
    }
    match custodian(name) {
        Ok(Custodian::User { uid, gid, .. }) => Ok((Some((uid, gid)), true)),
        Ok(Custodian::Many(_)) => Ok((None, false)),
        // What cannot be looked at cannot be opened either, and then says why.
        Ok(Custodian::Root) | Err(_) => Ok((None, true)),
    }
}

/// Does `work` with the rights of a user alone, if one is named: on a thread that has no others and ends with it.
fn as_owner<T: Send>(owner: Option<Owner>, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let Some((uid, gid)) = owner else { return work() };
    let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            set_thread_groups(&[])?;
            set_thread_res_gid(gid, gid, gid)?;
            set_thread_res_uid(uid, uid, uid)?;
            work()
        });
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed")))
    })
}

/// Opens a file for writing as [`open_once`] does; a pipe as soon as it has a reader.
fn open_patiently(name: &Path, follow: bool, mut waiting: impl FnMut() -> bool) -> io::Result<(File, bool)> {
    let end = Instant::now() + READER_PATIENCE;
    let is_pipe = || fs::metadata(name).is_ok_and(|metadata| metadata.file_type().is_fifo());
    let (file, is_new) = loop {
        match open_once(name, follow) {
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) && is_pipe() => {
                if Instant::now() >= end {
                    let problem = format!("no reader opened the pipe within {} s", READER_PATIENCE.as_secs());
                    return Err(io::Error::new(ErrorKind::TimedOut, problem));
                }
                if !waiting() {
                    return Err(ErrorKind::Interrupted.into());
                }
                std::thread::sleep(READER_INTERVAL);
            }
            opened => break opened?,
        }
    };
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok((file, is_new))
}

/// Opens a file for writing, without waiting, and makes it if it is not there; whether it did.
fn open_once(name: &Path, follow: bool) -> io::Result<(File, bool)> {
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    flags.set(OFlags::NOFOLLOW, !follow);
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(flags.bits().cast_signed());
    match options.open(name) {
        // Separately, as the kernel refuses to "create" what others own in a folder like /tmp.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            options.create(true).mode(MODE).open(name).map(|file| (file, true))
        }
        opened => opened.map(|file| (file, false)),
    }
}

impl Plain {
    fn write(&self, file: &mut File, octets: &[u8]) -> io::Result<()> {
        if let Some(target) = self.replaceable(file) {
            match replace_plain(target, file, octets) {
                Ok(fresh) => {
                    *file = fresh;
                    return Ok(());
                }
                Err(error) if is_of_space(&error) => return Err(error),
                // The folder takes no new file, or the name cannot be taken from its file.
                Err(_) => {}
            }
        }
        write_in_place(file, octets)
    }

    /// The name that a new file can take without loss: of a file with no other name, and of this user.
    fn replaceable(&self, file: &File) -> Option<&Path> {
        let metadata = file.metadata().ok()?;
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        self.target.as_deref().filter(|_| is_own && metadata.nlink() <= 1)
    }
}

/// Puts a new file with `octets` in the place of `target`, which is open as `old`.
fn replace_plain(target: &Path, old: &File, octets: &[u8]) -> io::Result<File> {
    let metadata = old.metadata()?;
    let (path, mut fresh) = replace::temporary_in(replace::folder_of(target), 0o600)?;
    let mut written = || {
        // Of a folder with its set-group bit, or given to a group of this user.
        fchown(&fresh, None, Some(metadata.gid())).or_else(|error| match error.kind() {
            ErrorKind::PermissionDenied => Ok(()),
            _ => Err(error),
        })?;
        fresh.set_permissions(Permissions::from_mode(metadata.mode() & 0o7777))?;
        fresh.write_all(octets)?;
        fresh.sync_all()?;
        fs::rename(&path, target)
    };
    match written() {
        Ok(()) => Ok(fresh),
        Err(error) => {
            let _ = fs::remove_file(&path);
            Err(error)
        }
    }
}

/// Writes over what is in a file. What a full disk refuses is known before an old octet is lost.
fn write_in_place(file: &mut File, octets: &[u8]) -> io::Result<()> {
    let (old, new) = (file.metadata()?.len(), octets.len() as u64);
    if new > old {
        match rustix::fs::fallocate(&*file, FallocateFlags::empty(), 0, new) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {}
            Err(error) => {
                file.set_len(old)?;
                return Err(error.into());
            }
        }
    }
    file.rewind()?;
    file.write_all(octets)?;
    file.set_len(new)?;
    file.sync_all()
}

/// Whether nothing would help but room.
fn is_of_space(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

#[cfg(test)]
mod tests;
