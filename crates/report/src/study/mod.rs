//! Experiments of papers, repeated: what was published beside what was measured here, compared by shape.
//!
//! A study's folder holds its plan, `study.json`, and a record for each run that has ended. The plan is written before
//! the first run; plan and records are all that is needed to render the report. Each paper has a module here, with the
//! plan that is its own and a function `sections` of plan and records.

pub mod antp;
pub mod ntp_mac;
pub mod request_threshold;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::stored::{self, Error, Provenance, Stored};

/// The name of the file that holds a plan.
pub const FILE: &str = "study.json";

const FORMAT: &str = "authentick-study/1";
const WHAT: &str = "a study's plan";

/// A paper whose experiments can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paper {
    /// Spectracom, technical note "NTP Server Capacity Testing".
    Threshold,
    /// The drafts "Message Authentication Codes for the Network Time Protocol".
    Mac,
    /// Dowling, Stebila, Zaverucha, "Authenticated Network Time Synchronization".
    Antp,
}

impl Paper {
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

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Paper::Threshold => "threshold",
            Paper::Mac => "mac",
            Paper::Antp => "antp",
        }
    }
}

/// What must not change during a study: with other settings it is a different study.
pub trait Settings: DeserializeOwned {
    /// The paper whose settings they are.
    const PAPER: Paper;

    /// The version of authentick, and the commit that it was built from.
    fn built(&self) -> [&str; 2];
}

/// What a study is to measure, and how, where that is its settings alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-study/1")]
pub struct Plan<S> {
    /// The paper.
    pub paper: Paper,
    /// The command line that began the study.
    pub command: String,
    /// When it was begun, in Unix seconds.
    pub started_unix_s: u64,
    /// What must not change while a study goes on.
    pub settings: S,
}

impl<S: Settings> Stored for Plan<S> {
    const FORMAT: &'static str = FORMAT;
    const WHAT: &'static str = WHAT;

    fn provenance(&self) -> Provenance<'_> {
        provenance(&self.command, self.started_unix_s, &self.settings)
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl<S: Settings> Plan<S> {
    /// Reads a plan.
    ///
    /// # Errors
    /// If the text is no JSON, is in another format or of another paper, or lacks a field.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        read(text, S::PAPER)
    }
}

impl<S: Serialize> Plan<S> {
    /// The plan as indented JSON, ending with a line feed.
    #[must_use]
    pub fn to_json(&self) -> String {
        stored::pretty(self)
    }
}

/// Reads a plan of a paper. The paper comes before what only its plans have.
///
/// # Errors
/// If the text is no JSON, is in another format or of another paper, lacks a field, or holds what cannot be.
pub fn read<P: Stored>(text: &str, paper: Paper) -> Result<P, Error> {
    match Paper::of_plan(text)? {
        found if found == paper => stored::read(text),
        other => Err(Error::Paper(other)),
    }
}

fn provenance<'a>(command: &'a str, started_unix_s: u64, settings: &'a impl Settings) -> Provenance<'a> {
    let [version, commit] = settings.built();
    Provenance { command, version, commit, started_unix_s, host: None }
}
