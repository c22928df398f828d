//! What an operator can say to have less than a fleet promises otherwise: `rotate --now --drop`, `start = "stored"`.
//! `patience` is among the tests on hosts.

use std::fs;

use super::commands::{SELDOM, key};
use super::{Fleet, caches, has_lost_nothing};
use crate::lab::wait_for;

impl Fleet {
    /// Whether each node opens cookies under this key.
    fn opens(&mut self, id: &str) -> [bool; 3] {
        let name = format!("nts_cookie_key_requests_total{{key={id:?}}} ");
        [0, 1, 2].map(|index| self.nodes[index].server().get("/metrics").contains(&name))
    }
}

#[test]
fn keys_that_sealed_of_late_are_dropped_only_if_that_is_said() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, ", rotate = \"1h\", keep = 2");
    let mut sealed = Vec::new();
    for version in [2.0, 3.0, 4.0, 5.0] {
        sealed.push(key(&fleet.done(0, &["list"]), "current"));
        fleet.done(0, &["rotate", "--now"]);
        fleet.reach(version);
    }
    // All of them sealed within two periods, of an hour each.
    for id in &sealed {
        assert_eq!(fleet.opens(id), [true; 3], "{id} of {sealed:?}");
    }
    sealed.push(key(&fleet.done(0, &["list"]), "current"));
    fleet.done(0, &["rotate", "--now", "--drop"]);
    fleet.reach(6.0);
    for (index, id) in sealed.iter().enumerate() {
        wait_for("keys to be dropped", || (fleet.opens(id) == [index >= 3; 3]).then_some(()));
    }
    // Clients that come now are served by all.
    let clients: Vec<_> = fleet.nodes.iter().map(|node| node.client(5)).collect();
    clients.into_iter().for_each(|client| has_lost_nothing(client, 5));
    fleet.is_unharmed();
}

#[test]
fn node_without_a_document_takes_one_without_a_welcome_only_if_that_is_said() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, SELDOM);
    fleet.kill(0);
    fleet.kill(2);
    fs::remove_file(fleet.nodes[2].lab.state().join("fleet-cookie-keys")).unwrap();
    // The writer is away, and so is who would welcome it.
    fleet.start(2);
    let reads = format!("fleet_server_reads_total{{server=\"{}\"}}", addresses[0]);
    wait_for("the document to be read", || (fleet.nodes[2].metric(&reads) >= 3.0).then_some(()));
    assert_eq!(fleet.nodes[2].version(), 0.0);
    fleet.kill(2);
    fleet.more = "start = \"stored\"".to_owned();
    fleet.start(2);
    wait_for("the document", || (fleet.nodes[2].version() == 1.0).then_some(()));
    has_lost_nothing(fleet.nodes[1].client(5), 5);
    fleet.is_unharmed();
}
