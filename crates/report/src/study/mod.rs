//! Experiments of papers, repeated: what was published beside what was measured here, compared by shape. One study is
//! of no paper: [`field`], which nobody has published.
//!
//! A study's folder holds its plan, `study.json`, and a record for each task that has ended. The plan is written before
//! the first task and after each one: it says what is to be measured, and what became of that. Plan and records are all
//! that is needed to render the report. Each paper has a module here, with the settings that are its own and a function
//! `sections` of plan and records.
//!
//! - [`front`]: what stands before several studies on one page.
//! - [`tally`]: which of a paper's tables and figures are reproduced.
//! - [`task`]: one thing to measure, and what became of it.

pub mod antp;
pub mod field;
pub mod front;
pub mod ntp_mac;
pub mod nts;
pub mod request_threshold;
pub mod tally;
pub mod task;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::task::{End, Outcome, Task};
use crate::run::Host;
use crate::stored::{self, Error, Provenance, Stored};

/// The name of the file that holds a plan.
pub const FILE: &str = "study.json";

const FORMAT: &str = "authentick-study/2";
const WHAT: &str = "a study's plan";

/// A paper whose experiments can be repeated, or a study of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paper {
    /// Spectracom, technical note "NTP Server Capacity Testing".
    Threshold,
    /// The drafts "Message Authentication Codes for the Network Time Protocol".
    Mac,
    /// Leclerc, Bartos, "Experimental Analysis of the Performance and Scalability of Network Time Security for the
    /// Network Time Protocol".
    Nts,
    /// Dowling, Stebila, Zaverucha, "Authenticated Network Time Synchronization".
    Antp,
    /// No paper: what authentication costs, by scheme and server.
    Field,
}

impl Paper {
    /// All of them, from the one that takes least time to the one that takes most.
    pub const ALL: [Paper; 5] = [Paper::Mac, Paper::Threshold, Paper::Nts, Paper::Field, Paper::Antp];

    /// The paper that a plan is of.
    ///
    /// # Errors
    /// If the text is no JSON, is in another format, or names no paper that is known here.
    pub fn of_plan(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Body {
            paper: Paper,
        }
        stored::parse(text, WHAT, &[FORMAT]).map(|body: Body| body.paper)
    }

    /// What it is called.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Paper::Threshold => crate::published::request_threshold::SOURCE,
            Paper::Mac => {
                "The drafts \u{201c}Message Authentication Codes for the Network Time Protocol\u{201d}"
            }
            Paper::Nts => crate::published::nts::SOURCE,
            Paper::Antp => crate::published::antp::SOURCE,
            Paper::Field => "What authentication costs, by scheme and server (a study of our own)",
        }
    }

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Paper::Threshold => "threshold",
            Paper::Mac => "mac",
            Paper::Nts => "nts",
            Paper::Antp => "antp",
            Paper::Field => "field",
        }
    }
}

/// What must not change during a study: with other settings it is a different study.
pub trait Settings: Debug + Serialize + DeserializeOwned {
    /// The paper whose settings they are.
    const PAPER: Paper;

    /// What turns out on the way, and is in no record: a factor, sentences on the rig.
    type Found: Debug + Serialize + DeserializeOwned;
}

/// What a study is to measure, how, and what has become of it so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-study/2", bound = "S: Settings")]
pub struct Plan<S: Settings> {
    /// The paper.
    pub paper: Paper,
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The command line that began the study.
    pub command: String,
    /// When it was begun, in Unix seconds.
    pub started_unix_s: u64,
    /// The machine that it was begun on.
    pub machine: Host,
    /// What must not change while a study goes on.
    pub settings: S,
    /// What turned out on the way.
    pub found: S::Found,
    /// What is to be measured, in this order.
    pub tasks: Vec<Task>,
}

impl<S: Settings> Stored for Plan<S> {
    const FORMAT: &'static str = FORMAT;
    const WHAT: &'static str = WHAT;

    fn provenance(&self) -> Provenance<'_> {
        Provenance {
            command: &self.command,
            version: &self.version,
            commit: &self.commit,
            started_unix_s: self.started_unix_s,
            host: Some(&self.machine),
        }
    }

    fn check(&self) -> Result<(), String> {
        task::check(&self.tasks)
    }
}

impl<S: Settings> Plan<S> {
    /// Reads a plan.
    ///
    /// # Errors
    /// If the text is no JSON, is in another format or of another paper, lacks a field, or names a file outside of its
    /// folder.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        match Paper::of_plan(text)? {
            found if found == S::PAPER => stored::read(text),
            other => Err(Error::Paper(other)),
        }
    }

    /// The plan as indented JSON, ending with a line feed.
    #[must_use]
    pub fn to_json(&self) -> String {
        stored::pretty(self)
    }

    /// What the report has to say of tasks that brought nothing that counts, in sentences.
    #[must_use]
    pub fn gaps(&self) -> Vec<String> {
        task::gaps(&self.tasks)
    }

    /// How much of the machine's processor time others had while the study measured, in a sentence; `None` if less than
    /// a hundredth, or if nobody knows.
    #[must_use]
    pub fn stolen(&self) -> Option<String> {
        task::stolen(&self.tasks, self.machine.online_cpu_count.unwrap_or(self.machine.cpu_count))
    }
}
