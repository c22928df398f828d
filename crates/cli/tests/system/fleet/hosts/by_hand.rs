//! A fleet that starts without memcached, whose keys rotate by hand, and whose memcached forgets everything.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use authentick_fleet::Name;
use authentick_fleet::seal::{SealKeys, Topic};
use authentick_lab::caches::CacheClient;
use authentick_lab::hosts::Host;
use authentick_lab::peers::MemcachedServer;

use super::load::Scenario;
use super::{Fleet, KE, NAMES, NTP, SELDOM, caches, client, in_time, laboratory};
use crate::lab::{refused, text, wait_for};

impl Fleet<'_> {
    /// The document of cookie keys that lies in a server, opened: sealed anew, it has other octets.
    fn document_in(&self, server: SocketAddr) -> Option<String> {
        let fleet = Name::new("fleet").unwrap();
        let name = Topic::Document.name(&fleet, "cookie-keys");
        let found = self
            .hosts
            .within(Host::Server, || CacheClient::connect(server).ok()?.gets(&[&name]).ok()?.pop())?;
        let seals = SealKeys::new(fleet, &[[0x5A; 32].into()]).unwrap();
        let (document, _) = seals.open(Topic::Document, "cookie-keys", &found.value).expect("it is sealed");
        Some(document.to_string())
    }
}

#[test]
fn fleet_starts_without_memcached_rotates_by_hand_and_fills_an_empty_one() {
    let Some((hosts, memcached)) = laboratory() else { return };
    let (mut caches, servers) = caches(&hosts, &memcached);
    caches.iter_mut().for_each(MemcachedServer::kill);
    let mut fleet = Fleet::new(&hosts, &servers, SELDOM);
    (0..NAMES.len()).for_each(|index| fleet.start(index));
    starts_without_memcached(&mut fleet, servers[0]);
    caches.iter_mut().for_each(MemcachedServer::restart);
    for index in 0..NAMES.len() {
        wait_for("a document", || (fleet.version(index) > 0.0).then_some(()));
    }
    fleet.under_load("rotate --now, twice", |fleet| {
        for _ in 0..2 {
            in_time("rotate --now was in force on all four", Duration::from_secs(5), || rotates_now(fleet));
        }
    });
    fleet.under_load("memcached restarted empty, one and both", |fleet| {
        for which in [0..1, 0..2] {
            let before = fleet.document_in(servers[0]).expect("it is there");
            in_time("the same keys were back", Duration::from_secs(2), || {
                caches[which.clone()].iter_mut().for_each(MemcachedServer::kill);
                caches[which.clone()].iter_mut().for_each(MemcachedServer::restart);
                let empty = Instant::now();
                for server in &servers[which.clone()] {
                    let document = wait_for("the document", || fleet.document_in(*server));
                    assert!(document == before, "other keys are in {server}");
                }
                empty.elapsed()
            });
            for server in &servers[which] {
                fleet.says(0, &format!("memcached {server} answers again"));
                wait_for("the server to be up", || (fleet.of_server(0, "up", *server) == 1.0).then_some(()));
            }
        }
    });
}

/// Who has keys serves with them, and who has none serves time, and refuses nobody.
fn starts_without_memcached(fleet: &mut Fleet<'_>, server: SocketAddr) {
    let _named = Scenario("first start without memcached");
    let seen = fleet.drill(&[0], &["--rotations", "0", "--rate", "100", "--timeout", "2"]);
    assert_eq!((&seen["total"]["ntsn"], &seen["total"]["invalid"]), (&0.into(), &0.into()), "{seen}");
    for line in seen["lines"].as_array().unwrap() {
        let is_writer = line["server"] == fleet.address(0, NTP);
        assert_eq!(
            (line["answered"] == line["sent"], line["answered"] == 0),
            (is_writer, !is_writer),
            "{line}"
        );
    }
    for index in 1..NAMES.len() {
        let run = |arguments: &[&str]| client(fleet.hosts).arg("query").args(arguments).output().unwrap();
        let plain = run(&[&fleet.address(index, NTP), "--auth", "plain"]);
        assert_eq!(plain.status.code(), Some(0), "{}", text(&plain));
        let (host, ca) = (fleet.hosts.address(Host::Client(index)).to_string(), fleet.nodes[index].lab.ca());
        let nts = run(&[&host, "--ke-port", &KE.to_string(), "--ca", ca.to_str().unwrap()]);
        refused(&nts, 69, &["the server refused: internal server error"]);
        fleet.says(index, &format!("memcached {server}: cannot connect: "));
        assert_eq!((fleet.version(index), fleet.of_server(index, "up", server)), (0.0, 0.0));
        fleet.is_unharmed(index);
    }
}

/// How long a rotation by hand takes, from the command to the last node.
fn rotates_now(fleet: &Fleet<'_>) -> Duration {
    let (version, key, began) = (fleet.version(0), fleet.sealing_key(0), Instant::now());
    fleet.done(0, &["rotate", "--now"]);
    (0..NAMES.len()).for_each(|index| fleet.reach(index, version + 1.0));
    let taken = began.elapsed();
    assert_eq!(fleet.sealing_key(0), key.wrapping_add(1));
    fleet.seal_alike();
    taken
}
