//! Whole lives of a fleet in virtual time, each replayed from its seed: four nodes that share keys over two stores that
//! nobody can trust, clients that wander from node to node with real cookies, clocks half a minute apart.
//!
//! No client is refused that was promised an answer, whatever stores, disks, clocks and people do. What nodes say is
//! made, sealed, read and judged by the code that serves; octets lie in stores and on disks.

mod client;
mod faults;
mod host;
mod keys;
mod operator;
mod store;
mod truth;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use authentick_fleet::Order;

use self::truth::{Counts, Log};
use self::world::World;

/// A run in four is repeated with other clocks.
const REPEATED: u64 = 4;

/// The life of one fleet: how often what happened, and who rotated when.
fn carry_out(seed: u64, are_clocks_right: bool) -> (Counts, Vec<(u64, usize, Order)>) {
    let log = Log::default();
    let run = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(seed, are_clocks_right, log.clone());
        world.carry_out();
        (world.truth.counts, world.truth.rotations)
    }));
    run.unwrap_or_else(|panic| {
        eprintln!("{}the seed is {seed}, and clocks are right: {are_clocks_right}", log.told());
        resume_unwind(panic);
    })
}

/// Carries them out; returns what happened in all of them together.
fn check(seeds: impl Iterator<Item = u64>) -> Counts {
    let mut all = Counts::default();
    for seed in seeds {
        let (counts, rotations) = carry_out(seed, false);
        if seed.is_multiple_of(REPEATED) {
            let (_, with_right_clocks) = carry_out(seed, true);
            assert_eq!(rotations, with_right_clocks, "seed {seed}: clocks decide who rotates when");
        }
        all = all.and(counts);
    }
    all
}

/// The lives of fleets with these seeds.
fn live(seeds: std::ops::Range<u64>) {
    let life_count = seeds.end - seeds.start;
    let all = check(seeds);
    println!("{all:?}");
    println!("assurance: fleet-lives = {life_count} lives");
    println!("assurance: fleet-requests = {} requests", all.requests);
    println!("assurance: fleet-rotations = {} rotations", all.due + all.by_hand);
    println!("assurance: fleet-take-overs = {} take-overs", all.take_overs);
    // A fleet that never rotates, or to which nothing happens, would lose no client either.
    assert!(all.due >= 6 * life_count, "{all:?}");
    let happened = [
        all.by_hand,
        all.take_overs,
        all.revocations,
        all.seal_rotations,
        all.lost_disks,
        all.revoked,
        all.expired,
        all.without_keys,
    ];
    assert!(happened.iter().all(|count| *count > 0), "{all:?}");
    assert!(all.crashes > 4 * life_count, "{all:?}");
    // Silence is rare, although whoever is left behind is asked as often as others.
    assert!(all.ahead * 100 < all.requests && all.without_keys * 10 < all.requests, "{all:?}");
    // So is a writer that was said to be gone and is not, or whose keys nobody else had.
    assert!(all.deposed * 1000 < all.requests, "{all:?}");
}

#[test]
fn fleet_loses_no_client_in_sixty_four_lives() {
    live(0..64);
}

#[test]
#[ignore = "takes twenty minutes in a debug build; `cargo xtask nightly` runs it in a release build"]
fn fleet_loses_no_client_in_thousands_of_lives() {
    live(0..5000);
}

/// An operator took over without the old writer, who was only away; stores lost the take-over's claim, and patience let
/// the old writer rotate by itself. A member of the new term, which had been said to know those keys, refused them.
#[test]
fn writer_that_was_said_to_be_gone_is_promised_nothing() {
    carry_out(1144, false);
}

/// A writer lost its disk, and stores that forgot let it claim once more the term that it had written: nobody answered.
#[test]
fn claim_of_a_term_that_has_documents_is_made_anew() {
    carry_out(1490, false);
}

/// A take-over without the writer was lost by the stores that it was told to. The writer's next key sealed for a whole
/// period, though nobody was promised anything for it before another member had it. Later a writer lost its disk that
/// waited for nobody.
#[test]
fn key_of_a_writer_that_was_left_behind_seals_for_a_period() {
    carry_out(1495, false);
}

/// A writer crashed when it had written, and a take-over went on without it: two keys had one identifier. The old
/// writer came back with a disk that refused, and of the two it opened its own, which nobody had ever sealed with.
#[test]
fn key_that_has_sealed_nothing_does_not_hide_another_one_of_its_number() {
    carry_out(109, false);
}

#[test]
fn same_seed_same_life() {
    assert_eq!(carry_out(1, false), carry_out(1, false));
    assert_ne!(carry_out(1, false), carry_out(2, false));
}
