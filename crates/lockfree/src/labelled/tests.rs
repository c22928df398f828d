//! Models of a thread that writes numbers under labels, and one that reads them.

use std::sync::Arc;

use loom::thread;

use super::*;
use crate::model::{Fault, explore_within, must_fail};

/// One thread writes `numbers` under labels, another reads as often as told; what was read is a pair that was written,
/// and no older than the one before.
fn one_of_each(pairs: &'static [(u32, u64)], read_count: usize) {
    let place = Arc::new(Labelled::default());
    let reader = Arc::clone(&place);
    let thread = thread::spawn(move || (0..read_count).map(|_| reader.read()).collect::<Vec<_>>());
    pairs.iter().for_each(|(label, number)| place.write(*label, *number));
    assert_eq!(place.read(), pairs.last().copied(), "it is there afterwards");
    let mut place = 0;
    for seen in thread.join().unwrap().into_iter().flatten() {
        let found = pairs.iter().position(|pair| *pair == seen);
        let found = found.unwrap_or_else(|| panic!("{seen:?} was never written"));
        assert!(found >= place, "{seen:?} is older than what was seen before");
        place = found;
    }
}

const OTHER_LABEL: &[(u32, u64)] = &[(1, 10), (2, 20), (2, 21)];
const SAME_LABEL: &[(u32, u64)] = &[(7, 1), (7, 2), (7, 3)];
const LABEL_COMES_BACK: &[(u32, u64)] = &[(1, 10), (2, 20), (1, 11)];

#[test]
fn a_number_is_read_under_its_own_label() {
    explore_within(Some(3), "a label that changes, two reads", || one_of_each(OTHER_LABEL, 2));
    explore_within(Some(3), "a label that stays, three reads", || one_of_each(SAME_LABEL, 3));
    explore_within(Some(3), "a label that comes back, two reads", || one_of_each(LABEL_COMES_BACK, 2));
}

#[test]
fn order_of_memory_is_needed() {
    must_fail(Some(Fault::NoOrder), "never written", "a label that changes", || one_of_each(OTHER_LABEL, 1));
}
