//! A real memcached does what tests do to it.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use authentick_lab::caches::{CacheClient, Found};
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::{Memcached, Memory};
use authentick_lab::process::wait_for;

/// A free port of loopback.
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

const SMALL: Memory = Memory::megabytes(1).item_size_max(4096);

#[test]
fn memcached_stores_and_compares_over_both_families() {
    let Some(memcached) = Memcached::find() else { return };
    for address in [LOOPBACK, SocketAddr::from((Ipv6Addr::LOCALHOST, 0))] {
        let server = memcached.start(address, Memory::megabytes(8));
        let mut client = CacheClient::connect(server.address()).unwrap();
        assert_eq!(client.add("a", b"one\r\n").unwrap(), "STORED");
        assert_eq!(client.add("a", b"two").unwrap(), "NOT_STORED");
        let found = client.gets(&["b", "a"]).unwrap();
        let [Found { name, value, unique }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((name.as_str(), value.as_slice()), ("a", b"one\r\n".as_slice()));
        assert_eq!(client.cas("a", b"two", unique + 1).unwrap(), "EXISTS");
        assert_eq!(client.cas("a", b"two", *unique).unwrap(), "STORED");
        assert_eq!(client.cas("b", b"two", *unique).unwrap(), "NOT_FOUND");
        assert_eq!(client.gets(&["a"]).unwrap()[0].value, b"two");
    }
}

#[test]
fn paused_memcached_accepts_and_answers_when_it_goes_on() {
    let Some(memcached) = Memcached::find() else { return };
    let server = memcached.start(LOOPBACK, SMALL);
    let mut before = CacheClient::connect(server.address()).unwrap();
    before.add("a", b"one").unwrap();
    server.pause();
    let mut during = CacheClient::connect(server.address()).unwrap();
    for client in [&mut before, &mut during] {
        client.set_patience(Duration::from_millis(200)).unwrap();
        assert_eq!(client.gets(&["a"]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    server.resume();
    for client in [&mut before, &mut during] {
        client.set_patience(Duration::from_secs(20)).unwrap();
        assert_eq!(client.line().unwrap(), "VALUE a 0 3 1");
        assert_eq!(client.line().unwrap(), "one");
        assert_eq!(client.line().unwrap(), "END");
    }
}

#[test]
fn killed_memcached_refuses_and_comes_back_empty_where_it_was() {
    let Some(memcached) = Memcached::find() else { return };
    let mut server = memcached.start(LOOPBACK, SMALL);
    let address = server.address();
    for paused in [false, true] {
        let mut client = CacheClient::connect(address).unwrap();
        assert_eq!(client.add("a", b"one").unwrap(), "STORED");
        if paused {
            server.pause();
        }
        server.kill();
        assert!(client.gets(&["a"]).is_err());
        assert_eq!(CacheClient::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        server.restart();
        assert_eq!(server.address(), address);
        let mut client = CacheClient::connect(address).unwrap();
        assert_eq!(client.gets(&["a"]).unwrap(), []);
    }
    drop(server);
    assert_eq!(CacheClient::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn full_memcached_evicts_or_refuses_as_it_was_told() {
    let Some(memcached) = Memcached::find() else { return };
    for size in [100, 1000, 3000] {
        let server = memcached.start(LOOPBACK, SMALL);
        let count = server.fill(size);
        let mut client = CacheClient::connect(server.address()).unwrap();
        assert!(client.count("evictions").unwrap() > Some(0));
        assert_eq!(client.add("a", &vec![1; size]).unwrap(), "STORED");
        assert_eq!(
            client.gets(&[&format!("fill-{size}-0")]).unwrap(),
            [],
            "the oldest of {count} goes first"
        );

        let server = memcached.start(LOOPBACK, SMALL.refusing());
        let count = server.fill(size);
        let mut client = CacheClient::connect(server.address()).unwrap();
        assert_eq!(client.count("evictions").unwrap(), Some(0));
        assert_eq!(
            client.add("a", &vec![1; size]).unwrap(),
            "SERVER_ERROR out of memory storing object",
            "after {count} of {size} octets"
        );
        assert_eq!(client.gets(&["a", &format!("fill-{size}-0")]).unwrap().len(), 1);
        // Another class of sizes has its page yet.
        assert_eq!(client.add("b", &vec![1; size / 2]).unwrap(), "STORED");
    }
}

#[test]
fn item_that_is_too_large_is_refused() {
    let Some(memcached) = Memcached::find() else { return };
    let server = memcached.start(LOOPBACK, SMALL);
    let mut client = CacheClient::connect(server.address()).unwrap();
    assert_eq!(client.add("a", &[1; 4096 - 100]).unwrap(), "STORED");
    assert_eq!(client.add("b", &[1; 4096]).unwrap(), "SERVER_ERROR object too large for cache");
}

#[test]
fn memcached_on_a_host_is_reached_from_another() {
    let Some(memcached) = Memcached::find() else { return };
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let address = SocketAddr::new(hosts.address(Host::Server), 11_211);
    let mut server = memcached.on(&hosts, Host::Server).start(address, SMALL.refusing());
    let count = hosts.within(Host::Server, || server.fill(1000));
    let ask = || hosts.within(Host::Client(0), || CacheClient::connect(address)?.gets(&["fill-1000-0"]));
    assert_eq!(ask().unwrap()[0].value, [0xA5; 1000], "{count}");
    server.kill();
    server.restart();
    assert_eq!(wait_for("an answer", || ask().ok()), []);
}
