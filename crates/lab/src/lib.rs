//! What tests, benches and studies run on: hosts, paths, servers that misbehave, peers.
//!
//! For tests only; nothing shipped depends on it. It is the rig, on which measurements run too, and what only tests
//! want. Failing means panicking here, as in a test; only what the machine does not allow is a [`Skip`], which says so.
//!
//! - [`hosts`], [`relay`], [`quota`], [`process`]: the rig's, which panic; [`filter`] counts, drops and rewrites what
//!   hosts send; [`memory`] and [`disk`]: less of either.
//! - [`servers`]: NTP servers that misbehave in a set way and count it; [`exchanges`]: the same for key exchange;
//!   [`caches`]: the same for memcached, and a client.
//! - [`prober`]: a client that asks ten times a second and remembers what it was told.
//! - [`kernel`]: one that lacks something.
//! - [`corrupt`]: stands on a relay between a client and a real server; damages and records what passes.
//! - [`certificates`], and those for [`antp`]; [`ocsp`], which says whether they are good; [`daemon`]: our own server;
//!   [`peers`]: others'.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod antp;
mod bucket;
pub mod caches;
pub mod certificates;
pub mod corrupt;
pub mod daemon;
pub mod disk;
pub mod exchanges;
pub mod filter;
pub mod hosts;
pub mod kernel;
pub mod manager;
pub mod memory;
pub mod ocsp;
pub mod peers;
pub mod prober;
pub mod process;
pub mod quota;
pub mod relay;
pub mod servers;
pub mod skip;
pub mod spoof;

pub use skip::Skip;
