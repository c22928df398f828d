//! One trial: what a step tells a search, and whether it tells anything.

use authentick_generator::validity::lateness_max_ns;
use authentick_report::load::{Cause, Drops, Exclusion, Limit, Step};

/// A thread with at least this share of idle time had room for what it sent late: it was kept from its processor.
const IDLE_SHARE_MIN: f64 = 0.1;
/// From these shares of a step on, time that others had is the reason for what was late.
const STEAL_SHARE_MIN: f64 = 0.02;
const PREEMPTED_SHARE_MIN: f64 = 0.02;
/// A trial of which more than this share was left out, as sending threads stood still, is no evidence against its rate.
/// What was answered in it was answered all the same.
const CUT_SHARE_MAX: f64 = 0.5;

/// What a trial showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Requests sent.
    pub sent: u64,
    /// Requests that were not answered, or answered wrongly, and those by which the backlog grew.
    pub failed: u64,
    /// What was answered a second of wall clock, stalls included, less what the backlog grew: a share of the nominal
    /// rate.
    pub sustained_share: f64,
    /// What was left out of the nominal rate, as sending threads stood still: a share of what fell due.
    pub cut_share: f64,
    /// Why it is no evidence, neither for the rate nor against it; `None` if it is.
    pub excluded: Option<Exclusion>,
    /// Why it is none against the rate, if it did not hold; `None` if it is.
    pub excluded_if_failed: Option<Exclusion>,
    /// What limited it.
    pub limit: Limit,
}

impl Trial {
    /// The same with what it is worth where so much may be lost.
    pub(super) fn judged(self, loss_max: f64) -> Trial {
        let of_failure = self.excluded_if_failed.filter(|_| !self.held(loss_max));
        Trial { excluded: self.excluded.or(of_failure), ..self }
    }

    /// A valid trial that sent its nominal rate.
    #[must_use]
    pub fn new(sent: u64, failed: u64) -> Self {
        let trial = Trial {
            sent,
            failed,
            sustained_share: 1.0,
            cut_share: 0.0,
            excluded: None,
            excluded_if_failed: None,
            limit: Limit::Unknown,
        };
        Trial { sustained_share: 1.0 - trial.loss(), ..trial }
    }

    /// Share of what was sent that failed; all of it if nothing was sent.
    #[must_use]
    pub fn loss(&self) -> f64 {
        if self.sent == 0 { 1.0 } else { self.failed as f64 / self.sent as f64 }
    }

    /// Whether no more was lost than may be.
    #[must_use]
    pub fn held(&self, loss_max: f64) -> bool {
        self.sent > 0 && self.failed as f64 <= loss_max * self.sent as f64
    }
}

/// What an open step tells a search; a live display of the search uses these too.
impl From<&Step> for Trial {
    fn from(step: &Step) -> Self {
        let tally = &step.tally;
        let cut = step.evidence.as_ref().map_or(0, |evidence| evidence.cut);
        let due = cut + tally.scheduled;
        // Answers that came within the time: what still waits at the end may be a queue that grows.
        let sustained_rps = step.per_second(tally.answered_within());
        let nominal_rps = step.offered_rps.unwrap_or(sustained_rps);
        let cut_share = if due == 0 { 0.0 } else { cut as f64 / due as f64 };
        Trial {
            sent: tally.sent,
            failed: tally.lost + tally.invalid + tally.unsustained(),
            sustained_share: if nominal_rps > 0.0 { (sustained_rps / nominal_rps).min(1.0) } else { 0.0 },
            cut_share,
            excluded: exclusion(step),
            excluded_if_failed: (cut_share > CUT_SHARE_MAX).then(|| why(step)),
            limit: step.limit.as_ref().map_or(Limit::Unknown, |verdict| verdict.by),
        }
    }
}

/// Why a step says nothing about the server: its host lost what was sent or what came back, or its clock was set. That
/// it sent late, or stood still, is no reason: see the module above. An exclusion never depends on what the server
/// answered, except that losses that were found to be the generator's own are not held against it.
fn exclusion(step: &Step) -> Option<Exclusion> {
    let evidence = step.evidence.clone().unwrap_or_default();
    let lost_here = step.tally.lost > 0
        && step.limit.as_ref().is_some_and(|verdict| verdict.by == Limit::Generator)
        && evidence.drops != Drops::default();
    let late_max_us = lateness_max_ns(step.tally.operation) as f64 / 1e3;
    let is_late = step.lateness_us.as_ref().is_some_and(|lateness| lateness.p99 > late_max_us);
    let is_invalid = !step.valid && !is_late;
    (evidence.clock_jumps > 0 || lost_here || is_invalid).then(|| why(step))
}

/// What spoilt a step: its host, if there is a sign of it.
fn why(step: &Step) -> Exclusion {
    let evidence = step.evidence.clone().unwrap_or_default();
    let at_least = |share: Option<f64>, least: f64| share.is_some_and(|share| share >= least);
    let idle_share = evidence.idle_share.or(step.generator_busy_share.map(|share| 1.0 - share));
    // Want of ports, buffers, memory or descriptors has nothing to do with the processor.
    let is_want = |cause: Cause| cause.is_local() && cause != Cause::FellBehind;
    let is_exhausted = Cause::ALL.into_iter().any(|cause| is_want(cause) && step.tally.count_of(cause) > 0);
    if evidence.clock_jumps > 0 {
        Exclusion::ClockJump
    } else if at_least(evidence.steal_share, STEAL_SHARE_MIN) {
        Exclusion::Steal
    } else if is_exhausted {
        Exclusion::Overload
    } else if at_least(evidence.preempted_share, PREEMPTED_SHARE_MIN) {
        Exclusion::Preempted
    } else if evidence.stalls.count > 0 && evidence.cut > 0 {
        Exclusion::Stall
    } else if at_least(idle_share, IDLE_SHARE_MIN) && evidence.drops == Drops::default() {
        Exclusion::Preempted
    } else {
        Exclusion::Overload
    }
}

#[cfg(test)]
mod tests {
    use authentick_report::load::{Backlog, Evidence, LoadRecord, Stalls, Verdict};

    use super::*;

    /// The invalid step of the report's golden file, in time.
    fn spoilt(change: impl FnOnce(&mut Step, &mut Evidence)) -> Option<Exclusion> {
        let record = LoadRecord::from_json(include_str!("../../../report/tests/golden/load.json")).unwrap();
        let mut step = record.steps[3].clone();
        assert!(!step.valid);
        (step.generator_busy_share, step.lateness_us, step.tally.causes) = (Some(0.97), None, [].into());
        let mut evidence = Evidence::default();
        change(&mut step, &mut evidence);
        step.evidence = Some(evidence);
        Trial::from(&step).excluded
    }

    #[test]
    fn backlog_that_grows_counts_as_lost() {
        let record = LoadRecord::from_json(include_str!("../../../report/tests/golden/load.json")).unwrap();
        let mut step = record.steps[0].clone();
        let before = Trial::from(&step);
        step.tally.backlog = Backlog { start: 0, middle: 100, end: 200 };
        let after = Trial::from(&step);
        assert_eq!(after.failed, before.failed + 200);
        let sustained = |trial: Trial| trial.sustained_share * step.offered_rps.unwrap() * step.seconds;
        assert!((sustained(before) - sustained(after) - 200.0).abs() < 1e-6, "{before:?} {after:?}");
    }

    #[test]
    fn lateness_of_an_idle_thread_is_preemption_and_that_of_a_busy_one_overload() {
        assert_eq!(spoilt(|_, _| ()), Some(Exclusion::Overload));
        assert_eq!(spoilt(|step, _| step.generator_busy_share = Some(0.04)), Some(Exclusion::Preempted));
        assert_eq!(spoilt(|_, evidence| evidence.idle_share = Some(0.3)), Some(Exclusion::Preempted));
        assert_eq!(spoilt(|_, evidence| evidence.idle_share = Some(0.01)), Some(Exclusion::Overload));
    }

    #[test]
    fn trial_that_was_cut_counts_for_its_rate_and_past_one_half_not_against_it() {
        let record = LoadRecord::from_json(include_str!("../../../report/tests/golden/load.json")).unwrap();
        let mut step = record.steps[0].clone();
        let scheduled = step.tally.scheduled;
        let mut cut = |count: u64| {
            step.evidence = Some(Evidence { cut: count, ..Evidence::default() });
            Trial::from(&step)
        };
        for (count, is_against) in [(scheduled, true), (scheduled + 1, false)] {
            let trial = cut(count);
            assert_eq!((trial.excluded, trial.excluded_if_failed.is_none()), (None, is_against), "{trial:?}");
            assert_eq!(trial.judged(1.0).excluded, None, "it held");
            let failed = Trial { failed: trial.sent, ..trial };
            assert_eq!(failed.judged(0.01).excluded.is_none(), is_against, "{failed:?}");
        }
    }

    #[test]
    fn signs_of_the_host_come_before_those_of_the_load() {
        assert_eq!(spoilt(|_, evidence| evidence.steal_share = Some(0.1)), Some(Exclusion::Steal));
        assert_eq!(spoilt(|_, evidence| evidence.preempted_share = Some(0.1)), Some(Exclusion::Preempted));
        assert_eq!(spoilt(|_, evidence| evidence.clock_jumps = 1), Some(Exclusion::ClockJump));
        let stall = |_: &mut Step, evidence: &mut Evidence| {
            evidence.stalls = Stalls { count: 1, longest_us: 4e5, total_us: 4e5 };
            evidence.cut = 1;
        };
        assert_eq!(spoilt(stall), Some(Exclusion::Stall));
    }

    #[test]
    fn what_the_generator_has_no_more_of_is_its_own_whoever_has_the_processor() {
        let wants = [Cause::LocalBuffer, Cause::LocalPort, Cause::LocalMemory, Cause::Local];
        let is_local = |cause: &Cause| cause.is_local() && *cause != Cause::FellBehind;
        assert_eq!(Cause::ALL.into_iter().filter(is_local).collect::<Vec<_>>(), wants);
        for cause in wants {
            let exhausted = |step: &mut Step, evidence: &mut Evidence| {
                step.tally.causes = [(cause, 3)].into();
                (evidence.idle_share, evidence.preempted_share) = (Some(0.9), Some(0.1));
            };
            assert_eq!(spoilt(exhausted), Some(Exclusion::Overload), "{cause}");
        }
    }

    #[test]
    fn step_counts_unless_its_losses_are_the_generators() {
        assert_eq!(spoilt(|step, _| step.valid = true), None);
        let late = |step: &mut Step, _: &mut Evidence| {
            let lateness = authentick_report::load::Percentiles { p99: 1500.0, ..Default::default() };
            step.lateness_us = Some(lateness);
        };
        assert_eq!(spoilt(late), None, "what is late is no reason");
        let own = |step: &mut Step, evidence: &mut Evidence| {
            step.valid = true;
            step.tally.lost = 5;
            step.limit = Some(Verdict { by: Limit::Generator, why: Vec::new() });
            evidence.drops.unread = 5;
        };
        assert_eq!(spoilt(own), Some(Exclusion::Overload));
    }
}
