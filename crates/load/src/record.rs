//! The record of a run, as far as its plan and its outcome tell it.

use authentick_report::load::{AntpParameters, LoadRecord, Parameters, Scheme as Named, Search};
use authentick_report::units::rate;

use crate::plan::{Arrivals, Plan, Scheme};
use crate::runner::{Outcome, Run, Steps};
use crate::search::CONFIDENCE;
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
        let settled = found.held_count >= settings.trial_count;
        record.capacity_rps = found.lower_rps.filter(|_| over && settled);
        let remark = match found.lower_rps {
            _ if !over => Some("The search did not end.".to_owned()),
            None => Some("No rate held.".to_owned()),
            Some(_) if !settled => {
                Some("The search was given up: rates held in some trials and not in others.".to_owned())
            }
            Some(_) if found.generator_limited => {
                Some("The generator, not the server, was the limit; use more --workers or hosts.".to_owned())
            }
            Some(_) if found.upper_rps.is_none() => Some(format!(
                "Every rate up to {}/s held, the highest that was allowed.",
                rate(settings.rate_max_rps)
            )),
            Some(_) => None,
        };
        record.search = Some(Search {
            loss_max: settings.loss_max,
            lower_rps: found.lower_rps,
            upper_rps: found.upper_rps,
            trial_count: found.trial_count,
            held_count: found.held_count,
            confidence: CONFIDENCE,
            loss_low: found.loss.0,
            loss_high: found.loss.1,
            remark,
        });
    }
}
