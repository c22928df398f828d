//! The cheap part of a search: between which two rates the limit seems to lie. Nothing that is found here is reported
//! as a capacity; fresh samples decide.

use super::trial::Trial;
use super::{RATE_MIN_RPS, Settings};

/// A rate is beyond the generator after so many trials that it could not offer in time.
const OVERLOAD_COUNT: u32 = 3;
/// The same once the bracket becomes narrow: a rate that is offered in time now and then yields no sample.
const NARROW_OVERLOAD_COUNT: u32 = 2;
/// It cannot be tried after so many that were excluded for any reason.
const EXCLUDED_COUNT: u32 = 6;
/// While no rate has failed, one fails by so many of its trials: nothing above it is tried then.
const FAILED_COUNT: u32 = 2;

/// A rate that did not hold.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Failed {
    rate_rps: f64,
    /// The share that was lost.
    loss: f64,
    /// Requests that were sent.
    sent: u64,
}

/// By this factor rates rise first while none has failed, and fall while none has held; it is squared each time.
const STEP_FIRST: f64 = 1.1;
/// The largest such factor.
const STEP_MAX: f64 = 2.0;
/// Losses at rates that lie this far apart show whether a path loses the same at any rate.
const STEADY_SPAN_MIN: f64 = 4.0;
/// The largest such loss: a server that answers hardly anything is another matter.
const STEADY_LOSS_MAX: f64 = 0.5;
/// How far such a loss may lie from their mean: standard errors of its own trial, and a share of the mean.
const STEADY_ERRORS_MAX: f64 = 3.0;
const STEADY_SPREAD_MAX: f64 = 0.1;
/// Of the growth of the rate so much has to show in what is sustained, or the generator gives no more.
const GAIN_MIN: f64 = 0.3;
/// A rate that is higher by less than this share cannot be told from the one before it, as stalls differ.
const GROWTH_MIN: f64 = 0.4;
/// A trial of which so little was left out has sent its rate.
const CUT_SHARE_MAX: f64 = 0.02;
/// Valid trials of a whole bracket.
const TRIAL_COUNT_MAX: u32 = 64;

/// A bracket that becomes narrower.
#[derive(Clone, Debug)]
pub(super) struct Bracket {
    settings: Settings,
    /// The highest rate that held, and the trial in which it did.
    held: Option<(f64, Trial)>,
    /// Rates above it that did not, the lowest last.
    failed: Vec<Failed>,
    /// The lowest rate that the generator could not offer validly. It is no evidence of the server.
    beyond_rps: Option<f64>,
    /// The rate to try; `None` if the bracket is narrow enough, or cannot become so.
    current: Option<Current>,
    /// A guess was wrong: rates are halfway from now on.
    misled: bool,
    /// The next factor while rates only rise, or only fall.
    step: f64,
    /// About so much is lost at every rate.
    steady_loss: Option<f64>,
    /// Valid trials that may still be made.
    left: u32,
}

/// The trials of one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Current {
    rate_rps: f64,
    /// Whether it is expected to hold.
    expected: Option<bool>,
    held_count: u32,
    failed_count: u32,
    overload_count: u32,
    excluded_count: u32,
}

impl Current {
    const fn at(rate_rps: f64, expected: Option<bool>) -> Self {
        Current { rate_rps, expected, held_count: 0, failed_count: 0, overload_count: 0, excluded_count: 0 }
    }
}

impl Bracket {
    /// A bracket that begins at `first_rps`; that is near the limit, or it may be anywhere.
    pub(super) fn new(settings: Settings, first_rps: f64, is_near: bool) -> Self {
        Bracket {
            settings,
            held: None,
            failed: Vec::new(),
            beyond_rps: None,
            current: Some(Current::at(first_rps, None)),
            misled: false,
            step: if is_near { STEP_FIRST } else { STEP_MAX },
            steady_loss: None,
            left: TRIAL_COUNT_MAX,
        }
    }

    /// The rate to try next; `None` if the bracket is narrow enough or cannot become so.
    pub(super) fn next_rps(&self) -> Option<f64> {
        self.current.filter(|_| self.left > 0).map(|current| current.rate_rps)
    }

    /// The highest rate that held, and the trial in which it did.
    pub(super) const fn held(&self) -> Option<(f64, Trial)> {
        self.held
    }

    /// The lowest rate that did not hold.
    pub(super) fn failed_rps(&self) -> Option<f64> {
        self.failed.last().map(|failed| failed.rate_rps)
    }

    /// The lowest rate that could not be tried.
    pub(super) const fn beyond_rps(&self) -> Option<f64> {
        self.beyond_rps
    }

    /// The loss at every rate that was tried, if it is about the same and above the tolerated one.
    pub(super) const fn steady_loss(&self) -> Option<f64> {
        self.steady_loss
    }

    /// Takes in the trial at [`Bracket::next_rps`].
    pub(super) fn take(&mut self, trial: Trial) {
        let Some(mut current) = self.current else { return };
        let held = trial.held(self.settings.tolerated());
        match trial.excluded {
            Some(why) => {
                current.excluded_count += 1;
                current.overload_count += u32::from(!why.is_of_host());
            }
            None => {
                self.left = self.left.saturating_sub(1);
                current.held_count += u32::from(held);
                current.failed_count += u32::from(!held);
            }
        }
        self.current = Some(current);
        let is_wide = self.failed.is_empty() && self.beyond_rps.is_none();
        let overload_count_max = if is_wide { OVERLOAD_COUNT } else { NARROW_OVERLOAD_COUNT };
        if current.overload_count >= overload_count_max || current.excluded_count >= EXCLUDED_COUNT {
            self.beyond(current.rate_rps);
        } else if trial.excluded.is_some() {
            return;
        } else if held && self.is_plateau(current.rate_rps, &trial) {
            self.beyond(current.rate_rps);
        } else if held && (current.failed_count == 0 || current.held_count >= FAILED_COUNT) {
            self.held = Some((current.rate_rps, trial));
            self.misled |= current.expected == Some(false);
        } else if !held && (!self.failed.is_empty() || current.failed_count >= FAILED_COUNT) {
            self.failed.push(Failed { rate_rps: current.rate_rps, loss: trial.loss(), sent: trial.sent });
            self.steady_loss = self.find_steady_loss();
            self.misled |= current.expected == Some(true);
        } else {
            // Not decided: the same rate again.
            return;
        }
        self.current = self.choose();
        self.step = (self.step * self.step).min(STEP_MAX);
    }

    /// Whether a rate above the one that held brought no more, as the generator left out what it could not send.
    fn is_plateau(&self, rate_rps: f64, trial: &Trial) -> bool {
        self.held.is_some_and(|(held_rps, held)| {
            let gain = rate_rps * trial.sustained_share / (held_rps * held.sustained_share) - 1.0;
            let growth = rate_rps / held_rps - 1.0;
            growth >= GROWTH_MIN && trial.cut_share > CUT_SHARE_MAX && gain < GAIN_MIN * growth
        })
    }

    /// The mean loss, if rates far apart have lost about the same, and none has held.
    fn find_steady_loss(&self) -> Option<f64> {
        let (highest, lowest) = (self.failed.first()?, self.failed.last()?);
        let mean = self.failed.iter().map(|failed| failed.loss).sum::<f64>() / self.failed.len() as f64;
        let is_near = |failed: &Failed| {
            let error = (mean * (1.0 - mean) / failed.sent.max(1) as f64).sqrt();
            (failed.loss - mean).abs() <= STEADY_ERRORS_MAX * error + STEADY_SPREAD_MAX * mean
        };
        let is_steady = self.held.is_none()
            && mean <= STEADY_LOSS_MAX
            && highest.rate_rps >= STEADY_SPAN_MIN * lowest.rate_rps
            && self.failed.iter().all(is_near);
        is_steady.then_some(mean)
    }

    /// Notes a rate that could not be tried validly.
    pub(super) fn beyond(&mut self, rate_rps: f64) {
        self.beyond_rps = Some(self.beyond_rps.map_or(rate_rps, |beyond| beyond.min(rate_rps)));
    }

    /// Goes on above a rate that failed once and has now been shown to hold.
    pub(super) fn reopen(&mut self, rate_rps: f64, trial: Trial) {
        self.failed.retain(|failed| failed.rate_rps > rate_rps);
        self.beyond_rps = self.beyond_rps.filter(|&beyond| beyond > rate_rps);
        self.held = Some((rate_rps, trial));
        (self.misled, self.step) = (true, STEP_FIRST);
        self.current = self.choose();
    }

    /// How narrow it becomes: the wider the interval will be by what was left out, the less is gained by more trials.
    fn resolution(&self) -> f64 {
        let cut_share = self.held.map_or(0.0, |(_, trial)| trial.cut_share);
        self.settings.resolution.max(cut_share / 8.0)
    }

    fn choose(&self) -> Option<Current> {
        let rate_max_rps = self.settings.rate_max_rps;
        let resolution = self.resolution();
        let halfway = |rate_rps| Some(Current::at(rate_rps, None));
        let failed_rps = self.failed_rps();
        let ceiling_rps = failed_rps.into_iter().chain(self.beyond_rps).reduce(f64::min);
        match (self.held.map(|(rate_rps, _)| rate_rps), ceiling_rps) {
            (Some(held_rps), None) if held_rps >= rate_max_rps => None,
            (Some(held_rps), None) => halfway((held_rps * self.step).min(rate_max_rps)),
            // A lower rate would lose the same.
            (None, _) if self.steady_loss.is_some() => None,
            (None, Some(ceiling_rps)) if ceiling_rps <= RATE_MIN_RPS => None,
            (None, Some(ceiling_rps)) => halfway((ceiling_rps / self.step).max(RATE_MIN_RPS)),
            (Some(held_rps), Some(ceiling_rps)) => {
                let is_narrow = ceiling_rps - held_rps <= resolution * ceiling_rps;
                let guess = self.guess(held_rps, ceiling_rps);
                (!is_narrow).then(|| guess.unwrap_or(Current::at(f64::midpoint(held_rps, ceiling_rps), None)))
            }
            (None, None) => self.current,
        }
    }

    /// What the last failure suggests: a server that only drops what is too much answers as much as it can. First a
    /// rate just below that, which should hold, then one just above it, which should not.
    fn guess(&self, held_rps: f64, ceiling_rps: f64) -> Option<Current> {
        let failed = self.failed.last().filter(|_| !self.misled)?;
        let resolution = self.resolution();
        let answered_rps = failed.rate_rps * (1.0 - failed.loss);
        let below_rps = answered_rps * (1.0 - resolution / 3.0);
        let above_rps = below_rps / (1.0 - resolution);
        let inside = |rate_rps: f64| held_rps < rate_rps && rate_rps < ceiling_rps;
        if inside(below_rps) {
            Some(Current::at(below_rps, Some(true)))
        } else if held_rps >= below_rps && inside(above_rps) {
            Some(Current::at(above_rps, Some(false)))
        } else {
            None
        }
    }
}
