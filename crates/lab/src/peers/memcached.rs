//! Debian's memcached, which can be stopped for a while, killed, started anew where it was, and filled.

use std::fs;
use std::net::SocketAddr;

use tempfile::TempDir;

use authentick_rig::peers::{self, Place, Search};

use super::{folder, program};
use crate::caches::CacheClient;
use crate::hosts::{Host, Hosts};
use crate::process::{Process, wait_for};

/// How many values are stored between two looks whether any was evicted.
const FILL_STEP: u64 = 64;

/// Debian's memcached.
#[derive(Clone, Debug)]
pub struct Memcached {
    memcached: peers::Memcached,
    place: Place,
}

/// How much a memcached holds, and what it does with more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory(peers::Memory);

impl Memory {
    /// So many MiB (`-m`), of items of up to 512 KiB. When it is full it evicts what was used least recently.
    ///
    /// It is soft: each class of sizes has a page of 1 MiB at least once something is stored in it.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub const fn megabytes(megabytes: u32) -> Self {
        assert!(megabytes > 0, "0 means the default to memcached");
        Memory(peers::Memory::megabytes(megabytes))
    }

    /// Items have at most so many octets (`-I`), with their name and what memcached adds to it.
    ///
    /// # Panics
    /// If it is no power of two, is less than 1024, or is more than half of the memory: memcached refuses these.
    #[must_use]
    pub const fn item_size_max(self, octets: u32) -> Self {
        assert!(
            octets.is_power_of_two() && octets >= 1024 && octets as u64 <= (self.0.megabytes as u64) << 19
        );
        Memory(peers::Memory { item_size_max: octets, ..self.0 })
    }

    /// When it is full it refuses writes (`-M`).
    #[must_use]
    pub const fn refusing(self) -> Self {
        Memory(peers::Memory { refuses: true, ..self.0 })
    }
}

impl Memcached {
    /// Debian's memcached, if it is here.
    #[must_use]
    pub fn find() -> Option<Self> {
        program("memcached", "usr/bin/memcached")?;
        let folder = folder();
        let found = peers::Memcached::find(&Search { folder: Some(&folder), path: None });
        Some(Memcached { memcached: found.unwrap_or_else(|error| panic!("{error}")), place: Place::here() })
    }

    /// The same on a host.
    #[must_use]
    pub fn on(self, hosts: &Hosts, host: Host) -> Self {
        Memcached { place: Place::on(hosts, host), ..self }
    }

    /// A server that accepts TCP connections at `address`, whose port may be 0 for a free one, and has no UDP.
    ///
    /// # Panics
    /// If it cannot listen there.
    #[must_use]
    pub fn start(&self, address: SocketAddr, memory: Memory) -> MemcachedServer {
        let folder = TempDir::new().unwrap();
        let (process, address) = self.process(address, memory, &folder);
        MemcachedServer { memcached: self.clone(), memory, address, process, folder }
    }

    fn process(&self, address: SocketAddr, memory: Memory, folder: &TempDir) -> (Process, SocketAddr) {
        let started = self.memcached.start(&self.place, address, memory.0, folder.path());
        let (process, address) = started.unwrap_or_else(|error| panic!("{error}"));
        (process.into(), address)
    }
}

/// The states of a process's threads. proc(5): the field after the name in parentheses.
fn states(process: &Process) -> Vec<char> {
    let threads = fs::read_dir(format!("/proc/{}/task", process.id())).into_iter().flatten().flatten();
    let stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats.filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next()).collect()
}

/// A running memcached. It ends with this value.
#[derive(Debug)]
pub struct MemcachedServer {
    memcached: Memcached,
    memory: Memory,
    address: SocketAddr,
    process: Process,
    folder: TempDir,
}

impl MemcachedServer {
    /// Where it listens, or listened.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// From here on it does nothing, until [`resume`](Self::resume). The kernel accepts connections for it, and keeps
    /// what comes.
    pub fn pause(&self) {
        self.process.signal("-STOP");
        wait_for("memcached to stop", || {
            states(&self.process).iter().all(|state| *state == 'T').then_some(())
        });
    }

    /// It goes on, first with what has come meanwhile.
    pub fn resume(&self) {
        self.process.signal("-CONT");
    }

    /// Kills it, paused or not: its connections are reset, and nobody listens any more.
    pub fn kill(&mut self) {
        self.process.signal("-KILL");
        self.process.wait();
    }

    /// Starts it anew where it was, with nothing in it, once it was killed.
    ///
    /// # Panics
    /// If it runs, or cannot listen there.
    pub fn restart(&mut self) {
        let (process, _) = self.memcached.process(self.address, self.memory, &self.folder);
        self.process = process;
    }

    /// Stores values of this size, in octets, until it evicts some or refuses more; how many it took. To be called
    /// within its host.
    ///
    /// It is then full for items of about this size alone: memcached has a class for each quarter more, and each has
    /// a page of 1 MiB before it can be full. Sizes count the name and some 50 octets besides. Names have the size,
    /// so it can be filled for one after the other: `fill-1000-0` and so on.
    ///
    /// # Panics
    /// If it does not answer, or takes many times its memory.
    pub fn fill(&self, value_size: usize) -> u64 {
        let mut client = CacheClient::connect(self.address).unwrap();
        let value = vec![0xA5; value_size];
        let most = (u64::from(self.memory.0.megabytes) + 2) * 4 * (1 << 20) / (value_size as u64 + 50);
        for number in 0..most {
            let said = client.set(&format!("fill-{value_size}-{number}"), &value).unwrap();
            if said == "SERVER_ERROR out of memory storing object" {
                return number;
            }
            assert_eq!(said, "STORED");
            if number % FILL_STEP == 0 && client.count("evictions").unwrap() > Some(0) {
                return number + 1;
            }
        }
        panic!("it took {most} values of {value_size} octets");
    }
}
