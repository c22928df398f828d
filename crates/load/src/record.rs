//! The record of a run, as far as its plan and its outcome tell it.

use authentick_report::load::{
    AntpParameters, Capacity, Excluded, Limit, LoadRecord, Parameters, Scheme as Named, Search,
};
use authentick_report::units::{count, plural, rate};

use crate::plan::{Arrivals, Plan, Scheme};
use crate::runner::{Outcome, Run, Steps};
use crate::search::{CONFIDENCE, Found, Settings};
use crate::target::Target;

/// A scheme as records name it.
#[must_use]
pub const fn named(scheme: Scheme) -> Named {
    match scheme {
        Scheme::Plain => Named::Plain,
        Scheme::Mac => Named::Mac,
        Scheme::Nts => Named::Nts,
        Scheme::Ke => Named::Ke,
        Scheme::Mix { .. } => Named::Mix,
        Scheme::AntpNegotiate => Named::AntpNegotiate,
        Scheme::AntpExchange => Named::AntpExchange,
        Scheme::Antp => Named::Antp,
        Scheme::AntpFull => Named::AntpFull,
    }
}

/// How `plan` and `run` shape the load on `target`. Where clients stand is for the caller to say.
#[must_use]
pub fn parameters(plan: &Plan, run: &Run, target: &Target) -> Parameters {
    let (arrivals, window) = match plan.arrivals {
        Arrivals::Constant => ("constant", None),
        Arrivals::Exponential => ("exponential", None),
        Arrivals::Closed { window } => ("closed", Some(window)),
    };
    let (mut transfers_per_exchange, mut same_cookie) = (None, false);
    if let Scheme::Mix { transfers, same_cookie: same } = plan.scheme {
        (transfers_per_exchange, same_cookie) = (Some(transfers), same);
    }
    Parameters {
        arrivals: arrivals.to_owned(),
        window,
        step_seconds: run.duration.as_secs_f64(),
        clients: plan.clients,
        sources: None,
        workers: plan.workers,
        timeout_seconds: plan.timeout.as_secs_f64(),
        ke_timeout_seconds: plan.ke_timeout.as_secs_f64(),
        seed: plan.seed,
        replay_cookie: plan.replay_cookie,
        transfers_per_exchange,
        same_cookie,
        antp: plan.antp.zip(target.antp.clone()).map(|(antp, found)| AntpParameters {
            separate_tag: antp.separate_tag,
            replay: antp.replay,
            ..found
        }),
        background_rps: run.background_rps,
        agents: Vec::new(),
    }
}

impl Outcome {
    /// Puts what came of a run of these steps into its record.
    pub fn conclude(self, record: &mut LoadRecord, steps: &Steps) {
        record.steps = self.steps;
        record.engine = self.engine.to_owned();
        record.interrupted = self.interrupted;
        let (Some(found), Steps::Search(settings)) = (self.found, steps) else { return };
        let over = record.interrupted.is_none();
        let capacity = Capacity {
            at_least: found.at_least_rps(),
            below: found.below_rps(),
            limited_by: if over { found.limited_by } else { Limit::Unknown },
        };
        record.capacity = (over || capacity.at_least.is_some()).then_some(capacity);
        let (trials, held) = found.at_least.map_or((0, 0), |sample| (sample.trial_count, sample.held_count));
        record.search = Some(Search {
            loss_max: settings.tolerated(),
            lower_rps: found.at_least_rps(),
            upper_rps: found.below_rps(),
            trial_count: trials,
            held_count: held,
            confidence: CONFIDENCE,
            loss_low: found.at_least.map_or(0.0, |sample| sample.loss_low),
            loss_high: found.at_least.map_or(1.0, |sample| sample.loss_high),
            excluded: found.excluded.iter().map(|(&why, &count)| Excluded { why, count }).collect(),
            trial_count_max: Some(settings.trial_count_max()),
            remark: Some(remark(&found, &capacity, settings, over)),
            samples: found.samples,
        });
    }
}

/// What came of a search, in sentences.
fn remark(found: &Found, capacity: &Capacity, settings: &Settings, over: bool) -> String {
    let mut sentences = Vec::new();
    if !over {
        sentences.push("The search did not end".to_owned());
    }
    let words = capacity.words();
    sentences.push(words[..1].to_uppercase() + &words[1..]);
    if over && capacity.at_least.is_none() {
        sentences.extend(why_nothing(found, settings));
    }
    if !found.excluded.is_empty() {
        let count: u32 = found.excluded.values().sum();
        let reasons: Vec<String> =
            found.excluded.iter().map(|(why, count)| format!("{} ({count})", why.meaning())).collect();
        let trials = plural(u64::from(count), "trial");
        let say = if count == 1 { "says" } else { "say" };
        sentences.push(format!("{trials} {say} nothing about the server: {}", reasons.join(", ")));
    }
    sentences.join(". ") + "."
}

/// Why there is no lower end.
fn why_nothing(found: &Found, settings: &Settings) -> Option<String> {
    let busy = if found.is_host_busy {
        "the generator's host was too busy with something else"
    } else {
        "the generator could not keep up"
    };
    match (found.held_rps, found.beyond_rps, found.samples.last()) {
        (None, Some(beyond), _) => Some(format!(
            "Not even at {}/s was a trial valid: {busy}; start lower, or use an idle host",
            rate(beyond)
        )),
        (Some(held), Some(beyond), _) if beyond <= held => {
            Some(format!("{}/s held, but too few trials there were valid: {busy}", rate(held)))
        }
        (Some(held), _, Some(last)) if last.failed as f64 <= settings.tolerated() * last.sent as f64 => {
            Some(format!(
                "{}/s held in a trial, but {} requests are too few to show a loss of {} %; use longer steps",
                rate(held),
                count(last.sent),
                (settings.tolerated() * 1e4).round() / 100.0
            ))
        }
        _ => None,
    }
}
