//! What nodes have in files: a state directory whose disk is full, and seal keys that are replaced, rightly or not.

use std::fs;
use std::time::Duration;

use authentick_lab::disk::RamDisk;

use super::{Fleet, NAMES, OFTEN, PERIOD, caches, laboratory};
use crate::lab::{authentick, text, wait_for};

impl Fleet<'_> {
    /// Has a node read its seal keys again.
    fn reload(&self, index: usize) {
        let read = || self.lines(index, "seal keys read again").len();
        let before = read();
        self.server(index).process.signal("-HUP");
        wait_for("the seal keys to be read again", || (read() > before).then_some(()));
    }

    fn strange(&self, index: usize) -> f64 {
        self.servers.iter().map(|server| self.of_server(index, "strange_values_total", *server)).sum()
    }

    /// Waits until rotation waits for `b` for longer than a period, and the writer has said so. It may name others who
    /// have not found the last document: a node with another seal key puts its own over that.
    fn waits_for_b(&self) {
        wait_for("a rotation to wait for b", || {
            let version = self.version(0);
            std::thread::sleep(2 * PERIOD);
            let said = self.lines(0, "cookie keys are due to rotate, and wait: ").pop()?;
            let is_named = said.contains(": not acknowledged by b") && self.silent().contains(&"b");
            (is_named && self.version(0) == version).then_some(())
        });
    }
}

#[test]
fn full_disk_and_other_seal_keys_hold_rotations_up_and_no_client() {
    let Some((hosts, memcached)) = laboratory() else { return };
    let (_caches, servers) = caches(&hosts, &memcached);
    let mut fleet = Fleet::new(&hosts, &servers, OFTEN);
    let state = fleet.nodes[1].lab.state();
    fs::create_dir(&state).unwrap();
    let disk = match RamDisk::mount(&state, 32 << 10) {
        Ok(disk) => disk,
        Err(reason) => return reason.tell(),
    };
    fleet.start_all();
    fleet.under_load("state disk full", |fleet| {
        // A file that is replaced leaves some room behind.
        wait_for("the disk to be full", || {
            disk.fill();
            let lines = fleet.lines(1, "new keys open from memory until it is written");
            lines.iter().any(|line| line.contains("No space left")).then_some(())
        });
        fleet.waits_for_b();
        assert_eq!(fleet.metric(1, "fleet_disk_failures_total{kind=\"cookie-keys\"}"), 1.0);
        // The keys of `a` are newer than what is on the disk of `b`; they open there, and do not seal.
        assert!(fleet.version(0) > fleet.version(1));
        let [of_a, of_b] = [0, 1].map(|index| fleet.opens(index));
        assert!(of_a.is_subset(&of_b), "{of_a:?} {of_b:?}");
        assert_ne!(fleet.sealing_key(0), fleet.sealing_key(1));
        disk.empty();
        fleet.says(1, "is written again");
        fleet.rotate(1);
    });
    fleet.under_load("seal key rotated", |fleet| {
        let file = fleet.seal_file(0);
        for _ in 0..3 {
            let output = authentick(["keys", "seal", "rotate", "--file", file.to_str().unwrap()]);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output));
            for index in 0..NAMES.len() {
                if index > 0 {
                    fs::copy(&file, fleet.seal_file(index)).unwrap();
                }
                fleet.reload(index);
                // The one has read it, and the next has not.
                std::thread::sleep(Duration::from_millis(1100));
            }
            fleet.rotate(1);
        }
        assert_eq!([0, 1, 2, 3].map(|index| fleet.strange(index)), [0.0; 4]);
    });
    fleet.under_load("wrong seal key", |fleet| {
        fleet.seal(1, "a5");
        fleet.reload(1);
        fleet.says(1, "/document is ignored: no seal key of ours has sealed it");
        fleet.says(0, "/node/b is ignored: no seal key of ours has sealed it");
        assert!(fleet.strange(0) > 0.0 && fleet.strange(1) > 0.0);
        fleet.waits_for_b();
        // Its operator puts the right one there.
        fs::copy(fleet.seal_file(0), fleet.seal_file(1)).unwrap();
        fleet.reload(1);
        fleet.rotate(1);
    });
    // Before the disk goes away.
    drop(fleet);
    drop(disk);
}
