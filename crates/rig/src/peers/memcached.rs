//! memcached, in which servers share keys.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Place, Program, Search, UNKNOWN_VERSION};
use crate::Error;
use crate::process::Process;

/// The largest slab chunk that memcached takes, in octets: half of a page.
const CHUNK_SIZE_MAX: u32 = 512 << 10;

/// How long it may take until it listens.
const START_MAX: Duration = Duration::from_secs(20);

/// memcached on this machine.
#[derive(Clone, Debug)]
pub struct Memcached {
    program: Program,
    version: String,
}

/// How much a memcached holds, and what it does with more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// MiB of items (`-m`); 0 is memcached's own 64.
    pub megabytes: u32,
    /// The most octets of an item (`-I`), with its name and what memcached adds to it; a power of two from 1024, and at
    /// most half of the memory.
    pub item_size_max: u32,
    /// Whether it refuses writes when it is full (`-M`), rather than evict what was used least recently.
    pub refuses: bool,
}

impl Memory {
    /// So many MiB, of items of up to 512 KiB, some of which are evicted when it is full.
    #[must_use]
    pub const fn megabytes(megabytes: u32) -> Self {
        Memory { megabytes, item_size_max: CHUNK_SIZE_MAX, refuses: false }
    }
}

impl Memcached {
    /// Finds it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with where it was looked for and the remedy, or with why what is there does not run.
    pub fn find(search: &Search<'_>) -> Result<Self, Error> {
        let program = search.program("memcached", "usr/bin/memcached")?;
        let text = program.say(&["--version"]).map_err(|error| Error::unavailable("no memcached", &error))?;
        let version = text.trim().strip_prefix("memcached ").unwrap_or(UNKNOWN_VERSION).to_owned();
        Ok(Memcached { program, version })
    }

    /// Its version, as `1.6.18`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A process that accepts TCP connections at `address`, whose port may be 0 for a free one, and has no UDP; and the
    /// address. It ends with this process, even if that is killed before it listens. For the start it needs a file in
    /// `folder`.
    ///
    /// # Errors
    /// If it does not listen within twenty seconds: with what it said.
    pub fn start(
        &self,
        place: &Place,
        address: SocketAddr,
        memory: Memory,
        folder: &Path,
    ) -> Result<(Process, SocketAddr), Error> {
        let told = folder.join("memcached-port");
        // Of one that was there before.
        let _ = fs::remove_file(&told);
        let port = if address.port() == 0 { "-1".to_owned() } else { address.port().to_string() };
        let mut command = self.program.command(place);
        command.env("MEMCACHED_PORT_FILENAME", &told);
        // The user counts for root alone, who may not be it without saying so.
        command.args(["-u", "root", "-U", "0", "-l", &address.ip().to_string(), "-p", &port]);
        command.args(["-m", &memory.megabytes.to_string(), "-I", &memory.item_size_max.to_string()]);
        command.args(["-o", &format!("slab_chunk_max={}", memory.item_size_max.min(CHUNK_SIZE_MAX))]);
        if memory.refuses {
            command.arg("-M");
        }
        let mut process = Process::start_watched(&command)?;
        // It writes the file aside, and moves it here once it listens.
        let deadline = Instant::now() + START_MAX;
        let port = loop {
            let text = fs::read_to_string(&told).unwrap_or_default();
            if let Some(port) = text.trim().rsplit(' ').next().and_then(|port| port.parse().ok()) {
                break port;
            }
            let left = deadline.saturating_duration_since(Instant::now()).min(Duration::from_millis(20));
            if left.is_zero() {
                return Err(Error::TooSlow { what: "memcached to listen".to_owned(), log: process.log() });
            }
            if let Ok(status) = process.wait(left) {
                let problem =
                    format!("it ended ({status}) instead of listening at {address}: {}", process.log());
                return Err(Error::Command { program: "memcached".to_owned(), problem });
            }
        };
        Ok((process, SocketAddr::new(address.ip(), port)))
    }
}
