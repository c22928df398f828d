//! The search against servers that are exact, flaky, silent or faster than the generator.

use authentick_report::load::{Exclusion, Finding, Limit};
use proptest::prelude::*;

use super::*;

const SECONDS: f64 = 5.0;

/// Searches to the end; every trial that was made, with its rate.
fn run(settings: Settings, mut server: impl FnMut(f64) -> Trial) -> (Found, Vec<(f64, Trial)>) {
    let mut search = Search::new(settings);
    let mut trials = Vec::new();
    let mut lefts = vec![settings.trial_count_max()];
    while let Some(rate_rps) = search.next_rps() {
        assert!(
            rate_rps <= settings.rate_max_rps.max(RATE_MIN_RPS) && rate_rps >= RATE_MIN_RPS,
            "{rate_rps}"
        );
        let trial = server(rate_rps);
        search.take(trial);
        trials.push((rate_rps, trial));
        lefts.push(search.trial_count_left_max());
    }
    for (done, left) in lefts.iter().enumerate() {
        assert!(trials.len() - done <= *left as usize, "{} after {done} instead of {left}", trials.len());
    }
    assert!(lefts.is_sorted_by(|before, after| before > after), "{lefts:?}");
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
    let (found, trials) = run(Settings::default(), |rate_rps| {
        if !quiet {
            return spoilt(Exclusion::Preempted);
        }
        quiet = rate_rps < 256_000.0;
        Trial::new((rate_rps * SECONDS) as u64, 0)
    });
    assert_eq!(found.held_rps, Some(256_000.0));
    assert!(found.at_least.is_none() && found.is_host_busy, "one trial confirms nothing: {found:?}");
    assert!(trials.iter().all(|(rate_rps, trial)| trial.excluded.is_none() || *rate_rps >= 256_000.0));
    assert_eq!(found.limited_by, Limit::Generator);
}

#[test]
fn search_without_a_valid_trial_ends_without_a_number() {
    for (why, busy, count) in [(Exclusion::Preempted, true, 6), (Exclusion::Overload, false, 3)] {
        let (found, trials) = run(Settings::default(), |_| spoilt(why));
        assert_eq!((found.at_least, found.below, found.held_rps), (None, None, None));
        assert_eq!((found.limited_by, found.is_host_busy), (Limit::Generator, busy));
        assert!(trials.iter().all(|(rate_rps, _)| *rate_rps == 1000.0), "it never goes down: {trials:?}");
        assert_eq!((trials.len(), found.excluded.clone()), (count, BTreeMap::from([(why, count as u32)])));
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
    search.take(spoilt(Exclusion::Steal));
    search.take(spoilt(Exclusion::Stall));
    assert_eq!((search.pause(second), search.pause(hour)), (second, PAUSE_MAX));
    search.take(spoilt(Exclusion::Overload));
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
    // Five trials of 40 requests: 200 without a loss are no sign of a loss below one percent.
    let settings = Settings { rate_max_rps: 1000.0, ..Settings::default() };
    let (found, _) = run(settings, |_| Trial::new(40, 0));
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
    assert_eq!(found.at_least_rps(), Some(8000.0));
    // That nothing is ever lost cannot be shown; one in ten thousand can.
    let none = Settings { loss_max: 0.0, ..Settings::default() };
    let (found, _) = run(none, capacity(300_000.0));
    assert!(found.at_least_rps().is_some_and(|rate| rate > 290_000.0), "{found:?}");
}

#[test]
fn longest_search_follows_from_the_settings() {
    let settings = Settings::default();
    assert_eq!(settings.trial_count_max(), 33 + 2 * (5 + 3 * 8) + 40);
    assert_eq!(settings.longest(Duration::from_secs(5)), Duration::from_secs((131 + 40) * 5));
    let short = Settings { start_rps: 800.0, rate_max_rps: 1600.0, ..settings };
    assert!(short.trial_count_max() < settings.trial_count_max() + 1);
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
        outcomes in prop::collection::vec((0u8..8, 0.0f64..0.05), 131), limit in 100.0f64..1e6,
    ) {
        let mut outcomes = outcomes.into_iter();
        let mut server = capacity(limit);
        let (found, trials) = run(Settings::default(), |rate_rps| {
            let (kind, loss) = outcomes.next().expect("no more trials than were announced");
            let trial = server(rate_rps);
            match kind {
                0 => spoilt(Exclusion::Overload),
                1 => spoilt(Exclusion::Preempted),
                2 => Trial { failed: trial.failed.max((trial.sent as f64 * loss) as u64), ..trial },
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
