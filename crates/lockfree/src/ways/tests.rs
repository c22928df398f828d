//! Models of threads that share the words of several tags.

use std::sync::Arc;

use loom::thread;

use super::*;
use crate::model::{Fault, Greatest, explore, explore_within, must_fail};

/// Hashes of different tags.
const P: u64 = 1 << TIME_BITS;
const Q: u64 = 2 << TIME_BITS;
const R: u64 = 3 << TIME_BITS;
const S: u64 = 4 << TIME_BITS;

const INTERVAL_US: u64 = 1000;

/// A request: whose, and when.
type Request = (u64, u64);

/// Runs each list of requests in a thread of its own, the last one here, after those before all. The answers are in
/// order.
fn ask<const N: usize>(
    ways: &Arc<Ways<N>>,
    attempt_count: usize,
    burst: u32,
    lists: &'static [&'static [Request]],
) -> Vec<(u64, bool)> {
    let allowance = Allowance::new(INTERVAL_US, burst);
    let ask = move |ways: &Ways<N>, list: &[Request]| -> Vec<(u64, bool)> {
        list.iter()
            .map(|&(hash, now)| (hash, ways.admit_within(attempt_count, hash, &allowance, now)))
            .collect()
    };
    let (own, others) = lists.split_last().unwrap();
    let threads: Vec<_> = others
        .iter()
        .map(|list| {
            let ways = Arc::clone(ways);
            thread::spawn(move || ask(&ways, list))
        })
        .collect();
    let own = ask(ways, own);
    threads.into_iter().flat_map(|thread| thread.join().unwrap()).chain(own).collect()
}

fn admitted(answers: &[(u64, bool)], hash: u64) -> usize {
    answers.iter().filter(|answer| **answer == (hash, true)).count()
}

/// Two threads ask for one tag, and two for another.
fn two_tags() {
    let ways = Arc::new(Ways::<2>::default());
    let answers = ask(&ways, ATTEMPT_COUNT, 1, &[&[(P, 7), (Q, 7)], &[(Q, 7), (P, 7)]]);
    let counts = [P, Q].map(|hash| admitted(&answers, hash));
    assert!(counts == [1, 1], "{counts:?} are admitted in place of [1, 1]");
    let mut tags = ways.words().map(|word| word >> TIME_BITS);
    tags.sort_unstable();
    assert_eq!(tags, [1, 2], "each has a word");
}

/// Three threads ask for one tag.
fn one_tag(lists: &'static [&'static [Request]]) {
    let answers = ask(&Arc::new(Ways::<1>::default()), ATTEMPT_COUNT, 2, lists);
    let count = admitted(&answers, P);
    assert!(count == 2, "{count} are admitted in place of 2");
}

#[test]
fn each_tag_has_exactly_its_burst_and_one_word() {
    explore("two ways, two tags, two threads", two_tags);
    explore("one way, one tag, three threads", || one_tag(&[&[(P, 7)], &[(P, 7)], &[(P, 7)]]));
}

#[test]
#[ignore = "nightly: takes long"]
fn one_tag_has_its_burst_and_a_stranger_is_admitted_with_more_switches() {
    let lists: &'static [&'static [Request]] = &[&[(P, 7)], &[(P, 7)], &[(P, 7), (P, 7)]];
    explore_within(Some(4), "one way, one tag, three threads, four requests", move || one_tag(lists));
    explore_within(Some(3), "two ways, four tags, three threads", || stranger(S));
}

#[test]
fn updates_in_two_steps_are_found() {
    must_fail(Some(Fault::SplitUpdates), "are admitted in place of [1, 1]", "two tags", two_tags);
    must_fail(Some(Fault::SplitUpdates), "are admitted in place of 2", "one tag", || {
        one_tag(&[&[(P, 7)], &[(P, 7), (P, 7)]]);
    });
}

/// The clock of one thread was read before that of the other, whenever they come to the word.
#[test]
fn late_reading_of_the_clock_gives_no_burst_back() {
    explore("one way, two threads with clocks that differ", || {
        let answers = ask(
            &Arc::new(Ways::<1>::default()),
            ATTEMPT_COUNT,
            2,
            &[&[(P, 999), (P, 999)], &[(P, 1000), (P, 1000)]],
        );
        let count = admitted(&answers, P);
        assert!(count == 2, "{count} are admitted in place of 2");
    });
}

/// Others, of whom two threads bring more than there are words, never keep out who comes for the first time.
fn stranger(hash: u64) {
    let lists: &'static [&'static [Request]] = match hash {
        S => &[&[(P, 7), (Q, 7)], &[(R, 7)], &[(S, 7)]],
        _ => &[&[(P, 7), (Q, 7)], &[(R, 7)], &[(P, 7)]],
    };
    let answers = ask(&Arc::new(Ways::<2>::default()), ATTEMPT_COUNT, 1, lists);
    assert!(answers.last() == Some(&(hash, true)), "the stranger is refused");
}

#[test]
fn stranger_is_admitted_whatever_is_forgotten() {
    explore_within(Some(2), "two ways, four tags, three threads", || stranger(S));
    must_fail(None, "the stranger is refused", "a tag that is no stranger's", || stranger(P));
}

#[test]
fn what_loses_all_its_races_is_admitted_and_no_more_than_the_bound() {
    for (attempt_count, burst, bound) in [(1, 2, 4), (2, 3, 4)] {
        let greatest = Greatest::default();
        let seen = greatest.clone();
        explore("one way with fewer attempts", move || {
            let lists: &'static [&'static [Request]] = &[&[(P, 7), (P, 7)], &[(P, 7), (P, 7), (P, 7)]];
            let count = admitted(&ask(&Arc::new(Ways::<1>::default()), attempt_count, burst, lists), P);
            assert!((burst as usize..=bound).contains(&count), "{count} are admitted");
            seen.note(count);
        });
        assert_eq!(greatest.get(), bound, "the bound is reached with {attempt_count} attempts");
    }
}

/// Two threads whose clocks differ put out a different word each for one tag.
#[test]
fn tag_that_was_forgotten_gets_one_request_more_for_each_further_thread() {
    let greatest = Greatest::default();
    let seen = greatest.clone();
    explore("two ways in use, two threads with clocks that differ", move || {
        let ways = Arc::new(Ways::<2>::default());
        ask(&ways, ATTEMPT_COUNT, 1, &[&[(Q, 1000), (R, 900)]]);
        let answers = ask(&ways, ATTEMPT_COUNT, 1, &[&[(P, 1950)], &[(P, 2010)]]);
        let count = admitted(&answers, P);
        assert!((1..=2).contains(&count), "{count} are admitted");
        seen.note(count);
        let later = ask(&ways, ATTEMPT_COUNT, 1, &[&[(P, 2020), (P, 2020)]]);
        assert_eq!(admitted(&later, P), 0, "from then on one word counts");
    });
    assert_eq!(greatest.get(), 2);
}

#[test]
fn room_is_told_and_not_taken() {
    explore("two ways, one thread", || {
        let (ways, allowance) = (Ways::<2>::default(), Allowance::new(INTERVAL_US, 2));
        for _ in 0..2 {
            assert!((0..5).all(|_| ways.has_room(P, &allowance, 7)) && ways.admit(P, &allowance, 7));
        }
        assert!(!ways.has_room(P, &allowance, 7) && !ways.admit(P, &allowance, 7));
        assert!(ways.has_room(Q, &allowance, 7) && ways.has_room(P, &allowance, 7 + INTERVAL_US));
    });
}
