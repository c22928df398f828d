//! A server on wildcard addresses answers from the address that was asked, of which its host has several.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use authentick_lab::antp::SUITES;
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::process::PATIENCE;
use authentick_wire::header::Header;
use authentick_wire::time::NtpTime;

use crate::lab::{Lab, program, text};

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
