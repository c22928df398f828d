//! A path between the server and a client that is as long, as bad and as narrow as it is wanted.
//!
//! For kernels without netem, fq and etf. It moves IP packets between a TUN device on either host, so UDP and TCP both
//! pass, and a TCP handshake takes the time of the path as everything else does: a proxy would answer the SYN itself. A
//! thread for each direction carries out what its [`Link`] decides. Order is kept.
//!
//! *How well delays are held.* A packet never leaves early. A thread sleeps until 0.1 ms before the next packet is due,
//! with a timer that the kernel does not put off to join others, and from then on looks at the clock and its device
//! without sleeping: packets leave 1 to 20 us late on average while the thread has a processor. [`Traffic::late_mean`]
//! and [`Traffic::late_max`] are what it came to, and belong beside every figure that was measured over a path. What
//! they do not show is how a packet gets in: the relay's thread has to wake up, and delays count from there. So an
//! exchange takes the path's delays and the cable's time, and some 20 us (threads still awake) to 100 us (after a
//! pause, on processors that fell asleep) more: [`echo::cost`](crate::echo::cost) measures it, and a study says so
//! beside its cells or takes it off the delays. A direction with more than 10,000 packets a second never sleeps, and
//! has a processor for itself.
//!
//! Limits, seen on two shared cores with a debug build: a direction moves 300,000 to 500,000 packets a second, so a
//! link of 1 Gbit/s is full of large packets (a TCP transfer makes 941 Mbit/s) and not of the smallest. What a thread
//! does not come to read in time, the device's queue drops: [`Path::dropped`].

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;

use crate::Error;
use crate::hosts::{Host, Hosts};
use crate::link::{Fate, Link};
use crate::rounds::{RoundTrips, Sender};
use crate::threads::{Threads, await_readable, lock, wake_on_time};

/// Larger than any packet of the devices, whose MTU is 1500.
const PACKET_SIZE_MAX: usize = 2048;

/// Packets that wait in a device for the relay's thread to run.
const DEVICE_QUEUE: u32 = 10_000;

/// Packets that are read before those that are due leave.
const BATCH_COUNT: usize = 32;

/// The most packets that are on their way in one direction, some 100 MB of them.
const TRAVELLING_COUNT_MAX: usize = 1 << 16;

/// How long before a packet is due its thread stops sleeping: what waking up takes on a machine with other work.
const AWAKE: Duration = Duration::from_micros(100);

/// Of a longer sleep this much is slept at its end: poll(2) may take 0.1 % longer than it was asked for, and 0.5 % in a
/// process with little right to a processor (`nice`), whatever the thread's timers.
const NEAR: Duration = Duration::from_millis(1);

/// What one direction has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets that the relay has read.
    pub offered: u64,
    /// Packets that it has handed to the other host.
    pub passed: u64,
    /// Packets lost by the link's loss.
    pub lost: u64,
    /// Packets that found no room in the link's queue, or came while 65,536 were on their way.
    pub overflowed: u64,
    /// Packets that the other host's device would not take.
    pub refused: u64,
    /// How late all packets left together, after the instant that the link had set.
    pub late: Duration,
    /// How late the latest of them left.
    pub late_max: Duration,
}

impl Traffic {
    /// How late packets left on average; `None` if there were none.
    #[must_use]
    pub fn late_mean(&self) -> Option<Duration> {
        let count = self.passed + self.refused;
        (count > 0).then(|| Duration::from_nanos((self.late.as_nanos() / u128::from(count)) as u64))
    }
}

/// A path between the server and one client, beside their cable. It ends with this value.
#[derive(Debug)]
pub struct Path {
    number: u8,
    client: usize,
    traffic: [Arc<Mutex<Traffic>>; 2],
    trips: Arc<Mutex<Option<RoundTrips>>>,
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
        let mut path = Path {
            number,
            client,
            traffic: [Arc::default(), Arc::default()],
            trips: Arc::default(),
            threads: Threads::default(),
        };
        let client_end = path.end(hosts, Host::Client(client), 2)?;
        let server_end = path.end(hosts, Host::Server, 1)?;
        let copy = |file: &File| file.try_clone().map_err(Error::system("a TUN device"));
        path.run(copy(&client_end)?, copy(&server_end)?, there, seed, Sender::Client)?;
        path.run(server_end, client_end, back, seed.wrapping_add(1), Sender::Server)?;
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

    /// Counts the round trips of every flow over this path, from none and from here on; see [`RoundTrips`]. Packets are
    /// seen at the client's end: its own when the relay reads them, the server's just before they are handed over.
    pub fn count_round_trips(&self) {
        *lock(&self.trips) = Some(RoundTrips::default());
    }

    /// What has been counted since [`count_round_trips`](Self::count_round_trips); nothing without it.
    #[must_use]
    pub fn round_trips(&self) -> RoundTrips {
        lock(&self.trips).clone().unwrap_or_default()
    }

    /// Packets that the devices dropped because their queues were full: the client's, and the server's. The relay has
    /// not read them, so they are in no [`Traffic`]. To be called with the hosts of the path.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn dropped(&self, hosts: &Hosts) -> Result<(u64, u64), Error> {
        let name = self.device();
        let of = |host| {
            let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
            let text = hosts.within(host, read).flatten().map_err(Error::system("/proc/net/dev"))?;
            let missing = || io::Error::new(ErrorKind::NotFound, format!("{name} is not in it"));
            dropped_of(&text, &name).ok_or_else(missing).map_err(Error::system("/proc/net/dev"))
        };
        Ok((of(Host::Client(self.client))?, of(Host::Server)?))
    }

    fn device(&self) -> String {
        format!("path{}", self.number)
    }

    fn v4(&self, last: u8) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, 128 + self.number, last)
    }

    fn v6(&self, last: u8) -> Ipv6Addr {
        Ipv6Addr::new(0xFD00, 0xA7, 0, 128 + u16::from(self.number), 0, 0, 0, last.into())
    }

    /// Makes the device on one host, with its address and the way to the other.
    fn end(&self, hosts: &Hosts, host: Host, own: u8) -> Result<File, Error> {
        let (name, peer) = (self.device(), 3 - own);
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

    fn run(&mut self, from: File, to: File, link: Link, seed: u64, sender: Sender) -> Result<(), Error> {
        let traffic = Arc::clone(match sender {
            Sender::Client => &self.traffic[0],
            Sender::Server => &self.traffic[1],
        });
        let trips = Arc::clone(&self.trips);
        let direction =
            Direction { from, to, link, sender, entropy: Entropy::from_seed(seed), traffic, trips };
        self.threads.spawn("path", move |stop| direction.run(stop)).map_err(Error::system("a thread"))
    }
}

/// What a device's queue dropped, in `/proc/net/dev`. To a TUN device, what its reader gets is sent: after eight
/// columns of what was received come octets, packets, errors and drops.
fn dropped_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().nth(8 + 3)?.parse().ok()
}

/// One direction and its thread's work.
struct Direction {
    from: File,
    to: File,
    link: Link,
    sender: Sender,
    entropy: Entropy,
    traffic: Arc<Mutex<Traffic>>,
    trips: Arc<Mutex<Option<RoundTrips>>>,
}

impl Direction {
    fn run(mut self, stop: &AtomicBool) {
        wake_on_time();
        let mut travelling: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
        let mut buffer = [0; PACKET_SIZE_MAX];
        while !stop.load(Ordering::Relaxed) {
            let awake = travelling.front().map(|(due, _)| *due - AWAKE);
            let left = awake.map(|awake| awake.saturating_duration_since(Instant::now()));
            if left != Some(Duration::ZERO) {
                let is_far = left.is_some_and(|left| left > 2 * NEAR);
                await_readable(&self.from, awake.map(|awake| if is_far { awake - NEAR } else { awake }));
            }
            for _ in 0..BATCH_COUNT {
                let Ok(size) = self.from.read(&mut buffer) else { break };
                self.take(&buffer[..size], &mut travelling);
            }
            let now = Instant::now();
            while let Some((due, packet)) = travelling.pop_front_if(|(due, _)| *due <= now) {
                self.pass(due, &packet);
            }
        }
    }

    fn take(&mut self, packet: &[u8], travelling: &mut VecDeque<(Instant, Vec<u8>)>) {
        if self.sender == Sender::Client {
            self.count(packet);
        }
        let mut traffic = lock(&self.traffic);
        traffic.offered += 1;
        if travelling.len() >= TRAVELLING_COUNT_MAX {
            traffic.overflowed += 1;
            return;
        }
        match self.link.admit(Instant::now(), packet.len(), &mut self.entropy) {
            Fate::Arrives(at) => travelling.push_back((at, packet.to_vec())),
            Fate::Lost => traffic.lost += 1,
            Fate::Overflowed => traffic.overflowed += 1,
        }
    }

    fn pass(&mut self, due: Instant, packet: &[u8]) {
        if self.sender == Sender::Server {
            self.count(packet);
        }
        let late = due.elapsed();
        let written = loop {
            match self.to.write(packet) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                written => break written,
            }
        };
        let mut traffic = lock(&self.traffic);
        traffic.late += late;
        traffic.late_max = traffic.late_max.max(late);
        match written {
            Ok(_) => traffic.passed += 1,
            Err(_) => traffic.refused += 1,
        }
    }

    fn count(&self, packet: &[u8]) {
        if let Some(trips) = lock(&self.trips).as_mut() {
            trips.see(self.sender, packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_a_device_are_read_from_its_own_line() {
        let text = "Inter-|   Receive                |  Transmit\n face |bytes    packets errs drop fifo frame\n\
                    \x20   lo:  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                    path12: 0 0 0 1 0 0 0 0 0 0 0 77 0 0 0 0\n path1: 0 0 0 1 0 0 0 0 0 0 0 5 0 0 0 0\n";
        assert_eq!(dropped_of(text, "path1"), Some(5));
        assert_eq!(dropped_of(text, "path12"), Some(77));
        assert_eq!(dropped_of(text, "path2"), None);
        assert_eq!(dropped_of("path1: 1 2\n", "path1"), None);
    }
}
