//! A resolver that knows one name, and processes that ask it instead of the resolvers of this machine.
//!
//! It answers over UDP, with authority, and for no time to keep: each look-up is one. IPv4 alone: for the address of
//! another family it says that there is none, so that a client asks on with what it has.
//!
//! [`Resolver::asked_by`] puts a file over `/etc/resolv.conf` for one process and those that it starts, in a mount
//! namespace of its own. No file of this machine changes, and nothing is left behind, however the process ends.
//! `nsswitch.conf` is as it was: where it asks somebody else before DNS, as `resolve` or a cache of names does,
//! [`Counts::queries`] stays 0.

mod message;

use std::ffi::OsStr;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use authentick_net::privilege::is_root;
use authentick_net::report_file;

use self::message::{Code, Name, answer};
use crate::Error;
use crate::process::is_installed;
use crate::threads::{Threads, await_readable, lock};

/// The port that the C library asks; its configuration has no place for another one.
pub const PORT: u16 = 53;

/// Where the C library reads whom to ask. resolv.conf(5).
const CONFIGURATION: &str = "/etc/resolv.conf";

/// Larger than any query over UDP without EDNS, and than any that a resolver library makes with it.
const QUERY_SIZE_MAX: usize = 1500;

/// Puts the file that is its name over the configuration, and becomes the program.
const BECOME: &str = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";

/// What a resolver has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that came.
    pub queries: u64,
    /// Those that were answered with the address.
    pub addresses: u64,
    /// Those that were answered without it, as there is no such name, or nothing of that type under it.
    pub without: u64,
    /// Those that were no query of one question in the class of the Internet: told so, or not answered.
    pub malformed: u64,
}

/// A running resolver. It ends with this value.
#[derive(Debug)]
pub struct Resolver {
    address: SocketAddr,
    file: PathBuf,
    counts: Arc<Mutex<Counts>>,
    _thread: Threads,
}

impl Resolver {
    /// Answers at `socket` that `name` is at `address`. The file with its configuration is in `folder` until the end.
    /// Processes find it only at port [`PORT`]; within a host, nobody else has it.
    ///
    /// # Errors
    /// If there can be no such name, or no such file.
    pub fn start(socket: UdpSocket, name: &str, address: Ipv4Addr, folder: &Path) -> Result<Self, Error> {
        let name = Name::new(name).ok_or(Error::Misuse("a name has labels of 1 to 63 octets, 253 in all"))?;
        let own = socket.local_addr().map_err(Error::system("a resolver's socket"))?;
        socket.set_nonblocking(true).map_err(Error::system("a resolver's socket"))?;
        let file = folder.join("resolv.conf");
        // Without a search list, each name is asked for once, as it is.
        report_file::write(&file, format!("nameserver {}\nsearch .\n", own.ip()).as_bytes())
            .map_err(Error::system(file.display().to_string()))?;
        let counts = Arc::new(Mutex::new(Counts::default()));
        let mut thread = Threads::default();
        let server = Server { socket, name, address, counts: Arc::clone(&counts) };
        thread.spawn("resolver", move |stop| server.run(stop)).map_err(Error::system("a thread"))?;
        Ok(Resolver { address: own, file, counts, _thread: thread })
    }

    /// Where it answers.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has done until now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *lock(&self.counts)
    }

    /// The same command, whose process, and what that starts, will ask this resolver. Programs replace each other, so
    /// the child is still the command's program.
    ///
    /// # Errors
    /// Where this process may not mount, or there is nothing to mount over.
    pub fn asked_by(&self, command: &Command) -> Result<Command, Error> {
        let unavailable = |why: &str| Error::unavailable("no resolver of the rig", &why);
        if !is_root() {
            return Err(unavailable("needs root, to mount its configuration for one process; run as root"));
        }
        if !["unshare", "mount"].into_iter().all(is_installed) {
            return Err(unavailable("there is no unshare or no mount; install util-linux"));
        }
        if !Path::new(CONFIGURATION).exists() {
            return Err(unavailable(
                "there is no /etc/resolv.conf to mount another one over; make an empty one",
            ));
        }
        if self.address.port() != PORT {
            return Err(Error::Misuse("the C library asks port 53 alone"));
        }
        let mut resolving = Command::new("unshare");
        resolving.args(["--mount", "--propagation", "private", "sh", "-c", BECOME]).arg(&self.file);
        resolving.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            set(&mut resolving, name, value);
        }
        if let Some(folder) = command.get_current_dir() {
            resolving.current_dir(folder);
        }
        Ok(resolving)
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        // A folder that has gone already has taken it along.
        let _ = std::fs::remove_file(&self.file);
    }
}

fn set(command: &mut Command, name: &OsStr, value: Option<&OsStr>) {
    match value {
        Some(value) => command.env(name, value),
        None => command.env_remove(name),
    };
}

/// The resolver's thread.
struct Server {
    socket: UdpSocket,
    name: Name,
    address: Ipv4Addr,
    counts: Arc<Mutex<Counts>>,
}

impl Server {
    fn run(self, stop: &AtomicBool) {
        let mut buffer = [0; QUERY_SIZE_MAX];
        while !stop.load(Ordering::Relaxed) {
            await_readable(&self.socket, None);
            loop {
                match self.socket.recv_from(&mut buffer) {
                    Ok((size, client)) => self.take(&buffer[..size], client),
                    // What a client's host said of an earlier response.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Err(_) => break,
                }
            }
        }
    }

    fn take(&self, query: &[u8], client: SocketAddr) {
        let response = answer(query, &self.name, self.address);
        {
            let mut counts = lock(&self.counts);
            counts.queries += 1;
            match response.as_ref().map(|response| (response.code, response.has_address)) {
                Some((Code::NoError, true)) => counts.addresses += 1,
                Some((Code::NoError | Code::NameError, _)) => counts.without += 1,
                Some((Code::FormatError | Code::NotImplemented | Code::Refused, _)) | None => {
                    counts.malformed += 1;
                }
            }
        }
        if let Some(response) = response {
            // A client that has gone asks no more.
            let _ = self.socket.send_to(&response.octets, client);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn queries_are_answered_and_counted_and_the_file_goes_away() {
        let folder = std::env::temp_dir().join(format!("atk-resolver-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = Ipv4Addr::new(198, 18, 0, 1);
        let resolver = Resolver::start(socket, "ntp.test", address, &folder).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        client.connect(resolver.address()).unwrap();
        let ask = |name: &[u8], kind: u8| {
            let header = [7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            client.send(&[&header, name, &[0, kind, 0, 1]].concat()).unwrap();
            let mut buffer = [0; 512];
            let size = client.recv(&mut buffer).unwrap();
            buffer[..size].to_vec()
        };
        // What is no message gets no answer, or the next question would get it.
        client.send(&[7; 5]).unwrap();
        assert!(ask(b"\x03ntp\x04test\0", 1).ends_with(&address.octets()));
        assert_eq!(ask(b"\x03ntp\x04test\0", 28)[3], 0);
        assert_eq!(ask(b"\x03ntp\x03org\0", 1)[3], 3);
        assert_eq!(ask(b"\xC0\x0C", 1)[3], 1);
        let expected = Counts { queries: 5, addresses: 1, without: 2, malformed: 2 };
        assert_eq!(resolver.counts(), expected);
        let refused = resolver.asked_by(&Command::new("true")).unwrap_err();
        assert!(matches!(refused, Error::Misuse(_) | Error::Unavailable { .. }), "{refused}");
        let file = folder.join("resolv.conf");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "nameserver 127.0.0.1\nsearch .\n");
        drop(resolver);
        assert!(!file.exists());
        std::fs::remove_dir_all(&folder).unwrap();
        let none = Resolver::start(UdpSocket::bind("127.0.0.1:0").unwrap(), "a..b", address, &folder);
        assert!(matches!(none, Err(Error::Misuse(_))));
    }
}
