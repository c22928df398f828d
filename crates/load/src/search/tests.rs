//! The search against servers that are exact, flaky, silent or faster than the generator.

use authentick_report::load::{Exclusion, Finding, Limit};
use proptest::prelude::*;

use super::*;

const SECONDS: f64 = 5.0;
/// How long a trial takes, by the budget.
const TOOK: Duration = Duration::from_millis(500);

/// Searches to the end; every trial that was made, with its rate.
fn run(settings: Settings, mut server: impl FnMut(f64) -> Trial) -> (Found, Vec<(f64, Trial)>) {
    let mut search = Search::new(settings);
    let mut trials = Vec::new();
    while let Some(rate_rps) = search.next_rps() {
        assert!(
            rate_rps <= settings.rate_max_rps.max(RATE_MIN_RPS) && rate_rps >= RATE_MIN_RPS,
            "{rate_rps}"
        );
        let trial = server(rate_rps);
        search.take(trial, TOOK);
        trials.push((rate_rps, trial));
        assert!(
            search.left_max() <= settings.budget.saturating_sub(TOOK * trials.len() as u32),
            "{:?}",
            search.left_max()
        );
    }
    (search.found(), trials)
}

/// A server that answers so many requests a second and drops the rest.
fn capacity(limit_rps: f64) -> impl FnMut(f64) -> Trial {
    move |rate_rps| {
        let lost = (rate_rps - limit_rps).max(0.0) * SECONDS;
        Trial { limit: Limit::Server, ..Trial::new((rate_rps * SECONDS) as u64, lost as u64) }
    }
}

fn spoilt(why: Exclusion) -> Trial {
    Trial { excluded: Some(why), ..Trial::new(1000, 900) }
}

fn highest_held(trials: &[(f64, Trial)]) -> f64 {
    let held = trials.iter().filter(|(_, trial)| trial.excluded.is_none() && trial.held(0.01));
    held.map(|(rate_rps, _)| *rate_rps).fold(0.0, f64::max)
}

#[test]
fn both_ends_rest_on_fresh_trials() {
    let (found, trials) = run(Settings::default(), capacity(250_000.0));
    let (lower, upper) = (found.at_least.unwrap(), found.below.unwrap());
    assert_eq!((lower.trial_count, lower.held_count, lower.finding), (5, 5, Finding::Holds));
    assert_eq!((upper.trial_count, upper.held_count, upper.finding), (5, 0, Finding::Exceeds));
    assert_eq!(found.samples, [lower, upper]);
    assert_eq!(found.limited_by, Limit::Server);
    for sample in found.samples {
        let there: Vec<&Trial> = trials
            .iter()
            .filter(|(rate_rps, _)| *rate_rps == sample.rate_rps)
            .map(|(_, trial)| trial)
            .collect();
        let fresh = &there[there.len() - 5..];
        assert!(there.len() > 5, "the trial that chose the rate is not among those that confirm it");
        assert_eq!(sample.sent, fresh.iter().map(|trial| trial.sent).sum::<u64>());
    }
    assert!(trials.len() <= 24, "{}", trials.len());
}

#[test]
fn generator_that_ends_first_is_named_and_no_rate_is_below() {
    let (found, trials) = run(Settings::default(), |rate_rps| match rate_rps < 270_000.0 {
        true => Trial::new((rate_rps * SECONDS) as u64, 0),
        false => spoilt(Exclusion::Overload),
    });
    assert_eq!((found.limited_by, found.below), (Limit::Generator, None));
    assert!(found.at_least_rps().unwrap() >= 256_000.0 && !found.is_host_busy, "{found:?}");
    assert!(found.at_least_rps().unwrap() >= highest_held(&trials));
}

#[test]
fn rate_that_held_is_never_given_up_for_trials_that_were_spoilt() {
    // Quiet until 256,000/s was tried once, then never again.
    let mut quiet = true;
    let (found, _) = run(Settings::default(), |rate_rps| {
        if !quiet {
            return spoilt(Exclusion::Preempted);
        }
        quiet = rate_rps < 256_000.0;
        Trial::new((rate_rps * SECONDS) as u64, 0)
    });
    assert_eq!(found.held_rps, Some(256_000.0));
    assert!(found.at_least.is_none() && found.is_host_busy, "one trial confirms nothing: {found:?}");
    assert_eq!(found.limited_by, Limit::Generator);
}

#[test]
fn search_without_a_valid_trial_ends_without_a_number() {
    for (why, busy) in [(Exclusion::Preempted, true), (Exclusion::Overload, false)] {
        let (found, trials) = run(Settings::default(), |_| spoilt(why));
        assert_eq!((found.at_least, found.below, found.held_rps), (None, None, None));
        assert_eq!((found.limited_by, found.is_host_busy), (Limit::Generator, busy));
        assert!(trials.is_sorted_by(|(before, _), (after, _)| before >= after), "it goes down: {trials:?}");
        assert_eq!(found.excluded, BTreeMap::from([(why, trials.len() as u32)]));
    }
}

#[test]
fn spoilt_trials_are_repeated_after_a_pause_and_change_nothing() {
    let (expected, _) = run(Settings::default(), capacity(50_000.0));
    let (mut calls, mut server) = (0, capacity(50_000.0));
    let (found, _) = run(Settings::default(), |rate_rps| {
        calls += 1;
        if calls % 3 == 0 { spoilt(Exclusion::Steal) } else { server(rate_rps) }
    });
    assert_eq!((found.at_least, found.below), (expected.at_least, expected.below));
    assert_eq!(found.excluded.keys().copied().collect::<Vec<_>>(), [Exclusion::Steal]);

    let mut search = Search::new(Settings::default());
    let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
    assert_eq!(search.pause(second), Duration::ZERO);
    search.take(spoilt(Exclusion::Steal), second);
    search.take(spoilt(Exclusion::Stall), second);
    assert_eq!((search.pause(second), search.pause(hour)), (second, PAUSE_MAX));
    search.take(spoilt(Exclusion::Overload), second);
    assert_eq!(search.pause(hour), Duration::ZERO, "a pause does not help the generator");
}

#[test]
fn failures_by_mischance_on_the_way_up_are_found_out() {
    let (mut calls, mut server) = (0, capacity(250_000.0));
    let (found, trials) = run(Settings::default(), |rate_rps| {
        calls += 1;
        let trial = server(rate_rps);
        // Both trials at 4,000/s.
        if calls == 3 || calls == 4 { Trial { failed: trial.sent / 5, ..trial } } else { trial }
    });
    assert_eq!(trials[2].0, 4000.0);
    let (lower, upper) = (found.at_least_rps().unwrap(), found.below_rps().unwrap());
    assert!((240_000.0..252_600.0).contains(&lower) && (252_500.0..263_000.0).contains(&upper), "{found:?}");
}

#[test]
fn rate_that_fails_half_of_the_time_is_not_reported_as_holding() {
    let mut calls = 0;
    let (found, _) = run(Settings::default(), |rate_rps| {
        calls += 1;
        let flaky = rate_rps > 20_000.0 && calls % 2 == 0;
        let sent = (rate_rps * SECONDS) as u64;
        Trial::new(sent, if flaky || rate_rps > 40_000.0 { sent / 2 } else { 0 })
    });
    assert!(found.at_least_rps().is_some_and(|rate| rate <= 20_000.0), "{found:?}");
    assert!(found.below_rps().is_none_or(|rate| rate > 20_000.0), "{found:?}");
}

#[test]
fn too_few_requests_confirm_nothing() {
    // All samples together have 290 requests: without a loss they are no sign of one below one percent.
    let settings = Settings { rate_max_rps: 1000.0, ..Settings::default() };
    let (found, _) = run(settings, |_| Trial::new(10, 0));
    assert_eq!((found.at_least, found.held_rps), (None, Some(1000.0)));
    let (found, _) = run(settings, |_| Trial::new(88, 0));
    assert_eq!((found.at_least_rps(), found.limited_by), (Some(1000.0), Limit::Nothing));
}

#[test]
fn dead_server_ends_the_search_without_a_rate() {
    let (found, trials) = run(Settings::default(), |_| Trial::new(10, 10));
    assert_eq!((found.at_least, found.below_rps()), (None, Some(RATE_MIN_RPS)));
    assert!(trials.len() < 20, "{}", trials.len());
}

#[test]
fn limit_of_the_user_is_never_passed() {
    let settings = Settings { rate_max_rps: 5000.0, ..Settings::default() };
    let (found, trials) = run(settings, |rate_rps| Trial::new((rate_rps * SECONDS) as u64, 0));
    assert_eq!((found.at_least_rps(), found.below, found.limited_by), (Some(5000.0), None, Limit::Nothing));
    assert_eq!(trials.iter().map(|(rate_rps, _)| *rate_rps).fold(0.0, f64::max), 5000.0);
}

#[test]
fn any_loss_may_be_tolerated() {
    let settings = Settings { loss_max: 1.0, rate_max_rps: 8000.0, ..Settings::default() };
    let (found, _) = run(settings, |_| Trial::new(10, 10));
    assert_eq!(found.at_least.map(|sample| sample.rate_rps), Some(8000.0));
    assert_eq!(found.at_least_rps(), Some(0.0), "nothing was answered");
    // That nothing is ever lost cannot be shown; one in ten thousand can.
    let none = Settings { loss_max: 0.0, ..Settings::default() };
    let (found, _) = run(none, capacity(300_000.0));
    assert!(found.at_least_rps().is_some_and(|rate| rate > 290_000.0), "{found:?}");
}

#[test]
fn budget_ends_a_search_and_keeps_a_third_for_its_samples() {
    let settings = Settings { budget: TOOK * 30, ..Settings::default() };
    let mut calls = 0;
    // Nothing is ever settled by single trials.
    let (found, trials) = run(settings, |rate_rps| {
        calls += 1;
        let sent = (rate_rps * SECONDS) as u64;
        Trial::new(sent, if calls % 2 == 0 && rate_rps > 2000.0 { sent } else { 0 })
    });
    assert!(trials.len() <= 30, "{}", trials.len());
    let first = found.samples.first().unwrap();
    let bracketed = trials.iter().position(|(rate_rps, _)| *rate_rps == first.rate_rps).unwrap();
    assert!(bracketed <= 20, "{bracketed}");
    let (found, trials) = run(Settings { budget: Duration::ZERO, ..settings }, capacity(1e4));
    assert_eq!((trials.len(), found.at_least), (1, None));
}

/// L15: six trials that were excluded at the first rate ended a search, though a lower rate could be tried.
#[test]
fn rate_that_cannot_be_tried_is_followed_by_lower_ones() {
    let (found, _) =
        run(Settings { start_rps: 8000.0, ..Settings::default() }, |rate_rps| match rate_rps <= 1000.0 {
            true => Trial::new((rate_rps * SECONDS) as u64, 0),
            false => spoilt(Exclusion::Preempted),
        });
    assert_eq!((found.at_least_rps(), found.below), (Some(1000.0), None), "{found:?}");
    assert_eq!(found.limited_by, Limit::Generator);
}

/// L15: the bracket spent the patience of the whole search, so that a rate that had held got no sample.
#[test]
fn bracket_leaves_patience_for_the_samples() {
    let mut excluded = 0;
    let (found, _) = run(Settings::default(), |rate_rps| {
        let is_spoilt = rate_rps > 1000.0 && excluded < 36;
        excluded += u32::from(is_spoilt);
        let why = Exclusion::Preempted;
        if is_spoilt { spoilt(why) } else { Trial::new((rate_rps * SECONDS) as u64, 0) }
    });
    assert!(found.at_least_rps().is_some_and(|rate_rps| rate_rps >= 1000.0), "{found:?}");
}

/// L15: a sample with too few valid trials at the lower end ended the search.
#[test]
fn short_sample_at_the_lower_end_goes_down() {
    let mut calls = 0;
    let (found, _) = run(Settings::default(), |rate_rps| {
        calls += u32::from(rate_rps > 2000.0);
        // What held in single trials can hardly be tried again.
        let is_spoilt = rate_rps > 2000.0 && calls > 3;
        if is_spoilt { spoilt(Exclusion::Stall) } else { Trial::new((rate_rps * SECONDS) as u64, 0) }
    });
    assert!(found.at_least_rps().is_some_and(|rate_rps| rate_rps >= 1000.0), "{found:?}");
}

#[test]
fn path_that_loses_the_same_at_any_rate_is_recognised() {
    let (found, trials) = run(Settings::default(), |rate_rps| {
        let sent = (rate_rps * SECONDS) as u64;
        Trial::new(sent, sent / 50)
    });
    assert!(found.steady_loss.is_some_and(|loss| (loss - 0.02).abs() < 1e-3), "{found:?}");
    assert!(trials.len() <= 12, "{}", trials.len());
    let (found, _) = run(Settings::default(), capacity(300.0));
    assert_eq!((found.steady_loss, found.at_least.is_some()), (None, true));
}

#[test]
fn closed_loop_comes_first_and_its_throughput_is_where_open_trials_begin() {
    let windows = Some(Windows { first: 8, largest: 64 });
    let mut search = Search::new(Settings { windows, ..Settings::default() });
    let mut closed = Vec::new();
    while let Some(Offer::Closed { window, duration }) = search.next() {
        assert_eq!(search.next_rps(), None);
        closed.push(window);
        let answered_rps = f64::from(window.min(32)) * 1000.0;
        search.take_closed(ClosedTrial { sent: 100, failed: 0, answered_rps }, duration);
    }
    assert_eq!(closed, [8, 16, 32, 64, 32]);
    assert_eq!(search.found().throughput, Some(Throughput { rate_rps: 32_000.0, window: 32 }));
    assert_eq!(search.next(), Some(Offer::Open { rate_rps: 32_000.0 * FIRST_SHARE }));
    search.take(Trial::new(32_000, 0), TOOK);
    assert_eq!(search.next_rps().map(f64::round), Some(33_440.0), "it rises by a tenth first");
}

#[test]
fn generator_that_gives_no_more_is_named_and_the_lower_end_is_what_was_answered() {
    // It offers 50,000/s at most and leaves out the rest, all of which the server answers.
    let (found, _) = run(Settings::default(), |rate_rps| {
        let sent_rps = rate_rps.min(50_000.0);
        let (sustained_share, cut_share) = (sent_rps / rate_rps, 1.0 - sent_rps / rate_rps);
        Trial { sustained_share, cut_share, ..Trial::new((sent_rps * SECONDS) as u64, 0) }
    });
    assert!(found.at_least_rps().is_some_and(|rate| (45_000.0..=50_000.0).contains(&rate)), "{found:?}");
    assert_eq!((found.below, found.limited_by), (None, Limit::Generator));
}

proptest! {
    #[test]
    fn sharp_limit_is_found_within_the_resolution(limit in 100.0f64..3e6) {
        let (found, trials) = run(Settings::default(), capacity(limit));
        let (lower, upper) = (found.at_least_rps().unwrap(), found.below_rps().unwrap());
        // One percent may be lost, and requests are whole.
        let truth = limit / 0.99;
        prop_assert!(lower <= truth * 1.001 + 1.0 && truth <= upper * 1.001 + 1.0, "{lower} {truth} {upper}");
        prop_assert!(upper - lower <= 0.13 * truth, "{lower} {upper}");
        prop_assert!(trials.len() <= 45, "{}", trials.len());
    }

    /// Whatever comes: the search ends in time, its ends are in order, and no spoilt trial lowers its answer.
    #[test]
    fn every_search_ends_with_a_sound_answer(
        outcomes in prop::collection::vec((0u8..8, 0.0f64..0.05), 121), limit in 100.0f64..1e6,
    ) {
        let mut outcomes = outcomes.into_iter();
        let mut server = capacity(limit);
        let (found, trials) = run(Settings::default(), |rate_rps| {
            let (kind, loss) = outcomes.next().expect("no more trials than were announced");
            let trial = server(rate_rps);
            match kind {
                0 => spoilt(Exclusion::Overload),
                1 => spoilt(Exclusion::Preempted),
                2 => Trial {
                    limit: Limit::Server,
                    ..Trial::new(trial.sent, trial.failed.max((trial.sent as f64 * loss) as u64))
                },
                _ => trial,
            }
        });
        if let (Some(lower), Some(upper)) = (found.at_least_rps(), found.below_rps()) {
            prop_assert!(lower < upper, "{found:?}");
        }
        let lost = trials.iter().any(|(_, trial)| trial.excluded.is_none() && trial.failed > 0);
        if let (Some(lower), false) = (found.at_least_rps(), lost) {
            prop_assert!(lower >= highest_held(&trials), "{found:?}");
        }
    }

    #[test]
    fn generators_trouble_never_lowers_the_answer(valid in prop::collection::vec(any::<bool>(), 131)) {
        let mut valid = valid.into_iter();
        let (found, trials) = run(Settings::default(), |rate_rps| match valid.next() {
            Some(true) => Trial::new((rate_rps * SECONDS) as u64, 0),
            _ => spoilt(Exclusion::Preempted),
        });
        prop_assert!(found.at_least_rps().is_none_or(|rate| rate >= highest_held(&trials)), "{found:?}");
        prop_assert_eq!(found.below, None);
    }
}
