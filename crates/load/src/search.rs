//! The highest rate at which a server holds: bisection over trials that a caller makes. Pure; it sends nothing.
//!
//! A trial holds if at most a set share of its requests goes unanswered. The search doubles the rate until one does not
//! hold, halves the bracket until its ends differ by little, and then repeats the highest rate that held. On a shared
//! machine one bad trial proves nothing: a rate does not hold once two of its trials failed, and it is the generator's
//! limit once three of them were invalid. The losses of all valid trials at the reported rate give an interval for the
//! true loss (Wilson score, 95 percent).

/// What a trial showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Requests sent.
    pub sent: u64,
    /// Requests that were not answered, or answered wrongly.
    pub failed: u64,
    /// Whether the generator did its part.
    pub valid: bool,
}

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The first rate, requests a second.
    pub start_rps: f64,
    /// No rate above this one is tried.
    pub rate_max_rps: f64,
    /// The share of requests that may go unanswered.
    pub loss_max: f64,
    /// The bracket is narrow enough when its ends differ by this share of the upper one.
    pub resolution: f64,
    /// Trials at the rate that is reported.
    pub trial_count: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { start_rps: 1000.0, rate_max_rps: 10e6, loss_max: 0.01, resolution: 0.03, trial_count: 3 }
    }
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    /// The highest rate that holds so far.
    lower: Option<Trials>,
    /// The lowest rate that does not; whether the generator was at fault.
    upper: Option<(f64, bool)>,
    /// The rate being tried.
    current: Trials,
    /// How many trials must hold before a rate counts as holding: one, until a rate that counted failed after all.
    needed_count: u32,
    /// Trials so far.
    trial_count: u32,
    /// There is no rate left to try.
    is_over: bool,
}

/// The trials of one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trials {
    rate_rps: f64,
    held_count: u32,
    failed_count: u32,
    invalid_count: u32,
    /// Requests of valid trials, and those of them that failed.
    sent: u64,
    failed: u64,
}

impl Trials {
    const fn at(rate_rps: f64) -> Self {
        Trials { rate_rps, held_count: 0, failed_count: 0, invalid_count: 0, sent: 0, failed: 0 }
    }
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The highest rate that held as often as was wanted, and failed at most once; `None` if none did.
    pub lower_rps: Option<f64>,
    /// The lowest rate that did not; `None` if every one up to the highest allowed did.
    pub upper_rps: Option<f64>,
    /// Whether it was the generator that did not hold there.
    pub generator_limited: bool,
    /// Valid trials at the lower rate.
    pub trial_count: u32,
    /// How many of them held. Fewer than were wanted: the search was given up.
    pub held_count: u32,
    /// The interval that holds the true loss at the lower rate with 95 percent confidence.
    pub loss: (f64, f64),
}

/// The lowest rate that is tried.
const RATE_MIN_RPS: f64 = 1.0;
/// A rate does not hold once so many of its trials failed.
const FAILED_COUNT: u32 = 2;
/// It is beyond the generator once so many of its trials were invalid.
const INVALID_COUNT: u32 = 3;

/// Trials of a whole search. If a server holds any rate now and then, the search would never end.
const TRIAL_COUNT_MAX: u32 = 150;

/// The share of the normal distribution that the interval covers, and its quantile.
pub const CONFIDENCE: f64 = 0.95;
const QUANTILE: f64 = 1.959_964;

impl Search {
    /// A search that has not tried anything.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let first_rps = settings.start_rps.clamp(RATE_MIN_RPS, settings.rate_max_rps.max(RATE_MIN_RPS));
        Search {
            settings,
            lower: None,
            upper: None,
            current: Trials::at(first_rps),
            needed_count: 1,
            trial_count: 0,
            is_over: false,
        }
    }

    /// The rate to try next; `None` if the search is over.
    #[must_use]
    pub fn next_rps(&self) -> Option<f64> {
        (!self.is_over && self.trial_count < TRIAL_COUNT_MAX).then_some(self.current.rate_rps)
    }

    /// Adds the result of the trial at [`Search::next_rps`].
    pub fn take(&mut self, trial: Trial) {
        self.trial_count += 1;
        let current = &mut self.current;
        if trial.valid {
            current.sent += trial.sent;
            current.failed += trial.failed;
        }
        let within = trial.sent > 0 && trial.failed as f64 <= self.settings.loss_max * trial.sent as f64;
        match (trial.valid, within) {
            (true, true) => current.held_count += 1,
            (true, false) => current.failed_count += 1,
            (false, _) => current.invalid_count += 1,
        }
        let (failed, invalid) =
            (current.failed_count >= FAILED_COUNT, current.invalid_count >= INVALID_COUNT);
        if failed || invalid {
            self.upper = Some((current.rate_rps, !failed));
            // A rate that held once and fails now does not hold. No lower rate may be known then: the search continues
            // below.
            if self.lower.is_some_and(|lower| lower.rate_rps >= self.current.rate_rps) {
                self.lower = None;
                self.needed_count = self.settings.trial_count;
            }
        } else if current.held_count >= self.needed_count {
            self.lower = Some(*current);
        } else {
            // Not decided: the same rate again.
            return;
        }
        match (self.choose(), self.lower) {
            (None, _) => self.is_over = true,
            (Some(next_rps), Some(lower)) if lower.rate_rps == next_rps => self.current = lower,
            (Some(next_rps), _) => self.current = Trials::at(next_rps),
        }
    }

    /// What was found so far.
    #[must_use]
    pub fn found(&self) -> Found {
        let lower = self.lower.unwrap_or(Trials::at(0.0));
        Found {
            lower_rps: self.lower.map(|lower| lower.rate_rps),
            upper_rps: self.upper.map(|(rate_rps, _)| rate_rps),
            generator_limited: self.upper.is_some_and(|(_, generator)| generator),
            trial_count: lower.held_count + lower.failed_count,
            held_count: lower.held_count,
            loss: wilson(lower.failed, lower.sent),
        }
    }

    /// The rate to try after one that is decided; `None` if there is none left.
    fn choose(&self) -> Option<f64> {
        let Settings { rate_max_rps, resolution, trial_count, .. } = self.settings;
        match (self.lower, self.upper) {
            (Some(lower), None) => {
                let is_over = lower.rate_rps >= rate_max_rps && lower.held_count >= trial_count;
                (!is_over).then_some((lower.rate_rps * 2.0).min(rate_max_rps))
            }
            (None, Some((upper_rps, _))) => {
                (upper_rps > RATE_MIN_RPS).then_some((upper_rps * 0.75).max(RATE_MIN_RPS))
            }
            (Some(lower), Some((upper_rps, _))) => {
                let is_narrow = upper_rps - lower.rate_rps <= resolution * upper_rps;
                let wanted_rps =
                    if is_narrow { lower.rate_rps } else { f64::midpoint(lower.rate_rps, upper_rps) };
                (!is_narrow || lower.held_count < trial_count).then_some(wanted_rps)
            }
            (None, None) => Some(self.current.rate_rps),
        }
    }
}

/// The Wilson score interval for the true share, given `failed` of `sent`.
fn wilson(failed: u64, sent: u64) -> (f64, f64) {
    if sent == 0 {
        return (0.0, 1.0);
    }
    let (count, share) = (sent as f64, failed as f64 / sent as f64);
    let square = QUANTILE * QUANTILE;
    let centre = (share + square / (2.0 * count)) / (1.0 + square / count);
    let half = QUANTILE * (share * (1.0 - share) / count + square / (4.0 * count * count)).sqrt()
        / (1.0 + square / count);
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A server that answers this many requests a second and drops the rest.
    fn run(settings: Settings, mut server: impl FnMut(f64) -> Trial) -> (Found, usize) {
        let mut search = Search::new(settings);
        let mut count = 0;
        while let Some(rate_rps) = search.next_rps() {
            assert!(count < 200, "the search goes on for ever");
            search.take(server(rate_rps));
            count += 1;
        }
        (search.found(), count)
    }

    fn capacity(limit_rps: f64) -> impl FnMut(f64) -> Trial {
        move |rate_rps| {
            let sent = rate_rps as u64;
            Trial { sent, failed: (rate_rps - limit_rps).max(0.0) as u64, valid: true }
        }
    }

    #[test]
    fn wilson_interval_agrees_with_the_textbook() {
        // 10 of 100: 0.0552 to 0.1744 (Newcombe, "Two-sided confidence intervals", method 3).
        let (low, high) = wilson(10, 100);
        assert!((low - 0.0552).abs() < 1e-4 && (high - 0.1744).abs() < 1e-4, "{low} {high}");
        assert_eq!(wilson(0, 0), (0.0, 1.0));
        assert!(wilson(0, 10_000).1 < 0.0004);
    }

    #[test]
    fn rate_that_fails_half_of_the_time_is_not_reported() {
        let mut calls = 0;
        let (found, _) = run(Settings::default(), |rate_rps| {
            calls += 1;
            let flaky = rate_rps > 20_000.0 && calls % 2 == 0;
            let failed = if flaky || rate_rps > 40_000.0 { rate_rps as u64 / 2 } else { 0 };
            Trial { sent: rate_rps as u64, failed, valid: true }
        });
        assert!(found.lower_rps.is_some_and(|rate| rate <= 20_500.0), "{found:?}");
        assert_eq!((found.held_count, found.trial_count), (3, 3));
    }

    #[test]
    fn single_bad_trials_are_repeated_and_counted_into_the_loss() {
        let mut calls = 0;
        let mut limited = capacity(50_000.0);
        let (found, _) = run(Settings::default(), |rate_rps| {
            calls += 1;
            let trial = limited(rate_rps);
            match calls % 5 {
                0 => Trial { valid: false, ..trial },
                2 => Trial { failed: trial.sent / 10, ..trial },
                _ => trial,
            }
        });
        assert!(found.lower_rps.is_some_and(|rate| (47_000.0..51_000.0).contains(&rate)), "{found:?}");
        assert!(!found.generator_limited);
    }

    #[test]
    fn generator_that_falls_behind_is_named() {
        let (found, _) = run(Settings::default(), |rate_rps| Trial {
            sent: rate_rps as u64,
            failed: 0,
            valid: rate_rps < 64_000.0,
        });
        assert!(found.generator_limited);
        assert!(found.lower_rps.is_some_and(|rate| (60_000.0..64_000.0).contains(&rate)), "{found:?}");
    }

    #[test]
    fn dead_server_ends_the_search_without_a_rate() {
        let (found, _) = run(Settings::default(), |_| Trial { sent: 10, failed: 10, valid: true });
        assert_eq!(found.lower_rps, None);
    }

    #[test]
    fn limit_of_the_user_is_never_passed() {
        let settings = Settings { rate_max_rps: 5000.0, ..Settings::default() };
        let mut most = 0.0f64;
        let (found, _) = run(settings, |rate_rps| {
            most = most.max(rate_rps);
            Trial { sent: rate_rps as u64, failed: 0, valid: true }
        });
        assert_eq!((found.lower_rps, found.upper_rps, most), (Some(5000.0), None, 5000.0));
    }

    proptest! {
        #[test]
        fn sharp_limit_is_found_within_the_resolution(limit in 20.0f64..3e6) {
            let (found, count) = run(Settings::default(), capacity(limit));
            let lower = found.lower_rps.unwrap();
            // One percent may be lost, and the bracket is three percent wide.
            prop_assert!(lower <= limit * 1.02 + 2.0 && lower >= limit * 0.95 - 2.0, "{lower} {limit}");
            prop_assert!(count < 60, "{count}");
        }
    }
}
