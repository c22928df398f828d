//! Papers whose experiments are repeated: what is measured, how it is kept, and that it goes on where it was.
//!
//! The line exists so that a study runs without a command line: nothing here looks at arguments or environment, prints,
//! or knows how a command ends. What it needs of its caller is a [`Caller`], and an [`Error`] says by whose fault a
//! study did not go on. What was published, and how it is shown, is in `report`.
//!
//! - [`paper`]: the trait [`Paper`], and how any paper's study is carried out, task by task.
//! - [`all`]: every study, and all their reports in one.
//! - [`folder`]: plan, records and report of a study on the disk.
//! - `pace`: how long what is left takes, and what of it fits into a ceiling.
//! - [`list`]: what the studies measure, how long that takes, and what this host cannot do.
//! - `machine`: what the machine did while a task was measured.
//! - [`places`]: where programs of others are.
//! - [`program`]: further processes of the program: servers, agents and load runs.
//! - `tried`: what becomes of one measurement, and how often it is repeated.
//! - [`antp`], [`ntp_mac`], [`nts`], [`request_threshold`]: a paper each, by its stem; [`field`]: a study of our own.
#![forbid(unsafe_code)]

pub mod all;
pub mod antp;
mod error;
pub mod field;
pub mod folder;
mod identities;
pub mod list;
mod machine;
pub mod ntp_mac;
pub mod nts;
mod pace;
pub mod paper;
pub mod places;
pub mod program;
pub mod request_threshold;
mod tried;

pub use error::{Error, Fault};
pub use paper::{Caller, Console, Paper, carry_out, render};
