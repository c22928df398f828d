//! What a search rests on: samples of trials, and the trials that say nothing about the server.

use serde::{Deserialize, Serialize};

use super::limit::{Capacity, Limit};
use crate::units::rate;

/// Why a trial of a search says nothing about the server. Stored under its name.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Exclusion {
    /// The generator could not offer the rate, and nothing shows that its host kept it from doing so.
    Overload,
    /// Something else had the processor of a sending thread that was ready to run, or that had been idle.
    Preempted,
    /// The host's own hypervisor gave processor time to others.
    Steal,
    /// Sending threads stood still.
    Stall,
    /// The host's clock was set.
    ClockJump,
}

impl Exclusion {
    /// Whether the host, and not the rate, was the reason: another trial may do better.
    #[must_use]
    pub const fn is_of_host(self) -> bool {
        !matches!(self, Exclusion::Overload)
    }

    /// What it means, for a reader.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Exclusion::Overload => "the generator could not keep up",
            Exclusion::Preempted => "something else had the generator's processor",
            Exclusion::Steal => "the hypervisor took processor time away",
            Exclusion::Stall => "the sending threads stood still",
            Exclusion::ClockJump => "the host's clock was set",
        }
    }
}

/// Trials that were excluded, for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excluded {
    /// The reason.
    pub why: Exclusion,
    /// How many.
    pub count: u32,
}

/// What a sample shows. Stored under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Finding {
    /// The loss is at most the tolerated one.
    Holds,
    /// The loss is above it.
    Exceeds,
    /// The sample tells neither.
    Undecided,
}

/// Fresh trials at one rate, by which a search decided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The rate, in requests a second.
    pub rate_rps: f64,
    /// What was answered a second of wall clock, stalls of the generator included, less what the backlog grew: the mean
    /// of the trials; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sustained_rps: Option<f64>,
    /// Valid trials.
    pub trial_count: u32,
    /// How many of them lost no more than was tolerated.
    pub held_count: u32,
    /// Requests that they sent.
    pub sent: u64,
    /// Those of them that were not answered, or answered wrongly.
    pub failed: u64,
    /// Lower end of the interval that holds the true loss with the confidence of the search, a share.
    pub loss_low: f64,
    /// Its upper end.
    pub loss_high: f64,
    /// The probability of error that was allowed when the sample was tested.
    pub level: f64,
    /// The result.
    pub finding: Finding,
}

impl Capacity {
    /// The result in words: `from 246,000/s to 252,000/s`, `at least 256,000/s; the generator was the limit`.
    #[must_use]
    pub fn words(&self) -> String {
        let limit = match self.limited_by {
            Limit::Server => "; the server was the limit",
            Limit::Host => "; other work on the server's processor was the limit",
            Limit::Path => "; the path was the limit",
            Limit::Generator => "; the generator was the limit",
            Limit::Nothing | Limit::Unknown => "",
        };
        match (self.at_least, self.below) {
            (Some(at_least), Some(below)) => format!("from {}/s to {}/s{limit}", rate(at_least), rate(below)),
            (Some(at_least), None) if self.limited_by == Limit::Nothing => {
                format!("at least {}/s; no higher rate was allowed", rate(at_least))
            }
            (Some(at_least), None) if limit.is_empty() => {
                format!("at least {}/s; no higher rate was shown to be too much", rate(at_least))
            }
            (Some(at_least), None) => format!("at least {}/s{limit}", rate(at_least)),
            (None, Some(below)) => format!("below {}/s; no rate was shown to hold{limit}", rate(below)),
            (None, None) => "not found".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_is_said_in_a_sentence() {
        let words =
            |at_least, below, limited_by| Capacity { at_least, below, limited_by, throughput: None }.words();
        let (low, high) = (Some(246_000.0), Some(252_000.0));
        assert_eq!(words(low, high, Limit::Unknown), "from 246,000/s to 252,000/s");
        assert_eq!(words(low, high, Limit::Server), "from 246,000/s to 252,000/s; the server was the limit");
        assert_eq!(words(high, None, Limit::Generator), "at least 252,000/s; the generator was the limit");
        assert_eq!(words(high, None, Limit::Nothing), "at least 252,000/s; no higher rate was allowed");
        assert_eq!(words(None, low, Limit::Unknown), "below 246,000/s; no rate was shown to hold");
    }

    #[test]
    fn names_in_records_are_those_that_are_shown() {
        use strum::VariantArray;

        for why in Exclusion::VARIANTS {
            assert_eq!(serde_json::to_string(why).unwrap(), format!("\"{why}\""));
        }
        assert_eq!(serde_json::to_string(&Finding::Exceeds).unwrap(), "\"exceeds\"");
    }
}
