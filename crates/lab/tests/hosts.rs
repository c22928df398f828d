//! Hosts made of namespaces, their filters and their quotas.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use authentick_lab::filter::{Action, Filter, Traffic, Way};
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::process::Process;
use authentick_lab::quota::Quota;

const PORT: u16 = 11_123;

/// Sends a datagram between two addresses and back.
fn exchange(server: &UdpSocket, client: &UdpSocket) {
    for socket in [server, client] {
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    }
    let mut buffer = [0; 8];
    client.send_to(b"request", server.local_addr().unwrap()).unwrap();
    let (size, source) = server.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..size], source), (&b"request"[..], client.local_addr().unwrap()));
    server.send_to(b"answer", source).unwrap();
    let (size, source) = client.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..size], source), (&b"answer"[..], server.local_addr().unwrap()));
}

fn bind(hosts: &Hosts, host: Host, address: IpAddr) -> UdpSocket {
    hosts.within(host, || UdpSocket::bind(SocketAddr::new(address, 0))).unwrap()
}

#[test]
fn every_host_reaches_every_other_over_both_families() {
    let hosts = match Hosts::new(4) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let all: Vec<Host> = (0..4).map(Host::Client).chain([Host::Server]).collect();
    for server in &all {
        for client in all.iter().filter(|client| *client != server) {
            let addresses = |host| [hosts.address(host), hosts.address_v6(host)];
            for (of_server, of_client) in addresses(*server).into_iter().zip(addresses(*client)) {
                let sockets = [bind(&hosts, *server, of_server), bind(&hosts, *client, of_client)];
                exchange(&sockets[0], &sockets[1]);
            }
        }
    }
}

#[test]
fn hosts_go_away_after_a_panic_and_stars_stand_side_by_side() {
    let star = || {
        let hosts = Hosts::new(1)?;
        Ok::<_, authentick_lab::Skip>((hosts.name(Host::Server).to_owned(), hosts))
    };
    let (other_name, other) = match star() {
        Ok(star) => star,
        Err(skip) => return skip.tell(),
    };
    let (name, hosts) = star().unwrap();
    assert_ne!(name, other_name);
    let exists = |name: &str| std::path::Path::new("/run/netns").join(name).exists();
    assert!(exists(&name) && exists(&other_name));
    let panicked = std::thread::spawn(move || {
        let _hosts = hosts;
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(panicked.join().is_err());
    assert!(!exists(&name) && exists(&other_name));
    drop(other);
    assert!(!exists(&other_name));
}

#[test]
fn hosts_of_a_process_that_was_killed_go_away_with_the_next_star() {
    if let Err(skip) = Hosts::new(1) {
        return skip.tell();
    }
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let (orphan, owned) = (format!("atk-{}-0-s", dead.id()), format!("atk-{}-9999-s", std::process::id()));
    for name in [&orphan, &owned] {
        assert!(Command::new("ip").args(["netns", "add", name]).status().unwrap().success());
    }
    let _hosts = Hosts::new(1).unwrap();
    let exists = |name: &str| std::path::Path::new("/run/netns").join(name).exists();
    assert!(!exists(&orphan) && exists(&owned));
    assert!(Command::new("ip").args(["netns", "del", &owned]).status().unwrap().success());
}

#[test]
fn client_owns_further_source_addresses_of_both_families() {
    let hosts = match Hosts::new(2) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    hosts.add_sources(0, "198.19.0.0/24");
    hosts.add_sources(0, "fd00:a8::/64");
    let sources = ["198.19.0.1", "198.19.0.254", "fd00:a8::1", "fd00:a8::ffff"];
    for source in sources.map(|source| source.parse::<IpAddr>().unwrap()) {
        for host in [Host::Server, Host::Client(1)] {
            let address = if source.is_ipv4() { hosts.address(host) } else { hosts.address_v6(host) };
            exchange(&bind(&hosts, host, address), &bind(&hosts, Host::Client(0), source));
        }
        let foreign = hosts.within(Host::Client(1), || UdpSocket::bind((source, 0)));
        assert_eq!(foreign.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
    }
}

#[test]
fn commands_run_on_their_host_and_parameters_are_of_one_host() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let links = |host| {
        let output = hosts.on(host, "ip").args(["-o", "link"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(links(Host::Server).contains(": c1@") && links(Host::Client(0)).contains(": s@"));
    let parameter = "/proc/sys/net/ipv4/tcp_tw_reuse";
    let of = |host| hosts.within(host, || std::fs::read_to_string(parameter)).unwrap().trim().to_owned();
    let before = of(Host::Server);
    let other = if before == "1" { "0" } else { "1" };
    hosts.set(Host::Client(0), "ipv4/tcp_tw_reuse", other);
    assert_eq!((of(Host::Server), of(Host::Client(0)).as_str()), (before, other));
}

#[test]
fn filter_counts_drops_resets_and_rewrites() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let mut filter = match Filter::new(&hosts, Host::Server) {
        Ok(filter) => filter,
        Err(skip) => return skip.tell(),
    };
    let address = SocketAddr::new(hosts.address(Host::Server), PORT);
    let server = hosts.within(Host::Server, || UdpSocket::bind(address)).unwrap();
    let client = bind(&hosts, Host::Client(0), hosts.address(Host::Client(0)));
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();

    let all = filter.add(Way::In, Traffic::UdpTo(PORT), Action::Count);
    let sized = filter.add(Way::In, Traffic::UdpSizeTo(PORT, 228), Action::Drop);
    let share = filter.add(Way::In, Traffic::UdpSizeTo(PORT, 64), Action::DropShare { ppm: 250_000 });
    let stratum = filter.add(Way::Out, Traffic::UdpSizeFrom(PORT, 48), Action::SetStratum(5));
    let opened = filter.add(Way::In, Traffic::TcpOpenTo(PORT), Action::Count);
    let reset = filter.add(Way::In, Traffic::TcpTo(PORT + 1), Action::Reset);

    // In rounds that the receive buffer holds; the 48 octets end each.
    let mut arrived = Vec::new();
    let mut buffer = [0; 512];
    for _ in 0..20 {
        for size in [64; 50].into_iter().chain([228, 48]) {
            client.send_to(&[1; 228][..size], address).unwrap();
        }
        while arrived.last() != Some(&48) {
            arrived.push(server.recv_from(&mut buffer).unwrap().0);
        }
        arrived.push(0);
    }
    let count = |size| arrived.iter().filter(|&&arrived| arrived == size).count() as u64;
    assert_eq!((filter.packets(all), filter.packets(sized), count(228)), (20 * 52, 20, 0));
    assert_eq!(count(48), 20);
    // 250 of 1000 within four standard deviations of 13.7.
    let lost = filter.packets(share);
    assert_eq!(count(64) + lost, 1000);
    assert!(lost.abs_diff(250) < 55, "{lost}");

    server.send_to(&[1; 48], client.local_addr().unwrap()).unwrap();
    assert_eq!(client.recv_from(&mut buffer).unwrap().0, 48);
    assert_eq!((buffer[0], buffer[1], buffer[2]), (1, 5, 1));
    assert_eq!(filter.packets(stratum), 1);

    let listeners = hosts.within(Host::Server, || {
        [PORT, PORT + 1].map(|port| TcpListener::bind((address.ip(), port)).unwrap())
    });
    let connect = |listener: &TcpListener| {
        let address = listener.local_addr().unwrap();
        hosts.within(Host::Client(0), || TcpStream::connect_timeout(&address, Duration::from_secs(5)))
    };
    for _ in 0..3 {
        connect(&listeners[0]).unwrap();
    }
    assert_eq!(connect(&listeners[1]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!((filter.packets(opened), filter.packets(reset)), (3, 1));
}

#[test]
fn quota_bounds_the_processor_time_of_a_process() {
    let quota = match Quota::new(0.2) {
        Ok(quota) => quota,
        Err(skip) => return skip.tell(),
    };
    let busy = Process::start(Command::new("sh").args(["-c", "while :; do :; done"]));
    quota.add(busy.id());
    let (start, before) = (Instant::now(), busy.usage().1);
    std::thread::sleep(Duration::from_secs(1));
    let share = (busy.usage().1 - before) / start.elapsed().as_secs_f64();
    // The kernel counts in ticks of 10 ms, and hands quota out in slices of 5 ms.
    assert!((0.05..=0.25).contains(&share), "{share}");
    assert!(quota.throttled_count() > 10, "{}", quota.throttled_count());
    let name = format!("/proc/{}/cgroup", busy.id());
    assert!(std::fs::read_to_string(&name).unwrap().contains("/atk-"));
    drop(quota);
    assert!(!std::fs::read_to_string(&name).unwrap().contains("/atk-"));
}
