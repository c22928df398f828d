//! The study of the performance and scalability of NTS, of one client so far: what it takes of time where nothing else
//! is asked of the server.
//!
//! - [`plan`]: settings and tasks.
//! - [`record`]: what a task measured, row by row.
//! - `figures`: the measures, in two readings each, and what follows from them.
//! - `tables`: the figures as tables and plots, theirs and ours.
//! - `answers`: what the study here says to each statement of the paper.
//! - [`report()`]: all of it.

mod answers;
mod figures;
pub mod plan;
pub mod record;
mod report;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

pub use plan::{Cell, Found, Plan, Settings, Store, Way};
pub use record::{KeyExchange, Relayed, Transfer, UnloadedRecord};
pub use report::{report, sections};
