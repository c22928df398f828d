//! Memcached that is killed, one and then both, while nodes are killed and started too; and one that is full.

use std::net::SocketAddr;

use authentick_lab::hosts::Host;
use authentick_lab::peers::{MemcachedServer, Memory};

use super::{Fleet, OFTEN, caches, laboratory};
use crate::lab::wait_for;

/// Waits until a node has said that it cannot use a server, and shows that.
#[track_caller]
fn misses(fleet: &mut Fleet<'_>, index: usize, server: SocketAddr) {
    fleet.says(index, &format!("memcached {server}: "));
    wait_for("the server to be down", || (fleet.of_server(index, "up", server) == 0.0).then_some(()));
    assert!(fleet.of_server(index, "failures_total", server) > 0.0);
}

#[test]
fn memcached_may_be_killed_and_nodes_with_it() {
    let Some((hosts, memcached)) = laboratory() else { return };
    let (mut caches, servers) = caches(&hosts, &memcached);
    let mut fleet = Fleet::running(&hosts, &servers, OFTEN);
    fleet.under_load("one memcached killed", |fleet| {
        caches[0].kill();
        (0..4).for_each(|index| misses(fleet, index, servers[0]));
        fleet.rotate(1);
    });
    fleet.under_load("both killed", |fleet| {
        caches[1].kill();
        misses(fleet, 0, servers[1]);
        fleet.stops();
    });
    fleet.under_load("kill -9 and restart without memcached", |fleet| {
        // The writer too, and it rotates no more often for that.
        for index in [1, 0] {
            let version = fleet.version(index);
            fleet.kill(index);
            fleet.start(index);
            assert_eq!(fleet.version(index), version, "it has what it had");
        }
        fleet.stops();
    });
    fleet.under_load("both started anew", |fleet| {
        caches.iter_mut().for_each(MemcachedServer::restart);
        fleet.rotate(1);
        fleet.says(0, &format!("memcached {} answers again", servers[1]));
    });
}

#[test]
fn memcached_that_is_full_holds_rotations_up_and_no_client() {
    let Some((hosts, memcached)) = laboratory() else { return };
    let address = SocketAddr::new(hosts.address(Host::Server), 0);
    let mut full = memcached.start(address, Memory::megabytes(2).refusing());
    let mut other = memcached.start(address, Memory::megabytes(64));
    let servers = [full.address(), other.address()];
    let mut fleet = Fleet::running(&hosts, &servers, OFTEN);
    fleet.rotate(1);
    fleet.under_load("one memcached full", |fleet| {
        // Whatever size a value has that a node wants to put there.
        let sizes = std::iter::successors(Some(64), |size| (*size < 8000).then_some(size * 6 / 5));
        for size in sizes {
            hosts.within(Host::Server, || full.fill(size));
        }
        for index in 0..4 {
            let line = format!("memcached {} does not take authentick/fleet/", servers[0]);
            let said = fleet.says(index, &line);
            assert!(said.contains("out of memory") && said.contains("give it more memory (-m)"), "{said}");
            assert!(fleet.of_server(index, "refused_writes_total", servers[0]) > 0.0);
        }
        fleet.rotate(1);
    });
    fleet.under_load("no memcached but the full one", |fleet| {
        other.kill();
        fleet.stops();
        full.kill();
        full.restart();
        fleet.rotate(1);
    });
}
