//! What the network says of a client's datagrams ends no exchange, whatever it says and however often.
//!
//! Messages are made here, as whoever sees a request can make them, and cross a cable to a kernel that believes them.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use authentick_lab::hosts::{Host, Hosts};
use authentick_net::udp::{
    ClientSocket, Hint, ReceiveBatch, Received, SendBatch, ServerSocket, hint, send_past_hints,
};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with};

const PATIENCE: Duration = Duration::from_secs(20);
/// Messages of each kind, before a request and before its answer.
const COUNT: usize = 3;

/// Type, code and the next four octets of those messages that Linux does not keep from a connected socket: all of
/// "destination unreachable" but a missing route, "fragmentation needed" to 1,400 octets, and "parameter problem".
const V4: [(u8, u8, [u8; 4]); 13] = [
    (3, 2, [0; 4]),
    (3, 3, [0; 4]),
    (3, 4, [0, 0, 0x05, 0x78]),
    (3, 6, [0; 4]),
    (3, 7, [0; 4]),
    (3, 8, [0; 4]),
    (3, 9, [0; 4]),
    (3, 10, [0; 4]),
    (3, 13, [0; 4]),
    (3, 14, [0; 4]),
    (3, 15, [0; 4]),
    (12, 0, [0; 4]),
    (12, 1, [0; 4]),
];
/// The same of ICMPv6: prohibited, port, source address and route refused, too big, parameter problem.
const V6: [(u8, u8, [u8; 4]); 6] = [
    (1, 1, [0; 4]),
    (1, 4, [0; 4]),
    (1, 5, [0; 4]),
    (1, 6, [0; 4]),
    (2, 0, [0, 0, 0x05, 0x78]),
    (4, 0, [0; 4]),
];

/// Someone at the server's end of the cable.
struct Forger {
    socket: OwnedFd,
    client: SocketAddr,
    server: SocketAddr,
}

impl Forger {
    fn new(client: SocketAddr, server: SocketAddr) -> Self {
        let (family, protocol) = match client {
            SocketAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
            SocketAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
        };
        let socket = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(protocol)).unwrap();
        Forger { socket, client, server }
    }

    /// Says that a datagram of the client to the server has met with this.
    fn say(&self, (kind, code, more): (u8, u8, [u8; 4])) {
        let mut message = vec![kind, code, 0, 0];
        message.extend(more);
        match (self.client.ip(), self.server.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                message.extend([0x45, 0, 0, 76, 0, 0, 0, 0, 64, 17, 0, 0]);
                message.extend(from.octets().into_iter().chain(to.octets()));
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                message.extend([0x60, 0, 0, 0, 0, 56, 17, 64]);
                message.extend(from.octets().into_iter().chain(to.octets()));
            }
            _ => unreachable!("both are of one family"),
        }
        for port in [self.client.port(), self.server.port()] {
            message.extend(port.to_be_bytes());
        }
        message.extend([0, 56, 0, 0]);
        if self.client.is_ipv4() {
            // The kernel computes that of ICMPv6 itself.
            let words = message.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
            let sum = words.sum::<u32>();
            let folded = (sum & 0xffff) + (sum >> 16);
            message[2..4].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        }
        let to = SocketAddr::new(self.client.ip(), 0);
        sendto(&self.socket, &message, SendFlags::empty(), &to).unwrap();
    }
}

fn addresses(hosts: &Hosts) -> [(IpAddr, IpAddr); 2] {
    let (server, client) = (Host::Server, Host::Client(0));
    [(hosts.address(server), hosts.address(client)), (hosts.address_v6(server), hosts.address_v6(client))]
}

fn messages(address: IpAddr) -> &'static [(u8, u8, [u8; 4])] {
    if address.is_ipv4() { &V4 } else { &V6 }
}

/// A server's socket at this address, a client's that is connected to it, and who forges messages about the two.
fn meet(hosts: &Hosts, server: IpAddr) -> (UdpSocket, ClientSocket, Forger) {
    let server = hosts.within(Host::Server, || UdpSocket::bind((server, 0)).unwrap());
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = server.local_addr().unwrap();
    let socket = hosts.within(Host::Client(0), || ClientSocket::connect(address).unwrap());
    let forger = hosts.within(Host::Server, || Forger::new(socket.local().unwrap(), address));
    (server, socket, forger)
}

#[test]
fn no_message_ends_a_wait_or_keeps_a_request_from_leaving() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    for (server, client) in addresses(&hosts) {
        let (server, socket, forger) = meet(&hosts, server);
        assert_eq!(socket.local().unwrap().ip(), client);
        let (mut buffer, mut told) = ([0; 64], Vec::new());
        for &message in messages(client) {
            (0..COUNT).for_each(|_| forger.say(message));
            // Whether the kernel had it by now or not: a request leaves.
            socket.send(b"time?").unwrap();
            let (size, from) = server.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..size], from), (&b"time?"[..], socket.local().unwrap()), "{message:?}");
            (0..COUNT).for_each(|_| forger.say(message));
            let received = socket.receive(&mut buffer, Instant::now() + PATIENCE).unwrap();
            let Received::Hint(hint) = received else { panic!("{message:?}: {received:?}") };
            told.push(hint);
            server.send_to(b"now", from).unwrap();
            loop {
                match socket.receive(&mut buffer, Instant::now() + PATIENCE).unwrap() {
                    Received::Datagram { size, .. } => break assert_eq!(&buffer[..size], b"now"),
                    Received::Hint(_) => {}
                    Received::Silence => panic!("{message:?}: the answer was not heard"),
                }
            }
        }
        let refusals = told.iter().filter(|hint| **hint == Hint::Refused).count();
        assert_eq!((told.len(), refusals), (messages(client).len(), 1), "one of them is about a port");
    }
}

/// As a generator of load has them: batches over a connected socket.
#[test]
fn no_message_ends_a_batch() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    for (server, client) in addresses(&hosts) {
        let (server, socket, forger) = meet(&hosts, server);
        let (mut out, mut back) = (SendBatch::default(), ReceiveBatch::default());
        for &message in messages(client) {
            (0..COUNT).for_each(|_| forger.say(message));
            (0..4).for_each(|slot| out.set_size(slot, 48));
            let sent = send_past_hints(|| out.send(socket.as_fd(), 0..4, true), |_| {}).unwrap();
            assert_eq!(sent, 4, "{message:?}");
            for _ in 0..4 {
                let (size, from) = server.recv_from(&mut [0; 64]).unwrap();
                forger.say(message);
                server.send_to(&[7; 64][..size], from).unwrap();
            }
            back.clear();
            let end = Instant::now() + PATIENCE;
            while back.datagrams().count() < 4 {
                assert!(Instant::now() < end, "{message:?}: answers were not heard");
                if let Err(error) = back.receive(socket.as_fd(), 64) {
                    assert!(hint(&error).is_some(), "{message:?}: {error}");
                }
            }
        }
    }
}

/// Fragments that the server's host has made of its datagrams.
fn fragment_count(hosts: &Hosts) -> u64 {
    let read = |file: &str| {
        let output = hosts.on(Host::Server, "cat").arg(format!("/proc/net/{file}")).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let v4 = read("snmp");
    let mut lines = v4.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let names = lines.next().unwrap().split(' ');
    let mut values = names.zip(lines.next().unwrap().split(' '));
    let (_, v4) = values.find(|(name, _)| *name == "FragCreates").unwrap();
    let v6 = read("snmp6");
    let v6 = v6.lines().find_map(|line| line.strip_prefix("Ip6FragCreates")).unwrap();
    v4.parse::<u64>().unwrap() + v6.trim().parse::<u64>().unwrap()
}

/// A server's large response, such as one with eight cookies, leaves whole whatever a forged message says of its path.
#[test]
fn forged_path_mtu_leaves_server_responses_whole() {
    const SIZE: usize = 1_400;
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    for (server, client) in addresses(&hosts) {
        let wildcard = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let too_big = if server.is_ipv4() { (3, 4, [0, 0, 0x02, 0x58]) } else { (2, 0, [0, 0, 0x05, 0x00]) };
        let client = hosts.within(Host::Client(0), || UdpSocket::bind((client, 0)).unwrap());
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let to = client.local_addr().unwrap();
        let bound = hosts.within(Host::Server, || {
            let address = |text: &str| text.parse::<SocketAddr>().unwrap();
            let servers = [SocketAddr::new(server, 0), address(wildcard)];
            servers.map(|address| ServerSocket::bind(address, false).unwrap())
        });
        // The control: a socket as it comes does as it is told.
        let plain = hosts.within(Host::Server, || UdpSocket::bind((server, 0)).unwrap());
        let own = bound.iter().map(|socket| UdpSocket::from(socket.as_fd().try_clone_to_owned().unwrap()));
        for (socket, is_cut) in own.map(|socket| (socket, false)).chain([(plain, true)]) {
            let from = SocketAddr::new(server, socket.local_addr().unwrap().port());
            let forger = hosts.within(Host::Client(0), || Forger::new(from, to));
            let before = fragment_count(&hosts);
            socket.send_to(&[1; SIZE], to).unwrap();
            assert_eq!(client.recv(&mut [0; 2 * SIZE]).unwrap(), SIZE);
            (0..COUNT).for_each(|_| forger.say(too_big));
            // What a plain socket is told shows as an error of its next call.
            while socket.send_to(&[1; SIZE], to).is_err() {}
            assert_eq!(client.recv(&mut [0; 2 * SIZE]).unwrap(), SIZE);
            assert_eq!(fragment_count(&hosts) > before, is_cut, "{from}");
        }
    }
}
