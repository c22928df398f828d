//! The rules hold in every course of events, and each of them is needed.

use std::io::Write as _;
use std::sync::Mutex;

use stateright::{Checker, HasDiscoveries, Model};

use super::world::{Deed, Event, Told};
use super::{Fleet, Limits, World};
use crate::rules::{Rotation, Rule};

/// One exploration at a time, so that they do not take each other's processors.
static TURN: Mutex<()> = Mutex::new(());

const ROTATE: Limits = Limits {
    rotations: 2,
    revocations: 0,
    crashes: 0,
    losses: 0,
    refusals: 0,
    takeovers: 0,
    patience: 0,
    doubles: 0,
};

/// States after which a rule counts as one that is not needed: repeated ones included; each takes some kilooctets.
const STATE_COUNT_MAX: usize = 1_500_000;

/// Explores a fleet, and prints how many states it has.
///
/// # Panics
/// If a property does not hold, with a course of events that leads there.
fn explore(name: &str, limits: Limits) {
    explore_fleet(
        name,
        &Fleet { limits, first_unsteady: 0, is_made_twice: false, double_of: None, without: None },
    );
}

/// The same of any fleet.
fn explore_fleet(name: &str, fleet: &Fleet) {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Depth first needs less memory; for the shortest course to a failure, see `is_needed`.
    let checker = fleet.clone().checker().threads(2).spawn_dfs().join();
    checker.assert_properties();
    println!("fleet: {name}: {} states", checker.unique_state_count());
    let figure = format!("fleet-states = {} states", checker.unique_state_count());
    println!("assurance: {figure}");
    note(name, &figure);
}

/// Appends a figure to the file that `cargo xtask test` prints at the end: what a test that passes prints is not seen.
fn note(name: &str, figure: &str) {
    let Some(path) = std::env::var_os("AUTHENTICK_FIGURES") else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(format!("fleet, {name}: {figure}\n").as_bytes()))
        .expect("it is named");
}

/// Takes a rule away.
///
/// # Panics
/// If no property notices.
fn is_needed(rule: Rule, first_unsteady: usize, limits: Limits) {
    let is_made_twice = rule == Rule::OneLineage;
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let double_of = match rule {
        Rule::DoubleStops => Some(0),
        Rule::DoubleUnheard => Some(1),
        _ => None,
    };
    let fleet = Fleet { limits, first_unsteady, is_made_twice, double_of, without: Some(rule) };
    let checker = fleet.checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.target_state_count(STATE_COUNT_MAX).spawn_bfs().join();
    let failures: Vec<String> = checker
        .discoveries()
        .into_iter()
        .filter(|(name, _)| *name != "all rotations took place")
        .map(|(name, path)| format!("{name}: {:?}", path.into_actions()))
        .collect();
    assert!(!failures.is_empty(), "without {rule:?} all {} states are good", checker.unique_state_count());
    println!("fleet: without {rule:?}, after {} states: {failures:?}", checker.unique_state_count());
}

#[test]
fn rotations_lose_no_client() {
    explore("rotations", ROTATE);
}

#[test]
fn crashes_lose_no_client() {
    explore("crashes", Limits { crashes: 1, ..ROTATE });
}

#[test]
fn lost_disks_lose_no_client() {
    explore("losses", Limits { losses: 1, ..ROTATE });
}

#[test]
fn full_disks_lose_no_client() {
    explore("refusals", Limits { refusals: 1, ..ROTATE });
}

#[test]
fn revocations_lose_no_client() {
    explore("revocations", Limits { revocations: 1, ..ROTATE });
}

#[test]
fn takeovers_lose_no_client() {
    explore("takeovers", Limits { rotations: 1, takeovers: 1, ..ROTATE });
}

#[test]
fn members_that_were_left_behind_take_over_and_lose_no_client() {
    explore("patience", Limits { rotations: 1, takeovers: 1, patience: 1, ..ROTATE });
}

#[test]
fn takeovers_with_revocations_and_crashes_lose_no_client_and_no_revoked_key_comes_back() {
    let limits = Limits { rotations: 0, takeovers: 1, revocations: 1, crashes: 1, ..ROTATE };
    let fleet = Fleet { limits, first_unsteady: 2, is_made_twice: false, double_of: None, without: None };
    explore_fleet("a take-over, a revocation and a crash", &fleet);
}

/// Two nodes have made first keys, and neither takes over those of the other before what it has is removed.
#[test]
fn first_keys_that_were_made_twice_lose_no_client() {
    let fleet =
        |limits| Fleet { limits, first_unsteady: 0, is_made_twice: true, double_of: None, without: None };
    explore_fleet("first keys made twice", &fleet(Limits { rotations: 1, losses: 1, ..ROTATE }));
}

/// A cloned virtual machine, or one restored from an old image, while the other host goes on: of the writer, and of
/// the other member.
#[test]
fn hosts_of_one_name_lose_no_client() {
    let limits = Limits { doubles: 1, ..ROTATE };
    for (name, double_of, limits) in [
        ("a second writer", 0, limits),
        ("a second writer and a crash", 0, Limits { crashes: 1, ..limits }),
        ("a second writer and a take-over", 0, Limits { takeovers: 1, rotations: 1, ..limits }),
        ("a second member", 1, limits),
        ("a second member and a crash", 1, Limits { crashes: 1, ..limits }),
        ("a second member and a revocation", 1, Limits { revocations: 1, rotations: 1, ..limits }),
    ] {
        let first_unsteady = 0;
        let fleet =
            Fleet { limits, first_unsteady, is_made_twice: false, double_of: Some(double_of), without: None };
        explore_fleet(name, &fleet);
    }
}

/// Each rule, and the smallest fleet that was found to need it: its first unsteady node, and what can happen.
const NEEDED: [(Rule, usize, Limits); 21] = [
    (Rule::HigherOnly, 0, ROTATE),
    (Rule::DiskFirst, 0, Limits { refusals: 1, ..ROTATE }),
    (Rule::DiskBeforeStore, 0, Limits { crashes: 1, ..ROTATE }),
    (Rule::EqualDigest, 0, ROTATE),
    (Rule::AllMembers, 0, ROTATE),
    (Rule::FutureFirst, 0, ROTATE),
    (Rule::KeepPeriods, 0, ROTATE),
    (Rule::Welcome, 1, Limits { losses: 1, ..ROTATE }),
    (Rule::WriterWelcomes, 1, Limits { losses: 1, ..ROTATE }),
    (Rule::ClaimKept, 2, Limits { takeovers: 1, crashes: 1, patience: 2, ..ROTATE }),
    (Rule::ClaimBars, 2, Limits { takeovers: 1, patience: 2, ..ROTATE }),
    (Rule::ClaimStops, 2, Limits { takeovers: 1, patience: 2, ..ROTATE }),
    (Rule::NewTerm, 2, Limits { takeovers: 1, patience: 1, ..ROTATE }),
    (Rule::AllAnswers, 2, Limits { takeovers: 1, patience: 2, ..ROTATE }),
    (Rule::HighestOfAll, 2, Limits { takeovers: 1, patience: 2, ..ROTATE }),
    (Rule::Remembered, 2, Limits { takeovers: 1, revocations: 1, rotations: 0, ..ROTATE }),
    (Rule::Heal, 2, Limits { takeovers: 1, revocations: 1, rotations: 0, ..ROTATE }),
    (Rule::OneLineage, 0, ROTATE),
    (Rule::PutBack, 0, ROTATE),
    (Rule::DoubleStops, 0, Limits { doubles: 1, ..ROTATE }),
    (Rule::DoubleUnheard, 0, Limits { doubles: 1, ..ROTATE }),
];

#[test]
fn every_rule_is_needed() {
    for (rule, first_unsteady, limits) in NEEDED {
        is_needed(rule, first_unsteady, limits);
    }
}

/// A taker loses its disk after it has taken over and rotated, and takes over again. What it was answered the first
/// time would lead it back to the keys from before. To find this course by trying all would take hours.
fn taker_that_lost_its_disk(without: Option<Rule>) -> Option<World> {
    let limits = Limits { takeovers: 2, losses: 1, ..ROTATE };
    let fleet = Fleet { limits, first_unsteady: 2, is_made_twice: false, double_of: None, without };
    let mut world = fleet.first();
    let rotate = Deed::Rotate(Rotation::Due);
    for deed in [Deed::Claim, Deed::TakeOver(None), rotate, rotate] {
        world = fleet.next(&world, Event::Do(2, deed)).expect("nothing is in its way");
        fleet.settle(&mut world);
    }
    for deed in [Deed::Lose, Deed::Claim] {
        world = fleet.next(&world, Event::Do(2, deed)).expect("nothing is in its way");
    }
    for number in 0..world.said.answers.len() {
        world = fleet.next(&world, Event::Hear(2, Told::Answer(number))).unwrap_or(world);
    }
    fleet.next(&world, Event::Do(2, Deed::TakeOver(None)))
}

#[test]
fn answers_to_an_earlier_claim_count_for_nothing() {
    assert!(taker_that_lost_its_disk(None).is_none());
    let world = taker_that_lost_its_disk(Some(Rule::SameClaim)).expect("it takes the old answers");
    assert!(!world.seals_open_everywhere());
}

/// So large that only the night has the time: everything at once.
#[test]
#[ignore = "takes long: cargo xtask nightly fleet-rules"]
fn all_that_can_happen_at_once_loses_no_client() {
    let courses = [
        ("rotations and crashes", Limits { rotations: 3, crashes: 1, ..ROTATE }),
        ("a lost disk and a crash", Limits { losses: 1, crashes: 1, ..ROTATE }),
        ("two lost disks", Limits { losses: 2, ..ROTATE }),
        (
            "a full disk, a revocation and a crash",
            Limits { refusals: 1, revocations: 1, crashes: 1, ..ROTATE },
        ),
        ("a take-over and a crash", Limits { rotations: 1, takeovers: 1, crashes: 1, ..ROTATE }),
    ];
    for (name, limits) in courses {
        explore(name, limits);
    }
    // Of these the last node alone takes over, or nights would not be long enough.
    let revocation = Limits { rotations: 1, takeovers: 1, revocations: 1, ..ROTATE };
    for (name, limits) in [
        ("a take-over, a revocation and a rotation", revocation),
        ("a take-over, a revocation and two crashes", Limits { rotations: 0, crashes: 2, ..revocation }),
    ] {
        explore_fleet(
            name,
            &Fleet { limits, first_unsteady: 2, is_made_twice: false, double_of: None, without: None },
        );
    }
}
