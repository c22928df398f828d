//! Models of threads that share one bucket.

use std::sync::Arc;

use loom::thread;

use super::*;
use crate::model::{Fault, Greatest, explore, must_fail};

/// What a model asks: of a bucket with this burst, in threads that ask so often each, all at one instant.
#[derive(Clone, Copy)]
struct Ask {
    attempt_count: usize,
    burst: u32,
    shares: &'static [usize],
}

impl Ask {
    /// How many are admitted, in one interleaving.
    fn run(self) -> usize {
        let bucket = Arc::new(Bucket::new(Allowance::new(1_000_000, self.burst)));
        let share = move |bucket: &Bucket, count: usize| {
            (0..count).filter(|_| bucket.admit_within(self.attempt_count, 7)).count()
        };
        let (own, others) = self.shares.split_last().unwrap();
        let threads: Vec<_> = others
            .iter()
            .map(|&count| {
                let bucket = Arc::clone(&bucket);
                thread::spawn(move || share(&bucket, count))
            })
            .collect();
        let admitted = share(&bucket, *own);
        admitted + threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    }

    fn expect(self, expected: usize) {
        let admitted = self.run();
        assert!(admitted == expected, "{admitted} are admitted in place of {expected}");
    }
}

const TWO: Ask = Ask { attempt_count: ATTEMPT_COUNT, burst: 2, shares: &[2, 2] };
const THREE: Ask = Ask { attempt_count: ATTEMPT_COUNT, burst: 2, shares: &[1, 1, 1] };
const MORE: Ask = Ask { attempt_count: ATTEMPT_COUNT, burst: 2, shares: &[1, 1, 2] };

#[test]
fn threads_share_the_burst_exactly_as_long_as_none_loses_eight_races() {
    explore("a bucket, two threads", || TWO.expect(2));
    explore("a bucket, three threads", || THREE.expect(2));
}

#[test]
#[ignore = "nightly: takes long"]
fn three_threads_share_the_burst_with_more_requests() {
    explore("a bucket, three threads, four requests", || MORE.expect(2));
}

#[test]
fn what_loses_all_its_races_is_admitted_and_no_more_than_the_bound() {
    for (ask, bound) in [
        (Ask { attempt_count: 1, burst: 2, shares: &[2, 2] }, 4),
        (Ask { attempt_count: 2, burst: 3, shares: &[2, 3] }, 4),
        (Ask { attempt_count: 2, burst: 2, shares: &[1, 1, 1] }, 3),
    ] {
        let greatest = Greatest::default();
        let seen = greatest.clone();
        explore("a bucket with fewer attempts", move || {
            let admitted = ask.run();
            assert!((ask.burst as usize..=bound).contains(&admitted), "{admitted} are admitted");
            seen.note(admitted);
        });
        assert_eq!(greatest.get(), bound, "the bound is reached");
    }
}

#[test]
fn updates_in_two_steps_are_found() {
    must_fail(Some(Fault::SplitUpdates), "are admitted in place of 2", "a bucket", || TWO.expect(2));
}

#[test]
fn burst_then_rate_then_the_burst_comes_back() {
    explore("a bucket, one thread", || {
        let bucket = Bucket::new(Allowance::new(10_000, 5));
        let start = 5_000_000;
        assert_eq!((0..50).filter(|_| bucket.admit(start)).count(), 5);
        let in_a_second = (1..=1000).filter(|tick| bucket.admit(start + tick * 1000)).count();
        assert!((99..=101).contains(&in_a_second), "{in_a_second}");
        assert_eq!((0..50).filter(|_| bucket.admit(start + 60_000_000)).count(), 5);
    });
}
