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
    /// Losses of this end's earlier samples, as [`Earlier`] has them.
    prior: Vec<Trial>,
}

/// Trials of earlier samples at one end, each with its rate. Those at higher rates lose no less, so they count where a
/// rate has to hold; those at lower ones lose no more, and count where it has to exceed what is tolerated.
#[derive(Clone, Debug, Default)]
pub(super) struct Earlier(Vec<(f64, Trial)>);

impl Earlier {
    pub(super) fn add(&mut self, rate_rps: f64, trials: &[Trial]) {
        self.0.extend(trials.iter().map(|trial| (rate_rps, *trial)));
    }

    fn from(&self, is_kept: impl Fn(f64) -> bool) -> Vec<Trial> {
        self.0.iter().filter(|(rate_rps, _)| is_kept(*rate_rps)).map(|(_, trial)| *trial).collect()
    }

    /// Those that count where `rate_rps` has to hold.
    pub(super) fn at_or_above(&self, rate_rps: f64) -> Vec<Trial> {
        self.from(|rate| rate >= rate_rps)
    }

    /// Those that count where `rate_rps` has to exceed what is tolerated.
    pub(super) fn at_or_below(&self, rate_rps: f64) -> Vec<Trial> {
        self.from(|rate| rate <= rate_rps)
    }
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
    /// A sample after `earlier` ones at the same end, of whose trials those in `prior` count.
    pub(super) const fn new(settings: Settings, rate_rps: f64, earlier: u32, prior: Vec<Trial>) -> Self {
        Collection { settings, rate_rps, earlier, trials: Vec::new(), excluded_count: 0, prior }
    }

    pub(super) fn trials(&self) -> &[Trial] {
        &self.trials
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

    /// Ends it at the lower end, which has to hold, or at the upper one. If fresh trials are missing, `earlier` is one
    /// more at the same rate.
    pub(super) fn close(mut self, is_lower: bool, earlier: Option<Trial>) -> Closed {
        let is_short = self.left() > 0;
        if is_short {
            self.trials.extend(earlier);
        }
        let tolerated = self.settings.tolerated();
        let level = level(self.earlier);
        let fresh = Losses::of(&self.trials);
        let all = Losses::of(&[&self.trials[..], &self.prior[..]].concat());
        // The fresh trials alone, or with the earlier ones: each test has half of the level.
        let shows =
            |of: fn(&Losses, f64) -> f64, has_earlier: bool| match has_earlier && !self.prior.is_empty() {
                true => [&fresh, &all].into_iter().find(|losses| of(losses, tolerated) <= level / 2.0),
                false => Some(&fresh).filter(|losses| of(losses, tolerated) <= level),
            };
        let (finding, decided) = if self.trials.len() < TRIAL_COUNT_MIN || fresh.sent == 0 {
            (Finding::Undecided, &fresh)
        } else if tolerated >= 1.0 {
            (Finding::Holds, &fresh)
        } else if let Some(losses) = shows(Losses::holds, is_lower) {
            (Finding::Holds, losses)
        } else if let Some(losses) = shows(Losses::exceeds, !is_lower) {
            (Finding::Exceeds, losses)
        } else {
            (Finding::Undecided, &fresh)
        };
        let Losses { sent, failed, .. } = fresh;
        let (loss_low, loss_high) = statistics::interval(&decided.shares, decided.failed, decided.sent);
        let sample = Sample {
            rate_rps: self.rate_rps,
            sustained_rps: Some(self.rate_rps * mean_sustained(&self.trials)),
            trial_count: self.trials.len() as u32,
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

/// The losses of trials.
struct Losses {
    shares: Vec<f64>,
    sent: u64,
    failed: u64,
}

impl Losses {
    fn of(trials: &[Trial]) -> Self {
        let sum = |count: fn(&Trial) -> u64| trials.iter().map(count).sum::<u64>();
        Losses {
            shares: trials.iter().map(Trial::loss).collect(),
            sent: sum(|trial| trial.sent),
            failed: sum(|trial| trial.failed),
        }
    }

    fn holds(&self, tolerated: f64) -> f64 {
        statistics::holds(&self.shares, self.failed, self.sent, tolerated)
    }

    fn exceeds(&self, tolerated: f64) -> f64 {
        statistics::exceeds(&self.shares, self.failed, self.sent, tolerated)
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

/// The mean share of the rate that trials sustained; 0 without trials.
fn mean_sustained(trials: &[Trial]) -> f64 {
    let sum: f64 = trials.iter().map(|trial| trial.sustained_share).sum();
    sum / trials.len().max(1) as f64
}

/// What most trials were limited by, apart from those that nothing limited.
fn majority(trials: &[Trial]) -> Limit {
    let limits = [Limit::Server, Limit::Host, Limit::Path, Limit::Generator];
    let of = |limit: Limit| trials.iter().filter(|trial| trial.limit == limit).count();
    limits.into_iter().find(|&limit| of(limit) * 2 > trials.len()).unwrap_or(Limit::Unknown)
}
