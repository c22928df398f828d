//! The interval in which a server's capacity lies: a search over trials that a caller makes. Pure; it sends nothing.
//!
//! The capacity is the rate at which the long-run loss crosses the tolerated one. The search has two parts:
//!
//! - A *bracket* of single trials: the rate doubles until it does not hold, then the bracket becomes narrow. It only
//!   chooses the rates at which the second part looks, as the best of several single trials is always lucky.
//! - Fresh *samples* of [`Settings::trial_count`] trials decide: one at the lower end, which must show that the loss is
//!   at most the tolerated one, and one at the upper end, which must show that it is above. The unit is the trial, by
//!   Student's t, as losses within one come in bursts; the exact binomial test has to agree, which sets the smallest
//!   sample: with 1 % tolerated, 437 requests without a loss. An end that is not confirmed moves outwards, in steps
//!   that double, and is tried again with fresh trials, and more of them. Each sample is another chance to be wrong,
//!   so they share the probability of that: all of them together mislead in one search of twenty, at most.
//!
//! What the tests assume: trials of one rate are alike and independent, and the means of their losses are not far
//! from normal. An event rarer than one trial in some tens is not seen.
//!
//! A trial that the generator or its host spoilt is no evidence in either direction. It is repeated, and counted. A
//! rate that cannot be tried validly is beyond the generator; the search then looks for the highest rate that is not,
//! and there is no upper end. It never goes down because of such trials.

mod bracket;
mod sample;
mod statistics;
#[cfg(test)]
mod tests;
mod trial;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use authentick_report::load::{Exclusion, Finding, Limit, Sample};
use authentick_report::units::rate;

pub use self::trial::Trial;
use bracket::Bracket;
use sample::{Closed, Collection};

/// With this probability what is said of both ends of the interval is right.
pub const CONFIDENCE: f64 = 0.95;

/// The lowest rate that is tried.
const RATE_MIN_RPS: f64 = 1.0;
/// The smallest share that can be tolerated: no sample of a bounded size shows that nothing is ever lost.
const LOSS_MIN: f64 = 1e-4;
/// Samples at one end of the interval.
const SAMPLE_COUNT_MAX: u32 = 4;
/// Trials of a whole search that may be excluded.
const EXCLUDED_COUNT_MAX: u32 = 40;
/// The longest pause before a trial is repeated that the host spoilt.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The first rate, requests a second.
    pub start_rps: f64,
    /// No rate above this one is tried.
    pub rate_max_rps: f64,
    /// The share of requests that may go unanswered; what is less than 0.0001 counts as that.
    pub loss_max: f64,
    /// The bracket is narrow enough when its ends differ by this share of the upper one.
    pub resolution: f64,
    /// Trials of the first sample at each end, at least 2; a further one has half as many more.
    pub trial_count: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { start_rps: 1000.0, rate_max_rps: 10e6, loss_max: 0.01, resolution: 0.03, trial_count: 5 }
    }
}

impl Settings {
    /// The share of requests that may go unanswered, as it is tested.
    #[must_use]
    pub const fn tolerated(&self) -> f64 {
        if self.loss_max > LOSS_MIN { self.loss_max } else { LOSS_MIN }
    }

    /// The most trials that a search makes, excluded ones among them.
    #[must_use]
    pub const fn trial_count_max(&self) -> u32 {
        self.bracket_count_max() + 2 * self.samples_trial_count(0) + EXCLUDED_COUNT_MAX
    }

    /// The longest time that a search takes if each trial takes `trial` with its preparation and its last answers.
    #[must_use]
    pub fn longest(&self, trial: Duration) -> Duration {
        time(self.trial_count_max(), trial, self.pause_max(trial))
    }

    fn first_rps(&self) -> f64 {
        self.start_rps.clamp(RATE_MIN_RPS, self.rate_max_rps.max(RATE_MIN_RPS))
    }

    /// The most valid trials that the bracket takes.
    const fn bracket_count_max(&self) -> u32 {
        const REPEATED: u32 = 4;
        // Once for the first bracket, and once more if it has to be opened again.
        let halvings = steps(self.resolution, 0.5);
        let (up, down) = (steps(self.start_rps, self.rate_max_rps), steps(RATE_MIN_RPS, self.start_rps));
        let most = if up > down { up } else { down };
        1 + most + REPEATED + 2 * (halvings + 2)
    }

    /// The trials of a sample at one end, if there were `earlier` ones.
    const fn sample_trial_count(&self, earlier: u32) -> u32 {
        if earlier == 0 { self.trial_count } else { self.trial_count + self.trial_count.div_ceil(2) }
    }

    /// The trials of all samples that may follow at one end, if there were `earlier` ones.
    const fn samples_trial_count(&self, earlier: u32) -> u32 {
        let (mut count, mut index) = (0, earlier);
        while index < SAMPLE_COUNT_MAX {
            count += self.sample_trial_count(index);
            index += 1;
        }
        count
    }

    /// The most trials of one sample that may be excluded.
    const fn sample_excluded_count_max(&self) -> u32 {
        4 * self.trial_count
    }

    const fn pause_max(&self, trial: Duration) -> Duration {
        if trial.as_nanos() < PAUSE_MAX.as_nanos() { trial } else { PAUSE_MAX }
    }
}

/// How often `from` has to double to reach `to`; at most 64.
const fn steps(from: f64, to: f64) -> u32 {
    let (mut value, mut count) = (from, 0);
    while value < to && count < 64 {
        value *= 2.0;
        count += 1;
    }
    count
}

fn time(trial_count: u32, trial: Duration, pause: Duration) -> Duration {
    trial
        .saturating_mul(trial_count)
        .saturating_add(pause.saturating_mul(trial_count.min(EXCLUDED_COUNT_MAX)))
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    stage: Stage,
    bracket: Bracket,
    lower: End,
    upper: End,
    samples: Vec<Sample>,
    excluded: BTreeMap<Exclusion, u32>,
    /// Trials that the host spoilt since the last valid one.
    spoilt_count: u32,
    trial_count: u32,
    /// The host, and not the load, was the reason why the search got no further.
    is_host_busy: bool,
}

/// What a search is doing.
#[derive(Clone, Debug)]
enum Stage {
    /// It looks for two rates between which the limit seems to lie.
    Bracketing,
    /// It takes a sample at the lower end.
    Lower(Collection),
    /// It takes a sample at the upper end.
    Upper(Collection),
    /// It has ended.
    Over,
}

/// One end of the interval.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    /// The sample that confirmed it, and what limited its trials.
    confirmed: Option<(Sample, Limit)>,
    /// Samples that were taken.
    sample_count: u32,
    /// Nothing more can be tried at it.
    is_closed: bool,
}

impl End {
    fn rate_rps(&self) -> Option<f64> {
        self.confirmed.map(|(sample, _)| sample.rate_rps)
    }

    const fn left(&self) -> u32 {
        SAMPLE_COUNT_MAX.saturating_sub(self.sample_count)
    }
}

/// The result of a search, or what it has so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The highest rate whose loss is at most the tolerated one.
    pub at_least: Option<Sample>,
    /// The lowest rate whose loss is above it; `None` if none was found.
    pub below: Option<Sample>,
    /// What the limit was at the upper end.
    pub limited_by: Limit,
    /// The highest rate that held in a single trial: where the search is, but no result.
    pub held_rps: Option<f64>,
    /// The lowest rate that did not hold in single trials.
    pub failed_rps: Option<f64>,
    /// The lowest rate that could not be tried, as the generator could not offer it in time.
    pub beyond_rps: Option<f64>,
    /// All samples, in the order of measuring.
    pub samples: Vec<Sample>,
    /// How many trials say nothing, by the reason.
    pub excluded: BTreeMap<Exclusion, u32>,
    /// The generator's host, and not the load, was the reason why the search got no further.
    pub is_host_busy: bool,
}

impl Found {
    /// The lower end of the interval.
    #[must_use]
    pub fn at_least_rps(&self) -> Option<f64> {
        self.at_least.map(|sample| sample.rate_rps)
    }

    /// Its upper end.
    #[must_use]
    pub fn below_rps(&self) -> Option<f64> {
        self.below.map(|sample| sample.rate_rps)
    }
}

impl Search {
    /// A search that has not tried anything.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let settings = Settings { trial_count: settings.trial_count.max(2), ..settings };
        Search {
            settings,
            stage: Stage::Bracketing,
            bracket: Bracket::new(settings),
            lower: End::default(),
            upper: End::default(),
            samples: Vec::new(),
            excluded: BTreeMap::new(),
            spoilt_count: 0,
            trial_count: 0,
            is_host_busy: false,
        }
    }

    /// The rate to try next; `None` if the search is over.
    #[must_use]
    pub fn next_rps(&self) -> Option<f64> {
        match &self.stage {
            Stage::Bracketing => self.bracket.next_rps(),
            Stage::Lower(collection) | Stage::Upper(collection) => Some(collection.rate_rps()),
            Stage::Over => None,
        }
    }

    /// How long to wait before the next trial, which takes `trial`: longer for each one in turn that the host spoilt.
    #[must_use]
    pub fn pause(&self, trial: Duration) -> Duration {
        trial.saturating_mul(self.spoilt_count).min(self.settings.pause_max(trial))
    }

    /// The most trials that are still made.
    #[must_use]
    pub fn trial_count_left_max(&self) -> u32 {
        let current = match &self.stage {
            Stage::Over => return 0,
            Stage::Bracketing => 0,
            Stage::Lower(collection) | Stage::Upper(collection) => collection.left(),
        };
        let samples = |end: &End| self.settings.samples_trial_count(end.sample_count);
        let upper = if self.upper.confirmed.is_some() { 0 } else { samples(&self.upper) };
        let excluded = EXCLUDED_COUNT_MAX - self.excluded_count();
        let left = current + self.bracket.left() + samples(&self.lower) + upper + excluded;
        left.min(self.settings.trial_count_max().saturating_sub(self.trial_count))
    }

    /// The longest time until the end, if each trial takes `trial` with its preparation and its last answers.
    #[must_use]
    pub fn time_left_max(&self, trial: Duration) -> Duration {
        time(self.trial_count_left_max(), trial, self.settings.pause_max(trial))
    }

    /// Adds the result of the trial at [`Search::next_rps`].
    pub fn take(&mut self, trial: Trial) {
        self.trial_count += 1;
        self.spoilt_count = match trial.excluded {
            Some(why) if why.is_of_host() => self.spoilt_count + 1,
            Some(_) | None => 0,
        };
        if let Some(why) = trial.excluded {
            *self.excluded.entry(why).or_default() += 1;
        }
        let is_out_of_patience = self.excluded_count() >= EXCLUDED_COUNT_MAX;
        self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Bracketing => {
                self.bracket.take(trial);
                match self.bracket.next_rps() {
                    Some(_) if !is_out_of_patience => Stage::Bracketing,
                    Some(_) | None => self.settle(),
                }
            }
            Stage::Lower(mut collection) => {
                collection.take(trial);
                match collection.is_over() || is_out_of_patience {
                    true => self.end_lower(collection),
                    false => Stage::Lower(collection),
                }
            }
            Stage::Upper(mut collection) => {
                collection.take(trial);
                match collection.is_over() || is_out_of_patience {
                    true => self.end_upper(collection),
                    false => Stage::Upper(collection),
                }
            }
            Stage::Over => Stage::Over,
        };
        if is_out_of_patience {
            self.stage = Stage::Over;
        }
        if matches!(self.stage, Stage::Over) {
            // Most of what was excluded says why the search got no further.
            let of_host: u32 =
                self.excluded.iter().filter(|(why, _)| why.is_of_host()).map(|(_, count)| count).sum();
            self.is_host_busy = of_host * 2 > self.excluded_count();
        }
    }

    /// What was found so far.
    #[must_use]
    pub fn found(&self) -> Found {
        Found {
            at_least: self.lower.confirmed.map(|(sample, _)| sample),
            below: self.upper.confirmed.map(|(sample, _)| sample),
            limited_by: self.limited_by(),
            held_rps: self.bracket.held().map(|(rate_rps, _)| rate_rps),
            failed_rps: self.bracket.failed_rps(),
            beyond_rps: self.bracket.beyond_rps(),
            samples: self.samples.clone(),
            excluded: self.excluded.clone(),
            is_host_busy: self.is_host_busy,
        }
    }

    fn excluded_count(&self) -> u32 {
        self.excluded.values().sum()
    }

    fn limited_by(&self) -> Limit {
        let is_highest = self.lower.rate_rps().is_some_and(|rate| rate >= self.settings.rate_max_rps);
        let is_out = self.excluded_count() >= EXCLUDED_COUNT_MAX;
        match self.upper.confirmed {
            Some((_, limit)) => limit,
            None if is_highest => Limit::Nothing,
            None if is_out || self.bracket.beyond_rps().is_some() => Limit::Generator,
            None => Limit::Unknown,
        }
    }

    /// What to do once the bracket is as narrow as it can be.
    fn settle(&mut self) -> Stage {
        let confirmed_rps = self.lower.rate_rps().unwrap_or(0.0);
        match self.bracket.held() {
            Some((rate_rps, _)) if rate_rps > confirmed_rps && !self.lower.is_closed => {
                self.sample_lower(rate_rps)
            }
            Some(_) | None => self.settle_upper(),
        }
    }

    fn settle_upper(&mut self) -> Stage {
        match self.bracket.failed_rps() {
            Some(rate_rps) if self.upper.confirmed.is_none() && !self.upper.is_closed => {
                self.sample_upper(rate_rps)
            }
            Some(_) | None => Stage::Over,
        }
    }

    /// A sample at the lower end, if there may be one more.
    fn sample_lower(&mut self, rate_rps: f64) -> Stage {
        let confirmed_rps = self.lower.rate_rps().unwrap_or(0.0);
        if rate_rps < RATE_MIN_RPS || rate_rps <= confirmed_rps || self.lower.left() == 0 {
            self.lower.is_closed = true;
            return self.settle_upper();
        }
        let collection = Collection::new(self.settings, rate_rps, self.lower.sample_count);
        self.lower.sample_count += 1;
        Stage::Lower(collection)
    }

    /// A sample at the upper end, if there may be one more.
    fn sample_upper(&mut self, rate_rps: f64) -> Stage {
        let is_beyond = self.bracket.beyond_rps().is_some_and(|beyond| rate_rps >= beyond);
        if is_beyond || rate_rps > self.settings.rate_max_rps || self.upper.left() == 0 {
            self.upper.is_closed = true;
            return Stage::Over;
        }
        let collection = Collection::new(self.settings, rate_rps, self.upper.sample_count);
        self.upper.sample_count += 1;
        Stage::Upper(collection)
    }

    fn end_lower(&mut self, collection: Collection) -> Stage {
        let rate_rps = collection.rate_rps();
        let of_bracket = self.bracket.held().filter(|&(held_rps, _)| held_rps == rate_rps);
        let closed = collection.close(of_bracket.map(|(_, trial)| trial));
        self.samples.push(closed.sample);
        match closed.sample.finding {
            Finding::Holds => {
                self.confirm_lower(&closed);
                self.settle_upper()
            }
            // Nothing speaks against the rate, and a lower one would be no answer.
            Finding::Undecided if closed.is_only_short(self.settings.tolerated()) => {
                self.lower.is_closed = true;
                self.bracket.beyond(rate_rps);
                Stage::Over
            }
            Finding::Exceeds => {
                self.upper.confirmed = Some((closed.sample, closed.limit));
                self.sample_lower(rate_rps * (1.0 - self.outwards(self.lower)))
            }
            Finding::Undecided => self.sample_lower(rate_rps * (1.0 - self.outwards(self.lower))),
        }
    }

    fn end_upper(&mut self, collection: Collection) -> Stage {
        let rate_rps = collection.rate_rps();
        let closed = collection.close(None);
        self.samples.push(closed.sample);
        match (closed.sample.finding, closed.last) {
            (Finding::Exceeds, _) => {
                self.upper.confirmed = Some((closed.sample, closed.limit));
                Stage::Over
            }
            // The bracket was wrong: the limit is further up.
            (Finding::Holds, Some(last)) => {
                self.confirm_lower(&closed);
                self.bracket.reopen(rate_rps, last);
                match self.bracket.next_rps() {
                    Some(_) => Stage::Bracketing,
                    None => self.settle(),
                }
            }
            (Finding::Undecided, _) if closed.is_short => {
                self.upper.is_closed = true;
                self.bracket.beyond(rate_rps);
                Stage::Over
            }
            (Finding::Undecided | Finding::Holds, _) => {
                let further_rps = rate_rps / (1.0 - self.outwards(self.upper));
                let most_rps = self.settings.rate_max_rps;
                self.sample_upper(if rate_rps < most_rps { further_rps.min(most_rps) } else { further_rps })
            }
        }
    }

    fn confirm_lower(&mut self, closed: &Closed) {
        self.lower.confirmed = Some((closed.sample, closed.limit));
    }

    /// The share of its rate by which an end moves that is not confirmed: it doubles with each sample.
    fn outwards(&self, end: End) -> f64 {
        let times = f64::from(1_u32 << end.sample_count.min(30));
        (self.settings.resolution * times).min(0.5)
    }
}

/// Where the search is: between which rates, and which end is being tried.
impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.found();
        let (lower, upper) = (found.at_least_rps(), found.below_rps());
        match (lower, found.held_rps) {
            (Some(lower), _) => write!(f, "at least {}/s, ", rate(lower))?,
            (None, Some(held)) => write!(f, "{}/s held, ", rate(held))?,
            (None, None) => f.write_str("no rate has held yet, ")?,
        }
        match (upper, found.failed_rps, found.beyond_rps) {
            (Some(upper), ..) => write!(f, "below {}/s", rate(upper))?,
            (None, Some(failed), _) => write!(f, "{}/s did not", rate(failed))?,
            (None, None, Some(beyond)) => write!(f, "{}/s was too much for the generator", rate(beyond))?,
            (None, None, None) => f.write_str("no rate has failed yet")?,
        }
        let (end, collection) = match &self.stage {
            Stage::Lower(collection) => ("lower", collection),
            Stage::Upper(collection) => ("upper", collection),
            Stage::Bracketing | Stage::Over => return Ok(()),
        };
        let count = collection.trial_count();
        write!(f, "; {end} end, {} of {count}", count - collection.left() + 1)
    }
}
