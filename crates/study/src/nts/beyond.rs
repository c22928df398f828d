//! Beyond the paper: sessions of a key exchange and one to three hundred transfers, in a closed loop; and transfers
//! alone, at rates from the end of the paper's axis to what the server carries.
//!
//! What a session costs the server is its processor time from before the first session to after the last over the
//! number of them: the generator follows each session that has begun to its end.

use authentick_report::load::{LoadRecord, Step, Tally};
use authentick_report::published::nts::TRANSFER_AXIS_END_RPS;
use authentick_report::study::Task;
use authentick_report::study::nts::{
    Cookies, Outcomes, Pattern, Plan, RateStep, RatesRecord, SessionsRecord, Settings as NtsSettings, Workers,
};
use authentick_report::units::{microseconds, rate};

use super::FAILED_SHARE_MAX;
use super::bench::{Bench, Loaded, shares_processor};
use super::ladder::{Came, why_invalid};
use crate::Error;
use crate::folder::Folder;
use crate::paper::Found;
use crate::program::say;

/// How long a client waits for an answer in a session, and goes on after the step's end, in seconds.
const TIMEOUT_SECONDS: u32 = 5;
/// Transfers alone are counted after so many seconds: clients have exchanged keys by then.
const WARM_UP_SECONDS: f64 = 0.2;
/// The first rate is at most this share of what a closed loop brought, and the last one so many times that.
const FIRST_SHARE: f64 = 0.5;
const LAST_SHARE: f64 = 1.3;
/// Clients that offer a rate, and those that ask in a closed loop for what the server serves.
const RATE_CLIENTS: u32 = 500;
const CLOSED_WINDOW: u32 = 64;

/// A pattern in a closed loop.
pub(super) fn sessions(
    pattern: Pattern,
    task: &Task,
    bench: &Bench<'_>,
    folder: &Folder<NtsSettings>,
) -> Result<Found, Error> {
    let settings = &folder.plan.settings;
    let loaded = bench.begin_untimed(Workers::One)?;
    let words = session_words(pattern, bench, &loaded, settings);
    let run = match bench.load(&loaded, words)? {
        Came::Measured(run) => run,
        Came::Stopped => return Ok(Found::Stopped(None)),
        Came::Impossible(why) => return Ok(Found::Infeasible(why)),
    };
    let Some(step) = run.steps.first() else { return Ok(Found::Stopped(None)) };
    let record = sessions_record(pattern, step, &folder.plan, task, bench.is_isolated());
    if let Some(why) = record.why_invalid.clone() {
        return Ok(Found::Invalid { record: record.to_json(), why });
    }
    let cost = record.cost_ns().map_or_else(|| "an unknown time".to_owned(), |ns| microseconds(ns / 1e3));
    let line = format!("{}: the server takes {cost} for each", pattern.name());
    Ok(Found::Measured { record: record.to_json(), line })
}

/// The arguments of a closed loop, all but its record.
fn session_words(
    pattern: Pattern,
    bench: &Bench<'_>,
    loaded: &Loaded<'_>,
    settings: &NtsSettings,
) -> Vec<String> {
    let (key_exchange, ntp) = (loaded.addresses.key_exchange, loaded.addresses.ntp);
    let (scheme, target) = match pattern {
        Pattern::Exchanges => ("ke", key_exchange),
        Pattern::Transfers(_) => ("nts", ntp),
        Pattern::Sessions(..) => ("mix", ntp),
    };
    let mut words = ["load".to_owned(), scheme.to_owned(), target.to_string()].to_vec();
    match pattern {
        Pattern::Exchanges => {}
        Pattern::Transfers(cookies) => {
            say(&mut words, "--ke-port", &key_exchange.port());
            say(&mut words, "--warm-up", &WARM_UP_SECONDS);
            words.extend((cookies == Cookies::One).then(|| "--replay-cookie".to_owned()));
        }
        Pattern::Sessions(count, cookies) => {
            say(&mut words, "--ke-port", &key_exchange.port());
            say(&mut words, "--transfers-per-exchange", &count);
            words.extend((cookies == Cookies::One).then(|| "--same-cookie".to_owned()));
        }
    }
    let window = settings.session_window.max(1);
    say(&mut words, "--closed", &window);
    // As many again, as one whose session has just ended may not be free yet.
    say(&mut words, "--clients", &window.saturating_mul(2));
    say(&mut words, "--timeout", &TIMEOUT_SECONDS);
    say(&mut words, "--step-seconds", &settings.session_seconds);
    bench.add_trust(&mut words, loaded, settings);
    words
}

/// What a closed loop says of a pattern.
fn sessions_record(
    pattern: Pattern,
    step: &Step,
    plan: &Plan,
    task: &Task,
    isolated: bool,
) -> SessionsRecord {
    let other = step.accompanying.as_ref().map(Outcomes::from).unwrap_or_default();
    let own = Outcomes::from(&step.tally);
    let (exchanges, transfers) = match pattern {
        Pattern::Exchanges | Pattern::Sessions(..) => (own, other),
        Pattern::Transfers(_) => (other, own),
    };
    let server_cpu_seconds = step.server.as_ref().map(|server| server.cpu_seconds);
    let why = why_invalid(step)
        .or_else(|| why_cut(pattern, &exchanges, &transfers))
        .or_else(|| server_cpu_seconds.is_none().then(|| "nobody knows what the server used".to_owned()));
    SessionsRecord {
        version: plan.version.clone(),
        commit: plan.commit.clone(),
        command: plan.command.clone(),
        started_unix_s: plan.started_unix_s,
        host: plan.machine.clone(),
        task: task.id.clone(),
        isolated,
        window: plan.settings.session_window.max(1),
        seconds: step.seconds,
        exchanges,
        transfers,
        answered_within: step.tally.answered_within(),
        server_cpu_seconds,
        generator_busy_share: step.generator_busy_share,
        why_invalid: why,
    }
}

/// Why sessions are not what they were to be, if so: exchanges failed, or transfers are missing.
fn why_cut(pattern: Pattern, exchanges: &Outcomes, transfers: &Outcomes) -> Option<String> {
    let (name, done, wanted) = match pattern {
        Pattern::Exchanges => ("key exchanges", exchanges.answered, exchanges.sent),
        Pattern::Transfers(_) => ("transfers", transfers.answered, transfers.sent),
        Pattern::Sessions(count, _) => {
            ("transfers", transfers.answered, exchanges.sent.saturating_mul(count.into()))
        }
    };
    let missing = wanted.saturating_sub(done);
    (wanted == 0 || missing as f64 > wanted as f64 * FAILED_SHARE_MAX)
        .then(|| format!("{missing} of {wanted} {name} had no good answer"))
}

/// Transfers alone at a server with so many workers.
pub(super) fn rates(
    workers: Workers,
    task: &Task,
    bench: &Bench<'_>,
    folder: &Folder<NtsSettings>,
) -> Result<Found, Error> {
    let settings = &folder.plan.settings;
    let loaded = bench.begin_untimed(workers)?;
    let words = |model: [String; 2], clients: u32, seconds: f64| {
        let ke = loaded.addresses.key_exchange.port();
        let mut words = ["load".to_owned(), "nts".to_owned(), loaded.addresses.ntp.to_string()].to_vec();
        say(&mut words, "--ke-port", &ke);
        words.extend(model);
        say(&mut words, "--clients", &clients);
        say(&mut words, "--step-seconds", &seconds);
        bench.add_trust(&mut words, &loaded, settings);
        words
    };
    let closed = ["--closed".to_owned(), CLOSED_WINDOW.to_string()];
    let closed = match bench.load(&loaded, words(closed, CLOSED_WINDOW, settings.session_seconds))? {
        Came::Measured(run) => run,
        Came::Stopped => return Ok(Found::Stopped(None)),
        Came::Impossible(why) => return Ok(Found::Infeasible(why)),
    };
    let Some(closed) = closed.steps.first() else { return Ok(Found::Stopped(None)) };
    let closed_rps = closed.answered_rps();
    if closed.tally.answered == 0 {
        return Ok(Found::Infeasible("its server answers no transfer".to_owned()));
    }
    let rising = ["--geometric".to_owned(), rising(closed_rps, settings.rate_steps)];
    let run = match bench.load(&loaded, words(rising, RATE_CLIENTS, settings.rate_seconds))? {
        Came::Measured(run) => run,
        Came::Stopped => return Ok(Found::Stopped(None)),
        Came::Impossible(why) => return Ok(Found::Infeasible(why)),
    };
    let record = rates_record(workers, (closed, &run), &folder.plan, task, bench.is_isolated());
    let counted = record.steps.iter().filter(|step| step.why_invalid.is_none());
    let Some(most) = counted.max_by(|left, right| left.transfers.answered.cmp(&right.transfers.answered))
    else {
        let why = record.steps.first().and_then(|step| step.why_invalid.clone()).unwrap_or_default();
        return Ok(Found::Invalid { record: record.to_json(), why });
    };
    let line = format!(
        "NTS alone, {}: {} of {} transfers a second answered",
        workers.name(),
        rate(most.transfers.answered as f64 / most.seconds),
        rate(most.offered_rps)
    );
    Ok(Found::Measured { record: record.to_json(), line })
}

/// So many rates from the end of the paper's axis, or from below what a closed loop brought, to beyond that.
fn rising(closed_rps: f64, count: u32) -> String {
    let first = f64::from(TRANSFER_AXIS_END_RPS).min(closed_rps * FIRST_SHARE).max(1.0).floor();
    let last = (closed_rps * LAST_SHARE).max(first * 2.0).ceil();
    let factor = (last / first).powf(1.0 / f64::from(count.max(2) - 1));
    // A little less far, as the last of them is not to be missed by rounding.
    let factor = (factor * 1e4).floor() / 1e4;
    format!("{first}:{factor}:{last}")
}

/// What both load runs say of a server with so many workers.
fn rates_record(
    workers: Workers,
    (closed, run): (&Step, &LoadRecord),
    plan: &Plan,
    task: &Task,
    isolated: bool,
) -> RatesRecord {
    RatesRecord {
        version: plan.version.clone(),
        commit: plan.commit.clone(),
        command: plan.command.clone(),
        started_unix_s: plan.started_unix_s,
        host: plan.machine.clone(),
        task: task.id.clone(),
        isolated,
        shares_processor: shares_processor(workers),
        closed_rps: closed.answered_rps(),
        closed_busy_share: closed.generator_busy_share,
        steps: run.steps.iter().filter_map(rate_step).collect(),
    }
}

fn rate_step(step: &Step) -> Option<RateStep> {
    let at = |share: f64| {
        let Tally { histograms, .. } = &step.tally;
        histograms.latency_ns.quantile(share).map(|ns| u64::try_from(ns).unwrap_or(0))
    };
    Some(RateStep {
        offered_rps: step.offered_rps?,
        seconds: step.seconds,
        transfers: Outcomes::from(&step.tally),
        p50_ns: at(0.5),
        p95_ns: at(0.95),
        server_us: step.server.as_ref().and_then(|server| server.cpu_us_per_request),
        generator_busy_share: step.generator_busy_share,
        limited_by: step.limit.as_ref().map(|limit| limit.by).unwrap_or_default(),
        why_invalid: why_invalid(step),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rates that a load run makes of it.
    fn rates(text: &str) -> Vec<f64> {
        authentick_load::rates::geometric(text).unwrap()
    }

    #[test]
    fn rates_rise_from_the_end_of_the_paper_s_axis_past_what_a_closed_loop_brought() {
        for (closed_rps, count, first) in
            [(100_000.0, 8, 24_000.0), (400_000.0, 5, 24_000.0), (30_000.0, 5, 15_000.0)]
        {
            let rates = rates(&rising(closed_rps, count));
            assert_eq!((rates.len(), rates[0]), (count as usize, first), "{rates:?}");
            let last = rates[rates.len() - 1];
            assert!(last > closed_rps * 1.25 && last <= closed_rps * 1.31, "{rates:?}");
        }
        // However slow a server is, there is a rate for it.
        assert!(!rates(&rising(0.5, 5)).is_empty());
    }

    #[test]
    fn sessions_whose_transfers_are_missing_do_not_count() {
        let of = |sent, answered| Outcomes { scheduled: sent, sent, answered, ..Outcomes::default() };
        let three = Pattern::Sessions(3, Cookies::Fresh);
        assert_eq!(why_cut(three, &of(100, 100), &of(300, 300)), None);
        assert_eq!(why_cut(three, &of(100, 100), &of(299, 298)), None);
        let why = why_cut(three, &of(100, 100), &of(300, 280)).unwrap();
        assert_eq!(why, "20 of 300 transfers had no good answer");
        assert!(why_cut(Pattern::Exchanges, &of(0, 0), &of(0, 0)).is_some());
        assert!(why_cut(Pattern::Transfers(Cookies::One), &of(0, 0), &of(1000, 900)).is_some());
    }
}
