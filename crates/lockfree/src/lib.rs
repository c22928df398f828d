//! Words that threads share without a lock: rates of one and of many, a note that is taken once, a number under a label
//! that changes, and how threads sleep until there is work.
//!
//! What is here is a protocol: several words, or several steps on one, that are right together or not at all. Counters
//! and flags that stand alone are with their owners. The crate has no dependencies and no `unsafe`, reads no clock,
//! hashes nothing and has no queue: its callers bring them.
//!
//! # How it is checked
//! The tests of this crate are models: [loom](https://docs.rs/loom) runs each of them in all orders that its threads
//! can take, with all values that the memory model lets a load return. They run the code as it is shipped, as only the
//! atomics below it are others (`sync`). Each model is run once more with a fault, which loom has to find: a model
//! that would not notice proves nothing. The types say which properties hold and by which orders of memory; loom takes
//! `SeqCst` accesses for `AcqRel`, so where a total order is needed there is a fence.
#![forbid(unsafe_code)]

mod allowance;
mod bucket;
mod handoff;
mod labelled;
#[cfg(test)]
mod model;
mod note;
mod sync;
mod ways;

pub use allowance::Allowance;
pub use bucket::Bucket;
pub use handoff::{Handoff, Queue, SLEEPER_COUNT_MAX};
pub use labelled::Labelled;
pub use note::Note;
pub use ways::Ways;
