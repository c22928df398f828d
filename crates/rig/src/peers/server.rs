//! A running server of others.

use std::fs::{self, DirBuilder};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;

use super::{Peer, Setup};
use crate::process::{Guard, Process};
use crate::{Error, sandbox};

/// How long a server may take until it answers.
const START_MAX: Duration = Duration::from_secs(10);
/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_millis(200);
/// Between two attempts that failed at once.
const PAUSE: Duration = Duration::from_millis(20);
/// Lines of a log that go into a message.
const LINE_COUNT: usize = 5;

/// A running server. It ends with this value, and when this process ends.
#[derive(Debug)]
pub struct Server {
    // First: they are to look away before what they guard is waited for.
    _guards: Vec<Guard>,
    processes: Vec<Process>,
    title: String,
    ntp: SocketAddr,
    ke: Option<SocketAddr>,
    _folder: Folder,
}

/// What one program is started with.
pub(super) struct Launch {
    pub(super) command: Command,
    /// What it answers.
    pub(super) role: Role,
}

/// What a process answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Everything that the server has.
    All,
    /// NTP alone.
    Time,
    /// Key exchange alone.
    Keys,
}

impl Server {
    pub(super) fn start(peer: &Peer, setup: &Setup<'_>) -> Result<Self, Error> {
        let name = format!("{}-{}", peer.kind().name().replace('/', "-"), setup.ports.ntp);
        let folder = Folder::new(setup.folder.join(name))?;
        let launches = match peer {
            Peer::Chrony(chrony) => chrony.launch(setup, &folder.0)?,
            Peer::NtpdRs(ntpd_rs) => ntpd_rs.launch(setup, &folder.0)?,
            Peer::FacebookTime(facebook_time) => facebook_time.launch(setup)?,
        };
        let has_keys = launches.iter().any(|launch| launch.role != Role::Time) && setup.identity.is_some();
        // The one that answers requests stands first.
        let mut server = Server {
            _guards: Vec::new(),
            processes: Vec::new(),
            title: peer.title(),
            ntp: setup.ntp(),
            ke: has_keys.then(|| setup.ke()),
            _folder: folder,
        };
        for mut launch in launches {
            let process = sandbox::start(&mut launch.command)?;
            server._guards.push(Guard::new(&process)?);
            server.processes.push(process);
        }
        server.await_answers(setup)?;
        Ok(server)
    }

    /// Where it serves time.
    #[must_use]
    pub const fn ntp(&self) -> SocketAddr {
        self.ntp
    }

    /// Where it exchanges keys, if it does.
    #[must_use]
    pub const fn ke(&self) -> Option<SocketAddr> {
        self.ke
    }

    /// Its processes: first the one that answers requests for time, then any other one for key exchange.
    #[must_use]
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// What its processes have written.
    #[must_use]
    pub fn log(&self) -> String {
        self.processes.iter().map(Process::log).collect::<Vec<_>>().join("\n")
    }

    /// Whether all of it still runs.
    ///
    /// # Errors
    /// If a process has ended, with what it said last.
    pub fn check(&mut self) -> Result<(), Error> {
        for process in &mut self.processes {
            if let Some(status) = process.end()? {
                let problem = format!("it ended by itself ({status}); {}", last_lines(&process.log()));
                return Err(Error::Command { program: self.title.clone(), problem });
            }
        }
        Ok(())
    }

    fn await_answers(&mut self, setup: &Setup<'_>) -> Result<(), Error> {
        let deadline = Instant::now() + START_MAX;
        let (ntp, ke) = (self.ntp, self.ke);
        let mut entropy = Entropy::from_system().map_err(Error::system("random numbers"))?;
        let mut ask = || {
            let stamp = entropy.u64();
            let work = || answers(ntp, stamp).and_then(|()| ke.map_or(Ok(()), accepts));
            setup.place.within(work).flatten()
        };
        loop {
            self.check()?;
            let Err(error) = ask() else { return Ok(()) };
            if Instant::now() >= deadline {
                let problem = format!(
                    "it did not answer at {ntp} within {} s ({error}); {}",
                    START_MAX.as_secs(),
                    last_lines(&self.log())
                );
                return Err(Error::Command { program: self.title.clone(), problem });
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// What a process said last, for a message.
fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines[lines.len().saturating_sub(LINE_COUNT)..].join(" | ") {
        none if none.is_empty() => "it said nothing".to_owned(),
        last => format!("it said last: {last}"),
    }
}

/// Whether a server answers a request for time that carries this stamp. RFC 5905 section 7.3.
fn answers(server: SocketAddr, stamp: u64) -> io::Result<()> {
    /// Version 4, mode 3; and mode 4 in an answer.
    const REQUEST: u8 = 4 << 3 | 3;
    const MODE: u8 = 7;
    const SERVER: u8 = 4;
    let any = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(ANSWER_MAX))?;
    let mut request = [0; 48];
    request[0] = REQUEST;
    request[40..].copy_from_slice(&stamp.to_be_bytes());
    socket.send(&request)?;
    let mut answer = [0; 1024];
    let size = socket.recv(&mut answer)?;
    // The origin is the stamp.
    let is_answer = size >= 48 && answer[0] & MODE == SERVER && answer[24..32] == request[40..];
    is_answer.then_some(()).ok_or_else(|| io::Error::other("what came is no answer to the request"))
}

/// Whether a server takes connections.
fn accepts(server: SocketAddr) -> io::Result<()> {
    TcpStream::connect_timeout(&server, ANSWER_MAX).map(drop)
}

/// A folder that nobody else enters, and that goes away with this value.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new(path: PathBuf) -> Result<Self, Error> {
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(Error::system(path.display().to_string()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed lies in the caller's folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes a file of a server, which nobody else reads.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    crate::certificates::write_private(path, text).map_err(Error::system(path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_to_the_request_counts() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            for change in [None, Some(24), Some(0)] {
                let mut buffer = [0; 64];
                let (size, client) = server.recv_from(&mut buffer).unwrap();
                assert_eq!((size, buffer[0]), (48, 0x23));
                let stamp: [u8; 8] = buffer[40..48].try_into().unwrap();
                buffer[24..32].copy_from_slice(&stamp);
                buffer[0] = 0x24;
                if let Some(place) = change {
                    buffer[place] ^= 1;
                }
                server.send_to(&buffer[..48], client).unwrap();
            }
        });
        assert!(answers(address, 7).is_ok());
        assert!(answers(address, 8).is_err() && answers(address, 9).is_err());
        thread.join().unwrap();
    }

    #[test]
    fn last_lines_of_a_log_are_told() {
        assert_eq!(last_lines("\n \n"), "it said nothing");
        assert_eq!(last_lines("1\n2\n\n3\n4\n5\n6\n"), "it said last: 2 | 3 | 4 | 5 | 6");
    }
}
