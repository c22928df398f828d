//! How a run ended for whoever ordered it: whether it says anything about the server, and whether that is good enough.

use authentick_report::load::{Interruption, LoadRecord, Step, Threshold};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It says something about the server, and nothing that was to fail it.
    Done,
    /// A fault ended it: which.
    Fault(String),
    /// Nothing answered.
    Silence,
    /// Answers came, and none passed every check.
    Unauthenticated,
    /// No step is valid, so nothing is known about the server: why.
    Invalid(String),
    /// It crossed thresholds: a sentence for each.
    Crossed(Vec<String>),
}

impl Ending {
    /// How a run with this record ended, which was to fail beyond these thresholds.
    #[must_use]
    pub fn of(record: &LoadRecord, thresholds: &[Threshold]) -> Self {
        if let Some(Interruption::Fault(fault)) = &record.interrupted {
            return Ending::Fault(fault.clone());
        }
        match Ending::of_steps(&record.steps) {
            Ending::Done => {
                let unknown: Vec<String> =
                    thresholds.iter().filter_map(|threshold| threshold.unknown(record)).collect();
                if !unknown.is_empty() {
                    return Ending::Invalid(unknown.join("; "));
                }
                let crossed: Vec<String> =
                    thresholds.iter().filter_map(|threshold| threshold.breached(record)).collect();
                if crossed.is_empty() { Ending::Done } else { Ending::Crossed(crossed) }
            }
            Ending::Invalid(_) if record.interrupted.is_some() && record.steps.is_empty() => {
                Ending::Invalid("it was stopped before its first step ended".to_owned())
            }
            other => other,
        }
    }

    /// How a run ended that measured these steps.
    #[must_use]
    pub fn of_steps(steps: &[Step]) -> Self {
        let sum = |count: fn(&Step) -> u64| steps.iter().map(count).fold(0, u64::saturating_add);
        let [sent, answered, invalid] =
            [sum(|step| step.tally.sent), sum(|step| step.tally.answered), sum(|step| step.tally.invalid)];
        if sent > 0 && answered == 0 {
            return if invalid > 0 { Ending::Unauthenticated } else { Ending::Silence };
        }
        if steps.iter().any(Step::counts_losses) {
            return Ending::Done;
        }
        let why = steps.iter().find_map(|step| step.why_invalid.clone());
        Ending::Invalid(why.unwrap_or_else(|| "nothing was measured".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record of the report's golden files: three valid steps that lose up to an eighth, and an invalid one.
    fn record() -> LoadRecord {
        LoadRecord::from_json(include_str!("../../report/tests/golden/load.json")).unwrap()
    }

    fn with_steps(change: fn(&mut Step)) -> LoadRecord {
        let mut record = record();
        record.steps.iter_mut().for_each(change);
        record
    }

    #[test]
    fn one_valid_step_with_an_answer_is_enough() {
        assert_eq!(Ending::of(&record(), &[]), Ending::Done);
        let thresholds = ["p99>1s".parse().unwrap()];
        assert_eq!(Ending::of(&record(), &thresholds), Ending::Done);
    }

    #[test]
    fn late_steps_count_for_losses_and_leave_gates_on_latency_undecided() {
        let late = with_steps(|step| (step.valid, step.loss_valid) = (false, true));
        assert_eq!(Ending::of(&late, &[]), Ending::Done);
        let of =
            |text: &str| Ending::of(&LoadRecord { search: None, ..late.clone() }, &[text.parse().unwrap()]);
        assert!(matches!(of("p99>1s"), Ending::Invalid(why) if why.starts_with("p99>1s is not known: ")));
        assert_eq!(of("loss>50%"), Ending::Done);
        assert!(matches!(of("loss>0.1%"), Ending::Crossed(_)));
    }

    #[test]
    fn thresholds_that_are_crossed_are_each_named() {
        let thresholds = ["p99>1us", "loss>99%", "p90>1us"].map(|text| text.parse().unwrap());
        let Ending::Crossed(sentences) = Ending::of(&record(), &thresholds) else { panic!() };
        assert_eq!(sentences.len(), 2, "{sentences:?}");
    }

    #[test]
    fn run_without_a_valid_step_says_why() {
        let mut record = with_steps(|step| step.valid = false);
        assert!(matches!(Ending::of(&record, &[]), Ending::Invalid(why) if why.contains("fell behind")));
        record.steps.clear();
        record.interrupted = Some(Interruption::ByUser);
        assert!(matches!(Ending::of(&record, &[]), Ending::Invalid(why) if why.contains("stopped before")));
        let unsent = with_steps(|step| {
            step.valid = false;
            (step.tally.sent, step.tally.answered) = (0, 0);
        });
        assert!(matches!(Ending::of(&unsent, &[]), Ending::Invalid(_)), "nobody was asked");
    }

    #[test]
    fn silence_and_refused_answers_come_before_validity_and_thresholds() {
        let thresholds = ["loss>1%".parse().unwrap()];
        let silent = with_steps(|step| (step.tally.answered, step.tally.invalid) = (0, 0));
        assert_eq!(Ending::of(&silent, &thresholds), Ending::Silence);
        let refused =
            with_steps(|step| (step.tally.answered, step.tally.invalid, step.valid) = (0, 1, false));
        assert_eq!(Ending::of(&refused, &thresholds), Ending::Unauthenticated);
    }

    #[test]
    fn fault_is_named_whatever_was_measured() {
        let mut record = record();
        record.interrupted = Some(Interruption::Fault("agent B: gone".to_owned()));
        assert_eq!(Ending::of(&record, &[]), Ending::Fault("agent B: gone".to_owned()));
    }
}
