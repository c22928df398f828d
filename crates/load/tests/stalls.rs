//! Searches against servers of known capacity, by a generator that is held up: in virtual time, through the code that
//! makes a trial from a step. No packet is sent.

use std::sync::LazyLock;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_load::search::{ClosedTrial, Found, Offer, Search, Settings, Trial, Windows};
use authentick_report::load::{Backlog, Cause, Evidence, LoadRecord, Step, Tally};

const LOSS_MAX: f64 = 0.01;
const TRIAL_SECONDS: f64 = 1.0;
/// What a server answers, a second.
const CAPACITY_RPS: f64 = 5000.0;
/// The rate at which it loses as much as is tolerated, if all that it cannot answer is lost.
const TRUTH_RPS: f64 = CAPACITY_RPS / (1.0 - LOSS_MAX);
/// What is due later than this was held up: the generator's own limit.
const LATE: f64 = 0.001;

/// When the generator stands still.
#[derive(Clone, Copy, Debug)]
struct Stalls {
    /// How often in a second, evenly but for a random phase.
    count: u32,
    /// From the shortest to the longest, in seconds.
    seconds: [f64; 2],
    /// Intervals that hold the truth are at most so wide, the upper end by the lower.
    width_max: f64,
}

const QUIET: Stalls = Stalls { count: 0, seconds: [0.0; 2], width_max: 1.15 };
const PREEMPTED: Stalls = Stalls { count: 9, seconds: [0.004, 0.008], width_max: 1.25 };
const PAUSED: Stalls = Stalls { count: 1, seconds: [0.05; 2], width_max: 1.45 };
const SHARED: Stalls = Stalls { count: 10, seconds: [0.045; 2], width_max: 2.3 };

/// What is done wrong, to see whether the tests notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// What fell due in a stall is sent together after it.
    Bursts,
    /// A trial is taken for its nominal rate, whatever was left out.
    Nominal,
}

/// A server with a queue of so many places, which answers one request after the other.
struct Server {
    place_count: f64,
    /// Share of requests that are lost on the way, at any rate.
    lost_share: f64,
}

fn uniform(entropy: &mut Entropy) -> f64 {
    ((entropy.u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// The stalls of a trial, in order: from, to.
fn draw(stalls: Stalls, entropy: &mut Entropy) -> Vec<[f64; 2]> {
    let phase = uniform(entropy);
    let count = (f64::from(stalls.count) * TRIAL_SECONDS) as u32;
    let [least, most] = stalls.seconds;
    (0..count)
        .map(|index| {
            let from = (f64::from(index) + phase) / f64::from(stalls.count);
            [from, from + least + (most - least) * uniform(entropy)]
        })
        .collect()
}

/// An open trial of a generator that leaves out what falls due in its stalls.
fn step(server: &Server, stalls: Stalls, fault: Fault, rate_rps: f64, entropy: &mut Entropy) -> Step {
    let stalls = draw(stalls, entropy);
    let phase = uniform(entropy);
    let due_count = (rate_rps * TRIAL_SECONDS) as u64;
    let (mut cut, mut sent, mut lost) = (0, 0, 0);
    let (mut queue, mut last) = (0.0_f64, 0.0);
    let (mut middle, mut stall) = (None, 0);
    for index in 0..due_count {
        let due = (index as f64 + phase) / rate_rps;
        while stalls.get(stall).is_some_and(|[_, to]| *to <= due) {
            stall += 1;
        }
        let mut at = due;
        if let Some([from, to]) = stalls.get(stall)
            && *from <= due
        {
            // The first of a stall is over a millisecond late, and then all before its end are left out.
            if fault != Fault::Bursts && to - from > LATE {
                cut += 1;
                continue;
            }
            at = *to;
        }
        if middle.is_none() && at >= TRIAL_SECONDS / 2.0 {
            middle = Some(queue);
        }
        queue = (queue - (at - last) * CAPACITY_RPS).max(0.0);
        last = at;
        sent += 1;
        if queue + 1.0 > server.place_count || uniform(entropy) < server.lost_share {
            lost += 1;
        } else {
            queue += 1.0;
        }
    }
    let backlog = Backlog { start: 0, middle: middle.unwrap_or(0.0) as u64, end: queue as u64 };
    let tally = Tally {
        scheduled: sent,
        sent,
        answered: sent - lost,
        lost,
        causes: [(Cause::Timeout, lost)].into(),
        backlog,
        ..Tally::default()
    };
    static RECORD: LazyLock<LoadRecord> = LazyLock::new(|| {
        LoadRecord::from_json(include_str!("../../report/tests/golden/load.json")).expect("a record")
    });
    let evidence = Evidence { cut, ..Evidence::default() };
    Step {
        offered_rps: Some(rate_rps),
        seconds: TRIAL_SECONDS,
        tally,
        evidence: Some(evidence),
        valid: true,
        why_invalid: None,
        limit: None,
        lateness_us: None,
        hosts: Vec::new(),
        ..RECORD.steps[0].clone()
    }
}

fn search(server: &Server, stalls: Stalls, fault: Fault, seed: u64) -> Found {
    let mut entropy = Entropy::from_seed(seed);
    let windows = Some(Windows { first: 8, largest: 4096 });
    let settings = Settings { windows, loss_max: LOSS_MAX, ..Settings::default() };
    let mut search = Search::new(settings);
    let still = f64::from(stalls.count) * f64::midpoint(stalls.seconds[0], stalls.seconds[1]);
    while let Some(offer) = search.next() {
        match offer {
            // A round trip takes 10 ms.
            Offer::Closed { window, duration } => {
                let answered_rps = (f64::from(window) * 100.0).min(CAPACITY_RPS) * (1.0 - still);
                let failed = u64::from(f64::from(window) > server.place_count) * 100;
                search.take_closed(ClosedTrial { sent: 1000, failed, answered_rps }, duration);
            }
            Offer::Open { rate_rps } => {
                let step = step(server, stalls, fault, rate_rps, &mut entropy);
                let mut trial = Trial::from(&step);
                if fault == Fault::Nominal {
                    trial.sustained_share = 1.0 - trial.loss();
                }
                search.take(trial, Duration::from_secs_f64(TRIAL_SECONDS + 0.1));
            }
        }
    }
    search.found()
}

/// Of so many searches: how many hold the truth, whose lower end is above it, that have no interval, and the widest
/// interval but one in twenty.
fn check(server: &Server, stalls: Stalls, fault: Fault, seed_count: u64) -> (f64, f64, f64, f64) {
    let (mut held, mut above, mut open, mut widths) = (0.0, 0.0, 0.0, Vec::new());
    for seed in 0..seed_count {
        let found = search(server, stalls, fault, seed);
        match (found.at_least_rps(), found.below_rps()) {
            (Some(lower), _) if lower > TRUTH_RPS => above += 1.0,
            (Some(lower), Some(upper)) => {
                held += f64::from(u8::from(upper > TRUTH_RPS));
                widths.push(upper / lower);
            }
            (Some(_), None) | (None, _) => open += 1.0,
        }
    }
    widths.sort_by(f64::total_cmp);
    let widest = widths.get((widths.len() * 19 / 20).saturating_sub(1)).copied().unwrap_or(f64::INFINITY);
    let count = seed_count as f64;
    (held / count, above / count, open / count, widest)
}

fn check_all(seed_count: u64) {
    println!("{:>8} {:>12} {:>7} {:>7} {:>7} {:>7}", "places", "stalls", "held", "high", "open", "width");
    for place_count in [4.0, 50.0, 256.0, 5000.0] {
        for stalls in [QUIET, PREEMPTED, PAUSED, SHARED] {
            let server = Server { place_count, lost_share: 0.0 };
            let (held, above, open, width) = check(&server, stalls, Fault::None, seed_count);
            let name = format!("{} x {} ms", stalls.count, stalls.seconds[1] * 1e3);
            println!("{place_count:>8} {name:>12} {held:>7.3} {above:>7.3} {open:>7.3} {width:>7.3}");
            assert!(held >= 0.93 && above <= 0.025, "{place_count} {name}: {held} {above} {open}");
            assert!(width <= stalls.width_max, "{place_count} {name}: {width}");
        }
    }
    println!("assurance: stalled-searches = {} searches", seed_count * 16);
}

#[test]
fn stalls_of_the_generator_widen_the_interval_and_move_neither_end() {
    check_all(40);
}

#[test]
#[ignore = "takes a minute; `cargo xtask nightly` runs it"]
fn stalls_widen_the_interval_in_two_hundred_searches_of_each_kind() {
    check_all(200);
}

#[test]
fn bursts_after_stalls_would_be_noticed() {
    let server = Server { place_count: 4.0, lost_share: 0.0 };
    let (held, _, open, width) = check(&server, PREEMPTED, Fault::Bursts, 40);
    assert!(held < 0.93 || width > PREEMPTED.width_max, "{held} {open} {width}");
}

#[test]
fn nominal_rates_of_cut_trials_would_be_noticed() {
    let server = Server { place_count: 5000.0, lost_share: 0.0 };
    let (held, above, ..) = check(&server, SHARED, Fault::Nominal, 40);
    assert!(held < 0.93 || above > 0.025, "{held} {above}");
}

#[test]
fn path_that_loses_at_any_rate_is_named_with_its_loss() {
    let server = Server { place_count: 256.0, lost_share: 0.02 };
    let named = (0..40).filter(|&seed| {
        let found = search(&server, QUIET, Fault::None, seed);
        found.steady_loss.is_some_and(|loss| (0.01..0.04).contains(&loss)) && found.throughput.is_some()
    });
    let count = named.count();
    // The others held once by chance, and have an interval.
    assert!(count >= 34, "{count} of 40");
}
