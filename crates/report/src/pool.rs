//! How many clients one server can serve, computed from measured rates as the ANTP paper does ("Authenticated Network
//! Time Synchronization", USENIX Security 2016, section 4): arithmetic alone.
//!
//! The paper multiplies the rate of time requests by the poll interval. That ignores the other two phases, as they are
//! rare; given their rates, this module also computes their share of the same core.

use std::fmt::Write as _;

use serde::Serialize;

use crate::published::antp::TIME_RPS;
use crate::units::{count, percent, rate};

/// What the paper calls nine hours, in seconds: 2^15.
pub const PAPER_POLL_SECONDS: f64 = 32_768.0;
/// The paper's clients of one server.
pub const PAPER_CLIENTS: u64 = 5_755_502_592;
/// The interval between requests on which the paper's ratios of messages rest, in seconds: half an hour.
pub const PAPER_RATIO_POLL_SECONDS: f64 = 1800.0;

/// What clients do, and the measured rates of a server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Demand {
    /// Time requests a second that the server answers.
    pub time_rps: f64,
    /// Key exchanges a second that it answers, if that is known.
    pub exchange_rps: Option<f64>,
    /// Negotiations a second that it answers, if that is known.
    pub negotiation_rps: Option<f64>,
    /// Seconds from one time request of a client to the next.
    pub poll_seconds: f64,
    /// Seconds from one key exchange of a client to the next.
    pub rekey_seconds: f64,
}

/// What follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pool {
    /// Clients whose time requests the server can answer, doing nothing else: the paper's figure.
    pub clients: u64,
    /// The same if negotiations and key exchanges take their part of the same core; absent without their rates.
    pub clients_with_all_phases: Option<u64>,
    /// Time requests for each negotiation and key exchange: the N of 1:1:N.
    pub times_per_exchange: f64,
    /// Negotiations that so many clients begin in a second, and as many key exchanges.
    pub exchanges_rps: f64,
    /// Share of the core that these take with so many clients; absent without their rates.
    pub exchange_share: Option<f64>,
}

/// A number that makes no sense: which, and what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadDemand(&'static str);

impl Demand {
    /// How many clients one server can serve.
    ///
    /// # Errors
    /// If a rate or an interval is not above zero, or clients exchange keys more often than they ask for time.
    pub fn pool(&self) -> Result<Pool, BadDemand> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if ![Some(self.time_rps), self.exchange_rps, self.negotiation_rps].into_iter().flatten().all(positive)
        {
            return Err(BadDemand("a rate is a number above zero, such as 175644"));
        }
        if !positive(self.poll_seconds) || !positive(self.rekey_seconds) {
            return Err(BadDemand("poll interval and re-keying period are longer than nothing"));
        }
        if self.rekey_seconds < self.poll_seconds {
            return Err(BadDemand("keys are used for one request at least: re-key less often than you poll"));
        }
        let clients = self.time_rps * self.poll_seconds;
        // Seconds of the core that one client takes of each second.
        let time_load = 1.0 / clients;
        let rare_load = self.exchange_rps.zip(self.negotiation_rps).map(|(exchange_rps, negotiation_rps)| {
            (1.0 / exchange_rps + 1.0 / negotiation_rps) / self.rekey_seconds
        });
        let with_all = rare_load.map(|rare_load| 1.0 / (time_load + rare_load));
        Ok(Pool {
            clients: clients as u64,
            clients_with_all_phases: with_all.map(|clients| clients as u64),
            times_per_exchange: self.rekey_seconds / self.poll_seconds,
            exchanges_rps: with_all.unwrap_or(clients) / self.rekey_seconds,
            exchange_share: rare_load.zip(with_all).map(|(rare_load, clients)| rare_load * clients),
        })
    }
}

/// What is asked and what follows from it in words, beside the paper's.
#[must_use]
pub fn text(demand: &Demand, pool: &Pool) -> String {
    let mut out = String::new();
    let mut say = |line: std::fmt::Arguments<'_>| writeln!(out, "{line}").expect("a string takes everything");
    say(format_args!(
        "clients of one server     {} (time requests alone: {}/s times {} s)",
        count(pool.clients),
        rate(demand.time_rps),
        demand.poll_seconds
    ));
    if let (Some(clients), Some(share)) = (pool.clients_with_all_phases, pool.exchange_share) {
        say(format_args!(
            "with all phases           {} (phases 1 and 2 take {} % of the core)",
            count(clients),
            percent(share)
        ));
    }
    say(format_args!("messages, phases 1:2:3    1:1:{}", trimmed(pool.times_per_exchange)));
    say(format_args!("key exchanges             {}/s of so many clients", trimmed(pool.exchanges_rps)));
    say(format_args!("\n{}", note()));
    out
}

/// What the paper's figures mean.
#[must_use]
pub fn note() -> String {
    format!(
        "The paper has {} clients of one server from {}/s and one request in \"9 hours\". That is {}/s times {} s \
         exactly: its nine hours are 2^15 s, 9.1 hours; with nine hours it would be {}. Its ratios of messages, \
         1:1:1440 with keys replaced each month and 1:1:8640 with keys replaced every half year, both follow from one \
         request in 30 minutes, not in nine hours: with that interval {} clients.",
        count(PAPER_CLIENTS),
        rate(TIME_RPS),
        rate(TIME_RPS),
        count(PAPER_POLL_SECONDS as u64),
        count((TIME_RPS * 9.0 * 3600.0) as u64),
        count((TIME_RPS * PAPER_RATIO_POLL_SECONDS) as u64),
    )
}

/// A number without needless digits.
fn trimmed(value: f64) -> String {
    if value.fract().abs() < 1e-9 && value < 1e15 { count(value as u64) } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: f64 = 86_400.0;

    fn plan(poll_seconds: f64, rekey_seconds: f64) -> Demand {
        let time_rps = TIME_RPS;
        Demand { time_rps, exchange_rps: None, negotiation_rps: None, poll_seconds, rekey_seconds }
    }

    #[test]
    fn clients_of_the_paper_come_out_with_two_to_the_fifteen_seconds() {
        let pool = plan(PAPER_POLL_SECONDS, 30.0 * DAY).pool().unwrap();
        assert_eq!(pool.clients, 5_755_502_592);
        assert_eq!(plan(9.0 * 3600.0, 30.0 * DAY).pool().unwrap().clients, 5_690_865_600);
    }

    #[test]
    fn message_ratios_of_the_paper_come_out_with_one_request_in_half_an_hour() {
        for (days, expected) in [(30.0, 1440.0), (180.0, 8640.0)] {
            let pool = plan(PAPER_RATIO_POLL_SECONDS, days * DAY).pool().unwrap();
            assert!((pool.times_per_exchange - expected).abs() < 1e-9, "{days} days: {pool:?}");
        }
        let with_nine_hours = plan(PAPER_POLL_SECONDS, 30.0 * DAY).pool().unwrap();
        assert!((with_nine_hours.times_per_exchange - 1440.0).abs() > 1000.0);
    }

    #[test]
    fn rare_phases_take_their_part_of_the_core() {
        let plan = Demand {
            time_rps: 1000.0,
            exchange_rps: Some(100.0),
            negotiation_rps: Some(100.0),
            poll_seconds: 10.0,
            rekey_seconds: 200.0,
        };
        let pool = plan.pool().unwrap();
        // A client takes 1/10,000 of the core for time and 2 x 1/100/200 for the rest, which is as much again.
        assert_eq!((pool.clients, pool.clients_with_all_phases), (10_000, Some(5000)));
        assert!(pool.exchange_share.is_some_and(|share| (share - 0.5).abs() < 1e-12));
        assert!((pool.exchanges_rps - 25.0).abs() < 1e-9);
        let work = pool.exchanges_rps / 100.0 * 2.0 + 5000.0 / 10.0 / 1000.0;
        assert!((work - 1.0).abs() < 1e-9, "the core has nothing left to do");
    }

    #[test]
    fn nonsense_is_refused() {
        let good = plan(64.0, DAY);
        for bad in [
            Demand { time_rps: 0.0, ..good },
            Demand { exchange_rps: Some(-1.0), ..good },
            Demand { negotiation_rps: Some(f64::NAN), ..good },
            Demand { poll_seconds: 0.0, ..good },
            Demand { rekey_seconds: f64::INFINITY, ..good },
            Demand { rekey_seconds: 63.0, ..good },
        ] {
            assert!(bad.pool().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn text_says_what_nine_hours_are() {
        let plan = plan(PAPER_POLL_SECONDS, 30.0 * DAY);
        let text = text(&plan, &plan.pool().unwrap());
        for part in ["5,755,502,592", "2^15 s", "5,690,865,600", "1:1:1440", "1:1:8640", "30 minutes"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
