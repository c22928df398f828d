//! One trial: what a step tells a search, and whether it tells anything.

use authentick_report::load::{Cause, Drops, Evidence, Exclusion, Limit, Step};

/// A thread with at least this share of idle time had room for what it sent late: it was kept from its processor.
const IDLE_SHARE_MIN: f64 = 0.1;
/// From these shares of a step on, time that others had is the reason for what was late.
const STEAL_SHARE_MIN: f64 = 0.02;
const PREEMPTED_SHARE_MIN: f64 = 0.02;
/// The share of a step for which a sending thread may stand still. What was due meanwhile leaves in one burst, which no
/// server has to answer.
const STALL_SHARE_MAX: f64 = 0.01;

/// What a trial showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Requests sent.
    pub sent: u64,
    /// Requests that were not answered, or answered wrongly, and those by which the backlog grew.
    pub failed: u64,
    /// Why it is no evidence, neither for the rate nor against it; `None` if it is.
    pub excluded: Option<Exclusion>,
    /// What limited it.
    pub limit: Limit,
}

impl Trial {
    /// A valid trial.
    #[must_use]
    pub const fn new(sent: u64, failed: u64) -> Self {
        Trial { sent, failed, excluded: None, limit: Limit::Unknown }
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

/// What a step tells a search; a live display of the search uses these too.
impl From<&Step> for Trial {
    fn from(step: &Step) -> Self {
        Trial {
            sent: step.tally.sent,
            failed: step.tally.lost + step.tally.invalid + step.tally.unsustained(),
            excluded: exclusion(step),
            limit: step.limit.as_ref().map_or(Limit::Unknown, |verdict| verdict.by),
        }
    }
}

/// Why a step says nothing about the server. An exclusion never depends on what the server answered, except that losses
/// that were found to be the generator's own are not held against it.
fn exclusion(step: &Step) -> Option<Exclusion> {
    let evidence = step.evidence.clone().unwrap_or_default();
    let stalled = evidence.stalls.total_us > STALL_SHARE_MAX * step.seconds * 1e6;
    let lost_here = step.tally.lost > 0
        && step.limit.as_ref().is_some_and(|verdict| verdict.by == Limit::Generator)
        && evidence.drops != Drops::default();
    match step.valid && !lost_here {
        true => stalled.then_some(Exclusion::Stall),
        false => Some(why(step, &evidence, stalled)),
    }
}

/// What spoilt a step: its host, if there is a sign of it.
fn why(step: &Step, evidence: &Evidence, stalled: bool) -> Exclusion {
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
    } else if stalled {
        Exclusion::Stall
    } else if at_least(idle_share, IDLE_SHARE_MIN) && evidence.drops == Drops::default() {
        Exclusion::Preempted
    } else {
        Exclusion::Overload
    }
}

#[cfg(test)]
mod tests {
    use authentick_report::load::{Backlog, LoadRecord, Stalls, Verdict};

    use super::*;

    /// The invalid step of the report's golden file.
    fn spoilt(change: impl FnOnce(&mut Step, &mut Evidence)) -> Option<Exclusion> {
        let record = LoadRecord::from_json(include_str!("../../../report/tests/golden/load.json")).unwrap();
        let mut step = record.steps[3].clone();
        assert!(!step.valid);
        (step.generator_busy_share, step.tally.causes) = (Some(0.97), [].into());
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
        assert_eq!(Trial::from(&step), Trial { failed: before.failed + 200, ..before });
    }

    #[test]
    fn lateness_of_an_idle_thread_is_preemption_and_that_of_a_busy_one_overload() {
        assert_eq!(spoilt(|_, _| ()), Some(Exclusion::Overload));
        assert_eq!(spoilt(|step, _| step.generator_busy_share = Some(0.04)), Some(Exclusion::Preempted));
        assert_eq!(spoilt(|_, evidence| evidence.idle_share = Some(0.3)), Some(Exclusion::Preempted));
        assert_eq!(spoilt(|_, evidence| evidence.idle_share = Some(0.01)), Some(Exclusion::Overload));
    }

    #[test]
    fn signs_of_the_host_come_before_those_of_the_load() {
        assert_eq!(spoilt(|_, evidence| evidence.steal_share = Some(0.1)), Some(Exclusion::Steal));
        assert_eq!(spoilt(|_, evidence| evidence.preempted_share = Some(0.1)), Some(Exclusion::Preempted));
        assert_eq!(spoilt(|_, evidence| evidence.clock_jumps = 1), Some(Exclusion::ClockJump));
        let stall = |_: &mut Step, evidence: &mut Evidence| {
            evidence.stalls = Stalls { count: 1, longest_us: 4e5, total_us: 4e5 };
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
    fn valid_step_counts_unless_its_threads_stood_still_or_its_losses_are_the_generators() {
        assert_eq!(spoilt(|step, _| step.valid = true), None);
        // Five seconds at most: a twentieth of a second is too much of them.
        let still = |step: &mut Step, evidence: &mut Evidence| {
            (step.valid, step.seconds) = (true, 2.0);
            evidence.stalls = Stalls { count: 9, longest_us: 5e3, total_us: 3e4 };
        };
        assert_eq!(spoilt(still), Some(Exclusion::Stall));
        let own = |step: &mut Step, evidence: &mut Evidence| {
            step.valid = true;
            step.tally.lost = 5;
            step.limit = Some(Verdict { by: Limit::Generator, why: Vec::new() });
            evidence.drops.unread = 5;
        };
        assert_eq!(spoilt(own), Some(Exclusion::Overload));
    }
}
