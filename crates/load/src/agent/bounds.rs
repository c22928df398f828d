//! What an agent is willing to do: to which targets, how fast, how long. Checked before anything starts.

use std::time::Duration;

use authentick_generator::Missing;

use super::limits::PREPARE_MAX;
use crate::allow::Allow;
use crate::plan::{Arrivals, Order, Plan, Scheme};

/// How much an agent may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Operations a second, including those of the background and transfers that follow key exchanges. A closed loop
    /// has no rate; it is bounded by the operations in flight.
    pub rate_rps_max: f64,
    /// Simulated clients.
    pub client_count_max: u32,
    /// Length of a step, waiting for the last answers not included.
    pub duration_max: Duration,
    /// Operations in flight in a closed loop.
    pub in_flight_max: u32,
    /// Threads that send.
    pub worker_count_max: u32,
    /// How long clients may take to get what they need before the first step.
    pub preparation_max: Duration,
}

impl Default for Limits {
    /// A million operations a second for five minutes, 65,536 clients, 4,096 operations in flight, 64 threads, a
    /// minute to get ready: what one current host can do, and no mistake in an order keeps an agent busy for hours.
    fn default() -> Self {
        Limits {
            rate_rps_max: 1e6,
            client_count_max: 65_536,
            duration_max: Duration::from_secs(300),
            in_flight_max: 4096,
            worker_count_max: 64,
            preparation_max: PREPARE_MAX,
        }
    }
}

/// The longest timeout for an answer or a key exchange.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// The most AEAD algorithms to offer, and source addresses to use.
const AEAD_COUNT_MAX: usize = 16;
const SOURCE_COUNT_MAX: usize = 65_536;

/// The most transfers after a key exchange. They run one after another, and end with the step.
const TRANSFER_COUNT_MAX: u32 = 1000;

/// Refuses a plan that exceeds `allow` or `limits`, with a sentence that names value, bound and remedy.
pub(crate) fn check_plan(plan: &Plan, allow: &Allow, limits: &Limits) -> Result<(), String> {
    let targets = [
        (plan.scheme != Scheme::Ke, "NTP", plan.ntp),
        (plan.scheme.nature().exchanges_keys, "key exchange", plan.ke),
    ];
    for (is_used, what, target) in targets {
        let address = target.ip();
        if is_used && !allow.contains(address) {
            return Err(format!(
                "the {what} target {address} is not on this agent's list; if it is yours to load, start the agent with \
                 --allow {address}"
            ));
        }
    }
    let clients = plan.clients.saturating_add(plan.background_clients);
    at_most("clients", clients, limits.client_count_max, "--clients-max")?;
    at_most("sending threads", plan.workers, limits.worker_count_max, "--workers-max")?;
    if plan.clients == 0 || plan.workers == 0 {
        return Err("a plan without clients or without sending threads does nothing".to_owned());
    }
    if let Arrivals::Closed { window } = plan.arrivals {
        check_window(window, plan, limits)?;
    }
    for (what, timeout) in [("an answer", plan.timeout), ("a key exchange", plan.ke_timeout)] {
        if timeout.is_zero() || timeout > TIMEOUT_MAX {
            let [given, most] = [timeout, TIMEOUT_MAX].map(|time| time.as_secs_f64());
            return Err(format!("a timeout of {given} s for {what} is not within 0 to {most} s"));
        }
    }
    if let Some(key) = &plan.shared_key {
        key.expand()?;
    }
    if plan.scheme.nature().is_antp && plan.antp.is_none() {
        return Err(Missing::Guide.to_string());
    }
    if let Scheme::Mix { transfers, background_transfers, .. } = plan.scheme
        && let transfers = transfers.max(background_transfers.unwrap_or(0))
        && transfers > TRANSFER_COUNT_MAX
    {
        return Err(format!("{transfers} transfers after a key exchange are more than {TRANSFER_COUNT_MAX}"));
    }
    if plan.aeads.len() > AEAD_COUNT_MAX
        || plan.sources.len().max(plan.background_sources.len()) > SOURCE_COUNT_MAX
    {
        return Err(format!(
            "more than {AEAD_COUNT_MAX} algorithms or {SOURCE_COUNT_MAX} source addresses are not taken"
        ));
    }
    Ok(())
}

/// Refuses more operations in flight than `limits` allow.
fn check_window(window: u32, plan: &Plan, limits: &Limits) -> Result<(), String> {
    let in_flight = window.saturating_mul(plan.workers);
    at_most("operations in flight", in_flight, limits.in_flight_max, "--in-flight-max")
}

/// Refuses an order that exceeds `limits`; `plan` says what one operation is.
pub(crate) fn check_order(order: &Order, plan: &Plan, limits: &Limits) -> Result<(), String> {
    let [each, background_each] = match plan.scheme {
        Scheme::Plain | Scheme::Mac | Scheme::Nts | Scheme::Ke => [1.0; 2],
        Scheme::AntpNegotiate | Scheme::AntpExchange | Scheme::Antp => [1.0; 2],
        Scheme::AntpFull => [3.0; 2],
        Scheme::Mix { transfers, background_transfers, .. } => {
            [transfers, background_transfers.unwrap_or(transfers)].map(|transfers| 1.0 + f64::from(transfers))
        }
    };
    let rates = [order.rate_rps.unwrap_or(0.0), order.background_rps];
    if rates.iter().any(|rate| !rate.is_finite() || *rate < 0.0) {
        return Err("a rate is negative or no number".to_owned());
    }
    if let Arrivals::Closed { window } = order.arrivals(plan.arrivals) {
        check_window(window, plan, limits)?;
    }
    match (order.rate_rps, order.arrivals(plan.arrivals)) {
        (None, Arrivals::Constant | Arrivals::Exponential) => {
            return Err("an open loop without a rate has no end".to_owned());
        }
        (Some(_), Arrivals::Closed { .. }) => return Err("a closed loop has no rate of its own".to_owned()),
        (None, Arrivals::Closed { .. }) | (Some(_), Arrivals::Constant | Arrivals::Exponential) => {}
    }
    let rate = rates[0] * each + rates[1] * background_each;
    if rate > limits.rate_rps_max {
        return Err(format!(
            "{rate} operations a second are more than this agent's {}; lower the rate, take more agents, or start it \
             with --rate-limit",
            limits.rate_rps_max
        ));
    }
    if order.duration.is_zero() || order.duration > limits.duration_max {
        return Err(format!(
            "a step of {} s is not within 0 to this agent's {} s; shorten it, or start the agent with --seconds-max",
            order.duration.as_secs_f64(),
            limits.duration_max.as_secs_f64()
        ));
    }
    Ok(())
}

fn at_most(what: &str, value: u32, max: u32, flag: &str) -> Result<(), String> {
    match value <= max {
        true => Ok(()),
        false => Err(format!(
            "{value} {what} are more than this agent's {max}; take more agents, or start it with {flag}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{order, plan};
    use super::*;

    const fn mix(transfers: u32, background_transfers: Option<u32>) -> Scheme {
        Scheme::Mix { transfers, same_cookie: true, background_transfers }
    }

    #[test]
    fn own_networks_are_allowed_and_no_others() {
        let allow = Allow::default();
        for inside in [
            "127.0.0.1",
            "10.255.0.1",
            "172.31.0.1",
            "192.168.1.1",
            "198.19.0.1",
            "::1",
            "fd00::1",
            "fe80::1",
        ] {
            assert!(allow.contains(inside.parse().unwrap()), "{inside}");
        }
        for outside in [
            "128.0.0.1",
            "172.32.0.1",
            "198.20.0.1",
            "0.0.0.0",
            "8.8.8.8",
            "255.255.255.255",
            "::",
            "2001:db8::1",
        ] {
            assert!(!allow.contains(outside.parse().unwrap()), "{outside}");
        }
        assert!(!allow.contains("::ffff:8.8.8.8".parse().unwrap()), "mapped addresses are IPv4");
        assert!(Allow::with(vec!["8.8.8.8".parse().unwrap()]).contains("8.8.8.8".parse().unwrap()));
        assert!(!Allow::only(vec!["8.8.8.8".parse().unwrap()]).contains("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn targets_that_the_scheme_uses_must_be_allowed() {
        let foreign = "192.0.2.7:123".parse().unwrap();
        let check = |plan: &Plan| check_plan(plan, &Allow::default(), &Limits::default());
        let error = check(&Plan { ntp: foreign, ..plan() }).unwrap_err();
        assert!(error.contains("192.0.2.7") && error.contains("--allow 192.0.2.7"), "{error}");
        for (scheme, ntp_used, ke_used) in [
            (Scheme::Plain, true, false),
            (Scheme::Mac, true, false),
            (Scheme::Nts, true, true),
            (Scheme::Ke, false, true),
        ] {
            assert_eq!(check(&Plan { scheme, ntp: foreign, ..plan() }).is_err(), ntp_used, "{scheme:?}");
            assert_eq!(check(&Plan { scheme, ke: foreign, ..plan() }).is_err(), ke_used, "{scheme:?}");
        }
    }

    #[test]
    fn plans_beyond_the_limits_are_refused_with_the_remedy() {
        let closed = |window| Plan { arrivals: Arrivals::Closed { window }, ..plan() };
        let wrong = [
            (Plan { clients: 65_537, ..plan() }, "--clients-max"),
            (Plan { clients: 60_000, background_clients: 5_537, ..plan() }, "--clients-max"),
            (Plan { background_clients: u32::MAX, ..plan() }, "--clients-max"),
            (Plan { scheme: mix(1001, None), ..plan() }, "1001 transfers"),
            (Plan { scheme: mix(3, Some(1001)), ..plan() }, "1001 transfers"),
            (Plan { workers: 65, ..plan() }, "--workers-max"),
            (closed(u32::MAX), "--in-flight-max"),
            (Plan { clients: 0, ..plan() }, "does nothing"),
            (Plan { timeout: Duration::ZERO, ..plan() }, "an answer"),
            (Plan { ke_timeout: Duration::MAX, ..plan() }, "a key exchange"),
            (Plan { aeads: vec![15; 17], ..plan() }, "algorithms"),
        ];
        for (plan, part) in wrong {
            let error = check_plan(&plan, &Allow::default(), &Limits::default()).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(check_plan(&closed(4096), &Allow::default(), &Limits::default()), Ok(()));
    }

    #[test]
    fn orders_beyond_the_limits_are_refused_with_the_remedy() {
        let limits = Limits { rate_rps_max: 1000.0, ..Limits::default() };
        let check = |order: &Order, plan: &Plan| check_order(order, plan, &limits);
        assert_eq!(check(&order(1000.0, 1.0), &plan()), Ok(()));
        let wrong = [
            (order(1000.1, 1.0), "--rate-limit"),
            (Order { background_rps: 500.0, ..order(501.0, 1.0) }, "--rate-limit"),
            (order(-1.0, 1.0), "negative"),
            (order(f64::NAN, 1.0), "no number"),
            (Order { background_rps: f64::INFINITY, ..order(1.0, 1.0) }, "no number"),
            (order(1.0, 300.1), "--seconds-max"),
            (order(1.0, 0.0), "--seconds-max"),
            (Order { rate_rps: None, ..order(1.0, 1.0) }, "no end"),
        ];
        for (order, part) in wrong {
            let error = check(&order, &plan()).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let of_three = Plan { scheme: mix(3, None), ..plan() };
        assert!(
            check(&order(250.0, 1.0), &of_three).is_ok() && check(&order(251.0, 1.0), &of_three).is_err()
        );
        let beside = |background_rps| Order { background_rps, ..order(100.0, 1.0) };
        let alone = Plan { scheme: mix(3, Some(0)), ..plan() };
        assert!(check(&beside(600.0), &alone).is_ok() && check(&beside(601.0), &alone).is_err());
        assert!(check(&beside(150.0), &of_three).is_ok() && check(&beside(151.0), &of_three).is_err());
        let closed = Plan { arrivals: Arrivals::Closed { window: 1 }, ..plan() };
        assert!(check(&order(1.0, 1.0), &closed).is_err());
        assert!(check(&Order { rate_rps: None, ..order(1.0, 1.0) }, &closed).is_ok());
    }
}
