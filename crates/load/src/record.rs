//! The record of a run, as far as its plan and its outcome tell it.

use std::net::{IpAddr, SocketAddr};

use authentick_net::clock::unix_seconds;
use authentick_net::udp::ClientSocket;
use authentick_report::Host;
use authentick_report::load::{
    AntpParameters, Capacity, Excluded, Limit, LoadRecord, Parameters, Scheme as Named, Search, Throughput,
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

/// The record of a run that has not begun: what `plan` and `run` do to `target`. Who made it, the target's name, and
/// where clients stand are for the caller to say; `agents` send, or this host if there are none.
#[must_use]
pub fn begin(plan: &Plan, run: &Run, target: &Target, agents: &[String]) -> LoadRecord {
    let address = if plan.scheme == Scheme::Ke { plan.ke } else { plan.ntp };
    let is_local = is_this_host(address);
    let path = match is_local {
        _ if address.ip().is_loopback() => "loopback",
        true => "local",
        false => "network",
    };
    LoadRecord {
        command: String::new(),
        version: String::new(),
        commit: String::new(),
        started_unix_s: unix_seconds(),
        host: Host::default(),
        path: path.to_owned(),
        scheme: named(plan.scheme).to_string(),
        authentication: target.authentication.clone(),
        target: String::new(),
        server_label: None,
        address: address.to_string(),
        engine: "sockets".to_owned(),
        parameters: Parameters { agents: agents.to_vec(), ..parameters(plan, run, target) },
        shared_clock: is_local && agents.iter().all(|agent| is_loopback(agent)),
        steps: Vec::new(),
        capacity: None,
        search: None,
        interrupted: None,
        collapsed: false,
    }
}

/// Whether `server` is this host: its address is the one from which this host would send to it.
#[must_use]
pub fn is_this_host(server: SocketAddr) -> bool {
    let local = ClientSocket::connect(server).and_then(|socket| socket.local());
    server.ip().is_loopback() || local.is_ok_and(|local| local.ip() == server.ip())
}

/// Whether an agent, named as `HOST:PORT`, is on this host for certain, and so has its clock. Names but `localhost` are
/// not looked up: they may be anybody's.
fn is_loopback(agent: &str) -> bool {
    let host = agent.rsplit_once(':').map_or(agent, |(host, _)| host);
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// How `plan` and `run` shape the load on `target`. Where clients stand is for the caller to say.
#[must_use]
pub fn parameters(plan: &Plan, run: &Run, target: &Target) -> Parameters {
    let (arrivals, window) = match plan.arrivals {
        Arrivals::Constant => ("constant", None),
        Arrivals::Exponential => ("exponential", None),
        Arrivals::Closed { window } => ("closed", Some(window)),
    };
    let (mut transfers_per_exchange, mut same_cookie, mut background_transfers) = (None, false, None);
    if let Scheme::Mix { transfers, same_cookie: same, background_transfers: of_background } = plan.scheme {
        (transfers_per_exchange, same_cookie) = (Some(transfers), same);
        background_transfers = of_background.filter(|_| run.background_rps > 0.0);
    }
    let background_clients = Some(plan.background_clients);
    Parameters {
        arrivals: arrivals.to_owned(),
        window,
        step_seconds: run.duration.as_secs_f64(),
        warm_up_seconds: run.warm_up.as_secs_f64(),
        stop_at_loss: run.stop_at_loss,
        clients: plan.clients,
        sources: None,
        background_sources: plan.background_sources.iter().map(ToString::to_string).collect(),
        workers: plan.workers,
        timeout_seconds: plan.timeout.as_secs_f64(),
        ke_timeout_seconds: plan.ke_timeout.as_secs_f64(),
        seed: plan.seed,
        replay_cookie: plan.replay_cookie,
        transfers_per_exchange,
        same_cookie,
        background_transfers,
        background_clients: background_clients
            .filter(|&count| run.background_rps > 0.0 && count != plan.clients),
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
        record.collapsed = self.collapsed;
        let (Some(found), Steps::Search(settings)) = (self.found, steps) else { return };
        let over = record.interrupted.is_none();
        let capacity = Capacity {
            at_least: found.at_least_rps(),
            below: found.below_rps(),
            limited_by: if over { found.limited_by } else { Limit::Unknown },
            throughput: found.throughput,
        };
        let is_known = capacity.at_least.is_some() || capacity.throughput.is_some();
        record.capacity = (over || is_known).then_some(capacity);
        let (trials, held) = found.at_least.map_or((0, 0), |sample| (sample.trial_count, sample.held_count));
        record.search = Some(Search {
            loss_max: settings.tolerated(),
            trial_count: trials,
            held_count: held,
            confidence: CONFIDENCE,
            loss_low: found.at_least.map_or(0.0, |sample| sample.loss_low),
            loss_high: found.at_least.map_or(1.0, |sample| sample.loss_high),
            excluded: found.excluded.iter().map(|(&why, &count)| Excluded { why, count }).collect(),
            trial_count_max: None,
            budget_seconds: Some(settings.budget.as_secs_f64()),
            steady_loss: found.steady_loss,
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
    if let Some(Throughput { rate_rps, window }) = capacity.throughput {
        sentences.push(format!("Throughput {}/s: a closed loop with {window} in flight", rate(rate_rps)));
    }
    let words = capacity.words();
    sentences.push(words[..1].to_uppercase() + &words[1..]);
    if let Some(loss) = found.steady_loss {
        let share = (loss * 1e3).round() / 10.0;
        sentences.push(format!("About {share} % is lost at every rate: raise --loss-max above that"));
    }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The record of a run against a server at `address` by these agents.
    fn begun(address: &str, agents: &[&str]) -> LoadRecord {
        let plan = Plan::plain(address.parse().unwrap());
        let target =
            Target { plan: plan.clone(), roots: None, authentication: "none".to_owned(), antp: None };
        let run = Run { warm_up: Duration::from_secs(3), ..Run::new(Steps::Closed, Duration::from_secs(5)) };
        let agents: Vec<String> = agents.iter().map(ToString::to_string).collect();
        begin(&plan, &run, &target, &agents)
    }

    #[test]
    fn clock_is_shared_only_with_clients_on_the_server_s_host() {
        let shared = |address, agents: &[&str]| begun(address, agents).shared_clock;
        assert!(shared("127.0.0.1:123", &[]) && shared("[::1]:123", &[]));
        assert!(shared("127.0.0.1:123", &["127.0.0.1:4470", "[::1]:4471", "localhost:4472"]));
        assert!(!shared("127.0.0.1:123", &["127.0.0.1:4470", "198.18.0.11:4470"]), "one is elsewhere");
        assert!(!shared("127.0.0.1:123", &["a.example:4470"]), "nobody knows where that is");
        assert!(!shared("192.0.2.1:123", &[]) && !shared("192.0.2.1:123", &["127.0.0.1:4470"]));
    }

    #[test]
    fn record_that_begins_says_how_the_load_is_shaped() {
        let record = begun("127.0.0.1:123", &["127.0.0.1:4470"]);
        assert_eq!((record.path.as_str(), record.address.as_str()), ("loopback", "127.0.0.1:123"));
        assert_eq!((record.parameters.warm_up_seconds, record.parameters.agents.len()), (3.0, 1));
        assert!(record.steps.is_empty() && record.interrupted.is_none());
    }
}
