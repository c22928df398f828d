//! What depends on the times that a generator keeps, which other tests would disturb: `cargo xtask test` runs these
//! last, and one at a time.

mod capacity;
mod latency;
mod models;
mod verdict;
