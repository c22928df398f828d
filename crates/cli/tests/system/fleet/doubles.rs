//! Two hosts with one name: a cloned virtual machine, or a configuration that was copied with `node` as it was.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;

use super::{Fleet, Node, caches, has_lost_nothing};
use crate::lab::{Lab, free_port, refused, start, text, wait_for};

const SELDOM: &str = ", rotate = \"1h\"";
const DOUBLED: &str = "fleet_name_doubled{kind=\"cookie-keys\"}";

impl Fleet {
    /// A host with the disk and the name of a node, which runs.
    fn clone_of(&self, index: usize) -> Node {
        let mut node = Node { lab: Lab::new(), port: free_port(), server: None };
        node.seal("5a");
        let config = self.config_on(&node, index, index == 0);
        let [from, to] = [&self.nodes[index].lab, &node.lab].map(|lab| lab.state().join("fleet-cookie-keys"));
        fs::DirBuilder::new().mode(0o700).create(node.lab.state()).unwrap();
        fs::copy(from, to).unwrap();
        node.server = Some(start(&config));
        node
    }
}

/// Both hosts have found out, and say so; each still serves.
fn know_each_other(nodes: [&mut Node; 2], name: &str) {
    for node in nodes {
        wait_for("the double", || (node.metric(DOUBLED) == 1.0).then_some(()));
        let line = format!("fleet.node = \"{name}\": another host of fleet has this name too");
        node.server().process.wait_for_line(&line);
        let page = node.server().get("/readyz");
        assert!(page.starts_with("ok\n"), "{page}");
        assert!(page.contains(&format!("another host is also named {name}")), "{page}");
    }
}

#[test]
fn cloned_writer_stops_rotations_and_refuses_no_client() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, SELDOM);
    let client = fleet.nodes[2].client(40);
    let mut clone = fleet.clone_of(0);
    know_each_other([&mut fleet.nodes[0], &mut clone], "a");
    let parts = ["another host is also named a", "give it a name of its own"];
    refused(&fleet.keys(0, &["rotate", "--now"]), 78, &parts);
    let status = fleet.keys(1, &["status"]);
    assert_eq!(status.status.code(), Some(1), "{}", text(&status));
    assert!(text(&status).contains("\"is_doubled\": true"), "{}", text(&status));
    // Clients of each host are those of the other.
    has_lost_nothing(clone.client(5), 5);
    has_lost_nothing(client, 40);
    clone.is_unharmed();
    fleet.is_unharmed();
}

#[test]
fn cloned_member_holds_rotations_and_refuses_no_client() {
    let (_caches, addresses) = caches::<2>();
    let mut fleet = Fleet::running(&addresses, SELDOM);
    let mut clone = fleet.clone_of(1);
    know_each_other([&mut fleet.nodes[1], &mut clone], "b");
    let refusal = fleet.keys(0, &["rotate", "--now", "--wait", "3s"]);
    refused(&refusal, 1, &["not acknowledged by b"]);
    refused(&fleet.keys(1, &["take-over", "--wait", "3s"]), 78, &["another host is also named b"]);
    has_lost_nothing(clone.client(5), 5);
    clone.is_unharmed();
    fleet.is_unharmed();
}
