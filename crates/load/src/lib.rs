//! An open-loop capacity tester: many simulated clients ask a server for time at set rates, and every answer is
//! checked.
//!
//! It shares the wire format and the client's checks with the server's crates, but never the responder: it must measure
//! foreign servers, and must not inherit our bugs. A step in which the generator itself fell behind says so. What is
//! sent when, and what counts as an answer, is the business of `authentick-generator`; here are sockets, threads and
//! clocks.
//!
//! - `engine`: what drives that core: sockets, connections for key exchanges, the clock.
//! - `plan`: what a run does, and what one host reports about a step.
//! - [`target`]: whether a server answers at all, before any load; [`live`]: what is known of a run while it goes on;
//!   [`record`]: what is kept of it;
//!   [`journal`]: and where, as steps end; [`ending`]: whether it says anything; [`neighbours`]: what a server on the
//!   generator's own host takes from it.
//! - `machine`: what a record says of the machine that it was made on.
//! - [`contest`]: no load, but single exchanges under one scheme after the other.
//! - [`drill`]: cookies of each key exchange to each NTP server, while keys rotate.
//! - [`sources`]: the addresses that clients send from.
//! - [`agent`]: the same over several hosts.
//! - `fuzzing`: what fuzz targets run.
#![forbid(unsafe_code)]

pub mod agent;
mod allow;
mod cgroup;
pub mod contest;
pub mod drill;
pub mod ending;
mod engine;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod generator;
mod host;
pub mod journal;
mod judge;
pub mod limit;
mod limits;
pub mod live;
mod machine;
pub mod neighbours;
mod plan;
pub mod rates;
pub mod record;
pub mod runner;
pub mod search;
mod server_use;
mod shared_key;
pub mod sources;
mod spans;
pub mod target;

pub use allow::{Allow, NotAllowed, Permission};
pub use generator::Generator;
pub use machine::machine;
pub use plan::{Antp, Arrivals, Crew, Joinable, Order, Part, Plan, Scheme, Watch};
pub use server_use::Processes;
pub use shared_key::SharedKey;
pub use spans::{SpanSource, fetch_text, single};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a mutex holds, also if a thread panicked that had it: nothing that is locked here is ever left half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
