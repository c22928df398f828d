//! Spectracom's test of the request threshold beside ours: Tables 1 and 2 and the third result of its technical note
//! "NTP Server Capacity Testing".
//!
//! Shapes are compared: each row as a share of the highest figure in its table. Absolute figures from other hardware
//! are shown but not compared. For each row of ours the report says what limited it, as a host that cannot offer more
//! is its own limit: the note noticed that about its Table 1 only through Table 2.

pub(crate) mod plan;
mod report;
mod tables;
mod verdicts;

pub use self::plan::{Found, Part, Plan, Run, SCALE_SECONDS_MAX, Settings};
pub use self::report::{compared, report, sections};
use crate::load::LoadRecord;

/// The records that there are, by what they are for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// Runs from one host, row by row; `None` where there is none.
    pub one_host: Vec<Option<LoadRecord>>,
    /// Runs from several, row by row; `None` where there is none.
    pub several_hosts: Vec<Option<LoadRecord>>,
    /// The server in its earlier configuration.
    pub old: Option<LoadRecord>,
    /// The same server in its updated configuration.
    pub new: Option<LoadRecord>,
}

/// What is to be said beside the tables: sentences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remarks {
    /// On the whole study.
    pub study: Vec<String>,
    /// On our Table 2.
    pub several_hosts: Vec<String>,
    /// On the two configurations.
    pub configurations: Vec<String>,
    /// Processors that the server had in both configurations; `None` if not known.
    pub processors: Option<f64>,
}
