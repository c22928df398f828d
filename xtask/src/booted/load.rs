//! Load on the server in a machine, by our own generator there, and what its record counts.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use super::limited::Running;
use super::machine::Machine;

/// The requests for time in a record, and what became of them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) skipped: u64,
    pub(crate) answered: u64,
    pub(crate) lost: u64,
    pub(crate) invalid: u64,
    /// How many were lost, invalid or skipped, by reason.
    #[serde(default)]
    pub(crate) causes: BTreeMap<String, u64>,
}

/// The part of a record that is looked at.
#[derive(Deserialize)]
struct Record {
    steps: Vec<Counts>,
}

impl Counts {
    /// Adds up the steps of a record.
    pub(crate) fn of(record: &str) -> Result<Self, String> {
        let record: Record =
            serde_json::from_str(record).map_err(|error| format!("a load's record: {error}"))?;
        let mut sum = Counts::default();
        for step in record.steps {
            if step.sent != step.answered + step.lost + step.invalid {
                return Err(
                    "a load's record: what was sent is not what was answered, lost and invalid".to_owned()
                );
            }
            sum.sent += step.sent;
            sum.skipped += step.skipped;
            sum.answered += step.answered;
            sum.lost += step.lost;
            sum.invalid += step.invalid;
            step.causes.into_iter().for_each(|(cause, count)| *sum.causes.entry(cause).or_default() += count);
        }
        match sum.sent {
            0 => Err("a load's record: nothing was sent".to_owned()),
            _ => Ok(sum),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { sent, skipped, answered, lost, invalid, causes } = self;
        write!(f, "{sent} sent, {answered} answered, {lost} lost, {invalid} invalid, {skipped} not sent")?;
        for (cause, count) in causes {
            write!(f, "; {cause} {count}")?;
        }
        Ok(())
    }
}

/// A load that is under way.
pub(crate) struct Load {
    running: Running,
    record: String,
}

impl Load {
    /// Starts a load of so many operations a second for so long. What the server has not answered within five seconds
    /// is lost. The record is kept, whether or not the generator kept up: it has one processor with the server.
    pub(crate) fn start(
        machine: &Machine,
        scheme: &str,
        target: &str,
        rate: u64,
        seconds: u64,
    ) -> Result<Self, String> {
        let host = target.split([':', ' ']).next().unwrap_or_default();
        let record = format!("/root/load-{scheme}-{host}.json");
        let load =
            format!("authentick load {scheme} {target} --rate {rate} --step-seconds {seconds} --timeout 5");
        let script = format!("rm -f {record}; echo $$ > {record}.pid; exec {load} --record {record} 2>&1");
        let limit = Duration::from_secs(seconds + 60);
        Ok(Load { running: machine.begin(&script, limit)?, record })
    }

    pub(crate) fn is_running(&mut self) -> Result<bool, String> {
        self.running.is_running()
    }

    /// Ends it before its time, as a user does; what was measured counts.
    pub(crate) fn stop(self, machine: &Machine) -> Result<Counts, String> {
        machine.succeed(&format!("kill -INT $(cat {}.pid)", self.record))?;
        self.finish(machine)
    }

    /// Waits for its end.
    pub(crate) fn finish(self, machine: &Machine) -> Result<Counts, String> {
        let said = self.running.finish()?;
        let record = machine.read(&self.record).map_err(|problem| {
            let text = said.text();
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            format!("{problem}; the load said: {last}")
        })?;
        Counts::of(&record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: &str = r#"{"sent": 10, "skipped": 1, "answered": 7, "lost": 2, "invalid": 1, "seconds": 5.0,
        "causes": {"timeout": 2, "ntsn": 1, "fell-behind": 1}}"#;

    #[test]
    fn counts_of_all_steps_are_added_up() {
        let counts = Counts::of(&format!(r#"{{"format": "x", "steps": [{STEP}, {STEP}]}}"#)).unwrap();
        assert_eq!((counts.sent, counts.answered, counts.lost, counts.invalid), (20, 14, 4, 2));
        assert_eq!(
            counts.to_string(),
            "20 sent, 14 answered, 4 lost, 2 invalid, 2 not sent; fell-behind 2; ntsn 2; timeout 4"
        );
    }

    #[test]
    fn record_that_does_not_add_up_or_of_nothing_is_refused() {
        let of = |text: &str| Counts::of(text).unwrap_err();
        let wrong = STEP.replace("\"sent\": 10", "\"sent\": 11");
        assert!(of(&format!(r#"{{"steps": [{wrong}]}}"#)).contains("is not what was answered"));
        assert!(of(r#"{"steps": []}"#).contains("nothing was sent"));
        assert!(of("{}").contains("steps"));
    }
}
