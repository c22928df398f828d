//! An open-loop capacity tester: many simulated clients ask a server for time at set rates, and every answer is
//! checked.
//!
//! It shares octets and the client's checks with the server's crates, and never the responder: it must measure foreign
//! servers, and must not inherit our bugs. A step in which the generator itself fell behind says so.
//!
//! - `plan`: what a run is to do, and what one host reports of a step.
//! - [`agent`]: the same over several hosts.
#![forbid(unsafe_code)]

pub mod agent;
mod plan;

pub use plan::{Arrivals, Crew, Joinable, Order, Part, Plan, Scheme, Watch};
