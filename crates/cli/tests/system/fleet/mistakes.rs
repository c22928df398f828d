//! What operators do to a fleet by mistake, and what it says to that.

use std::fs;

use super::{Fleet, OFTEN, caches, has_lost_nothing};
use crate::lab::{authentick, start, text, wait_for};

impl Fleet {
    /// Another name for the file that a node keeps.
    fn copy(&self, from: usize, to: usize) {
        let [from, to] = [from, to].map(|index| self.nodes[index].lab.state().join("fleet-cookie-keys"));
        fs::copy(from, to).unwrap();
    }
}

#[test]
fn second_node_of_one_name_is_found_out_and_costs_no_client_anything() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, ", rotate = \"1h\"");
    wait_for("all to have said that they have it", || {
        let said = |name| format!("fleet_member_acknowledged{{kind=\"cookie-keys\",member={name:?}}}");
        ["b", "c"].iter().all(|name| fleet.nodes[0].metric(&said(name)) == 1.0).then_some(())
    });
    // Somebody has cloned the writer to the host of `c`, its disk and its configuration.
    (0..3).for_each(|index| fleet.kill(index));
    fleet.copy(0, 2);
    let clone = fleet.config(2, true);
    let text_of_clone = fs::read_to_string(&clone).unwrap().replace("node = \"c\"", "node = \"a\"");
    fs::write(&clone, text_of_clone).unwrap();
    // Both rotate, and neither sees the other.
    for config in [&fleet.config(0, true), &clone] {
        let output = authentick(["keys", "rotate", "--now", "--config", config.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    }
    [0, 1].into_iter().for_each(|index| fleet.start(index));
    for index in [0, 1] {
        wait_for("the document", || (fleet.nodes[index].version() == 2.0).then_some(()));
    }
    fleet.nodes[2].server = Some(start(&clone));
    fleet.nodes[2].server().process.wait_for_line("a document of fleet was refused: ");
    assert_eq!(fleet.nodes[2].metric("fleet_refused_documents_total{kind=\"cookie-keys\"}"), 1.0);
    // The old state serves on, there and elsewhere.
    assert_eq!(fleet.nodes[2].version(), 2.0);
    let client = fleet.nodes[0].client(10);
    has_lost_nothing(client, 10);
    fleet.nodes[2].server = None;
    fleet.is_unharmed();
}

#[test]
fn older_file_in_the_place_of_a_nodes_own_is_written_over() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, OFTEN);
    let file = fleet.nodes[1].lab.state().join("fleet-cookie-keys");
    let old = fs::read(&file).unwrap();
    fleet.rotate(1);
    // A restored backup, and then nothing at all.
    for text in [Some(&old), None] {
        match text {
            Some(octets) => fs::write(&file, octets).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        fleet.nodes[1].server().process.wait_for_line("was removed, or an older one put there");
        wait_for("the file to be there again", || fs::read(&file).ok().filter(|octets| *octets != old));
        fleet.rotate(1);
    }
    fleet.is_unharmed();
}
