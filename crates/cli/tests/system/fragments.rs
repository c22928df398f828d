//! A forged ICMP message does not have a server's responses cut into fragments.

use std::net::{SocketAddr, UdpSocket};

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::process::wait_for;
use authentick_lab::spoof::send_fragmentation_needed;

use crate::lab::{Lab, program, text};

const NTP: u16 = 1123;
const KE: u16 = 1460;
const OTHER: u16 = 1124;
/// Less than a response under NTS has.
const MTU: u16 = 128;

/// Fragments that the server's host has made. proc(5), `FragCreates` of `/proc/net/snmp`.
fn fragment_count(hosts: &Hosts) -> u64 {
    hosts.within(Host::Server, || {
        let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Ip: "));
        let [names, values] = [(); 2].map(|()| lines.next().unwrap().split(' '));
        names.zip(values).find(|(name, _)| *name == "FragCreates").unwrap().1.parse().unwrap()
    })
}

#[test]
fn forged_icmp_has_no_nts_response_cut_into_fragments() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    hosts.set(Host::Server, "ipv4/route/min_pmtu", "68");
    let lab = Lab::new();
    let listen = format!("listen = [\"0.0.0.0:{NTP}\"]");
    let config = lab.config(&listen, &format!("ke-listen = [\"0.0.0.0:{KE}\"]"));
    let server = program().serve_on(&hosts, Host::Server, &config);
    let (here, there) = (hosts.address(Host::Server), hosts.address(Host::Client(0)));
    let forge = |port| {
        let (from, to) = (SocketAddr::new(here, port), SocketAddr::new(there, 40_000));
        hosts.within(Host::Client(0), || send_fragmentation_needed(from, to, MTU));
    };
    forge(NTP);
    let address = here.to_string();
    let mut query = hosts.on(Host::Client(0), program().path());
    query.args([
        "query",
        &format!("{address}:{NTP}"),
        "--ke-port",
        &KE.to_string(),
        "--server-name",
        "ntp.test",
    ]);
    let output = query.arg("--ca").arg(lab.ca()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(hosts.within(Host::Server, || server.outcome("nts")), 1.0);
    assert_eq!(fragment_count(&hosts), 0);
    // A socket that heeds the path's size shows that the message is taken.
    let other = hosts.within(Host::Server, || UdpSocket::bind((here, OTHER)).unwrap());
    wait_for("a socket that heeds it to send fragments", || {
        forge(OTHER);
        // The kernel may refuse the first.
        let _ = other.send_to(&[0; 400], (there, 40_000));
        (fragment_count(&hosts) > 0).then_some(())
    });
}
