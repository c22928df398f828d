//! Loads over IPv6, on loopback and between hosts, and of a server that is not ours: the same as over IPv4 and of ours.

use std::net::SocketAddr;

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::NtpdRs;
use authentick_lab::skip::skip;
use authentick_report::load::{LoadRecord, Step};

use super::{ALWAYS, Apart, hosts, load, only, record};
use crate::lab::{Lab, has_measured, program, start, wait_for};

const RATE: [&str; 6] = ["--rate", "200", "--step-seconds", "1", "--clients", "20"];

/// What loads over IPv6 say: answers, and nothing wrong with any of them.
#[track_caller]
fn check(record: &LoadRecord, address: SocketAddr) -> Step {
    assert_eq!(record.address, address.to_string());
    let step = only(record);
    assert!(step.tally.answered > 0 && step.tally.invalid == 0, "{address}: {:?}", step.tally);
    assert!(step.accompanying.as_ref().is_none_or(|keys| keys.invalid == 0), "{step:?}");
    step.clone()
}

#[test]
fn loopback_is_loaded_over_ipv6() {
    if !authentick_net::udp::has_ipv6() {
        return skip("this host has no IPv6");
    }
    let lab = Lab::new();
    let server = start(&lab.config("listen = [\"[::1]:0\"]", "ke-listen = [\"[::1]:0\"]"));
    assert!(server.ntp.is_ipv6() && server.ke.is_ipv6());
    let plain = load(&[&["plain", &server.ntp.to_string()], &RATE[..]].concat());
    check(&plain, server.ntp);
    assert_eq!(plain.path, "loopback");
    let (ca, port) = (lab.ca(), server.ke.port().to_string());
    let trust = ["--ke-port", &port, "--server-name", "ntp.test", "--ca", ca.to_str().unwrap()];
    check(&load(&[&["nts", "[::1]"], &trust[..], &RATE[..]].concat()), server.ntp);
    let target = server.ke.to_string();
    let exchanges = ["ke", &target, "--server-name", "ntp.test", "--ca", ca.to_str().unwrap()];
    check(&load(&[&exchanges[..], &["--rate", "20", "--step-seconds", "1"]].concat()), server.ke);
}

/// Loads from one host what serves on another; the server may still be on its way up.
fn load_from(hosts: &Hosts, arguments: &[&str]) -> LoadRecord {
    let run = || {
        let mut command = hosts.on(Host::Client(0), program().path());
        command.arg("load").args(arguments).args(RATE).args(ALWAYS).output().unwrap()
    };
    let output = wait_for("a load", || Some(run()).filter(has_measured));
    record(&String::from_utf8_lossy(&output.stdout))
}

/// Plain NTP and NTS from a host over its cable.
fn compare(hosts: &Hosts, lab: &Lab, ntp: SocketAddr, ke_port: u16) {
    let plain = check(&load_from(hosts, &["plain", &ntp.to_string()]), ntp);
    assert_eq!((plain.request_size, plain.tally.lost), (48, 0), "{:?}", plain.tally);
    let (host, ke_port, ca) = (ntp.ip().to_string(), ke_port.to_string(), lab.ca());
    let host = if ntp.is_ipv6() { format!("[{host}]") } else { host };
    let trust = ["--ke-port", &ke_port, "--server-name", "ntp.test", "--ca", ca.to_str().unwrap()];
    let nts = check(&load_from(hosts, &[&["nts", &host], &trust[..]].concat()), ntp);
    assert!(nts.request_size > 48 && nts.tally.lost == 0, "{:?}", nts.tally);
}

#[test]
fn hosts_are_loaded_over_ipv6() {
    let Some(hosts) = hosts() else { return };
    let Apart { lab, hosts, .. } = &Apart::on(hosts, "[::]");
    let ntp = SocketAddr::new(hosts.address_v6(Host::Server), Apart::NTP.port());
    compare(hosts, lab, ntp, Apart::KE_PORT);
}

#[test]
fn ntpd_rs_is_loaded() {
    let Some(ntpd_rs) = NtpdRs::find() else { return };
    let Some(hosts) = hosts() else { return };
    let lab = Lab::new();
    let _server = ntpd_rs.on(&hosts, Host::Server).server(&lab, 1125, 14462);
    compare(&hosts, &lab, SocketAddr::new(hosts.address(Host::Server), 1125), 14462);
}
