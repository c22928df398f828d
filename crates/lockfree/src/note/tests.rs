//! Models of threads that leave and take notes in one place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loom::thread;

use super::*;
use crate::model::{Fault, explore, explore_with, explore_within, must_fail};

/// A seal over the number and over whom it is for.
fn seal(client: u64, number: u64) -> NonZeroU64 {
    NonZeroU64::new(client * 1000 + number).unwrap()
}

/// A seal that leaves the number out.
fn seal_of_client(client: u64, _: u64) -> NonZeroU64 {
    NonZeroU64::new(client).unwrap()
}

type SealOf = fn(u64, u64) -> NonZeroU64;

/// The number that is left for a client.
const fn number_for(client: u64) -> u64 {
    client * 10
}

fn take(note: &Note, seal: SealOf, client: u64) -> Option<u64> {
    note.take(|number| seal(client, number))
}

/// Two threads leave a note each, for different clients; another one takes for both.
fn two_writers(seal: SealOf) {
    let note = Arc::new(Note::default());
    let leave = |client: u64| {
        let note = Arc::clone(&note);
        thread::spawn(move || note.leave(number_for(client), seal(client, number_for(client))))
    };
    let threads = [leave(1), leave(2)];
    for client in [1, 2] {
        let taken = take(&note, seal, client);
        let is_own = taken.is_none_or(|number| number == number_for(client));
        assert!(is_own, "client {client} has {taken:?}");
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// The same with a taker for each.
fn two_of_each(seal: SealOf) {
    let note = Arc::new(Note::default());
    let leave = |client: u64| {
        let note = Arc::clone(&note);
        thread::spawn(move || note.leave(number_for(client), seal(client, number_for(client))))
    };
    let threads = [leave(1), leave(2)];
    let reader = Arc::clone(&note);
    let second = thread::spawn(move || take(&reader, seal, 2));
    let first = take(&note, seal, 1);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    for (client, taken) in [(1, first), (2, second.join().unwrap())] {
        let is_own = taken.is_none_or(|number| number == number_for(client));
        assert!(is_own, "client {client} has {taken:?}");
    }
}

#[test]
fn a_number_is_taken_only_by_whom_it_was_left_for() {
    explore_within(Some(3), "a note, two writers, one taker", || two_writers(seal));
    must_fail(None, "has Some", "a note whose seal leaves the number out", || two_writers(seal_of_client));
}

#[test]
#[ignore = "nightly: takes long"]
fn a_number_is_taken_only_by_whom_it_was_left_for_when_both_take_at_once() {
    explore("a note, two writers, one taker", || two_writers(seal));
    explore_within(Some(3), "a note, two writers, two takers", || two_of_each(seal));
}

#[test]
fn a_number_is_right_without_any_order_of_memory() {
    explore_with(Fault::NoOrder, Some(3), "a note, two writers, one taker", || two_writers(seal));
}

/// Three take one note.
fn three_takers() {
    let note = Arc::new(Note::default());
    note.leave(number_for(1), seal(1, number_for(1)));
    let other = || {
        let note = Arc::clone(&note);
        thread::spawn(move || take(&note, seal, 1))
    };
    let others = [other(), other()];
    let own = take(&note, seal, 1);
    let taken = others.map(|thread| thread.join().unwrap()).into_iter().chain([own]).flatten().count();
    assert!(taken == 1, "taken {taken} times");
}

#[test]
fn a_note_is_taken_once() {
    explore("a note, three takers", three_takers);
    must_fail(Some(Fault::SplitUpdates), "taken", "a note, three takers", three_takers);
}

/// One thread leaves two notes, one after the other, and another takes.
fn seal_then_number() {
    let note = Arc::new(Note::default());
    let writer = Arc::clone(&note);
    let thread = thread::spawn(move || writer.leave(number_for(1), seal(1, number_for(1))));
    let has_seen = AtomicBool::new(false);
    let taken = note.take(|number| {
        has_seen.store(true, Ordering::Relaxed);
        seal(1, number)
    });
    assert!(!has_seen.into_inner() || taken.is_some(), "a seal without its number");
    thread.join().unwrap();
    assert!(taken.is_some() || take(&note, seal, 1).is_some(), "it is there afterwards");
}

#[test]
fn who_sees_the_seal_sees_the_number() {
    explore("a note, one writer, one taker", seal_then_number);
    must_fail(Some(Fault::NoOrder), "a seal without its number", "a note", seal_then_number);
}
