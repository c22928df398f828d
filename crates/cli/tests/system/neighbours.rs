//! Spoofed requests from on-link addresses that do not exist take no time from clients that do: not from one behind a
//! router, not from one on the link that is known, and not from one that comes meanwhile.
//!
//! The server has one worker, and of the package's sysctls those of neighbours, which a network namespace has for each
//! interface.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::spoof::Spoofer;
use authentick_wire::header::Header;
use authentick_wire::time::NtpTime;

use crate::lab::{Lab, Server, program};

const NTP: u16 = 1123;
/// Longer than the kernel waits for a neighbour.
const FILLING: Duration = Duration::from_secs(4);
const REQUEST_COUNT: u64 = 1_000;
const INTERVAL: Duration = Duration::from_millis(4);
const ABSENT_COUNT: u64 = 250;
const PACKAGE: &str = include_str!("../../../../packaging/sysctl.d/50-authentick.conf");

/// The attacker's host, and the one that honest clients are on.
const ATTACKER: Host = Host::Client(0);
const CLIENTS: Host = Host::Client(1);

/// A request whose transmit timestamp has this number.
fn request(number: u64) -> Vec<u8> {
    let mut request = [0; 48];
    Header::minimal_request(NtpTime::from_bits(number)).emit(&mut request);
    request.to_vec()
}

/// Requests of an honest client that were not answered.
fn lost(hosts: &Hosts, from: IpAddr, server: SocketAddr, count: u64) -> u64 {
    hosts.within(CLIENTS, || {
        let socket = UdpSocket::bind((from, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let (start, mut sent, mut answered) = (Instant::now(), 0, HashSet::new());
        let end = INTERVAL * u32::try_from(count).unwrap() + Duration::from_secs(2);
        while start.elapsed() < end && answered.len() as u64 != count {
            while sent < count && start.elapsed() >= INTERVAL * u32::try_from(sent).unwrap() {
                sent += 1;
                socket.send_to(&request(sent), server).unwrap();
            }
            let mut response = [0; 100];
            if let Ok(size) = socket.recv(&mut response) {
                answered.insert(response[24..size.min(32)].to_vec());
            }
        }
        count - answered.len() as u64
    })
}

/// Honest clients of one family: behind a router, known, and one that comes.
struct Clients {
    server: SocketAddr,
    routed: IpAddr,
    known: IpAddr,
    new: IpAddr,
    absent: fn(u64) -> IpAddr,
}

/// Makes a network on the attacker's link, in which nothing but the server answers, and clients on the other.
fn networks(hosts: &Hosts) -> [Clients; 2] {
    let ip = |host, line: &str| {
        let status = hosts.on(host, "ip").args(line.split(' ')).status().unwrap();
        assert!(status.success(), "{line}");
    };
    let (near, far) = (Hosts::client_interface(), Hosts::server_interface(1));
    for (range, known, new) in [
        ("198.19.1.0/24", "198.19.2.2/32", "198.19.2.3/32"),
        ("fd00:b1::/64", "fd00:b2::2/128", "fd00:b2::3/128"),
    ] {
        ip(Host::Server, &format!("route add {range} dev {}", Hosts::server_interface(0)));
        for address in [known, new] {
            let flags = if address.contains(':') { " nodad" } else { "" };
            ip(CLIENTS, &format!("addr add {address} dev {near}{flags}"));
            ip(Host::Server, &format!("route add {address} dev {far}"));
        }
    }
    let parse = |text: &str| text.parse().unwrap();
    [
        Clients {
            server: SocketAddr::new(hosts.address(Host::Server), NTP),
            routed: hosts.address(CLIENTS),
            known: parse("198.19.2.2"),
            new: parse("198.19.2.3"),
            absent: |number| IpAddr::from([198, 19, 1, 2 + (number % ABSENT_COUNT) as u8]),
        },
        Clients {
            server: SocketAddr::new(hosts.address_v6(Host::Server), NTP),
            routed: hosts.address_v6(CLIENTS),
            known: parse("fd00:b2::2"),
            new: parse("fd00:b2::3"),
            absent: |number| IpAddr::from([0xfd00, 0xb1, 0, 0, 0, 0, 1, (number % ABSENT_COUNT) as u16]),
        },
    ]
}

/// Floods the server, and returns what each of the honest clients lost of [`REQUEST_COUNT`] meanwhile.
fn losses(hosts: &Hosts, clients: &Clients, rate_rps: u32) -> [u64; 3] {
    assert_eq!(lost(hosts, clients.known, clients.server, 10), 0, "before the flood");
    let (stop, server) = (&AtomicBool::new(false), clients.server);
    thread::scope(|scope| {
        let flood = scope.spawn(move || {
            hosts.within(ATTACKER, || {
                let spoofer = Spoofer::new(server.ip());
                let from = |number| SocketAddr::new((clients.absent)(number), 2_000);
                spoofer.flood(rate_rps, stop, |number| (from(number), server, request(number)))
            })
        });
        thread::sleep(FILLING);
        let all = [clients.routed, clients.known, clients.new];
        let lost = all.map(|from| scope.spawn(move || lost(hosts, from, server, REQUEST_COUNT)));
        let lost = lost.map(|client| client.join().unwrap());
        stop.store(true, Ordering::Relaxed);
        let sent = flood.join().unwrap();
        assert!(sent > u64::from(rate_rps) * 6, "{sent} at {rate_rps}/s are no flood");
        lost
    })
}

fn serve(hosts: &Hosts) -> (Lab, Server) {
    let lab = Lab::new();
    let config = lab.config(&format!("listen = [\"0.0.0.0:{NTP}\", \"[::]:{NTP}\"]\n"), "");
    let server = program().serve_on(hosts, Host::Server, &config);
    (lab, server)
}

/// Sets what the package sets of neighbours by default, for each interface of the server.
fn set_as_packaged(hosts: &Hosts) {
    let settings = PACKAGE.lines().filter_map(|line| line.strip_prefix("net.")?.split_once(" = "));
    let settings: Vec<_> = settings.filter(|(name, _)| name.contains(".neigh.default.")).collect();
    assert!(!settings.is_empty(), "{PACKAGE}");
    for (name, value) in settings {
        for index in 0..hosts.client_count() {
            let name = name.replace("default", &Hosts::server_interface(index)).replace('.', "/");
            hosts.set(Host::Server, &name, value);
        }
    }
}

#[test]
fn absent_neighbours_cost_honest_clients_nothing() {
    let hosts = match Hosts::new(2) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let families = networks(&hosts);
    set_as_packaged(&hosts);
    let (_lab, server) = serve(&hosts);
    for clients in &families {
        for rate_rps in [1_000, 5_000] {
            let lost = losses(&hosts, clients, rate_rps);
            println!("{} at {rate_rps}/s: routed, known, new lost {lost:?} of 1000", clients.server);
            assert_eq!(lost, [0; 3], "{} at {rate_rps}/s: routed, known, new", clients.server);
        }
    }
    let full = hosts.within(Host::Server, || server.metric("ntp_server_send_buffer_full_total"));
    assert!(full == 0.0, "{full}");
}

/// With the kernel's own settings the buffer fills, which nothing but the server can show.
#[test]
fn full_send_buffer_is_counted_and_logged_once() {
    let hosts = match Hosts::new(2) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let [clients, _] = networks(&hosts);
    let (_lab, mut server) = serve(&hosts);
    let lost = losses(&hosts, &clients, 10_000);
    println!("kernel's settings, 10000/s: routed, known, new lost {lost:?} of 1000");
    let line = server.process.wait_for_line("send buffer full: ");
    assert!(line.contains("neighbours do not resolve") && line.contains("net.core.wmem_max"), "{line}");
    let metric = |name| hosts.within(Host::Server, || server.metric(name));
    let full = metric("ntp_server_send_buffer_full_total");
    assert!(full > 0.0 && full <= metric("ntp_server_response_send_errors_total"), "{full}");
}
