//! A path between the server and a client that is as long, as bad and as narrow as it is wanted.
//!
//! For kernels without netem, fq and etf. It moves IP packets between a TUN device on either host, so UDP and TCP both
//! pass; a thread for each direction carries out what its [`Link`] decides. Order is kept.
//!
//! Limits, seen on two shared cores with a debug build: a direction moves 300,000 to 500,000 packets a second, so a
//! link of 1 Gbit/s is full of large packets (a TCP transfer makes 941 Mbit/s) and not of the smallest. What a thread
//! does not come to read in time, the device's queue drops, which no count here shows. Packets leave about 0.1 ms late,
//! and later while the thread gets no processor.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::Error;
use crate::hosts::{Host, Hosts};
use crate::link::{Fate, Link};

/// Larger than any packet of the devices, whose MTU is 1500.
const PACKET_SIZE_MAX: usize = 2048;

/// Packets that wait in a device for the relay's thread to run.
const DEVICE_QUEUE: u32 = 10_000;

/// Packets that are read before those that are due leave.
const BATCH_COUNT: usize = 32;

/// How often a thread without work looks whether it is to end.
const IDLE: Duration = Duration::from_millis(20);

/// What one direction has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets that the relay has read.
    pub offered: u64,
    /// Packets that it has handed to the other host.
    pub passed: u64,
    /// Packets lost by the link's loss.
    pub lost: u64,
    /// Packets that found no room in the link's queue.
    pub overflowed: u64,
    /// Packets that the other host's device would not take.
    pub refused: u64,
}

#[derive(Debug, Default)]
struct Counters {
    offered: AtomicU64,
    passed: AtomicU64,
    lost: AtomicU64,
    overflowed: AtomicU64,
    refused: AtomicU64,
}

impl Counters {
    fn read(&self) -> Traffic {
        let [offered, passed, lost, overflowed, refused] =
            [&self.offered, &self.passed, &self.lost, &self.overflowed, &self.refused]
                .map(|count| count.load(Ordering::Relaxed));
        Traffic { offered, passed, lost, overflowed, refused }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A path between the server and one client, beside their cable. It ends with this value.
#[derive(Debug)]
pub struct Path {
    number: u8,
    counters: [Arc<Counters>; 2],
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Path {
    /// Lays a path: `there` leads from the client to the server, `back` from the server to the client. Random decisions
    /// come from `seed`.
    ///
    /// # Errors
    /// Where TUN devices cannot be had, or if the hosts have 128 paths already.
    pub fn new(hosts: &Hosts, client: usize, there: Link, back: Link, seed: u64) -> Result<Self, Error> {
        let number = u8::try_from(hosts.next_path()).ok().filter(|number| *number < 128);
        let number = number.ok_or(Error::Misuse("hosts have at most 128 paths"))?;
        let mut path = Path {
            number,
            counters: [Arc::default(), Arc::default()],
            stop: Arc::default(),
            threads: Vec::new(),
        };
        let client_end = path.end(hosts, Host::Client(client), 2)?;
        let server_end = path.end(hosts, Host::Server, 1)?;
        let copy = |file: &File| file.try_clone().map_err(Error::system("a TUN device"));
        path.run(copy(&client_end)?, copy(&server_end)?, there, seed, 0)?;
        path.run(server_end, client_end, back, seed.wrapping_add(1), 1)?;
        Ok(path)
    }

    /// The server's IPv4 address on this path.
    #[must_use]
    pub fn server_address(&self) -> IpAddr {
        self.v4(1).into()
    }

    /// The server's IPv6 address on this path.
    #[must_use]
    pub fn server_address_v6(&self) -> IpAddr {
        self.v6(1).into()
    }

    /// The client's IPv4 address on this path.
    #[must_use]
    pub fn client_address(&self) -> IpAddr {
        self.v4(2).into()
    }

    /// The client's IPv6 address on this path.
    #[must_use]
    pub fn client_address_v6(&self) -> IpAddr {
        self.v6(2).into()
    }

    /// What has come from the client.
    #[must_use]
    pub fn there(&self) -> Traffic {
        self.counters[0].read()
    }

    /// What has come from the server.
    #[must_use]
    pub fn back(&self) -> Traffic {
        self.counters[1].read()
    }

    fn v4(&self, last: u8) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, 128 + self.number, last)
    }

    fn v6(&self, last: u8) -> Ipv6Addr {
        Ipv6Addr::new(0xFD00, 0xA7, 0, 128 + u16::from(self.number), 0, 0, 0, last.into())
    }

    /// Makes the device on one host, with its address and the way to the other.
    fn end(&self, hosts: &Hosts, host: Host, own: u8) -> Result<File, Error> {
        let (name, peer) = (format!("path{}", self.number), 3 - own);
        let device = hosts
            .within(host, || authentick_net::tun::create(&name))
            .flatten()
            .map_err(|error| Error::unavailable("no TUN device", &error))?;
        hosts.ip(
            host,
            &format!(
                "link set {name} mtu 1500 txqueuelen {DEVICE_QUEUE} up\naddr add {} peer {} dev {name}\n\
                 addr add {} peer {} dev {name} nodad\n",
                self.v4(own),
                self.v4(peer),
                self.v6(own),
                self.v6(peer)
            ),
        )?;
        Ok(device)
    }

    fn run(&mut self, from: File, to: File, link: Link, seed: u64, direction: usize) -> Result<(), Error> {
        let (counters, stop) = (Arc::clone(&self.counters[direction]), Arc::clone(&self.stop));
        let direction = Direction { from, to, link, entropy: Entropy::from_seed(seed), counters };
        let thread = std::thread::Builder::new().name("path".to_owned());
        self.threads.push(thread.spawn(move || direction.run(&stop)).map_err(Error::system("a thread"))?);
        Ok(())
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// One direction and its thread's work.
struct Direction {
    from: File,
    to: File,
    link: Link,
    entropy: Entropy,
    counters: Arc<Counters>,
}

impl Direction {
    fn run(mut self, stop: &AtomicBool) {
        let mut waiting: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
        let mut buffer = [0; PACKET_SIZE_MAX];
        while !stop.load(Ordering::Relaxed) {
            let due = waiting.front().map(|(due, _)| *due);
            self.wait(due);
            for _ in 0..BATCH_COUNT {
                let Ok(size) = self.from.read(&mut buffer) else { break };
                self.take(&buffer[..size], &mut waiting);
            }
            let now = Instant::now();
            while let Some((_, packet)) = waiting.pop_front_if(|(due, _)| *due <= now) {
                self.pass(&packet);
            }
        }
    }

    /// Until there is something to read, `due` has come, or it is time to look around.
    fn wait(&self, due: Option<Instant>) {
        let timeout = due.map_or(IDLE, |due| due.saturating_duration_since(Instant::now()).min(IDLE));
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.as_nanos() as _ };
        // Interrupted or not: all is looked at anyway.
        let _ = poll(&mut [PollFd::from_borrowed_fd(self.from.as_fd(), PollFlags::IN)], Some(&timeout));
    }

    fn take(&mut self, packet: &[u8], waiting: &mut VecDeque<(Instant, Vec<u8>)>) {
        add(&self.counters.offered);
        match self.link.admit(Instant::now(), packet.len(), &mut self.entropy) {
            Fate::Arrives(at) => waiting.push_back((at, packet.to_vec())),
            Fate::Lost => add(&self.counters.lost),
            Fate::Overflowed => add(&self.counters.overflowed),
        }
    }

    fn pass(&mut self, packet: &[u8]) {
        match self.to.write(packet) {
            Ok(_) => add(&self.counters.passed),
            Err(error) if error.kind() == ErrorKind::Interrupted => self.pass(packet),
            Err(_) => add(&self.counters.refused),
        }
    }
}
