//! What measures for most of its time, with generators that are pinned to the last processor: these tests take turns,
//! see [`alone`](crate::lab::alone). `cargo xtask test` runs them one at a time, beside all others.

mod agents;
mod bench;
mod studies;
