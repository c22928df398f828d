//! Who writes: two by mistake, and another one than before while that one lives.

use super::{Fleet, NAMES, OFTEN, caches, laboratory};
use crate::lab::{refused, wait_for};

#[test]
fn second_writer_writes_nothing_until_it_takes_over() {
    let Some((hosts, memcached)) = laboratory() else { return };
    let (_caches, servers) = caches(&hosts, &memcached);
    let mut fleet = Fleet::running(&hosts, &servers, OFTEN);
    let writer = "fleet_writer{kind=\"cookie-keys\"}";
    fleet.under_load("two writers by mistake", |fleet| {
        fleet.kill(1);
        fleet.start_as(1, true);
        fleet.says(
            1,
            "a writes the keys of this fleet, not this node, though fleet.writer in its configuration names it: ",
        );
        fleet.rotate(2);
        assert_eq!((fleet.metric(0, writer), fleet.metric(1, writer)), (1.0, 0.0));
        assert_eq!(fleet.metric(1, "nts_cookie_key_rotations_total"), 0.0);
        refused(&fleet.on(1, &["keys", "generate"]), 78, &["holds keys already"]);
    });
    fleet.under_load("take-over while the old writer lives", |fleet| {
        fleet.done(1, &["take-over"]);
        fleet.says(
            0,
            "b writes the keys of this fleet, not this node, though fleet.writer in its configuration names it: ",
        );
        (2..4).for_each(|index| drop(fleet.says(index, "b is taking over as the writer, with term 2")));
        let term = "fleet_document_term{kind=\"cookie-keys\"}";
        for index in 0..NAMES.len() {
            wait_for("the new term", || (fleet.metric(index, term) == 2.0).then_some(()));
        }
        fleet.rotate(2);
        let writers = [0, 1, 2, 3].map(|index| fleet.metric(index, writer));
        assert_eq!(writers, [0.0, 1.0, 0.0, 0.0]);
        assert!(fleet.metric(1, "nts_cookie_key_rotations_total") >= 2.0);
    });
}
