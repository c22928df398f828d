//! What adversaries without a plan do: random schedules, and every schedule up to a depth.
//!
//! The long run, with `-- --ignored`, is a part of `cargo xtask nightly`.

use authentick_game::protocol::{self, E, Family, Protocol};
use authentick_game::schedule::{Limits, Start, search, wander};

/// Messages that the exhaustive adversary looks at.
const ROOM: usize = 6;

/// Moves of a random schedule.
const LENGTH: usize = 12;

/// Whether nobody is to lose: there is a key, and a bound.
fn is_safe(protocol: &dyn Protocol) -> bool {
    protocol.family() != Family::Plain && protocol.bound().is_some()
}

/// Random schedules against every protocol, as many in all.
fn wandered(schedules: u64, seed: u64) {
    let protocols = protocol::all();
    let each = schedules.div_ceil(protocols.len() as u64);
    let (mut played, mut believed) = (0, 0);
    for protocol in &protocols {
        let found = wander(protocol.as_ref(), seed, each, LENGTH);
        played += found.schedules;
        believed += found.believed;
        // No error is more than half the round trip, whoever wins: if the server said it, clocks and delays decide.
        assert!(found.share_max <= 500, "{found:?}");
        assert!(found.believed > each / 20, "{found:?}");
        if is_safe(protocol.as_ref()) {
            assert_eq!(found.wins, 0, "{found:?}");
            assert!(found.error_max <= E.to_bits() / 2 + 1, "{found:?}");
        }
        let (error, bound) = (found.error_max as f64 / 2_f64.powi(32), found.share_max as f64 / 1000.0);
        println!("assurance: error-{} = {error:.6} s, {bound:.3} of the round trip", found.protocol);
    }
    println!("assurance: schedules = {played} schedules");
    println!("assurance: schedule-samples = {believed} samples");
}

/// Every schedule within each of the limits that `limits` gives for a protocol and a start.
fn searched(limits: impl Fn(&dyn Protocol, Start) -> Vec<Limits>) {
    let (mut worlds, mut moves) = (0, 0);
    for protocol in protocol::all() {
        for &start in Start::all(protocol.as_ref()) {
            for limits in limits(protocol.as_ref(), start) {
                let found = search(protocol.as_ref(), 1, start, limits);
                worlds += found.worlds;
                moves += found.moves;
                let (from, depth) = (start.word(), limits.depth);
                let changes = limits.changes.map_or(String::new(), |count| format!("-with-{count}-change"));
                println!(
                    "assurance: {}-from-{from}{changes} = {} worlds of {depth} moves",
                    found.protocol, found.worlds
                );
                assert_eq!(found.is_safe(), is_safe(protocol.as_ref()), "{:?}", found.attacks);
            }
        }
    }
    println!("assurance: schedule-worlds = {worlds} worlds");
    println!("assurance: schedule-moves = {moves} moves");
}

#[test]
fn hundred_thousand_random_schedules_stay_within_half_their_round_trip() {
    wandered(100_000, 2);
}

#[test]
#[ignore = "takes ten minutes; a part of the night"]
fn ten_million_random_schedules_stay_within_half_their_round_trip() {
    wandered(10_000_000, 3);
}

#[test]
#[ignore = "takes ten minutes; a part of the night"]
fn no_schedule_of_eight_queries_or_more_breaks_what_has_a_key_and_a_bound() {
    let any = |depth| Limits::new(depth, ROOM);
    searched(|protocol, start| match (protocol.family(), start) {
        // What loses is found early; all ways to lose are many.
        (Family::Plain | Family::Other, _) => vec![any(3)],
        (Family::PairKey | Family::GroupKey | Family::Nts, _) if protocol.bound().is_some() => vec![any(5)],
        (Family::PairKey | Family::GroupKey | Family::Nts, _) => vec![any(4)],
        // With one change a schedule can be longer: from m3 it is five moves to the first time.
        (Family::Antp | Family::AntpSeparate, Start::Keyed) => vec![any(3), any(5).with_changes(1)],
        (Family::Antp | Family::AntpSeparate, Start::Negotiated) => vec![any(2), any(5).with_changes(1)],
        (Family::Antp | Family::AntpSeparate, Start::Fresh) => vec![any(3)],
    });
}
