//! A server on wildcard addresses answers from the address that was asked, of which its host has several.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::Duration;

use authentick_lab::antp::SUITES;
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::process::PATIENCE;
use authentick_wire::header::Header;
use authentick_wire::time::NtpTime;

use crate::lab::{Lab, authentick, program, refused, text};

const NTP: u16 = 1123;

/// Where the answer to a plain request from this host comes from. The socket takes answers from anywhere.
fn answers_from(hosts: &Hosts, asked: SocketAddr) -> SocketAddr {
    hosts.within(Host::Client(0), || {
        let wildcard = if asked.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(wildcard).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = [0; 48];
        Header::minimal_request(NtpTime::from_bits(1)).emit(&mut request);
        socket.send_to(&request, asked).unwrap();
        socket.recv_from(&mut [0; 100]).unwrap().1
    })
}

#[test]
fn answers_come_from_whichever_of_the_host_s_addresses_was_asked() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let more = ["fd00:a7::5:1", "fd00:a7::5:2", "198.18.5.1", "198.18.5.2"];
    for address in more {
        let size = if address.contains(':') { 128 } else { 32 };
        let address = format!("{address}/{size}");
        let added =
            hosts.on(Host::Server, "ip").args(["addr", "add", &address, "dev", "lo"]).status().unwrap();
        assert!(added.success());
    }
    let lab = Lab::new();
    SUITES.iter().for_each(|suite| lab.antp_identity(suite, |_| {}));
    let listen = format!("listen = [\"0.0.0.0:{NTP}\", \"[::]:{NTP}\"]\nworkers = 2");
    let config = lab.antp_config(&SUITES, &listen, "");
    let _server = program().serve_on(&hosts, Host::Server, &config);
    let own = [hosts.address(Host::Server), hosts.address_v6(Host::Server)];
    for address in more.iter().map(|address| address.parse::<IpAddr>().unwrap()).chain(own) {
        let asked = SocketAddr::new(address, NTP);
        assert_eq!(answers_from(&hosts, asked), asked);
    }
    // A key exchange of ANTP is answered by another thread, over another socket; the client takes no other's answer.
    for address in ["[fd00:a7::5:1]", "[fd00:a7::5:2]"] {
        let output = hosts
            .on(Host::Client(0), program().path())
            .args([
                "query",
                &format!("{address}:{NTP}"),
                "--auth",
                "antp",
                "--server-name",
                "ntp.test",
                "--ca",
            ])
            .arg(lab.ca())
            .arg("--state-directory")
            .arg(lab.path().join("client"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{address}: {}", text(&output));
    }
}

/// Runs `ip` with these words on a host; returns what it prints.
fn ip(hosts: &Hosts, host: Host, line: &str) -> String {
    let output = hosts.on(host, "ip").args(line.split(' ')).output().unwrap();
    assert!(output.status.success(), "{line}: {}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Octets that come back within a while after a request to each of these.
fn reflected(hosts: &Hosts, addresses: &[SocketAddr]) -> usize {
    hosts.within(Host::Client(0), || {
        let mut size = 0;
        for &address in addresses {
            let wildcard = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(wildcard).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            if address.is_ipv4() {
                socket.set_broadcast(true).unwrap();
            }
            let mut request = [0; 48];
            Header::minimal_request(NtpTime::from_bits(1)).emit(&mut request);
            socket.send_to(&request, address).unwrap();
            while let Ok(more) = socket.recv(&mut [0; 100]) {
                size += more;
            }
        }
        size
    })
}

#[test]
fn broadcast_and_multicast_requests_are_not_answered() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let (near, far) = (Hosts::client_interface(), Hosts::server_interface(0));
    ip(&hosts, Host::Server, &format!("addr add 198.19.5.1/24 brd + dev {far}"));
    ip(&hosts, Host::Client(0), &format!("addr add 198.19.5.2/24 brd + dev {near}"));
    ip(&hosts, Host::Client(0), &format!("route add default dev {near}"));
    let index = ip(&hosts, Host::Client(0), &format!("-o link show {near}"));
    let index: u32 = index.split(':').next().unwrap().parse().unwrap();
    let (group, here) = (Ipv4Addr::new(224, 0, 1, 1), Ipv4Addr::new(198, 19, 5, 1));
    // The other process on the server's host that has joined the group.
    let _member = hosts.within(Host::Server, || {
        let member = UdpSocket::bind("0.0.0.0:0").unwrap();
        member.join_multicast_v4(&group, &here).unwrap();
        member
    });
    let broadcasts = [Ipv4Addr::BROADCAST, Ipv4Addr::new(198, 19, 5, 255)];
    let mut many: Vec<SocketAddr> = broadcasts.iter().map(|&address| (address, NTP).into()).collect();
    many.push((group, NTP).into());
    many.push(SocketAddrV6::new("ff02::1".parse().unwrap(), NTP, 0, index).into());
    for workers in [1, 16] {
        let lab = Lab::new();
        let listen = format!("listen = [\"0.0.0.0:{NTP}\", \"[::]:{NTP}\"]\nworkers = {workers}");
        let server = program().serve_on(&hosts, Host::Server, &lab.config(&listen, ""));
        assert_eq!(reflected(&hosts, &many), 0, "{workers} workers");
        assert_eq!(reflected(&hosts, &[(here, NTP).into()]), 48, "{workers} workers, its own address");
        let page = |name: &str| hosts.within(Host::Server, || server.metric(name));
        assert_eq!(page("ntp_server_response_send_errors_total"), 0.0);
        let dropped = page("ntp_server_packets_total{outcome=\"not_unicast\"}");
        assert_eq!(dropped, f64::from(2 * workers), "each worker's socket had both broadcasts");
        assert_eq!(page("ntp_server_received_packets_total"), dropped + 1.0);
    }
}

#[test]
fn listen_address_of_many_hosts_is_refused() {
    for address in ["255.255.255.255", "127.255.255.255", "224.0.1.1", "[ff02::101]"] {
        let lab = Lab::new();
        let config = lab.config(&format!("listen = [\"{address}:{NTP}\"]"), "");
        for arguments in [&["--check"][..], &[]] {
            let mut words = vec!["serve", "--config", config.to_str().unwrap()];
            words.extend(arguments);
            refused(
                &authentick(words),
                78,
                &["server.listen", address, "expected a unicast or wildcard address"],
            );
        }
    }
}
