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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use authentick_crypto::Entropy;

use crate::Error;
use crate::hosts::{Host, Hosts};
use crate::link::{Fate, Link};
use crate::threads::{Threads, await_readable, lock};

/// Larger than any packet of the devices, whose MTU is 1500.
const PACKET_SIZE_MAX: usize = 2048;

/// Packets that wait in a device for the relay's thread to run.
const DEVICE_QUEUE: u32 = 10_000;

/// Packets that are read before those that are due leave.
const BATCH_COUNT: usize = 32;

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

/// A path between the server and one client, beside their cable. It ends with this value.
#[derive(Debug)]
pub struct Path {
    number: u8,
    traffic: [Arc<Mutex<Traffic>>; 2],
    threads: Threads,
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
        let mut path =
            Path { number, traffic: [Arc::default(), Arc::default()], threads: Threads::default() };
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
        *lock(&self.traffic[0])
    }

    /// What has come from the server.
    #[must_use]
    pub fn back(&self) -> Traffic {
        *lock(&self.traffic[1])
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
        let traffic = Arc::clone(&self.traffic[direction]);
        let direction = Direction { from, to, link, entropy: Entropy::from_seed(seed), traffic };
        self.threads.spawn("path", move |stop| direction.run(stop)).map_err(Error::system("a thread"))
    }
}

/// One direction and its thread's work.
struct Direction {
    from: File,
    to: File,
    link: Link,
    entropy: Entropy,
    traffic: Arc<Mutex<Traffic>>,
}

impl Direction {
    fn run(mut self, stop: &AtomicBool) {
        let mut waiting: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
        let mut buffer = [0; PACKET_SIZE_MAX];
        while !stop.load(Ordering::Relaxed) {
            await_readable(&self.from, waiting.front().map(|(due, _)| *due));
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

    fn take(&mut self, packet: &[u8], waiting: &mut VecDeque<(Instant, Vec<u8>)>) {
        let mut traffic = lock(&self.traffic);
        traffic.offered += 1;
        match self.link.admit(Instant::now(), packet.len(), &mut self.entropy) {
            Fate::Arrives(at) => waiting.push_back((at, packet.to_vec())),
            Fate::Lost => traffic.lost += 1,
            Fate::Overflowed => traffic.overflowed += 1,
        }
    }

    fn pass(&mut self, packet: &[u8]) {
        match self.to.write(packet) {
            Ok(_) => lock(&self.traffic).passed += 1,
            Err(error) if error.kind() == ErrorKind::Interrupted => self.pass(packet),
            Err(_) => lock(&self.traffic).refused += 1,
        }
    }
}
