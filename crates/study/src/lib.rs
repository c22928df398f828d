//! Papers whose experiments are repeated: what is measured, how it is kept, and that it goes on where it was.
//!
//! The line exists so that a study runs without a command line: nothing here looks at arguments or environment, prints,
//! or knows how a command ends. What it needs of its caller is a [`Caller`], and an [`Error`] says by whose fault a
//! study did not go on. What was published, and how it is shown, is in `report`.
//!
//! - [`paper`]: the trait [`Paper`], and how any paper's study is carried out.
//! - [`folder`]: plan, records and report of a study on the disk.
//! - `single`: folders of one record, whose plan is their settings alone.
//! - [`program`]: further processes of the program: servers, agents and load runs.
//! - [`antp`], [`ntp_mac`], [`request_threshold`]: a paper each, by its stem.
#![forbid(unsafe_code)]

pub mod antp;
mod error;
pub mod folder;
mod identities;
pub mod ntp_mac;
pub mod paper;
pub mod program;
pub mod request_threshold;
mod single;

pub use error::{Error, Fault};
pub use paper::{Caller, Console, Paper, carry_out, render};
