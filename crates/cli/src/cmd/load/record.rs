//! The record of a load run: what is put into it, and where it is kept.

use std::fs;
use std::path::Path;

use authentick_load::runner::{Outcome, Run, Steps};
use authentick_load::search::CONFIDENCE;
use authentick_load::{Arrivals, Plan, Scheme};
use authentick_net::clock::unix_seconds;
use authentick_report::load::csv::csv;
use authentick_report::load::{self, AntpParameters, LoadRecord, Parameters, Search};
use authentick_report::units::rate;

use super::target::Target;
use crate::args::{AntpLoad, LoadArguments};
use crate::exit::{Exit, Failure};
use crate::files;
use crate::host::{COMMIT, VERSION, command, host};

/// A record without steps.
pub(super) fn begin(
    arguments: &LoadArguments,
    plan: &Plan,
    target: &Target,
    antp: Option<&AntpLoad>,
) -> LoadRecord {
    let address = if plan.scheme == Scheme::Ke { target.ke } else { target.ntp };
    let path = match &arguments.path {
        Some(label) => label.clone(),
        None if address.ip().is_loopback() => "loopback".to_owned(),
        None if target.is_local(address) => "local".to_owned(),
        None => "network".to_owned(),
    };
    let (scheme, transfers, same_cookie) = match plan.scheme {
        Scheme::Plain => ("plain", None, false),
        Scheme::Mac => ("mac", None, false),
        Scheme::Nts => ("nts", None, false),
        Scheme::Ke => ("ke", None, false),
        Scheme::AntpNegotiate => ("antp-negotiate", None, false),
        Scheme::AntpExchange => ("antp-exchange", None, false),
        Scheme::Antp => ("antp", None, false),
        Scheme::AntpFull => ("antp-full", None, false),
        Scheme::Mix { transfers, same_cookie } => ("mix", Some(transfers), same_cookie),
    };
    let (arrivals, window) = match plan.arrivals {
        Arrivals::Constant => ("constant", None),
        Arrivals::Exponential => ("exponential", None),
        Arrivals::Closed { window } => ("closed", Some(window)),
    };
    let authentication = match (&target.aead, &target.key, antp) {
        (_, _, Some(antp)) => antp.kem.suite().to_string(),
        (Some(aead), ..) => aead.to_string(),
        (None, Some(key), None) => key.algorithm().to_string(),
        (None, None, None) => "none".to_owned(),
    };
    LoadRecord {
        command: command(),
        version: VERSION.to_owned(),
        commit: COMMIT.to_owned(),
        started_unix_s: unix_seconds(),
        host: host(),
        path,
        scheme: scheme.to_owned(),
        authentication,
        target: target.text.clone(),
        address: address.to_string(),
        engine: "sockets".to_owned(),
        parameters: Parameters {
            arrivals: arrivals.to_owned(),
            window,
            step_seconds: arguments.step_seconds.as_secs_f64(),
            clients: plan.clients,
            sources: arguments.sources.map(|prefix| prefix.to_string()),
            workers: plan.workers,
            timeout_seconds: plan.timeout.as_secs_f64(),
            ke_timeout_seconds: plan.ke_timeout.as_secs_f64(),
            seed: plan.seed,
            replay_cookie: plan.replay_cookie,
            transfers_per_exchange: transfers,
            same_cookie,
            antp: antp.zip(plan.antp).map(|(named, antp)| AntpParameters {
                kem: named.kem.name().to_owned(),
                separate_tag: antp.separate_tag,
                replay: antp.replay,
                chain_size: target.antp.map_or(0, |probed| probed.chain_size as u32),
                round_count: target.antp.map_or(0, |probed| probed.round_count),
            }),
            background_rps: arguments.background.unwrap_or(0.0),
            agents: arguments.coordination.agents.clone(),
        },
        shared_clock: arguments.shared_clock || target.is_local(address),
        steps: Vec::new(),
        capacity_rps: None,
        search: None,
        interrupted: None,
    }
}

/// Puts what came of the run into its record.
pub(super) fn conclude(record: &mut LoadRecord, outcome: Outcome, run: &Run) {
    record.steps = outcome.steps;
    record.interrupted = outcome.interrupted;
    let (Some(found), Steps::Search(settings)) = (outcome.found, &run.steps) else { return };
    let over = record.interrupted.is_none();
    let settled = found.held_count >= settings.trial_count;
    record.capacity_rps = found.lower_rps.filter(|_| over && settled);
    let remark = match (found.lower_rps, found.generator_limited) {
        _ if !over => Some("The search did not end.".to_owned()),
        (None, _) => Some("No rate held.".to_owned()),
        _ if !settled => {
            Some("The search was given up: rates held in some trials and not in others.".to_owned())
        }
        (Some(_), true) => {
            Some("The generator, not the server, was the limit; use more --workers or hosts.".to_owned())
        }
        (Some(_), false) if found.upper_rps.is_none() => Some(format!(
            "Every rate up to {}/s held, the highest that was allowed.",
            rate(settings.rate_max_rps)
        )),
        (Some(_), false) => None,
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

/// Refuses files that could not be written afterwards, before any load.
pub(super) fn check_writable(arguments: &LoadArguments) -> Result<(), Failure> {
    for (option, file) in named_files(arguments) {
        files::check_writable(file).map_err(|error| unwritable(option, file, &error))?;
    }
    Ok(())
}

/// Writes the files that were asked for; all of them, even if one fails.
pub(super) fn keep(arguments: &LoadArguments, record: &LoadRecord) -> Result<(), Failure> {
    let mut result = Ok(());
    for (option, file) in named_files(arguments) {
        let text = match option {
            "--record" => record.to_json(),
            "--csv" => csv(record),
            _ => load::report(&[record]).page(),
        };
        if let Err(error) = fs::write(file, text) {
            result = Err(unwritable(option, file, &error));
        }
    }
    result
}

fn named_files(arguments: &LoadArguments) -> impl Iterator<Item = (&'static str, &Path)> {
    let files = [("--record", &arguments.record), ("--csv", &arguments.csv), ("--html", &arguments.html)];
    files.into_iter().filter_map(|(option, file)| Some((option, file.as_deref()?)))
}

fn unwritable(option: &str, file: &Path, error: &std::io::Error) -> Failure {
    let exit = Exit::of_access(error);
    exit.because(format!("{option} {}: cannot write: {error}; name another file", file.display()))
}
