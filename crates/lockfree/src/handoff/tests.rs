//! Models of threads that hand work to others.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use loom::sync::atomic as weak;
use loom::thread;

use super::*;
use crate::model::{Fault, explore, explore_within, must_fail};

/// A queue as weak as a queue can be: a bit for each item that waits, and only what is taken is seen for certain. It
/// has no total order with other words, unlike the queue of any library.
struct Bits {
    waiting: weak::AtomicU64,
    room: u32,
}

impl Bits {
    fn new(room: u32) -> Self {
        Bits { waiting: weak::AtomicU64::new(0), room }
    }
}

impl Queue for Bits {
    type Item = u32;

    fn push(&self, item: u32) -> Result<(), u32> {
        if self.room < self.waiting.load(Ordering::Relaxed).count_ones() + 1 {
            return Err(item);
        }
        let before = self.waiting.fetch_or(1 << item, Ordering::Release);
        assert!(before & 1 << item == 0, "each item is pushed once");
        Ok(())
    }

    fn pop(&self) -> Option<u32> {
        let mut waiting = self.waiting.load(Ordering::Relaxed);
        while waiting != 0 {
            let left = waiting & (waiting - 1);
            match self.waiting.compare_exchange(waiting, left, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(waiting.trailing_zeros()),
                Err(changed) => waiting = changed,
            }
        }
        None
    }

    fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }
}

type Desk = Handoff<Bits>;
type Next = fn(&Desk, usize) -> Option<u32>;

impl Desk {
    /// [`Handoff::next`] with the fault that the bit is set after the look.
    fn next_looking_first(&self, number: usize) -> Option<u32> {
        while !self.is_stopped() {
            if let Some(item) = self.queue.pop() {
                return Some(item);
            }
            let is_idle = self.queue.is_empty() && !self.is_stopped();
            let bit = 1 << number;
            self.idle.fetch_or(bit, Ordering::Release);
            fence(Ordering::SeqCst);
            if is_idle {
                park_timeout(PATIENCE);
            }
            self.idle.fetch_and(!bit, Ordering::Relaxed);
        }
        None
    }

    /// [`Handoff::stop`] with the fault that it wakes nobody.
    fn stop_silently(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }
}

/// Threads that take, each until a stop, which comes from the one that takes the last of `count` items.
fn takers(desk: &Arc<Desk>, next: Next, taker_count: usize, count: usize) -> Vec<thread::JoinHandle<()>> {
    let taken = Arc::new(AtomicUsize::new(0));
    (0..taker_count)
        .map(|number| {
            let (desk, taken) = (Arc::clone(desk), Arc::clone(&taken));
            thread::spawn(move || {
                desk.enlist(number);
                while next(&desk, number).is_some() {
                    // Counted behind loom's back: this orders nothing.
                    if taken.fetch_add(1, Ordering::Relaxed) + 1 == count {
                        desk.stop();
                    }
                }
            })
        })
        .collect()
}

/// Brings so many items from one thread each, the last of them from here. If none is lost, all threads end.
fn all_is_taken(next: Next, taker_count: usize, shares: &'static [&'static [u32]]) {
    let desk = Arc::new(Handoff::new(Bits::new(8), taker_count));
    let count = shares.iter().map(|share| share.len()).sum();
    let mut threads = takers(&desk, next, taker_count, count);
    let bring = |desk: &Desk, share: &[u32]| share.iter().for_each(|&item| desk.push(item).unwrap());
    let (own, others) = shares.split_last().unwrap();
    for share in others {
        let desk = Arc::clone(&desk);
        threads.push(thread::spawn(move || bring(&desk, share)));
    }
    bring(&desk, own);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(desk.queue.is_empty(), "all is taken");
}

/// Stops threads while an item comes.
fn all_end(stop: fn(&Desk), taker_count: usize) {
    let desk = Arc::new(Handoff::new(Bits::new(8), taker_count));
    let threads = takers(&desk, Desk::next, taker_count, usize::MAX);
    desk.push(0).unwrap();
    stop(&desk);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(desk.next(0), None, "stopped for good");
}

#[test]
fn nothing_is_left_lying() {
    explore("one brings one, one takes", || all_is_taken(Desk::next, 1, &[&[0]]));
    explore_within(Some(3), "one brings two, one takes", || all_is_taken(Desk::next, 1, &[&[0, 1]]));
    explore_within(Some(2), "two bring, one takes", || all_is_taken(Desk::next, 1, &[&[0], &[1]]));
    explore_within(Some(1), "one brings two, two take", || all_is_taken(Desk::next, 2, &[&[0, 1]]));
    explore_within(Some(1), "two bring, two take", || all_is_taken(Desk::next, 2, &[&[0], &[1]]));
}

#[test]
#[ignore = "nightly: takes long"]
fn nothing_is_left_lying_with_more_switches() {
    explore("one brings two, one takes", || all_is_taken(Desk::next, 1, &[&[0, 1]]));
    explore_within(Some(3), "two bring, one takes", || all_is_taken(Desk::next, 1, &[&[0], &[1]]));
    explore_within(Some(2), "one brings two, two take", || all_is_taken(Desk::next, 2, &[&[0, 1]]));
    explore_within(Some(2), "two bring, two take", || all_is_taken(Desk::next, 2, &[&[0], &[1]]));
    explore_within(Some(2), "a stop, two take", || all_end(Desk::stop, 2));
}

#[test]
fn stop_ends_all_threads() {
    explore_within(Some(3), "a stop, one takes", || all_end(Desk::stop, 1));
    explore_within(Some(1), "a stop, two take", || all_end(Desk::stop, 2));
}

#[test]
fn lost_wake_ups_are_found() {
    let one = || all_is_taken(Desk::next, 1, &[&[0]]);
    must_fail(Some(Fault::NoFences), "deadlock", "one brings one, one takes", one);
    let late = || all_is_taken(Desk::next_looking_first, 1, &[&[0]]);
    must_fail(None, "deadlock", "a bit that is set after the look", late);
    must_fail(None, "deadlock", "a stop that wakes nobody", || all_end(Desk::stop_silently, 1));
    let two = || all_end(Desk::stop, 2);
    must_fail(Some(Fault::SplitUpdates), "deadlock", "a stop, two take", two);
    must_fail(Some(Fault::NoOrder), "deadlock", "a stop, two take", two);
}

#[test]
fn burst_wakes_as_many_threads_as_it_has_items() {
    explore("one thread that stands for three", || {
        let desk = Handoff::new(Bits::new(8), 3);
        (0..3).for_each(|number| desk.enlist(number));
        desk.idle.fetch_or(0b110, Ordering::Release);
        for (item, left) in [0b100, 0, 0].into_iter().enumerate() {
            desk.push(item as u32).unwrap();
            assert_eq!(desk.idle.load(Ordering::Relaxed), left);
        }
    });
}
