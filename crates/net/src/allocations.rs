//! A global allocator for tests of code that promises to allocate nothing: it counts for each thread what that thread
//! asks for and gives back.
//!
//! It is here because a global allocator is `unsafe`. Left out: sizes, and memory that C code has from `malloc` without
//! Rust's allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// How often a thread has asked for memory, and has given some back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Blocks asked for; one that changes its size counts too.
    pub taken: u64,
    /// Blocks given back.
    pub freed: u64,
}

thread_local! {
    // Needs no memory when it is first used, and nothing has to be done when a thread ends.
    static TALLY: Cell<Tally> = const { Cell::new(Tally { taken: 0, freed: 0 }) };
}

/// What the calling thread has done since it began, in a program whose allocator is [`Counting`].
#[must_use]
pub fn of_this_thread() -> Tally {
    TALLY.get()
}

fn count(taken: u64, freed: u64) {
    let tally = TALLY.get();
    TALLY.set(Tally { taken: tally.taken + taken, freed: tally.freed + freed });
}

/// The system's allocator, and the counts.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

// SAFETY: every call goes to the system's allocator as it came; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, 0);
        // SAFETY: the caller promises what this very function asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, 0);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, 0);
        // SAFETY: as above; the block is the system's, as all blocks are.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, 1);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}
