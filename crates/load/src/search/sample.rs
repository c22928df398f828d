//! Fresh trials at one rate, and what they show.

use authentick_report::load::{Finding, Limit, Sample};

use super::trial::Trial;
use super::{CONFIDENCE, SAMPLE_COUNT_MAX, Settings, statistics};

/// The fewest trials by which a sample says anything: one trial shows no spread.
const TRIAL_COUNT_MIN: usize = 2;

/// The probability that a sample at one end of the interval misleads. The first has half of what all of them have
/// together, as it mostly decides, and the others have equal parts of the rest (Bonferroni's inequality with unequal
/// parts; Miller, "Simultaneous Statistical Inference", 2nd edition, 1981, section 1.2). Both ends have half of what
/// the interval has.
const fn level(earlier: u32) -> f64 {
    const END: f64 = (1.0 - CONFIDENCE) / 2.0;
    if earlier == 0 { END / 2.0 } else { END / 2.0 / (SAMPLE_COUNT_MAX - 1) as f64 }
}

/// A sample that is being taken.
#[derive(Clone, Debug)]
pub(super) struct Collection {
    settings: Settings,
    rate_rps: f64,
    /// How many samples there were before at this end.
    earlier: u32,
    trials: Vec<Trial>,
    excluded_count: u32,
}

/// A sample with what its trials were limited by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Closed {
    pub(super) sample: Sample,
    pub(super) limit: Limit,
    pub(super) last: Option<Trial>,
    /// It has fewer trials than it should have, as the others were excluded.
    pub(super) is_short: bool,
}

impl Collection {
    pub(super) const fn new(settings: Settings, rate_rps: f64, earlier: u32) -> Self {
        Collection { settings, rate_rps, earlier, trials: Vec::new(), excluded_count: 0 }
    }

    pub(super) const fn rate_rps(&self) -> f64 {
        self.rate_rps
    }

    /// Valid trials that it needs.
    pub(super) const fn trial_count(&self) -> u32 {
        self.settings.sample_trial_count(self.earlier)
    }

    /// Those of them that are missing.
    pub(super) fn left(&self) -> u32 {
        self.trial_count().saturating_sub(self.trials.len() as u32)
    }

    pub(super) fn take(&mut self, trial: Trial) {
        match trial.excluded {
            Some(_) => self.excluded_count += 1,
            None => self.trials.push(trial),
        }
    }

    /// Whether it is complete, or so many trials were excluded that it never will be.
    pub(super) fn is_over(&self) -> bool {
        self.left() == 0 || self.excluded_count >= self.settings.sample_excluded_count_max()
    }

    /// Ends it. If fresh trials are missing, `earlier` is one more at the same rate.
    pub(super) fn close(mut self, earlier: Option<Trial>) -> Closed {
        let is_short = self.left() > 0;
        if is_short {
            self.trials.extend(earlier);
        }
        let tolerated = self.settings.tolerated();
        let level = level(self.earlier);
        let losses: Vec<f64> = self.trials.iter().map(Trial::loss).collect();
        let sum = |count: fn(&Trial) -> u64| self.trials.iter().map(count).sum::<u64>();
        let (sent, failed) = (sum(|trial| trial.sent), sum(|trial| trial.failed));
        let finding = if losses.len() < TRIAL_COUNT_MIN || sent == 0 {
            Finding::Undecided
        } else if tolerated >= 1.0 || statistics::holds(&losses, failed, sent, tolerated) <= level {
            Finding::Holds
        } else if statistics::exceeds(&losses, failed, sent, tolerated) <= level {
            Finding::Exceeds
        } else {
            Finding::Undecided
        };
        let (loss_low, loss_high) = statistics::interval(&losses, failed, sent);
        let sample = Sample {
            rate_rps: self.rate_rps,
            trial_count: losses.len() as u32,
            held_count: self.trials.iter().filter(|trial| trial.held(tolerated)).count() as u32,
            sent,
            failed,
            loss_low,
            loss_high,
            level,
            finding,
        };
        Closed { sample, limit: majority(&self.trials), last: self.trials.last().copied(), is_short }
    }
}

impl Closed {
    /// Whether only trials are missing: nothing speaks against the rate.
    pub(super) fn is_only_short(&self, tolerated: f64) -> bool {
        let sample = &self.sample;
        self.is_short
            && sample.finding == Finding::Undecided
            && sample.failed as f64 <= tolerated * sample.sent as f64
    }
}

/// What most trials were limited by, apart from those that nothing limited.
fn majority(trials: &[Trial]) -> Limit {
    let limits = [Limit::Server, Limit::Path, Limit::Generator];
    let of = |limit: Limit| trials.iter().filter(|trial| trial.limit == limit).count();
    limits.into_iter().find(|&limit| of(limit) * 2 > trials.len()).unwrap_or(Limit::Unknown)
}
