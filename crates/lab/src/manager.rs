//! A service manager, as far as a server notices: it hears how the server does, keeps its sockets, and hands them to
//! the next one. sd_notify(3), sd_listen_fds(3).

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tempfile::TempDir;

use crate::process::{PATIENCE, Process};

/// Descriptors in one message at most: SCM_MAX_FD of linux/socket.h.
const RECEIVED_COUNT_MAX: usize = 253;
/// Where descriptors stand that a shell moves to their places: above all that a test has open.
const FIRST_ASIDE: i32 = 500;

/// A service manager.
#[derive(Debug)]
pub struct ServiceManager {
    socket: UnixDatagram,
    folder: TempDir,
    kept: Vec<(String, OwnedFd)>,
}

impl Default for ServiceManager {
    fn default() -> Self {
        Self::new()
    }
}

impl ServiceManager {
    /// One that keeps nothing yet.
    ///
    /// # Panics
    /// If there is no room for its socket.
    #[must_use]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        ServiceManager { socket, folder, kept: Vec::new() }
    }

    /// Starts `program` with what is kept, and the wish to hear of it.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(&self, program: &Command) -> Process {
        let mut script = String::new();
        let mut aside = Vec::new();
        for (place, (_, socket)) in (3..).zip(&self.kept) {
            let copy = fcntl_dupfd_cloexec(socket, FIRST_ASIDE).unwrap();
            fcntl_setfd(&copy, FdFlags::empty()).unwrap();
            let number = std::os::fd::AsRawFd::as_raw_fd(&copy);
            script.push_str(&format!("exec {place}<&{number} {number}<&-; "));
            aside.push(copy);
        }
        script.push_str("export LISTEN_PID=$$; exec \"$0\" \"$@\"");
        let names: Vec<&str> = self.kept.iter().map(|(name, _)| name.as_str()).collect();
        let mut command = Command::new("bash");
        command.args(["-c", &script]).arg(program.get_program()).args(program.get_args());
        command.env("NOTIFY_SOCKET", self.folder.path().join("notify"));
        command.env("LISTEN_FDS", names.len().to_string()).env("LISTEN_FDNAMES", names.join(":"));
        for (name, value) in program.get_envs() {
            command.env(name, value.expect("variables are set, not removed"));
        }
        Process::start(&mut command)
    }

    /// Hears words until one of them has `part` in it; returns that.
    ///
    /// # Panics
    /// If it does not come.
    pub fn hear(&mut self, part: &str) -> String {
        let mut heard = Vec::new();
        loop {
            match self.next() {
                Ok(word) if word.contains(part) => return word,
                Ok(word) => heard.push(word),
                Err(error) => panic!("the server does not say {part:?}: {error}; it said {heard:?}"),
            }
        }
    }

    /// The names under which sockets are kept.
    #[must_use]
    pub fn kept(&self) -> Vec<&str> {
        self.kept.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The next word; what it asks for is done.
    fn next(&mut self) -> io::Result<String> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RECEIVED_COUNT_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut text = [0; 4096];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let size = recvmsg(&self.socket, &mut [IoSliceMut::new(&mut text)], &mut ancillary, flags)?.bytes;
        let word = String::from_utf8_lossy(&text[..size]).into_owned();
        let name = word.lines().find_map(|line| line.strip_prefix("FDNAME=")).unwrap_or("stored").to_owned();
        if word.contains("FDSTOREREMOVE=1") {
            self.kept.retain(|(kept, _)| *kept != name);
        }
        for message in ancillary.drain() {
            let RecvAncillaryMessage::ScmRights(sockets) = message else { continue };
            for socket in sockets {
                if !self.kept.iter().any(|(_, kept)| inode(kept) == inode(&socket)) {
                    self.kept.push((name.clone(), socket));
                }
            }
        }
        Ok(word)
    }
}

/// What tells a socket from any other.
fn inode(socket: &OwnedFd) -> u64 {
    File::from(socket.try_clone().unwrap()).metadata().unwrap().ino()
}
