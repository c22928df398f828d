//! A writer that is away: nothing is lost, rotation waits, and the others say so.

use std::time::{Duration, Instant};

use super::{Fleet, OFTEN, caches, has_lost_nothing};

const SILENCE: &str = "fleet_writer_silent_seconds{kind=\"cookie-keys\"}";

/// A minute of silence, and as much again on a busy machine.
const LIMIT: Duration = Duration::from_secs(150);

/// Waits for what takes more than a minute.
#[track_caller]
fn wait_long<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "no {what} in {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn writer_that_is_away_is_told_of_and_costs_no_client_anything() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, OFTEN);
    fleet.rotate(1);
    assert_eq!(fleet.writer().metric(SILENCE), 0.0);
    for index in [1, 2] {
        assert!(fleet.nodes[index].metric(SILENCE) < 60.0);
    }
    fleet.kill(0);
    // Cookies of `b` are asked of `c`.
    let client = fleet.nodes[1].client(300);
    let line = "a of fleet silent for 60 s or more; no client is refused; a writes the cookie keys";
    for index in [1, 2] {
        wait_long("silence", || (fleet.nodes[index].metric(SILENCE) > 60.0).then_some(()));
        let said = fleet.nodes[index].server().process.wait_for_line(line);
        assert!(said.contains("keys take-over"), "{said}");
    }
    has_lost_nothing(client, 300);
    fleet.start(0);
    let again = "all members of fleet are heard of again";
    for index in [1, 2] {
        fleet.nodes[index].server().process.wait_for_line(again);
        assert!(fleet.nodes[index].metric(SILENCE) < 60.0);
    }
    fleet.rotate(1);
    fleet.is_unharmed();
}
