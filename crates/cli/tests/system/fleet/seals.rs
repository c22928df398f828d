//! Seal keys that a running node cannot read again, or that are others, and documents that come back.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use authentick_lab::caches::Behaviour;

use super::{Fleet, OFTEN, caches, has_lost_nothing};
use crate::lab::wait_for;

const FAILURES: &str = "fleet_seal_key_reload_failures_total";

#[test]
fn bad_seal_file_at_sighup_changes_nothing_and_is_counted() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, OFTEN);
    let client = fleet.nodes[0].client(100);
    let file = fleet.nodes[1].lab.path().join("seal");
    let good = fs::read_to_string(&file).unwrap();
    assert_eq!(fleet.nodes[1].metric(FAILURES), 0.0);
    let change = |index: usize| match index {
        0 => fs::write(&file, &good[..good.len() - 2]).unwrap(),
        1 => fs::write(&file, "").unwrap(),
        // Open to others.
        2 => {
            fs::write(&file, &good).unwrap();
            fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        }
        _ => fs::remove_file(&file).unwrap(),
    };
    for index in 0..4 {
        change(index);
        fleet.nodes[1].server().process.signal("-HUP");
        let line = fleet.nodes[1].server().process.wait_for_line("seal keys not changed: ");
        assert!(line.contains("fleet.seal-key"), "{line}");
        wait_for("the count", || (fleet.nodes[1].metric(FAILURES) == (index + 1) as f64).then_some(()));
        // It is heard, and hears the others: the key that it has read before is in force.
        fleet.rotate(1);
    }
    fleet.nodes[1].seal("5a");
    fleet.nodes[1].server().process.signal("-HUP");
    fleet.nodes[1].server().process.wait_for_line("seal keys read again");
    fleet.rotate(1);
    assert_eq!(fleet.nodes[1].metric(FAILURES), 4.0);
    has_lost_nothing(client, 100);
    fleet.is_unharmed();
}

#[test]
fn other_seal_key_at_sighup_is_counted_as_strange_and_the_old_keys_serve_on() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, OFTEN);
    fleet.rotate(1);
    fleet.nodes[1].seal("a5");
    fleet.nodes[1].server().process.signal("-HUP");
    fleet.nodes[1].server().process.wait_for_line("seal keys read again");
    fleet.nodes[1].server().process.wait_for_line("/document is ignored: no seal key of ours has sealed it");
    let strange = format!("fleet_server_strange_values_total{{server=\"{}\"}}", addresses[0]);
    for index in [0, 1] {
        wait_for("the count", || (fleet.nodes[index].metric(&strange) > 0.0).then_some(()));
    }
    // No rotation takes place without it, and clients of all are served by all.
    fleet.waits_for("b");
    let clients: Vec<_> = fleet.nodes.iter().map(|node| node.client(10)).collect();
    clients.into_iter().for_each(|client| has_lost_nothing(client, 10));
    fleet.nodes[1].seal("5a");
    fleet.nodes[1].server().process.signal("-HUP");
    fleet.rotate(1);
    fleet.is_unharmed();
}

#[test]
fn document_that_comes_back_is_counted_and_changes_nothing() {
    let (caches, addresses) = caches::<2>();
    let mut fleet = Fleet::running(&addresses, OFTEN);
    fleet.rotate(2);
    let older =
        |index: usize| format!("fleet_server_older_documents_total{{server=\"{}\"}}", addresses[index]);
    for node in &mut fleet.nodes {
        assert_eq!((node.metric(&older(0)), node.metric(&older(1))), (0.0, 0.0), "rotations are none");
    }
    let version = fleet.writer().version();
    caches[0].behave(Behaviour::Replay);
    for node in &mut fleet.nodes {
        let line = node.server().process.wait_for_line(": it had version ");
        assert!(line.contains("and has version 1 of term 1 by a"), "{line}");
        assert_eq!((node.metric(&older(0)), node.metric(&older(1))), (1.0, 0.0));
        assert!(node.version() >= version);
    }
    fleet.rotate(1);
    fleet.is_unharmed();
}
