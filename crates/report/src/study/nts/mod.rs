//! The study of the performance and scalability of NTS: what it takes of one client's time where nothing else is asked
//! of the server, and what becomes of that under load.
//!
//! - [`beyond`]: what goes beyond the paper: sessions with other numbers of transfers, and transfers alone.
//! - [`operations`]: operations of server and client, each alone.
//! - [`plan`]: settings and tasks.
//! - [`record`]: what a task measured without load, row by row.
//! - [`rung`]: what a step of a ladder of loads brought, and to what scale.
//! - `times`: the distribution of a time under load, as it is stored.
//! - `figures`: the measures, in two readings each, and what follows from them.
//! - `ladder`: steps of ladders, their knees, and the paper's figures under load.
//! - `tables`: the figures as tables and plots, theirs and ours.
//! - `answers`: what the study here says to each statement of the paper.
//! - `verdicts`: what became here of each table and figure.
//! - [`single`]: a record alone.
//! - [`report()`]: all of it.

mod answers;
pub mod beyond;
mod figures;
mod ladder;
pub mod operations;
pub mod plan;
pub mod record;
mod report;
pub mod rung;
pub mod single;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod times;
mod verdicts;

pub use beyond::{RateStep, RatesRecord, SessionsRecord};
pub use operations::{Operation, OperationTimes, OperationsRecord};
pub use plan::{
    Cell, Cookies, Found, Ladder, Measure, Operations, Pattern, Plan, Rung, SESSION_TRANSFERS, Settings,
    Store, Way, Workers, measured_of,
};
pub use record::{KeyExchange, Relayed, Transfer, UnloadedRecord};
pub use report::{report, sections};
pub use rung::{Outcomes, RungRecord, RungTimes, ScaleRecord};
pub use times::Times;

/// What was measured: the records of tasks that count. Steps of ladders that the generator spoiled are among them, as
/// they are drawn, and say so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// One client alone.
    pub unloaded: Vec<UnloadedRecord>,
    /// What the servers of ladders serve.
    pub scales: Vec<ScaleRecord>,
    /// Steps of ladders.
    pub rungs: Vec<RungRecord>,
    /// Operations alone.
    pub operations: Vec<OperationsRecord>,
    /// What a core serves of patterns of exchanges and transfers.
    pub sessions: Vec<SessionsRecord>,
    /// Transfers alone at rates past the paper's.
    pub rates: Vec<RatesRecord>,
}
