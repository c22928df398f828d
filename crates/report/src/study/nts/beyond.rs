//! The records of what goes beyond the paper: what a core serves of sessions, and transfers alone past the paper's
//! rates.
//!
//! - here: the records.
//! - `shown`: tables, pictures and sentences.

mod shown;

use serde::{Deserialize, Serialize};

pub(super) use self::shown::{Beyond, section};
use super::rung::bounded;
use super::{Measure, Outcomes, Pattern, Workers};
use crate::load::Limit;
use crate::run::Host;

/// What a closed loop of sessions brought: a window of them is under way at any time, each a key exchange and the
/// transfers after it, or of key exchanges or transfers alone. Sessions that begin within the step are followed to
/// their ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-nts-sessions/1")]
pub struct SessionsRecord {
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The command line that began the study.
    pub command: String,
    /// When the study was begun, in Unix seconds.
    pub started_unix_s: u64,
    /// The machine.
    pub host: Host,
    /// The name of the task that it is of.
    pub task: String,
    /// Whether client and server are hosts of their own, by namespaces; false: they share this machine's loopback.
    pub isolated: bool,
    /// How many are under way at once.
    pub window: u32,
    /// How long they began, in seconds.
    pub seconds: f64,
    /// Key exchanges. Of transfers alone: those that clients needed meanwhile.
    pub exchanges: Outcomes,
    /// Transfers.
    pub transfers: Outcomes,
    /// Of key exchanges, and of transfers alone of these, those that were answered within the step.
    pub answered_within: u64,
    /// Processor time of the server for all of them, in seconds; null: nobody knows.
    pub server_cpu_seconds: Option<f64>,
    /// Share of its time in which the busiest sending thread of the generator had something to do.
    pub generator_busy_share: Option<f64>,
    /// Why it says nothing about the server, in half a sentence; null if it does.
    pub why_invalid: Option<String>,
}

impl SessionsRecord {
    /// The pattern that it is of; `None` of a record that nobody checked.
    #[must_use]
    pub fn pattern(&self) -> Option<Pattern> {
        match Measure::of(&self.task)? {
            Measure::Sessions(pattern) => Some(pattern),
            Measure::Cell(_)
            | Measure::Operations(_)
            | Measure::Scale(_)
            | Measure::Rung(..)
            | Measure::Rates(_) => None,
        }
    }

    /// Processor time of the server for a session, or for an exchange or a transfer alone, in nanoseconds.
    #[must_use]
    pub fn cost_ns(&self) -> Option<f64> {
        let of = match self.pattern()? {
            Pattern::Exchanges | Pattern::Sessions(..) => self.exchanges.answered,
            Pattern::Transfers(_) => self.transfers.answered,
        };
        let cost = self.server_cpu_seconds? * 1e9 / of as f64;
        (of > 0 && cost > 0.0).then_some(cost)
    }

    fn check(&self) -> Result<(), String> {
        let Some(pattern) = self.pattern() else {
            return Err(format!("task: {:?} is none of sessions", self.task));
        };
        bounded(
            &[("generator_busy_share", self.generator_busy_share)],
            &[("seconds", Some(self.seconds)), ("server_cpu_seconds", self.server_cpu_seconds)],
        )?;
        let named = |name: &'static str| move |why: String| format!("{name}: {why}");
        self.exchanges.check().map_err(named("exchanges"))?;
        self.transfers.check().map_err(named("transfers"))?;
        let (most, transfers_max) = match pattern {
            Pattern::Exchanges => (self.exchanges.answered, 0),
            Pattern::Sessions(count, _) => {
                (self.exchanges.answered, self.exchanges.answered.saturating_mul(count.into()))
            }
            Pattern::Transfers(_) => (self.transfers.answered, u64::MAX),
        };
        if self.transfers.scheduled > transfers_max {
            return Err("transfers: there are more than follow so many key exchanges".to_owned());
        }
        match self.answered_within <= most.saturating_add(self.window.into()) && self.window > 0 {
            true => Ok(()),
            false => Err("answered_within or window cannot be".to_owned()),
        }
    }
}

/// What became of transfers that were offered at a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// Requests a second that were to be sent.
    pub offered_rps: f64,
    /// For how long, in seconds.
    pub seconds: f64,
    /// What became of them.
    pub transfers: Outcomes,
    /// The median of their latency, from the instant at which a request was due, in nanoseconds; null if none was
    /// answered.
    pub p50_ns: Option<u64>,
    /// The 95th percentile.
    pub p95_ns: Option<u64>,
    /// Processor time of the server for a transfer, in microseconds; null: nobody knows.
    pub server_us: Option<f64>,
    /// Share of its time in which the busiest sending thread of the generator had something to do.
    pub generator_busy_share: Option<f64>,
    /// What kept it from more.
    pub limited_by: Limit,
    /// Why it says nothing about the server, in half a sentence; null if it does.
    pub why_invalid: Option<String>,
}

impl RateStep {
    /// Which share was not answered in time.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        self.transfers.failed() as f64 / self.transfers.scheduled.max(1) as f64
    }

    fn check(&self) -> Result<(), String> {
        bounded(
            &[("generator_busy_share", self.generator_busy_share)],
            &[
                ("offered_rps", Some(self.offered_rps)),
                ("seconds", Some(self.seconds)),
                ("server_us", self.server_us),
            ],
        )?;
        self.transfers.check()?;
        match self.p50_ns.is_some() == self.p95_ns.is_some() && self.p50_ns <= self.p95_ns {
            true => Ok(()),
            false => Err("its percentiles contradict each other".to_owned()),
        }
    }
}

/// Transfers alone, past the rates of the paper: what a closed loop of them brought, and rates from the end of the
/// paper's axis to beyond that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-nts-rates/1")]
pub struct RatesRecord {
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The command line that began the study.
    pub command: String,
    /// When the study was begun, in Unix seconds.
    pub started_unix_s: u64,
    /// The machine.
    pub host: Host,
    /// The name of the task that it is of.
    pub task: String,
    /// Whether client and server are hosts of their own, by namespaces; false: they share this machine's loopback.
    pub isolated: bool,
    /// Whether the server may run on the generator's processor, too: then each of them takes from the other.
    pub shares_processor: bool,
    /// Transfers a second that a closed loop brought.
    pub closed_rps: f64,
    /// How busy it kept the generator's busiest sending thread.
    pub closed_busy_share: Option<f64>,
    /// Rates, the least first.
    pub steps: Vec<RateStep>,
}

impl RatesRecord {
    /// How many workers the server had; `None` of a record that nobody checked.
    #[must_use]
    pub fn workers(&self) -> Option<Workers> {
        match Measure::of(&self.task)? {
            Measure::Rates(workers) => Some(workers),
            Measure::Cell(_)
            | Measure::Operations(_)
            | Measure::Scale(_)
            | Measure::Rung(..)
            | Measure::Sessions(_) => None,
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.workers().is_none() {
            return Err(format!("task: {:?} is none of rates", self.task));
        }
        bounded(&[("closed_busy_share", self.closed_busy_share)], &[("closed_rps", Some(self.closed_rps))])?;
        for (index, step) in self.steps.iter().enumerate() {
            step.check().map_err(|why| format!("steps, {index}: {why}"))?;
        }
        let rises = self.steps.windows(2).all(|pair| pair[0].offered_rps < pair[1].offered_rps);
        match rises && !self.steps.is_empty() {
            true => Ok(()),
            false => Err("steps: there is none, or rates do not rise".to_owned()),
        }
    }
}

crate::stored::stored!(
    SessionsRecord = "authentick-nts-sessions/1",
    "a record of study run nts, sessions",
    compact,
    SessionsRecord::check
);

crate::stored::stored!(
    RatesRecord = "authentick-nts-rates/1",
    "a record of study run nts, transfers alone",
    compact,
    RatesRecord::check
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::nts::tests::{rates, sessions};

    #[test]
    fn records_survive_their_files() {
        for pattern in Pattern::all() {
            let record = sessions(&pattern.id());
            assert_eq!(SessionsRecord::from_json(&record.to_json()).unwrap(), record);
            assert_eq!(record.pattern(), Some(pattern));
        }
        for workers in Workers::ALL {
            let record = rates(&Measure::Rates(workers).id());
            assert_eq!(RatesRecord::from_json(&record.to_json()).unwrap(), record);
        }
    }

    #[test]
    fn session_costs_what_the_server_ran_for_over_the_exchanges_that_were_answered() {
        // An exchange takes 250 us and a transfer 5 us.
        let cost = |task: &str| sessions(task).cost_ns().unwrap().round();
        assert_eq!(cost("exchanges-alone"), 250_000.0);
        assert_eq!(cost("transfers-alone-fresh"), 5_000.0);
        assert_eq!(cost("sessions-30-fresh"), 400_000.0);
        let nobody = SessionsRecord { server_cpu_seconds: None, ..sessions("sessions-3-one") };
        assert_eq!(nobody.cost_ns(), None);
    }

    #[test]
    fn wrong_sessions_are_refused_with_the_reason() {
        type Change = fn(&mut SessionsRecord);
        let changes: [(Change, &str); 7] = [
            (|record| record.task = "rates-1-worker".to_owned(), "none of sessions"),
            (|record| record.task = "exchanges-alone".to_owned(), "more than follow"),
            (|record| record.seconds = -1.0, "seconds: it cannot be"),
            (|record| record.generator_busy_share = Some(1.5), "generator_busy_share"),
            (|record| record.exchanges.answered -= 1, "exchanges: its counts"),
            (|record| record.answered_within = u64::MAX, "answered_within"),
            (|record| record.window = 0, "window"),
        ];
        for (change, part) in changes {
            let mut record = sessions("sessions-3-fresh");
            change(&mut record);
            let error = SessionsRecord::from_json(&record.to_json()).unwrap_err().to_string();
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn wrong_rates_are_refused_with_the_reason() {
        type Change = fn(&mut RatesRecord);
        let changes: [(Change, &str); 6] = [
            (|record| record.task = "sessions-3-one".to_owned(), "none of rates"),
            (|record| record.closed_rps = -1.0, "closed_rps"),
            (|record| record.steps.clear(), "there is none"),
            (|record| record.steps.reverse(), "do not rise"),
            (|record| record.steps[1].p95_ns = Some(1), "steps, 1: its percentiles"),
            (|record| record.steps[0].transfers.answered += 1, "steps, 0: its counts"),
        ];
        for (change, part) in changes {
            let mut record = rates("rates-1-worker");
            change(&mut record);
            let error = RatesRecord::from_json(&record.to_json()).unwrap_err().to_string();
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
