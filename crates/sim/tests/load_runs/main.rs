//! Whole load runs in virtual time, each replayed from its seed: the generator's core against the real responder and a
//! network that loses, repeats, reorders, delays, forges and lies, on a host that is held up now and then.
//!
//! The sums of the counts hold in every run. The world knows what it did to each request, and what it sent that belongs
//! to none: the generator's causes and counts of strays are the same, without exception.

mod deed;
mod network;
mod scenario;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use self::world::{Differences, World};

/// Runs of these seeds; prints the seed of one that fails.
fn carry_out(seeds: impl Iterator<Item = u64>) -> (Differences, u64) {
    let (mut differences, mut request_count) = (Differences::new(), 0);
    for seed in seeds {
        let run = catch_unwind(AssertUnwindSafe(|| {
            let mut world = World::new(seed);
            world.carry_out();
            (world.differences, world.request_count)
        }));
        let (found, count) = run.unwrap_or_else(|panic| {
            eprintln!("the seed is {seed}");
            resume_unwind(panic);
        });
        for (&(deed, end), count) in &found {
            if !differences.contains_key(&(deed, end)) {
                eprintln!(
                    "seed {seed}: the world did {deed:?}, and the generator says {end:?}, {count} times"
                );
            }
            *differences.entry((deed, end)).or_default() += count;
        }
        request_count += count;
    }
    (differences, request_count)
}

/// The runs of so many seeds, on two threads.
fn check(seed_count: u64) {
    let halves: Vec<(Differences, u64)> = std::thread::scope(|scope| {
        let threads = [0, 1].map(|first| scope.spawn(move || carry_out((first..seed_count).step_by(2))));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let mut found = Differences::new();
    for (difference, count) in halves.iter().flat_map(|(differences, _)| differences) {
        *found.entry(*difference).or_default() += count;
    }
    let request_count: u64 = halves.iter().map(|(_, count)| count).sum();
    println!("assurance: load-runs = {seed_count} runs");
    println!("assurance: load-requests = {request_count} requests");
    assert!(found.is_empty(), "what the world did, and what the generator says: {found:?}");
}

#[test]
fn two_thousand_load_runs_add_up_and_say_what_the_world_did() {
    check(2_000);
}

#[test]
#[ignore = "takes an hour in a debug build; `cargo xtask nightly` runs it in a release build"]
fn a_million_load_runs_add_up_and_say_what_the_world_did() {
    check(1_000_000);
}
