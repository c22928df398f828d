//! The time protocols without sockets or clocks: requests in, responses out.
//!
//! State, time, entropy and keys are arguments, so the same code runs under every engine, in the simulator and under
//! the fuzzer, and a history replays from its seed. Nothing here blocks, takes a lock or starts a thread; shared
//! tables are arrays of atomics.
//!
//! - `server`: [`server::Responder`] takes a batch of datagrams through its steps.
//! - `client`: [`client::Exchange`] is one request and the checks on what comes back.
//! - [`generations`], [`keyset`], [`cookie`]: what makes a server of NTS stateless.
//! - [`antp`]: both ends of ANTP/1.
//! - [`symmetric`]: keys that server and client share beforehand.
//! - [`prefix`]: who may ask, or be asked.
#![forbid(unsafe_code)]

pub mod antp;
pub mod auth;
#[cfg(feature = "client")]
pub mod client;
pub mod cookie;
pub mod delays;
#[cfg(any(all(test, feature = "client", feature = "server"), feature = "fuzzing"))]
pub mod fuzzing;
pub mod generations;
pub mod keyset;
pub mod limits;
pub mod mutant;
mod outcomes;
pub mod prefix;
#[cfg(feature = "server")]
pub mod server;
pub mod symmetric;

pub use authentick_wire as wire;
