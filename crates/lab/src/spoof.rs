//! Requests from addresses that their sender does not have.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with};

/// Sends datagrams with any source address, on the host in which it was made.
#[derive(Debug)]
pub struct Spoofer(OwnedFd);

impl Spoofer {
    /// One for datagrams to addresses of this family.
    ///
    /// # Panics
    /// If this process may not open raw sockets.
    #[must_use]
    pub fn new(to: IpAddr) -> Self {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        Spoofer(socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::RAW)).unwrap())
    }

    /// Sends `octets` as a datagram from one address to another.
    ///
    /// # Panics
    /// If the addresses are of two families, or the datagram cannot be sent.
    pub fn send(&self, from: SocketAddr, to: SocketAddr, octets: &[u8]) {
        let packet = packet(from, to, octets);
        sendto(&self.0, &packet, SendFlags::empty(), &SocketAddr::new(to.ip(), 0)).unwrap();
    }

    /// Sends `rate_rps` datagrams a second until `stop`, each as `datagram` makes it of its number; returns how many.
    ///
    /// # Panics
    /// As [`Spoofer::send`].
    pub fn flood(
        &self,
        rate_rps: u32,
        stop: &AtomicBool,
        mut datagram: impl FnMut(u64) -> (SocketAddr, SocketAddr, Vec<u8>),
    ) -> u64 {
        let (start, mut sent) = (Instant::now(), 0);
        while !stop.load(Ordering::Relaxed) {
            let due = (start.elapsed().as_secs_f64() * f64::from(rate_rps)) as u64;
            for number in sent..due {
                let (from, to, octets) = datagram(number);
                self.send(from, to, &octets);
            }
            sent = due;
            std::thread::sleep(Duration::from_millis(1));
        }
        sent
    }
}

/// Sends what a router sends whose next link carries packets of at most `mtu` octets, about a datagram over IPv4 from
/// `from` to `to`, to the host of `from`. RFC 1191 section 4.
///
/// # Panics
/// If the addresses are not of IPv4, or this process may not open raw sockets.
pub fn send_fragmentation_needed(from: SocketAddr, to: SocketAddr, mtu: u16) {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (from.ip(), to.ip()) else {
        panic!("{from} and {to} are not of IPv4");
    };
    let mut message = vec![3, 4, 0, 0, 0, 0];
    message.extend(mtu.to_be_bytes());
    // The datagram's headers.
    message.extend([0x45, 0, 0x05, 0xdc, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    message.extend(source.octets().into_iter().chain(destination.octets()));
    message.extend([from.port(), to.port(), 1480, 0].iter().flat_map(|word| word.to_be_bytes()));
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let icmp = Some(ipproto::ICMP);
    let socket = socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, icmp).unwrap();
    sendto(&socket, &message, SendFlags::empty(), &SocketAddr::new(from.ip(), 0)).unwrap();
}

/// A packet of IPv4 or IPv6 with a datagram. RFC 791, RFC 8200, RFC 768.
fn packet(from: SocketAddr, to: SocketAddr, octets: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + octets.len()).unwrap();
    let mut datagram: Vec<u8> =
        [from.port(), to.port(), size, 0].iter().flat_map(|word| word.to_be_bytes()).collect();
    datagram.extend(octets);
    let mut packet = Vec::new();
    match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            // Of IPv4 the kernel fills in the length and the checksum, and UDP's may be absent. raw(7).
            packet.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0]);
            packet.extend(from.octets().into_iter().chain(to.octets()));
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let addresses: Vec<u8> = from.octets().into_iter().chain(to.octets()).collect();
            let pseudo = [&addresses[..], &u32::from(size).to_be_bytes(), &[0, 0, 0, 17]].concat();
            let sum = match checksum(&[&pseudo[..], &datagram].concat()) {
                0 => 0xffff,
                sum => sum,
            };
            datagram[6..8].copy_from_slice(&sum.to_be_bytes());
            packet.extend([0x60, 0, 0, 0]);
            packet.extend(size.to_be_bytes());
            packet.extend([17, 64]);
            packet.extend(addresses);
        }
        _ => panic!("{from} and {to} are of two families"),
    }
    packet.extend(datagram);
    packet
}

/// The checksum of the internet protocols. RFC 1071.
fn checksum(octets: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let mut sum: u32 = octets.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
