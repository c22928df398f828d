//! The interval in which a server's capacity lies: a search over trials that a caller makes. Pure; it sends nothing.
//!
//! The capacity is the rate at which the long-run loss crosses the tolerated one. The search has three parts:
//!
//! - A *closed loop*: what the server answers when it always has work. This throughput is a result of its own, and the
//!   others begin near it.
//! - A *bracket* of single trials of an open loop: rates rise, or fall, until one holds and one does not, then the
//!   bracket becomes narrow. It only chooses the rates at which the third part looks, as the best of several single
//!   trials is always lucky.
//! - Fresh *samples* of [`Settings::trial_count`] trials decide: one at the lower end, which must show that the loss is
//!   at most the tolerated one, and one at the upper end, which must show that it is above. The unit is the trial, by
//!   Student's t, as losses within one come in bursts; the exact binomial test has to agree, which sets the smallest
//!   sample: with 1 % tolerated, 437 requests without a loss. An end that is not confirmed moves outwards, in steps
//!   that double, and is tried again with fresh trials, and more of them. Each sample is another chance to be wrong,
//!   so they share the probability of that: all of them together mislead in one search of twenty, at most.
//!
//! A trial leaves out what falls due while a sending thread stands still ([`Order::cuts_stalls`]), so its rate is not
//! the nominal one. The lower end is what was answered a second of wall clock, stalls included: a server that has done
//! this can do it. The upper end is the nominal rate, as losses come only from times when the generator sent it. So
//! stalls of the generator make the interval wider, and move neither end past the truth.
//!
//! What the tests assume: trials of one rate are alike and independent, and the means of their losses are not far
//! from normal. An event rarer than one trial in some tens is not seen.
//!
//! A trial whose host lost what was sent, or whose clock was set, is no evidence in either direction; one of which more
//! than half was left out is none against its rate. It is repeated, and counted. A rate that cannot be tried validly is
//! beyond the generator; the search then looks below it, and there is no upper end.
//!
//! A search ends within [`Settings::budget`], of which a third is kept for the samples.
//!
//! [`Order::cuts_stalls`]: crate::plan::Order::cuts_stalls

mod bracket;
mod closed;
mod sample;
mod statistics;
#[cfg(test)]
mod tests;
mod trial;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use authentick_report::load::{Exclusion, Finding, Limit, Sample, Throughput};
use authentick_report::units::rate;

pub use self::closed::{ClosedTrial, Windows};
pub use self::trial::Trial;
use crate::plan::Order;
use bracket::Bracket;
use closed::ClosedLoop;
use sample::{Closed, Collection, Earlier};

/// With this probability what is said of both ends of the interval is right.
pub const CONFIDENCE: f64 = 0.95;

/// The lowest rate that is tried.
const RATE_MIN_RPS: f64 = 1.0;
/// The smallest share that can be tolerated: no sample of a bounded size shows that nothing is ever lost.
const LOSS_MIN: f64 = 1e-4;
/// Samples at one end of the interval.
const SAMPLE_COUNT_MAX: u32 = 4;
/// The share of the budget after which the bracket is taken as it is.
const BRACKET_SHARE: f64 = 2.0 / 3.0;
/// The first open trial, as a share of the throughput.
const FIRST_SHARE: f64 = 0.95;
/// The longest pause before a trial is repeated that the host spoilt.
const PAUSE_MAX: Duration = Duration::from_secs(1);

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
    /// How long the search may take.
    pub budget: Duration,
    /// The windows of the closed loop with which it begins; `None`: it has none, and begins at `start_rps`.
    pub windows: Option<Windows>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            start_rps: 1000.0,
            rate_max_rps: 10e6,
            loss_max: 0.01,
            resolution: 0.03,
            trial_count: 5,
            budget: Duration::from_secs(60),
            windows: None,
        }
    }
}

impl Settings {
    /// The share of requests that may go unanswered, as it is tested.
    #[must_use]
    pub const fn tolerated(&self) -> f64 {
        if self.loss_max > LOSS_MIN { self.loss_max } else { LOSS_MIN }
    }

    fn first_rps(&self) -> f64 {
        self.start_rps.clamp(RATE_MIN_RPS, self.rate_max_rps.max(RATE_MIN_RPS))
    }

    /// The trials of a sample at one end, if there were `earlier` ones.
    const fn sample_trial_count(&self, earlier: u32) -> u32 {
        if earlier == 0 { self.trial_count } else { self.trial_count + self.trial_count.div_ceil(2) }
    }

    /// The most trials of one sample that may be excluded.
    const fn sample_excluded_count_max(&self) -> u32 {
        2 * self.trial_count
    }

    const fn pause_max(&self, trial: Duration) -> Duration {
        if trial.as_nanos() < PAUSE_MAX.as_nanos() { trial } else { PAUSE_MAX }
    }
}

/// What to offer next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offer {
    /// A closed loop, for so long.
    Closed {
        /// Operations that each worker keeps in flight.
        window: u32,
        /// How long it runs.
        duration: Duration,
    },
    /// An open loop of so many requests a second, which leaves out what falls due in stalls.
    Open {
        /// Requests a second.
        rate_rps: f64,
    },
}

impl Offer {
    /// The order of a step; `own` has what does not depend on the search.
    #[must_use]
    pub fn order(self, own: Order) -> Order {
        match self {
            Offer::Closed { window, duration } => {
                Order { window: Some(window), duration, warm_up: Duration::ZERO, ..own }
            }
            Offer::Open { rate_rps } => Order { rate_rps: Some(rate_rps), cuts_stalls: true, ..own },
        }
    }
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
    /// How long it has taken so far.
    spent: Duration,
    throughput: Option<Throughput>,
    /// The host, and not the load, was the reason why the search got no further.
    is_host_busy: bool,
}

/// What a search is doing.
#[derive(Clone, Debug)]
enum Stage {
    /// It measures what a closed loop answers.
    Closed(ClosedLoop),
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
#[derive(Clone, Debug, Default)]
struct End {
    /// The sample that confirmed it, and what limited its trials.
    confirmed: Option<(Sample, Limit)>,
    /// Samples that were taken.
    sample_count: u32,
    /// Their trials.
    earlier: Earlier,
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
    /// What the closed loop answered; `None` without one, and if nothing was answered.
    pub throughput: Option<Throughput>,
    /// The sample whose loss is at most the tolerated one, at the highest rate.
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
    /// About so much is lost at every rate that was tried, a share above the tolerated one.
    pub steady_loss: Option<f64>,
}

impl Found {
    /// The lower end of the interval: what the server has answered.
    #[must_use]
    pub fn at_least_rps(&self) -> Option<f64> {
        self.at_least.map(|sample| sample.sustained_rps.unwrap_or(sample.rate_rps))
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
            stage: settings
                .windows
                .map_or(Stage::Bracketing, |windows| Stage::Closed(ClosedLoop::new(windows))),
            bracket: Bracket::new(settings, settings.first_rps(), false),
            lower: End::default(),
            upper: End::default(),
            samples: Vec::new(),
            excluded: BTreeMap::new(),
            spoilt_count: 0,
            spent: Duration::ZERO,
            throughput: None,
            is_host_busy: false,
        }
    }

    /// What to offer next; `None` if the search is over.
    #[must_use]
    pub fn next(&self) -> Option<Offer> {
        let rate_rps = match &self.stage {
            Stage::Closed(closed) => {
                let (window, duration) = closed.next();
                return Some(Offer::Closed { window, duration });
            }
            Stage::Bracketing => self.bracket.next_rps(),
            Stage::Lower(collection) | Stage::Upper(collection) => Some(collection.rate_rps()),
            Stage::Over => None,
        };
        rate_rps.map(|rate_rps| Offer::Open { rate_rps })
    }

    /// The rate to offer next; `None` in the closed loop, and if the search is over.
    #[must_use]
    pub fn next_rps(&self) -> Option<f64> {
        match self.next()? {
            Offer::Open { rate_rps } => Some(rate_rps),
            Offer::Closed { .. } => None,
        }
    }

    /// Whether it has ended.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// How long to wait before the next trial, which takes `trial`: longer for each one in turn that the host spoilt.
    #[must_use]
    pub fn pause(&self, trial: Duration) -> Duration {
        trial.saturating_mul(self.spoilt_count).min(self.settings.pause_max(trial))
    }

    /// The longest time until the end, but for the trial that is under way then.
    #[must_use]
    pub fn left_max(&self) -> Duration {
        match self.is_over() {
            true => Duration::ZERO,
            false => self.settings.budget.saturating_sub(self.spent),
        }
    }

    /// Adds the result of a closed loop of [`Search::next`], which took so long with all that belongs to it.
    pub fn take_closed(&mut self, trial: ClosedTrial, took: Duration) {
        self.spent += took;
        let Stage::Closed(closed) = &mut self.stage else { return };
        let goes_on = closed.take(trial, took);
        self.throughput = closed.throughput();
        if !goes_on {
            let first_rps = self.throughput.map_or(self.settings.first_rps(), |found| {
                (found.rate_rps * FIRST_SHARE).clamp(RATE_MIN_RPS, self.settings.rate_max_rps)
            });
            self.bracket = Bracket::new(self.settings, first_rps, self.throughput.is_some());
            self.stage = Stage::Bracketing;
        }
    }

    /// Adds the result of the open trial at [`Search::next_rps`], which took so long with all that belongs to it.
    pub fn take(&mut self, trial: Trial, took: Duration) {
        let trial = trial.judged(self.settings.tolerated());
        self.spent += took;
        self.spoilt_count = match trial.excluded {
            Some(why) if why.is_of_host() => self.spoilt_count + 1,
            Some(_) | None => 0,
        };
        if let Some(why) = trial.excluded {
            *self.excluded.entry(why).or_default() += 1;
        }
        let is_over = self.spent >= self.settings.budget;
        let is_bracket_over = self.spent >= self.settings.budget.mul_f64(BRACKET_SHARE);
        self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Bracketing => {
                self.bracket.take(trial);
                match self.bracket.next_rps() {
                    Some(_) if !is_bracket_over => Stage::Bracketing,
                    Some(_) | None => self.settle(),
                }
            }
            Stage::Lower(mut collection) => {
                collection.take(trial);
                match collection.is_over() || is_over {
                    true => self.end_lower(collection),
                    false => Stage::Lower(collection),
                }
            }
            Stage::Upper(mut collection) => {
                collection.take(trial);
                match collection.is_over() || is_over {
                    true => self.end_upper(collection),
                    false => Stage::Upper(collection),
                }
            }
            stage @ (Stage::Closed(_) | Stage::Over) => stage,
        };
        if is_over {
            self.stage = Stage::Over;
        }
        if self.is_over() {
            // Most of what was excluded is why the search got no further.
            let of_host: u32 =
                self.excluded.iter().filter(|(why, _)| why.is_of_host()).map(|(_, count)| count).sum();
            self.is_host_busy = of_host * 2 > self.excluded_count();
        }
    }

    /// What was found so far.
    #[must_use]
    pub fn found(&self) -> Found {
        Found {
            throughput: self.throughput,
            at_least: self.lower.confirmed.map(|(sample, _)| sample),
            below: self.upper.confirmed.map(|(sample, _)| sample),
            limited_by: self.limited_by(),
            held_rps: self.bracket.held().map(|(rate_rps, _)| rate_rps),
            failed_rps: self.bracket.failed_rps(),
            beyond_rps: self.bracket.beyond_rps(),
            samples: self.samples.clone(),
            excluded: self.excluded.clone(),
            is_host_busy: self.is_host_busy,
            steady_loss: self.bracket.steady_loss(),
        }
    }

    fn excluded_count(&self) -> u32 {
        self.excluded.values().sum()
    }

    fn limited_by(&self) -> Limit {
        let is_highest = self.lower.rate_rps().is_some_and(|rate| rate >= self.settings.rate_max_rps);
        match self.upper.confirmed {
            Some((_, limit)) => limit,
            None if is_highest => Limit::Nothing,
            None if self.bracket.beyond_rps().is_some() => Limit::Generator,
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
        let prior = self.lower.earlier.at_or_above(rate_rps);
        let collection = Collection::new(self.settings, rate_rps, self.lower.sample_count, prior);
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
        let prior = self.upper.earlier.at_or_below(rate_rps);
        let collection = Collection::new(self.settings, rate_rps, self.upper.sample_count, prior);
        self.upper.sample_count += 1;
        Stage::Upper(collection)
    }

    fn end_lower(&mut self, collection: Collection) -> Stage {
        let rate_rps = collection.rate_rps();
        let of_bracket = self.bracket.held().filter(|&(held_rps, _)| held_rps == rate_rps);
        self.lower.earlier.add(rate_rps, collection.trials());
        let closed = collection.close(true, of_bracket.map(|(_, trial)| trial));
        self.samples.push(closed.sample);
        match closed.sample.finding {
            Finding::Holds => {
                self.confirm_lower(&closed);
                self.settle_upper()
            }
            // Too few trials were valid there.
            Finding::Undecided if closed.is_only_short(self.settings.tolerated()) => {
                self.bracket.beyond(rate_rps);
                self.sample_lower(rate_rps / 2.0)
            }
            Finding::Exceeds => {
                self.upper.confirmed = Some((closed.sample, closed.limit));
                self.sample_lower(rate_rps * (1.0 - self.outwards(&self.lower)))
            }
            Finding::Undecided => self.sample_lower(rate_rps * (1.0 - self.outwards(&self.lower))),
        }
    }

    fn end_upper(&mut self, collection: Collection) -> Stage {
        let rate_rps = collection.rate_rps();
        self.upper.earlier.add(rate_rps, collection.trials());
        let closed = collection.close(false, None);
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
                let further_rps = rate_rps / (1.0 - self.outwards(&self.upper));
                let most_rps = self.settings.rate_max_rps;
                self.sample_upper(if rate_rps < most_rps { further_rps.min(most_rps) } else { further_rps })
            }
        }
    }

    fn confirm_lower(&mut self, closed: &Closed) {
        self.lower.confirmed = Some((closed.sample, closed.limit));
    }

    /// The share of its rate by which an end moves that is not confirmed: half as much again as the bracket is wide,
    /// and twice as much with each further sample.
    fn outwards(&self, end: &End) -> f64 {
        let times = f64::from(1_u32 << end.sample_count.saturating_sub(1).min(30));
        (self.settings.resolution * 1.5 * times).min(0.5)
    }
}

/// Where the search is: between which rates, and which end is being tried.
impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Stage::Closed(closed) = &self.stage {
            return match closed.throughput() {
                Some(best) => write!(f, "closed loop, {} in flight: {}/s", best.window, rate(best.rate_rps)),
                None => f.write_str("closed loop"),
            };
        }
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
            Stage::Closed(_) | Stage::Bracketing | Stage::Over => return Ok(()),
        };
        let count = collection.trial_count();
        write!(f, "; {end} end, {} of {count}", count - collection.left() + 1)
    }
}
