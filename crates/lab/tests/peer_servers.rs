//! Servers of others as the rig starts them: pinned, answering, without the clock, and gone with their value.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

use authentick_lab::certificates::Lab;
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::folder;
use authentick_lab::process::{free_port, wait_for};
use authentick_lab::skip::skip;
use authentick_rig::Error;
use authentick_rig::peers::{Identity, Kind, Memcached, Memory, Peer, Place, Ports, Search, Setup};
use authentick_rig::process::{Guard, Process, is_running};

/// Every server that is here; says of the others that they are not.
fn found() -> Vec<Peer> {
    let folder = folder();
    let search = Search { folder: Some(&folder), path: None };
    let find = |kind| match Peer::find(kind, &search) {
        Ok(peer) => Some(peer),
        Err(error @ Error::Unavailable { .. }) => {
            skip(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    };
    Kind::ALL.into_iter().filter_map(find).collect()
}

fn setup<'a>(place: Place, address: IpAddr, folder: &'a Path, identity: Option<Identity<'a>>) -> Setup<'a> {
    let ports = Ports { ntp: free_port(), ke: free_port(), spare: free_port() };
    Setup { place, address, ports, folder, identity, keys: &[] }
}

/// A line of `/proc/PID/status`.
fn status(pid: u32, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
}

#[test]
fn servers_of_others_answer_from_their_host_and_cannot_set_the_clock() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let lab = Lab::new();
    let (chain, key) = (lab.chain(), lab.key());
    let before: Vec<_> = fs::read_dir(lab.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    for peer in found() {
        let identity = Some(Identity { chain: &chain, key: &key });
        let place = Place::on(&hosts, Host::Server).pinned_to(0);
        let setup = setup(place, hosts.address(Host::Server), lab.path(), identity);
        let mut server = peer.start(&setup).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((server.ntp(), server.ke()), (setup.ntp(), Some(setup.ke())), "{}", peer.title());
        server.check().unwrap();
        let pids: Vec<u32> = server.processes().iter().map(Process::id).collect();
        for pid in &pids {
            assert_eq!(status(*pid, "Cpus_allowed_list:"), "0", "{}", peer.title());
            // A filter is there, and the right to set clocks, number 25, is not, nor can it be had.
            assert_eq!(status(*pid, "Seccomp:"), "2", "{}", peer.title());
            for set in ["CapEff:", "CapPrm:", "CapBnd:"] {
                let rights = u64::from_str_radix(&status(*pid, set), 16).unwrap();
                assert_eq!(rights >> 25 & 1, 0, "{} {set}", peer.title());
            }
            assert!(fs::read_to_string(format!("/proc/{pid}/net/udp")).is_ok());
        }
        drop(server);
        assert!(!pids.into_iter().any(is_running), "{}", peer.title());
        let after: Vec<_> = fs::read_dir(lab.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(after, before, "{}", peer.title());
    }
}

#[test]
fn server_that_does_not_start_or_ends_says_why() {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    for peer in found() {
        let lab = Lab::new();
        // Documentation's (RFC 5737): nobody has this address.
        let nowhere = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        let error = peer.start(&setup(Place::here(), nowhere, lab.path(), None)).unwrap_err();
        let Error::Command { program, problem } = &error else { panic!("{error:?}") };
        assert_eq!(*program, peer.title());
        assert!(problem.contains("it said last: ") || problem.contains("it said nothing"), "{problem}");
        let mut server = peer.start(&setup(Place::here(), loopback, lab.path(), None)).unwrap();
        assert_eq!(server.ke(), None, "without a certificate");
        server.check().unwrap();
        let pid = server.processes()[0].id().to_string();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
        let why = wait_for("its end", || server.check().err()).to_string();
        assert!(why.contains(&peer.title()) && why.contains("it ended by itself"), "{why}");
    }
}

#[test]
fn memcached_of_the_rig_listens_where_it_says() {
    let folder = folder();
    let memcached = match Memcached::find(&Search { folder: Some(&folder), path: None }) {
        Ok(memcached) => memcached,
        Err(error) => return skip(&error.to_string()),
    };
    assert!(memcached.version().starts_with("1."), "{}", memcached.version());
    let (lab, free) = (Lab::new(), SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let place = Place::here().pinned_to(0);
    let start = |address| memcached.start(&place, address, Memory::megabytes(8), lab.path());
    let (process, address) = start(free).unwrap();
    assert_eq!(status(process.id(), "Cpus_allowed_list:"), "0");
    let mut client = authentick_lab::caches::CacheClient::connect(address).unwrap();
    assert_eq!(client.add("a", b"one").unwrap(), "STORED");
    let error = start(address).unwrap_err().to_string();
    assert!(error.contains("instead of listening") && error.contains("Address already in use"), "{error}");
}

/// A shell stands for a process that starts a server and is killed.
#[test]
fn guarded_process_ends_with_whoever_started_it() {
    let mut process = Process::start(Command::new("sleep").arg("60")).unwrap();
    let guard = Guard::new(&process).unwrap();
    drop(guard);
    assert_eq!(process.end().unwrap(), None, "a guard that goes away does nothing");
    let guard = Guard::new(&process).unwrap();
    // What this process does when it ends: its side of the pipe is closed.
    guard.close();
    wait_for("the end", || process.end().unwrap());
}
