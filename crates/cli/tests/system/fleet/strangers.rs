//! First keys that are made twice: no node's keys are replaced by those of another's making, and all say so.

use std::fs;
use std::process::Output;

use serde_json::Value;

use super::{Fleet, NAMES, caches, has_lost_nothing};
use crate::lab::{authentick, refused, start, text, wait_for};

const SELDOM: &str = ", rotate = \"1h\"";

impl Fleet {
    /// Starts a node as one that writes.
    fn start_as_writer(&mut self, index: usize) {
        let config = self.config(index, true);
        self.nodes[index].server = Some(start(&config));
    }

    /// The key that a node seals with, as its disk has it.
    fn seals(&self, index: usize) -> String {
        let config = self.config(index, true);
        let output = authentick(["keys", "list", "--json", "--config", config.to_str().unwrap()]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()[0]["id"].as_str().unwrap().to_owned()
    }

    fn status_of(&self, index: usize) -> Output {
        let config = self.config(index, false);
        authentick(["keys", "status", "--config", config.to_str().unwrap()])
    }

    fn generate(&self, index: usize) -> Output {
        let config = self.config(index, true);
        authentick(["keys", "generate", "--config", config.to_str().unwrap()])
    }
}

#[test]
fn first_keys_of_two_nodes_serve_on_beside_each_other_until_one_is_removed() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::new(&addresses, SELDOM);
    // Nothing lies in memcached yet, so nothing tells `b` that `a` has made some.
    let output = fleet.generate(1);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    fleet.start_as_writer(0);
    fleet.start_as_writer(1);
    let kind = "{kind=\"cookie-keys\"}";
    for (index, other) in [(0, "b"), (1, "a")] {
        let said = format!(
            "the cookie keys of {other} descend from other first keys than those of {}",
            NAMES[index]
        );
        let line = fleet.nodes[index].server().process.wait_for_line(&said);
        assert!(line.contains("remove ") && line.contains("fleet-cookie-keys"), "{line}");
        assert_eq!(fleet.nodes[index].metric(&format!("fleet_strangers{kind}")), 1.0);
        assert_eq!(fleet.nodes[index].metric(&format!("fleet_writer{kind}")), 1.0, "it has its own keys");
    }
    // What `b` has put there is higher, and `a` does not take it.
    fleet.nodes[0]
        .server()
        .process
        .wait_for_line("a document of fleet was refused: its keys descend from other");
    assert_eq!(fleet.nodes[0].metric(&format!("fleet_refused_documents_total{kind}")), 1.0);
    let [of_a, of_b] = [0, 1].map(|index| fleet.seals(index));
    assert_ne!(of_a, of_b);
    // Status tells both, and so does what a take-over is refused for.
    fleet.start(2);
    let output = wait_for("all to have spoken", || {
        let output = fleet.status_of(2);
        (!text(&output).contains("has said nothing")).then_some(output)
    });
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    assert_eq!(said.matches("keep those of one node, and remove the others").count(), 2, "{said}");
    assert!(
        said.contains("a would refuse clients of b") && said.contains("b would refuse clients of a"),
        "{said}"
    );
    let config_of_b = fleet.config(1, true);
    let output =
        authentick(["keys", "take-over", "--wait", "30s", "--config", config_of_b.to_str().unwrap()]);
    refused(&output, 78, &["two fleets of one name", "keep the keys of one node", "--without"]);
    // Without it, `b` goes on, and `a` still takes nothing.
    let output = authentick([
        "keys",
        "take-over",
        "--without",
        "a",
        "--without",
        "c",
        "--wait",
        "30s",
        "--config",
        config_of_b.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(fleet.seals(0), of_a);
    // An operator decides for `b`: `a` has nothing, and is welcomed.
    // It has refused a document, as it should.
    fleet.nodes[0].server = None;
    fs::remove_file(fleet.nodes[0].lab.state().join("fleet-cookie-keys")).unwrap();
    fleet.kill(2);
    let _ = fs::remove_file(fleet.nodes[2].lab.state().join("fleet-cookie-keys"));
    let config = fleet.config(0, false);
    fleet.nodes[0].server = Some(start(&config));
    fleet.start(2);
    wait_for("one fleet", || {
        let output = fleet.status_of(2);
        (output.status.code() == Some(0)).then_some(())
    });
    assert_eq!(fleet.seals(0), of_b);
    wait_for("no strangers", || {
        let count = fleet.nodes[1].metric(&format!("fleet_strangers{kind}"));
        (count == 0.0).then_some(())
    });
    let client = fleet.nodes[0].client(5);
    has_lost_nothing(client, 5);
}

#[test]
fn first_keys_are_not_made_where_the_fleet_has_some() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, SELDOM);
    // The writer has lost its disk.
    fleet.kill(0);
    let file = fleet.nodes[0].lab.state().join("fleet-cookie-keys");
    fs::remove_file(&file).unwrap();
    let parts = ["fleet has cookie keys already, version 1 of term 1 by a", "take-over", "restart memcached"];
    refused(&fleet.generate(0), 78, &parts);
    assert!(!file.exists());
    // Another node takes over, and the old one is welcomed by it.
    let config = fleet.config(1, true);
    let output = authentick([
        "keys",
        "take-over",
        "--without",
        "a",
        "--wait",
        "60s",
        "--config",
        config.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let config = fleet.config(0, false);
    fleet.nodes[0].server = Some(start(&config));
    for node in &mut fleet.nodes {
        wait_for("the document", || (node.version() == 2.0).then_some(()));
    }
    fleet.is_unharmed();
}
